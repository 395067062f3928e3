"""Advice on what services and training jobs print: flags, texts, enums, stop tests and low limits; a limit and its exception say one thing."""

from __future__ import annotations

import pytest

from recompile_watch.core.findings import Finding
from tests.core.test_advice_by_version import NEW, recompiles
from tests.core.test_graph_breaks import findings, record

TENSOR_ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"
SKIPPED = "Attempted to call function marked as skipped\n  Explanation: Dynamo does not know how to trace the builtin `fastop.PyCapsule.swiglu.`"
BROKEN_2_0 = (
    "[2023-05-01 02:02:19,682] torch._dynamo.symbolic_convert: [WARNING] Graph break: Tensor.item from user code at"
    '   File "/srv/m.py", line 12, in f\n'
)


def limit_hit(reason: str, *, limit: int = 8, raised: str = "") -> str:
    """A limit hit of f as torch 2.13 prints it, and the exception that fullgraph=True makes of it."""
    prefix = f"W1123 19:13:35.418000 77 torch/_dynamo/convert_frame.py:1994] [0/{limit}] "
    lines = [f"torch._dynamo hit config.recompile_limit ({limit})", "   function: 'f' (/srv/m.py:9)", f"   last reason: 0/{limit - 1}: {reason}"]
    return "".join(f"{prefix}{line}\n" for line in lines) + raised


def keys(finding: Finding) -> list[str]:
    return [one.name for one in finding.advice]


def test_flags_of_several_layers_are_combinations() -> None:
    """Measured: each of eight flags doubles the variants, so that a limit of 16 or 32 is used up as well."""
    changed = [f"keep[{number}] == {number % 2 == 0}" for number in (3, 4, 1, 0, 6)]
    found = findings(recompiles(NEW, *changed))
    assert {keys(one)[0] for one in found} == {"flags_as_tensor"}
    assert not any("limit" in key for one in found for key in keys(one))
    assert keys(findings(recompiles(NEW, "keep[3] == True", "keep[4] == True"))[0])[0] != "flags_as_tensor"


@pytest.mark.parametrize("reason", ["GLOBAL_STATE changed: grad_mode ", "self.training == False"])
def test_a_limit_below_two_states_is_raised(reason: str) -> None:
    """Training and validation are two graphs in any program: a limit of one leaves nothing to mend but the limit."""
    assert keys(findings(limit_hit(reason, limit=1))[0])[0] == "raise_recompile_limit"
    assert "raise_recompile_limit" not in keys(findings(limit_hit("GLOBAL_STATE changed: grad_mode "))[0])


def test_a_text_that_only_goes_into_another_one_stays_outside() -> None:
    """A request's id has no tensor in it, whatever the tokenizer."""
    reason = "request_id == '{}'  # meta = {{'request': f'{{tenant}}/{{request_id}}'}}  # srv/m.py:12 in forward"
    found = findings(recompiles(NEW, *[reason.format(text) for text in ("cd61", "09ab", "77fe")]))
    assert keys(found[0])[0] == "text_outside"


def test_a_limit_and_the_exception_it_became_have_the_same_advice() -> None:
    """The members of an enum are made once and for all; the exception names the function as well."""
    reason = "___check_obj_id(op, 1398), type=<class '__main__.Op'>  # if op is Op.HFLIP:  # srv/m.py:12 in f"
    raised = (
        "torch._dynamo.exc.FailOnRecompileLimitHit: Hard failure due to fullgraph=True\n\nfrom user code:\n"
        '   File "/srv/m.py", line 9, in f\n    def f(image, op):\n'
    )
    found = findings(limit_hit(reason, raised=raised))
    assert {tuple(keys(one)) for one in found if one.kind.startswith("recompile_limit")} == {tuple(keys(found[0]))}
    assert keys(found[0])[0] == "recompile_limit_kwarg"


def test_a_decorator_goes_on_the_function_that_holds_the_guard() -> None:
    """Below the torch.compile of the function that is compiled it has no effect."""
    reason = "sched.i == {}  # d = self.sigmas[self.i + 1] - self.sigmas[self.i]; self.i += 1  # srv/s.py:17 in step"
    (finding,) = findings(recompiles(NEW, *[reason.format(number) for number in range(5)]))
    apply = next(one.apply for one in finding.advice if one.name == "exclude_from_compile")
    assert "on step, which holds srv/s.py:17" in apply


def test_points_keep_the_dimensions_that_every_call_has() -> None:
    """What the compiled function does with the last two dimensions it still does with: the fewest that a call had are kept."""
    ranks = [f"tensor 'pts' rank mismatch. expected {rank}, actual {rank + 1}" for rank in (2, 3, 4)]
    found = findings(recompiles(NEW, *ranks))
    assert "pts.reshape(-1, *pts.shape[-2:])" in found[0].advice[0].apply


