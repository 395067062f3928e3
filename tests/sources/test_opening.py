"""Tests of `recompile_watch.sources.opening`: FIFOs, devices and messages."""

from __future__ import annotations

import errno
import os
import socket
import threading
from pathlib import Path

import pytest

from recompile_watch.core.errors import SourceError
from recompile_watch.sources.opening import opened, read_some, shown, source_error


@pytest.fixture
def fifo(tmp_path: Path) -> str:
    """A FIFO nobody has opened."""
    path = str(tmp_path / "bot.fifo")
    os.mkfifo(path)
    return path


def test_a_fifo_without_a_writer_does_not_hang(fifo: str) -> None:
    """Opening gives up after the wait, with what to do next."""
    text = r"bot\.fifo: a FIFO that nothing opened for writing within 0\.01 s; start its writer first"
    with pytest.raises(SourceError, match=text), opened(fifo, fifo_wait_s=0.01):
        pass


def test_a_silent_writer_is_waited_for(fifo: str) -> None:
    """A writer that has said nothing yet is a writer: the wait is only for its coming."""
    writer = os.open(fifo, os.O_RDWR)
    with opened(fifo, fifo_wait_s=0) as file:
        assert (file.size_bytes, file.first) == (None, b"")
        os.write(writer, b"late\n")
        os.close(writer)
        assert read_some(file.fd, 100) == b"late\n"
        assert read_some(file.fd, 100) == b""


def test_what_a_writer_said_before_is_kept(fifo: str) -> None:
    """Bytes taken while looking for a writer are not lost."""
    writer = os.open(fifo, os.O_RDWR)
    os.write(writer, b"early\n")
    with opened(fifo, fifo_wait_s=5) as file:
        assert file.first == b"early\n"
    os.close(writer)


def test_a_writer_that_comes_and_goes_in_silence_is_no_error(fifo: str) -> None:
    """An empty stream is a stream."""
    thread = threading.Thread(target=lambda: os.close(os.open(fifo, os.O_WRONLY)))
    thread.start()
    with opened(fifo, fifo_wait_s=30) as file:
        assert file.first == b""
        assert read_some(file.fd, 100) == b""
    thread.join()


def test_sockets_devices_and_folders_are_refused(tmp_path: Path) -> None:
    """Each with its name and what to do next."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(OSError, match="No such device"), opened(str(tmp_path / "s"), fifo_wait_s=0):
            pass
    with (
        pytest.raises(SourceError, match="/dev/zero: is a device, not a log; name a file"),
        opened("/dev/zero", fifo_wait_s=0),
    ):
        pass
    with pytest.raises(SourceError, match="is a folder"), opened(str(tmp_path), fifo_wait_s=0):
        pass


def test_descriptors_are_closed(tmp_path: Path) -> None:
    """After the block, and after a refusal."""
    (tmp_path / "a").write_bytes(b"x")
    with opened(str(tmp_path / "a"), fifo_wait_s=0) as file:
        pass
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file.fd)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SourceError), opened("/dev/zero", fifo_wait_s=0):
        pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_descriptor_inherited_non_blocking_is_waited_for() -> None:
    """A shell may hand over a non-blocking standard input."""
    reader, writer = os.pipe2(os.O_NONBLOCK)
    thread = threading.Thread(target=os.write, args=(writer, b"line\n"))
    thread.start()
    assert read_some(reader, 100) == b"line\n"
    thread.join()
    os.close(reader)
    os.close(writer)


def test_messages_are_one_line() -> None:
    """A path with a line break or an escape code cannot forge lines or colours."""
    assert shown("a\nb\x1b[31m\udcff.log") == "a\\nb\\x1b[31m\\udcff.log"
    assert str(source_error("a\nb", OSError(errno.EIO, "Input/output error"))) == (
        "a\\nb: cannot be read (Input/output error); check the disk or the mount it lies on"
    )
