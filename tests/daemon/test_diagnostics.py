"""From the alert to its measurement: a real daemon, the real diagnostic as its child, and interpreters that answer as told."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest

from recompile_watch.respond.worker_process import MARK
from recompile_watch.store import read_tables
from tests.cli.test_commands import run
from tests.conftest import ROOT, SAMPLES
from tests.daemon.process import PATIENCE_S, Daemon, Receiver, config_for, daemon, receiver
from tests.daemon.world import quote
from tests.respond.fake import honest, script

BOT_DAY = (SAMPLES / "bot-2025-10-30.log").read_bytes()
STORM = {"recompiles": 30, "graph_breaks": 20, "limit_hits": 1}
STORMS = dict.fromkeys(("default", "dynamic", "recompile_limit=64", "allow_unspec_int_on_nn_module", "capture_scalar_outputs"), STORM)
HANGS = """import os, pathlib, sys, time
sys.stdin.readline()
pathlib.Path(sys.argv[0]).with_name(f"hangs-{os.getpid()}").touch()
print('{"record": "hello"}', flush=True)
time.sleep(600)
"""
LIMIT = "positional_embedding hit the recompile limit"


def configured(folder: Path, inbox: Receiver, python: str, more: str = "") -> str:
    """A watch that has the workload measured at each alert about toto."""
    diagnose = f'[diagnose]\npython = "{python}"\nworkload = "bot:make"\nmodel = "toto"\non_alert = true\nwait = "0s"\npause = "1s"\n{more}\n'
    return config_for(folder, inbox.port, diagnose)


def limit_incident(watch: Daemon) -> Mapping[str, object]:
    """The recompile limit of toto's function, as the watch has it."""
    return next(row for row in watch.incidents() if row["kind"] == "recompile_limit_hit")


def diagnosis_of(watch: Daemon) -> Mapping[str, object]:
    found = limit_incident(watch)["diagnosis"]
    return cast(Mapping[str, object], found) if found is not None else {}


