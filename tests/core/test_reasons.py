"""Tests of `recompile_watch.core.reasons`: what is remembered of a line's shape is what reading the line says."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recompile_watch.core.events import Reason
from recompile_watch.core.reasons import Reasons
from tests.conftest import DATA

FUNCTIONS = ("forward", "step")
LINES = [
    b"- 15/3: tensor 'k' stride mismatch at index 0. expected 11, actual 15  # x = x.view(batch, seq, -1)  # app/rope.py:839 in embedding",
    b"- 0/0: L['x'].size()[0] == 4                                            # app.py:12",
    b"- 1/0: 2 <= L['x'].size()[1] <= 9223372036854775807",
    b"- 1/0: 3 <= L['x'].size()[1] <= 9223372036854775807",
    b"- 6/7: kv_cache._current_idx[7] == 0  # k[self._current_idx[7]] (HINT: torch.compile considers integer attributes of the nn.Module)",
    b"- 2/1: len(L['xs']) == 3; 2/0: x",
    b"- a - 1/0: L['n'] == 3 - 1/1: L['n'] == 4",
    b"- User stack trace:",
    b'-   File "/srv/app.py", line 336, in f',
    b"12/3: L['n'] == 10",
    "- 3/1: L['größe'] == 30".encode(),
    b"- 4/10_1: 12",
    b"- 4/1:",
    b"",
]


def alone(line: bytes, function: str) -> list[Reason]:
    """What a line says to who has read nothing before it."""
    return [*Reasons().on([line], function)]


def other_digits(line: bytes, draw: random.Random) -> bytes:
    """A line of the same shape."""
    return re.sub(rb"[0-9]", lambda _: b"%d" % draw.randrange(10), line)


def corpus_lines() -> Iterator[bytes]:
    """The lines of recompile blocks and of limits in the logs that come with the tests, from the dash on; and those out of threads."""
    for path in sorted((DATA / "torch").glob("*/*.log")):
        yield from (line[line.index(b"- ") :] for line in path.read_bytes().split(b"\n") if b"- " in line and b"/" in line)
    for path in sorted((DATA / "threads").glob("*.toml")):
        for case in tomllib.loads(path.read_text())["case"]:
            yield from (line[line.index("- ") :].encode() for line in case["log"].split("\n") if "- " in line)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_lines_of_one_shape_say_what_they_say_alone(function: str) -> None:
    """Whatever lines of the same shape were read before it, a line gives the same reasons."""
    draw = random.Random(7)
    reasons = Reasons()
    lines = [*LINES, *sorted(set(corpus_lines()))]
    assert len(lines) > 1_000
    for line in lines:
        for one in (line, other_digits(line, draw), other_digits(line, draw)):
            assert [*reasons.on([one], function)] == alone(one, function), one


@given(st.lists(st.sampled_from(LINES) | st.binary(max_size=60), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_any_lines_read_together_say_what_they_say_alone(lines: list[bytes], draw: random.Random) -> None:
    """A block gives the reasons of its lines in their order, however often each shape comes."""
    block = [other_digits(line, draw) for line in lines * 2]
    assert [*Reasons().on(block, "step")] == [reason for line in block for reason in alone(line, "step")]


def test_the_number_that_tells_a_size_from_zero_and_one_is_read() -> None:
    """``2 <= x.size()[0]`` is a size that became 0 or 1; with another number it is a condition of the code."""
    found = [*islice(Reasons().on([LINES[2], LINES[3], LINES[2]], "step"), 3)]
    assert [reason.cause for reason in found] == ["size_zero_one", "symbolic_shape", "size_zero_one"]
