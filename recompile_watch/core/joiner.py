"""Lines become records: whole log messages, joined per channel, rank and process.

A record is opened by a line that a rule's pattern matches, goes on while lines of the same identity follow, and is
closed when its grammar ends. Identity is what keeps interleaved streams apart:

* a line with torch's prefix belongs to the open record with the very same prefix bytes on the same channel;
* a bare line belongs to the bare record that is open on its channel, as long as the rule's grammar takes it;
* a head may stand behind anything when the line behind it is its record's second one;
* a tag, such as pdsh's name of the host, is known by the head of a record behind it, and then on all lines of that record.

Lines that neither hold a rule's literal nor touch an open record change nothing, so a reader may skip them.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from recompile_watch.core.boxes import Boxes, Placed
from recompile_watch.core.fronts import again, inside, joined, peel_behind, with_tag
from recompile_watch.core.headers import MAX_FRONT, behind_front, behind_header
from recompile_watch.core.near import stamp_before, stamp_beside
from recompile_watch.core.own_reports import is_of_report
from recompile_watch.core.prefix_grammar import BETWEEN_TEXTS, BYTE_LIST, TAG, Piece
from recompile_watch.core.prefixes import is_quotation, is_told, peel
from recompile_watch.core.records import HEAD_LINES, MAX_RECORD_BYTES, Record, is_of_another, sure_ones
from recompile_watch.core.rules import Match, Rule, Ruleset
from recompile_watch.core.scan import Matcher

REACH_BYTES = 1 << 16  # how far behind its last line a torch record may still go on (other ranks, other threads print between)
REACH_LINES = 200  # the same for a bare record while only lines of other channels pass
# What a line of these artifacts can be the head of; their records quote exceptions that are no events.
_ARTIFACT_EVENTS = {b"__graph_breaks": "graph_break", b"__recompiles": "recompile", b"__recompiles_verbose": "recompile"}
_BEGINS_BETWEEN = (b" ", b'"', b"\t", b"{", b"}")


class Joiner:
    """Joins the lines of one source into records. Feed it lines in order; it returns the records that closed."""

    def __init__(
        self, rules: Ruleset, matcher: Matcher | None = None, front: "re.Pattern[bytes] | None" = None, header: "re.Pattern[bytes] | None" = None
    ) -> None:
        """front: what stands in front of every line. header: what does so in front of the first line of each record."""
        self._header = header
        self._peel: Callable[[bytes], list[Piece]] = peel if front is None else partial(peel_behind, front)
        self._rules = rules.rules
        self._matcher = matcher
        self._literals, self._by_literal = rules.literals, rules.by_literal
        self._place = {rule.id: place for place, rule in enumerate(rules.rules)}
        self._orphans = tuple((rule, rule.orphan) for rule in rules.rules if rule.orphan is not None)
        self._open: list[Record] = []
        self._carried: dict[bytes, tuple[Piece, int, int]] = {}
        self._boxes = Boxes()
        self._number = self._offset = self._records = 0
        self._raw = self._torn_line = b""
        self._broken_off: set[bytes] = set()  # channels in which something was printed in the middle of a record

    @property
    def open(self) -> list[Record]:
        """The records that still wait for lines, oldest first."""
        return self._open

    def first_open(self) -> tuple[int, int, bytes] | None:
        """Offset and number of the first line that is not understood yet, and the line in front of it; None when all are."""
        records = [(record.offset, record.line, record.before) for record in self._open]
        return min([*records, *((offset, number, b"") for _, number, offset in self._carried.values()), *self._boxes.first_open()], default=None)

    @property
    def is_carrying(self) -> bool:
        """True while a line that its carrier cut waits for its rest, or a box for its end."""
        return bool(self._carried) or self._boxes.is_open

    def wants_every_line(self) -> bool:
        """True while a bare record or a line cut by its carrier is open: the very next lines decide about it."""
        return self.is_carrying or any(record.decides_next(self._number) for record in self._open)

    def awaited(self) -> list[tuple[bytes, int]]:
        """The torch prefixes that go on with an open record, each with the last offset where that may happen."""
        return [(record.head.torch, record.end + REACH_BYTES) for record in self._open if record.head.torch]

    def line(
        self, number: int, offset: int, raw: bytes, before: bytes = b"", *, opens: bool = True, terminated: bool = True, size: int | None = None,
        ordinal: int = 0,
    ) -> list[Record]:  # fmt: skip
        """Takes one physical line without its newline; the records that this line closed, in order.

        before: the lines in front of it (b"" when unknown). opens: False takes it only as a continuation. terminated: False for a last
        line without newline. size, ordinal: its bytes in the source, and its number among such lines, where ``raw`` is more than one line.
        """
        self._number, self._offset = ordinal or number, offset
        closed = self._expire(self._number, offset)
        self._raw = raw
        self._torn_line = b"" if terminated else raw.replace(b"\x00", b"")
        for piece, first, begin in self._whole(raw, number, offset):
            closed += self._pieces(self._boxes.line(self._behind_tag(piece), first, begin, self._raw), before, opens)
        closed += self._pieces(self._boxes.end(), b"", opens) if self._boxes.is_open and not self._open else []
        for record in self._open:
            if record.last_line == self._number:
                record.end = offset + (len(raw) if size is None else size) + 1
                record.unterminated = not terminated or (record.ended and record.unterminated)
        done = [record for record in self._open if record.ended]
        if done:
            self._open = [record for record in self._open if not record.ended]
        return sure_ones(closed + done)

    def close(self, size: int) -> list[Record]:
        """Closes what is open, at the end of an input of ``size`` bytes; a record that reaches it counts as cut."""
        closed: list[Record] = []
        for held, number, offset in self._carried.values():
            for piece in again(held):
                closed += self._piece(number, offset, piece, b"", True)
        self._carried.clear()
        closed += self._pieces(self._boxes.end(), b"", True)
        closed, self._open = closed + self._open, []
        for record in closed:
            goes_on = bool(self._torn_line) and record.begins_like(self._torn_line)
            if record.end >= size or (goes_on and record.end >= self._offset):
                record.cut = True
                record.unterminated = record.unterminated or goes_on
        return sure_ones(closed)

    def _pieces(self, placed: Iterable[Placed], before: bytes, opens: bool) -> list[Record]:
        closed: list[Record] = []
        for piece, number, offset, raw in placed:
            self._raw = raw
            closed += self._piece(number, offset, piece, before, opens)
        return closed

    def _expire(self, number: int, offset: int) -> list[Record]:
        expired = [record for record in self._open if self._is_expired(record, number, offset)]
        for record in expired:
            record.cut = record.cut or record.size > MAX_RECORD_BYTES
            self._open.remove(record)
        return expired

    @staticmethod
    def _is_expired(record: Record, number: int, offset: int) -> bool:
        if record.ended or record.size > MAX_RECORD_BYTES or len(record.texts) > 50 * record.rule.max_lines:
            return True
        reach = 1 if record.is_unsure else REACH_LINES
        return number - record.last_line > reach if record.takes_bare else offset > record.end + REACH_BYTES

    def _whole(self, raw: bytes, number: int, offset: int) -> list[tuple[Piece, int, int]]:
        """The pieces of a line, put together again where its carrier had cut it (Docker 16 KiB, CRI ``P``).

        Each comes with the number and offset of the physical line it begins on.
        """
        pieces = with_tag(self._peel(raw))
        first, last = pieces[0], pieces[-1]
        if first.text[:1] in _BEGINS_BETWEEN and not first.headed and BETWEEN_TEXTS.fullmatch(first.text) is not None:
            return []
        if first.carrier is not None and BYTE_LIST.search(raw) is not None:
            self._raw = b"\n".join(piece.carried for piece in pieces)
        held = self._carried.pop(first.carrier, None) if first.carrier is not None else None
        if held is not None:
            piece, number, offset = held
            first = piece._replace(carried=piece.carried + first.carried)
            self._raw = first.carried
            if last.continues and len(first.carried) < MAX_RECORD_BYTES:
                self._carried[piece.carrier or b""] = (first, number, offset)
                return []
            return [(whole, number, offset) for whole in again(first)]
        if last.continues:
            self._carried[last.carrier or b""] = (last, number, offset)
            pieces.pop()
        return [(piece, number, offset) for piece in pieces]

    def _behind_tag(self, piece: Piece) -> list[Piece]:
        """The piece, or what stands behind its tag: one that an open record has, or behind which a record begins."""
        if piece.headed:
            return [piece]
        for record in self._open:
            tag = record.head.tag
            if tag and piece.text.startswith(tag) and record.head.channel.startswith(joined(piece.channel, tag)):
                return inside(piece, tag)
        match, taker = TAG.match(piece.text), self._taker(piece)
        if match is None or (taker is not None and not taker.rule.gives_way):
            return [piece]
        within = inside(piece, match[0])
        if not any((head := self._head(one)) is not None and (taker is None or not head[0].gives_way) for one in within):
            return [piece]
        if taker is not None:
            taker.gave_way = taker.ended = True
        return within

    def _piece(self, number: int, offset: int, piece: Piece, before: bytes, opens: bool) -> list[Record]:
        taker = self._taker(piece)
        if taker is not None and not self._starts_another(taker, piece):
            if taker.completes(piece.torch):
                taker.begin_with(piece)
                taker.stamp = piece.stamp
            self._append(taker, number, offset, piece.text)
            taker.rests_from = 0
            taker.tear(piece)
            return []
        opened = self._opened(number, offset, piece, before) if opens else None
        closed = self._close_beside(piece, taker, opened if opened is not None and not opened.is_unsure else None)
        if opened is not None:
            self._open.append(opened)
        return closed

    def _taker(self, piece: Piece) -> Record | None:
        """The open record that this piece goes on with."""
        for record in reversed(self._open):
            head = record.head
            if self._changes_front(record, piece) or (record.has_stump and self._is_bare_rest(record, piece)):
                return record
            if record.ended or record.is_unsure or is_of_another(head, piece):
                continue
            if piece.torch and piece.torch == head.torch and (head.torch in self._raw or record.hides_prefix):
                return record
            if piece.torch and record.last_line == self._number - 1 and record.completes(piece.torch):
                return record
            if not piece.headed and record.waits_at(self._number - 1) and record.takes_broken(piece.text):
                return record
            if not piece.headed and record.may_be_trimmed(self._number - 1, piece.text):
                record.is_trimmed = record.takes_bare = True
                return record
            if piece.same_entry and record.last_line == self._number and not piece.torch:
                return record if record.takes(piece) or self._head(piece) is None else None
            if not piece.torch and record.takes_bare and record.takes(piece):
                return record
        return None

    def _changes_front(self, record: Record, piece: Piece) -> bool:
        """True when its second line shows what stands in front of the lines of a record; that goes on as this one from here."""
        if record.has_lone_front(piece, self._number - 1, self._header):
            record.begin_behind_front(piece)
        elif self._has_lone_tag(record, piece):
            record.begin_with(record.head._replace(channel=piece.channel, tag=b""))
        elif record.began_late(piece, self._number, _ARTIFACT_EVENTS.get(piece.artifact)) and not self._has_other(record, piece):
            record.begin_with(piece)
            record.stamp = piece.stamp
        else:
            return False
        return True

    def _has_other(self, record: Record, piece: Piece) -> bool:
        """True when another record is open whose lines have this very prefix, behind the same words of a carrier."""
        others = (other.head for other in self._open if other is not record)
        return any(head.torch == piece.torch and head.channel == piece.channel and head.rank == piece.rank for head in others)

    def _has_lone_tag(self, record: Record, piece: Piece) -> bool:
        """True when the record's second line has no tag, so that in its first one those words belong to the message or to somebody's own."""
        tag = record.head.tag
        if not tag or not record.takes_bare or len(record.texts) > 1 or record.last_line != self._number - 1:
            return False
        return joined(piece.channel, tag) == record.head.channel and piece.text.strip() != b"" and record.takes(piece)

    def _is_bare_rest(self, record: Record, piece: Piece) -> bool:
        """True when all prefixes of the line are gone, the rank's too, of which the record's first line kept the end."""
        is_next = not record.ended and record.last_line == self._number - 1
        return is_next and not piece.headed and not piece.channel and record.takes(piece)

    def _starts_another(self, record: Record, piece: Piece) -> bool:
        if record.indent:
            piece = piece._replace(text=record.dedented(piece.text))
        if piece.same_entry and not piece.torch and piece.text[:1] > b" " and not record.takes(piece):
            return self._head(piece) is not None  # what the entry says next
        if record.rule.gives_way and not (piece.torch and piece.text[:1] in (b" ", b"")):
            first = (rule for rule in self._candidates(piece.text) if self._place[rule.id] < self._place[record.rule.id])
            record.gave_way = any(self._head_of(rule, piece) is not None for rule in first)
            return record.gave_way
        if piece.text[:1] in (b" ", b""):
            return False
        if record.rule.pattern.match(piece.text) is not None and not record.rule.anywhere:
            return True
        # Two messages from one place in one millisecond have the same prefix.
        others = (rule for rule in self._candidates(piece.text) if rule.event != record.rule.event and not rule.anywhere)
        return any(rule.pattern.match(piece.text) is not None for rule in others)

    def _append(self, record: Record, number: int, offset: int, text: bytes) -> None:
        record.texts.append(record.dedented(text) if record.indent else text)
        if not record.head.torch:
            record.at.append((number, offset))
        record.last_line, record.end = self._number, offset
        record.size += len(text)
        if record.rule.ends is not None and record.rule.ends.search(text) is not None:
            record.ended = True

    def _opened(self, number: int, offset: int, piece: Piece, before: bytes) -> Record | None:
        head = self._head(piece)
        if head is not None:
            is_quoted = self._is_quoted(piece, before) or is_told(self._raw, head[1].group())
            return None if is_quoted else self._record(*head, number, offset, before)
        if number <= HEAD_LINES and piece.channel not in self._broken_off:
            for rule, orphan in self._orphans:
                is_of_artifact = rule.event == _ARTIFACT_EVENTS.get(piece.artifact, rule.event)
                if is_of_artifact and any(map(orphan.match, (piece.text, piece.tagged, piece.placed))):
                    is_quoted = is_of_report(self._raw) or is_told(self._raw, piece.text)
                    return None if is_quoted else self._record(rule, None, piece, number, offset, before)
        found = None if piece.torch or self._is_quoted(piece, before) else self._head_inside(piece)
        return None if found is None else self._record(*found, number, offset, before, is_unsure=True)

    def _is_quoted(self, piece: Piece, before: bytes) -> bool:
        """True for a line that only names a message; none that begins as torch's own do."""
        if piece.torch and self._raw.startswith(piece.torch):
            return False
        return is_quotation(self._raw, piece.text, before.rpartition(b"\n")[2]) or is_of_report(self._raw, before)

    def _head(self, piece: Piece) -> tuple[Rule, Match, Piece] | None:
        """The first rule whose record the piece begins, what its pattern finds, and the piece without a header in front of that."""
        is_error = piece.torch.startswith((b"E", b"C")) or b"[ERROR]" in piece.torch  # what torch calls an error, its place tells as well
        candidates = self._candidates(piece.torch + piece.text if is_error else piece.text)
        for rule in candidates:
            match = self._head_of(rule, piece)
            if match is not None:
                return rule, match, piece
        for bare in self._behind_header(piece) if candidates and not piece.torch else ():
            for rule in candidates:
                match = None if rule.anywhere else rule.pattern.match(bare.text)
                if match is not None:
                    return rule, match, bare
        return None

    def _behind_header(self, piece: Piece) -> Iterator[Piece]:
        """The piece without a header in front of its message, of a usual format and of the log's own."""
        bare = behind_header(piece)
        if bare is not None:
            yield bare
        own = self._header.match(self._raw) if self._header is not None and self._raw.endswith(piece.text) else None
        at = 0 if own is None else own.end() - len(self._raw) + len(piece.text)
        if at > 0:
            yield behind_front(piece, at)

    def _head_inside(self, piece: Piece) -> tuple[Rule, Match, Piece] | None:
        """The first rule whose message begins inside the piece, behind anything at all, and has a second line that can prove it."""
        for rule in self._candidates(piece.text):
            found = rule.pattern.search(piece.text) if rule.second is not None and not rule.anywhere else None
            bare = behind_front(piece, found.start()) if found is not None and found.start() <= MAX_FRONT else None
            match = None if bare is None else self._head_of(rule, bare)
            if bare is not None and match is not None:
                return rule, match, bare
        return None

    def _head_of(self, rule: Rule, piece: Piece) -> Match | None:
        """What the rule's pattern finds in a line, when that can be the first one of its record."""
        if rule.event != _ARTIFACT_EVENTS.get(piece.artifact, rule.event):
            return None
        if rule.prefix is not None and rule.prefix.search(piece.torch) is None:
            return None
        text = piece.text if rule.anywhere or piece.torch else piece.text.lstrip()
        match = rule.pattern.search(text) if rule.anywhere else rule.pattern.match(text)
        is_refused = match is not None and rule.unless is not None and bool(rule.unless.search(piece.text) or rule.unless.search(self._raw))
        return None if is_refused else match

    def _candidates(self, text: bytes) -> list[Rule]:
        """The rules one of whose literals stands in the text, in the order of the rules.

        It must stand in the line as it was read as well: one that only peeling puts together is not found elsewhere either.
        """
        raw = self._raw
        if self._matcher is None:
            return [rule for rule in self._rules if any(literal in text and literal in raw for literal in rule.literals)]
        found = {index for index in self._matcher.which(text) if self._literals[index] in raw}
        if len(found) == 1:
            return [self._rules[index] for index in self._by_literal[found.pop()]]
        return [self._rules[index] for index in sorted({index for literal in found for index in self._by_literal[literal]})]

    def _record(
        self, rule: Rule, match: Match | None, piece: Piece, number: int, offset: int, before: bytes, *, is_unsure: bool = False
    ) -> Record:  # fmt: skip
        stamp = stamp_before(self._peel, piece, before) if rule.after_blank and before else piece.stamp
        if stamp is None and before and self._raw.lstrip()[:1] == b'"':
            stamp = stamp_beside(before)
        at, size = [(number, offset)], len(piece.text)
        record = Record(rule, match, number, offset, piece, stamp, [piece.text], at, last_line=self._number, size=size, lead=self._raw, before=before)
        self._records += 1
        record.place, record.is_unsure = self._records, is_unsure
        is_line = rule.continues is None and not rule.indented and record.takes_bare
        record.ended = is_line or (rule.ends is not None and rule.ends.search(piece.text) is not None)
        record.tear(piece)
        return record

    def _close_beside(self, piece: Piece, taker: Record | None, opened: Record | None) -> list[Record]:
        """Closes the records that a line which does not go on with them proves to be complete.

        Only the head of another record closes one with a glog prefix: other lines may not have been looked at.
        """
        able = [record for record in self._open if record is taker or ((opened is not None or record.takes_bare) and self._is_over(record, piece))]
        head = self._head(piece) if opened is None and any(record.rests_from for record in able) else None  # behind a part none is opened
        is_table = opened.rule.indented if opened is not None else head is not None and head[0].indented
        closed = [record for record in able if record is taker or is_table or not record.rests(self._number, piece)]
        self._open = [record for record in self._open if record not in closed]
        if closed:
            self._broken_off |= {record.head.channel for record in closed if record.rule.ends is not None and record.takes_bare}
        return closed

    @staticmethod
    def _is_over(record: Record, piece: Piece) -> bool:
        head = record.head
        if is_of_another(head, piece):
            return False
        if not head.torch or record.is_trimmed:
            return True
        if not piece.torch or head.pid != piece.pid or piece.torch == head.torch:
            return False
        if head.torch.startswith(piece.torch):
            record.torn = True  # the beginning of one of its own lines, in which another process wrote
            return False
        return True
