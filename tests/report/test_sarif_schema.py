"""SARIF reports of every sample validate against the standard's own schema; `make sarif` fetches it and runs this."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, SAMPLES

SCHEMA = os.environ.get("SARIF_SCHEMA", "")
LOGS = sorted([*SAMPLES.glob("*.log"), SAMPLES / "trace"])

pytestmark = pytest.mark.skipif(not SCHEMA, reason="SARIF_SCHEMA names no schema file: make sarif fetches it")


def mistakes(report: object) -> list[str]:
    """What the schema finds wrong."""
    from jsonschema import Draft202012Validator

    return [error.message for error in Draft202012Validator(json.loads(Path(SCHEMA).read_text())).iter_errors(report)]


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.name)
def test_a_report_validates(log: Path) -> None:
    """No property is unknown, missing or of the wrong type."""
    command = [sys.executable, "-m", "recompile_watch", "analyze", "--tz", "UTC", "--format", "sarif", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert mistakes(json.loads(done.stdout)) == []


def test_a_wrong_report_does_not() -> None:
    """The schema is one that finds mistakes."""
    assert mistakes({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": [{"levl": 1}]}]})
