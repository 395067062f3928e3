"""What ``analyze`` and ``events`` share: arguments become rules, options and the list of sources.

The literals of the rules take long to compile, and what reads and reports takes long to load: both go on at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from recompile_watch.cli.background import InBackground
from recompile_watch.cli.output import write_error
from recompile_watch.cli.times import moment_of, year_of, zone_of
from recompile_watch.config import load_matcher, load_rules
from recompile_watch.core.errors import UsageError
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.scan import Matcher
from recompile_watch.sources.find import SourceFile, find_sources
from recompile_watch.sources.limits import Unread
from recompile_watch.sources.opening import STANDARD_INPUT

if TYPE_CHECKING:
    from recompile_watch.core.analysis import Facts, SourceFacts
    from recompile_watch.core.remedies import Remark

_MAX_REMARKED = 1 << 20  # bytes of a file in which nothing was found that are looked through for torch's remarks
_ADVICE = (
    "is this the right file, and does it hold standard error (2>&1)? TORCH_LOGS=recompiles,graph_breaks,cudagraphs shows most; "
    "where nothing recompiles or breaks, torch prints nothing"
)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How sources are read. zone_is_given: the user named the zone. since, until: aware of their zone.

    jobs: processes; 0 is one for each core.
    """

    zone: tzinfo
    zone_is_given: bool
    year: int | None
    since: datetime | None
    until: datetime | None
    jobs: int


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything a reading command needs.

    matcher: of the literals of the rules. errors: sources that were not found. unread: what folders held besides logs.
    """

    rules: Ruleset
    matcher: InBackground[Matcher]
    options: ReadOptions
    sources: list[SourceFile]
    errors: tuple[str, ...]
    unread: dict[str, int]
    is_strict: bool

    def facts(self, sources: Sequence[SourceFacts], torch_version: str | None = None) -> Facts:
        """What the report needs to know besides the events."""
        from recompile_watch.core.analysis import Facts

        return Facts(tuple(sources), self.errors, torch_version, self.is_strict, self.unread)


def inputs_of(arguments: argparse.Namespace, command: str, *, needs_paths: bool = True) -> Inputs:
    """Reads the shared options. needs_paths: without one, standard input is read. Raises UsageError and RuleError."""
    zone, zone_is_given = zone_of(arguments.tz)
    now = datetime.now(UTC)
    options = ReadOptions(
        zone, zone_is_given, year_of(arguments.year), moment_of("--since", arguments.since, zone, now),
        moment_of("--until", arguments.until, zone, now), jobs_of(arguments.jobs),
    )  # fmt: skip
    paths = paths_of(arguments.paths, command) if needs_paths else arguments.paths
    rules = load_rules([Path(folder) for folder in arguments.rules])
    matcher: InBackground[Matcher] = InBackground(lambda: load_matcher(rules))
    unread = Unread()
    sources, errors = find_sources(paths, rotated=arguments.rotated, unread=unread)
    return Inputs(rules, matcher, options, sources, tuple(str(error) for error in errors), unread.counts, arguments.strict)


def paths_of(paths: list[str], command: str) -> list[str]:
    """The paths given; standard input where none is given and something is piped in. Raises UsageError."""
    if paths:
        return paths
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(f"name a log to read, such as 'recompile-watch {command} bot.log', or pipe one in")
    return [STANDARD_INPUT]


def jobs_of(text: str | None) -> int:
    """How many processes read. Raises UsageError."""
    if text is None:
        return 1
    if not text.isdecimal() or int(text) > 1024:
        raise UsageError(f"--jobs: '{text}' is no number of processes; write 0 (one for each core) to 1024")
    return int(text)


def complain(facts: Facts, *, has_events: bool, outside: int) -> None:
    """Says on standard error, a line each, why the evidence is incomplete."""
    from recompile_watch.report.safe import safe

    for line in _complaints(facts, has_events=has_events, outside=outside):
        write_error(safe(line, 2000))


def _remark_in(files: list[Path]) -> Remark | None:
    """What torch says in the beginnings of plain files, where it is known to be no finding."""
    from recompile_watch.config import load_catalog

    catalog = load_catalog()
    remarks = (catalog.remark_in(_beginning(file)) for file in files if file.is_file())
    return next((remark for remark in remarks if remark is not None), None)


def _beginning(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_MAX_REMARKED).decode("utf-8", "replace")
    except OSError:  # gone since it was read
        return ""


def _complaints(facts: Facts, *, has_events: bool, outside: int) -> list[str]:
    """Every reason why the evidence is incomplete, with what to do."""
    from recompile_watch.core.analysis import NOTHING, problems_of

    problems = problems_of(facts, has_events=has_events)
    if has_events or not facts.sources:
        return list(problems)
    found = [problem for problem in problems if problem != NOTHING]
    named = facts.sources[:3]
    names = ", ".join("standard input" if source.path == STANDARD_INPUT else source.path for source in named)
    more = f" and {len(facts.sources) - len(named)} more" if len(facts.sources) > len(named) else ""
    if outside:
        return [*found, f"nothing in the time asked for in {names}{more}: {outside} events lie outside; widen --since and --until"]
    if all(source.error for source in facts.sources):
        return found
    lines, size = sum(source.lines for source in facts.sources), sum(source.bytes for source in facts.sources)
    if found and not size:  # what is wrong with the sources says it all
        return found
    if (remark := _remark_in([Path(source.path) for source in named])) is not None:
        known = f"torch's message '{remark.text}' is none (recompile-watch explain '{remark.text}' tells what it means)"
        return [*found, f"no finding in {names}{more}: {known}; what to do: {remark.do}"]
    what = f"none of {lines} lines tells what torch.compile did" if size else "empty"
    return [*found, f"nothing recognisable in {names}{more} ({what}); {_ADVICE}"]
