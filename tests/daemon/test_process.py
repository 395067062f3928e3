"""The daemon as systemd runs it: a real process, real files, a real receiver, a real notify socket, real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.conftest import ROOT, SAMPLES
from tests.daemon.process import config_for, daemon, receiver
from tests.daemon.world import limit_hit, quote

BOT_DAY = (SAMPLES / "bot-2025-10-30.log").read_bytes()


def test_the_bots_day_is_told_as_it_is_written(tmp_path: Path) -> None:
    """The limit hit, the overwritten output and the synthetic quotes arrive with evidence and advice; SIGTERM ends well."""
    with receiver() as inbox, daemon(tmp_path, config_for(tmp_path, inbox.port)) as watch:
        watch.write(b"the bot starts\n")
        watch.write(BOT_DAY)
        found = inbox.until("overwritten by the next run")
        limit = next(message for message in found if "positional_embedding hit the recompile limit (8)" in str(message["title"]))
        assert limit["type"] == "failure"
        assert "@torch.compiler.disable" in str(limit["message"]) and "attention.py:105" in str(limit["message"])
        fingerprints = {incident["fingerprint"] for message in found for incident in message["incidents"]}  # type: ignore[attr-defined]
        listed = {row["fingerprint"]: row for row in watch.incidents()}
        assert fingerprints <= set(listed)
        status = json.loads(watch.asked("status", "--json").stdout)
        assert status["daemon"]["pid"] == watch.process.pid and status["daemon"]["healthy"] is True
        assert [(source["position"], source["lag_bytes"]) for source in status["sources"]] == [(len(BOT_DAY) + 15, 0)]
        assert watch.end() == 0
        assert (tmp_path / "errors").read_text().count("Traceback") == 0


def test_killed_and_rotated_each_event_counts_once(tmp_path: Path) -> None:
    """kill -9 while the bot writes and rotates, again and again: the counts are those of what was written."""
    with receiver() as inbox, daemon(tmp_path, config_for(tmp_path, inbox.port)) as watch:
        written: Counter[str] = Counter()
        watch.write(b"the bot starts\n")
        for round_ in range(4):
            for second in range(6):
                watch.write(quote("BTCUSD", second) + limit_hit("attend", second))
                written.update({"synthetic_quote": 1, "recompile_limit_hit": 1})
            if round_ % 2:
                if watch.log("bot.log.1").exists():
                    os.rename(watch.log("bot.log.1"), watch.log("bot.log.2"))
                os.rename(watch.log(), watch.log("bot.log.1"))
                watch.write(quote("BTCUSD", 50))
                written.update({"synthetic_quote": 1})
            watch.kill()
            watch.write(limit_hit("attend", 55))
            written.update({"recompile_limit_hit": 1})
            watch.start()
        watch.write(limit_hit("last", 59) + quote("ETHUSD", 59))
        inbox.until("last hit the recompile limit")
        assert watch.end() == 0
        assert [(row["title"], row["places"], row["count"]) for row in watch.incidents() if str(row["kind"]).startswith("watch_")] == []
        counts = {(row["kind"], row["function"] or row["symbols"][0]): row["count"] for row in watch.incidents() if row["function"] or row["symbols"]}  # type: ignore[index]
        assert counts == {
            ("synthetic_quote", "BTCUSD"): written["synthetic_quote"], ("recompile_limit_hit", "attend"): written["recompile_limit_hit"],
            ("recompile_limit_hit", "last"): 1, ("synthetic_quote", "ETHUSD"): 1,
        }  # fmt: skip


def test_a_person_acknowledges_and_silences(tmp_path: Path) -> None:
    """Through the control socket: what is acknowledged or silenced says so, and a second question is answered, too."""
    with receiver() as inbox, daemon(tmp_path, config_for(tmp_path, inbox.port)) as watch:
        watch.write(b"the bot starts\n" + limit_hit("attend", 1))
        inbox.until("attend hit")
        (row,) = watch.incidents()
        assert watch.asked("incidents", "ack", str(row["id"])[:6], "--until", "4h", "--why", "redeploy at noon").returncode == 0
        assert [row["state"] for row in watch.incidents()] == ["acknowledged"]
        assert watch.asked("incidents", "silence", "function=decode", "--until", "1h").returncode == 0
        watch.write(limit_hit("decode", 2) + limit_hit("other", 3))
        inbox.until("other hit")
        assert {row["function"]: row["state"] for row in watch.incidents()} == {"attend": "acknowledged", "decode": "silenced", "other": "open"}
        refused = watch.asked("incidents", "ack", "zzz")
        assert refused.returncode == 3 and refused.stderr.count("\n") == 1


def test_a_bad_reload_keeps_the_old_configuration_and_says_so(tmp_path: Path) -> None:
    """SIGHUP with a mistake in the file or its rules: the watch goes on as before; SIGHUP with a good file takes it over."""
    with receiver() as inbox, receiver() as other, daemon(tmp_path, config_for(tmp_path, inbox.port)) as watch:
        watch.config.write_text(config_for(tmp_path, inbox.port) + "\nnonsense = 1\n")
        watch.process.send_signal(signal.SIGHUP)
        watch.heard("READY=1")
        assert "nonsense" in str(inbox.until("configuration")[-1]["message"])
        watch.config.write_text(config_for(tmp_path, inbox.port, f'[rules]\npaths = ["{tmp_path}/no-such-rules"]\n'))
        watch.process.send_signal(signal.SIGHUP)
        watch.heard("READY=1")
        watch.write(b"the bot starts\n" + limit_hit("attend", 1))
        inbox.until("attend hit")
        watch.config.write_text(config_for(tmp_path, other.port))
        watch.process.send_signal(signal.SIGHUP)
        watch.heard("READY=1")
        watch.write(limit_hit("decode", 2))
        other.until("decode hit")
        assert watch.end() == 0


def test_the_failure_unit_tells_of_a_bad_configuration(tmp_path: Path) -> None:
    """What systemd starts when the watch failed for good: the receiver hears of it, and of the mistake that is the reason."""
    with receiver() as inbox:
        file = tmp_path / "watch.toml"
        file.write_text(config_for(tmp_path, inbox.port) + "\nnonsense = 1\n")
        words = ("notify", "failed", "--unit", "recompile-watch.service", "--config", str(file))
        done = subprocess.run([sys.executable, "-m", "recompile_watch", *words], capture_output=True, text=True, check=False, cwd=ROOT)
        assert (done.returncode, done.stderr) == (0, "")
        told = inbox.next()
        assert "recompile-watch.service does not run any more" in str(told["title"]) and "nonsense: unknown key" in str(told["message"])


def test_systemd_hears_of_life_and_end(tmp_path: Path) -> None:
    """WATCHDOG=1 comes from the turning loop, STOPPING=1 before the end."""
    with receiver() as inbox, daemon(tmp_path, config_for(tmp_path, inbox.port), {"WATCHDOG_USEC": "500000"}) as watch:
        watch.heard("WATCHDOG=1")
        watch.process.send_signal(signal.SIGTERM)
        watch.heard("STOPPING=1")
        assert watch.process.wait(30) == 0


def test_what_a_person_asks_is_answered_whole(tmp_path: Path) -> None:
    """Until when and by whom it is acknowledged, what explains what, and a source that leads to no file."""
    extra = f'''
[[source]]
name = "gone"
path = "{tmp_path}/gone.log"
missing_after = "0s"
'''
    with receiver() as inbox, daemon(tmp_path, config_for(tmp_path, inbox.port) + extra) as watch:
        watch.write(b"the bot starts\n")
        watch.write(BOT_DAY)
        inbox.until("overwritten by the next run")
        cause = next(row for row in watch.incidents() if row["kind"] == "cudagraph_overwritten_error")["id"]
        assert watch.asked("incidents", "ack", str(cause), "--until", "2099-01-31", "--why", "on it").returncode == 0
        shown = watch.asked("incidents", "show", str(cause)).stdout
        assert "acknowledged: until 2099-01-31" in shown and ": on it" in shown
        assert f"(explained by {cause})" in watch.asked("incidents", "list").stdout
        assert f"  gone: {tmp_path}/gone.log leads to no file" in watch.asked("status").stdout


def test_a_watch_of_standard_input_ends_with_it(tmp_path: Path) -> None:
    """`bot 2>&1 | recompile-watch watch ...`: what waits is told when the bot ends, and the watch with it."""
    with receiver() as inbox:
        config = tmp_path / "watch.toml"
        config.write_text(config_for(tmp_path, inbox.port).replace(f'path = "{tmp_path}/logs/*.log"', "stdin = true").replace("500ms", "1h"))
        command = [sys.executable, "-m", "recompile_watch", "watch", "--config", str(config)]
        done = subprocess.run(command, input=quote("BTCUSD", 1), check=False, timeout=60)
        assert done.returncode == 0
        assert "BTCUSD is priced without a real quote" in str(inbox.next()["title"])


def test_a_second_watch_and_a_bad_file_are_refused_in_one_line(tmp_path: Path) -> None:
    """Exit status 78 for the configuration, 3 for a state directory in use; no traceback."""
    with receiver() as inbox, daemon(tmp_path, config_for(tmp_path, inbox.port)) as watch:
        second = watch.asked("watch", "--config", str(watch.config))
        assert second.returncode == 64  # watch has no --state-dir
    for text, code in (("x = [", 78), (config_for(tmp_path, 9).replace("start", "strat") + "\nfoo = 1", 78)):
        (tmp_path / "bad.toml").write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "recompile_watch", "watch", "--config", str(tmp_path / "bad.toml")], capture_output=True, text=True, check=False
        )
        assert done.returncode == code and "Traceback" not in done.stderr


def test_once_reads_what_is_new_and_ends(tmp_path: Path) -> None:
    """For cron: each run tells what came since the one before."""
    with receiver() as inbox:
        config = tmp_path / "watch.toml"
        config.write_text(config_for(tmp_path, inbox.port))
        (tmp_path / "logs").mkdir()
        log = tmp_path / "logs" / "bot.log"
        log.write_bytes(b"the bot starts\n")
        command = [sys.executable, "-m", "recompile_watch", "watch", "--once", "--config", str(config)]
        assert subprocess.run(command, check=False, timeout=60).returncode == 0
        with log.open("ab") as stream:
            stream.write(limit_hit("attend", 1))
        assert subprocess.run(command, check=False, timeout=60).returncode == 0
        assert "attend hit" in str(inbox.next()["title"])
        assert subprocess.run(command, check=False, timeout=60).returncode == 0
        assert inbox.messages.empty()
