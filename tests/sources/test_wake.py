"""Tests of `recompile_watch.sources.wake`: hints of the file system, which may come and may be missing."""

from __future__ import annotations

import os
import select
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from recompile_watch.core.heard import TroubleKind
from recompile_watch.sources.wake import Wake

PATIENCE_S = 10.0


@pytest.fixture
def wake() -> Iterator[Wake]:
    """A wake that cares for files called bot."""
    made = Wake(lambda path: "bot" in os.path.basename(path))
    yield made
    made.close()


def woken(wake: Wake, seconds: float = PATIENCE_S) -> bool:
    """It wakes within this time; then it sleeps again."""
    select.select([wake], [], [], seconds)
    return wake.clear()


def test_a_new_and_a_renamed_file_wake(wake: Wake, tmp_path: Path) -> None:
    """Creation and rotation wake within the poll interval; a folder that is not there is left out."""
    assert wake.watch([str(tmp_path), str(tmp_path / "missing")]) == []
    (tmp_path / "bot.log").write_text("one\n")
    assert woken(wake)
    (tmp_path / "bot.log").rename(tmp_path / "bot.log.1")
    assert woken(wake)


def test_other_files_and_growth_do_not_wake(wake: Wake, tmp_path: Path) -> None:
    """A busy neighbour in the same folder, and a log that merely grows, cost nothing."""
    (tmp_path / "bot.log").write_text("one\n")
    wake.watch([str(tmp_path)])
    for number in range(20):
        (tmp_path / f"other-{number}").write_text("x")
        with (tmp_path / "bot.log").open("a") as log:
            log.write("two\n")
    assert not woken(wake, 0.5)


def test_growth_wakes_where_it_is_asked_for(tmp_path: Path) -> None:
    """on_growth = True also hints at lines."""
    (tmp_path / "bot.log").write_text("one\n")
    wake = Wake(lambda path: True, on_growth=True)
    wake.watch([str(tmp_path)])
    with (tmp_path / "bot.log").open("a") as log:
        log.write("two\n")
    assert woken(wake)
    wake.close()


def test_a_folder_made_again_is_watched_again(wake: Wake, tmp_path: Path) -> None:
    """The watching of a removed folder dies; the next `watch` sees it and begins anew."""
    folder = tmp_path / "logs"
    folder.mkdir()
    wake.watch([str(folder)])
    (folder / "bot.log").write_text("one\n")
    assert woken(wake)
    shutil.rmtree(folder)
    woken(wake)
    assert wake.watch([str(folder)]) == []
    folder.mkdir()
    wake.watch([str(folder)])
    woken(wake, 0.2)
    (folder / "bot.log").write_text("two\n")
    assert woken(wake)


def test_an_exception_in_the_question_kills_nothing(tmp_path: Path) -> None:
    """What is raised while an event is judged does not reach watchdog's thread, which would die of it."""

    def broken(path: str) -> bool:
        raise ValueError(path)

    wake = Wake(broken)
    wake.watch([str(tmp_path)])
    (tmp_path / "bot.log").write_text("one\n")
    assert not woken(wake, 0.3)
    assert wake.watch([str(tmp_path)]) == []
    wake.close()


def test_without_inotify_it_is_told_once_and_over(wake: Wake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No watches left (ENOSPC): one trouble, polling goes on, and its end is told."""
    import watchdog.observers

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "inotify watch limit reached")

    with monkeypatch.context() as patch:
        patch.setattr(watchdog.observers.Observer, "schedule", full)
        assert [trouble.kind for trouble in wake.watch([str(tmp_path)])] == [TroubleKind.WAKE_LOST]
        assert wake.watch([str(tmp_path)]) == []
    assert [trouble.is_over for trouble in wake.watch([str(tmp_path)])] == [True]


def test_setting_is_cheap_and_never_blocks(wake: Wake) -> None:
    """A hundred thousand wakes fill no pipe."""
    for _ in range(100_000):
        wake.set()
    assert wake.clear() and not wake.clear()
