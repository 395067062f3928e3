"""A report against what the user says: an earlier report as baseline, and findings that a person has accepted."""

import argparse
from dataclasses import replace
from datetime import UTC, datetime

from recompile_watch.config import read_text_file
from recompile_watch.core.acceptance import accepted, parse_acceptances
from recompile_watch.core.analysis import Report, status_of
from recompile_watch.core.baseline import compared, parse_baseline


class Weights:
    """The baseline and the acceptances that the options name. Raises ConfigError."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        given, accept = arguments.baseline, arguments.accept
        self._baseline = parse_baseline(read_text_file(given, "--baseline"), given) if given else None
        self._acceptances = parse_acceptances(read_text_file(accept, "--accept"), accept) if accept else {}

    def weighed(self, report: Report) -> Report:
        """The report against its baseline, and without what a person has accepted."""
        findings = report.findings if self._baseline is None else compared(report.findings, self._baseline)
        findings = accepted(findings, self._acceptances, datetime.now(UTC).astimezone().date())
        return replace(report, findings=findings, status=status_of(findings, report.problems))
