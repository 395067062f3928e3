"""Tests of what is said about sizes and variants: what the code fixes, what several modules share, what nobody counted."""

from __future__ import annotations

import pytest

from recompile_watch.core.advice import advise
from recompile_watch.core.causes import parse_reason
from recompile_watch.core.findings import Finding
from recompile_watch.core.story import Story
from recompile_watch.core.versions import ANY_VERSION, VersionRange
from tests.core.test_advice import CATALOG, GUARD, _block, _hit, _told

FIXED = (
    "I1122 11:15:31.432000 15922 torch/fx/experimental/symbolic_shapes.py:8081] [0/{}] eval {} [guard added] "
    "if n not in self.tables:  # app/table.py:13 in f (_dynamo/variables/tensor.py:2606 in evaluate_expr)\n"
)
SIZES = (4, 7, 12, 5)


def _sizes(*symbols: str) -> str:
    """A recompile for each size, and what torch logs about its symbol."""
    blocks = [_block(n, GUARD.format("x", 1, SIZES[n - 1], SIZES[n])) for n in range(1, 4)]
    return "".join(block + "".join(FIXED.format(n, one.format(SIZES[n], 2 * SIZES[n])) for one in symbols) for n, block in enumerate(blocks, 1))


def _remedies(finding: Finding) -> list[str]:
    return [one.name for one in finding.advice]


@pytest.mark.parametrize("symbol", ["Eq(s27, {})", "Eq(2*s27, {1})"])
def test_the_line_that_fixes_a_size_is_named(symbol: str) -> None:
    """torch had made it dynamic: nothing that makes sizes dynamic can help, and a mark raises (measured)."""
    (found,) = _told(_sizes("Ne(s27, 1)", symbol))
    assert "app/table.py:13 (if n not in self.tables:) fixes it" in found.consequence
    assert _remedies(found)[:2] == ["free_the_size", "pad_or_bucket"] and "app/table.py:13" in found.advice[0].apply
    assert not {"remove_dynamic_false", "mark_dynamic", "dynamic_sources_env"} & set(_remedies(found))


def test_the_limit_s_finding_names_the_line_too() -> None:
    """It is about the same function, and its last reason about the same size."""
    hit = _told(_sizes("Eq(s27, {})") + _hit(8, "recompile_limit", "0/7: " + GUARD.format("x", 1, 5, 9)))[0]
    assert (hit.kind, _remedies(hit)[0]) == ("recompile_limit_hit", "free_the_size")


@pytest.mark.parametrize("symbol", ["Eq(s27, 99)", "Eq(s27, s28)", "Ne(s27, {})"])
def test_another_symbol_fixes_nothing(symbol: str) -> None:
    """A relation, or the value of another size: what the log does not show is what it is without the line."""
    (found,) = _told(_sizes(symbol))
    assert _remedies(found)[:2] == ["remove_dynamic_false", "log_dynamic_shapes"]


def test_in_an_optimizer_a_parameter_keeps_sizes_static() -> None:
    """torch makes parameters static and binds the tensors beside them, which the guard names (measured on 2.13.0; no program said dynamic=False)."""
    log = _sizes()
    function = log.partition("Recompiling function ")[2].partition(" ")[0]
    (found,) = _told(log.replace(f"function {function} ", "function muon_post_orthogonalize "))
    assert _remedies(found)[:2] == ["force_parameter_static_shapes_false", "remove_dynamic_false"]


def test_of_another_compile_it_says_nothing() -> None:
    """The line of a frame that is compiled in between."""
    log = _sizes("Eq(s27, {})").replace("symbolic_shapes.py:8081] [0/", "symbolic_shapes.py:8081] [3/")
    assert _remedies(_told(log)[0])[0] == "remove_dynamic_false"


def test_where_the_log_leaves_it_open_it_is_to_be_looked_at_first() -> None:
    """dynamic=False and code that fixes the size look alike: an advice that may raise stands behind the one that tells them apart."""
    (found,) = _told(_sizes())
    assert _remedies(found)[:2] == ["remove_dynamic_false", "log_dynamic_shapes"]
    assert "names the line" in (found.advice[0].where or "")


