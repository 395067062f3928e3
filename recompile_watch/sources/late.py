"""Files that were read to their end and given up may grow all the same, and be packed then: a look at them now and then.

The cost is bounded: one `stat` for each of at most FORGET_BEYOND files of a stream, a folder only when something in it was made,
renamed or removed, and one packed file at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from recompile_watch.core.errors import SourceError
from recompile_watch.sources.content import open_content
from recompile_watch.sources.identity import open_holding
from recompile_watch.sources.marks import FileKey, Mark
from recompile_watch.sources.rotation import parse_rotated_name
from recompile_watch.sources.siblings import Sibling, family_of, folder_stamps

LATE_S = 30.0
# A packed file is unpacked so far to see whether it goes on after what was read of it; a longer one is read to find out.
_PEEKED_BYTES = 32 << 20


@dataclass(slots=True)
class Late:
    """What is looked at of one stream, and when again. places: by path, the files that were read to their end.

    packed: files that were packed lately, to be looked into; known: by inode and time, those that need not be. stamps, sought: of
    the folders, and the files looked for in them, when they were read last.
    """

    due: float = 0.0
    places: dict[str, FileKey] = field(default_factory=dict)
    packed: list[Sibling] = field(default_factory=list)
    known: set[tuple[FileKey, int]] = field(default_factory=set)
    stamps: tuple[int, ...] = ()
    sought: frozenset[FileKey] = frozenset()


def grown(late: Late, path: str, folders: Sequence[str], elders: Mapping[FileKey, Mark], packed_elder: Callable[[str], Mark | None]) -> list[Sibling]:
    """Files that go on after what was read of them.

    elders: the marks of what was read to its end, by file. packed_elder: gives that of a packed file. Raises OSError, SourceError.
    """
    stamps = folder_stamps(path, folders)
    if stamps != late.stamps or elders.keys() != late.sought:
        late.stamps, late.sought = stamps, frozenset(elders)
        _find(late, path, folders, elders)
    found: list[Sibling] = []
    for place, key in late.places.items():
        status = _status(place)
        if status is None or (status.st_dev, status.st_ino) != key:
            late.stamps = ()  # renamed while it was looked for
        elif status.st_size > elders[key].position and _is_still_of(place, elders[key]):
            found.append(Sibling(place, key, status.st_mtime_ns, None))
    if late.packed:
        sibling = late.packed.pop()
        late.known.add(_state(sibling))
        elder = packed_elder(sibling.path)
        if elder is not None and _goes_on(sibling.path, elder):
            found.append(sibling)
    return found


def _find(late: Late, path: str, folders: Sequence[str], elders: Mapping[FileKey, Mark]) -> None:
    family = family_of(path, folders)
    late.places = {place: key for place, key in family.keys_by_path.items() if key in elders and not _is_packed(place)}
    late.known &= {_state(sibling) for sibling in family.members}
    late.packed = [sibling for sibling in family.members if _state(sibling) not in late.known and sibling.is_packed]


def _state(sibling: Sibling) -> tuple[FileKey, int]:
    """An inode that was freed is often given to the file that is packed next."""
    return sibling.file_key, sibling.modified_ns


def _is_packed(path: str) -> bool:
    return parse_rotated_name(os.path.basename(path)).is_packed


def _is_still_of(path: str, elder: Mark) -> bool:
    try:
        content = open_holding(path, elder)
    except (OSError, SourceError):
        return False
    if content is not None:
        content.close()
    return content is not None


def _goes_on(path: str, elder: Mark) -> bool:
    content = open_content(path)
    try:
        return not content.seek(elder.position, _PEEKED_BYTES) or bool(content.read(elder.position, 1))
    finally:
        content.close()


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None
