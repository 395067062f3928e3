"""Tests of definitions: `%{name}` in a rules file stands for what its table [define] says."""

from __future__ import annotations

import pytest

from recompile_watch.core.rules import merge, parse_rules, rule_of

FILE = """
[define]
model = ['Toto', 'Kronos']
failed = '%{{model}} (?:failed|crashed)'
told = ["Toto ", "Kronos "]

[[rule]]
id = "x"
event = "model_failed"
title = "t"
severity = "warning"
why = "w"
literal = "%{{told}}"
{keys}
match = [{{ line = "x" }}]
no_match = ["y"]
"""


def entry(keys: str) -> dict[str, object]:
    entries, mistakes = parse_rules(FILE.format(keys=keys), "mine.toml")
    assert mistakes == []
    return entries[0]


def mistakes_of(text: str) -> list[str]:
    return [str(mistake) for mistake in parse_rules(text, "mine.toml")[1]]


def test_a_reference_stands_for_its_alternatives() -> None:
    """In a pattern as a group, also through another definition; alone in a list, or as the literal, as each of them."""
    whole = entry("""pattern = '%{failed}: %{model}$'\nunless = ["%{model} is well", "%{model}"]""")
    assert whole["pattern"] == "(?:(?:Toto|Kronos) (?:failed|crashed)): (?:Toto|Kronos)$"
    assert whole["unless"] == ["(?:Toto|Kronos) is well", "Toto", "Kronos"]
    assert whole["literal"] == ["Toto ", "Kronos "]


def test_a_list_is_its_alternatives() -> None:
    """One pattern may be written as a list: a line that any of them fits is found, and its groups are fields."""
    whole = entry(r"""pattern = ['%{failed} at (?P<place>\w+)', 'no (?P<other>%{model})']""")
    rule = merge([[rule_of(whole, "mine.toml")]]).rules[0]
    found = [rule.pattern.search(line) for line in (b"Toto failed at noon", b"no Kronos", b"no Chronos")]
    assert [match.groupdict() if match else None for match in found] == [
        {b"place": b"noon", b"other": None},
        {b"place": None, b"other": b"Kronos"},
        None,
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[define]\na = '%{b}'\nb = 'x'\n", "mine.toml: key 'define.a': 'b' is not defined above in [define]"),
        ("[define]\na = '%{a}'\n", "mine.toml: key 'define.a': 'a' is not defined above in [define]"),
        ("[define]\na = 3\n", "mine.toml: key 'define.a': write a name, and a pattern or a list of alternatives"),
        ("[define]\na = []\n", "mine.toml: key 'define.a': write a name, and a pattern or a list of alternatives"),
        ('[define]\n"a b" = "x"\n', "mine.toml: key 'define.a b': write a name, and a pattern or a list of alternatives"),
        ("[[define]]\na = 'x'\n", "mine.toml: write [define] with one bracket"),
        (FILE.format(keys="pattern = '%{modell}'"), "mine.toml: rule x: key 'pattern': 'modell' is not defined above in [define]"),
        (
            FILE.format(keys="pattern = 'x'").replace("%{told}", "%{tolt}"),
            "mine.toml: rule x: key 'literal': 'tolt' is not defined above in [define]",
        ),
    ],
)
def test_mistakes(text: str, said: str) -> None:
    """Each says the file and the key."""
    assert mistakes_of(text) == [said]


def test_a_wrong_pattern_is_told_in_short() -> None:
    """The alternatives of a definition may be long; the message is a line that a person reads."""
    text = FILE.format(keys="pattern = '%{long}('").replace("[define]", f"[define]\nlong = '{'x' * 5000}'")
    [said] = mistakes_of(text)
    assert "rule x: key 'pattern': RE2 cannot use" in said and "…" in said and len(said) < 400
