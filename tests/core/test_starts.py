"""Tests of compilations that begin in logs without recompile blocks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recompile_watch.core.events import Event
from recompile_watch.core.same import Held
from recompile_watch.core.starts import STARTED, Starts
from tests.conftest import DATA, events_of_bytes

PLUS_DYNAMO = DATA / "torch" / "2.5.1" / "s01_kvcache_plusdynamo.log"
START = "V1123 18:44:28.258000 {pid} torch/_dynamo/convert_frame.py:930] [{id}] torchdynamo start compiling f /srv/a.py:3, stack (elided 5 frames):\n"
BLOCK = """\
V1123 18:44:28.250000 77 torch/_dynamo/guards.py:2791] [0/1] [__recompiles] Recompiling function f in /srv/a.py:3
V1123 18:44:28.250000 77 torch/_dynamo/guards.py:2791] [0/1] [__recompiles]     triggered by the following guard failure(s):
V1123 18:44:28.250000 77 torch/_dynamo/guards.py:2791] [0/1] [__recompiles]     - 0/0: L['n'] == 1
"""


def recompiles(text: bytes) -> list[dict[str, Any]]:
    return [event for event in events_of_bytes(text, "torch.log") if event["kind"] == "recompile"]


def held(compile_id: str, rule: str = STARTED) -> Held:
    return Held(Event("recompile", "torch.log", 1, 0, None, None, 77, compile_id, "f", "/srv/a.py", 3, (), False, {}), rule)


def starts(*ids: str, pid: int = 77) -> bytes:
    return "".join(START.format(id=one, pid=pid) for one in ids).encode()


def test_a_log_without_blocks_has_the_same_recompiles() -> None:
    """The log of a real run, with its blocks and without: the same compilations, but those that the limit refused, which never began."""
    whole = PLUS_DYNAMO.read_bytes()
    without = b"".join(line for line in whole.splitlines(keepends=True) if b"[__recompiles]" not in line)

    known = [(e["compile_id"], e["function"], e["file"], e["line_no"]) for e in recompiles(whole) if not e["refused"]]
    derived = recompiles(without)

    assert known
    assert [(e["compile_id"], e["function"], e["file"], e["line_no"]) for e in derived] == known
    assert all(e["derived"] and e["reasons"] == [] for e in derived)
    assert not any("derived" in e for e in recompiles(whole))


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["0/0", "1/0", "2/0"], []),
        (["0/0", "0/0_1", "0/1", "0/1_1", "0/1_2"], ["0/1"]),
        (["0/0", "0/1", "0/0", "0/1"], ["0/1", "0/1"]),  # torch._dynamo.reset() begins to count anew
        (["0/7"], ["0/7"]),  # a log whose head is cut off
        (["!0/0/0", "!0/0/1", "!1/0/0", "!1/0/1"], ["!0/0/1", "!1/0/1"]),
        (["3"], []),
    ],
)
def test_which_starts_are_recompiles(ids: list[str], expected: list[str]) -> None:
    assert [event["compile_id"] for event in recompiles(starts(*ids))] == expected


def test_each_process_counts_for_itself() -> None:
    assert len(recompiles(starts("0/0", "0/1") + starts("0/0", "0/1", pid=78))) == 2
    assert len(recompiles(starts("0/0") + BLOCK.encode() + starts("0/1") + starts("0/2") + starts("0/0", "0/1", pid=78))) == 2


def test_a_block_without_an_id_tells_of_the_start_behind_it() -> None:
    """torch 2.1 prints no compile id in front of the block."""
    block = b"[2023-11-23 18:46:11,139] torch._dynamo.convert_frame.__recompiles: [DEBUG] ('Recompiling function f in /srv/a.py:3', \"...\")\n"
    start = b"[2023-11-23 18:46:11,149] [0/1] torch._dynamo.symbolic_convert: [INFO] Step 1: torchdynamo start tracing f /srv/a.py:3\n"
    assert [event.get("derived") for event in recompiles(start + block)] == [True, None]
    assert [event.get("derived") for event in recompiles(block + start)] == [None]


def test_a_reading_that_goes_on_knows_what_was_told() -> None:
    """A restarted watch: neither the same compilation again, nor a block's own start."""
    for head, tail, expected in ((["0/0", "0/1"], ["0/1_1", "0/2"], ["0/2"]), (["0/0"], ["0/1"], ["0/1"])):
        first, second = Starts(), Starts()
        for one in head:
            first.is_news(held(one))
        second.resume(json.loads(json.dumps({"begun": first.state()})))
        assert [one for one in tail if second.is_news(held(one))] == expected
    printed, later = Starts(), Starts()
    printed.is_news(held("0/1", rule="torch.recompile"))
    later.resume(json.loads(json.dumps({"begun": printed.state()})))
    assert not later.is_news(held("0/2"))
