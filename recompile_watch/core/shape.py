"""What the first bytes of a source tell about the whole of it: dates, zone, and whether its lines were wrapped or indented."""

import re
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise

from recompile_watch.core.boxes import is_boxed, width_of
from recompile_watch.core.cells import Cells, Columns, columns_of
from recompile_watch.core.entries import Entries, Form, entries_of
from recompile_watch.core.fronts import back_of, front_of, without_back
from recompile_watch.core.grids import Grid, GridReader, grid_of
from recompile_watch.core.headers import own_header
from recompile_watch.core.late import pattern
from recompile_watch.core.prefix_grammar import SAYS, SHOWN_COLOURS, TORCH_SAYS, front_form
from recompile_watch.core.prefixes import peel
from recompile_watch.core.times import offset_between

HEAD_BYTES = 1 << 16
# What stands in front is looked at behind the first digits: a search for fixed bytes is 50 times as fast as one for a place.
_DATE = pattern(rb"(20(?<![\d.-]20)\d\d)-(\d\d)-(\d\d)[T ]\d\d:\d\d:\d\d")
# loguru's local time in front, the UTC time in the text or on the line beside it: the bot prints one after every quote. Colours and a
# carrier's front may stand before them, and as what an escape is in JSON.
_COLOURS = rb"(?:" + SHOWN_COLOURS.pattern + rb")*"
_CLOCK = rb"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d"
_ALONE = rb"20(?<![\d:.-]20)" + _CLOCK.removeprefix(b"20")
_LOCAL = rb"(" + _ALONE + rb")\.\d{1,6}" + _COLOURS + rb" \| " + _COLOURS + rb"[A-Z]{4,8}\b"
_UTC = rb"(" + _ALONE + rb") UTC \| "
_TO_NEXT = rb"[^\n]{0,8000}\n[^\n]{0,1000}?"
_CURRENT_TIME = pattern(_LOCAL + rb"[^\n]{1,300}?Current time: (" + _CLOCK + rb")[.\d]{0,7}\+00:00")
_UTC_BEFORE = pattern(_UTC + _TO_NEXT + _LOCAL)
_UTC_BEHIND = pattern(_LOCAL + _TO_NEXT + _UTC)
_TORCH = rb"(?:\[\w+\]:)*\s?[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ |\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d,\d+\] "
# A line of the container runtime, which cuts long ones itself, and a JSON log's, in which torch's prefix may stand far behind.
_CARRIED = rb"[^\n]{0,120}?\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP] |[^\n{\"]{0,60}\{\"[\w@]{1,40}\":"
_FRONT = pattern(rb"(?P<front>[^\n]{1,160}?)(?:" + _TORCH + rb")")
_BEGINS = pattern(_CARRIED + rb"|[>\s]*(?:" + _TORCH + rb")")
# How else a line begins that is no rest of another one: with the header of a program's own logging, or as the lines of a record
# without prefixes do.
_HEADED = pattern(rb"\[?20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)(?::[\w.]+:| ?: | +\S+\.py:\d+\] )|" + SAYS)
_BARE = pattern(rb"\S+:\d+: \w*Warning: |Traceback \(most recent call last\):")  # a line of its own without any header
_ALL_BEGINS = pattern(_BEGINS.pattern + b"|" + _HEADED.pattern)
MAX_FRONTS = 16
_PREFIX_ONLY = pattern(rb"[^\n]{0,160}?[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ [^\]]+\](?: \[[^\]]*\])*\s*")
# Lines of torch's that are whole: broken in the middle they are not, and put together in the right way they are again.
_WHOLE = pattern(
    rb"Recompiling function \S+ in \S+:\d+$|triggered by the following guard failure\(s\):$|Graph [Bb]reak in user code at \S+:\d+$"
    rb"|torch\._dynamo hit config\.\w+ \(\d+\)$|function: '[^']+' \(\S+:\d+\)$|File \"\S+\", line \d+, in \S+$"
    rb"|[Ss]kipping cudagraphs due to \S[^\n]* Found from : ?$"
)
# How a message of torch's ends that is a line of its own: nothing tells that it goes on with the program's line behind it.
_CLOSED = pattern(
    rb"[\"']\)$|\(\d+ instances\)$|___\w+\([^()\n]*\)$|  # [^\n]* in [\w<>]+\)$|\bactual (?:-?\w+|DispatchKeySet\([^()\n]*\))$"
    rb"|(?:[=!<>]=|[<>]|\bis(?: not)?) (?:-?[\d.]+|True|False|None|'[^']*'|\"[^\"]*\")$|GLOBAL_STATE changed: [\w ]+$"
    rb"|skipping cudagraphs due to (?:multiple devices|mutated inputs|cpu device|dynamic shapes|incompatible ops|complex memory overlap)$"
    rb"|\w\.$|\boverride_cudagraphs annotation$|compilation failed: \w+$"
    rb"|  # [^\n]*\.py:\d+ in [\w<>]+$"
)
# Words of torch's, and the bot's header, that stand together wherever they stand: what lies between two lines of them was broken there.
_TOGETHER = pattern(
    rb"Unable to hit fast path of CUDAGraphs because|because of pending, uninvoked backwards|outputs from a previous step still require backward"
    rb"|Consider running with torch\.no_grad\(\)|torch\.compiler\.cudagraph_mark_step_begin\(\) before each model invocation"
    rb"|dynamic shapes by recording a new graph for each distinct input size|We have observed \d+ distinct sizes"
    rb"|Recording too many CUDAGraphs may lead to extra overhead|Please consider the following options for better performance"
    rb"|tensor output of CUDAGraphs that has been overwritten by a subsequent run|clone the tensor outside(?: of)? torch\.compile\(\)"
    rb"|user-visible output that must remain live across generations|to clone all user-visible tensors that persist across generations"
    rb"|Detected recompile when torch\.compile stance is '\w+'|Hard failure due to fullgraph=True|torch\._dynamo hit config\.\w+ \(\d+\)"
    rb"|Graph break due to unsupported builtin \S+(?: This function is)?|This function is either a Python builtin"
    rb"|flex_attention called without torch\.compile\(\)(?: - this will use)?|torch\.compile (?:takes|took) [\d.]+ s in total"
    rb"|Graph break \(user stack suppressed due to duplicate graph break\) in user code at|torch\.compile will skip tracing the frame \w+"
    rb"|skipping cudagraph due to function \d+ exceeding max re-recording limit|Re-recording function=\d+, mode=\w+"
    rb"|(?:static input|cudagraph managed tensor) data pointer changed|last reason: \d+/\d+: \S|\bmismatch at index \d+\. expected \d+, actual \d"
    rb"|torch/[\w/]+\.py:\d+\] \[(?:__\w+|\d+/\d+)\]"
    rb"|which is too old to be supported by the triton GPU compiler|as dynamic but your code specialized it to be a constant"
    rb"|compiled with non-empty donated buffers|FX to (?:symbolically |torch\.jit\.)trace a dynamo-optimized function"
    rb"|not currently support double backward"
    rb"|Set TORCHDYNAMO_VERBOSE=1 for the (?:internal|full Dynamo) stack trace|You can suppress this exception and fall back to eager"
    rb"|\d\d UTC \| " + _CLOCK + rb" E[SD]T \| " + _CLOCK + rb" NZ[SD]T \| [\w./<>-]{1,120}:[\w<>.]{1,120}:\d{1,6} [A-Z]{4,8} \|"
)
MIN_WRAP, MAX_WRAP = 40, 240
_CARRIER = pattern(rb"[> \t]{1,80}|[\w.-]{1,60} +\| ")
_BLANKS = (b"\xc2\xa0", b"&nbsp;")
_MANY = 3  # lines that go on, where none of them has torch's prefix
_INDENT_LINES = 200  # by which it is told


