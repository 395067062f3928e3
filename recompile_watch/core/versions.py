"""Versions of torch, and ranges of them such as ``>=2.7,<2.12``."""

import re
from typing import NamedTuple

Version = tuple[int, int]
_VERSION = re.compile(r"v?(\d{1,3})\.(\d{1,3})")
_BOUND = re.compile(r"(>=|<)(\d{1,3})\.(\d{1,3})")


def version_of(text: str | None) -> Version | None:
    """``(2, 9)`` of ``2.9.1+cu128``; None when it is no version."""
    match = _VERSION.match(text or "")
    return (int(match[1]), int(match[2])) if match else None


def dotted(version: Version) -> str:
    """``2.9`` of a version."""
    return f"{version[0]}.{version[1]}"


class VersionRange(NamedTuple):
    """Versions from ``first`` on and before ``end`` (None: no end)."""

    first: Version
    end: Version | None

    def overlaps(self, other: "VersionRange") -> bool:
        """True when some version lies in both."""
        return (self.end is None or other.first < self.end) and (other.end is None or self.first < other.end)

    def covers(self, other: "VersionRange") -> bool:
        """True when every version of the other lies in this one."""
        return self.first <= other.first and (self.end is None or (other.end is not None and other.end <= self.end))

    @property
    def only(self) -> Version | None:
        """The version, where the range holds one only."""
        return self.first if self.end is not None and self.end == (self.first[0], self.first[1] + 1) else None

    def lies_in(self, since: Version) -> bool:
        """True when every version of the range is ``since`` or later."""
        return self.first >= since


ANY_VERSION = VersionRange((0, 0), None)


# torch._dynamo.config.recompile_limit, before 2.6 cache_size_limit: 64 in 2.0 and 2.1, 8 from 2.2 to 2.15.
DEFAULT_LIMIT, _FIRST_LIMIT = 8, 64
_LIMIT_LOWERED_IN: Version = (2, 2)
FIRST_VERSION: Version = (2, 0)


def default_limit(torch: VersionRange) -> int:
    """The recompile limit where nobody sets one, the lower one where the versions differ."""
    return _FIRST_LIMIT if torch.end is not None and torch.end <= _LIMIT_LOWERED_IN else DEFAULT_LIMIT


def exactly(version: Version) -> VersionRange:
    """The range that holds one version only."""
    return VersionRange(version, (version[0], version[1] + 1))


def version_range(text: str) -> VersionRange | None:
    """The range that a text such as ``>=2.7,<2.12`` names; None when it names none."""
    first, end = None, None
    for part in text.split(","):
        bound = _BOUND.fullmatch(part.strip())
        if bound is None:
            return None
        version = (int(bound[2]), int(bound[3]))
        if bound[1] == ">=":
            first = version
        else:
            end = version
    return None if first is None else VersionRange(first, end)


def told_range(text: str) -> VersionRange:
    """The versions that a log tells of: ``2.13``; or a bound, ``<2.3`` or ``>=2.7``. Any version where the text names none."""
    version = version_of(text)
    if version is not None:
        return exactly(version)
    return version_range(text if text.startswith(">=") else f">=2.0,{text}") or ANY_VERSION


def surer(known: object, told: object) -> object:
    """Of two such texts about one program the one that names a version; else the first that is there."""
    names_version = [isinstance(text, str) and version_of(text) is not None for text in (known, told)]
    return told if known is None or names_version == [False, True] else known