def test_a_batch_of_one_is_no_sign_that_sizes_stay_static() -> None:
    """Two dimensions that each take their first step, and the size 1, which torch never makes dynamic."""
    changes = [(1, 16, 24), (0, 8, 3), (0, 8, 1), (0, 1, 12)]
    (found,) = _told("".join(_block(n, GUARD.format("ids", *change)) for n, change in enumerate(changes, 1)))
    assert _remedies(found)[0] == "mark_dynamic"


def test_the_way_back_from_a_batch_of_one_is_no_second_step() -> None:
    """Measured: each dimension was dynamic; mark_dynamic raised, for a mask of the same sizes had no mark."""
    (found,) = _told("".join(_block(n, GUARD.format("ids", *change)) for n, change in enumerate([(1, 16, 24), (0, 8, 3), (0, 1, 12)], 1)))
    assert _remedies(found) == ["none_first_automatic_dynamic"]


def test_a_forbidden_batch_of_one_belongs_into_the_warm_up() -> None:
    """Measured: warmed up with one row as well, the service served all; it is no loader's last batch."""
    guard = parse_reason("0/1: 2 <= feats.size()[0]")
    told = Story("recompile_forbidden", guard.cause, "f", "/srv/m.py", 3, guard.text, (guard,), frozenset())
    remedies = [one.name for one in advise(told, CATALOG, ANY_VERSION)]
    assert remedies[0] == "warmup" and "stance_eager_on_recompile" in remedies and "drop_last" not in remedies


def test_what_is_expected_of_a_package_needs_no_mark() -> None:
    """Measured: the prompt of transformers' generate, then one token; unbacked, 3 recompiles became 5, and the graph broke."""
    log = _block(1, GUARD.format("kwargs['features']", 1, 9, 1))
    (found,) = _told(log.replace("/srv/m.py", "/usr/lib/python3/site-packages/transformers/utils/generic.py"))
    assert _remedies(found) == ["none_first_automatic_dynamic"]
    assert "mark_unbacked" in _remedies(_told(log)[0])


@pytest.mark.parametrize("tensor", ["input_ids", "kwargs['input_ids']", "past_key_values.key_cache[0]"])
def test_decoding_needs_no_mark(tensor: str) -> None:
    """A prompt, then one token: unbacked, attention's own code broke, and 4 recompiles became 15 (measured)."""
    (found,) = _told(_block(1, GUARD.format(tensor, 1, 9, 1)))
    assert _remedies(found) == ["none_first_automatic_dynamic", "static_cache"]


@pytest.mark.parametrize(
    ("guard", "first"),
    [
        ("self._modules['head'].shape[2] != (im.size()[2] // 4)", "keep_no_shape"),
        ("self._modules['head'].shape[2] == 16", "keep_no_shape"),
        ("(((0.1 + torch.sym_float(img.size()[2] // 14)) / 4.0)) == 1.275", "size_for_factor"),
    ],
)
def test_what_the_code_makes_of_a_size(guard: str, first: str) -> None:
    """A size of the call before that the module keeps, and a factor that is computed from a size, are constants of each graph (measured)."""
    remedies = _remedies(_told(_block(3, guard))[0])
    assert remedies[0] == first and "tensor_wrap_scalar" not in remedies


def test_a_stride_is_no_size_to_pad_to() -> None:
    """Torch 2.4 names the stride of the batch where the length behind it changed (measured: the batch padded to 8192 hits the limit as well)."""
    guard = parse_reason("0/0: tensor 'L['feats']' stride mismatch at index 0. expected 71040, actual 86080")
    patterns = frozenset({"strides_of_sizes"})
    told = Story("recompile_limit_hit", guard.cause, "f", "/srv/m.py", 3, guard.text, (guard,), patterns)
    (padded,) = [one for one in advise(told, CATALOG, VersionRange((2, 4), (2, 5))) if one.name == "pad_or_bucket"]
    assert "128)" in padded.apply and "feats.shape[1]" in padded.apply


