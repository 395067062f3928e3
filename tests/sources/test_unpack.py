"""Tests of `recompile_watch.sources.unpack`: gzip and zstd, whole, cut, damaged and hostile."""

from __future__ import annotations

import gzip
import random
import struct
from itertools import pairwise

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from recompile_watch.sources.limits import ReadLimits, Unread
from recompile_watch.sources.sniff import Compression
from recompile_watch.sources.unpack import unpack

DEFAULT_LIMITS = ReadLimits()
GZIP, ZSTD = Compression.GZIP, Compression.ZSTD
SKIPPABLE = struct.pack("<II", 0x184D2A51, 5) + b"notes"
# Hard to pack, so that a packed byte stands for few unpacked ones.
NOISE = random.Random(1).randbytes(300_000).hex().encode()


def packed_with(compression: Compression, content: bytes) -> bytes:
    """One gzip member or zstd frame, with its checksum."""
    if compression is GZIP:
        return gzip.compress(content)
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


def unpacked(chunks: list[bytes], compression: Compression, limits: ReadLimits = DEFAULT_LIMITS) -> tuple[bytes, dict[str, int]]:
    """The bytes and what was counted; also checks the promises on the blocks' sizes."""
    unread = Unread()
    blocks = list(unpack(iter(chunks), compression, limits, unread))
    assert all(0 < len(block) <= 2 * limits.block_bytes for block in blocks)
    return b"".join(blocks), unread.counts


def cut(whole: bytes, places: list[int]) -> list[bytes]:
    """`whole` in non-empty pieces, cut at `places` (any numbers, taken modulo its length)."""
    borders = sorted({0, len(whole), *(place % (len(whole) + 1) for place in places)})
    return [whole[start:end] for start, end in pairwise(borders)]


@given(
    st.lists(st.binary(max_size=200), min_size=1, max_size=6),
    st.lists(st.integers(0, 10_000), max_size=20),
    st.sampled_from([GZIP, ZSTD]),
    st.integers(1, 300),
)
def test_members_and_borders_do_not_matter(parts: list[bytes], places: list[int], compression: Compression, block_bytes: int) -> None:
    """However content is split into members and those into chunks, the same bytes come out."""
    packed = b"".join(packed_with(compression, part) for part in parts)
    limits = ReadLimits(block_bytes=block_bytes)
    assert unpacked(cut(packed, places), compression, limits) == (b"".join(parts), {})


@given(st.lists(st.integers(0, 10_000), max_size=20), st.sampled_from([GZIP, ZSTD]), st.integers(0, 600))
def test_a_cut_off_file_gives_a_beginning(places: list[int], compression: Compression, length: int) -> None:
    """Any part of a file from its start gives a start of its content, and is counted unless it ends between members."""
    members = [packed_with(compression, NOISE[at : at + 300]) for at in (0, 300)]
    packed = b"".join(members)[:length]
    content, counts = unpacked(cut(packed, places), compression)
    assert NOISE[:600].startswith(content)
    is_whole = len(packed) in (0, len(members[0]), len(members[0]) + len(members[1]))
    assert bool(counts) != is_whole


