"""The doctor: each thing that can be wrong is one line that says what to do; real files, processes and daemons."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recompile_watch.daemon.checks import Check
from recompile_watch.daemon.doctor import examine
from recompile_watch.watch_config import read_config
from tests.daemon.process import config_for, daemon, receiver

NOW = float(int(time.time()))
SOURCE = '[[source]]\nname = "bot"\npath = "{folder}/logs/*.log"\ntimezone = "UTC"\n'
NOT_AS_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


def looked_at(folder: Path, text: str = SOURCE, pid: int | None = None, what: str = "source bot", now: float = NOW) -> list[Check]:
    """What the doctor says of one thing."""
    (folder / "logs").mkdir(exist_ok=True)
    file = folder / "watch.toml"
    file.write_text(f'state_dir = "{folder}/state"\n' + text.replace("{folder}", str(folder)))
    return [check for check in examine(read_config(file, {}), pid, now=now, environment=os.environ) if check.what == what]


def written(folder: Path, *, dated_s: float = 0.0, changed_s: float = 0.0) -> Path:
    """A log whose last dated line and whose last change are so far from now."""
    (folder / "logs").mkdir(exist_ok=True)
    log = folder / "logs" / "bot.log"
    log.write_text(f"{datetime.fromtimestamp(NOW + dated_s, UTC):%Y-%m-%d %H:%M:%S} INFO the bot says something\n  and more\n")
    os.utime(log, (NOW + changed_s, NOW + changed_s))
    return log


@contextmanager
def bot(error: Path | int, variables: Mapping[str, str]) -> Iterator[int]:
    """A process that prints its errors somewhere; its id."""
    environment = {"PATH": os.environ["PATH"], **variables}
    stream = error.open("ab") if isinstance(error, Path) else error
    # It answers once: Popen returns a moment before a process has its new environment.
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream, env=environment, bufsize=0) as made:
        try:
            assert made.stdin is not None and made.stdout is not None
            made.stdin.write(b"x")
            assert made.stdout.read(1) == b"x"
            yield made.pid
        finally:
            made.kill()
            if not isinstance(stream, int):
                stream.close()


def test_a_log_that_is_written(tmp_path: Path) -> None:
    """It is there, it grows, and its times are those at which it was written."""
    written(tmp_path)
    (check,) = looked_at(tmp_path)
    assert check.state == "ok" and "last written" in check.text


def test_a_path_that_leads_nowhere_names_the_folder_in_the_way(tmp_path: Path) -> None:
    """A folder that is not there; below /home with the hint for a unit; else the file itself."""
    (check,) = looked_at(tmp_path, '[[source]]\nname = "bot"\npath = "{folder}/nowhere/deep/*.log"\n')
    assert (check.state, check.text.partition("; ")[2]) == ("broken", f"{tmp_path}/nowhere does not exist; check the path")
    (check,) = looked_at(tmp_path, '[[source]]\nname = "bot"\npath = "/home/no-such-user/bot.log"\n')
    assert check.text.endswith("/home/no-such-user does not exist; a unit sees it only with BindReadOnlyPaths=")
    (check,) = looked_at(tmp_path)
    assert check.text.endswith("check the path in the configuration and whether the program that writes it runs")


@NOT_AS_ROOT
def test_what_may_not_be_read(tmp_path: Path) -> None:
    """A log or its folder without permission: the group is what is missing."""
    log = written(tmp_path)
    log.chmod(0)
    assert [(one.state, "into its group" in one.text) for one in looked_at(tmp_path)] == [("broken", True)]
    log.parent.chmod(0)
    assert "cannot be entered" in looked_at(tmp_path)[0].text
    log.parent.chmod(0o755)


@pytest.mark.parametrize(
    ("dated_s", "changed_s", "state", "text"),
    [
        (-3 * 86_400, -3 * 86_400, "weak", "has not grown for 3 d"),
        (5 * 3600, 0, "weak", 'dated 5 h after it was written, by timezone = "UTC"; set the source\'s timezone'),
        (-5 * 3600 - 20, 0, "weak", "dated 5 h 20 s before it was written"),
        (420, 0, "weak", "dated 7 min after it was written; set the clock of the bot's machine"),
        (3600, 3600, "weak", "was written 1 h in the future; set the clock here"),
        (-500, 0, "ok", "last written"),  # lines without a time came after it
    ],
)
def test_times_that_cannot_be(tmp_path: Path, dated_s: float, changed_s: float, state: str, text: str) -> None:
    """A log that stopped, a wrong zone, a clock that runs ahead there or here."""
    written(tmp_path, dated_s=dated_s, changed_s=changed_s)
    (check,) = looked_at(tmp_path)
    assert check.state == state and text in check.text


def test_the_bots_environment_and_where_it_prints(tmp_path: Path) -> None:
    """TORCH_LOGS is there or is missing; standard error ends in a followed log, in another file, nowhere, or in a pipe."""
    log = written(tmp_path)
    with bot(log, {"TORCH_LOGS": "recompiles"}) as pid:
        assert [one.state for one in looked_at(tmp_path, pid=pid, what="bot")] == ["ok", "ok"]
    with bot(log, {}) as pid:
        assert [(one.state, "start it with TORCH_LOGS=recompiles" in one.text) for one in looked_at(tmp_path, pid=pid, what="bot")] == [
            ("weak", True), ("ok", False),
        ]  # fmt: skip
    with bot(tmp_path / "other.txt", {"TORCH_COMPILE_DISABLE": "1"}) as pid:
        logs, errors = looked_at(tmp_path, pid=pid, what="bot")
        assert (logs.state, errors.state) == ("weak", "broken")
        assert "unset TORCH_COMPILE_DISABLE" in logs.text and "name that file in a [[source]]" in errors.text
    with bot(subprocess.DEVNULL, {"TORCH_LOGS": "+recompiles"}) as pid:
        assert "where nobody finds them" in looked_at(tmp_path, pid=pid, what="bot")[1].text
    with bot(subprocess.PIPE, {"TORCH_LOGS": "recompiles"}) as pid:
        assert looked_at(tmp_path, pid=pid, what="bot")[1].state == "unknown"
    with bot(subprocess.DEVNULL, {"TORCH_LOGS": "recompiles", "TORCH_LOGS_OUT": str(tmp_path / "x")}) as pid:
        assert [one.state for one in looked_at(tmp_path, pid=pid, what="bot")] == ["broken"]
    with bot(subprocess.DEVNULL, {"TORCH_LOGS": "recompiles", "TORCH_LOGS_OUT": str(log)}) as pid:
        assert [one.state for one in looked_at(tmp_path, pid=pid, what="bot")] == ["ok"]
    assert [one.text for one in looked_at(tmp_path, pid=pid, what="bot")] == [f"no process {pid} runs; name the bot's own with --pid"]


def test_a_bot_that_has_ended_is_unknown(tmp_path: Path) -> None:
    """A process that nobody waited for shows nothing: that is no evidence that TORCH_LOGS is missing."""
    with bot(written(tmp_path), {"TORCH_LOGS": "recompiles"}) as pid:
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert [one.state for one in looked_at(tmp_path, pid=pid, what="bot")] == ["unknown"]


def test_a_receiver_that_cannot_be_reached(tmp_path: Path) -> None:
    """It is connected to, and gets nothing."""
    with receiver() as inbox:
        good = SOURCE + f'[[receiver]]\nname = "ops"\nurl = "json://127.0.0.1:{inbox.port}/"\n'
        assert [one.state for one in looked_at(tmp_path, good, what="receiver ops")] == ["ok"]
        assert inbox.messages.empty()
    (check,) = looked_at(tmp_path, SOURCE + '[[receiver]]\nname = "ops"\nurl = "json://127.0.0.1:9/"\n', what="receiver ops")
    assert (check.state, check.text) == ("broken", "no connection: connection refused; see its address, and that it runs")


def test_the_bots_interpreter(tmp_path: Path) -> None:
    """Without torch, with a torch that cannot be imported, with one, and none at all; nothing around is imported instead."""

    def said(python: Path | str) -> Check:
        return looked_at(tmp_path, f'{SOURCE}[diagnose]\npython = "{python}"\n', what="diagnostic")[0]

    def script(text: str) -> Path:
        file = tmp_path / "python"
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return file

    tmp_path.chmod(0o755)
    assert "cannot be run" in said(tmp_path / "nowhere").text
    assert "has no torch; write [diagnose] python" in said(script("echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1")).text
    assert "cannot import torch (ImportError: libcudart.so.12)" in said(script("echo 'ImportError: libcudart.so.12' >&2; exit 1")).text
    assert said(script("pwd")).text.endswith("torch /")
    assert said(script("true")).state == "broken"


def test_a_state_directory_that_cannot_be_written(tmp_path: Path) -> None:
    """A file in its place, also one that may be run; nothing is made by looking."""
    assert looked_at(tmp_path, what="state")[0].state == "ok" and not (tmp_path / "state").exists()
    (tmp_path / "state").write_text("a file in its place")
    for mode in (0o600, 0o755):
        (tmp_path / "state").chmod(mode)
        (check,) = looked_at(tmp_path, what="state")
        assert (check.state, "is no folder; correct state_dir" in check.text) == ("broken", True)


def test_what_the_running_watch_sees_counts(tmp_path: Path) -> None:
    """The doctor may see a file that the watch does not: as root, or outside of the unit."""
    with receiver() as inbox, daemon(tmp_path, config_for(tmp_path, inbox.port)) as watch:
        assert looked_at(tmp_path, what="watch")[0].text == f"runs as process {watch.process.pid}"
        watch.write(b"the bot starts\n")
        elsewhere = SOURCE.replace('"bot"', '"other"')
        written_at = watch.log().stat().st_mtime
        assert [one.state for one in looked_at(tmp_path, elsewhere, what="source other", now=written_at)] == ["ok"]
    other = tmp_path / "other"
    other.mkdir()
    with receiver() as inbox, daemon(other, config_for(other, inbox.port).replace("/logs/", "/nothing/")):
        written(other)
        (check,) = looked_at(other)
        assert check.state == "broken" and "the running watch sees no file" in check.text and "BindReadOnlyPaths=" in check.text
    assert "systemctl start" in looked_at(tmp_path, what="watch")[0].text