def test_an_attribute_of_each_layer_is_not_named() -> None:
    """Measured: named, the layer that the log shows moved the limit to the next one."""
    (found,) = _told("".join(_block(n, f"self._modules['layers']._modules['0'].cur == {n + 11}") for n in range(1, 5)))
    assert _remedies(found) == ["allow_unspec_int_on_nn_module", "tensor_wrap_scalar", "exclude_from_compile"]


@pytest.mark.parametrize(
    "part",
    [
        "___check_type_id(self._modules['drop_path'], 94380354530592), type=<class 'torch.nn.modules.linear.Identity'>",
        "len(self._modules) == 3",
        "tensor 'self._parameters['gamma']' size mismatch at index 0. expected 8, actual 16",
    ],
)
def test_layers_of_several_widths_share_the_code(part: str) -> None:
    """One torch.compile for each of them: no mark and no padding makes one width of two layers; nobody passes a layer's part."""
    log = _block(1, part) + "".join(_block(n + 1, GUARD.format("x", 1, 8 * n, 8 * n + 8)) for n in range(1, 4))
    told = {one.cause: _remedies(one) for one in _told(log)}
    assert told["size_mismatch"][:2] == ["isolate_recompiles", "compile_whole_model"]
    if "type_identity" in told:
        assert told["type_identity"][0] == "isolate_recompiles"
        assert any("another module of its class was called" in one.title for one in _told(log))


@pytest.mark.parametrize(
    "place",
    ["return F.linear(input, self.weight)  # nn/modules/linear.py:134", "return torch.rms_norm(input, shape, weight, eps)  # nn/functional.py:3006"],
)
@pytest.mark.parametrize("symbol", ["Eq(s27, {})", "Eq({}, s27)"])
def test_a_layer_s_width_is_no_line_to_change(symbol: str, place: str) -> None:
    """Layers that differ in nothing but their width show no other guard; what fixes the size is torch's own line."""
    log = _sizes(symbol).replace("if n not in self.tables:  # app/table.py:13", place)
    assert _remedies(_told(log)[0])[0] == "isolate_recompiles"


def test_hooks_make_no_other_module() -> None:
    """One module, on whose layers hooks are registered and taken off again."""
    (found,) = _told(_block(1, "len(self._modules['layers']._modules['0']._forward_hooks) != 1"))
    assert "another module" not in found.title and found.cause == "container_length"


def test_an_argument_of_another_type_is_no_other_module() -> None:
    """What is passed, and what a module takes from an argument, is the caller's."""
    log = _block(1, "___check_type_id(mask, 94380354530592), type=<class 'list'>") + "".join(
        _block(n + 1, GUARD.format("x", 1, 8 * n, 8 * n + 8)) for n in range(1, 4)
    )
    told = {one.cause: _remedies(one) for one in _told(log)}
    assert (told["size_mismatch"][0], told["type_identity"][0]) == ("remove_dynamic_false", "stable_arg_structure")


def test_a_condition_on_a_number_is_none_on_sizes() -> None:
    """A float that torch made dynamic, compared; no size has a decimal point, and a number has no dimension to pad."""
    (found,) = _told(_block(1, "sigma > 1.0"))
    assert "a condition on a number" in found.title and "sizes" not in found.consequence
    assert "a relation between sizes" in _told(_block(1, "x.size()[0] > 4"))[0].title
    hit = _hit(8, "recompile_limit", "0/7: {}")
    assert "pad_or_bucket" not in _remedies(_told(hit.format("sigma > 1.0"))[0])
    assert "pad_or_bucket" in _remedies(_told(hit.format("x.size()[0] > 4"))[0])