def test_truncated_gzip_gives_everything_decodable() -> None:
    """Without its checksum and length, all of the content; without half of it, about half."""
    packed = gzip.compress(NOISE)
    assert len(unpacked([packed[: len(packed) // 2]], GZIP)[0]) > len(NOISE) * 0.45
    content, counts = unpacked([packed[:-8]], GZIP)
    assert counts == {"truncated_gzip": 1}
    assert content == NOISE


def test_a_gzip_with_a_wrong_checksum_gives_its_content() -> None:
    """zlib throws away what came before the error in the same call; here it is kept."""
    damaged = bytearray(gzip.compress(NOISE))
    damaged[-6] ^= 0xFF
    assert unpacked([bytes(damaged)], GZIP) == (NOISE, {"bad_gzip_member": 1})


def test_damage_inside_a_gzip_keeps_what_came_before() -> None:
    """From the damaged byte on nothing is to be had, up to it everything."""
    packed = gzip.compress(NOISE)
    half = len(packed) // 2
    content, counts = unpacked([packed[:half] + b"\xff" * 500 + packed[half + 500 :]], GZIP)
    assert counts == {"bad_gzip_member": 1}
    assert len(content) > len(NOISE) * 0.45
    assert content[:250_000] == NOISE[:250_000]


def test_damage_inside_a_zstd_frame_keeps_the_frames_before() -> None:
    """Whole frames before the damaged one are given."""
    damaged = bytearray(packed_with(ZSTD, NOISE))
    damaged[5000:5100] = bytes(100)
    content, counts = unpacked([zstandard.compress(b"first\n") + damaged], ZSTD)
    assert content.startswith(b"first\n")
    assert counts == {"bad_zstd_frame": 1}


def test_truncated_zstd_gives_its_whole_blocks() -> None:
    """All 128 KiB blocks that are there come out."""
    content, counts = unpacked([packed_with(ZSTD, NOISE)[:-10]], ZSTD)
    assert counts == {"truncated_zstd": 1}
    assert NOISE.startswith(content)
    assert len(content) >= len(NOISE) - (128 << 10)


def test_skippable_zstd_frames_are_skipped() -> None:
    """At the start, between frames and at the end."""
    packed = SKIPPABLE + zstandard.compress(b"one") + SKIPPABLE + zstandard.compress(b"two") + SKIPPABLE
    assert unpacked([packed], ZSTD) == (b"onetwo", {})


def test_a_zstd_frame_that_wants_too_much_memory_is_refused() -> None:
    """A window of 512 MiB (`zstd --long=29`) is not granted."""
    parameters = zstandard.ZstdCompressionParameters(window_log=29)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = compressor.compress(b"a" * 1000) + compressor.flush()
    assert unpacked([packed], ZSTD) == (b"", {"bad_zstd_frame": 1})


@pytest.mark.parametrize("compression", [GZIP, ZSTD])
@pytest.mark.parametrize(
    ("tail", "reasons"),
    [
        (b"hello, not a member", {"trailing_garbage": 1}),
        (b"x", {"trailing_garbage": 1}),
        (bytes(100_000), {"zero_padding": 1}),
        (bytes(3) + b"garbage", {"zero_padding": 1, "trailing_garbage": 1}),
    ],
    ids=["garbage", "one_byte", "padding", "padding_and_garbage"],
)
def test_what_follows_the_last_member_is_counted(compression: Compression, tail: bytes, reasons: dict[str, int]) -> None:
    """Nothing after the last member spoils the members."""
    packed = packed_with(compression, b"content\n") + tail
    assert unpacked([packed], compression) == (b"content\n", reasons)
    assert unpacked([packed[at : at + 1] for at in range(min(len(packed), 500))], compression)[0] == b"content\n"


def test_a_member_after_padding_is_read() -> None:
    """Zeros between members, as block devices leave them, hide nothing."""
    packed = gzip.compress(b"one\n") + bytes(512) + gzip.compress(b"two\n")
    assert unpacked([packed], GZIP) == (b"one\ntwo\n", {"zero_padding": 1})


def test_a_gzip_bomb_stops_at_the_limit() -> None:
    """What a file gives in all is limited."""
    packed = gzip.compress(bytes(50 << 20))
    content, counts = unpacked([packed], GZIP, ReadLimits(max_unpacked_bytes=1 << 20))
    assert counts == {"bomb": 1}
    assert len(content) <= 34 << 20


def test_a_zstd_bomb_stops_at_the_ratio() -> None:
    """Past `ratio_from_bytes`, a file may not give more than `max_ratio` bytes for one."""
    compressor = zstandard.ZstdCompressor().compressobj()
    packed = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(256)) + compressor.flush()
    content, counts = unpacked([packed], ZSTD, ReadLimits(ratio_from_bytes=1 << 20))
    assert counts == {"bomb": 1}
    assert len(content) <= 65 << 20


def test_a_dense_but_small_file_is_no_bomb() -> None:
    """Below `ratio_from_bytes` any ratio is right: a hole of NULs packs a thousandfold."""
    assert unpacked([gzip.compress(bytes(5 << 20))], GZIP, ReadLimits(max_ratio=10)) == (bytes(5 << 20), {})


def test_very_many_empty_members_are_read() -> None:
    """Ten thousand members without content cost no quadratic time and hide nothing."""
    assert unpacked([gzip.compress(b"") * 10_000 + gzip.compress(b"end\n")], GZIP) == (b"end\n", {})
