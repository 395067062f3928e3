"""The diagnostic's process, played by scripts: however it ends, the end is told, and nothing of it goes on."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from recompile_watch.core.diagnostic_runs import Failed, Measurement, NotRun
from recompile_watch.respond import diagnostic_process
from recompile_watch.respond.diagnostic_process import DiagnosticProcess, Ended
from recompile_watch.respond.worker_process import MARK, marked

REPORT: Mapping[str, object] = {
    "schema": "recompile-watch/diagnosis/1", "eager": {"status": "ok"}, "verdict": {"status": "decided", "choose": "eager", "summary": "keep eager"},
}  # fmt: skip
PATIENCE_S = 30.0


def ended(text: str, *, limit_s: float = PATIENCE_S, environment: Mapping[str, str] = os.environ) -> Ended:
    """Runs a program as the loop would: asleep until a pipe wakes or something is due."""
    process, mark = DiagnosticProcess((sys.executable, "-c", text), environment, limit_s), os.urandom(8).hex()
    found = process.start((), mark, time.monotonic())
    end = time.monotonic() + PATIENCE_S
    while found is None:
        assert time.monotonic() < end
        due = process.next_due()
        assert due is not None
        select.select(process.reading(), [], [], max(0.0, due - time.monotonic()))
        found = process.collect(time.monotonic())
    assert process.next_due() is None and process.reading() == [] and not marked(mark)
    return found


def test_a_report() -> None:
    """What is printed before the end, in pieces larger than a pipe, is the result; the exit status does not matter."""
    report = {**REPORT, "problems": ["x" * 300_000]}
    text = f"import json, sys; print(json.dumps({{**{REPORT!r}, 'problems': ['x' * 300_000]}})); sys.stderr.write('a word'); sys.exit(3)"
    assert ended(text) == Ended(Measurement("keep eager", "eager"), report)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("import sys; print('recompile-watch: the GPU is in use', file=sys.stderr); sys.exit(3)", NotRun("the GPU is in use")),
        ("import sys; print('recompile-watch: bad key', file=sys.stderr); sys.exit(78)", Failed("it ended with status 78: bad key", True)),
        ("import sys; sys.exit(64)", Failed("it ended with status 64", True)),
        ("import sys; sys.exit(3)", Failed("it ended with status 3")),
        ("import os; os.kill(os.getpid(), 9)", Failed("ended by signal 9")),
        ("print('[1, 2]')", Failed("it ended with status 0")),
        ("print('{' * 100_000)", Failed("it ended with status 0")),
        (f"import os; os.write(1, {json.dumps({**REPORT, 'schema': 'another'})!r}.encode())", Failed("it ended with status 0")),
        ("import sys\nwhile True: sys.stdout.write('x' * 65536)", Failed("it printed more than 8 MiB")),
        ("import sys\nwhile True: sys.stderr.write('x' * 65536)", Failed("it was ended after 1 s")),
        ("import os, time; os.close(1); os.close(2); time.sleep(600)", Failed("it was ended after 1 s")),
    ],
)
def test_ends_without_a_report(text: str, end: NotRun | Failed) -> None:
    """Each with its reason; only a wrong usage or configuration is final."""
    assert ended(text, limit_s=1.0 if "1 s" in end.why else PATIENCE_S) == Ended(end)


def test_one_that_does_not_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told to end, then killed, with a grandchild in a session of its own."""
    monkeypatch.setattr(diagnostic_process, "_LEAVE_S", 0.2)
    text = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
time.sleep(600)
"""
    assert ended(text, limit_s=1.0) == Ended(Failed("it was ended after 1 s"))


def test_killed_with_the_watch(tmp_path: Path) -> None:
    """Closing waits until it and what it left behind are gone."""
    ready = tmp_path / "ready"
    text = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "open({str(ready)!r}, 'w').close(); import time; time.sleep(600)"], start_new_session=True)
time.sleep(600)
"""
    process = DiagnosticProcess((sys.executable, "-c", text), os.environ, PATIENCE_S)
    assert process.start((), "feedbeef", time.monotonic()) is None
    end = time.monotonic() + PATIENCE_S
    while not ready.exists():
        assert time.monotonic() < end
    assert len(marked("feedbeef")) == 2
    process.kill()
    assert not marked("feedbeef") and process.collect(time.monotonic()) is None


def test_what_cannot_be_started() -> None:
    """The end comes at once."""
    process = DiagnosticProcess(("/no/such/program",), {}, 1.0)
    assert process.start((), "m", 0.0) == Ended(Failed("the diagnostic could not be started (No such file or directory)"))


def test_secrets_of_the_watch_stay_behind() -> None:
    """Of the environment a workload gets what it may need, and none of what a receiver's address may stand in."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/root", "OPS_URL": "slack://secret", "CREDENTIALS_DIRECTORY": "/run/x", "CUDA_HOME": "/cuda"}
    text = f"import os; raise SystemExit(' '.join(sorted(set(os.environ) - {{'LC_CTYPE', {MARK!r}}})))"
    assert ended(text, environment=environment).end == Failed("it ended with status 1: CUDA_HOME HOME PATH")
