"""Patterns that are compiled when they are first used.

The program has hundreds, of which one log needs a few dozen; to compile one costs as much as to read a hundred lines.
"""

import re
from collections.abc import Callable
from functools import cached_property, partial
from typing import AnyStr, TypeVar, cast

T = TypeVar("T")


class Late:
    """Stands for what ``make`` will give; each of its attributes costs the detour over this class once."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> object:
        return self._make()

    def __getattr__(self, name: str) -> object:
        """Called for what is not there yet."""
        found = getattr(self._made, name)
        setattr(self, name, found)
        return found


def late(make: Callable[[], T]) -> T:
    """What ``make`` gives, made when it is first used. It is equal to nothing else, nor is it the ``re`` of its matches."""
    return cast(T, Late(make))


def pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """``re.compile`` for a pattern that many runs do not need. What is wrong with it is said when it is first used."""
    return late(partial(re.compile, source, flags))
