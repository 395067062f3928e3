"""Tests of the first advice on failures and graph breaks: one excerpt for each cause that only its words tell from its neighbours."""

from __future__ import annotations

import pytest

from tests.core.test_graph_breaks import findings, record

TAIL = '\nfrom user code:\n   File "/srv/m.py", line 27, in forward\n    {code}\n'
CHAIN = """\
Graph Break Reason: Data-dependent branching
  Explanation: Detected data-dependent branching. Dynamo does not support tracing dynamic control flow.

      The branch condition involves a tensor computed as follows:
        # File "/srv/m.py", line 19, in forward, code: n = (length + {first}) / self.stride
        l_0: graph input ({first_input})
        l_1: graph input (L_self_modules_layers_modules_0_buffers_stride_)"""
CONSTRAINT = """\
torch._dynamo.exc.UserError: Constraints violated (height)! For more information, run with TORCH_LOGS="+dynamic".
  - Not all values of height = L['x'].size()[2] in the specified range 32 <= height <= 1024 satisfy the generated guard Eq(L['x'].size()[2], 8).

Suggested fixes:
  {fix}
"""


def broken(reason: str, code: str = "") -> str:
    """A graph break, each line of its record with torch's prefix."""
    stack = f'\nUser code traceback:\n  File "/srv/m.py", line 30, in forward\n    {code}' if code else ""
    return record(f"Graph break in user code at /srv/m.py:30\n{reason}{stack}", "0/0")


def unsupported(said: str, code: str, words: str = "") -> str:
    return f"torch._dynamo.exc.Unsupported: {said}\n{TAIL.format(code=code)}\n{words}\n"


LOGGER = "logger.info('text')"
OLD_WORDS = 'Set TORCH_LOGS="+dynamo" and TORCHDYNAMO_VERBOSE=1 for more information'
OF_21 = '  File "/venv/torch/_dynamo/exc.py", line 172, in unimplemented\n    raise Unsupported(msg)\n'
GRAD = "Reason: Unsupported: 'skip function grad in file /venv/lib/python3.11/site-packages/torch/autograd/__init__.py'"
REPEAT = "Reason: Unsupported: dynamic shape operator: aten.repeat_interleave.Tensor; to enable, set it"
NO_CHOICE = "torch._inductor.exc.InductorError: LoweringException: NoValidChoicesError: No choices to select, please consider\n  target: {target}\n"
BACKEND = "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n"
USER = "torch._dynamo.exc.UserError: "
NOT_SUPPORTED = "  Explanation: Dynamo does not support this."
EXPORT = (
    'Traceback (most recent call last):\n  File "/v/lib/python3.11/site-packages/torch/export/__init__.py", line 311, in export\n    return f()\n'
)
RACED = "/h/.triton/cache/7VJX/tmp.pid_48213_c9f0/triton_poi_fused_3.ttir"
PTXAS = BACKEND + "RuntimeError: Internal Triton PTX codegen error\n`ptxas` stderr:\n"
RESOURCES = (
    "torch._inductor.exc.InductorError: RuntimeError: No valid triton configs. OutOfResources: out of resource: shared memory, "
    "Required: 147968, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.\n"
)
# The call of an operator, one of whose tensors torch prints over two lines (2.6).
CHECKPOINT = """\
Traceback (most recent call last):
  File "/srv/train.py", line 13, in <module>
    loss.backward()
  File "/venv/lib/python3.11/site-packages/torch/autograd/graph.py", line 823, in _engine_run_backward
    return Variable._execution_engine.run_backward(
  File "/venv/lib/python3.11/site-packages/torch/_functorch/_aot_autograd/runtime_wrappers.py", line 1858, in _backward_prologue
    ctx_saved_tensors = ctx.saved_tensors
  File "/venv/lib/python3.11/site-packages/torch/utils/checkpoint.py", line 903, in check_recomputed_tensors_match
    raise CheckpointError(
torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: Recomputed values for the following tensors have different metadata
"""
RANGE_OF_ITS_OWN = """\
torch.fx.experimental.symbolic_shapes.ConstraintViolationError: Constraints violated (height)! For more information, run with TORCH_LOGS="+dynamic".
  - Not all values of height = L['x'].size()[2] in the specified range 320 <= height <= 7680 satisfy the guard Ne(Mod(L['x'].size()[2], 2), 0).

Suggested fixes:
  height = Dim('height', min=320, max=7680)
"""
ASSIGNED = (
    "The tensor attribute self.left_ctx was assigned during export. Such attributes must be registered as buffers using the `register_buffer` API\n"
)
FAKE = """\
torch._dynamo.exc.TorchRuntimeError: Failed running call_function <built-in function f>(*(FakeTensor(..., size=(2, 4), dtype=torch.bfloat16,
           grad_fn=<TransposeBackward0>)), **{{}}):
{said}

from user code:
   File "/srv/m.py", line 27, in forward
    o = f(q)
"""
UNKNOWN = """\
torch._dynamo.exc.UserError: Could not guard on data-dependent expression u0 < 12 (unhinted: u0 < 12).  (Size-like symbols: u0)

from user code:
   File "/srv/m.py", line 13, in forward
    {code}
"""
# Two marked tensors, each with the whole stack of the process (2.8).
STACKED = """\
  - You marked L['{name}'].size()[0] as dynamic but your code specialized it to be a constant (2048). If you're using mark_dynamic, either remove it.

Framework stack:
{{frames}}  File "/venv/site-packages/torch/_dynamo/symbolic_convert.py", line 1267, in step
    self.dispatch_table[inst.opcode](self, inst)


User stack:
  File "/srv/m.py", line 18, in forward
    h = x + self.table(self.ids)

"""
MARKED = (
    "torch.fx.experimental.symbolic_shapes.ConstraintViolationError: Constraints violated (L['x'].size()[0], L['y'].size()[0])! For more\n"
    + STACKED.format(name="x")
    + STACKED.format(name="y")
)
CPP = BACKEND + "CppCompileError: C++ compile error\n\nOutput:\n"


