"""The daemon's memory, on real SQLite files: whole steps or nothing, one writer, and no damage that ends the watch."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from recompile_watch.core.errors import StoreError
from recompile_watch.store import FILE_NAME, SCHEMA, Changes, Store, is_in_use, read_tables
from tests.conftest import ROOT
from tests.daemon.world import CONFIG, World

OLD_STATE = ROOT / "tests" / "data" / "state" / "schema-1.db"
NOW = 1_760_000_000.0


def changes(**tables: dict[tuple[str | int, ...], object]) -> Changes:
    """Changes as a literal."""
    made = Changes()
    for table, rows in tables.items():
        for key, value in rows.items():
            made.put(table, key, value)
    return made


def reopened(folder: Path) -> Store:
    return Store(folder, now=NOW + 1)


def test_what_was_committed_is_there_after_a_restart(tmp_path: Path) -> None:
    """Rows of all kinds, also of a file name that is no UTF-8, come back as they were."""
    store = Store(tmp_path / "state", now=NOW)
    mark = {"position": 17, "head": "aé\u2028"}
    store.commit(changes(marks={("bot", "/logs/\udcff.log", 2): mark, ("bot", "/logs/é.log", 1): mark}, memory={("window/x",): [1, None, 2.5]}))
    store.close()
    store = reopened(tmp_path / "state")
    assert store.load("marks") == {("bot", "/logs/\udcff.log", 2): mark, ("bot", "/logs/é.log", 1): mark}
    store.commit(changes(marks={("bot", "/logs/\udcff.log", 2): None}))
    assert list(store.load("marks")) == [("bot", "/logs/é.log", 1)]
    assert store.load("memory") == {("window/x",): [1, None, 2.5]}
    store.close()


def test_a_second_watch_is_refused(tmp_path: Path) -> None:
    """Two daemons never write one state directory."""
    store = Store(tmp_path, now=NOW)
    with pytest.raises(StoreError, match="another watch"):
        Store(tmp_path, now=NOW)
    store.close()
    reopened(tmp_path).close()


def test_a_step_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """A database that is full takes nothing of the step, says so in one line, and takes it once there is room."""
    store = Store(tmp_path, now=NOW)
    store.commit(changes(memory={("small",): "x"}))
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count={pages + 2}")
    big = changes(memory={("small",): None, ("big",): "y" * 200_000}, outbox={("1", "ops"): {"state": "due"}})
    with pytest.raises(StoreError, match="cannot be written"):
        store.commit(big)
    assert (store.load("memory"), store.load("outbox")) == ({("small",): "x"}, {})
    store._database.execute("PRAGMA max_page_count=1000000")
    store.commit(big)
    assert list(store.load("memory")) == [("big",)]
    store.close()


def test_a_locked_database_is_an_error_at_once_and_not_a_wait(tmp_path: Path) -> None:
    """Another program that holds the database delays the commit; the loop goes on and tries again."""
    store = Store(tmp_path, now=NOW)
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="locked"):
        store.commit(changes(memory={("a",): 1}))
    other.execute("ROLLBACK")
    store.commit(changes(memory={("a",): 1}))
    assert store.load("memory") == {("a",): 1}
    store.close()


@pytest.mark.parametrize("damage", ["header", "page", "cut", "foreign"])
def test_a_damaged_database_is_put_aside(tmp_path: Path, damage: str) -> None:
    """It is kept under another name for its owner, and the watch goes on with a new one."""
    store = Store(tmp_path, now=NOW)
    store.commit(changes(memory={(f"key {index}",): "x" * 500 for index in range(200)}))
    store.close()
    file = tmp_path / FILE_NAME
    content = bytearray(file.read_bytes())
    if damage == "header":
        content[:16] = b"\0" * 16
    elif damage == "page":
        for page in range(2, len(content) // 4096):
            content[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    elif damage == "cut":
        del content[len(content) // 2 :]
    else:
        content[:] = b"this is no database at all\n" * 100
    file.write_bytes(content)
    store = reopened(tmp_path)
    assert store.quarantined is not None and store.quarantined.read_bytes() == bytes(content)
    assert store.load("memory") == {}
    store.commit(changes(memory={("a",): 1}))
    store.close()


def test_a_database_of_an_older_schema_is_taken_over(tmp_path: Path) -> None:
    """Everything in it is there afterwards, its new tables are empty, and a copy of what was before lies beside it."""
    file = tmp_path / FILE_NAME
    shutil.copy(OLD_STATE, file)
    before = rows_of(OLD_STATE)
    assert before["incidents"] and before["outbox"] and before["marks"] and before["memory"], "the old state holds something of all"
    store = Store(tmp_path, now=NOW)
    assert {table: store.load(table) for table in before} == before
    assert store.load("series") == {}
    store.commit(changes(series={(1, "latency_ms", "toto"): {"n": 1}}, memory={("a",): 1}))
    store.close()
    (backup,) = tmp_path.glob("*.schema-1-*")
    assert backup.name == f"{FILE_NAME}.schema-1-{int(NOW)}"
    assert backup.stat().st_mode & 0o777 == 0o600
    assert rows_of(backup) == before
    reopened(tmp_path).close()
    assert list(tmp_path.glob("*.schema-*")) == [backup], "it is taken over once"


def test_the_watch_goes_on_with_what_an_older_schema_remembers(tmp_path: Path) -> None:
    """Incidents, acknowledgements, silences and what was not delivered; `status` reads the old state before that, too."""
    folder = tmp_path / "state"
    folder.mkdir()
    shutil.copy(OLD_STATE, folder / FILE_NAME)
    assert len(read_tables(folder, series_from=0)["incidents"]) == 3
    world = World(tmp_path, CONFIG.replace("{folder}/logs", "/srv/bot/logs"))
    world.turn(3)
    rows = {name: row["state"] for name, row in world.incidents().items()}
    assert rows["recompile_limit_hit attend"] == "acknowledged"
    assert rows["synthetic_quote BTCUSD"] == "open"
    assert all(world.watch.remembers(str(row["id"])) for row in world.incidents().values())
    assert [silence["who"] for silence in world.watch.silences()] == ["anna"]
    assert [cast(dict[str, object], row)["state"] for row in world.store.load("outbox").values()] == ["dead"]
    assert ("bot", "/srv/bot/logs/bot.log", 1) in world.store.keys("marks")


def rows_of(file: Path) -> dict[str, dict[tuple[str | int, ...], object]]:
    """All tables of a database file, read without this program."""
    with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        found = {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in names}
    return {name: {tuple(key): json.loads(value) for *key, value in rows} for name, rows in found.items()}


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A downgrade does not destroy what the newer version wrote."""
    Store(tmp_path, now=NOW).close()
    database = sqlite3.connect(tmp_path / FILE_NAME)
    database.execute(f"PRAGMA user_version={SCHEMA + 1}")
    database.close()
    with pytest.raises(StoreError, match="newer recompile-watch"):
        Store(tmp_path, now=NOW)
    assert [path.name for path in tmp_path.glob("*.corrupt*")] == []


