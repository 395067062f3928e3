"""One failure is one event, however often it is printed on its way out; two calls that fail alike are two."""

from __future__ import annotations

import pytest

from recompile_watch.core.streams import Piece
from tests.conftest import events_of_bytes
from tests.core.test_graph_breaks import findings
from tests.core.test_streams import TIMES, lines_of, read_once, shown, stream

TORCH = "/usr/local/lib/python3.12/dist-packages/torch"
ERROR = "torch._inductor.exc.InductorError: RuntimeError: Failed to find C compiler. Please specify via CC environment variable.\n"
OUTER = '  File "/srv/bot/main.py", line 16, in serve\n    handle(10)\n'
OWN = '  File "/srv/bot/main.py", line 10, in handle\n    return step(x)\n'
INNER = f"""{OWN}  File "{TORCH}/_dynamo/eval_frame.py", line 1183, in compile_wrapper
    raise e.remove_dynamo_frames() from None
  File "{TORCH}/_inductor/compile_fx.py", line 1079, in _compile_fx_inner
    raise InductorError(e, currentframe())
"""
HEAD = "Traceback (most recent call last):\n"
LOGGED = "2025-11-20 07:05:34,335 ERROR serve: request failed\n"
LATER = "2025-11-20 07:05:36,100 ERROR serve: request failed\n"
SAID = f"2025-11-20 07:05:34,335 ERROR serve: request failed: {ERROR.partition(': ')[2]}"
WRAPPED = "\nThe above exception was the direct cause of the following exception:\n\n"
OTHERS = f'{HEAD}  File "/srv/bot/main.py", line 19, in serve\n    raise RuntimeError("worker died") from e\nRuntimeError: worker died\n'
INSIDE, OUTSIDE = HEAD + INNER + ERROR, HEAD + OUTER + INNER + ERROR
ENGINE = "(EngineCore_DP0 pid=272) ERROR 11-20 12:33:44 [core.py:700] "
PROCESS = "(EngineCore_DP0 pid=272) "


def behind(front: str, text: str) -> str:
    return "".join(f"{front}{line}\n" for line in text.splitlines())


ONCE = {
    "logged, and raised on": LOGGED + INSIDE + OUTSIDE,
    "told in the logged line as well": SAID + INSIDE + OUTSIDE + WRAPPED + OTHERS,
    "logged twice on its way": LOGGED + INSIDE + LATER + OUTSIDE + WRAPPED + OTHERS,
    "by a server's engine, and by Python": behind(ENGINE, INSIDE) + PROCESS + "Process EngineCore_DP0:\n" + behind(PROCESS, OUTSIDE),
    "with its traceback as a note of it": behind(ENGINE, INSIDE + "\n" + INSIDE),
}
TWICE = {
    "two calls": LOGGED + INSIDE + LATER + INSIDE,
    "two calls, each logged and raised on": LOGGED + INSIDE + OUTSIDE + LATER + INSIDE + OUTSIDE,
    "two calls of which nobody knows when": INSIDE + INSIDE,
    "two ranks": behind("[rank0]: ", INSIDE) + behind("[rank1]: ", OUTSIDE),
    "two lines without a traceback": SAID + SAID,
    "another failure": LOGGED + INSIDE + HEAD + OUTER + INNER + ERROR.replace("Failed to find C compiler", "No space left"),
}


@pytest.mark.parametrize("log", ONCE.values(), ids=ONCE)
def test_a_failure_on_its_way_out_is_one(log: str) -> None:
    """What catches it further out prints the same stack with more in front."""
    (event,) = events_of_bytes(log.encode(), "-")
    assert (event["kind"], event["line_no"], event["called_from"]) == ("compile_error", None, "/srv/bot/main.py:10 in handle")


@pytest.mark.parametrize("log", TWICE.values(), ids=TWICE)
def test_what_happened_twice_counts_twice(log: str) -> None:
    """The same stack to its end is another call, and no rank answers for another."""
    assert len(events_of_bytes(log.encode(), "-")) == 2


