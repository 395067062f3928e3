"""File names become rotated families: which live log a name belongs to, and how old it is within it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from recompile_watch.core.late import pattern

# logrotate numbers (.1), its dateext in all usual formats (-20251030, -20251030-14, -20251030-140501, -1761832800), Python's
# TimedRotatingFileHandler (.2025-10-30_14-05-01), mongod (.2025-10-30T14-05-01), then an index within the date, then the packing.
_ROTATED = pattern(
    r"""(?P<stem>.+?)
    (?:[-._](?P<date>
        (?:19|20)\d\d-\d\d-\d\d (?:[T_-]\d\d(?:[-:]?\d\d){0,2})?
      | (?:19|20)\d{6} (?:[T_-]?\d{2,6})?
      | 1\d{9}
    ))?
    (?:\.(?P<number>\d{1,3}))?
    (?P<packing>\.gz|\.zst)?""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_DATED, _NUMBERED, _PACKED, _LIVE = range(4)


@dataclass(frozen=True, slots=True)
class RotatedName:
    """A file name taken apart.

    stem: the live log's name: `bot.log` for `bot.log.2.gz`.
    age: sorts a family oldest first: dated files by date and then by ascending index, numbered ones from the highest number
        down, then a packed one (`gzip bot.log` by hand), the live one last.
    is_packed: the name ends in .gz or .zst.
    """

    stem: str
    age: tuple[int, str, int]
    is_packed: bool


def parse_rotated_name(name: str) -> RotatedName:
    """`name` (no folder) taken apart; a name that is not rotated is the live log of its own family."""
    match = _ROTATED.fullmatch(name)
    if match is None:  # the empty name
        return RotatedName(name, (_LIVE, "", 0), False)
    is_packed = match["packing"] is not None
    number = int(match["number"] or 0)
    if match["date"] is not None:
        return RotatedName(match["stem"], (_DATED, re.sub(r"\D", "", match["date"]), number), is_packed)
    if match["number"] is not None:
        return RotatedName(match["stem"], (_NUMBERED, "", -number), is_packed)
    return RotatedName(match["stem"], (_PACKED if is_packed else _LIVE, "", 0), is_packed)


def oldest_first(names: Iterable[str]) -> list[str]:
    """The members of one family in the order they were written, without packed copies.

    While logrotate packs, `bot.log.1` and `bot.log.1.gz` stand side by side with the same content; the unpacked one is whole.
    """
    by_age: dict[tuple[int, str, int], str] = {}
    for name in sorted(names, key=_age_unpacked_first):
        by_age.setdefault(parse_rotated_name(name).age, name)
    return list(by_age.values())


def _age_unpacked_first(name: str) -> tuple[tuple[int, str, int], bool, str]:
    parsed = parse_rotated_name(name)
    return parsed.age, parsed.is_packed, name