@dataclass(frozen=True, slots=True)
class Shape:
    """first_date: the first full date. offset_s: seconds east of UTC of lines without zone, where the log proves it.
    wrap_width: the column at which a terminal or mail program broke the lines, else None. wraps_words: it broke at
    blanks, which are lost, and not in the middle of words. begins: how a line begins that is no rest of another one.
    indent: the blanks that somebody put in front of every line, as a page or a list wants them; they hide its prefix. Of lines that
    were wrapped it is also a mark of quoting, or the name of a service.
    front: what else stands in front of every line and hides what it carries. header: what does so in front of the first
    line of each record, in a format that nothing else tells. columns: of the table as which the log was exported.
    entries: how several lines were written for each of its own. grid: the columns in which rich laid it out.
    blank: what a page put in the place of the blanks, whose literals no line of the log has. back: what stands behind every line.
    """

    first_date: date | None = None
    offset_s: int | None = None
    wrap_width: int | None = None
    wraps_words: bool = False
    begins: "re.Pattern[bytes]" = _ALL_BEGINS
    indent: bytes = b""
    front: "re.Pattern[bytes] | None" = None
    header: "re.Pattern[bytes] | None" = None
    columns: Columns | None = None
    entries: Form | None = None
    grid: Grid | None = None
    blank: bytes = b""
    back: "re.Pattern[bytes] | None" = None

    @property
    def is_plain(self) -> bool:
        """True when each line stands in it as it was printed."""
        return self == Shape(self.first_date, self.offset_s, begins=self.begins)


