"""The content of a message, from which every form of it is made: clean text without any markup.

Written for the person whom it wakes: first what, where, since when and how often; then the log, the cost, what to do.
All text in a letter has passed ``safe``: one line each, no control characters, secrets masked.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from recompile_watch.core.advice import Advice
from recompile_watch.core.notices import MAX_ALERTS, Alert, Excerpt, Notice, NoticeSort
from recompile_watch.core.units import duration_text
from recompile_watch.report.safe import masked, plain, safe
from recompile_watch.report.times import count_text

TITLE_CHARS = 150  # a Slack header takes as much, and a mail client shows less
_WHAT_CHARS = 300
_LINE_CHARS = 300
_APPLY_CHARS = 2000
_APPLY_LINES = 40
_MAX_LOG_LINES = 25
_MAX_EXPLAINS = 8
_MAX_SYMBOLS = 12
_LISTS = frozenset({NoticeSort.DIGEST, NoticeSort.BACKLOG})
_RESOLVED = "resolved"
CUT = "… (cut; the whole text: {command})"


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log as shown. number: 1-based, None where it is not known. is_matched: the event stands in it."""

    number: int | None
    text: str
    is_matched: bool


@dataclass(frozen=True, slots=True)
class Log:
    """Lines of one log. place: path, line and byte offset of the newest event."""

    place: str
    lines: tuple[LogLine, ...]


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to change. head: such as ``Do this``. apply: the text to paste, several lines. facts: where, expect, caution."""

    head: str
    title: str
    apply: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What a letter says of one incident. line: all of it in one line. facts: label and text, in the order to be read."""

    alert: Alert
    line: str
    what: str
    when: str
    log: Log | None
    facts: tuple[tuple[str, str], ...]
    remedy: Remedy | None
    more: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Letter:
    """A whole message. title, lead: one line each. notes: what to know before reading on. is_list: one line a part will do."""

    notice: Notice
    title: str
    lead: str
    notes: tuple[str, ...]
    parts: tuple[Part, ...]
    others: tuple[str, ...]
    is_list: bool
    more: tuple[str, ...]
    sent_at: str


def letter_of(notice: Notice, *, now: float, state_dir: str | None) -> Letter:
    """The content of a notice as it reads at ``now`` (epoch seconds). state_dir: where it is not the usual one."""
    option = f" --state-dir {shlex.quote(plain(state_dir))}" if state_dir else ""
    is_list = notice.sort in _LISTS
    parts = tuple(_part(alert, notice.sort, now, option) for alert in notice.alerts[:MAX_ALERTS])
    rest = notice.alerts[MAX_ALERTS:]
    left_out = notice.left_out
    others = [_line(alert, now) for alert in rest] if is_list else []
    if rest and not is_list:
        left_out += len(rest)
    if left_out:
        others.append(f"and {count_text(left_out, 'more incident')}, not shown here")
    needs_list = is_list or left_out or len(parts) > 1
    return Letter(
        notice=notice, title=_cut(_title(notice), TITLE_CHARS), lead=_lead(notice, parts, now), notes=tuple(_notes(notice)), parts=parts,
        others=tuple(others), is_list=is_list, more=(f"recompile-watch incidents list{option}",) if needs_list else (), sent_at=time_text(now),
    )  # fmt: skip


def time_text(moment: float) -> str:
    """``2025-10-30 09:08:09 UTC``; ``an unknown time`` for what no calendar holds."""
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "an unknown time"


def iso_text(moment: float) -> str | None:
    """``2025-10-30T09:08:09+00:00``; None for what no calendar holds."""
    try:
        return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None


def ago_text(moment: float, now: float) -> str:
    """``4 min ago``; empty for what lies ahead or more than ten years back, where a clock is wrong."""
    passed_s = now - moment
    if not 0 <= passed_s < 10 * 366 * 86_400:
        return ""
    return "just now" if passed_s < 1 else f"{duration_text(passed_s)} ago"