@pytest.mark.parametrize(
    ("log", "first", "words"),
    [
        (OF_21 + unsupported("inline in skipfiles: Logger.info  | info /usr/lib/logging/__init__.py", LOGGER), "log_outside", "torch._dynamo.is_"),
        (unsupported("Logger not supported for non-export cases", LOGGER, OLD_WORDS), "ignore_logging", "ignore_logger_methods"),
        (unsupported("x", LOGGER, OLD_WORDS), "remove_graph_break", ""),
        (unsupported("x", "y = 2*_scale", OLD_WORDS), "remove_graph_break", ""),  # no suggestion of torch.export's
        (broken(GRAD, "f = torch.autograd.grad(e, pos)[0]"), "functional_grad", "torch.func.grad"),
        (broken(REPEAT, "y = torch.repeat_interleave(x, n)"), "output_size", "output_size=total"),
        (broken(CHAIN.format(first="self.pad", first_input="L_self_modules_layers_modules_0_buffers_pad_")), "numbers_as_python", "self.stride"),
        (broken(CHAIN.format(first="x", first_input="L_x_")), "branch_as_tensor", "torch.where"),
        (CONSTRAINT.format(fix="height = 8*_height"), "export_derived_dim", "height = 8*_height"),
        (CONSTRAINT.format(fix="height = 8"), "export_dim", "Dim.AUTO"),
        (CONSTRAINT.format(fix="height = Dim('height', max=512)"), "export_derived_dim", "height = torch.export.Dim('height', max=512)"),
        (
            CONSTRAINT.replace("guard Eq", "guard 512 != L['x'] and Eq").format(fix="height = Dim('height', max=512)"),
            "export_derived_dim",
            "max=511)",
        ),
        (
            "AssertionError: Mutating module attribute k_cache during export.\n" + TAIL.format(code="self.k_cache = k"),
            "buffer_in_place",
            "self.k_cache.copy_",
        ),
        (
            "torch._dynamo.exc.AttributeMutationError: Can't inplace modify module params/buffers inside HigherOrderOp\n"
            + TAIL.format(code="self.n = x"),
            "effect_outside_block",
            "checkpointed block",
        ),
        (
            RESOURCES,
            "smaller_kernel_blocks",
            "BLOCK_M1",
        ),
        (broken("Reason: Unsupported: Tensor.item", "if 0.0 in mask:"), "branch_as_tensor", "torch.where"),
        (PTXAS + "ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'\n", "upgrade_torch", ""),
        (PTXAS + "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'\n", "system_ptxas", ""),
        (CPP + "/tmp/a.h:24:10: fatal error: 'omp.h' file not found\n#include <omp.h>\n", "install_compiler", "brew install libomp"),
        (CPP + "/tmp/a.h:24:10: fatal error: Python.h: No such file or directory\n", "install_compiler", "python3-dev"),
        (CPP + "g++: error: unrecognized command line option '-std=c++17'\n", "install_compiler", "CXX=g++-12"),
        (BACKEND + "ImportError: /data/ic/cic2rji24.so: file too short\n", "own_cache_folder", "empty them once"),
        (BACKEND + "OSError: /data/ic/cic2rji24.so: undefined symbol: _ZN2at4_ops9to_device4callE\n", "own_cache_folder", "empty them once"),
        (BACKEND + "OSError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /c.so)\n", "newer_libstdcxx", "LD_PRELOAD"),
        (BACKEND + "RuntimeError: Found Tesla P100 which is too old to be supported by the triton GPU\n", "disable_compile_process", "DISABLE"),
        (BACKEND + "RuntimeError: vLLM failed to compile the model. The most likely reason\n", "empty_artifacts", "rm -rf ~/.cache/vllm"),
        (OF_21 + unsupported("unsupported Python builtin _warnings.warn. Please file an issue", "warnings.warn(x)"), "log_outside", "is_compiling"),
        ("RuntimeError: input_handles[0]: unmatched dtype, expected: 6(Float), but got: 7(Double)\n", "input_as_exported", "dtype=dtype"),
        (BACKEND + f"ImportError: /ic/cic2rji24{'a' * 43}.so: cannot read file data\n", "own_cache_folder", "empty them once"),
        (unsupported("None._SimpleCData.__new__", "return ct.c_void_p(A.data_ptr())"), "custom_op", "torch.library.custom_op"),
        (unsupported("aten._local_scalar_dense.default", "ids = torch.arange(h).expand(-1, w)"), "sizes_from_outside", "pass Python numbers"),
        (unsupported("aten._local_scalar_dense.default", "n = torch.zeros(int(h.item()))"), "capture_scalar_outputs", ""),
        ("Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 592 MiB.\n", "smaller_capture", "--mem-fraction-static"),
        (NO_CHOICE.format(target="flex_attention_backward"), "smaller_kernel_blocks", "BLOCK_M1"),
        (NO_CHOICE.format(target="aten.bmm.default"), "autotune_with_aten", ""),
        (unsupported("Attempted to copy.deepcopy a tensor", "y = copy.deepcopy(x)"), "clone_for_deepcopy", "x.detach().clone()"),
        (unsupported("Attempted to call function marked as skipped: Random.sample", "i = f(x)"), "draw_with_torch", "torch.randperm"),
        (
            "torch._dynamo.exc.UserError: Dynamic control flow is not supported at the moment.\n" + TAIL.format(code="assert x.max() < 3"),
            "assert_async",
            "",
        ),
        ("RuntimeError: Python 3.12+ not yet supported for torch.compile\n", "upgrade_torch", "3.12 from 2.4"),
        (
            unsupported("can't support async_op=True for <function all_reduce at 0x7f>", "work = f(y)"),
            "synchronous_collective",
            "without work.wait()",
        ),
        (unsupported("copy.deepcopy UserDefinedObjectVariable(GenerationConfig)", "x"), "compile_forward_of_generate", "model.forward"),
        (unsupported("generic_jump TensorVariable()", "if torch.all(attention_mask == 1):"), "general_way", "is_compiling()"),
        (unsupported("generic_jump TensorVariable()", "if torch.isnan(x).any():"), "branch_as_tensor", "torch.where"),
        (unsupported("generic_jump TensorVariable()", "if pad_mask.any():"), "apply_always", "is_compiling() or"),
        (unsupported("generic_jump TensorVariable()", "if not torch.all(mask):"), "apply_always", "is_compiling() or"),
        (unsupported("generic_jump TensorVariable()", "if not pad_mask.any():"), "general_way", "not torch.compiler.is_compiling()"),
        (unsupported("Attempt to trace forbidden callable <function mark_dynamic at 0x7f>", "x"), "call_outside_compiled", "y = compiled(x)"),
        (BACKEND + "RuntimeError: Triton Error [CUDA]: device kernel image is invalid\n", "ptxas_of_driver", "nvidia-smi"),
        (
            BACKEND.replace("inductor", "compile_fn") + "AttributeError: 'MultiheadAttention' object has no attribute 'requires_grad'\n",
            "ddp_optimizer_off",
            "optimize_ddp",
        ),
        (BACKEND + "RuntimeError: Trying to backward through my.sq.default but no autograd formula was registered.\n", "register_autograd", ""),
        (FAKE.format(said="Could not run 'my::de' with arguments from the 'CPU' backend."), "kernel_for_device", "register_kernel"),
        (FAKE.format(said="'_OpNamespace' 'my' object has no attribute 'absent'"), "load_operators", "load_library"),
        (BACKEND + "RuntimeError: Compile package was created with a different PyTorch version: 2.9.0\n", "compile_package_again", "vllm"),
        (CHECKPOINT, "compile_outside_checkpoint", "the plain block"),
        (RANGE_OF_ITS_OWN, "export_derived_dim", "height = 2*_height"),
        (RANGE_OF_ITS_OWN.replace("Ne(Mod(L['x'].size()[2], 2), 0)", "L['x'].size()[2] != 400"), "export_dim", "Dim.AUTO"),
        (
            "RuntimeError: torch.compile does not support compiling torch.jit.script or torch.jit.freeze models directly.\n",
            "compile_plain_module",
            "",
        ),
        ("WeightsUnpickler error: Unsupported global: GLOBAL torch._dynamo.eval_frame.OptimizedModule was not\n", "save_plain_weights", "_orig_mod"),
        (BACKEND + "RuntimeError: No valid triton configs.\n", "smaller_kernel_blocks", "BLOCK_M"),
        (unsupported("inline in skipfiles: Logger.info  | info /usr/lib/python3.10/logging/__init__.py", "x"), "log_outside", "is_compiling()"),
        (f"/v/contextlib.py:144: UserWarning: {ASSIGNED}", "buffer_in_place", "register_buffer('left_ctx'"),
        (
            "C:/v/torch/include\\torch/csrc/inductor/cpp_prefix.h(3): fatal error C1083: Cannot open include file: 'omp.h'\n",
            "install_compiler",
            "winget",
        ),
        (FAKE.format(said="argument 'is_causal' must be bool, not SymBool"), "plain_flag", "True if flag else False"),
        (FAKE.format(said="Expected query, key, and value to have the same dtype"), "keep_dtype_consistent", "x.to(weight.dtype)"),
        ("RuntimeError: Expected input at *args[0].shape[0] to be equal to 2, but got 4\n", "export_dynamic", "Dim('batch')"),
        ("AssertionError: Guard failed: x.size()[0] == 2\n", "export_dynamic", "Dim('batch')"),
        (USER + "Expecting `args` to be a tuple of example positional inputs, got <class 'torch.Tensor'>\n", "tuple_of_examples", "(x,)"),
        (USER + "its top-level keys must be the arg names ['a', 'b'] of `inputs`, but here they are ['a']\n", "shapes_as_signature", "'flag': None"),
        (USER + "Found different definitions Dim('s', max=8) and Dim('s', max=16) for the same symbolic dimension\n", "shapes_as_signature", ""),
        (USER + "It looks like one of the outputs with type `<class 'Out'>` is not supported or pytree-flattenable. \n", "register_dataclass", ""),
        (USER + "Cannot export model which references tensors that are neither buffers/parameters\n", "tensors_as_buffers", "register_buffer"),
        (UNKNOWN.replace("u0 < 12 (unhinted: u0 < 12)", "Eq(Min(3*u0, u1), 0)").format(code="topk(y, n)"), "mask_for_size", "torch.arange"),
        (BACKEND + "NameError: name 's0' is not defined\n", "upgrade_torch", ""),
        (
            unsupported(f"Made with requires_grad=True\n{NOT_SUPPORTED}\n  Hint: Create the tensor outside the compiled region.", "x"),
            "follow_hint",
            "Create",
        ),
        (unsupported(f"Attempted to wrap sparse Tensor\n{NOT_SUPPORTED}", "y = x @ a"), "dense_for_sparse", ""),
        (unsupported(f"Reconstruction failure\n{NOT_SUPPORTED}", "return x, g"), "rebuildable_values", ""),
        (
            unsupported(
                "torch.func.vmap capture is disabled, it can be turned on by setting `torch._dynamo.config.capture_func_transforms=True`", "x"
            ),
            "set_hinted_config",
            "capture_func_transforms = True",
        ),
        (
            unsupported("Dynamic shape operator: Operator `aten.masked_select.default`'s output shape depends", "x"),
            "where_for_selection",
            "ignore_index",
        ),
        (USER + "zip() has one argument of len differing from others\n", "as_the_message_says", "zip() has one argument"),
        (EXPORT + "ValueError: Exporting a ScriptModule is not supported. Maybe try\n", "module_to_export", "before torch.jit.script"),
        (EXPORT + "ValueError: following attrs were created in the model.forward: {'cache'} Such\n", "buffer_in_place", "self.cache.copy_"),
        (BACKEND + "RuntimeError: 0 active drivers ([]). There should only be one.\n", "give_it_the_gpu", "is_available()"),
        (
            BACKEND + f"FileNotFoundError: [Errno 2] No such file or directory: '{RACED}' -> '/h/.triton/cache/T.ttir'\n",
            "cache_of_each_rank",
            "LOCAL_RANK",
        ),
        (
            BACKEND + "AttributeError: quantized.LinearPackedParamsBase does not have a field with name 'is_complex'\n",
            "leave_quantized_out",
            "torchao",
        ),
        (FAKE.format(said="aten.mul.Tensor: got mixed torch.Tensor and DTensor, need to convert all"), "distribute_the_tensor", "Replicate()"),
        (unsupported("dynamic shape operator: aten.bincount.default", "n = x.bincount()"), "fixed_length_count", "scatter_add_"),
        (unsupported("torch.* op returned non-Tensor bool call_function _nested_tensor_from_mask_left_aligned", "y"), "nested_tensor_off", "False"),
        (unsupported("Workaround for issues with nn_parameter construction", "self.c = nn.Conv1d(1, 2, 3)"), "make_modules_before", "nn.LazyConv1d"),
        (unsupported("Compilation of intermediate hooks requires compiled autograd", "y.register_hook(f)"), "compile_around_hook", ".compile()"),
        (unsupported("'skip function pack_padded_sequence in file /t/torch/nn/utils/rnn.py'", "p = pack(x)"), "leave_packing_out", "disable"),
        (unsupported("does not know how to trace the builtin `time.time.`", "t = time.time()"), "remove_graph_break", "move it out"),
        ("The model 'OptimizedModule' is not supported for text-generation. Supported models are ['A'].\n", "compile_in_place", "model.compile()"),
        (UNKNOWN.format(code="if x_mask.size(1) < h.size(1):"), "torch_check", "torch._check(x_mask.size(1) >= h.size(1))"),
        (UNKNOWN.format(code="if n < 12:"), "torch_check", "torch._check(n >= 12)"),
        (MARKED.format(frames='  File "??", line 0, in _start\n' * 500), "follow_the_size", "(h = x + self.table(self.ids))"),
    ],
)
def test_the_first_advice_on_a_failure(log: str, first: str, words: str) -> None:
    """Each was carried out on the version that prints it, and took the failure away."""
    (finding,) = [one for one in findings(log) if one.advice]
    assert finding.advice[0].name == first
    assert words in finding.advice[0].apply


