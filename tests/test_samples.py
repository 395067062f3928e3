"""The sample logs give exactly the events that stand beside them, and the shipped rules pass their own samples.

After a change that is meant to alter them, write the files anew and read the difference before committing it:

    python -m tests.test_samples
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, SAMPLES
from tests.truth import Event

OPTIONS = ("--year", "2025", "--tz", "UTC")
ENDING = ".events.jsonl"


def sources() -> list[Path]:
    """Every sample: the logs and the folders of logs."""
    return sorted(path for path in SAMPLES.iterdir() if path.is_dir() or path.suffix == ".log")


def expected_path(sample: Path) -> Path:
    """Where the expected events of a sample stand."""
    return sample.with_name(sample.name.removesuffix(".log") + ENDING)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs recompile-watch in the folder of the samples."""
    program = [sys.executable, "-m", "recompile_watch", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(program, capture_output=True, text=True, cwd=SAMPLES, env=environment, check=False)


def printed(sample: Path) -> str:
    """What `recompile-watch events` prints for a sample."""
    done = command("events", *OPTIONS, sample.name)
    assert done.stderr == ""
    return done.stdout


def lines(text: str) -> list[Event]:
    """JSON Lines as objects."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("sample", sources(), ids=lambda path: path.name)
def test_sample(sample: Path) -> None:
    """`recompile-watch events` prints exactly the expected events."""
    assert lines(printed(sample)) == lines(expected_path(sample).read_text())


def test_every_sample_is_described() -> None:
    """The README of the samples names each one, and no expected file stands alone."""
    readme = (SAMPLES / "README.md").read_text()
    assert all(f"`{sample.name}{'/' if sample.is_dir() else ''}`" in readme for sample in sources())
    assert {path.name for path in SAMPLES.glob(f"*{ENDING}")} == {expected_path(sample).name for sample in sources()}


def test_demo() -> None:
    """What `make demo` runs ends with critical findings: the limit, the skipped cudagraphs, the overwritten output, quotes and returns."""
    done = command("analyze", *OPTIONS, "bot-2025-10-30.log")
    assert done.returncode == 2, done.stderr
    for words in ("positional_embedding", "attention.py:105", "mutated inputs", "overwritten", "BTCUSD", "ETHUSD", "0.1043", "18.24"):
        assert words in done.stdout, words


def test_rules_check() -> None:
    """`rules check` passes for the shipped rules."""
    done = command("rules", "check")
    assert done.returncode == 0, done.stderr


def main() -> None:
    """Writes the expected events of every sample."""
    for sample in sources():
        text = printed(sample)
        expected_path(sample).write_text(text)
        print(f"{expected_path(sample).name}: {len(text.splitlines())} events")


if __name__ == "__main__":
    main()
