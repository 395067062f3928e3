"""One page of HTML that needs nothing else: no network, no storage, readable without its script.

All pages share a frame, a style and a script. What a log or a measured program said is a value of the template and never a
part of it; the page's policy forbids whatever is not its own style and script.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from recompile_watch.report.drawing import Picture
from recompile_watch.report.palette import style_sheet
from recompile_watch.report.times import count_text
from recompile_watch.report.words import times_text

MAX_ROWS = 100
NUM, LONG = "num", "long"
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Listing:
    """A table. columns: name and class (``num``: right-aligned, ``long``: may wrap). left_off: what was cut off, in words."""

    caption: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]
    left_off: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A section of a page. alternatives: the picture as tables. tables are shown, folded ones on demand."""

    id: str
    title: str
    lead: str = ""
    picture: Picture | None = None
    alternatives: tuple[Listing, ...] = ()
    tables: tuple[Listing, ...] = ()
    folded: tuple[Listing, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around a page. status: the badge's kind, ``ok``, ``warning``, ``critical`` or ``unknown``; word: what it says.

    contents: the sections' ids, titles and numbers. generated_at: ISO 8601 with offset.
    """

    status: str
    word: str
    subject: str
    about: str
    contents: Sequence[tuple[str, str, str]]
    generated_at: str
    tool_version: str


class _Ids:
    """Ids for the texts that can be copied, in the order of the page."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def next(self) -> str:
        """The next one."""
        return f"paste-{next(self._numbers)}"


def listing(caption: str, columns: Sequence[tuple[str, str]], rows: Iterable[tuple[str, ...]], noun: str = "row") -> Listing:
    """The first ``MAX_ROWS`` rows, and how many more there are."""
    every = list(rows)
    more = len(every) - MAX_ROWS
    left_off = f"{count_text(more, f'more {noun}')}; --format json has all of them" if more > 0 else ""
    return Listing(caption, tuple(columns), tuple(every[:MAX_ROWS]), left_off)


def page(template: str, frame: Frame, **values: object) -> str:
    """The page. template: a file beside this one, for what stands inside the frame; values: what it shows."""
    style, script = Markup(style_sheet() + _own("page.css")), Markup(_own("page.js"))
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, auto_reload=False
    )
    environment.filters |= {"times": times_text, "counted": count_text}
    return environment.get_template(template).render(
        **values, status=frame.status, status_word=frame.word, subject=frame.subject, about=frame.about, contents=frame.contents,
        generated_at=frame.generated_at, tool_version=frame.tool_version, style=style, script=script, policy=_policy(style, script), ids=_Ids(),
    )  # fmt: skip


def _own(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing but this page's own style and script may have an effect."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; img-src data:; base-uri 'none'; form-action 'none'"
