"""Tests of advice that depends on how a version of torch tells of a thing: its words, and the order in which it compares."""

from __future__ import annotations

import pytest

from tests.core.test_graph_breaks import findings, only, record

OLD, NEW = "guards.py:2611", "guards.py:5396"  # lines of 2.4 and 2.13, which no other version has
EXPORT = '  File "/venv/lib/python3.11/site-packages/torch/export/_trace.py", line 529, in _export_to_torch_ir\n    raise UserError(\n'
VIOLATED = 'torch._dynamo.exc.UserError: Constraints violated (batch)! For more information, run with TORCH_LOGS="+dynamic".\n'
CONFLICT = """\
ValueError: Found the following conflicts between user-specified ranges and inferred ranges from model tracing:
- Received user-specified dim hint Dim.DYNAMIC(min=None, max=None), but export 0/1 specialized due to hint of 1 for dimension x.shape[0].
"""


def recompiles(source: str, *reasons: str, function: str = "f") -> str:
    """A recompile for each reason, as the version prints it."""
    lines = []
    for number, reason in enumerate(reasons, 1):
        prefix = f"V1123 19:13:3{number}.418000 77 torch/_dynamo/{source}] [0/{number}] [__recompiles] "
        lines += [f"{prefix}Recompiling function {function} in /srv/m.py:9", f"{prefix}    triggered by the following guard failure(s):"]
        lines += [f"{prefix}    - {one}" for one in reason.split("\n")]
    return "\n".join([*lines, ""])


def stride(expected: int, actual: int, name: str = "L['x']") -> str:
    return f"tensor '{name}' stride mismatch at index 0. expected {expected}, actual {actual}"


@pytest.mark.parametrize(
    ("log", "first", "words"),
    [
        (recompiles(OLD, stride(7, 9)), "none_first_automatic_dynamic", "a tensor's size, or its memory layout"),
        (recompiles(OLD, *[stride(n, n + 1) for n in (5, 6, 7)]), "remove_dynamic_false", "a tensor's size, or its memory layout"),
        (recompiles(OLD, *[stride(n, n + 32, "L['past'].key_cache[0]") for n in (32, 64, 96)]), "static_cache", "a tensor's size, or its memory"),
        (recompiles(OLD, stride(6, 1)), "contiguous_layout", "a tensor's memory layout changed"),
        (recompiles(NEW, stride(7, 9, "x")), "contiguous_layout", "a tensor's memory layout changed"),
    ],
)
def test_until_torch_2_4_a_size_shows_as_the_stride_in_front_of_it(log: str, first: str, words: str) -> None:
    """Measured on 2.1.2 and 2.4.1, and otherwise from 2.6 on: (1, 7) and (1, 9), and (2, 3, 7) and (2, 3, 9), tell of the stride at index 0."""
    finding = only(log)
    assert finding.advice[0].name == first
    assert words in finding.title


def test_the_dimension_behind_the_stride_is_marked() -> None:
    advice = only(recompiles(OLD, *[stride(n, n + 1) for n in (5, 6, 7)])).advice
    marked = next(one.apply for one in advice if one.name == "mark_dynamic")
    assert marked.startswith("torch._dynamo.mark_dynamic(x, 1)")


def test_the_entry_of_another_module_tells_nothing() -> None:
    """torch 2.4 has entries for each module: what counts is what failed in those of this one."""
    other = "___check_obj_id(L['self'], 140686002398608)"
    finding = only(recompiles(OLD, f"{other}\n{stride(288, 32)}\n{other}", function="forward"))
    assert finding.cause == "stride_mismatch"
    alone = only(recompiles(OLD, other, function="forward"))
    assert alone.advice[0].name == "compile_whole_model" and "another module of its class" in alone.title


@pytest.mark.parametrize(
    "said",
    [
        f"{VIOLATED}  - Not all values of batch = L['x'].size()[0] are valid because batch was inferred to be a constant (1).\n",
        f"{VIOLATED}  - You marked batch as dynamic but your code specialized it to be a constant (1). If you're using mark_dynamic, remove it.\n",
        CONFLICT,
    ],
)
def test_an_export_with_a_sample_of_one(said: str) -> None:
    """Measured from 2.4.1 to 2.13.0: a sample of 2 goes through, whatever the message asks for."""
    log = f'Traceback (most recent call last):\n  File "/srv/m.py", line 8, in <module>\n    export(model)\n{EXPORT}{said}'
    (finding,) = findings(log)
    assert finding.advice[0].name == "export_sample"
    (other,) = findings(log.replace("constant (1)", "constant (16)").replace("hint of 1 ", "hint of 16 "))
    assert other.advice[0].name != "export_sample"


