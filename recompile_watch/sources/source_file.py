"""What a reader is given: one log, of one file or of a rotated family."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One log to read.

    path: as given or found, or `-` for standard input; of a rotated family its newest member.
    size_bytes: on disk, of all members together; None for standard input and a FIFO.
    modified_at: last change (of the newest member), UTC seconds since the epoch; None for standard input and a FIFO.
    family: the paths to read one after another, oldest first; `(path,)` where there is only one.
    """

    path: str
    size_bytes: int | None
    modified_at: float | None
    family: tuple[str, ...]
