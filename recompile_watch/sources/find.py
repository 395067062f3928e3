"""Command-line arguments become the list of files to read; mistakes are collected, not raised."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from recompile_watch.core.errors import SourceError
from recompile_watch.sources.families import joined_families, names_by_stem
from recompile_watch.sources.limits import FindLimits, ReadLimits, Unread
from recompile_watch.sources.opening import (
    STANDARD_INPUT,
    first_bytes,
    not_readable_kind,
    shown,
    source_error,
)
from recompile_watch.sources.rotation import parse_rotated_name
from recompile_watch.sources.sniff import (
    HEAD_BYTES,
    Compression,
    compression_of,
    is_binary,
    unsupported_compression,
)
from recompile_watch.sources.source_file import SourceFile
from recompile_watch.sources.unpack import unpack
from recompile_watch.sources.walk import FolderWalk, matches

__all__ = ["FindLimits", "SourceFile", "find_sources"]

_WILDCARDS = frozenset("*?[")
_DEFAULT_LIMITS = FindLimits()
# Enough of a packed file for its first block: zstd packs 128 KiB at a time.
_PACKED_HEAD_BYTES = 128 << 10


def find_sources(
    arguments: Sequence[str],
    *,
    rotated: bool = False,
    limits: FindLimits = _DEFAULT_LIMITS,
    unread: Unread | None = None,
) -> tuple[list[SourceFile], list[SourceError]]:
    """The logs that `arguments` name, in their order and each once, and one error for each mistake.

    An argument is a file, a FIFO, `-`, a folder (all logs in it and below, sorted) or a pattern in quotes, `**` included; an
    existing path wins over a pattern. With `rotated`, files of one family become one source, rotated siblings of a named file
    included. What is passed over in folders and patterns (binary files, broken links) is counted in `unread`.
    """
    skipped = unread if unread is not None else Unread()
    search = _Search(limits, skipped, takes_siblings=rotated)
    for argument in arguments:
        search.add_argument(argument)
    return (joined_families(search.files, skipped) if rotated else search.files), search.errors


class _Search:
    """The files and errors gathered so far; each file once, known by its device and inode."""

    def __init__(self, limits: FindLimits, unread: Unread, *, takes_siblings: bool) -> None:
        self.files: list[SourceFile] = []
        self.errors: list[SourceError] = []
        self._limits = limits
        self._unread = unread
        self._takes_siblings = takes_siblings
        self._families_in: dict[str, dict[str, list[str]]] = {}
        self._is_log: dict[tuple[int, int], bool] = {}
        self._kept: set[tuple[int, int]] = set()
        self._reported: set[str] = set()

    def add_argument(self, argument: str) -> None:
        if argument == STANDARD_INPUT:
            if all(file.path != STANDARD_INPUT for file in self.files):
                self.files.append(SourceFile(STANDARD_INPUT, None, None, (STANDARD_INPUT,)))
        elif not argument or "\0" in argument:
            self._refuse(argument, "is no path; name a file, a folder or a pattern")
        elif os.path.lexists(argument) or not _WILDCARDS & set(argument):
            self._add_named(argument)
        else:
            self._add_pattern(argument)

    def _add_named(self, path: str) -> None:
        """A path that the user spelled out: whatever it holds is read."""
        try:
            status = os.stat(path)
            if stat.S_ISDIR(status.st_mode):
                self._add_folder(path)
            elif stat.S_ISREG(status.st_mode):
                self._add_named_file(path, status)
            elif stat.S_ISFIFO(status.st_mode):
                self._keep(path, status)
            else:
                self._report(not_readable_kind(path, status.st_mode))
        except FileNotFoundError as error:
            # The live log may be between two lives; its rotated siblings are there all the same.
            if not (self._takes_siblings and self._add_siblings(path)):
                self._report(source_error(path, error))
        except OSError as error:
            self._report(source_error(path, error))

    def _add_named_file(self, path: str, status: os.stat_result) -> None:
        compression = unsupported_compression(first_bytes(path, HEAD_BYTES))
        if compression is not None:
            self._refuse(path, f"packed with {compression}, which is not read; unpack it, or pipe it in unpacked and give -")
            return
        self._keep(path, status)
        if self._takes_siblings:
            self._add_siblings(path)

    def _add_folder(self, folder: str) -> None:
        walk = FolderWalk(self._limits, self.errors, self._unread)
        self._add_all(folder, walk.files(folder), "a folder without a log in it; name the folder that the logs are in")

    def _add_pattern(self, pattern: str) -> None:
        paths = sorted(set(matches(pattern, FolderWalk(self._limits, self.errors, self._unread))))
        if not paths:
            self._refuse(pattern, "nothing matches this pattern; check it, and the current folder")
            return
        self._add_all(pattern, self._files_at(paths), "matches no log, only other files; check the pattern")

    def _files_at(self, paths: Iterable[str]) -> Iterator[str]:
        walk = FolderWalk(self._limits, self.errors, self._unread)
        for path in paths:
            if os.path.isdir(path):
                yield from walk.files(path)
            else:
                yield path

    def _add_all(self, argument: str, paths: Iterable[str], text_if_none: str) -> None:
        errors_before = len(self.errors)
        logs_found = 0
        for path in paths:
            logs_found += self._add_found(path)
            if self._takes_siblings:
                self._add_siblings(path)
        if not logs_found and len(self.errors) == errors_before:
            self._refuse(argument, text_if_none)

    def _add_found(self, path: str) -> bool:
        """A path met in a folder, by a pattern or beside another: read if it is a log. True if it is one."""
        try:
            status = os.stat(path)
            file_key = (status.st_dev, status.st_ino)
            if file_key not in self._is_log:
                self._is_log[file_key] = self._is_log_file(path, status)
        except FileNotFoundError:
            self._unread.add("broken_link")
            return False
        except OSError as error:
            self._report(source_error(path, error))
            return False
        if self._is_log[file_key]:
            # A file called "-" that `*` matched is not standard input.
            self._keep(os.path.join(os.curdir, path) if path == STANDARD_INPUT else path, status)
        return self._is_log[file_key]

    def _is_log_file(self, path: str, status: os.stat_result) -> bool:
        reason = _reason_to_skip(path) if stat.S_ISREG(status.st_mode) else "not_a_regular_file"
        if reason is not None:
            self._unread.add(reason)
        return reason is None

    def _add_siblings(self, path: str) -> bool:
        """The whole rotated family that `path` belongs to. True if any member is there."""
        folder, name = os.path.split(path)
        if folder not in self._families_in:
            self._families_in[folder] = names_by_stem(folder)
        members = self._families_in[folder].pop(parse_rotated_name(name).stem, [])
        return sum(self._add_found(os.path.join(folder, member)) for member in members) > 0

    def _keep(self, path: str, status: os.stat_result) -> None:
        file_key = (status.st_dev, status.st_ino)
        if file_key in self._kept:
            return
        self._kept.add(file_key)
        self._is_log[file_key] = True
        if stat.S_ISREG(status.st_mode):
            self.files.append(SourceFile(path, status.st_size, status.st_mtime, (path,)))
        else:
            self.files.append(SourceFile(path, None, None, (path,)))

    def _refuse(self, argument: str, text: str) -> None:
        self._report(SourceError(f"{shown(argument) or repr(argument)}: {text}"))

    def _report(self, error: SourceError) -> None:
        """A file met twice, by its name and as a sibling, is one mistake."""
        if str(error) not in self._reported:
            self._reported.add(str(error))
            self.errors.append(error)


def _reason_to_skip(path: str) -> str | None:
    """Why a file that nobody named is no log (`"binary"`), or None. Raises OSError when it cannot be read."""
    head = first_bytes(path, HEAD_BYTES)
    if unsupported_compression(head):
        return "unsupported_compression"
    compression = compression_of(head)
    if compression is not Compression.PLAIN:
        packed = iter([first_bytes(path, _PACKED_HEAD_BYTES)])
        head = next(unpack(packed, compression, ReadLimits(), Unread()), b"")
    return "binary" if is_binary(head) else None
