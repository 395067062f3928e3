"""Where in the user's code an exception came from: what torch shows below it, through a whole log."""

from __future__ import annotations

import pytest

from recompile_watch.core.stack_frames import StackFrame, called_from, is_of_a_library
from tests.conftest import events_of_bytes
from tests.core.test_graph_breaks import findings

FILE = "/srv/bot/m.py"
CHECK = "Could not guard on data-dependent expression u0 > 4 (unhinted: u0 > 4).  (Size-like symbols: none)"
MARKED = """torch.fx.experimental.symbolic_shapes.ConstraintViolationError: Constraints violated (L['x'].size()[0])! For more information, see below.
  - You marked L['x'].size()[0] as dynamic but your code specialized it to be a constant (8). If you're using mark_dynamic, either remove it.

User stack:
  File "/srv/bot/m.py", line 8, in forward
    y = x.view(8, 4)

"""
LOWERED = """torch._inductor.exc.InductorError: LoweringException: RuntimeError: no such thing
  target: aten.sin.default
  args[0]: TensorBox(StorageBox(
    InputBuffer(name='arg0_1', layout=FixedLayout('cpu', torch.float32, size=[5], stride=[1]))
  ))
Found from : 
   File "/srv/bot/m.py", line 8, in forward
    return x.sin()
           ^^^^^^^
"""  # noqa: W291
SKIPPED = """torch._dynamo.exc.BackendCompilerFailed: backend='cudagraphs' raised:
RuntimeError: skipping cudagraphs due to skipping cudagraphs due to cpu device (arg0_1). Found from : 
   File "/srv/bot/m.py", line 8, in forward
    return x.add_(1)
"""  # noqa: W291
RAISED = "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nRuntimeError: no C++ compiler found\n"
GUARDED = "E1122 21:01:04.217000 19943 torch/_guards.py:375] [0/0] "


def guarded(text: str) -> str:
    lines = ["Error while creating guard:", "Name: ''", "    Source: shape_env", "    Create Function: SHAPE_ENV", *text.split("\n")[:-1]]
    return "".join(f"{GUARDED}{line}\n" for line in lines)


def unknown_number(below: str) -> str:
    """A number that torch does not know, as torch 2.13 tells of it (symbolic_shapes.py, _make_data_dependent_error)."""
    return f"""torch._dynamo.exc.UserError: {CHECK}

consider using data-dependent friendly APIs such as guard_or_false, guard_or_true and statically_known_true.
Caused by: if n > 4:  # m.py:8 in forward (_dynamo/variables/tensor.py:2606 in evaluate_expr)
For more information, run with TORCH_LOGS="dynamic"
For extended logs when we create symbols, also add TORCHDYNAMO_EXTENDED_DEBUG_CREATE_SYMBOL="u0"
If you suspect the guard was triggered from C++, add TORCHDYNAMO_EXTENDED_DEBUG_CPP=1
{below}"""


STACK = """
User Stack (most recent call last):
  (snipped, see stack below for prefix)
  File "/srv/bot/m.py", line 8, in forward
    if n > 4:
       ^^^^^

For C++ stack trace, run with TORCHDYNAMO_EXTENDED_DEBUG_CPP=1
"""
TRACED = """For more information about this error, see: https://pytorch.org/docs/main/generated/exportdb/index.html#constrain-as-size-example

from user code:
   File "/srv/bot/m.py", line 8, in forward
    if n > 4:
"""


@pytest.mark.parametrize(
    "text",
    [unknown_number(STACK), unknown_number(STACK + TRACED), unknown_number(TRACED), MARKED, guarded(MARKED), LOWERED, SKIPPED],
    ids=["user stack", "both", "user code", "constraint", "guard", "lowering", "cudagraph_or_error"],
)
def test_the_place_is_where_torch_says_it_is(text: str) -> None:
    """Behind "from user code:" as behind the other words that torch has for it."""
    (event,) = events_of_bytes(text.encode(), "bot.log")
    assert (event["kind"], event["function"], event["file"], event["line_no"]) == ("compile_error", "forward", FILE, 8)


