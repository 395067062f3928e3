"""Notices as JSON, to be kept over a restart, and back."""

import types
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from enum import StrEnum
from typing import Union, cast, get_args, get_origin, get_type_hints

from recompile_watch.core.errors import StoreError
from recompile_watch.core.notices import Notice


def notice_to_json(notice: Notice) -> dict[str, object]:
    """The notice as a JSON object, its fields by name."""
    return asdict(notice)


def notice_from_json(value: object) -> Notice:
    """The notice in a JSON object. Raises StoreError for anything else, such as one of a later version."""
    try:
        return cast(Notice, _decoded(Notice, value))
    except (TypeError, ValueError, KeyError):
        raise StoreError("a stored notice cannot be read; it was written by another version") from None


def _decoded(kind: object, value: object) -> object:
    """A value of a type, made of what JSON has for it. Raises TypeError, KeyError or ValueError where they do not fit."""
    if get_origin(kind) in (Union, types.UnionType):
        return None if value is None else _decoded(get_args(kind)[0], value)
    if get_origin(kind) is tuple:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise TypeError
        return tuple(_decoded(get_args(kind)[0], item) for item in value)
    if not isinstance(kind, type):
        raise TypeError
    if is_dataclass(kind):
        return _built(kind, value)
    if issubclass(kind, StrEnum):
        return kind(str(value))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError
    return value


def _built(kind: type, value: object) -> object:
    """A dataclass; fields that the JSON lacks get their defaults, fields that it has too many are passed over."""
    if not isinstance(value, Mapping):
        raise TypeError
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    return kind(**{name: _decoded(hints[name], value[name]) for name in names if name in value})
