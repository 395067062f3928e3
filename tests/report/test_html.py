"""Tests of `recompile_watch.report.html`: a page that stands alone, says the same each time, and in which text of a log is text."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from recompile_watch.core.analysis import Analysis, Facts, Report, SourceFacts
from recompile_watch.core.events import EXTRA_FIELDS, Event
from recompile_watch.core.findings import Evidence
from recompile_watch.report.html import MAX_CARDS, MAX_NOTES, report_to_html
from recompile_watch.report.page import MAX_ROWS
from recompile_watch.report.palette import DARK, GROUNDS, LIGHT
from tests.conftest import SAMPLES, engine_events, rules
from tests.fuzz.mutate import mutated
from tests.report.diagnoses import DIAGNOSES, page_of_diagnosis
from tests.report.diagnoses import hostile as hostile_diagnosis
from tests.report.test_formats import HOSTILE, report

EVIL = HOSTILE.replace("\n", " ") + " $x^{2}$ </title></style></script> \u202edrow"
# Names as long as a rule lets them be, of signs that mean something in HTML, SVG or a formula.
NAMES = ("<b>&amp;\"'</b>", "$\\alpha_{1}$", "</svg><script>alert(1)</script>", "a\u202eb", "x" * 300)
VOID = frozenset({"meta", "br", "img", "input", "link", "hr"})


def page_of(of: Report, generated_at: str = "2026-11-21T00:00:00+00:00") -> str:
    return report_to_html(of, generated_at=generated_at, tool_version="0.0")


def report_of(*events: Event) -> Report:
    analysis = Analysis(rules())
    for one in events:
        analysis.add(one)
    return analysis.report(Facts((SourceFacts("/logs/bot.log", 1000, 10),)))


def event(kind: str, second: int = 0, time: str | None = None, **extra: object) -> Event:
    """An event of one day, so many seconds after nine o'clock."""
    at = time or datetime(2025, 10, 30, 9, second // 60, second % 60, tzinfo=UTC).isoformat()
    fields = {**EXTRA_FIELDS.get(kind, {}), **{name.rstrip("_"): value for name, value in extra.items()}}
    return Event(kind, "/logs/bot.log", second + 1, second * 10, at, None, 7, "0/3", "f", "/srv/m/a.py", 9, (), False, fields)


def hostile() -> Report:
    """A report whose every text is an attack, in findings and in series."""
    events = [
        one
        for n, name in enumerate(NAMES)
        for one in (
            event("quote", n, symbol=name), event("synthetic_quote", n + 20, symbol=name, cause="add_latest_off"),
            event("strategy_return", n, symbol=name, strategy=name, return_=0.1), event("gpu_memory", n * 20, model=name, stage=name, peak_mb=9.0),
            event("inference", n * 20, model=name, milliseconds=5.0), event("model_load", n, model=name), event("bot_error", n, message=name),
            event("strategy_daily_return", n, symbol=name, strategy=name, return_=0.1),
            event("validation_loss", n, symbol=name, target=name, value=0.1),
        )
    ]  # fmt: skip
    whole, known = report_of(*events), report()
    finding = replace(known.findings[0], title=EVIL, file=f"/srv/{EVIL}.py", function=EVIL, model=EVIL, consequence=EVIL)
    finding = replace(
        finding, evidence=(Evidence(f"{EVIL}.log", 3, EVIL),), advice=(replace(finding.advice[0], apply=EVIL, docs="javascript:alert(1)"),)
    )
    sources = (replace(whole.sources[0], facts=SourceFacts(f"/logs/{EVIL}", 1, 1, {EVIL: 1}, None, EVIL)),)
    return replace(whole, findings=(finding, *whole.findings), problems=(EVIL,), sources=sources, torch_version=EVIL)


class Page(HTMLParser):
    """What stands where: the elements in order with their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.text = ""
        self.of: dict[str, str] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        self.of[inside] = self.of.get(inside, "") + data
        if inside not in ("style", "script"):
            self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def accepted_and_marked() -> Report:
    """A report with every mark that a baseline or a person gives."""
    whole = report()
    marks = ("new", "worse", "same", "better", "gone", None)
    marked = [replace(finding, baseline=mark) for finding, mark in zip(whole.findings, marks, strict=False)]
    return replace(whole, findings=(*marked, replace(whole.findings[5], accepted_until="2026-12-31")))


REPORTS = {
    "bot": report, "kv-cache": lambda: report("sample_logs/kv-cache-torch-2.13.log"), "cudagraphs": lambda: report("sample_logs/cudagraphs.log"),
    "nothing": lambda: report_of(), "ok": lambda: report_of(event("quote", symbol="A"), event("quote", 90, symbol="A")), "hostile": hostile,
    "baseline": accepted_and_marked,
}  # fmt: skip


# Every kind of page, by name: what a page must be, each of them must be.
PAGES = sorted([*REPORTS, *(f"diagnosis {name}" for name in (*DIAGNOSES, "hostile"))])


def page_named(name: str) -> str:
    """One of ``PAGES``."""
    if name in REPORTS:
        return page_of(REPORTS[name]())
    return page_of_diagnosis({**DIAGNOSES, "hostile": hostile_diagnosis}[name.removeprefix("diagnosis ")]())


@pytest.fixture(scope="module", params=PAGES)
def page(request: pytest.FixtureRequest) -> Page:
    """A page, parsed; every tag is closed in order."""
    return Page(page_named(request.param))


def test_compiled_versions_without_a_limit() -> None:
    """Where the log shows how many versions a function has and no limit, the chart is drawn by the versions alone."""
    whole = report()
    bare = [replace(one, headroom=one.headroom and replace(one.headroom, limit=None)) for one in whole.findings]
    assert any(one.headroom for one in bare)
    assert "<svg" in page_of(replace(whole, findings=tuple(bare)))


def test_says_what_to_do() -> None:
    """Findings worst first with consequence, evidence and the exact text to paste; decisions, returns and what the log does not hold."""
    text = Page(page_of(report())).text
    words = (
        "2critical", "4warnings", "overwritten by the next run", "positional_embedding hit the recompile limit (8)", "8 of 8 entries, none left",
        "last reason: 6/7: kv_cache._current_idx[7] == 0", "@torch.compiler.disable  # on positional_embedding",
        "export TOTO_DISABLE_COMPILE=1", "toto ran out of GPU memory", "toto: eager", "Events over time", "18.24", "Not in this log: latency.",
    )  # fmt: skip
    places = [text.index(word) for word in words]
    assert places == sorted(places)


def test_no_evidence_is_not_ok() -> None:
    """A report on nothing says unknown, what is missing, and that this is no good news."""
    text = Page(page_of(report_of())).text
    assert "Unknown" in text and "nothing recognisable in the input" in text and "does not mean that all is well" in text
    assert "OK" in Page(page_of(REPORTS["ok"]())).text


def test_baseline_and_acceptance_are_shown() -> None:
    """Each mark against the baseline, and until when a person accepted."""
    text = Page(page_of(accepted_and_marked())).text
    assert "Findings against the baseline" in text and "accepted until 2026-12-31" in text
    for mark in ("new", "worse", "same", "better"):
        assert f"{mark} since the baseline" in text
    assert "gone" in text


def test_same_report_same_page() -> None:
    """Two pages of one report are equal but for the time of making, in whatever process they are made."""
    at, later = "2026-11-21T00:00:00+00:00", "2027-01-01T12:00:00+00:00"
    first = page_of(report(), at)
    assert first == page_of(report(), at)
    assert page_of(report(), later) == first.replace(at, later)
    code = f"from tests.report.test_html import *; sys.stdout.write(page_of(report(), {at!r}))"
    for seed in ("1", "2"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
        assert done.stdout == first


def test_log_text_stays_text() -> None:
    """A hostile log adds no element, no attribute and no link; its text is there to be read, controls and secrets are not."""
    evil, tame = Page(page_of(hostile())), Page(page_of(report()))
    harmless = {"title", "desc"} | {tag for tag, _ in tame.elements}
    assert {tag for tag, _ in evil.elements} <= harmless | {tag for tag, _ in Page(page_of(REPORTS["kv-cache"]())).elements}
    assert "<script>alert(1)</script> [a](https://evil.example) @everyone" in evil.text
    assert "</svg><script>alert(1)</script>"[:40] in evil.text and "$\\alpha_{1}$" in evil.text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", evil.text)
    assert len(evil.all("script")) == 1 and len(evil.all("style")) == 1
    for tag, attributes in evil.elements:
        assert not any(name.startswith("on") or name in ("style", "src", "srcset") for name in attributes), (tag, attributes)
    assert all(link["href"].startswith(("#", "https://docs.pytorch.org/", "https://github.com/pytorch/")) for link in evil.all("a"))


def test_formulas_are_not_drawn() -> None:
    """A name between dollar signs stands in a chart as it stands in the log."""
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", page_of(hostile()))
    assert "$\\alpha_{1}$" in drawn


@pytest.mark.parametrize("seed", range(6))
def test_damaged_logs_become_pages(seed: int) -> None:
    """Whatever a damaged log holds, the page is made and well formed."""
    rng = random.Random(seed)
    data = mutated(rng, (SAMPLES / "bot-2025-10-30.log").read_bytes() * 2)
    assert Page(page_of(report_of(*engine_events([data])))).all("main")


def test_letters_of_any_script_and_numbers_that_are_none() -> None:
    """Names that matplotlib's own font lacks, and nan, are shown without a word of warning."""
    name, nan = "模型😀عربى́", float("nan")
    events = [
        one for n in (0, 300) for one in (
            event("quote", n, symbol=name), event("gpu_memory", n, model=name, stage=name, peak_mb=nan), event("inference", n, milliseconds=nan),
            event("strategy_return", n, symbol=name, strategy=name, return_=nan), event("strategy_return", n, symbol="A", strategy=name, return_=0.1),
        )
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "模型" in Page(page_of(report_of(*events))).text


ODD_TIMES = [("0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"), ("1970-01-01T00:00:00+14:00", "2025-10-30T09:00:00-12:00")]


@pytest.mark.parametrize("times", ODD_TIMES)
def test_dates_of_any_year_are_drawn(times: tuple[str, str]) -> None:
    """Torn dates make an odd picture and no error."""
    events = [event(kind, time=time, **extra) for time in times for kind, extra in (
        ("quote", {"symbol": "A"}), ("gpu_memory", {"model": "m", "stage": "s", "peak_mb": 0.0}), ("inference", {"model": "m", "milliseconds": 0.0}),
        ("model_load", {"model": "m"}),
    )]  # fmt: skip
    assert Page(page_of(report_of(*events))).text.count("Events over time") == 3  # heading and the titles of two drawings


def test_what_is_cut_is_counted() -> None:
    """Long lists of findings, notes and rows end with how many more there are."""
    whole = report()
    many = [replace(whole.findings[0], id=f"{n:016}", evidence=()) for n in range(MAX_CARDS + 7)]
    notes = [replace(whole.findings[-1], id=f"n{n}", kind=f"k{n}", severity="info", evidence=()) for n in range(MAX_NOTES + 3)]
    rows = [event("strategy_return", symbol=f"S{n}", strategy="MaxDiff", return_=0.1) for n in range(MAX_ROWS + 11)]
    text = Page(page_of(replace(whole, findings=(*many, *notes), series=report_of(*rows).series))).text
    assert "… and 7 more findings" in text and "… and 3 more notes" in text and "… and 11 more rows" in text


def test_stands_alone(page: Page) -> None:
    """Nothing is loaded from anywhere: the policy forbids it, and no element asks for it."""
    assert not {"link", "iframe", "object", "embed", "base", "form", "img", "image", "audio", "video"} & {tag for tag, _ in page.elements}
    assert "url(" not in page.of["style"] and "@import" not in page.of["style"]
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert tag == "a" or name in ("content", "xmlns") or not re.search(r"\w+://|url\((?!#)", value), (tag, name, value)


def test_policy_fits_the_page(page: Page) -> None:
    """Only the style and the script that stand in the page may have an effect, by their hashes."""
    (policy,) = (meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    rules_of = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert rules_of["default-src"] == "'none'" and rules_of["img-src"] == "data:" and "unsafe" not in policy
    for name in ("style", "script"):
        assert rules_of[f"{name}-src"] == f"'sha256-{base64.b64encode(hashlib.sha256(page.of[name].encode()).digest()).decode()}'"


def test_headings_are_in_order(page: Page) -> None:
    """One first heading, and no level is left out on the way down."""
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_landmarks_and_names(page: Page) -> None:
    """Header, navigation, main and footer; every id is unique, and every reference to one finds it."""
    tags = [tag for tag, _ in page.elements]
    assert [tags.count(tag) for tag in ("header", "nav", "main", "footer")][1:] == [1, 1, 1] and "header" in tags
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    wanted = [name for _, attributes in page.elements for name in attributes.get("aria-labelledby", "").split()]
    wanted += [attributes["href"][1:] for _, attributes in page.elements if attributes.get("href", "").startswith("#")]
    wanted += [attributes["data-from"] for _, attributes in page.elements if "data-from" in attributes]
    assert set(wanted) <= set(ids)
    assert page.all("html") == [{"lang": "en"}] and page.of["title"].strip()
    assert page.elements[[tag for tag, _ in page.elements].index("body") + 1] == ("a", {"class": "skip", "href": "#main"})


def test_tables_and_buttons(page: Page) -> None:
    """Each table has a caption and scoped headers, can be scrolled with the keyboard, and each button is one."""
    tags = [tag for tag, _ in page.elements]
    assert tags.count("caption") == tags.count("table") > 0
    assert all(header.get("scope") in ("col", "row") for header in page.all("th"))
    assert all(region["tabindex"] == "0" and region["aria-label"] for region in page.all("div") if region.get("class") == "scroll")
    assert all(button["type"] == "button" for button in page.all("button"))
    assert any(element.get("aria-live") == "polite" for element in page.all("div"))


def test_charts_speak(page: Page) -> None:
    """Each chart is an image with a title and a description, and a table says the same; what is only ornament is hidden from a reader."""
    figures = "".join(f" {tag} " for tag, _ in page.elements).split(" figure ")[1:]
    assert all(" table " in figure for figure in figures)
    for drawing in page.all("svg"):
        if drawing.get("role") == "img":
            assert len(drawing["aria-labelledby"].split()) == 2
        else:
            assert drawing["aria-hidden"] == "true"


def luminance(color: str) -> float:
    """Relative luminance, WCAG 2.2."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio, WCAG 2.2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def inks() -> Iterator[tuple[str, str, str]]:
    for scheme, colors in (("light", LIGHT), ("dark", DARK)):
        for name in colors:
            if name not in (*GROUNDS, "line", "grid"):
                yield from ((scheme, name, ground) for ground in GROUNDS)


@pytest.mark.parametrize(("scheme", "ink", "ground"), list(inks()))
def test_every_ink_can_be_read(scheme: str, ink: str, ground: str) -> None:
    """Text and lines of a chart stand out by 4.5 to 1 from every ground, in both schemes."""
    colors = {"light": LIGHT, "dark": DARK}[scheme]
    assert contrast(colors[ink], colors[ground]) >= 4.5


def test_schemes_have_the_same_inks() -> None:
    """No colour exists in one scheme only."""
    assert LIGHT.keys() == DARK.keys()
    assert contrast("#ffffff", "#000000") == pytest.approx(21)


def run(arguments: list[str], home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in ("MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    command = [sys.executable, "-m", "recompile_watch", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**clean, "HOME": str(home), **environment}, check=False)


def test_writes_one_file_and_nothing_else(tmp_path: Path) -> None:
    """`--output` gets the page; nothing is left in the home folder but the rules that are kept there, and nothing is said."""
    home, out = tmp_path / "home", tmp_path / "report.html"
    home.mkdir()
    done = run(["analyze", "--format", "html", "--output", str(out), str(SAMPLES / "bot-2025-10-30.log")], home)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
    assert out.read_text().startswith("<!DOCTYPE html>")
    kept = home / ".cache/recompile-watch"
    files = [path for path in home.rglob("*") if path.is_file()]
    assert sorted(path.name.partition("-")[0] for path in files if path.parent == kept) == ["catalog", "literals", "rules"] and len(files) == 3


def test_settings_of_the_users_own_change_nothing(tmp_path: Path) -> None:
    """A matplotlibrc of the user's draws no other picture."""
    (tmp_path / "matplotlibrc").write_text("svg.fonttype: path\nfont.size: 40\naxes.facecolor: red\n")
    pages = [
        run(["analyze", "--format", "html", str(SAMPLES / "bot-2025-10-30.log")], tmp_path, **environment).stdout
        for environment in ({}, {"MPLCONFIGDIR": str(tmp_path), "MATPLOTLIBRC": str(tmp_path)})
    ]
    plain = [re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", "", text) for text in pages]
    assert plain[0] and plain[0] == plain[1]