def test_a_warning_for_half_of_the_limit_says_so() -> None:
    """Each dimension takes its one step, and there is nothing to do for any of them; but the function fills its limit."""
    blocks = [_block(n, GUARD.format(name, 1, 5, 9)) for n, name in enumerate("abc", 1)]
    assert [one.severity for one in _told("".join(blocks[:2]))] == ["info"] * 2
    found = _told("".join(blocks))
    assert {one.severity for one in found} == {"warning"} and all("4 of 8 versions are in use" in one.consequence for one in found)


@pytest.mark.parametrize(("guards", "cause"), [(((0, 4, 1), (0, 1, 6)), "size_mismatch"), (((1, 4, 1), (1, 1, 6)), "size_mismatch")])
def test_the_last_batch_is_smaller(guards: tuple[tuple[int, int, int], ...], cause: str) -> None:
    """Of the first dimension, which is the batch."""
    (found,) = _told("".join(_block(n, GUARD.format("x", *sizes)) for n, sizes in enumerate(guards, 1)))
    assert ("drop_last" in _remedies(found)) is (guards[0][0] == 0) and found.cause == cause


def test_adapters_are_exchanged_in_place() -> None:
    """Tenants come and go: no limit is the number of them, and a log shows no more than the limit allows."""
    blocks = "".join(_block(n, f"self.active_adapter == 'tenant{n}'") for n in range(1, 8))
    hit = _told(blocks + _hit(8, "recompile_limit", "0/7: self.active_adapter == 'tenant8'"))[0]
    assert _remedies(hit)[:2] == ["hotswap_adapter", "recompile_limit_kwarg"]
    assert "at least 9" in (hit.advice[1].caution or "")
    assert _remedies(_told(_block(1, "self.active_adapter == 'a'"))[0])[:2] == ["warmup", "hotswap_adapter"]
    assert "hotswap_adapter" not in _remedies(_told(blocks.replace("self.active_adapter", "task"))[0])


DTYPE = "tensor '{}' dtype mismatch. expected Half, actual Float"
STRIDE = "tensor '{}' stride mismatch at index 0. expected 4096, actual 5120"


@pytest.mark.parametrize(
    ("first", "second", "cause"),
    [
        (DTYPE.format("x"), STRIDE.format("x"), "stride_mismatch"), (STRIDE.format("x"), DTYPE.format("x"), "stride_mismatch"),
        (GUARD.format("L['x']", 0, 3, 4), STRIDE.format("L['x']"), "stride_mismatch"),
        (DTYPE.format("x"), GUARD.format("x", 0, 3, 4), "size_mismatch"),
        (DTYPE.format("x"), STRIDE.format("y"), "dtype_mismatch"), (DTYPE.format("x"), "2 <= x.stride()[0]", "dtype_mismatch"),
        ("tensor 'x' Tensor device index mismatch. Expected 0, actual 1", STRIDE.format("x"), "stride_mismatch"),
    ],
)  # fmt: skip
def test_the_entry_that_came_nearest_decides(first: str, second: str, cause: str) -> None:
    """torch compares dtype, device, rank, sizes, strides (measured): what failed later fitted in all before. It tells nothing of another tensor."""
    block = _block(2, first)
    (found,) = _told(block + block.splitlines()[-1].replace(f"0/1: {first}", f"0/0: {second}") + "\n")
    assert (found.kind, found.cause, found.count) == ("recompile", cause, 1)


def test_a_guard_that_could_not_be_tried_tells_nothing() -> None:
    """Torch 2.8 prints what Python raised there; the entry behind it names the sizes that are no longer equal, and torch the setting (measured)."""
    tied = "hidden.size()[1] == text.size()[1]  # duck sizing added this equality because these variables had the same size 512"
    block = _block(2, "'NoneType' object has no attribute 'size'")
    (found,) = _told(block + block.splitlines()[-1].partition("    - ")[0] + f"    - 0/0: {tied}\n")
    assert found.cause == "symbolic_shape" and _remedies(found)[0] == "duck_shape_off"


OLDEST = "0/0: " + GUARD.format("mask", 2, 4, 1)
POSITION = "L['self'].layers[0].position == {}"


