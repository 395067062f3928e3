"""Tests of `recompile_watch.core.guard_lines`: guards as lines of code that run as they are printed."""

from __future__ import annotations

import ast

import pytest

from recompile_watch.core.guard_lines import buckets_for, dtype_named, is_of_a_library, operator_named, optimizer_line, state_line, structure_line


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


@pytest.mark.parametrize(
    ("file", "guard", "line"),
    [
        ("/v/torch/optim/sgd.py", "self.param_groups[0]['lr'] == 0.1", "optimizer = torch.optim.SGD(parameters, lr=torch.tensor(0.1))"),
        (
            r"C:\v\torch\optim\adamw.py", "L['self'].param_groups[0]['lr'] == 9e-05",
            "optimizer = torch.optim.AdamW(parameters, lr=torch.tensor(9e-05), capturable=True)",
        ),
        ("/srv/train.py", "lr == x", "optimizer = torch.optim.Adam(parameters, lr=torch.tensor(0.01), capturable=True)"),
    ],
)  # fmt: skip
def test_each_optimizer_takes_what_it_knows(file: str, guard: str, line: str) -> None:
    """SGD has no capturable: with it its constructor raises."""
    assert optimizer_line(file, guard) == line


@pytest.mark.parametrize(
    ("guard", "start"),
    [
        ("tensor 'batch['x']' rank mismatch. expected 1, actual 2", "batch['x'] = batch['x'].reshape(-1, batch['x'].shape[-1]).clone()"),
        ("expected type of 'L['x']' to be a tensor type, ' but found <class 'torch.nn.parameter.Parameter'>", "x = x.detach()"),
        ("expected type of 'x' to be a tensor type, ' but found <class 'int'>", "# x: pass a Tensor"),
        ("___check_type_id(L['cfg'], 94329845908704)", "# cfg: pass objects of one type"),
        ("___check_obj_id(fn, 139942232097072), type=<class 'function'>", "# fn: make the object once"),
        ("attention_mask is None", "# attention_mask: pass it in every call"),
        ("L['cache'] == None", "# cache: pass it in every call"),
        ("len(kwargs['images']) == 2", "# kwargs['images']: as many entries"),
        ("not history", "# history: as many entries"),
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
        ("GLOBAL_STATE changed: default_dtype", "torch.set_default_dtype("),
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


def test_nobody_edits_a_library() -> None:
    """Files of torch and of Python are no place to mend a program; those of the program and of other packages are."""
    assert is_of_a_library("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py")
    assert is_of_a_library("/usr/lib/python3.11/copy.py") and is_of_a_library(r"C:\Python311\Lib\json\encoder.py")
    assert not is_of_a_library("/opt/venv/lib/python3.11/site-packages/transformers/cache_utils.py")
    assert not is_of_a_library("/srv/bot/model.py") and not is_of_a_library(None)


def test_the_operator_of_a_message() -> None:
    """As torch.library names it; torch's own operators have their shapes."""
    assert operator_named("Operator does not support running with fake tensors: acme.fuse.default") == "acme::fuse"
    assert operator_named("UnsupportedOperatorException: _C.rms_norm.out") == "mylib::name"
    assert operator_named("aten.equal.default") == "mylib::name"
