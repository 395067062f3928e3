"""Headers of formats that people choose: ``TORCH_LOGS_FORMAT`` and the application's own logging take any.

``layers`` takes off what it knows, on every line. What is left is looked at only where a rule's literal stands in a line
and the rule does not find its message at the beginning: then a run of times, levels, loggers and places may stand there.
"""

import re

from recompile_watch.core.carriers import digits, zone
from recompile_watch.core.prefix_grammar import ISO, ZONE, Piece, Stamp

MAX_ITEMS = 8

_LEVEL = rb"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)(?![\w.])"
# torch's loggers; "torch._dynamo hit config" is a message, and exceptions and settings are what messages tell of.
_LOGGER = rb"torch(?:dynamo|inductor|\.\w+)\.(?!exc\b|config\b)\w+(?:\.\w+)*"
_PLACE = rb"[\w./\\<>-]{1,200}\.py:\d{1,6}(?::\w+)?|[\w.]{1,80}\.[\w<>]{1,80}:\d{1,6}"
_EPOCH = rb"\d{10}\.\d{3,6}"
# One of these at least makes a header.
_SURE = rb"(?:(?P<level>" + _LEVEL + rb")|(?P<logger>" + _LOGGER + rb")|(?P<place>(?:[\w.]{1,80}:)?(?:" + _PLACE + rb")))"
_STAMP = rb"(?:(?P<stamp>" + ISO + rb")(?P<zone>" + ZONE + rb")?|(?P<epoch>" + _EPOCH + rb")(?=\D))"
_WORD = rb"(?:in )?[A-Za-z_][\w.-]{0,80}"
_NUMBER = rb"(?:pid[=: ] ?)?\d{1,15}(?:/[A-Za-z][\w-]{0,40})?"  # a process, with its thread
_ITEM = re.compile(
    rb"(?P<open>[\[(<])?(?:" + _SURE + rb"|" + _STAMP + rb"|(?P<word>" + _WORD + rb")|(?P<number>" + _NUMBER + rb"))"
    rb"(?(open)(?:[|:][\w.:<>/-]{1,120})?[\])>])(?P<gap> *\| ?| - | >> |: (?! )|:(?=\S)|\] | +|(?=[\[(]))"
)


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
