"""Tests of `recompile_watch.core.patterns`: what several guards show together."""

from __future__ import annotations

import pytest

from recompile_watch.core.causes import parse_reason
from recompile_watch.core.evidence import shown_function
from recompile_watch.core.patterns import patterns_of, varying_integer

STORM = {"worst_process": 7, "phase": "unknown"}


def found(*guards: str, function: str = "f", worst_process: int = 7, phase: str = "unknown") -> frozenset[str]:
    """The patterns of these guards."""
    return patterns_of([parse_reason(guard, function) for guard in guards], function=function, worst_process=worst_process, phase=phase)


def test_one_recompile_for_each_layer() -> None:
    """An index that rises by one names the layers; its value stays what it was."""
    assert "per_layer_index" in found(*[f"6/{n}: kv_cache._current_idx[{n}] == 0" for n in range(8)])
    assert "per_layer_index" in found(*[f"0/{n}: L['self'].layers[{n}].cache.idx == 0" for n in range(4)])


def test_the_last_reason_alone_shows_the_layers() -> None:
    """The default warning prints one guard: entry 7 was made for index 7."""
    assert "per_layer_index" in found("6/7: kv_cache._current_idx[7] == 0", worst_process=1)
    assert "per_layer_index" not in found("6/7: kv_cache._current_idx[3] == 0", worst_process=1)
    assert "per_layer_index" not in found("6/0: kv_cache._current_idx[0] == 0", worst_process=1)


def test_the_last_reason_alone_shows_a_list_that_grows() -> None:
    """Entry 7 was made for a list of 7: measured on torch 2.13.0, of a module that appends in forward()."""
    assert "growing_value" in found("0/7: len(self.kept) == 7", worst_process=1)
    assert "growing_value" in found("4/7: len(L['self'].kept) == 8", worst_process=1)
    for guard in ("0/7: len(self.kept) == 3", "0/1: len(self.kept) == 1", "0/7: len(self._modules['blocks']._modules) == 7", "len(self.kept) == 7"):
        assert "growing_value" not in found(guard, worst_process=1)


@pytest.mark.parametrize(
    "guards",
    [
        [f"0/{n}: step == {n + 2}" for n in range(5)],
        [f"0/{n}: len(cache) == {n}" for n in range(5)],
        [f"0/{n}: tensor 'k' size mismatch at index 0. expected {8 + n}, actual 20" for n in range(5)],
        [f"0/{n}: self._current_idx[7] == {n * 16}" for n in range(5)],
    ],
)
def test_a_value_that_grows(guards: list[str]) -> None:
    """The compared number rises from recompile to recompile; no index does."""
    assert "growing_value" in found(*guards)
    assert "per_layer_index" not in found(*guards)


def test_no_direction() -> None:
    """Two guards show none, nor do values that go up and down, nor guards that differ in two numbers."""
    assert not found("0/0: step == 2", "0/1: step == 3") & {"growing_value", "per_layer_index"}
    assert not found(*[f"0/{n}: step == {value}" for n, value in enumerate((4, 9, 2, 7))]) & {"growing_value", "per_layer_index"}
    assert varying_integer(["x[0] == 0", "x[1] == 1"]) is None


@pytest.mark.parametrize(
    ("file", "is_beside"),
    [
        ("/venv/lib/python3.11/site-packages/matplotlib/backends/backend_agg.py", True),
        ("/usr/lib/python3.12/weakref.py", True),
        (r"C:\Python312\Lib\logging\__init__.py", True),
        ("/venv/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py", False),
        (".../torchinfo/torchinfo.py", True),
        ("/srv/rich/logging.py", False),
        ("/usr/lib/python3.12/contextlib.py", False),
        (None, False),
    ],
)
def test_a_function_beside_the_model(file: str | None, is_beside: bool) -> None:
    """What logs, draws and keeps objects is known by where it lies; a file of the program is not, whatever its name."""
    guards = [parse_reason("0/0: d == 2.0", "f")]
    assert ("beside_the_model" in patterns_of(guards, function="f", worst_process=1, phase="unknown", file=file)) is is_beside


def test_a_function_that_all_compiled_modules_share() -> None:
    """torch's own wrapper is known by its file."""
    guards = [parse_reason("0/7: tensor 'args[0]' size mismatch at index 0. expected 1, actual 4", "inner")]
    for file, is_shared in ((".../torch/_dynamo/external_utils.py", True), ("/srv/app/external_utils.py", False), (None, False)):
        found_patterns = patterns_of(guards, function="inner", worst_process=1, phase="unknown", file=file)
        assert ("shared_wrapper" in found_patterns) is is_shared


def test_first_dynamic_step() -> None:
    """One recompile of a size or a number is torch's normal step; a second one, or another cause, is not."""
    size = "0/0: tensor 'x' size mismatch at index 0. expected 8, actual 9"
    assert "first_dynamic_step" in found(size, worst_process=1)
    assert "first_dynamic_step" not in found(size, worst_process=2)
    assert "first_dynamic_step" not in found("0/0: name == 'a'", worst_process=1)


def test_a_first_size_of_one() -> None:
    """torch compiles sizes of 0 and 1 in, so the next other size compiles once more."""
    to_one = "0/0: tensor 'x' size mismatch at index 0. expected 16, actual 1"
    assert {"first_dynamic_step", "to_zero_or_one"} <= found(to_one, worst_process=1)
    assert "to_zero_or_one" not in found(to_one, worst_process=2)
    assert "to_zero_or_one" not in found("0/0: tensor 'x' size mismatch at index 0. expected 1, actual 16", worst_process=1)


def test_frames_sizes_and_states() -> None:
    """A resumed frame by its name, sizes equal by chance by their guard, two states by their causes."""
    assert "resumed_frame" in found("0/0: n == 1", function="torch_dynamo_resume_in_append_at_25")
    assert "resumed_frame" not in found("0/0: n == 1", function="resume_in_training")
    assert "duck_sizing" in found("0/0: y.size()[0] == x.size()[0]")
    assert "duck_sizing" not in found("0/0: x.size()[1] == x.size()[0]")
    assert "two_states" in found("0/0: GLOBAL_STATE changed: grad_mode ", worst_process=1)
    assert "late" in found("0/0: n == 1", phase="steady")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("torch_dynamo_resume_in_append_at_25", "append (resumed at line 25)"),
        ("resume_in_append_at_25", "append (resumed at line 25)"),
        ("<resume in append>", "append (resumed behind a graph break)"),
        ("<graph break in append>", "append (resumed behind a graph break)"),
        ("<graph break in <lambda>>", "<lambda> (resumed behind a graph break)"),
    ],
)
def test_every_name_of_resumed_code(name: str, shown: str) -> None:
    """Each version of torch has a name of its own for the code behind a graph break."""
    assert "resumed_frame" in found("0/0: n == 1", function=name)
    assert shown_function(name) == shown
