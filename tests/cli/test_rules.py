"""Tests of `recompile-watch rules` and of rule files: what is wrong is said with file, rule and key."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.test_commands import SKIP, log, run

RULE = """
[[rule]]
id = "my.gpu_lost"
event = "gpu_lost"
title = "The GPU fell off the bus"
severity = "critical"
why = "Nothing works until the machine restarts."
literal = "has fallen off the bus"
pattern = '''.*GPU (?P<gpu>\\d+) has fallen off the bus'''
types = { gpu = "int" }
match = [{ line = "NVRM: GPU 3 has fallen off the bus.", fields = { gpu = 3 } }]
no_match = ["the bus has fallen off the cliff"]
"""


def rules(tmp_path: Path, text: str) -> str:
    folder = tmp_path / "rules"
    folder.mkdir(exist_ok=True)
    (folder / "mine.toml").write_text(text)
    return str(folder)


def test_list() -> None:
    """The shipped rules, as a table and as JSON."""
    table = run("rules", "list").stdout.splitlines()
    value = json.loads(run("rules", "list", "--json").stdout)
    assert table[0].startswith("ID") and len(table) == len(value) + 1 > 20
    assert value[0].keys() == {"id", "event", "severity", "title", "literal", "file"}


def test_show() -> None:
    """One rule with its samples."""
    shown = run("rules", "show", "torch.recompile").stdout
    assert "event:    recompile" in shown and "matches" in shown and "does not match:" in shown


def test_own_rules_take_part(tmp_path: Path) -> None:
    """A user's rule makes events and findings of its own kind, with its own severity and words."""
    folder = rules(tmp_path, RULE)
    path = log(tmp_path, "NVRM: GPU 3 has fallen off the bus.\n")
    assert run("rules", "check", folder).returncode == 0
    assert json.loads(run("events", "--rules", folder, path).stdout)["gpu"] == 3
    done = run("analyze", "--rules", folder, path)
    assert done.returncode == 2 and "The GPU fell off the bus" in done.stdout and "Nothing works until" in done.stdout


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    """Each mistake of each rule file is one line with file, rule and key; the exit status is 78."""
    text = RULE.replace('severity = "critical"', 'severity = "bad"').replace("(?P<gpu>", "(?<=x)(?P<gpu>")
    folder = rules(tmp_path, text)
    for arguments in ("rules check", "analyze - --rules", "events - --rules", "rules list --rules"):
        done = run(*arguments.split(), folder, stdin=SKIP)
        assert done.returncode == 78 and done.stdout == ""
        assert "mine.toml: rule my.gpu_lost: key 'severity'" in done.stderr and "key 'pattern'" in done.stderr and done.stderr.count("\n") == 2


def test_samples_are_run(tmp_path: Path) -> None:
    """A sample that gives no event, other fields, or an event where none should be, is a mistake."""
    for old, new, words in (
        ('line = "NVRM: GPU 3 has', 'line = "NVRM: GPU three has', "gives no gpu_lost event"),
        ("fields = { gpu = 3 }", "fields = { gpu = 4 }", "gpu is 3, not 4"),
        ("the bus has fallen off the cliff", "GPU 1 has fallen off the bus", "key 'no_match' number 1: gives a gpu_lost event"),
    ):
        done = run("rules", "check", rules(tmp_path, RULE.replace(old, new)))
        assert done.returncode == 78 and words in done.stderr and "rule my.gpu_lost" in done.stderr


def test_null_means_absent(tmp_path: Path) -> None:
    """The text "null" in a sample's fields means that the log does not show the field."""
    text = RULE.replace("fields = { gpu = 3 }", 'fields = { gpu = 3, pid = "null", time = "null" }')
    assert run("rules", "check", rules(tmp_path, text)).returncode == 0


def test_missing_and_broken_rule_folders(tmp_path: Path) -> None:
    """A folder that is missing, empty, or holds no TOML, is 78 with its name."""
    empty = tmp_path / "empty"
    empty.mkdir()
    for folder in (str(tmp_path / "none"), str(empty), rules(tmp_path, "[[rule")):
        done = run("analyze", "--rules", folder, "-", stdin=SKIP)
        assert done.returncode == 78 and folder in done.stderr and "Traceback" not in done.stderr


def test_rules_test(tmp_path: Path) -> None:
    """What each rule finds in a log, with places; the silent ones by name behind them."""
    done = run("rules", "test", log(tmp_path, SKIP * 5))
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0].split()[:2] == ["5", "torch.cudagraph_skip"]
    assert "bot.log:1" in lines[1] and lines[4].startswith(" nothing  ") and max(map(len, lines[4:])) <= 120
    silent = "".join(lines[4:]).replace(",", " ").split()
    assert "torch.recompile" in silent and "torch.cudagraph_skip" not in silent
    assert run("rules", "test", log(tmp_path, "hello\n")).returncode == 3
    assert run("rules", "test", str(tmp_path / "none.log")).returncode == 3
