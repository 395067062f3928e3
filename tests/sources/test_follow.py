"""Tests of `recompile_watch.sources.follow`: a real file each, and what polls give of it."""

from __future__ import annotations

import errno
import gzip
import json
import os
import resource
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import zstandard

from recompile_watch.core.errors import StoreError
from recompile_watch.core.heard import Trouble, TroubleKind
from recompile_watch.sources.follow import Chunk, Follower, FollowSettings, GenerationEnded, GenerationStarted, Mark, Watched
from recompile_watch.sources.marks import mark_from_json, mark_to_json, outlived
from tests.sources.follow_world import unprivileged

BEGIN = 1_700_000_000.0
FROM_BEGIN = FollowSettings("bot", (), start="begin")


class Watch:
    """A follower of files in a folder, its clock, and what it gave."""

    def __init__(self, folder: Path, *paths: str, settings: FollowSettings | None = None) -> None:
        self.folder = folder
        names = paths or ("bot.log",)
        self.settings = replace(settings or FROM_BEGIN, paths=tuple(str(folder / name) for name in names))
        self.now = BEGIN
        self.follower = Follower(self.settings)
        self.heard: list[object] = []

    def poll(self, seconds: float = 1.0, budget_bytes: int = 1 << 24) -> bytes:
        """All payloads of one poll."""
        self.now += seconds
        heard = self.follower.poll(self.now, budget_bytes)
        self.heard += heard
        return b"".join(item.payload for item in heard if isinstance(item, Chunk))

    def polls(self, count: int, seconds: float = 5.0) -> bytes:
        """All payloads of some polls."""
        return b"".join(self.poll(seconds) for _ in range(count))

    def troubles(self, kind: TroubleKind) -> list[Trouble]:
        """The troubles of this kind so far."""
        return [item for item in self.heard if isinstance(item, Trouble) and item.kind is kind]

    def chunks(self) -> list[Chunk]:
        """The chunks so far."""
        return [item for item in self.heard if isinstance(item, Chunk)]

    def marks(self) -> list[Mark]:
        """Marks at the end of everything given, as a store would keep them."""
        ends: dict[tuple[str, int], tuple[int, int]] = {}
        for item in self.heard:
            if isinstance(item, GenerationStarted):
                ends[item.stream, item.generation] = item.position, item.lines
            elif isinstance(item, Chunk):
                ends[item.stream, item.generation] = item.end, item.line - 1 + item.payload.count(b"\n")
        ended = {(item.stream, item.generation) for item in self.heard if isinstance(item, GenerationEnded)}
        kept = [self.follower.release(*key) for key in ended]
        return [self.follower.mark(*key, *end) for key, end in ends.items() if key not in ended] + [mark for mark in kept if mark is not None]

    def restart(self, marks: list[Mark] | None = None) -> None:
        """Killed and started again with these marks, or with those of everything given."""
        kept = self.marks() if marks is None else marks
        watched = self.follower.watched()
        self.follower.close()
        self.heard.clear()
        self.follower = Follower(self.settings, [mark_from_json(json.loads(json.dumps(mark_to_json(mark)))) for mark in kept], watched)


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    """A watch of `bot.log` in an empty folder."""
    made = Watch(tmp_path)
    yield made
    made.follower.close()


def append(path: Path, text: bytes) -> None:
    """Writes at the end, as a logging program does."""
    with path.open("ab") as file:
        file.write(text)


def aged(path: Path, seconds: float) -> None:
    """Gives the file a time: operations in tests are microseconds apart, those of the world are not."""
    os.utime(path, ns=(int((BEGIN + seconds) * 1e9),) * 2)


def test_new_lines_come_once(watch: Watch) -> None:
    """What is appended between two polls is given by the second, with its offset and line number."""
    log = watch.folder / "bot.log"
    append(log, b"one\ntwo\n")
    assert watch.poll() == b"one\ntwo\n"
    append(log, b"three\n")
    assert watch.poll() == b"three\n"
    assert watch.poll() == b""
    assert [(chunk.offset, chunk.line, chunk.generation) for chunk in watch.chunks()] == [(0, 1, 1), (8, 3, 1)]


def test_the_start_at_the_end_is_a_line_start(tmp_path: Path) -> None:
    """start = end skips whole lines but not the one that is being written, and still counts lines from the first."""
    append(tmp_path / "bot.log", b"one\ntwo\nthr")
    watch = Watch(tmp_path, settings=FollowSettings("bot", ()))
    assert watch.poll() == b""
    append(tmp_path / "bot.log", b"ee\nfour\n")
    assert watch.poll() == b"three\nfour\n"
    assert [(chunk.line, chunk.is_backlog) for chunk in watch.chunks()] == [(3, False)]


def test_what_was_there_at_the_first_start_is_backlog(tmp_path: Path) -> None:
    """Bytes that existed at the first start are marked, up to the line that goes past them, and nothing else."""
    append(tmp_path / "bot.log", b"one\ntw")
    watch = Watch(tmp_path)
    watch.follower.poll(watch.now, 0)
    append(tmp_path / "bot.log", b"o\nthree\n")
    watch.poll()
    watch.poll()
    assert [(chunk.payload, chunk.is_backlog) for chunk in watch.chunks()] == [(b"one\ntwo\n", True), (b"three\n", False)]


def test_a_file_that_appears_later_is_read_from_its_beginning(tmp_path: Path) -> None:
    """start = end is about files that were there at the first start."""
    watch = Watch(tmp_path, settings=FollowSettings("bot", ()))
    watch.poll()
    append(tmp_path / "bot.log", b"one\n")
    assert watch.poll() == b"one\n"


def test_the_unfinished_line_waits(watch: Watch) -> None:
    """A line without its line feed is given when that comes, whole, however many polls later."""
    log = watch.folder / "bot.log"
    append(log, b"one\ntw")
    assert watch.poll() == b"one\n"
    assert watch.polls(30) == b""
    append(log, b"o\n")
    assert watch.poll() == b"two\n"


