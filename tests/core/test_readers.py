"""Failed compilations and graph breaks: which lines are one event, and which of them says what is wrong."""

from __future__ import annotations

import pytest

from tests.conftest import events_of_bytes
from tests.truth import Event

WARNING = (
    "/venv/torch/_dynamo/variables/functions.py:2431: UserWarning: Dynamo does not know how to trace the builtin `time.time.` "
    "This function is either a Python builtin (e.g. _warnings.warn) or a third-party C/C++ Python extension.\n"
)
BREAK = (
    "V1120 11:14:20.332000 23972 torch/_dynamo/symbolic_convert.py:5124] [20/0] [__graph_breaks] Graph break in user code at /srv/bot/m.py:57\n"
    "V1120 11:14:20.332000 23972 torch/_dynamo/symbolic_convert.py:5124] [20/0] [__graph_breaks] Graph Break Reason: Attempted to call function\n"
)
UNKNOWN = "Could not guard on data-dependent expression Eq(u0, 1) (unhinted: Eq(u0, 1)).\n"
CAUSE = f"torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: {UNKNOWN}"
ERROR = f"torch._dynamo.exc.UserError: {UNKNOWN}"
BETWEEN = "\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n"
TAIL = '\nfrom user code:\n   File "/srv/bot/m.py", line 8, in forward\n    if n > 1:\n'


def events(text: str) -> list[Event]:
    return events_of_bytes(text.encode(), "bot.log")


def messages(text: str) -> list[object]:
    return [event.get("message") for event in events(text)]


def test_a_warning_about_a_builtin_is_a_break_where_torch_says_nothing_else() -> None:
    """Default logs show of this graph break the warning only."""
    (event,) = events(WARNING)
    assert (event["kind"], event["file"], event["reasons"][0]["text"]) == (
        "graph_break", None, "Dynamo does not know how to trace the builtin `time.time.`",
    )  # fmt: skip


def test_a_warning_about_a_builtin_belongs_to_the_record_behind_it() -> None:
    """With TORCH_LOGS=graph_breaks the warning and the record are one break, with the record's place."""
    assert [(event["kind"], event["line_no"]) for event in events(WARNING + BREAK)] == [("graph_break", 57)]


def test_two_warnings_are_two_breaks() -> None:
    """torch warns once for each function: two warnings are about two."""
    assert len(events(WARNING + WARNING.replace("time.time", "os.getpid"))) == 2


def test_an_exception_and_its_cause_are_one_failure() -> None:
    """What torch wraps in an exception of its own stands in front of it in the traceback."""
    assert [event["exception"] for event in events(CAUSE + BETWEEN + ERROR)] == ["UserError"]


def test_a_cause_without_its_exception_is_a_failure() -> None:
    """A log that ends behind the cause still shows that compilation failed."""
    assert [event["exception"] for event in events(CAUSE)] == ["GuardOnDataDependentSymNode"]


def test_another_failure_behind_a_cause_stays_a_failure_of_its_own() -> None:
    """Only an exception that repeats the message takes the cause in."""
    other = "torch._dynamo.exc.InternalTorchDynamoError: 'NoneType' object has no attribute 'co_name'\n"
    assert [event["exception"] for event in events(CAUSE + BETWEEN + other)] == ["GuardOnDataDependentSymNode", "InternalTorchDynamoError"]


def test_the_tail_of_a_failure_is_no_second_one() -> None:
    """``from user code:`` belongs to the exception in front of it, even behind lines that torch did not print."""
    (event,) = events(ERROR + "lower-case words of the program\n" + TAIL)
    assert event["exception"] == "UserError"


def test_the_tail_alone_shows_that_compilation_failed() -> None:
    """A log that begins behind the exception names the place; the exception stays null."""
    (event,) = events(TAIL)
    assert (event["kind"], event["exception"], event["function"], event["line_no"]) == ("compile_error", None, "forward", 8)


CALL = "call_function <built-in function add>(*(FakeTensor(...),), **{})"
DEVICES = "found two different devices cuda:0, cpu"
TRACED = f"Dynamo failed to run FX node with fake tensors: {CALL}: got RuntimeError('{DEVICES}')\n"


