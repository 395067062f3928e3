"""The command lines that are measured: recompile-watch, its two peers, and a bare interpreter."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
FORBIDDEN_MODULES = ("torch", "pandas", "numpy", "matplotlib", "apprise")


@dataclass(frozen=True, slots=True)
class Commands:
    """Everything that is run on one generated file.

    product: the recompile-watch command, as words. rg, mtail: paths of the peers. patterns: file with one literal a line.
    work: folder for scratch files.
    """

    product: tuple[str, ...]
    rg: str
    mtail: str
    patterns: Path
    work: Path

    def analyze(self, log: Path, jobs: int, output: Path = Path("/dev/null")) -> list[str]:
        return [*self.product, "analyze", str(log), "--format", "json", "--output", str(output), "--jobs", str(jobs)]

    def count(self, log: Path) -> list[str]:
        return [self.rg, "--no-config", "--count", "--fixed-strings", "--file", str(self.patterns), str(log)]

    def one_shot(self, log: Path, mix: str) -> list[str]:
        program = HERE / "programs" / f"{mix}.mtail"
        return [self.mtail, "-one_shot", "-one_shot_format", "prometheus", "-log_dir", str(self.work), "-progs", str(program), "-logs", str(log)]


def find_peer(name: str) -> str:
    """The peer's path. Raises SystemExit where it is not installed."""
    path = shutil.which(name)
    if path is None:
        package = {"rg": "ripgrep"}.get(name, name)
        raise SystemExit(f"{name} is not installed; on Debian: apt-get install {package}")
    return path


def find_product(command: str | None) -> tuple[str, ...]:
    """The product's command as words: `--command`, else the virtual environment's, else the one on PATH."""
    if command:
        return tuple(shlex.split(command))
    for candidate in (HERE.parent / ".venv/bin/recompile-watch", Path(sys.executable).parent / "recompile-watch"):
        if candidate.exists():
            return (str(candidate),)
    found = shutil.which("recompile-watch")
    if found is None:
        raise SystemExit("recompile-watch is not installed; install it, or name it with --command")
    return (found,)


def interpreter_of(product: tuple[str, ...]) -> str:
    """The Python that runs the product: from the script's first line, else this one."""
    path = shutil.which(product[0])
    if path:
        with Path(path).open("rb") as script:
            first = script.readline(512)
        word = first[2:].split()[0].decode() if first.startswith(b"#!") and first[2:].split() else ""
        if "python" in Path(word).name:
            return word
    return sys.executable


def load_literals(product: tuple[str, ...], file: Path | None) -> tuple[list[str], str]:
    """The literals and where they come from: the given file, else the product's own list, else literals.txt."""
    if file is None:
        own = _own_literals(product)
        if own:
            return own, "recompile-watch rules list --json"
    source = file or HERE / "literals.txt"
    lines = source.read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")], str(
        source.relative_to(HERE.parent) if source.is_relative_to(HERE) else source
    )


def _own_literals(product: tuple[str, ...]) -> list[str]:
    try:
        answer = subprocess.run([*product, "rules", "list", "--json"], capture_output=True, timeout=30, check=True)
        rules = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
    if isinstance(rules, dict):
        rules = rules.get("rules", [])
    found: set[str] = set()
    for rule in rules if isinstance(rules, list) else []:
        if isinstance(rule, dict):
            for value in (rule.get("literal"), rule.get("literals")):
                found.update(_texts(value))
    return sorted(found)


def _texts(value: object) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str) and item and "\n" not in item]


def forbidden_imports(interpreter: str) -> tuple[list[str], str | None]:
    """Which forbidden modules `import recompile_watch.cli` loads, and what went wrong, if anything."""
    code = f"import json, sys, recompile_watch.cli; print(json.dumps([m for m in {FORBIDDEN_MODULES!r} if m in sys.modules]))"
    try:
        answer = subprocess.run([interpreter, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return [], str(error)
    if answer.returncode:
        return [], (answer.stderr.strip().splitlines() or ["no message"])[-1]
    return list(json.loads(answer.stdout)), None