OWN = '   File "/srv/bot/m.py", line 8, in forward\n    y = op(x)\n'
TORCHS = [
    "/venv/lib/python3.11/site-packages/torch/_higher_order_ops/cond.py", "/usr/lib/python3/dist-packages/torch/_library/custom_ops.py",
    "C:\\venv\\Lib\\site-packages\\torch\\_dynamo\\polyfills\\__init__.py", "/venv/lib/python3.11/site-packages/torch/nn/modules/container.py",
    "/home/u/pytorch/torch/_dynamo/external_utils.py",
]  # fmt: skip


@pytest.mark.parametrize("torchs", TORCHS)
def test_the_place_is_the_users_line_that_led_into_torch(torchs: str) -> None:
    """Dynamo traces through torch's own Python, too: the frame above it is the program's. Where there is none, torch's is all there is."""
    inner = f'   File "{torchs}", line 196, in inner\n    return fn(*args)\n'
    error = "torch._dynamo.exc.Unsupported: Attempted to wrap RNN, GRU, or LSTM\n\nfrom user code:\n"
    (event,) = events_of_bytes(f"{error}{OWN}{inner}".encode(), "bot.log")
    assert (event["function"], event["file"], event["line_no"]) == ("forward", FILE, 8)
    (event,) = events_of_bytes(f"{error}{inner}".encode(), "bot.log")
    assert (event["function"], event["file"], event["line_no"]) == ("inner", torchs, 196)


def test_a_break_in_torchs_own_code_is_at_the_users_line() -> None:
    """The head of such a record names torch's line; its stack shows what the program called. A library that is not torch's stays."""
    head = "Graph break in user code at {0}:505\nGraph Break Reason: Unsupported method call\nUser code traceback:\n"
    stack = head + OWN.replace("   File", "  File") + '  File "{0}", line 505, in build\n    obj = cls.__new__(cls)\n'
    for file, place in (
        ("/venv/lib/python3.11/site-packages/torch/_dynamo/polyfills/__init__.py", (FILE, 8)),
        ("/venv/lib/python3.11/site-packages/other/build.py", ("/venv/lib/python3.11/site-packages/other/build.py", 505)),
    ):
        (event,) = events_of_bytes(stack.format(file).encode(), "bot.log")
        assert (event["kind"], event["file"], event["line_no"]) == ("graph_break", *place)


def test_a_skip_that_raises_says_its_reason_once() -> None:
    """torch._inductor.config.triton.cudagraph_or_error makes an exception of the warning."""
    (event,) = events_of_bytes(SKIPPED.encode(), "bot.log")
    assert event["message"] == "RuntimeError: skipping cudagraphs due to cpu device (arg0_1)."


def test_a_name_that_the_module_lacks_is_no_failure_of_the_compiler() -> None:
    """The wrapper hands every attribute on to the module: without torch.compile the same is raised."""
    wrapper = '  File "/v/site-packages/torch/_dynamo/eval_frame.py", line 600, in __getattr__\n    return getattr(self._orig_mod, name)\n'
    module = '  File "/v/site-packages/torch/nn/modules/module.py", line 1967, in __getattr__\n    raise AttributeError(\n'
    log = f'Traceback (most recent call last):\n  File "{FILE}", line 4, in <module>\n    print(m.wieght)\n{wrapper}{module}'
    assert events_of_bytes(f"{log}AttributeError: 'Linear' object has no attribute 'wieght'\n".encode(), "-") == []


def test_a_failure_that_torch_put_up_with_is_told_once() -> None:
    """Without a prefix on each line its traceback comes twice: in the message, and behind it."""
    stack = f'Traceback (most recent call last):\n  File "/v/site-packages/torch/_dynamo/output_graph.py", line 9, in call\n    x\n{RAISED}'
    log = f"WON'T CONVERT step {FILE} line 4 \ndue to: \n{stack}\n{stack}out: tensor([2.])\n"
    (event,) = events_of_bytes(log.encode(), "-")
    assert event["kind"] == "compile_error" and event["suppressed"] is True