def test_an_older_state_gets_its_new_tables(tmp_path: Path) -> None:
    """What it held stays, a copy of it lies beside it, and until then a reader sees the new tables empty."""
    store = Store(tmp_path, now=NOW)
    store.commit(changes(memory={("a",): 1}))
    store.close()
    database = sqlite3.connect(tmp_path / FILE_NAME)
    database.execute("DROP TABLE diagnoses")
    database.execute("PRAGMA user_version=1")
    database.close()
    assert read_tables(tmp_path)["diagnoses"] == {}
    store = reopened(tmp_path)
    store.commit(changes(diagnoses={(1,): {"at": NOW}}))
    assert (store.load("memory"), store.load("diagnoses")) == ({("a",): 1}, {(1,): {"at": NOW}})
    store.close()
    assert [path.name for path in tmp_path.glob("*.schema-*")] == [f"{FILE_NAME}.schema-1-{int(NOW + 1)}"]


def test_reading_beside_a_daemon_sees_whole_steps(tmp_path: Path) -> None:
    """`status` reads while the daemon holds the database, and changes nothing."""
    store = Store(tmp_path, now=NOW)
    store.commit(changes(incidents={("i1",): {"state": "open"}}))
    assert read_tables(tmp_path)["incidents"] == {("i1",): {"state": "open"}}
    store.close()
    with pytest.raises(StoreError, match="no state of a watch"):
        read_tables(tmp_path / "elsewhere")


def test_whether_a_daemon_runs_is_seen_without_a_trace(tmp_path: Path) -> None:
    """Asking makes no lock of its own, which the daemon's user could not open later; what cannot be looked at is told."""
    assert not is_in_use(tmp_path) and list(tmp_path.iterdir()) == []
    store = Store(tmp_path, now=NOW)
    assert is_in_use(tmp_path)
    store.close()
    assert not is_in_use(tmp_path)
    unseen = tmp_path / ("n" * 300)
    for look in (is_in_use, read_tables):
        with pytest.raises(StoreError, match=r"cannot be read .*; ask as the user of the watch or as root"):
            look(unseen)


def test_killed_in_the_middle_of_commits_the_database_is_whole(tmp_path: Path) -> None:
    """kill -9 between and inside transactions: what comes back is a whole step."""
    program = (
        "import sys\nfrom pathlib import Path\nfrom recompile_watch.store import Store, Changes\n"
        "store = Store(Path(sys.argv[1]), now=0.0)\nprint('open', flush=True)\nn = 0\n"
        "while True:\n    n += 1\n    c = Changes()\n    for t in ('memory', 'facts'):\n        c.put(t, ('n',), n)\n    store.commit(c)\n"
    )
    for pause_s in (0.0, 0.003, 0.01, 0.03):
        writer = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, cwd=ROOT)
        assert writer.stdout is not None and writer.stdout.readline() == b"open\n"
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(pause_s + 0.001)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        store = reopened(tmp_path)
        assert store.quarantined is None
        assert store.load("memory") == store.load("facts")
        store.close()
