"""Tests of what is said about numbers, texts, keys and attributes: what a loop, a dict or a global makes of them decides the remedy."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from recompile_watch.core.advice import Advice, advise
from recompile_watch.core.causes import parse_reason
from recompile_watch.core.findings import Finding
from recompile_watch.core.story import Story
from recompile_watch.core.versions import VersionRange
from tests.core.test_advice import CATALOG, GUARD, _block, _hit, _told

FIXED = " (_dynamo/variables/tensor.py:2606 in evaluate_expr)"
LIMIT = "recompile_limit"


def _limit_hit(guards: list[str]) -> str:
    """A recompile for each guard but the last one, which the limit of eight refused."""
    return "".join(_block(n, guard) for n, guard in enumerate(guards, 1)) + _hit(len(guards), LIMIT, f"0/{len(guards) - 1}: {guards[-1]}")


def _told_alike(log: str) -> tuple[Advice, ...]:
    """The advice of the limit's finding; that of the recompiles has the same remedies."""
    hit, recompiles = _told(log)[:2]
    assert (hit.kind, recompiles.kind) == ("recompile_limit_hit", "recompile")
    assert _remedies(hit) == _remedies(recompiles)
    return hit.advice


def _remedies(finding: Finding) -> list[str]:
    return [one.name for one in finding.advice]


def test_a_text_that_keys_a_dict_of_state_is_looked_up_outside() -> None:
    """Each text compiles with its entry and without: eight of them do not fit in a limit of sixteen (measured)."""
    advice = _told_alike(_limit_hit([f"req.sensor == 'b{n}'  # h = self.state.get(req.sensor)  # srv/m.py:38 in forward" for n in range(8)]))
    assert [one.name for one in advice][:2] == ["pass_the_entry", "recompile_limit_kwarg"]
    assert advice[0].apply.startswith("# srv/m.py:38 (h = self.state.get(req.sensor)): look it up where the function is called")
    assert "recompile_limit=24" in advice[1].apply and "at least 18" in (advice[1].caution or "")


def test_a_dict_that_the_code_fills_is_no_list_to_pad() -> None:
    """Where the dict is a local or a closure's, its length fails first (measured)."""
    advice = _told_alike(_limit_hit([f"len(kept) == {n}  # state = kept.get(name)  # srv/m.py:9 in f" for n in range(1, 9)]))
    assert [one.name for one in advice] == ["pass_the_entry", "fill_outside", "exclude_from_compile"]


def test_a_text_that_picks_a_module_needs_a_higher_limit() -> None:
    """A ModuleDict has as many as it was made with."""
    line = "return self._modules[key]  # nn/modules/container.py:555 in __getitem__"
    advice = _told_alike(_limit_hit([f"task == 't{n}'  # {line}" for n in range(8)]))
    assert advice[0].apply == "torch.compile(..., recompile_limit=16)"


def test_a_depth_that_cuts_a_list_of_modules_needs_a_higher_limit() -> None:
    """There are as many as modules; a dynamic number does not help (measured)."""
    line = "return self.__class__(list(self._modules.values())[idx])  # nn/modules/container.py:384 in __getitem__"
    advice = _told_alike(_limit_hit([f"self.depth == {n}  # {line}" for n in range(1, 9)]))
    assert [one.name for one in advice] == ["recompile_limit_kwarg", "raise_recompile_limit", "exclude_from_compile"]


def test_what_is_raised_at_a_limit_has_the_advice_of_the_hit_in_front_of_it() -> None:
    """One failure: the exception shows no reason, and a number that the code fixes becomes dynamic by no setting (measured)."""
    guard = f"i == 7  # a, b = self.sigmas[i], self.sigmas[i + 1]  # srv/m.py:5 in f{FIXED}"
    error = "Traceback (most recent call last):\ntorch._dynamo.exc.FailOnRecompileLimitHit: Hard failure due to fullgraph=True\n"
    raised, hit = _told(_hit(8, LIMIT, f"0/7: {guard}") + error)
    assert (raised.kind, hit.kind) == ("recompile_limit_error", "recompile_limit_hit")
    assert raised.advice == hit.advice and raised.advice[0].name == "pass_derived_value"
    assert "TORCH_COMPILE_DYNAMIC_SOURCES, dynamic=True" in (raised.advice[0].caution or "")


