"""Tests of `recompile_watch.core.guard_lines`: guards as lines of code that run as they are printed."""

from __future__ import annotations

import ast

import pytest

from recompile_watch.core.checks import check_line
from recompile_watch.core.guard_lines import (
    buckets_for,
    clone_lines,
    config_module,
    constraint_line,
    dtype_named,
    grad_line,
    logger_methods,
    lr_line,
    missing_module,
    operator_named,
    option_line,
    source_text,
    state_line,
    structure_line,
)  # fmt: skip


@pytest.mark.parametrize(
    ("guard", "line"),
    [
        ("tensor 'x' dtype mismatch. expected Half, actual Float", "torch.float16"),
        ("tensor 'L['x']' dtype mismatch. expected BFloat16, actual Float", "torch.bfloat16"),
        ("tensor 'ids' dtype mismatch. expected Long, actual Int", "torch.int64"),
        ("tensor 'x' dtype mismatch. expected Float4_e2m1fn_x2, actual Float", "dtype"),
    ],
)
def test_the_dtype_is_the_one_of_the_log(guard: str, line: str) -> None:
    """A model in half precision is not told to cast its inputs to float32."""
    assert dtype_named(guard) == line


_GROUPS = "for group in optimizer.param_groups: group['lr'] = torch.tensor(group['lr'])  # once, right behind the optimizer"


@pytest.mark.parametrize(
    ("guard", "line"),
    [
        ("self.param_groups[0]['lr'] == 0.00033", _GROUPS),
        ("L['self'].param_groups[0]['lr'] == 9e-05", _GROUPS),
        ("group['lr'] == 0.1", _GROUPS),
        ("lr == 0.1", "lr = torch.tensor(lr)  # 0-dimensional, made outside the compiled function"),
        ("L['lr'] == 0.1", "lr = torch.tensor(lr)  # 0-dimensional, made outside the compiled function"),
    ],
)
def test_a_learning_rate_is_made_a_tensor_where_it_is(guard: str, line: str) -> None:
    """The guard shows what a scheduler has made of the rate: put into the optimizer's constructor, it would be scaled twice."""
    assert lr_line(guard) == line
    ast.parse(line)


@pytest.mark.parametrize(
    ("guard", "line"),
    [
        ('Duplicate tensors found: ["k", "q", "v"]', "q = q.clone(); v = v.clone()"),
        ("Duplicate tensors found: [\"L['x']\", \"L['y']\"]", "y = y.clone()"),
        ('Duplicate tensors found: ["x", "y; print(1)"]', None),  # no name, and no code of a log's either
        ("L['y']should not alias to anything, but is aliased", None),
    ],
)
def test_of_one_tensor_passed_several_times_all_but_one_are_cloned(guard: str, line: str | None) -> None:
    """With one of three cloned the other two are still the same."""
    assert clone_lines(guard) == line


def test_a_parameter_is_not_detached_in_its_place() -> None:
    """A module refuses a plain tensor where it has a parameter. What cuts a gradient is no line to paste without its condition."""
    assert grad_line("emb", is_parameter=False).startswith("# only where no gradient is wanted: emb = emb.detach();")
    assert grad_line("self.backbone.bias", is_parameter=True).startswith("self.backbone.bias.requires_grad_(")


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("Constraints violated (L['x'].size()[0])! For more information", "torch._dynamo.maybe_mark_dynamic(x, 0)"),
        (
            "Constraints violated (L['x'].size()[1], L['mask'].size()[2])! For more information, L['z'].size()[0]",
            "torch._dynamo.maybe_mark_dynamic(x, 1); torch._dynamo.maybe_mark_dynamic(mask, 2)",
        ),
        ("Not all values of RelaxedUnspecConstraint(L['x'].size()[3]) are valid", "torch._dynamo.maybe_mark_dynamic(x, 3)"),
        ("inferred to be a constant", "torch._dynamo.maybe_mark_dynamic(x, dim)"),
    ],
)
def test_the_size_that_the_code_fixes_is_named(message: str, line: str) -> None:
    """What the message names is what is to be marked otherwise."""
    assert constraint_line(message) == line


@pytest.mark.parametrize(
    ("message", "start"),
    [
        ("Could not guard on data-dependent expression u0 < 3 (unhinted: u0 < 3)", "torch._check(n >= 3)  # or torch._check(n < 3)"),
        ("Could not guard on data-dependent expression u12 > 4 (unhinted: u12 > 4)", "torch._check(n <= 4)  # or torch._check(n > 4)"),
        ("Could not guard on data-dependent expression Eq(u0, 1) (unhinted: Eq(u0, 1))", "torch._check(n != 1)  # or torch._check(n == 1)"),
        ("Could not guard on data-dependent expression u0*u1 < 3", "torch._check(n > 0)  # the condition of the message"),
    ],
)
def test_the_relation_of_the_message_is_what_is_stated(message: str, start: str) -> None:
    """`not n < 3` would ask the same question again (measured): the opposite relation is written out."""
    assert check_line(message, None).startswith(start)


