"""Finds and reads what the user and the package configure: for now the detection rules."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from recompile_watch.core.errors import ConfigError, RuleError
from recompile_watch.core.rules import Rule, Ruleset, merge, parse_rules, rule_of
from recompile_watch.kept_rules import keep, kept, state_of

if TYPE_CHECKING:
    from recompile_watch.core.remedies import Catalog

_ENDING = ".toml"
CATALOG_FOLDERS = ("remedies", "settings", "models")
_MAX_RULE_FILE_BYTES = 4 << 20
_MAX_TEXT_BYTES = 256 << 20


def load_rules(extra: Sequence[Path] = ()) -> Ruleset:
    """The shipped rules and those of the folders (or files) ``extra``; a later rule replaces an earlier one of its id.

    Raises RuleError with all mistakes, one line each.
    """
    return merge([*_shipped(), *read_rules(extra)])


def read_rules(places: Sequence[Path]) -> list[list[Rule]]:
    """The rules of each file in ``places``, sorted by name. Raises RuleError with all mistakes, one line each."""
    return _rules(_read_entries(places))


def _shipped() -> list[list[Rule]]:
    """The shipped rules, as they were kept if they were."""
    mistakes: list[str] = []
    files = _rule_files(shipped_rules(), mistakes)
    if mistakes:
        raise RuleError("\n".join(mistakes))
    state = state_of(files)
    known = kept(state)
    if known is None:
        known = _read_entries(files)
        keep(state, known)
    return _rules(cast(dict[str, list[dict[str, object]]], known))


def _rules(files: Mapping[str, list[dict[str, object]]]) -> list[list[Rule]]:
    return [[rule_of(entry, file) for entry in entries] for file, entries in files.items()]


def _read_entries(places: Sequence[Path]) -> dict[str, list[dict[str, object]]]:
    """The entries of each file. Raises RuleError with all mistakes, one line each."""
    files: dict[str, list[dict[str, object]]] = {}
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


def load_catalog() -> "Catalog":
    """The remedies, cases, settings and models that ship with the rules. Raises RuleError with all mistakes."""
    from recompile_watch.core.remedies import parse_catalog

    folder = shipped_rules()
    files = [file for name in CATALOG_FOLDERS for file in sorted((folder / name).glob(f"*{_ENDING}"))]
    return parse_catalog((f"{file.parent.name}/{file.name}", _rule_text(file)) for file in files)


def read_text_file(path: str, option: str) -> str:
    """A file that an option names. Raises ConfigError when it cannot be read."""
    return _text(Path(path), _MAX_TEXT_BYTES, f"; {option} takes a file", f"; {option} takes a file written by this program or by hand", "")


def shipped_rules() -> Path:
    """The folder of the package's own rules: inside the installed wheel, else beside the package in a checkout."""
    package = Path(__file__).parent  # importlib.resources costs more at start-up than reading the rules
    inside, beside = package / "_rules", package.parent / "rules"
    if inside.is_dir():
        return inside
    if not beside.is_dir():
        raise RuleError(f"{inside}: the package's own rules are missing; install recompile-watch again")
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