def test_nobody_edits_a_library() -> None:
    """What is installed is no place to mend a program: a library's user can leave out his own call of it."""
    assert is_of_a_library("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py")
    assert is_of_a_library("/usr/lib/python3.11/copy.py") and is_of_a_library(r"C:\Python311\Lib\json\encoder.py")
    assert is_of_a_library("/opt/venv/lib/python3.11/site-packages/transformers/cache_utils.py")
    assert not is_of_a_library("/srv/bot/model.py") and not is_of_a_library(None)


CALL = [
    StackFrame("/v/site-packages/torch/nn/modules/module.py", 1778, "_wrapped_call_impl"),
    StackFrame("/v/site-packages/torch/nn/modules/module.py", 1789, "_call_impl"),
]
PROGRAM = StackFrame("/srv/bot/train.py", 21, "<module>")
MINE = StackFrame("/srv/bot/m.py", 13, "forward")
THEIRS = StackFrame("/v/site-packages/quantizer/vq.py", 454, "init_embed_")


@pytest.mark.parametrize(
    ("stack", "where"),
    [
        ([PROGRAM, *CALL, *CALL, MINE, *CALL, THEIRS], "/srv/bot/m.py:13 in forward"),
        ([MINE, THEIRS, THEIRS], "/srv/bot/m.py:13 in forward"),
        ([PROGRAM, MINE._replace(function="<lambda>"), THEIRS], "/srv/bot/m.py:13 in <lambda>"),
        ([PROGRAM, *CALL, MINE], None),  # the program's own code needs no line that leads there
        ([PROGRAM, THEIRS], None),  # no module is compiled: what it calls is
        ([PROGRAM, MINE, *CALL, *CALL, THEIRS], None),  # the call of the compiled module itself, which is the package's
        ([THEIRS], None),
        ([], None),
    ],
)
def test_which_line_of_the_program_leads_into_a_package(stack: list[StackFrame], where: str | None) -> None:
    """It lies inside of what is compiled: there the call can be left out."""
    assert called_from(stack).get("called_from") == where


CALLED = """Traceback (most recent call last):
  File "/usr/local/bin/serve", line 8, in <module>
    sys.exit(main())
  File "/srv/bot/m.py", line 27, in main
    {code}
"""
V = "/v/lib/python3.11/site-packages/torch"
COMPILED = f"""  File "{V}/_dynamo/eval_frame.py", line 1183, in compile_wrapper
    raise e.remove_dynamo_frames() from None
  File "{V}/_inductor/compile_fx.py", line 1079, in _compile_fx_inner
    raise InductorError(e, currentframe())
"""
BACKWARD = f"""  File "{V}/_tensor.py", line 623, in backward
    torch.autograd.backward(
  File "{V}/autograd/graph.py", line 979, in _engine_run_backward
    return Variable._execution_engine.run_backward(
  File "{V}/_functorch/_aot_autograd/runtime_wrappers.py", line 3501, in backward
    raise RuntimeError(
"""
NO_COMPILER = "torch._inductor.exc.InductorError: InvalidCxxCompiler: No working C++ compiler found in config.cpp.cxx: (None, 'g++')\n"
DOUBLE = "RuntimeError: torch.compile with aot_autograd does not currently support double backward\n"
UNKNOWN_MODE = "RuntimeError: Unrecognized mode=reduce_overhead, should be one of default, reduce-overhead, max-autotune\n"
TORCH_COMPILE = f'  File "{V}/__init__.py", line 2690, in compile\n    backend = _TorchCompileInductorWrapper(mode, options, dynamic)\n'
FAILURES = {
    "no word of user code": (COMPILED, NO_COMPILER, False),
    "in backward()": (BACKWARD, DOUBLE, True),
    "in torch.compile()": (TORCH_COMPILE, UNKNOWN_MODE, False),
    "in the compiler's own words": (COMPILED, "AssertionError: buf0\n", False),
    "of a checkout": (COMPILED.replace(V, "/home/u/pytorch/torch"), NO_COMPILER, False),
}


