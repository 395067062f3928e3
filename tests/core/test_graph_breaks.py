"""Tests of what a report says of graph breaks: each happening once, how bad many of them are, and what to do."""

from __future__ import annotations

import pytest

from recompile_watch.config import load_catalog
from recompile_watch.core.analysis import Analysis, Facts
from recompile_watch.core.findings import MANY_CUTS, Finding
from tests.conftest import engine_events, rules

CATALOG = load_catalog()
TRACED = "Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):"
SKIPPED = "Failed to handle graph break gracefully. Skipping the function and falling back to eager. Graph break encountered:"
CUT_BEFORE = (
    "Encountered graph break that we cannot resume from. Compiling up to the previous resumable state, then skipping the rest of the function."
    " Graph break encountered:"
)
PRINT = "Failed to trace builtin operator\n  Explanation: Dynamo does not know how to trace builtin operator `print` with argument types ['str']"
REFUSED = "Backend compiler exception\n  Explanation: Backend compiler `aot_eager` failed with aten.nonzero.default. Adding a graph break."
LIBRARY = "/venv/lib/python3.11/site-packages/transformers/models/wav2vec2/modeling_wav2vec2.py"


def record(text: str, frame: str, *, level: str = "V", artifact: str = "[__graph_breaks] ", pid: int = 7) -> str:
    """One record of torch's log, each line with its prefix."""
    prefix = f"{level}1123 03:20:55.170000 {pid} torch/_dynamo/symbolic_convert.py:5124] [{frame}] {artifact}"
    return "".join(f"{prefix}{line}\n" for line in text.split("\n"))


def broken(line_no: int, frame: str, what: str = PRINT, *, how: str = TRACED, file: str = "/srv/m.py", stack: str = "", pid: int = 7) -> str:
    """A graph break as torch 2.13 tells of it. stack: the frames in front of the one that broke."""
    at = f'User code traceback:\n{stack}  File "{file}", line {line_no}, in forward\n    call()\n'
    return record(f"Graph break in user code at {file}:{line_no}\nGraph Break Reason: {how}\n\n{what}\n\n{at}", frame, pid=pid)


def findings(log: str, torch: str | None = None) -> list[Finding]:
    """What a report says of a log. torch: the version that the user names."""
    analysis = Analysis(rules())
    for event in engine_events([log.encode()], "bot.log"):
        analysis.add(event)
    return list(analysis.report(Facts(torch_version=torch), CATALOG).findings)


def only(log: str) -> Finding:
    """The one finding of a log."""
    (finding,) = findings(log)
    return finding


def test_a_graph_that_the_backend_refused_is_one_break() -> None:
    """torch warns of it, then tells of the break, with the place: once, and what the backend failed on is the reason."""
    warned = record(f"{REFUSED}\n  Hint: Report an issue.\n\n  Developer debug context: Backend: aot_eager", "14/0", level="W", artifact="")
    finding = only(warned + broken(1247, "14/0", REFUSED))
    assert (finding.count, finding.line_no, finding.title.partition(": ")[2]) == (1, 1247, "Backend compiler exception: aten.nonzero.default")
    assert finding.advice[0].name == "capture_dynamic_output_shape_ops"
    assert [one.count for one in findings(warned + broken(9, "14/0"))] == [1, 1]  # another break
    assert [one.count for one in findings(warned + broken(9, "15/0", REFUSED))] == [1, 1]  # another graph
    assert only(warned).title.endswith(": aten.nonzero.default")


@pytest.mark.parametrize("how", [SKIPPED, CUT_BEFORE])
def test_what_torch_cannot_resume_is_told_of_its_own_place(how: str) -> None:
    """One place of two, one happening of two at the same place, all of them."""
    twice = only(broken(141, "10/0") + broken(179, "13/0", how=how))
    assert (twice.severity, twice.consequence[:33]) == ("warning", "On line 179 torch cannot resume b")
    assert only(broken(141, "10/0") + broken(141, "13/0", how=how)).consequence.startswith("At times torch cannot resume behind this graph break")
    for log in (broken(141, "10/0", how=how), broken(141, "10/0") + broken(141, "10/0_1", how=how)):
        assert only(log).consequence.startswith("torch cannot resume behind this graph break")
    assert only(broken(141, "10/0") + broken(179, "13/0")).severity == "info"


