"""Cells: a log that was exported as a table of comma-separated values, with a header line that names its columns.

Datadog, Splunk, Kibana, Azure, CloudWatch and Grafana export such tables: ``Date,Host,Service,Message``. A cell in quotes doubles its
own quotes, and may hold the several lines of one record.
"""

import re
from datetime import UTC, datetime
from typing import NamedTuple

from recompile_watch.core.carriers import iso_stamp
from recompile_watch.core.late import pattern
from recompile_watch.core.prefix_grammar import JSON_TEXT

_BOM = b"\xef\xbb\xbf"
_NAME = pattern(rb"[@\w][\w .@/\[\]()-]{0,80}")
_CELL = pattern(rb"\"(?P<quoted>(?:[^\"]|\"\")*)\"|(?P<bare>[^,\"\n][^,\n]*|)")
_TEXTS = frozenset(name.strip("@_").lower().encode() for name in JSON_TEXT)
_MILLISECONDS = pattern(rb"1\d{12}")
_MAX_CELLS = 60
_MAX_ROW_BYTES = 1 << 20
_MAX_ROW_LINES = 2_000

Line = tuple[int, int, bytes]  # number and offset of its physical line, text


class Columns(NamedTuple):
    """The columns of a table. width: how many there are; text: the place of the one that holds the log."""

    width: int
    text: int


def columns_of(head: bytes) -> Columns | None:
    """The columns of a log whose first line names them, one of them as what holds a message; None when it is no such table."""
    first, _, rest = head.removeprefix(_BOM).partition(b"\n")
    names = [cell for cell, _ in _cells(first.rstrip(b"\r"))[0]]
    if not 2 <= len(names) <= _MAX_CELLS or not all(_NAME.fullmatch(name) for name in names):
        return None
    text = next((place for place, name in enumerate(names) if name.strip(b"@_").lower() in _TEXTS), None)
    if text is None:
        return None
    cells, _ = _cells(rest)
    is_row = len(cells) == len(names) and (rest[cells[text][1] - 1 : cells[text][1]] == b'"' or any(_time_of(cell) for cell, _ in cells))
    return Columns(len(names), text) if is_row else None


def _cells(text: bytes) -> tuple[list[tuple[bytes, int]], int]:
    """The cells of the row that a text begins with, each with the place where it begins, and where the row ends."""
    cells: list[tuple[bytes, int]] = []
    at = 0
    while len(cells) <= _MAX_CELLS and (cell := _CELL.match(text, at)) is not None:
        quoted = cell["quoted"]
        cells.append((cell["bare"].rstrip(b"\r"), at) if quoted is None else (quoted.replace(b'""', b'"'), at + 1))
        at = cell.end()
        if text[at : at + 1] != b",":
            break
        at += 1
    return cells, at


def _time_of(cell: bytes) -> bytes:
    """The time that a cell shows, with its zone, as what carries a line prints it; b"" where it shows none."""
    if _MILLISECONDS.fullmatch(cell) is not None:
        return datetime.fromtimestamp(int(cell) / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z ").encode()
    return cell.replace(b" ", b"T", 1) + b" " if cell[:2] == b"20" and iso_stamp(cell).form == "zoned" else b""


class Cells:
    """Gives the lines of a table's messages, each behind the time of its row; takes physical lines, as ``Unwrapper`` does."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._row: list[Line] = []
        self._quotes = self._size = 0
        self._is_header = True

    def line(self, number: int, offset: int, raw: bytes) -> list[Line]:
        """The lines of the row that is complete now: the one in front of this line, where that begins another."""
        is_within = self._quotes % 2 and self._size < _MAX_ROW_BYTES and len(self._row) < _MAX_ROW_LINES
        done = [] if is_within else self.end()
        self._row.append((number, offset, raw.rstrip(b"\r")))
        self._quotes += raw.count(b'"')
        self._size += len(raw)
        return done

    def end(self) -> list[Line]:
        """The lines of the row that is still held."""
        row, self._row, self._quotes, self._size = self._row, [], 0, 0
        if self._is_header and row:
            self._is_header = False
            return []
        text = b"\n".join(line for _, _, line in row)
        cells, end = _cells(text)
        if len(cells) != self._columns.width or end < len(text):
            return row  # none of this table
        message, begin = cells[self._columns.text]
        time = next((time for cell, _ in cells if (time := _time_of(cell))), b"")
        first = text.count(b"\n", 0, begin)
        return [(*place[:2], time + line) for place, line in zip(row[first:], re.split(rb"\r?\n", message.rstrip(b"\r\n")), strict=False)]