def _title(notice: Notice) -> str:
    """One line that names what happened; the host where it is not said otherwise."""
    host = safe(notice.host, 60)
    on = f" ({host})" if host else ""
    if notice.sort is NoticeSort.TEST:
        return f"Test message from recompile-watch{f' on {host}' if host else ''}"
    if notice.sort in _LISTS or not notice.alerts:
        head = "Before the watch began" if notice.sort is NoticeSort.BACKLOG else "Digest"
        return f"{head}: {_tally(notice)}{on}"
    first = notice.alerts[0]
    total = len(notice.alerts) + notice.left_out
    more = f", and {total - 1} more" if total > 1 else ""
    heads = {
        NoticeSort.RESOLVED: "Resolved: ", NoticeSort.REPEATED: f"Still {notice.severity}: ", NoticeSort.WORSE: f"Now {notice.severity}: ",
        NoticeSort.ESCALATED: f"Nobody has reacted, {notice.severity}: ", NoticeSort.FLAPPING: "Comes and goes: ", NoticeSort.MEASURED: "Measured: ",
    }  # fmt: skip
    head = heads.get(notice.sort, f"{notice.severity.capitalize()}: ")
    room = TITLE_CHARS - len(head) - len(more) - len(on)
    return safe(f"{head}{_cut(safe(first.what, _WHAT_CHARS).rstrip('.'), max(40, room))}{more}{on}", _WHAT_CHARS)


def _tally(notice: Notice) -> str:
    resolved = sum(alert.state == _RESOLVED for alert in notice.alerts)
    open_ = len(notice.alerts) - resolved + notice.left_out
    parts = [f"{open_} open" if resolved or notice.sort is NoticeSort.DIGEST else count_text(open_, "problem")] if open_ else []
    parts += [f"{resolved} resolved"] if resolved else []
    return ", ".join(parts) or "nothing to tell"


def _lead(notice: Notice, parts: tuple[Part, ...], now: float) -> str:
    """The first line: what, where, since when and how often."""
    if notice.sort is NoticeSort.TEST:
        return f"This is a test: if you can read it, messages from recompile-watch on {safe(notice.host, 60) or 'this host'} reach you here."
    if notice.sort is NoticeSort.BACKLOG:
        return f"The logs already held {_tally(notice)} when the watch began on {safe(notice.host, 60)}; from now on you hear of each new one."
    if notice.sort is NoticeSort.DIGEST or not parts:
        return f"{_tally(notice).capitalize()} on {safe(notice.host, 60)}, {time_text(now)}."
    return parts[0].line


def _notes(notice: Notice) -> Iterable[str]:
    if notice.possible_duplicate:
        yield "Possible duplicate: you may have got this message before."
    if notice.note:
        yield safe(notice.note, 500)


def _line(alert: Alert, now: float) -> str:
    """One incident in one line."""
    state = "resolved" if alert.state == _RESOLVED else alert.severity
    facts = [f"{state}: {safe(alert.what, _WHAT_CHARS).rstrip('.')}", _where(alert), _often(alert, now)]
    return "; ".join(fact for fact in facts if fact)


def _where(alert: Alert) -> str:
    """Model and code place, ``toto, attention.py:105``, as far as they are known and not said by the title."""
    what = safe(alert.what, _WHAT_CHARS)
    file = "/".join((alert.file or "").replace("\\", "/").split("/")[-2:])
    place = f"{file}:{alert.line_no}" if file and alert.line_no is not None else file
    model = alert.model if alert.model and alert.model not in what else None
    return ", ".join(safe(word, 80) for word in (model, place) if word and word not in what)


def _often(alert: Alert, now: float) -> str:
    times = "once" if alert.count == 1 else f"{count_text(alert.count, 'time')}"
    ago = ago_text(alert.since, now)
    lasted = duration_text(alert.until - alert.since) if alert.until - alert.since >= 1 else ""
    if alert.state == _RESOLVED:
        return f"{times}{f' in {lasted}' if lasted else ''}, the last at {time_text(alert.until)}"
    if alert.count == 1:
        return f"once, at {time_text(alert.since)}{f' ({ago})' if ago else ''}"
    return f"{times} since {time_text(alert.since)}{f' ({ago})' if ago else ''}"


