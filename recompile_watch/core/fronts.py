"""Fronts: what somebody put in front of every line of a log, whatever it is, or behind it.

``layers`` knows the usual carriers. A front that it does not know hides the bot's headers and all lines that have none,
and one that it takes for an application's header loses their indents; it is told by standing in front of every line, with
whatever numbers, and of something that nothing else looks like.
"""

import re

from recompile_watch.core.carriers import iso_stamp
from recompile_watch.core.late import pattern
from recompile_watch.core.prefix_grammar import ANSI, ISO, MONTH_NAMES, TAG, ZONE, Piece
from recompile_watch.core.prefixes import MAX_FRONT, peel

_TIME = pattern(rb"(?<![\w.:-])" + ISO + ZONE)
MAX_BACK = 400
MIN_LINES, MAX_LINES = 2, 200  # by which it is told
_NUMBER, _MONTH, _BESIDE = b"\x00", b"\x01", b"\x02"
# grep's signs behind the file and the line's number: ":" where it found something, "-" beside.
_FILE = pattern(rb"^([\w./~-]{1,120}\.\w{1,8})[:-]")
_LINE = pattern(rb"^((?:[^\x02]{1,130}\x02)?\d{1,8})[:-](?!\d\d-\d\d[T ])")
_VARIES = pattern(rb"(?P<number>^ +\d+|\d+)|\b(?:" + b"|".join(MONTH_NAMES) + rb")\b")
_IN_NAME = pattern(rb"(?<=[A-Za-z][A-Za-z])(\\?[-_.]?)\x00")  # "bot-0", "worker2": a number that names the stream
_ENDS = pattern(rb"(?s:.*)[^\w\x00\x01]")  # behind a sign or a blank, not inside of a word or a number
_OPENS = pattern(rb"[{`]|\*\*|\bb'|std(?:out|err) ")  # what has its other half behind the message, or is one carrier's grammar as a whole
_CLOSED = pattern(rb"\\?\{[^{}\"]*\}")  # Airflow names its own place so
_ANCHOR = pattern(
    rb"\[(?:rank|default)\d+\]:|[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ |\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d,\d+\] (?:\[[\d/_]+\] )?torch"
    rb"|20\d\d-\d\d-\d\d \d\d:\d\d:\d\d (?:UTC|NZ[SD]T) \| |20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \| [A-Z]+ +\| \w"
    rb"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):torch| {4}triggered by the following guard | {3}function: '"
    rb"|Traceback \(most recent call last\):| {2}File \"[^\"\n]{1,300}\", line \d+, in "
)
_PAIRED = pattern(rb"\{[^{}]*\}")
_BLANKS = pattern(rb"(?:\\? )+")
_OTHER_GLOG = pattern(rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ (?!torch)[\w./-]+\.\w{1,4}:\d+\] ")  # absl, and servers in C++
# Lines whose ends are known, and what somebody put behind them.
_WHOLE = pattern(
    rb"(?:Recompiling function \S{1,200} in [^\n:]{1,400}(?::\\[^\n:]{1,400})?:\d{1,7}|triggered by the following guard failure\(s\):"
    rb"|torch\._dynamo hit config\.\w{1,60} \(\d{1,9}\)|   function: '[^'\n]{1,200}' \([^\n)]{1,600}:\d{1,7}\)"
    rb"|Graph break in user code at [^\n:]{1,400}:\d{1,7}|  File \"[^\"\n]{1,400}\", line \d{1,7}, in [\w<>]{1,200})(?P<back>[^\n]{0,300})$"
)
_GLOG = pattern(rb"[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} ")
_IN_WHOLE = (
    b"Recompiling function ",
    b"guard failure(s):",
    b"torch._dynamo hit config.",
    b"   function: '",
    b"Graph break in user code at ",
    b", in ",
)
_CLOSES = pattern(rb"[\\*`}>]|\[\x00?m")  # what has its other half in front of the message, and is taken off with it


def back_of(head: bytes) -> "re.Pattern[bytes] | None":
    """How every line of torch's ends, behind its message; None where it ends with that."""
    if not any(map(head.__contains__, _IN_WHOLE)):
        return None
    lines = [ANSI.sub(b"", line).rstrip(b"\r") for line in head.split(b"\n")[1:-1]]
    back = b""
    for number, match in enumerate(filter(None, map(_WHOLE.search, lines))):
        end = _VARIES.sub(_NUMBER, match["back"])
        back = _shared([back[::-1], end[::-1]])[::-1] if number else end
        if not back.strip():
            return None
    is_closing = back.rstrip().endswith(b"|") or back.count(b'"') % 2 or back.count(b"'") % 2 or _CLOSES.search(_PAIRED.sub(b"", back))
    if is_closing or not (back.strip(b" \t\x00") or back.startswith(b"\t" + _NUMBER)):
        return None
    form = re.compile(_BLANKS.sub(rb" +", re.escape(back.strip(b" "))).replace(_NUMBER, rb"\d+") + rb"\s*$")
    written = [line for line in lines if line.strip()]
    known = [line for line in written if _GLOG.search(line) is not None] or written[:MAX_LINES]
    is_back = len(known) >= MIN_LINES and all(form.search(line, max(len(line) - MAX_BACK, 0)) for line in known)
    return form if is_back else None