def shape_of(head: bytes) -> Shape:
    """The shape of a source by its first ``HEAD_BYTES`` bytes."""
    for blank in _BLANKS:
        if blank in head and head.count(blank) > head.count(b" "):
            return replace(shape_of(head.replace(blank, b" ")), blank=blank)
    lines = [line.rstrip(b"\r") for line in head.split(b"\n")]
    times = _first_date(head), _offset(head)
    if (columns := columns_of(head)) is not None:
        return Shape(*times, columns=columns)
    if (entries := entries_of(head)) is not None:
        return Shape(*times, entries=entries)
    if (grid := grid_of(lines[:-1])) is not None:
        return Shape(*times, grid=grid)
    if (back := back_of(head)) is not None:
        return replace(shape_of(b"\n".join(without_back(back, line) for line in lines)), back=back)
    carrier = _carrier(lines)
    inside = _shape([line.removeprefix(carrier) for line in lines], *times) if carrier else None
    if inside is not None and inside.wrap_width is not None:
        return replace(inside, indent=carrier)
    return _shape(lines, *times)


def _shape(lines: list[bytes], first_date: date | None, offset: int | None) -> Shape:
    longest = max(map(width_of, lines), default=0)
    spaced = max((width_of(line) for line in lines if b" " in line.strip()), default=0)
    if not MIN_WRAP <= spaced <= MAX_WRAP:
        return Shape(first_date, offset, indent=_indent(lines), front=front_of(lines), header=own_header(lines))
    begins = _begins(lines)
    width, by_words = _wrapping(lines, longest, begins) if longest <= MAX_WRAP else (None, False)
    if spaced < longest and (width is None or by_words):  # a word that is wider than the lines stands alone on one
        width, by_words = _wrapping(lines, spaced, begins)
        width = width if by_words else None
    header = own_header(lines)
    if width is None or (header is not None and not any(_seams(lines, width, begins))):  # there a line without a header is no rest of another
        return Shape(first_date, offset, begins=begins, indent=_indent(lines), front=front_of(lines), header=header)
    return Shape(first_date, offset, width, by_words, begins)


def _carrier(lines: list[bytes]) -> bytes:
    """What was put in front of every line, as a quotation, a page's indentation or a service's name are; b"" where lines begin without."""
    written = [line for line in lines[1:-1] if line.strip(b" \t>")]
    first, last = min(written, default=b""), max(written, default=b"")
    match = _CARRIER.match(first) if len(written) >= _MANY else None
    while match is not None and not last.startswith(match[0]):
        match = _CARRIER.fullmatch(match[0][:-1])
    return match[0] if match is not None else b""


def _indent(lines: list[bytes]) -> bytes:
    """The blanks in front of every line (but for a first one that was cut), when more is told from lines without them."""
    written = [line for line in lines[1:-1] or lines if line.strip()][:_INDENT_LINES]
    blanks = min((line[: len(line) - len(line.lstrip())] for line in written), key=len, default=b"")
    if not blanks or not all(line.startswith(blanks) for line in written):
        return b""
    if b"\t" in blanks:  # tabs are nobody's own
        return blanks
    return blanks if _message_bytes(written) > _message_bytes([line[len(blanks) :] for line in written]) else b""


def _message_bytes(lines: list[bytes]) -> int:
    """How much of them is left behind their prefixes."""
    return sum(len(piece.text.lstrip()) for line in lines for piece in peel(line))


def _begins(lines: list[bytes]) -> "re.Pattern[bytes]":
    """How lines begin: with torch's prefix, or with what stands in front of one in another line, with whatever numbers."""
    found = (front for line, after in pairwise(lines) if (front := _front(line, after)))
    fronts = dict.fromkeys(map(front_form, found))
    forms = [form for form, _ in zip(fronts, range(MAX_FRONTS), strict=False)]
    return re.compile(b"|".join((*forms, _BEGINS.pattern))) if forms else _ALL_BEGINS