@pytest.mark.parametrize("line", ["for _ in range(n):", "while i < n:"])
@pytest.mark.parametrize("source", ["n", "self.n"])
def test_a_loop_is_written_outside(source: str, line: str) -> None:
    """A loop is unrolled: passed as a tensor or marked as dynamic its number compiles each time (measured)."""
    advice = _told_alike(_limit_hit([f"{source} == {n}  # {line}  # srv/m.py:5 in f{FIXED}" for n in range(2, 10)]))
    assert advice[0].name == "loop_outside" and f"srv/m.py:5 ({line})" in advice[0].apply
    assert not {"tensor_wrap_scalar", "dynamic_sources_env", "allow_unspec_int_on_nn_module", "recompile_limit_kwarg"} & {one.name for one in advice}


def test_a_loop_in_a_closure_may_have_a_limit() -> None:
    """There are as many numbers as functions; the same function at module level compiles as often (measured)."""
    guards = [f"rule.__closure__[1].cell_contents == {n}  # for _ in range(rounds):  # srv/m.py:16 in rule{FIXED}" for n in range(1, 9)]
    advice = _told_alike(_limit_hit(guards))
    assert [one.name for one in advice][:2] == ["loop_outside", "recompile_limit_kwarg"]
    assert "the number dynamic, and srv/m.py:16 (for _ in range(rounds):) fixes it: each number compiles" in _told(_limit_hit(guards))[1].consequence


@pytest.mark.parametrize(
    ("guard", "first"),
    [
        ("f.__closure__[0].cell_contents == 2", "none_first_automatic_dynamic"),  # measured: eleven closures, 1 recompile
        ("f.__closure__[0].cell_contents == 0.5", "none_first_automatic_dynamic"),
        ("f.__defaults__[0] == 0.5", "none_first_automatic_dynamic"),
        ("f.__defaults__[0] == 2", "stable_arg_structure"),  # measured: 7 recompiles and a limit hit
        ("G['f'].__closure__[0].cell_contents == 2", "stable_arg_structure"),
        ("f.__closure__[0].cell_contents == 'm0'", "warmup"),
    ],
)
def test_a_closure_s_number_becomes_dynamic(guard: str, first: str) -> None:
    """As an argument's does, when the function comes with an argument; an integer default and a global's number do not (torch's own rule)."""
    assert _remedies(_told(_block(1, guard))[0])[0] == first


def test_texts_in_closures_need_a_higher_limit() -> None:
    """Passed as an argument a text compiles as often."""
    advice = _told_alike(_limit_hit([f"f.__closure__[0].cell_contents == 'm{n}'" for n in range(8)]))
    assert [one.name for one in advice][:2] == ["recompile_limit_kwarg", "raise_recompile_limit"]


def test_a_counter_of_a_global_object_is_passed() -> None:
    """torch takes a global's integer for a constant; as a tensor it is fixed again where it is an index (measured)."""
    advice = _told_alike(_limit_hit([f"G['s'].i == {n}  # if s.i is None: s.i = 0  # srv/m.py:6 in step" for n in range(1, 9)]))
    assert [one.name for one in advice][:2] == ["pass_as_argument", "dynamic_sources_env"]
    assert advice[0].apply.startswith("# s.i: call f with it, or with the object that holds it")


@pytest.mark.parametrize(("later", "remedies"), [(True, ["accept_none_once"]), (False, ["accept_none_once", "stable_arg_structure"])])
def test_an_attribute_that_begins_as_none(later: bool, remedies: list[str]) -> None:
    """Set before the first call, a counter changes all the same: a scheduler ran into the limit so (measured)."""
    log = _block(1, "self._step_index is None") + (_block(2, "self._step_index == 1") if later else "")
    none = next(one for one in _told(log) if one.cause == "object_identity")
    assert _remedies(none) == remedies
    assert not any("leave it so" in one.apply for one in none.advice)


def test_an_argument_that_is_none_is_no_attribute() -> None:
    """The caller passes it or not."""
    assert _remedies(_told(_block(1, "mask is None"))[0])[0] == "stable_arg_structure"


