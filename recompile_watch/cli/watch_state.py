"""Which watch a command is about: its state directory, its control socket, what it has written down."""

import argparse
import getpass
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recompile_watch.core.errors import StoreError, UsageError
from recompile_watch.daemon.control import Answer, ask, found_in
from recompile_watch.store import Json, Key, read_tables
from recompile_watch.watch_config import default_state_folder, read_config

_PROGRESS, _SILENCE = "progress/", "silence/"


@dataclass(frozen=True, slots=True)
class WatchState:
    """What a watch has written down, and what it says itself. daemon: None while none runs."""

    incidents: Sequence[Mapping[str, object]]
    outbox: Sequence[Mapping[str, object]]
    silences: Sequence[Mapping[str, object]]
    progress: Mapping[str, Sequence[Mapping[str, object]]]
    daemon: Mapping[str, object] | None


def state_folder(arguments: argparse.Namespace) -> Path:
    """The state directory that the options name."""
    if arguments.state_dir is not None and arguments.config is not None:
        raise UsageError("--state-dir and --config both name the state directory; give one of them")
    if arguments.config is not None:
        return read_config(Path(arguments.config)).state_folder
    return Path(arguments.state_dir) if arguments.state_dir is not None else default_state_folder()


def read_state(folder: Path) -> WatchState:
    """Reads it, beside a running watch and without one. Raises StoreError."""
    tables = read_tables(folder)
    answer = _asked(folder, {"ask": "status"}) or {}
    live, daemon = answer.get("progress"), answer.get("daemon")
    return WatchState(
        incidents=rows_of(tables["incidents"]), outbox=rows_of(tables["outbox"]),
        silences=rows_of({key: value for key, value in tables["memory"].items() if str(key[0]).startswith(_SILENCE)}),
        progress=live if isinstance(live, Mapping) else _progress(tables["facts"]),
        daemon=daemon if isinstance(daemon, Mapping) else None,
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


def _progress(facts: Mapping[Key, Json]) -> dict[str, list[Mapping[str, object]]]:
    """What the watch wrote down of its progress, by source."""
    found: dict[str, list[Mapping[str, object]]] = {}
    for (name, *_), value in facts.items():
        if str(name).startswith(_PROGRESS) and isinstance(value, Mapping):
            found.setdefault(str(name).removeprefix(_PROGRESS).partition("/")[0], []).append(value)
    return found