LIMIT = """\
W1123 21:56:35.578000 27233 torch/_dynamo/convert_frame.py:1016] [0/8] torch._dynamo hit config.recompile_limit (8)
W1123 21:56:35.578000 27233 torch/_dynamo/convert_frame.py:1016] [0/8]    function: 'forward' (/srv/m.py:13)
W1123 21:56:35.578000 27233 torch/_dynamo/convert_frame.py:1016] [0/8]    last reason: 0/7: {guard}
"""
RAISED = """\
torch._dynamo.exc.RecompileError: Recompiling function forward in /srv/m.py:13
    triggered by the following guard failure(s):
    - 0/0: tensor 'guidance' size mismatch at index 0. expected {sizes}
"""


@pytest.mark.parametrize(
    ("log", "first"),
    [
        (LIMIT.format(guard="___check_type_id(self, 94479194007824)"), "raise_recompile_limit"),
        (LIMIT.format(guard="___check_type_id(x, 94479194007824)"), "stable_arg_structure"),
        (RAISED.format(sizes="1, actual 2"), "warmup"),
        (RAISED.format(sizes="7, actual 1"), "warmup"),
        (RAISED.format(sizes="10, actual 12"), "mark_dynamic"),
    ],
)
def test_the_first_advice_on_a_guard(log: str, first: str) -> None:
    """Nobody passes self; no mark makes one graph of a size of 1 and the others."""
    (finding,) = findings(log)
    assert finding.advice[0].name == first