def test_a_size_beside_one_that_stays_static_is_no_first_step() -> None:
    """dynamic=False holds for all of them: one advice, not two."""
    log = "".join(_block(n, GUARD.format("x", 0, 3 + n, 4 + n)) for n in range(1, 5)) + _block(5, GUARD.format("y", 0, 4, 5))
    told = [one for one in _told(log) if one.cause == "size_mismatch"]
    assert len(told) == 2 and told[0].advice[0] == told[1].advice[0] and told[0].advice[0].name == "remove_dynamic_false"


def test_a_cache_that_stays_static_may_not_be_dynamic() -> None:
    """A cache of its own for each request, under dynamic=False: a mark raises, for other tensors have its size as well (measured)."""
    guards = [GUARD.format("kwargs['past_key_values'].layers[0].keys", 2, 18 + n, 19 + n) for n in range(0, 16, 2)]
    remedies = [one.name for one in _told_alike(_limit_hit(guards))]
    assert remedies[:2] == ["static_cache", "remove_dynamic_false"] and remedies[-1] == "mark_dynamic"


@pytest.mark.parametrize("size", [lambda n: 8 * n, lambda n: 16 << n, lambda n: 7 * n])
def test_multiples_of_eight_are_no_widths_of_layers(size: Callable[[int], int]) -> None:
    """Buckets of tokens and clouds of points under dynamic=False look like layers of several widths; caches of their own do not help (measured)."""
    log = _limit_hit([GUARD.format("ids", 1, size(n), size(n + 1)) for n in range(1, 9)])
    advice = _told_alike(log.replace("function f ", "function forward ").replace("'f'", "'forward'"))
    remedies = [one.name for one in advice]
    assert remedies[:2] == ["remove_dynamic_false", "log_dynamic_shapes"] and not {"isolate_recompiles", "compile_whole_model"} & set(remedies)
    assert "isolate_recompiles" in (advice[1].caution or "")


CODE = "  # {}  # srv/m.py:20 in get"
KEYED = "not ___dict_contains({}, self.bias.cache)" + CODE.format("if n not in self.cache:")
LENGTH = "tensor 'x' size mismatch at index 1. expected {}, actual {}"


def test_a_size_that_is_a_key_of_a_dict_is_looked_up_outside() -> None:
    """What is kept for each length makes the length a constant: no setting makes it dynamic (measured)."""
    log = _limit_hit([KEYED.format(8), LENGTH.format(8, 12), LENGTH.format(12, 16), LENGTH.format(16, 20)])
    for found in _told(log):
        assert _remedies(found)[0] == "pass_the_entry" and "srv/m.py:20 (if n not in self.cache:)" in found.advice[0].apply
    other = _limit_hit([KEYED.format(3), LENGTH.format(8, 12), LENGTH.format(12, 16), LENGTH.format(16, 20)])  # a key that is none of the sizes
    assert "pass_the_entry" not in _remedies(_told(other)[0])


def test_what_python_computes_from_a_number_torch_computes_from_a_tensor() -> None:
    """The tensor alone breaks the graph at math.log, and an expression is no name to write to."""
    code = "  # weight = math.log(1.0 + info.heat)  # srv/m.py:45 in forward (_dynamo/utils.py:4231 in run_node)"
    first = _told_alike(_limit_hit([f"(1.0 + info.heat) == 2.{n}{code}" for n in range(8, 4, -1)]))[0]
    assert first.name == "torch_for_math"
    assert first.apply.startswith("info.heat = torch.tensor(info.heat)  # outside the compiled function; and at srv/m.py:45 (weight = math.log(1.0 +")


def test_a_float_in_a_closure_becomes_a_tensor_there() -> None:
    """Nothing is looked up with it; torch had made it dynamic and could not keep it so."""
    cell = "objective.__closure__[0].cell_contents == 1.{}  # (_dynamo/output_graph.py:3375 in remove_tensorify_specialized_graphargs)"
    assert _told_alike(_limit_hit([cell.format(n) for n in range(4)]))[0].name == "tensor_in_closure"
    assert "tensor_in_closure" not in _remedies(_told(_limit_hit([cell.replace("1.{}", "{}").format(n) for n in range(4)]))[0])


