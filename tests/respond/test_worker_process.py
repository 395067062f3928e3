"""Tests of `recompile_watch.respond.worker_process`: whatever a process does, its end is told and nothing of it goes on."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from recompile_watch.core.candidates import Candidate
from recompile_watch.core.trials import Status
from recompile_watch.respond import worker_process
from recompile_watch.respond.readings import reading_of
from recompile_watch.respond.worker_process import Ending, Launch, marked, run_worker
from tests.respond.fake import honest, script

REQUEST: Mapping[str, object] = {"stage": "structural", "name": "default", "pairs": 3, "threads": 1}


def run(python: str, tmp_path: Path, *, time_s: float = 20.0, silence_s: float = 20.0, stop: str | None = None) -> Ending:
    """One run; whatever happens in it, none of its processes goes on."""
    launch = Launch(python, REQUEST, tmp_path, time_s, silence_s)
    ending = run_worker(launch, lambda _: None, lambda: stop)
    assert not marked(launch.mark)
    return ending


def status_of(ending: Ending) -> Status:
    return reading_of(Candidate("default"), ending).trial.status


def test_an_outcome_is_read(tmp_path: Path) -> None:
    """What the worker said, its progress, and its log."""
    steps: list[object] = []
    ending = run_worker(Launch(honest(tmp_path), REQUEST, tmp_path, 20.0), lambda record: steps.append(record["phase"]), lambda: None)
    assert ending.outcome is not None and ending.outcome["status"] == "ok" and not ending.failure
    assert steps == ["warming up"] and ending.hello is not None and ending.hello["torch"] == "2.13.0"


@pytest.mark.parametrize(
    ("text", "words", "status"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL (the system kills so when memory runs out)", Status.CRASHED),
        ("import sys; sys.stderr.write('boom\\n'); sys.exit(7)", "it ended with status 7 and no result; it printed last: boom", Status.CRASHED),
        ("print('hello, world\\n' * 5)", "after 6 lines that are no result", Status.CRASHED),
        ("import sys; sys.stdout.buffer.write(bytes(range(256)) * 99)", "lines that are no result", Status.CRASHED),
        ("print('{' * 100_000)", "after a line that is no result", Status.CRASHED),
        ("print('[]\\n{\"record\": 3}\\nnull')", "after 3 lines that are no result", Status.CRASHED),
        ("raise ImportError('no torch')", "ImportError: no torch", Status.CRASHED),
    ],
)
def test_processes_that_die(tmp_path: Path, text: str, words: str, status: Status) -> None:
    """How it died stands in the result, with its last words."""
    ending = run(script(tmp_path, text), tmp_path)
    assert words in ending.failure and status_of(ending) is status


def test_what_it_printed_while_it_began_is_not_why_it_died(tmp_path: Path) -> None:
    """torch warns of a missing numpy while it is imported; killed much later, those are not its last words."""
    heard = tmp_path / "heard"
    os.mkfifo(heard)
    begin = f"""import json, os, signal, sys
