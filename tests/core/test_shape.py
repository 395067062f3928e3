"""Tests of `recompile_watch.core.shape`: what a few lines tell about how they were broken."""

from __future__ import annotations

import textwrap

import pytest

from recompile_watch.core.shape import shape_of
from tests.conftest import engine_events

LINES = {
    "cudagraph_pending_backward_warning": (
        "/venv/torch/_inductor/cudagraph_trees.py:2345: UserWarning: Unable to hit fast path of CUDAGraphs because of p"
        "ending, uninvoked backwards. Consider running with torch.no_grad() or using torch.compiler.cudagraph_mark_step"
        "_begin() before each model invocation"
    ),
    "cudagraph_dynamic_shapes_warning": (
        "CUDAGraph supports dynamic shapes by recording a new graph for each distinct input size. Recording too many CU"
        "DAGraphs may lead to extra overhead. We have observed 9 distinct sizes. Please consider the following options "
        "for better performance: a) padding"
    ),
    "recompile_forbidden": (
        "RuntimeError: Detected recompile when torch.compile stance is 'fail_on_recompile'. filename: '/srv/bot/m.py', "
        "function name: 'hot4', line number: 52"
    ),
    "cudagraph_rerecord": (
        "W1120 11:15:05.898000 24097 torch/_inductor/cudagraph_trees.py:2355] [__cudagraphs] skipping cudagraph due to "
        "function 3 exceeding max re-recording limit (=128) on cudagraph node 2 due to cudagraph managed tensor data po"
        "inter changed."
    ),
}


@pytest.mark.parametrize("width", [76, 80, 100])
@pytest.mark.parametrize("kind", LINES)
def test_one_message_that_was_broken_is_put_together(kind: str, width: int) -> None:
    """torch's own words stand together: what lies between two lines of them was broken there, in a word or at a blank."""
    line = LINES[kind]
    hard = "\n".join(line[at : at + width] for at in range(0, len(line), width))
    words = "\n".join(textwrap.wrap(line, width))
    for text in (line, hard, words):
        assert [event.kind for event in engine_events([f"{text}\n".encode()])] == [kind], text


def test_words_that_stand_on_one_line_prove_nothing() -> None:
    """Lines as long as others may stand below a whole message."""
    text = f"{LINES['cudagraph_dynamic_shapes_warning'][:88]}\nstep 1 of 9 is done\nstep 2 of 9 is done\n"
    assert shape_of(text.encode()).wrap_width is None


RECOMPILE = """\
V1122 23:55:10.331000 32496 torch/_dynamo/guards.py:5396] [0/2] [__recompiles] Recompiling function f in /srv/bot/limits.py:5
V1122 23:55:10.331000 32496 torch/_dynamo/guards.py:5396] [0/2] [__recompiles]     triggered by the following guard failure(s):
V1122 23:55:10.331000 32496 torch/_dynamo/guards.py:5396] [0/2] [__recompiles]     - 0/1: k == 3    # def f(x,k): return x+k  # bot/limits.py:5 in f
V1122 23:55:10.331000 32496 torch/_dynamo/guards.py:5396] [0/2] [__recompiles]     - 0/0: k == 2    # def f(x,k): return x+k  # bot/limits.py:5 in f
W1122 23:55:10.383000 32496 torch/_dynamo/convert_frame.py:1994] [0/3] torch._dynamo hit config.recompile_limit (3)
W1122 23:55:10.383000 32496 torch/_dynamo/convert_frame.py:1994] [0/3]    function: 'f' (/srv/bot/limits.py:5)
W1122 23:55:10.383000 32496 torch/_dynamo/convert_frame.py:1994] [0/3]    last reason: 0/2: k == 4
W1122 23:55:10.383000 32496 torch/_dynamo/convert_frame.py:1994] [0/3] To log all recompilation reasons, use TORCH_LOGS="recompiles".
W1122 23:55:10.383000 32496 torch/_dynamo/convert_frame.py:1994] [0/3] To diagnose recompilation issues, see https://pytorch.org/docs/main/t.html
"""


@pytest.mark.parametrize("carrier", ["> ", "> > ", "    ", "\t", "bot-1  | "])
@pytest.mark.parametrize("width", [80, 100, 120])
def test_lines_that_were_broken_inside_of_a_carrier(carrier: str, width: int) -> None:
    """What stands in front of every piece is taken off first: the pieces are then put together as those without it."""
    pieces = [line[at : at + width] for line in RECOMPILE.splitlines() for at in range(0, len(line), width)]
    wrapped = "".join(f"{carrier}{piece}\n" for piece in pieces)
    for text in (RECOMPILE, "\n".join(pieces) + "\n", wrapped, f"the log of this morning:\n{wrapped}"):
        found = [(event.kind, event.function, event.file, event.line_no, event.partial) for event in engine_events([text.encode()])]
        assert found == [(kind, "f", "/srv/bot/limits.py", 5, False) for kind in ("recompile", "recompile_limit_hit")], text


