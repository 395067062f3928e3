"""A report against what the user says: an earlier report as baseline, findings that a person has accepted, what was measured."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from recompile_watch.config import read_text_file
from recompile_watch.core.acceptance import accepted, parse_acceptances
from recompile_watch.core.analysis import Report, status_of
from recompile_watch.core.baseline import compared, parse_baseline
from recompile_watch.core.decision import Decision
from recompile_watch.core.errors import UsageError
from recompile_watch.core.remedies import Catalog


class Weights:
    """The baseline, the acceptances and the diagnoses that the options name. Raises ConfigError and UsageError."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        given, accept = arguments.baseline, arguments.accept
        self._baseline = parse_baseline(read_text_file(given, "--baseline"), given) if given else None
        self._acceptances = parse_acceptances(read_text_file(accept, "--accept"), accept) if accept else {}
        kept = _kept(arguments.state_dir) if arguments.state_dir else {}
        self._measured = {**kept, **(_measured(arguments.diagnosis) if arguments.diagnosis else {})}

    def weighed(self, report: Report, catalog: Catalog) -> Report:
        """The report against its baseline, without what a person has accepted, and decided by what was measured."""
        findings = report.findings if self._baseline is None else compared(report.findings, self._baseline)
        findings = accepted(findings, self._acceptances, datetime.now(UTC).astimezone().date())
        decisions = _decided(report.decisions, self._measured, catalog) if self._measured else report.decisions
        return replace(report, findings=findings, status=status_of(findings, report.problems), decisions=decisions)


def _kept(folder: str) -> dict[str, Decision]:
    """What the watch of a state directory keeps of each model: the newest result. Raises StoreError and ConfigError."""
    from recompile_watch.core.measured import decision_of
    from recompile_watch.store import read_tables  # only where a folder is named

    found = {}
    for row in read_tables(Path(folder))["diagnoses"].values():  # the oldest first
        if isinstance(row, Mapping) and isinstance(row.get("model"), str):
            found[row["model"]] = decision_of(row.get("report"), f"{folder}: a kept diagnosis of {row['model']}", row["model"])
    return found


def _measured(texts: list[str]) -> dict[str, Decision]:
    """What was measured of each model. Raises UsageError and ConfigError."""
    from recompile_watch.core.measured import parse_diagnosis  # only where a diagnosis is named

    found = {}
    for text in texts:
        model, sign, file = text.partition("=")
        if not sign or not model.isidentifier():
            raise UsageError(f"--diagnosis: '{text}' is no MODEL=FILE; write one such as toto=diagnosis.json")
        found[model] = parse_diagnosis(read_text_file(file, "--diagnosis"), file, model)
    return found


def _decided(decisions: tuple[Decision, ...], measured: Mapping[str, Decision], catalog: Catalog) -> tuple[Decision, ...]:
    from recompile_watch.core.measured import with_measured

    return with_measured(decisions, measured, catalog)
