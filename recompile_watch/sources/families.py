"""Files side by side become rotated families, each one source."""

from __future__ import annotations

import os
from collections.abc import Sequence

from recompile_watch.sources.limits import Unread
from recompile_watch.sources.rotation import oldest_first, parse_rotated_name
from recompile_watch.sources.source_file import SourceFile


def names_by_stem(folder: str) -> dict[str, list[str]]:
    """The names in `folder` by the live log they belong to; empty where it cannot be listed, which its files will show."""
    by_stem: dict[str, list[str]] = {}
    try:
        names = os.listdir(folder or os.curdir)
    except OSError:
        return by_stem
    for name in names:
        by_stem.setdefault(parse_rotated_name(name).stem, []).append(name)
    return by_stem


def joined_families(files: Sequence[SourceFile], unread: Unread) -> list[SourceFile]:
    """One source for each rotated family, at the place of its first member; everything else as it was."""
    by_family: dict[tuple[str, str], list[SourceFile]] = {}
    for file in files:
        folder, name = os.path.split(file.path)
        # Standard input and FIFOs do not rotate: a family of their own, which no stem can equal.
        stem = file.path + os.sep if file.size_bytes is None else parse_rotated_name(name).stem
        by_family.setdefault((os.path.realpath(folder), stem), []).append(file)
    return [_family(members, unread) for members in by_family.values()]


def _family(files: list[SourceFile], unread: Unread) -> SourceFile:
    if len(files) == 1:
        return files[0]
    by_name = {os.path.basename(file.path): file for file in files}
    members = [by_name[name] for name in oldest_first(by_name)]
    if len(members) < len(files):
        unread.add("packed_copy", len(files) - len(members))
    newest = members[-1]
    size_bytes = sum(member.size_bytes or 0 for member in members)
    return SourceFile(newest.path, size_bytes, newest.modified_at, tuple(member.path for member in members))
