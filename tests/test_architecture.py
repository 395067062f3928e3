"""The house stands as docs and ARCHITECTURE say: who may import whom, what the core may not touch, how long a file is.

Imports are read from the syntax tree, so that one inside a function counts like one at the top.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.core.test_kept_diagnosis import written
from tests.report.diagnoses import measured

PACKAGE = ROOT / "recompile_watch"
FILES = sorted(path for path in PACKAGE.rglob("*.py"))
MAX_LINES = 400
# One file by necessity: it runs by path in a foreign interpreter, where nothing of the package can be imported.
LONGER = {"recompile_watch/respond/diagnose_worker.py": 690}

# Which parts of the house each part may import; itself is always allowed.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "core": frozenset(),
    "sources": frozenset({"core"}),
    "report": frozenset({"core"}),
    "respond": frozenset({"core"}),
    "kept": frozenset(),
    "config": frozenset({"kept", "core", "sources", "report", "respond", "settings"}),
    "settings": frozenset({"core"}),
    "zones": frozenset(),
    "watch_tables": frozenset({"core", "sources", "respond", "settings"}),
    "watch_config": frozenset({"core", "sources", "respond", "settings", "watch_tables", "zones"}),
    "store": frozenset({"core"}),
    "daemon": frozenset({"core", "sources", "respond", "store", "report", "config", "settings", "watch_config", "zones", "notify", "market"}),
    "market": frozenset({"kept"}),
    "workers": frozenset(),
    "sender": frozenset({"core", "respond", "report"}),
    "notify": frozenset({"core", "respond", "report", "sender"}),
    "survey": frozenset({"core", "sources", "config", "workers"}),
    "cli": frozenset(
        {"core", "sources", "report", "config", "survey", "zones", "daemon", "store", "respond", "watch_config", "watch_tables", "settings", "notify"}
    ),
    "__main__": frozenset({"cli"}),
    "__init__": frozenset(),
}
# The core as it is read: each module imports only those before it.
READING_ORDER = (
    "errors", "late", "likeness", "compile_id", "bounds", "digits", "events", "causes", "prefix_grammar", "carriers", "layers", "prefixes", "fronts",
    "headers", "cells", "entries", "boxes", "grids", "near", "definitions", "rules", "scan", "records", "own_reports", "joiner", "record_order",
    "times", "printed_version", "versions", "source_lines", "shape", "sightings",
    "tables", "rows", "counters", "bulk", "lines", "tracebacks", "exception_text", "stack_frames", "guarded_code", "reasons", "readers", "detect",
    "trace", "sums", "runs", "same", "handlers", "starts", "context", "engine", "live", "streams", "parts", "window",
    "fingerprint", "phases", "modes", "groups", "patterns", "models", "model_files", "remedies", "remedy_tables", "env_file", "env_state",
    "env_check", "guard_lines", "checks", "installs", "story", "advice",
    "evidence", "wording", "titles", "series", "timeline", "findings", "raised_limits", "drift", "shown_versions",
    "stories", "baseline",
    "acceptance", "candidates", "revisit", "profiles", "decision", "measured", "earlier", "source_span", "analysis", "doubles", "members",
    "statistics", "trials", "gates", "verdict", "published", "diagnosis", "units", "heard", "messages", "notices", "notice_json", "parcels",
    "digests", "delivery", "codec",
    "kept_diagnosis", "shelves", "fading", "agenda", "moments", "matchers", "watch_settings", "lifecycle", "pace", "diagnostic_runs",
    "incidents", "signals", "sight", "windows", "normals", "hourly", "symbols", "retention", "compile_conditions", "rate_conditions",
    "level_conditions", "return_conditions", "quote_conditions", "mode_conditions", "absence", "conditions", "watched_phases", "retelling",
    "casebook", "life", "inhibition", "routing", "alerts", "desks", "diagnostic_queue", "commands", "silences", "course", "watch",
)  # fmt: skip
CORE_LIBRARIES = frozenset({"re2", "hyperscan"})
IMPURE_MODULES = frozenset(
    {
        "asyncio", "ctypes", "fcntl", "glob", "http", "importlib", "io", "logging", "mmap", "multiprocessing", "os", "pathlib", "platform", "random",
        "secrets", "select", "shutil", "signal", "socket", "sqlite3", "subprocess", "sys", "tempfile", "threading", "time", "urllib", "uuid",
        "warnings",
    }
)  # fmt: skip
IMPURE_CALLS = frozenset({"open", "print", "input", "breakpoint", "exec", "eval", "__import__", "globals"})
CLOCKS = frozenset({("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")})
HEAVY = frozenset({"torch", "pandas", "numpy", "matplotlib", "apprise"})
NOT_FOR_HELP = HEAVY | {"re2", "hyperscan", "rich", "zstandard"}


def shown(path: Path) -> str:
    """The path inside the repository, as test id."""
    return str(path.relative_to(ROOT))


def part_of(path: Path) -> str:
    """The part of the house a file belongs to: a folder of the package, or a module at its top."""
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, anywhere in it, as a full dotted name with its line."""
    package = ("recompile_watch", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


def imported_parts(path: Path) -> Iterator[tuple[str, int]]:
    """The parts of the house that a file imports; strings such as `"recompile_watch.cli.events"` count as well."""
    for name, line in imported(path):
        words = name.split(".")
        if words[0] == "recompile_watch" and len(words) > 1 and not words[1].startswith("__"):
            yield words[1], line
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("recompile_watch."):
            yield node.value.split(".")[1], node.lineno


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_imports_point_inwards(path: Path) -> None:
    """cli imports survey, config, sources, report and core; sources and report import core only; core imports nothing."""
    part = part_of(path)
    assert part in MAY_IMPORT, f"{shown(path)}: a new part of the house; add it to MAY_IMPORT"
    allowed = MAY_IMPORT[part] | {part}
    wrong = [f"line {line}: {other}" for other, line in imported_parts(path) if other not in allowed]
    assert not wrong, f"{shown(path)} ({part}) imports {', '.join(wrong)}"


def test_core_is_in_reading_order() -> None:
    """Inside the core a module imports only those before it, so there are no cycles."""
    files = {path.stem: path for path in (PACKAGE / "core").glob("*.py") if path.stem != "__init__"}
    assert sorted(files) == sorted(READING_ORDER), "a module came or went: keep READING_ORDER"
    wrong = []
    for place, module in enumerate(READING_ORDER):
        for name, line in imported(files[module]):
            words = name.split(".")
            if words[:2] == ["recompile_watch", "core"] and len(words) > 2 and words[2] not in READING_ORDER[:place]:
                wrong.append(f"core/{module}.py:{line} imports {words[2]}, which comes later")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", sorted((PACKAGE / "core").glob("*.py")), ids=shown)
def test_core_is_pure(path: Path) -> None:
    """The core imports the standard library's pure part, re2 and hyperscan; it opens, prints, logs and rolls nothing and has no clock."""
    wrong = []
    for name, line in imported(path):
        top = name.split(".")[0]
        if top != "recompile_watch" and (top in IMPURE_MODULES or (top not in sys.stdlib_module_names and top not in CORE_LIBRARIES)):
            wrong.append(f"line {line}: import {name}")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            wrong.append(f"line {node.lineno}: {node.func.id}()")
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and (node.value.id, node.attr) in CLOCKS:
            wrong.append(f"line {node.lineno}: {node.value.id}.{node.attr}")
    assert not wrong, f"{shown(path)}: {'; '.join(wrong)}"


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_files_are_short(path: Path) -> None:
    """No file is longer than 400 lines, but for the one that must be one file."""
    lines = len(path.read_text().splitlines())
    assert lines <= LONGER.get(shown(path), MAX_LINES), f"{shown(path)} has {lines} lines; split it"


def test_torch_is_imported_in_one_file() -> None:
    """Only the worker imports torch; it imports nothing of the package, and the language it is written in is Python 3.9's."""
    worker = PACKAGE / "respond" / "diagnose_worker.py"
    assert [shown(path) for path in FILES if any(name.split(".")[0] == "torch" for name, _ in imported(path))] == [shown(worker)]
    assert not [name for name, _ in imported_parts(worker)]
    ast.parse(worker.read_text(), feature_version=(3, 9))


def test_packages_are_flat() -> None:
    """No package of the house has a second level of folders."""
    deep = [shown(path) for path in FILES if len(path.relative_to(PACKAGE).parts) > 2]
    assert not deep


def loaded_after(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after running `code`."""
    program = f"import sys\n{code}\nprint('\\nLOADED', *sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.rsplit("LOADED", maxsplit=1)[1].split())


def test_importing_the_command_line_is_light() -> None:
    """`import recompile_watch.cli` loads no torch, pandas, numpy, matplotlib or apprise."""
    assert not loaded_after("import recompile_watch.cli") & HEAVY


@pytest.mark.parametrize("arguments", [["--help"], ["analyze", "--help"], ["diagnose", "--help"], ["--version"]], ids=" ".join)
def test_help_is_light(arguments: list[str]) -> None:
    """Help loads neither the matching libraries nor rich."""
    assert not loaded_after(f"from recompile_watch.cli import main\nmain({arguments!r})") & NOT_FOR_HELP


@pytest.mark.parametrize("name", ["text", "json", "markdown", "sarif", "github"])
def test_pictures_cost_only_who_wants_them(name: str) -> None:
    """Every format but HTML does without pandas, matplotlib and the template engine."""
    code = f"from recompile_watch.cli import main\nmain(['analyze', '--format', {name!r}, 'sample_logs/bot-2025-10-30.log'])"
    assert not loaded_after(code) & (HEAVY | {"jinja2"})


@pytest.mark.parametrize("name", ["text", "json", "markdown"])
def test_a_diagnosis_is_shown_without_pictures(name: str, tmp_path: Path) -> None:
    """So it is for a diagnosis."""
    (tmp_path / "kept.json").write_text(written(measured()))
    code = f"from recompile_watch.cli import main\nmain(['diagnose', '--format', {name!r}, '--from', {str(tmp_path / 'kept.json')!r}])"
    assert not loaded_after(code) & (HEAVY | {"jinja2"})
