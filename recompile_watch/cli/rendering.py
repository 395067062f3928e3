"""What an analysis found, as the report in the format that the user wants."""

import argparse
import importlib
import sys
from datetime import UTC, datetime

from recompile_watch import __version__
from recompile_watch.cli.output import STANDARD_OUTPUT, is_color_wanted
from recompile_watch.core.analysis import Report


def load(wanted: str) -> None:
    """Loads what a format needs, which takes a while: good to have done while other processes read."""
    importlib.import_module(f"recompile_watch.report.{wanted}")


def rendered(report: Report, arguments: argparse.Namespace) -> str:
    """The report in the wanted format; only that format's module is loaded."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    match arguments.format:
        case "json":
            from recompile_watch.report.json import json_text, report_to_json

            return json_text(report_to_json(report, generated_at=now, tool_version=__version__)) + "\n"
        case "sarif":
            from recompile_watch.report.json import json_text
            from recompile_watch.report.sarif import report_to_sarif

            return json_text(report_to_sarif(report, tool_version=__version__)) + "\n"
        case "github":
            from recompile_watch.report.github import report_to_github

            return report_to_github(report)
        case "html":
            from recompile_watch.report.html import report_to_html

            return report_to_html(report, generated_at=now, tool_version=__version__)
        case "markdown":
            from recompile_watch.report.markdown import report_to_markdown

            return report_to_markdown(report, generated_at=now, tool_version=__version__)
    return _text(report, arguments.output)


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
