"""Finds and reads what the user and the package configure: rules, remedies, models and their env files, workloads, settings.

What only a report needs is loaded by the functions that read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from recompile_watch.core.errors import ConfigError, RuleError
from recompile_watch.core.rules import Rule, Ruleset, merge, parse_rules, rule_of
from recompile_watch.core.scan import LiteralMatcher, Matcher, expressions_of
from recompile_watch.kept import State, keep, kept, read_once

if TYPE_CHECKING:
    from recompile_watch.core.env_file import EnvFile
    from recompile_watch.core.models import Models
    from recompile_watch.core.remedies import Catalog

if TYPE_CHECKING:
    from recompile_watch.respond.diagnose_settings import DiagnoseSettings

_ENDING = ".toml"
_KEPT_RULES, _KEPT_CATALOG, _KEPT_LITERALS = "rules.json", "catalog.json", "literals.hs"
CATALOG_FOLDERS = ("remedies", "settings")
_MODELS_FOLDER = "models"
_MAX_RULE_FILE_BYTES = 4 << 20
_MAX_TEXT_BYTES = 256 << 20
_MAX_ENV_BYTES = 1 << 20

Entries = dict[str, list[dict[str, object]]]  # of JSON: the entries of each file, or of each table


def load_rules(extra: Sequence[Path] = ()) -> Ruleset:
    """The shipped rules and those of the folders (or files) ``extra``; a later rule replaces an earlier one of its id.

    Raises RuleError with all mistakes, one line each.
    """
    return merge([*_shipped_rules(), *read_rules(extra)])


def load_matcher(rules: Ruleset) -> Matcher:
    """The matcher of the rules' literals, compiled unless it was kept."""
    literals = rules.literals
    state: State = [expression.decode("latin-1") for expression in expressions_of(literals)]
    known = kept(_KEPT_LITERALS, state)
    matcher = LiteralMatcher(literals, known)
    compiled = matcher.compiled()
    if compiled != known:
        keep(_KEPT_LITERALS, state, compiled)
    return matcher


def read_rules(places: Sequence[Path]) -> list[list[Rule]]:
    """The rules of each file in ``places``, sorted by name. Raises RuleError with all mistakes, one line each."""
    return _rules(_read_entries(places))


def _shipped_rules() -> list[list[Rule]]:
    """The shipped rules, as they were kept if they were."""
    mistakes: list[str] = []
    files = _rule_files(shipped_rules(), mistakes)
    if mistakes:
        raise RuleError("\n".join(mistakes))
    return _rules(read_once(_KEPT_RULES, files, lambda: _read_entries(files)))


def _rules(files: Entries) -> list[list[Rule]]:
    return [[rule_of(entry, file) for entry in entries] for file, entries in files.items()]


def _read_entries(places: Sequence[Path]) -> Entries:
    """The entries of each file. Raises RuleError with all mistakes, one line each."""
    files: Entries = {}
    mistakes: list[str] = []
    for place in places:
        for file in _rule_files(place, mistakes):
            try:
                entries, wrong = parse_rules(_rule_text(file), str(file))
            except ConfigError as error:
                mistakes.append(str(error))
                continue
            files[str(file)] = entries
            mistakes += [str(error) for error in wrong]
            mistakes += _twice(entries, str(file))
    if mistakes:
        raise RuleError("\n".join(mistakes))
    return files


def load_catalog(models_file: str | None = None) -> Catalog:
    """The remedies, cases, settings and models that ship with the rules; with the user's own models.

    Raises RuleError or ConfigError with all mistakes.
    """
    from recompile_watch.core.remedy_tables import catalog_of, parse_tables

    files = _catalog_files(*CATALOG_FOLDERS)
    tables = read_once(_KEPT_CATALOG, files, lambda: parse_tables(_texts(files)))
    return catalog_of(tables, load_models(models_file))


def load_models(models_file: str | None = None) -> Models:
    """The models that ship, and those of the user's file, which adds to them. Raises ConfigError with all mistakes."""
    from recompile_watch.core.model_files import parse_models

    texts = _texts(_catalog_files(_MODELS_FOLDER))
    if models_file is not None:
        text = _text(Path(models_file), _MAX_RULE_FILE_BYTES, "; --models takes a file", "; a models file is a page of text", "; save it as UTF-8")
        texts.append((models_file, text))
    return parse_models(texts)


def read_env_files(models: Models, models_file: str | None) -> tuple[tuple[EnvFile, ...], tuple[str, ...]]:
    """The env files that the models name, each once, and a line for each that cannot be read or not to its end.

    A relative path counts from the folder of the models file.
    """
    from recompile_watch.core.env_file import parse_env_file

    folder = Path(models_file).parent if models_file is not None else Path()
    files: list[EnvFile] = []
    errors: list[str] = []
    for path in dict.fromkeys(folder / model.env_file for model in models.models if model.env_file is not None):
        try:
            with path.open("rb") as stream:
                data = stream.read(_MAX_ENV_BYTES + 1)
        except OSError as error:
            errors.append(f"{path}: cannot be read ({error.strerror}); key 'env_file' of the models file names a shell file")
            continue
        files.append(parse_env_file(str(path), data[:_MAX_ENV_BYTES].decode("utf-8", "replace")))
        if len(data) > _MAX_ENV_BYTES:
            errors.append(f"{path}: larger than {_MAX_ENV_BYTES >> 20} MiB; is it the right env file?")
        if files[-1].open_quote is not None:
            errors.append(f"{path}: the quote that opens in line {files[-1].open_quote} is never closed; what follows was not read")
    return tuple(files), tuple(errors)


