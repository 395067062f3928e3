"""Folders and `**` patterns become the paths of the files in them, whatever circles symbolic links form."""

from __future__ import annotations

import errno
import glob
import os
import stat
from collections.abc import Iterator
from itertools import islice

from recompile_watch.core.errors import SourceError
from recompile_watch.sources.limits import FindLimits, Unread
from recompile_watch.sources.opening import shown, source_error

_ANY_DEPTH = "**"


class FolderWalk:
    """One walk through folders, each entered once, known by its device and inode; all walks of one argument share it.

    Folders that cannot be read or go beyond the limits become entries of `errors`.
    """

    def __init__(self, limits: FindLimits, errors: list[SourceError], unread: Unread) -> None:
        self._limits = limits
        self._errors = errors
        self._unread = unread
        self._entered: set[tuple[int, int]] = set()
        self._entries_seen = 0
        self._is_full = False

    def files(self, folder: str, depth: int = 0) -> Iterator[str]:
        """Paths of the regular files in `folder` and below, symbolic links followed, sorted by name folder for folder."""
        if not self._enter(folder, depth):
            return
        for path in self._paths_in(folder):
            mode = self._mode(path)
            if stat.S_ISDIR(mode):
                yield from self.files(path, depth + 1)
            elif stat.S_ISREG(mode):
                yield path
            elif mode:
                self._unread.add("not_a_regular_file")

    def folders(self, folder: str, depth: int = 0) -> Iterator[str]:
        """`folder` and all below it, hidden ones left out as every shell does for `**`."""
        if not self._enter(folder, depth):
            return
        yield folder
        for path in self._paths_in(folder):
            if not os.path.basename(path).startswith(".") and os.path.isdir(path):
                yield from self.folders(path, depth + 1)

    def _enter(self, folder: str, depth: int) -> bool:
        """True if `folder` is new, and neither too deep nor beyond reach."""
        try:
            status = os.stat(folder or os.curdir)
        except OSError as error:
            self._errors.append(source_error(folder, error))
            return False
        if (status.st_dev, status.st_ino) in self._entered or self._is_full:
            return False
        if depth > self._limits.max_depth:
            self._refuse(folder, f"more than {self._limits.max_depth} folders deep; name this folder itself")
            return False
        self._entered.add((status.st_dev, status.st_ino))
        return True

    def _paths_in(self, folder: str) -> list[str]:
        """Sorted paths of what is in `folder`; empty where it cannot be listed, which is then an error."""
        try:
            return [os.path.join(folder, name) for name in self._names(folder)]
        except OSError as error:
            self._errors.append(source_error(folder, error))
            return []

    def _names(self, folder: str) -> list[str]:
        room = self._limits.max_entries - self._entries_seen
        with os.scandir(folder or os.curdir) as entries:
            names = sorted(entry.name for entry in islice(entries, room + 1))
        self._entries_seen += len(names)
        if len(names) > room:
            self._is_full = True
            most = self._limits.max_entries
            self._refuse(folder, f"more than {most} files and folders, the rest is not read; name fewer folders or use a pattern")
            return names[:room]
        return names

    def _mode(self, path: str) -> int:
        """What `path` leads to, as `st_mode`; 0 when it leads nowhere, which is then counted or an error."""
        try:
            return os.stat(path).st_mode
        except FileNotFoundError:
            self._unread.add("broken_link")
        except OSError as error:
            if error.errno == errno.ELOOP:
                self._unread.add("broken_link")
            else:
                self._errors.append(source_error(path, error))
        return 0

    def _refuse(self, folder: str, text: str) -> None:
        self._errors.append(SourceError(f"{shown(folder)}: {text}"))


def matches(pattern: str, walk: FolderWalk) -> Iterator[str]:
    """Paths that `pattern` (`*`, `?`, `[…]`, and `**` for any depth) matches, each possibly more than once.

    `glob` follows circles of links under `**`, up to 2^40 paths for two of them; `walk` does not.
    """
    parts = pattern.split(os.sep)
    if _ANY_DEPTH not in parts:
        yield from glob.iglob(pattern)
        return
    at = parts.index(_ANY_DEPTH)
    above = os.sep.join(parts[:at]) or (os.sep if at else "")
    below = os.sep.join(part for part in parts[at + 1 :] if part != _ANY_DEPTH) or "*"
    tops = filter(os.path.isdir, glob.iglob(above)) if above else [""]
    for top in tops:
        for folder in walk.folders(top):
            yield from glob.iglob(os.path.join(glob.escape(folder), below))
