"""Which watch a command asks: the one that is named, else the user's own, else the one that runs as a unit."""

from __future__ import annotations

from pathlib import Path

import pytest

from recompile_watch.cli import watch_state
from recompile_watch.cli.watch_state import asked_folder
from recompile_watch.store import Store
from recompile_watch.watch_config import default_state_folder


def test_the_unit_is_asked_where_the_user_has_no_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """root types `recompile-watch status` and means the unit; who runs a watch of his own means that; a named folder is a named folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    unit = tmp_path / "unit"
    monkeypatch.setattr(watch_state, "UNIT_STATE_FOLDER", unit)
    own = default_state_folder()
    assert asked_folder(own) == own
    unit.symlink_to(tmp_path / "only root sees where this leads")
    assert asked_folder(own) == unit
    assert asked_folder(tmp_path / "named") == tmp_path / "named"
    Store(own, now=1_700_000_000.0).close()
    assert asked_folder(own) == own
