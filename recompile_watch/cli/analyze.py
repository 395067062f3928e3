"""``recompile-watch analyze``: what a log means."""

import argparse
import sys
from datetime import UTC, datetime

from recompile_watch import __version__
from recompile_watch.cli.exit_status import status_code
from recompile_watch.cli.inputs import complain, inputs_of
from recompile_watch.cli.output import STANDARD_OUTPUT, is_color_wanted, write_result
from recompile_watch.cli.progress import progress_over
from recompile_watch.cli.reading import Reader
from recompile_watch.config import load_catalog
from recompile_watch.core.analysis import Report
from recompile_watch.core.errors import UsageError
from recompile_watch.core.versions import version_of


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Analyses the sources, writes the report, returns the exit status."""
    if arguments.torch_version is not None and version_of(arguments.torch_version) is None:
        raise UsageError(f"--torch-version: '{arguments.torch_version}' is no version; write one such as 2.9.1")
    inputs = inputs_of(arguments, "analyze")
    with progress_over(inputs.sources) as on_progress:
        reader = Reader(inputs.rules, inputs.options, on_progress)
        analysis = reader.analyse(inputs.sources)
    facts = inputs.facts(reader.facts, arguments.torch_version)
    report = analysis.report(facts, load_catalog())
    write_result(_json(report) if arguments.format == "json" else _text(report, arguments.output), arguments.output)
    complain(facts, has_events=bool(report.counts), outside=reader.outside)
    return status_code(report.status, arguments.fail_on or "warning")


def _json(report: Report) -> str:
    from recompile_watch.report.json import json_text, report_to_json

    now = datetime.now(UTC).isoformat(timespec="seconds")
    return json_text(report_to_json(report, generated_at=now, tool_version=__version__)) + "\n"


def _text(report: Report, output: str | None) -> str:
    import shutil  # rich costs 50 ms, shutil a few; JSON needs neither

    from recompile_watch.report.text import PLAIN_WIDTH, report_text

    if output not in (None, STANDARD_OUTPUT):
        return report_text(report, encoding="utf-8", width=PLAIN_WIDTH, is_terminal=False, has_color=False)
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if is_terminal else PLAIN_WIDTH
    return report_text(
        report, encoding=sys.stdout.encoding or "ascii", width=width, is_terminal=is_terminal, has_color=is_color_wanted(sys.stdout)
    )  # fmt: skip
