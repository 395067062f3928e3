"""The HTML report in a real browser: it loads nothing, its script and colours work, a keyboard reaches everything.

Without Chromium these tests are skipped, unless RECOMPILE_WATCH_CI is set, as CI sets it: then they fail.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tests.browser import Browser, chromium
from tests.report.diagnoses import measured
from tests.report.test_formats import report
from tests.report.test_html import EVIL, PAGES, contrast, page_named, page_of

PROGRAM = chromium()
if PROGRAM is None and not os.environ.get("RECOMPILE_WATCH_CI"):
    pytest.skip("NO CHROMIUM: the HTML report is not tested in a browser; apt-get install chromium", allow_module_level=True)

# The charts of a page, and its title for the first one.
CHARTS = {
    "bot": ("events", "limits", "returns", "memory", "quotes"), "diagnosis measured": ("speedup", "latency", "calls", "compilations"),
}  # fmt: skip
FIRST = {"bot": "Events over time, by kind", "diagnosis measured": "Speed-up against eager"}
VISIBLE = "(e => e.checkVisibility() && e.getBoundingClientRect().height > 0)"
SAID = "[...document.querySelectorAll('pre code')].map(e => e.textContent)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    assert PROGRAM is not None, "RECOMPILE_WATCH_CI is set, and there is no chromium: apt-get install chromium"
    with Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file for each page."""
    folder = tmp_path_factory.mktemp("pages")
    for name in PAGES:
        (folder / f"{name}.html").write_text(page_named(name))
    return {name: folder / f"{name}.html" for name in PAGES}


def complaints(browser: Browser) -> list[object]:
    """What the browser's console shows."""
    browser.value("1")  # whatever was said before this answer has arrived by now
    methods = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
    return [event for event in browser.events if event.get("method") in methods]


def color(browser: Browser, selector: str, name: str) -> str:
    """A computed colour as #rrggbb."""
    text = str(browser.value(f"getComputedStyle(document.querySelector({selector!r}))[{name!r}]"))
    numbers = re.findall(r"[\d.]+", text)
    assert len(numbers) == 3, text
    return "#" + "".join(f"{int(number):02x}" for number in numbers)


