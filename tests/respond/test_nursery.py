"""Tests of `recompile_watch.respond.nursery` with the real worker and a torch that only counts its imports."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from recompile_watch.respond.nursery import Nursery
from recompile_watch.respond.worker_process import Ending, Launch, marked, run_worker
from tests.respond.fake import honest, script

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")
TORCH = "import os\nwith open(os.environ['IMPORTS'], 'a') as log: log.write('x')\n__version__ = '2.13.0'\n"


def launch(folder: Path, workload: str = "w:make", python: str = sys.executable) -> Launch:
    request: Mapping[str, object] = {
        "stage": "structural", "name": "dynamic", "settings": {}, "workload": workload, "paths": [str(folder)], "device": "cpu", "nice": 0,
        "parent": os.getpid(), "seed": 0, "inputs": 1, "pairs": 0, "budget_s": 10,
    }  # fmt: skip
    return Launch(python, request, folder, 20.0, 20.0)


@pytest.fixture
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A torch that leaves a mark in this file whenever it is imported."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text(TORCH)
    (tmp_path / "torch/_dynamo.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("IMPORTS", str(tmp_path / "imports"))
    return tmp_path / "imports"


@contextmanager
def nursery(of: Launch) -> Iterator[Nursery]:
    """One that leaves nothing behind."""
    found = Nursery(of)
    try:
        yield found
    finally:
        found.close()
        assert not marked(of.mark)


def run(one: Launch, by: Nursery) -> Ending:
    return run_worker(one, lambda _: None, lambda: None, by.fork)


def test_runs_share_one_import(tmp_path: Path, imports: Path) -> None:
    """Each run is a process of its own, with its own request, environment and last words."""
    (tmp_path / "w.py").write_text("import os, sys\nsys.exit(f'{os.getpid()} {os.getppid()} {os.getsid(0)} ' + os.environ['TRITON_CACHE_DIR'])\n")
    with nursery(launch(tmp_path)) as by:
        endings = [run(Launch(sys.executable, launch(tmp_path).request, tmp_path / name, 20.0), by) for name in ("a", "b")]
    words = [str(ending.outcome and ending.outcome["reason"]).split() for ending in endings]
    pids, parents, sessions, caches = ([one[place] for one in words] for place in (-4, -3, -2, -1))
    assert pids[0] != pids[1] and pids == sessions and parents[0] == parents[1] != str(os.getpid())
    assert caches == [str(tmp_path / "a/triton"), str(tmp_path / "b/triton")] and imports.read_text() == "x"


def test_how_a_fork_died_is_told(tmp_path: Path, imports: Path) -> None:
    """A signal or a status, with what it printed last; the next one runs as if nothing had been."""
    (tmp_path / "dies.py").write_text("import os, sys\nprint('boom', flush=True)\nos.kill(os.getpid(), 9)\n")
    (tmp_path / "leaves.py").write_text("import os\nos._exit(7)\n")
    with nursery(launch(tmp_path)) as by:
        assert "killed by SIGKILL" in (ending := run(launch(tmp_path, "dies:make"), by)).failure and "boom" in ending.failure
        assert run(launch(tmp_path, "leaves:make"), by).failure == "it ended with status 7 and no result"
        assert "no module" in str(run(launch(tmp_path, "nowhere:make"), by).outcome).lower()
    assert imports.read_text() == "x"


@pytest.mark.usefixtures("imports")
def test_what_a_fork_leaves_behind_is_ended(tmp_path: Path) -> None:
    """Whatever left the session goes with the nursery."""
    (tmp_path / "leaves.py").write_text(
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.closerange(0, 99)\n    time.sleep(600)\nos._exit(7)\n"
    )
    of = launch(tmp_path)
    with nursery(of) as by:
        assert "status 7" in run(launch(tmp_path, "leaves:make"), by).failure


@pytest.mark.parametrize("text", ["raise ImportError('broken')", "import os; os._exit(3)", "import os; os.kill(os.getpid(), 11)"])
def test_without_torch_each_run_starts_an_interpreter(tmp_path: Path, imports: Path, text: str) -> None:
    """Its end tells what is wrong, as it does without a nursery."""
    (tmp_path / "torch/__init__.py").write_text(text)
    with nursery(launch(tmp_path)) as by:
        assert by.fork(launch(tmp_path), lambda: None) is None
        ending = run(launch(tmp_path), by)
    assert ending.failure or (ending.outcome is not None and "torch cannot be imported" in str(ending.outcome["reason"]))
    assert not imports.exists()


def test_what_is_no_interpreter(tmp_path: Path) -> None:
    """A path that is not there, and a program that answers as a worker would."""
    for python in (str(tmp_path / "none"), honest(tmp_path), script(tmp_path, "print('hello')", "other")):
        with nursery(launch(tmp_path, python=python)) as by:
            assert by.fork(launch(tmp_path, python=python), lambda: None) is None


@pytest.mark.usefixtures("imports")
def test_a_nursery_that_is_killed_takes_its_forks_along(tmp_path: Path) -> None:
    """A run that goes on then ends at once, and the next one starts an interpreter."""
    (tmp_path / "w.py").write_text("import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(600)\n")
    with nursery(launch(tmp_path)) as by:
        assert "killed by SIGKILL" in run(launch(tmp_path), by).failure
        assert by.fork(launch(tmp_path), lambda: None) is None


def test_waiting_for_torch_ends_when_it_is_to_stop(tmp_path: Path) -> None:
    """An import that hangs holds up nobody."""
    python = script(tmp_path, "import time\ntime.sleep(600)\n")
    stops = iter([None, "the bot needs the machine"])
    with nursery(launch(tmp_path, python=python)) as by:
        assert by.fork(launch(tmp_path, python=python), lambda: next(stops)) is None
