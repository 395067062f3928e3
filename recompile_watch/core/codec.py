"""Dataclasses as JSON values and back, so that what the watch remembers survives a restart.

Known are None, bool, int, float, str, enums, times, events, tuples, lists, dictionaries with text keys, unions and
dataclasses of these, as the annotations say.
"""

import types
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from recompile_watch.core.errors import StoreError
from recompile_watch.core.events import Event, event_from_json, event_state

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
T = TypeVar("T")


def to_json(value: object) -> Json:
    """The value as JSON."""
    match value:
        case Enum():
            return cast(Json, value.value)
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return value.isoformat()
        case Event():
            return cast(Json, event_state(value))
        case Mapping():
            return {str(key): to_json(item) for key, item in value.items()}
        case list() | tuple() | frozenset() | set():
            return [to_json(item) for item in (sorted(value) if isinstance(value, frozenset | set) else value)]
    if is_dataclass(value):
        return {name: to_json(getattr(value, name)) for name in _hints(value.__class__)}
    raise TypeError(f"{type(value).__name__} has no JSON form")


def from_json(kind: type[T], value: object) -> T:
    """The value of such a type. Raises StoreError when it is none: what was remembered is damaged or of another version."""
    try:
        return cast(T, _made(kind, value))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"the remembered {kind.__name__} cannot be read ({error}); move the state directory away to start anew") from None


@lru_cache(maxsize=256)
def _hints(kind: Hashable) -> Mapping[str, object]:
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in fields(kind)}  # type: ignore[arg-type]


def _made(kind: object, value: object) -> object:
    origin = get_origin(kind)
    if origin is not None:
        return _made_of(origin, get_args(kind), value)
    if kind is object or (kind is type(None) and value is None):
        return value
    if not isinstance(kind, type):
        raise TypeError(f"{kind} is not known")
    if kind is Event:
        return event_from_json(cast(Mapping[str, object], value))
    if kind is datetime:
        return datetime.fromisoformat(cast(str, value))
    if is_dataclass(kind):
        mapping, hints = cast(Mapping[str, object], value), _hints(kind)
        unknown = sorted(set(mapping) - set(hints))
        if unknown:
            raise ValueError(f"it has {unknown[0]!r:.80}, which this version does not know")
        return kind(**{name: _made(hint, mapping[name]) for name, hint in hints.items() if name in mapping})
    if issubclass(kind, Enum):
        return kind(value)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"{value!r:.80} is no {kind.__name__}")
    return value


def _made_of(origin: object, inner: tuple[object, ...], value: object) -> object:
    if origin in (Union, types.UnionType):
        return _made_one(inner, value)
    if origin is tuple:
        items = cast(Sequence[object], value)
        wanted = [inner[0]] * len(items) if len(inner) == 2 and inner[1] is Ellipsis else list(inner)
        return tuple(_made(one, item) for one, item in zip(wanted, items, strict=True))
    if origin is list:
        return [_made(inner[0], item) for item in cast(Sequence[object], value)]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {str(key): _made(inner[1], item) for key, item in cast(Mapping[str, object], value).items()}
    raise TypeError(f"{origin} is not known")


def _made_one(choices: tuple[object, ...], value: object) -> object:
    """The value as the first of several types that it fits; whole numbers stay whole."""
    if value is None and type(None) in choices:
        return None
    if type(value) in choices:
        return value
    for choice in choices:
        try:
            return _made(choice, value)
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
    raise TypeError(f"{value!r:.80} fits none of {choices}")
