"""``recompile-watch notify``: proves that messages arrive, and tells of the watch's own end."""

import argparse
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

from recompile_watch.cli import exit_status
from recompile_watch.cli.output import write_stdout
from recompile_watch.cli.watch_state import read_state
from recompile_watch.core.errors import UsageError
from recompile_watch.core.notices import Alert, Notice, NoticeSort
from recompile_watch.daemon.digest import digest_of_rows
from recompile_watch.notify import Trial, send_each, send_tests
from recompile_watch.report.safe import safe
from recompile_watch.respond.receivers import ReceiverSettings
from recompile_watch.watch_config import WatchConfig, read_config

_COST = "Nobody reads the logs and nobody is told of anything until it runs again; it will then go on where it stopped."


def run(arguments: argparse.Namespace, name: tuple[str, ...]) -> int:
    """Sends to the receivers; exit status 2 when one did not take it, 3 when there is none."""
    config = read_config(Path(arguments.config))
    receivers = _wanted(config, arguments.receivers) if name[1] == "test" else list(config.receivers)
    if not receivers:
        raise UsageError(f'{config.file}: no [[receiver]]; write one with a name and a url, such as url = "json://127.0.0.1:8080/alerts"')
    host, now = socket.gethostname(), time.time()
    match name[1]:
        case "test":
            trials = send_tests(receivers, host=host, now=now, environment=os.environ)
        case "digest":
            trials = send_each(receivers, _digest(config, host, now), now=now, environment=os.environ)
        case _:
            trials = send_each(receivers, lambda receiver: _failure(receiver.name, arguments.unit, host, now), now=now, environment=os.environ)
    for trial in trials:
        write_stdout(_shown(trial))
    return exit_status.OK if all(trial.is_good for trial in trials) else exit_status.CRITICAL


def _wanted(config: WatchConfig, names: list[str]) -> list[ReceiverSettings]:
    known = {receiver.name: receiver for receiver in config.receivers}
    for name in names:
        if name not in known:
            raise UsageError(f"no receiver is called '{name}'; the configuration names {', '.join(known) or 'none'}")
    return [known[name] for name in names] if names else list(known.values())


def _shown(trial: Trial) -> str:
    return f"{'ok  ' if trial.is_good else 'FAIL'}  {safe(trial.receiver)}: {safe(trial.words, 400)}\n"


def _digest(config: WatchConfig, host: str, now: float) -> Callable[[ReceiverSettings], Notice]:
    """The digest for each receiver, of what the watch has written down."""
    state = read_state(config.state_folder)
    return lambda receiver: digest_of_rows(state.incidents, receiver.name, host=host, now=now, is_running=state.daemon is not None)


def _failure(receiver: str, unit: str, host: str, now: float) -> Notice:
    """The notice that the watch itself failed."""
    what = f"The watch itself failed: {safe(unit, 100)} does not run any more"
    why = f"systemd gave {safe(unit, 100)} up; see journalctl -u {safe(unit, 100)}, then systemctl restart {safe(unit, 100)}"
    alert = Alert("watch", "watch", "watch_failed", "critical", "open", what, _COST, why, None, None, None, None, now, now, 1, (1,), ())
    return Notice(f"failed-{now:.3f}-{receiver}", receiver, NoticeSort.OPENED, "critical", now, host, (alert,))
