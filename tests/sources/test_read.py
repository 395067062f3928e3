"""Tests of `recompile_watch.sources.read`: whole sources, from the disk to the blocks."""

from __future__ import annotations

import errno
import gzip
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from itertools import accumulate
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from recompile_watch.core.errors import SourceError
from recompile_watch.sources import read
from recompile_watch.sources.find import SourceFile
from recompile_watch.sources.read import (
    ReadLimits,
    Unread,
    plain_size,
    read_blocks,
    read_range,
)

TEXT = "2025-10-30 14:05:01 INFO bot: größer \U0001f4c8 ✔\n" * 300
SMALL = ReadLimits(block_bytes=1000)


def source_of(*paths: Path | str) -> SourceFile:
    """A source with these members, as `find_sources` would make it."""
    family = tuple(map(str, paths))
    return SourceFile(family[-1], None, None, family)


def content_of(source: SourceFile, limits: ReadLimits = SMALL) -> tuple[bytes, dict[str, int]]:
    """All bytes and what was counted."""
    unread = Unread()
    blocks = list(read_blocks(source, limits=limits, unread=unread))
    assert all(blocks)
    return b"".join(blocks), unread.counts


def test_plain_bytes_pass_untouched(tmp_path: Path) -> None:
    """NULs, invalid UTF-8, carriage returns and a missing last line break stay, in blocks of the size asked for."""
    raw = bytes(range(256)) * 20 + b"no line break"
    (tmp_path / "a.log").write_bytes(raw)
    blocks = list(read_blocks(source_of(tmp_path / "a.log"), limits=SMALL))
    assert b"".join(blocks) == raw
    assert {len(block) for block in blocks[:-1]} == {1000}


def test_an_empty_file_gives_nothing(tmp_path: Path) -> None:
    """No block at all, and nothing to count."""
    (tmp_path / "a.log").touch()
    assert content_of(source_of(tmp_path / "a.log")) == (b"", {})


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
@pytest.mark.parametrize("name", ["a.log", "a.log.gz", "a.log.zst"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_bytes_decide_and_not_names(tmp_path: Path, pack: Callable[[bytes], bytes], name: str, codec: str) -> None:
    """Every packing under every name, in every encoding, gives the same text."""
    (tmp_path / name).write_bytes(pack(TEXT.encode(codec)))
    assert content_of(source_of(tmp_path / name)) == (TEXT.encode(), {})


@given(
    st.lists(st.tuples(st.text(max_size=80), st.sampled_from(["plain", "gzip", "zstd"])), min_size=1, max_size=4),
    st.integers(1, 50),
)
def test_a_family_is_one_text(members: list[tuple[str, str]], block_bytes: int) -> None:
    """However a text is split into members and packed, it comes out as it was, a line break set where one lacks one."""
    packers: dict[str, Callable[[bytes], bytes]] = {"plain": bytes, "gzip": gzip.compress, "zstd": zstandard.compress}
    # A first byte that no magic number, mark or NUL pattern has.
    contents = [("|" * 9 + text).encode() for text, _ in members]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"bot.log.{number}") for number in range(len(members))]
        for path, content, (_, packing) in zip(paths, contents, members, strict=True):
            path.write_bytes(packers[packing](content))
        expected = b"".join(content if content.endswith(b"\n") else content + b"\n" for content in contents)
        text, counts = content_of(source_of(*paths), ReadLimits(block_bytes=block_bytes))
    assert (text if contents[-1].endswith(b"\n") else text + b"\n") == expected
    assert counts == {}


def test_empty_members_add_no_lines(tmp_path: Path) -> None:
    """A line break stands only between two members that have content."""
    for name, content in (("a", b"one"), ("b", b""), ("c", b"two\n"), ("d", b""), ("e", b"three")):
        (tmp_path / name).write_bytes(content)
    assert content_of(source_of(*(tmp_path / name for name in "abcde")))[0] == b"one\ntwo\nthree"


