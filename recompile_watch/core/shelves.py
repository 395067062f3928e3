"""Shelves: remembered parts under keys, with a bound, that know which of them changed.

One step of the watch changes few parts, so that committing it writes little.
"""

from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from typing import Generic, Protocol, TypeVar, cast

from recompile_watch.core.codec import Json, from_json, to_json
from recompile_watch.core.errors import StoreError

T = TypeVar("T")


class KeyedParts(Protocol):
    """What every shelf can tell, whatever lies on it. number: of the latest change."""

    name: str
    number: int

    def changes(self) -> dict[str, Json]: ...
    def everything(self) -> dict[str, Json]: ...
    def fade(self, number: int) -> None: ...


def always(part: object) -> bool:
    """Every part fades."""
    return True


def never(part: object) -> bool:
    """No part fades."""
    return False


class Shelf(Generic[T]):
    """Parts of one type under ``<name>/<key>``, the least recently changed first; beyond ``cap`` that one is dropped.

    dropped: how many were dropped so far, since the start. fades: whether a part may be forgotten that was not touched for long.
    """

    def __init__(self, name: str, kind: type[T], parts: Mapping[str, object], cap: int, fades: Callable[[T], bool] = never) -> None:
        self.name = name
        self._prefix, self._cap, self._fades = f"{name}/", cap, fades
        self._changed: set[str] = set()
        self.dropped = 0
        found = [(key.removeprefix(self._prefix), cast(Mapping[str, object], part)) for key, part in parts.items() if key.startswith(self._prefix)]
        try:
            self._numbers = {key: from_json(int, part["n"]) for key, part in found}
            found.sort(key=lambda item: self._numbers[item[0]])
            self._items: dict[str, T] = {key: from_json(kind, part["is"]) for key, part in found}
        except (KeyError, TypeError):
            raise StoreError(f"the remembered '{name}' cannot be read; move the state directory away to start anew") from None
        self.number = max(self._numbers.values(), default=0)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def get(self, key: str) -> T | None:
        """The part of a key."""
        return self._items.get(key)

    def values(self) -> ValuesView[T]:
        """All parts, the least recently changed first."""
        return self._items.values()

    def items(self) -> ItemsView[str, T]:
        """All keys and parts, the least recently changed first."""
        return self._items.items()

    def put(self, key: str, part: T) -> None:
        """Keeps a part, new or changed."""
        self._items.pop(key, None)
        self._items[key] = part
        self.number += 1
        self._numbers[key] = self.number
        self._changed.add(key)
        if len(self._items) > self._cap:
            self.dropped += 1
            self.drop(next(iter(self._items)))

    def drop(self, key: str) -> None:
        """Forgets a part."""
        if self._items.pop(key, None) is not None:
            del self._numbers[key]
            self._changed.add(key)

    def fade(self, number: int) -> None:
        """Forgets what fades and was last changed by this number or before it."""
        for key in [key for key, part in self._items.items() if self._numbers[key] <= number and self._fades(part)]:
            self.drop(key)

    @property
    def changed(self) -> list[str]:
        """The keys that changed since ``changes`` was called last."""
        return sorted(self._changed)

    def changes(self) -> dict[str, Json]:
        """What changed since the last call, None for what was forgotten."""
        if not self._changed:
            return {}
        found = {self._prefix + key: self._json(key) for key in sorted(self._changed)}
        self._changed.clear()
        return found

    def everything(self) -> dict[str, Json]:
        """All parts."""
        return {self._prefix + key: self._json(key) for key in self._items}

    def _json(self, key: str) -> Json:
        part = self._items.get(key)
        return None if part is None else {"n": self._numbers[key], "is": to_json(part)}
