"""Tests of `recompile_watch.core.own_reports`: what recompile-watch printed is no message of torch's, whatever it quotes."""

from __future__ import annotations

import functools

import pytest

from recompile_watch.config import load_catalog
from recompile_watch.core.analysis import Analysis, Facts, Report, SourceFacts
from recompile_watch.report.github import report_to_github
from recompile_watch.report.html import report_to_html
from recompile_watch.report.json import json_text, report_to_json
from recompile_watch.report.markdown import plain_text, report_to_markdown
from recompile_watch.report.sarif import report_to_sarif
from recompile_watch.report.text import report_text
from tests.conftest import DATA, ROOT, SAMPLES, engine_events, rules

AROUND = b"2026-11-22 23:56:10,383 INFO job: step 12 of 40\n"
FAILURES = AROUND.join(
    [
        (
            b"W1122 23:55:10.383000 32496 torch/_dynamo/convert_frame.py:1994] [1/3] torch._dynamo hit config.recompile_limit (3)\n"
            b"W1122 23:55:10.383000 32496 torch/_dynamo/convert_frame.py:1994] [1/3]    function: 'g' (/srv/bot/limits.py:8)\n"
            b"W1122 23:55:10.383000 32496 torch/_dynamo/convert_frame.py:1994] [1/3]    last reason: 1/2: k == 4\n"
        ),
        b"torch._dynamo.exc.FailOnRecompileLimitHit: Hard failure due to fullgraph=True\n",
        b"2026-11-22 23:55:11,120 WARNING model: torch.compile failed, eager from now on: InductorError: RuntimeError: no kernel\n",
        b"torch._dynamo.exc.InternalTorchDynamoError: KeyError: 896\n",
        b"RuntimeError: Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run. Stack trace:\n",
        b"torch._dynamo.exc.Unsupported: Dynamo does not know how to trace method `data_ptr`\n",
    ]
)
LOGS = {"failures": FAILURES, **{path.name: path.read_bytes() for path in sorted(SAMPLES.glob("*.log"))}}


@functools.cache
def report_of(name: str) -> Report:
    """The report on one of the logs."""
    analysis = Analysis(rules())
    for event in engine_events([LOGS[name]], name):
        analysis.add(event)
    return analysis.report(Facts((SourceFacts(name),)), load_catalog())


def forms(report: Report) -> dict[str, str]:
    """The report in each format."""
    made = {"generated_at": "2026-11-21T00:00:00+00:00", "tool_version": "0.1.0"}
    return {
        "github": report_to_github(report),
        "html": report_to_html(report, **made),
        "json": json_text(report_to_json(report, **made)) + "\n",
        "markdown": report_to_markdown(report, **made),
        "sarif": json_text(report_to_sarif(report, tool_version="0.1.0")) + "\n",
        "text": report_text(report, encoding="utf-8", width=100, is_terminal=False, has_color=False),
    }


@pytest.mark.parametrize("name", sorted(LOGS))
def test_a_report_is_no_log(name: str) -> None:
    """A report that is read as a log gives no event, in any format."""
    found = {form: [(event.kind, event.line) for event in engine_events([text.encode()], "report")] for form, text in forms(report_of(name)).items()}
    assert found == {form: [] for form in found}


@pytest.mark.parametrize("form", ["github", "html", "json", "markdown", "text"])
@pytest.mark.parametrize("front", ["", "2026-11-22T23:56:11.0000000Z "])
@pytest.mark.parametrize("name", ["failures", "mixed-app.log"])
def test_a_report_inside_a_log(name: str, form: str, front: str) -> None:
    """Printed into a job's log, behind its times or not, it adds nothing to what the job itself printed, and hides nothing behind it."""
    text = "".join(f"{front}{line}\n" for line in forms(report_of(name))[form].splitlines()).encode()
    job = AROUND + FAILURES + AROUND
    alone = [event.kind for event in engine_events([job])]
    assert len(alone) > 4
    assert [event.kind for event in engine_events([job + text + AROUND])] == alone
    assert [event.kind for event in engine_events([text + job])] == alone


def test_a_report_in_pieces() -> None:
    """Where its blocks end makes no difference."""
    text = forms(report_of("failures"))["markdown"].encode()
    assert engine_events([text[at : at + 7] for at in range(0, len(text), 7)]) == []


@pytest.mark.parametrize("path", sorted((DATA / "messages").glob("*.txt")), ids=lambda path: path.stem)
def test_an_alert_is_no_log(path: object) -> None:
    """An alert shows the lines of the log with their numbers; read as a log it gives no event."""
    assert engine_events([(DATA / "messages" / str(path)).read_bytes()]) == []


def test_our_sentences_are_no_messages() -> None:
    """What rules and remedies say to a person gives no event, as text or as Markdown."""
    said = {text for rule in rules().rules for text in (rule.title, rule.why)}
    said |= {text for remedy in load_catalog().remedies for text in (remedy.title, remedy.where, remedy.expect)}
    found = [text for text in sorted(said) for form in (text, plain_text(text), f"##[error]{text}") if engine_events([f"{form}\n".encode()])]
    assert found == []


def test_a_log_is_no_report() -> None:
    """A page of somebody else's, and a log that names the program, are read as ever."""
    for front in ("# torch.compile: it fails", "<!DOCTYPE html>", "recompile-watch 0.1.0 watches this", "$ recompile-watch analyze bot.log"):
        assert engine_events([f"{front}\n\n".encode() + FAILURES]) != []
    assert len(engine_events([(ROOT / "sample_logs" / "cudagraphs.log").read_bytes()])) > 4


@pytest.mark.parametrize(
    "report",
    [
        "CRITICAL  torch.compile failed, called at slim.py:16: InductorError:\n          InvalidCxxCompiler: No working C++ compiler found\n",
        "CRITICAL  step (resumed at line 21) was not compiled: InductorError: RuntimeError: no kernel\n          train.py:21 · once\n",
        "WARNING   TORCHDYNAMO_RECOMPILE_LIMIT=64 has no effect: no torch reads it\n",
    ],
)
def test_a_title_of_the_text_report_is_no_message(report: str) -> None:
    """Nor is what a narrow terminal put on its second line."""
    assert engine_events([report.encode()]) == []
    assert len(engine_events([report.replace("CRITICAL  ", "E: ").replace("WARNING   ", "set ").replace(" " * 10, "").encode()])) == 1
