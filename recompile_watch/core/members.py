"""The files of a rotated log: what was read of all of them as one stands in one of them."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from recompile_watch.core.events import Event

if TYPE_CHECKING:  # loaded when everything is read
    from recompile_watch.core.analysis import Report
    from recompile_watch.core.findings import Finding


class Member(NamedTuple):
    """One file. lines, bytes: those of the files before it."""

    path: str
    lines: int
    bytes: int


def event_in(members: Sequence[Member], event: Event) -> Event:
    """The event with its place in the file where it stands; as it is when the log is one file."""
    if not members:
        return event
    member = _member(members, event.line)
    return event._replace(source=member.path, line=event.line - member.lines, offset=event.offset - member.bytes)


def report_in(members: Mapping[str, Sequence[Member]], report: "Report") -> "Report":
    """The report with its evidence in the files where it stands. members: of each rotated log, by its path."""
    if not any(members.values()):
        return report

    def place(source: str, line: int) -> tuple[str, int]:
        member = _member(members[source], line) if members.get(source) else Member(source, 0, 0)
        return member.path, line - member.lines

    def with_places(finding: "Finding") -> "Finding":
        places = [(place(one.source, one.line), one) for one in finding.evidence]
        return replace(finding, evidence=tuple(replace(one, source=source, line=line) for (source, line), one in places))

    rows = [(place(row.source, row.line), row) for row in report.series.strategy_return]
    series = replace(report.series, strategy_return=tuple(replace(row, source=source, line=line) for (source, line), row in rows))
    return replace(report, findings=tuple(map(with_places, report.findings)), series=series)


def _member(members: Sequence[Member], line: int) -> Member:
    """The file that holds a line, counted from the beginning of the first."""
    return members[bisect_right(members, line - 1, key=lambda member: member.lines) - 1]