def test_an_entry_at_a_tensor_s_number_is_selected_by_the_tensor() -> None:
    """The number is a tensor already: brackets read it out."""
    code = "  # sigma = self.table[k]  # srv/m.py:40 in step (_dynamo/utils.py:4231 in run_node)"
    first = _told_alike(_limit_hit([f"k.item() == {n}{code}" for n in range(19, 15, -1)]))[0]
    assert first.name == "select_by_tensor" and "at srv/m.py:40 (sigma = self.table[k])" in first.where


def test_a_log_that_begins_in_a_refused_attempt_has_one_hit() -> None:
    """Its head named the function; the hit behind it names it again."""
    log = _limit_hit([f"tag == '{name}'" for name in "abcdefgh"])
    (found,) = _told(log[log.rindex("\n", 0, log.index("- 0/7: tag == 'h'")) + 1 :])
    assert found.title == "f hit the recompile limit (8)"


def test_a_limit_without_a_reason_has_that_of_its_function_s_recompiles() -> None:
    """As torch 2.1 prints a limit that becomes an exception: the reasons stand in front of it."""
    log = "".join(_block(n, f"tag == 'task-{n}'") for n in range(1, 8)) + _hit(8, LIMIT, "").replace("last reason: ", "")
    hit = next(found for found in _told(log) if found.kind == "recompile_limit_hit")
    assert _remedies(hit)[0] == "recompile_limit_kwarg"


def test_ids_have_no_end() -> None:
    """No limit is above the number of orders; of tasks it is."""
    assert _told_alike(_limit_hit([f"tag == 'order-{n}'" for n in (1, 10, 100, 1000)]))[0].name == "compile_tensor_part"
    assert _told_alike(_limit_hit([f"tag == 'task-{n}'" for n in range(1, 9)]))[0].name == "recompile_limit_kwarg"
    assert _told_alike(_limit_hit([f"tag == '{name}'" for name in ("a100", "b200", "c7")]))[0].name == "recompile_limit_kwarg"


def test_the_keys_that_come_and_go_are_all_named() -> None:
    """One of them alone passed always cures nothing (measured)."""
    log = _limit_hit([f"KeyError on batch._tensordict['{key}']" for key in ("goal", "mask", "camera", "lidar", "depth", "pose", "flow", "text")])
    apply = _told_alike(log)[0].apply
    assert apply.startswith("# batch: the same keys in every call, in one order: goal, mask, camera, lidar, depth, pose, flow, text always")
    assert "batch.select(...)" in apply and "KeyError" not in apply


def test_a_dict_with_fewer_keys_is_no_list_to_pad() -> None:
    """Keyword arguments that come and go: their number fails as well as a key of theirs, which is one happening."""
    log = "".join(_block(n, guard) for n, guard in enumerate(["not kw", "KeyError on kw['a']", "KeyError on kw['b']", "len(kw) == 1"], 1))
    same = "# kw: the same keys in every call, in one order: a, b always (what is missing filled with what the code ignores, by a mask or "
    assert {one.advice[0].apply for one in _told(log)} == {f"{same}ignore_index: None is one more variant) or never"}
    assert _remedies(_told(_block(1, "len(xs) == 1") + _block(2, "KeyError on kw['b']"))[0])[0] == "stable_arg_structure"
    looped = _block(1, "len(batch) != 2") + _block(2, "list(dict.keys(batch))[1] == 'topic'")
    assert {_remedies(one)[0] for one in _told(looped)} == {"drop_unused_argument"}


def test_all_findings_of_a_limit_count_its_variants() -> None:
    """A key that is there or not has two values; the function that hit a limit of eight has nine variants all the same."""
    log = _limit_hit([f"{'not ' * (n % 2)}___dict_contains('mask', batch)" for n in range(1, 9)])
    cautions = [one.caution or "" for finding in _told(log) for one in finding.advice if one.name == "recompile_limit_kwarg"]
    assert len(cautions) > 1 and all("at least 9," in one for one in cautions)


def test_keys_that_are_tuples_are_kinds_of_edges() -> None:
    """Measured with HeteroConv: an empty tensor for a kind that is not there hits the limit just so, and changes the results."""
    guards = ("not ___dict_contains(('card', 'uses', 'device'), edges)", "KeyError on edges[('firm', 'has', 'shop')]")
    for guard in guards:
        advice = _told(_block(1, guard) + _block(2, guard.replace("card", "user").replace("firm", "club")))[0].advice
        assert [one.name for one in advice] == ["compile_per_key", "recompile_limit_kwarg", "raise_recompile_limit"]
        assert "conv.compile()" in advice[0].apply and advice[0].apply.endswith(f"({guard.replace('card', 'user').replace('firm', 'club')})")
    assert _remedies(_told(_block(1, "not ___dict_contains('mask', batch)"))[0])[0] == "drop_unused_argument"


