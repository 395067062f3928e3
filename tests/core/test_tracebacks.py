"""Tracebacks: those of the compiler are failed compilations, in every form they are printed in; no other is one."""

from __future__ import annotations

import pytest

from recompile_watch.core.tracebacks import failure_of
from tests.conftest import engine_events

COMPILING = """Traceback (most recent call last):
  File "/srv/bot/main.py", line 6, in predict
    return self.compiled(x)
  File "/venv/torch/_dynamo/eval_frame.py", line 451, in _fn
    return fn(*args, **kwargs)
  File "/venv/torch/_dynamo/convert_frame.py", line 921, in catch_errors
    return callback(frame, cache_entry, hooks, frame_state, skip=1)
"""
RUNNING = """Traceback (most recent call last):
  File "/srv/bot/main.py", line 6, in predict
    return self.compiled(x)
  File "/venv/torch/_dynamo/eval_frame.py", line 451, in _fn
    return fn(*args, **kwargs)
  File "/venv/torch/_functorch/_aot_autograd/runtime_wrappers.py", line 300, in runtime_wrapper
    all_outs = call_func_at_runtime_with_args(
  File "/venv/torch/_inductor/output_code.py", line 460, in __call__
    return self.current_callable(inputs)
"""
CHATTER = "V1120 10:00:00.000000 77 torch/_dynamo/convert_frame.py:99] [0/0] "
VLLM = "(EngineCore_0 pid=77) ERROR 08-12 12:33:44 [core.py:700] "
FORMS = {
    "inductor": COMPILING + """  File "/venv/torch/_inductor/scheduler.py", line 90, in __init__
    assert buf in self.names
AssertionError: buf0
""",
    "windows": COMPILING.replace("/", "\\") + """  File "C:\\venv\\Lib\\site-packages\\torch\\_inductor\\scheduler.py", line 90, in __init__
AssertionError: buf0
""",
    "each line behind a header": "".join(VLLM + line + "\n" for line in (COMPILING + "AssertionError: buf0").split("\n")),
    "blanks lost": "\n".join(line.strip() for line in (COMPILING + "AssertionError: buf0").split("\n")) + "\n",
    "notebook": """AssertionError                            Traceback (most recent call last)
Cell In[5], line 1
----> 1 out = m(x)

File ~/venv/lib/torch/_inductor/scheduler.py:658, in Scheduler.codegen(self)
--> 658             result = inner_convert(frame)

AssertionError: buf0
""",
    "pytest": """../torch/_dynamo/eval_frame.py:574: in _fn
    return fn(*args, **kwargs)
../torch/_inductor/compile_fx.py:574: in compile_fx
    return inner(gm)
E       AssertionError: buf0
""",
    "rich": """╭────────────── Traceback (most recent call last) ─────────────╮
│ /venv/torch/_dynamo/output_graph.py:40 in call_user_compiler   │
╰──────────────────────────────────────────────────────────────╯
AssertionError: buf0
""",
    "wrapped by the program": COMPILING + """AssertionError: buf0

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/bot/main.py", line 9, in serve
    raise RuntimeError("no forecast") from error
RuntimeError: no forecast
""",
    "what inductor wrote": RUNNING + """  File "/tmp/torchinductor_bot/27/c2765fyur2v7aek4rc762oibztfzekpdgupovpfnad463vcqmrtj.py", line 40, in call
    assert_size_stride(arg0_1, (4, ), (1, ))
AssertionError: buf0
""",
}  # fmt: skip
OTHERS = {
    "the program's own exception": RUNNING + """  File "/srv/bot/model.py", line 17, in forward
    raise ValueError("no prices")
ValueError: no prices
""",
    "ended by hand": COMPILING + "KeyboardInterrupt\n",
    "another package": """Traceback (most recent call last):
  File "/venv/torch/utils/data/dataloader.py", line 17, in __next__
    data = self._next_data()
AssertionError: buf0
""",
    "torch.func in eager mode": """Traceback (most recent call last):
  File "/venv/torch/_functorch/vmap.py", line 17, in wrapped
    return f(x)
ValueError: vmap: in_dims is not compatible
""",
    "a package that can do without triton": """2023-09-07 08:40:53 | WARNING | xformers | Triton is not available
This is just a warning: No module named 'triton'
A matching Triton is not available, some optimizations will not be enabled.
Error caught was: No module named 'triton'
whisper/timing.py:42: UserWarning: Failed to launch Triton kernels, likely due to missing CUDA toolkit; falling back to a slower median kernel
""",
    "torch warns": """/venv/torch/_inductor/compile_fx.py:236: UserWarning: TensorFloat32 tensor cores are available but not enabled.
  warnings.warn(
W0805 16:29:19.915000 2428609 torch/utils/_sympy/interp.py:176] [0/0] failed while executing pow_by_natural([VR[2, int_oo], VR[-1, -1]])
""",
    "another build": """clang: error: unsupported option '-fopenmp'
make[2]: *** [CMakeFiles/example-app.dir/example-app.cpp.o] Error 1
/srv/app/main.c:4:10: fatal error: Python.h: No such file or directory
""",
    "another name for it": """botocore.exceptions.ClientError: An error occurred: DynamoDB table not found
INFO model: torch.compile is on
ValueError: no prices
""",
    "names of weights": """_orig_mod.fc.weight
_orig_mod.fc.bias
""",
    "dealt with": "".join(f"{CHATTER}{line}\n" for line in (COMPILING + "KeyError: 1").split("\n")),
}  # fmt: skip


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_a_failure_is_found_in_every_form(text: str) -> None:
    """One event, with the exception that the compiler raised."""
    assert [(event.kind, event.extra["exception"], event.extra["message"]) for event in engine_events([text.encode()])] == [
        ("compile_error", "AssertionError", "buf0")
    ]


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_tracebacks_are_none(text: str) -> None:
    """Passing through a compiled function makes an exception no failure of the compiler."""
    assert engine_events([text.encode()]) == []