def test_many_breaks_of_a_process_are_a_warning() -> None:
    """Each of them would be a note; of two processes each has its own."""
    lines = range(MANY_CUTS)
    many = findings("".join(broken(10 + line, f"{line}/0", file=f"/srv/m{line % 3}.py") for line in lines))
    assert [one.severity for one in many] == ["warning"] * 3
    assert all(one.consequence.endswith(f"one of {MANY_CUTS} graph breaks in this process, at {MANY_CUTS} places.") for one in many)
    assert {one.severity for one in findings("".join(broken(10 + line, f"{line}/0") for line in lines[1:]))} == {"info"}
    of_two = "".join(broken(10 + line, f"{line}/0", pid=line % 2) for line in lines)
    assert {one.severity for one in findings(of_two)} == {"info"}


def test_one_break_of_many_frames_counts_as_often() -> None:
    """What torch says twice of one happening counts once."""
    again = "".join(broken(10, f"{frame}/0") + broken(10, f"{frame}/0_1", how=SKIPPED) for frame in range(MANY_CUTS - 1))
    assert "graph breaks in this process" not in only(again).consequence
    assert only(again + broken(10, "9/0")).consequence.endswith(f"It is one of {MANY_CUTS} graph breaks in this process.")


def test_breaks_that_are_meant_do_not_count_as_many() -> None:
    """Those of torch's wrappers for distributed training, and the step of an optimizer."""
    wrapper = "/venv/lib/python3.11/site-packages/torch/nn/parallel/distributed.py"
    log = "".join(broken(10 + line, f"{line}/0", file=wrapper if line else "/srv/m.py") for line in range(MANY_CUTS))
    assert {one.severity for one in findings(log)} == {"info"}
    step = "Attempted to inline function marked as skipped\n  Explanation: Dynamo developers have marked that the function `Adam.step` should not"
    log = "".join(broken(10 + line, f"{line}/0") for line in range(MANY_CUTS)) + broken(40, "9/0", step)
    assert {one.advice[0].name: one.severity for one in findings(log)}["accept_graph_break"] == "info"


def call(line_no: int, function: str, code: str) -> str:
    """A frame of the program's own, and that of the module's call behind it."""
    return f'  File "/srv/m.py", line {line_no}, in {function}\n    {code}\n'


def skipped_call(name: str) -> str:
    """What Dynamo says of a function that it does not look into."""
    return f"Attempted to inline function marked as skipped\n  Explanation: Dynamo developers have marked that the function `{name}` should not"


def advised(log: str) -> list[str]:
    """The remedies for the one finding of a log."""
    return [one.name for one in only(log).advice]


def test_nobody_edits_a_package() -> None:
    """Where the log shows the program's own line, that call is left out; where the package's own model is compiled, a part of it is."""
    what = "setattr() on Tensor.requires_grad\n  Explanation: setattr() on Tensor.requires_grad not supported."
    own = call(21, "forward", "return self.net(x)")
    found = only(broken(418, "2/0", what, file=LIBRARY, stack=own)).advice
    assert [one.name for one in found] == ["leave_package_out", "compile_inner_part", "remove_graph_break"]
    assert found[0].apply.startswith(
        "# at /srv/m.py:21 in forward: torch.compiler.disable(f)(...) around the call into the package, and around every"
    )
    module = '  File "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1778, in _wrapped_call_impl\n    return\n'
    whole = only(broken(418, "2/0", what, file=LIBRARY, stack=call(22, "<module>", "compiled(x)") + module * 4)).advice
    assert [one.name for one in whole] == ["compile_inner_part", "leave_package_out", "remove_graph_break"]
    assert whole[0].where == "where the object that /srv/m.py:22 calls is compiled"
    assert advised(broken(418, "2/0", what)) == ["exclude_from_compile", "remove_graph_break"]


