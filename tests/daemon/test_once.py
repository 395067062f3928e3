"""``watch --once`` for cron: each look tells what it found, whatever the time between two looks; only the clock is ours."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from recompile_watch.daemon.journal import Journal
from recompile_watch.daemon.loop import Clock
from recompile_watch.daemon.program import Program, read_for_one_look
from tests.daemon.process import Receiver, receiver
from tests.daemon.world import START, limit_hit, quote

HOUR_S = 3_600.0
CONFIG = """
state_dir = "{folder}/state"
[[source]]
name = "bot"
path = "{folder}/logs/*.log"
timezone = "UTC"
start = "begin"
silent_after = "5h"
[[receiver]]
name = "ops"
url = "json://127.0.0.1:{port}/alerts"
"""


class Cron:
    """Looks at one folder of logs when it is told to, at a time of the test's choice."""

    def __init__(self, folder: Path, inbox: Receiver) -> None:
        self.now = START
        self.file = folder / "watch.toml"
        self.file.write_text(CONFIG.format(folder=folder, port=inbox.port))
        self.log = folder / "logs" / "bot.log"
        self.log.parent.mkdir()
        self.inbox = inbox

    def look(self, after_s: float = HOUR_S) -> tuple[list[str], str]:
        """One run of cron: what could not be read, and all that was told."""
        self.now += after_s
        started_s = time.monotonic()
        clock = Clock(lambda: self.now + time.monotonic() - started_s, time.monotonic)
        unread = Program(self.file, Journal(), clock=clock, read=read_for_one_look).run_once()
        told = ""
        while not self.inbox.messages.empty():
            told += f"{self.inbox.messages.get()['message']}\n"
        return unread, told

    def write(self, text: bytes) -> None:
        """The bot writes."""
        with self.log.open("ab") as stream:
            stream.write(text)


@pytest.mark.parametrize("apart_s", [60.0, HOUR_S, 24 * HOUR_S])
def test_each_look_tells_what_it_found(tmp_path: Path, apart_s: float) -> None:
    """A minute, an hour or a day apart: warnings that would wait for company, and more of them than go out at once."""
    symbols = ["BTCUSD", "ETHUSD", "UNIUSD", "SOLUSD", "AVAXUSD", "LINKUSD", "DOGEUSD"]
    with receiver() as inbox:
        cron = Cron(tmp_path, inbox)
        for second, symbol in enumerate(symbols):
            cron.write(quote(symbol, second))
            assert symbol in cron.look(apart_s)[1]


def test_a_look_goes_on_until_all_is_told(tmp_path: Path) -> None:
    """More messages than a receiver takes at once: a look waits for its rate and leaves nothing for the next one."""
    with receiver() as inbox:
        cron = Cron(tmp_path, inbox)
        cron.file.write_text(cron.file.read_text() + 'group_by = ["kind", "function"]\nburst = 100\n')
        cron.write(b"the bot starts\n")
        cron.look()
        for number in range(6):
            cron.write(limit_hit(f"attend_{number}", number))
        told = cron.look()[1]
        assert all(f"Critical: attend_{number} hit the recompile limit" in told for number in range(6))


def test_the_first_look_tells_an_old_problem_as_it_is(tmp_path: Path) -> None:
    """Nobody looked before it: what is a month old when it is piped in is told, and not as over for a month."""
    with receiver() as inbox:
        cron = Cron(tmp_path, inbox)
        cron.file.write_text(cron.file.read_text().replace(f'path = "{tmp_path}/logs/*.log"', "stdin = true").replace('start = "begin"\n', ""))
        command = [sys.executable, "-m", "recompile_watch", "watch", "--once", "--config", str(cron.file)]
        assert subprocess.run(command, input=limit_hit("attend", 1), check=False, timeout=60).returncode == 0
        assert str(inbox.next()["title"]).startswith("Critical: attend hit the recompile limit")
        assert inbox.messages.empty()


def test_time_between_two_looks_counts(tmp_path: Path) -> None:
    """What did not come back for a day is over, and a log that stands still is told: each look reads all there is."""
    with receiver() as inbox:
        cron = Cron(tmp_path, inbox)
        cron.write(quote("BTCUSD", 1))
        cron.look()
        told = [cron.look()[1] for _ in range(26)]
        assert sum("No line from 'bot' for 5 h" in one for one in told) == 1
        assert "BTCUSD" in "".join(one for one in told if "Resolved" in one)


def test_a_look_that_finds_nothing_to_read_is_no_good_one(tmp_path: Path) -> None:
    """Without a file nothing was watched: exit status 3 and one line, and the receivers hear of it once."""
    with receiver() as inbox:
        cron = Cron(tmp_path, inbox)
        command = [sys.executable, "-m", "recompile_watch", "watch", "--once", "--config", str(cron.file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 3
        assert done.stderr.count("\n") == 1 and "leads to no file" in done.stderr
        assert "leads to no file" in str(inbox.next()["message"])
        again = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert again.returncode == 3 and inbox.messages.empty()
        cron.write(b"the bot starts\n")
        assert subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).returncode == 0