def test_rotation_reads_the_old_file_to_its_end_first(watch: Watch) -> None:
    """Rename, the rest of a line into the old file, lines into the new one: in order, nothing glued."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.1"
    watch.poll()
    append(log, b"one\ntw")
    watch.poll()
    log.rename(old)
    append(old, b"o\nthree\n")
    append(log, b"four\n")
    assert watch.poll() == b"two\nthree\nfour\n"
    assert [chunk.generation for chunk in watch.chunks()] == [1, 1, 2]


def test_the_old_file_is_kept_while_it_grows(watch: Watch) -> None:
    """A writer that did not reopen is followed for as long as it writes, and a minute longer."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.1"
    append(log, b"one\n")
    watch.poll()
    log.rename(old)
    append(log, b"new\n")
    watch.poll()
    for number in range(40):
        append(old, b"late %d\n" % number)
        assert watch.poll(8.0) == b"late %d\n" % number
    watch.polls(12)
    assert GenerationEnded(str(log), 1) in watch.heard


def test_the_last_line_of_an_old_file_needs_no_line_feed(watch: Watch) -> None:
    """When an old file is given up, its unfinished line is given, and never glued to the new file."""
    log = watch.folder / "bot.log"
    append(log, b"one\ntw")
    watch.poll()
    log.rename(watch.folder / "bot.log.1")
    append(log, b"three\n")
    watch.polls(20)
    assert [(chunk.payload, chunk.generation) for chunk in watch.chunks()] == [(b"one\n", 1), (b"three\n", 2), (b"tw", 1)]


def test_two_rotations_between_two_polls(watch: Watch) -> None:
    """The generation in the middle is found among the rotated files."""
    log = watch.folder / "bot.log"
    append(log, b"one\n")
    watch.poll()
    log.rename(watch.folder / "bot.log.2")
    append(watch.folder / "bot.log.1", b"two\n")
    append(log, b"three\n")
    assert watch.poll() == b"two\nthree\n"
    assert not watch.troubles(TroubleKind.GAP)


def test_a_missing_number_is_a_gap(watch: Watch) -> None:
    """Our file is bot.log.2 now and there is no bot.log.1: a whole file came and went."""
    log = watch.folder / "bot.log"
    append(log, b"one\n")
    watch.poll()
    log.rename(watch.folder / "bot.log.2")
    append(log, b"three\n")
    assert watch.poll() == b"three\n"
    assert len(watch.troubles(TroubleKind.GAP)) == 1


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress], ids=["gz", "zst"])
def test_rotated_and_packed_while_down(watch: Watch, pack: object) -> None:
    """The rest of a packed file is read from where reading stood, then the new file."""
    log = watch.folder / "bot.log"
    append(log, b"one\ntwo\n")
    aged(log, 0)
    watch.poll()
    append(log, b"three\n")
    packed = watch.folder / ("bot.log.1.gz" if pack is gzip.compress else "bot.log.1.zst")
    packed.write_bytes(pack(log.read_bytes()))  # type: ignore[operator]
    aged(packed, 5)
    log.unlink()
    append(log, b"four\n")
    watch.restart()
    assert watch.poll() == b"three\nfour\n"
    assert [(chunk.offset, chunk.line) for chunk in watch.chunks()] == [(8, 3), (0, 1)]
    assert not watch.troubles(TroubleKind.GAP)


def test_rotated_while_down(watch: Watch) -> None:
    """The unread tail of the rotated file first, then the files that came after it, then the live one."""
    log = watch.folder / "bot.log"
    append(log, b"one\n")
    watch.poll()
    append(log, b"two\n")
    log.rename(watch.folder / "bot.log.2")
    append(watch.folder / "bot.log.1", b"three\n")
    append(log, b"four\n")
    watch.restart()
    assert watch.poll() == b"two\nthree\nfour\n"


@pytest.mark.parametrize("refill", [b"", b"x\n", b"1234\n6789\n", b"1234\n67890\n" * 9], ids=["empty", "smaller", "equal", "larger"])
@pytest.mark.parametrize("is_down", [False, True], ids=["running", "down"])
def test_cut_in_place(watch: Watch, refill: bytes, is_down: bool) -> None:
    """Copy-and-truncate, refilled to any size: what the copy holds unread comes first, then the new lines from 0."""
    log, copy = watch.folder / "bot.log", watch.folder / "bot.log.1"
    append(log, b"one\ntwo\n")
    aged(log, 0)
    assert watch.poll() == b"one\ntwo\n"
    append(log, b"3\n")
    copy.write_bytes(log.read_bytes())
    aged(copy, 5)
    log.write_bytes(refill)
    if is_down:
        watch.restart()
    assert watch.poll() == b"3\n" + refill
    assert not watch.troubles(TroubleKind.GAP)
    append(log, b"more\n")
    assert watch.poll() == b"more\n"


@pytest.mark.parametrize("is_down", [False, True], ids=["running", "down"])
@pytest.mark.parametrize("before", [b"", b"old\n"], ids=["new", "in-an-old-inode"])
def test_a_copy_made_before_the_last_lines_were_read(watch: Watch, is_down: bool, before: bytes) -> None:
    """A line is written and read between the copy and the cut, which is seen or not: the copy, shorter than what was given, is not read again.

    Nor where it was made in the inode, and has the size, of an older rotated file.
    """
    log, copy = watch.folder / "bot.log", watch.folder / "bot.log.1"
    if before:
        copy.write_bytes(before)
        aged(copy, -3)
    append(log, b"one\n")
    aged(log, 0)
    watch.poll()
    copy.write_bytes(log.read_bytes())
    aged(copy, 3)
    append(log, b"two\n")
    aged(log, 3)
    assert watch.poll() == b"two\n"
    log.write_bytes(b"3\n")
    if is_down:
        watch.restart()
    assert watch.polls(20) == b"3\n"
    watch.restart()
    append(log, b"four\n")
    assert watch.polls(20) == b"four\n"
    assert not watch.troubles(TroubleKind.GAP)


@pytest.mark.parametrize("is_cut", [False, True], ids=["copied", "cut"])
def test_a_copy_that_lay_beside_a_log_when_it_was_seen_first(watch: Watch, is_cut: bool) -> None:
    """Nothing was given of the log yet: its copy holds its beginning, which is given once, from the copy where the log was cut meanwhile."""
    log, copy = watch.folder / "bot.log", watch.folder / "bot.log.1"
    watch.poll()
    append(log, b"one\n")
    copy.write_bytes(log.read_bytes())
    append(log, b"two\n")
    aged(log, 5)
    aged(copy, 4)
    watch.poll(budget_bytes=0)
    if is_cut:
        log.write_bytes(b"two\n3\n")
    assert sorted(watch.polls(20).splitlines()) == ([b"3"] if is_cut else []) + [b"one", b"two"]
    assert not watch.troubles(TroubleKind.GAP)