print("UserWarning: no numpy", file=sys.stderr, flush=True)
print(json.dumps({{"record": "hello", "torch": "2.13.0"}}), flush=True)
print(json.dumps({{"record": "progress", "phase": "warming up"}}), flush=True)
open({str(heard)!r}).read()
"""

    def answer(_: Mapping[str, object]) -> None:
        heard.write_text("heard")

    for more, words in (("", ""), ("print('out of memory', file=sys.stderr, flush=True)\n", "; it printed last: out of memory")):
        python = script(tmp_path, f"{begin}{more}os.kill(os.getpid(), signal.SIGKILL)")
        ending = run_worker(Launch(python, REQUEST, tmp_path, 20.0), answer, lambda: None)
        assert ending.failure == f"killed by SIGKILL (the system kills so when memory runs out){words}"


def test_what_is_no_interpreter(tmp_path: Path) -> None:
    """A path that is not there, a folder, and a file that cannot be run."""
    (tmp_path / "text").write_text("hello")
    for path in ("/no/such/python", str(tmp_path), str(tmp_path / "text"), "with\0zero"):
        ending = run(path, tmp_path)
        assert "cannot be run" in ending.failure and "--python" in ending.failure and status_of(ending) is Status.CRASHED


@pytest.mark.parametrize(
    "text", ["import time; time.sleep(100)", "while True: pass", "import signal, time; signal.signal(15, 0 or signal.SIG_IGN); time.sleep(100)"]
)
def test_a_process_that_hangs(tmp_path: Path, text: str) -> None:
    """It is ended when its time is up, whether it sleeps, computes or does not want to go."""
    ending = run(script(tmp_path, text), tmp_path, time_s=0.5)
    assert "was ended after" in ending.failure and status_of(ending) is Status.TIMEOUT


def test_a_process_that_is_silent(tmp_path: Path) -> None:
    """No sign of life for too long is a hang, however much time is left."""
    ending = run(script(tmp_path, "import time; time.sleep(100)"), tmp_path, silence_s=0.5)
    assert "no sign of life" in ending.failure and status_of(ending) is Status.TIMEOUT


def test_descendants_die_too(tmp_path: Path) -> None:
    """A child of the worker, and one that has left its session, are gone when the run has ended."""
    text = (
        "import subprocess, sys, time\n"
        "for new in (False, True):\n"
        "    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)'], start_new_session=new)\n"
        "print('started', flush=True); time.sleep(100)"
    )
    assert "was ended" in run(script(tmp_path, text), tmp_path, time_s=1.5).failure


def test_a_guard_stops_it(tmp_path: Path) -> None:
    """What the guard says becomes the reason, and the candidate counts as not run."""
    ending = run(script(tmp_path, "import time; time.sleep(100)"), tmp_path, stop="the GPU is too hot")
    assert ending.failure == "the GPU is too hot" and status_of(ending) is Status.SKIPPED


def test_floods_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Endless output to either stream fills no memory: records end the run, logs are cut."""
    monkeypatch.setattr(worker_process, "MAX_OUTPUT_BYTES", 1 << 20)
    monkeypatch.setattr(worker_process, "MAX_LOG_BYTES", 1 << 16)
    for text in ("while True: print('x' * 1000)", "while True: print('x' * 1000, end='')"):
        assert "that are no result" in run(script(tmp_path, text), tmp_path).failure
    ending = run(script(tmp_path, "import sys\nfor _ in range(1000): sys.stderr.write('y' * 1000)\nprint('{\"record\": \"outcome\"}')"), tmp_path)
    assert len(ending.log) == 1 << 16 and ending.outcome is not None


def test_the_surroundings_do_not_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process started with compilation turned off, or with another cache, still measures what it is asked."""
    for name in ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE", "TORCH_LOGS", "TORCHINDUCTOR_FORCE_DISABLE_CACHES"):
        monkeypatch.setenv(name, "1")
    seen = "import json, os; print(json.dumps({'record': 'outcome', **{k: v for k, v in os.environ.items() if 'TORCH' in k or 'CUDA' in k}}))"
    outcome = run(script(tmp_path, seen), tmp_path).outcome
    assert outcome is not None and not {"TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE", "TORCH_LOGS"} & set(outcome)
    assert outcome["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "inductor") and outcome["CUDA_VISIBLE_DEVICES"] == ""


def test_ended_from_outside_nothing_stays(tmp_path: Path) -> None:
    """An interrupt while it runs kills the worker before it is passed on."""

    def interrupted() -> str | None:
        if time.monotonic() - started > 0.5:
            raise KeyboardInterrupt
        return None

    started, launch = time.monotonic(), Launch(script(tmp_path, "import time; time.sleep(100)"), REQUEST, tmp_path, 20.0)
    with pytest.raises(KeyboardInterrupt):
        run_worker(launch, lambda _: None, interrupted)
    assert not marked(launch.mark)
