"""Tests of `recompile-watch explain`: every word the tool uses can be asked about, and so can a line of the log."""

from __future__ import annotations

import pytest

from recompile_watch.config import load_catalog, load_rules
from recompile_watch.core.wording import CAUSES
from recompile_watch.report.explanation import explained_cause, explained_kind, explained_remedy, explained_setting
from tests.cli.test_commands import run


def test_every_word_has_an_explanation() -> None:
    """All causes, kinds, remedies and settings; no placeholder of another entry, no empty one."""
    rules, catalog = load_rules(), load_catalog()
    texts = [explained_cause(cause, catalog) for cause in CAUSES]
    texts += [explained_kind(kind, rules, catalog) for kind in {rule.event for rule in rules.rules}]
    texts += [explained_remedy(remedy.key, catalog) for remedy in catalog.remedies]
    texts += [explained_setting(name, catalog) for name in (*catalog.settings, *catalog.ineffective)]
    assert all(len(text.split()) > 6 and text.endswith("\n") for text in texts)


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("kv_cache_index", "What to do when each layer has its own index:"),
        ("recompile_limit_hit", "Rules that find it:"),
        ("mark_dynamic", "ConstraintViolationError"),
        ("TORCHDYNAMO_RECOMPILE_LIMIT", "no torch reads this"),
        ("TORCH_COMPILE_DYNAMIC_SOURCES", "from torch 2.7 on"),
        ("tensor 'x' stride mismatch at index 0. expected 6, actual 1", "stride_mismatch"),
        (
            "W1104 10:14:42.000000 1 torch/_dynamo/convert_frame.py:1358] [6/8] torch._dynamo hit config.recompile_limit (8)",
            "recompile_limit_hit: an event",
        ),
    ],
)
def test_topics(topic: str, words: str) -> None:
    """A name, or a message in quotes."""
    done = run("explain", topic)
    assert done.returncode == 0 and words in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("topic", "words"),
    [("kv_cach_index", "did you mean 'kv_cache_index'?"), ("the weather is fine", "paste a whole line"), ("\x1b[31m", "nothing known")],
)
def test_unknown_topics(topic: str, words: str) -> None:
    """One line that says what to try."""
    done = run("explain", topic)
    assert done.returncode == 64 and words in done.stderr and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr
