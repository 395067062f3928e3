"""Tests of logs that Python's rich laid out in columns."""

from __future__ import annotations

import pytest

from recompile_watch.core.grids import GridReader, grid_of
from tests.conftest import events_of_bytes

WIDTH = 76
FIRST, NEXT, BELOW = "[11/20/25 10:28:52] WARNING ", "                    INFO", ""
ROWS = (
    (FIRST, "torch._dynamo hit", "convert_frame.py:1358"),
    (BELOW, "config.recompile_limit", ""),
    (BELOW, "(8)", ""),
    (BELOW, "   function: 'rotate'", ""),
    (BELOW, "(/srv/a_very_long_folder_", ""),
    (BELOW, "name/rope.py:12)", ""),
    (BELOW, "   last reason: 5/7:", ""),
    (BELOW, "self.step == 3", ""),
    (BELOW, "# self.step += 1", ""),
    (BELOW, "To log all recompilation", ""),
    (BELOW, "reasons, use", ""),
    (BELOW, 'TORCH_LOGS="recompiles".', ""),
    (NEXT, "step 4, loss 0.12", "train.py:9"),
)


def laid_out() -> bytes:
    """The rows as rich prints them, and lines of others in front and behind."""
    rows = [f"{left:29}{text}".ljust(WIDTH - len(place)) + place for left, text, place in ROWS]
    return "\n".join(["loading weights", *rows, "WARNING  something of another logger", ""]).encode()


def test_a_record_in_columns_is_read() -> None:
    """Times, words wider than their column and a place of another length in the next row; lines that rich did not print are left alone."""
    (event,) = events_of_bytes(laid_out(), "bot.log")
    facts = (event["kind"], event["function"], event["file"], event["line_no"], event["at"]["line"])
    assert facts == ("recompile_limit_hit", "rotate", "/srv/a_very_long_folder_name/rope.py", 12, 2)
    assert str(event["time"]).startswith("2025-11-20T10:28:52")
    assert [(reason["entry"], reason["text"]) for reason in event["reasons"]] == [("5/7", "self.step == 3")]


@pytest.mark.parametrize(
    "lines",
    [
        [b"WARNING  cannot open model.py:12", b'  File "a.py", line 3', b"            return f(", b"                x)"],
        [b"INFO     step 4  train.py:9", b"INFO     step 40  train.py:9", b"             more"],
        [b"[10:28:52] INFO     text", b"[10:28:52] INFO     more text", b"                    rest"],
        [b"INFO     one", b"INFO     two", b"           x"],
        [],
    ],
)
def test_other_logs_are_no_grids(lines: list[bytes]) -> None:
    """A level of eight columns and a place behind the message are no layout by themselves."""
    assert grid_of(lines) is None


def test_blanks_cost_no_time() -> None:
    """A hostile line is looked at once."""
    assert grid_of([b"[11/20/25 10:28:52] WARNING  x" + b" " * 200_000 + b"a.py:1" + b" " * 200_000 + b"b"] * 20) is None


def test_a_column_without_an_end_is_cut() -> None:
    """What goes on for ever is given out in parts: memory stays bounded."""
    grid = grid_of(laid_out().split(b"\n")[1:-2])
    assert grid is not None
    reader = GridReader(grid)
    rest = b" " * grid.text + b"x" * (WIDTH - grid.text - 22)
    lines = [line for number in range(5000) for line in reader.line(number, number, rest if number else laid_out().split(b"\n")[1])]
    assert lines and max(len(text) for _, _, text in lines) < (1 << 16) + 2 * WIDTH
