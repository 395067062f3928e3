"""The whole way under a real torch: a line in the bot's log, the message of it, the measurement, the message of that."""

from __future__ import annotations

from pathlib import Path

from recompile_watch.store import read_tables
from tests.conftest import ROOT, SAMPLES
from tests.daemon.process import config_for, daemon, receiver

BOT_DAY = (SAMPLES / "bot-2025-10-30.log").read_bytes()


def test_the_bots_limit_hit_is_measured_with_its_own_advice(tmp_path: Path, python: str) -> None:
    """The first advice on the alert, leaving the function out, takes the storm away in the workload that stands for the model."""
    section = f"""
[diagnose]
python = "{python}"
folder = "{ROOT / "workloads"}"
workload = "kv_storm:make"
model = "toto"
on_alert = true
wait = "0s"
"""
    with receiver() as inbox, daemon(tmp_path, config_for(tmp_path, inbox.port, section)) as watch:
        watch.write(b"the bot starts\n" + BOT_DAY)
        inbox.until("positional_embedding hit the recompile limit")
        message = next(one for one in iter(lambda: inbox.next(300.0), None) if one["sort"] == "measured")
        (kept,) = read_tables(tmp_path / "state")["diagnoses"].values()
        assert isinstance(kept, dict) and kept["model"] == "toto" and kept["report"]["torch_version"] != "null"
        found = {one["name"]: one["structural"] for one in kept["report"]["candidates"] if one["structural"]}
        before, after = found["default"]["recompiles"], found["exclude=positional_embedding"]["recompiles"]
        assert found["default"]["limit_hits"] == 1 and before >= 10 > after
        assert f"Measured: {before} recompiles → {after} with exclude=positional_embedding; not decided: nothing was timed" in str(message["message"])
        assert "libtorch" not in Path(f"/proc/{watch.process.pid}/maps").read_text()
        assert watch.end() == 0
