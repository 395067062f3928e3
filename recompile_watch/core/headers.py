"""Headers of formats that people choose: ``TORCH_LOGS_FORMAT`` and the application's own logging take any.

``layers`` takes off what it knows, on every line. What is left is looked at only where a rule's literal stands in a line
and the rule does not find its message at the beginning: then a run of times, levels, loggers and places may stand there.
"""

import re
from itertools import pairwise

from recompile_watch.core.carriers import digits, zone
from recompile_watch.core.late import pattern
from recompile_watch.core.prefix_grammar import ISO, LEVEL, ZONE, Piece, Stamp
from recompile_watch.core.prefixes import peel

MAX_ITEMS = 8
MAX_FRONT = 300  # bytes of what may stand in front of a record's first line
MAX_FORMS = 8  # of a log's own

_LEVEL = rb"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)(?![\w.])"
# torch's loggers; "torch._dynamo hit config" is a message, and exceptions and settings are what messages tell of.
_LOGGER = rb"torch(?:dynamo|inductor|\.\w+)\.(?!exc\b|config\b)\w+(?:\.\w+)*"
_PLACE = rb"[\w./\\<>-]{1,200}\.py:\d{1,6}(?::\w+)?|[\w.]{1,80}\.[\w<>]{1,80}:\d{1,6}"
_EPOCH = rb"\d{10}\.\d{3,6}"
# One of these at least makes a header.
_SURE = rb"(?:(?P<level>" + _LEVEL + rb")|(?P<logger>" + _LOGGER + rb")|(?P<place>(?:[\w.]{1,80}:)?(?:" + _PLACE + rb")))"
_STAMP = rb"(?:(?P<stamp>" + ISO + rb")(?P<zone>" + ZONE + rb")?|(?P<epoch>" + _EPOCH + rb")(?=\D))"
_TIME = re.compile(rb"(?<![\w.:-])" + _STAMP)
_WORD = rb"(?:in )?[A-Za-z_][\w.-]{0,80}"
_NUMBER = rb"(?:pid[=: ] ?)?\d{1,15}(?:/[A-Za-z][\w-]{0,40})?"  # a process, with its thread
_ITEM = re.compile(
    rb"(?P<open>[\[(<])?(?:" + _SURE + rb"|" + _STAMP + rb"|(?P<word>" + _WORD + rb")|(?P<number>" + _NUMBER + rb"))"
    rb"(?(open)(?:[|:][\w.:<>/-]{1,120})?[\])>])(?P<gap> *\| ?| - | >> |: (?! )|:(?=\S)|\] | +|(?=[\[(]))"
)

# The first line of a record, and how the line behind it begins, whatever stands in front of the first one.
_FIRST = pattern(rb"Recompiling function \S+ in \S|torch\._dynamo hit config\.\w+ \(\d|Graph break (?:\([^()\n]{1,80}\) )?in user code at ")
_SECOND = pattern(rb" {4}triggered by the following guard failure|   function: '|Graph Break Reason: ")
_PART = pattern(rb"(?P<blank> +)|(?P<level>" + LEVEL + rb")\b|(?P<number>\d[\d.-]*)(?![\w/\\])|(?P<name>[\w./\\@$-]*\w[\w./\\@$-]*)")
_PARTS = {"blank": rb" +", "level": rb"(?:" + LEVEL + rb")", "number": rb"\d[\d.-]*", "name": rb"[\w./\\@$-]+"}


def own_header(lines: list[bytes]) -> "re.Pattern[bytes] | None":
    """How the records of a log begin in a format of its own, which only the lines behind their first ones tell."""
    firsts = ((line, first) for line, after in pairwise(lines) if _SECOND.match(after) and (first := _FIRST.search(line, 0, 2 * MAX_FRONT)))
    forms = dict.fromkeys(form for line, first in firsts if 0 < first.start() <= MAX_FRONT and (form := _own_form(line, first.start())))
    return re.compile(b"|".join(list(forms)[:MAX_FORMS])) if forms else None


def _own_form(line: bytes, end: int) -> bytes:
    """A pattern for such a beginning, with other numbers, levels and names; nothing for one that is known without, or that prose has as well."""
    piece = peel(line)[-1]
    bare = behind_header(piece)
    is_known = piece.torch or _FIRST.match(piece.text) or (bare is not None and _FIRST.match(bare.text))
    parts = [(match.lastgroup, match[0]) for match in re.finditer(_PART.pattern + rb"|(?P<sign>.)", line[:end], re.DOTALL)]
    is_sure = any(kind in ("level", "number", "sign") for kind, _ in parts)
    if not is_sure or (is_known and not (piece.channel and not piece.torch)):
        return b""
    return b"".join(_PARTS[kind] if kind in _PARTS else re.escape(text) for kind, text in parts)


def behind_header(piece: Piece) -> Piece | None:
    """The piece without such a header; None when none stands in front of its message."""
    text = piece.text
    at = begin = len(text) - len(text.lstrip(b" "))
    stamp: Stamp | None = None
    is_sure = piece.headed
    for _ in range(MAX_ITEMS):
        item = _ITEM.match(text, at)
        if item is None or not _is_part(item, is_sure=is_sure):
            break
        is_sure = is_sure or item["level"] is not None or item["logger"] is not None or item["place"] is not None
        stamp = stamp or _stamp(item)
        at = item.end()
    if not is_sure or at == begin or not text[at:].strip():
        return None
    return piece._replace(text=text[at:], stamp=piece.stamp or stamp, headed=True)


def behind_front(piece: Piece, at: int) -> Piece:
    """The piece behind whatever stands in front of a place in its text, with a time that is printed there."""
    return piece._replace(text=piece.text[at:], stamp=piece.stamp or time_in(piece.text[:at]), headed=True)


def time_in(front: bytes) -> Stamp | None:
    """The first time in what stands in front of a message."""
    item = _TIME.search(front)
    return None if item is None else _stamp(item)


def _is_part(item: "re.Match[bytes]", *, is_sure: bool) -> bool:
    """True when this item belongs to a header and not to the message.

    A word does behind a sure item only, between signs that prose has not; in a chat <name> stands in front.
    """
    return item["word"] is None or (is_sure and (item["open"] in (b"[", b"(") or item["gap"].strip() != b""))


def _stamp(item: "re.Match[bytes]") -> Stamp | None:
    if item["stamp"] is not None:
        text, printed = digits(item["stamp"]), item["zone"]
        return Stamp("zoned", text + zone(printed)) if printed else Stamp("local", text)
    if item["epoch"] is not None:
        whole, _, part = item["epoch"].decode().partition(".")
        return Stamp("epoch", whole + part.ljust(6, "0"))
    return None
