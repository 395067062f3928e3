"""Advice about what a program hands to torch: functions for torch.cond and its like, operators of its own, transforms, tools that triton starts."""

from __future__ import annotations

import pytest

from tests.core.test_advice_by_version import NEW, recompiles
from tests.core.test_graph_breaks import findings


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ("UncapturedHigherOrderOpError: Encountered aliasing during higher order op tracing", "return_new_tensors"),
        ("Unsupported: Encountered input mutation during higher order op tracing", "return_new_tensors"),
        ("UncapturedHigherOrderOpError: Expected init and carry to have same metadata but found:", "carry_as_it_came"),
        ("Unsupported: Expected carried_inputs and body outputs return tensors with same metadata but found", "carry_as_it_came"),
        ("TorchRuntimeError: RuntimeError(\"The sorted order of strides of the two branches' output doesn't match.\")", "contiguous_branches"),
        ("Unsupported: Expected cond_fn to return a tensor with shape (,) but got torch.Size([4, 3])", "one_condition"),
        ("Unsupported: Observed exception: ValueError(\"For combine_mode='pointwise', all input tensors need to be on CUDA\")", "generic_scan"),
        ("UncapturedHigherOrderOpError: HOP: Unsafe side effect: torch.cond: Mutating a variable", "effect_outside_block"),
        ("Unsupported: torch.func.vmap(fn) requires the function to be inlined by dynamo", "compile_around_transform"),
        ("InternalTorchDynamoError: RuntimeError: You tried to vmap over ApplyTemplate, but it has none.", "allow_function_in_graph"),
        ("TorchRuntimeError: m::f() Expected a value of type 'int' for argument 'n' but instead found type 'FakeTensor'", "number_for_operator"),
        ("BackendCompilerFailed: RuntimeError: Found a custom (non-ATen) operator whose output has alias annotations: my::op", "functional_schema"),
        ("TorchRuntimeError: There was no fake impl registered for <CustomOpDef(vision::boxfilter)>.", "register_fake"),
    ],
)  # fmt: skip
def test_what_a_function_or_an_operator_may_not_do_is_told(said: str, first: str) -> None:
    """Each was run on torch, with the cure, which no newer version is."""
    remedies = [one.name for one in findings(f"torch._dynamo.exc.{said}\n")[0].advice]
    assert remedies[0] == first
    assert "upgrade_torch" not in remedies or first in ("generic_scan", "compile_around_transform")


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("RuntimeError: compiled_autograd.enable() requires no threads in backwards()", "compiled_autograd_off"),
        ("AttributeError: _hf_hook", "compile_in_place"),
        ("NameError: name '__subclass_Tensor_1329443025472_c28' is not defined", "exclude_from_compile"),
        ("RuntimeError: as_strided not supported with DTensor", "clone_view_output"),
        ("Exception: ROCm linker /opt/rocm/llvm/bin/ld.lld not found. Set 'TRITON_HIP_LLD_PATH' to its path.", "rocm_linker"),
        ("  what():  Error in dlopen: /tmp/example/model.so: undefined symbol: _ZN3c107WarningC1E", "package_with_this_torch"),
        ("Error: CUDA driver error: file not found", "package_instead_of_library"),
        ("  what():  create_func_( &container_handle_, num_models) API call failed at model_container_runner.cpp, line 49", "package_for_device"),
        ("torch._dynamo.exc.TorchRuntimeError: unhashable type: 'SymInt'", "no_size_as_key"),
        ("Generating: 0%| | 0/1 [00:00<?, ?it/s]/tmp/tmpv3_7rlw8/main.c:5:10: fatal error: Python.h: No such file", "install_compiler"),
        ("InductorError: 'KernelMetadata' object has no attribute 'cluster_dims'", "matching_triton"),
        ("RuntimeError: live storage data ptrs in the cudagraph pool but not accounted for as an output", "mode_without_cudagraphs"),
        ("ValueError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')", "dtype_of_this_gpu"),
    ],
)
def test_a_message_alone_is_a_failure_with_its_own_advice(line: str, first: str) -> None:
    """No stack stands around it: the words are the compiler's, or of what it starts."""
    assert findings(f"{line}\n")[0].advice[0].name == first


@pytest.mark.parametrize(
    "line", ["name 'compiled_fn' is not defined", "the _hf_hook of the module", "Error in dlopen: libfoo.so: cannot open shared object file"]
)
def test_what_only_looks_similar_is_no_failure(line: str) -> None:
    """The same words in a program's own lines."""
    assert findings(f"{line}\n") == []


def test_a_dtype_that_the_gpu_lacks_is_replaced_by_one_of_its_kind() -> None:
    """float16 does not stand in for a float8."""
    told = [
        findings(f"{said}\n")[0].advice[0].apply
        for said in (
            "ValueError: type fp8e4nv not supported in this architecture.",
            "torch._inductor.exc.InductorError: RuntimeError: BFloat16 is not supported here",
        )
    ]
    assert told[0].startswith("torch.float8_e5m2")
    assert told[1].startswith("model.to(torch.float16)")


def test_a_path_too_long_for_windows_is_told_in_its_words() -> None:
    """260 characters are the most that Windows opens; another folder for the cache helps only if it is a short one."""
    path = r"G:\\torch_cache\\triton\\0\\xI6ES74KFJHXKDYQ\\tmp.pid_16660_986e71d\\triton_poi_fused__scaled_dot_product_cudnn_attention_0.source"
    advice = findings(f"torch._inductor.exc.InductorError: FileNotFoundError: [Errno 2] No such file or directory: '{path}'\n")[0].advice
    assert [one.name for one in advice[:2]] == ["short_cache_path", "own_cache_folder"]
    assert all(one.apply.startswith(("$env:", "Remove-Item")) for one in advice)


