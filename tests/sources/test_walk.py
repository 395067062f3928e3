"""Tests of `recompile_watch.sources.walk`: folders, circles of links, limits, `**`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recompile_watch.core.errors import SourceError
from recompile_watch.sources.limits import FindLimits, Unread
from recompile_watch.sources.walk import FolderWalk, matches

DEFAULT_LIMITS = FindLimits()


@pytest.fixture(autouse=True)
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: b.log, a/a.log, a/deep/c.log, .hidden/d.log, and links that lead round in circles."""
    for name in ("b.log", "a/a.log", "a/deep/c.log", ".hidden/d.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "a" / "up").symlink_to("..")
    (tmp_path / "a" / "here").symlink_to(".")
    (tmp_path / "a" / "self").symlink_to("self")
    (tmp_path / "gone.log").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def walk_with(limits: FindLimits = DEFAULT_LIMITS) -> tuple[FolderWalk, list[SourceError], Unread]:
    """A walk with the lists it writes to."""
    errors: list[SourceError] = []
    unread = Unread()
    return FolderWalk(limits, errors, unread), errors, unread


def test_files_come_sorted_and_circles_end() -> None:
    """Each folder is entered once, hidden ones too; what is no file is counted."""
    walk, errors, unread = walk_with()
    assert list(walk.files(".")) == ["./.hidden/d.log", "./a/a.log", "./a/deep/c.log", "./b.log"]
    assert not errors
    assert unread.counts == {"broken_link": 2, "not_a_regular_file": 1}


def test_depth_is_limited() -> None:
    """A folder too deep is an error that names it."""
    walk, errors, _ = walk_with(FindLimits(max_depth=1))
    assert "./a/deep/c.log" not in list(walk.files("."))
    assert list(map(str, errors)) == ["./a/deep: more than 1 folders deep; name this folder itself"]


def test_the_number_of_entries_is_limited() -> None:
    """The walk stops, once, and says so."""
    walk, errors, _ = walk_with(FindLimits(max_entries=6))
    assert list(walk.files(".")) == ["./.hidden/d.log", "./b.log"]
    expected = ": more than 6 files and folders, the rest is not read; name fewer folders or use a pattern"
    assert [str(error) for error in errors] == ["./a" + expected]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.log", {"b.log", "gone.log"}),
        ("a/*.log", {"a/a.log"}),
        ("**/*.log", {"b.log", "gone.log", "a/a.log", "a/deep/c.log"}),
        ("a/**/c.log", {"a/deep/c.log"}),
        ("a/**/**/c.log", {"a/deep/c.log"}),
        ("**/deep/*", {"a/deep/c.log"}),
        ("nothing/**/*.log", set()),
        ("b.log/**", set()),
    ],
)
def test_patterns_match_what_a_shell_matches(pattern: str, expected: set[str]) -> None:
    """`**` is any depth, none included, and hidden folders are left out."""
    walk, errors, _ = walk_with()
    assert set(matches(pattern, walk)) == expected
    assert not errors


def test_two_circles_under_any_depth_end(tree: Path) -> None:
    """Two links to their own folder make 2^40 paths for `glob`."""
    (tree / "a" / "again").symlink_to(".")
    (tree / "a" / "deep" / "top").symlink_to(tree)
    walk, _, _ = walk_with()
    assert set(matches(f"{tree}/**/c.log", walk)) == {f"{tree}/a/deep/c.log"}
