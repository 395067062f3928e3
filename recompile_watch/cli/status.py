"""``recompile-watch status``: what the daemon knows now."""

import argparse
import time

from recompile_watch.cli import exit_status
from recompile_watch.cli.output import write_result
from recompile_watch.cli.watch_state import read_state, state_folder
from recompile_watch.report.json import json_text
from recompile_watch.report.watch_state import status_text, status_to_json


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Prints the status."""
    state = read_state(state_folder(arguments))
    status = status_to_json(state.daemon, state.progress, state.incidents, state.outbox, state.silences)
    write_result(json_text(status) + "\n" if arguments.json else status_text(status, now=time.time()), None)
    return exit_status.OK
