"""Logs out of public threads: what was seen in them, what was advised, and whether the thread's own remedy is among it.

python -m tests.threads --report docs/threads.md

A case is kept back when the checksum of its source says so (one in three): such a case was read by the person who
changes rules and remedies only after the change, and its result is told apart.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tomllib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from recompile_watch.config import load_catalog
from recompile_watch.core.analysis import Analysis, Facts, SourceFacts
from recompile_watch.core.events import event_to_json
from recompile_watch.core.findings import Finding
from tests.conftest import DATA, engine_events, rules

THREADS = DATA / "threads"
RECOMPILES = frozenset({"recompile", "recompile_limit_hit", "recompile_limit_error", "recompile_forbidden"})
LATER = ("fresh", "last")
CONFIRMED = ("maintainer", "reporter", "merged")
# Never right, whatever the thread says: a compile mode cures no recompile.
NO_CURE_FOR_RECOMPILES = frozenset({"change_compile_mode", "mode_without_cudagraphs"})
NEVER_IN_TEXT = "skip_guard_on_globals_unsafe"


@dataclass(frozen=True, slots=True)
class Case:
    """One paste. events: the fields to compare, in order. basis: who vouches for ``expected``."""

    source: str
    basis: str
    because: str
    log: bytes
    events: tuple[Mapping[str, object], ...]
    expected: frozenset[str]
    forbidden: frozenset[str]
    torch: str | None = None
    file: str = ""

    @property
    def part(self) -> str:
        """``open``, ``kept back`` (a third, read only after the first change), ``fresh`` or ``last`` (collected later)."""
        if self.file in LATER:
            return self.file
        return "kept back" if zlib.crc32(self.source.encode()) % 3 == 0 else "open"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one case. mistakes: where the events differ. advised: keys of all findings, the first finding's first.

    first: the remedy to do first of each finding. wrong: what was advised and must not be.
    """

    case: Case
    mistakes: tuple[str, ...]
    causes: tuple[str, ...]
    first: tuple[str, ...]
    advised: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def is_first(self) -> bool:
        """True when a remedy to do first is an expected one."""
        return not self.case.expected.isdisjoint(self.first)

    @property
    def is_found(self) -> bool:
        """True when an expected remedy is among the advice."""
        return not self.case.expected.isdisjoint(self.advised)


@functools.cache
def cases() -> tuple[Case, ...]:
    """All cases, in the order of the files."""
    return tuple(_case(entry, file.stem) for file in sorted(THREADS.glob("*.toml")) for entry in tomllib.loads(file.read_text())["case"])


def _case(entry: dict[str, object], file: str) -> Case:
    text = cast(dict[str, str], entry)
    lists = cast(dict[str, list[str]], entry)
    events = tuple(cast(list[Mapping[str, object]], entry["events"]))
    log = text["log"].encode()
    return Case(
        text["source"], text["basis"], text["because"], log, events, frozenset(lists["expected"]), frozenset(lists["forbidden"]),
        cast(str | None, entry.get("torch")), file,
    )  # fmt: skip


def outcome(case: Case) -> Outcome:
    """Reads one paste as ``analyze`` does and weighs what it says."""
    analysis = Analysis(rules())
    events = engine_events([case.log], "paste.log")
    for event in events:
        analysis.add(event)
    findings = analysis.report(Facts((SourceFacts("paste.log"),), torch_version=case.torch), load_catalog()).findings
    advised = tuple(dict.fromkeys(one.remedy for finding in findings for one in finding.advice))
    first = tuple(dict.fromkeys(finding.advice[0].remedy for finding in findings if finding.advice))
    return Outcome(
        case, tuple(_mistakes(case, [event_to_json(event) for event in events])), tuple(dict.fromkeys(str(f.cause) for f in findings)),
        first, advised, tuple(_wrong(case, findings)),
    )  # fmt: skip


def _mistakes(case: Case, events: list[dict[str, object]]) -> Iterable[str]:
    kinds = [event["kind"] for event in events]
    wanted_kinds = [event["kind"] for event in case.events]
    if kinds != wanted_kinds:
        yield f"events {kinds}"
        return
    for wanted, event in zip(case.events, events, strict=True):
        reasons = cast(list[dict[str, object]], event["reasons"])
        seen = {**event, "texts": [reason["text"] for reason in reasons], "causes": [reason["cause"] for reason in reasons]}
        for name, value in wanted.items():
            if seen.get(name) != (None if value == "null" else value):
                yield f"{name} {seen.get(name)!r}"


def _wrong(case: Case, findings: Iterable[Finding]) -> Iterable[str]:
    for finding in findings:
        keys = {one.remedy for one in finding.advice}
        yield from sorted(keys & case.forbidden)
        if finding.kind in RECOMPILES:
            yield from sorted(keys & NO_CURE_FOR_RECOMPILES)
        if finding.kind == "cudagraph_overwritten_error" and "mark_step_begin" in keys and "clone_outputs" not in keys:
            yield "mark_step_begin alone"
        if any(NEVER_IN_TEXT in f"{one.apply} {one.title}" for one in finding.advice):
            yield NEVER_IN_TEXT


def rate(outcomes: Iterable[Outcome]) -> str:
    """``40 of 45 (88.9 %)``: how many got an expected remedy and none that is forbidden."""
    outcomes = list(outcomes)
    good = sum(one.is_found and not one.wrong for one in outcomes)
    return f"{good} of {len(outcomes)} ({100 * good / max(1, len(outcomes)):.1f} %)"


def main() -> int:
    """Prints or writes the measurement."""
    parser = argparse.ArgumentParser(prog="python -m tests.threads", description=main.__doc__)
    parser.add_argument("--part", choices=("open", "kept back", *LATER, "all"), default="all")
    options = parser.parse_args()
    for one in map(outcome, cases()):
        if options.part not in ("all", one.case.part):
            continue
        mark = ("ok " if one.is_first else "~  ") if one.is_found and not one.wrong and not one.mistakes else "BAD"
        print(mark, one.case.source, one.causes, "first", one.first, "all", one.advised, "WRONG" if one.wrong else "", one.wrong, one.mistakes)
        if not one.is_found:
            print("      expected", sorted(one.case.expected))
    return 0


if __name__ == "__main__":
    sys.exit(main())
