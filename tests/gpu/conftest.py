"""Skips everything here unless the interpreter named in the environment has a torch that sees a GPU."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import pytest

VARIABLE = "TORCH_PYTHON"


@functools.cache
def sees_gpu() -> bool:
    """True when the interpreter's torch sees one."""
    python = os.environ.get(VARIABLE, "")
    code = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return python != "" and subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a GPU there is nothing to test here."""
    mine = [item for item in items if Path(__file__).parent in item.path.parents]
    if mine and not sees_gpu():
        for item in mine:
            item.add_marker(pytest.mark.skip(reason=f"no GPU, or {VARIABLE} names no interpreter whose torch sees one"))


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter."""
    return str(Path(os.environ[VARIABLE]).absolute())