@pytest.mark.parametrize("is_down", [False, True], ids=["running", "down"])
def test_a_copy_that_is_being_made(watch: Watch, is_down: bool) -> None:
    """The log and its copy, empty still, are seen at once; then it is made and the log cut, which is seen or not: all is given once."""
    log, copy = watch.folder / "bot.log", watch.folder / "bot.log.1"
    watch.poll()
    append(log, BANNER + b"one\n")
    aged(log, 2)
    copy.touch()
    aged(copy, 3)
    given = watch.poll(budget_bytes=1)
    append(copy, log.read_bytes()[:1100])  # no more than the banner
    append(log, b"two\n")
    given += watch.poll()
    copy.write_bytes(log.read_bytes())
    append(log, b"three\n")
    given += watch.polls(2)
    log.write_bytes(BANNER + b"four\n")
    if is_down:
        watch.restart()
    given += watch.polls(30)
    assert given == BANNER + b"one\ntwo\nthree\n" + BANNER + b"four\n"
    assert not watch.troubles(TroubleKind.GAP)


def test_cut_without_a_copy_is_a_gap(watch: Watch) -> None:
    """What was written before the cut and after the last poll is gone: that is said, with what to do."""
    log = watch.folder / "bot.log"
    append(log, b"one\n")
    watch.poll()
    log.write_bytes(b"two\nthree\n")
    assert watch.poll() == b"two\nthree\n"
    (gap,) = watch.troubles(TroubleKind.GAP)
    assert gap.lost_bytes is None and "renaming" in gap.text


def test_cut_and_left_empty_across_a_restart(watch: Watch) -> None:
    """Nothing is replayed."""
    log = watch.folder / "bot.log"
    append(log, b"one\n")
    watch.poll()
    log.write_bytes(b"")
    watch.poll()
    watch.restart()
    assert watch.polls(3) == b""
    append(log, b"two\n")
    assert watch.poll() == b"two\n"


def test_the_same_first_line_is_no_identity(watch: Watch) -> None:
    """A refilled log with the same header and a larger size is seen by the bytes before the position."""
    log = watch.folder / "bot.log"
    append(log, b"# header\n" * 200 + b"one\n")
    watch.poll()
    refilled = b"# header\n" * 200 + b"two\nthree\n"
    log.write_bytes(refilled)
    assert watch.poll() == refilled


def test_holes_are_skipped(watch: Watch) -> None:
    """A writer that goes on at its old offset after a cut leaves NULs: skipped and counted, no line of them."""
    log = watch.folder / "bot.log"
    append(log, b"one\n" * 5000)
    watch.poll()
    log.write_bytes(b"")
    with log.open("r+b") as file:
        file.seek(20_000)
        file.write(b"two\n")
    assert watch.poll() == b"two\n"
    assert watch.chunks()[-1].offset == 20_000
    (progress,) = watch.follower.progress()
    assert progress.hole_bytes == 20_000


def test_a_hole_ends_the_line_before_it(watch: Watch) -> None:
    """Text, NULs, text: two pieces, not one line; NULs at the very end wait for what fills them."""
    log = watch.folder / "bot.log"
    append(log, b"one\nhalf" + b"\0" * 500)
    assert watch.poll() == b"one\n"
    append(log, b"two\n")
    watch.poll()
    watch.poll()
    assert [(chunk.offset, chunk.payload) for chunk in watch.chunks()] == [(0, b"one\n"), (4, b"half"), (508, b"two\n")]


def test_an_inode_used_again_is_a_new_file(watch: Watch) -> None:
    """Deleted and made again while nobody watched, mostly in the same inode: read from 0, and the loss is told."""
    log = watch.folder / "bot.log"
    append(log, b"one\ntwo\n")
    watch.poll()
    kept = watch.marks()
    watch.follower.close()
    log.unlink()
    append(log, b"three\nfour\n")
    watch.restart(kept)
    assert watch.poll() == b"three\nfour\n"
    assert len(watch.troubles(TroubleKind.GAP)) == 1


def test_few_bytes_that_were_cut_and_rotated_while_down_are_a_gap(watch: Watch) -> None:
    """Nothing was committed of a short log; its file lies beside it, cut to nothing: what it held is lost, and that is told."""
    log = watch.folder / "bot.log"
    append(log, b"one\n")
    watch.poll()
    kept = [watch.follower.mark(str(log), 1, 0, 0)]
    log.write_bytes(b"")
    log.rename(watch.folder / "bot.log.1")
    watch.restart(kept)
    assert watch.polls(3) == b""
    assert len(watch.troubles(TroubleKind.GAP)) == 1


def test_a_packed_file_that_was_read_fits_no_other(watch: Watch) -> None:
    """A file read to its end is packed and looked at again, then deleted; the next one under its name is not taken for it."""
    log, old, packed = watch.folder / "bot.log", watch.folder / "bot.log.1", watch.folder / "bot.log.1.gz"
    append(log, b"one\n")
    aged(log, 0)
    watch.poll()
    log.rename(old)
    append(log, b"two\n")
    aged(log, 5)
    assert watch.polls(20) == b"two\n"
    packed.write_bytes(gzip.compress(old.read_bytes()))
    aged(packed, 200)
    old.unlink()
    log.rename(watch.folder / "bot.old")
    assert watch.polls(1) == b""
    packed.unlink()
    append(old, b"three\n")
    append(log, b"four\n")
    assert watch.polls(3) == b"three\nfour\n"


BANNER = b"# banner of the bot\n" * 80


def test_the_same_banner_is_no_identity_after_a_restart(watch: Watch) -> None:
    """Committed within a banner, read beyond it; cut and filled with more after the same banner while nobody watched: a new file."""
    log = watch.folder / "bot.log"
    append(log, BANNER + b"one\n")
    watch.poll()
    kept = [watch.follower.mark(str(log), 1, 1200, 60)]
    log.write_bytes(BANNER + b"two\nthree\n")
    watch.restart(kept)
    assert watch.poll() == BANNER + b"two\nthree\n"
    assert len(watch.troubles(TroubleKind.GAP)) == 1


