"""Which file is this: signatures of its first bytes and of the bytes before a position."""

from __future__ import annotations

from hashlib import blake2b

from recompile_watch.sources.content import Content, open_content
from recompile_watch.sources.marks import Mark

SIGNATURE_BYTES = 1024
# First bytes alone, of a file of which nothing was given yet, tell it from others only from this many on.
TELLING_BYTES = 64
# Packed files are searched this far for the bytes before a position; beyond it their first bytes must do.
_SEARCHED_BYTES = 32 << 20


def digest(raw: bytes) -> str:
    """The signature of some bytes: 128 bits, in hex."""
    return blake2b(raw, digest_size=16).hexdigest()


def is_weak(mark: Mark) -> bool:
    """Nothing was given of the file, and its first bytes are too few to know it by after a restart: its time tells more."""
    return not mark.position and mark.head_bytes < TELLING_BYTES


def holds(content: Content, mark: Mark) -> bool:
    """`content` begins with what `mark` saw and has the bytes before its position: all up to there is the same.

    Reads a packed content up to the position, at most 32 MiB. Raises OSError.
    """
    if content.is_growing and content.status().st_size < mark.position:
        return False
    head = content.read(0, mark.head_bytes)
    if len(head) < mark.head_bytes or (head and digest(head) != mark.head_hash):
        return False
    start = mark.position - mark.tail_bytes
    if not content.seek(start, _SEARCHED_BYTES):
        return True
    tail = content.read(start, mark.tail_bytes)
    return len(tail) == mark.tail_bytes and (not tail or digest(tail) == mark.tail_hash)


def open_holding(path: str, mark: Mark) -> Content | None:
    """The file at `path`, open, if it holds what `mark` saw. Raises OSError and SourceError when it cannot be read."""
    content = open_content(path)
    is_same = False
    try:
        is_same = holds(content, mark)
    finally:
        if not is_same:
            content.close()
    return content if is_same else None


def is_telling(mark: Mark) -> bool:
    """Enough was read that the same bytes in another file are no chance: both signatures are full."""
    return mark.head_bytes == mark.tail_bytes == SIGNATURE_BYTES
