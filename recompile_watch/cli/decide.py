"""``recompile-watch decide``: a decision record from the evidence at hand."""

import argparse
from dataclasses import replace
from datetime import UTC, datetime

from recompile_watch import __version__
from recompile_watch.cli import exit_status
from recompile_watch.cli.analyze import analyzed
from recompile_watch.cli.output import write_result


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Writes the record; returns 0 when every model is decided on whole evidence, else unknown."""
    found = analyzed(arguments, "decide", may_lack_log=True)
    from recompile_watch.report.record import record_of

    is_read = bool(arguments.paths) or bool(found.facts.sources)
    report = found.report if is_read else replace(found.report, problems=())  # what was measured needs no log
    measured = [*arguments.diagnosis, *([arguments.state_dir] if arguments.state_dir else [])]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_result(record_of(report, measured, made_at=now, tool_version=__version__), arguments.output)
    if is_read:
        found.complain()
    is_decided = bool(report.decisions) and all(decision.mode != "undecided" for decision in report.decisions)
    return exit_status.OK if is_decided and not report.problems else exit_status.UNKNOWN
