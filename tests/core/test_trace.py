"""Structured traces: whole, and with their beginning or their end lost."""

from __future__ import annotations

import gzip

import pytest

from recompile_watch.core.engine import SourceEngine
from tests.conftest import DATA, TIMES, as_json, engine_events, matcher, rules

TRACE = DATA / "torch" / "2.13.0" / "s20_misc_trace.trace" / "dedicated_log_torch_trace_us81hi9h.log.gz"


def trace() -> bytes:
    return gzip.decompress(TRACE.read_bytes())


def test_a_trace_tells_the_version_of_torch() -> None:
    """Since 2.13 it stands in an artifact, and in the metrics of each compilation."""
    engine = SourceEngine("t.log", rules(), matcher(), TIMES)
    engine.feed(trace())
    engine.end()
    assert engine.tally().torch_version == "2.13.0+cpu"


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.8])
def test_a_trace_without_its_beginning(share: float) -> None:
    """It is still read as a trace: what is left of it are its events, and nothing is invented out of payloads."""
    data = trace()
    cut = int(len(data) * share)
    whole = [(event["kind"], event["compile_id"], event["at"]["offset"]) for event in as_json(engine_events([data]))]
    left = [(event["kind"], event["compile_id"], event["at"]["offset"] + cut) for event in as_json(engine_events([data[cut:]]))]
    assert left == whole[len(whole) - len(left) :] and len(left) >= sum(offset >= cut for _, _, offset in whole)


def test_a_recompile_behind_the_cut_is_named_by_its_own_compilation() -> None:
    """The frame's first compilation is gone; the one that the recompile is about names the function."""
    data = trace()
    events = as_json(engine_events([data]))
    recompile = next(event for event in events if event["kind"] == "recompile")
    (first, *_) = as_json(engine_events([data[recompile["at"]["offset"] - 1 :]]))
    assert (first["kind"], first["compile_id"], first["function"]) == ("recompile", recompile["compile_id"], recompile["function"])