@given(st.text(st.characters(codec="utf-16"), min_size=1), st.integers(1, 9), st.sampled_from(["utf-16-le", "utf-16-be"]))
def test_utf16_blocks_may_end_anywhere(text: str, block_bytes: int, codec: str) -> None:
    """A file read in blocks of a few bytes gives the text it holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.log")
        path.write_bytes(("\ufeff" + text).encode(codec))
        assert content_of(source_of(path), ReadLimits(block_bytes=block_bytes)) == (text.encode(), {})


def test_damage_is_counted(tmp_path: Path) -> None:
    """A truncated member does not keep the next one from being read."""
    (tmp_path / "a.1").write_bytes(gzip.compress(TEXT.encode())[:-4])
    (tmp_path / "a").write_bytes(b"next\n")
    assert content_of(source_of(tmp_path / "a.1", tmp_path / "a")) == (TEXT.encode() + b"next\n", {"truncated_gzip": 1})


def test_a_bomb_is_counted(tmp_path: Path) -> None:
    """It ends, and the reason is there."""
    (tmp_path / "a").write_bytes(gzip.compress(bytes(1 << 20)))
    assert content_of(source_of(tmp_path / "a"), ReadLimits(max_unpacked_bytes=1000))[1] == {"bomb": 1}


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_progress_counts_bytes_on_disk(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Cumulative over all members, up to what lies on the disk."""
    packed = pack(os.urandom(5000))
    for name in ("a.1", "a"):
        (tmp_path / name).write_bytes(packed)
    steps: list[int] = []
    list(read_blocks(source_of(tmp_path / "a.1", tmp_path / "a"), limits=SMALL, on_progress=steps.append))
    assert steps == sorted(steps)
    assert steps[-1] == 2 * len(packed)


def test_a_callback_that_fails_keeps_its_error(tmp_path: Path) -> None:
    """A closed terminal is not mistaken for an unreadable log."""
    (tmp_path / "a").write_bytes(b"x")

    def broken_terminal(_: int) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    with pytest.raises(BrokenPipeError):
        list(read_blocks(source_of(tmp_path / "a"), on_progress=broken_terminal))


def test_a_file_that_shrinks_ends_and_is_counted(tmp_path: Path) -> None:
    """What was read stays; the rest is gone."""
    path = tmp_path / "a"
    path.write_bytes(b"x" * 5000)
    unread = Unread()
    blocks = read_blocks(source_of(path), limits=SMALL, unread=unread)
    assert next(blocks) == b"x" * 1000
    os.truncate(path, 500)
    # 4096 bytes are looked at before the first block is given, which is then all there was.
    assert sum(map(len, blocks)) == 4000
    assert unread.counts == {"shrunk_while_read": 1}


def test_a_file_that_grows_is_read_a_little_further(tmp_path: Path) -> None:
    """Up to its end, but never endlessly."""
    path = tmp_path / "a"
    for growth_bytes, total, counts in ((2000, 7000, {"grew_past_limit": 1}), (9000, 10_000, {})):
        path.write_bytes(b"x" * 5000)
        unread = Unread()
        blocks = read_blocks(source_of(path), limits=ReadLimits(block_bytes=1000, growth_bytes=growth_bytes), unread=unread)
        read_bytes = len(next(blocks))
        with path.open("ab") as writer:
            writer.write(b"y" * 5000)
        assert read_bytes + sum(map(len, blocks)) == total
        assert unread.counts == counts


def test_a_file_that_vanished_is_counted(tmp_path: Path) -> None:
    """Rotated away between finding and reading; the other members are read. Deleted while open it is read to its end."""
    path = tmp_path / "a"
    path.write_bytes(b"x" * 5000)
    assert content_of(source_of(tmp_path / "a.1", path)) == (b"x" * 5000, {"vanished": 1})
    blocks = read_blocks(source_of(path), limits=SMALL)
    next(blocks)
    path.unlink()
    assert sum(map(len, blocks)) == 4000