def until(browser: Browser, condition: str) -> None:
    """Waits in the page until something holds; what never does ends with the test's own message."""
    poll = f"new Promise(done => {{ const look = n => ({condition}) ? done(true) : n ? setTimeout(look, 20, n - 1) : done(false); look(1000) }})"
    assert browser.value(poll) is True, condition


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [1400, 390])
def test_loads_nothing_and_complains_of_nothing(browser: Browser, pages: dict[str, Path], name: str, width: int) -> None:
    """The only request is for the file itself; the console stays empty; nothing is wider than the window."""
    browser.open(pages[name], width=width)
    asked = [cast(dict[str, str], cast(dict[str, object], event["params"])["request"])["url"] for event in browser.events
             if event.get("method") == "Network.requestWillBeSent"]  # fmt: skip
    assert asked == [pages[name].resolve().as_uri()]
    assert complaints(browser) == []
    assert browser.value("document.documentElement.scrollWidth") == width
    browser.click("#open")
    assert browser.value("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("name", sorted(CHARTS))
@pytest.mark.parametrize(("width", "size"), [(1400, "wide"), (390, "narrow")])
def test_charts_are_there(browser: Browser, pages: dict[str, Path], name: str, width: int, size: str) -> None:
    """Each chart is drawn once for this width, with shapes and letters of a size to read, and a name for a screen reader."""
    browser.open(pages[name], width=width)
    shown = f"[...document.querySelectorAll('svg[role=img]')].filter({VISIBLE})"
    drawn = browser.value(f"{shown}.map(e => e.getAttribute('aria-labelledby').split(' ')[0])")
    assert drawn == [f"{chart}-{size}-title" for chart in CHARTS[name]]
    heights = cast(list[float], browser.value(f"[...document.querySelectorAll('svg.{size} text')].map(e => e.getBoundingClientRect().height)"))
    assert len(heights) > 40 and min(heights) >= 11
    tree = cast(list[dict[str, dict[str, str]]], browser.call("Accessibility.getFullAXTree")["nodes"])
    images = [node["name"]["value"] for node in tree if node.get("role", {}).get("value") == "image" and not node.get("ignored")]
    assert FIRST[name] in " ".join(images) and len(images) == len(CHARTS[name])


@pytest.mark.parametrize(("name", "fewest"), [("bot", 17), ("diagnosis measured", 11)])
def test_marks_of_charts_are_painted(browser: Browser, pages: dict[str, Path], name: str, fewest: int) -> None:
    """What a drawing uses several times, such as the mark of a symbol, is really there."""
    browser.open(pages[name])
    sizes = cast(list[float], browser.value("[...document.querySelectorAll('svg.wide use')].map(e => e.getBoundingClientRect().width)"))
    assert len(sizes) >= fewest and all(size > 3 for size in sizes)


@pytest.mark.parametrize("name", ["hostile", "diagnosis hostile"])
def test_script_text_is_text(browser: Browser, pages: dict[str, Path], name: str) -> None:
    """Nothing that a log or a measured program says runs, loads or becomes an element."""
    browser.open(pages[name])
    assert "<script>alert(1)</script>" in str(browser.value("document.querySelector('.card h3').textContent"))
    assert browser.value("document.querySelectorAll('script').length") == 1
    assert browser.value("document.querySelectorAll('h3 script, h3 b, td b, .evidence script').length") == 0
    dialogs = [event for event in browser.events if event.get("method") == "Page.javascriptDialogOpening"]
    assert dialogs == [] and complaints(browser) == []


def test_policy_is_in_force(browser: Browser, pages: dict[str, Path]) -> None:
    """A script or a style that came into the page in any other way has no effect."""
    browser.open(pages["bot"])
    violation = "addEventListener('securitypolicyviolation', e => done(e.effectiveDirective))"
    tried = f"new Promise(done => {{ {violation}; %s; setTimeout(() => done('allowed'), 3000) }})"
    script = "const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s)"
    assert browser.value(tried % script) == "script-src-elem"
    assert browser.value(tried % "document.body.insertAdjacentHTML('beforeend', '<p style=\"color:red\">x</p>')") == "style-src-attr"
    assert browser.value(tried % "fetch('https://example.invalid/').catch(() => 0)") == "connect-src"
    assert browser.value("typeof window.hacked") == "undefined"


def test_copy_puts_the_exact_text_on_the_clipboard(browser: Browser, pages: dict[str, Path]) -> None:
    """Each button copies exactly the text beside it, says so, and goes back to its word."""
    browser.open(pages["bot"])
    browser.call("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}, session=None)
    browser.value("document.querySelectorAll('details').forEach(e => { e.open = true })")
    wanted = [advice.apply for advice in report().findings[0].advice]
    shown = cast(list[str], browser.value(SAID))
    assert set(wanted) <= set(shown)
    says = "[document.getElementById('live').textContent, ...[...document.querySelectorAll('.copy span:first-child')].map(e => e.textContent)]"
    watched = "{subtree: true, childList: true, characterData: true}"
    browser.value(f"window.said = []; new MutationObserver(() => window.said.push(...{says})).observe(document.body, {watched})")
    for text in wanted:
        browser.value("window.said = []")
        browser.click(f"button.copy[data-from=paste-{shown.index(text) + 1}]")
        until(browser, "window.said.includes('Copied') && window.said.includes('Copied to the clipboard.')")
        assert browser.value("navigator.clipboard.readText()") == text
    until(browser, f"{says}.slice(1).every(word => word === 'Copy')")


def test_the_verdict_is_copied(browser: Browser, pages: dict[str, Path]) -> None:
    """The first button of a diagnosis copies the lines that the verdict says to set."""
    browser.open(pages["diagnosis measured"])
    browser.call("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}, session=None)
    browser.click("#verdict button.copy")
    until(browser, "document.getElementById('live').textContent.includes('Copied')")
    assert browser.value("navigator.clipboard.readText()") == "\n".join(measured().judgement.verdict.settings)


def test_copy_without_a_clipboard(browser: Browser, pages: dict[str, Path]) -> None:
    """Where the browser gives no access to the clipboard, exactly the text is selected and copied the old way."""
    browser.open(pages["hostile"])
    browser.value("Object.defineProperty(navigator, 'clipboard', {value: undefined}); window.copied = []; "
                  "document.addEventListener('copy', () => window.copied.push(getSelection().toString()))")  # fmt: skip
    browser.click("button.copy")
    until(browser, "window.copied.length")
    assert browser.value("window.copied") == cast(list[str], browser.value(SAID))[:1]
    assert "<script>" in cast(list[str], browser.value("window.copied"))[0] and "<script>" in EVIL


@pytest.mark.parametrize("name", sorted(CHARTS))
def test_dark_and_light(browser: Browser, pages: dict[str, Path], name: str) -> None:
    """The reader's scheme changes page and charts alike; letters can be read in both; the button turns it round, without storage."""
    seen: dict[str, list[str]] = {}
    for scheme in ("light", "dark"):
        browser.open(pages[name], scheme=scheme)
        grounds = (("body", "backgroundColor"), ("body", "color"), (".card", "backgroundColor"))
        places = (*grounds, ("svg.wide text.f-text", "fill"), ("svg.wide .f-critical", "fill"))
        seen[scheme] = [color(browser, *place) for place in places]
        assert contrast(seen[scheme][0], seen[scheme][1]) >= 7 and contrast(seen[scheme][2], seen[scheme][3]) >= 7
        assert browser.value("document.getElementById('theme').getAttribute('aria-pressed')") == str(scheme == "dark").lower()
    assert all(light != dark for light, dark in zip(seen["light"], seen["dark"], strict=True))
    browser.click("#theme")
    assert [color(browser, "body", "backgroundColor"), color(browser, "svg.wide text.f-text", "fill")] == [seen["light"][0], seen["light"][3]]
    browser.click("#theme")
    assert color(browser, "body", "backgroundColor") == seen["dark"][0]
    assert browser.value("document.cookie") == ""


@pytest.mark.parametrize(("name", "fewest"), [("bot", 41), ("diagnosis measured", 20)])
def test_tab_reaches_everything_in_order(browser: Browser, pages: dict[str, Path], name: str, fewest: int) -> None:
    """Tab goes to the skip link first and then to every control in the order of the page; each shows that it has the focus."""
    browser.open(pages[name])
    wanted = f"[...document.querySelectorAll('a[href], button, summary, [tabindex=\"0\"]')].filter(e => e.className === 'skip' || {VISIBLE}(e))"
    number = cast(int, browser.value(f"(window.wanted = {wanted}).length"))
    assert number >= fewest
    for place in range(number):
        browser.press("Tab", 9)
        assert browser.value("window.wanted.indexOf(document.activeElement)") == place
        assert browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        assert float(str(browser.value("document.activeElement.getBoundingClientRect().left"))) >= 0


def test_keyboard_operates(browser: Browser, pages: dict[str, Path]) -> None:
    """Enter follows the skip link, opens details and presses buttons."""
    browser.open(pages["bot"])
    browser.press("Tab", 9)
    browser.press("Enter", 13)
    assert browser.value("document.activeElement.id") == "main"
    browser.value("document.querySelector('summary').focus()")
    browser.press("Enter", 13)
    assert browser.value("document.querySelector('details').open") is True
    browser.value("document.getElementById('open').focus()")
    browser.press("Enter", 13)
    assert browser.value("[...document.querySelectorAll('details')].every(e => e.open)") is True


@pytest.mark.parametrize("name", sorted(CHARTS))
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_printed(browser: Browser, pages: dict[str, Path], tmp_path: Path, name: str, scheme: str) -> None:
    """On paper there is no button and no navigation, everything is open, and the ground is white whatever the scheme."""
    browser.open(pages[name], scheme=scheme, media="print")
    assert browser.value(f"[...document.querySelectorAll('button, nav')].filter({VISIBLE}).length") == 0
    assert color(browser, "body", "backgroundColor") == "#ffffff"
    browser.value("dispatchEvent(new Event('beforeprint'))")
    assert browser.value(f"[...document.querySelectorAll('table, pre')].every({VISIBLE})") is True
    browser.value("dispatchEvent(new Event('afterprint'))")
    assert browser.value("document.querySelectorAll('details[open]').length") == 0
    browser.pdf(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF-")


@pytest.mark.parametrize("name", sorted(CHARTS))
def test_without_its_script(browser: Browser, pages: dict[str, Path], name: str) -> None:
    """Where scripts are off everything is still there to read, and no button stands there that does nothing."""
    browser.call("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(pages[name])
        nodes = cast(list[dict[str, dict[str, str]]], browser.call("Accessibility.getFullAXTree")["nodes"])
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", {"value": False})
    roles = [node["role"]["value"] for node in nodes if not node.get("ignored") and "role" in node]
    assert "button" not in roles and roles.count("image") == len(CHARTS[name]) and "main" in roles


def test_a_large_report(browser: Browser, tmp_path: Path) -> None:
    """A report with more findings than a page takes is shown without a complaint, and says how many are left out."""
    whole = report()
    many = tuple(replace(whole.findings[n % 6], id=f"{n:016}", title=f"finding {n}") for n in range(4000))
    (tmp_path / "large.html").write_text(page_of(replace(whole, findings=many)))
    browser.open(tmp_path / "large.html")
    assert browser.value("document.querySelectorAll('#findings .card').length") == 50
    assert "more findings; --format json has all of them" in str(browser.value("document.querySelector('#findings').textContent"))
    assert complaints(browser) == []
