"""The daemon's memory: one SQLite database in the state directory, written in one transaction a step.

Everything is kept under keys, as JSON: where each log is read to, the state of each reading, the watch's memory, the
incidents, the outbox. What a step changed is a ``Changes``; changes that could not be written (full disk, locked
database) add up to one later ``Changes`` of bounded size, so that reading and alerting go on meanwhile.
"""

import contextlib
import fcntl
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recompile_watch.core.errors import StoreError

SCHEMA = 2
FILE_NAME = "state.db"
LOCK_NAME = "lock"
# The table that holds each part, and its key columns. A value of None deletes the row.
TABLES: Mapping[str, tuple[str, ...]] = {
    "marks": ("source", "stream", "generation"),
    "readings": ("source", "stream"),
    "memory": ("name",),
    "incidents": ("id",),
    "outbox": ("notice", "receiver"),
    "facts": ("name",),
    "series": ("hour", "what", "subject"),
    "diagnoses": ("number",),
}
_SERIES = "series"
_WAL_IS_SAFE = (3, 51, 3)  # before it, a reset of the write-ahead log could lose a commit
_BUSY_S = 0.2
_READ_BUSY_S = 5.0
_INCREMENTAL_VACUUM = 2
_FREE_PAGES = 200  # given back to the file system a commit, so that no commit takes long

Key = tuple[str | int, ...]
Json = object


@dataclass(slots=True)
class Changes:
    """What a step changed: for each table the new value of each key, None where it is gone."""

    rows: dict[str, dict[Key, Json | None]] = field(default_factory=dict)

    def put(self, table: str, key: Key, value: Json | None) -> None:
        """Notes one value; the latest of a key counts."""
        self.rows.setdefault(table, {})[key] = value

    def merge(self, later: "Changes") -> None:
        """Takes in what a later step changed."""
        for table, rows in later.rows.items():
            self.rows.setdefault(table, {}).update(rows)

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to write."""
        return not any(self.rows.values())


class Store:
    """The database of one state directory. One process at a time writes it."""

    def __init__(self, folder: Path, *, now: float) -> None:
        """Opens or makes it. Raises StoreError when the folder cannot be used or another daemon uses it.

        A damaged database is put aside, see ``quarantined``.
        """
        self._folder = folder
        self._lock = _locked(folder)
        self.quarantined: Path | None = None
        try:
            self._database = _opened(folder / FILE_NAME, now)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and not _is_damage(error):
                raise StoreError(f"{folder / FILE_NAME}: cannot be opened ({error}); check its owner and the room on its disk") from None
            self.quarantined = _put_aside(folder / FILE_NAME, now)
            self._database = _opened(folder / FILE_NAME, now)

    def load(self, table: str) -> dict[Key, Json]:
        """All rows of a table."""
        return dict(_rows(self._database, table))

    def each(self, table: str) -> Iterator[tuple[Key, Json]]:
        """The rows of a table one after the other, for one that may be large."""
        return _rows(self._database, table)

    def get(self, table: str, key: Key) -> Json | None:
        """The value of one key; None when there is none."""
        where = " AND ".join(f"{column}=?" for column in TABLES[table])
        row = self._database.execute(f"SELECT value FROM {table} WHERE {where}", _columns(key)).fetchone()
        return None if row is None else json.loads(row[0])

    def keys(self, table: str, *start: str | int) -> list[Key]:
        """The keys of a table that begin so."""
        where = " AND ".join(["1", *(f"{column}=?" for column in TABLES[table][: len(start)])])
        return self._found(f"SELECT {', '.join(TABLES[table])} FROM {table} WHERE {where}", start)

    def names_since(self, table: str, first: int) -> list[Key]:
        """The last value of the first column under each rest of the keys of a table, of those from ``first`` on."""
        column, *rest = TABLES[table]
        columns = ", ".join(rest)
        return self._found(f"SELECT MAX({column}), {columns} FROM {table} WHERE {column}>=? GROUP BY {columns}", (first,))

    def oldest(self, table: str, below: int, most: int) -> list[Key]:
        """The first keys of a table whose first column is less than ``below``."""
        column, *_ = columns = TABLES[table]
        return self._found(f"SELECT {', '.join(columns)} FROM {table} WHERE {column}<? ORDER BY {', '.join(columns)} LIMIT ?", (below, most))

    def _found(self, query: str, values: Key) -> list[Key]:
        return [_key(row) for row in self._database.execute(query, _columns(values))]

    def commit(self, changes: Changes) -> None:
        """Writes all of it, or nothing. Raises StoreError when it cannot be written now."""
        database = self._database
        try:
            database.execute("BEGIN IMMEDIATE")
            for table, rows in changes.rows.items():
                _write(database, table, rows)
            database.execute("COMMIT")
            database.execute(f"PRAGMA incremental_vacuum({_FREE_PAGES})")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            raise StoreError(f"{self._folder / FILE_NAME}: cannot be written ({error})") from None

    @property
    def size_bytes(self) -> int:
        """What the database takes on disk."""
        try:
            return (self._folder / FILE_NAME).stat().st_size
        except OSError:
            return 0

    def close(self) -> None:
        """Lets the database and the state directory go."""
        self._database.close()
        os.close(self._lock)


def read_tables(folder: Path, *, series_from: int | None = None) -> Mapping[str, dict[Key, Json]]:
    """The tables as they stand, beside a running daemon and without one; one that an older version has not is empty. Raises StoreError.

    series_from: the first hour of the series to read; by default none of them, for they are long.
    """
    file = folder / FILE_NAME
    try:
        is_there = file.is_file()
    except OSError as error:
        raise StoreError(f"{folder}: cannot be read ({error.strerror}); ask as the user of the watch or as root") from None
    if not is_there:
        raise StoreError(f"{folder}: no state of a watch in it; name the folder with --state-dir, or start `recompile-watch watch`")
    try:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=_READ_BUSY_S)) as database:
            database.execute("BEGIN")  # one state for all tables; it keeps the daemon from writing, so it ends at once
            there = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}  # an older version's has fewer
            wanted = [table for table in TABLES if table in there and (table != _SERIES or series_from is not None)]
            read = {table: dict(_rows(database, table, series_from if table == _SERIES else None)) for table in wanted}
            return {table: read.get(table, {}) for table in TABLES}
    except (sqlite3.Error, ValueError) as error:
        hint = "; a watch puts a damaged one aside when it starts" if isinstance(error, sqlite3.Error) and _is_damage(error) else ""
        raise StoreError(f"{file}: cannot be read ({error}){hint}") from None


def is_in_use(folder: Path) -> bool:
    """True while a daemon holds the state directory. Makes nothing there. Raises StoreError when that cannot be seen."""
    try:
        lock = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"{folder}: cannot be read ({error.strerror}); ask as the user of the watch or as root") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def _locked(folder: Path) -> int:
    """The lock of a state directory, held until it is closed; the system frees it when the process dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreError(f"{folder}: the state directory cannot be used ({error.strerror}); give it to the user of the watch") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise StoreError(f"{folder}: another watch uses this state directory; stop it, or give each its own state_dir") from None
    return lock


