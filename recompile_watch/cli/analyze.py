"""``recompile-watch analyze``: what a log means.

What weighs and renders the report is loaded when it is needed: with several jobs all of them are at work by then.
"""

import argparse
from typing import TYPE_CHECKING

from recompile_watch.cli.exit_status import status_code
from recompile_watch.cli.inputs import complain, inputs_of
from recompile_watch.cli.output import write_result
from recompile_watch.cli.progress import progress_over
from recompile_watch.config import load_catalog
from recompile_watch.core.errors import UsageError
from recompile_watch.core.versions import version_of

if TYPE_CHECKING:
    from recompile_watch.cli.weighing import Weights


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Analyses the sources, writes the report, returns the exit status."""
    if arguments.torch_version is not None and version_of(arguments.torch_version) is None:
        raise UsageError(f"--torch-version: '{arguments.torch_version}' is no version; write one such as 2.9.1")
    weights = _weights(arguments) if arguments.baseline or arguments.accept else None
    inputs = inputs_of(arguments, "analyze")
    from recompile_watch.cli.reading import Reader

    with progress_over(inputs.sources) as on_progress:
        reader = Reader(inputs.rules, inputs.matcher, inputs.options, on_progress)
        read = reader.begin(inputs.sources)
        from recompile_watch.cli.rendering import rendered
        from recompile_watch.core.analysis import analysed

        catalog, analysis = load_catalog(), analysed(inputs.rules, read)
    facts = inputs.facts(reader.facts, arguments.torch_version)
    report = analysis.report(facts, catalog)
    if weights is not None:
        report = weights.weighed(report)
    write_result(rendered(report, arguments), arguments.output)
    complain(facts, has_events=bool(report.counts), outside=reader.outside)
    return status_code(report.status, arguments.fail_on or "warning")


def _weights(arguments: argparse.Namespace) -> "Weights":
    from recompile_watch.cli.weighing import Weights

    return Weights(arguments)
