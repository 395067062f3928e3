"""Tests of `recompile_watch.sources.utf16`: UTF-16 in pieces."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recompile_watch.sources.limits import Unread
from recompile_watch.sources.sniff import Encoding
from recompile_watch.sources.utf16 import utf8_from_utf16

UTF16 = [Encoding.UTF16_LE, Encoding.UTF16_BE]


def cut(whole: bytes, cuts: list[int]) -> list[bytes]:
    """`whole` in pieces, cut at `cuts` (any numbers, taken modulo its length)."""
    borders = sorted({0, len(whole), *(place % (len(whole) + 1) for place in cuts)})
    return [whole[start:end] for start, end in pairwise(borders)]


def converted(blocks: list[bytes], encoding: Encoding) -> tuple[bytes, dict[str, int]]:
    """The UTF-8 bytes and what was counted."""
    unread = Unread()
    pieces = list(utf8_from_utf16(iter(blocks), encoding, unread))
    assert all(pieces)
    return b"".join(pieces), unread.counts


@given(st.text(), st.lists(st.integers(0, 10_000)), st.sampled_from(UTF16), st.booleans())
def test_borders_do_not_matter(text: str, cuts: list[int], encoding: Encoding, has_mark: bool) -> None:
    """Cut anywhere, also inside a surrogate pair, the text comes out whole and without its mark."""
    text = text.removeprefix("\ufeff")
    encoded = ("\ufeff" * has_mark + text).encode(encoding.value)
    assert converted(cut(encoded, cuts), encoding) == (text.encode(), {})


@given(st.binary(), st.lists(st.integers(0, 10_000)), st.sampled_from(UTF16))
def test_borders_do_not_matter_in_damage_either(encoded: bytes, cuts: list[int], encoding: Encoding) -> None:
    """Any bytes give valid UTF-8, the same however they are cut."""
    whole = converted([encoded], encoding)
    assert converted(cut(encoded, cuts), encoding) == whole
    whole[0].decode()


@pytest.mark.parametrize("tail", [b"\x3d\xd8", b"\x3d\xd8\x00", b"a"], ids=["high_surrogate", "pair_and_a_half", "odd_byte"])
def test_a_cut_off_end_is_counted(tail: bytes) -> None:
    """Half a character at the end becomes U+FFFD and is counted once."""
    assert converted([b"a\0" + tail], Encoding.UTF16_LE) == ("a\ufffd".encode(), {"invalid_utf16": 1})


def test_a_lone_surrogate_is_counted() -> None:
    """A surrogate without its other half becomes U+FFFD; what follows stays."""
    assert converted([b"\x00\xdca\0"], Encoding.UTF16_LE) == ("\ufffda".encode(), {"invalid_utf16": 1})


def test_hostile_input_costs_linear_time() -> None:
    """A megabyte of nothing but lone surrogates is converted at once (an error at a time takes minutes)."""
    started_s = time.process_time()
    _, counts = converted([b"\x00\xdc" * (1 << 19)], Encoding.UTF16_LE)
    assert counts == {"invalid_utf16": 1 << 19}
    assert time.process_time() - started_s < 5