def test_a_line_whose_traceback_follows_gives_its_time() -> None:
    """The traceback below the line has none."""
    (event,) = events_of_bytes((SAID + INSIDE).encode(), "-")
    assert str(event["time"]).startswith("2025-11-20T07:05:34")


@pytest.mark.parametrize("log", [*ONCE.values(), *TWICE.values()], ids=[*ONCE, *TWICE])
def test_a_restart_between_any_two_lines_changes_nothing(log: str) -> None:
    """What the traceback in front told, and what was printed before, is part of the saved state."""
    lines, whole = lines_of(log.encode()), read_once(log.encode())
    for count in range(1, len(lines)):
        reading = stream()
        found = shown(reading.feed(Piece(1, 0, 1, b"".join(lines[:count])), TIMES))
        at = reading.positions()[1].lines
        reading = stream(reading.state())
        found += shown(reading.feed(Piece(1, len(b"".join(lines[:at])), at + 1, b"".join(lines[at:])), TIMES) + reading.settle())
        assert found == whole


def test_frames_of_the_interpreter_between_what_is_logged_and_what_is_raised_make_no_second_failure() -> None:
    """torch 2.8 prints the frames in C++ behind a violated constraint, logs it and raises it again."""
    prefix = "E1123 16:11:11.578000 18026 torch/_guards.py:362] [0/0] "
    frame = '  File "/build/Python-3.11.7/./Include/internal/pycore_ceval.h", line 73, in _PyEval_EvalFrame\n'
    violated = "torch.fx.experimental.symbolic_shapes.ConstraintViolationError: Constraints violated (L['q'].size()[0])!\n"
    head = [
        "Error while creating guard:\n",
        "Name: ''\n",
        "    Source: shape_env\n",
        "    Create Function: SHAPE_ENV\n",
        "Traceback (most recent call last):\n",
    ]
    logged = "".join(
        prefix + line
        for line in [*head, '  File "/lib/torch/_guards.py", line 360, in create\n', violated, "\n", "Framework stack:\n", *[frame] * 700]
    )
    raised = 'Traceback (most recent call last):\n  File "/srv/a.py", line 20, in <module>\n    main()\n' + violated
    events = events_of_bytes((logged + raised).encode(), "torch.log")
    assert [event["kind"] for event in events] == ["compile_error"]


def test_the_notice_of_a_read_number_and_its_break_are_one() -> None:
    """torch 2.4 prints the notice, which names no place, and the break behind it, with TORCH_LOGS=graph_breaks."""
    notice, broken = (
        f"{level}1123 16:08:18.519000 140187183463296 torch/_dynamo/{where}] [0/0_1] "
        for level, where in (("W", "variables/tensor.py:715"), ("V", "symbolic_convert.py:534"))
    )
    said = ["Graph break from `Tensor.item()`, consider setting:", "    torch._dynamo.config.capture_scalar_outputs = True", "or:"]
    said += ["    env TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=1", "to include these operations in the captured graph.", ""]
    told = ["Graph break: from user code at:", '  File "/srv/bot/m.py", line 19, in remember', "    seen.append(out.norm().item())"]
    told += ["Traceback (most recent call last):", "torch._dynamo.exc.Unsupported: Tensor.item"]
    lines = [notice + line for line in said] + [f"{broken}[__graph_breaks] {line}" for line in told]
    events = events_of_bytes("\n".join([*lines, ""]).encode(), "torch.log")
    assert [(event["function"], event["line_no"]) for event in events] == [("remember", 19)]
    alone = events_of_bytes("\n".join([*lines[: len(said)], ""]).encode(), "torch.log")
    assert [event["kind"] for event in alone] == ["graph_break"]


