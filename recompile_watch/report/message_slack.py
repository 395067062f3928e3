"""A letter as Slack's Block Kit, within Slack's limits.

What comes from a log stands in ``plain_text`` and in preformatted ``rich_text``, where Slack looks for neither mentions
nor links nor back-ticks. Sources: docs.slack.dev, "Block Kit", "Formatting message text".
"""

import json
from collections.abc import Iterable, Sequence

from recompile_watch.core.notices import NoticeSort
from recompile_watch.report.letter import Letter, Part

MAX_BLOCKS = 50
MAX_SECTION = 3000
MAX_HEADER = 150
MAX_FIELD = 2000
MAX_CONTEXT = 10  # elements of one context block
_MAX_PREFORMATTED = 3000
_MAX_FALLBACK = 3000
_Block = dict[str, object]
_MARKS = {"critical": "🔴", "warning": "🟠", "unknown": "🟣"}
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def slack_payload(letter: Letter) -> str:
    """The JSON to post to an incoming webhook."""
    blocks = list(_blocks(letter))
    if len(blocks) > MAX_BLOCKS:
        command = letter.more[0] if letter.more else "recompile-watch incidents list"
        blocks = [*blocks[: MAX_BLOCKS - 1], _context([f"Cut: Slack takes {MAX_BLOCKS} blocks. All of it: {command}"])]
    fallback = _cut(escaped(letter.title), _MAX_FALLBACK)  # for the notification on a phone
    return json.dumps({"text": fallback, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False, "blocks": blocks})


def escaped(text: str) -> str:
    """Text that Slack reads as text: no mention, no link."""
    return text.translate(_ESCAPED)


def _blocks(letter: Letter) -> Iterable[_Block]:
    yield {"type": "header", "text": _plain(f"{_mark(letter)} {letter.title}", MAX_HEADER)}
    yield _section(letter.lead)
    if letter.notes:
        yield _context(letter.notes)
    for number, part in enumerate(letter.parts):
        if letter.is_list:
            yield _section(f"• {part.line}")
        else:
            yield from _part(part, is_first=number == 0)
    if letter.others:
        yield _section("\n".join(f"• {line}" for line in letter.others))
    if letter.more:
        yield _context([f"All incidents: {command}" for command in letter.more])


def _part(part: Part, *, is_first: bool) -> Iterable[_Block]:
    if not is_first:
        yield {"type": "divider"}
        yield _section(part.line)
    if part.log is not None and part.log.lines:
        yield _preformatted("\n".join(f"{'>' if line.is_matched else ' '} {line.number or ''} {line.text}" for line in part.log.lines), part.more[0])
        yield _context([part.log.place])
    yield from (_labelled(label, text) for label, text in part.facts if label != "Why you got this")
    if part.remedy is not None:
        yield _labelled(part.remedy.head, part.remedy.title)
        yield _preformatted(part.remedy.apply, part.more[0])
        yield _context([f"{label}: {text}" for label, text in part.remedy.facts])
    whys = [f"{label}: {text}" for label, text in part.facts if label == "Why you got this"]
    yield _context([*whys, *(f"See more: {command}" for command in part.more)])


def _mark(letter: Letter) -> str:
    if letter.notice.sort is NoticeSort.RESOLVED:
        return "🟢"
    return "🔵" if letter.notice.sort is NoticeSort.TEST else _MARKS.get(letter.notice.severity, "🔵")


def _plain(text: str, limit: int) -> _Block:
    return {"type": "plain_text", "text": _cut(text, limit) or " ", "emoji": False}


def _section(text: str) -> _Block:
    return {"type": "section", "text": _plain(text, MAX_SECTION)}


def _labelled(label: str, text: str) -> _Block:
    """A label of ours in bold, and any text in plain: as rich text, which has no markup at all."""
    elements = [{"type": "text", "text": f"{label}: ", "style": {"bold": True}}, {"type": "text", "text": _cut(text, MAX_SECTION) or " "}]
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}


def _preformatted(text: str, more: str) -> _Block:
    pointer = f"\n… cut; all of it: {more}"
    shown = text if len(text) <= _MAX_PREFORMATTED else text[: _MAX_PREFORMATTED - len(pointer)] + pointer
    return {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [{"type": "text", "text": shown or " "}]}]}


def _context(texts: Sequence[str]) -> _Block:
    return {"type": "context", "elements": [_plain(text, MAX_FIELD) for text in texts[:MAX_CONTEXT]]}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
