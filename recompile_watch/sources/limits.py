"""How much a reader may take, and the tally of what it could not read."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Bounds for reading one file.

    block_bytes: size of the blocks handed out, about; 1 MiB stays in a processor's second-level cache.
    max_unpacked_bytes: a packed file is left off, as a bomb, once it has given more than this.
    max_ratio, ratio_from_bytes: the same once it has given over ratio_from_bytes and over max_ratio bytes for each byte
        on disk. gzip cannot exceed 1032:1 (RFC 1951), which a log of NULs left behind by copy-and-truncate does reach; so
        only a zstd bomb (up to 32768:1) meets the ratio, and a gzip bomb meets max_unpacked_bytes.
    growth_bytes: a file that grows while it is read is followed this far past its size at opening.
    fifo_wait_s: how long a FIFO may stay without a writer.
    """

    block_bytes: int = 1 << 20
    max_unpacked_bytes: int = 64 << 30
    max_ratio: int = 2000
    ratio_from_bytes: int = 1 << 30
    growth_bytes: int = 64 << 20
    fifo_wait_s: float = 5.0


@dataclass(frozen=True, slots=True)
class FindLimits:
    """Bounds for looking through folders, for each argument.

    max_depth: folders below the folder given (1 is its direct subfolder).
    max_entries: files and folders looked at.
    """

    max_depth: int = 32
    max_entries: int = 200_000


@dataclass(slots=True)
class Unread:
    """What was left unread, by reason.

    counts: reason to number of occurrences. Reasons of reading: truncated_gzip, bad_gzip_member, truncated_zstd,
        bad_zstd_frame, trailing_garbage and zero_padding (after the last gzip member or zstd frame; the padding loses
        nothing), bomb, invalid_utf16 (one for each character replaced by U+FFFD), shrunk_while_read, grew_past_limit,
        vanished. Reasons of finding: binary, unsupported_compression, not_a_regular_file, broken_link, packed_copy (a
        packed twin of a file that is read).
    """

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, reason: str, times: int = 1) -> None:
        """Count `reason`, `times` more times."""
        self.counts[reason] = self.counts.get(reason, 0) + times