def refused(name: str) -> str:
    """A break at a callable, as torch 2.6 tells of it: it says 700 characters of any builtin."""
    every = "This function is either a Python builtin (e.g. _warnings.warn) or a third-party C/C++ Python extension (perhaps created with pybind)."
    said = f"Reason: Unsupported: Graph break due to unsupported builtin {name}. {every}"
    stack = 'User code traceback:\n  File "/srv/m.py", line 11, in apply\n    out = call(q)'
    return record(f"Graph break in user code at /srv/m.py:11\n{said}\n{stack}", "0/0")


def test_what_torch_says_of_every_callable_is_left_out_of_the_advice() -> None:
    for name, remedy in (("_lsap.linear_sum_assignment", "exclude_from_compile"), ("my_flash_attn_cuda.varlen_fwd", "custom_op")):
        advice = only(refused(name)).advice
        assert advice[0].name == remedy
        assert not any("Python builtin" in one.apply for one in advice)
        assert any(f"({name})" in one.apply for one in advice)


PIP_TRITON = "pip uninstall -y triton pytorch-triton triton-windows && pip install "


@pytest.mark.parametrize(
    ("torch", "home", "package"),
    [
        ("2.6.0", "/srv/bot", '"triton==3.2.*" # what torch 2.6 requires'), ("2.1.2", "/srv/bot", '"triton==2.1.*"'),
        ("2.11.0", "/srv/bot", '"triton==3.6.*"'), ("2.6.0", "C:\\bot", '"triton-windows==3.2.*"'), ("2.3.1", "C:\\bot", '"triton-windows==X.Y.*"'),
    ],
)  # fmt: skip
def test_the_triton_is_that_of_the_torch_at_hand(torch: str, home: str, package: str) -> None:
    """triton-windows begins with triton 3.0."""
    said = "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nRuntimeError: Cannot find a working triton installation.\n"
    (finding,) = findings(f'Traceback (most recent call last):\n  File "{home}/main.py", line 28, in f\n    out = g(x)\n{said}', torch)
    assert finding.advice[0].apply.startswith(PIP_TRITON + package)


@pytest.mark.parametrize(
    ("home", "said", "command"),
    [
        ("/srv/bot", "Failed to find C compiler. Please specify via CC environment variable.", "apt-get install -y build-essential python3-dev"),
        ("/srv/bot", "main.c:5:10: fatal error: Python.h: No such file or directory", "apt-get install -y python3-dev"),
        ("D:\\bot", "Compiler: cl is not found.", "# start the process in the x64 Native Tools Command Prompt"),
        ("/srv/bot", "Compiler: cl is not found.", "# start the process in the x64 Native Tools Command Prompt"),
        (
            "/srv/bot",
            "Cannot find a working triton installation.",
            PIP_TRITON + '"triton==3.1.*" # what torch 2.5 requires',
        ),
        ("D:\\bot", "Cannot find a working triton installation.", PIP_TRITON + '"triton-windows==3.1.*"'),
    ],
)
def test_what_is_installed_is_that_of_the_system(home: str, said: str, command: str) -> None:
    """torch's wheel for Windows requires no triton, and apt-get is not there."""
    torch = f"{home}/venv/lib/python3.11/site-packages/torch".replace("/", "\\" if home[1] == ":" else "/")
    log = f"""Traceback (most recent call last):
  File "{home}/main.py", line 28, in generate
    out = compiled(x)
  File "{torch}/_dynamo/eval_frame.py", line 465, in _fn
    return fn(*args, **kwargs)
torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
RuntimeError: {said}
"""
    (finding,) = findings(log)
    assert finding.advice[0].apply.startswith(command)


@pytest.mark.parametrize("name", ["torch._C._cuda_getDevice", "x.is_cuda"])
def test_a_function_of_torchs_own_is_no_extension(name: str) -> None:
    assert only(refused(name)).advice[0].name != "custom_op"