@pytest.mark.parametrize(
    "text",
    [f"Failed running {CALL}:\n{DEVICES}\n", TRACED, f"RuntimeError when making fake tensor call\n  Explanation: {TRACED}"],
    ids=["2.3", "2.7", "2.13"],
)
def test_a_call_that_fails_on_fake_tensors_says_first_what_is_wrong(text: str) -> None:
    """In the forms of torch 2.0 to 2.13 the error stands in front of the call, which may be long."""
    (message,) = messages("torch._dynamo.exc.TorchRuntimeError: " + text)
    assert isinstance(message, str)
    assert message.index("two different devices") < message.find("call_function")
    assert not message.startswith("RuntimeError when"), "what only announces it takes the room of a title"


def test_what_stands_below_a_name_or_a_call_is_what_is_wrong() -> None:
    """Somebody broke the line behind the exception's name, or left out the call that was traced; torch's last words are no message."""
    build = "Command '['/usr/bin/gcc', 'main.c']' returned non-zero exit status 1."
    assert messages(f"torch._inductor.exc.InductorError: CalledProcessError:\n  {build}\n") == [f"CalledProcessError: {build}"]
    assert messages("torch._dynamo.exc.Unsupported:\n  Logger method not supported\n") == ["Logger method not supported"]
    called = f"torch._dynamo.exc.TorchRuntimeError: Dynamo failed to run FX node with fake tensors\n  RuntimeError: {DEVICES}\n"
    assert messages(called) == [f"RuntimeError: {DEVICES} (Dynamo failed to run FX node with fake tensors)"]
    assert messages("torch._inductor.exc.InductorError: AssertionError:\nSet TORCHDYNAMO_VERBOSE=1 for the stack\n") == ["AssertionError:"]
    assert messages('torch._dynamo.exc.Unsupported:\n  File "/srv/m.py", line 3, in f\n') == [None]


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ("self._modules['a']\n                       ._modules['b'].seen == 7", "self._modules['a']._modules['b'].seen == 7"),
        ("tensor 'x' size mismatch\n         at index 0. expected 4, actual 5", "tensor 'x' size mismatch at index 0. expected 4, actual 5"),
        ("L['n'] == 7\n    W1120 is the next line", "L['n'] == 7"),
    ],
)
def test_a_guard_that_a_page_broke_is_whole(broken: str, whole: str) -> None:
    """What is indented behind the reason and goes on with it belongs to the guard; nothing else does."""
    (event,) = events(f"torch._dynamo hit config.recompile_limit (8)\n   function: 'f' (/srv/m.py:9)\n   last reason: 0/7: {broken}\n")
    assert [reason["text"] for reason in event["reasons"]] == [whole]


def test_a_refused_build_shows_the_compilers_error() -> None:
    """Of ``C++ compile error`` the first error of the compiler is kept, from behind its command line."""
    said = "C++ compile error\n\nCommand:\ng++ -O3 /tmp/x.cpp -o x.so\n\nOutput:\n/tmp/x.cpp:2:10: fatal error: omp.h: No such file\n"
    assert messages(f"torch._inductor.exc.CppCompileError: {said}") == ["C++ compile error: fatal error: omp.h: No such file"]


TRIED = "No valid triton configs. OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376."
FAILED = "NotImplementedError: no lowering of a FakeTensor\n"


@pytest.mark.parametrize("prefix", ["", "E0912 11:54:57.366000 1121181 torch/_inductor/select_algorithm.py:2100] [7/0] "])
def test_a_kernel_that_autotuning_does_without_is_no_failure(prefix: str) -> None:
    """torch tries many kernels, says of each that does not fit that it ignores it, and takes another one."""
    assert events(f"{prefix}Runtime error during autotuning: \n{prefix}{TRIED} \n{prefix}Ignoring this choice.\n") == []


def test_a_choice_that_raised_is_no_failure() -> None:
    """The stack below it is that of the choice."""
    prefix = "[rank0]:E0410 07:53:02.558000 255947 torch/_inductor/select_algorithm.py:1905] [15/4] "
    lines = [f"Exception {TRIED} for benchmark choice TritonTemplateCaller(x)", "Traceback (most recent call last):",
             '  File "/venv/torch/_inductor/select_algorithm.py", line 9, in wait_on_futures', "    x", "KeyError: 'y'"]  # fmt: skip
    assert events("".join(f"{prefix}{line}\n" for line in lines)) == []