def _part(alert: Alert, sort: NoticeSort, now: float, option: str) -> Part:
    shown = f"recompile-watch incidents show {shlex.quote(plain(alert.incident))}{option}"
    advice = alert.advice[0] if alert.advice else None
    topic = advice.remedy if advice is not None else alert.kind
    explained = [] if topic.startswith("watch_") else [f"recompile-watch explain {shlex.quote(plain(topic))}"]
    return Part(
        alert=alert, line=_line(alert, now), what=safe(alert.what, _WHAT_CHARS), when=_often(alert, now),
        log=_log(alert), facts=tuple(_facts(alert)), remedy=_remedy(advice, alert, sort, shown) if advice else None, more=(shown, *explained),
    )  # fmt: skip


def _facts(alert: Alert) -> Iterable[tuple[str, str]]:
    """What stands below the log: cost, symbols, measurement, what it explains, why it is told."""
    if alert.cost:
        yield "What it costs", safe(alert.cost, 500)
    if alert.symbols:
        more = len(alert.symbols) - _MAX_SYMBOLS
        named = ", ".join(safe(symbol, 20) for symbol in alert.symbols[:_MAX_SYMBOLS])
        yield "Symbols", named + (f" and {more} more" if more > 0 else "")
    if alert.measured:
        yield "Measured", safe(alert.measured, 800)
    if alert.explains:
        more = len(alert.explains) - _MAX_EXPLAINS
        told = "; ".join(safe(title, 120).rstrip(".") for title in alert.explains[:_MAX_EXPLAINS])
        yield "It explains, and you are not told apart", told + (f"; and {more} more" if more > 0 else "")
    if alert.why:
        yield "Why you got this", safe(alert.why, 300)


def _log(alert: Alert) -> Log | None:
    """The lines around the newest event, else the places alone."""
    newest = alert.places[-1] if alert.places else None
    if alert.excerpt is not None:
        place = f"{safe(alert.excerpt.source, 200)}, line {newest.line}, byte {newest.offset}" if newest else safe(alert.excerpt.source, 200)
        return Log(place, tuple(_excerpt_lines(alert.excerpt)))
    if newest is None:
        return None
    lines = tuple(LogLine(place.line, safe(place.text, _LINE_CHARS), True) for place in alert.places[-3:] if place.source == newest.source)
    return Log(f"{safe(newest.source, 200)}, line {newest.line}, byte {newest.offset}", lines)


def _excerpt_lines(excerpt: Excerpt) -> Iterable[LogLine]:
    """At most ``_MAX_LOG_LINES``, those around the last match; what is left out is said."""
    last = max(excerpt.matched, default=len(excerpt.lines) - 1)
    first = max(0, min(last + 1 + _MAX_LOG_LINES // 4, len(excerpt.lines)) - _MAX_LOG_LINES)
    end = first + _MAX_LOG_LINES
    if first:
        yield LogLine(None, f"… {count_text(first, 'line')} above", False)
    for index, text in enumerate(excerpt.lines[first:end], first):
        yield LogLine(excerpt.first_line + index, safe(text, _LINE_CHARS), index in excerpt.matched)
    if len(excerpt.lines) > end:
        yield LogLine(None, f"… {count_text(len(excerpt.lines) - end, 'line')} below", False)


def _remedy(advice: Advice, alert: Alert, sort: NoticeSort, shown: str) -> Remedy:
    head = "If it comes back" if sort is NoticeSort.RESOLVED or alert.state == _RESOLVED else "Do this"
    facts = [("Where", safe(advice.where, 300)), ("Then", "restart the process" if advice.restart else "no restart is needed")]
    facts += [("Expect", safe(advice.expect, 300))] if advice.expect else []
    facts += [("Caution", safe(advice.caution, 400))] if advice.caution else []
    others = len(alert.advice) - 1
    facts += [("Else", f"{count_text(others, 'other remedy') if others == 1 else f'{others} other remedies'}: {shown}")] if others > 0 else []
    return Remedy(head, safe(advice.title, 200), _code(advice.apply, shown), tuple(facts))


def _code(text: str, shown: str) -> str:
    """The text to paste: its lines stay lines. A cut is said, and where the whole stands."""
    lines = [masked(plain(line.replace("\t", "    "))) for line in text[: _APPLY_CHARS * 2].split("\n")]
    whole = "\n".join(lines[:_APPLY_LINES])
    if len(lines) <= _APPLY_LINES and len(whole) <= _APPLY_CHARS and len(text) <= _APPLY_CHARS * 2:
        return whole
    return f"{whole[:_APPLY_CHARS]}\n# {CUT.format(command=shown)}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