def test_a_log_that_was_filled_and_rotated_twice_at_once_is_read_in_order(watch: Watch) -> None:
    """A byte of a log was seen; it was filled and rotated, and the next one too: the older lines come first."""
    log = watch.folder / "bot.log"
    append(log, b"o")
    aged(log, 0)
    watch.poll()
    append(log, b"ne\n")
    aged(log, 2)
    log.rename(watch.folder / "bot.log.2")
    append(watch.folder / "bot.log.1", b"two\n")
    aged(watch.folder / "bot.log.1", 3)
    assert watch.polls(2) == b"one\ntwo\n"


def test_a_cut_log_that_was_deleted_comes_before_the_next(watch: Watch) -> None:
    """Copied, cut, filled, deleted; the next one rotated: what the deleted file holds is older than that."""
    log = watch.folder / "bot.log"
    append(log, b"one\n")
    aged(log, 0)
    watch.poll()
    (watch.folder / "bot.log.2").write_bytes(log.read_bytes())
    aged(watch.folder / "bot.log.2", 2)
    log.write_bytes(b"2\n")
    aged(log, 3)
    log.unlink()
    append(watch.folder / "bot.log.1", b"three\n")
    aged(watch.folder / "bot.log.1", 5)
    assert watch.polls(2) == b"2\nthree\n"


def _pack(path: Path) -> Path:
    """Packs as gzip does: the time is kept, the original deleted."""
    packed, status = path.with_name(path.name + ".gz"), path.stat()
    packed.write_bytes(gzip.compress(path.read_bytes()))
    os.utime(packed, ns=(status.st_atime_ns, status.st_mtime_ns))
    path.unlink()
    return packed


@pytest.mark.parametrize("is_down", [False, True], ids=["running", "down"])
def test_packed_while_its_writer_goes_on(watch: Watch, is_down: bool) -> None:
    """A rotated file is packed, its writer goes on: its lines are read while the file is held, and the packed ones not again."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.1"
    append(log, b"one\n")
    watch.poll()
    with log.open("ab") as writer:
        log.rename(old)
        _pack(old)
        writer.write(b"two\n")
        writer.flush()
        assert watch.polls(2) == b"two\n"
        if is_down:
            watch.restart()
        append(log, b"three\n")
        assert watch.polls(30) == b"three\n"
    assert not watch.troubles(TroubleKind.GAP)


def test_packed_before_any_of_it_was_read(watch: Watch) -> None:
    """A log is seen, but read only after it was rotated, packed and written on to: its packed copy, shorter than that, is not read."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.1"
    watch.poll()
    append(log, b"one\n")
    aged(log, 0)
    assert watch.poll(budget_bytes=0) == b""
    with log.open("ab") as writer:
        log.rename(old)
        _pack(old)
        writer.write(b"two\n")
    assert watch.polls(30) == b"one\ntwo\n"
    assert GenerationEnded(str(log), 1) in watch.heard
    watch.restart()
    assert watch.polls(30) == b""


@pytest.mark.parametrize("idle_polls", [0, 20], ids=["read", "given-up"])
def test_packed_into_the_inode_of_another(watch: Watch, idle_polls: int) -> None:
    """A log that was read and its successor, only seen, were packed while nobody watched, the first where the second was: each is its own."""
    log, first, second, spare = (watch.folder / name for name in ("bot.log", "bot.log.2", "bot.log.1", "spare"))
    append(log, BANNER + b"one\n")
    aged(log, 0)
    watch.poll()
    log.rename(first)
    watch.polls(idle_polls)
    append(second, BANNER + b"two\n")
    aged(second, 0)
    assert watch.poll(budget_bytes=0) == b""
    kept = watch.marks()
    os.link(second, spare)  # its inode, which a file system is free to use again
    _pack(second)
    spare.write_bytes(gzip.compress(first.read_bytes()))
    aged(spare, 0)
    spare.rename(_pack(first))
    watch.restart(kept)
    assert watch.polls(2) == BANNER + b"two\n"
    assert not watch.troubles(TroubleKind.GAP)


def test_late_lines_of_a_deleted_log_hide_no_younger_one(watch: Watch) -> None:
    """A log was rotated twice and deleted, and its writer wrote once more: the log in between is older than that, and comes before the next."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.1"
    append(log, BANNER + b"one\n")
    aged(log, 0)
    watch.poll()
    with log.open("ab") as writer:
        log.unlink()
        append(old, BANNER + b"two\n")
        aged(old, 3)
        writer.write(b"late\n")
        writer.flush()
        os.utime(writer.fileno(), ns=(int((BEGIN + 5) * 1e9),) * 2)
    append(log, BANNER + b"three\n")
    assert watch.poll(0.1) == b"late\n"  # too soon to look where the path leads
    assert watch.polls(3).replace(BANNER, b"") == b"two\nthree\n"


def test_a_first_byte_is_no_identity_of_what_was_packed(watch: Watch) -> None:
    """Nothing was committed of a rotated log, and of its successor one byte was seen: packed while nobody watched, it is its own."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.1"
    append(log, b"<one>\n")
    aged(log, 0)
    watch.poll()
    log.rename(old)
    append(log, b"<")
    aged(log, 5)
    watch.poll()
    kept = [watch.follower.mark(str(log), 1, 0, 0), watch.follower.mark(str(log), 2, 0, 0)]
    _pack(old)
    watch.restart(kept)
    assert watch.polls(2) == b"<one>\n"
    assert not watch.troubles(TroubleKind.GAP)


