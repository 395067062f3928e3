"""Tests of tracebacks that Python's rich drew: they give the events of those that Python prints."""

from __future__ import annotations

import io
import logging
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from rich.logging import RichHandler
from rich.traceback import Traceback

from tests.conftest import as_json, engine_events, events_of_bytes
from tests.truth import Event

BREAK = """Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print` with argument types ['str', 'Size'] (has_kwargs False)
  Hint: Avoid calling builtin `print` with argument types ['str', 'Size']. Consider using an equivalent alternative function/method to `print`.

  Developer debug context: builtin print [<class 'torch._dynamo.variables.constant.ConstantVariable'>] False

from user code:
   File "/srv/app/head.py", line 28, in forward
    y = helper(x * 2)

Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace (please do this especially if you're reporting a bug to PyTorch).
"""
NO_COMPILER = "InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')"
OVERWRITTEN = (
    'Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run. Stack trace: File "/srv/app/head.py", line 61, in '
    "forward\n    return self.proj(x). To prevent overwriting, clone the tensor outside of torch.compile() or call "
    "torch.compiler.cudagraph_mark_step_begin() before each model invocation."
)
LOOKUP = "the entry of this graph is not in the table of what was lowered before it, which holds those of its own module only"
FAILURES = {
    "unsupported": ("torch._dynamo.exc", "Unsupported", BREAK),
    "inductor": ("torch._inductor.exc", "InductorError", NO_COMPILER),
    "limit": ("torch._dynamo.exc", "FailOnRecompileLimitHit", "recompile_limit reached with one_graph=True. Excessive recompilations can degrade."),
    "overwritten": ("builtins", "RuntimeError", OVERWRITTEN),
    "lookup": ("builtins", "LookupError", LOOKUP),
    "backend": ("torch._dynamo.exc", "BackendCompilerFailed", f"backend='own' raised:\nValueError: {LOOKUP}"),
}
PROGRAM = '''\
def step(call):
    """One step of the bot."""
    if call:
        return call(x=[1, 2, 3])


def main(call):
    step(call)
'''
COMPILER = """\
def compile_fx(fail):
    def call(x):
        for graph in x:
            if graph:
                raise fail
    return call
"""
LIBRARY = "venv/lib/python3.11/site-packages/torch/_inductor/compile_fx.py"
WIDTHS = (60, 80, 100, 120, 160, 240)


def loaded(code: str, path: Path) -> dict[str, object]:
    """The names of a module; rich shows the file of one that exists."""
    names: dict[str, object] = {}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    exec(compile(code, str(path), "exec"), names)
    return names


def raised(failure: str, folder: Path) -> BaseException:
    """A failure of the compiler behind frames of a program and of torch."""
    module, name, text = FAILURES[failure]
    kind = {"RuntimeError": RuntimeError, "LookupError": LookupError}.get(name) or type(name, (RuntimeError,), {"__module__": module})
    call = loaded(COMPILER, folder / LIBRARY)["compile_fx"](kind(text))  # type: ignore[operator]
    try:
        loaded(PROGRAM, folder / "app/train.py")["main"](call)  # type: ignore[operator]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is printed
        return error
    raise AssertionError


def plain(error: BaseException) -> bytes:
    """As Python prints it."""
    return "".join(traceback.format_exception(error)).encode()


class _Ascii(io.StringIO):
    encoding = "ascii"


def boxed(error: BaseException, width: int, box: int | None = None, *, has_locals: bool = False, form: str = "") -> bytes:
    """As rich prints it into a file, or onto a terminal. box: the width of a box on a wider console."""
    out = _Ascii() if form == "ascii" else io.StringIO()
    console = Console(
        file=out,
        width=width,
        legacy_windows=form in ("windows", "ascii"),
        force_terminal=form == "terminal",
        color_system="truecolor" if form == "terminal" else None,
    )
    console.print(Traceback.from_exception(type(error), error, error.__traceback__, width=box or width, show_locals=has_locals))
    return out.getvalue().encode()


def logged(error: BaseException, width: int) -> bytes:
    """As rich's handler of Python's logging lays it out."""
    out = io.StringIO()
    logger = logging.Logger("bot")
    logger.addHandler(RichHandler(console=Console(file=out, width=width), rich_tracebacks=True))
    logger.warning("the feed came late, so that the prices of this step are those of the one before it, and the next one waits for them")
    logger.error("step failed", exc_info=error)
    logger.warning("goes on")
    return out.getvalue().encode()


def facts(events: list[Event]) -> list[Event]:
    """The events without their places."""
    return [{name: value for name, value in event.items() if name not in ("at", "time", "pid")} for event in events]


