"""TOML tables become settings: every mistake at once, each with its key and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import pytest

from recompile_watch.settings import Mistakes, json_schema, read_table, reference


class Start(StrEnum):
    BEGIN = "begin"
    END = "end"


@dataclass(frozen=True, slots=True)
class Inner:
    """Something inside. name: what it is called. wait_s: how long; longer is calmer."""

    name: str
    wait_s: float = 90.0


@dataclass(frozen=True, slots=True)
class Outer:
    """All forms. paths: where, as globs. start: from where on. mode: how. size_bytes: how much. factor, share: numbers; of one.

    inner: tables by name. items: a list of tables. note: free text. last: one with values of its own.
    """

    paths: tuple[str, ...]
    start: Start = Start.END
    mode: Literal["fast", "slow"] = "fast"
    size_bytes: int = 1 << 20
    factor: float = 1.5
    share: float | None = None
    is_on: bool = True
    inner: Mapping[str, Inner] = field(default_factory=dict)
    items: tuple[Inner, ...] = ()
    note: str | None = None
    last: Inner = Inner("last", 5.0)

    def __post_init__(self) -> None:
        if self.factor < 0:
            raise ValueError("factor is below 0")


def read(table: dict[str, object]) -> tuple[Outer | None, list[str]]:
    mistakes = Mistakes("watch.toml", [])
    return read_table(Outer, table, "source[1]", mistakes), mistakes.lines


def test_every_form_is_read() -> None:
    """Durations, sizes, lists, tables, tables of tables and lists of tables become typed values."""
    found, mistakes = read(
        {
            "paths": ["a", "b"], "start": "begin", "mode": "slow", "size": "64KiB", "factor": 2, "share": 0.5, "is_on": False,
            "inner": {"x": {"name": "X", "wait": "1h30m"}}, "items": [{"name": "Y"}], "note": "n",
            "last": {"wait": "7s"},
        }
    )  # fmt: skip
    assert mistakes == []
    assert found == Outer(("a", "b"), Start.BEGIN, "slow", 64 << 10, 2, 0.5, False, {"x": Inner("X", 5400.0)}, (Inner("Y"),), "n", Inner("last", 7.0))


def test_all_mistakes_are_told_at_once_with_their_keys() -> None:
    """Nobody mends a file mistake by mistake."""
    found, mistakes = read(
        {
            "stat": "end",
            "size": 5,
            "factor": "2",
            "is_on": 1,
            "start": "middle",
            "mode": "quick",
            "inner": {"x": {"wait": "90"}},
            "items": [{"name": "Y", "z": 1}],
            "paths": "a",
        }
    )
    assert found is None
    assert mistakes == [
        "watch.toml: source[1].stat: unknown key; did you mean 'start'?; known are "
        + "factor, inner, is_on, items, last, mode, note, paths, share, size, start",
        "watch.toml: source[1].paths: 'a' is not a list",
        "watch.toml: source[1].start: 'middle' is not one of \"begin\", \"end\"",
        "watch.toml: source[1].mode: 'quick' is not one of \"fast\", \"slow\"",
        "watch.toml: source[1].size: 5 is not a size such as \"64MiB\"",
        "watch.toml: source[1].factor: '2' is not a number",
        "watch.toml: source[1].is_on: 1 is not true or false",
        "watch.toml: source[1].inner.x: key 'name' is missing: what it is called.",
        "watch.toml: source[1].inner.x.wait: '90' is no duration; write one such as \"90s\", \"15m\" or \"48h\"",
        "watch.toml: source[1].items[1].z: unknown key; known are name, wait",
    ]  # fmt: skip


def test_what_only_all_fields_together_tell_is_a_mistake_of_the_table() -> None:
    """A settings class that refuses its values is no traceback."""
    assert read({"paths": [], "factor": -1.0}) == (None, ["watch.toml: source[1]: factor is below 0"])


def test_the_reference_has_every_key_with_form_default_and_meaning() -> None:
    """The documentation is made of the classes themselves."""
    rows = {name: (form, default, doc) for name, form, default, doc in reference(Outer)}
    assert rows["paths"] == ("list of text", "", "where, as globs.")
    assert rows["size"] == ("size", "1048576", "how much.")
    assert rows["inner.NAME.wait"] == ("duration", "1 min 30 s", "how long; longer is calmer.")
    assert rows["[items].name"] == ("text", "", "what it is called.")
    assert rows["last.wait"][1] == "5 s"
    assert rows["start"][0] == '"begin" or "end"'
    assert rows["share"] == ("a number", "none", "numbers; of one.")


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    """Editors learn the same keys."""
    schema = json_schema(Outer)
    assert schema["additionalProperties"] is False and schema["required"] == ["paths"]
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert properties["start"]["enum"] == ["begin", "end"]
    assert properties["inner"]["additionalProperties"]["required"] == ["name"]


@pytest.mark.parametrize("text", ["", "1", "-1s", "1x", "1h1", "s", "1e3s", "9999999d"])
def test_no_duration_is_guessed(text: str) -> None:
    """A number without a unit is a mistake, not seconds."""
    mistakes = Mistakes("f", [])
    assert read_table(Inner, {"name": "x", "wait": text}, "", mistakes) is None
    assert len(mistakes.lines) == 1