def test_what_torch_warns_of_and_goes_on_without_is_no_failure() -> None:
    """A kernel of the user's that it cannot look into, with the stack of that."""
    prefix = "W1210 08:01:33.185000 3495860 torch/_higher_order_ops/triton_kernel_wrap.py:987] [0/0] "
    lines = ["Encountered an exception in identify_accessed_tensors, assuming every input is mutated", "Traceback (most recent call last):",
             '  File "/venv/triton/compiler/code_generator.py", line 1556, in visit', "    ret = super().visit(node)", "KeyError: 'y'"]  # fmt: skip
    text = "".join(f"{prefix}{line}\n" for line in lines)
    assert events(text) == []
    assert len(events(text.replace("_higher_order_ops/triton_kernel_wrap", "_dynamo/convert_frame"))) == 1


def test_a_cache_that_torch_cannot_load_is_no_failure() -> None:
    """It compiles anew, at its own level of warnings; the same words in a traceback that nobody caught are a failure."""
    error = "RuntimeError: Compile package was created with a different PyTorch version: 2.12.0\n"
    prefix = "W1122 10:00:00.000000 1234 torch/_dynamo/eval_frame.py:936] "
    assert events(f"{prefix}Failed to load entry from dynamo cache\n{prefix}Traceback (most recent call last):\n{prefix}{error}") == []
    assert len(events(error)) == 1


def test_a_backward_that_is_put_off_is_told_once() -> None:
    """torch warns behind the failure where a log does not keep the stack; with the stack the warning is the failure."""
    put_off = "failed to eagerly compile backwards for dynamic, suppressing in case backwards not needed\n"
    assert [event.get("suppressed") for event in events(ERROR + f"WARNING: {put_off}")] == [None]
    prefix = "W1122 10:00:00.000000 1234 torch/_functorch/_aot_autograd/graph_compile.py:2384] [0/0] "
    stack = f"{prefix}Traceback (most recent call last):\n{prefix}RuntimeError: no kernel\n"
    assert [event.get("suppressed") for event in events(f"{ERROR}{prefix}{put_off}{stack}")] == [None, True]


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        ('codecache.py", line 649, in dumps\n    self.dump(obj)', "ValueError: fast mode: can't pickle cyclic objects"),
        ('select_algorithm.py", line 4397, in precompile_with_captured_stdout\n    choice.precompile()', "RuntimeError: no such kernel"),
    ],
    ids=["cache key", "candidate"],
)
def test_what_torch_caught_is_no_failure_where_its_log_has_another_form(frame: str, error: str) -> None:
    """With logging.basicConfig only the first line of a record names the logger; the stack begins where torch caught the exception."""
    stack = f'Traceback (most recent call last):\n  File "/venv/torch/_inductor/{frame}\n'
    assert events(f"WARNING:torch._inductor.x:It goes on\n{stack}{error}\n") == []
    caller = '  File "/venv/torch/_inductor/compile_fx.py", line 9, in fx_codegen_and_compile\n    go()\n'
    assert len(events(f"Traceback (most recent call last):\n{caller}{caller}{error}\n")) == 1


def test_a_candidate_with_a_date_that_torch_does_not_print_is_no_failure() -> None:
    """A program may give torch's formatter another form of dates; two dots end what torch says of one candidate out of many."""
    prefix = "E2025-08-13T11:34:14+08:00.677000 8929 torch/_inductor/select_algorithm.py:2100] [1/0] "
    text = f"{prefix}{TRIED} Reducing block sizes or `num_stages` may help.. \n"
    assert events(text) == []
    assert len(events(text.replace("help.. ", "help."))) == 1


def test_the_same_where_no_other_kernel_is_left_is_a_failure() -> None:
    """Nothing says that this one is ignored."""
    (event,) = events(f"RuntimeError: {TRIED}\n")
    assert event["kind"] == "compile_error"


def test_what_torch_tells_in_passing_is_no_failure() -> None:
    """At its own levels below a warning torch names exceptions that it has dealt with."""
    assert events(f"V1120 11:14:20.332000 23972 torch/_dynamo/symbolic_convert.py:5124] [20/0] {FAILED}") == []
    assert len(events(f"E1120 11:14:20.332000 23972 torch/_dynamo/symbolic_convert.py:5124] [20/0] {FAILED}")) == 1


def test_words_of_the_compiler_and_what_torch_makes_of_them_are_one_failure() -> None:
    """The exception stands alone first, then below the backend's name."""
    outer = f"torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n{FAILED}"
    assert [event["exception"] for event in events(FAILED + BETWEEN + outer)] == ["BackendCompilerFailed"]


def test_what_stands_in_front_of_a_failure_is_that_failure() -> None:
    """inductor names the node first, the exception comes behind it."""
    head = "CRITICAL:torch._inductor.scheduler:Error in codegen for ComputedBuffer(name='buf7', layout=MutationLayout('cpu'))\n"
    assert [event["exception"] for event in events(f"{head}torch._inductor.exc.InductorError: KeyError: 'buf7'\n")] == ["InductorError"]
    assert len(events(head)) == 1


