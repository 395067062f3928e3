"""``recompile-watch incidents``: what goes on, and what a person says about it."""

import argparse
import time
from datetime import datetime

from recompile_watch.cli import exit_status
from recompile_watch.cli.output import write_result
from recompile_watch.cli.times import moment_of
from recompile_watch.cli.watch_state import only_incident, read_state, state_folder, tell
from recompile_watch.core.errors import UsageError
from recompile_watch.core.matchers import parse_matcher
from recompile_watch.core.units import parse_duration
from recompile_watch.report.json import json_text
from recompile_watch.report.times import time_text
from recompile_watch.report.watch_state import in_order, incident_text, incident_to_json, incidents_text
from recompile_watch.zones import LocalZone


def run(arguments: argparse.Namespace, name: tuple[str, ...]) -> int:
    """Runs the subcommand."""
    match name[1]:
        case "list":
            _list(arguments)
        case "show":
            _show(arguments)
        case "ack":
            until = None if arguments.until is None else _until(arguments.until)
            tell(state_folder(arguments), {"ask": "acknowledge", "incident": arguments.incident, "until": until, "why": arguments.why})
            print(f"acknowledged until {'it is over' if until is None else time_text(until)}: {arguments.incident}")
        case "silence":
            _silence(arguments)
        case "unsilence":
            tell(state_folder(arguments), {"ask": "unsilence", "silence": arguments.silence})
            print(f"ended: {arguments.silence}")
    return exit_status.OK


def _list(arguments: argparse.Namespace) -> None:
    state = read_state(state_folder(arguments))
    rows = [row for row in in_order(state.incidents) if arguments.all or row.get("state") != "resolved"]
    text = json_text([incident_to_json(row) for row in rows]) + "\n" if arguments.json else incidents_text(rows, now=time.time())
    write_result(text, None)


def _show(arguments: argparse.Namespace) -> None:
    row = only_incident(read_state(state_folder(arguments)).incidents, arguments.incident)
    write_result(json_text(incident_to_json(row)) + "\n" if arguments.json else incident_text(row, now=time.time()), None)


def _silence(arguments: argparse.Namespace) -> None:
    for text in arguments.matchers:
        try:
            parse_matcher(text)
        except ValueError as error:
            raise UsageError(str(error)) from None
    until = _until(arguments.until)
    tell(state_folder(arguments), {"ask": "silence", "matchers": arguments.matchers, "until": until, "why": arguments.why})
    print(f"silenced until {time_text(until)}: {' '.join(arguments.matchers)}")


def _until(text: str) -> float:
    """Epoch seconds of a moment, or of the end of a time from now on."""
    try:
        return time.time() + parse_duration(text)
    except ValueError:
        pass
    try:
        moment = moment_of("--until", text, LocalZone(), datetime.now().astimezone())
    except UsageError:
        raise UsageError(f"--until: '{text}' is no time; write 4h (from now on), 18:00, 2026-01-31 or 2026-01-31T18:00") from None
    assert moment is not None
    return moment.timestamp()
