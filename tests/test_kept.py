"""Tests of `recompile_watch.kept`: rules are read and compiled once, and again whenever what was kept may not be theirs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from recompile_watch import config
from recompile_watch.config import load_catalog, load_matcher, load_rules, read_rules, shipped_rules
from recompile_watch.core import scan
from recompile_watch.core.errors import RuleError
from recompile_watch.core.remedies import Catalog
from recompile_watch.core.rules import Rule, Ruleset, merge
from recompile_watch.core.scan import Matcher


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where rules are kept; the shipped rules are a copy of their own, read once."""
    own = tmp_path / "shipped"
    shutil.copytree(shipped_rules(), own)
    monkeypatch.setattr(config, "shipped_rules", lambda: own)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    load_rules()
    return tmp_path / "cache" / "recompile-watch"


def only(folder: Path, name: str) -> Path:
    """The one file of a name, whatever state it is of."""
    (file,) = folder.glob(name.replace(".", "-*."))
    return file


def facts(rules: Ruleset) -> list[object]:
    """All that a rule says; patterns by their text."""
    names = [
        name for name in Rule.__slots__ if name not in ("pattern", "prefix", "unless", "continues", "leads", "ends", "orphan", "second", "finds")
    ]
    return [[getattr(rule, name) for name in names] for rule in rules.rules]


def mark(folder: Path) -> None:
    """Makes what is kept tell itself from the files."""
    file = only(folder, "rules.json")
    state, _, content = file.read_text().partition("\n")
    known = json.loads(content)
    for entries in known.values():
        for entry in entries:
            entry["title"] = "kept"
    file.write_text(f"{state}\n{json.dumps(known)}")


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
    (folder if which == "folder" else only(folder, "rules.json")).chmod(0o777)
    assert not is_kept()


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    """A link in place of the file counts as not there."""
    mark(folder)
    file = only(folder, "rules.json")
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    assert not is_kept()


@pytest.mark.parametrize("content", [None, b"", b"{", b"null", b"[" * 100_000, b"\xff"], ids=["no state", "empty", "cut", "null", "deep", "bytes"])
def test_a_broken_file_is_made_anew(folder: Path, content: bytes | None) -> None:
    """What is no kept rules costs a parse, and no more."""
    file = only(folder, "rules.json")
    file.write_bytes(b"" if content is None else file.read_bytes().partition(b"\n")[0] + b"\n" + content)
    assert facts(load_rules()) == facts(merge(read_rules([config.shipped_rules()])))
    mark(folder)
    assert is_kept()


def said(catalog: Catalog) -> object:
    """A catalog as values that can be compared: a pattern that is compiled when it is used is equal to nothing else."""
    cases = [
        (replace(case, reason=None, function=None), *(one and cast(re.Pattern[bytes], one).pattern for one in (case.reason, case.function)))
        for case in catalog.cases
    ]
    return replace(catalog, cases=()), cases


def test_the_catalog_is_parsed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time no remedy is parsed, and the catalog says the same; a file changed since is read."""
    monkeypatch.setattr(config, "_MODELS_FOLDER", "none")
    first = load_catalog()
    with monkeypatch.context() as once:
        once.setattr(config, "_texts", lambda files: pytest.fail("parsed again") if files else [])
        assert said(load_catalog()) == said(first)
    file = next((config.shipped_rules() / "remedies").glob("*.toml"))
    file.write_text("[[remedy]]\nkey = 'x'\n")
    with pytest.raises(RuleError, match="is missing"):
        load_catalog()


TEXT = b"torch._dynamo hit config.recompile_limit (8)\n"


def found(matcher: Matcher) -> list[int]:
    """What a matcher finds in a line of torch's."""
    return matcher.ends(TEXT)


def test_literals_are_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time nothing is compiled, and the same is found."""
    first = load_matcher(load_rules())
    monkeypatch.setattr(scan, "_compiled", None)
    assert found(load_matcher(load_rules())) == found(first) != []


def test_other_literals_are_compiled_anew(folder: Path) -> None:
    """One literal more is found."""
    rules = load_rules()
    load_matcher(rules)
    more = replace(rules.rules[0], id="more", literals=(b"TORCH._DYNAMO", b"torch._dynamo hit"))
    assert len(found(load_matcher(Ruleset((*rules.rules, more))))) == len(found(load_matcher(rules))) + 1


def test_two_rulesets_take_turns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped rules and those with the user's own are each compiled once; of many only the last few are kept."""
    rules = load_rules()
    sets = [Ruleset((*rules.rules, replace(rules.rules[0], id="more", literals=(f"torch._dynamo {n}".encode(),)))) for n in range(6)]
    for one in (rules, *sets):
        load_matcher(one)
    assert len([*folder.glob("literals-*.hs")]) == 4
    monkeypatch.setattr(scan, "_compiled", None)
    for one in (sets[-1], sets[-2], sets[-1]):
        assert found(load_matcher(one))


@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[:1000], lambda content: content[:5000] + b"\0" + content[5001:]])
def test_damaged_literals_are_compiled_anew(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    """Whatever became of the file, the same is found, and the file is whole again."""
    whole = found(load_matcher(load_rules()))
    file = only(folder, "literals.hs")
    state, _, content = (kept := file.read_bytes()).partition(b"\n")
    file.write_bytes(state + b"\n" + damage(content))
    assert found(load_matcher(load_rules())) == whole and file.read_bytes() == kept


def test_without_a_folder_rules_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be written the rules are read each time."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert found(load_matcher(load_rules()))
