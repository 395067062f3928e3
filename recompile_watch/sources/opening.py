"""Paths become open file descriptors, without ever hanging on a FIFO; failures become one-line messages."""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from recompile_watch.core.errors import SourceError

STANDARD_INPUT = "-"
STANDARD_INPUT_FD = 0
_PIPE_BYTES = 1 << 16
# Non-blocking, so that a FIFO that took a regular file's place cannot hang the open; no effect on regular files.
OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_ADVICE = {
    errno.ENOENT: "no such file or folder; check the spelling and the current folder",
    errno.ENOTDIR: "a part of this path is a file, not a folder; check the spelling",
    errno.EACCES: "no permission to read it; run as a user who may, or have its owner grant it",
    errno.EPERM: "no permission to read it; run as a user who may, or have its owner grant it",
    errno.ELOOP: "its symbolic links form a circle; name the file they should lead to",
    errno.ENAMETOOLONG: "the name is too long for this file system; check that it is a path and not text",
    errno.EISDIR: "is a folder now; name it again to read the logs in it",
    errno.EBADF: "standard input is closed; pipe a log into it or name a file",
    errno.EMFILE: "too many open files in this process; raise `ulimit -n`",
}


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file ready to be read.

    fd: the descriptor, blocking where that matters.
    size_bytes: size at opening; None for a stream (standard input, FIFO), which only its writer ends.
    first: bytes already taken from a FIFO while waiting for its writer; they come before what `fd` gives.
    """

    fd: int
    size_bytes: int | None
    first: bytes = b""


def shown(path: str) -> str:
    """`path` on one line: line breaks, control codes and undecodable bytes escaped, as in `a\\nb.log`."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in path)


def source_error(path: str, error: OSError) -> SourceError:
    """What happened to `path` and what to do about it, on one line."""
    reason = error.strerror or str(error)
    fallback = f"cannot be read ({reason}); check the disk or the mount it lies on"
    return SourceError(f"{shown(path)}: {_ADVICE.get(error.errno or 0, fallback)}")


@contextmanager
def opened(path: str, *, fifo_wait_s: float) -> Iterator[OpenFile]:
    """The file open for reading, closed at the end; `-` is standard input, which stays open.

    Raises OSError when it cannot be opened, SourceError for a folder, socket or device and for a FIFO that no writer opened
    within `fifo_wait_s`.
    """
    if path == STANDARD_INPUT:
        os.fstat(STANDARD_INPUT_FD)
        yield OpenFile(STANDARD_INPUT_FD, None)
        return
    fd = os.open(path, OPEN_FLAGS)
    try:
        yield _ready(path, fd, fifo_wait_s)
    finally:
        os.close(fd)


def _ready(path: str, fd: int, fifo_wait_s: float) -> OpenFile:
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode):
        return OpenFile(fd, status.st_size)
    if stat.S_ISFIFO(status.st_mode):
        first = _first_from_fifo(path, fd, fifo_wait_s)
        os.set_blocking(fd, True)
        return OpenFile(fd, None, first)
    raise not_readable_kind(path, status.st_mode)


def not_readable_kind(path: str, mode: int) -> SourceError:
    """The error for a thing that is no file: a folder, socket or device by its `st_mode`."""
    if stat.S_ISDIR(mode):
        return source_error(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
    kind = "a socket" if stat.S_ISSOCK(mode) else "a device"
    return SourceError(f"{shown(path)}: is {kind}, not a log; name a file, a folder or a FIFO, or pipe it in and give -")


def _first_from_fifo(path: str, fd: int, wait_s: float) -> bytes:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    has_news = bool(poller.poll(int(wait_s * 1000)))
    try:
        first = os.read(fd, _PIPE_BYTES)
    except BlockingIOError:  # a writer is there, only silent: from here on waiting for it is right
        return b""
    if not first and not has_news:
        raise SourceError(f"{shown(path)}: a FIFO that nothing opened for writing within {wait_s:g} s; start its writer first")
    return first


def read_some(fd: int, most_bytes: int) -> bytes:
    """What one read gives, at most `most_bytes`; empty at the end. Waits where a descriptor was inherited non-blocking."""
    while True:
        try:
            return os.read(fd, most_bytes)
        except BlockingIOError:
            poller = select.poll()
            poller.register(fd, select.POLLIN)
            poller.poll()


def first_bytes(path: str, most_bytes: int) -> bytes:
    """The start of a regular file. Raises OSError when it cannot be read."""
    fd = os.open(path, OPEN_FLAGS)
    try:
        return os.read(fd, most_bytes)
    finally:
        os.close(fd)
