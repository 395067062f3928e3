"""Tests of `recompile-watch explain`: every word the tool uses can be asked about, and so can a line of the log."""

from __future__ import annotations

import re

import pytest

from recompile_watch.config import load_catalog, load_rules
from recompile_watch.core.causes import parse_reason
from recompile_watch.core.heard import TroubleKind
from recompile_watch.core.remedy_tables import PLACEHOLDERS
from recompile_watch.core.wording import CAUSES
from recompile_watch.report.explanation import EXAMPLES, explained_cause, explained_kind, explained_remedy, explained_setting, explained_watch_kind
from recompile_watch.report.guide import guide
from recompile_watch.report.watch_kinds import WATCH_KINDS
from tests.cli.test_commands import run
from tests.conftest import ROOT, engine_events


def test_every_word_has_an_explanation() -> None:
    """All causes, kinds, remedies and settings; no placeholder of another entry, no empty one."""
    rules, catalog = load_rules(), load_catalog()
    texts = [explained_cause(cause, catalog) for cause in CAUSES]
    texts += [explained_kind(kind, rules, catalog) for kind in {rule.event for rule in rules.rules}]
    texts += [explained_remedy(remedy.key, catalog) for remedy in catalog.remedies]
    texts += [explained_setting(name, catalog) for name in (*catalog.settings, *catalog.ineffective)]
    assert all(len(text.split()) > 6 and text.endswith("\n") for text in texts)
    assert set(EXAMPLES) == PLACEHOLDERS


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("kv_cache_index", "What to do (when each layer has its own index):"),
        ("recompile_limit_hit", "Rules that find it:"),
        ("inference", "made from what several lines"),
        ("mark_dynamic", "ConstraintViolationError"),
        ("TORCHDYNAMO_RECOMPILE_LIMIT", "no torch reads this"),
        ("recompile_limit", "torch._dynamo.config.recompile_limit: a configuration key"),
        ("latency_high", "latency_high: raised by the watch"),
        ("TORCH_COMPILE_DYNAMIC_SOURCES", "from torch 2.7 on"),
        ("dynamic=True", "strides, parameters and the ints of a module stay fixed"),
        ("reduce-overhead", "torch.compile(mode=): an argument"),
        ("Graph breaks", "graph_break: an event"),
        ("tensor 'x' stride mismatch at index 0. expected 6, actual 1", "stride_mismatch"),
        (
            "W1104 10:14:42.000000 1 torch/_dynamo/convert_frame.py:1358] [6/8] torch._dynamo hit config.recompile_limit (8)",
            "recompile_limit_hit: an event",
        ),
        ("skipping cudagraphs due to mutated inputs (2 instances)", "1. Give the state that is written a fixed address"),
    ],
)
def test_topics(topic: str, words: str) -> None:
    """A name, or a message in quotes."""
    done = run("explain", topic)
    assert done.returncode == 0 and words in done.stdout, done.stderr


def test_a_message_that_is_no_finding_is_told_apart() -> None:
    """torch's own notices: known, whatever stands around them; no event in a log; what they name exists."""
    catalog, rules = load_catalog(), load_rules()
    done = run("explain", "W0317 22:33:36.322000 1 torch/_inductor/utils.py:1137] [0/0] Not enough SMs to use max_autotune_gemm mode")
    assert done.returncode == 0 and "fewer multiprocessors" in done.stdout and "What to do: Nothing." in done.stdout
    for remark in catalog.remarks:
        lines = (
            f"W0317 22:33:36.322000 1 torch/_inductor/utils.py:1137] [0/0] {remark.text} x\n/v/torch/_inductor/a.py:9: UserWarning: {remark.text} x\n"
        )
        assert not engine_events([lines.encode()]), remark.text
        assert set(re.findall(r"\bTORCH[A-Z]*_[A-Z_]+", remark.means + remark.do)) <= catalog.known | set(catalog.settings)
        assert remark.means.endswith((".", ")")) and remark.text in guide(rules, catalog)


def test_a_message_gets_its_own_advice() -> None:
    """Not that of every message of the kind, and what to paste."""
    done = run("explain", "skipping cudagraphs due to mutated inputs (2 instances)")
    assert "register_buffer" in done.stdout and "deterministic" not in done.stdout


def test_a_guard_gets_its_own_advice() -> None:
    """A pasted guard is told what to paste, by its own names; not every case of its class."""
    done = run("explain", "tensor 'key' dtype mismatch. expected BFloat16, actual Float").stdout
    assert "key = key.to(torch.bfloat16)" in done
    assert "torch.tensor(" not in run("explain", "G['CONFIG']['impl'] == 'eager'").stdout


def test_what_the_watch_raises_has_an_explanation() -> None:
    """Every kind that a condition or a fault of the watching gives an incident: messages name the command."""
    sources = [path.read_text() for path in (ROOT / "recompile_watch/core").glob("*.py")]
    raised = {name for text in sources for name in re.findall(r'Signal\(\s*"(\w+)"', text)} | {kind.value for kind in TroubleKind} | {"source_silent"}
    assert len(raised) > 15
    known = {rule.event for rule in load_rules().rules}.union(*(case.kinds for case in load_catalog().cases))
    assert raised <= set(WATCH_KINDS) | known and not set(WATCH_KINDS) - raised
    assert all(kind in explained_watch_kind(kind) for kind in WATCH_KINDS)


@pytest.mark.parametrize(
    ("topic", "words"),
    [("kv_cach_index", "did you mean 'kv_cache_index'?"), ("the weather is fine", "paste a whole line"), ("\x1b[31m", "nothing known")],
)
def test_unknown_topics(topic: str, words: str) -> None:
    """One line that says what to try."""
    done = run("explain", topic)
    assert done.returncode == 64 and words in done.stderr and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr


def test_every_cause_shows_how_it_looks() -> None:
    """The texts in the guide are of the class that they stand for."""
    catalog = load_catalog()
    assert set(catalog.looks) == set(CAUSES)
    for cause, look in catalog.looks.items():
        for text in look.texts:
            guard = text.partition("   [")[0]
            if cause != "empty" and not text.startswith("___check_global_state"):
                assert parse_reason(guard, "forward").cause == cause, guard


def test_the_guide_tells_each_message_of_torch() -> None:
    """Each kind that a case is about, with how it looks and every case that advises without a guard."""
    rules, catalog = load_rules(), load_catalog()
    messages = guide(rules, catalog).partition("## Messages\n")[2].partition("\n## ")[0]
    for kind in ("graph_break", "cudagraph_skip", "cudagraph_overwritten_error", "recompile_limit_hit", "compile_error"):
        told = messages.partition(f"### `{kind}`\n")[2].partition("\n### ")[0]
        assert "\n```\n" in told
        assert told.count("\n| ") == 2 + sum(kind in case.kinds and not case.causes for case in catalog.cases)


def test_the_guide_is_up_to_date() -> None:
    """docs/guide.md is what the data gives: `recompile-watch explain --guide > docs/guide.md`."""
    assert (ROOT / "docs/guide.md").read_text() == guide(load_rules(), load_catalog())
    assert run("explain", "--guide").stdout == guide(load_rules(), load_catalog())