def _first_date(head: bytes) -> date | None:
    for match in _DATE.finditer(head):
        try:
            return date(int(match[1]), int(match[2]), int(match[3]))
        except ValueError:
            continue
    return None


def _offset(head: bytes) -> int | None:
    """Seconds east of UTC of the local times, as most pairs of times say that show one moment; None where there is none."""
    beside = ((local, utc) for utc, local in _UTC_BEFORE.findall(head))
    pairs = _CURRENT_TIME.findall(head) or [*beside, *_UTC_BEHIND.findall(head)]
    offsets = [offset for local, utc in pairs if (offset := offset_between(local.decode(), utc.decode())) is not None]
    return max(offsets, key=offsets.count, default=None)


def _front(line: bytes, after: bytes) -> bytes:
    """What stands in front of torch's prefix; that may have been broken itself, so that its rest is on the line after."""
    if _BEGINS.match(line) is not None:
        return b""
    whole = (line,) if _BEGINS.match(after) is not None else (line, line + b" " + after, line + after)
    match = next((match for text in whole if (match := _FRONT.match(text)) is not None and match.end("front") < len(line)), None)
    front: bytes = b"" if match is None else match["front"]
    is_in_object = front.endswith(b"\\n") or (b'": "' in front and b"{" not in front)  # the rest of a JSON log's line
    return front if front.strip(b" >\t") and not is_in_object else b""


def _wrapping(lines: list[bytes], longest: int, begins: "re.Pattern[bytes]") -> tuple[int | None, bool]:
    """The width at which lines were wrapped, and whether at blanks, judged by the lines that have torch's prefix.

    Cut in the middle of words, a log has no line longer than the width, and each line of just that width goes on with
    a bare one. Cut at blanks, the first word of a bare line would not have fitted on the prefixed line before it.
    A line of torch's that is whole only when put together again tells it for certain.
    """
    hard, words, either = _seams(lines, longest, begins)
    if hard != words or either > 1:
        return longest, words > hard
    bare_next = [
        bool(after.strip() or (after and width_of(line) == longest))  # the rest of a padded line is blank
        and not _is_another(begins, line, after)
        and _CLOSED.search(line) is None
        for line, after in pairwise(lines)
    ]
    broken = [i for i, bare in enumerate(bare_next) if bare and begins.match(lines[i]) and not lines[i].endswith(b"}")]
    full = [i for i in range(len(lines) - 1) if width_of(lines[i]) == longest and (bare_next[i] or not lines[i].endswith(b" "))]  # torch pads guards
    going_on = [i for i in full if bare_next[i]]
    sure = [i for i in broken if begins is not _ALL_BEGINS or _BEGINS.match(lines[i]) is not None]
    if not sure and len({lines[i] for i in going_on}) < _MANY and len(broken) < 2 * _MANY:
        return None, False  # a program's own header, and a text of several lines behind it
    loose = [i for i in sure if width_of(lines[i]) != longest]
    unforced = [i for i in broken if not _could_break(lines[i], lines[i + 1], longest)]
    # Cut anywhere, some cut falls beside a blank; a program that breaks at blanks swallows them.
    blank_at_cut = any(lines[i].endswith(b" ") or lines[i + 1].startswith(b" ") for i in going_on)
    # Behind a carrier every whole line begins with it: a rest that is not full and goes on was broken at a blank.
    chained = begins is not _ALL_BEGINS and any(a and b and width_of(lines[i]) < longest for i, (a, b) in enumerate(pairwise(bare_next), 1))
    keeping = [i for i in broken if lines[i].endswith(b" ")]  # the blank at which it was broken, as fold -s does
    if len(keeping) >= 2 and len(keeping) * 10 >= len(broken) * 9 and len(unforced) * 10 <= len(broken):
        return longest, True
    if len(broken) >= 2 and not blank_at_cut and all(_is_prefix_only(lines[i]) for i in broken):
        return longest, True
    if len(broken) >= 2 and (loose or chained) and len(unforced) * 10 <= len(broken) and not (blank_at_cut and len(loose) < len(going_on)):
        return longest, True
    if broken and len(full) >= 2 - (longest % 10 == 0) and len(going_on) * 2 > len(full) and len(loose) * 4 <= len(going_on):
        return longest, False
    return None, False