def test_variables_are_set_as_the_shell_of_the_system_takes_them() -> None:
    """The same remedy, on Windows and elsewhere."""
    said = "PermissionError: [{}] Permission denied: '{}torchinductor_me{}triton'\n"
    unix, windows = (
        next(one for one in findings(said.format(*of))[0].advice if one.name == "disable_compile_process").apply
        for of in (("Errno 13", "/tmp/", "/"), ("WinError 5", "C:\\\\Temp\\\\", "\\\\"))
    )
    assert unix.startswith("export TORCH_COMPILE_DISABLE=1")
    assert windows.startswith('$env:TORCH_COMPILE_DISABLE = "1"')


ONNX = """
TorchExportError: Failed to export the model with torch.export. This is step 1/3 of exporting the model to ONNX. Next steps:
- Debug `torch.export.export` and submit a PR to PyTorch.

## Exception summary

<class 'torch._dynamo.exc.UserError'>: Constraints violated (batch)! For more information, run with TORCH_LOGS="+dynamic".
  - Not all values of batch = L['x'].size()[0] in the specified range satisfy the generated guard L['x'].size()[0] != 1.

The error above occurred when calling torch.export.export.
"""


def test_what_onnx_says_of_an_export_is_one_failure_of_it() -> None:
    """The exporter names the exception by its class, and says around it that it failed."""
    found = findings(ONNX)
    assert len(found) == 1
    assert found[0].advice[0].name == "export_least"
    assert "exclude_from_compile" not in [one.name for one in found[0].advice]


EXPORTED = """Traceback (most recent call last):
  File "/srv/moe.py", line 21, in <module>
    ep = torch.export.export(moe, (x,))
  File "/usr/lib/python3.11/site-packages/torch/export/_trace.py", line 1017, in wrapper
    raise e
  File "/srv/moe.py", line 14, in forward
    if idx.numel() > 0:
  File "/usr/lib/python3.11/site-packages/torch/fx/experimental/symbolic_shapes.py", line 7570, in _evaluate_expr
    raise self._make_data_dependent_error(
torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: Could not guard on data-dependent expression u0 > 0 (unhinted: u0 > 0).

ATTENTION: guard_size_oblivious would fix the error, evaluating expression to True.
Maybe you need to add guard_size_oblivious to framework code, see doc below for more guidance.

Caused by: (srv/moe.py:14 in forward)
For more information, run with TORCH_LOGS="dynamic"
"""


def test_an_export_has_the_programs_own_line() -> None:
    """torch 2.5 to 2.8 put two sentences in front of it; the line asks whether a tensor is empty, which no promise settles (measured)."""
    finding = findings(EXPORTED)[0]
    assert (finding.line_no, finding.advice[0].name) == (14, "leave_empty_check_out")


REFUSED = """Traceback (most recent call last):
  File "/srv/serve.py", line 29, in <module>
    torch.compiler.disable(3)
  File "/usr/lib/python3.11/site-packages/torch/compiler/__init__.py", line 287, in disable
    return torch._dynamo.disable(fn, recursive)
  File "/usr/lib/python3.11/site-packages/torch/_dynamo/decorators.py", line 97, in disable
    assert callable(fn), "fn must be callable"
AssertionError: fn must be callable
"""


def test_what_a_function_of_the_compiler_refuses_is_the_programs_own_call() -> None:
    """No newer torch takes it: the message says what it wants."""
    finding = findings(REFUSED)[0]
    assert finding.title == "A function of torch's compiler refused what it was called with, called at serve.py:29: fn must be callable"
    assert [one.name for one in finding.advice] == ["as_the_message_says", "exclude_from_compile"]


def test_an_exception_of_the_programs_own_fake_kernel_is_none_of_the_registration() -> None:
    """The last frame decides: behind torch/library.py the program's own code may run."""
    own = REFUSED.replace("AssertionError: fn must be callable\n", '  File "/srv/ops.py", line 5, in fake\n    raise KeyError(x)\nKeyError: 3\n')
    assert findings(own) == []


@pytest.mark.parametrize(
    ("guards", "first"),
    [
        ([f"0/{n}: cfg.request_id == 'req-{n:04}'" for n in range(4)], "text_outside"),
        ([f"0/{n}: cfg.layer_id == 'layer_{n}'" for n in range(4)], "raise_recompile_limit"),
    ],
)
def test_what_names_one_call_has_no_end(guards: list[str], first: str) -> None:
    """Of layers there is a number, of requests there is always one more: a higher limit only fills up later (measured)."""
    remedies = [one.name for one in findings(recompiles(NEW, *guards))[0].advice]
    assert (first in remedies, "raise_recompile_limit" in remedies) == (True, first == "raise_recompile_limit")


def test_no_limit_is_advised_below_the_default() -> None:
    """torch 2.1 keeps 64 entries by default, newer ones 8 (measured: the advised 16 made a limit hit of a log that had none)."""
    log = recompiles(NEW, *[f"0/{n}: ___check_obj_id(L['tail'], 139866843495392)" for n in range(3)])
    texts = [one.apply for one in findings(log, "2.1.2")[0].advice if "limit" in one.name]
    assert all(int(text.split(" = ")[1].split()[0]) > 64 for text in texts)
    assert texts


def test_a_break_in_an_export_is_not_left_to_eager_mode() -> None:
    """There is no fullgraph=True to leave out: an exported program is one graph."""
    log = EXPORTED.partition("torch.fx")[0] + "torch._dynamo.exc.UserError: Dynamic control flow is not supported at the moment.\n"
    assert "fullgraph" not in " ".join(one.apply for one in findings(log)[0].advice)