def without_back(back: "re.Pattern[bytes]", line: bytes) -> bytes:
    """A line without what stands behind it, and without its colours."""
    line = ANSI.sub(b"", line)
    match = back.search(line, max(len(line) - MAX_BACK, 0))
    return line if match is None else line[: match.start()].rstrip(b" ")


def front_of(lines: list[bytes]) -> "re.Pattern[bytes] | None":
    """How every line begins, but for a first one that was cut, in front of what it carries; None where ``peel`` does as well without."""
    lines = [ANSI.sub(b"", line) for line in lines[: MAX_LINES + 1]]
    written = [line for line in lines[1:-1] if line.strip(b" -#>|")]
    befores = [before for line in lines[1:] if (before := _before_anchor(line)) is not None] or [_before_anchor(lines[0]) or b""]
    before = min(filter(None, befores), key=len, default=b"")
    if not before.strip() or b"" in befores or len(written) < MIN_LINES:
        return None
    whole = _form(before)
    if (
        _ENDS.fullmatch(whole) is None
        or _shared([*map(_form, written), whole]) != whole
        or _OPENS.search(_CLOSED.sub(b"", whole))
        or whole.count(b'"') % 2
    ):
        return None
    escaped = re.escape(whole)
    named = _IN_NAME.sub(rb"\1(\\d+)", escaped)
    names = {match.groups() for line in written if (match := _compiled(named).match(line)) is not None}
    front = _compiled(named if len(names) * 2 <= len(written) else escaped)  # each line counts up, so that it tells no stream
    return front if any(_is_told_better(line, front) for line in written) else None


def _compiled(form: bytes) -> "re.Pattern[bytes]":
    return re.compile(form.replace(_NUMBER, rb" *\d+").replace(_MONTH, rb"[A-Z][a-z][a-z]").replace(_BESIDE, rb"[:-]"))


def peel_behind(front: "re.Pattern[bytes]", line: bytes) -> list[Piece]:
    """The pieces of a line behind its front, each with what is known of that."""
    line = ANSI.sub(b"", line) if b"\x1b" in line else line
    match = front.match(line)
    if match is None:
        return peel(line)
    carrier = peel(match[0])[-1]
    if (tag := TAG.match(carrier.text)) is not None and (launched := inside(carrier, tag[0])[-1]).rank is not None:
        carrier = launched._replace(tag=b"")  # what starts the ranks put a front of its own behind that of the host
    if carrier.stamp is None and (time := _TIME.search(match[0])) is not None:
        carrier = carrier._replace(stamp=iso_stamp(time[0]))
    return peeled(carrier._replace(channel=joined(carrier.channel, b"-".join(match.groups()))), line[match.end() :])


def peeled(carrier: Piece, text: bytes) -> list[Piece]:
    """The pieces of a text that this piece carries."""
    return [
        inner._replace(
            channel=joined(carrier.channel, inner.channel),
            stamp=inner.stamp or carrier.stamp, outer_stamp=carrier.outer_stamp or carrier.stamp,
            rank=carrier.rank if inner.rank is None else inner.rank, pid=carrier.pid if inner.pid is None else inner.pid,
        )
        for inner in peel(text)
    ]  # fmt: skip


def joined(outer: bytes, inner: bytes) -> bytes:
    """The channel of what an inner carrier carries inside of an outer one."""
    return b"\x00".join(part for part in (outer, inner) if part)


def again(piece: Piece) -> list[Piece]:
    """Peels a text that was only now put together from its parts."""
    return [inner._replace(carrier=piece.carrier) for inner in peeled(piece, piece.carried)]


def inside(piece: Piece, tag: bytes) -> list[Piece]:
    """The pieces behind a tag."""
    carrier = piece._replace(channel=joined(piece.channel, tag))
    return [inner._replace(tag=tag) for inner in peeled(carrier, piece.text[len(tag) :])]


def with_tag(pieces: list[Piece]) -> list[Piece]:
    """The pieces of a line; where the first one is a tag as a whole, it is that of all others."""
    lead, *others = pieces
    if not others or lead.headed or TAG.fullmatch(lead.text) is None:
        return pieces
    channel = joined(lead.channel, lead.text)
    return [piece._replace(tag=lead.text, channel=joined(channel, piece.channel)) for piece in others]


def _is_told_better(line: bytes, front: "re.Pattern[bytes]") -> bool:
    return [piece.text for piece in peel(line)] != [piece.text for piece in peel_behind(front, line)]


def _before_anchor(line: bytes) -> bytes | None:
    """What stands in front of an anchor, None without one; a prefix of glog that is not torch's may do so."""
    other = _OTHER_GLOG.match(line)
    anchor = _ANCHOR.search(line, 0 if other is None else other.end(), MAX_FRONT)
    return None if anchor is None else line[: anchor.start()]


def _shared(forms: list[bytes]) -> bytes:
    """How all of them begin."""
    first, last = min(forms), max(forms)
    return first[: next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), min(len(first), len(last)))]


def _form(line: bytes) -> bytes:
    """How a line begins, whatever its numbers, months and grep's signs are."""
    line = _LINE.sub(rb"\1" + _BESIDE, _FILE.sub(rb"\1" + _BESIDE, line[: 2 * MAX_FRONT]))
    return _VARIES.sub(lambda match: _NUMBER if match["number"] else _MONTH, line)
