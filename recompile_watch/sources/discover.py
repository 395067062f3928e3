"""Configured paths and patterns become the paths to follow, rotated siblings and the daemon's own files left out."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from recompile_watch.core.errors import SourceError
from recompile_watch.sources.limits import FindLimits, Unread
from recompile_watch.sources.opening import shown
from recompile_watch.sources.rotation import parse_rotated_name
from recompile_watch.sources.walk import FolderWalk, matches

_WILDCARDS = frozenset("*?[")
_HIDDEN = ("/home/", "/root/", "/run/user/")  # by ProtectHome= of systemd.exec(5)
_LIMITS = FindLimits()


@dataclass(frozen=True, slots=True)
class Found:
    """What one look found. by_pattern: the paths of files, in order; a plain path is there whether or not it exists."""

    by_pattern: dict[str, tuple[str, ...]]
    errors: tuple[SourceError, ...]


class Discovery:
    """Looks for the files that a source names."""

    def __init__(self, patterns: Sequence[str], excluded: Sequence[str]) -> None:
        self._patterns = patterns
        self._excluded = tuple(os.path.realpath(path) for path in excluded)

    def look(self, followed: Collection[str]) -> Found:
        """The paths to follow now; `followed` are those followed already, whose rotated siblings are no streams of their own."""
        errors: list[SourceError] = []
        by_pattern = {pattern: self._paths(pattern, followed, errors) for pattern in self._patterns}
        return Found(by_pattern, tuple(errors))

    def folders(self) -> list[str]:
        """The folders in which news can be expected, as far as the patterns name them."""
        return list(dict.fromkeys(os.path.dirname(_fixed_part(pattern)) or os.curdir for pattern in self._patterns))

    def _paths(self, pattern: str, followed: Collection[str], errors: list[SourceError]) -> tuple[str, ...]:
        if not is_pattern(pattern):
            return () if self.is_excluded(pattern) else (pattern,)
        # Real files before links, so that a file followed by both is known by its own name.
        found = sorted(set(matches(pattern, FolderWalk(_LIMITS, errors, Unread()))), key=lambda path: (os.path.islink(path), path))
        known = {*followed, *found}
        return tuple(path for path in found if path in followed or self._is_log(path, known))

    def _is_log(self, path: str, known: Collection[str]) -> bool:
        folder, name = os.path.split(path)
        parsed = parse_rotated_name(name)
        if parsed.is_packed or (parsed.stem != name and os.path.join(folder, parsed.stem) in known):
            return False
        try:
            is_file = stat.S_ISREG(os.stat(path).st_mode)
        except OSError:
            return False
        return is_file and not self.is_excluded(path)

    def is_excluded(self, path: str) -> bool:
        """`path` is one of the daemon's own, or below one."""
        real = os.path.realpath(path)
        return any(real == excluded or real.startswith(excluded + os.sep) for excluded in self._excluded)


def obstacle(path: str) -> str:
    """What keeps a path or pattern from leading to a file, as far as the folders on the way tell, and what to do."""
    folder = os.path.dirname(_fixed_part(path)) or os.curdir
    way = [folder]
    while (above := os.path.dirname(way[0])) not in ("", way[0]):
        way.insert(0, above)
    for step in way:
        if not os.path.exists(step):
            hidden = "; a unit sees it only with BindReadOnlyPaths=" if step.startswith(_HIDDEN) else "; check the path"
            return f"{shown(step)} does not exist{hidden}"
        if not os.access(step, os.X_OK | (os.R_OK if step == folder else 0)):
            return f"{shown(step)} cannot be entered; let the user of the watch into its group"
    return "check the path in the configuration and whether the program that writes it runs"


def is_pattern(path: str) -> bool:
    """`path` has wildcards and is not the name of something that exists."""
    return bool(_WILDCARDS.intersection(path)) and not os.path.lexists(path)


def _fixed_part(pattern: str) -> str:
    """The pattern up to its first folder or name with a wildcard, that part included as a name."""
    parts = pattern.split(os.sep)
    at = next((index for index, part in enumerate(parts) if _WILDCARDS.intersection(part)), len(parts) - 1)
    return os.sep.join(parts[: at + 1])