def test_keys_that_are_data_stay_outside() -> None:
    """A dict with one symbol in each call; its values alone compile once (measured)."""
    advice = _told_alike(_limit_hit([f"list(dict.keys(batch))[0] == 'S{n}'" for n in range(8)]))
    assert "list(batch.values())" in advice[0].apply and "S7" not in advice[0].apply


def test_a_member_of_an_enum_is_one_object() -> None:
    """Twelve members under a limit of 16: 11 recompiles and no limit hit (measured); there is nothing to make only once."""
    guards = [f"___check_obj_id(kind, 14{n}), type=<class '__main__.Kind'>  # if kind is Kind.K3: return x + 1  # srv/m.py:6 in f" for n in range(8)]
    assert _told_alike(_limit_hit(guards))[0].apply == "torch.compile(..., recompile_limit=16)"
    assert _remedies(_told(_block(1, guards[0]))[0])[0] == "warmup"


def test_nobody_writes_into_a_library_s_inner_object() -> None:
    """A counter of lightning's loops, reached through the module's trainer; the module's own is the program's."""
    inner = _told(_block(1, "self._trainer.fit_loop.total.completed == 1"))[0]
    own = _told(_block(1, "self._count == 1") + _block(2, "self._count == 2") + _block(3, "self._count == 3"))[0]
    assert "tensor_wrap_scalar" not in _remedies(inner) and "tensor_wrap_scalar" in _remedies(own)


def test_the_limit_s_advice_is_about_the_guard_that_was_refused() -> None:
    """The entry before it was made."""
    guard = "tensor 'self._modules['blocks']._modules['{}']._parameters['bias']' requires_grad mismatch. expected requires_grad=0"
    log = _limit_hit([guard.format(n) for n in range(9, 1, -1)]).replace("function f ", "function forward ").replace("'f'", "'forward'")
    hit = _told(log)[0]
    (line,) = [one.apply for one in hit.advice if one.name == "keep_requires_grad_consistent"]
    assert line.startswith("model.blocks[2].bias.requires_grad_(")


def test_a_text_that_each_of_several_modules_chooses_by() -> None:
    """Four operations in three layers are 64 variants of the whole, four of a layer (measured: a limit of 16 was hit; layer by layer none)."""
    layer = "self._modules['layers']._modules['{}'].active == '{}'"
    guards = [layer.format(n % 3, ("conv", "skip", "dil", "pool")[n % 4]) for n in range(8)]
    advice = _told_alike(_limit_hit(guards))
    assert [one.name for one in advice] == ["regional_compile", "stance_eager_on_recompile"]
    own_name = [layer.format(n, f"blocks.{n}") for n in range(8)]  # each layer has one: nothing multiplies
    assert "recompile_limit_kwarg" in [one.name for one in _told_alike(_limit_hit(own_name))]


def test_a_class_that_is_made_in_each_call() -> None:
    """One name under many ids (measured: defined once, 7 recompiles and a limit hit became none); two types that come in turns are none."""
    made = [f"___check_type_id(row, {94518206880192 + 64 * n}), type=<class '__main__.Row'>" for n in range(8)]
    assert [one.name for one in _told_alike(_limit_hit(made))] == ["define_class_once", "stable_arg_structure"]
    turns = [f"___check_type_id(row, {7 + n % 2}), type=<class '__main__.{'AB'[n % 2]}'>" for n in range(8)]
    assert _told_alike(_limit_hit(turns))[0].name == "stable_arg_structure"


def test_a_parameter_of_many_sizes_may_be_of_many_models() -> None:
    """Measured: a search that builds a model of another width each time, 7 recompiles and a limit hit became none with a cache for each."""
    guards = [
        f"tensor 'self._modules['blocks']._modules['0']._parameters['bias']' size mismatch at index 0. expected {n}, actual {n + 8}"
        for n in range(8, 72, 8)
    ]
    assert "isolate_recompiles" in [one.name for one in _told_alike(_limit_hit(guards))][:2]


