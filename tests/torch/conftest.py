"""The interpreter that has torch: named in the environment, never this one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "TORCH_PYTHON"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without an interpreter that has torch there is nothing to test here."""
    if not os.environ.get(VARIABLE):
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=f"{VARIABLE} names no interpreter with torch; make test-torch does"))


@pytest.fixture(scope="session")
def python() -> str:
    """Its path."""
    return str(Path(os.environ[VARIABLE]).absolute())
