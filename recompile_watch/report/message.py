"""A notice becomes a message in the form that its receiver takes. All forms are made of one content, the letter.

Text of a log is inert in each: it pings nobody, is no link, no markup, no header and no template.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import replace

from recompile_watch.core.messages import Form, Message, Tone
from recompile_watch.core.notices import Alert, Notice, NoticeSort
from recompile_watch.report.letter import Letter, Part, letter_of
from recompile_watch.report.message_html import html_page
from recompile_watch.report.message_slack import slack_payload
from recompile_watch.report.safe import safe
from recompile_watch.report.times import iso_text

JSON_VERSION = "1.0"  # of apprise's own json:// body, whose fields this one keeps
_MAX_TEXT = 30_000
_MAX_LINES = 100
_BROADCAST = re.compile(r"@(?=(?:everyone|here|channel|all|room)\b)|<(?=[@!#&:])", re.IGNORECASE)
_MENTION = re.compile(r"@(?=\w)|<(?=[@!#&:])")
_LINK = re.compile(r":(?=//)|`(?=`)")  # a back-tick after another would open a block of code
_BREAK = "\u200b"  # a zero-width space: what it stands in is no mention and no link to any service


def message_of(notice: Notice, form: Form, *, now: float, state_dir: str | None = None) -> Message:
    """The message. now: epoch seconds, for "4 min ago". state_dir: named in the commands; None where it is the usual one."""
    letter = letter_of(notice, now=now, state_dir=state_dir)
    is_inert = form is Form.TEXT
    title = _Inert().words(letter.title) if is_inert else letter.title
    message = Message(form, _tone(notice), title, letter_text(letter, is_inert=is_inert), pointer=letter.pointer)
    match form:
        case Form.JSON:
            return replace(message, payload=_json_body(letter, message))
        case Form.SLACK:
            return replace(message, payload=slack_payload(letter))
        case Form.MAIL:
            return replace(message, html=html_page(letter), pictures=tuple(part.picture for part in letter.parts if part.picture is not None))
        case Form.TEXT:
            return message


def letter_text(letter: Letter, *, is_inert: bool = False) -> str:
    """The letter as plain text. is_inert: with breaks in mentions and links, for services that look for them."""
    text = "\n".join(_squeezed(_lines(letter, _Inert() if is_inert else _AsIs()))).strip("\n") + "\n"
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}\n… cut; all of it: {letter.pointer}\n"


class _AsIs:
    """Text for places where nothing in it has an effect."""

    def words(self, text: str) -> str:
        """Text with words of a log in it."""
        return text

    def code(self, text: str) -> str:
        """Text that is to be pasted."""
        return text


class _Inert(_AsIs):
    """Text for services that look for mentions and links in it."""

    def words(self, text: str) -> str:
        """No mention, no link and no block of code at all."""
        return _broken(_LINK, _broken(_MENTION, text))

    def code(self, text: str) -> str:
        """Only what pings everybody and what is a link is broken: a decorator stays one."""
        return _broken(_LINK, _broken(_BROADCAST, text))


def _broken(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: found[0] + _BREAK, text)


def _lines(letter: Letter, made: _AsIs) -> Iterable[str]:
    yield made.words(letter.lead)
    yield from map(made.words, letter.notes)
    yield ""
    for number, part in enumerate(letter.parts):
        if number:
            yield from ("", f"--- {made.words(part.line)}", "")
        yield from _part_lines(part, made)
    yield ""
    for part in letter.items:
        yield from _item_lines(part, made)
    yield from (f"* {made.words(line)}" for line in letter.others)
    if letter.has_more:
        yield from ("", f"See all: {letter.pointer}")


def _item_lines(part: Part, made: _AsIs) -> Iterable[str]:
    """An incident in a list: what, where and when, what to do."""
    state = "resolved" if part.alert.state == "resolved" else part.alert.severity
    yield f"* {state}: {made.words(part.what)}"
    facts = (part.where, part.when, f"incident {safe(part.alert.incident, 40)}")
    yield f"  {made.words('; '.join(fact for fact in facts if fact))}"
    if part.to_do:
        yield f"  do: {made.words(part.to_do)}"


def _part_lines(part: Part, made: _AsIs) -> Iterable[str]:
    if part.log is not None:
        yield f"{made.words(part.log.place)}:"
        width = max((len(str(line.number)) for line in part.log.lines if line.number is not None), default=1)
        for line in part.log.lines:
            number = "" if line.number is None else line.number
            yield f"{'>' if line.is_matched else ' '} {number:>{width}} | {made.words(line.text)}"
        yield ""
    yield from (f"{label}: {made.words(text)}" for label, text in part.meaning)
    if part.remedy is not None:
        yield ""
        yield f"{part.remedy.head}: {made.words(part.remedy.title)}"
        yield from (f"    {made.code(line)}" for line in part.remedy.apply.split("\n"))
        yield from (f"  {label}: {made.words(text)}" for label, text in part.remedy.facts)
    yield ""
    yield from (f"{label}: {made.words(text)}" for label, text in part.facts)
    yield from (f"{label}: {command}" for label, command in part.commands)


def _squeezed(lines: Iterable[str]) -> Iterable[str]:
    """The lines without empty ones that follow each other."""
    was_empty = False
    for line in lines:
        if line or not was_empty:
            yield line
        was_empty = not line


def _tone(notice: Notice) -> Tone:
    if notice.sort is NoticeSort.RESOLVED:
        return Tone.SUCCESS
    if notice.sort is NoticeSort.TEST:
        return Tone.INFO
    return {"critical": Tone.FAILURE, "warning": Tone.WARNING, "unknown": Tone.WARNING}.get(notice.severity, Tone.INFO)


def _json_body(letter: Letter, message: Message) -> str:
    """What a ``json://`` receiver is posted: apprise's fields, then the same facts for a program."""
    notice = letter.notice
    body = {
        "version": JSON_VERSION, "title": message.title, "message": message.text, "attachments": [], "type": message.tone.value,
        "notice": notice.id, "sort": notice.sort.value, "severity": notice.severity, "receiver": safe(notice.receiver, 100),
        "host": safe(notice.host, 100), "made_at": iso_text(notice.made_at), "possible_duplicate": notice.possible_duplicate,
        "notes": list(letter.notes), "left_out": notice.left_out + len(notice.alerts) - len(letter.parts) - len(letter.items),
        "incidents": [_json_incident(part) for part in (*letter.parts, *letter.items)],
    }  # fmt: skip
    return json.dumps(body)


