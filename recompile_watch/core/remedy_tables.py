"""Remedies as data: what the TOML files may say, and the catalog that they make.

The files hold ``[[remedy]]``, ``[[case]]``, ``[[setting]]``, ``[[known]]``, ``[[ineffective]]``, ``[[cause]]`` and ``[[remark]]``; docs/rules.md has
the reference.
"""

import string
import tomllib
from collections.abc import Iterable, Mapping
from typing import cast

import re2

from recompile_watch.core.errors import RuleError
from recompile_watch.core.models import Models
from recompile_watch.core.remedies import PATTERNS, Case, Catalog, Look, Remark, Remedy, Setting
from recompile_watch.core.rules import compile_pattern, late_pattern
from recompile_watch.core.versions import dotted, version_of, version_range

# What a remedy's texts may be built from; core/evidence.py fills them in from the log.
PLACEHOLDERS = frozenset(
    {
        "function", "place", "guard", "attribute", "tensor", "mark_dynamic", "mark_unbacked", "sources", "source_pattern", "limit", "variants",
        "printed_limit", "raised_limit", "made_at", "reason", "break_at", "setting", "instead", "sources_by_dimension",
        "disable_line", "disable_where", "disable_caution", "mode_line", "mode_where", "mode_caution", "mend", "batch_line", "batch_where",
        "callee", "holder", "structure", "state_line", "dtype", "lr_line", "clones", "grad_line", "to_gpu", "operator", "reorder_line", "loggers",
        "module", "config_module",
        "broken_on", "buckets", "padded", "backend", "hint", "hinted_config", "hinted_env", "constraint_line", "check_line", "option_line",
        "own_call", "compiled_at", "own_limit", "limit_key", "old_limit_key", "fixed_at", "fixing", "keys", "own_number",
        "tensor_line", "compiler_line", "cache_line", "dtype_line", "triton_line", "upgrade_line", "multiple_line", "class_named",
    }
)  # fmt: skip
KINDS = ("env", "config", "kwarg", "code", "ops")
_TEXTS = ("title", "apply", "where", "expect", "caution")
_REMEDY = {
    "key": str, "form": str, "title": str, "kind": str, "apply": str, "where": str, "restart": bool, "expect": str, "torch": str, "caution": str,
    "docs": str, "verified": str, "settings": list, "kinds": list, "without": list,
}  # fmt: skip
_CASE = {
    "id": str, "kinds": list, "causes": list, "patterns": list, "without": list, "stages": list, "reason": str, "function": str, "torch": str,
    "remedies": list,
}  # fmt: skip
_SETTING = {"name": str, "kind": str, "since": str, "sets": str, "note": str}
_INEFFECTIVE = {"names": list, "instead": str}
_KNOWN = {"names": list, "source": str}
_CAUSE = {"name": str, "looks": list, "never": str}
_REMARK = {"text": str, "means": str, "do": str}
_TABLES: dict[str, Mapping[str, type]] = {
    "remedy": _REMEDY,
    "case": _CASE,
    "setting": _SETTING,
    "ineffective": _INEFFECTIVE,
    "known": _KNOWN,
    "cause": _CAUSE,
    "remark": _REMARK,
}
_REQUIRED = {
    "remedy": ("key", "title", "kind", "apply", "where", "expect", "torch", "verified"), "case": ("id", "remedies"),
    "setting": ("name", "kind", "since"), "ineffective": ("names", "instead"), "known": ("names", "source"), "cause": ("name", "looks"),
    "remark": ("text", "means", "do"),
}  # fmt: skip

Tables = dict[str, list[dict[str, object]]]  # the entries of each table, without a mistake


def parse_tables(texts: Iterable[tuple[str, str]]) -> Tables:
    """What several TOML files say, each with its name. Raises RuleError with all mistakes, one line each."""
    tables: Tables = {name: [] for name in _TABLES}
    mistakes: list[str] = []
    for source, text in texts:
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            mistakes.append(f"{source}: not valid TOML: {error}")
            continue
        for name, entries in document.items():
            if name not in _TABLES or not isinstance(entries, list):
                mistakes.append(f"{source}: unknown table '{name}'; known are {', '.join(f'[[{known}]]' for known in _TABLES)}")
                continue
            for number, entry in enumerate(entries, 1):
                found = _mistakes(name, entry)
                mistakes += [f"{source}: {name} {entry.get('key') or entry.get('id') or number}: {mistake}" for mistake in found]
                if not found:
                    tables[name].append(entry)
    if not mistakes:
        mistakes = _unknown_names(tables)
    if mistakes:
        raise RuleError("\n".join(mistakes))
    return tables