def eventually(is_so: Callable[[], bool]) -> None:
    """Waits until something is so; fails when it never is."""
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def processes_of(folder: Path) -> dict[int, str]:
    """The processes of a diagnosis whose command names something in this folder, with their marks."""
    found: dict[int, str] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, variables = (process / "cmdline").read_bytes(), (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(folder).encode() in command:
            found |= {int(process.name): one.partition(b"=")[2].decode() for one in variables if one.startswith(f"{MARK}=".encode())}
    return found


def hanging(folder: Path) -> set[int]:
    """The processes in which HANGS runs: those of an interpreter in this folder that have read their request."""
    return {int(path.name.partition("-")[2]) for path in folder.glob("hangs-*")}


def test_an_alert_is_measured_and_told(tmp_path: Path) -> None:
    """The log line, the message of the incident, then the message of what its own advice gains; kept, shown, and used by analyze."""
    python = honest(tmp_path, gain={"exclude=positional_embedding": 3.0}, structure=STORMS)
    with receiver() as inbox, daemon(tmp_path, configured(tmp_path, inbox, python)) as watch:
        watch.write(b"the bot starts\n" + BOT_DAY)
        told = inbox.until("Measured: ")
        titles = [str(message["title"]) for message in told]
        assert LIMIT in "\n".join(titles[:-1]) and titles[-1].startswith("Measured: ")
        message = told[-1]
        text = str(message["message"])
        assert message["sort"] == "measured" and "Measured: 30 recompiles → 0 with exclude=positional_embedding; not decided" in text
        assert "you were told of it, and it was measured since" in text
        eventually(lambda: diagnosis_of(watch).get("state") == "done")
        shown = watch.asked("incidents", "show", str(limit_incident(watch)["id"])).stdout
        assert "measured: 30 recompiles → 0 with exclude=positional_embedding; not decided: nothing was timed" in shown
        (kept,) = read_tables(tmp_path / "state")["diagnoses"].values()
        assert isinstance(kept, dict) and (kept["model"], kept["incident"], kept["is_by_hand"]) == ("toto", limit_incident(watch)["id"], False)
        assert kept["report"]["schema"] == "recompile-watch/diagnosis/1" and kept["report"]["stage"] == "structural"
        status = json.loads(watch.asked("status", "--json").stdout)
        assert status["diagnosis"] == {"running": None, "waiting": 0}
        done = run("analyze", "--format", "json", "--state-dir", str(tmp_path / "state"), str(SAMPLES / "bot-2025-10-30.log"))
        assert any("a diagnosis did not decide" in text for text in json.loads(done.stdout)["decision"]["per_model"]["toto"]["against"])
        assert watch.end() == 0 and not processes_of(tmp_path)
    assert not [line for line in (tmp_path / "errors").read_text().splitlines() if "Traceback" in line]


def test_without_torch_the_reason_is_told_once(tmp_path: Path) -> None:
    """An interpreter that has no torch: one message says so, and nothing is tried again."""
    python = script(tmp_path, "import sys\nsys.exit(\"ModuleNotFoundError: No module named 'torch'\")")
    with receiver() as inbox, daemon(tmp_path, configured(tmp_path, inbox, python)) as watch:
        watch.write(b"the bot starts\n" + BOT_DAY)
        message = inbox.until("Measured: ")[-1]
        assert "not decided: eager itself was not measured" in str(message["message"]) and "No module named 'torch'" in str(message["message"])
        assert diagnosis_of(watch)["state"] == "done"
        assert "torch" not in Path(f"/proc/{watch.process.pid}/maps").read_text()


def test_a_wrong_configuration_of_the_run_is_told_and_given_up(tmp_path: Path) -> None:
    """A bot log that shows no latency is a reason not to start; it is tried again, then given up and told."""
    (tmp_path / "quiet.log").write_text("hello\n")
    more = f'bot_log = "{tmp_path / "quiet.log"}"\ngive_up = "1s"'
    with receiver() as inbox, daemon(tmp_path, configured(tmp_path, inbox, honest(tmp_path), more)) as watch:
        watch.write(b"the bot starts\n" + BOT_DAY)
        assert "Measured: not measured: " in str(inbox.until("not measured")[-1]["message"])
        eventually(lambda: diagnosis_of(watch).get("state") == "given_up")
        assert "shows 0 calls of the bot" in str(diagnosis_of(watch)["text"])
        assert not read_tables(tmp_path / "state")["diagnoses"]


def test_a_worker_that_hangs_ends_with_its_time(tmp_path: Path) -> None:
    """The run is over when its time is, nothing of it goes on, and reading never stopped meanwhile."""
    more = 'run_limit = "15s"\ngive_up = "1s"'
    with receiver() as inbox, daemon(tmp_path, configured(tmp_path, inbox, script(tmp_path, HANGS), more)) as watch:
        watch.write(b"the bot starts\n" + BOT_DAY)
        inbox.until(LIMIT)
        eventually(lambda: diagnosis_of(watch).get("state") == "running" and bool(hanging(tmp_path)))
        running = json.loads(watch.asked("status", "--json").stdout)["diagnosis"]["running"]
        assert running["incident"] == limit_incident(watch)["id"] and running["since"].startswith("20")
        watch.write(quote("XYZUSD", 1))
        eventually(lambda: any("XYZUSD" in str(row["symbols"]) for row in watch.incidents()))
        assert "Measured: not measured: it was ended after 15 s" in str(inbox.until("not measured")[-1]["message"])
        assert watch.end() == 0 and not processes_of(tmp_path)


def test_a_killed_watch_leaves_nothing_behind_and_measures_later(tmp_path: Path) -> None:
    """kill -9 while a worker runs: it dies with the watch; the next one measures, and tells it once."""
    python = script(tmp_path, HANGS)
    with receiver() as inbox, daemon(tmp_path, configured(tmp_path, inbox, python)) as watch:
        watch.write(b"the bot starts\n" + BOT_DAY)
        eventually(lambda: bool(hanging(tmp_path)))
        before = set(processes_of(tmp_path))
        assert hanging(tmp_path) <= before and len(before) >= 2
        watch.kill()
        eventually(lambda: not set(processes_of(tmp_path)) & before)
        honest(tmp_path, gain={"exclude=positional_embedding": 3.0}, structure=STORMS)  # the same path answers now
        watch.start()
        assert "30 recompiles → 0" in str(inbox.until("Measured: ")[-1]["message"])
        eventually(lambda: diagnosis_of(watch).get("state") == "done")
        assert watch.end() == 0
        rest = [inbox.messages.get_nowait() for _ in range(inbox.messages.qsize())]
        assert not [message for message in rest if message["sort"] == "measured"]
        assert len(read_tables(tmp_path / "state")["diagnoses"]) == 1


def test_two_watches_of_the_same_log_measure_by_themselves(tmp_path: Path) -> None:
    """Both met the same incident at the same time; the end of one leaves the other's run alone."""
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    with receiver() as inbox, ExitStack() as stack:
        watches = [stack.enter_context(daemon(folder, configured(folder, inbox, script(folder, HANGS)))) for folder in folders]
        for watch in watches:
            watch.write(b"the bot starts\n" + BOT_DAY)
        eventually(lambda: all(hanging(folder) for folder in folders))
        assert watches[0].end() == 0 and not processes_of(folders[0])
        assert hanging(folders[1]) <= set(processes_of(folders[1])) and diagnosis_of(watches[1])["state"] == "running"
        assert watches[1].end() == 0 and not processes_of(folders[1])


def test_what_the_death_signal_misses_is_found_by_its_mark(tmp_path: Path) -> None:
    """A diagnostic that is stopped cannot take its signal: the next watch finds it by the mark in its memory, and ends it."""
    python = script(tmp_path, HANGS)
    with receiver() as inbox, daemon(tmp_path, configured(tmp_path, inbox, python)) as watch:
        watch.write(b"the bot starts\n" + BOT_DAY)
        eventually(lambda: bool(hanging(tmp_path)))
        marks = processes_of(tmp_path)
        child = next(pid for pid, mark in marks.items() if len(mark) == 32)
        os.kill(child, signal.SIGSTOP)
        watch.kill()
        assert child in processes_of(tmp_path)
        watch.start()
        assert not set(marks) & set(processes_of(tmp_path))


def test_a_person_measures_an_incident(tmp_path: Path) -> None:
    """`diagnose --incident` tries the incident's own advice; the watch keeps the result, and tells those whom it had told."""
    python = honest(tmp_path, gain={"exclude=positional_embedding": 3.0}, structure=STORMS)
    with receiver() as inbox, daemon(tmp_path, config_for(tmp_path, inbox.port)) as watch:
        watch.write(b"the bot starts\n" + BOT_DAY)
        inbox.until(LIMIT)
        name = str(limit_incident(watch)["id"])
        options = ("--builtin", "steady", "--python", python, "--device", "cpu", "--format", "json")
        done = watch.asked("diagnose", "--incident", name[:6], *options)
        report = json.loads(done.stdout)
        assert (done.returncode, done.stderr, report["verdict"]["choose"]) == (0, "", "exclude=positional_embedding")
        message = inbox.until("Measured: ")[-1]
        assert "Measured: 30 recompiles → 0, " in str(message["message"]) and "; run exclude=positional_embedding" in str(message["message"])
        (kept,) = read_tables(tmp_path / "state")["diagnoses"].values()
        assert isinstance(kept, dict) and (kept["model"], kept["is_by_hand"]) == ("toto", True)
        assert "per_call" not in json.dumps(kept) and "per_call" in done.stdout
        decided = run("analyze", "--format", "json", "--state-dir", str(tmp_path / "state"), str(SAMPLES / "bot-2025-10-30.log"))
        assert json.loads(decided.stdout)["decision"]["per_model"]["toto"]["mode"] == "default"
        again = watch.asked("diagnose", "--incident", name, *options)
        assert again.returncode == 3 and "was diagnosed a short while ago" in again.stderr
        unknown = watch.asked("diagnose", "--incident", "zzz", *options)
        assert unknown.returncode == 64 and unknown.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("on_alert = true", "on_alert measures a workload of a model"),
        ('on_alert = true\nworkload = "bot:make"', "on_alert measures a workload of a model"),
        ('on_alert = "yes"', "diagnose.on_alert"),
        ("wait = 3", "diagnose.wait"),
    ],
)
def test_a_bad_section_is_told_at_the_start(tmp_path: Path, section: str, words: str) -> None:
    """78, one line, and what to write."""
    config = tmp_path / "watch.toml"
    config.write_text(config_for(tmp_path, 9, f"[diagnose]\n{section}\n"))
    done = run("watch", "--check", "--config", str(config))
    assert done.returncode == 78 and done.stderr.count("\n") == 1 and words in done.stderr