def _catalog_files(*folders: str) -> list[Path]:
    """The TOML files of the folders beside the rules."""
    return [file for name in folders for file in sorted((shipped_rules() / name).glob(f"*{_ENDING}"))]


def _texts(files: Sequence[Path]) -> list[tuple[str, str]]:
    """What the files say, each with its name."""
    return [(f"{file.parent.name}/{file.name}", _rule_text(file)) for file in files]


def read_text_file(path: str, option: str) -> str:
    """A file that an option names. Raises ConfigError when it cannot be read."""
    return _text(Path(path), _MAX_TEXT_BYTES, f"; {option} takes a file", f"; {option} takes a file written by this program or by hand", "")


def load_diagnose_settings(file: Path) -> DiagnoseSettings:
    """The ``[diagnose]`` section of a configuration file. Raises ConfigError."""
    from recompile_watch.respond.diagnose_settings import DiagnoseSettings
    from recompile_watch.settings import Mistakes, read_table

    table = _toml(file).get("diagnose", {})
    mistakes = Mistakes(str(file), [])
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: 'diagnose' is no section; write [diagnose] on a line of its own")
    found = read_table(DiagnoseSettings, table, "diagnose", mistakes)
    if found is None or mistakes.lines:
        raise ConfigError("\n".join(mistakes.lines))
    return replace(found, python=_at_home(found.python), folder=_at_home(found.folder), bot_log=_at_home(found.bot_log))


def load_state_dir(file: Path) -> str | None:
    """The state directory that a configuration file names; None where it names none. Raises ConfigError."""
    named = _toml(file).get("state_dir")
    return named if isinstance(named, str) else None


def _toml(file: Path) -> dict[str, object]:
    import tomllib  # only where a file is named

    try:
        return tomllib.loads(_text(file, _MAX_RULE_FILE_BYTES, "; --config takes a file", "; a configuration is a page", "; save it as UTF-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: no TOML: {error}") from None


def _at_home(path: str | None) -> str | None:
    try:
        return None if path is None else str(Path(path).expanduser())
    except RuntimeError:
        return path  # no such home: what is there is not found, and told then


def shipped_rules() -> Path:
    """The folder of the package's own rules: inside the installed wheel, else beside the package in a checkout."""
    return _shipped("rules")


def shipped_workloads() -> Path:
    """The folder of the diagnostic's own workloads."""
    return _shipped("workloads")


def _shipped(name: str) -> Path:
    package = Path(__file__).parent  # importlib.resources costs more at start-up than reading the rules
    inside, beside = package / f"_{name}", package.parent / name
    if inside.is_dir():
        return inside
    if not beside.is_dir():
        raise RuleError(f"{inside}: the package's own {name} are missing; install recompile-watch again")
    return beside


def _rule_files(place: Path, mistakes: list[str]) -> list[Path]:
    """The rule files at a place; a place that is none is a mistake."""
    try:
        if place.is_file():
            return [place]
        files = sorted((file for file in place.iterdir() if file.name.endswith(_ENDING) and file.is_file()), key=lambda file: file.name)
    except FileNotFoundError:
        mistakes.append(f"{place}: no such folder; --rules takes a folder of {_ENDING} files")
        return []
    except OSError as error:
        mistakes.append(f"{place}: cannot be read ({error.strerror}); --rules takes a folder of {_ENDING} files")
        return []
    if not files:
        mistakes.append(f"{place}: no {_ENDING} file in it; --rules takes a folder of rule files")
    return list(files)


def _text(file: Path, limit_bytes: int, if_unread: str, if_large: str, if_foreign: str) -> str:
    """The text of a file, with what to say behind each mistake. Raises ConfigError."""
    try:
        with file.open("rb") as stream:
            data = stream.read(limit_bytes + 1)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}){if_unread}") from None
    if len(data) > limit_bytes:
        raise ConfigError(f"{file}: larger than {limit_bytes >> 20} MiB{if_large}")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 (byte {error.start}){if_foreign}") from None


def _rule_text(file: Path) -> str:
    return _text(file, _MAX_RULE_FILE_BYTES, "", "; a rule file is a page of text", "; save it as UTF-8")


def _twice(entries: list[dict[str, object]], file: str) -> list[str]:
    """An id that stands twice in one file is a mistake; in two files the later one replaces the earlier."""
    ids = [entry["id"] for entry in entries]
    return [f"{file}: rule {name}: key 'id' stands {ids.count(name)} times in this file" for name in dict.fromkeys(ids) if ids.count(name) > 1]
