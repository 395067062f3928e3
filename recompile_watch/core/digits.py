"""Lines that differ in their digits only: what is read of one is remembered for all that have its shape.

The shape of a line is the line with every digit made a zero.
"""

from collections.abc import MutableMapping, MutableSet
from typing import TypeVar

TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
TEXT_TO_ZERO = str.maketrans("123456789", "000000000")
_MAX_REMEMBERED = 10_000

Key = TypeVar("Key")
Known = TypeVar("Known")


def make_room(known: MutableMapping[Key, Known] | MutableSet[Key]) -> None:
    """Forgets everything once too much is remembered: a log may be made of nothing but new shapes."""
    if len(known) >= _MAX_REMEMBERED:
        known.clear()
