"""Which watch a command is about: its state directory, its control socket, what it has written down."""

import argparse
import getpass
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recompile_watch.core.errors import StoreError, UsageError
from recompile_watch.core.hourly import Hour, hour_of
from recompile_watch.core.hourly import Key as HourKey
from recompile_watch.daemon.control import Answer, ask, found_in
from recompile_watch.store import FILE_NAME, Json, Key, read_tables
from recompile_watch.watch_config import UNIT_STATE_FOLDER, default_state_folder, read_config

_PROGRESS, _SILENCE = "progress/", "silence/"


@dataclass(frozen=True, slots=True)
class WatchState:
    """What a watch has written down, and what it says itself. daemon: None while none runs. hours: of the series, where asked for."""

    incidents: Sequence[Mapping[str, object]]
    outbox: Sequence[Mapping[str, object]]
    silences: Sequence[Mapping[str, object]]
    progress: Mapping[str, Sequence[Mapping[str, object]]]
    daemon: Mapping[str, object] | None
    hours: Mapping[HourKey, Hour]


def state_folder(arguments: argparse.Namespace) -> Path:
    """The state directory that the options name, else the one that is there."""
    if arguments.state_dir is not None and arguments.config is not None:
        raise UsageError("--state-dir and --config both name the state directory; give one of them")
    if arguments.state_dir is not None:
        return Path(arguments.state_dir)
    return asked_folder(default_state_folder() if arguments.config is None else read_config(Path(arguments.config)).state_folder)


def asked_folder(folder: Path) -> Path:
    """The state directory that a person means: the unit's, where the usual one of this user holds no state."""
    is_usual = folder == default_state_folder() and not (folder / FILE_NAME).exists()
    return UNIT_STATE_FOLDER if is_usual and os.path.lexists(UNIT_STATE_FOLDER) else folder


def read_state(folder: Path, *, series_from: int | None = None) -> WatchState:
    """Reads it, beside a running watch and without one. series_from: the first hour of the series, None for none. Raises StoreError."""
    tables = read_tables(folder, series_from=series_from)
    answer = _asked(folder, {"ask": "status"}) or {}
    live, daemon = answer.get("progress"), answer.get("daemon")
    return WatchState(
        incidents=rows_of(tables["incidents"]), outbox=rows_of(tables["outbox"]),
        silences=rows_of({key: value for key, value in tables["memory"].items() if str(key[0]).startswith(_SILENCE)}),
        progress=live if isinstance(live, Mapping) else _progress(tables["facts"]),
        daemon=daemon if isinstance(daemon, Mapping) else None,
        hours=_hours(tables["series"]),
    )  # fmt: skip


def tell(folder: Path, question: Mapping[str, object]) -> Answer:
    """Asks the running watch to do something. Raises StoreError with its refusal, or when none runs."""
    return ask(found_in(folder), {**question, "who": getpass.getuser()})


def only_incident(rows: Sequence[Mapping[str, object]], start: str) -> Mapping[str, object]:
    """The one incident whose id begins so. Raises UsageError."""
    found = [row for row in rows if str(row.get("id")).startswith(start)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"no incident has the id '{start}'; see recompile-watch incidents list --all")
    raise UsageError(f"{len(found)} incidents begin with '{start}'; write more of the id")


def _asked(folder: Path, question: Mapping[str, object]) -> Answer | None:
    try:
        return ask(found_in(folder), question)
    except StoreError:
        return None


def rows_of(table: Mapping[Key, Json]) -> list[Mapping[str, object]]:
    """The rows of a table that are JSON objects."""
    return [row for row in table.values() if isinstance(row, Mapping)]


def _hours(table: Mapping[Key, Json]) -> dict[HourKey, Hour]:
    found = {(int(hour), str(what), str(subject)): hour_of(row) for (hour, what, subject), row in table.items()}
    return {key: hour for key, hour in found.items() if hour is not None}


def _progress(facts: Mapping[Key, Json]) -> dict[str, list[Mapping[str, object]]]:
    """What the watch wrote down of its progress, by source."""
    found: dict[str, list[Mapping[str, object]]] = {}
    for (name, *_), value in facts.items():
        if str(name).startswith(_PROGRESS) and isinstance(value, Mapping):
            found.setdefault(str(name).removeprefix(_PROGRESS).partition("/")[0], []).append(value)
    return found
