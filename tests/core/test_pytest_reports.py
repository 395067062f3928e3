"""Tests of what pytest prints of a failure: one event, with what stands behind its mark of an error."""

from __future__ import annotations

import pytest

from tests.conftest import events_of_bytes

SAYS = """torch._dynamo.exc.Unsupported: Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print` with argument types ['str'] (has_kwargs False)
  Hint: Avoid calling builtin `print` with argument types ['str'].

from user code:
   File "/srv/app/head.py", line 28, in forward
    y = helper(x * 2)
"""
MESSAGE = (
    "Failed to trace builtin operator: Dynamo does not know how to trace builtin operator `print` with argument types ['str'] (has_kwargs False)"
)
MARKED = "".join(f"E   {line}\n" for line in SAYS.split("\n")[:-1])
LONG = f"""
    def test_fast():
>       fail.step()

test_model.py:5:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _
/venv/torch/_dynamo/eval_frame.py:1177: in compile_wrapper
    raise e.with_traceback(
{MARKED}
/venv/torch/_dynamo/exc.py:723: Unsupported
"""
SHORT = f"""test_model.py:5: in test_fast
    fail.step()
/venv/torch/_dynamo/eval_frame.py:1177: in compile_wrapper
    raise e.with_traceback(
{MARKED}"""
SUMMARY = """=========================== short test summary info ===========================
FAILED test_model.py::test_fast[cpu - 1] - torch._dynamo.exc.Unsupported: Failed to trace builtin operator
1 failed in 4.72s
"""


@pytest.mark.parametrize("report", [LONG, SHORT], ids=["long", "short"])
def test_a_failure_and_its_summary_are_one(report: str) -> None:
    """The exception with its explanation and place; its place and the summary of the run say no more."""
    (event,) = events_of_bytes((report + SUMMARY).encode(), "bot.log")
    facts = [event[name] for name in ("kind", "exception", "message", "function", "file", "line_no")]
    assert facts == ["compile_error", "Unsupported", MESSAGE, "forward", "/srv/app/head.py", 28]


def test_a_summary_alone_tells_of_the_failure() -> None:
    """With ``--tb=no`` nothing else does; each test that failed is one."""
    event, other = events_of_bytes((SUMMARY + SUMMARY.replace("cpu", "gpu")).encode(), "bot.log")
    assert other["at"]["line"] == 5
    assert (event["kind"], event["exception"], event["message"]) == ("compile_error", "Unsupported", "Failed to trace builtin operator")


def test_a_recompile_that_was_forbidden() -> None:
    """Its guards are its own, though they stand behind pytest's mark."""
    log = """/venv/torch/_dynamo/eval_frame.py:304: in fail_callback
    raise RuntimeError(message)
E   RuntimeError: Detected recompile when torch.compile stance is 'fail_on_recompile'. filename: '/srv/head.py', function name: 'f', line number: 66
E       triggered by the following guard failure(s):
E       - 0/0: mode == 'train'
=========================== short test summary info ===========================
FAILED test_model.py::test_fast - RuntimeError: Detected recompile when torch.compile stance is 'fai...
"""
    (event,) = events_of_bytes(log.encode(), "bot.log")
    assert (event["kind"], event["function"], [reason["text"] for reason in event["reasons"]]) == (
        "recompile_forbidden",
        "f",
        ["mode == 'train'"],
    )
