"""TOML tables become settings: frozen dataclasses, checked by their own annotations, with all mistakes at once.

The dataclass says everything: its fields are the keys, their defaults the defaults, its docstring the reference. A
field that ends in ``_s`` holds seconds and is written as a duration, without the ending: ``poll_interval = "1s"``; one
that ends in ``_bytes`` likewise as a size: ``max_state = "64MiB"``.
"""

import re
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from recompile_watch.core.likeness import close_matches
from recompile_watch.core.units import duration_text, parse_duration, parse_size

_T = TypeVar("_T")
_SECONDS, _BYTES = "_s", "_bytes"
_FORMS: Mapping[object, str] = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
_JSON_TYPES: Mapping[object, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
_SPACE = re.compile(r"\s+")


class _UnusableTableError(ValueError):
    """A table whose mistakes are noted already."""


class Key(NamedTuple):
    """One key of a table. field: its name in the dataclass. is_required: it has no default. doc: what it means."""

    name: str
    field: str
    type: object
    default: object
    is_required: bool
    doc: str


@dataclass(slots=True)
class Mistakes:
    """The mistakes found so far in one file, one line each: the file, the key, what is wrong and what to write.

    parsers: settings classes that are written as text, with what reads it (and raises ValueError).
    """

    file: str
    lines: list[str]
    parsers: Mapping[type, Callable[[str], object]] = field(default_factory=dict)

    def add(self, place: str, text: str) -> None:
        """Notes one mistake."""
        self.lines.append(f"{self.file}: {place}: {text}" if place else f"{self.file}: {text}")


def keys_of(kind: type, base: object = None) -> list[Key]:
    """The keys of the table that a settings class is made of, in the order of its fields. base: settings whose values are
    the defaults, instead of the class's own."""
    hints, docs = get_type_hints(kind), _docs(kind)
    found: list[Key] = []
    for item in fields(kind):
        is_required = item.default is MISSING and item.default_factory is MISSING
        default = item.default if item.default is not MISSING else None if item.default_factory is MISSING else item.default_factory()
        if isinstance(base, kind):
            is_required, default = False, getattr(base, item.name)
        found.append(Key(_written(item.name, hints[item.name]), item.name, hints[item.name], default, is_required, docs.get(item.name, "")))
    return found


def read_table(
    kind: type[_T], table: Mapping[str, object], place: str, mistakes: Mistakes, given: Mapping[str, object] | None = None, base: object = None
) -> _T | None:
    """The settings in a table; None when a mistake makes them unusable. given: fields that the table does not name.

    base: settings whose values hold where the table says nothing.
    """
    known = {key.name: key for key in keys_of(kind, base) if key.field not in (given or {})}
    note_unknown(table, known, place, mistakes)
    values: dict[str, object] = dict(given or {})
    is_whole = True
    for name, key in known.items():
        if name in table:
            try:
                values[key.field] = _value(table[name], key, _inside(place, name), mistakes)
            except _UnusableTableError:
                is_whole = False
            except ValueError as error:
                mistakes.add(_inside(place, name), str(error))
                is_whole = False
        elif key.is_required:
            mistakes.add(place, f"key '{name}' is missing: {key.doc or 'it has no default'}")
            is_whole = False
        else:
            values[key.field] = key.default
    if not is_whole:
        return None
    try:
        return kind(**values)
    except ValueError as error:  # what only all fields together can tell
        mistakes.add(place, str(error))
        return None


def note_unknown(table: Mapping[str, object], known: Collection[str], place: str, mistakes: Mistakes) -> None:
    """Notes the keys of a table that nothing reads."""
    for name in table:
        if name not in known:
            near = close_matches(name, known)
            mistakes.add(_inside(place, name), f"unknown key{f'; did you mean {near[0]!r}?' if near else ''}; known are {', '.join(sorted(known))}")


def reference(kind: type, place: str = "", as_text: Collection[type] = (), base: object = None) -> Iterator[tuple[str, str, str, str]]:
    """Every key that can be written: its full name, its form, its default, what it means. as_text: classes written as text."""
    for key in keys_of(kind, base):
        inner = _table_type(key.type, as_text)
        name = _inside(place, key.name)
        if inner is not None:
            origin = get_origin(_without_none(key.type))
            inside = f"[{name}]" if origin is tuple else f"{name}.NAME" if isinstance(origin, type) and issubclass(origin, Mapping) else name
            yield from reference(inner, inside, as_text, key.default)
        else:
            yield name, form_of(key), "" if key.is_required else default_text(key), key.doc


def form_of(key: Key) -> str:
    """How a value is written, in words."""
    if key.field.endswith(_SECONDS):
        return "duration"
    if key.field.endswith(_BYTES):
        return "size"
    return _form(_without_none(key.type))


def default_text(key: Key) -> str:
    """The default as it would be written."""
    value = key.default
    if value is None:
        return "none"
    if key.field.endswith(_SECONDS) and isinstance(value, int | float):
        return duration_text(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{item}"' if isinstance(item, str) else str(item) for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def json_schema(kind: type, as_text: Collection[type] = ()) -> dict[str, object]:
    """The table as a JSON Schema (draft 2020-12), for editors. as_text: classes written as text."""
    keys = keys_of(kind)
    properties: dict[str, object] = {key.name: {**_schema(_without_none(key.type), as_text, key), "description": key.doc} for key in keys}
    required = [key.name for key in keys if key.is_required]
    return {"type": "object", "properties": properties, "additionalProperties": False, **({"required": required} if required else {})}


def _schema(kind: object, as_text: Collection[type], key: Key | None = None) -> dict[str, object]:
    if key is not None and key.field.endswith((_SECONDS, _BYTES)):
        return {"type": "string", "examples": ["90s"] if key.field.endswith(_SECONDS) else ["64MiB"]}
    if isinstance(kind, type) and kind in as_text:
        return {"type": "string"}
    if is_dataclass(kind) and isinstance(kind, type):
        return json_schema(kind, as_text)
    origin = get_origin(kind)
    if origin is tuple:
        return {"type": "array", "items": _schema(get_args(kind)[0], as_text)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(get_args(kind)[1], as_text)}
    if _choices(kind):
        return {"enum": _choices(kind)}
    return {"type": _JSON_TYPES[kind]}


def _value(value: object, key: Key, place: str, mistakes: Mistakes) -> object:
    """The value of one key. Raises ValueError, which says what to write; notes the mistakes inside a table itself."""
    if key.field.endswith(_SECONDS):
        return parse_duration(value) if isinstance(value, str) else _wrong(value, 'a duration such as "90s"')
    if key.field.endswith(_BYTES):
        return parse_size(value) if isinstance(value, str) else _wrong(value, 'a size such as "64MiB"')
    return _typed(value, _without_none(key.type), place, mistakes, key.default)


def _typed(value: object, kind: object, place: str, mistakes: Mistakes, base: object = None) -> object:
    if isinstance(kind, type) and kind in mistakes.parsers:
        return mistakes.parsers[kind](value) if isinstance(value, str) else _wrong(value, "text")
    if is_dataclass(kind) and isinstance(kind, type):
        return _settled(read_table(kind, _table(value), place, mistakes, base=base))
    origin = get_origin(kind)
    if origin is tuple:
        items = value if isinstance(value, list) else _wrong(value, "a list")
        assert isinstance(items, list)
        return tuple(_typed(item, get_args(kind)[0], f"{place}[{index}]", mistakes) for index, item in enumerate(items, 1))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {name: _typed(item, get_args(kind)[1], _inside(place, name), mistakes) for name, item in _table(value).items()}
    choices = _choices(kind)
    if choices and value not in choices:
        return _wrong(value, "one of " + ", ".join(f'"{name}"' for name in choices))
    if choices:
        return kind(value) if isinstance(kind, type) else value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if (kind is float and is_number) or (kind is not float and type(value) is kind):
        return value
    return _wrong(value, _form(kind))


def _settled(settings: object) -> object:
    if settings is None:
        raise _UnusableTableError
    return settings


def _table(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        _wrong(value, "a table")
    assert isinstance(value, dict)
    return value


def _wrong(value: object, wanted: str) -> object:
    raise ValueError(f"{value!r:.80} is not {wanted}")


def _choices(kind: object) -> list[str]:
    """The words that a value of this type may be; empty when it is not one of a few words."""
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return [member.value for member in kind]
    return list(get_args(kind)) if get_origin(kind) is Literal else []


def _form(kind: object) -> str:
    if get_origin(kind) is tuple:
        return f"list of {_form(get_args(kind)[0])}"
    if _choices(kind):
        return " or ".join(f'"{name}"' for name in _choices(kind))
    return _FORMS.get(kind, "text" if isinstance(kind, type) and is_dataclass(kind) else "a table")


def _table_type(kind: object, as_text: Collection[type]) -> type | None:
    """The settings class of a key that is a table, a list of tables, or a table of tables."""
    plain = _without_none(kind)
    candidates = [plain, *get_args(plain)]
    return next((item for item in candidates if isinstance(item, type) and is_dataclass(item) and item not in as_text), None)


def _without_none(kind: object) -> object:
    if get_origin(kind) in (Union, types.UnionType):
        return next(item for item in get_args(kind) if item is not type(None))
    return kind


def _written(field: str, kind: object) -> str:
    if _without_none(kind) in (float, int):
        return field.removesuffix(_SECONDS).removesuffix(_BYTES)
    return field


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _docs(kind: type) -> dict[str, str]:
    """What the class's docstring says of each field, in the form ``name: meaning.`` or ``name, other: meaning.``"""
    names = [item.name for item in fields(kind)]
    text = _SPACE.sub(" ", kind.__doc__ or "")
    name = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    heads: Sequence[re.Match[str]] = list(re.finditer(rf"(?:(?<=^)|(?<=[.;] ))(?P<names>(?:{name})(?:, (?:{name}))*): ", text)) if names else []
    docs: dict[str, str] = {}
    for head, after in zip(heads, [*heads[1:], None], strict=True):
        meaning = text[head.end() : after.start() if after else len(text)].strip()
        docs.update(dict.fromkeys(head["names"].split(", "), meaning))
    return docs
