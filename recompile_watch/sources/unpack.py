"""Packed chunks become the bytes they hold: gzip with many members, zstd with many frames, broken ones as far as they go.

Chunks are fed to the decoders in slices so small that none can become more than 64 MiB: a bomb costs time, never memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from recompile_watch.sources.limits import ReadLimits, Unread
from recompile_watch.sources.sniff import MAGIC_BYTES, Compression, compression_of

_GZIP_WRAPPER = 16 + zlib.MAX_WBITS
_GZIP_SLICE_BYTES = 32 << 10  # at most 1032 times as much comes out
_ZSTD_SLICE_BYTES = 2 << 10  # the densest block is 4 bytes for 128 KiB
_ZSTD_WINDOW_BYTES = 128 << 20  # memory one frame may ask for: what the zstd command allows without --long


class _Member(Protocol):
    """One gzip member or zstd frame being unpacked.

    is_broken: true once it held something impossible; nothing more comes of it.
    """

    is_broken: bool

    @property
    def is_finished(self) -> bool: ...
    @property
    def rest(self) -> bytes: ...
    def unpack(self, packed: bytes) -> bytes: ...


class _GzipMember:
    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(wbits=_GZIP_WRAPPER)
        self.is_broken = False

    @property
    def is_finished(self) -> bool:
        return self._inflater.eof

    @property
    def rest(self) -> bytes:
        return self._inflater.unused_data

    def unpack(self, packed: bytes) -> bytes:
        before = self._inflater.copy()
        try:
            return self._inflater.decompress(packed)
        except zlib.error:
            self.is_broken = True
            self._inflater = before
            return self._salvage(packed)

    def _salvage(self, packed: bytes) -> bytes:
        """All that comes before the error; zlib throws a whole call's output away, so byte by byte."""
        good: list[bytes] = []
        for at in range(len(packed)):
            try:
                good.append(self._inflater.decompress(packed[at : at + 1]))
            except zlib.error:
                break
        return b"".join(good)


class _ZstdFrame:
    def __init__(self) -> None:
        import zstandard  # only where it is used: most logs are plain

        self._broken = zstandard.ZstdError
        self._decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES).decompressobj()
        self.is_broken = False

    @property
    def is_finished(self) -> bool:
        return self._decoder.eof

    @property
    def rest(self) -> bytes:
        return self._decoder.unused_data

    def unpack(self, packed: bytes) -> bytes:
        try:
            return self._decoder.decompress(packed)
        except self._broken:
            self.is_broken = True
            return b""


@dataclass(frozen=True, slots=True)
class _Layout:
    """What differs between the two packings."""

    compression: Compression
    new_member: Callable[[], _Member]
    slice_bytes: int
    bad_reason: str
    truncated_reason: str


_GZIP_LAYOUT = _Layout(Compression.GZIP, _GzipMember, _GZIP_SLICE_BYTES, "bad_gzip_member", "truncated_gzip")
_ZSTD_LAYOUT = _Layout(Compression.ZSTD, _ZstdFrame, _ZSTD_SLICE_BYTES, "bad_zstd_frame", "truncated_zstd")


class _Unpacker:
    """Member after member out of slices cut anywhere; stops for good at the first that is broken or not one."""

    def __init__(self, layout: _Layout, limits: ReadLimits, unread: Unread) -> None:
        self._layout = layout
        self._limits = limits
        self._unread = unread
        self._member: _Member | None = None
        self._lead = b""  # between members: bytes too few to tell the next one's magic
        self._is_padded = False
        self._taken_bytes = 0
        self._given_bytes = 0
        self.is_stopped = False

    def feed(self, packed: bytes) -> bytes:
        """What `packed` adds; empty when it only begins something."""
        self._taken_bytes += len(packed)
        pieces: list[bytes] = []
        while packed and not self.is_stopped:
            if self._member is None:
                packed = self._start(packed)
            else:
                pieces.append(self._member.unpack(packed))
                packed = self._after(self._member)
        unpacked = b"".join(pieces)
        self._given_bytes += len(unpacked)
        if self._is_bomb():
            self._stop("bomb")
        return unpacked

    def finish(self) -> None:
        """Counts what the end of the file cut off."""
        if self._member is not None:
            self._stop(self._layout.truncated_reason)
        elif self._lead:
            self._stop("trailing_garbage")

    def _start(self, packed: bytes) -> bytes:
        """Opens the member that `packed` starts, past zero padding (tapes, block devices); what to feed to it."""
        packed = self._lead + packed
        member_start = packed.lstrip(b"\0")
        if len(member_start) < len(packed) and not self._is_padded:
            self._is_padded = True
            self._unread.add("zero_padding")
        self._lead = b""
        if len(member_start) < MAGIC_BYTES:
            self._lead = member_start
            return b""
        if compression_of(member_start) is not self._layout.compression:
            self._stop("trailing_garbage")
            return b""
        self._member = self._layout.new_member()
        return member_start

    def _after(self, member: _Member) -> bytes:
        """What is left for the next member once `member` has taken its part."""
        if member.is_broken:
            self._stop(self._layout.bad_reason)
            return b""
        if not member.is_finished:
            return b""
        self._member = None
        return member.rest

    def _is_bomb(self) -> bool:
        given = self._given_bytes
        too_dense = given > self._limits.ratio_from_bytes and given > self._taken_bytes * self._limits.max_ratio
        return too_dense or given > self._limits.max_unpacked_bytes

    def _stop(self, reason: str) -> None:
        if not self.is_stopped:
            self._unread.add(reason)
        self.is_stopped = True


def unpack(chunks: Iterator[bytes], compression: Compression, limits: ReadLimits, unread: Unread) -> Iterator[bytes]:
    """The bytes that `chunks` hold, in non-empty blocks of about `limits.block_bytes`.

    PLAIN passes through. Damage ends the output after the last good byte and is counted in `unread`; nothing is raised.
    """
    match compression:
        case Compression.PLAIN:
            return chunks
        case Compression.GZIP:
            return _unpack(chunks, _GZIP_LAYOUT, limits, unread)
        case Compression.ZSTD:
            return _unpack(chunks, _ZSTD_LAYOUT, limits, unread)


def _unpack(chunks: Iterator[bytes], layout: _Layout, limits: ReadLimits, unread: Unread) -> Iterator[bytes]:
    unpacker = _Unpacker(layout, limits, unread)
    for chunk in chunks:
        pending: list[bytes] = []
        pending_bytes = 0
        for start in range(0, len(chunk), layout.slice_bytes):
            piece = unpacker.feed(chunk[start : start + layout.slice_bytes])
            pending.append(piece)
            pending_bytes += len(piece)
            if pending_bytes >= limits.block_bytes:
                yield from _cut(b"".join(pending), limits.block_bytes)
                pending, pending_bytes = [], 0
            if unpacker.is_stopped:
                break
        # Nothing is held back for the next chunk: a live stream may not bring one for hours.
        yield from _cut(b"".join(pending), limits.block_bytes)
        if unpacker.is_stopped:
            return
    unpacker.finish()


def _cut(unpacked: bytes, block_bytes: int) -> Iterator[bytes]:
    if len(unpacked) <= 2 * block_bytes:
        if unpacked:
            yield unpacked
        return
    for start in range(0, len(unpacked), block_bytes):
        yield unpacked[start : start + block_bytes]
