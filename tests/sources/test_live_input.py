"""Tests of `recompile_watch.sources.live_input`: standard input, from a pipe that the test holds."""

from __future__ import annotations

import os

from recompile_watch.sources.follow import Chunk, GenerationEnded, GenerationStarted
from recompile_watch.sources.live_input import LiveInput


def test_lines_come_as_they_are_written_and_the_end_ends_it() -> None:
    """Nothing waits; an unfinished line is held until its line feed, or given when the writer goes."""
    read_fd, write_fd = os.pipe()
    source = LiveInput(read_fd)
    assert source.poll() == [GenerationStarted("-", 1, 0, 0)]
    os.write(write_fd, b"one\ntw")
    assert source.poll() == [Chunk("-", 1, 0, 1, b"one\n")]
    os.write(write_fd, b"o\nthree")
    assert source.poll() == [Chunk("-", 1, 4, 2, b"two\n")]
    os.close(write_fd)
    assert source.poll() == [Chunk("-", 1, 8, 3, b"three"), GenerationEnded("-", 1)]
    assert source.is_ended and source.poll() == []
    os.close(read_fd)


def test_a_monster_line_comes_in_pieces() -> None:
    """Memory stays bounded: a line beyond 1 MiB is given in parts, and the next line whole."""
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    source = LiveInput(read_fd)
    text = b"x" * 3_000_000 + b"\ntwo\n"
    given: list[Chunk] = []
    while text:
        text = text[os.write(write_fd, text[:60_000]) :]
        given += [item for item in source.poll() if isinstance(item, Chunk)]
    assert max(len(chunk.payload) for chunk in given) < 1_200_000
    assert given[-1].payload.endswith(b"\ntwo\n") and sum(len(chunk.payload) for chunk in given) == 3_000_005
    os.close(write_fd)
    os.close(read_fd)