@pytest.mark.parametrize(
    ("code", "start"),
    [
        ("if x_mask.size(1) < h.size(1):", "torch._check(x_mask.size(1) >= h.size(1))  # or torch._check(x_mask.size(1) < h.size(1))"),
        ("x = tokens[:, :n]", "torch._check_is_size(n); torch._check(n < tokens.shape[1])"),
        ("while steps != limit:", "torch._check(steps == limit)"),
        ("if n < 12:", "torch._check(n >= 12)  # or torch._check(n < 12), whichever always holds; n is your variable behind u0"),
        ("if x.sum() > 0:", "torch._check(n >= 12)"),
        ("if a < b and c:", "torch._check(n >= 12)"),
        ("x = x[..., :n]", "torch._check(n >= 12)"),
    ],
)
def test_the_code_s_own_words_are_stated(code: str, start: str) -> None:
    """The message's number is a size of this call, and no promise for the next, unless the code itself has it (measured)."""
    assert check_line("Could not guard on data-dependent expression u0 < 12 (unhinted: u0 < 12)", code).startswith(start)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("Unrecognized mode=reduce_overhead, should be one of: default, lite, reduce-overhead, max-autotune", 'mode="reduce-overhead"'),
        ("Unrecognized mode=maxautotune, should be one of: default, reduce-overhead, max-autotune", 'mode="max-autotune"'),
        (
            "Unexpected optimization option max_autotune_gem, known options are ['debug', 'max_autotune_gemm', 'verbose']",
            'options={"max_autotune_gemm": True}',
        ),
        ("Unexpected optimization option max_autotune_gem, known options are ['debug', 'verb", 'options={"max_autotune_gemm": True}'),
        ("Unexpected optimization option dce_passes, known options are ['debug', 'dce_passe', 'verb", 'options={"dce_passe": ...}'),
        ("Unexpected optimization option spill_over, known options are ['debug', 'verb", 'options={"...": ...}'),
        ("Unexpected type of attr max_autotune, got int should be bool", 'options={"max_autotune": bool(...)}'),
        ("Unexpected type of attr max-fusion-size, got str should be NoneType", 'options={"max-fusion-size": ...}'),
    ],
)
def test_the_name_that_was_meant_is_named(message: str, line: str) -> None:
    """Only what is alike: the list of options may be cut."""
    assert option_line(message) == line


@pytest.mark.parametrize(
    ("message", "method"),
    [
        ("not supported: Logger.warning", "logging.Logger.warning"),
        ("a logger", "logging.Logger.debug, logging.Logger.info, logging.Logger.warning, logging.Logger.error"),
        ("Logger.isEnabledFor", "logging.Logger.isEnabledFor"),
    ],
)
def test_the_method_of_the_logger_is_named(message: str, method: str) -> None:
    """torch leaves out what is named, and no other method; all where none is named."""
    assert logger_methods(message) == method


@pytest.mark.parametrize(
    ("guard", "start"),
    [
        ("tensor 'batch['x']' rank mismatch. expected 1, actual 2", "batch['x'] = batch['x'].reshape(-1, *batch['x'].shape[-1:]).clone()"),
        ("expected type of 'L['x']' to be a tensor type, ' but found <class 'torch.nn.parameter.Parameter'>", "x = x.detach()"),
        ("expected type of 'x' to be a tensor type, ' but found <class 'int'>", "# x: pass a Tensor"),
        ("expected type of 'x' to be <class 'torch.Tensor'>, but found <class 'torch.nn.parameter.Parameter'>", "x = x.detach()"),
        ("expected type of 'x' to be <class 'torch.nn.parameter.Parameter'>, but found <class 'torch.Tensor'>", "# x: pass a Tensor"),
        ("expected type of 'x' to be <class 'torch.Tensor'>, but found <class 'int'>", "# x: pass a Tensor in every call"),
        ("___check_type_id(L['cfg'], 94329845908704)", "# cfg: pass objects of one type"),
        ("___check_obj_id(fn, 139942232097072), type=<class 'function'>", "# fn: make the object once"),
        ("attention_mask is None", "# attention_mask: pass it in every call"),
        ("L['cache'] == None", "# cache: pass it in every call"),
        ("len(kwargs['images']) == 2", "# kwargs['images']: one stacked tensor with a mask"),
        ("not history", "# history: one stacked tensor with a mask"),
        ("not self._forward_hooks", "# self._forward_hooks: register hooks before"),
        ("Cache line invalidated because L['self'] got deallocated", "# self: keep the compiled object"),
        ("mask_mod.__closure__[0].cell_contents == 'causal'", "# mask_mod: define this function once"),
        ("something else", "# something else: build this once"),
    ],
)
def test_what_to_change_about_an_object(guard: str, start: str) -> None:
    """Each form of guard has its own line, and each line can be pasted."""
    line = structure_line(guard)
    assert line.startswith(start)
    ast.parse(line)