def _opened(file: Path, now: float) -> sqlite3.Connection:
    is_new = not file.exists()
    database = sqlite3.connect(file, timeout=_BUSY_S, isolation_level=None)
    try:
        if is_new:
            file.chmod(0o600)
            database.execute(f"PRAGMA auto_vacuum={_INCREMENTAL_VACUUM}")
        database.execute("PRAGMA journal_mode=" + ("WAL" if sqlite3.sqlite_version_info >= _WAL_IS_SAFE else "TRUNCATE"))
        database.execute("PRAGMA synchronous=FULL")
        database.execute("PRAGMA temp_store=MEMORY")
        database.execute("PRAGMA cache_size=-2000")  # KiB
        if database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("damaged")
        _migrate(database, file, now)
    except BaseException:
        database.close()
        raise
    return database


def _migrate(database: sqlite3.Connection, file: Path, now: float) -> None:
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA:
        raise StoreError(f"{file}: written by a newer recompile-watch (schema {version}, this one knows {SCHEMA}); install that one again")
    if version == SCHEMA:
        return
    if version:
        copy = file.with_name(f"{file.name}.schema-{version}-{int(now)}")
        copy.touch(0o600)
        with contextlib.closing(sqlite3.connect(copy)) as backup:
            database.backup(backup)
    database.execute("BEGIN IMMEDIATE")
    for table, keys in TABLES.items():
        columns = ", ".join(f"{key} NOT NULL" for key in keys)
        database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns}, value TEXT NOT NULL, PRIMARY KEY ({', '.join(keys)})) WITHOUT ROWID")
    database.execute(f"PRAGMA user_version={SCHEMA}")
    database.execute("COMMIT")


def _is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def _put_aside(file: Path, now: float) -> Path:
    """Renames a damaged database, with its journal, and returns its new name."""
    aside = file.with_name(f"{file.name}.corrupt-{int(now)}")
    try:
        for ending in ("", "-journal", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                file.with_name(file.name + ending).rename(aside.with_name(aside.name + ending))
    except OSError as error:
        raise StoreError(f"{file}: damaged, and cannot be put aside ({error.strerror}); move it away by hand") from None
    return aside


def _rows(database: sqlite3.Connection, table: str, first: int | None = None) -> Iterator[tuple[Key, Json]]:
    columns = ", ".join(TABLES[table])
    where, values = ("", ()) if first is None else (f"WHERE {TABLES[table][0]}>=?", (first,))
    for *key, value in database.execute(f"SELECT {columns}, value FROM {table} {where} ORDER BY {columns}", values):
        yield _key(key), json.loads(value)


def _key(columns: Iterable[str | int | bytes]) -> Key:
    return tuple(part.decode("utf-8", "surrogateescape") if isinstance(part, bytes) else part for part in columns)


def _write(database: sqlite3.Connection, table: str, rows: Mapping[Key, Json | None]) -> None:
    keys = TABLES[table]
    where = " AND ".join(f"{key}=?" for key in keys)
    database.executemany(f"DELETE FROM {table} WHERE {where}", (_columns(key) for key, value in rows.items() if value is None))
    places = ", ".join("?" * (len(keys) + 1))
    database.executemany(
        f"INSERT OR REPLACE INTO {table} VALUES ({places})",
        ((*_columns(key), json.dumps(value, ensure_ascii=True, separators=(",", ":"))) for key, value in rows.items() if value is not None),
    )


def _columns(key: Key) -> tuple[str | int | bytes, ...]:
    """The key as SQLite takes it: a file name that is no UTF-8 goes in as bytes."""
    return tuple(part if isinstance(part, int) or _is_text(part) else os.fsencode(part) for part in key)


def _is_text(part: str) -> bool:
    try:
        part.encode()
    except UnicodeEncodeError:
        return False
    return True
