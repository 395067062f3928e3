"""``recompile-watch analyze``: what a log means."""

import argparse
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from recompile_watch import __version__
from recompile_watch.cli.exit_status import status_code
from recompile_watch.cli.inputs import complain, inputs_of
from recompile_watch.cli.output import STANDARD_OUTPUT, is_color_wanted, write_error, write_result
from recompile_watch.cli.progress import progress_over
from recompile_watch.cli.reading import Reader
from recompile_watch.config import load_catalog, read_env_files, read_text_file
from recompile_watch.core.acceptance import Acceptance, accepted, parse_acceptances
from recompile_watch.core.analysis import Report, status_of
from recompile_watch.core.baseline import Before, compared, parse_baseline
from recompile_watch.core.decision import Decision
from recompile_watch.core.errors import UsageError
from recompile_watch.core.versions import version_of

# Loaded for this format only; a distribution may leave them out.
HTML_NEEDS = ("matplotlib", "pandas", "jinja2")


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Analyses the sources, writes the report, returns the exit status."""
    if arguments.torch_version is not None and version_of(arguments.torch_version) is None:
        raise UsageError(f"--torch-version: '{arguments.torch_version}' is no version; write one such as 2.9.1")
    if arguments.format == "html":
        _require(HTML_NEEDS)
    baseline = parse_baseline(read_text_file(arguments.baseline, "--baseline"), arguments.baseline) if arguments.baseline else None
    acceptances = parse_acceptances(read_text_file(arguments.accept, "--accept"), arguments.accept) if arguments.accept else {}
    catalog = load_catalog(arguments.models)
    env_files, env_errors = read_env_files(catalog.models, arguments.models)
    measured = _measured(arguments.diagnosis) if arguments.diagnosis else {}
    inputs = inputs_of(arguments, "analyze")
    with progress_over(inputs.sources) as on_progress:
        reader = Reader(inputs.rules, inputs.options, on_progress)
        analysis = reader.analyse(inputs.sources)
    facts = inputs.facts(reader.facts, arguments.torch_version)
    facts = replace(facts, errors=(*facts.errors, *env_errors), env_files=env_files)
    report = _weighed(analysis.report(facts, catalog), baseline, acceptances)
    report = _with_measured(report, measured) if measured else report
    write_result(_rendered(report, arguments), arguments.output)
    if arguments.format == "html" and arguments.output is None and sys.stdout.isatty():
        write_error("that was a page for a browser; --output report.html writes it to a file")
    complain(facts, has_events=bool(report.counts), outside=reader.outside)
    return status_code(report.status, arguments.fail_on or "warning")


def _require(libraries: tuple[str, ...]) -> None:
    """Raises UsageError before anything is read when a library that a format needs is not there."""
    missing = [name for name in libraries if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"--format html needs {' and '.join(missing)}; install with: pip install {' '.join(missing)}")


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


def _with_measured(report: Report, measured: Mapping[str, Decision]) -> Report:
    from recompile_watch.core.measured import with_measured

    return replace(report, decisions=with_measured(report.decisions, measured))


def _weighed(report: Report, baseline: Mapping[str, Before] | None, acceptances: Mapping[str, Acceptance]) -> Report:
    """The report against its baseline, and without what a person has accepted."""
    findings = report.findings if baseline is None else compared(report.findings, baseline)
    findings = accepted(findings, acceptances, datetime.now(UTC).astimezone().date())
    return replace(report, findings=findings, status=status_of(findings, report.problems))


def _rendered(report: Report, arguments: argparse.Namespace) -> str:
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