def catalog_of(tables: Tables, models: Models) -> Catalog:
    """The catalog that the tables make, with the models."""
    settings = [_setting(entry) for entry in tables["setting"]]
    return Catalog(
        tuple(_remedy(entry) for entry in tables["remedy"]),
        tuple(_case(entry) for entry in tables["case"]),
        {setting.name: setting for setting in settings},
        {name: str(entry["instead"]) for entry in tables["ineffective"] for name in _list(entry, "names")},
        models,
        {str(entry["name"]): Look(_list(entry, "looks"), cast(str | None, entry.get("never"))) for entry in tables["cause"]},
        frozenset(name for entry in tables["known"] for name in _list(entry, "names")),
        tuple(Remark(**cast(dict[str, str], entry)) for entry in tables["remark"]),
    )


def _remedy(entry: dict[str, object]) -> Remedy:
    text = cast(dict[str, str], entry)
    versions = version_range(text["torch"])
    assert versions is not None
    return Remedy(
        text["key"], text["title"], text["kind"], text["apply"], text["where"], text["expect"], versions, text["verified"], text["torch"],
        bool(entry.get("restart", False)), text.get("caution"), text.get("docs"), _list(entry, "settings"), frozenset(_list(entry, "kinds")),
        frozenset(_list(entry, "without")), text.get("form", ""),
    )  # fmt: skip


def _case(entry: dict[str, object]) -> Case:
    kinds, causes, patterns, without, stages = (frozenset(_list(entry, name)) for name in ("kinds", "causes", "patterns", "without", "stages"))
    reason, function = (late_pattern(str(entry[name])) if name in entry else None for name in ("reason", "function"))
    torch = version_range(str(entry.get("torch", "")))
    return Case(str(entry["id"]), _list(entry, "remedies"), kinds, causes, patterns, without, stages, reason, function, torch)


def _setting(entry: dict[str, object]) -> Setting:
    since = version_of(str(entry["since"]))
    assert since is not None
    return Setting(str(entry["name"]), str(entry["kind"]), since, cast(str | None, entry.get("sets")), cast(str | None, entry.get("note")))


def _list(entry: dict[str, object], name: str) -> tuple[str, ...]:
    return tuple(cast(list[str], entry.get(name, [])))


def _mistakes(table: str, entry: dict[str, object]) -> list[str]:
    found = [f"key '{key}' is missing" for key in _REQUIRED[table] if key not in entry]
    for key, value in entry.items():
        wanted = _TABLES[table].get(key)
        if wanted is None:
            found.append(f"unknown key '{key}'")
        elif not isinstance(value, wanted) or (isinstance(value, list) and not all(isinstance(item, str) for item in value)):
            found.append(f"key '{key}' has the wrong type {type(value).__name__}")
    if found:
        return found
    if table == "remedy":
        found += _remedy_mistakes(cast(dict[str, str], entry))
    if table == "setting" and version_of(str(entry["since"])) is None:
        found.append("key 'since': write a version such as 2.7")
    if table == "case":
        found += [
            f"key 'patterns': unknown pattern '{name}'" for name in (*_list(entry, "patterns"), *_list(entry, "without")) if name not in PATTERNS
        ]
        if "torch" in entry and version_range(str(entry["torch"])) is None:
            found.append("key 'torch': write a range such as >=2.7 or >=2.1,<2.7")
        found += [f"key '{name}': RE2 cannot use it" for name in ("reason", "function") if name in entry and not _is_pattern(str(entry[name]))]
    return found


def _remedy_mistakes(entry: dict[str, str]) -> list[str]:
    found = []
    if entry["kind"] not in KINDS:
        found.append(f"key 'kind' must be one of {', '.join(KINDS)}")
    if version_range(entry["torch"]) is None:
        found.append("key 'torch': write a range such as >=2.7 or >=2.1,<2.7")
    for name in _TEXTS:
        try:
            used = {part[1] for part in string.Formatter().parse(entry.get(name, "")) if part[1] is not None}
        except ValueError as error:
            found.append(f"key '{name}': {error}")
            continue
        found += [f"key '{name}': unknown placeholder '{{{word}}}'" for word in sorted(used - PLACEHOLDERS)]
    return found


def _is_pattern(pattern: str) -> bool:
    try:
        compile_pattern(pattern)
    except re2.error:
        return False
    return True


def _unknown_names(tables: Tables) -> list[str]:
    """What refers to something that no file defines: remedies of a case, settings of a remedy in its versions."""
    names = {str(entry.get("form", entry["key"])) for entry in tables["remedy"]}
    found = [f"case {entry['id']}: unknown remedy '{name}'" for entry in tables["case"] for name in _list(entry, "remedies") if name not in names]
    settings = {str(entry["name"]): version_of(str(entry["since"])) for entry in tables["setting"]}
    for entry in tables["remedy"]:
        versions = version_range(str(entry["torch"]))
        for name in _list(entry, "settings"):
            since = settings.get(name)
            if since is None:
                found.append(f"remedy {entry['key']}: '{name}' stands in no table of settings")
            elif versions is not None and not versions.lies_in(since):
                found.append(f"remedy {entry['key']}: '{name}' exists from torch {dotted(since)} on only")
    return found
