"""A whole watch in this process: real files, real SQLite, the real loop; only the clock and the way to the receiver are ours.

Killing it means to forget every object without closing anything and to build all of it again from what is on disk,
as after ``kill -9``; ``tests/daemon/test_process.py`` does the same to a real process.
"""

from __future__ import annotations

import functools
import selectors
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from recompile_watch.config import load_catalog
from recompile_watch.core.messages import Delivered, Outcome
from recompile_watch.daemon import building
from recompile_watch.daemon.building import build
from recompile_watch.daemon.loop import Clock, Loop
from recompile_watch.respond.courier import Courier, Result
from recompile_watch.respond.wire import Job
from recompile_watch.store import Changes, Store
from recompile_watch.watch_config import read_config
from tests.conftest import matcher, rules

# The same for every watch; loading them again at each restart would be most of the time.
_CATALOG = functools.cache(load_catalog)
vars(building).update(load_rules=lambda paths: rules(), load_catalog=lambda: _CATALOG(), LiteralMatcher=lambda literals: matcher())
START = 1_761_815_000.0  # 2025-10-30 09:03:20 UTC
CONFIG = """
state_dir = "{folder}/state"
[[source]]
name = "bot"
path = "{folder}/logs/*.log"
timezone = "UTC"
start = "begin"
[[receiver]]
name = "ops"
url = "json://127.0.0.1:9/alerts"
burst = 1000
at_once = 1000
same_kind_wait = "1s"
"""


class Killed(BaseException):
    """What stands for SIGKILL: nothing of the house catches it."""


class Post:
    """The receivers: takes every message, unless told otherwise, and remembers it."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.results: list[Result] = []
        self.outcome: Outcome = Delivered("200")
        self.is_silent = False

    def submit(self, job: Job, now: float) -> None:
        self.jobs.append(job)
        if not self.is_silent:
            self.results.append(Result(job.id, job.receiver, self.outcome))

    def collect(self, now: float) -> list[Result]:
        results, self.results = self.results, []
        return results

    def fds(self) -> tuple[list[int], list[int]]:
        return [], []

    def next_due(self) -> float | None:
        return None

    @property
    def in_flight(self) -> int:
        return len(self.results)

    def close(self, grace_s: float = 0.0) -> list[Result]:
        return self.collect(0.0)


class World:
    """One watch over one folder of logs. kill_at: the labelled point, and how often it is passed before, at which it dies.

    before: what the bot wrote before the very first start.
    """

    def __init__(self, folder: Path, config: str = CONFIG, before: bytes = b"") -> None:
        self.folder = folder
        (folder / "logs").mkdir(exist_ok=True)
        if before:
            self.write(before)
        self.file = folder / "watch.toml"
        self.file.write_text(config.replace("{folder}", str(folder)))
        self.now = START
        self.post = Post()
        self.kills = 0
        self.kill_at: tuple[str, int] | None = None
        self._begin()

    def _begin(self) -> None:
        config = read_config(self.file, {})
        self.store = Store(config.state_folder, now=self.now)
        parts, troubles = build(config, self.store, now=self.now)
        parts.courier = cast(Courier, self.post)
        if parts.wake is not None:  # the clock is ours, so that nothing need wake it
            parts.wake.close()
            parts.wake = None
        self.post.results.clear()
        self._label(parts.store)
        self.loop = Loop(parts, Clock(lambda: self.now, lambda: self.now), selectors.DefaultSelector(), poll_interval_s=1.0)
        self.watch = parts.watch
        for trouble in troubles:
            self.loop.trouble(trouble)

    def _label(self, store: Store) -> None:
        """Puts labelled points in front of and behind every commit and every message."""
        commit = store.commit

        def labelled_commit(changes: Changes) -> None:
            self.point("read")
            commit(changes)
            self.point("committed")

        def labelled_submit(job: Job, now: float) -> None:
            self.point("sending")
            Post.submit(self.post, job, now)
            self.point("sent")

        store.commit = labelled_commit  # type: ignore[method-assign]
        self.post.submit = labelled_submit  # type: ignore[method-assign]

    def point(self, name: str) -> None:
        """A place where the watch may be killed."""
        if self.kill_at is not None and self.kill_at[0] == name:
            if self.kill_at[1] <= 0:
                self.kill_at = None
                self.kills += 1
                raise Killed
            self.kill_at = (name, self.kill_at[1] - 1)

    def restart(self) -> None:
        """Builds the watch again from what is on disk."""
        self.store.close()
        self._begin()

    def turn(self, times: int = 1, step_s: float = 1.0) -> None:
        """Lets the watch turn, a second of its clock apart; when it is killed it starts again."""
        for _ in range(times):
            self.now += step_s
            try:
                self.loop.turn()
            except Killed:
                self.restart()

    def incidents(self) -> dict[str, Mapping[str, object]]:
        """The incidents that are written down, by kind and symbol or function."""
        rows = [cast(Mapping[str, object], row) for row in self.store.load("incidents").values()]
        return {f"{row['kind']} {row['function'] or ' '.join(cast(list[str], row['symbols']))}".strip(): row for row in rows}

    def log(self, name: str = "bot.log") -> Path:
        """A log of the bot."""
        return self.folder / "logs" / name

    def write(self, text: bytes, name: str = "bot.log") -> None:
        """The bot writes."""
        with self.log(name).open("ab") as stream:
            stream.write(text)

    def told(self) -> str:
        """All messages so far, as text."""
        return "\n".join(job.message.title + "\n" + job.message.text for job in self.post.jobs if job.message is not None)


def quote(symbol: str, second: int) -> bytes:
    """The bot prices a symbol without a quote."""
    clock = f"2025-10-30 09:{4 + second // 60 % 50:02d}:{second % 60:02d}.123"
    return f"{clock} | INFO     | data_curate_daily:x:288 - Populating synthetic bid/ask (0 spread) for {symbol} (ADD_LATEST=False)\n".encode()


def limit_hit(function: str, second: int) -> bytes:
    """torch reaches the recompile limit of a function: five lines, one event."""
    head = f"W1030 09:{4 + second // 60 % 50:02d}:{second % 60:02d}.059999 101341 torch/_dynamo/convert_frame.py:1358] [6/8] "
    lines = (
        "torch._dynamo hit config.recompile_limit (8)", f"   function: '{function}' (/srv/bot/{function}.py:105)",
        "   last reason: 6/7: kv_cache._current_idx[7] == 0", 'To log all recompilation reasons, use TORCH_LOGS="recompiles".',
        "To diagnose recompilation issues, see https://pytorch.org/docs/main/torch.compiler_troubleshooting.html",
    )  # fmt: skip
    return "".join(f"{head}{line}\n" for line in lines).encode()