def test_a_tensor_of_a_parameter_dict_is_passed() -> None:
    """Measured: with the tensors as arguments 7 recompiles and a limit hit became none; a module of a ModuleDict is a variant of its own."""
    behind = "station == 's{}'  # return {}  # nn/modules/container.py:852 in __getitem__"
    tensors = _told_alike(_limit_hit([behind.format(n, "getattr(self, attr)") for n in range(8)]))
    assert tensors[0].name == "pass_the_entry" and tensors[0].apply.startswith("# the code of ")
    modules = _told_alike(_limit_hit([behind.format(n, "self._modules[key]") for n in range(8)]))
    assert modules[0].name == "recompile_limit_kwarg"


def test_a_counter_of_a_module_is_kept_in_a_tensor() -> None:
    """Measured: as a dynamic number, taken modulo, it made inductor raise; as a tensor no limit was hit. One that others set may be dynamic."""
    hint = "(HINT: torch.compile considers integer attributes of the nn.Module to be static.)"
    counter = [f"self.served == {n}  # self.served += 1  # srv/m.py:33 in forward {hint}" for n in range(8)]
    assert _told_alike(_limit_hit(counter))[0].name == "tensor_wrap_scalar"
    other = [f"self.served == {n}  # y = x * self.served  # srv/m.py:33 in forward {hint}" for n in range(8)]
    assert _told_alike(_limit_hit(other))[0].name == "allow_unspec_int_on_nn_module"


def test_another_function_is_called_outside() -> None:
    """Measured: a new partial in every call costs nothing, another function inside of it one graph; called outside there is no guard."""
    (found,) = _told(_block(1, "___check_obj_id(kernel.func.__code__, 139760648211312), type=<class 'code'>"))
    assert found.advice[0].apply.startswith("# kernel: call it outside of the compiled code") and "Each function that is passed" in found.consequence


def test_a_text_of_many_words_in_a_global_is_no_variant() -> None:
    """A progress bar's: no limit is high enough; behind a break the break comes first (measured: without it there was no guard)."""
    log = "".join(_block(n, f"G['STATUS']['text'] == 'len {n}.3 best 4.6'") for n in range(1, 8))
    (found,) = _told(log)
    assert _remedies(found)[0] == "compile_tensor_part" and "raise_recompile_limit" not in _remedies(found)
    (resumed,) = _told(log.replace("function f in", "function torch_dynamo_resume_in_f_at_3 in"))
    assert _remedies(resumed)[0] == "remove_graph_break" and "raise_recompile_limit" not in _remedies(resumed)


def test_of_a_set_the_code_asks_for_one_member() -> None:
    """Measured: torch guards the whole set, three tags of which one counts filled the limit; no key is missing."""
    (found,) = _told(_block(1, "not set.__contains__(b.tags, 'aromatic')"))
    assert found.advice[0].apply.startswith("# b.tags: pass what the code asks of it (a flag, a tensor, a mask)")


def test_integers_and_floats_are_not_cast_alone() -> None:
    """Measured: a model that scales bytes took 0 to 255 for 0 to 1; two floats of one model are another matter."""
    (mixed,) = _told(_block(1, "tensor 'img' dtype mismatch. expected Byte, actual Half"))
    assert _remedies(mixed) == ["one_form_outside", "keep_dtype_consistent"]
    (floats,) = _told(_block(1, "tensor 'img' dtype mismatch. expected Float, actual Half"))
    assert _remedies(floats) == ["keep_dtype_consistent", "warmup"]


HOOK = "self._modules['layer1']._forward_hooks[list(self._modules['layer1']._forward_hooks.keys())[0]].__self__.features"
RATE = "___as_tensor(self._modules['drop_path'].drop_prob).item()"
RATE_OF_LAYER = "___as_tensor(self._modules['blocks']._modules['1']._modules['drop_path'].drop_prob).item()"