def test_a_long_command_that_failed_is_what_its_compiler_said() -> None:
    """The end of the command, with the exit status, is beyond what an event keeps of a message."""
    options = "', '".join(f"-I/opt/venv/lib/python3.10/site-packages/triton/backends/{name}/include" for name in ("nvidia", "amd", "xpu", "cpu"))
    command = f"['/usr/bin/gcc', '/tmp/tmpd2k0lqw9/main.c', '-O3', '-o', '/tmp/tmpd2k0lqw9/cuda_utils.so', '{options}']"
    log = f"""/tmp/tmpd2k0lqw9/main.c:5:10: fatal error: Python.h: No such file or directory
    5 | #include <Python.h>
      |          ^~~~~~~~~~
compilation terminated.
Traceback (most recent call last):
{OWN}  File "{TORCH}/_dynamo/eval_frame.py", line 465, in _fn
    return fn(*args, **kwargs)
torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
CalledProcessError: Command '{command}' returned non-zero exit status 1.
"""
    (event,) = events_of_bytes(log.encode(), "torch.log")
    assert (event["exception"], event["message"]) == ("BackendCompilerFailed", "fatal error: Python.h: No such file or directory")
    assert event["called_from"] == "/srv/bot/main.py:10 in handle"


def test_what_is_logged_has_the_place_of_what_is_raised() -> None:
    """torch 2.6 logs a violated constraint without the program's code; the traceback that it raises behind shows who called."""
    prefix = "E1123 19:07:49.334000 27504 torch/_guards.py:295] [0/0] "
    violated = "torch.fx.experimental.symbolic_shapes.ConstraintViolationError: Constraints violated (L['tokens'].size()[1])!\n"
    lines = ["Error while creating guard:\n", "Name: ''\n", "    Source: shape_env\n", "    Create Function: SHAPE_ENV\n", f"{HEAD.strip()}\n"]
    logged = "".join(f"{prefix}{line}" for line in [*lines, f'  File "{TORCH}/_guards.py", line 293, in create\n', violated])
    raised = f'{HEAD}{OWN}  File "{TORCH}/_dynamo/eval_frame.py", line 574, in _fn\n    return fn(*args, **kwargs)\n{violated}'
    (event,) = events_of_bytes((logged + raised).encode(), "torch.log")
    assert (event["compile_id"], event["called_from"]) == ("0/0", "/srv/bot/main.py:10 in handle")
    (event,) = events_of_bytes(logged.encode(), "torch.log")
    assert "called_from" not in event


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("Expected branches to return the same pytree structure.", "same_from_both_branches"),
        ("Expected operands to be a list/tuple but got <class 'torch.Tensor'>", "operands_as_tuple"),
        ("Unsupported Tensor.item() call with capture_scalar_outputs=False", "capture_scalar_outputs"),
    ],
)
def test_an_operator_that_failed_is_what_failed_in_its_function(said: str, remedy: str) -> None:
    """torch before 2.12 raises that torch.cond could not be captured, and says to scroll up; only that shows the place in the program."""
    inner = f"""{HEAD}  File "{TORCH}/_dynamo/variables/higher_order_ops.py", line 76, in graph_break_as_hard_error
    return fn(*args, **kwargs)
  File "{TORCH}/_dynamo/exc.py", line 528, in unimplemented_v2
    raise Unsupported(msg)
torch._dynamo.exc.Unsupported: {said}
"""
    outer = f"""{HEAD}{OUTER}  File "{TORCH}/_dynamo/variables/higher_order_ops.py", line 79, in graph_break_as_hard_error
    raise UncapturedHigherOrderOpError(reason + msg) from e
torch._dynamo.exc.UncapturedHigherOrderOpError: Cond doesn't work unless it is captured completely with torch.compile. Scroll up to find out \
what causes the graph break.

from user code:
   File "/srv/bot/model.py", line 4, in step
    return torch.cond(x.sum() > 0, f, g, (x,))
"""
    (event,) = events_of_bytes((inner + WRAPPED + outer).encode(), "-")
    assert (event["file"], event["line_no"], event["function"]) == ("/srv/bot/model.py", 4, "step")
    assert event["exception"] == "Unsupported" and said in str(event["message"])
    (finding,) = findings(inner + WRAPPED + outer)
    assert finding.advice[0].name == remedy