def test_a_list_that_the_module_itself_fills() -> None:
    (finding,) = findings(LIMIT.format(guard="not self.saved"))
    assert "append it outside" in finding.advice[0].apply


def test_what_a_packaged_program_says_of_its_input_is_why_its_call_failed() -> None:
    """It writes why to standard error, and torch raises that the call failed: one failure, with the line that called."""
    log = """\
Error: input_handles[0]: unmatched dim value at 0, expected: 2, but got: 4

Traceback (most recent call last):
  File "/srv/serve.py", line 12, in <module>
    y = model(x)
  File "/venv/lib/python3.11/site-packages/torch/_inductor/package/package.py", line 249, in __call__
    flat_outputs = self.loader.boxed_run(flat_inputs)
RuntimeError: run_func_( container_handle_, input_handles.data(), input_handles.size()) API call failed at model_container_runner.cpp, line 107
"""
    (finding,) = findings(log)
    assert finding.advice[0].name == "export_dynamic" and "called at serve.py:12: input_handles[0]: unmatched dim value" in finding.title


def test_an_operator_without_a_fake_kernel_is_one_failure() -> None:
    """torch 2.10 and later raise it as three exceptions, each the cause of the next."""
    log = """\
Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/torch/_subclasses/fake_tensor.py", line 2904, in _dispatch_impl
    r = func(*args, **kwargs)
  File "/venv/lib/python3.11/site-packages/torch/_ops.py", line 865, in __call__
    return self._op(*args, **kwargs)
NotImplementedError: myquant::int8_linear: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered.

During handling of the above exception, another exception occurred:

torch._subclasses.fake_tensor.UnsupportedOperatorException: myquant.int8_linear.default

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/serve.py", line 19, in <module>
    print(model(x))
  File "/venv/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py", line 1034, in compile_wrapper
    raise e.with_traceback(None) from e.__cause__
torch._dynamo.exc.Unsupported: Operator does not support running with fake tensors
  Developer debug context: unsupported operator: myquant.int8_linear.default

from user code:
   File "/srv/model.py", line 15, in forward
    return torch.ops.myquant.int8_linear(x, self.weight)
"""
    (finding,) = findings(log)
    assert (finding.file, finding.line_no) == ("/srv/model.py", 15) and finding.advice[0].name == "register_fake"


