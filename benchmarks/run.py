"""Measures recompile-watch against `rg -c` and `mtail -one_shot` on the three mixes, in one run, as ratios.

Each round runs the commands one after the other (rg, one job, two jobs, mtail; then again), so that a slow moment of the machine hits all;
ratios are taken inside a round and their median is compared with the bar. Times are of the whole process, start to end, files in the page
cache. Exit status: 0 all bars cleared, 1 a bar missed, 2 a command failed. With --quick the files are too small to judge by (starting the
interpreter dominates), so a missed bar is shown and the status stays 0.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import bars
from commands import (
    Commands,
    find_peer,
    find_product,
    forbidden_imports,
    interpreter_of,
    load_literals,
)
from generate import Truth, cached, parse_size
from measure import Measurement, RunFailedError, measure
from mixes import MIXES

SIZES = {"sparse": 512_000_000, "bot": 128_000_000, "storm": 128_000_000}
QUICK_SIZES = {"sparse": 64_000_000, "bot": 16_000_000, "storm": 16_000_000}
HELP_RUNS = 15


@dataclass(slots=True)
class Results:
    """What one run of the benchmarks found."""

    machine: dict[str, str]
    runs: dict[str, dict[str, list[Measurement]]] = field(default_factory=dict)
    truths: dict[str, Truth] = field(default_factory=dict)
    rows: list[bars.Row] = field(default_factory=list)
    times: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


_INTRODUCTION = """\
# Benchmarks

`make bench` measures `recompile-watch analyze` against `rg -c` of the same literals and `mtail -one_shot` with a program that
counts the same events, on three generated logs: sparse (one line in a thousand matters), bot (half of the lines are
metrics) and storm (nothing but recompile blocks with all their reasons). A bar that is missed says so.

