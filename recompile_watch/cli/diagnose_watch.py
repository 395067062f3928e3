"""What a diagnosis has to do with a watch: the incident that it is for, the watch that started it, the watch that keeps its result."""

import argparse
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from recompile_watch.cli.output import write_error
from recompile_watch.cli.watch_state import only_incident, rows_of
from recompile_watch.config import load_state_dir
from recompile_watch.core.candidates import Candidate, advised_candidate
from recompile_watch.core.diagnostic_runs import without_calls
from recompile_watch.core.errors import DiagnosisError, StoreError
from recompile_watch.daemon.control import ask, found_in
from recompile_watch.respond.diagnose_settings import DiagnoseSettings
from recompile_watch.respond.parent import lives_with
from recompile_watch.store import is_in_use, read_tables
from recompile_watch.watch_config import default_state_folder


def state_folder(arguments: argparse.Namespace) -> Path:
    """Where the lock lies, and the watch's memory: as the options or the configuration say."""
    named = arguments.state_dir or (load_state_dir(Path(arguments.config)) if arguments.config else None)
    return Path(named).expanduser() if named else default_state_folder()


def incident_of(folder: Path, start: str) -> Mapping[str, object]:
    """The incident whose id begins so. Raises StoreError without a watch's memory, UsageError where no incident fits."""
    return only_incident(rows_of(read_tables(folder)["incidents"]), start)


def advised(incident: Mapping[str, object]) -> tuple[Candidate, ...]:
    """What the incident's advice amounts to."""
    advice, function = incident.get("advice"), incident.get("function")
    items = [one for one in advice if isinstance(one, Mapping)] if isinstance(advice, list) else []
    name = None if function is None else str(function)
    found = (advised_candidate(str(one.get("form") or one.get("remedy")), str(one.get("apply")), name) for one in items)
    return tuple(dict.fromkeys(candidate for candidate in found if candidate is not None))


def as_child_of(parent: int, settings: DiagnoseSettings) -> DiagnoseSettings:
    """This process steps back and ends with the watch that started it; its workers inherit that. Raises DiagnosisError."""
    if not lives_with(parent, signal.SIGTERM):
        raise DiagnosisError(f"process {parent} is not there any more; whoever starts a diagnosis has to wait for it")
    with contextlib.suppress(OSError):  # a locked-down service may not
        os.nice(settings.nice)
    return replace(settings, nice=0)


def hand_over(folder: Path, report: Mapping[str, object], incident: str, model: str) -> None:
    """Gives the result to the watch of this state directory, if one runs; that it did not take it is said, and no more."""
    if not is_in_use(folder):
        return
    try:
        ask(found_in(folder), {"ask": "measured", "report": without_calls(report), "incident": incident, "model": model})
    except StoreError as error:
        write_error(f"the result is not kept by the watch: {error}")