@pytest.mark.parametrize("last", [OLDEST, "0/0: tensor 'L['mask']' rank mismatch. expected 2, actual 3"])
def test_the_oldest_entry_does_not_tell_what_filled_the_others(last: str) -> None:
    """Up to torch 2.7 a limit hit names the guard of entry 0/0 as its last reason, whatever the seven others failed on (measured on 2.6.0)."""
    blocks = [_block(n, POSITION.format(n + 3)) for n in range(1, 8)]
    hit = next(one for one in _told("".join(blocks) + _hit(8, "recompile_limit", last)) if one.kind == "recompile_limit_hit")
    assert "tensor_wrap_scalar" in _remedies(hit) and "pad_or_bucket" not in _remedies(hit)
    alone = next(one for one in _told("".join(blocks[:2]) + _hit(8, "recompile_limit", last)) if one.kind == "recompile_limit_hit")
    assert "tensor_wrap_scalar" not in _remedies(alone)


@pytest.mark.parametrize("function", ["adamw_step", "_compilable_adam_", "ema_update", "_step_parameter_compiled"])
@pytest.mark.parametrize("guard", [GUARD.format("p", 1, 18, 20), "tensor 'p' rank mismatch. expected 1, actual 2"])
def test_nothing_is_padded_that_a_step_writes_into(function: str, guard: str) -> None:
    """The copy would take what belongs into the parameter: training went on and changed nothing (measured). Parameters have finitely many shapes."""
    (hit,) = _told(_hit(8, "recompile_limit", f"0/7: {guard}").replace("'f'", f"'{function}'"))
    assert {"raise_recompile_limit", "recompile_limit_kwarg"} & set(_remedies(hit))
    assert not {"pad_or_bucket", "stable_arg_structure", "mark_dynamic"} & {one.remedy for one in hit.advice}


def test_a_limit_raised_for_another_thread_is_the_cause_of_a_step_s_limit() -> None:
    """Not what the last parameter's shape was."""
    hit = _hit(8, "recompile_limit", "0/7: tensor 'p' rank mismatch. expected 1, actual 2").replace("'f'", "'adamw_step'")
    found = next(one for one in _told("torch._dynamo.config.recompile_limit = 64\n" + hit) if one.kind == "recompile_limit_hit")
    assert _remedies(found)[0] == "set_config_in_every_thread"


def test_a_size_of_one_is_not_marked_dynamic_first() -> None:
    """It has a graph of its own under a mark (measured: 8 recompiles became 7; unbacked none)."""
    (found,) = _told("".join(_block(n, GUARD.format("x", 0, before, after)) for n, (before, after) in enumerate(((52, 61), (1, 48), (0, 1)), 1)))
    assert _remedies(found)[:2] == ["mark_unbacked", "unbacked_sources_env"]


@pytest.mark.parametrize(("since", "line"), [(13, "\"L['x']:0\""), (9, "\"L['x']\"")])
def test_from_2_13_on_a_source_is_named_with_its_dimension(since: int, line: str) -> None:
    """All dimensions of it unbacked, a training step raised (measured)."""
    guard = parse_reason("0/1: 2 <= L['x'].size()[0]")
    told = Story("recompile", guard.cause, "f", "/srv/m.py", 3, guard.text, (guard,), frozenset())
    advice = advise(told, CATALOG, VersionRange((2, since), (2, since + 1)))
    assert [one.apply for one in advice if one.name == "unbacked_sources_env"] == [f"export TORCH_COMPILE_UNBACKED_SOURCES={line}"]


def test_what_is_computed_with_a_float_is_about_the_float() -> None:
    """torch 2.13 prints the expression that the code fixed: 1 - drop_prob is as much a schedule as drop_prob."""
    guard = (
        "(1.0 + ((-1)*self._modules['blocks']._modules['0'].drop.drop_prob)) == 0.96{}  # x.new_empty(1).bernoulli_(keep)  # app/m.py:13 in forward"
    )
    blocks = "".join(_block(n, guard.format(n)) for n in range(1, 5))
    (found,) = _told(blocks)
    assert _remedies(found)[0] == "tensor_wrap_scalar" and found.advice[0].apply.startswith("self.blocks[0].drop.drop_prob = torch.tensor(")