def test_a_file_that_changed_before_it_was_packed_is_read(watch: Watch) -> None:
    """Half a line of a log was seen; it was finished, rotated and packed, and another one came and went, while nobody watched."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.2"
    append(log, b"o")
    aged(log, 0)
    watch.poll()
    append(log, b"ne\n")
    aged(log, 3)
    log.rename(old)
    _pack(old)
    append(watch.folder / "bot.log.1", b"two\n")
    aged(watch.folder / "bot.log.1", 5)
    watch.restart()
    assert watch.polls(2) == b"one\ntwo\n"


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("is_down", [False, True], ids=["running", "down"])
def test_late_lines_are_read_within_half_a_minute(watch: Watch, is_packed: bool, is_down: bool) -> None:
    """A rotated file was given up; then its writer wrote once more, and perhaps it was packed: read without another rotation, once."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.1"
    append(log, b"one\n")
    watch.poll()
    log.rename(old)
    append(log, b"two\n")
    watch.polls(30)
    assert GenerationEnded(str(log), 1) in watch.heard
    committed = watch.marks()
    if is_down:
        watch.restart(committed)
    append(old, b"late\n")
    if is_packed:
        _pack(old)
    assert watch.polls(8) == b"late\n"
    assert watch.polls(40) == b""


def test_late_lines_packed_into_the_inode_of_another(watch: Watch) -> None:
    """A packed file was looked into and rotated out; another one is packed in its inode, and its late lines are read all the same."""
    log, first, second = (watch.folder / name for name in ("bot.log", "bot.log.2", "bot.log.1"))
    append(log, b"one\n")
    aged(log, 0)
    watch.poll()
    log.rename(first)
    append(log, b"two\n")
    aged(log, 5)
    watch.polls(2)
    log.rename(second)
    watch.polls(30)
    watch.marks()  # committed
    packed = _pack(first)
    assert watch.polls(10) == b""
    append(second, b"late\n")
    aged(second, 200)
    packed.write_bytes(gzip.compress(second.read_bytes()))
    packed.rename(_pack(second))
    aged(second.with_name("bot.log.1.gz"), 200)
    assert watch.polls(10) == b"late\n"


def test_late_lines_wait_until_what_came_before_them_is_committed(watch: Watch) -> None:
    """A kill would find two marks in one file: the older one would be read from through the late lines again."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.1"
    append(log, b"one\n")
    watch.poll()
    early = [watch.follower.mark(str(log), 1, 0, 0)]
    log.rename(old)
    watch.polls(30)
    append(old, b"late\n")
    assert watch.polls(20) == b""
    watch.restart(early)
    assert watch.polls(30) == b"one\nlate\n"


def test_late_lines_that_may_not_be_read_yet(watch: Watch) -> None:
    """A file that was read to its end grew, is rotated on and unreadable: once it may be read, only what is new is."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.1"
    with traversable(watch.folder):
        append(log, b"one\n")
        with unprivileged():
            watch.poll()
        log.rename(old)
        append(log, b"two\n")
        with unprivileged():
            watch.polls(30)
            watch.marks()  # committed
        append(old, b"late\n")
        old.chmod(0)
        old.rename(watch.folder / "bot.log.2")
        log.rename(old)
        append(log, b"three\n")
        with unprivileged():
            assert watch.polls(10) == b"three\n"
        (watch.folder / "bot.log.2").chmod(0o644)
        with unprivileged():
            assert watch.polls(20) == b"late\n"


def test_a_new_log_in_an_old_inode_that_may_not_be_read_yet(watch: Watch) -> None:
    """Its number is that of a file read to its end: once it may be read, it is read whole, and nothing was lost of the old one."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.1"
    with traversable(watch.folder):
        append(log, b"one, a long line\n")
        aged(log, 0)
        with unprivileged():
            watch.poll()
        log.rename(old)
        with unprivileged():
            watch.polls(30)
        old.write_bytes(b"two\n")  # the same inode
        aged(old, 200)
        old.chmod(0)
        with unprivileged():
            watch.restart()
            assert watch.polls(10) == b""
        old.chmod(0o644)
        with unprivileged():
            assert watch.polls(20) == b"two\n"
    assert not watch.troubles(TroubleKind.GAP)


@pytest.mark.parametrize(("seconds", "given"), [(40.0, b"one\ntwo\n"), (40.0 - 3600.0, b"two\none\n")], ids=["forward", "set-back"])
def test_what_waits_is_tried_again_by_the_time_of_watching(watch: Watch, seconds: float, given: bytes) -> None:
    """A file that may be read now is tried again, and comes first, after ten seconds; a clock that was set back tells of no second."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.1"
    with traversable(watch.folder):
        watch.poll()
        append(old, b"one\n")
        old.chmod(0)
        with unprivileged():
            assert watch.poll() == b""
        old.chmod(0o644)
        append(log, b"two\n")
        with unprivileged():
            assert watch.poll(seconds) + watch.polls(12, 1.0) == given


def test_a_hole_in_the_place_of_a_hole(watch: Watch) -> None:
    """Read up to the end of a hole; cut and filled with as many NULs after another line: read from 0."""
    log = watch.folder / "bot.log"
    append(log, BANNER + b"one\n" + b"\0" * 5000 + b"two\n")
    assert watch.poll(budget_bytes=1) + watch.poll(budget_bytes=1) == BANNER + b"one\n"
    assert watch.follower.progress()[0].position == len(BANNER) + 5004
    log.write_bytes(BANNER + b"1st\n" + b"\0" * 5000 + b"2nd\n")
    assert watch.polls(2) == BANNER + b"1st\n2nd\n"
    assert len(watch.troubles(TroubleKind.GAP)) == 1


def test_an_interrupted_resumption_takes_nothing_up_twice(watch: Watch) -> None:
    """One mark's file lies packed, the path itself may not be read: tried again later, the packed one is read once."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.1"
    with traversable(watch.folder):
        append(log, b"one\ntwo\n" * 300)
        with unprivileged():
            watch.poll()
        log.rename(old)
        append(log, b"three\n" * 300)
        with unprivileged():
            watch.poll()
        kept = [watch.follower.mark(str(log), 1, 8, 2), watch.follower.mark(str(log), 2, 1800, 300)]
        _pack(old)
        log.unlink()
        append(log, b"four\n")
        log.chmod(0)
        watch.restart(kept)
        with unprivileged():
            assert watch.polls(5) == b"one\ntwo\n" * 299
        log.chmod(0o644)
        with unprivileged():
            assert watch.polls(20) == b"four\n"


@pytest.mark.parametrize("policy", ["continue", "restart"])
def test_replaced_by_a_longer_file(tmp_path: Path, policy: Literal["continue", "restart"]) -> None:
    """A file put in the log's place that begins with all that was read is read on, or anew, as on_replace says."""
    watch = Watch(tmp_path, settings=replace(FROM_BEGIN, on_replace=policy))
    log, new = tmp_path / "bot.log", tmp_path / "new"
    text = b"".join(b"line %d\n" % number for number in range(500))
    append(log, text)
    watch.poll()
    new.write_bytes(text + b"more\n")
    new.rename(log)
    given = watch.polls(2)
    assert given == (b"more\n" if policy == "continue" else text + b"more\n")


