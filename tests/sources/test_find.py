"""Tests of `recompile_watch.sources.find`: arguments become sources and errors."""

from __future__ import annotations

import bz2
import gzip
import os
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
import zstandard

from recompile_watch.sources.find import SourceFile, find_sources
from recompile_watch.sources.limits import Unread

LINE = b"2025-10-30 14:05:01 INFO bot started\n"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, content: bytes = LINE, modified_at: float | None = None) -> None:
    """A file in the current folder, with the folders above it."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if modified_at is not None:
        os.utime(path, (modified_at, modified_at))


def found(*arguments: str, rotated: bool = False) -> list[str]:
    """The paths found, where no mistake is expected."""
    sources, errors = find_sources(arguments, rotated=rotated)
    assert not errors
    return [source.path for source in sources]


def mistakes(*arguments: str) -> list[str]:
    """The error texts; each one line."""
    texts = [str(error) for error in find_sources(arguments)[1]]
    assert all("\n" not in text for text in texts)
    return texts


def families(arguments: Sequence[str]) -> list[tuple[str, ...]]:
    """The families found with `rotated`, where no mistake is expected."""
    sources, errors = find_sources(arguments, rotated=True)
    assert not errors
    return [source.family for source in sources]


def test_a_file_comes_with_size_and_time() -> None:
    """Size on disk in bytes, last change in UTC seconds."""
    write("bot.log", modified_at=1_761_832_800.5)
    assert find_sources(["bot.log"]) == ([SourceFile("bot.log", len(LINE), 1_761_832_800.5, ("bot.log",))], [])


def test_standard_input_and_fifos_have_no_size() -> None:
    """They are listed without being opened: an open and close would break their writer."""
    os.mkfifo("pipe")
    expected = [SourceFile("-", None, None, ("-",)), SourceFile("pipe", None, None, ("pipe",))]
    assert find_sources(["-", "pipe"]) == (expected, [])
    assert find_sources(["-", "pipe"], rotated=True) == (expected, [])


def test_a_folder_gives_its_logs_sorted() -> None:
    """Recursively; packed and UTF-16 logs included, empty ones too."""
    write("logs/b.log")
    write("logs/a/z.log.gz", gzip.compress(LINE))
    write("logs/c.zst", zstandard.compress(LINE))
    write("logs/empty.log", b"")
    write("logs/windows.log", LINE.decode().encode("utf-16"))
    assert found("logs") == ["logs/a/z.log.gz", "logs/b.log", "logs/c.zst", "logs/empty.log", "logs/windows.log"]


def test_binaries_in_a_folder_are_counted() -> None:
    """Also inside a packing; a packing that is not read is counted as such."""
    write("logs/bot.log")
    write("logs/plot.png", PNG)
    write("logs/plot.gz", gzip.compress(PNG))
    write("logs/old.log.bz2", bz2.compress(LINE))
    unread = Unread()
    sources, errors = find_sources(["logs"], unread=unread)
    assert [source.path for source in sources] == ["logs/bot.log"]
    assert not errors
    assert unread.counts == {"binary": 2, "unsupported_compression": 1}


def test_a_binary_given_by_name_is_read() -> None:
    """Who names a file means it, whatever was thought of it before."""
    write("logs/bot.log")
    write("logs/odd.log", PNG)
    assert found("logs", "logs/odd.log") == ["logs/bot.log", "logs/odd.log"]


def test_duplicates_are_read_once() -> None:
    """By another spelling, by a link, by folder and pattern: one file is one source."""
    write("logs/bot.log")
    Path("link.log").symlink_to("logs/bot.log")
    os.link("logs/bot.log", "logs/hard.log")
    assert found("logs/bot.log", "./logs/bot.log", "link.log", "logs", "logs/*.log", "-", "-") == ["logs/bot.log", "-"]


def test_patterns_find_files_and_folders() -> None:
    """A quoted pattern does what the shell's would."""
    write("logs/b.log")
    write("logs/a/c.log")
    write("logs/a/d.txt")
    assert found("logs/*.log") == ["logs/b.log"]
    assert found("**/*.log") == ["logs/a/c.log", "logs/b.log"]
    assert found("logs/*") == ["logs/a/c.log", "logs/a/d.txt", "logs/b.log"]


def test_an_existing_path_wins_over_a_pattern() -> None:
    """`bot[1].log` is a name if there is such a file."""
    write("bot[1].log")
    write("bot1.log")
    assert found("bot[1].log") == ["bot[1].log"]
    assert found("bot[12].log") == ["bot1.log"]


def test_a_file_called_dash_is_not_standard_input() -> None:
    """A pattern that matches the file `-` gives a path to it."""
    write("-")
    assert found("*") == ["./-"]


