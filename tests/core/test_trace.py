"""Structured traces: whole, and with their beginning or their end lost."""

from __future__ import annotations

import gzip
import json
from typing import Any

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


PLACE = "V1123 00:02:29.100000 5659 torch/_dynamo/utils.py:1879] "
CONFIG = '{"accumulated_recompile_limit": 256, "recompile_limit": 3}'


def compiled(frame: int, number: int, **metrics: object) -> str:
    """The metrics of one compilation."""
    named = {"co_name": "f", "co_filename": "/srv/app/m.py", "co_firstlineno": 5, "dynamo_config": CONFIG, **metrics}
    return PLACE + json.dumps({"compilation_metrics": named, "frame_id": frame, "frame_compile_id": number, "attempt": 0}) + "\n"


def artifact(name: str, frame: int, number: int, payload: str) -> str:
    entry = {"artifact": {"name": name}, "frame_id": frame, "frame_compile_id": number, "attempt": 0, "has_payload": "x"}
    return PLACE + json.dumps(entry) + "\n" + "".join(f"\t{line}\n" for line in payload.split("\n"))


def told(text: str) -> list[dict[str, Any]]:
    return as_json(engine_events([text.encode()]))


def test_the_limit_under_fullgraph() -> None:
    """The compile was refused, and the limit was an exception, as the text log of such a run says."""
    refused = compiled(1, 3, fail_type="FailOnRecompileLimitHit", fail_reason="Hard failure due to fullgraph=True")
    recompile, hit, error = told(artifact("recompile_reasons", 1, 3, '"1/2: k == 4"') + refused)
    assert (recompile["kind"], recompile["refused"]) == ("recompile", True)
    assert (hit["kind"], hit["limit"], hit["limit_name"], hit["function"]) == ("recompile_limit_hit", 3, "recompile_limit", "f")
    assert (error["kind"], error["exception"], error["limit"]) == ("recompile_limit_error", "FailOnRecompileLimitHit", 3)


def test_what_dynamo_does_not_support_under_fullgraph() -> None:
    """It is a failure where no graph break was made of it: without fullgraph the frame runs in eager mode."""
    failed = compiled(1, 0, fail_type="Unsupported", fail_reason="Unsupported context manager\n  Explanation: Dynamo does not know it.")
    error = artifact("dynamo_error", 1, 0, "Traceback (most recent call last):")
    broken = artifact("dynamo_graph_break_reason", 1, 0, "Graph break in user code at /srv/app/m.py:6\nReason: Unsupported context manager")
    (event,) = told(error + failed)
    assert (event["kind"], event["exception"], event["function"]) == ("compile_error", "Unsupported", "f")
    assert event["message"] == "Unsupported context manager: Dynamo does not know it."
    assert [one["kind"] for one in told(broken + error + failed)] == ["graph_break"]
    assert told(compiled(1, 0) + failed) == []


def test_why_no_cuda_graph_was_captured() -> None:
    """The metrics of the compile say why, and where."""
    said = (
        'skipping cudagraphs due to skipping cudagraphs due to cpu device (arg0_1). Found from : \n   File "/srv/app/m.py", line 7, in g\n    x + y'
    )
    events = told(
        compiled(0, 0, cudagraph_skip_reason=said) + compiled(1, 0, cudagraph_skip_reason="skipping cudagraphs due to mutated inputs (2 instances)")
    )
    places = [(event["kind"], event["compile_id"], event["function"], event["line_no"], event["instances"]) for event in events]
    assert places == [("cudagraph_skip", "0/0", "g", 7, None), ("cudagraph_skip", "1/0", "f", 5, 2)]
    assert [reason["text"] for event in events for reason in event["reasons"]] == ["cpu device (arg0_1)", "mutated inputs"]
    assert all(event["time"] for event in events)