def test_a_break_that_only_wraps_another_is_no_second_failure() -> None:
    """torch 2.7 raises the break again under the context manager that it came in."""
    inner = "torch._dynamo.exc.Unsupported: Call to `torch._dynamo.graph_break()`\n"
    outer = "torch._dynamo.exc.Unsupported: Graph break under GenericContextWrappingVariable\n"
    assert messages(inner + BETWEEN + outer) == ["Call to `torch._dynamo.graph_break()`"]
    assert messages(outer) == ["Graph break under GenericContextWrappingVariable"]


def test_the_head_and_the_end_of_a_notebook_s_traceback_are_one_error() -> None:
    """A notebook names the exception above its traceback, too; often only that is pasted."""
    head = "CacheLimitExceeded                        Traceback (most recent call last)\n"
    end = "CacheLimitExceeded: cache_size_limit reached\n"
    assert [(event["kind"], event["limit_name"]) for event in events(head)] == [("recompile_limit_error", None)]
    assert [event["limit_name"] for event in events(head + "Cell In[2], line 1\n----> 1 f(x)\n\n" + end)] == ["cache_size_limit"]


@pytest.mark.parametrize(
    ("words", "reasons"),
    [
        ("It says `tensor 'L['x']' requires_grad mismatch. expected requires_grad=0` each time\n", ["requires_grad"]),
        ("'0/0: tensor' is what it says\n", None),
        ("(`Recompiling function f in m.py:3 ... GLOBAL_STATE changed: num_threads`)\n", ["global_state"]),
        ("the tensor 'x' dtype mismatch is harmless\n", None),
    ],
)
def test_a_guard_in_somebody_s_words(words: str, reasons: list[str] | None) -> None:
    """A guard that is quoted counts as one, with its cause; words about tensors do not."""
    found = [[reason["cause"] for reason in event["reasons"]] for event in events(words)]
    assert found == ([] if reasons is None else [reasons])


@pytest.mark.parametrize(
    "line",
    [
        "INFO model: torch.compile errors so far: 0",
        "if torch.compile fails, the bot runs eager",
        "WARNING app: torch.compile may raise a RuntimeError here",
        "    raise RuntimeError('torch.compile failed')",
        "mean error of inductor vs eager 0.001",
        "KeyError: 'torch_compile'",
        "DynamoDB: ClientError: no table",
        "+        except torch._dynamo.exc.BackendCompilerFailed as error:",
        "2025-06-06T19:02:34Z ERROR dynamo.runtime: RuntimeError: etcd lease lost",
        "* [inductor] Fix RuntimeError in codegen of cat (#12345)",
        "tests/test_inductor.py::test_raises_runtime_error_inductor PASSED        [ 13%]",
    ],
)
def test_talk_code_and_counts_are_no_failure(line: str) -> None:
    """Words of the compiler beside words of a failure are none where the line is code, a condition, a count or another program's."""
    assert events(f"{line}\n") == []


def test_a_title_is_no_second_failure() -> None:
    """What somebody says of a failure in front of the failure itself belongs to that one."""
    (event,) = events(f"Segmentation fault with torch.compile\n{ERROR}")
    assert event["exception"] == "UserError"


def test_an_error_that_the_compiler_logs_is_told_by_its_place() -> None:
    """At level E the place in torch's prefix is enough; the same line at another level is chatter."""
    line = "0120 10:55:36.685000 15144 torch/_inductor/runtime/triton_heuristics.py:533] [0/0]     tl.store(out_ptr0 + (x2), tmp126, None)\n"
    (event,) = events(f"E{line}")
    assert (event["kind"], event["compile_id"], event["exception"]) == ("compile_error", "0/0", None)
    assert events(f"V{line}") == []


def test_names_that_only_inductor_gives_tell_its_code() -> None:
    """A compiler that refuses a file is of torch where the lines below show inductor's variables."""
    refused = "program_source:19:9: error: expected ')'\n        auto tmp10 = tmp8 ? tmp9 : {}[x0];\n        ^\n"
    assert messages(refused.format("in_ptr0")) == ["error: expected ')'"]
    assert events(refused.format("prices")) == []


HINT = "  Explanation: Higher order ops do not support aliasing.\n  Hint: Please open an issue.\n"
UNCAPTURED = "torch._dynamo.exc.UncapturedHigherOrderOpError: This higher order operator doesn't work unless it is captured completely"


