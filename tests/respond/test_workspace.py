"""Tests of `recompile_watch.respond.workspace`: what a killed diagnosis leaves is removed, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recompile_watch.respond.workspace import PREFIX, workspace

HOLDER = """
import sys, time
from recompile_watch.respond.workspace import workspace
with workspace() as folder:
    (folder / "cache").mkdir()
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_workspace_is_gone_afterwards(temporary: Path) -> None:
    with workspace() as folder:
        (folder / "file").write_text("x")
        assert folder.parent == temporary
    assert list(temporary.iterdir()) == []


def test_only_what_a_killed_process_left_is_removed(temporary: Path) -> None:
    """One that is at work keeps its folder; so does whatever else has such a name."""
    other, link = temporary / f"{PREFIX}clone", temporary / f"{PREFIX}link"
    other.mkdir()
    (other / "precious").write_text("x")
    link.symlink_to(other)
    environment = {**os.environ, "TMPDIR": str(temporary)}
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        with workspace():
            assert (held / "cache").is_dir()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert held.is_dir()
        with workspace():
            assert not held.exists()
    finally:
        holder.kill()
        holder.wait()
        if holder.stdout is not None:
            holder.stdout.close()
    assert (other / "precious").read_text() == "x"
    assert link.is_symlink()
