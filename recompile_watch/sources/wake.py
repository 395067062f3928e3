"""Hints that something changed in a folder, so that a loop need not sleep its poll interval out. Polling stays the truth.

watchdog loses events, dies with a removed folder and dies of an exception in a handler; therefore its handler does nothing but
wake, it is asked whether it lives, and everything works without it, a poll interval later.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from recompile_watch.core.heard import Trouble, TroubleKind

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver, ObservedWatch

SUBJECT = "inotify"


class Wake:
    """A descriptor that becomes readable when a file in one of the watched folders came, went or was renamed.

    on_growth: also when one was written to. watchdog needs some tenths of a millisecond for every single write, so that a bot
    which logs 1000 lines a second would cost a good part of a core for nothing but hints: see `listens_to_growth`.

    heard: events so far, of any file.
    is_interesting: asked with each event's path, in watchdog's thread; it must be quick and must not raise. Events of other
    files wake nobody: a busy neighbour, or the daemon's own log, in the same folder.
    """

    def __init__(self, is_interesting: Callable[[str], bool], *, on_growth: bool = False) -> None:
        self._is_interesting, self._on_growth = is_interesting, on_growth
        self._read_fd, self._write_fd = os.pipe()
        for fd in (self._read_fd, self._write_fd):
            os.set_blocking(fd, False)
        self._observer: BaseObserver | None = None
        self._watches: dict[str, ObservedWatch] = {}
        self._is_lost = False
        self._is_set = False
        self.heard = 0

    @property
    def listens_to_growth(self) -> bool:
        """Whether a write wakes. What is written all the time is better polled: switch it off then, and on again later."""
        return self._on_growth

    @listens_to_growth.setter
    def listens_to_growth(self, wanted: bool) -> None:
        if wanted != self._on_growth:
            self._on_growth = wanted
            if self._observer is not None:
                self._observer.unschedule_all()
            self._watches.clear()

    def fileno(self) -> int:
        """The descriptor, for `select` and its like."""
        return self._read_fd

    def clear(self) -> bool:
        """Whether it was woken since the last call; then it sleeps again."""
        woken = self._is_set
        self._is_set = False
        with suppress(BlockingIOError):
            while len(os.read(self._read_fd, 4096)) == 4096:
                pass
        return woken

    def set(self) -> None:
        """Wakes the loop; from any thread, as often as one likes."""
        if not self._is_set:
            self._is_set = True
            with suppress(BlockingIOError, OSError):
                os.write(self._write_fd, b".")

    def watch(self, folders: Sequence[str]) -> list[Trouble]:
        """Watches these folders and no others; to be called now and then, as it also revives what died.

        Folders that are not there are left out. Gives a trouble when hints become unavailable, and when they are back.
        """
        try:
            self._watch(frozenset(folder for folder in folders if os.path.isdir(folder)))
        except (OSError, RuntimeError, ImportError) as error:
            self._stop()
            return self._lost(
                f"no hints from the file system ({error}); files are looked at each poll interval instead; raise fs.inotify.max_user_watches"
            )
        if not self._is_lost:
            return []
        self._is_lost = False
        return [Trouble(TroubleKind.WAKE_LOST, SUBJECT, "hints from the file system are back", is_over=True)]

    def close(self) -> None:
        """Ends the watching thread."""
        self._stop()
        for fd in (self._read_fd, self._write_fd):
            os.close(fd)

    def _watch(self, wanted: frozenset[str]) -> None:
        from watchdog.observers import Observer  # only where it is used: it starts threads

        if self._observer is not None and not self._lives():
            self._stop()
            self.set()  # what happened since it died is unknown
        if self._observer is None:
            self._observer = Observer()
            self._observer.daemon = True
            self._observer.start()
        for folder in self._watches.keys() - wanted:
            self._observer.unschedule(self._watches.pop(folder))
        for folder in sorted(wanted - self._watches.keys()):
            self._watches[folder] = self._schedule(self._observer, folder)

    def _schedule(self, observer: BaseObserver, folder: str) -> ObservedWatch:
        from watchdog.events import FileCreatedEvent, FileDeletedEvent, FileModifiedEvent, FileMovedEvent, FileSystemEventHandler

        wake = self

        class Handler(FileSystemEventHandler):
            """Only wakes."""

            def on_any_event(self, event: FileSystemEvent) -> None:
                wake.hear(event.src_path, event.dest_path)

        # Not of opening and closing, which the reading itself causes.
        kinds: list[type[FileSystemEvent]] = [FileCreatedEvent, FileDeletedEvent, FileMovedEvent]
        return observer.schedule(Handler(), folder, recursive=False, event_filter=kinds + [FileModifiedEvent] * self._on_growth)

    def hear(self, *paths: str | bytes) -> None:
        """One event of these paths; an exception here would kill watchdog's thread for good, so that none leaves."""
        self.heard += 1
        with suppress(OSError, ValueError):
            if self._is_set or any(path and self._is_interesting(os.fsdecode(path)) for path in paths):
                self.set()

    def _lives(self) -> bool:
        observer = self._observer
        if observer is None or not observer.is_alive():
            return False
        emitters = {emitter.watch: emitter for emitter in observer.emitters}
        return all(watch in emitters and emitters[watch].is_alive() for watch in self._watches.values())

    def _lost(self, text: str) -> list[Trouble]:
        if self._is_lost:
            return []
        self._is_lost = True
        return [Trouble(TroubleKind.WAKE_LOST, SUBJECT, text)]

    def _stop(self) -> None:
        observer, self._observer = self._observer, None
        self._watches.clear()
        if observer is not None:
            observer.stop()
            observer.join(timeout=1.0)
