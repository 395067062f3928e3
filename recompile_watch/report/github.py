"""The report as workflow commands: annotations in a pull request, at the user's own file and line.

The title begins with the program's name, by which a reader, and the program itself, knows whose they are.
"""

from recompile_watch.core.analysis import Report
from recompile_watch.core.findings import Finding
from recompile_watch.report.safe import safe

_COMMANDS = {"critical": "error", "warning": "warning", "info": "notice"}
_MAX_PATH = 4000


def report_to_github(report: Report) -> str:
    """One line for each finding that counts, worst first, and one for each problem of the input."""
    lines = [f"::error title=recompile-watch::{_data(safe(problem))}" for problem in report.problems]
    lines += [_annotation(finding) for finding in report.findings if finding.counts]
    return "".join(f"{line}\n" for line in lines)


def _annotation(finding: Finding) -> str:
    place = []
    if finding.file and not finding.file.startswith("<"):
        place.append(f"file={_property(safe(finding.file, _MAX_PATH))}")
        if finding.line_no is not None and finding.line_no > 0:
            place.append(f"line={finding.line_no}")
    place.append(f"title={_property(f'recompile-watch: {safe(finding.title)}')}")
    words = [safe(finding.consequence)]
    if finding.advice:
        words.append(f"Do: {safe(finding.advice[0].title)}\n{safe(finding.advice[0].apply, _MAX_PATH)}")
    return f"::{_COMMANDS[finding.severity]} {','.join(place)}::{_data(chr(10).join(words))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