def _seams(lines: list[bytes], longest: int, begins: "re.Pattern[bytes]") -> tuple[int, int, int]:
    """How many lines with words of torch's were broken anywhere, at a blank, or in a way that tells no difference."""
    hard = words = either = 0
    for line, after in pairwise(lines):
        if not after or _is_another(begins, line, after) or not _could_break(line, after, longest):
            continue
        is_torch_s = begins.match(line) is not None and _WHOLE.search(line) is None
        is_hard = width_of(line) == longest and _is_whole(line, after, is_torch_s)
        is_words = not after.startswith(b" ") and _is_whole(line.rstrip(b" "), b" " + after, is_torch_s)
        hard, words, either = hard + (is_hard and not is_words), words + (is_words and not is_hard), either + (is_hard and is_words)
    return hard, words, either


def _is_whole(line: bytes, rest: bytes, is_torch_s: bool) -> bool:
    """True when what began on a line is whole with this rest. is_torch_s: the line is one of torch's that is not whole yet."""
    whole = _WHOLE.search(line + rest) if is_torch_s else None
    if whole is not None and whole.start() < len(line):
        return True
    return any(match.start() < len(line) < match.end() for match in _TOGETHER.finditer(line + rest))


def _could_break(line: bytes, after: bytes, width: int) -> bool:
    """True when a program that breaks at blanks can have broken here: what follows would not have fitted.

    torch pads guards and indents messages; the blanks at the break are lost, so their width is unknown. ``fold -s`` keeps
    one at the end of the line, and finds no room for a word without the blank behind it.
    """
    word = after.split(b" ", 1)[0]
    keeps_blank = line.endswith(b" ")
    if width_of(line) + (len(word) < len(after) if keeps_blank else 1) + width_of(word) > width:
        return True
    return after.startswith((b"# ", b"^")) or _is_prefix_only(line)


def _is_another(begins: "re.Pattern[bytes]", line: bytes, after: bytes) -> bool:
    """True when the line behind one begins as none does that is its rest; behind a prefix alone torch's own words are that."""
    if is_boxed(after) or is_boxed(line):
        return True
    if _is_prefix_only(line):
        return begins.match(after) is not None and TORCH_SAYS.match(after) is None
    return begins.match(after) is not None or _BARE.match(after) is not None


def _is_prefix_only(line: bytes) -> bool:
    return _PREFIX_ONLY.fullmatch(line) is not None


_ENDED = pattern(rb"\('Recompiling function [^\n]*[\"']\)$")  # torch 2.1's, a tuple
_ENDS_IN_WORD = pattern(rb"\w-$")  # programs that break at blanks break behind a hyphen as well


class Unwrapper:
    """Puts wrapped lines together again: takes physical lines, returns logical ones."""

    def __init__(self, shape: Shape) -> None:
        self._width = shape.wrap_width or 0
        self._words, self._begins = shape.wraps_words, shape.begins
        self._held: bytes | None = None
        self._previous = b""
        self._place = (0, 0)

    def line(self, number: int, offset: int, raw: bytes) -> list[tuple[int, int, bytes]]:
        """The logical lines that are complete now: (number and offset of their first physical line, text)."""
        stripped = raw.rstrip(b"\r")
        if self._held is not None and self._goes_on(stripped):
            glue = b" " if self._words and not self._held.endswith(b" ") and not _ENDS_IN_WORD.search(self._held) else b""
            self._held += glue + stripped
            self._previous = stripped
            return []
        done = self.end()
        self._held, self._previous, self._place = stripped, stripped, (number, offset)
        return done

    def end(self) -> list[tuple[int, int, bytes]]:
        """The logical line that is still held."""
        if self._held is None:
            return []
        done = [(*self._place, self._held)]
        self._held = None
        return done

    def _goes_on(self, line: bytes) -> bool:
        if not line or _is_another(self._begins, self._previous, line) or _ENDED.search(self._held or b"") is not None:
            return False
        if not self._words:
            return width_of(self._previous) == self._width
        return _could_break(self._previous, line, self._width)


Unwraps = Unwrapper | Cells | Entries | GridReader


def unwrapper_of(shape: Shape) -> Unwraps | None:
    """What puts the lines of such a log together again; None where each stands in it as it was printed."""
    if shape.columns is not None:
        return Cells(shape.columns)
    if shape.entries is not None:
        return Entries(shape.entries)
    if shape.grid is not None:
        return GridReader(shape.grid)
    return Unwrapper(shape) if shape.wrap_width is not None else None
