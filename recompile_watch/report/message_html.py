"""A letter as HTML for mail: one page, styles inline, light and dark, nothing loaded from anywhere."""

from collections.abc import Iterable
from html import escape

from recompile_watch.core.notices import NoticeSort
from recompile_watch.report.letter import Letter, Log, Part, Remedy
from recompile_watch.report.safe import safe

PICTURE_MARK = "<!--picture-->"  # the sender puts the picture of the events here, if one can be drawn
_COLOURS = {"critical": "#c62828", "warning": "#b26a00", "unknown": "#7b1fa2"}
_CALM = "#2e7d32"
_PLAIN = "#37474f"
_BODY = "margin:0;padding:16px;font:15px/1.45 -apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;color:#1f2328;background:#ffffff"
_PRE = (
    "margin:8px 0;padding:10px;font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:#f3f4f6;"
    "border-radius:6px;white-space:pre-wrap;word-break:break-word"
)
# Clients that know dark mode read this; the others show the inline colours.
_DARK = (
    "@media (prefers-color-scheme: dark){body{color:#e6edf3!important;background:#0d1117!important}"
    "pre,code{background:#161b22!important;color:#e6edf3!important}.dim{color:#9aa4b2!important}.hit{background:#4b3a12!important}}"
)


def html_page(letter: Letter) -> str:
    """The whole page."""
    colour = _CALM if letter.notice.sort is NoticeSort.RESOLVED else _COLOURS.get(letter.notice.severity, _PLAIN)
    body = "\n".join(_body(letter))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f"<title>{_text(letter.title)}</title><style>{_DARK}</style></head>\n"
        f'<body style="{_BODY}"><div style="max-width:760px;border-left:4px solid {colour};padding-left:14px">\n{body}\n</div></body></html>\n'
    )


def _body(letter: Letter) -> Iterable[str]:
    yield f'<h1 style="font-size:18px;margin:0 0 6px">{_text(letter.title)}</h1>'
    yield f"<p>{_text(letter.summary)}</p>"
    yield from (f"<p><strong>{_text(note)}</strong></p>" for note in letter.notes)
    for number, part in enumerate(letter.parts):
        yield from _part(part, is_first=number == 0)
    if letter.items or letter.others:
        yield _list((*map(_item, letter.items), *map(_text, letter.others)))
    if letter.has_more:
        yield f"<p>See all: {_code(letter.pointer)}</p>"
    signed = f"recompile-watch on {safe(letter.notice.host, 60)}, {letter.sent_at}"
    yield f'<p class="dim" style="color:#59636e;font-size:12.5px">{_text(signed)}</p>'


def _part(part: Part, *, is_first: bool) -> Iterable[str]:
    if not is_first:
        yield f'<hr style="border:0;border-top:1px solid #8884"><p><strong>{_text(part.line)}</strong></p>'
    if part.picture is not None:
        yield PICTURE_MARK
    if part.log is not None:
        yield _log(part.log)
    yield from (_fact(label, text) for label, text in part.meaning)
    if part.remedy is not None:
        yield _remedy(part.remedy)
    yield from (_fact(label, text) for label, text in part.facts)
    yield "<p>" + "<br>".join(f"{_text(label)}: {_code(command)}" for label, command in part.commands) + "</p>"


def _log(log: Log) -> str:
    lines = []
    for line in log.lines:
        text = f"{line.number if line.number is not None else '':>7} {_text(line.text)}"
        lines.append(f'<span class="hit" style="background:#fff3c4">{text}</span>' if line.is_matched else text)
    return (
        f'<p class="dim" style="color:#59636e;font-size:12.5px;margin:10px 0 0">{_text(log.place)}</p><pre style="{_PRE}">'
        + "\n".join(lines)
        + "</pre>"
    )


def _remedy(remedy: Remedy) -> str:
    facts = "".join(f"<li>{_text(label)}: {_text(text)}</li>" for label, text in remedy.facts)
    return (
        f'<p><strong>{_text(remedy.head)}: {_text(remedy.title)}</strong></p><pre style="{_PRE}">{_text(remedy.apply)}</pre>'
        f'<ul style="margin:4px 0 12px;padding-left:20px">{facts}</ul>'
    )


def _item(part: Part) -> str:
    """An incident in a list."""
    state = "resolved" if part.alert.state == "resolved" else part.alert.severity
    facts = "; ".join(fact for fact in (part.where, part.when, f"incident {safe(part.alert.incident, 40)}") if fact)
    to_do = f"<br>do: {_text(part.to_do)}" if part.to_do else ""
    return f"<strong>{_text(state)}: {_text(part.what)}</strong><br>{_text(facts)}{to_do}"


def _fact(label: str, text: str) -> str:
    return f"<p><strong>{_text(label)}:</strong> {_text(text)}</p>"


def _list(items: Iterable[str]) -> str:
    return f'<ul style="padding-left:20px">{"".join(f"<li>{item}</li>" for item in items)}</ul>'


def _code(text: str) -> str:
    return f'<code style="font:12.5px ui-monospace,Menlo,Consolas,monospace">{_text(text)}</code>'


def _text(text: str) -> str:
    return escape(text, quote=True)
