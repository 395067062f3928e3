"""Lines become records: whole log messages, joined per channel, rank and process.

A record is opened by a line that a rule's pattern matches, goes on while lines of the same identity follow, and is
closed when its grammar ends. Identity is what keeps interleaved streams apart:

* a line with torch's prefix belongs to the open record with the very same prefix bytes on the same channel;
* a bare line belongs to the bare record that is open on its channel, as long as the rule's grammar takes it.

Lines that neither hold a rule's literal nor touch an open record change nothing, so a reader may skip them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from recompile_watch.core.prefixes import Piece, Stamp, peel
from recompile_watch.core.rules import Match, Rule, Ruleset

REACH_BYTES = 1 << 16  # how far behind its last line a torch record may still go on (other ranks, other threads print between)
REACH_LINES = 200  # the same for a bare record while only lines of other channels pass
MAX_RECORD_BYTES = 4 << 20
HEAD_LINES = 64  # only so near to the beginning of a log can a record have lost its head
BEFORE_BYTES = 512  # a header line on the line before, with an empty message, is this short


@dataclass(slots=True)
class Record:
    """One whole log message with its prefixes split off.

    line, offset: of its first physical line. texts: its message lines. at: line number and offset of each.
    match: what the rule's pattern found in the first line, None for a record whose head is cut off.
    cut: it was closed by the end of the input or a bound, not by its grammar. unterminated: its last line has no
    newline. torn: another process wrote into the middle of one of its lines.
    """

    rule: Rule
    match: Match | None
    line: int
    offset: int
    head: Piece
    stamp: Stamp | None
    texts: list[bytes]
    at: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0
    last_line: int = 0
    size: int = 0
    ended: bool = False
    cut: bool = False
    unterminated: bool = False
    torn: bool = False

    @property
    def takes_bare(self) -> bool:
        """True when lines without torch's prefix may go on with it: no glog prefix stood in front of its head.

        torch 2.0 and the torchdynamo of 2022 print their bracket prefix on the first line only.
        """
        return not self.head.torch or self.head.torch[:1] in b"[t"

    def message(self) -> bytes:
        """The joined message."""
        return b"\n".join(self.texts)


class Joiner:
    """Joins the lines of one source into records. Feed it lines in order; it returns the records that closed."""

    def __init__(self, rules: Ruleset) -> None:
        self._rules = rules.rules
        self._orphans = tuple(rule for rule in rules.rules if rule.orphan is not None)
        self._open: list[Record] = []
        self._carried: dict[bytes, Piece] = {}

    @property
    def open(self) -> list[Record]:
        """The records that still wait for lines, oldest first."""
        return self._open

    def wants_every_line(self) -> bool:
        """True while a bare record or a line cut by its carrier is open: the very next lines decide about it."""
        return bool(self._carried) or any(record.takes_bare for record in self._open)

    def awaited(self) -> list[tuple[bytes, int]]:
        """The torch prefixes that go on with an open record, each with the last offset where that may happen."""
        return [(record.head.torch, record.end + REACH_BYTES) for record in self._open if record.head.torch]

    def line(self, number: int, offset: int, raw: bytes, before: bytes = b"", *, opens: bool = True, terminated: bool = True) -> list[Record]:
        """Takes one physical line without its newline; the records that this line closed, in order.

        before: the line in front of it (b"" when unknown or long). opens: False takes it only as a continuation.
        terminated: False for a last line without newline.
        """
        closed = self._expire(number, offset)
        for piece in peel(raw):
            closed += self._piece(number, offset, self._carry(piece), before, opens)
        for record in self._open:
            if record.last_line == number:
                record.end = offset + len(raw) + 1
                record.unterminated = not terminated
        done = [record for record in self._open if record.ended]
        if done:
            self._open = [record for record in self._open if not record.ended]
        return closed + done

    @staticmethod
    def extend(record: Record, number: int, offset: int, text: bytes, end: int) -> None:
        """Takes one more line whose identity the caller has checked byte for byte (the fast path of a storm)."""
        record.texts.append(text)
        if not record.head.torch:
            record.at.append((number, offset))
        record.last_line, record.end = number, end
        record.size += len(text)

    def close(self) -> list[Record]:
        """Closes what is open, at the end of the input."""
        for piece in self._carried.values():
            self._piece(0, 0, piece._replace(continues=False), b"", False)
        self._carried.clear()
        closed, self._open = self._open, []
        for record in closed:
            record.cut = True
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
        if not record.takes_bare:
            return offset > record.end + REACH_BYTES
        return number - record.last_line > REACH_LINES

    def _carry(self, piece: Piece) -> Piece:
        """Puts the parts of a line that its carrier cut (Docker 16 KiB, CRI ``P``) together again."""
        held = self._carried.pop(piece.channel, None)
        if held is not None:
            piece = held._replace(text=held.text + piece.text, continues=piece.continues)
        if piece.continues and len(piece.text) < MAX_RECORD_BYTES:
            self._carried[piece.channel] = piece
            return piece
        return _again(piece) if held is not None and not piece.torch else piece

    def _piece(self, number: int, offset: int, piece: Piece, before: bytes, opens: bool) -> list[Record]:
        if piece.continues:
            return []
        taker = self._taker(piece)
        if taker is not None and not self._starts_same(taker, piece):
            self._append(taker, number, offset, piece.text)
            return []
        opened = self._opened(number, offset, piece, before) if opens else None
        closed = self._close_beside(piece, taker)
        if opened is not None:
            self._open.append(opened)
        return closed

    def _taker(self, piece: Piece) -> Record | None:
        """The open record that this piece goes on with."""
        for record in reversed(self._open):
            head = record.head
            if head.channel != piece.channel or head.rank != piece.rank or record.ended:
                continue
            if piece.torch and piece.torch == head.torch:
                return record
            if not piece.torch and record.takes_bare and self._takes_bare(record, piece):
                return record
        return None

    @staticmethod
    def _takes_bare(record: Record, piece: Piece) -> bool:
        if len(record.texts) >= record.rule.max_lines:
            return False
        return record.rule.continues is not None and record.rule.continues.match(piece.text) is not None

    @staticmethod
    def _starts_same(record: Record, piece: Piece) -> bool:
        if piece.text[:1] in (b" ", b""):
            return False
        return record.rule.pattern.match(piece.text) is not None and not record.rule.anywhere

    def _append(self, record: Record, number: int, offset: int, text: bytes) -> None:
        self.extend(record, number, offset, text, offset)
        if record.rule.ends is not None and record.rule.ends.search(text) is not None:
            record.ended = True

    def _opened(self, number: int, offset: int, piece: Piece, before: bytes) -> Record | None:
        for rule in self._rules:
            if not any(literal in piece.text for literal in rule.literals):
                continue
            match = rule.pattern.search(piece.text) if rule.anywhere else rule.pattern.match(piece.text)
            if match is not None:
                return self._record(rule, match, number, offset, piece, before)
        if number <= HEAD_LINES:
            for rule in self._orphans:
                assert rule.orphan is not None
                if rule.orphan.match(piece.text) is not None:
                    return self._record(rule, None, number, offset, piece, before)
        return None

    @staticmethod
    def _record(rule: Rule, match: Match | None, number: int, offset: int, piece: Piece, before: bytes) -> Record:
        stamp = piece.stamp
        if stamp is None and rule.after_blank and before:
            header = peel(before)[-1]
            if header.headed and not header.text.strip() and header.channel == piece.channel:
                stamp = header.stamp
        record = Record(rule, match, number, offset, piece, stamp, [piece.text], [(number, offset)], last_line=number, size=len(piece.text))
        if rule.continues is None and record.takes_bare:
            record.ended = True
        elif rule.ends is not None and rule.ends.search(piece.text) is not None:
            record.ended = True
        return record

    def _close_beside(self, piece: Piece, taker: Record | None) -> list[Record]:
        """Closes the records that a line which does not go on with them proves to be complete."""
        closed = [record for record in self._open if record is taker or self._is_over(record, piece)]
        self._open = [record for record in self._open if record not in closed]
        return closed

    @staticmethod
    def _is_over(record: Record, piece: Piece) -> bool:
        head = record.head
        if head.channel != piece.channel or head.rank != piece.rank:
            return False
        if not head.torch:
            return True
        if not piece.torch or head.pid != piece.pid or piece.torch == head.torch:
            return False
        if head.torch.startswith(piece.torch):
            record.torn = True  # the beginning of one of its own lines, in which another process wrote
            return False
        return True


def _again(piece: Piece) -> Piece:
    """Peels a text that was only now put together from its parts."""
    inner = peel(piece.text)[0]
    return inner._replace(
        channel=piece.channel, stamp=inner.stamp or piece.stamp, outer_stamp=piece.outer_stamp or piece.stamp,
        rank=piece.rank if inner.rank is None else inner.rank, pid=piece.pid if inner.pid is None else inner.pid,
        headed=inner.headed or piece.headed,
    )  # fmt: skip


def texts_of(records: Iterable[Record]) -> list[bytes]:
    """The joined messages of some records (for tests and reports)."""
    return [record.message() for record in records]