@pytest.mark.parametrize(
    ("what", "code", "first"),
    [
        ("Data-dependent branching", "if finished.all():", "return_the_condition"),
        (TENSOR_ITEM, 'STATS[name] = v if mode == "tensor" else v.item()', "capture_scalar_outputs"),
        (TENSOR_ITEM, "if v.item() > 0:", "branch_as_tensor"),
        (SKIPPED, "y()", "custom_op"),
        ("Compilation of intermediate hooks requires compiled autograd", "h.register_hook(self.save)", "compile_around_hook"),
    ],
)  # fmt: skip
def test_the_line_of_a_break_chooses_its_remedy(what: str, code: str, first: str) -> None:
    """A stop test cannot become a tensor; an item that is read in one of two values is no branch on it."""
    stack = f'\nUser code traceback:\n  File "/srv/m.py", line 30, in forward\n    {code}'
    (finding,) = findings(record(f"Graph break in user code at /srv/m.py:30\nGraph Break Reason: {what}{stack}", "0/0"))
    assert keys(finding)[0] == first


def test_sizes_of_the_program_s_own_that_do_not_fit_need_no_newer_torch() -> None:
    """torch says which sizes an operation of its own got: what fails fails in eager mode as well."""
    (finding,) = findings("torch._dynamo.exc.TorchRuntimeError: RuntimeError('a and b must have same reduction dim, but got [4, 64] X [32, 5].')\n")
    assert keys(finding) == ["check_in_eager"]


def test_what_fullgraph_refuses_is_no_export() -> None:
    """The form of a remedy that is made for exports stands behind the other, whichever version is known."""
    for version in (None, "2.7.1", "2.13.0"):
        (finding,) = findings("torch._dynamo.exc.Unsupported: Data-dependent branching\n  Explanation: Detected data-dependent branching.\n", version)
        assert not any("export" in f"{one.title} {one.apply}" for one in finding.advice)


def test_torch_2_0_compiles_for_all_sizes_when_told() -> None:
    """Nothing is dynamic by itself there, nor can a tensor be marked; its check names strides where a size changed (measured on 2.0.1)."""
    log = (
        "[2023-05-01 02:01:53,865] torch._dynamo.convert_frame: [WARNING] torch._dynamo hit config.cache_size_limit (64)\n"
        "   function: 'forward' (/srv/m.py:7)\n   reasons:  tensor 'ids' strides mismatch at index 0. expected 113, actual 97\n"
        "to diagnose recompilation issues, see https://pytorch.org/docs/master/dynamo/troubleshooting.html.\n"
    )
    (finding,) = findings(log)
    assert keys(finding)[0] == "dynamic_true" and "mark_dynamic" not in keys(finding)
    (broken,) = findings(BROKEN_2_0)
    assert "capture_scalar_outputs" not in keys(broken)  # raises in 2.0 without dynamic shapes


def test_layers_of_several_widths_behind_each_other() -> None:
    """Measured: the first layer alone gets an input without gradient; a mark raises, no setting makes one graph, the parent compiled once does."""
    sizes = [8, 12, 16, 24, 32]
    reasons = []
    for number, size in enumerate(sizes[1:], 1):
        before = [f"0/{entry}: tensor 'x' size mismatch at index 1. expected {sizes[entry]}, actual {size}" for entry in range(number - 1, 0, -1)]
        reasons.append("\n".join([*before, "0/0: tensor 'x' requires_grad mismatch. expected requires_grad=0"]))
    found = findings(recompiles(NEW, *reasons, function="forward"))
    sized = next(one for one in found if one.cause == "size_mismatch")
    assert keys(sized)[:2] == ["isolate_recompiles", "compile_whole_model"] and "mark_dynamic" not in keys(sized)


def test_a_limit_in_a_step_of_training_is_that_of_its_pieces() -> None:
    """What is cut at backward() and at the optimizer is compiled as the function that computes the loss, and nothing else of it."""
    stack = '\nUser code traceback:\n  File "/srv/m.py", line 11, in _step\n    opt.zero_grad()'
    said = "Attempted to inline function marked as skipped: Optimizer.zero_grad"
    cut = record(f"Graph break in user code at /srv/m.py:11\nGraph Break Reason: {said}{stack}", "0/0")
    hit = limit_hit("len(s.log) == 7  # s.log.append(loss.item())  # srv/m.py:12 in _step").replace("'f'", "'torch_dynamo_resume_in__step_at_12'")
    (finding,) = (one for one in findings(cut + hit) if one.kind == "recompile_limit_hit")
    assert keys(finding)[0] == "compile_forward_only"


def test_a_lock_under_fullgraph_is_taken_outside() -> None:
    """torch's own hint says to avoid it, and not how."""
    said = "torch._dynamo.exc.Unsupported: Unsupported context manager\n  Explanation: Dynamo does not know how to enter a `lock` context manager.\n"
    (finding,) = findings(f"{said}  Hint: Avoid using the unsupported context manager.\n")
    assert keys(finding)[0] == "lock_outside"