@pytest.mark.parametrize(
    ("what", "own", "whole"),
    [
        ("Unsupported Tensor.item() call with capture_scalar_outputs=False", "leave_package_out", "capture_scalar_outputs"),
        ("Data-dependent branching", "leave_package_out", "leave_package_out"),
        ("Dynamic shape operator: aten.nonzero.default", "capture_dynamic_output_shape_ops", "capture_dynamic_output_shape_ops"),
        ("Call to `torch._dynamo.graph_break()`", "leave_package_out", "leave_package_out"),
        (PRINT, "reorder_logging", "reorder_logging"),
    ],
)
def test_what_helps_without_an_edit_comes_first_in_a_package(what: str, own: str, whole: str) -> None:
    """A setting that is known to work, else the call left out; a setting that may raise comes behind it."""
    assert advised(broken(9, "0/0", what, file=LIBRARY, stack=call(21, "forward", "self.net(x)")))[0] == own
    assert advised(broken(9, "0/0", what, file=LIBRARY))[0] == whole


def test_a_training_step_is_compiled_without_its_end() -> None:
    """With a scaler, trace_autograd_ops raises, and none of them is an operator; torch's own break inside of a step has no other remedy."""
    backward = "Unsupported Tensor.backward() call\n  Explanation: Dynamo does not\n  Hint: Set torch._dynamo.config.trace_autograd_ops=True"
    assert advised(broken(16, "0/0", backward))[0] == "set_hinted_config"
    of_scaler = broken(17, "1/0", skipped_call("GradScaler.step"))
    for log in (broken(16, "0/0", backward) + of_scaler, of_scaler, broken(19, "2/0", skipped_call("Optimizer.zero_grad"))):
        assert [one.advice[0].name for one in findings(log)] == ["compile_forward_only"] * len(findings(log))
        assert all(one.name not in ("custom_op", "set_hinted_config") for finding in findings(log) for one in finding.advice)
    own = "Call to `torch._dynamo.graph_break()`"
    assert advised(broken(17, "1/0", own).replace("call()", "scaler.step(opt)")) == ["accept_graph_break", "compile_forward_only"]
    assert advised(broken(17, "1/0", own)) == ["remove_graph_break"]


def test_a_sparse_tensor_is_not_passed_in() -> None:
    """torch skips each function that has one among its inputs."""
    made = "Attempted to call function marked as skipped\n  Explanation: Dynamo does not know how to trace the builtin `torch._C.sparse_coo_tensor.`"
    for what in ("Attempted to wrap sparse Tensor\n  Explanation: torch.compile does not support sparse Tensors", made):
        (advice,) = only(broken(22, "0/0", what)).advice
        assert advice.name == "dense_for_sparse" and "passed in is no cure" in (advice.caution or "")


@pytest.mark.parametrize(
    ("what", "is_operator"),
    [
        (skipped_call("tqdm.__iter__"), False),
        (skipped_call("Tokenizer.encode"), False),
        (skipped_call("zlib.crc32"), True),
        (
            "attempted to trace numpy function unsupported by PyTorch\n  Explanation: Can't find numpy numpy function <class 'numpy.datetime64'> in",
            False,
        ),
        (
            "attempted to trace numpy function unsupported by PyTorch\n  Explanation: Can't find numpy numpy function <function hanning at 0x7f> in",
            True,
        ),
        ("failed to convert numpy.ndarray to Tensor", False),
        (skipped_call("save"), False),
    ],
)
def test_an_operator_is_no_method_of_an_object(what: str, *, is_operator: bool) -> None:
    """An operator of torch takes and returns tensors; what is computed in front of the call comes in as one."""
    advice = only(broken(21, "0/0", what)).advice
    assert advice[0].name == "exclude_from_compile" and "passed in as a tensor" in advice[0].apply
    assert ("custom_op" in [one.name for one in advice]) is is_operator


def test_a_hint_that_is_a_setting_is_told_once() -> None:
    """As the line to set; torch's own words for it may name one that does not exist."""
    hint = "Something unsupported\n  Explanation: it is\n  Hint: Set `torch._dynamo.config.capture_scalar_outputs = True`"
    assert "follow_hint" not in advised(broken(9, "0/0", hint)) and advised(broken(9, "0/0", hint))[0] == "set_hinted_config"


NOW = "Unsupported method call\n  Explanation: Dynamo does not know how to trace method `now` of class `type`"


