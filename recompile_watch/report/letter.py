"""The content of a message, from which every form of it is made: clean text without any markup.

Written for the person whom it wakes: first what, where, since when and how often; then the log, the cost, what to do.
All text in a letter has passed ``safe``: one line each, no control characters, secrets masked.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from recompile_watch.core.advice import Advice
from recompile_watch.core.messages import Picture
from recompile_watch.core.notices import MAX_ALERTS, Alert, Excerpt, Notice, NoticeSort
from recompile_watch.report.headlines import LISTS, RESOLVED, WHAT_CHARS, lead_of, line_of, often_of, title_of, where_of
from recompile_watch.report.safe import inert, plain, safe
from recompile_watch.report.times import count_text, iso_text, time_text

_LINE_CHARS = 300
_APPLY_CHARS = 2000
_APPLY_LINES = 40
_MAX_LOG_LINES = 25
_MAX_EXPLAINS = 8
_MAX_SYMBOLS = 12
_MAX_PLACES = 3
_MAX_IN_FULL = 3  # of a group: nobody reads ten at night, and Slack takes no more
_MIN_BARS = 2
_TO_ACKNOWLEDGE = frozenset({NoticeSort.OPENED, NoticeSort.WORSE, NoticeSort.REPEATED, NoticeSort.ESCALATED, NoticeSort.FLAPPING})

Fact = tuple[str, str]
"""A label of ours, and what is to be said under it."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log as shown. number: 1-based, None for a remark of ours. is_matched: the event stands in it."""

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
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What a letter says of one incident.

    line: all of it in one line. what, where, when: the same in pieces. meaning: what it costs and what was measured.
    facts: what is read last. commands: what to run to see more; the first shows the incident. picture: its events over
    time, None where they are too few to show anything.
    """

    alert: Alert
    line: str
    what: str
    where: str
    when: str
    log: Log | None
    meaning: tuple[Fact, ...]
    remedy: Remedy | None
    facts: tuple[Fact, ...]
    commands: tuple[Fact, ...]
    picture: Picture | None

    @property
    def pointer(self) -> str:
        """The command that shows all of it."""
        return self.commands[0][1]

    @property
    def to_do(self) -> str:
        """The first remedy in one line; empty for what is over or has none."""
        return self.remedy.title if self.remedy is not None and self.alert.state != RESOLVED else ""


@dataclass(frozen=True, slots=True)
class Letter:
    """A whole message. title, lead: one line each. summary: the lead without what the title says already.

    notes: what to know before reading on. parts: the incidents told in full. items: those told in a few lines. others:
    those in one line, and how many are not told. pointer: the command that shows more. has_more: there is more.
    """

    notice: Notice
    title: str
    lead: str
    summary: str
    notes: tuple[str, ...]
    parts: tuple[Part, ...]
    items: tuple[Part, ...]
    others: tuple[str, ...]
    pointer: str
    has_more: bool
    sent_at: str


def letter_of(notice: Notice, *, now: float, state_dir: str | None) -> Letter:
    """The content of a notice as it reads at ``now`` (epoch seconds). state_dir: where it is not the usual one."""
    option = f" --state-dir {shlex.quote(plain(state_dir))}" if state_dir else ""
    in_full = 0 if notice.sort in LISTS else _MAX_IN_FULL
    told = tuple(_part(alert, notice.sort, now, option, is_full=index < in_full) for index, alert in enumerate(notice.alerts[:MAX_ALERTS]))
    others = tuple(_others(notice, now))
    has_more = notice.sort in LISTS or len(told) > 1 or bool(others)
    pointer = f"recompile-watch incidents list{option}" if has_more or not told else told[0].pointer
    return Letter(
        notice=notice, title=title_of(notice), lead=lead_of(notice, now), summary=_summary(notice, told, now), notes=tuple(_notes(notice)),
        parts=told[:in_full], items=told[in_full:], others=others, pointer=pointer, has_more=has_more, sent_at=time_text(now),
    )  # fmt: skip


def _summary(notice: Notice, parts: tuple[Part, ...], now: float) -> str:
    if not parts or notice.sort in LISTS or notice.sort is NoticeSort.TEST or parts[0].what.rstrip(".") not in title_of(notice):
        return lead_of(notice, now)
    return "; ".join(fact for fact in (parts[0].where, parts[0].when) if fact)


def _others(notice: Notice, now: float) -> Iterable[str]:
    """The incidents beyond the first ten: a line each in a list, else a number."""
    rest = notice.alerts[MAX_ALERTS:]
    if notice.sort in LISTS:
        yield from (line_of(alert, now) for alert in rest)
    left_out = notice.left_out + (0 if notice.sort in LISTS else len(rest))
    if left_out:
        yield f"and {count_text(left_out, 'more incident')}, not shown here"


def _notes(notice: Notice) -> Iterable[str]:
    if notice.possible_duplicate:
        yield "Possible duplicate: you may have got this message before."
    if notice.note:
        yield safe(notice.note, 500)


def _part(alert: Alert, sort: NoticeSort, now: float, option: str, *, is_full: bool) -> Part:
    """What is over, or measured, is told without the lines of the log and without what it cost."""
    is_over = alert.state == RESOLVED or sort is NoticeSort.RESOLVED
    is_brief = is_over or sort is NoticeSort.MEASURED
    commands = tuple(_commands(alert, sort, option))
    advice = alert.advice[0] if alert.advice else None
    return Part(
        alert=alert, line=line_of(alert, now), what=safe(alert.what, WHAT_CHARS), where=where_of(alert), when=often_of(alert, now),
        log=None if is_brief else _log(alert), meaning=tuple(_meaning(alert, is_over=is_over)),
        remedy=_remedy(advice, alert, commands[0][1], is_over=is_over) if advice else None, facts=tuple(_facts(alert, is_brief=is_brief)),
        commands=commands, picture=_picture(alert) if is_full else None,
    )  # fmt: skip


def _picture(alert: Alert) -> Picture | None:
    if alert.count < _MIN_BARS or len(alert.counts) < _MIN_BARS or iso_text(alert.since) is None or iso_text(alert.until) is None:
        return None
    return Picture(count_text(alert.count, "event"), alert.since, alert.until, alert.counts)


def _commands(alert: Alert, sort: NoticeSort, option: str) -> Iterable[Fact]:
    incident = shlex.quote(inert(alert.incident))
    yield "See more", f"recompile-watch incidents show {incident}{option}"
    topic = alert.advice[0].name if alert.advice else alert.kind
    yield "Explain", f"recompile-watch explain {shlex.quote(plain(topic))}"
    if sort in _TO_ACKNOWLEDGE and alert.state == "open":
        yield "Acknowledge", f"recompile-watch incidents ack {incident}{option}"


def _meaning(alert: Alert, *, is_over: bool) -> Iterable[Fact]:
    if alert.measured:
        yield "Measured", safe(alert.measured, 800)
    if alert.cost and not is_over:
        yield "What it costs", safe(alert.cost, 500)
    if alert.symbols:
        more = len(alert.symbols) - _MAX_SYMBOLS
        yield "Symbols", ", ".join(safe(symbol, 20) for symbol in alert.symbols[:_MAX_SYMBOLS]) + (f" and {more} more" if more > 0 else "")


def _facts(alert: Alert, *, is_brief: bool) -> Iterable[Fact]:
    if alert.explains and not is_brief:
        more = len(alert.explains) - _MAX_EXPLAINS
        told = "; ".join(safe(title, 120).rstrip(".") for title in alert.explains[:_MAX_EXPLAINS])
        yield "Explained by it, so not told separately", told + (f"; and {more} more" if more > 0 else "")
    if alert.why:
        yield "Why you got this", safe(alert.why, 300)


def _log(alert: Alert) -> Log | None:
    """The lines around the newest event, else its places alone."""
    newest = alert.places[-1] if alert.places else None
    if alert.excerpt is not None:
        place = f"{safe(alert.excerpt.source, 200)}, line {newest.line}, byte {newest.offset}" if newest else safe(alert.excerpt.source, 200)
        return Log(place, tuple(_excerpt_lines(alert.excerpt)))
    if newest is None:
        return None
    shown = [place for place in alert.places if place.source == newest.source][-_MAX_PLACES:]
    lines = tuple(LogLine(place.line, safe(place.text, _LINE_CHARS), True) for place in shown)
    return Log(f"{safe(newest.source, 200)}, line {newest.line}, byte {newest.offset}", lines)


def _excerpt_lines(excerpt: Excerpt) -> Iterable[LogLine]:
    """At most ``_MAX_LOG_LINES``, up to a few after the last match; what is left out is said."""
    last = max(excerpt.matched, default=len(excerpt.lines) - 1)
    first = max(0, min(last + 1 + _MAX_LOG_LINES // 4, len(excerpt.lines)) - _MAX_LOG_LINES)
    end = first + _MAX_LOG_LINES
    if first:
        yield LogLine(None, f"… {count_text(first, 'line')} above", False)
    for index, text in enumerate(excerpt.lines[first:end], first):
        yield LogLine(excerpt.first_line + index, safe(text, _LINE_CHARS), index in excerpt.matched)
    if len(excerpt.lines) > end:
        yield LogLine(None, f"… {count_text(len(excerpt.lines) - end, 'line')} below", False)


def _remedy(advice: Advice, alert: Alert, pointer: str, *, is_over: bool) -> Remedy:
    facts = [("Where", safe(advice.where, 300)), ("Then", "restart the process" if advice.restart else "no restart is needed")]
    facts += [("Expect", safe(advice.expect, 300))] if advice.expect else []
    facts += [("Caution", safe(advice.caution, 400))] if advice.caution else []
    others = len(alert.advice) - 1
    facts += [("Or", f"{'one other remedy' if others == 1 else f'{others} other remedies'}, shown by {pointer}")] if others > 0 else []
    return Remedy("If it comes back" if is_over else "Do this", safe(advice.title, 200), _code(advice.apply, pointer), tuple(facts))


def _code(text: str, pointer: str) -> str:
    """The text to paste: its lines stay lines. A cut is said, and where the whole stands."""
    lines = [inert(line.replace("\t", "    ")) for line in text[: _APPLY_CHARS * 2].split("\n")]
    whole = "\n".join(lines[:_APPLY_LINES])
    if len(lines) <= _APPLY_LINES and len(whole) <= _APPLY_CHARS and len(text) <= _APPLY_CHARS * 2:
        return whole
    return f"{whole[:_APPLY_CHARS]}\n# … cut; all of it: {pointer}"