def forms(error: BaseException) -> Iterator[tuple[str, bytes]]:
    for width in WIDTHS:
        yield f"{width}", boxed(error, width)
        yield f"{width} with variables", boxed(error, width, has_locals=True)
    for width in (80, 140):
        yield f"logged {width}", logged(error, width)
    yield "of the usual width", boxed(error, 180, 100)
    for form in ("windows", "ascii", "terminal"):
        yield form, boxed(error, 90, form=form)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_box_says_what_python_prints(failure: str, tmp_path: Path) -> None:
    """Kind, exception, message, place and the program's calling line, at any width."""
    error = raised(failure, tmp_path)
    expected = facts(events_of_bytes(plain(error), "bot.log"))
    assert len(expected) == 1
    assert {form: facts(events_of_bytes(log, "bot.log")) for form, log in forms(error)} == {form: expected for form, _ in forms(error)}


@pytest.mark.parametrize("front", ["[pod/bot-0/main] ", "gpu07: ", "[rank0]: ", "2025-11-20T10:28:52.255123Z stderr F ", "    "])
def test_a_box_behind_a_carrier(front: str, tmp_path: Path) -> None:
    """What stands in front of each line stands in front of a box's as well."""
    error = raised("unsupported", tmp_path)
    log = b"".join(front.encode() + line + b"\n" for line in boxed(error, 80).split(b"\n"))
    (event,) = facts(events_of_bytes(log, "bot.log"))
    (expected,) = facts(events_of_bytes(plain(error), "bot.log"))
    assert {**event, "rank": None} == expected


def test_two_ranks_in_turn(tmp_path: Path) -> None:
    """Each stream has a box of its own."""
    error = raised("inductor", tmp_path)
    pairs = [b"[rank0]: %s\n[rank1]: %s\n" % (line, line) for line in boxed(error, 80).split(b"\n")]
    events = facts(events_of_bytes(b"".join(pairs), "bot.log"))
    assert sorted((event["rank"], event["kind"], event["called_from"]) for event in events) == [
        (0, "compile_error", f"{tmp_path}/app/train.py:4 in step"),
        (1, "compile_error", f"{tmp_path}/app/train.py:4 in step"),
    ]


def test_bytes_come_in_any_pieces(tmp_path: Path) -> None:
    """Where the blocks end makes no difference."""
    log = boxed(raised("backend", tmp_path), 80)
    whole = as_json(engine_events([log]))
    assert as_json(engine_events([log[at : at + 7] for at in range(0, len(log), 7)])) == whole


def test_other_failures_and_boxes_are_none(tmp_path: Path) -> None:
    """An exception of the program, and what it draws itself."""
    try:
        loaded(PROGRAM, tmp_path / "app/train.py")["main"](len)  # type: ignore[operator]
    except TypeError as error:
        assert events_of_bytes(boxed(error, 80), "bot.log") == []
    drawn = "╭─────── Traceback (most recent call last) ───────╮\n│ torch/_inductor/a.py:1 in f │ yes │\n╰───────╯\nprices: up\n"
    assert events_of_bytes(drawn.encode() * 3, "bot.log") == []


def test_values_below_code_are_left_out() -> None:
    """loguru and better_exceptions print what names stood for, exceptions among them; a tree that says something is read."""
    log = """Traceback (most recent call last):

> File "/srv/app/train.py", line 4, in step
    return call(x)
           │    └ [1, 2, 3]
           └ <function call at 0x7f6508>
  File "/venv/lib/python3.11/site-packages/torch/_inductor/compile_fx.py", line 5, in call
    raise InductorError(error, frame)
          │             └ <frame at 0x7f65>
          └ <class 'torch._inductor.exc.InductorError'>
torch._inductor.exc.InductorError: RuntimeError: no kernel
"""
    (event,) = events_of_bytes(log.encode(), "bot.log")
    assert (event["exception"], event["called_from"]) == ("InductorError", "/srv/app/train.py:4 in step")
    (event,) = events_of_bytes("└ torch._inductor.exc.InductorError: RuntimeError: no kernel\n".encode(), "bot.log")
    assert event["exception"] == "InductorError"


@pytest.mark.parametrize("row", ["│", "│ a" + "b" * 60 + " │", "│ ❱ 1 │ " + "│   " * 20, "│ │", "x", "w " * 45])
def test_a_box_without_end(row: str) -> None:
    """Megabytes of it take time and memory for each line once."""
    top = "╭" + "─" * 24 + " Traceback (most recent call last) " + "─" * 24 + "╮\n"
    for end in ("", "╰" + "─" * 80 + "╯\n"):
        log = (top + end + (row + "\n") * (400_000 // len(row))).encode()
        begin = time.process_time()
        assert events_of_bytes(log, "bot.log") == []
        assert time.process_time() - begin < 5