@pytest.mark.parametrize("what", [NOW, "Unsupported ndarray method call", "Unsupported Tensor.requires_grad_() call"])
def test_a_method_that_cannot_be_traced_is_called_outside(what: str) -> None:
    """A clock's, a file's, an array's; a tensor may need gradients before the call."""
    assert advised(broken(9, "0/0", what)) == ["exclude_from_compile", "remove_graph_break"]


def test_what_pythons_library_meets_inside_is_left_to_its_call() -> None:
    """An exception that uuid handles by itself is no fault of the program's."""
    stack = call(11, "forward", "self.tag = uuid.uuid4().hex")
    log = broken(336, "1/0", "Observed exception", file="/usr/lib/python3.11/uuid.py", stack=stack)
    assert advised(log) == ["exclude_from_compile", "remove_graph_break"]
    assert advised(broken(9, "1/0", "Observed exception"))[0] == "check_in_eager"


@pytest.mark.parametrize(
    ("code", "first"),
    [
        ("n = out.detach().norm().item()", "read_number_outside"),
        ("self.seen.append(x.detach().cpu().tolist())", "read_number_outside"),
        ("self.running += loss.item()", "read_number_outside"),
        ('self.meters["loss"] -= float(loss)', "read_number_outside"),
        ("losses.append(loss.item())", "read_number_outside"),
        ('logs["loss"] = loss.item()', "read_number_outside"),
        ('log.info("loss %.3f", loss.item())', "read_number_outside"),
        ('self.log("loss", loss.item())', "read_number_outside"),
        ('writer.add_scalar("loss", loss.item(), step)', "read_number_outside"),
        ('logging.getLogger("m").info("v %s", x.sum().item())', "read_number_outside"),
        ("self.meter.update(loss.item(), x.shape[0])", "read_number_outside"),
        ("scale = x.abs().max().item()", "capture_scalar_outputs"),
        ("y = x * torch.log(x).max().item()", "capture_scalar_outputs"),
        ("sizes[0] = lengths.max().item()", "capture_scalar_outputs"),
        ("if x.detach().max().item() > 3:", "branch_as_tensor"),
    ],
)
def test_a_number_that_is_read_for_people(code: str, first: str) -> None:
    """For a log, a list or a sum that is kept (measured: a hook's 11 breaks became none, 17 with the setting; a running loss kept its limit hit)."""
    what = "Unsupported Tensor.item() call with capture_scalar_outputs=False\n  Explanation: Dynamo does not support tracing `Tensor.item()` so."
    (finding, *_) = findings(broken(8, "0/0", what).replace("    call()", f"    {code}"))
    assert finding.advice[0].name == first


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("gen = torch.Generator().manual_seed(seed)", "An opaque object was created in the middle of the program."),
        ("keep = torch.rand(x.shape, generator=gen) > 0.1", "Failed to convert args/kwargs to proxy"),
    ],
)
def test_random_numbers_are_drawn_outside(code: str, what: str) -> None:
    """Measured: 7 breaks of one generator became none; in its lines alone, or seeded inside, some stay."""
    (finding, *_) = findings(broken(8, "0/0", what).replace("    call()", f"    {code}"))
    assert finding.advice[0].name == "draw_outside"
    (finding, *_) = findings(broken(8, "0/0", "Failed to convert args/kwargs to proxy"))
    assert "draw_outside" not in [one.name for one in finding.advice]


def test_a_call_that_does_not_take_its_arguments() -> None:
    """An error of the program's own, which torch breaks the graph at: first the same call without torch.compile."""
    wrong = (
        "TypeError when making fake tensor call\n  Explanation: \n\n  Developer debug context: TypeError <built-in method sin of type object at"
        " 0x7f24e6ecea40>: sin() takes 1 positional argument but 2 were given"
    )
    finding = only(broken(6, "0/0", wrong))
    assert [one.name for one in finding.advice] == ["check_in_eager", "remove_graph_break"]
    assert finding.advice[0].apply.endswith(": sin() takes 1 positional argument but 2 were given")
    failed = only(f'torch._dynamo.exc.Unsupported: {wrong}\n\nfrom user code:\n   File "/srv/m.py", line 6, in g\n    return torch.sin(x, x)\n')
    assert failed.advice[0].name == "check_in_eager"


