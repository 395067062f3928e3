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
from recompile_watch.core.errors import ConfigError, UsageError
from recompile_watch.core.notices import Alert, Notice, NoticeSort
from recompile_watch.daemon.digest import digest_of_rows
from recompile_watch.notify import Trial, send_each, send_tests
from recompile_watch.report.safe import safe
from recompile_watch.respond.receivers import ReceiverSettings
from recompile_watch.watch_config import WatchConfig, read_config, readable_receivers

_COST = "Nobody reads the logs and nobody is told of anything until it runs again; it will then go on where it stopped."


def run(arguments: argparse.Namespace, name: tuple[str, ...]) -> int:
    """Sends to the receivers; exit status 2 when one did not take it."""
    file, host, now = Path(arguments.config), socket.gethostname(), time.time()
    match name[1]:
        case "test":
            trials = send_tests(_wanted(read_config(file), arguments.receivers), host=host, now=now, environment=os.environ)
        case "digest":
            config = read_config(file)
            trials = send_each(_wanted(config, []), _digest(config, host, now), now=now, environment=os.environ)
        case _:
            trials = _tell_failure(file, arguments.unit, host, now)
    for trial in trials:
        write_stdout(_shown(trial))
    return exit_status.OK if all(trial.is_good for trial in trials) else exit_status.CRITICAL


def _tell_failure(file: Path, unit: str, host: str, now: float) -> list[Trial]:
    """Tells that a unit failed, also when it failed because the configuration is bad: to the receivers that can be reached with it."""
    mistake = None
    try:
        receivers = _wanted(read_config(file), [])
    except ConfigError as error:
        receivers, mistake = readable_receivers(file), error
        if not receivers:
            raise
    return send_each(receivers, lambda receiver: _failure(receiver.name, unit, mistake, host, now), now=now, environment=os.environ)


def _wanted(config: WatchConfig, names: list[str]) -> list[ReceiverSettings]:
    """The receivers of these names, all of them when none is named."""
    known = {receiver.name: receiver for receiver in config.receivers}
    if not known:
        raise UsageError(f'{config.file}: no [[receiver]]; write one with a name and a url, such as url = "json://127.0.0.1:8080/alerts"')
    for name in names:
        if name not in known:
            raise UsageError(f"no receiver is called '{name}'; the configuration names {', '.join(known)}")
    return [known[name] for name in names] if names else list(known.values())


def _shown(trial: Trial) -> str:
    return f"{'ok  ' if trial.is_good else 'FAIL'}  {safe(trial.receiver)}: {safe(trial.words, 400)}\n"


def _digest(config: WatchConfig, host: str, now: float) -> Callable[[ReceiverSettings], Notice]:
    """The digest for each receiver, of what the watch has written down."""
    state = read_state(config.state_folder)
    return lambda receiver: digest_of_rows(state.incidents, receiver.name, host=host, now=now, is_running=state.daemon is not None)


def _failure(receiver: str, unit: str, mistake: ConfigError | None, host: str, now: float) -> Notice:
    """The notice that the watch itself failed; with the first mistake of its configuration, if that is bad."""
    unit = safe(unit, 100)
    what = f"The watch itself failed: {unit} does not run any more"
    seen = f"see journalctl -u {unit}" if mistake is None else f"its configuration is bad: {safe(str(mistake).splitlines()[0], 300)}"
    why = f"systemd gave {unit} up; {seen}, then systemctl restart {unit}"
    alert = Alert("watch", "watch", "watch_failed", "critical", "open", what, _COST, why, None, None, None, None, now, now, 1, (1,), ())
    return Notice(f"failed-{now:.3f}-{receiver}", receiver, NoticeSort.OPENED, "critical", now, host, (alert,))
