"""Tests of `recompile_watch.kept_rules`: shipped rules are read once, and again whenever what was kept may not be theirs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from recompile_watch import config
from recompile_watch.config import load_rules, read_rules, shipped_rules
from recompile_watch.core.errors import RuleError
from recompile_watch.core.rules import Rule, Ruleset, merge


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where rules are kept; the shipped rules are a copy of their own, read once."""
    own = tmp_path / "shipped"
    shutil.copytree(shipped_rules(), own)
    monkeypatch.setattr(config, "shipped_rules", lambda: own)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    load_rules()
    return tmp_path / "cache" / "recompile-watch"


def facts(rules: Ruleset) -> list[object]:
    """All that a rule says; patterns by their text."""
    names = [name for name in Rule.__slots__ if name not in ("pattern", "continues", "leads", "ends", "orphan", "finds")]
    return [[getattr(rule, name) for name in names] for rule in rules.rules]


def mark(folder: Path) -> None:
    """Makes what is kept tell itself from the files."""
    file = folder / "rules.json"
    known = json.loads(file.read_text())
    for entries in known["entries"].values():
        for entry in entries:
            entry["title"] = "kept"
    file.write_text(json.dumps(known))


def is_kept() -> bool:
    """True when the rules come from what was kept."""
    return all(rule.title == "kept" for rule in load_rules().rules)


def test_kept_rules_say_what_the_files_say(folder: Path) -> None:
    """Rules from what was kept are those of the files."""
    again, own = load_rules(), merge(read_rules([config.shipped_rules()]))
    assert facts(again) == facts(own)


def test_kept_rules_are_used(folder: Path) -> None:
    """The second time nothing is parsed."""
    mark(folder)
    assert is_kept()


def test_a_changed_rule_file_is_read_again(folder: Path) -> None:
    """One file changed is enough."""
    mark(folder)
    file = next(config.shipped_rules().glob("*.toml"))
    file.write_text(file.read_text() + "\n# changed\n")
    assert not is_kept()


def test_a_mistake_in_a_shipped_rule_is_told(folder: Path) -> None:
    """What was kept does not hide a mistake made since."""
    (config.shipped_rules() / "wrong.toml").write_text("[[rule]]\nid = 'x'\n")
    with pytest.raises(RuleError, match=r"wrong\.toml.*missing"):
        load_rules()


@pytest.mark.parametrize("which", ["folder", "file"])
def test_what_others_may_write_is_not_trusted(folder: Path, which: str) -> None:
    """A folder or file that is open to others counts as not there."""
    mark(folder)
    (folder if which == "folder" else folder / "rules.json").chmod(0o777)
    assert not is_kept()


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    """A link in place of the file counts as not there."""
    mark(folder)
    (folder / "rules.json").rename(tmp_path / "elsewhere.json")
    (folder / "rules.json").symlink_to(tmp_path / "elsewhere.json")
    assert not is_kept()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"state": 1}', "[" * 100_000])
def test_a_broken_file_is_made_anew(folder: Path, text: str) -> None:
    """What is no kept rules costs a parse, and no more."""
    (folder / "rules.json").write_text(text)
    assert facts(load_rules()) == facts(merge(read_rules([config.shipped_rules()])))
    mark(folder)
    assert is_kept()


def test_without_a_folder_rules_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be written the rules are read each time."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert load_rules().rules
