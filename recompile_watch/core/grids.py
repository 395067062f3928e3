"""Grids: a log that Python's rich laid out in columns, with the time and the level on the left and the place that logged on the right.

A message is broken at its blanks to fit its column, and goes on below itself; into a file rich prints 80 columns.
Source: rich/logging.py, rich/_log_render.py and rich/_wrap.py (divide_line), rich 10 to 15.
"""

import re
from collections import Counter
from operator import itemgetter
from typing import NamedTuple

from recompile_watch.core.boxes import found_no_room, is_boxed, width_of
from recompile_watch.core.cells import Line
from recompile_watch.core.late import pattern
from recompile_watch.core.prefix_grammar import ANSI, TORCH_SAYS

# "[11/20/25 10:28:52] WARNING  text     convert_frame.py:1358"; a time that the row in front shows already is left out.
_ROW = pattern(
    rb"(?:(?P<time>\[[^\]\n]{4,40}\]|\d[\d/:.,T-]{3,20}(?: [\d:.,]{5,15})?) | {5,42}|)(?P<level>DEBUG {3}|INFO {4}|WARNING |ERROR {3}|CRITICAL) (?! )"
)
_PLACE = pattern(rb"(?<= )[\w.<>-]{1,80}:\d{1,6}$")
_AMERICAN = pattern(rb"(\d\d)/(\d\d)/(\d\d) (\d\d:\d\d:\d\d)")  # %x of Python, which takes no locale by itself
_BEGINS = pattern(rb"User (?:code traceback|stack trace):|Traceback \(most recent call last\)|" + TORCH_SAYS.pattern)
_LEVEL = 9  # columns of the level
_MIN_WIDTH, _MAX_WIDTH = 40, 400
_MAX_BYTES = 1 << 16  # of a line that was put together


class Grid(NamedTuple):
    """Where the columns are. text: where that of the messages begins. width: of the whole grid. has_places: they stand at its right end."""

    text: int
    width: int
    has_places: bool


def grid_of(lines: list[bytes]) -> Grid | None:
    """The columns of a log that rich laid out; None where it did not."""
    plain = [*map(_plain, lines)]
    rows = [(line, row) for line in plain if (row := _ROW.match(line)) is not None]
    text = max(Counter(row.end() for _, row in rows).items(), key=itemgetter(1), default=(0, 0))[0]
    rows = [(line, row) for line, row in rows if row.end() == text]
    if not rows or not any(line[:text].isspace() and line.strip() for line in plain):
        return None  # nothing goes on below itself
    places = [_place_at(line) for line, _ in rows]
    has_places = 0 not in places and any(line[at - 2 : at] == b"  " for at, (line, _) in zip(places, rows, strict=True))
    widths = {width_of(line.rstrip() if has_places else line) for line, _ in rows}
    width = widths.pop()
    is_grid = not widths and _MIN_WIDTH <= width <= _MAX_WIDTH and max(width_of(line.rstrip()) for line in plain if line[:text].isspace()) <= width
    return Grid(text, width, has_places) if is_grid and (has_places or (len(rows) > 1 and text > _LEVEL)) else None


def _plain(line: bytes) -> bytes:
    return ANSI.sub(b"", line).rstrip(b"\r")


def _place_at(line: bytes) -> int:
    """Where the place begins that stands at the end of a row; 0 where none does."""
    place = _PLACE.search(line.rstrip())
    return 0 if place is None else place.start()


class GridReader:
    """Gives the lines of the messages as they were before they were laid out; takes physical lines, as ``Unwrapper`` does."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._time = b""
        self._held: Line | None = None
        self._width = 0  # of the message's column: that of places is as wide as this row's
        self._previous = b""

    def line(self, number: int, offset: int, raw: bytes) -> list[Line]:
        """The lines that are complete now."""
        line = _plain(raw)
        row = _ROW.match(line)
        if row is not None and row.end() == self._grid.text:
            return self._begun(number, offset, line, row)
        if not self._width or line[: self._grid.text].strip() or not line:
            done = self.end()
            self._width = 0
            return [*done, (number, offset, raw)]
        text = line[self._grid.text :].rstrip()
        if self._held is not None and len(self._held[2]) < _MAX_BYTES and self._goes_on(text):
            is_cut = width_of(self._previous) == self._width and b" " not in self._previous.lstrip()  # a word that is wider than the column
            glue = b"" if is_cut else b" " if self._previous else b" " * self._width
            self._held = (*self._held[:2], self._held[2] + glue + text)
            self._previous = text
            return []
        done = self.end()
        self._held, self._previous = (number, offset, text), text
        return done

    def end(self) -> list[Line]:
        """The line that is still held."""
        done = [] if self._held is None else [self._held]
        self._held = None
        return done

    def _begun(self, number: int, offset: int, line: bytes, row: "re.Match[bytes]") -> list[Line]:
        done = self.end()
        end = (_place_at(line) if self._grid.has_places else 0) or len(line)
        self._previous = line[self._grid.text : end].rstrip()
        self._width = self._grid.width - self._grid.text - (width_of(line[end:].rstrip()) + 1 if end < len(line) else 0)
        self._time = self._time if row["time"] is None else _AMERICAN.sub(rb"20\3-\1-\2 \4", row["time"].strip(b"[]"))
        self._held = number, offset, b" ".join(filter(None, (self._time, row["level"].rstrip(), self._previous)))
        return done

    def _goes_on(self, text: bytes) -> bool:
        """True when a line of the column is the rest of the one above: its first word found no room there.

        torch pads guards in front of their comments with blanks that the break took.
        """
        if not self._previous:  # marks below a frame's code whose blanks are wider than the column
            return text != b"" and not text.strip(b"~^ ")
        if self._previous.endswith(b" raised:"):
            return False  # what a compiler raised, below its name
        if text[:1] in (b"", b" ") or is_boxed(text) or is_boxed(self._previous) or _BEGINS.match(text) is not None:
            return False
        return text[:1] == b"#" or found_no_room(self._previous, text, self._width)