"""


def main() -> int:
    options = _parse_options()
    product = find_product(options.command)
    with tempfile.TemporaryDirectory(prefix="recompile-watch-bench-") as scratch:
        work = options.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        literals, source = load_literals(product, options.literals)
        patterns = Path(scratch) / "patterns.txt"
        patterns.write_text("\n".join(literals) + "\n")
        commands = Commands(product, find_peer("rg"), find_peer("mtail"), patterns, Path(scratch))
        results = Results(_machine(commands))
        results.notes.append(f"{len(literals)} literals from {source}")
        if len(os.sched_getaffinity(0)) < 2:
            results.notes.append("one core only: two jobs not measured")
        try:
            _measure_all(options, commands, work, results)
        except RunFailedError as failure:
            print(f"failed: {failure}", file=sys.stderr)
            return 2
    _report(options, results)
    missed = any(not row.passed for row in results.rows)
    return 1 if missed and not options.quick else 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mix", action="append", choices=list(MIXES), help="repeatable; default: all three")
    parser.add_argument("--bytes", type=parse_size, dest="size_bytes", metavar="SIZE", help="size of every mix (default: 512MB sparse, 128MB others)")
    parser.add_argument("--runs", type=int, help="rounds (default 5, with --quick 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="small files, three rounds; shows the bars but does not fail on them")
    parser.add_argument("--command", help="the recompile-watch command (default .venv/bin/recompile-watch)")
    parser.add_argument("--literals", type=Path, metavar="FILE", help="literals for rg, one a line (default: the product's own, else literals.txt)")
    parser.add_argument("--work", type=Path, metavar="DIR", help="keeps the generated files here (default: a temporary folder, removed)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes every single measurement")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="writes the tables for the documentation")
    return parser.parse_args()


def _machine(commands: Commands) -> dict[str, str]:
    model = next(
        (line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "unknown"
    )
    rg = subprocess.run([commands.rg, "--version"], capture_output=True, text=True, check=False).stdout.splitlines()[0]
    mtail = subprocess.run([commands.mtail, "-version"], capture_output=True, text=True, check=False).stdout.split(" git ")[0].strip()
    return {
        "cpu": f"{os.cpu_count()} x {model}",
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"Python {platform.python_version()}",
        "rg": rg,
        "mtail": mtail,
    }


def _measure_all(options: argparse.Namespace, commands: Commands, work: Path, results: Results) -> None:
    rounds = options.runs or (3 if options.quick else 5)
    for mix in options.mix or MIXES:
        size = options.size_bytes or (QUICK_SIZES if options.quick else SIZES)[mix]
        log, truth = cached(mix, size, options.seed, work)
        results.truths[mix] = truth
        results.notes += _warm_up(commands, mix, log, truth)
        runs = results.runs[mix] = _rounds(commands, mix, log, rounds)
        results.rows += bars.mix_rows(mix, runs)
        results.times += bars.times_table(mix, truth.size_bytes, truth.line_count, runs)
    interpreter = interpreter_of(commands.product)
    helps = _help_rounds(commands, interpreter)
    results.runs["--help"] = helps
    results.rows.append(bars.help_row(helps["--help"], helps["bare"]))
    results.rows.append(bars.imports_row(*forbidden_imports(interpreter)))


def _rounds(commands: Commands, mix: str, log: Path, rounds: int) -> dict[str, list[Measurement]]:
    """Interleaved: a whole round of all commands before the next."""
    lines = {
        "rg": commands.count(log),
        "one job": commands.analyze(log, 1),
        "two jobs": commands.analyze(log, 2),
        "mtail": commands.one_shot(log, mix),
    }
    if len(os.sched_getaffinity(0)) < 2:
        del lines["two jobs"]
    runs: dict[str, list[Measurement]] = {name: [] for name in lines}
    for number in range(rounds):
        for name, command in lines.items():
            print(f"\r{mix}: round {number + 1} of {rounds}, {name:<10}", end="", file=sys.stderr, flush=True)
            runs[name].append(measure(command))
    print(file=sys.stderr)
    return runs


def _help_rounds(commands: Commands, interpreter: str) -> dict[str, list[Measurement]]:
    runs: dict[str, list[Measurement]] = {"--help": [], "bare": []}
    for number in range(HELP_RUNS + 1):
        pair = measure([*commands.product, "--help"]), measure([interpreter, "-I", "-c", "pass"])
        if number:  # the first pair warms the page cache
            runs["--help"].append(pair[0])
            runs["bare"].append(pair[1])
    return runs


def _warm_up(commands: Commands, mix: str, log: Path, truth: Truth) -> list[str]:
    """Reads the file into the page cache, runs the product once and notes where its counts differ from what was generated."""
    with log.open("rb", buffering=0) as stream:
        while stream.read(1 << 20):
            pass
    report = commands.work / "report.json"
    report.unlink(missing_ok=True)
    measure(commands.analyze(log, 1, report))
    try:
        counts = json.loads(report.read_text())["counts"]
    except (OSError, ValueError, KeyError, TypeError):
        return [f"{mix}: the product gave no counts to compare with the generator's"]
    wrong = [f"{kind} {counts.get(kind, 0)} instead of {number}" for kind, number in truth.kinds.items() if counts.get(kind, 0) != number]
    return [f"{mix}: counts differ from the generator's: {', '.join(wrong)}" if wrong else f"{mix}: counts agree with the generator's"]


def _report(options: argparse.Namespace, results: Results) -> None:
    machine = ", ".join(results.machine.values())
    verdict = bars.row_cells(results.rows)
    print(f"{machine}\n\n{bars.plain(bars.TIMES_HEADER, results.times)}\n\n{bars.plain(bars.ROWS_HEADER, verdict)}\n")
    print("\n".join(results.notes))
    if options.quick:
        print("Quick run: the files are too small to judge by.")
    if options.markdown:
        tables = f"{bars.markdown(bars.TIMES_HEADER, results.times)}\n\n{bars.markdown(bars.ROWS_HEADER, verdict)}"
        notes = "\n".join(f"- {note}" for note in results.notes)
        options.markdown.write_text(f"{_INTRODUCTION}Measured on {machine}.\n\n{tables}\n\n{notes}\n")
    if options.json:
        options.json.write_text(json.dumps(asdict(results), indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
