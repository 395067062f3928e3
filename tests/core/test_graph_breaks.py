"""Tests of what a report says of graph breaks: each happening once, how bad many of them are, and what to do."""

from __future__ import annotations

import pytest

from recompile_watch.config import load_catalog
from recompile_watch.core.analysis import Analysis, Facts
from recompile_watch.core.findings import MANY_CUTS, Finding
from tests.conftest import engine_events, rules

CATALOG = load_catalog()
TRACED = "Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):"
SKIPPED = "Failed to handle graph break gracefully. Skipping the function and falling back to eager. Graph break encountered:"
CUT_BEFORE = (
    "Encountered graph break that we cannot resume from. Compiling up to the previous resumable state, then skipping the rest of the function."
    " Graph break encountered:"
)
PRINT = "Failed to trace builtin operator\n  Explanation: Dynamo does not know how to trace builtin operator `print` with argument types ['str']"
REFUSED = "Backend compiler exception\n  Explanation: Backend compiler `aot_eager` failed with aten.nonzero.default. Adding a graph break."
LIBRARY = "/venv/lib/python3.11/site-packages/transformers/models/wav2vec2/modeling_wav2vec2.py"


def record(text: str, frame: str, *, level: str = "V", artifact: str = "[__graph_breaks] ", pid: int = 7) -> str:
    """One record of torch's log, each line with its prefix."""
    prefix = f"{level}1123 03:20:55.170000 {pid} torch/_dynamo/symbolic_convert.py:5124] [{frame}] {artifact}"
    return "".join(f"{prefix}{line}\n" for line in text.split("\n"))


def broken(line_no: int, frame: str, what: str = PRINT, *, how: str = TRACED, file: str = "/srv/m.py", stack: str = "", pid: int = 7) -> str:
    """A graph break as torch 2.13 tells of it. stack: the frames in front of the one that broke."""
    at = f'User code traceback:\n{stack}  File "{file}", line {line_no}, in forward\n    call()\n'
    return record(f"Graph break in user code at {file}:{line_no}\nGraph Break Reason: {how}\n\n{what}\n\n{at}", frame, pid=pid)


def findings(log: str) -> list[Finding]:
    """What a report says of a log."""
    analysis = Analysis(rules())
    for event in engine_events([log.encode()], "bot.log"):
        analysis.add(event)
    return list(analysis.report(Facts(), CATALOG).findings)


def only(log: str) -> Finding:
    """The one finding of a log."""
    (finding,) = findings(log)
    return finding


def test_a_graph_that_the_backend_refused_is_one_break() -> None:
    """torch warns of it, then tells of the break, with the place: once, and what the backend failed on is the reason."""
    warned = record(f"{REFUSED}\n  Hint: Report an issue.\n\n  Developer debug context: Backend: aot_eager", "14/0", level="W", artifact="")
    finding = only(warned + broken(1247, "14/0", REFUSED))
    assert (finding.count, finding.line_no, finding.title.partition(": ")[2]) == (1, 1247, "Backend compiler exception: aten.nonzero.default")
    assert finding.advice[0].remedy == "capture_dynamic_output_shape_ops"
    assert [one.count for one in findings(warned + broken(9, "14/0"))] == [1, 1]  # another break
    assert [one.count for one in findings(warned + broken(9, "15/0", REFUSED))] == [1, 1]  # another graph
    assert only(warned).title.endswith(": aten.nonzero.default")


@pytest.mark.parametrize("how", [SKIPPED, CUT_BEFORE])
def test_what_torch_cannot_resume_is_told_of_its_own_place(how: str) -> None:
    """One place of two, one happening of two at the same place, all of them."""
    twice = only(broken(141, "10/0") + broken(179, "13/0", how=how))
    assert (twice.severity, twice.consequence[:33]) == ("warning", "On line 179 torch cannot resume b")
    assert only(broken(141, "10/0") + broken(141, "13/0", how=how)).consequence.startswith("At times torch cannot resume behind this graph break")
    for log in (broken(141, "10/0", how=how), broken(141, "10/0") + broken(141, "10/0_1", how=how)):
        assert only(log).consequence.startswith("torch cannot resume behind this graph break")
    assert only(broken(141, "10/0") + broken(179, "13/0")).severity == "info"


def test_many_breaks_of_a_process_are_a_warning() -> None:
    """Each of them would be a note; of two processes each has its own."""
    lines = range(MANY_CUTS)
    many = findings("".join(broken(10 + line, f"{line}/0", file=f"/srv/m{line % 3}.py") for line in lines))
    assert [one.severity for one in many] == ["warning"] * 3
    assert all(one.consequence.endswith(f"one of {MANY_CUTS} graph breaks in this process, at {MANY_CUTS} places.") for one in many)
    assert {one.severity for one in findings("".join(broken(10 + line, f"{line}/0") for line in lines[1:]))} == {"info"}
    of_two = "".join(broken(10 + line, f"{line}/0", pid=line % 2) for line in lines)
    assert {one.severity for one in findings(of_two)} == {"info"}


def test_one_break_of_many_frames_counts_as_often() -> None:
    """What torch says twice of one happening counts once."""
    again = "".join(broken(10, f"{frame}/0") + broken(10, f"{frame}/0_1", how=SKIPPED) for frame in range(MANY_CUTS - 1))
    assert "graph breaks in this process" not in only(again).consequence
    assert only(again + broken(10, "9/0")).consequence.endswith(f"It is one of {MANY_CUTS} graph breaks in this process.")


def test_breaks_that_are_meant_do_not_count_as_many() -> None:
    """Those of torch's wrappers for distributed training, and the step of an optimizer."""
    wrapper = "/venv/lib/python3.11/site-packages/torch/nn/parallel/distributed.py"
    log = "".join(broken(10 + line, f"{line}/0", file=wrapper if line else "/srv/m.py") for line in range(MANY_CUTS))
    assert {one.severity for one in findings(log)} == {"info"}
    step = "Attempted to inline function marked as skipped\n  Explanation: Dynamo developers have marked that the function `Adam.step` should not"
    log = "".join(broken(10 + line, f"{line}/0") for line in range(MANY_CUTS)) + broken(40, "9/0", step)
    assert {one.advice[0].remedy: one.severity for one in findings(log)}["accept_graph_break"] == "info"
