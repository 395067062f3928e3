"""A record: one whole log message, joined from one or more lines; ``joiner`` makes them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from recompile_watch.core.prefix_grammar import GLOG, Piece, Stamp
from recompile_watch.core.rules import Match, Rule

PREFIX_STUMP = 20  # as many bytes of a torch prefix, its level and time, tell where it begins in a line
MAX_RECORD_BYTES = 4 << 20
HEAD_LINES = 64  # only so near to the beginning of a log can a record have lost its head
# Lines that torch indents, as they are where a page or a terminal lost the blanks; after a frame comes its line of code.
_INDENTED = re.compile(rb'File "[^"\n]{1,300}", line \d+(?:, in \S|\s*$)|(?:Explanation|Hint|Developer debug context): \S|[~^]+\s*$')
_DASHES = re.compile(rb"  -{2,}(?: +-{2,})+ *")
REST_LINES = 8  # so many of other streams may stand between two rows of a table
_FRAME_ENDS = re.compile(rb'\S?(?:[^\n]*\s)?File "[^"\n]{1,300}", line \d+(?:, in [^\n]+)?$|[~^]+\s*$')


@dataclass(slots=True)
class Record:
    """One whole log message with its prefixes split off.

    line, offset: of its first physical line. texts: its message lines. at: line number and offset of each.
    match: what the rule's pattern found in the first line, None for a record whose head is cut off.
    cut: it was closed by the end of the input or a bound, not by its grammar. unterminated: its last line has no
    newline. torn: another process wrote into the middle of one of its lines, or behind it. gave_way: a line that is the head of another
    record ended it (``Rule.gives_way``). lead: its first physical line.
    place: how many records were opened before it, for where one line begins several.
    has_stump: copying left only the end of the glog prefix in front of its first line, no level and date.
    takes_bare: lines without torch's prefix may go on with it, as no whole glog prefix stood in front of its head
    (torch 2.0 and the torchdynamo of 2022 print their bracket prefix on the first line only).
    before: the lines in front of it. is_trimmed: only its head kept torch's prefix.
    is_unsure: its head stands behind something that may be a header or somebody's words; only its second line can prove it.
    rank: who printed it, where only its first line shows that.
    indent: the blanks that somebody put in front of all of its lines, as a list or a page of Markdown wants them.
    rests_from: the line of another stream by which it is interrupted, a table; 0 while it is not.
    stripped: its lines are known to have lost their indent; whether headers, or two times, stand in front of each.
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
    gave_way: bool = False
    lead: bytes = b""
    before: bytes = b""
    is_trimmed: bool = False
    is_unsure: bool = False
    rank: int | None = None
    stripped: tuple[bool, bool] | None = None
    place: int = 0
    indent: bytes = b""
    rests_from: int = 0
    has_stump: bool = field(init=False)
    takes_bare: bool = field(init=False)

    def __post_init__(self) -> None:
        self.begin_with(self.head)
        if self.match is not None and not self.head.torch and not self.head.headed and not self.rule.indented:
            text = self.texts[0].lstrip(b" ")
            self.indent = self.texts[0][: -len(text)] if text and not text.startswith(b'File "') else b""  # Python indents frames itself

    def begin_with(self, head: Piece) -> None:
        """Takes this piece's prefixes for those of the record."""
        self.head = head
        is_bracket = b": [" in head.torch
        self.has_stump = bool(head.torch) and not is_bracket and not head.torch[1:5].isdigit()
        self.takes_bare = is_bracket or self.has_stump or b"]" not in head.torch

    def has_lone_front(self, piece: Piece, number: int, header: "re.Pattern[bytes] | None") -> bool:
        """True when this is its second line, which shows that whatever stands in front of it does so on its first line only.

        number: of the line in front of this one. header: what is known to do so in this log.
        """
        head, last = self.head, number + 1 if piece.same_entry else number
        if len(self.texts) > 1 or self.last_line != last or head.torch or piece.torch or piece.rank is not None:
            return False
        if not self.is_unsure and (head.channel, head.rank) == (piece.channel, piece.rank):
            return False
        is_known = header is not None and header.match(self.lead) is not None
        second = self.rule.second or (self.rule.continues if is_known else None)
        if second is None:
            return False
        return head.channel.startswith(piece.channel) and second.match(piece.text) is not None

    def begin_behind_front(self, piece: Piece) -> None:
        """Goes on with lines as this one, its second, without what stands in front of its first."""
        self.is_unsure, self.rank = False, self.head.rank
        self.begin_with(self.head._replace(channel=piece.channel, rank=None, tag=b""))

    def tear(self, piece: Piece) -> None:
        """Ends with this piece of it, if that breaks off where another line begins."""
        if piece.torn:
            self.ended = self.cut = self.unterminated = self.torn = True

    @property
    def hides_prefix(self) -> bool:
        """True when its torch prefix only came out by peeling, so that its lines cannot be found by their bytes.

        Of a head that its carrier had cut, the lead is what the carrier held, so that an escaped backslash shows there as one.
        """
        return self.head.torch not in self.lead or (self.head.carrier is not None and b"\\" in self.head.torch)

    def completes(self, prefix: bytes) -> bool:
        """True when this torch prefix is the record's own, of which its first line had only the end."""
        own = self.head.torch
        return (
            len(self.texts) == 1
            and len(prefix) > len(own) > 0
            and prefix.endswith(own)
            and GLOG.match(own) is None
            and (GLOG.match(prefix) is not None or b"] torch" in prefix)
        )

    def began_late(self, piece: Piece, number: int, event: str | None) -> bool:
        """True when copying began behind its prefix, or inside it: the next line shows the whole prefix, and goes on with the message.

        event: the kind that torch's artifact on that line speaks of, None without one.
        """
        own, rule = self.head.torch, self.rule
        is_first = len(self.texts) == 1 and self.last_line == number - 1 and self.head.rank in (None, piece.rank)
        if not is_first or b": [" in own or GLOG.match(piece.torch) is None or not piece.torch.endswith(own.strip()):
            return False
        if own == piece.torch:
            return piece.channel.endswith(self.head.channel) and (piece.channel, piece.rank) != (self.head.channel, self.head.rank)
        if self.head.channel:
            return False
        if rule.second is not None and rule.second.match(piece.text) is not None:
            return True
        is_own = self.match is None or event == rule.event
        return is_own and piece.text.strip() != b"" and rule.continues is not None and rule.continues.match(piece.text) is not None

    def may_be_trimmed(self, number: int, second: bytes | None = None) -> bool:
        """True when its head was this line, so that the next one, ``second``, can show that its prefixes are gone."""
        known, is_head = self.rule.second, self.last_line == number and len(self.texts) == 1 and not self.takes_bare
        return known is not None and is_head and (second is None or known.match(second) is not None)

    def takes(self, piece: Piece) -> bool:
        """True when a bare line goes on with it."""
        rule, text = self.rule, piece.text
        if len(self.texts) >= rule.max_lines:
            return False
        if self.rests_from:
            return has_cells(self.texts, text)
        if rule.indented:
            return (text[:2] == b"  " and text.strip() != b"") or self.takes_stripped(piece)
        if rule.leads is not None and rule.leads.search(self.last_words()) is not None:
            return True
        if rule.continues is None:
            return False
        text = self.dedented(text)
        return rule.continues.match(text) is not None or (self.is_unindented(text) and rule.continues.match(b"    " + text) is not None)

    def rests(self, number: int, piece: Piece) -> bool:
        """True for a table behind which this line, number ``number``, is one of another stream: rows of it may follow."""
        is_table = self.rule.indented and self.stripped is None and any(map(_DASHES.fullmatch, self.texts[1:4]))
        self.rests_from = self.rests_from or number
        return is_table and piece.text[:2] != b"  " and number - self.rests_from < REST_LINES

    def dedented(self, text: bytes) -> bytes:
        """The text of one of its lines without the blanks in front of all; its second line shows whether those are its first one's own."""
        if self.indent and len(self.texts) == 1 and text.strip():
            step = b"  " if self.texts[0].lstrip().startswith(b"Traceback ") else b""
            self.indent = self.indent if text.startswith(self.indent + step) else b""
        return text.removeprefix(self.indent)

    def takes_broken(self, text: bytes) -> bool:
        """True when a bare line goes on behind a prefix with nothing behind it: the blank there is where it was broken."""
        continues = self.rule.continues
        return text[:1] not in (b"", b" ", b"\t") and continues is not None and continues.match(b" " + text) is not None

    def takes_stripped(self, piece: Piece) -> bool:
        """True for a line of an indented record whose blanks were stripped, in front of which stands what does of the second one."""
        known = self.rule.second if len(self.texts) == 1 else self.rule.continues if self.stripped is not None else None
        front = (piece.headed, piece.outer_stamp is None)
        if known is None or known.match(piece.text) is None or self.stripped not in (None, front):
            return False
        self.stripped = front
        return True

    def last_words(self) -> bytes:
        """Its last line, or when that is empty the one in front of it with both line ends."""
        return self.texts[-1] if self.texts[-1].strip() or len(self.texts) == 1 else self.texts[-2] + b"\n\n"

    def is_unindented(self, text: bytes) -> bool:
        """True when ``text``, at the beginning of its line, is a frame, the code of one, or an explanation: copying lost the blanks."""
        return _INDENTED.match(text) is not None or (text[:1] > b" " and _FRAME_ENDS.match(self.texts[-1]) is not None)

    def decides_next(self, number: int) -> bool:
        """True when the line behind this one can change it, whatever stands in that line."""
        return self.takes_bare or self.hides_prefix or self.waits_at(number) or self.may_be_trimmed(number)

    def waits_at(self, number: int) -> bool:
        """True when its last line was this one, a prefix without a message: copying may have broken the line there."""
        return self.last_line == number and not self.takes_bare and not self.texts[-1].strip()

    def begins_like(self, stump: bytes) -> bool:
        """True when the stump of a line may be one of its own: it is how its first line, or its prefix there, begins."""
        return self.lead.startswith(stump) or self.lead.startswith(stump, self.lead.find(self.head.torch[:PREFIX_STUMP]))

    def sure_message(self) -> bytes:
        """The joined message without a last line that the end of the input cuts."""
        return b"\n".join(self.texts[:-1] if self.cut and self.unterminated else self.texts)

    def message(self) -> bytes:
        """The joined message."""
        return b"\n".join(self.texts)


def has_cells(table: Sequence[bytes], text: bytes) -> bool:
    """True for a line whose cells begin where the dashes of a table do."""
    dashes = next(filter(_DASHES.fullmatch, table[1:4]), b"")
    starts = [match.start() for match in re.finditer(rb"-+", dashes)]
    return bool(starts) and all(text[at - 1 : at] == b" " < text[at : at + 1] for at in starts) and text[:2] == b"  "


def sure_ones(records: list[Record]) -> list[Record]:
    """The records that are ones: no line that holds what one begins with, behind which nothing went on."""
    return [record for record in records if not record.is_unsure] if records else records


def is_of_another(head: Piece, piece: Piece) -> bool:
    """True when another process printed the piece. Without torch's prefix on either, the carriers name the processes."""
    if head.channel != piece.channel or head.rank != piece.rank:
        return True
    return head.pid != piece.pid and None not in (head.pid, piece.pid) and not head.torch and not piece.torch