CALLED = """\
Traceback (most recent call last):
  File "/srv/serve.py", line 12, in <module>
    y = model(x)
  File "/venv/lib/python3.11/site-packages/torch/export/{frame}
    raise error
"""


@pytest.mark.parametrize(
    ("frame", "said", "first"),
    [
        (
            '_trace.py", line 1004, in wrapper',
            "torch._dynamo.exc.Unsupported: Graph break due to unsupported builtin posix.stat.",
            "non_strict_export",
        ),
        ('_trace.py", line 1004, in wrapper', "torch._dynamo.exc.InternalTorchDynamoError: KeyError: 'x'", "non_strict_export"),
        (
            'exported_program.py", line 1447, in __call__',
            "RuntimeError: Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.",
            "call_the_module",
        ),
        ('exported_program.py", line 1484, in _eval', "NotImplementedError: Calling eval() is not supported yet.", "mode_before_export"),
        (
            '_unlift.py", line 77, in _check_inputs_match',
            "ValueError: Trying to flatten user inputs with exported input tree spec: \nTreeSpec(tuple, None, [*])\nbut actually got",
            "arguments_as_exported",
        ),
        (
            '_tree_utils.py", line 29, in reorder_kwargs',
            "ValueError: Ran into a kwarg keyword mismatch: Got the following keywords [] but expected ['mask']",
            "arguments_as_exported",
        ),
        (
            '__init__.py", line 381, in load',
            "RuntimeError: Serialized version ['7', '3'] does not match our current schema version (8, 2).",
            "export_again",
        ),
        (
            'dynamic_shapes.py", line 222, in __mul__',
            "NotImplementedError: Attempted to multiply 1.5 with d. (Only increasing linear operations with integer coefficients are supported.)",
            "export_dim",
        ),
    ],
)
def test_what_is_advised_on_the_use_of_an_exported_program(frame: str, said: str, first: str) -> None:
    """No newer torch changes what the program does with it; each was carried out, but for another schema."""
    (finding,) = findings(CALLED.format(frame=frame) + said + "\n")
    assert finding.advice[0].name == first and finding.title.count("called at serve.py:12") == 1


SDP_KERNEL = """torch._dynamo.exc.Unsupported: torch.* op returned non-Tensor
  Explanation: torch.* ops that return a non-Tensor cannot be traced into the Dynamo FX graph output

  Developer debug context: example_value type: _GeneratorContextManager; op: call_function; target: <function {} at 0x7fd35fe6ce00>

from user code:
   File "/srv/bot/m.py", line 8, in forward
    with torch.backends.cuda.sdp_kernel(enable_flash=False):
"""


@pytest.mark.parametrize(("function", "form"), [("sdp_kernel", "sdpa_kernel"), ("other", "")])
def test_the_old_choice_of_attention_s_backend_has_a_new_name(function: str, form: str) -> None:
    """No torch traces sdp_kernel; sdpa_kernel compiles (measured on 2.6.0, 2.8.0 and 2.13.0)."""
    (found,) = findings(SDP_KERNEL.format(function))
    assert (found.advice[0].remedy, found.advice[0].form) == ("remove_graph_break", form)
