"""A notice becomes a message in the form that its receiver takes. All forms are made of one content, the letter.

Text of a log is inert in each: it pings nobody, is no link, no markup, no header and no template.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import replace

from recompile_watch.core.messages import Form, Message, Picture, Tone
from recompile_watch.core.notices import Alert, Notice, NoticeSort
from recompile_watch.report.letter import Letter, Part, iso_text, letter_of
from recompile_watch.report.message_html import html_page
from recompile_watch.report.message_slack import slack_payload
from recompile_watch.report.safe import safe

JSON_VERSION = "1.0"  # of apprise's own json:// body, whose fields this one keeps
_MAX_TEXT = 30_000
_MAX_PICTURES = 3
_MIN_BARS = 2
_BROADCAST = re.compile(r"@(?=(?:everyone|here|channel|all|room)\b)", re.IGNORECASE)
_MENTION = re.compile(r"(?<!\w)@(?=\w)|<(?=[@!#&:])")
_LINK = re.compile(r":(?=//)")
_BREAK = "\u200b"  # a zero-width space: what it stands in is no mention and no link to any service


def message_of(notice: Notice, form: Form, *, now: float, state_dir: str | None = None) -> Message:
    """The message. now: epoch seconds, for "4 min ago". state_dir: named in the commands; None where it is the usual one."""
    letter = letter_of(notice, now=now, state_dir=state_dir)
    title = _quiet(letter.title) if form is Form.TEXT else letter.title
    pointer = (*letter.more, *(part.more[0] for part in letter.parts), "recompile-watch incidents list")[0]
    message = Message(form, _tone(notice), title, letter_text(letter, is_inert=form is Form.TEXT), pointer=pointer)
    match form:
        case Form.JSON:
            return replace(message, payload=_json_body(letter, message))
        case Form.SLACK:
            return replace(message, payload=slack_payload(letter))
        case Form.MAIL:
            return replace(message, html=html_page(letter), pictures=tuple(_pictures(letter)))
        case Form.TEXT:
            return message


def letter_text(letter: Letter, *, is_inert: bool = False) -> str:
    """The letter as plain text. is_inert: with breaks in mentions and links, for services that look for them."""
    lines = [_quiet(letter.lead) if is_inert else letter.lead, *letter.notes, ""]
    if letter.is_list:
        lines += [f"* {_quiet(part.line) if is_inert else part.line}{_todo(part)}" for part in letter.parts]
    else:
        for number, part in enumerate(letter.parts):
            lines += ["", f"--- {part.line}", ""] if number else []
            lines += _part_lines(part, is_inert)
    lines += [f"* {_quiet(line) if is_inert else line}" for line in letter.others]
    lines += ["", *(f"See all: {command}" for command in letter.more)] if letter.more else []
    text = "\n".join(_squeezed(lines)).strip("\n") + "\n"
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "\n… cut; the whole stands in recompile-watch incidents list\n"


def _part_lines(part: Part, is_inert: bool) -> Iterable[str]:
    if part.log is not None:
        yield part.log.place + ":"
        width = max((len(str(line.number)) for line in part.log.lines if line.number is not None), default=1)
        for line in part.log.lines:
            text = _quiet_log(line.text) if is_inert else line.text
            yield f"{'>' if line.is_matched else ' '} {line.number if line.number is not None else '':>{width}} | {text}"
        yield ""
    cost = [fact for fact in part.facts if fact[0] == "What it costs"]
    yield from (f"{label}: {_quiet(text) if is_inert else text}" for label, text in cost)
    if part.remedy is not None:
        yield ""
        yield f"{part.remedy.head}: {part.remedy.title}"
        yield from (f"    {line}" for line in (_quiet(part.remedy.apply) if is_inert else part.remedy.apply).split("\n"))
        yield from (f"  {label}: {_quiet(text) if is_inert else text}" for label, text in part.remedy.facts)
        yield ""
    yield from (f"{label}: {_quiet(text) if is_inert else text}" for label, text in part.facts if (label, text) not in cost)
    yield from (f"See more: {command}" for command in part.more)


def _todo(part: Part) -> str:
    return f" -> {part.remedy.title}" if part.remedy is not None and part.alert.state != "resolved" else ""


def _squeezed(lines: Iterable[str]) -> Iterable[str]:
    """The lines without empty ones that follow each other."""
    was_empty = False
    for line in lines:
        if line or not was_empty:
            yield line
        was_empty = not line


def _quiet(text: str) -> str:
    """Text that may be copied: only what pings everybody, and links, are broken."""
    return _LINK.sub(f":{_BREAK}", _BROADCAST.sub(f"@{_BREAK}", text))


def _quiet_log(text: str) -> str:
    """Text of a log: no mention and no link at all."""
    return _LINK.sub(f":{_BREAK}", _MENTION.sub(lambda found: found[0] + _BREAK, text))


def _tone(notice: Notice) -> Tone:
    if notice.sort is NoticeSort.RESOLVED:
        return Tone.SUCCESS
    if notice.sort is NoticeSort.TEST:
        return Tone.INFO
    return {"critical": Tone.FAILURE, "warning": Tone.WARNING, "unknown": Tone.WARNING}.get(notice.severity, Tone.INFO)


def _pictures(letter: Letter) -> Iterable[Picture]:
    for part in letter.parts[:_MAX_PICTURES]:
        alert = part.alert
        if not letter.is_list and len(alert.counts) >= _MIN_BARS and alert.count > 1:
            yield Picture(safe(alert.what, 100), alert.since, alert.until, alert.counts)


def _json_body(letter: Letter, message: Message) -> str:
    """What a ``json://`` receiver is posted: apprise's fields, then the same facts for a program."""
    notice = letter.notice
    body = {
        "version": JSON_VERSION, "title": message.title, "message": message.text, "attachments": [], "type": message.tone.value,
        "notice": notice.id, "sort": notice.sort.value, "severity": notice.severity, "receiver": notice.receiver, "host": safe(notice.host, 100),
        "made_at": iso_text(notice.made_at), "possible_duplicate": notice.possible_duplicate, "notes": list(letter.notes),
        "left_out": notice.left_out + len(notice.alerts) - len(letter.parts), "incidents": [_json_incident(part) for part in letter.parts],
    }  # fmt: skip
    return json.dumps(body)


def _json_incident(part: Part) -> dict[str, object]:
    alert = part.alert
    return {
        "id": alert.incident, "fingerprint": alert.fingerprint, "kind": alert.kind, "severity": alert.severity, "state": alert.state,
        "what": part.what, "model": _or_none(alert.model), "function": _or_none(alert.function), "file": _or_none(alert.file),
        "line_no": alert.line_no, "count": alert.count, "first_time": iso_text(alert.since), "last_time": iso_text(alert.until),
        "symbols": [safe(symbol, 40) for symbol in alert.symbols], "cost": safe(alert.cost, 500), "why": safe(alert.why, 300),
        "places": [{"source": safe(one.source, 400), "line": one.line, "offset": one.offset, "text": safe(one.text)} for one in alert.places],
        "excerpt": _json_excerpt(part), "advice": _json_advice(alert, part), "explains": [safe(title, 300) for title in alert.explains],
        "measured": _or_none(alert.measured), "more": list(part.more),
    }  # fmt: skip


def _json_excerpt(part: Part) -> dict[str, object] | None:
    if part.log is None:
        return None
    lines = [{"line": line.number, "text": line.text, "is_matched": line.is_matched} for line in part.log.lines]
    return {"place": part.log.place, "lines": lines}


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
