"""The watch's own log: one line an event, for people or for programs, without secrets."""

from __future__ import annotations

import io
import json
import os
import pty
from pathlib import Path

import pytest

from recompile_watch.daemon.journal import Journal

SECRET = "https://hooks.slack.com/services/T000/B000/abcdefghijkl"


def test_a_program_gets_json_without_secrets(tmp_path: Path) -> None:
    """One object a line whatever is in the fields; secrets are masked, line breaks and escape sequences are gone."""
    with (tmp_path / "log").open("w") as stream:
        journal = Journal(stream, {})
        journal.told("watch_started", sources=2, config=tmp_path / "x")
        journal.warned("reload_refused", error=f"{SECRET}\n<3>forged \x1b[31mline")
        journal.failed("turn_failed", ValueError(f"token={SECRET[-12:]}"), failures=3)
    text = (tmp_path / "log").read_text()
    started, refused, failed = map(json.loads, text.splitlines())
    assert (started["level"], started["event"], started["sources"], started["config"]) == ("info", "watch_started", 2, str(tmp_path / "x"))
    assert (refused["level"], refused["error"]) == ("warning", "https://hooks.slack.com/*** <3>forged line")
    assert (failed["level"], failed["error"], failed["text"], failed["failures"]) == ("error", "ValueError", "token=***", 3)
    assert SECRET[-12:] not in text and "\x1b" not in text


def test_journald_gets_a_priority(tmp_path: Path) -> None:
    """Only when its own stream is the one that is written to: a file or a pipe gets none."""
    with (tmp_path / "log").open("w") as stream:
        status = os.fstat(stream.fileno())
        Journal(stream, {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}).warned("reload_refused", error="x")
        Journal(stream, {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino + 1}"}).warned("reload_refused", error="x")
    first, second = (tmp_path / "log").read_text().splitlines()
    assert first.startswith('<4>{"at"') and second.startswith('{"at"')


@pytest.mark.parametrize(("environment", "has_colour"), [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False)])
def test_a_person_at_a_terminal_gets_a_line(environment: dict[str, str], has_colour: bool) -> None:
    """Time, level, event, fields; in colour unless NO_COLOR is set."""
    reading, writing = pty.openpty()
    with os.fdopen(writing, "w") as stream:
        Journal(stream, environment).told("config_reloaded", sources=1, why="a change")
        said = os.read(reading, 4096).decode()
    os.close(reading)
    assert ("\x1b[36m" in said) is has_colour
    assert said.replace("\x1b[36m", "").replace("\x1b[0m", "")[9:].strip() == 'info    config_reloaded sources=1 why="a change"'


def test_what_repeats_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same event within a minute is left out, and the next one says how many were."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    stream = io.StringIO()
    journal = Journal(stream, {})
    for moment in (100.0, 110.0, 120.0, 161.0):
        now[0] = moment
        journal.warned("state_unwritten", error="full")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert "left_out" not in first and second["left_out"] == 2


def test_a_log_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    """The disk of the log is full, or its reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w")
    Journal(stream, {}).told("watch_started")
    with pytest.raises(BrokenPipeError):
        stream.close()
