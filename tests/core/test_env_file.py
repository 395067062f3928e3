"""Tests of `recompile_watch.core.env_file`: a shell file is read as a shell reads it, and never run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recompile_watch.core.env_file import Step, parse_env_file

SHELL = shutil.which("sh")
# Pieces that a shell takes as they stand; with what each sets and exports decided by a real shell below.
PIECES = (
    "export A=1", "B=2", "export C='it is' D=\"a b\"", "E=a\\ b; export E", "set -a", "set +a", "F=3 # three", "# export G=1",
    "export H=x#y", "export I=\"q\\\"q\" J='$HOME'", "K=1 true", "export L=\\\n7", "unset A", "export B", "M=''", "N=\"a\\$b\"",
    "export O=a'b'\"c\"d", "set -o allexport", "true && true", "P=1;Q=2", "cat <<EOF >/dev/null\nexport R=1\nEOF", "export S=\"two\nlines\"",
    ": export T=1", "  export   U=1  ", "export V=", "A=5",
)  # fmt: skip


def steps(text: str) -> list[tuple[str, str, str | None, int]]:
    return [(step.name, step.does, step.value, step.line) for step in parse_env_file("x.env", text).steps]


def exported(text: str) -> dict[str, str]:
    """The environment that a program started after this file gets, as far as the reader sees it."""
    values: dict[str, str] = {}
    out: set[str] = set()
    for step in parse_env_file("x.env", text).steps:
        if step.does == "set" and step.value is not None:
            values[step.name] = step.value
        if step.does == "unset":
            values.pop(step.name, None)
            out.discard(step.name)
        elif step.is_exported:
            out.add(step.name)
    return {name: value for name, value in values.items() if name in out}


@pytest.mark.skipif(SHELL is None, reason="no shell here to compare with")
@given(st.lists(st.sampled_from(PIECES), max_size=8))
def test_it_reads_what_a_real_shell_would_export(pieces: list[str]) -> None:
    """sh sources the same text; a program started from there sees the same variables."""
    text = "\n".join(pieces) + "\n"
    program = f"{text}\nenv -0"
    done = subprocess.run([str(SHELL), "-c", program], capture_output=True, env={"PATH": "/usr/bin:/bin"}, timeout=20, check=True)
    seen = dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0") if "=" in entry)
    assert exported(text) == {name: value for name, value in seen.items() if len(name) == 1 and name != "_"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A=$HOME/x", [("A", "set", None, 1)]),
        ('export A="$(dirname "$0")/x" B=1', [("A", "set", None, 1), ("B", "set", "1", 1)]),
        ("A=`date`\nB=${C:-1}", [("A", "set", None, 1), ("B", "set", None, 2)]),
        ("A=$'x y' B=1", [("A", "set", None, 1), ("B", "set", "1", 1)]),
        ("export A = b", [("A", "blank", None, 1), ("b", "export", None, 1)]),
        ("A = b", [("A", "blank", None, 1)]),
        ("A=1 python bot.py", []),
        ("echo export A=1", []),
        ("declare -x A=1\ndeclare B=1\nreadonly C=2", [("A", "set", "1", 1), ("B", "set", "1", 2), ("C", "set", "2", 3)]),
        ("\ufeffexport A=1\r\n", [("A", "set", "1", 1)]),
        ("export A=é B='ü'", [("A", "set", "é", 1), ("B", "set", "ü", 1)]),
        ("", []),
    ],
)
def test_what_it_takes_and_what_it_does_not(text: str, wanted: list[tuple[str, str, str | None, int]]) -> None:
    """A substitution has no known value; a command's own assignments and words set nothing."""
    assert steps(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "if [ -f x ]; then\n  export A=1\nfi",
        "test -f x && export A=1",
        "test -f x || export A=1",
        "(export A=1)",
        "f() {\n  export A=1\n}",
        "for i in 1 2; do export A=1; done",
        "case $X in y) export A=1;; esac",
        "export A=1 | cat",
    ],
)
def test_what_may_not_happen_is_not_certain(text: str) -> None:
    """Conditions, loops, functions, pipes and subshells: the step is seen, and marked."""
    [step] = [step for step in parse_env_file("x.env", text).steps if step.name == "A"]
    assert step.value == "1" and not step.is_certain
    assert parse_env_file("x.env", f"{text}\nexport B=1").steps[-1] == Step("B", "set", "1", text.count("\n") + 2, True, True)


@pytest.mark.parametrize(("text", "line"), [("export A=1\nB='x\nC=2", 2), ('A="x', 1), ("A=$(x", 1), ("A=`x", 1)])
def test_a_quote_that_is_never_closed(text: str, line: int) -> None:
    """What stands before it counts; its line is told."""
    assert parse_env_file("x.env", text).open_quote == line


@given(st.text(alphabet="Aa1=# '\"\\\n$(){}`;&|<>-é\r\t", max_size=60))
def test_nothing_breaks_it(text: str) -> None:
    """Any text gives steps in the order of their lines, or an open quote."""
    found = parse_env_file("x.env", text)
    lines = [step.line for step in found.steps]
    assert lines == sorted(lines) and all(1 <= line <= text.count("\n") + 1 for line in lines)


def test_nothing_of_it_is_run(tmp_path: Path) -> None:
    """A command in it has no effect."""
    parse_env_file("x.env", f"touch {tmp_path}/made\nA=$(touch {tmp_path}/made)\n")
    assert not (tmp_path / "made").exists()
