"""Tests of `recompile_watch.sources.journal`, on journal files that systemd's own tool writes."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from pathlib import Path

import pytest

from recompile_watch.core.heard import Trouble, TroubleKind
from recompile_watch.sources.follow import Chunk
from recompile_watch.sources.journal import Journal, JournalSettings
from tests.conftest import engine_events

WRITER = next((path for path in ("/lib/systemd/systemd-journal-remote", "/usr/lib/systemd/systemd-journal-remote") if os.path.exists(path)), None)
NEEDS_JOURNAL = pytest.mark.skipif(
    WRITER is None or shutil.which("journalctl") is None, reason="NOT TESTED: install systemd-journal-remote to test the journal"
)
BEGIN = 1_700_000_000


class Log:
    """A folder with a journal file, to which entries are added."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def add(self, *messages: bytes, unit: str = "bot.service") -> None:
        """One entry each."""
        export = b""
        for message in messages:
            self.count += 1
            fields = f"__REALTIME_TIMESTAMP={BEGIN + self.count}000000\n_PID=42\n_SYSTEMD_UNIT={unit}\n"
            export += fields.encode() + b"MESSAGE\n" + len(message).to_bytes(8, "little") + message + b"\n\n"
        command = [str(WRITER), "-o", str(self.folder / "bot.journal"), "-"]
        subprocess.run(command, input=export, check=True, capture_output=True)


def given(journal: Journal, lines: int, now: float = BEGIN, heard: list[object] | None = None) -> list[Chunk]:
    """The chunks, once so many lines came; the clock goes on by two seconds a poll. heard: gets everything that was said."""
    chunks: list[Chunk] = []
    for _ in range(100):
        now += 2
        items = journal.poll(now)
        chunks += [item for item in items if isinstance(item, Chunk)]
        if heard is not None:
            heard += items
        if sum(chunk.payload.count(b"\n") for chunk in chunks) >= lines:
            return chunks
        select.select([journal.fd] if journal.fd is not None else [], [], [], 0.3)
    raise AssertionError(f"only {chunks}")


def texts(chunks: list[Chunk]) -> list[str]:
    """The messages, by what follows their field name."""
    lines = b"".join(chunk.payload for chunk in chunks).split(b"\n")[:-1]
    return [line.split(b'"MESSAGE":')[1].split(b',"')[0].rstrip(b"}").strip(b'"').decode() for line in lines]


@NEEDS_JOURNAL
def test_entries_come_once_and_go_on_after_a_restart(tmp_path: Path) -> None:
    """From the beginning, then as they come, then after the cursor of the mark: none twice, none lost."""
    log = Log(tmp_path)
    log.add(b"one", b"two")
    settings = JournalSettings("journal", folder=str(tmp_path), start="begin")
    journal = Journal(settings)
    first = given(journal, 2)
    assert texts(first) == ["one", "two"] and first[0].offset == 0
    log.add(b"three")
    later = given(journal, 1)
    assert texts(later) == ["three"] and (later[0].line, later[0].offset) == (3, first[-1].end)
    between = journal.mark(first[-1].offset + first[-1].payload.index(b"\n") + 1, 1)
    journal.close()
    log.add(b"four")
    journal = Journal(settings, between)
    assert texts(given(journal, 3)) == ["two", "three", "four"]
    journal.close()


@NEEDS_JOURNAL
def test_a_killed_journalctl_is_started_again(tmp_path: Path) -> None:
    """It goes on at the last entry given; the trouble is told and over."""
    log = Log(tmp_path)
    log.add(b"one")
    journal = Journal(JournalSettings("journal", folder=str(tmp_path), start="begin"))
    given(journal, 1)
    assert journal._child is not None
    journal._child.kill()
    journal._child.wait()
    log.add(b"two")
    heard: list[object] = []
    for number in range(60):
        heard += journal.poll(BEGIN + 100 + 2 * number)
        if any(isinstance(item, Chunk) for item in heard):
            break
        select.select([journal.fd] if journal.fd is not None else [], [], [], 0.3)
    assert texts([item for item in heard if isinstance(item, Chunk)]) == ["two"]
    assert [item.is_over for item in heard if isinstance(item, Trouble)] == [False, True]
    journal.close()


@NEEDS_JOURNAL
def test_a_vacuumed_entry_is_a_gap(tmp_path: Path) -> None:
    """The last entry read is gone when reading goes on: that is told with its time, and every entry that is left is given."""
    log = Log(tmp_path)
    log.add(b"one", b"two")
    settings = JournalSettings("journal", folder=str(tmp_path), start="begin")
    journal = Journal(settings)
    (chunk,) = given(journal, 2)
    mark = journal.mark(chunk.end, 2)
    journal.close()
    (tmp_path / "bot.journal").unlink()
    log.add(b"eight", b"nine")
    journal = Journal(settings, mark)
    heard: list[object] = []
    assert texts(given(journal, 2, heard=heard)) == ["eight", "nine"]
    (gap,) = [item for item in heard if isinstance(item, Trouble)]
    assert (gap.kind, gap.lost_bytes) == (TroubleKind.GAP, None) and "2023-11-14T22:13:22+00:00" in gap.text
    journal.close()


@NEEDS_JOURNAL
def test_only_what_matches_is_given(tmp_path: Path) -> None:
    """Matches are journald's own; a message that is not UTF-8 and one that looks like a cursor harm nothing."""
    log = Log(tmp_path)
    log.add(b"other", unit="other.service")
    log.add(b'"__CURSOR":"s=1"', b"\xff\xfe")
    journal = Journal(JournalSettings("journal", folder=str(tmp_path), start="begin", matches=("_SYSTEMD_UNIT=bot.service",)))
    chunks = given(journal, 2)
    assert len(texts(chunks)) == 2
    mark = journal.mark(chunks[-1].end, 2)
    assert mark.cursor is not None and mark.cursor.startswith("s=") and len(mark.cursor) > 40
    journal.close()


@NEEDS_JOURNAL
def test_the_start_at_the_end_is_a_time(tmp_path: Path) -> None:
    """Entries of before the start are not given, those of after are, even if no entry gave a cursor before a restart."""
    log = Log(tmp_path)
    log.add(b"old")
    settings = JournalSettings("journal", folder=str(tmp_path))
    journal = Journal(settings)
    journal.poll(BEGIN + 2.0)
    mark = journal.mark(0, 0)
    journal.close()
    log.add(b"new")
    journal = Journal(settings, mark)
    assert texts(given(journal, 1, BEGIN + 50.0)) == ["new"]
    journal.close()


@NEEDS_JOURNAL
def test_the_engine_understands_the_entries(tmp_path: Path) -> None:
    """A torch message in the journal becomes an event with the entry's time and process."""
    log = Log(tmp_path)
    log.add(b"torch._dynamo hit config.recompile_limit (8)\n   function: 'f' (/srv/m.py:1)\n   last reason: 0/7: x")
    journal = Journal(JournalSettings("journal", folder=str(tmp_path), start="begin"))
    (event,) = engine_events(chunk.payload for chunk in given(journal, 1))
    journal.close()
    assert (event.kind, event.pid) == ("recompile_limit_hit", 42)


def test_without_journalctl_it_is_told() -> None:
    """A machine without systemd gives one trouble that says what to do."""
    journal = Journal(JournalSettings("journal"), command=("no-such-journalctl",))
    heard = [item for second in range(5) for item in journal.poll(BEGIN + second)]
    assert [item.kind for item in heard if isinstance(item, Trouble)] == [TroubleKind.UNREADABLE]
    journal.close()
