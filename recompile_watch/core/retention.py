"""Retention: how long the watch keeps what is over, and which rows of its memory have served."""

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from recompile_watch.core.bounds import at_least, insist

DAY_S = 86_400.0
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How long the watch keeps what is over; it is deleted when it is older, or when there is more of it.

    incidents_s: an incident that is over, for ``incidents list --all``. max_incidents: so many of them, the latest.
    dead_letters_s: a message that reached nobody. max_dead_letters: so many of them, the latest.
    series_s: the numbers of an hour. max_series: so many different ones in a week; further ones are not kept.
    files_s: how far a file was read that is gone, or that no source names any more. What is still on the disk is kept.
    """

    incidents_s: float = 90 * DAY_S
    max_incidents: int = 5_000
    dead_letters_s: float = 30 * DAY_S
    max_dead_letters: int = 500
    series_s: float = 90 * DAY_S
    max_series: int = 300
    files_s: float = 30 * DAY_S

    def __post_init__(self) -> None:
        insist(at_least(0, max_incidents=self.max_incidents, max_dead_letters=self.max_dead_letters, max_series=self.max_series))


class Archive(Generic[K]):
    """Rows that nothing changes any more, in the order in which they were put here."""

    def __init__(self, keep_s: float, most: int) -> None:
        self._keep_s, self._most = keep_s, most
        self._at: dict[K, float] = {}

    def __len__(self) -> int:
        return len(self._at)

    def put(self, key: K, at: float) -> None:
        """Takes a row. at: when it became what it is, in epoch seconds."""
        self._at[key] = at

    def served(self, now: float, most: int) -> list[K]:
        """The rows to delete, which are gone from here: what is beyond the bound, and at most so many that are too old."""
        found = list(islice(self._at, max(0, len(self._at) - self._most)))
        for key, at in islice(self._at.items(), len(found), len(found) + most):
            if now - at <= self._keep_s:
                break
            found.append(key)
        for key in found:
            del self._at[key]
        return found