def test_ranks_of_adapters_are_no_matter_of_regions() -> None:
    """The weight lies within each layer (measured: compiled layer by layer the limit stays)."""
    weight = "L['self']._modules['layers']._modules['0']._modules['q']._modules['lora_A']._parameters['weight']"
    guard = f"0/7: tensor '{weight}' size mismatch at index 0. expected 8, actual 16. Guard failed on a parameter"
    (hit,) = _told(_hit(8, "recompile_limit", guard))
    assert _remedies(hit)[:2] == ["force_parameter_static_shapes_false", "hotswap_adapter"] and "regional_compile" not in _remedies(hit)


@pytest.mark.parametrize(
    ("reason", "first", "key"),
    [
        (GUARD.format("input_ids", 0, 8, 16), "remove_dynamic_false", "accumulated_recompile_limit"),
        ("self.scale == 0.0625", "compile_whole_model", "accumulated_recompile_limit"),
    ],
)
def test_all_graphs_of_one_code_are_many_modules_or_buckets(reason: str, first: str, key: str) -> None:
    """256 of them: the function's own limit was raised on purpose (measured: 272 buckets, 300 adapters; no hit with a higher accumulated limit)."""
    (hit,) = _told(_hit(256, "accumulated_recompile_limit", f"0/255: {reason}"))
    assert _remedies(hit)[0] == first and any(f"config.{key} = " in one.apply for one in hit.advice)


@pytest.mark.parametrize("function", ["compute_ema", "ema", "optimize_route"])
def test_an_average_of_prices_is_no_step(function: str) -> None:
    """An indicator of a bot takes windows that grow: no limit is high enough."""
    (hit,) = _told(_hit(8, "recompile_limit", f"0/7: {GUARD.format('prices', 0, 18, 19)}").replace("'f'", f"'{function}'"))
    assert not {"raise_recompile_limit", "recompile_limit_kwarg"} & set(_remedies(hit))


@pytest.mark.parametrize(("tensor", "has_layers"), [("self._modules['0']._parameters['weight']", True), ("X[0]", False)])
def test_what_takes_parameters_is_no_layer(tensor: str, has_layers: bool) -> None:
    """A function of an optimizer, compiled alone: there is nothing to compile by region (measured: the same limit hit)."""
    (hit,) = _told(_hit(8, "recompile_limit", f"0/7: {GUARD.format(tensor, 0, 8, 16)}. Guard failed on a parameter"))
    assert _remedies(hit)[0] == "force_parameter_static_shapes_false" and ("regional_compile" in _remedies(hit)) is has_layers


def test_a_cache_that_hit_the_limit_is_not_padded() -> None:
    """It grows by what each step appends (measured: padded, the tokens were wrong and the limit was hit all the same)."""
    (hit,) = _told(_hit(8, "recompile_limit", "0/7: " + GUARD.format("kwargs['past_key_values'].layers[0].keys", 2, 15, 16)))
    assert _remedies(hit)[:2] == ["static_cache", "remove_dynamic_false"] and "pad_or_bucket" not in _remedies(hit)


KEYS = "tensor 't' dispatch key set mismatch. expected DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), actual DispatchKeySet({})"


@pytest.mark.parametrize(("actual", "forms"), [("CPU, BackendSelect", [""]), ("CPU, BackendSelect, ADInplaceOrView", ["", "no_inference_mode"])])
def test_a_call_under_inference_mode_is_not_cured_by_a_clone(actual: str, forms: list[str]) -> None:
    """torch adds ADInplaceOrView to every tensor but under inference_mode: a tensor made there, and passed outside, has it (measured on 2.8.0)."""
    (found,) = _told(_block(1, KEYS.format(actual)))
    assert [one.form for one in found.advice] == forms
