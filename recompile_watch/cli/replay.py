"""``recompile-watch replay``: what the daemon would have sent for an old log, and when."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import tzinfo
from pathlib import Path

from recompile_watch.cli import exit_status
from recompile_watch.cli.output import write_error, write_stdout
from recompile_watch.cli.times import zone_of
from recompile_watch.core.errors import UsageError
from recompile_watch.core.messages import Form
from recompile_watch.core.notices import Notice
from recompile_watch.core.watch_settings import WatchSettings
from recompile_watch.daemon.building import rules_of
from recompile_watch.daemon.replay import Replay
from recompile_watch.report.message import message_of
from recompile_watch.report.times import count_text, time_text
from recompile_watch.sources.find import find_sources
from recompile_watch.sources.read import read_blocks
from recompile_watch.watch_config import WatchConfig, read_config


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Prints each message with the log's time; exit status 3 when the log holds nothing."""
    pause = _pause(arguments.speed)
    if arguments.config is None:
        zone, _ = zone_of(arguments.tz)
        replay = Replay(WatchSettings(), "replay", pause)
    else:
        config = read_config(Path(arguments.config))
        zone = _zone(config, arguments.tz)
        replay = Replay(config.watch, config.sources[0].name, pause, rules_of(config))
    sent = 0
    for notice in _notices(replay, arguments.log, zone):
        sent += 1
        _show(notice, as_json=arguments.json)
    if not replay.events:
        write_error("nothing recognisable in the input; is it the log of a program that uses torch.compile?")
        return exit_status.UNKNOWN
    if not arguments.json:
        print(f"{count_text(sent, 'message')} for {count_text(replay.events, 'event')}")
    return exit_status.OK


def _notices(replay: Replay, paths: list[str], zone: tzinfo) -> Iterator[Notice]:
    sources, errors = find_sources(paths, rotated=True)
    if errors:
        raise errors[0]
    yield from replay.notices([(log, read_blocks(log)) for log in sources], zone)


def _zone(config: WatchConfig, asked: str | None) -> tzinfo:
    """The zone of lines without one: as asked for, else that of the source that the log stands for, else the local one."""
    zone, is_given = zone_of(asked)
    named = config.sources[0].zone
    return zone if is_given or named is None else named


def _pause(speed: str) -> Callable[[float], None]:
    """Waits between two messages as long as the log did, divided by the speed."""
    if speed == "max":
        return lambda _: None
    try:
        times = float(speed)
    except ValueError:
        times = 0.0
    if not 0 < times < 1e9:
        raise UsageError(f"--speed: '{speed}' is no speed; write a number such as 60, or max")
    last: list[float] = []

    def wait(at: float) -> None:
        if last:
            time.sleep(max(0.0, at - last[-1]) / times)
        last.append(at)

    return wait


def _show(notice: Notice, *, as_json: bool) -> None:
    if as_json:
        body = json.loads(message_of(notice, Form.JSON, now=notice.made_at).payload)
        write_stdout(json.dumps({"at": notice.made_at, "receiver": notice.receiver, **body}, sort_keys=True) + "\n")
    else:
        message = message_of(notice, Form.TEXT, now=notice.made_at)
        write_stdout(f"=== {time_text(notice.made_at)} to {notice.receiver}: {message.title}\n{message.text}\n")
    sys.stdout.flush()
