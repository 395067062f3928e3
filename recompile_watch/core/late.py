"""Patterns that are compiled when they are first used.

The program has hundreds, of which one log needs a few dozen; to compile one costs as much as to read a hundred lines.
"""

import re
from typing import AnyStr, cast

_METHODS = ("match", "fullmatch", "search", "finditer", "findall", "split", "sub", "subn", "pattern", "groupindex", "flags")


class _Late:
    """Stands for a pattern; becomes as fast as one with its first use."""

    __slots__ = ("_flags", "_source", *_METHODS)

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> object:
        """Called for what is not there yet."""
        compiled = re.compile(self._source, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return object.__getattribute__(self, name)


def pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """``re.compile`` for a pattern that many runs do not need.

    What is wrong with it is said when it is first used. The ``re`` of its matches is not what this returns.
    """
    return cast("re.Pattern[AnyStr]", _Late(source, flags))