def test_every_mistake_is_one_error() -> None:
    """All are reported, in order, and good arguments beside them are found."""
    write("bot.log")
    write("a.bz2", bz2.compress(LINE))
    Path("none").mkdir()
    write("pictures/plot.png", PNG)
    Path("loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        arguments = [
            "x\n.log",
            "*.txt",
            "sock",
            "/dev/null",
            "none",
            "pictures/*",
            "a.bz2",
            "loop",
            "",
            "bot.log/x",
            "bot.log",
        ]
        sources, errors = find_sources(arguments)
    assert [source.path for source in sources] == ["bot.log"]
    assert [str(error) for error in errors] == [
        "x\\n.log: no such file or folder; check the spelling and the current folder",
        "*.txt: nothing matches this pattern; check it, and the current folder",
        "sock: is a socket, not a log; name a file, a folder or a FIFO, or pipe it in and give -",
        "/dev/null: is a device, not a log; name a file, a folder or a FIFO, or pipe it in and give -",
        "none: a folder without a log in it; name the folder that the logs are in",
        "pictures/*: matches no log, only other files; check the pattern",
        "a.bz2: packed with bzip2, which is not read; unpack it, or pipe it in unpacked and give -",
        "loop: its symbolic links form a circle; name the file they should lead to",
        "'': is no path; name a file, a folder or a pattern",
        "bot.log/x: a part of this path is a file, not a folder; check the spelling",
    ]


def test_odd_names_are_mistakes_not_crashes() -> None:
    """NULs, endless names and undecodable bytes."""
    assert mistakes("a\0b") == ["a\\x00b: is no path; name a file, a folder or a pattern"]
    assert "too long" in mistakes("x" * 5000)[0]
    assert "\\udcff: no such file" in mistakes("\udcff")[0]


def test_no_permission_is_an_error_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a named file, for one met in a folder and for both at once; the others are found."""
    write("logs/bot.log")
    write("logs/secret.log")
    real_open = os.open

    def refusing_open(path: str, flags: int) -> int:
        if path.endswith("secret.log"):
            raise PermissionError(13, "Permission denied", path)
        return real_open(path, flags)

    monkeypatch.setattr("recompile_watch.sources.opening.os.open", refusing_open)
    sources, errors = find_sources(["logs/secret.log", "logs", "logs/secret.log"])
    assert [source.path for source in sources] == ["logs/bot.log"]
    text = "logs/secret.log: no permission to read it; run as a user who may, or have its owner grant it"
    assert list(map(str, errors)) == [text]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_without_permission_is_an_error() -> None:
    """A subfolder that cannot be listed is no reason to say nothing."""
    write("logs/bot.log")
    write("logs/secret/a.log")
    os.chmod("logs/secret", 0)
    sources, errors = find_sources(["logs"])
    os.chmod("logs/secret", 0o700)
    assert [source.path for source in sources] == ["logs/bot.log"]
    assert "logs/secret: no permission" in str(errors[0])


def test_rotated_siblings_become_one_source() -> None:
    """From the live log's name, from any member's, from the folder and from a pattern."""
    write("logs/bot.log", b"new\n", modified_at=300)
    write("logs/bot.log.1", b"old\n", modified_at=200)
    write("logs/bot.log.2.gz", gzip.compress(b"older\n"), modified_at=100)
    write("logs/other.log", modified_at=50)
    family = ("logs/bot.log.2.gz", "logs/bot.log.1", "logs/bot.log")
    for arguments in (["logs/bot.log"], ["logs/bot.log.1"], ["logs/bot.log*"], ["logs/bot.log", "logs/bot.log.2.gz"]):
        assert families(arguments) == [family]
    assert families(["logs"]) == [family, ("logs/other.log",)]
    source = find_sources(["logs/bot.log"], rotated=True)[0][0]
    assert source == SourceFile("logs/bot.log", 8 + os.stat("logs/bot.log.2.gz").st_size, 300, family)


def test_without_rotated_each_file_is_a_source() -> None:
    """Siblings of a named file are left alone."""
    write("bot.log")
    write("bot.log.1")
    assert found("bot.log") == ["bot.log"]
    assert found("bot.log*") == ["bot.log", "bot.log.1"]


def test_a_live_log_that_is_gone_leaves_its_siblings() -> None:
    """Just rotated, not yet written again: the family is there."""
    write("bot.log.1")
    write("bot.log.2")
    assert families(["bot.log"]) == [("bot.log.2", "bot.log.1")]
    assert len(find_sources(["else.log"], rotated=True)[1]) == 1


def test_families_in_different_folders_are_different() -> None:
    """Spelled differently they are one, in another folder they are another."""
    write("a/bot.log")
    write("a/bot.log.1")
    write("b/bot.log")
    assert families(["a/bot.log", "./a/bot.log.1", "b/bot.log"]) == [("a/bot.log.1", "a/bot.log"), ("b/bot.log",)]


def test_a_folder_called_like_a_log_is_no_sibling() -> None:
    """A folder given with `rotated` is just a folder."""
    write("logs/bot.log")
    write("logs.1/bot.log")
    unread = Unread()
    sources, errors = find_sources(["logs"], rotated=True, unread=unread)
    assert ([source.path for source in sources], errors, unread.counts) == (["logs/bot.log"], [], {})


def test_a_packed_twin_is_counted_not_read() -> None:
    """While logrotate packs, the same content stands there twice."""
    write("bot.log.1")
    write("bot.log.1.gz", gzip.compress(LINE)[:10])
    unread = Unread()
    sources, _ = find_sources(["bot.log.1"], rotated=True, unread=unread)
    assert [source.family for source in sources] == [("bot.log.1",)]
    assert unread.counts == {"packed_copy": 1}
