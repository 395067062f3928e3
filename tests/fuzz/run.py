"""Mutates the logs of the test data for a while and reports every law that breaks.

    python -m tests.fuzz.run --seconds 600 --seed 1 --report docs/fuzzing.md

A failing input is written to `--keep DIR` (default build/fuzz), small, with the seed in its name. Status 1 if any law broke.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import DATA
from tests.fuzz.laws import broken_law
from tests.fuzz.mutate import mutated, split
from tests.variants import VARIANTS

LARGEST_BYTES = 150_000


@dataclass(slots=True)
class Outcome:
    """What a run did. failures: law -> number of inputs that broke it."""

    inputs: int = 0
    read_bytes: int = 0
    slowest_s: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)


def seeds() -> list[bytes]:
    """The logs to mutate, the small ones."""
    paths = sorted(path for path in DATA.rglob("*.log") if path.stat().st_size <= LARGEST_BYTES)
    return [path.read_bytes() for path in paths]


def one_input(rng: random.Random, logs: Sequence[bytes]) -> bytes:
    """A mutated log: sometimes two mixed, sometimes inside a carrier."""
    data = rng.choice(logs)
    if rng.random() < 0.2:
        data = b"".join(block for pair in zip(split(rng, data), split(rng, rng.choice(logs)), strict=False) for block in pair)
    if rng.random() < 0.4:
        variant = VARIANTS[rng.choice(sorted(VARIANTS))]
        data = variant.apply(data) if variant.suits(data) else data
    return mutated(rng, data[: 2 * LARGEST_BYTES])


def smaller(data: bytes, still_breaks: Callable[[bytes], bool], deadline: float) -> bytes:
    """A part of `data` that still breaks: stretches are cut out while it does."""
    size = len(data) // 2
    while size and time.monotonic() < deadline:
        place = 0
        while place < len(data) and time.monotonic() < deadline:
            shorter = data[:place] + data[place + size :]
            if still_breaks(shorter):
                data = shorter
            else:
                place += size
        size //= 2
    return data


def fuzz(seconds: float, seed: int, keep: Path) -> Outcome:
    """Feeds mutated logs until the time is over."""
    logs, outcome, end = seeds(), Outcome(), time.monotonic() + seconds
    while time.monotonic() < end:
        number = seed * 1_000_000 + outcome.inputs
        data = one_input(random.Random(number), logs)
        start = time.monotonic()
        problem = broken_law(data, number)
        outcome.slowest_s = max(outcome.slowest_s, time.monotonic() - start)
        outcome.inputs += 1
        outcome.read_bytes += len(data)
        if problem is not None:
            law = problem.split(":")[0].split(" of [")[0]
            outcome.failures[law] += 1
            if outcome.failures[law] <= 3:
                _keep(data, number, law, keep)
    return outcome


def _keep(data: bytes, number: int, law: str, keep: Path) -> None:
    def still_breaks(part: bytes) -> bool:
        problem = broken_law(part, number)
        return problem is not None and problem.startswith(law)

    small = smaller(data, still_breaks, time.monotonic() + 30)
    keep.mkdir(parents=True, exist_ok=True)
    path = keep / f"{number}.log"
    path.write_bytes(small)
    print(f"{path} ({len(small)} bytes): {broken_law(small, number)}", flush=True)


def report(outcome: Outcome, seconds: float, seed: int) -> str:
    """The page that `--report` writes."""
    failures = "".join(f"| {law} | {count} |\n" for law, count in sorted(outcome.failures.items())) or "| none | 0 |\n"
    return (
        "# Fuzzing\n\nReal logs, mutated (bytes flipped, stretches lost, repeated and mixed, lines shuffled, carriers wrapped around them).\n"
        "Each must be read without an exception, print valid JSON, and give the same events in any blocks and without the literal matcher,\n"
        "and the same report when metric lines and tables are read in bulk.\n\n"
        f"Last run: `python -m tests.fuzz.run --seconds {seconds:g} --seed {seed}`: {outcome.inputs} inputs, "
        f"{outcome.read_bytes / 1e6:.0f} MB, slowest input {outcome.slowest_s:.2f} s (read three times).\n\n"
        f"| broken law | inputs |\n|---|---|\n{failures}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzzes and reports; status 1 if any law broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), metavar="DIR")
    parser.add_argument("--report", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    outcome = fuzz(options.seconds, options.seed, options.keep)
    page = report(outcome, options.seconds, options.seed)
    print(page)
    if options.report:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(page)
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