@pytest.mark.parametrize(
    ("guards", "function", "first", "words"),
    [
        ([f"___stack0 == {n}.848" for n in range(8)], "torch_dynamo_resume_in_f_at_4", "keep_the_tensor", "no .item(), float() or int() there"),
        ([f"{RATE} == 0.0{n}81" for n in range(8)], "f", "recompile_limit_kwarg", "recompile_limit=16"),
        ([f"{RATE_OF_LAYER} == 0.0{n}" for n in range(8)], "f", "tensor_wrap_scalar", "blocks[1].drop_path.drop_prob = torch.tensor("),
        ([f"len({HOOK}) == {2 * n}" for n in range(1, 9)], "f", "empty_before_call", "features.clear()"),
        ([f"len(self._modules['pos'].cache) == {n}" for n in range(8)], "f", "fill_outside", "make it in each call"),
        ([f"len(self.kv_cache) == {n}" for n in range(8)], "f", "static_cache", "index_copy_"),
        ([f"Cache line invalidated because L['x{n}'] got deallocated" for n in range(8)], "f", "stable_arg_structure", "keep the compiled object"),
        (["Cache line invalidated because L['self'] got deallocated"] * 8, "f", "compile_once", "torch.compile("),
        (["not G['SEEN']  # SEEN[x.data_ptr()] = 1  # m.py:5 in f", "x == 2"], "f", "fill_outside", "# SEEN: "),
        (
            ["((7 + (-1)*(x.size()[1] % 7)) % 7) > 0", "((7 + (-1)*(x.size()[2] % 7)) % 7) <= 0"],
            "f",
            "pad_to_multiple",
            "by -x.size(1) % 7 in dimension 1, by",
        ),
    ],
)
def test_what_a_value_is_kept_in_decides(guards: list[str], function: str, first: str, words: str) -> None:
    """What was said of them before had no effect, was no Python, or was nothing at all (carried out on 2.4.1 to 2.9.1)."""
    log = _limit_hit(guards) if len(guards) > 2 else "".join(_block(n, guard) for n, guard in enumerate(guards, 1))
    told = _told(log.replace("function f in", f"function {function} in").replace("function: 'f'", f"function: '{function}'"))
    advice = told[0].advice[0]
    assert advice.name == first and words in advice.apply
    assert "another module" not in repr(told)


def test_an_attribute_that_torch_reads_through_a_tensor_has_the_name_that_the_program_gives_it() -> None:
    guards = [f"___as_tensor(self._modules['norm'].eps).item() == 0.0{n}81" for n in range(8)]
    assert _told_alike(_limit_hit(guards))[0].apply.startswith("self.norm.eps = torch.tensor(self.norm.eps)")


def test_a_number_that_an_operator_takes_is_rounded_up() -> None:
    """A longest length: measured with an operator of the program's own, 7 recompiles and a limit hit became 1 recompile."""
    guard = "meta.max_q == {}  # o = torch.ops.mine.fwd(q, meta.max_q)  # app/m.py:28 in forward (_ops.py:1279 in __call__)"
    (found,) = _told("".join(_block(n, guard.format(90 + 7 * n)) for n in range(1, 8)))
    assert [one.apply.partition("  #")[0] for one in found.advice if one.name == "bucket_the_number"] == [
        "meta.max_q = 1 << (meta.max_q - 1).bit_length()"
    ]


@pytest.mark.parametrize(("since", "upgrade"), [(6, True), (9, False)])
def test_a_part_s_own_object_is_no_matter_of_torch_2_8(since: int, upgrade: bool) -> None:
    """Each block's own attention processor: 7 recompiles and a limit hit on 2.6.0, none on 2.8.0 and 2.13.0 (measured)."""
    guard = parse_reason("0/0: ___check_obj_id(L['self']._modules['attn'].processor, 140174468058192)")
    told = Story("recompile_limit_hit", guard.cause, "forward", "/srv/m.py", 3, guard.text, (guard,), frozenset())
    names = [one.name for one in advise(told, CATALOG, VersionRange((2, since), (2, since + 1)))]
    assert names[0] == "stable_arg_structure" and ("upgrade_torch" in names) is upgrade


def test_a_model_that_changes_its_dtype_is_warmed_up_as_it_runs() -> None:
    """A VAE that is upcast to decode: its input cast back raised (measured)."""
    (found,) = _told(_block(1, "tensor 'L['z']' dtype mismatch. expected BFloat16, actual Float"))
    assert [one.name for one in found.advice] == ["keep_dtype_consistent", "warmup"]