def test_a_wrapped_exception_is_told_once() -> None:
    """Of a cause and torch's own exception around it only the latter is an event."""
    text = COMPILING + "KeyError: 'op566'\n\nThe above exception was the direct cause of the following exception:\n\n" + COMPILING
    events = engine_events([text.encode() + b"torch._inductor.exc.InductorError: KeyError: 'op566'\n"])
    assert [event.extra["exception"] for event in events] == ["InductorError"]


HANDED_ON = (
    COMPILING
    + """torch._inductor.exc.InductorError: SubprocException: An exception occurred in a subprocess:

Name=triton_poi_fused_add_0
Traceback (most recent call last):
  File "/venv/torch/_inductor/compile_worker/subproc_pool.py", line 419, in do_job
    result = job()
  File "/venv/torch/_inductor/runtime/triton_heuristics.py", line 448, in precompile
    self._precompile_worker()
"""
)


@pytest.mark.parametrize(
    ("cause", "exception"),
    [
        ("triton.compiler.errors.CompilationError: at 8:12:\n    tmp0 = tl.load(in_ptr0)\n           ^\nValueError('fp8')", "CompilationError"),
        ("RuntimeError: Cannot find a working triton installation.", "RuntimeError"),
        ("torch._inductor.exc.CppCompileError: C++ compile error", "CppCompileError"),
        ("AssertionError: buf0", "AssertionError"),
    ],
)
def test_what_a_worker_process_hands_on_is_told_by_its_cause(cause: str, exception: str) -> None:
    """inductor's pool of workers puts the whole traceback of the worker behind an exception that says nothing."""
    events = engine_events([f"{HANDED_ON}{cause}\n".encode()])
    assert [event.extra["exception"] for event in events] == [exception]


def test_what_a_worker_process_hands_on_counts_where_its_cause_is_not_shown() -> None:
    """The log may end there, and what follows may be another rank's."""
    head, _, _ = HANDED_ON.partition("\nName=")
    assert [event.extra["message"] for event in engine_events([head.encode()])] == ["SubprocException: An exception occurred in a subprocess:"]
    ranks = "".join(f"[rank0]: {line}\n" for line in head.splitlines()) + "[rank1]: torch._inductor.exc.CppCompileError: C++ compile error\n"
    assert [(event.rank, event.extra["exception"]) for event in engine_events([ranks.encode()])] == [(0, "InductorError"), (1, "CppCompileError")]


COMMAND = "CalledProcessError: Command '['/usr/bin/gcc', '/tmp/tmpn8c04nql/main.c', '-lcuda']' returned non-zero exit status 1."
BUILD_FAILED = f"""Traceback (most recent call last):
  File "/venv/triton/runtime/build.py", line 50, in _build
    subprocess.check_call(cc_cmd)
subprocess.{COMMAND}

The above exception was the direct cause of the following exception:

{COMPILING}torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
{COMMAND}
"""


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("/usr/bin/ld: cannot find -lcuda: No such file or directory", "cannot find -lcuda"),
        ("/tmp/tmpn8c04nql/main.c:4:10: fatal error: Python.h: No such file or directory", "fatal error: Python.h: No such file or directory"),
    ],
)
def test_what_a_compiler_of_c_says_is_why_its_command_failed(said: str, message: str) -> None:
    """It prints that itself; the exceptions behind it show only the command, and are no failures of their own."""
    (event,) = engine_events([f"{said}\ncollect2: error: ld returned 1 exit status\n{BUILD_FAILED}".encode()])
    assert (event.extra["exception"], event.extra["message"]) == ("BackendCompilerFailed", message)
    (event,) = engine_events([BUILD_FAILED.encode()])
    assert (event.extra["exception"], event.extra["message"]) == ("BackendCompilerFailed", COMMAND)