@pytest.mark.parametrize("front", ["", "[rank1]: ", "(EngineCore_DP0 pid=77) ERROR 11-20 12:33:44 [core.py:700] "], ids=["bare", "rank", "engine"])
@pytest.mark.parametrize(("frames", "error", "in_backward"), FAILURES.values(), ids=FAILURES)
def test_a_failure_without_user_code_says_where_the_program_called(frames: str, error: str, in_backward: bool, front: str) -> None:
    """The traceback shows the line, no function that is compiled; torch's own files, Python's and a script's in bin are no place."""
    log = CALLED.format(code="step(x)") + frames + error
    (event,) = events_of_bytes("".join(f"{front}{line}\n" for line in log.splitlines()).encode(), "-")
    assert (event["kind"], event["function"], event["file"], event["line_no"]) == ("compile_error", None, None, None)
    assert event["called_from"] == f"{FILE}:27 in main"
    assert event.get("in_backward", False) is in_backward


EXPORT = f'''  File "{V}/export/__init__.py", line 210, in export
    return _export(
  File "{V}/_export/non_strict_utils.py", line 1205, in __torch_function__
    return func(*args, **kwargs)
{V}/fx/experimental/symbolic_shapes.py:1: in _evaluate_expr
    raise self._make_data_dependent_error(
'''
BELOW_EXPORT = """
The following call raised this error:
  File "/srv/bot/m.py", line 8, in forward
    if y.sum() > 0:


The error above occurred when calling torch.export.export. If you would like to view some more information about this error, call it in draft mode.
"""


def test_an_export_that_failed_is_told_as_one_and_at_the_line_it_names() -> None:
    """torch 2.13 names the call behind its hints; an export compiles nothing."""
    log = CALLED.format(code="torch.export.export(net, (x,))") + EXPORT + unknown_number(BELOW_EXPORT)
    (event,) = events_of_bytes(log.encode(), "-")
    assert (event["function"], event["file"], event["line_no"], event["exported"]) == ("forward", FILE, 8, True)
    (finding,) = findings(log)
    assert finding.title.startswith("forward was not exported: ") and finding.consequence.startswith("torch.export could not ")


def test_a_checkpoint_of_a_compiled_model_fails_at_the_line_that_loads_it() -> None:
    """The traceback holds no frame of the compiler; the line between its own and torch's is the one."""
    frames = f'  File "{V}/nn/modules/module.py", line 2638, in load_state_dict\n    raise RuntimeError(\n'
    error = 'RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "fc.weight". \n'
    log = CALLED.format(code="net.load_state_dict(state)") + frames + error + '\tUnexpected key(s) in state_dict: "_orig_mod.fc.weight". \n'
    (event,) = events_of_bytes(log.encode(), "-")
    assert (event["stage"], event["called_from"]) == ("wrapper", f"{FILE}:27 in main")
    (finding,) = findings(log)
    assert finding.title.startswith("A compiled wrapper stands where the module itself is wanted, at m.py:27: Unexpected key")


def test_two_ranks_each_have_their_own_line() -> None:
    """Lines of two tracebacks come in turns; a failure takes the line of its own rank."""
    logs = [(CALLED.replace("27", str(line)).format(code="step(x)") + COMPILED + NO_COMPILER).splitlines() for line in (27, 31)]
    mixed = "".join(f"[rank{rank}]: {line}\n" for lines in zip(*logs, strict=True) for rank, line in enumerate(lines))
    found = [(event["rank"], event["called_from"]) for event in events_of_bytes(mixed.encode(), "-")]
    assert found == [(0, f"{FILE}:27 in main"), (1, f"{FILE}:31 in main")]


def test_a_line_belongs_to_the_exception_of_its_traceback_only() -> None:
    """What is told behind it without a traceback has no place."""
    other = "ValueError: no prices\n"
    log = CALLED.format(code="step(x)") + COMPILED + other + "INFO retry\n" + NO_COMPILER
    found = [(event["exception"], event.get("called_from")) for event in events_of_bytes(log.encode(), "-")]
    assert found == [("ValueError", f"{FILE}:27 in main"), ("InductorError", None)]


