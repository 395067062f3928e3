"""Where the events given out last stand: a message shows the lines around one of them."""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

MAX_PLACES = 10_000


class _Given(NamedTuple):
    """Events that were given out together. offsets: of each, ascending, in the file of this generation."""

    stream: str
    offsets: Sequence[int]
    generation: int


class Places:
    """The places of the latest events, as many as ``MAX_PLACES`` and what came with the last of them."""

    def __init__(self) -> None:
        self._given: deque[_Given] = deque()
        self._size = 0

    def add(self, stream: str, offsets: Sequence[int], generation: int) -> None:
        """Takes the places of events that follow each other."""
        self._given.append(_Given(stream, offsets, generation))
        self._size += len(offsets)
        while self._size - len(self._given[0].offsets) >= MAX_PLACES:
            self._size -= len(self._given.popleft().offsets)

    def generation_of(self, stream: str, offset: int) -> int | None:
        """The generation that holds the latest event of this place; None where it is not known any more."""
        for given in reversed(self._given):
            if given.stream == stream:
                index = bisect_left(given.offsets, offset)
                if index < len(given.offsets) and given.offsets[index] == offset:
                    return given.generation
        return None
