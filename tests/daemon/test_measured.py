"""A watch that is killed at any point between an alert and the message of its measurement; only the diagnostic is played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from recompile_watch.core.diagnostic_runs import end_of
from recompile_watch.daemon import building
from recompile_watch.daemon.diagnostics import MAX_KEPT, MAX_KEPT_BYTES, TABLE, Diagnostics
from recompile_watch.respond.diagnostic_process import DiagnosticProcess, Ended
from recompile_watch.store import Changes
from tests.core.test_watch_measured import REPORT
from tests.daemon.test_loop import POINTS
from tests.daemon.world import CONFIG, World, limit_hit

SECTION = '[diagnose]\non_alert = true\nmodel = "toto"\nworkload = "bot:make"\nwait = "0s"\npause = "1s"\n'
DECIDED = {**REPORT, "verdict": {"status": "decided", "choose": "eager", "summary": "keep eager: it is faster"}}
ALERT = limit_hit("attend", 1).replace(b"/srv/bot/attend.py", b"/srv/toto/model/attention.py")


class Played:
    """A diagnostic that has its result in the turn after its start."""

    started: ClassVar[list[str]] = []

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], limit_s: float) -> None:
        self._is_running = False

    def start(self, options: Sequence[str], mark: str, now: float) -> Ended | None:
        self.started.append(mark)
        self._is_running = True
        return None

    def collect(self, now: float) -> Ended | None:
        ended, self._is_running = Ended(end_of(DECIDED), DECIDED) if self._is_running else None, False
        return ended

    def reading(self) -> list[int]:
        return []

    def next_due(self) -> float | None:
        return 0.0 if self._is_running else None

    def kill(self) -> None:
        self._is_running = False


@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_it_is_kept_and_told_once(tmp_path: Path, point: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One result in the database, one message of it, or the same again that says so; at most one run more than without the kill."""
    monkeypatch.setattr(building, "DiagnosticProcess", Played)
    Played.started.clear()
    world = World(tmp_path, CONFIG + SECTION)
    world.turn(2)
    world.kill_at = (point, count)
    world.write(ALERT)
    world.turn(40)
    measured = [job for job in world.post.jobs if job.message is not None and "Measured: keep eager: it is faster" in job.message.text]
    opened = [job for job in world.post.jobs if job.message is not None and "attend hit the recompile limit" in job.message.title]
    assert opened[0].message is not None and not opened[0].message.title.startswith("Measured")
    assert len({job.id for job in measured}) == 1
    assert all(job.message is not None and "Possible duplicate" in job.message.text for job in measured[1:])
    assert len(world.store.load(TABLE)) == 1 and len(Played.started) <= 1 + world.kills
    world.store.close()


def test_a_bounded_number_of_results_is_kept(tmp_path: Path) -> None:
    """The oldest go, also after a restart; of one that is too large the verdict stays."""
    kept: dict[int, object] = {}
    process = DiagnosticProcess((), {}, 1.0)
    for _ in range(2):
        diagnostics = Diagnostics(process, tmp_path / "watch.toml", tmp_path, "toto", kept)
        for number in range(MAX_KEPT):
            changes = Changes()
            diagnostics.keep(changes, REPORT, float(number), incident=None, model="toto", is_by_hand=True)
            for (key,), row in changes.rows[TABLE].items():
                assert isinstance(key, int)
                kept.pop(key, None)
                kept |= {} if row is None else {key: row}
    assert sorted(kept) == list(range(MAX_KEPT + 1, 2 * MAX_KEPT + 1))
    changes = Changes()
    diagnostics.keep(changes, {**REPORT, "candidates": ["x" * MAX_KEPT_BYTES]}, 1.0, incident=None, model=None, is_by_hand=True)
    (large,) = (row for row in changes.rows[TABLE].values() if row is not None)
    assert isinstance(large, dict) and large["report"]["verdict"] == REPORT["verdict"] and "candidates" not in large["report"]
