"""Tests of ``recompile-watch decide`` through the real program."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.test_commands import ROOT, log, run

BOT = str(ROOT / "sample_logs/bot-2025-10-30.log")
CONDITION = {"check": "torch_version", "relation": ">=", "value": "2.14", "text": "torch is 2.14 or newer"}


def diagnosis(folder: Path, choose: str | None, because: str) -> str:
    """A report of diagnose with this verdict."""
    verdict = {
        "status": "inconclusive" if choose is None else "decided", "choose": choose, "settings": [], "confidence": "high",
        "because": [because], "against": [], "revisit_when": [CONDITION],
    }  # fmt: skip
    return log(folder, json.dumps({"schema": "recompile-watch/diagnosis/1", "verdict": verdict}), "toto.json")


def test_a_record_says_mode_settings_evidence_and_when_to_look_again(tmp_path: Path) -> None:
    """Each model with its place in the log; the quantities that a machine can check."""
    out = tmp_path / "decision.md"
    done = run("decide", "--output", str(out), BOT)
    text = out.read_text()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert text.startswith("# torch.compile: kronos eager, toto eager\n")
    assert "```\nexport TOTO_DISABLE_COMPILE=1\n```" in text and "| `recompile_limit_hits` | &lt; 1 |" in text
    assert f"| 1 | positional\\_embedding hit the recompile limit \\(8\\) | 2025-10-30T09:08:09.059999+00:00 | `{BOT}:25` |" in text


def test_what_was_measured_decides_alone_or_over_a_log(tmp_path: Path) -> None:
    """A diagnosis needs no log; with one, its verdict outweighs what the log suggests."""
    measured = diagnosis(tmp_path, "default", "1.49 times faster [1.47, 1.51]")
    alone = run("decide", "--diagnosis", f"toto={measured}")
    assert alone.returncode == 0 and alone.stdout.startswith("# torch.compile: toto default\n") and "1.49 times faster" in alone.stdout
    assert f"* diagnosis: `toto={measured}`" in alone.stdout and alone.stderr == ""
    assert run("decide", "--diagnosis", f"toto={measured}", BOT).stdout.startswith("# torch.compile: kronos eager, toto default\n")


def test_missing_evidence_leaves_it_undecided(tmp_path: Path) -> None:
    """Nothing recognisable, an inconclusive diagnosis, a log that is not there: exit status 3, each with its reason."""
    nothing = run("decide", log(tmp_path, "hello\n"))
    assert nothing.returncode == 3 and nothing.stdout.startswith("# torch.compile: undecided\n") and "nothing recognisable" in nothing.stderr
    unsure = run("decide", "--diagnosis", f"toto={diagnosis(tmp_path, None, 'the control is too noisy')}")
    assert unsure.returncode == 3 and "toto undecided" in unsure.stdout and "the control is too noisy" in unsure.stdout
    missing = run("decide", BOT, str(tmp_path / "gone.log"))
    assert missing.returncode == 3 and "> " in missing.stdout and "gone.log: no such file" in missing.stderr
    assert run("decide", "--diagnosis", "toto", BOT).returncode == 64


def test_a_log_cannot_write_into_the_record(tmp_path: Path) -> None:
    """Markup in a function's name stays text."""
    line = "W1030 09:08:09.060000 1 torch/_dynamo/convert_frame.py:1358] [6/8] "
    text = f"{line}torch._dynamo hit config.recompile_limit (8)\n{line}   function: 'f|<script>' (/srv/toto/a`b.py:1)\n"
    done = run("decide", log(tmp_path, "2025-10-30 09:07:12 UTC | a.py:f:1 INFO | Loading Toto pipeline 'x' on cuda\n" + text))
    rows = [row for row in done.stdout.splitlines() if row.startswith("| 1 | ")]
    assert rows and all(row.replace("\\|", "").count("|") == 5 for row in rows) and "<script" not in done.stdout
