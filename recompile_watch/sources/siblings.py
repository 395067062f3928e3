"""Rotated siblings of a followed path: which of them holds what was being read, and which were never read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from recompile_watch.core.errors import SourceError
from recompile_watch.sources.content import Content
from recompile_watch.sources.identity import holds, is_copy_of, is_weak, kept_time_s, open_if
from recompile_watch.sources.marks import FileKey, Mark
from recompile_watch.sources.rotation import oldest_first, parse_rotated_name


@dataclass(frozen=True, slots=True)
class Sibling:
    """One file beside the followed path. number: logrotate's (`bot.log.3` has 3), None for names of other kinds."""

    path: str
    file_key: FileKey
    modified_ns: int
    number: int | None

    @property
    def is_packed(self) -> bool:
        """By its name; such a file is never followed under it."""
        return parse_rotated_name(os.path.basename(self.path)).is_packed


@dataclass(frozen=True, slots=True)
class Family:
    """The rotated siblings of one path, oldest first, and every other file in their folders that could be one renamed."""

    members: tuple[Sibling, ...]
    keys_by_path: dict[str, FileKey]

    def keys(self) -> list[FileKey]:
        """The members' files, oldest first."""
        return [sibling.file_key for sibling in self.members]

    def place_of(self, key: FileKey) -> str | None:
        """Where the file with this device and inode lies now."""
        return next((path for path, other in self.keys_by_path.items() if other == key), None)


def family_of(path: str, folders: Sequence[str] = ()) -> Family:
    """What lies beside `path`, and beside the file it leads to, and in `folders`; unreadable folders hold nothing."""
    keys: dict[str, FileKey] = {}
    by_name: dict[str, Sibling] = {}
    for folder, live in places_of(path, folders):
        for entry_path, status in _files(folder):
            key = status.st_dev, status.st_ino
            keys.setdefault(entry_path, key)
            name = os.path.basename(entry_path)
            if name != live and parse_rotated_name(name).stem == live:
                by_name.setdefault(name, Sibling(entry_path, key, status.st_mtime_ns, _number(name)))
    return Family(tuple(by_name[name] for name in oldest_first(by_name)), keys)


def folder_stamps(path: str, folders: Sequence[str] = ()) -> tuple[int, ...]:
    """The times of the folders in which the family of `path` lies: they change when something in there is made, renamed or removed."""
    return tuple(_modified_ns(folder) for folder in dict.fromkeys(folder for folder, _ in places_of(path, folders)))


def _modified_ns(folder: str) -> int:
    try:
        return os.stat(folder or os.curdir).st_mtime_ns
    except OSError:
        return 0


def places_of(path: str, folders: Sequence[str]) -> list[tuple[str, str]]:
    """The folders in which the family of `path` lies, and the name of its live log there."""
    places = [os.path.split(path), os.path.split(os.path.realpath(path))]
    places += [(folder, os.path.basename(path)) for folder in folders]
    return list(dict.fromkeys((os.path.realpath(folder), name) for folder, name in places))


def _files(folder: str) -> list[tuple[str, os.stat_result]]:
    found: list[tuple[str, os.stat_result]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_symlink() and entry.is_file():
                    found.append((entry.path, entry.stat(follow_symlinks=False)))
    except OSError:
        return found
    return [(path, status) for path, status in found if stat.S_ISREG(status.st_mode)]


def _number(name: str) -> int | None:
    age = parse_rotated_name(name).age
    return -age[2] if age[2] < 0 and not age[1] else None


def home_of(mark: Mark, family: Family, is_taken: Callable[[Sibling], bool]) -> tuple[Sibling, Content] | None:
    """The sibling with the bytes that `mark` stands in, by content: packed, or a copy; open, ready to read on.

    None for a mark of an empty file, of which every file is a copy. One that could be read at no time is told by its time,
    which packers keep.
    """
    if not mark.head_bytes and not mark.size_bytes:
        return None
    # A copy that was seen beside it may be older than what was written to it afterwards.
    since_s = 0 if mark.copied_bytes else kept_time_s(mark.modified_ns)
    for sibling in family.members:
        if kept_time_s(sibling.modified_ns) < since_s or is_taken(sibling):
            continue
        content = _opened_if_of(sibling, mark)
        if content is not None:
            return sibling, content
    return None


def _opened_if_of(sibling: Sibling, mark: Mark) -> Content | None:
    def is_of(content: Content) -> bool:
        return is_copy_of(content, sibling.modified_ns, mark) if is_weak(mark) else holds(content, mark)

    try:
        return open_if(sibling.path, is_of)
    except (OSError, SourceError):
        return None


def missed(family: Family, mark: Mark, home: str | None, is_taken: Callable[[FileKey], bool]) -> tuple[list[Sibling], bool]:
    """The siblings that are younger than what `mark` stands in, which lies at `home` now; and whether one is missing among them.

    Where it lies nowhere, or under a name without age, those that changed no earlier than it did.
    """
    places = [sibling.path for sibling in family.members]
    if home in places:
        at = places.index(home)
        younger = list(family.members[at + 1 :])
        is_missing = _has_gap(family.members[at:])
    else:
        younger = [sibling for sibling in family.members if sibling.modified_ns >= mark.modified_ns]
        is_missing = False
    return [sibling for sibling in younger if not is_taken(sibling.file_key)], is_missing


def _has_gap(members: Sequence[Sibling]) -> bool:
    """`bot.log.3` and `bot.log.1` without a `bot.log.2`: three rotations, of which one left nothing."""
    first = members[0].number
    return first is not None and len([sibling for sibling in members if sibling.number is not None]) < first
