"""``recompile-watch status``: what the daemon knows now."""

import argparse
import time

from recompile_watch.cli import exit_status
from recompile_watch.cli.output import write_result
from recompile_watch.cli.watch_state import read_state, state_folder
from recompile_watch.report.json import json_text
from recompile_watch.report.watch_series import first_hour, lines_of, series_text, series_to_json
from recompile_watch.report.watch_state import status_text, status_to_json


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Prints the status."""
    now = time.time()
    state = read_state(state_folder(arguments), series_from=first_hour(now))
    status = status_to_json(state.daemon, state.progress, state.incidents, state.outbox, state.silences)
    lines = lines_of(state.hours, now=now)
    if arguments.json:
        write_result(json_text({**status, "series": series_to_json(lines)}) + "\n", None)
    else:
        write_result(status_text(status, now=now) + series_text(lines), None)
    return exit_status.OK