def test_many_carriers_are_no_deep_one() -> None:
    """Lines of nothing but the form of a carrier are read at once."""
    assert shape_of(b"a | " * 4000 + b"\n" + b"a | " * 4000 + b"\n" + b"a | " * 4000 + b"\n").wrap_width is None


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_broken_header_of_the_bot_is_put_together(width: int) -> None:
    """In a log of the bot alone its header tells where lines were broken; a table behind one of its own has its time."""
    header = "2025-12-09 20:01:06 UTC | 2025-12-09 15:01:06 EST | 2025-12-10 09:01:06 NZDT | backtest_test3_inline.py:_log_table:249 INFO | "
    plan = "TRADING PLAN (MARKET OPEN PLAN) count=1 | AMD buy/normal avg=0.017 comp=0.017 move=15.573 conf=0.410 last=n/a notes=x"
    rows = ["  Strategy Return  Sharpe", "  -------- ------- ------", "  Simple   -0.0359 -6.310"]
    lines = [header + plan, header, "Backtest summary for AAPL (70 simulations)", *rows, header + "a"]
    wrapped = [line[at : at + width] for line in lines for at in range(0, len(line), width)]
    events = engine_events([("\n".join(wrapped) + "\n").encode()])
    assert [(event.kind, event.time) for event in events] == [(kind, "2025-12-09T20:01:06+00:00") for kind in ("plan", "strategy_return")]
    assert events[0].extra["picks"] == plan.split(" | ")[1]


ALONE = {  # messages of one line, or whose last line tells its end
    "skip": (
        "V1123 10:00:0{i}.927000 27284 torch/_inductor/cudagraph_utils.py:201] [0/{i}] [__cudagraphs] skipping cudagraphs due to mutated inputs"
        " (2 instances)\n"
    ),
    "old skip": "[2023-11-23 21:56:5{i},425] torch._inductor.utils: [WARNING] skipping cudagraphs due to multiple devices\n",
    "tuple": (
        "[2023-11-23 21:56:59,{i}59] torch._dynamo.convert_frame.__recompiles: [DEBUG] ('Recompiling function step in /srv/m.py:5', "
        "\"triggered by the following guard failure: L['start'] == {i}\")\n"
    ),
    "block": (
        "V1123 19:07:0{i}.927000 27284 torch/_dynamo/guards.py:3508] [0/{i}] [__recompiles] Recompiling function forward in /srv/m.py:16\n"
        "V1123 19:07:0{i}.927000 27284 torch/_dynamo/guards.py:3508] [0/{i}] [__recompiles]     triggered by the following guard failure(s):\n"
        "V1123 19:07:0{i}.927000 27284 torch/_dynamo/guards.py:3508] [0/{i}] [__recompiles]     - 0/0: tensor 'x' size mismatch at index 0. "
        "expected 3{i}, actual 30\n"
    ),
}


@pytest.mark.parametrize("own", ["{i}\n", "step {i} loss 0.{i}\n", "{i} done\n", "Epoch {i}: x\n", "saved.\n", "tensor([[0.{i}, 0.{i}]])\n"])
@pytest.mark.parametrize("other", ALONE)
@pytest.mark.parametrize("kind", ALONE)
def test_the_programs_own_lines_are_no_rests_of_messages(kind: str, other: str, own: str) -> None:
    """Messages of one template are of one width, as if a terminal had broken them there; each ends where it is whole."""
    messages = [ALONE[kind], ALONE[other]] if kind != other else [ALONE[kind]]
    told = [message.format(i=i) for i in range(1, 8) for message in messages]
    alone = [event.reasons for message in told for event in engine_events([message.encode()])]
    log = "".join(message.format(i=i) + own.format(i=i) for i in range(1, 8) for message in messages)
    assert [event.reasons for event in engine_events([log.encode()])] == alone != []


def test_behind_a_wrapped_tuple_the_programs_line_is_its_own() -> None:
    """The wrapped message ends where the tuple does; where all newlines are lost the next words are the program's."""
    messages = [ALONE["tuple"].format(i=i).strip() for i in range(1, 8)]
    wrapped = "".join("\n".join(textwrap.wrap(message, 120, break_long_words=False)) + f"\n{i}\n" for i, message in enumerate(messages))
    collapsed = " ".join(f"{message} step {i}" for i, message in enumerate(messages)) + "\n"
    for log in (wrapped, collapsed):
        assert [[reason.text for reason in event.reasons] for event in engine_events([log.encode()])] == [[f"L['start'] == {i}"] for i in range(1, 8)]