def test_what_cannot_be_opened_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line: what, which path, what to do next."""
    (tmp_path / "a").write_bytes(b"x")

    def refusing_open(path: str, _: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr("recompile_watch.sources.opening.os.open", refusing_open)
    with pytest.raises(SourceError, match=r"/a: no permission to read it; run as"):
        list(read_blocks(source_of(tmp_path / "a")))
    with pytest.raises(SourceError, match=r"/a: no permission to read it; run as"):
        list(read_range(str(tmp_path / "a"), 0, None))


def test_a_disk_error_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a file too; on NFS a file deleted on the server is counted as vanished."""
    (tmp_path / "a").write_bytes(b"x")
    for number, expected in ((errno.EIO, SourceError), (errno.ESTALE, None)):

        def failing_read(_fd: int, _most_bytes: int, number: int = number) -> bytes:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(read, "read_some", failing_read)
        if expected is None:
            assert content_of(source_of(tmp_path / "a")) == (b"", {"vanished": 1})
        else:
            with pytest.raises(expected, match="cannot be read"):
                content_of(source_of(tmp_path / "a"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_a_fifo_is_read_until_its_writer_closes(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Packed or not."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    thread = threading.Thread(target=path.write_bytes, args=(pack(TEXT.encode() * 20),))
    thread.start()
    assert content_of(source_of(path), ReadLimits(fifo_wait_s=30)) == (TEXT.encode() * 20, {})
    thread.join()


def test_a_stream_is_given_on_at_once(tmp_path: Path) -> None:
    """A line comes out before the next is written, in a packed stream too."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    compressor = zstandard.ZstdCompressor().compressobj()
    writer = os.open(path, os.O_RDWR)
    blocks = read_blocks(source_of(path))
    for line in (b"first line\n", b"second line\n"):
        os.write(writer, compressor.compress(line) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
        assert next(blocks) == line
    assert isinstance(blocks, Generator)
    blocks.close()
    os.close(writer)


def test_a_fifo_without_a_writer_raises(tmp_path: Path) -> None:
    """After the wait, not never."""
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SourceError, match="nothing opened for writing"):
        list(read_blocks(source_of(tmp_path / "fifo"), limits=ReadLimits(fifo_wait_s=0.01)))


def run_on_standard_input(command: str, content: bytes) -> subprocess.CompletedProcess[bytes]:
    """A fresh interpreter that copies the source `-` to its standard output, run by the shell with `command` for {}."""
    script = (
        "import sys; from recompile_watch.sources.find import find_sources\n"
        "from recompile_watch.sources.read import read_blocks\n"
        "for block in read_blocks(find_sources(['-'])[0][0]): sys.stdout.buffer.write(block)"
    )
    full = command.format('"$0" -c "$1"')
    return subprocess.run(["sh", "-c", full, sys.executable, script], input=content, capture_output=True, check=False, timeout=60)


def test_standard_input_is_read() -> None:
    """Through a pipe, packed or not, and from a redirected file."""
    assert run_on_standard_input("{}", TEXT.encode()).stdout == TEXT.encode()
    assert run_on_standard_input("{}", gzip.compress(TEXT.encode())).stdout == TEXT.encode()
    assert run_on_standard_input("{} < /dev/null", b"").stdout == b""


def test_closed_standard_input_raises() -> None:
    """`<&-` leaves nothing to read from."""
    result = run_on_standard_input("{} <&-", b"")
    assert b"SourceError: -: standard input is closed; pipe a log into it or name a file" in result.stderr


def test_descriptors_are_closed_when_reading_stops_early(tmp_path: Path) -> None:
    """A reader that is left in the middle leaks nothing."""
    (tmp_path / "a").write_bytes(b"x" * 5000)
    before = len(os.listdir("/proc/self/fd"))
    blocks = read_blocks(source_of(tmp_path / "a"), limits=SMALL)
    next(blocks)
    assert isinstance(blocks, Generator)
    blocks.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_plain_size_is_for_plain_files_only(tmp_path: Path) -> None:
    """What several workers may read by ranges: bytes on disk that are the bytes given."""
    path = tmp_path / "a"
    path.write_bytes(TEXT.encode())
    assert plain_size(source_of(path)) == len(TEXT.encode())
    for content in (gzip.compress(b"x"), zstandard.compress(b"x"), TEXT.encode("utf-8-sig"), TEXT.encode("utf-16")):
        path.write_bytes(content)
        assert plain_size(source_of(path)) is None
    os.mkfifo(tmp_path / "fifo")
    for other in (
        source_of("-"),
        source_of(path, path),
        source_of(tmp_path),
        source_of(tmp_path / "fifo"),
        source_of("/nowhere"),
    ):
        assert plain_size(other) is None
    assert plain_size(source_of("/proc/self/status")) is None


@given(st.binary(max_size=200), st.lists(st.integers(0, 220), max_size=5), st.integers(1, 60))
def test_ranges_add_up(content: bytes, cuts: list[int], block_bytes: int) -> None:
    """Adjoining ranges give the file; a range past the end gives what there is."""
    borders = [0, *accumulate(sorted(cuts), max)]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "a"))
        Path(path).write_bytes(content)
        ends = [*borders[1:], None]
        pieces = [b"".join(read_range(path, *borders_of, block_bytes=block_bytes)) for borders_of in zip(borders, ends, strict=True)]
    assert b"".join(pieces) == content