def _json_incident(part: Part) -> dict[str, object]:
    alert = part.alert
    return {
        "id": safe(alert.incident, 100), "fingerprint": alert.fingerprint, "kind": alert.kind, "severity": alert.severity, "state": alert.state,
        "what": part.what, "model": _or_none(alert.model), "function": _or_none(alert.function), "file": _or_none(alert.file),
        "line_no": alert.line_no, "count": alert.count, "first_time": iso_text(alert.since), "last_time": iso_text(alert.until),
        "symbols": [safe(symbol, 40) for symbol in alert.symbols], "cost": safe(alert.cost, 500), "why": safe(alert.why, 300),
        "places": [{"source": safe(one.source, 400), "line": one.line, "offset": one.offset, "text": safe(one.text)} for one in alert.places],
        "excerpt": _json_excerpt(alert), "advice": _json_advice(alert, part), "explains": [safe(title, 300) for title in alert.explains],
        "measured": _or_none(alert.measured), "commands": [command for _, command in part.commands],
    }  # fmt: skip


def _json_excerpt(alert: Alert) -> dict[str, object] | None:
    if alert.excerpt is None:
        return None
    lines = [safe(line) for line in alert.excerpt.lines[:_MAX_LINES]]
    matched = [index for index in alert.excerpt.matched if index < len(lines)]
    return {"source": safe(alert.excerpt.source, 400), "first_line": alert.excerpt.first_line, "lines": lines, "matched": matched}


def _json_advice(alert: Alert, part: Part) -> dict[str, object] | None:
    """The first remedy; the others are one command away."""
    if not alert.advice or part.remedy is None:
        return None
    advice = alert.advice[0]
    return {
        "remedy": advice.remedy, "title": part.remedy.title, "kind": advice.kind, "apply": part.remedy.apply, "where": safe(advice.where, 400),
        "restart": advice.restart, "torch": safe(advice.torch, 100), "expect": safe(advice.expect, 400),
        "caution": safe(advice.caution, 400) if advice.caution else None, "docs": advice.docs, "others": len(alert.advice) - 1,
    }  # fmt: skip


def _or_none(text: str | None) -> str | None:
    return None if text is None else safe(text, 800)
