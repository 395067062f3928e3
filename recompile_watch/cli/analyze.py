"""``recompile-watch analyze``: what a log means.

What weighs and renders the report is loaded when it is needed: with several jobs all of them are at work by then.
"""

import argparse
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from recompile_watch.cli.exit_status import status_code
from recompile_watch.cli.inputs import complain, inputs_of
from recompile_watch.cli.output import write_error, write_result
from recompile_watch.cli.progress import progress_over
from recompile_watch.config import load_catalog, read_env_files
from recompile_watch.core.errors import UsageError
from recompile_watch.core.members import report_in
from recompile_watch.core.versions import version_of

if TYPE_CHECKING:
    from recompile_watch.cli.weighing import Weights
    from recompile_watch.core.analysis import Facts, Report

# Loaded for this format only; a distribution may leave them out.
HTML_NEEDS = ("matplotlib", "pandas", "jinja2")


class Analyzed(NamedTuple):
    """A report with what the command line must tell of it."""

    report: "Report"
    facts: "Facts"
    outside: int

    def complain(self) -> None:
        """Says on standard error why the evidence is incomplete."""
        complain(self.facts, has_events=bool(self.report.counts), outside=self.outside)


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Analyses the sources, writes the report, returns the exit status."""
    if arguments.format == "html":
        _require(HTML_NEEDS)
    found = analyzed(arguments, "analyze", meanwhile=lambda: _load(arguments.format))
    from recompile_watch.cli.rendering import rendered

    write_result(rendered(found.report, arguments), arguments.output)
    if arguments.format == "html" and arguments.output is None and sys.stdout.isatty():
        write_error("that was a page for a browser; --output report.html writes it to a file")
    found.complain()
    return status_code(found.report.status, arguments.fail_on or "warning")


def _load(wanted: str) -> None:
    from recompile_watch.cli.rendering import load

    load(wanted)


def analyzed(arguments: argparse.Namespace, command: str, *, may_lack_log: bool = False, meanwhile: Callable[[], None] | None = None) -> Analyzed:
    """What the sources hold, weighed by what the user says.

    may_lack_log: what was measured, where a diagnosis is given, may stand alone. meanwhile: done while other processes read.
    """
    if arguments.torch_version is not None and version_of(arguments.torch_version) is None:
        raise UsageError(f"--torch-version: '{arguments.torch_version}' is no version; write one such as 2.9.1")
    # Mistakes in files of the user's are told before anything is read.
    weights = _weights(arguments) if arguments.baseline or arguments.accept or arguments.diagnosis or arguments.state_dir else None
    known = load_catalog(arguments.models) if arguments.models is not None else None
    inputs = inputs_of(arguments, command, needs_paths=weights is None or not may_lack_log)
    from recompile_watch.cli.reading import Reader, analysed

    with progress_over(inputs.sources) as on_progress:
        reader = Reader(inputs.rules, inputs.matcher, inputs.options, on_progress)
        read = reader.begin(inputs.sources)
        if meanwhile is not None:
            meanwhile()
        catalog = known if known is not None else load_catalog()
        analysis = analysed(inputs.rules, read, several=len(inputs.sources) > 1)
    env_files, env_errors = read_env_files(catalog.models, arguments.models)
    facts = inputs.facts(reader.facts, arguments.torch_version)
    facts = replace(facts, errors=(*facts.errors, *env_errors), env_files=env_files)
    report = report_in(reader.members, analysis.report(facts, catalog))
    return Analyzed(report if weights is None else weights.weighed(report, catalog), facts, reader.outside)


def _require(libraries: tuple[str, ...]) -> None:
    """Raises UsageError before anything is read when a library that a format needs is not there."""
    missing = [name for name in libraries if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"--format html needs {' and '.join(missing)}; install with: pip install {' '.join(missing)}")


def _weights(arguments: argparse.Namespace) -> "Weights":
    from recompile_watch.cli.weighing import Weights

    return Weights(arguments)
