"""The unit files: systemd takes them, they are locked down, and what they run exists."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from recompile_watch.cli.commands import COMMANDS
from tests.conftest import ROOT

UNITS = sorted((ROOT / "systemd").iterdir())
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]
MAX_EXPOSURE = 1.5
ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(
    ANALYZE is None and not os.environ.get("RECOMPILE_WATCH_CI"), reason="systemd-analyze is not installed: apt-get install systemd"
)


def analyzed(*words: str) -> subprocess.CompletedProcess[str]:
    assert ANALYZE is not None, "systemd-analyze is not installed: apt-get install systemd"
    return subprocess.run([ANALYZE, *words], capture_output=True, text=True, check=False, env={**os.environ, "SYSTEMD_COLORS": "0"})


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_takes_the_unit(unit: Path, tmp_path: Path) -> None:
    """No unknown key, no wrong value; only the program's path is put where one exists here."""
    folder = tmp_path / "units"
    folder.mkdir()
    for other in UNITS:
        (folder / other.name).write_text(other.read_text().replace("/opt/recompile-watch/bin/recompile-watch", "/bin/true"))
    done = analyzed("verify", "--man=no", str(folder / unit.name))
    said = [line for line in done.stderr.splitlines() if str(folder) in line or unit.name in line]
    assert (done.returncode, said) == (0, [])


@needs_systemd
@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_the_unit_is_locked_down(unit: Path) -> None:
    """`systemd-analyze security` finds at most 1.5 of 10."""
    done = analyzed("security", "--offline=true", str(unit))
    exposure = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert exposure is not None, done.stderr
    assert float(exposure[1]) <= MAX_EXPOSURE


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_the_unit_runs_commands_that_exist(unit: Path) -> None:
    """Every command and option in a unit file is one of the program's."""
    commands = {" ".join(command.name): command for command in COMMANDS}
    lines = re.findall(r"^Exec\w+=/opt/recompile-watch/bin/recompile-watch (.+)$", unit.read_text(), re.MULTILINE)
    assert lines
    for line in lines:
        name = max((name for name in commands if f"{line} ".startswith(f"{name} ")), key=len)
        options = re.findall(r"--[\w-]+", line)
        known = commands[name].parser().format_help()
        assert options and all(option in known for option in options), f"{unit.name}: {line}"