PLAYED_NVML = """
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace as Made

class NVMLError(Exception):
    pass

def nvmlInit(): pass
def nvmlDeviceGetCount(): return 1
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetUUID(handle): return "GPU-played"
def nvmlDeviceGetName(handle): return "played GPU"
def nvmlDeviceGetMemoryInfo(handle): return Made(free=80e9, total=80e9)
def nvmlDeviceGetUtilizationRates(handle): return Made(gpu=0)
def nvmlDeviceGetCurrentClocksThrottleReasons(handle): return 0
def nvmlDeviceGetComputeRunningProcesses(handle):
    return [Made(pid=int(word)) for word in Path(__file__).with_name("users").read_text().split()]
"""


def test_the_times_come_when_the_gpu_is_free(tmp_path: Path) -> None:
    """While the bot computes on the GPU only the structure is looked at; once it is free the run is timed there, and told as well."""
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "pynvml.py").write_text(PLAYED_NVML)
    users = tmp_path / "driver" / "users"
    users.write_text("4711")
    python = honest(tmp_path, gain={"exclude=positional_embedding": 3.0}, structure=STORMS)
    environment = {"PYTHONPATH": f"{tmp_path / 'driver'}{os.pathsep}{ROOT}"}
    with receiver() as inbox, daemon(tmp_path, configured(tmp_path, inbox, python), environment) as watch:
        watch.write(b"the bot starts\n" + BOT_DAY)
        assert "not decided: nothing was timed" in str(inbox.until("Measured: ")[-1]["message"])
        eventually(lambda: "played GPU is in use by process 4711" in str(diagnosis_of(watch)["why"]))
        shown = watch.asked("incidents", "show", str(limit_incident(watch)["id"])).stdout
        assert "diagnosis: " in shown and "30 recompiles → 0 with exclude=positional_embedding" in shown
        users.write_text("")
        message = inbox.until("; run exclude=positional_embedding")[-1]
        assert message["sort"] == "measured" and "Measured: 30 recompiles → 0, " in str(message["message"])
        reports = [cast(Mapping[str, Mapping[str, object]], row)["report"] for row in read_tables(tmp_path / "state")["diagnoses"].values()]
        assert [(report["stage"], report["postponed"] is None) for report in reports] == [("structural", False), ("both", True)]
        assert watch.end() == 0