def test_user_code_is_a_better_place_than_the_call() -> None:
    """Where torch names the line that it could not trace, that is the place, with its function."""
    error = "torch._dynamo.exc.Unsupported: Attempted to wrap RNN, GRU, or LSTM\n\nfrom user code:\n"
    (event,) = events_of_bytes((CALLED.format(code="step(x)") + COMPILED + error + OWN).encode(), "-")
    assert (event["function"], event["line_no"]) == ("forward", 8) and "called_from" not in event


def test_compiled_code_that_raised_is_the_place() -> None:
    """A frame of the program behind those that enter compiled code ran as such; behind others of the compiler it is a backend's."""
    entered = f'  File "{V}/_dynamo/eval_frame.py", line 1166, in compile_wrapper\n    result = fn(*args, **kwargs)\n'
    own = f'  File "{FILE}", line 10, in forward\n    def forward(self, x):\n'
    wrote = '  File "/tmp/torchinductor_bot/pz/cpzhick6fmmxqgii2wjnqurdsqz5uo6t2afdkwqaoodikp5so7lp.py", line 83, in call\n    addmm(x)\n'
    log = CALLED.format(code="step(x)") + entered + own + wrote + "RuntimeError: mat1 and mat2 must have the same dtype\n"
    (event,) = events_of_bytes(log.encode(), "-")
    assert (event["stage"], event["function"], event["file"], event["line_no"]) == ("running", "forward", FILE, 10)
    assert "called_from" not in event
    made = f'  File "{V}/_dynamo/output_graph.py", line 9, in call_user_compiler\n    x\n  File "{FILE}", line 4, in fold\n    x\n'
    error = "torch._dynamo.exc.BackendCompilerFailed: backend='fold' raised:\nAttributeError: 'str' object has no attribute '__name__'\n"
    (event,) = events_of_bytes((CALLED.format(code="step(x)") + entered + made + error).encode(), "-")
    assert (event["function"], event["file"], event["line_no"], event["called_from"]) == (None, None, None, f"{FILE}:27 in main")


def test_the_place_of_what_ray_hands_on_is_in_its_worker() -> None:
    """Behind the driver's stack stands the worker's, without a header of its own."""
    driver = (
        f'  File "{FILE}", line 40, in main\n    ray.get(ref)\n  File "{V}/../ray/_private/worker.py", line 919, in get_objects\n    raise value\n'
    )
    handed_on = "ray.exceptions.RayTaskError(InductorError): \x1b[36mray::Worker.step()\x1b[39m (pid=811, ip=10.0.0.2, actor_id=ab)\n"
    worker = f'  File "/srv/bot/worker.py", line 22, in step\n    return self.compiled(batch)\n{COMPILED}'
    (event,) = events_of_bytes(f"Traceback (most recent call last):\n{driver}{handed_on}{worker}{NO_COMPILER}".encode(), "-")
    assert event["called_from"] == "/srv/bot/worker.py:22 in step"


THREAD = 'File "/usr/lib/python3.11/concurrent/futures/thread.py", line 58, in run\n    result = self.fn(*self.args, **self.kwargs)\n  '
TRACED = """Traceback (most recent call last):
  {}File "/srv/bot/m.py", line 18, in encode
    return compiled(ids)
  File "/opt/torch/fx/_symbolic_trace.py", line 821, in module_call_wrapper
    return self.call_module(mod, forward, args, kwargs)
  File "/opt/torch/_dynamo/eval_frame.py", line 544, in _fn
    raise RuntimeError(
RuntimeError: Detected that you are using FX to symbolically trace a dynamo-optimized function. This is not supported at the moment.
"""


@pytest.mark.parametrize(("thread", "first"), [(THREAD, "warmup_single_thread"), ("", "use_uncompiled_module")])
def test_a_thread_meets_the_flag_of_another_ones_trace(thread: str, first: str) -> None:
    """torch up to 2.9 keeps for the whole process that something is traced: a thread's call of a compiled module raised meanwhile (measured)."""
    (found,) = findings(TRACED.format(thread))
    assert found.advice[0].remedy == first
