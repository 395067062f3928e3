"""Which file is this: signatures of its first bytes and of the bytes before a position."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from recompile_watch.core.errors import SourceError
from recompile_watch.sources.content import Content, open_content
from recompile_watch.sources.marks import Mark

SIGNATURE_BYTES = 1024
# Packed files are searched this far for the bytes before a position; beyond it their first bytes must do.
_SEARCHED_BYTES = 32 << 20
_COMPARED_BYTES = 1 << 20
_NS = 1_000_000_000


def digest(raw: bytes) -> str:
    """The signature of some bytes: 128 bits, in hex."""
    return blake2b(raw, digest_size=16).hexdigest()


def is_weak(mark: Mark) -> bool:
    """Nothing was given of the file: its first bytes may be a banner like any other's, and its time tells more."""
    return not mark.tail_bytes


def given_end(mark: Mark) -> int:
    """Where the signature of the last bytes given ends; marks of old stores have it before their position."""
    return mark.given or (mark.position if mark.tail_bytes else 0)


def is_copy_of(content: Content, modified_ns: int, mark: Mark) -> bool:
    """`content`, changed then, was packed or copied from the file of a weak `mark`: packers keep its time, and a copy was seen.

    Raises OSError.
    """
    is_packed = not content.is_growing and kept_time_s(modified_ns) == kept_time_s(mark.modified_ns)
    return (is_packed and holds(content, mark)) or is_seen_copy(content, mark)


def kept_time_s(modified_ns: int) -> int:
    """What a packer keeps of a file's time: not every one keeps the fraction of the second."""
    return modified_ns // _NS


def holds(content: Content, mark: Mark) -> bool:
    """`content` begins with what `mark` saw and has the last bytes that were given, or is the copy that was seen: all up to there is the same.

    Reads a packed content so far, at most 32 MiB. Raises OSError.
    """
    end = given_end(mark)
    if mark.tail_bytes < min(end, SIGNATURE_BYTES):
        return False
    head = content.read(0, mark.head_bytes)
    is_copy = mark.copied_bytes < end and is_seen_copy(content, mark)  # before the end: a packed content reads forward only
    if len(head) < mark.head_bytes or (head and digest(head) != mark.head_hash):
        return is_copy
    return is_copy or not mark.tail_bytes or has_before(content, end, mark.tail_hash)


def is_seen_copy(content: Content, mark: Mark) -> bool:
    """`content` is the copy that was seen beside the file of `mark`: it ends where that did, with the same bytes. Raises OSError."""
    start = max(0, mark.copied_bytes - SIGNATURE_BYTES)
    if not mark.copied_bytes or not content.seek(start, _SEARCHED_BYTES):
        return False
    end = content.read(start, mark.copied_bytes - start + 1)
    return len(end) == mark.copied_bytes - start and digest(end) == mark.copied_hash


def has_before(content: Content, position: int, signature: str) -> bool:
    """The bytes before `position` are those; taken for them where they are too far off in a packed content. Raises OSError."""
    start = max(0, position - SIGNATURE_BYTES)
    return not content.seek(start, _SEARCHED_BYTES) or digest(content.read(start, position - start)) == signature


def copied_bytes(content: Content, copy: Content) -> int:
    """How much `copy` holds, as far as 32 MiB, if `content` begins with all of it; else 0. Raises OSError."""
    position = 0
    while position < _SEARCHED_BYTES and copy.seek(position, _COMPARED_BYTES):
        block = copy.read(position, _COMPARED_BYTES)
        if not block or content.read(position, len(block)) != block:
            return 0 if block else position
        position += len(block)
    return position


def copied_bytes_at(content: Content, copy_path: str) -> int:
    """As `copied_bytes`, of the file at `copy_path`; 0 where that cannot be read."""
    try:
        copy = open_content(copy_path)
    except (OSError, SourceError):
        return 0
    try:
        return copied_bytes(content, copy)
    finally:
        copy.close()


def open_holding(path: str, mark: Mark) -> Content | None:
    """The file at `path`, open, if it holds what `mark` saw. Raises OSError and SourceError when it cannot be read."""
    return open_if(path, lambda content: holds(content, mark))


def open_if(path: str, is_wanted: Callable[[Content], bool]) -> Content | None:
    """The file at `path`, open, if its content is. Raises OSError and SourceError when it cannot be read."""
    content = open_content(path)
    is_kept = False
    try:
        is_kept = is_wanted(content)
        if is_kept and not content.is_growing:  # it reads forward only
            content.close()
            content = open_content(path)
    finally:
        if not is_kept:
            content.close()
    return content if is_kept else None


def is_telling(mark: Mark) -> bool:
    """Enough was read that the same bytes in another file are no chance: both signatures are full."""
    return mark.head_bytes == mark.tail_bytes == SIGNATURE_BYTES
