"""The report as SARIF 2.1.0, for code scanning: findings at the user's own file and line.

Source of the format: OASIS SARIF 2.1.0 (docs.oasis-open.org/sarif/sarif/v2.1.0).
"""

from urllib.parse import quote

from recompile_watch.core.analysis import Report
from recompile_watch.core.findings import Finding
from recompile_watch.report.safe import safe

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"critical": "error", "warning": "warning", "info": "note"}
_MAX_TEXT = 4000


def report_to_sarif(report: Report, *, tool_version: str) -> dict[str, object]:
    """The report as a SARIF log with one run."""
    findings = [finding for finding in report.findings if finding.baseline != "gone"]
    kinds = sorted({finding.kind for finding in findings})
    notifications = [{"level": "error", "message": {"text": safe(problem, _MAX_TEXT)}} for problem in report.problems]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "recompile-watch",
                        "version": tool_version,
                        "rules": [{"id": kind, "shortDescription": {"text": kind.replace("_", " ")}} for kind in kinds],
                    }
                },
                "invocations": [{"executionSuccessful": not report.problems, "toolExecutionNotifications": notifications}],
                "results": [_result(finding, kinds) for finding in findings],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }


def _result(finding: Finding, kinds: list[str]) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": finding.kind,
        "ruleIndex": kinds.index(finding.kind),
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(finding)},
        "locations": [_location(*place) for place in _places(finding)[:1]],
        "relatedLocations": [_location(place.source, place.line) for place in finding.evidence],
        "partialFingerprints": {"recompileWatch/v1": finding.id},
        "occurrenceCount": max(finding.count, 1),
    }
    if finding.baseline in ("new", "same", "worse", "better"):
        result["baselineState"] = {"new": "new", "same": "unchanged"}.get(finding.baseline, "updated")
    if finding.accepted_until is not None:
        result["suppressions"] = [{"kind": "external", "justification": f"accepted until {finding.accepted_until}"}]
    return result


def _message(finding: Finding) -> str:
    words = [f"{safe(finding.title)}. {safe(finding.consequence)}"]
    if finding.advice:
        first = finding.advice[0]
        words.append(f"{safe(first.title)}: {safe(first.apply, _MAX_TEXT)}")
    return " ".join(words)[:_MAX_TEXT]


def _places(finding: Finding) -> list[tuple[str, int | None]]:
    """The user's code, else where the log says it."""
    if finding.file and not finding.file.startswith("<"):
        return [(finding.file, finding.line_no)]
    return [(place.source, place.line) for place in finding.evidence]


def _location(path: str, line: int | None) -> dict[str, object]:
    place: dict[str, object] = {"artifactLocation": {"uri": _uri(path)}}
    if line is not None and line > 0:
        place["region"] = {"startLine": line}
    return {"physicalLocation": place}


def _uri(path: str) -> str:
    text = quote(safe(path, _MAX_TEXT).replace("\\", "/"), safe="/")
    if text.startswith("/"):
        return f"file://{text}"
    return f"file:///{text.replace('%3A', ':', 1)}" if text[1:4] == "%3A" else text