def test_a_stack_that_the_log_cuts_is_a_failure_without_name() -> None:
    """Where the log ends inside the stack, its exception is unknown."""
    failure = failure_of(COMPILING.encode().split(b"\n"), is_cut=True, gave_way=False)
    assert failure is not None
    assert (failure.exception, failure.stage) == (None, "tracing")


def test_a_full_gpu_is_no_failure_of_the_compiler() -> None:
    """It is an event of its own."""
    events = engine_events([COMPILING.encode() + b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"])
    assert [event.kind for event in events] == ["out_of_memory"]


def test_a_crash_of_the_compiler_is_a_failure() -> None:
    """A signal ends the process: the stack is told innermost frame first."""
    head = b"Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f12 (most recent call first):\n"
    frame = b'  File "/venv/torch/_inductor/codecache.py", line 2747 in load_by_key_path\n  File "/srv/bot/main.py", line 6 in main\n'
    events = engine_events([head + frame])
    assert [(event.extra["exception"], event.extra["message"]) for event in events] == [("Fatal Python error", "Segmentation fault")]
    assert engine_events([head + b'  File "/venv/numpy/core.py", line 3 in dot\n' + frame.partition(b"\n")[2]]) == []


def test_a_notebook_names_the_exception_in_front_of_the_stack() -> None:
    """Where the log ends inside the stack, its head is all that names it; an exception that is printed below says more."""
    head, *stack = FORMS["notebook"].encode().split(b"\n")
    cut = failure_of([head, *stack[:-2]], is_cut=True, gave_way=False)
    whole = failure_of([head, *stack], is_cut=False, gave_way=False)
    assert cut is not None and whole is not None
    assert (cut.exception, cut.said, whole.exception, whole.said) == ("AssertionError", "", "AssertionError", "buf0")


def test_a_server_s_own_backend_is_a_part_of_the_compiler() -> None:
    """vLLM and SGLang compile through folders of their own, which may be all that a cut stack shows."""
    stack = b'  File "/opt/vllm/compilation/backends.py", line 656, in __call__\n    PiecewiseCompileInterpreter('
    found = failure_of(stack.split(b"\n"), is_cut=True, gave_way=False)
    assert found is not None and found.stage == "inductor"


def test_torch_s_checks_of_a_backward_pass_are_no_code_of_the_program() -> None:
    """What compiled code passes when it runs is none of the compiler's, but the checks in front of its backward pass are torch's own."""
    stack = '  File "/venv/torch/_functorch/_aot_autograd/runtime_wrappers.py", line 19, in {}\n    x = y'
    found = [failure_of(stack.format(name).encode().split(b"\n"), is_cut=True, gave_way=False) for name in ("wrapper", "process_runtime_tangent")]
    assert found[0] is None and found[1] is not None and found[1].stage == "autograd"


RAISED = {
    "its text in the code": ('    raise RuntimeError("no room for the kernel") from error', "RuntimeError", "no room for the kernel"),
    "a text that is filled in": (
        '    raise RuntimeError(f"Compiler: {compiler} is not found.") from exc',
        "RuntimeError",
        "Compiler: {compiler} is not found.",
    ),
    "the text on the next line": ("    raise BackendCompilerFailed(", "BackendCompilerFailed", ""),
    "an exception of a module": ("    raise exc.TritonMissing(inspect.currentframe())", "TritonMissing", ""),
    "marks below it": ("    raise CppCompileError(cmd, output) from e\n    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^", "CppCompileError", ""),
}


@pytest.mark.parametrize(("code", "exception", "said"), RAISED.values(), ids=RAISED)
def test_a_stack_that_ends_behind_its_raise_statement_names_the_exception(code: str, exception: str, said: str) -> None:
    """The code that raises is the last line of the stack."""
    text = f'{COMPILING}  File "/venv/torch/_inductor/cpp_builder.py", line 135, in check_compiler_exist_windows\n{code}'
    failure = failure_of(text.encode().split(b"\n"), is_cut=True, gave_way=False)
    assert failure is not None
    assert (failure.exception, failure.said, failure.stage) == (exception, said, "inductor")


CUT = """  File "/venv/lib/python3.13/site-packages/torch/{module}.py",
    return self._compile_to_module()
  File "/venv/lib/python3.13/site-packages/torch/{module}.py", line
"""


@pytest.mark.parametrize(
    ("module", "is_failure"), [("_inductor/graph", True), ("_dynamo/output_graph", True), ("_dynamo/eval_frame", False), ("nn/modules/module", False)]
)
def test_a_frame_that_is_cut_at_the_edge_counts_where_only_the_compiler_passes(module: str, is_failure: bool) -> None:
    """Without its function a frame proves nothing in a module that the compiled program passes as well."""
    events = engine_events([CUT.format(module=module).encode()])
    assert [event.kind for event in events] == ["compile_error"] * is_failure


def test_frames_are_known_as_texts_of_a_list() -> None:
    """A program's report of its last exception, as JSON."""
    text = """        [
            "/venv/lib/python3.9/site-packages/torch/_dynamo/convert_frame.py, line 324, _compile",
            "out_code = transform_code_object(code, transform)"
        ],
"""
    assert [(event.kind, event.extra["stage"]) for event in engine_events([text.encode()])] == [("compile_error", "tracing")]


@pytest.mark.parametrize(("function", "is_failure"), [("compile", True), ("_import_dotted_name", False)])
def test_the_call_of_torch_compile_is_a_frame_of_the_compiler(function: str, is_failure: bool) -> None:
    """A program's code does not run below torch.compile itself: what a stack that ends there raised is of the compiler."""
    stack = [
        b"RuntimeError                              Traceback (most recent call last)",
        b"Cell In[4], line 2",
        b"----> 2 model = torch.compile(model)",
        b"",
        f"File ~\\envs\\c\\lib\\site-packages\\torch\\__init__.py:1723, in {function}(model, fullgraph, dynamic)".encode(),
        b"-> 1723 return torch._dynamo.optimize(backend=backend)(model)",
    ]
    failure = failure_of(stack, is_cut=True, gave_way=False)
    assert (failure is not None and failure.exception == "RuntimeError") is is_failure


TWO_INDENTED = (
    COMPILING
    + """torch._dynamo.exc.Unsupported: Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print`

from user code:
   File "/srv/bot/model.py", line 13, in h
    print("x")

"""
    + COMPILING
    + """torch._dynamo.exc.Unsupported: Data-dependent branching
  Explanation: Detected data-dependent branching

from user code:
   File "/srv/bot/model.py", line 21, in g
    if x.sum() > 0:

"""
)


@pytest.mark.parametrize("blanks", ["", "  ", "    "])
@pytest.mark.parametrize("around", ["", "What I get:\n\n{}\nWhy?\n"])
def test_two_failures_in_indented_text_are_two(blanks: str, around: str) -> None:
    """Each keeps its own message and place where a page or a list indents all lines of both."""
    text = "".join(blanks + line if line.strip() else line for line in TWO_INDENTED.splitlines(keepends=True))
    found = engine_events([(around.format(text) or text).encode()])
    assert [(event.function, event.line_no, str(event.extra["message"])[:15]) for event in found] == [
        ("h", 13, "Failed to trace"), ("g", 21, "Data-dependent "),
    ]  # fmt: skip


def test_a_blank_in_front_of_the_first_line_is_its_own() -> None:
    """Lines that are not indented as the first one is keep their blanks."""
    (event,) = engine_events([(" " + COMPILING + "AssertionError: buf0\n").encode()])
    assert (event.extra["exception"], event.extra["message"]) == ("AssertionError", "buf0")


PIECES = """Traceback (most recent call last):
  File "/srv/train.py", line 26, in <module>
    loss = step(n, x)
  File "/venv/torch/_dynamo/eval_frame.py", line 1166, in compile_wrapper
    result = fn(*args, **kwargs)
  File "/srv/train.py", line 21, in step
    print(f"step {n} loss {loss.item():.4f}")
  File "/srv/train.py", line 21, in torch_dynamo_resume_in_step_at_21
    print(f"step {n} loss {loss.item():.4f}")
TypeError: sequence item 1: expected str instance, int found
"""


def test_a_text_that_a_graph_break_cut_in_two() -> None:
    """Measured: the same line is right in eager mode; without a frame that torch resumed the error is the program's own."""
    (event,) = engine_events([PIECES.encode()])
    assert (event.kind, event.function, event.line_no) == ("compile_error", "torch_dynamo_resume_in_step_at_21", 21)
    assert (event.extra["exception"], event.extra["stage"]) == ("TypeError", "running")
    assert engine_events([PIECES.replace("torch_dynamo_resume_in_step_at_21", "report").encode()]) == []
    assert engine_events([PIECES.replace("sequence item 1: expected str instance, int found", "int is not callable").encode()]) == []