def test_deleted_with_lines_unread(watch: Watch) -> None:
    """A deleted file is read to its end and then closed: its disk space comes free."""
    log = watch.folder / "bot.log"
    append(log, b"one\n")
    watch.poll()
    append(log, b"two\n")
    log.unlink()
    assert watch.poll() == b"two\n"
    watch.polls(20)
    held = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")]
    assert not [path for path in held if str(watch.folder) in path]
    append(log, b"three\n")
    assert watch.poll() == b"three\n"


def test_a_link_that_is_set_anew(tmp_path: Path) -> None:
    """The old target is read to its end, the new one from 0, and the old one goes on where it was when the link comes back."""
    watch = Watch(tmp_path)
    link, a, b = tmp_path / "bot.log", tmp_path / "a", tmp_path / "b"
    append(a, b"a1\n")
    append(b, b"b1\n")
    link.symlink_to(a)
    assert watch.poll() == b"a1\n"
    append(a, b"a2\n")
    (tmp_path / "new").symlink_to(b)
    (tmp_path / "new").rename(link)
    assert watch.poll() == b"a2\nb1\n"
    (tmp_path / "new").symlink_to(a)
    (tmp_path / "new").rename(link)
    append(a, b"a3\n")
    assert watch.polls(2) == b"a3\n"


def test_a_link_that_leaves_what_may_not_be_read_yet(watch: Watch) -> None:
    """Nothing was given of its target, which lost its permissions before a restart, and the link is gone before they come back."""
    link, target = watch.folder / "bot.log", watch.folder / "a"
    with traversable(watch.folder):
        append(target, b"one\n")
        link.symlink_to(target)
        with unprivileged():
            assert watch.poll(budget_bytes=0) == b""
        target.chmod(0)
        with unprivileged():
            watch.restart()
            watch.poll()
        link.unlink()
        with unprivileged():
            assert watch.polls(5) == b""
        target.chmod(0o644)
        with unprivileged():
            assert watch.polls(10) == b"one\n"


def test_a_link_to_nothing_and_a_circle(watch: Watch) -> None:
    """Neither crashes; each is read once it leads somewhere; the circle is told once."""
    link = watch.folder / "bot.log"
    link.symlink_to("bot.log")
    watch.polls(5)
    assert len(watch.troubles(TroubleKind.UNREADABLE)) == 1
    link.unlink()
    link.symlink_to("target")
    watch.polls(12)
    append(watch.folder / "target", b"one\n")
    assert watch.polls(10) == b"one\n"
    assert watch.troubles(TroubleKind.UNREADABLE)[-1].is_over


def test_one_file_under_many_names_is_read_once(tmp_path: Path) -> None:
    """Two patterns, a hard link and a symbolic link: the lines come once."""
    append(tmp_path / "bot.log", b"one\n")
    os.link(tmp_path / "bot.log", tmp_path / "hard.log")
    (tmp_path / "soft.log").symlink_to("bot.log")
    watch = Watch(tmp_path, "*.log", "b*.log", "soft.log")
    assert watch.polls(3) == b"one\n"


def test_a_rotated_name_that_matches_the_pattern(tmp_path: Path) -> None:
    """bot.log becomes bot-1.log, which the pattern matches too: not read again, not even after a restart much later."""
    watch = Watch(tmp_path, "*.log")
    log = tmp_path / "bot.log"
    append(log, b"one\n")
    watch.poll()
    log.rename(tmp_path / "bot-1.log")
    append(log, b"two\n")
    assert watch.polls(30) == b"two\n"
    watch.restart()
    assert watch.polls(5) == b""


def test_rotated_siblings_are_no_logs_of_their_own(tmp_path: Path) -> None:
    """With bot.log* only bot.log is followed; where no live file is, rank.0 and rank.1 are two logs."""
    for name in ("bot.log", "bot.log.1", "bot.log.2.gz", "rank.0", "rank.1"):
        append(tmp_path / name, name.encode() + b"\n")
    watch = Watch(tmp_path, "bot.log*", "rank.*")
    watch.poll()
    assert sorted(chunk.payload for chunk in watch.chunks()) == [b"bot.log\n", b"rank.0\n", b"rank.1\n"]


def test_a_folder_that_appears_later(tmp_path: Path) -> None:
    """Two levels of folders that are not there at the start."""
    watch = Watch(tmp_path, "runs/*/bot.log")
    watch.poll()
    (tmp_path / "runs" / "7").mkdir(parents=True)
    append(tmp_path / "runs" / "7" / "bot.log", b"one\n")
    assert watch.polls(2) == b"one\n"


def test_the_folder_is_renamed_and_made_again(tmp_path: Path) -> None:
    """Twice: the old file is read to its end, the new one from 0."""
    (tmp_path / "logs").mkdir()
    watch = Watch(tmp_path, "logs/bot.log")
    log = tmp_path / "logs" / "bot.log"
    for number in range(3):
        append(log, b"first %d\n" % number)
        assert watch.poll() == b"first %d\n" % number
        append(log, b"last %d\n" % number)
        (tmp_path / "logs").rename(tmp_path / f"old-{number}")
        (tmp_path / "logs").mkdir()
        assert watch.poll() == b"last %d\n" % number


@contextmanager
def traversable(folder: Path) -> Iterator[None]:
    """Lets everybody into the folder, pytest's own above it included."""
    changed = [(path, path.stat().st_mode) for path in (folder, *folder.parents) if path.stat().st_uid == os.getuid() and str(path) != "/"]
    for path, mode in changed:
        path.chmod(mode | 0o055)
    try:
        yield
    finally:
        for path, mode in changed:
            path.chmod(mode)


