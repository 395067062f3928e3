"""``recompile-watch doctor``: is everything in place for the watch?"""

import argparse
import os
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from recompile_watch.cli import exit_status
from recompile_watch.cli.output import write_result, write_stdout
from recompile_watch.cli.watch_state import asked_folder
from recompile_watch.core.errors import UsageError
from recompile_watch.daemon.checks import BROKEN, OK, UNKNOWN, WEAK, Check
from recompile_watch.daemon.doctor import examine
from recompile_watch.report.json import json_text
from recompile_watch.report.safe import safe
from recompile_watch.watch_config import read_config

_CODES = {OK: exit_status.OK, WEAK: exit_status.WARNING, UNKNOWN: exit_status.OK, BROKEN: exit_status.CRITICAL}


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Prints each check; the exit status is that of the worst. What cannot be known is shown and counts for nothing."""
    if arguments.pid is not None and not arguments.pid.isdigit():
        raise UsageError(f"--pid: '{arguments.pid}' is no process id; write a number")
    config = read_config(Path(arguments.config))
    config = replace(config, state_folder=asked_folder(config.state_folder))
    checks: list[Check] = []
    for check in examine(config, None if arguments.pid is None else int(arguments.pid), now=time.time(), environment=os.environ):
        checks.append(check)
        if not arguments.json:
            write_stdout(f"{check.state:<8}{safe(check.what)}: {safe(check.text)}\n")
            sys.stdout.flush()
    if arguments.json:
        write_result(json_text([asdict(check) for check in checks]) + "\n", None)
    return max(_CODES[check.state] for check in checks)
