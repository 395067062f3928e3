"""A log that passed two or three hands tells the same events: a sample of the stacks; `make stacked` tries all of them."""

from __future__ import annotations

import dataclasses
import functools
import random

import pytest

from tests.conftest import DATA, events_of_bytes
from tests.stacked import LOGS, failures, stacked
from tests.variants import VARIANTS, Variant, check, wrap_hard

SHARE = 0.004  # of some 25,000 stacks


@pytest.mark.parametrize("label", LOGS)
def test_facts_survive_two_and_three_changes(label: str) -> None:
    """Every sampled stack keeps the facts that all of its changes keep, and invents none."""
    rng = random.Random(3)
    data = (DATA / "torch" / f"{label}.log").read_bytes()
    assert list(failures(events_of_bytes, label, data, lambda: rng.random() < SHARE)) == []


def lost(label: str, variant: Variant) -> list[str]:
    """What a changed log tells otherwise than the log itself: one line for each difference, or for an error."""
    data = (DATA / "torch" / f"{label}.log").read_bytes()
    cell = check(variant, data, events_of_bytes, events_of_bytes(data, "bot.log"))
    return [*([cell.error] if cell.error else []), *(cell.problems or ())]


BARE = ("2.9.1/s19_format_short", "2.13.0/s12_fullgraph_limit_default", "2.5.1/s20_misc_times", "2.13.0/s11_ro_cudagraphs_backend_default")


@pytest.mark.parametrize("carrier", ["ts", "vllm", "docker_compose", "syslog_3164", "kubectl_prefix", "gitlab", "mpi_timestamped", "heroku"])
@pytest.mark.parametrize("label", BARE)
def test_facts_survive_an_indented_paste(label: str, carrier: str) -> None:
    """A whole log that somebody indented, as a page wants it, tells the same behind a carrier's prefix, also without torch's own."""
    assert lost(label, stacked([VARIANTS[carrier], VARIANTS["list_indent"]])) == []


@pytest.mark.parametrize("carrier", ["docker_json", "docker_json_split", "json_log", "json_message", "notebook", "markdown_bold"])
@pytest.mark.parametrize("label", LOGS)
def test_facts_survive_a_head_cut_inside_an_entry(label: str, carrier: str) -> None:
    """A log whose beginning was cut in the middle of an entry: what is left of the entry's text tells what the bare text would."""
    assert lost(label, stacked([VARIANTS[carrier], VARIANTS["head_cut_37"]])) == []


SHORT = ("2.13.0/s11_ro_plain", "2.5.1/s02_size_relation", "2.9.1/s12_fullgraph_limit")


@pytest.mark.parametrize("label", SHORT)
def test_facts_survive_a_terminal_of_any_width(label: str) -> None:
    """A log of few records, some lines of which a terminal broke: torch's own sentences, put together again, tell where."""
    for width in range(80, 201, 8):
        variant = dataclasses.replace(VARIANTS["wrap_hard_80"], name=str(width), apply=functools.partial(wrap_hard, width))
        assert lost(label, variant) == [], f"{width} columns"