def test_permission_lost_and_regained(watch: Watch) -> None:
    """A rotated log that nobody may read yet: told once, tried again ever more rarely, read whole later."""
    log = watch.folder / "bot.log"
    with traversable(watch.folder):
        append(log, b"one\n")
        with unprivileged():
            watch.poll()
        log.rename(watch.folder / "bot.log.1")
        append(log, b"two\n")
        log.chmod(0)
        with unprivileged():
            watch.polls(30)
        assert [trouble.is_over for trouble in watch.troubles(TroubleKind.UNREADABLE)] == [False]
        assert watch.follower.progress()[0].problem is not None
        log.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
        with unprivileged():
            assert watch.polls(10) == b"two\n"
        assert watch.troubles(TroubleKind.UNREADABLE)[-1].is_over


@pytest.mark.parametrize("is_down", [False, True], ids=["running", "down"])
def test_a_copy_of_a_log_that_may_not_be_read_yet(watch: Watch, is_down: bool) -> None:
    """The copy is read in its place; once the log may be read, and is not cut yet, reading goes on there."""
    log, copy = watch.folder / "bot.log", watch.folder / "bot.log.1"
    with traversable(watch.folder):
        watch.poll()
        append(log, b"one\n")
        copy.write_bytes(log.read_bytes())
        log.chmod(0)
        with unprivileged():
            assert watch.polls(2) == b"one\n"
        append(log, b"two\n")
        log.chmod(0o644)
        if is_down:
            watch.restart()
        with unprivileged():
            assert watch.polls(30) == b"two\n"
        log.write_bytes(b"3\n")
        with unprivileged():
            assert watch.polls(30) == b"3\n"
    assert not watch.troubles(TroubleKind.GAP)


@pytest.mark.parametrize("kind", ["folder", "fifo", "device"])
def test_what_is_no_file_is_told(tmp_path: Path, kind: str) -> None:
    """A folder, a FIFO and a device never hold the poll up and give one trouble."""
    path = tmp_path / "bot.log"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    watch = Watch(tmp_path)
    assert watch.polls(5) == b""
    assert len(watch.troubles(TroubleKind.UNREADABLE)) == 1


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    """A file name that is not UTF-8 is followed, its mark survives JSON, and troubles show it escaped."""
    path = os.fsencode(tmp_path) + b"/b\xfft.log"
    with open(path, "wb") as file:
        file.write(b"one\n")
    watch = Watch(tmp_path, "*.log")
    assert watch.poll() == b"one\n"
    watch.restart()
    with open(path, "wb") as file:
        file.write(b"two\nthree\n")
    assert watch.poll() == b"two\nthree\n"
    assert watch.troubles(TroubleKind.GAP)[0].text.isprintable()


