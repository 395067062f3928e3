"""Compile ids: the bracketed name of one compilation, such as ``[6/8]``.

Format (torch/_guards.py, class CompileId, torch 2.1 to 2.15): ``frame/frame_compile`` with an optional
``_attempt`` suffix when the analysis was restarted, and a ``!n/`` in front under compiled autograd; ``!0`` alone
is compiled autograd outside any frame.
"""

from functools import lru_cache
from typing import NamedTuple

from recompile_watch.core.late import pattern

COMPILE_ID = rb"!?\d{1,9}(?:/\d{1,9}){0,2}(?:_\d{1,9})?"
_PARTS = pattern(r"(?:!(?P<autograd>\d+)(?:/|(?=_|$)))?(?:(?P<frame>\d+)/(?P<compile>\d+))?(?:_(?P<attempt>\d+))?")


class CompileId(NamedTuple):
    """One compilation. ``frame_compile`` 0 is the frame's first compile, n its n-th recompile."""

    autograd: int | None
    frame: int | None
    frame_compile: int | None
    attempt: int


@lru_cache(maxsize=4096)
def parse_compile_id(text: str) -> CompileId | None:
    """The parts of ``"6/8"``, ``"6/8_1"``, ``"!0/6/8"`` or ``"!0"``; None when the text is no compile id."""
    match = _PARTS.fullmatch(text)
    if match is None or not text:
        return None
    part = {name: None if value is None else int(value) for name, value in match.groupdict().items()}
    if part["autograd"] is None and part["frame"] is None:
        return None
    return CompileId(part["autograd"], part["frame"], part["compile"], part["attempt"] or 0)


def entry_number(text: str | None) -> int:
    """Which cache entry of its frame a compile id names; -1 where it names none."""
    parsed = parse_compile_id(text) if text else None
    return parsed.frame_compile if parsed is not None and parsed.frame_compile is not None else -1


def without_attempt(text: str) -> str:
    """The compile id without the restart suffix: ``"6/8_1"`` is still the compile ``"6/8"``."""
    return text.partition("_")[0]