def test_a_higher_order_operator_says_what_broke_inside_it() -> None:
    """torch announces it, and names the operator in front of the explanation; the reason may begin with any sign."""
    inner = "Encountered aliasing during higher order op tracing\n  Higher Order Operator: torch.cond\n"
    announced = f"{UNCAPTURED} with torch.compile. Got graph break/error:\n\n"
    assert messages(f"{announced}{inner}{HINT}") == [f"{inner.partition(chr(10))[0]}: torch.cond: Higher order ops do not support aliasing."]
    assert messages(f"{announced}`torch.cond`: no such branch\n") == ["`torch.cond`: no such branch"]
    assert messages(f"torch._dynamo.exc.Unsupported: HOP: a side effect\n  Higher Order Operator: checkpoint\n{HINT}") == [
        "HOP: a side effect: checkpoint: Higher order ops do not support aliasing."
    ]


def test_a_message_may_begin_below_the_name_of_its_exception() -> None:
    """Python prints a colon then, behind which nothing stands; below a name without one stands nothing of the exception's."""
    module = "/venv/torch/_functorch/_aot_autograd/runtime_wrappers.py"
    stack = f'Traceback (most recent call last):\n  File "{module}", line 9, in process_runtime_tangent\n    raise e\n'
    guessed = "During the backward, we encountered a tensor subclass where we guessed its\nmetadata incorrectly.\n"
    made = '\nThe forward output was created here:\n  File "/srv/bot/m.py", line 8, in forward\n    return x * 2\n'
    (event,) = events(f"{stack}RuntimeError: \n{guessed}Expected a TwoTensor tangent but got a Tensor.\n{made}")
    assert event["message"] == "During the backward, we encountered a tensor subclass where we guessed its metadata incorrectly."
    assert (event["function"], event["line_no"]) == ("forward", 8)
    assert messages(f"{stack}RuntimeError\nprices of 40 symbols\n") == [None]
    diverged = "SpeculationLog diverged at index 3 (log had 5 entries):"
    assert messages(f"torch._dynamo.symbolic_convert.SpeculationLogDivergence: \n{diverged}\n- Expected: m.py:9\n") == [diverged]


OBSERVED = "torch._dynamo.exc.ObservedKeyError: ConstantVariable(str: 'gain')\n"
UNHANDLED = (
    "torch._dynamo.exc.Unsupported: Observed exception\n"
    "  Explanation: Dynamo found no handler.\n  Developer debug context: raised exception KeyError('gain')\n"
)
CONSTRAINT = "Constraints violated (b)! For more information, see below.\n"


def test_what_the_traced_code_raises_is_one_failure_with_that_exception() -> None:
    """Dynamo raises a copy of it first, then says that nothing handles it, and in its debug context what it was."""
    assert [(event["exception"], event["message"]) for event in events(OBSERVED + BETWEEN + UNHANDLED)] == [
        ("Unsupported", "Observed exception: KeyError('gain')")
    ]
    assert [event["exception"] for event in events(OBSERVED)] == ["ObservedKeyError"]


def test_an_exception_that_torch_raises_again_as_another_one_is_one_failure() -> None:
    """With the same words; the same exception once more is another call, and other words are another failure."""
    violated = f"torch.fx.experimental.symbolic_shapes.ConstraintViolationError: {CONSTRAINT}"
    again = f"torch._dynamo.exc.UserError: {CONSTRAINT}"
    shape = "torch._subclasses.fake_tensor.DynamicOutputShapeException: aten.nonzero.default\n"
    failed = "RuntimeError: Failed running call_function <built-in function getitem>(*(FakeTensor(...),), **{}):\naten.nonzero.default\n"
    broke = "torch._dynamo.exc.Unsupported: dynamic shape operator: aten.nonzero.default\n"
    for text, names in (
        ([violated, again], ["UserError"]),
        ([violated, again, violated, again], ["UserError", "UserError"]),
        ([violated, violated], ["ConstraintViolationError"] * 2),
        ([violated, UNHANDLED], ["ConstraintViolationError", "Unsupported"]),
        ([shape, failed, broke], ["Unsupported"]),
        ([CAUSE, failed.replace("aten.nonzero.default\n", UNKNOWN), ERROR, CAUSE, ERROR], ["UserError", "UserError"]),
    ):
        assert [event["exception"] for event in events(BETWEEN.join(text))] == names