def test_a_monster_line(tmp_path: Path) -> None:
    """A line of 20 MB comes in pieces of the limit and the next line whole; memory stays bounded."""
    append(tmp_path / "bot.log", b"one\n" + b"x" * 20_000_000 + b"\ntwo\n")
    watch = Watch(tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sizes: list[tuple[int, int]] = []
    for _ in range(30):
        watch.poll(budget_bytes=1 << 20)
        sizes += [(chunk.line, len(chunk.payload)) for chunk in watch.chunks()]
        watch.heard.clear()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 12_000  # KiB
    assert max(size for _, size in sizes) <= 1 << 20
    assert sizes[0] == (1, 4) and {line for line, _ in sizes[1:]} == {2}
    assert sum(size for _, size in sizes) == 20_000_009


def test_more_files_than_may_be_open(tmp_path: Path) -> None:
    """Idle files are closed and opened again when they grow, are rotated or replaced; nothing is lost or repeated."""
    watch = Watch(tmp_path, "*.log", settings=replace(FROM_BEGIN, max_open=4))
    logs = [tmp_path / f"{number:02}.log" for number in range(12)]
    for log in logs:
        append(log, b"one\n")
    assert watch.polls(3) == b"one\n" * 12
    held = [name for name in os.listdir("/proc/self/fd") if os.path.realpath(f"/proc/self/fd/{name}").startswith(str(tmp_path))]
    assert len(held) <= 4
    for log in logs[:6]:
        append(log, b"two\n")
    for log in logs[6:]:
        log.rename(str(log) + ".1")
        append(log, b"three\n")
    assert sorted(watch.polls(5).split()) == [b"three"] * 6 + [b"two"] * 6
    assert not watch.troubles(TroubleKind.GAP)


def test_no_descriptor_left(watch: Watch) -> None:
    """With the process out of descriptors the poll tells, and reads on once there is one again."""
    append(watch.folder / "bot.log", b"one\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, hard))
    taken: list[int] = []
    try:
        while True:
            try:
                taken.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                break
        watch.polls(2)
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(watch.troubles(TroubleKind.UNREADABLE)) == 1
    assert watch.polls(10) == b"one\n"


@pytest.mark.parametrize("jump", [-3600.0, 366 * 86_400.0])
def test_a_jump_of_the_clock_gives_nothing_up(watch: Watch, jump: float) -> None:
    """An hour back or a year ahead: a rotated file is not given up for it, and reading goes on."""
    log, old = watch.folder / "bot.log", watch.folder / "bot.log.1"
    append(log, b"one\n")
    watch.poll()
    log.rename(old)
    append(log, b"two\n")
    watch.poll()
    assert watch.poll(jump) == b""
    append(old, b"late\n")
    append(log, b"three\n")
    assert watch.poll() == b"late\nthree\n"


def test_a_missing_path_is_told_and_over(watch: Watch) -> None:
    """A minute without the file is a trouble, its coming the end of it."""
    watch.polls(20)
    assert len(watch.troubles(TroubleKind.SOURCE_MISSING)) == 1
    append(watch.folder / "bot.log", b"one\n")
    assert watch.polls(2) == b"one\n"
    assert watch.troubles(TroubleKind.SOURCE_MISSING)[-1].is_over


def test_the_daemons_own_files_are_left_out(tmp_path: Path) -> None:
    """Excluded paths and folders are not followed whatever the pattern."""
    (tmp_path / "state").mkdir()
    for name in ("bot.log", "own.log", "state/x.log"):
        append(tmp_path / name, name.encode() + b"\n")
    watch = Watch(tmp_path, "**/*.log", settings=replace(FROM_BEGIN, excluded=(str(tmp_path / "own.log"), str(tmp_path / "state"))))
    assert watch.poll() == b"bot.log\n"


def test_what_concerns_a_watch(tmp_path: Path) -> None:
    """Followed logs, their rotated names and what matches; neither neighbours nor the daemon's own files."""
    append(tmp_path / "bot.log", b"one\n")
    watch = Watch(tmp_path, "bot.log", "runs/*.log", settings=replace(FROM_BEGIN, excluded=(str(tmp_path / "runs" / "own.log"),)))
    watch.poll()
    names = ("bot.log", "bot.log.1", "bot.log.2.gz", "runs/7.log", "runs/own.log", "other.log", "bot.txt")
    assert [name for name in names if watch.follower.concerns(str(tmp_path / name))] == list(names[:4])


def test_the_budget_bounds_a_poll(tmp_path: Path) -> None:
    """A poll reads about its budget and says that there is more; several files get their turns."""
    for name in ("a.log", "b.log"):
        append(tmp_path / name, b"0123456789\n" * 400_000)
    watch = Watch(tmp_path, "*.log")
    assert len(watch.poll(budget_bytes=2 << 20)) < 3 << 20
    assert watch.follower.has_more
    assert {chunk.stream for chunk in watch.chunks()} == {str(tmp_path / "a.log"), str(tmp_path / "b.log")}
    watch.polls(10)
    assert not watch.follower.has_more
    assert sum(len(chunk.payload) for chunk in watch.chunks()) == 2 * 4_400_000


def test_an_excerpt_has_the_lines_around(watch: Watch) -> None:
    """Lines before and after an offset, from what is kept or from the file, also when that was cut meanwhile."""
    log = watch.folder / "bot.log"
    append(log, b"".join(b"line %d\n" % number for number in range(50)))
    watch.poll()
    around = watch.follower.excerpt(str(log), 1, 14, 1, 2)
    assert around is not None
    assert (around.offset, around.lines, around.at) == (7, (b"line 1", b"line 2", b"line 3", b"line 4"), 1)
    log.write_bytes(b"")
    assert watch.follower.excerpt(str(log), 1, 14, 1, 2) == around
    assert watch.follower.excerpt(str(log), 1, 9999, 1, 2) is None


def test_a_mark_before_what_was_given(watch: Watch) -> None:
    """Reading goes on at the position committed, not at the one given."""
    log = watch.folder / "bot.log"
    append(log, b"one\ntwo\nthree\n")
    watch.poll()
    watch.restart([watch.follower.mark(str(log), 1, 4, 1)])
    assert watch.poll() == b"two\nthree\n"
    assert [(chunk.offset, chunk.line) for chunk in watch.chunks()] == [(4, 2)]


def test_a_pattern_added_to_the_configuration_is_at_its_first_start(tmp_path: Path) -> None:
    """Files of a pattern that no earlier run watched fall under start = end; those of a known one are new."""
    for name in ("a.log", "b.log"):
        append(tmp_path / name, b"old\n")
    settings = FollowSettings("bot", (str(tmp_path / "a*"), str(tmp_path / "b*")))
    follower = Follower(settings, (), Watched((str(tmp_path / "a*"),), BEGIN))
    heard = follower.poll(BEGIN + 1)
    assert [(item.stream, item.payload) for item in heard if isinstance(item, Chunk)] == [(str(tmp_path / "a.log"), b"old\n")]


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE])
def test_a_file_that_fails_while_it_is_read(watch: Watch, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A disk error or a stale handle is told, the file opened again after a pause, and reading goes on where it was."""
    log = watch.folder / "bot.log"
    append(log, b"one\n")
    watch.poll()
    append(log, b"two\n")

    def failing(fd: int, size: int, offset: int) -> bytes:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", failing)
        assert watch.polls(3) == b""
    assert len(watch.troubles(TroubleKind.UNREADABLE)) == 1
    assert watch.polls(10) == b"two\n"
    assert watch.troubles(TroubleKind.UNREADABLE)[-1].is_over and not watch.troubles(TroubleKind.GAP)


def test_an_idle_poll_is_cheap(tmp_path: Path) -> None:
    """Ten idle files cost a few system calls each: far under the 2 ms a second that 0.2 % of a core are."""
    for number in range(10):
        append(tmp_path / f"{number}.log", b"one\n" * 1000)
    watch = Watch(tmp_path, "*.log")
    watch.polls(3)
    begun = time.process_time()
    for _ in range(200):
        watch.poll()
    assert (time.process_time() - begun) / 200 < 0.002


def test_it_follows_as_tail_does(tmp_path: Path) -> None:
    """For writing, renaming and making anew, GNU `tail -F` and the follower give the same bytes."""
    log, told = tmp_path / "bot.log", tmp_path / "told"
    log.touch()
    watch = Watch(tmp_path)
    given = watch.poll()
    with told.open("wb") as out:
        tail = subprocess.Popen(["tail", "-n", "+1", "-s", "0.02", "-F", str(log)], stdout=out, stderr=subprocess.DEVNULL)
    try:
        expected = b""
        for number in range(6):
            lines = b"".join(b"%d %d\n" % (number, line) for line in range(100))
            expected += lines
            append(log, lines)
            given += watch.poll()
            for _ in range(500):
                if told.stat().st_size == len(expected):
                    break
                threading.Event().wait(0.02)  # tail is another program: only it knows when it read
            if number % 2:
                log.rename(tmp_path / f"bot.log.{number}")
    finally:
        tail.kill()
        tail.wait()
    assert given == expected == told.read_bytes()


def test_a_bad_mark_is_one_line() -> None:
    """A store that is damaged gives a StoreError, not a crash."""
    for bad in ({}, {"stream": 5}, {"nonsense": 1}):
        with pytest.raises(StoreError):
            mark_from_json(bad)


def test_marks_outlive_their_use() -> None:
    """Marks of ended generations are deleted after a month or beyond 64 a stream; others never."""
    live = Mark("a", 1, 1, 1, 0, "", 0, 0, "", 0)
    ended = [replace(live, generation=number, ended_at=BEGIN) for number in range(2, 100)]
    assert [mark.generation for mark in outlived([live, *ended], BEGIN + 5)] == list(range(35, 1, -1))
    assert len(outlived([live, *ended], BEGIN + 31 * 86_400)) == 98
