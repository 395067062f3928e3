"""A world for the follower: a bot that writes, a rotator, a store that commits, and the files that the judge looks at."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import zstandard

from recompile_watch.core.heard import Trouble, TroubleKind
from recompile_watch.sources.follow import Chunk, Follower, FollowSettings, GenerationEnded, GenerationStarted, Mark, Watched
from recompile_watch.sources.stream import Clock
from tests.sources.follow_judge import Judge, Verdict

GRACE_S = 60.0
BLOCKED_S = 31.0  # of watching: what could not be read is tried again after half a minute at most, by a look at its path each second
START = 1_700_000_000
_NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Commit:
    """What the store holds. verdict: what counts as given and told with it. lives: of the files that the marks are of."""

    marks: dict[tuple[str, int], Mark]
    verdict: Verdict
    watched: Watched | None
    lives: dict[tuple[str, int], tuple[int, int]]


@dataclass(slots=True)
class Reader:
    """How far one generation was given, as line starts: (position, lines, lines of text up to there)."""

    starts: list[tuple[int, int]] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    torn: bytes = b""


class World:
    """One log at `bot.log` in a fresh folder, written, rotated and followed.

    style: ``plain``, ``link`` or ``pattern``. keep: rotated files that are kept. header: what each file of the bot begins with.
    is_hasty: the times of files tell nothing of what happens between two polls.
    """

    def __init__(self, rng: random.Random, style: str = "plain", keep: int = 4, header: bytes = b"", *, is_hasty: bool = False) -> None:
        self.rng, self.style, self.keep, self.header, self.is_hasty = rng, style, keep, header, is_hasty
        self.folder = Path(tempfile.mkdtemp(prefix="follow-"))
        self.folder.chmod(0o755)
        self.path = self.folder / "bot.log"
        self.settings = FollowSettings("bot", (str(self.folder / "*.log") if style == "pattern" else str(self.path),), grace_s=GRACE_S, start="begin")
        self.now = float(START)
        self.jump = 0.0
        self.incarnation, self.number, self.links = 0, 0, 0
        self.live_fd = -1
        self.is_down = False  # nobody watches
        self.clock = Clock()  # how the watch counts time
        self.blocked_until = 0.0
        self.stale: list[tuple[int, int, list[int]]] = []  # descriptor, incarnation, [next number]
        self.lives: dict[int, int] = {}  # by inode, which life of it: made anew or cut
        self.lives_of: dict[tuple[str, int], tuple[int, int]] = {}  # by generation: the inode and which life of it
        self.readers: dict[tuple[str, int], Reader] = {}
        self.incarnation_of: dict[tuple[str, int], int] = {}
        self.told: list[str] = []
        self.judge = Judge(header)
        self.follower = Follower(self.settings)
        self.history: list[Commit] = [Commit({}, Verdict(), Watched(self.settings.paths, self.now), {})]
        self.poll()

    # --- the bot -----------------------------------------------------------------------------------------------------

    def write(self, lines: int = 1) -> None:
        """Whole lines at the end of the log."""
        self._open()
        for _ in range(lines):
            os.write(self.live_fd, self._line() + b"\n")
        self._stamp(self.live_fd)

    def write_part(self) -> None:
        """A line in two writes with a poll between."""
        self._open()
        text = self._line() + b"\n"
        cut = self.rng.randrange(1, len(text))
        os.write(self.live_fd, text[:cut])
        self._stamp(self.live_fd)
        self.poll()
        os.write(self.live_fd, text[cut:])
        self._stamp(self.live_fd)

    def leave_part(self) -> None:
        """The start of a line that nobody will finish."""
        self._open()
        text = self._line(is_part=True)
        part = text[: self.rng.randrange(len(text) // 2, len(text))] + b"%d" % self.rng.getrandbits(64)
        self.judge.parts[part] = self.incarnation
        os.write(self.live_fd, part)
        self._stamp(self.live_fd)
        self._drop_live()

    def write_stale(self) -> None:
        """The old writer goes on in the file that was rotated away."""
        if not self.stale:
            return
        fd, incarnation, numbers = self.rng.choice(self.stale)
        text = self._text(incarnation, numbers)
        self.judge.wrote(text, incarnation, has_name=os.fstat(fd).st_nlink > 0)
        os.write(fd, text + b"\n")
        self._stamp(fd)

    def _open(self) -> None:
        if self.live_fd < 0:
            if self.style == "link" and not self.path.exists():
                self.links += 1
                target = self.folder / f"target-{self.links}"
                target.touch()
                with suppress(FileNotFoundError):
                    self.path.unlink()
                self.path.symlink_to(target.name)
            is_new = not self.path.exists() or not self.path.stat().st_size
            self.live_fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            self.path.chmod(0o644)
            if is_new:
                self._renew(self.path)
            if is_new or self.number == 0:
                self.incarnation, self.number = self.incarnation + 1, 0
            if is_new and self.header:  # never alone: a log that begins anew with all that was read of it is the same to any reader
                os.write(self.live_fd, self.header + self._line() + b"\n")
            if not is_new:
                self._finish_part()

    def _finish_part(self) -> None:
        """A bot that starts again in an old file ends the line that was left."""
        raw = self.path.read_bytes()
        part = raw[raw.rfind(b"\n") + 1 :].lstrip(b"\0")
        if part:
            os.write(self.live_fd, b"\n")
            self.judge.finished(part, self.incarnation)

    def _renew(self, path: Path) -> None:
        """The file is made or cut: another life of its inode."""
        self.lives[path.stat().st_ino] = len(self.lives) + max(self.lives.values(), default=0) + 1

    def _line(self, *, is_part: bool = False) -> bytes:
        numbers = [self.number]
        text = self._text(self.incarnation, numbers)
        self.number = numbers[0]
        if not is_part:
            self.judge.wrote(text, self.incarnation)
        return text

    def _text(self, incarnation: int, numbers: list[int], size: int | None = None) -> bytes:
        numbers[0] += 1
        filler = self.rng.choice((0, 3, 40, 900)) if size is None else size
        return b"<%d:%d:%s>" % (incarnation, numbers[0], b"x" * filler)

    def _stamp(self, target: int | Path) -> None:
        """The file's time is the world's: operations are a second apart, not microseconds; or at the same time in a hasty one."""
        self._pass_time()
        os.utime(target, ns=(int(self.now * 1e9), int(self.now * 1e9)))

    def _pass_time(self) -> None:
        if not self.is_hasty:
            self.now += 1

    def _drop_live(self, *, keeps_writer: bool = False) -> None:
        if self.live_fd < 0:
            return
        if keeps_writer:
            self.stale.append((self.live_fd, self.incarnation, [self.number]))
            if len(self.stale) > 3:
                os.close(self.stale.pop(0)[0])
        else:
            os.close(self.live_fd)
        self.live_fd = -1

    # --- the rotator -------------------------------------------------------------------------------------------------

    def rotate(self) -> None:
        """Rename; the writer makes a new file with its next line. Sometimes the old writer lives on."""
        if not os.path.lexists(self.path):
            return
        self._drop_live(keeps_writer=self.rng.random() < 0.5)
        if self.style == "link":
            self.path.unlink()
            self._forget_old(sorted(self.folder.glob("target-*"), key=lambda path: int(path.name.split("-")[1])))
        elif self.style == "pattern":
            self.links += 1
            os.rename(self.path, self.folder / f"bot-{self.links:03}.log")
            self._forget_old(sorted(self.folder.glob("bot-*.log")))
        else:
            self._shift()
            os.rename(self.path, self._rotated(1))
        self._pass_time()
        self.number = 0
        self._judge()

    def rotate_twice(self) -> None:
        """Two rotations with lines between and no look."""
        self.rotate()
        self.write(self.rng.randrange(1, 4))
        self.rotate()

    def copy_and_truncate(self, refill: str = "none") -> None:
        """logrotate's copytruncate; then the log grows again: ``none``, ``smaller``, ``equal`` or ``larger`` than before."""
        if not self.path.exists() or self.style == "pattern":
            return
        if self.style == "plain":
            self._shift()
            self._copy(self._rotated(1))
        self._truncate(refill)

    def _copy(self, copy: Path) -> None:
        """A copy takes its time, and so does the cut: what is written when it was made is in no file then."""
        with copy.open("xb") as file:
            if self.rng.random() < 0.3:
                file.write(self.path.read_bytes()[: self.rng.choice((0, self.rng.randrange(self.path.stat().st_size + 1)))])
                file.flush()
                self._stamp(copy)
                self._go_on("while it is copied")
            file.write(self.path.read_bytes()[file.tell() :])
        self._stamp(copy)
        written, parts = set(self.judge.written), dict(self.judge.parts)
        self._go_on("before the cut")
        self.judge.let_go(self.judge.written.keys() - written)
        self.judge.parts |= parts  # one that was finished meanwhile is still the end of the copy

    def _go_on(self, when: str) -> None:
        """The bot writes, the watch looks and is killed."""
        for step in () if self.is_down else (self.write, self.poll, self.commit, self.restart):
            if self.rng.random() < 0.5:
                self.told.append(f"{step.__name__} {when}")
                step()

    def truncate(self, refill: str = "none") -> None:
        """Cut to nothing without a copy."""
        if self.path.exists():
            self._truncate(refill)

    def _truncate(self, refill: str) -> None:
        size = self.path.stat().st_size
        os.truncate(self.path, 0)
        self._renew(self.path)
        self.judge.destroyed += 1
        self._stamp(self.path)
        self._judge()
        self.number = 0
        self._drop_live()
        if refill != "none" and size > 40:
            self._open()
            wanted = {"smaller": size // 2, "equal": size, "larger": size + 500}[refill]
            self._fill(max(wanted, 20))

    def _fill(self, wanted: int) -> None:
        done = self.path.stat().st_size
        while wanted - done >= 20:
            room = wanted - done
            take = room if room < 400 else self.rng.randrange(20, 300)
            numbers = [self.number]
            prefix = len(b"<%d:%d:>\n" % (self.incarnation, self.number + 1))
            text = self._text(self.incarnation, numbers, take - prefix)
            self.number = numbers[0]
            self.judge.wrote(text, self.incarnation)
            os.write(self.live_fd, text + b"\n")
            done += take
        self._stamp(self.live_fd)

    def stale_hole(self) -> None:
        """A writer without O_APPEND goes on at its old offset after a cut: NULs up to there."""
        if not self.path.exists() or self.path.stat().st_size < len(self.header) + 200:
            return
        size = self.path.stat().st_size
        self.truncate()
        self._open()
        if self.path.stat().st_size < size:
            fd = os.open(self.path, os.O_WRONLY)
            os.pwrite(fd, self._line() + b"\n", size)
            os.close(fd)
        self._stamp(self.path)

    def compress(self) -> None:
        """Packs a rotated file, keeping its time. Its writers may be wrong and go on: what they write is in no file then."""
        plain = [path for number in range(1, self.keep + 1) if (path := self._rotated(number)).exists()]
        if not plain:
            return
        path = self.rng.choice(plain)
        status, raw = path.stat(), path.read_bytes()
        packed = path.with_name(path.name + self.rng.choice((".gz", ".zst")))
        packed.write_bytes(gzip.compress(raw) if packed.suffix == ".gz" else zstandard.ZstdCompressor().compress(raw))
        os.utime(packed, ns=(status.st_atime_ns, status.st_mtime_ns))
        path.unlink()
        self._pass_time()
        self._judge()

    def delete(self) -> None:
        """The log goes; the writer makes a new one with its next line, often in the same inode."""
        if not self.path.exists():
            return
        self.judge.destroyed += 1
        self._drop_live(keeps_writer=self.rng.random() < 0.3)
        os.unlink(self.path)
        self.number = 0
        self._pass_time()
        self._judge()

    def _rotated(self, number: int) -> Path:
        return self.folder / f"bot.log.{number}"

    def _shift(self) -> None:
        for number in range(self.keep, 0, -1):
            for suffix in ("", ".gz", ".zst"):
                path = Path(str(self._rotated(number)) + suffix)
                if not path.exists():
                    continue
                if number == self.keep:
                    self.judge.destroyed += 1
                    path.unlink()
                else:
                    path.rename(str(self._rotated(number + 1)) + suffix)

    def _forget_old(self, paths: list[Path]) -> None:
        for path in paths[: -self.keep]:
            self.judge.destroyed += 1
            path.unlink()

    # --- permission and time -----------------------------------------------------------------------------------------

    def forbid(self) -> None:
        """Nobody but root may read the log."""
        if self.path.exists():
            self.path.chmod(0)

    def allow(self) -> None:
        """Everybody may read everything again."""
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):
                path.chmod(0o644)

    def jump_clock(self) -> None:
        """The wall clock jumps, or comes back."""
        self.jump = 0.0 if self.jump else self.rng.choice((-3600.0, 366 * 86400.0))

    def wait(self) -> None:
        """Half a minute passes."""
        self.now += GRACE_S / 2

    def idle(self) -> None:
        """Nobody writes until what was rotated away is given up."""
        for _ in range(int(GRACE_S / 8)):
            self.now += 10
            self.poll()

    # --- the watch ---------------------------------------------------------------------------------------------------

    def poll(self, budget: int | None = None) -> None:
        """One poll; what it gives is checked at once."""
        self.now += 1
        self.clock.advance(self.now + self.jump)
        if not self._is_all_readable():
            self.blocked_until = self.clock.seconds + BLOCKED_S
        if self.style != "pattern":  # there, rotated files are streams of their own
            self.judge.look(self._lines(self.folder.iterdir()) - self._nameless_lines(), is_blocked=self.clock.seconds < self.blocked_until)
        with unprivileged():
            heard = self.follower.poll(self.now + self.jump, budget or self.rng.choice((1, 5000, 1 << 20)))
        for item in heard:
            self._hear(item)
        for key in self.readers:
            with unprivileged():
                inode = self.follower.mark(*key, *self.readers[key].starts[0]).inode
            if self.lives_of.get(key, (0, 0))[0] != inode:
                self.lives_of[key] = inode, self.lives.get(inode, 0)
        self._judge()

    def commit(self) -> None:
        """The store keeps marks at line starts, at or before what was given."""
        last = self.history[-1]
        marks = dict(last.marks)
        given = set(last.verdict.given)
        for key, reader in list(self.readers.items()):
            is_whole = self.rng.random() < 0.6
            at = len(reader.starts) - 1 if is_whole else self.rng.randrange(len(reader.starts))
            old = marks.get(key)
            if old is not None and reader.starts[at][0] < old.position:
                continue
            with unprivileged():
                marks[key] = self.follower.mark(*key, *reader.starts[at])
            given.update(reader.texts[:at])
            if reader.torn and at == len(reader.starts) - 1:
                given.update({reader.torn} & self.judge.parts.keys())
                kept = self.follower.release(*key)
                marks.pop(key)
                del self.readers[key]
                if kept is not None:
                    marks[key] = kept
        verdict = self.judge.verdict.copy()
        verdict.given = given
        lives = {key: self.lives_of[key] for key in marks}
        self.history.append(Commit(marks, verdict, self.follower.watched(), lives))

    def restart(self, back: int = 0) -> None:
        """The watch is killed and starts again from the store, or from an older copy of it."""
        self.follower.close()
        at = max(0, len(self.history) - 1 - back)
        self.history = self.history[: at + 1]
        commit = self.history[-1]
        self.judge.verdict = commit.verdict.copy()
        self.lives_of = dict(commit.lives)
        # What was given and not committed is lost a second time where its file is gone.
        here = {(path.lstat().st_ino, self.lives.get(path.lstat().st_ino, 0)) for path in self.folder.iterdir()}
        self.judge.destroyed += sum(mark.ended_at is None and commit.lives[key] not in here for key, mark in commit.marks.items())
        self.readers = {}
        self.follower = Follower(self.settings, list(commit.marks.values()), commit.watched)
        self._judge()

    def _hear(self, item: Chunk | GenerationStarted | GenerationEnded | Trouble) -> None:
        self.told.append(repr(item)[:300])
        if isinstance(item, Trouble):
            self.judge.verdict.told += item.kind is TroubleKind.GAP
            return
        key = item.stream, item.generation
        if isinstance(item, GenerationStarted):
            self.readers.setdefault(key, Reader([(item.position, item.lines)]))
        elif isinstance(item, GenerationEnded):
            reader = self.readers.get(key)
            if reader is not None:
                reader.torn = reader.torn or b"."
                self.judge.ended(self.incarnation_of.get(key))
            elif key in self.history[-1].marks:
                self.judge.ended(self.incarnation_of.get(key))
                self.readers[key] = Reader([(self.history[-1].marks[key].position, self.history[-1].marks[key].lines)], [], b".")
        else:
            self._read(key, item)

    def _read(self, key: tuple[str, int], chunk: Chunk) -> None:
        reader = self.readers.setdefault(key, Reader([(chunk.offset, chunk.line - 1)]))
        lines = chunk.payload.split(b"\n")
        position, count = chunk.offset, chunk.line - 1
        for text in lines[:-1]:
            position, count = position + len(text) + 1, count + 1
            text = text.lstrip(b"\0")
            self.incarnation_of[key] = self.judge.take(text) or self.incarnation_of.get(key, 0)
            reader.texts.append(text)
            reader.starts.append((position, count))
        if lines[-1]:
            self.judge.take_part(lines[-1])
            reader.torn = lines[-1]

    # --- what is on the disk -----------------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Lines that no longer exist anywhere may be lost from now on."""
        if self.judge.missing():
            self.judge.exist(self._lines(self.folder.iterdir()) | self._nameless_lines())

    def _is_all_readable(self) -> bool:
        return all(path.lstat().st_mode & 0o004 for path in self.folder.iterdir())

    def _lines(self, paths: Iterable[Path]) -> set[bytes]:
        """All text, whole lines or not, in these files."""
        found: set[bytes] = set()
        known = self._known_inodes() if self.style == "link" else None
        for path in paths:
            if path.is_symlink() or (known is not None and path.stat().st_ino not in known):
                continue
            raw = path.read_bytes()
            if path.suffix == ".gz":
                raw = gzip.decompress(raw)
            elif path.suffix == ".zst":
                raw = zstandard.ZstdDecompressor().decompress(raw, max_output_size=1 << 28)
            found.update(raw.replace(b"\0", b"").split(b"\n"))
        return found

    def _nameless_lines(self) -> set[bytes]:
        """All text in the deleted files that the follower holds."""
        return {text for raw in self._deleted_but_open() for text in raw.replace(b"\0", b"").split(b"\n")}

    def _known_inodes(self) -> set[int]:
        """Where a link leads is all one can know of it: a target it led to between two looks has no name to find it by."""
        commit = self.history[-1]
        told = {commit.lives[key] for key, mark in commit.marks.items() if mark.head_bytes}
        stored = {inode for inode, life in self.lives.items() if (inode, life) in told}
        return stored | self._held_inodes() | ({self.path.stat().st_ino} if self.path.exists() else set())

    def _held_inodes(self) -> set[int]:
        own = {self.live_fd, *(writer[0] for writer in self.stale)}
        held: set[int] = set()
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                if int(name) not in own and os.readlink(f"/proc/self/fd/{name}").startswith(str(self.folder)):
                    held.add(os.fstat(int(name)).st_ino)
        return held

    def _deleted_but_open(self) -> Iterator[bytes]:
        """Deleted files that the follower holds; the writers' own descriptors are for writing only."""
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                target = os.readlink(f"/proc/self/fd/{name}")
                if target.startswith(str(self.folder)) and target.endswith("(deleted)"):
                    yield os.pread(int(name), 1 << 26, 0)

    def finish(self) -> None:
        """Everything is read to its end and judged."""
        self.jump = 0.0
        self.allow()
        for _ in range(30):
            self.now += GRACE_S / 6
            for _ in range(40):
                self.poll(1 << 20)
                if not self.follower.has_more:
                    break
            self.commit()
        live = os.path.realpath(self.path)
        rotated = [path for path in self.folder.iterdir() if os.path.realpath(path) != live]
        self.judge.close(self._lines(rotated if self.style != "pattern" else []))  # there, each of them may still be a live log

    def close(self) -> None:
        """Removes everything."""
        self.follower.close()
        self._drop_live()
        for writer in self.stale:
            os.close(writer[0])
        self.stale = []
        shutil.rmtree(self.folder)


@contextmanager
def unprivileged() -> Iterator[None]:
    """As a user whom permissions concern; tests may run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
