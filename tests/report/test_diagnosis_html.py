"""Tests of `recompile_watch.report.diagnosis_html`: the verdict first, its reasons, and what was not measured says so.

What every page must be (self-contained, accessible, well formed) `test_html.py` holds for these pages as well.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recompile_watch.core.candidates import parse_candidate
from recompile_watch.core.diagnosis import Diagnosis
from recompile_watch.core.errors import ConfigError
from recompile_watch.core.kept_diagnosis import read_diagnosis
from recompile_watch.core.statistics import Pair
from recompile_watch.core.trials import MAX_CALLS
from recompile_watch.report.diagnosis_charts import MAX_ROWS as MAX_ARMS
from recompile_watch.report.diagnosis_markdown import diagnosis_to_markdown
from recompile_watch.report.diagnosis_text import diagnosis_text
from tests.core.test_kept_diagnosis import written
from tests.core.test_verdict import EAGER
from tests.report.diagnoses import (
    CALM_COURSE,
    DIAGNOSES,
    courses,
    crashed,
    diagnosis,
    hostile,
    measured,
    noisy,
    page_of_diagnosis,
    refused,
    storm,
    structural,
    timed,
    without_torch,
)  # fmt: skip
from tests.report.test_html import Page


def page_text(name: str) -> str:
    return Page(page_of_diagnosis(DIAGNOSES[name]())).text


def test_the_verdict_comes_first() -> None:
    """What to run, how sure, the lines to paste, the reasons; then gates, numbers, pictures, conditions, provenance, in this order."""
    text = page_text("measured")
    words = (
        "Decided", "bot:make: run default", "Run default: 1.67 times as fast as eager", "Confidence: high", "model = torch.compile(model)",
        "the error is 0.5 %, within the 3 %", "the first call takes 9.0 s", "Chosen", "late_recompiles: 2 recompiles after warm-up",
        "speedup: 1.02 times", "the recompile limit was hit once", "killed by SIGKILL", "nothing to mend", "How each one runs", "1.67 [1.64, 1.69]",
        "Speed-up against eager", "rejected before it was timed: limit, recompiles", "How long a call takes", "Calls one by one",
        "Compilations call by call", "Measure again when", "late_recompiles >= 1", "3.11.2", "/srv/bot/.venv/bin/python", "2026-11-21T09:00:00+00:00",
        "82 s", "recompile_limit=8, threads=1", "14.2 s",
    )  # fmt: skip
    places = [text.index(word) for word in words]
    assert places == sorted(places)


def test_the_control_is_drawn() -> None:
    """The intervals stand beside eager against itself, its smallest visible gain and what the profile asks."""
    whole = measured()
    effect = whole.judgement.effect
    assert effect is not None
    drawn = page_of_diagnosis(whole)
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    assert {"eager", "✓ default", "reduce-overhead", "max-autotune", "1.1 asked"} <= set(labels)
    assert f"Shaded: what two equal arms differ by chance here, {100 * effect:.1f} %" in drawn


@pytest.mark.parametrize(
    ("make", "words", "charts"),
    [
        (storm, ("run eager", "Run eager", "export TORCHDYNAMO_DISABLE=1", "Not measured: every candidate was rejected before it was timed."),
         {"speedup", "latency", "compilations"}),
        (structural, ("Inconclusive", "keep eager for now", "Speed-up and latency", "Not measured: structural stage only."), {"compilations"}),
        (noisy, ("Inconclusive", "the machine is too noisy to tell a gain"), {"speedup", "latency", "calls", "compilations"}),
        (crashed, ("Decided", "Run eager", "it crashed: killed by SIGSEGV"), {"speedup", "latency"}),
        (without_torch, ("Not measured", "keep eager", "torch cannot be imported", "--python names the interpreter"), set()),
        (refused, ("Not measured", "the measurement may not run: GPU 0 is busy", "Not measured: GPU 0 is busy", "not recorded"), set()),
    ],
)  # fmt: skip
def test_every_way_to_end(make: Callable[[], Diagnosis], words: tuple[str, ...], charts: set[str]) -> None:
    """Each says what happened, what to do, and why something was not measured; a chart stands only where there is something to draw."""
    drawn = page_of_diagnosis(make())
    page = Page(drawn)
    assert all(word in page.text for word in words)
    shown = {drawing["aria-labelledby"].split("-")[0] for drawing in page.all("svg") if drawing.get("role") == "img"}
    assert shown == charts


@pytest.mark.parametrize("name", sorted(DIAGNOSES))
def test_a_kept_result_gives_the_same_page(name: str) -> None:
    """What was written as JSON and read back is shown as it was when it was fresh; only the time of making differs."""
    at, later = "2026-11-21T00:00:00+00:00", "2027-01-01T12:00:00+00:00"
    fresh = page_of_diagnosis(DIAGNOSES[name](), at)
    assert page_of_diagnosis(read_diagnosis(written(DIAGNOSES[name]()), "d.json"), later) == fresh.replace(at, later)


def test_same_page_in_every_process() -> None:
    """Two pages of one diagnosis are the same bytes, whatever process makes them."""
    code = "from tests.report.diagnoses import *; import sys; sys.stdout.write(page_of_diagnosis(measured()))"
    for seed in ("1", "2"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
        assert done.stdout == page_of_diagnosis(measured())


def test_text_of_a_worker_stays_text() -> None:
    """It adds no element, attribute or link; it can be read, its controls and secrets cannot."""
    evil, tame = Page(page_of_diagnosis(hostile())), Page(page_of_diagnosis(measured()))
    assert {tag for tag, _ in evil.elements} <= {tag for tag, _ in tame.elements}
    assert "<script>alert(1)</script>" in evil.text and "abcdef0123456789" not in evil.text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", evil.text)
    assert len(evil.all("script")) == 1 and len(evil.all("style")) == 1
    assert not any(name.startswith("on") or name in ("style", "src") for _, attributes in evil.elements for name in attributes)


def test_formulas_are_not_drawn() -> None:
    """A name between dollar signs stands in a chart as it was given."""
    won = replace(timed("variant:x", 1.7), candidate=replace(parse_candidate("variant:x"), value="$x^{2}$"))
    assert "✓ variant:$x^{2}$" in re.findall(r"<text[^>]*>([^<]*)</text>", page_of_diagnosis(diagnosis(won)))


def test_what_is_cut_is_counted() -> None:
    """More candidates than a chart has room for, and more calls than were kept, are said with their number."""
    many = [timed(f"exclude=f{n}", 1.5) for n in range(MAX_ARMS + 4)]
    assert "5 more candidates stand in the table only" in Page(page_of_diagnosis(diagnosis(*many))).text
    long_course = replace(courses(CALM_COURSE, (3, *(0,) * (MAX_CALLS - 1)), MAX_CALLS), calls=MAX_CALLS + 1234)
    assert "1 234 later calls" in Page(page_of_diagnosis(diagnosis(replace(timed("default", 1.7), structure=long_course)))).text


ODD: Mapping[str, tuple[Pair, ...]] = {
    "equal": (Pair(2.0, 2.0),) * 40, "tiny": (Pair(1e-6, 1e-6),) * 40, "apart": (Pair(9e9, 1e-6), Pair(1e-6, 9e9)) * 20,
    "two": (Pair(3.0, 2.0), Pair(3.1, 2.1)),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(ODD))
def test_odd_times_are_drawn(name: str) -> None:
    """Calls that take the same time, almost none, or times that lie far apart make a picture, and no warning."""
    won = timed("default", 1.7)
    assert won.timing is not None and EAGER.timing is not None
    odd = replace(won, timing=replace(won.timing, pairs=ODD[name], warmup=(), compiles=()))
    eager = replace(EAGER, timing=replace(EAGER.timing, pairs=ODD[name]))
    assert "Calls one by one" in Page(page_of_diagnosis(diagnosis(odd, eager=eager))).text


def leaves(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places in a JSON value that hold no others."""
    inner = list(value.items()) if isinstance(value, dict) else list(enumerate(value[:2])) if isinstance(value, list) else []
    yield from (deeper for name, item in inner for deeper in leaves(item, (*path, name)))
    if not inner:
        yield path


KEPT = json.loads(written(measured()))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([1e300, 10**30, -1, 0, 1e-300]) | st.text(max_size=5)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(list(leaves(KEPT))), SCALARS)
def test_whatever_a_kept_file_holds(path: tuple[str | int, ...], value: object) -> None:
    """One value changed: the file is refused, or it is shown; nothing else happens."""
    report = json.loads(json.dumps(KEPT))
    place = report
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    try:
        kept = read_diagnosis(json.dumps(report), "d.json")
    except ConfigError:
        return
    assert Page(page_of_diagnosis(kept)).all("main")
    assert diagnosis_to_markdown(kept, generated_at="", tool_version="") and diagnosis_text(
        kept, encoding="utf-8", width=100, is_terminal=False, has_color=False
    )