@pytest.mark.parametrize("asked", ["", ". To avoid graph breaks caused by logger in compile-mode, it is recommended to disable logging"])
def test_torch_moves_no_logger_behind_the_graph(asked: str) -> None:
    """Measured on torch 2.13.0, and so in the source of 2.6: reorderable_logging_functions is not asked for a logger's method."""
    said = f"Logger not supported for non-export cases{asked}"
    for log in (broken(6, "0/0", said), f"torch._dynamo.exc.Unsupported: {said}\n"):
        remedies = [one.name for one in only(log).advice]
        assert "ignore_logging" in remedies and "reorder_logging" not in remedies


def test_gradients_inside_of_what_is_compiled_are_those_of_a_function() -> None:
    """Measured: forces of an energy, and the inner loop of a MAML, became one graph; the setting that torch names left both breaks."""
    hint = "Change `torch._dynamo.config.trace_autograd_ops` to `True`"
    grad = f"using `torch.autograd.grad` with `torch._dynamo.config.trace_autograd_ops=False`\n  Explanation: it is\n  Hint: {hint}."
    assert advised(broken(9, "0/0", grad))[:2] == ["set_hinted_config", "functional_grad"]
    raised = "torch._dynamo.exc.Unsupported: Unsupported Tensor.requires_grad_() call\n  Explanation: Dynamo does not support it.\n"
    failed = only(f'{raised}\nfrom user code:\n   File "/srv/m.py", line 6, in g\n    pos.requires_grad_(True)\n')
    assert failed.advice[0].name == "functional_grad"


def test_a_text_is_put_together_outside() -> None:
    """Of numbers of the graph: cut in two it raises in a later call (measured)."""
    assert advised(broken(9, "0/0", "BUILD_STRING type error"))[0] == "format_outside"


def test_the_breaks_of_one_function_are_told_with_their_lines() -> None:
    assert only(broken(9, "0/0") + broken(12, "1/0")).title.startswith("Graph break in forward (lines 9, 12): ")
    assert only(broken(9, "0/0") + broken(9, "1/0")).title.startswith("Graph break in forward: ")


@pytest.mark.parametrize(
    ("code", "inside", "first"),
    [
        ("pick = Categorical(logits=h, validate_args=True)", "distributions/distribution.py", "no_argument_checks"),
        ("total = clip_grad_norm_(self.params, 1.0, error_if_nonfinite=True)", "nn/utils/clip_grad.py", "no_norm_check"),
        ("total = clip_grad_norm_(self.params, 1.0)", "nn/utils/clip_grad.py", "branch_as_tensor"),
    ],
)
def test_a_check_of_torch_s_own_code_is_switched_off_by_a_keyword(code: str, inside: str, first: str) -> None:
    """Nobody rewrites the line that breaks."""
    at = f"/venv/lib/python3.11/site-packages/torch/{inside}"
    what = "Data-dependent branching\n  Explanation: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`)."
    stack = f'  File "/srv/m.py", line 28, in forward\n    {code}\n  File "{at}", line 109, in check\n    if bad.any():\n'
    log = record(f"Graph break in user code at {at}:109\nGraph Break Reason: {TRACED}\n\n{what}\n\nUser code traceback:\n{stack}\n", "0/0")
    found = only(log)
    assert (found.file, found.line_no, found.advice[0].name) == ("/srv/m.py", 28, first)


def test_a_number_in_a_custom_function_stays_a_tensor() -> None:
    """Of an autograd.Function: the setting that torch names keeps the break (measured), for it is traced apart."""
    what = "Data dependent operator\n  Explanation: Operator `aten._local_scalar_dense.default` has a non-Tensor output"
    log = broken(14, "0/0", what, stack=call(30, "forward", "q = RoundSTE.apply(x)"))
    assert advised(log) == ["keep_the_tensor", "exclude_from_compile", "remove_graph_break"]
    assert advised(broken(14, "0/0", what))[0] == "capture_scalar_outputs"


def test_what_a_lock_guards_goes_outside_with_it() -> None:
    """Measured: without the lock alone the counter in it filled the limit."""
    what = "Unsupported context manager\n  Explanation: Dynamo does not know how to enter a `lock` context manager."
    assert advised(broken(20, "0/0", what))[:2] == ["lock_outside", "exclude_from_compile"]