@pytest.mark.parametrize(
    ("guard", "start"),
    [
        ("GLOBAL_STATE changed: deterministic_algorithms", "torch.use_deterministic_algorithms(True)"),
        ("GLOBAL_STATE changed: cuda_matmul_precision", "torch.set_float32_matmul_precision("),
        ("GLOBAL_STATE changed: default_dtype", "torch.set_default_dtype("),
        (
            "GLOBAL_STATE changed: deterministic_algorithms deterministic_algorithms_warn_only allow_tf32 ",
            "torch.use_deterministic_algorithms(True, warn_only=True); torch.backends.cuda.matmul.allow_tf32 = True  # once",
        ),
        ("GLOBAL_STATE changed: num_threads default_dtype", "torch.set_num_threads(N); torch.set_default_dtype(torch.float32)  # once"),
        ("___check_torch_function_mode_stack()", "# torch.device(...)"),
        ("utils_device.CURRENT_DEVICE == None", "torch.set_default_device("),
        ("___check_global_state()", "# grad mode, autocast"),
        ("GLOBAL_STATE changed: autocast(cpu)_enabled", "# GLOBAL_STATE changed: autocast(cpu)_enabled: the same"),
        ("tensor 'x' dispatch key set mismatch. expected A, actual B", "# torch.autocast(...)"),
    ],
)
def test_what_sets_a_global_state(guard: str, start: str) -> None:
    """Only autocast is told to go into the compiled function."""
    assert state_line(guard).startswith(start)
    ast.parse(state_line(guard))


def test_buckets_hold_every_size() -> None:
    """A size above the last bucket would stop the program: next() raises."""
    assert buckets_for([]) == "(8, 16, 32, 64, 128)"
    assert buckets_for(["tensor 'x' size mismatch at index 1. expected 128, actual 1500"]) == "(128, 256, 512, 1024, 2048)"
    assert buckets_for(["tensor 'x' size mismatch at index 0. expected 2048, actual 77"]) == "(128, 256, 512, 1024, 2048)"


def test_the_operator_of_a_message() -> None:
    """As torch.library names it; torch's own operators have their shapes."""
    assert operator_named("Operator does not support running with fake tensors: acme.fuse.default") == "acme::fuse"
    assert operator_named("UnsupportedOperatorException: _C.rms_norm.out") == "mylib::name"
    assert operator_named("aten.equal.default") == "mylib::name"
    no_fake = "There was no fake impl registered for <CustomOpDef(acme::fuse)>. This is necessary for torch.compile"
    no_meta = "Could not run '{}' with arguments from the 'Meta' backend."
    wrong = "expected size 4==4, stride 1==5 at dim=0 Error in op: torch.ops.acme.fuse.default"
    assert {operator_named(text) for text in (no_fake, no_meta.format("acme::fuse"), no_meta.format("acme::fuse.out"), wrong)} == {"acme::fuse"}
    assert operator_named(no_meta.format("aten::nonzero")) == "mylib::name"


def test_the_package_that_is_missing() -> None:
    """It is what has to be installed; nothing that a shell would read further goes into the line."""
    assert missing_module("ModuleNotFoundError: No module named 'PIL.Image'") == "PIL"
    assert missing_module("ModuleNotFoundError: No module named 'a; rm -rf /'") == "a"
    assert missing_module("ModuleNotFoundError: No module named '$(x)'") is None
    assert config_module("module 'torch._inductor' has no attribute 'config'") == "torch._inductor.config"
    assert config_module("module 'torch._inductor' has no attribute 'other'") is None


@pytest.mark.parametrize(
    ("guard", "source"),
    [
        ("(1.0 + ((-1)*self.blocks[0].drop_prob)) == 0.96", "self.blocks[0].drop_prob"),
        ("(2*L['config']['scale']) == 1.5e-05", "L['config']['scale']"),
        ("(scale*shift) == 0.5", "(scale*shift)"),
        ("(2*L['x'].size()[0]) == 8", "(2*L['x'].size()[0])"),
    ],
)
def test_the_one_source_of_what_is_computed(guard: str, source: str) -> None:
    """Of several nobody can say which one changed; a size is no attribute."""
    assert source_text(guard) == source
