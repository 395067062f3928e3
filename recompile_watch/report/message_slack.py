"""A letter as Slack's Block Kit, within Slack's limits.

What comes from a log stands in ``plain_text`` and in preformatted ``rich_text``, where Slack looks for neither mentions
nor links nor back-ticks. Sources: docs.slack.dev, "Block Kit", "Formatting message text".
"""

import json
from collections.abc import Iterable, Sequence

from recompile_watch.core.notices import NoticeSort
from recompile_watch.report.letter import Letter, Part
from recompile_watch.report.safe import safe

MAX_BLOCKS = 50
MAX_SECTION = 3000
MAX_HEADER = 150
_MAX_PREFORMATTED = 3000
_MAX_FALLBACK = 3000
_MORE = 40  # "… and 90 more lines"
_Block = dict[str, object]
_MARKS = {"critical": "🔴", "warning": "🟠", "unknown": "🟣"}
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def slack_payload(letter: Letter) -> str:
    """The JSON to post to an incoming webhook."""
    blocks = list(_blocks(letter))
    if len(blocks) > MAX_BLOCKS:
        blocks = [*blocks[: MAX_BLOCKS - 1], _context([f"Cut here. All of it: {letter.pointer}"])]
    fallback = _cut(escaped(letter.title), _MAX_FALLBACK)  # for the notification on a phone
    return json.dumps({"text": fallback, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False, "blocks": blocks})


def escaped(text: str) -> str:
    """Text that Slack reads as text: no mention, no link."""
    return text.translate(_ESCAPED)


def _blocks(letter: Letter) -> Iterable[_Block]:
    yield {"type": "header", "text": _plain(f"{_mark(letter)} {letter.title}", MAX_HEADER)}
    yield _section(letter.summary)
    if letter.notes:
        yield _context(letter.notes)
    for number, part in enumerate(letter.parts):
        yield from _part(part, is_first=number == 0)
    if letter.parts and letter.items:
        yield {"type": "divider"}
    yield from map(_item, letter.items)
    if letter.others:
        yield _section("\n".join(_fitting([f"• {line}" for line in letter.others])))
    if letter.has_more:
        yield _context([f"See all: {letter.pointer}"])


def _item(part: Part) -> _Block:
    """An incident in a list."""
    facts = (part.where, part.when, f"incident {part.alert.incident}", f"do: {part.to_do}" if part.to_do else "")
    head = "🟢" if part.alert.state == "resolved" else _MARKS.get(part.alert.severity, "🔵")
    return _labelled(f"{head} {part.what}", "\n" + "; ".join(safe(fact, 300) for fact in facts if fact))


def _part(part: Part, *, is_first: bool) -> Iterable[_Block]:
    if not is_first:
        yield {"type": "divider"}
        yield _section(part.line)
    if part.log is not None and part.log.lines:
        lines = (f"{'>' if line.is_matched else ' '} {'' if line.number is None else line.number} {line.text}" for line in part.log.lines)
        yield _preformatted("\n".join(lines), part.pointer)
        yield _context([part.log.place])
    yield from (_labelled(f"{label}: ", text) for label, text in part.meaning)
    if part.remedy is not None:
        yield _labelled(f"{part.remedy.head}: ", part.remedy.title)
        yield _preformatted(part.remedy.apply, part.pointer)
        yield _context([f"{label}: {text}" for label, text in part.remedy.facts])
    yield _context([f"{label}: {text}" for label, text in (*part.facts, *part.commands)])


def _mark(letter: Letter) -> str:
    if letter.notice.sort is NoticeSort.RESOLVED:
        return "🟢"
    return "🔵" if letter.notice.sort is NoticeSort.TEST else _MARKS.get(letter.notice.severity, "🔵")


def _plain(text: str, limit: int) -> _Block:
    return {"type": "plain_text", "text": _cut(text, limit) or " ", "emoji": False}


def _section(text: str) -> _Block:
    return {"type": "section", "text": _plain(text, MAX_SECTION)}


def _labelled(label: str, text: str) -> _Block:
    """A label in bold and a text: as rich text, which has no markup at all."""
    elements = [{"type": "text", "text": _cut(label, MAX_SECTION), "style": {"bold": True}}, {"type": "text", "text": _cut(text, MAX_SECTION) or " "}]
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}


def _preformatted(text: str, more: str) -> _Block:
    pointer = f"\n… cut; all of it: {more}"
    shown = text if len(text) <= _MAX_PREFORMATTED else text[: _MAX_PREFORMATTED - len(pointer)] + pointer
    return {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [{"type": "text", "text": shown or " "}]}]}


def _context(texts: Sequence[str]) -> _Block:
    """Small grey lines: one element, because Slack would set several side by side."""
    return {"type": "context", "elements": [_plain("\n".join(texts), MAX_SECTION)]}


def _fitting(lines: Sequence[str]) -> Iterable[str]:
    """As many lines as a section takes; what is left out is counted."""
    left = MAX_SECTION - _MORE
    for number, line in enumerate(lines):
        left -= len(line) + 1
        if left < 0:
            yield f"… and {len(lines) - number} more lines"
            return
        yield line


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
