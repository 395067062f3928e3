"""Models files: TOML text becomes profiles, several files become one, and every mistake is told with its file and key."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from recompile_watch.core.errors import ConfigError
from recompile_watch.core.late import pattern
from recompile_watch.core.models import DEFAULTS, DOES, MODES, READ_AT, DatedDefault, Model, Models, ModelSetting

_NAME = pattern(r"[A-Za-z0-9][\w.-]{0,63}")
_VARIABLE = pattern(r"[A-Za-z_]\w{0,127}")
_WORD = pattern(r"[\w.,:/+-]{1,64}")  # what may stand in a line that a person pastes into a shell
MODEL_KEYS: Mapping[str, type] = {
    "title": str, "paths": list, "functions": list, "lines": list, "default": str, "limits": list, "declared": str, "env_file": str,
    "caution": str, "settings": list,
}  # fmt: skip
SETTING_KEYS: Mapping[str, type] = {
    "names": list, "does": str, "use": str, "on": list, "off": list, "values": list, "default": str, "defaults": list, "read": str, "where": str,
    "note": str,
}  # fmt: skip
_CHOICES = {"does": DOES, "read": READ_AT}
_MODEL_CHOICES = {"default": DEFAULTS, "declared": (*MODES, "compiled")}
_TABLE_LISTS = ("defaults", "limits")

_Table = Mapping[str, object]


@dataclass(slots=True)
class _Found:
    """What all files say so far, the later on top: keys of each model, settings by their first name, and every mistake."""

    models: dict[str, dict[str, object]] = field(default_factory=dict)
    settings: dict[str, dict[str, ModelSetting]] = field(default_factory=dict)
    program: dict[str, ModelSetting] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)


def parse_models(texts: Iterable[tuple[str, str]]) -> Models:
    """The models of several files, each with its name; a later file adds to an earlier one and replaces what it names again.

    Raises ConfigError with all mistakes, one line each.
    """
    found = _Found()
    for source, text in texts:
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found.mistakes.append(f"{source}: not valid TOML: {error}")
            continue
        _read(document, source, found)
    if found.mistakes:
        raise ConfigError("\n".join(found.mistakes))
    # A model of a later file is asked first, so that its paths win over those of the profile that ships.
    models = [_model(name, keys, found.settings.get(name, {})) for name, keys in found.models.items()]
    return Models(tuple(models), tuple(found.program.values()))


def _read(document: _Table, source: str, found: _Found) -> None:
    found.mistakes += [f"{source}: unknown key '{key}'; write [models.NAME] or [[settings]]" for key in document if key not in ("models", "settings")]
    models = document.get("models", {})
    if not isinstance(models, dict):
        found.mistakes.append(f"{source}: key 'models': write [models.NAME] for each model")
        models = {}
    for name, table in models.items():
        _read_model(name, table, f"{source}: models.{name}", found)
    found.models = {**{name: found.models[name] for name in models if name in found.models}, **found.models}
    _add_settings(document.get("settings", []), f"{source}: settings", found.program, found.mistakes)


def _read_model(name: str, table: object, at: str, found: _Found) -> None:
    if not _NAME.fullmatch(name):
        found.mistakes.append(f"{at}: a model's name is letters, digits, '.', '_' and '-'")
        return
    if not isinstance(table, dict):
        found.mistakes.append(f"{at}: write [models.{name}]")
        return
    wrong = [*_key_mistakes(table, MODEL_KEYS, _MODEL_CHOICES), *_limit_mistakes(table)]
    if name not in found.models and not any(table.get(key) for key in ("paths", "functions", "lines")):
        wrong.append("a new model needs key 'paths', 'functions' or 'lines', else nothing belongs to it")
    found.mistakes += [f"{at}: {mistake}" for mistake in wrong]
    if not wrong:
        known = found.models.get(name, {})
        found.models[name] = {**known, **{key: value for key, value in table.items() if key != "settings"}}
    _add_settings(table.get("settings", []), f"{at}.settings", found.settings.setdefault(name, {}), found.mistakes)


def _add_settings(tables: object, at: str, known: dict[str, ModelSetting], mistakes: list[str]) -> None:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        mistakes.append(f"{at}: write [[{at.partition(': ')[2]}]] with two brackets")
        return
    seen: set[str] = set()
    for number, table in enumerate(tables, 1):
        wrong = [*_key_mistakes(table, SETTING_KEYS, _CHOICES)]
        wrong = wrong or [
            *_setting_mistakes(table),
            *(f"key 'names': '{name}' stands in another entry" for name in _texts(table, "names") if name in seen),
        ]
        mistakes += [f"{at} {number}: {mistake}" for mistake in wrong]
        if wrong:
            continue
        setting = _setting(table)
        seen.update(setting.names)
        for first in [first for first, old in known.items() if set(old.names) & set(setting.names)]:
            del known[first]  # it says the same thing anew
        known[setting.names[0]] = setting


def _key_mistakes(table: _Table, keys: Mapping[str, type], choices: Mapping[str, Sequence[str]]) -> Iterable[str]:
    for key, value in table.items():
        wanted = keys.get(key)
        if wanted is None:
            yield f"unknown key '{key}'; known are {', '.join(keys)}"
        elif not isinstance(value, wanted):
            yield f"key '{key}' must be a {'list' if wanted is list else 'text'}"
        elif isinstance(value, list) and key not in ("settings", *_TABLE_LISTS) and not all(isinstance(item, str) and item.strip() for item in value):
            yield f"key '{key}' must be a list of texts that are not empty"
        elif key in choices and value not in choices[key]:
            yield f"key '{key}' must be one of {', '.join(choices[key])}"


def _limit_mistakes(table: _Table) -> Iterable[str]:
    limits = table.get("limits", [])
    if isinstance(limits, list) and not all(isinstance(one, dict) and set(one) == {"line", "limit"} and _is_limit(one) for one in limits):
        yield "key 'limits': write { line = \"text of a line\", limit = 64 } for each"


def _is_limit(one: _Table) -> bool:
    limit = one["limit"]
    return isinstance(one["line"], str) and bool(one["line"]) and isinstance(limit, int) and not isinstance(limit, bool) and limit > 0


def _setting_mistakes(table: _Table) -> Iterable[str]:
    names, use = _texts(table, "names"), table.get("use")
    if not names:
        yield "key 'names' is missing: the variables that are read, the one that wins first"
    yield from (f"key 'names': '{name}' is no name of a variable" for name in names if not _VARIABLE.fullmatch(name))
    if "does" not in table:
        yield f"key 'does' is missing: one of {', '.join(DOES)}"
    if use is not None and use not in names:
        yield f"key 'use': '{use}' is none of its names"
    for key in ("on", "off", "values"):
        yield from (f"key '{key}': '{word}' is no plain word" for word in _texts(table, key) if not _WORD.fullmatch(word))
    if table.get("does") in ("disable", "enable") and not table.get("on"):
        yield "key 'on' is missing: the words that count as yes"
    both = sorted({word.lower() for word in _texts(table, "on")} & {word.lower() for word in _texts(table, "off")})
    yield from (f"keys 'on' and 'off' both hold '{word}'" for word in both)
    dated = table.get("defaults", [])
    if isinstance(dated, list) and not all(_is_dated(one) for one in dated):
        yield 'key \'defaults\': write { since = "2025-11-05", value = "reduce-overhead" } for each'


def _is_dated(one: object) -> bool:
    if not isinstance(one, dict) or set(one) != {"since", "value"} or not all(isinstance(text, str) for text in one.values()):
        return False
    try:
        date.fromisoformat(one["since"])
    except ValueError:
        return False
    return True


def _setting(table: _Table) -> ModelSetting:
    names = _texts(table, "names")
    dated = table.get("defaults", [])
    assert isinstance(dated, list)
    on, off = (tuple(word.lower() for word in _texts(table, key)) for key in ("on", "off"))
    return ModelSetting(
        names, str(table["does"]), str(table.get("use", names[0])), on, off, _texts(table, "values"), _text(table, "default"),
        tuple(DatedDefault(one["since"], one["value"]) for one in dated), str(table.get("read", "load")), _text(table, "where"), _text(table, "note"),
    )  # fmt: skip


def _model(name: str, keys: _Table, settings: Mapping[str, ModelSetting]) -> Model:
    limits = keys.get("limits", [])
    assert isinstance(limits, list)
    paths, functions, lines = (_texts(keys, key) for key in ("paths", "functions", "lines"))
    return Model(
        name, str(keys.get("title", name)), paths, functions, lines, str(keys.get("default", "varies")), tuple(settings.values()),
        tuple((str(one["line"]), int(one["limit"])) for one in limits), _text(keys, "declared"), _text(keys, "env_file"), _text(keys, "caution"),
    )  # fmt: skip


def _texts(table: _Table, key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _text(table: _Table, key: str) -> str | None:
    value = table.get(key)
    return value if isinstance(value, str) else None
