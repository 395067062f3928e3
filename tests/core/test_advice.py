"""Tests of `recompile_watch.core.advice` and of the remedies that ship: the right one first, exact, for the version at hand."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from recompile_watch.config import load_catalog
from recompile_watch.core.advice import MAKERS, Advice, advise
from recompile_watch.core.analysis import Analysis, Facts, SourceFacts
from recompile_watch.core.causes import parse_reason
from recompile_watch.core.errors import RuleError
from recompile_watch.core.findings import Finding
from recompile_watch.core.guard_lines import code_name, rooted
from recompile_watch.core.patterns import patterns_of
from recompile_watch.core.remedies import PATTERNS
from recompile_watch.core.remedy_tables import PLACEHOLDERS, parse_tables
from recompile_watch.core.story import Story
from recompile_watch.core.versions import ANY_VERSION, VersionRange, exactly
from recompile_watch.core.wording import CAUSES
from tests.conftest import ROOT, engine_events, rules

CATALOG = load_catalog()
LAYERS = [f"6/{n}: kv_cache._current_idx[{n}] == 0" for n in range(8)]
NEVER_RAISE = (
    "size_mismatch",
    "size_zero_one",
    "int_value",
    "float_value",
    "kv_cache_index",
    "container_length",
    "stride_mismatch",
    "symbolic_shape",
)
RAISES = {"raise_recompile_limit", "recompile_limit_kwarg"}


def story(*guards: str, kind: str = "recompile_limit_hit", function: str = "f", worst_process: int = 7, **more: object) -> Story:
    """What a log with these guards shows."""
    reasons = tuple(parse_reason(guard, function) for guard in guards)
    patterns = patterns_of(reasons, function=function, worst_process=worst_process, phase="unknown")
    given = {"cause": reasons[-1].cause if reasons else None, "reason": reasons[-1].text if reasons else "", "patterns": patterns, **more}
    return Story(kind=kind, function=function, file="/srv/m.py", line_no=9, guards=reasons, **given)  # type: ignore[arg-type]


def advice(*guards: str, torch: VersionRange = ANY_VERSION, **more: object) -> dict[str, Advice]:
    """The advice by key, in order."""
    return {one.name: one for one in advise(story(*guards, **more), CATALOG, torch)}  # type: ignore[arg-type]


def findings(path: Path, torch: str | None = None) -> list[Finding]:
    """The findings of a real log."""
    analysis = Analysis(rules())
    for event in engine_events([path.read_bytes()], str(path)):
        analysis.add(event)
    return list(analysis.report(Facts((SourceFacts(str(path)),), torch_version=torch), CATALOG).findings)


def test_advice_in_the_versions_between_those_that_were_run() -> None:
    """torch's source has the stances from 2.6 on, patterns of sources from 2.8 on, and the limit as an argument from 2.12 on."""

    def at(minor: int, guard: str, **more: object) -> dict[str, Advice]:
        return advice(guard, torch=VersionRange((2, minor), (2, minor + 1)), **more)

    assert [minor for minor in (5, 6, 7) if "stance_eager_on_recompile" in at(minor, "6/7: x.size()[0] < 10")] == [6, 7]
    assert [minor for minor in (11, 12, 13) if "recompile_limit_kwarg" in at(minor, "6/7: name == 'q_proj'")] == [12, 13]
    layers = ("6/0: cache._idx[0] == 0", "6/1: cache._idx[1] == 0", "6/2: cache._idx[2] == 0")
    told = {minor: advice(*layers, torch=VersionRange((2, minor), (2, minor + 1)))["dynamic_sources_env"].apply for minor in (7, 8)}
    assert r"\[.*\]" not in told[7] and r"\[.*\]" in told[8]
    floats = [minor for minor in (5, 6) if "none_first_automatic_dynamic" in at(minor, "0/0: s == 0.5", kind="recompile", worst_process=1)]
    assert floats == [6]


def test_every_cause_has_advice() -> None:
    """Whatever class a guard failure gets, something fits."""
    guard = parse_reason("0/0: tensor 'x' stride mismatch at index 0. expected 6, actual 1")
    stories = [Story("recompile", cause, "f", "/m.py", 1, guard.text, (guard,), frozenset()) for cause in [*CAUSES, "other"]]
    assert [one.cause for one in stories if not advise(one, CATALOG, ANY_VERSION)] == []


@pytest.mark.parametrize("cause", NEVER_RAISE)
@pytest.mark.parametrize("kind", ["recompile", "recompile_limit_hit", "recompile_limit_error"])
@pytest.mark.parametrize("pattern", ["per_layer_index", "growing_value", "resumed_frame", "late", "duck_sizing"])
def test_the_limit_is_never_raised_for_what_has_no_end(cause: str, kind: str, pattern: str) -> None:
    """Sizes, numbers and steps have no last value: a higher limit only compiles longer."""
    found = advise(Story(kind, cause, "f", "/m.py", 1, "x == 1", (), frozenset({pattern})), CATALOG, exactly((2, 13)))
    assert not RAISES & {one.name for one in found}


def test_one_setting_does_not_cure_many_layers() -> None:
    """allow_unspec_int_on_nn_module helps one attribute, measured; for one index of each layer it changes nothing."""
    assert "allow_unspec_int_on_nn_module" not in advice(*LAYERS)
    assert next(iter(advice("0/5: self._modules['rotary'].seq_len_cached == 69", function="decode"))) == "allow_unspec_int_on_nn_module"


def test_a_step_mark_never_stands_alone() -> None:
    """mark_step_begin alone failed in public threads: the clone comes first. Where only backward passes are pending it is torch's own advice."""
    for case in CATALOG.cases:
        if "mark_step_begin" in case.remedies and "cudagraph_pending_backward_warning" not in case.kinds:
            assert case.remedies.index("clone_outputs") < case.remedies.index("mark_step_begin")


def test_modes_are_no_cure_for_recompiles() -> None:
    """Counts were the same in every mode."""
    for case in CATALOG.cases:
        if case.causes and not case.kinds & {"cudagraph_skip", "cudagraph_overwritten_error", "forecast_failure"}:
            assert not {"change_compile_mode", "mode_without_cudagraphs"} & set(case.remedies), case.id


def test_dynamic_sources_by_version() -> None:
    """One expression for all layers where torch reads such (2.9), the whole list before (2.7), nothing where it reads neither."""
    pattern = advice(*LAYERS, torch=exactly((2, 13)))["dynamic_sources_env"].apply
    assert pattern == "export TORCH_COMPILE_DYNAMIC_SOURCES=\"L\\['kv_cache'\\]\\._current_idx\\[.*\\]\""
    expression = pattern.partition('"')[2].rstrip('"')
    assert all(re.match(expression, f"L['kv_cache']._current_idx[{n}]") for n in range(12))
    listed = advice(*LAYERS, torch=exactly((2, 7)))["dynamic_sources_env"].apply
    assert listed.count("L['kv_cache']._current_idx[") == 8 and "[7]" in listed
    assert "dynamic_sources_env" not in advice(*LAYERS, torch=exactly((2, 5)))
    assert advice(*LAYERS)["dynamic_sources_env"].apply == listed  # version unknown: what works in most


def test_marks_name_tensor_and_dimension() -> None:
    """The line to paste is made of the guards: each tensor with its dimension."""
    guards = [
        f"0/{n}: tensor '{name}' size mismatch at index {dim}. expected 8, actual {9 + n}" for n, (name, dim) in enumerate([("q", 0), ("k", 1)] * 2)
    ]
    assert advice(*guards)["mark_dynamic"].apply == "torch._dynamo.mark_dynamic(q, 0); torch._dynamo.mark_dynamic(k, 1)"


@pytest.mark.parametrize(
    ("printed", "wanted"),
    [
        ("kv_cache._current_idx[7]", "L['kv_cache']._current_idx[7]"),
        ("L['x']", "L['x']"),
        ("G['SCALE']", "G['SCALE']"),
        ("x", "L['x']"),
        ("self._modules['a'].n", "L['self']._modules['a'].n"),
        ('x"; rm -rf ~; "', None),
        ("x$(reboot)", None),
        ("x[`id`]", None),
        ("len(xs)", None),
    ],
)
def test_sources_for_the_environment(printed: str, wanted: str | None) -> None:
    """The root local is wrapped; what is no plain source never reaches a line that somebody pastes into a shell."""
    assert rooted(printed) == wanted


def test_names_in_code() -> None:
    """Sources as Python code."""
    assert code_name("L['self']._modules['layers']._modules['3']._parameters['weight']") == "self.layers[3].weight"
    assert code_name("__import__('os').system('x')") is None


def test_limits_of_other_threads() -> None:
    """The default limit beside a raised one: from torch 2.12 on each thread has its own."""
    guards = ["0/7: name == 'a'"]
    found = advice(*guards, patterns=frozenset({"limit_raised_elsewhere"}), limits=frozenset({8, 64}), torch=exactly((2, 13)))
    assert next(iter(found)) == "set_config_in_every_thread" and "64" in found["set_config_in_every_thread"].apply


@pytest.mark.parametrize(
    ("name", "function", "first"),
    [
        ("toto-kv-cache", "positional_embedding", "exclude_from_compile"),
        ("kronos-rotary-length", "decode_s1", "allow_unspec_int_on_nn_module"),
        ("bot-2025-10-30", "positional_embedding", "exclude_from_compile"),
    ],
)
def test_the_first_remedy_of_real_limit_hits_is_one_that_was_measured_to_work(name: str, function: str, first: str) -> None:
    """31 recompiles and a limit hit became 3 and none (Toto), 8 and a limit hit became 3 (Kronos)."""
    hit = next(f for f in findings(ROOT / f"sample_logs/{name}.log") if f.kind == "recompile_limit_hit" and f.function == function)
    assert hit.advice[0].name == first
    # Of an attribute of each layer the log names the first that failed: with all of them named there were more recompiles, not less (measured).
    assert ("dynamic_sources_env" in {one.name for one in hit.advice}) is (name != "kronos-rotary-length")


def test_the_log_itself_tells_old_from_new() -> None:
    """A log that says cache_size_limit is older than 2.7: nothing newer is advised."""
    hit = next(f for f in findings(ROOT / "sample_logs/sizes-torch-2.5.log") if f.kind == "recompile_limit_hit")
    assert [one.name for one in hit.advice] == ["remove_dynamic_false", "log_dynamic_shapes", "mark_dynamic", "pad_or_bucket"]


def test_a_model_is_switched_off_by_its_own_switch() -> None:
    """The bot's Kronos failure names what its wrapper reads."""
    failed = next(f for f in findings(ROOT / "sample_logs/bot-2025-10-30.log") if f.kind == "forecast_failure")
    assert {one.name: one.apply for one in failed.advice}["disable_compile_for_model"] == "unset KRONOS_COMPILE MARKETSIM_KRONOS_COMPILE"


REMEDY = """
[[remedy]]
key = "k"
title = "t"
kind = "env"
apply = "export X={sources}"
where = "w"
expect = "e"
torch = ">=2.7"
verified = "v"
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "not valid TOML"),
        ("[[cure]]\nkey = 'x'", "unknown table 'cure'"),
        (REMEDY.replace("verified", "proof"), "key 'verified' is missing"),
        (REMEDY.replace("{sources}", "{secrets}"), "unknown placeholder '{secrets}'"),
        (REMEDY.replace(">=2.7", "new"), "write a range"),
        (REMEDY + "settings = ['TORCHDYNAMO_RECOMPILE_LIMIT']", "stands in no table of settings"),
        (REMEDY + "settings = ['S']\n[[setting]]\nname = 'S'\nkind = 'env'\nsince = '2.9'", "exists from torch 2.9 on only"),
        ("[[case]]\nid = 'c'\nremedies = ['nothing']", "unknown remedy 'nothing'"),
        ("[[case]]\nid = 'c'\nremedies = []\npatterns = ['moon']", "unknown pattern 'moon'"),
        ("[[case]]\nid = 'c'\nremedies = []\nreason = '('", "RE2 cannot use it"),
    ],
)
def test_mistakes_in_a_catalog(text: str, words: str) -> None:
    """Each mistake names the entry and the key."""
    with pytest.raises(RuleError) as caught:
        parse_tables([("mine.toml", text)])
    assert words in str(caught.value)


def test_no_remedy_without_proof_or_source() -> None:
    """What is said to work says how that is known; what it sets exists in its versions (parse_tables checks it)."""
    assert all(len(remedy.verified) > 10 for remedy in CATALOG.remedies)
    names = {name for remedy in CATALOG.remedies for name in re.findall(r"\bexport (\w+)=", remedy.apply)}
    wrappers = {name for _, setting in CATALOG.models.settings() for name in setting.names}
    assert names <= set(CATALOG.settings) | wrappers | {"USER", "LD_PRELOAD"}  # the system's own, which Python and its loader read
    assert not names & set(CATALOG.ineffective)


def test_settings_that_no_torch_reads_are_findings() -> None:
    """The rule knows exactly the names of the table, and the advice says what to do instead."""
    rule = next(rule for rule in rules().rules if rule.id == "torch.ineffective_setting")
    assert {literal.decode() for literal in rule.literals} == set(CATALOG.ineffective)
    analysis = Analysis(rules())
    for event in engine_events([b"+ export TORCHDYNAMO_RECOMPILE_LIMIT=64\n"]):
        analysis.add(event)
    [finding] = analysis.report(Facts((SourceFacts("bot.log"),)), CATALOG).findings
    [only] = finding.advice
    assert (finding.severity, only.name, only.apply) == ("warning", "remove_ineffective_setting", "unset TORCHDYNAMO_RECOMPILE_LIMIT")
    assert "No environment variable moves the recompile limit" in (only.caution or "")


def _started(*processes: str, shape: str = "size mismatch at index 0. expected 8, actual 9") -> list[str]:
    """The remedies for a log of as many starts of a program, each of which learns once that a size changes."""
    lines = ["[0/1] [__recompiles] Recompiling function f in /srv/m.py:9", "[0/1] [__recompiles]     triggered by the following guard failure(s):",
             f"[0/1] [__recompiles]     - 0/0: tensor 'x' {shape}"]  # fmt: skip
    text = "".join(f"{process} torch/_dynamo/guards.py:5396] {line}\n" for process in processes for line in lines)
    analysis = Analysis(rules())
    for event in engine_events([text.encode()], "bot.log"):
        analysis.add(event)
    [finding] = analysis.report(Facts((SourceFacts("bot.log"),), torch_version="2.13.0"), CATALOG).findings
    return [one.name for one in finding.advice]


def test_what_each_start_learns_anew_may_be_kept() -> None:
    """A job id where a program was started again; not for one start, not for the ranks of one, not for what never becomes dynamic."""
    first, second = "V1120 10:32:48.195000 7135", "V1120 11:32:48.195000 7999"
    assert _started(first) == ["none_first_automatic_dynamic"]
    assert _started(first, second) == ["none_first_automatic_dynamic", "pgo_job_id"]
    assert _started(f"[rank0]:{first}", f"[rank1]:{second}") == ["none_first_automatic_dynamic"]
    assert "pgo_job_id" not in _started(first, second, shape="dtype mismatch. expected Float, actual Double")
    assert "pgo_job_id" not in _started(first, first.replace("48.195", "48.196"), second)


def test_every_remedy_is_in_the_documentation() -> None:
    """docs/remedies.md says of each how it was proven, or how else it is known."""
    text = (ROOT / "docs/remedies.md").read_text()
    assert [remedy.key for remedy in CATALOG.remedies if f"| `{remedy.key}`" not in text] == []


def test_each_case_has_a_name_of_its_own() -> None:
    """By which a review names it."""
    assert [name for name, times in Counter(case.id for case in CATALOG.cases).items() if times > 1] == []


def test_every_pattern_is_in_the_documentation() -> None:
    """Of rules of the user's own, which may ask for any."""
    text = (ROOT / "docs/rules.md").read_text()
    assert [name for name, words in PATTERNS.items() if f"| `{name}` | {words} |" not in text] == []


def test_every_placeholder_is_made() -> None:
    """What a remedy may name, the log can fill in."""
    assert set(MAKERS) == PLACEHOLDERS


def test_a_lone_surrogate_breaks_no_search() -> None:
    """A JSON log can hold one, in a guard as anywhere; the patterns of the cases still look at the text around it."""
    found = advise(Story("recompile", "object_identity", "\ud800f", "/m.py", 1, "mask\ud800 is None", (), frozenset()), CATALOG, ANY_VERSION)
    assert [one.name for one in found] == ["stable_arg_structure", "warmup"]


@pytest.mark.parametrize(
    ("kind", "cause", "said", "first"),
    [
        ("compile_error", None, "ValueError: `dynamic` and `dynamic_shapes` cannot both be set. `dynamic_shapes` controls", "one_shape_argument"),
        ("recompile", "other", "_dynamo_dynamic_range mismatch: expected {_DimRange(dim=0, min=2, max=8)}", "mark_alike"),
        ("recompile", "other", "_has_dynamo_dim_marking is present on runtime tensor but was absent at compile time", "mark_alike"),
        ("recompile", "other", "_dynamo_unbacked_indices not a subset: runtime {1} is not a subset of compiled {0}", "mark_alike"),
        ("graph_break", None, "Unsupported function call (delayed): Dynamo does not support RNN, GRU, or LSTM", "allow_rnn"),
        ("graph_break", None, "Call to a time function: time.perf_counter", "exclude_from_compile"),
        ("compile_error", None, "TypeError: compile() got an unexpected keyword argument 'shapes_spec'", "setting_of_version"),
    ],
)
def test_what_torch_2_14_and_later_say(kind: str, cause: str | None, said: str, first: str) -> None:
    """Messages of torch after 2.13 have the advice of those that they came from, or their own."""
    found = advise(Story(kind, cause, "f", "/m.py", 1, said, (), frozenset()), CATALOG, ANY_VERSION)
    assert found[0].name == first


KEYS = "tensor 'x' dispatch key set mismatch. expected DispatchKeySet({}), actual DispatchKeySet({})"
TENSOR = "expected type of '{}' to be a tensor type, ' but found <class '{}'>"
NAMED_TENSOR = "expected type of '{}' to be <class 'torch.Tensor'>, but found <class '{}'>"  # torch 2.14 and later
CPU, CUDA = "CPU, BackendSelect, ADInplaceOrView, AutogradCPU", "CUDA, BackendSelect, ADInplaceOrView, AutogradCUDA"


@pytest.mark.parametrize(
    ("guard", "more", "first", "text"),
    [
        ("0/0: " + KEYS.format(CPU, CUDA), {}, "single_device", "x = x.to(device"),
        ("0/0: " + KEYS.format(CUDA, f"{CUDA}, AutocastCUDA"), {}, "keep_global_state_consistent", "torch.autocast"),
        ("0/0: " + KEYS.format(CUDA, f"Conjugate, {CUDA}"), {}, "resolve_lazy_view", "x.resolve_conj()"),
        ("0/0: " + KEYS.format(CPU, "CPU, BackendSelect"), {}, "keep_grad_mode_consistent", "torch.no_grad()"),
        ("0/0: tensor 'x' dtype mismatch. expected Half, actual Float", {}, "keep_dtype_consistent", "x = x.to(torch.float16)"),
        ("0/0: G['CONFIG']['impl'] == 'eager'", {}, "recompile_limit_kwarg", "recompile_limit=16"),
        ("0/0: G['USE_FLASH'] == True", {"kind": "recompile"}, "warmup", "for inputs"),
        ("0/0: G['SCALE'] == 3", {}, "tensor_wrap_scalar", "SCALE = torch.tensor(SCALE)"),
        ("0/0: adapter_name == 'de'", {}, "recompile_limit_kwarg", "recompile_limit=16"),
        ("0/0: layer_name == 'model.layers.0.self_attn'", {}, "remove_per_layer_attribute", "layer_name"),
        ("0/0: key == 'layers.3.attn'", {}, "remove_per_layer_attribute", "key"),
        ("0/0: len(batch) != 2", {"kind": "recompile"}, "stable_arg_structure", "# batch: one stacked tensor with a mask"),
        ("0/0: Duplicate tensors found: [\"query\", \"key\"]", {}, "clone_inputs", "key = key.clone()"),
        ("0/0: L['y']should not alias to anything, but is aliased", {}, "clone_inputs", "y = y.clone()"),
        ("0/0: x.size()[1] == x.size()[0]", {"kind": "recompile"}, "warmup", "distinct sizes"),
        ("0/0: " + TENSOR.format("o.param_groups[0]['lr']", "float"), {"kind": "recompile"}, "lr_tensor", "group['lr'] = torch.tensor(group['lr'])"),
        ("0/0: " + TENSOR.format("scale", "int"), {"kind": "recompile"}, "tensor_wrap_scalar", "scale = torch.tensor(scale)"),
        ("0/0: " + NAMED_TENSOR.format("scale", "int"), {"kind": "recompile"}, "tensor_wrap_scalar", "scale = torch.tensor(scale)"),
        ("0/0: " + NAMED_TENSOR.format("mask", "NoneType"), {"kind": "recompile"}, "stable_arg_structure", "# mask: pass a Tensor"),
        ("0/0: " + TENSOR.format("mask", "NoneType"), {"kind": "recompile"}, "stable_arg_structure", "# mask: pass a Tensor"),
    ],
)  # fmt: skip
def test_the_first_remedy_and_what_to_paste(guard: str, more: dict[str, str], first: str, text: str) -> None:
    """The remedy follows from the guard, and its text from the names in it."""
    found = advice(guard, torch=exactly((2, 13)), worst_process=3, **more)
    key, one = next(iter(found.items()))
    assert (key, text in one.apply) == (first, True), one.apply


def test_a_log_writes_no_second_statement() -> None:
    """What is pasted is made of guards, and anybody may have written those."""
    assert "tensor_wrap_scalar" in advice("0/0: step.count == 5")
    for hostile in ("x; print(1)", "x  # y", "x\\\ny", "x: int"):
        assert all(hostile not in one.apply for one in advice(f"0/0: {hostile} == 5").values())


def test_a_text_is_never_a_tensor() -> None:
    """torch.tensor('eager') raises."""
    assert "tensor_wrap_scalar" not in advice("0/0: G['CONFIG']['impl'] == 'eager'")


def test_a_value_behind_a_break_has_no_name() -> None:
    """What stands on the stack when the graph breaks cannot be assigned to; a local of a resumed frame cannot be marked before the call."""

    def behind(guard: str, kind: str) -> dict[str, Advice]:
        frame = "torch_dynamo_resume_in_f_at_3"
        return advice(guard, kind=kind, function=frame, patterns=frozenset({"resumed_frame"}), break_at="f, line 3 of /srv/m.py")

    assert next(iter(behind("1/1: ___stack0 <= 0.5", "recompile"))) == "remove_graph_break"
    assert not any("___stack" in one.apply for one in behind("1/1: ___stack0 == 0.5", "recompile").values())
    assert "mark_dynamic" not in behind("1/6: tensor 'y' size mismatch at index 0. expected 9, actual 10", "recompile_limit_hit")


def test_a_module_is_called_by_its_name() -> None:
    """Nobody calls forward, nor the frame that torch puts around a module of its own."""
    guard = parse_reason("0/0: GLOBAL_STATE changed: grad_mode")
    for function, file, call in (
        ("forward", "/srv/m.py", "model(...)"), ("predict", "/srv/m.py", "predict(...)"), ("<lambda>", "/srv/m.py", "compiled(...)"),
        ("inner", "/v/site-packages/torch/_dynamo/external_utils.py", "model(...)"),
    ):  # fmt: skip
        told = Story("recompile", "grad_mode", function, file, 9, guard.text, (guard,), frozenset())
        assert f"with torch.no_grad(): {call}" in advise(told, CATALOG, ANY_VERSION)[0].apply


def _told(log: str) -> list[Finding]:
    analysis = Analysis(rules())
    for event in engine_events([log.encode()], "-"):
        analysis.add(event)
    return list(analysis.report(Facts((SourceFacts("-"),)), CATALOG).findings)


W = "W1122 11:15:31.432000 15922 torch/_dynamo/convert_frame.py:1994] [0/8] "
V = "V1122 11:15:31.432000 15922 torch/_dynamo/guards.py:5396] [0/{}] [__recompiles] "


def _hit(limit: int, name: str, reason: str) -> str:
    return f"{W}torch._dynamo hit config.{name} ({limit})\n{W}   function: 'f' (/srv/m.py:3)\n{W}   last reason: {reason}\n"


def _block(number: int, reason: str) -> str:
    v = V.format(number)
    return f"{v}Recompiling function f in /srv/m.py:3\n{v}    triggered by the following guard failure(s):\n{v}    - 0/{number - 1}: {reason}\n"


def test_what_it_means_is_what_the_rule_that_found_it_says() -> None:
    """Rules of one kind, told apart by nothing in the event, each have their own words."""
    said = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1 GiB is free.\n"
    assert _told(said)[0].consequence == "torch could not get GPU memory; the call failed, unless the program catches it and tries less."
    sizes = "CUDAGraph supports dynamic shapes by recording a new graph for each distinct input size. We have observed 51 distinct sizes.\n"
    assert _told(sizes)[0].consequence.startswith("Every new input size records another CUDA graph")


def test_the_limit_that_was_hit_is_the_one_to_raise() -> None:
    """More than what was too low, by the name that was hit; torch.compile(recompile_limit=) does not move the accumulated one (measured, 2.13)."""
    first = _told(_hit(64, "recompile_limit", "0/0: adapter == 'de'"))[0].advice
    assert [one.apply for one in first][:2] == ["torch.compile(..., recompile_limit=128)", "torch._dynamo.config.recompile_limit = 128"]
    log = _block(9, "adapter == 'a'") + _hit(256, "accumulated_recompile_limit", "0/0: adapter == 'a'").replace("[0/8]", "[0/9]")
    (hit,) = _told(log)
    assert hit.advice[0].apply == "torch._dynamo.config.accumulated_recompile_limit = 512"
    assert "recompile_limit_kwarg" not in [one.name for one in hit.advice]
    assert (hit.count, hit.refused, hit.title) == (1, 1, "f hit the accumulated recompile limit (256)")


def test_a_limit_that_the_log_says_was_set() -> None:
    """The program set 32 and 8 was hit: not 16, but 32 in each thread."""
    found = _told("recompile_limit set to 32\n" + _hit(8, "recompile_limit", "0/0: adapter == 'de'"))
    hit = next(one for one in found if one.kind == "recompile_limit_hit")
    assert hit.advice[0].name == "set_config_in_every_thread" and "32" in hit.advice[0].apply
    assert "= 16" not in " ".join(one.apply for one in hit.advice)


def test_a_limit_that_raised_leaves_nothing_in_eager_mode() -> None:
    """With fullgraph=True the warning comes first, the exception behind it."""
    hit = _hit(8, "recompile_limit", "0/0: adapter == 'de'")
    error = "Traceback (most recent call last):\ntorch._dynamo.exc.FailOnRecompileLimitHit: Hard failure due to fullgraph=True\n"
    assert "eager mode, with" in _told(hit)[0].consequence
    assert "became an exception" in next(one for one in _told(hit + error) if one.kind == "recompile_limit_hit").consequence


def test_a_recompile_that_raised_is_not_normal() -> None:
    """error_on_recompile stops the program at the first size: to do nothing is no advice; nor is it under a stance that forbids it."""
    size = "tensor 'x' size mismatch at index 0. expected 3, actual 4"
    (raised,) = _told(
        "torch._dynamo.exc.RecompileError: Recompiling function f in /srv/m.py:3\n"
        f"    triggered by the following guard failure(s):\n    - 0/0: {size}\n"
    )
    assert (raised.severity, raised.advice[0].apply) == ("critical", "torch._dynamo.mark_dynamic(x, 0)")
    told = Story("recompile_forbidden", "size_mismatch", "f", "/srv/m.py", 3, size, (parse_reason(f"0/0: {size}"),), frozenset())
    assert advise(told, CATALOG, ANY_VERSION)[0].apply == "torch._dynamo.mark_dynamic(x, 0)"


def _unknown(log: str) -> str:
    """The log as a build between two releases writes it, from lines that no release has."""
    return log.replace("guards.py:5396]", "guards.py:5397]")


def test_old_sources_tell_the_version() -> None:
    """torch before 2.7 prints L['x'] in guards: no remedy that came later."""
    old = _told(_unknown(_block(1, "2 <= L['x'].size()[0]")))[0].advice
    assert "unbacked_sources_env" not in [one.name for one in old]
    assert "unbacked_sources_env" in [one.name for one in _told(_unknown(_block(1, "2 <= x.size()[0]")))[0].advice]


GUARD = "tensor '{}' size mismatch at index {}. expected {}, actual {}"


@pytest.mark.parametrize(
    ("guards", "first", "among"),
    [
        ((GUARD.format("x", 1, 7, 9), GUARD.format("x", 0, 4, 6)), "none_first_automatic_dynamic", ""),
        ((GUARD.format("x", 0, 2, 1), GUARD.format("x", 0, 1, 4)), "none_first_automatic_dynamic", "mark_unbacked"),
        ((GUARD.format("x", 0, 2, 3), GUARD.format("x", 0, 3, 4)), "mark_dynamic", ""),
        ((GUARD.format("k[0]", 1, 0, 4), GUARD.format("k[1]", 1, 0, 4), GUARD.format("k[2]", 1, 0, 4)), "compile_whole_model", "isolate_recompiles"),
    ],
)
def test_each_dimension_takes_a_first_step(guards: tuple[str, ...], first: str, among: str) -> None:
    """A second dimension is made dynamic as the first one was, and a size of one costs one graph more; one entry for each layer is no such step."""
    log = "".join(_block(number, guard) for number, guard in enumerate(guards, 1))
    found = [one.name for one in _told(log)[0].advice]
    assert found[0] == first
    assert not among or among in found


def test_layers_of_a_cache_are_compiled_as_one() -> None:
    """Measured: marks, a fixed size and allow_unspec_int_on_nn_module leave the limit hit as it is."""
    log = "".join(_block(n, GUARD.format(f"cache.k[{n - 1}]", 1, 0, 4)) for n in range(1, 8)) + _hit(
        8, "recompile_limit", "0/7: " + GUARD.format("cache.k[7]", 1, 0, 4)
    )
    found = [one.name for one in _told(log)[0].advice]
    assert found[:2] == ["compile_whole_model", "isolate_recompiles"]
    assert not {"mark_dynamic", "dynamic_sources_env", "allow_unspec_int_on_nn_module"} & set(found)


def test_a_parameter_that_is_unfrozen() -> None:
    """no_grad would end its training, and a module refuses what detach() makes of it."""
    (finding,) = _told(_block(1, "tensor 'self._modules['backbone']._parameters['bias']' requires_grad mismatch. expected requires_grad=0"))
    assert [one.name for one in finding.advice] == ["keep_requires_grad_consistent", "warmup"]
    assert finding.advice[0].apply.startswith("self.backbone.bias.requires_grad_(")


def test_backends_of_several_names_are_compared() -> None:
    """Somebody measures them: each arm needs empty caches, and one backend object is no answer."""
    match = (
        "BACKEND_MATCH failure: torch.compile detected different backend callables. Cached backend: _TorchCompileWrapper(compiler='{}', dynamic=None)"
    )
    match += " (id=0x7f187f909190). New backend: _TorchCompileWrapper(compiler='{}', dynamic=None) (id=0x7f187d297fd0)."
    assert _told(_block(1, match.format("eager", "aot_eager")))[0].advice[0].apply.startswith("torch._dynamo.reset()")
    assert _told(_block(1, match.format("backend", "backend")))[0].advice[0].name == "same_backend"


@pytest.mark.parametrize(
    ("file", "first"),
    [
        ("/srv/bench_attention.py", "reset_between_arms"),
        ("/srv/benchmarks/run.py", "reset_between_arms"),
        ("/srv/benchtop.py", "remove_dynamic_false"),
    ],
)
def test_the_arms_of_a_benchmark(file: str, first: str) -> None:
    """They share the entries of one function, which a program that serves must keep."""
    log = "".join(_block(n, GUARD.format("x", 0, 8 * n, 8 * n + 8)) for n in range(1, 4)).replace("/srv/m.py", file)
    assert _told(log)[0].advice[0].name == first


def test_few_texts_need_no_higher_limit() -> None:
    """Nothing hit a limit: to raise it changes nothing; warm-up takes the compiles out of the way."""
    few = _told("".join(_block(n, f"adapter == '{n}'") for n in range(1, 4)))[0]
    assert few.advice[0].name == "warmup"
    many = _told("".join(_block(n, f"adapter == '{n}'") for n in range(1, 8)))[0]
    assert many.advice[0].name == "recompile_limit_kwarg"


def test_new_sources_tell_the_version() -> None:
    """torch from 2.7 on prints x where L['x'] stood, and numbers its graph breaks: the limit has its new name, .item() its variable.

    What tells no version is advised in the form of the newest.
    """
    for source, limit in (("adapter", "recompile_limit"), ("L['adapter']", "cache_size_limit"), ("G['adapter']", "recompile_limit")):
        assert f"torch._dynamo.config.{limit} = 16" in [one.apply for one in _told(_unknown(_block(1, f"{source} == 'a'")))[0].advice]


def test_the_break_that_made_a_frame_is_told_with_it() -> None:
    """Its own finding says what helps: here it says what to look for; where the log does not show it, the line alone."""
    break_ = f"{B}Graph break in user code at /srv/m.py:3\n{B}Graph Break Reason: Unsupported Tensor.item() call with capture_scalar_outputs=False\n"
    steps = "".join(_block(n, f"___stack0 == {n}.5") for n in range(1, 4)).replace("function f in", "function torch_dynamo_resume_in_f_at_3 in")
    (told,) = [one for one in _told(break_ + steps) if one.kind == "recompile"]
    assert told.advice[0].apply.startswith("# f, line 3 of /srv/m.py (Unsupported Tensor.item() call with capture_scalar_outputs=False): no .item()")
    assert _told(steps)[0].advice[0].apply.startswith("# f, line 3 of /srv/m.py: no .item()")


def test_what_is_expected_is_told_last() -> None:
    """A first step behind a graph break is harmless; the break is what somebody can mend."""
    break_ = f"{B}Graph break in user code at /srv/m.py:3\n{B}Graph Break Reason: Unsupported Tensor.item() call with capture_scalar_outputs=False\n"
    step = _block(1, "___stack0 == 2.5").replace("function f in", "function torch_dynamo_resume_in_f_at_3 in")
    found = _told(break_ + step)
    assert [one.kind for one in found] == ["graph_break", "recompile"]
    assert found[1].advice[0].name == "none_first_automatic_dynamic"


def test_a_gradient_is_not_cloned() -> None:
    """What was overwritten is a .grad that the recorded backward made; the model's output is another tensor."""
    text = "RuntimeError: Error: accessing {}tensor output of CUDAGraphs that has been overwritten by a subsequent run. "
    text += (
        "Stack trace: File \"/srv/m.py\", line 61, in forward\n    return self.head(x). This can happen with torch.compile(mode='reduce-overhead')"
    )
    (gradient,) = _told(text.format("gradient ") + " and gradient accumulation.\n")
    assert [gradient.advice[0].name, gradient.function, gradient.line_no] == ["grads_outside_graphs", "forward", 61]
    assert "clone_outputs" not in [one.name for one in gradient.advice]
    (output,) = _told(text.format("").replace("This can happen with", "To prevent overwriting, clone the tensor of") + "\n")
    assert output.advice[0].name == "clone_outputs"


@pytest.mark.parametrize("said", ["RuntimeError: can't start new thread", "BlockingIOError: [Errno 11] Resource temporarily unavailable"])
def test_no_more_workers_can_be_started(said: str) -> None:
    """A newer torch starts as many; one process starts none."""
    log = f"""Traceback (most recent call last):
  File "/v/site-packages/torch/_inductor/async_compile.py", line 150, in process_pool
    pool = SubprocPool(config.compile_threads)
{said}
"""
    (finding,) = _told(log)
    assert [one.name for one in finding.advice] == ["compile_in_process", "disable_compile_process"]


def test_inference_tensors_are_known_where_they_are_compiled() -> None:
    """The compiled forward saves them for its backward; in a program that compiles nothing the same words are none of torch.compile's."""
    frame = '  File "/v/site-packages/torch/{}.py", line 9, in {}\n    return f(*args)\n'
    words = "RuntimeError: Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal tensor.\n"
    compiled = frame.format("_functorch/_aot_autograd/utils", "g") + frame.format("autograd/function", "apply")
    (finding,) = _told("Traceback (most recent call last):\n" + compiled + words)
    assert finding.advice[0].name == "no_inference_mode"
    assert finding.consequence.startswith("What was compiled")
    assert _told("Traceback (most recent call last):\n" + frame.format("autograd/function", "apply") + words) == []


def test_a_container_made_anew_has_no_last_one() -> None:
    """Each call makes another dict: no limit is high enough."""
    (finding,) = _told(_block(1, "___check_obj_id(meta, 139743157497536), type=<class 'dict'>"))
    assert not RAISES & {one.name for one in finding.advice}
    assert finding.advice[0].name == "stable_arg_structure"


def test_a_wrapper_of_torch_breaks_the_graph() -> None:
    """Nobody can move the calls of DDP or FSDP out of the compiled code, nor wrap them as operators."""
    inside = _broken(
        "Attempted to call function marked as skipped",
        "Dynamo does not know how to trace the function `DistributedDataParallel._inside_ddp_forward`.",
    )
    own = _broken("Unsupported method call", "-", "_pre_forward", "/v/site-packages/torch/nn/parallel/distributed.py")
    assert [one.name for one in (*inside.advice, *own.advice)] == ["accept_wrapper_break"] * 2


def test_what_the_shared_wrapper_is_given_has_another_name() -> None:
    """Nobody who calls a compiled nn.Linear has an args[0]."""
    wrapper = "/v/site-packages/torch/_dynamo/external_utils.py"
    log = "".join(_block(n, GUARD.format("args[0]", 0, n, n + 1)) for n in range(2, 5)).replace("/srv/m.py:3", f"{wrapper}:67")
    assert "torch._dynamo.mark_dynamic(x, 0)" in [one.apply for one in _told(log)[0].advice]
    attribute = story("0/0: fn[1].p == 0.1", function="inner")
    assert MAKERS["attribute"](replace(attribute, file=wrapper)) == "model[1].p" and MAKERS["attribute"](attribute) == "fn[1].p"
    assert MAKERS["attribute"](story("0/0: len(G['__import___main__'].acts) == 2")) == "acts"
    assert (
        MAKERS["structure"](story("0/0: len(__import___main__.feats) == 0"))
        == "# feats: one stacked tensor with a mask (of numbers: torch.tensor), and no loop; or, of tensors, as many entries in every call, masked"
    )


B = "V1122 11:15:31.432000 15922 torch/_dynamo/symbolic_convert.py:5124] [0/0] [__graph_breaks] "


def _broken(reason: str, explanation: str, function: str = "f", file: str = "/srv/m.py", *, hints: tuple[str, ...] = (), code: str = "x") -> Finding:
    lines = [
        f"Graph break in user code at {file}:3", f"Graph Break Reason: {reason}", f"  Explanation: {explanation}",
        *(f"  Hint: {hint}" for hint in hints), "", "User code traceback:", f'  File "{file}", line 3, in {function}', f"    {code}",
    ]  # fmt: skip
    (finding,) = _told("".join(f"{B}{line}\n" for line in lines))
    return finding


@pytest.mark.parametrize(
    ("reason", "explanation", "first"),
    [
        ("Data dependent operator", "Operator `aten.equal.default` has a non-Tensor output whose value is dependent on", "branch_as_tensor"),
        ("Data dependent operator", "Operator `aten._local_scalar_dense.default` has a non-Tensor output", "capture_scalar_outputs"),
        (
            "Attempted to call function marked as skipped",
            "Dynamo does not know how to trace the Python builtin `_warnings.warn`.",
            "exclude_from_compile",
        ),
        (
            "Attempted to call function marked as skipped",
            "Dynamo developers have intentionally marked that the function `SGD.step` in file `/v/lr_scheduler.py` should not be traced.",
            "accept_graph_break",
        ),
        ("Observed exception", "Dynamo found no exception handler", "check_in_eager"),
        ("Attempted to use `torch.nn.functional.one_hot` with data-dependent output shape", "Dynamo does not support this.", "name_num_classes"),
        ("Dynamic shape operator", "Operator `aten.nonzero.default`'s output shape depends on", "capture_dynamic_output_shape_ops"),
        ("Dynamic shape operator (no meta kernel)", "Operator `aten.nonzero.default` does not have a meta kernel", "exclude_from_compile"),
        ("Dynamic shape operator (no meta kernel)", "Operator `acme.fuse.default` does not have a meta kernel", "register_fake"),
        ("Attempted to use torch.use_deterministic_algorithms(warn_only=True)", "Dynamo does not support this.", "remove_graph_break"),
    ],
)
def test_what_torch_explains_decides(reason: str, explanation: str, first: str) -> None:
    """torch from 2.7 on names what it met in the explanation only: the reason is the same for all of them."""
    assert _broken(reason, explanation).advice[0].name == first


FAILED = "torch._dynamo.exc.{}\n  Explanation: {}\n"
OF_ANY_BREAK = (
    "This graph break is fundamental - it is unlikely that Dynamo will ever be able to trace through your code. Consider finding a workaround.",
    "It may be possible to write Dynamo tracing rules for this code. Please report an issue to PyTorch if you encounter this graph break often",
    "Please report an issue to PyTorch.",
)


@pytest.mark.parametrize(
    ("hint", "first", "text"),
    [
        ("Change `torch._dynamo.config.trace_autograd_ops` to `True`.", "set_hinted_config", "torch._dynamo.config.trace_autograd_ops = True"),
        ("Set torch._dynamo.trace_autograd_ops=True", "set_hinted_config", "torch._dynamo.config.trace_autograd_ops = True"),
        ("Set `torch._dynamo.config.use_numpy_random_stream` to False.", "set_hinted_config", "torch._dynamo.config.use_numpy_random_stream = False"),
        (
            "Enable compiled autograd by setting `torch._dynamo.config.compiled_autograd = True`",
            "set_hinted_config",
            "torch._dynamo.config.compiled_autograd = True",
        ),
        ("Set TORCHDYNAMO_ENABLE_P2P_COMPILATION=1 to enable.", "set_hinted_variable", "export TORCHDYNAMO_ENABLE_P2P_COMPILATION=1"),
        ("Set USE_DISTRIBUTED=1 to enable it when building PyTorch from source.", "follow_hint", "# Set USE_DISTRIBUTED=1 to enable it when"),
        ("Remove param warn_only in function call torch.use_deterministic_algorithms.", "follow_hint", "# Remove param warn_only in function call"),
        (
            "Set `torch._dynamo.config.lazy = False`. Note that this may cause silent incorrectness.",
            "follow_hint",
            "# Set `torch._dynamo.config.lazy",
        ),
        ("Use a simpler sequence type that Dynamo can convert to a list ", "remove_graph_break", "# at /srv/m.py:3: take the call out"),
        ("Use one of the following:", "remove_graph_break", "# at /srv/m.py:3: take the call out"),
        ("Avoid calling `Cache.__eq__` in your code.", "remove_graph_break", "# at /srv/m.py:3: take the call out"),
    ],
)
def test_what_torch_says_to_do_is_done(hint: str, first: str, text: str) -> None:
    """Where the hint is about this very break; not what torch says of any, nor half a sentence. A setting that torch warns of is not made."""
    told = _broken("Something new", "Dynamo does not support this.", hints=(*OF_ANY_BREAK, hint))
    assert told.advice[0].name == first and told.advice[0].apply.startswith(text)
    assert _broken("Something new", "Dynamo does not support this.", hints=OF_ANY_BREAK).advice[0].name == "remove_graph_break"


ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"


@pytest.mark.parametrize(
    ("reason", "code", "first"),
    [
        ("Data-dependent branching", 'assert y.sum() > 0, f"bad {y}"', "assert_async"),
        ("Data-dependent assertion failed (cannot compile partial graph)", "check(y)", "assert_async"),
        ("Data-dependent branching", "if y.sum() > 0:", "branch_as_tensor"),
        (ITEM, "return x + 1 if bool(x.any()) else x", "branch_as_tensor"),
        (ITEM, "while x.sum().item() > 1:", "branch_as_tensor"),
        (ITEM, "if x[:2].sum().item() > 1:", "branch_as_tensor"),
        (ITEM, 'if verbose: log.info("norm %.3f", x.norm().item())', "capture_scalar_outputs"),
        (ITEM, "scale = x.max().item() if self.scaled else 1.0", "capture_scalar_outputs"),
        (ITEM, "return x + np.random.rand()", "exclude_from_compile"),
    ],
)
def test_the_line_of_code_decides(reason: str, code: str, first: str) -> None:
    """Kept in the graph, a number that Python branches on breaks it all the same; an assert is no branch."""
    assert _broken(reason, "-", code=code).advice[0].name == first
    log = FAILED.format(f"Unsupported: {reason}", "-") + f'\nfrom user code:\n   File "/srv/m.py", line 3, in f\n    {code}\n'
    (failed,) = _told(log)
    assert failed.advice[0].name == ("remove_graph_break" if "random" in code else first)


@pytest.mark.parametrize(
    ("code", "first"),
    [
        ("if len(boxes) == 0:", "leave_empty_check_out"),
        ("if boxes.numel() == 0:", "leave_empty_check_out"),
        ("if idx.shape[0] > 0:", "leave_empty_check_out"),
        ("if len(boxes) > self.limit:", "branch_as_tensor"),
    ],
)
def test_a_tensor_that_may_be_empty_needs_no_branch(code: str, first: str) -> None:
    """Measured: both sides have other shapes, which no tensor operation takes; what torch proposes fails at the first empty one."""
    says = "Consider annotating your code using torch._check*(). Could not guard on data-dependent expression Eq(u0, 0) (unhinted: Eq(u0, 0))."
    (failed,) = _told(FAILED.format(f"UserError: {says}", "-") + f'\nfrom user code:\n   File "/srv/m.py", line 3, in f\n    {code}\n')
    assert failed.advice[0].name == first
    assert failed.title.startswith("f was not compiled: UserError: Could not guard on data-dependent expression Eq(u0, 0)")


COMPILED = """Traceback (most recent call last):
  File "/venv/torch/_inductor/async_compile.py", line 500, in _wait_futures
    kernel = result.result()
"""
CUSTOM_ALIAS = (
    "RuntimeError: al (with implementation in <module 'torch._library.custom_ops' from '/v/torch/_library/custom_ops.py'>): The output of"
    " this custom operator (1) must not also be an input to this custom operator and (2) may not alias any inputs to this custom operator or other"
    " returns. The most common way to trigger this error is if we have y = custom_op(x) and y and x are the same Tensor. Please instead return a"
    " clone of the offending output tensor(s) (e.g. return x.clone()) or refactor the custom operator to not return y."
)
CACHED = """RuntimeError: This compiled backward function was saved by AOTAutogradCache, which does not support
                    compiled autograd. Please turn off AOTAutogradCache using `TORCHINDUCTOR_AUTOGRAD_CACHE=0`."""


@pytest.mark.parametrize(
    ("said", "first", "text"),
    [
        (CUSTOM_ALIAS, "follow_hint", "# Please instead return a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor"),
        (CACHED, "set_hinted_variable", "export TORCHINDUCTOR_AUTOGRAD_CACHE=0"),
        ("RuntimeError: BACKEND='FLASH' but it cannot be used: NYI. Workarounds: use BACKEND='TRITON', or pass a tensor.", "follow_hint",
         "# Workarounds: use BACKEND='TRITON', or pass a tensor."),
        ("torch._inductor.exc.InductorError: LoweringException: ValueError: Q and KV block size must be divisible by BLOCK_M and BLOCK_N.",
         "matching_block_sizes", "create_block_mask(..., BLOCK_SIZE=128)"),
        ("RuntimeError: no such layout. Please report a bug to PyTorch.", "upgrade_torch", "pip install"),
        ("RuntimeError: no such layout. Please file an issue, and please see the manual.", "upgrade_torch", "pip install"),
    ],
)  # fmt: skip
def test_the_program_s_own_fault_is_not_mended_by_a_newer_torch(said: str, first: str, text: str) -> None:
    """What the exception asks the program to do comes before another torch; that it asks to be reported says the opposite."""
    (finding,) = _told(f"{COMPILED.replace('async_compile', 'compile_fx')}{said}\n")
    assert finding.advice[0].name == first and finding.advice[0].apply.startswith(text)
    assert "upgrade_torch" in [one.name for one in finding.advice]


GUARDED = (
    "torch._dynamo.exc.UserError: Consider annotating your code using torch._check*()."
    " Could not guard on data-dependent expression {0} (unhinted: {0})."
)
NO_COMPILER = "torch._inductor.exc.InductorError: InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, '{}')"


@pytest.mark.parametrize(
    ("said", "first"),
    [
        (GUARDED.format("zuf0 > 0.5"), "branch_as_tensor"),
        (GUARDED.format("Eq(u0, 1)"), "branch_as_tensor"),
        (GUARDED.format("u0 > 4"), "torch_check"),
        (NO_COMPILER.format("/opt/missing/g++"), "unset_compiler"),
        (NO_COMPILER.format("g++"), "install_compiler"),
        ("RuntimeError: Compiler: C:\\llvm\\cl.exe is not found.", "unset_compiler"),
        ("RuntimeError: Compiler: cl is not found.", "install_compiler"),
    ],
)
def test_what_the_message_names_decides(said: str, first: str) -> None:
    """A float is no size of which something always holds; a compiler that somebody named is not cured by installing another."""
    (finding,) = _told(f"{COMPILED}{said}\n")
    assert finding.advice[0].name == first


def test_a_checkpointed_block_that_counts() -> None:
    """torch names the operator between its short name and what it explains."""
    log = (
        "torch._dynamo.exc.Unsupported: HOP: Non-nullified side effect\n  Higher Order Operator: {}\n"
        "  Explanation: Attribute 'n' on an outer-scope object was changed from 0 to 1 inside a higher-order op subgraph.\n"
    )
    (finding,) = _told(log.format("torch.utils.checkpoint.checkpoint"))
    assert finding.advice[0].name == "allow_checkpointed_effects" and "torch.utils.checkpoint.checkpoint: Attribute" in finding.title
    assert _told(log.format("torch.cond"))[0].advice[0].name == "remove_graph_break"


def test_a_checkpointed_block_that_fills_a_list() -> None:
    """Measured on torch 2.13.0: the setting that the hint names lets it compile, in one graph; without fullgraph=True nothing is compiled."""
    log = (
        "torch._dynamo.exc.Unsupported: HOP: Unsafe side effect\n  Higher Order Operator: torch.utils.checkpoint.checkpoint\n"
        "  Explanation: Mutating a variable from outside the scope of this HOP is not supported.\n"
    )
    assert _told(log)[0].advice[0].name == "allow_checkpointed_effects"


@pytest.mark.parametrize(
    ("why", "first"),
    [
        ("Dynamo tracing is disabled", "disable_compile_process"),
        ("non-infra torch dispatch mode present, this is not supported today in torch.compile", "call_outside_mode"),
        ("frame is in the Dynamo skipfiles list", "inspect_recompile_reason"),
    ],
)
def test_no_frame_was_compiled(why: str, first: str) -> None:
    """The lines below tell which frame torch skipped and why: one that was switched off is not to be rewritten."""
    (finding,) = _told(
        "RuntimeError: torch.compile with fullgraph=True found no compiled frames. Skipped frames:\n"
        "  - _call_impl (/v/site-packages/torch/nn/modules/module.py:1782): frame is in the Dynamo skipfiles list\n"
        f"  - forward (/app/denoise.py:16): {why}\n"
    )
    assert finding.advice[0].name == first
    assert ("/app/denoise.py:16" in finding.evidence[0].text) is (first != "inspect_recompile_reason")


def test_what_switches_compiling_off_under_fullgraph() -> None:
    """Measured on torch 2.13.0: fullgraph=True raises with TORCH_COMPILE_DISABLE=1, not with TORCHDYNAMO_DISABLE=1. 2.12 names no frame."""
    said = "RuntimeError: torch.compile with fullgraph=True found no compiled frames."
    (finding,) = _told(f"{said} Skipped frames:\n  - f (/app/a.py:2): Dynamo tracing is disabled\n")
    assert finding.advice[0].apply.startswith("export TORCHDYNAMO_DISABLE=1")
    (finding,) = _told(f"{said} The frame was likely skipped (e.g., a non-infra torch dispatch mode was active, dynamo was disabled).\n")
    assert [one.name for one in finding.advice[:3]] == ["upgrade_torch", "disable_compile_process", "call_outside_mode"]


def test_a_first_bucket_that_is_too_large() -> None:
    """Measured on torch 2.13.0: every backend raises so, and a function that is left out does as well; the setting cures it."""
    (finding,) = _told(
        'Traceback (most recent call last):\n  File "/app/train.py", line 33, in main\n    loss = model(x)\n'
        '  File "/v/site-packages/torch/_dynamo/backends/distributed.py", line 466, in compile_fn\n    raise AssertionError(\n'
        "AssertionError: First bucket should be smaller/equal to other buckets to get comms warmed up ASAP\n"
    )
    assert [one.name for one in finding.advice] == ["ddp_optimizer_off", "upgrade_torch"]


def test_a_region_with_too_many_variants() -> None:
    """The message names the argument; a newer torch has the same number."""
    said = 'RuntimeError: invoke_subgraph: exceeded maximum reuse entries (8) for function code <code object blk at 0x7f, file "m.py", line 3>.'
    (finding,) = _told(f"torch._dynamo.exc.InternalTorchDynamoError: {said}\n")
    assert finding.advice[0].apply.startswith("torch.compiler.nested_compile_region(max_reuse_entries=")


def test_a_mode_that_the_backend_ignores() -> None:
    """It is no variable: nothing is to be unset."""
    line = (
        "W1122 21:00:34.949000 19062 torch/_dynamo/backends/debugging.py:57] [0/0] eager backend ignoring extra kwargs {'mode': 'reduce-overhead'}\n"
    )
    (finding,) = _told(line)
    assert (finding.severity, [one.name for one in finding.advice]) == ("warning", ["backend_of_the_mode"])
    assert "reduce-overhead" in finding.title and "CUDA graphs" in finding.consequence


def test_graph_partition_is_on_in_a_new_torch() -> None:
    """From 2.9 on the line changes nothing."""
    told = Story("cudagraph_skip", "other", "f", "/srv/m.py", 3, "multiple devices: cuda:0, cuda:1", (), frozenset())
    assert "graph_partition" in {one.name for one in advise(told, CATALOG, exactly((2, 7)))}
    assert "graph_partition" not in {one.name for one in advise(told, CATALOG, exactly((2, 13)))}


@pytest.mark.parametrize(
    ("line", "first", "also", "never"),
    [
        ("RuntimeError: Detected that you are using FX to symbolically trace a dynamo-optimized function.", "use_uncompiled_module",
         "warmup_single_thread", "remove_graph_break"),
        ("torch._inductor.exc.InductorError: RuntimeError: skipping cudagraphs due to cpu device (arg0_1). Found from : ", "move_cpu_tensor_to_gpu",
         "mode_without_cudagraphs", "upgrade_torch"),
        ("torch._inductor.exc.InductorError: RuntimeError: skipping cudagraphs due to mutated inputs (1 instances)", "static_address_buffers",
         "avoid_input_mutation", "upgrade_torch"),
        ("RuntimeError: Detected that you are using FX to torch.jit.trace a dynamo-optimized function.", "use_uncompiled_module",
         "warmup_single_thread", "remove_graph_break"),
        ("torch._dynamo.exc.InternalTorchDynamoError: RuntimeError: Cannot call CUDAGeneratorImpl::current_seed during CUDA graph capture", "warmup",
         "disable_compile_process", "mode_without_cudagraphs"),
        ("TypeError: compile() got an unexpected keyword argument 'recompile_limit'", "setting_of_version", "upgrade_torch", "recompile_limit_kwarg"),
        ("UserWarning: Unable to hit fast path of CUDAGraphs because of pending, uninvoked backwards.", "no_grad_or_call_backward", "mark_step_begin",
         "clone_outputs"),
        ("torch._dynamo.exc.InternalTorchDynamoError: RecursionError: maximum recursion depth exceeded", "raise_recursion_limit",
         "exclude_from_compile", "report_pytorch_bug"),
        ("torch._inductor.exc.InductorError: OSError: [Errno 27] File too large", "own_cache_folder", "disable_compile_process", "upgrade_torch"),
        ("RuntimeError: static input data pointer changed.", "static_address_buffers", "mode_without_cudagraphs", "clone_outputs"),
        ("RuntimeError: Expected a AsyncCollectiveTensor tangent but got a plain Tensor", "detach_outputs", "upgrade_torch", "install_compiler"),
    ],
)  # fmt: skip
def test_what_failed_decides(line: str, first: str, also: str, never: str) -> None:
    """The cause first, the way around it behind it, and nothing that belongs to a likeness."""
    (finding,) = _told(f"{line}\n")
    keys = [one.name for one in finding.advice]
    assert (keys[0], also in keys, never in keys) == (first, True, False)


@pytest.mark.parametrize("head", ["torch._dynamo.exc.TorchRuntimeError: ", "Exception: Capture cuda graph failed: "])
def test_an_out_argument_under_autograd(head: str) -> None:
    """Measured on torch 2.13.0: eager mode raises the same; it stands below the words that torch begins with."""
    (finding,) = _told(
        f"{head}RuntimeError when making fake tensor call\n  Explanation: Dynamo failed to run FX node with fake tensors: call_function "
        "sum(*(FakeTensor(..., size=(8, 2)),), **{'dim': 1}): got RuntimeError(\"sum(): functions with out=... arguments don't support "
        'automatic differentiation, but one of the arguments requires grad.")\n'
    )
    assert [one.name for one in finding.advice] == ["no_grad_or_call_backward", "check_in_eager"]


WRONG_LAYOUT = """AssertionError: expected size 4==4, stride 1==5 at dim=0; expected size 5==5, stride 4==1 at dim=1
Error in op: torch.ops.{}
This error most often comes from a incorrect fake (aka meta) kernel for a custom op.
"""


NO_FAKE = "got RuntimeError('There was no fake impl registered for <CustomOpDef(acme::fuse)>. This is necessary for torch.compile.')"


@pytest.mark.parametrize(
    ("log", "first", "text"),
    [
        (WRONG_LAYOUT.format("acme.fuse.default"), "correct_fake_kernel", "acme::fuse"),
        (WRONG_LAYOUT.format("aten.bmm.default"), "upgrade_torch", ""),
        (
            FAILED.format("Unsupported: Attempted to use `torch.nn.functional.one_hot` with data-dependent output shape", "Dynamo does not"),
            "name_num_classes",
            "num_classes=N",
        ),
        (
            FAILED.format("Unsupported: Dynamic shape operator (no meta kernel)", "Operator `acme.fuse.default` does not have a meta kernel"),
            "register_fake",
            "acme::fuse",
        ),
        (
            FAILED.format("Unsupported: Failed to mutate tensor data attribute to different dtype", "Dynamo only supports the same dtype"),
            "remove_graph_break",
            "",
        ),
        (
            FAILED.format("TorchRuntimeError: RuntimeError when making fake tensor call", f"call_function acme.fuse.default(*(), **{{}}): {NO_FAKE}"),
            "register_fake",
            "register_fake('acme::fuse')",
        ),
    ],
)
def test_the_program_s_own_operator_is_mended(log: str, first: str, text: str) -> None:
    """Neither a setting nor a newer torch changes what an operator's kernel says, or leaves out; of torch's own operators that is a bug."""
    (finding,) = _told(log)
    assert finding.advice[0].name == first and text in finding.advice[0].apply


def test_what_python_brings_is_no_operator() -> None:
    """Nothing to wrap, and no output to reorder: the result of open() is used."""
    asked = "Dynamo does not know how to trace the builtin `time.perf_counter.` This function is either a Python builtin (e.g. _warnings.warn) or"
    for reason, explanation in (
        ("Attempted to call function marked as skipped", asked),
        ("Failed to trace builtin operator", "Dynamo does not know how to trace builtin operator `open` with argument types ['str', 'str']"),
    ):
        found = _broken(reason, explanation)
        assert {one.name for one in found.advice} == {"exclude_from_compile", "remove_graph_break"}, found.advice
    assert "perf_counter" in _broken("Attempted to call function marked as skipped", asked).title


def test_no_advice_to_edit_torch_itself() -> None:
    """The place of a break in Python's or torch's own files is reached from the program's."""
    found = _broken("Attempted to copy.deepcopy a tensor", "no", "deepcopy", "/usr/lib/python3.11/copy.py")
    assert all("in your own code that leads to" in one.apply for one in found.advice)


def test_another_backend_is_not_torch() -> None:
    """torch passes on what a backend raises: a newer torch does not mend the code of another package."""
    log = "Traceback (most recent call last):\ntorch._dynamo.exc.BackendCompilerFailed: backend='{}' raised:\nRuntimeError: no conversion rule\n"
    assert _told(log.format("openvino"))[0].advice[0].name == "other_backend"
    assert "openvino" in _told(log.format("openvino"))[0].advice[0].apply
    assert _told(log.format("inductor"))[0].advice[0].name == "upgrade_torch"
    assert "debugger" not in _told(log.format("inductor"))[0].consequence


NO_CHOICES = """torch._inductor.exc.InductorError: LoweringException: NoValidChoicesError: No choices to select. Provided reason: No choices \
exist for backend. please consider adding ATEN into max_autotune_gemm_backends config (defined in torch/_inductor/config.py) to allow at \
least one choice.
  target: {}
  args[0]: TensorBox(StorageBox(
"""


def test_torch_s_own_kernel_is_a_choice_where_there_is_one() -> None:
    """torch says so of every operation, but flex_attention has kernels of triton only."""
    assert _told(NO_CHOICES.format("aten.mm.default"))[0].advice[0].name == "autotune_with_aten"
    assert "autotune_with_aten" not in [one.name for one in _told(NO_CHOICES.format("flex_attention"))[0].advice]


def test_a_folder_from_which_nothing_may_run_is_no_cache() -> None:
    """The loader names neither the mount nor its option."""
    log = f"{COMPILED}ImportError: /tmp/cache/ABC/cuda_utils.so: failed to map segment from shared object\n"
    assert _told(log)[0].advice[0].name == "own_cache_folder"


def test_an_input_of_the_graph_is_moved_before_the_call() -> None:
    """arg0_1 and primals_3 are inputs: nothing inside the function makes them."""
    for node, start in (("primals_3", "model.to('cuda'); x = x.to("), ("full_default", "torch.tensor(value, device='cuda')")):
        told = Story("cudagraph_skip", "other", "f", "/srv/m.py", 3, f"cpu device ({node})", (), frozenset())
        assert advise(told, CATALOG, ANY_VERSION)[0].apply.startswith(start)


def test_old_floats_are_constants() -> None:
    """Before torch 2.7 nothing but a tensor helps: dynamic or not, each float is compiled in."""
    assert list(advice("0/3: s == 0.5", torch=exactly((2, 5)))) == ["tensor_wrap_scalar"]
    assert "remove_dynamic_false" in advice("0/3: s == 0.5", torch=exactly((2, 9)))


_CONVERSION = """\
torch._inductor.exc.InductorError: CompilationError: at 8:11:
def triton_(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_ptr0 + (x0), None)
    tmp1 = tmp0.to(tl.float32)
           ^
"""


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ("torch._inductor.exc.InductorError: ModuleNotFoundError: No module named 'setuptools'", "python -m pip install setuptools"),
        ("torch._inductor.exc.InductorError: ModuleNotFoundError: No module named 'torchvision'", "python -m pip install torchvision"),
        ("torch._inductor.exc.InductorError: KeyError: 'getpwuid(): uid not found: 1042'", "export USER=app LOGNAME=app"),
        ("torch._inductor.exc.InductorError: PermissionError: [Errno 13] Permission denied: '/.triton'", "export TORCHINDUCTOR_CACHE_DIR="),
        ("torch._inductor.exc.InductorError: FileExistsError: [WinError 183] Cannot create a file", "pip install --upgrade torch"),
        (_CONVERSION, "model.to(torch.float16)"),
    ],
)
def test_failures_of_a_machine(said: str, first: str) -> None:
    """What the machine or the container lacks is the first thing to mend."""
    analysis = Analysis(rules())
    for event in engine_events([said.encode() + b"\n"], "bot.log"):
        analysis.add(event)
    [finding] = analysis.report(Facts((SourceFacts("bot.log"),), torch_version=None), CATALOG).findings
    assert finding.advice[0].apply.startswith(first)


def test_torch_2_0_gets_advice() -> None:
    """What needs nothing of torch's holds for the oldest version as well; a decorator is named as that version has it."""
    story = Story("compile_error", None, "forward", "/srv/model.py", 9, "InternalTorchDynamoError: no", (), frozenset())
    found = {one.name: one.apply for one in advise(story, CATALOG, exactly((2, 0)))}
    assert found["exclude_from_compile"].startswith("@torch._dynamo.disable") and "upgrade_torch" in found


_LIST_INDEX = "  # self.heads[n](x)  # m.py:6 in f (_dynamo/variables/lists.py:174 in getitem_const)"
_STATIC = "  # return x * n  # m.py:6 in f"


def test_a_number_that_the_code_fixes_is_not_made_dynamic() -> None:
    """Measured: with a list's index dynamic sources change nothing; torch says in a second place what fixed the number."""
    blocks = "".join(_block(number, f"n == {number}{_LIST_INDEX}") for number in range(1, 8))
    refused = _told(blocks + _hit(8, "recompile_limit", f"0/7: n == 9{_LIST_INDEX}"))
    assert {one.advice[0].name for one in refused} == {"pass_derived_value"}
    assert not {"dynamic_sources_env", "allow_unspec_int_on_nn_module", "tensor_wrap_scalar"} & {
        one.name for found in refused for one in found.advice
    }
    assert _told(_hit(8, "recompile_limit", f"0/7: n == 9{_STATIC}"))[0].advice[0].name == "dynamic_sources_env"


def test_all_that_changes_is_marked_at_once() -> None:
    """Where the limit was hit, torch names the first size that failed for each entry; the others are in the log as well."""
    older = "".join(f"{V.format(3)}    - 0/{n}: tensor 'x' size mismatch at index {2 + n % 2}. expected {8 + n}, actual 40\n" for n in (1, 0))
    log = _block(3, "tensor 'x' size mismatch at index 2. expected 10, actual 40") + older
    told = _told(log + _hit(8, "recompile_limit", "0/7: tensor 'x' size mismatch at index 2. expected 9, actual 41"))[0].advice
    marks = next(one for one in told if one.name == "mark_dynamic")
    assert marks.apply == "torch._dynamo.mark_dynamic(x, 2); torch._dynamo.mark_dynamic(x, 3)"


def test_weights_are_not_cast_to_integers() -> None:
    """The dtype to keep is that of the oldest entry, not that of the one that was tried last; and a floating one, if there is any."""
    older = f"{V.format(2)}    - 0/0: tensor 'p' dtype mismatch. expected Float, actual Half\n"
    told = _told(_block(2, "tensor 'p' dtype mismatch. expected Long, actual Half") + older)
    assert told[0].advice[0].apply.startswith("p = p.to(torch.float32)")


@pytest.mark.parametrize("guard", ["GLOBAL_STATE changed: grad_mode ", "tensor 'x' requires_grad mismatch. expected requires_grad=1"])
def test_training_keeps_its_gradients(guard: str) -> None:
    """One graph with gradients and one without is what training and validation cost: what to paste says where it holds."""
    first = next(iter(advice(f"0/0: {guard}", kind="recompile", worst_process=1).values()))
    assert re.search("where (?:nothing is trained|no gradient is wanted)", first.apply) and first.caution is not None


def test_a_missing_header_of_python_is_no_matter_of_the_gpu() -> None:
    """Measured on torch 2.13.0 without python3-dev: the package brings it, and a link to libcuda changes nothing."""
    found = advice(kind="compile_error", reason="InductorError: CppCompileError: C++ compile error: fatal error: Python.h: No such file or directory")
    assert list(found) == ["install_compiler", "disable_compile_process"]


@pytest.mark.parametrize("reason", ["0/7: flag == True", "0/7: dtype == torch.int16"])
def test_a_warm_up_does_not_cure_a_limit(reason: str) -> None:
    """Measured: warmed up with all variants, the limit is hit in the warm-up."""
    assert _told(_hit(8, "recompile_limit", reason))[0].advice[0].name in RAISES


@pytest.mark.parametrize(
    ("guards", "first"),
    [
        ([f"len(self.losses) == {n}" for n in range(4)], "fill_outside"),
        ([f"len(G['STATS']) == {n}" for n in range(4)], "fill_outside"),
        ([f"len(past_keys) == {n}" for n in range(4)], "static_cache"),
        ([f"len(extra) == {n}" for n in (0, 1, 2, 1, 2, 1)], "stable_arg_structure"),
    ],
)
def test_not_every_longer_list_is_a_cache(guards: list[str], first: str) -> None:
    """A history, statistics, keyword arguments that come and go."""
    assert next(iter(advice(*(f"0/{n}: {guard}" for n, guard in enumerate(guards))))) == first


GROWN = "tensor 'self._buffers['vectors']' size mismatch at index 0. expected {}, actual {}"
CAST = "tensor 'self._modules['layers']._modules['{}']._parameters['weight']' dtype mismatch. expected Float, actual BFloat16"


@pytest.mark.parametrize(
    ("guards", "first"),
    [
        ([GROWN.format(50 + 7 * n, 57 + 7 * n) for n in range(4)], "force_parameter_static_shapes_false"),
        ([GROWN.replace("self._buffers['vectors']", "vectors").format(50 + 7 * n, 57 + 7 * n) for n in range(4)], "remove_dynamic_false"),
        ([CAST.format(n) for n in range(4)], "one_dtype_for_model"),
        ([CAST.replace("self._modules['layers']._modules['{}']._parameters['weight']", "x")], "keep_dtype_consistent"),
    ],
)
def test_nobody_passes_a_tensor_of_the_model(guards: list[str], first: str) -> None:
    """No mark makes a buffer's size dynamic, and a line that casts one weight raises (measured)."""
    assert next(iter(advice(*(f"0/{n}: {guard}" for n, guard in enumerate(guards))))) == first


@pytest.mark.parametrize(
    "guard",
    [
        "torch._functorch.pyfunctorch.compare_functorch_state([('Vmap', 1, 'error')])",
        "tensor 'temp' dispatch key set mismatch. expected DispatchKeySet(CPU), actual DispatchKeySet(CPU, FuncTorchBatched)",
    ],
)
def test_a_transform_goes_around_what_is_compiled(guard: str) -> None:
    """torch.func calls a function that others call plain: neither grad mode nor autocast differs."""
    assert list(advice(f"0/0: {guard}", torch=exactly((2, 13)))) == ["compile_around_transform"]


def test_a_break_at_a_tensor_of_a_transform_is_no_matter_of_its_line() -> None:
    """A line that divides two numbers cannot be moved out (measured: the program died)."""
    broken = "Graph break in user code at /srv/m.py:18\nGraph Break Reason: attempted to apply meta conversion to view functorch tensor\n"
    stack = 'User code traceback:\n  File "/srv/m.py", line 18, in calibrated\n    z = logit / temp\n'
    assert _told(broken + stack)[0].advice[0].name == "compile_around_transform"


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ("TorchRuntimeError: RuntimeError(\"When merging two branches' output in torch.cond, expected same dtype\")", "same_from_both_branches"),
        ("UncapturedHigherOrderOpError: torch.cond: Higher order ops do not support input mutation.", "return_new_tensors"),
        ("Unsupported: sort with non-constant keys\n  Explanation: Cannot perform sort with non-constant key.", "sort_by_tensor"),
        ("BackendCompilerFailed: backend='<__main__.FlopBackend object at 0x7f68016a5950>' raised:\nRuntimeError: transpose", "other_backend"),
        ("BackendCompilerFailed: backend='flops' raised:\nRuntimeError: transpose", "other_backend"),
    ],
)  # fmt: skip
def test_what_a_failure_names_decides(said: str, first: str) -> None:
    """Neither a cast in front of torch.cond nor .item() as a key cures (measured); a backend that is an object is none of torch's either."""
    assert _told(f"torch._dynamo.exc.{said}\n")[0].advice[0].name == first


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ('Unexpected key(s) in state_dict: "_orig_mod.weight".', "strip_compiled_prefix"),
        ('Missing key(s) in state_dict: "_orig_mod.weight".', "use_uncompiled_module"),
    ],
)
def test_which_side_has_the_prefix(said: str, first: str) -> None:
    """A checkpoint of the compiled module for a plain one, and the other way round."""
    log = f"RuntimeError: Error(s) in loading state_dict for Net:\n\t{said}\n"
    assert [one.name for found in _told(log) for one in found.advice][:1] == [first]


@pytest.mark.parametrize(("types", "first"), [("['str']", "reorder_logging"), ("['str', 'Size']", "remove_graph_break")])
def test_what_is_printed_decides(types: str, first: str) -> None:
    """torch moves texts and tensors behind the graph, and nothing else; measured with a shape."""
    said = f"Failed to trace builtin operator\n  Explanation: Dynamo does not know how to trace builtin operator `print` with argument types {types}"
    assert _told(f"torch._dynamo.exc.Unsupported: {said} (has_kwargs False)\n")[0].advice[0].name == first


@pytest.mark.parametrize(("setting", "is_known"), [("trace_autograd_ops", True), ("open_the_door", False)])
def test_a_setting_in_a_hint_is_given_only_where_torch_has_it(setting: str, is_known: bool) -> None:
    """The log is anybody's: what it names is held against the table of settings before somebody pastes it."""
    said = f"Some op is not traced\n  Explanation: no.\n  Hint: Set `torch._dynamo.config.{setting} = True` to allow it."
    told = [one for found in _told(f"torch._dynamo.exc.Unsupported: {said}\n") for one in found.advice]
    assert any(one.apply == f"torch._dynamo.config.{setting} = True" for one in told) is is_known


def test_where_the_limit_is_higher_already_it_is_not_raised_again() -> None:
    """More entries than the default allows, and no limit hit: the remedy was applied."""
    blocks = "".join(_block(number, f"task == 'task{number}'") for number in range(1, 13))
    assert _told(blocks)[0].advice[0].name == "warmup"
    assert _told(blocks + _hit(16, "recompile_limit", "0/15: task == 'task16'"))[0].advice[0].name in RAISES


PACKAGE = "/v/lib/python3.11/site-packages/transformers/utils/generic.py"
META = "E1122 11:15:31.413000 15922 torch/_subclasses/fake_tensor.py:3090] [0/0] "


def _advised(log: str, kind: str = "recompile") -> list[str]:
    found = next(one for one in _told(log) if one.kind == kind)
    return [one.name for one in found.advice]


def test_two_states_fill_no_eight_entries() -> None:
    """Measured: `x.detach()`, for what only told training from validation, cut the gradient, and the limit was hit again."""
    state = "tensor 'x' requires_grad mismatch. expected requires_grad=1"
    sizes = "".join(_block(n, f"{state}\n{V.format(n)}    - 0/{n - 2}: {GUARD.format('x', 0, n, n + 1)}") for n in range(2, 7))
    hit = _hit(8, "recompile_limit", f"0/7: {state}")
    assert _advised(sizes + hit, "recompile_limit_hit")[0] == "remove_dynamic_false"
    assert _advised(hit, "recompile_limit_hit")[0] == "inspect_recompile_reason"


def test_the_first_step_in_each_mode_is_normal() -> None:
    """Whatever failed on the grad mode was compiled in the other one; the size is new to each."""
    mode = "GLOBAL_STATE changed: grad_mode "
    log = _block(1, mode) + _block(2, f"{mode}\n{V.format(2)}    - 0/0: " + GUARD.format("x", 0, 8, 9)) + _block(3, GUARD.format("x", 0, 8, 9))
    log = log.replace("0/2: tensor", "0/1: tensor")
    sizes = next(one for one in _told(log) if one.cause == "size_mismatch")
    assert (sizes.count, [one.name for one in sizes.advice]) == (2, ["none_first_automatic_dynamic"])


def test_what_a_package_s_wrapper_is_given() -> None:
    """The program calls a model; it has no kwargs, and nobody edits the package."""
    block = "".join(_block(n, GUARD.format("kwargs['input_ids']", 1, 8 * n, 8 * n + 8)) for n in range(1, 4)).replace("/srv/m.py:3", f"{PACKAGE}:937")
    advice = {one.name: one for one in next(one for one in _told(block) if one.kind == "recompile").advice}
    assert advice["mark_dynamic"].apply == "torch._dynamo.mark_dynamic(input_ids, 1)"
    assert "the compiled module" in advice["remove_dynamic_false"].where
    number = "".join(_block(n, f"n == {n}") for n in range(1, 4)).replace("/srv/m.py:3", f"{PACKAGE}:937")
    assert any("your own function" in one.apply for one in _told(number)[0].advice if one.name == "exclude_from_compile")


@pytest.mark.parametrize(
    ("guards", "function", "first"),
    [
        ([f"kwargs['past'].layers[{n}].is_initialized == False" for n in range(4)], "forward", "compile_whole_model"),
        ([GUARD.format("self._modules['bert']._parameters['weight']", 0, n, n + 1) for n in range(4)], "wrapper", "isolate_recompiles"),
        (["___check_obj_id(func.__code__, 139942232097072), type=<class 'code'>"], "wrapper", "isolate_recompiles"),
        (["2 <= kwargs['input_ids'].size()[0]"], "wrapper", "pad_or_bucket"),
        (["2 <= x.size()[1] <= 16", *[GUARD.format("x", 1, n, n + 1) for n in (20, 30, 40)]], "wrapper", "pad_or_bucket"),
    ],
)
def test_a_package_s_code(guards: list[str], function: str, first: str) -> None:
    """Each was done and measured: see the cases."""
    log = (
        "".join(_block(n, guard) for n, guard in enumerate(guards, 1))
        .replace("/srv/m.py:3", f"{PACKAGE}:937")
        .replace("function f ", f"function {function} ")
    )
    assert first in {one.advice[0].name for one in _told(log)}


def test_a_branch_of_a_package_is_none_of_the_program_s() -> None:
    """What a user can do is leave the call out (measured: 10 breaks became one)."""
    broken = _broken("Data-dependent branching", "-", file="/v/site-packages/vector_quantize/vq.py", code="if self.initted:")
    assert [one.name for one in broken.advice] == ["leave_package_out", "compile_inner_part", "branch_as_tensor"]
    assert "in your own code that leads to" in broken.advice[0].where


def test_many_breaks_of_a_package_are_left_out_with_its_call() -> None:
    """Measured: a quantizer's 10 breaks became one. The line of the program is told where one break's stack shows it."""
    vq, log = "/v/site-packages/vq/vq.py", ""
    for number, reason in enumerate(("Data-dependent branching", "Missing tp_iternext", "Tensor.item() call", "setattr() on x")):
        own = ('  File "/srv/m.py", line 13, in forward', "    z = self.vq(x)") if number else ()
        log += "".join(f"{B}{line}\n" for line in (
            f"Graph break in user code at {vq}:{number}", f"Graph Break Reason: {reason}", "", "User code traceback:", *own,
            f'  File "{vq}", line {number}, in f{number}', "    x",
        ))  # fmt: skip
    told = _told(log)
    assert {one.advice[0].name for one in told} == {"leave_package_out"}
    assert all(one.advice[0].apply.startswith("# at /srv/m.py:13 in forward: torch.compiler.disable(f)") for one in told)
    assert all(one.advice[0].where.startswith("at /srv/m.py:13 in forward, your own code that leads to /v/") for one in told)
    (alone,) = _told("".join(line for line in log.splitlines(keepends=True) if " f1" in line or "py:1" in line or "Missing" in line))
    assert [one.name for one in alone.advice] == ["leave_package_out", "compile_inner_part", "remove_graph_break"]


def test_offload_hooks() -> None:
    """Measured: 35 breaks and 19 recompiles of an offloaded model were gone when its hooks were; no type of an argument can be kept."""
    hooks = "/v/lib/python3.11/site-packages/accelerate/hooks.py"
    block = _block(1, "___check_type_id(module, 94713274017904), type=<class 'torch.nn.modules.normalization.LayerNorm'>").replace(
        "/srv/m.py:3", f"{hooks}:186"
    )
    assert _advised(block) == ["remove_offload_hooks"]
    broken = _broken("Attempted to call function marked as skipped", "-", "wrapper", file=hooks)
    assert [one.name for one in broken.advice] == ["remove_offload_hooks"]
    assert _advised(block.replace("accelerate/hooks.py", "other/hooks.py"))[0] == "stable_arg_structure"


def test_a_loop_over_experts() -> None:
    """Measured: capture_dynamic_output_shape_ops moves the break by two lines; the library's own setting takes the loop away."""
    where = "/v/site-packages/transformers/models/mixtral/modeling_mixtral.py"
    code = "expert_hit = torch.greater(expert_mask.sum(dim=(-1, -2)), 0).nonzero()"
    broken = _broken("Dynamic shape operator", "Operator `aten.nonzero.default`'s output shape depends", file=where, code=code)
    assert broken.advice[0].name == "experts_at_once"
    own = _broken("Dynamic shape operator", "Operator `aten.nonzero.default`'s output shape depends", code=code)
    assert own.advice[0].name == "capture_dynamic_output_shape_ops"


@pytest.mark.parametrize(
    ("step", "remedies"),
    [("training_step", ["compile_inner_module", "leave_package_out"]), ("forward", ["leave_package_out", "upgrade_torch"])],
)
def test_an_internal_error_in_a_library_s_code(step: str, remedies: list[str]) -> None:
    """Measured: a LightningModule that logs in its step cannot be compiled, its network can; and what fails can be left out."""
    log = f"""torch._dynamo.exc.InternalTorchDynamoError: AttributeError: 'method' object has no attribute '__dict__'

from user code:
   File "/srv/train.py", line 10, in {step}
    self.log("loss", loss)
  File "/v/site-packages/lightning/pytorch/core/module.py", line 514, in log
    and is_param_in_hook_signature(self.training_step, "dataloader_iter", explicit=True)

"""
    (failed,) = _told(log)
    assert [one.name for one in failed.advice[:2]] == remedies
    assert failed.advice[remedies.index("leave_package_out")].apply.startswith(f"# at /srv/train.py:10 in {step}: torch.compiler.disable(f)")


def test_a_failure_under_a_break_is_the_break() -> None:
    """torch logs what failed while it tried the operator, and breaks the graph there: the program goes on."""
    words = "Could not guard on data-dependent expression Eq(u1, 0) (unhinted: Eq(u1, 0))."
    log = "".join(f"{META}{line}\n" for line in (
        "failed while attempting to run meta for aten.fast.default", "Traceback (most recent call last):",
        '  File "/v/site-packages/torch/_subclasses/fake_tensor.py", line 3086, in _dispatch_impl', "    r = func(*args, **kwargs)",
        f"torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: {words}",
    ))  # fmt: skip
    broken = "".join(f"{B}{line}\n" for line in ("Graph break in user code at /srv/m.py:3", f"Graph Break Reason: {words}"))
    assert [one.kind for one in _told(log + broken)] == ["graph_break"]
    assert [one.kind for one in _told(log + broken.replace("[0/0]", "[4/0]"))] == ["compile_error", "graph_break"]


@pytest.mark.parametrize(
    ("code", "remedies"),
    [
        ("dist.all_gather_object(sizes, i.shape[0])", ["objects_outside", "exclude_from_compile"]),
        ("torch.distributed.broadcast_object_list(names, src=0)", ["objects_outside", "exclude_from_compile"]),
        ("dist.all_gather(parts, t)", ["upgrade_torch", "exclude_from_compile"]),
    ],
)
def test_what_sends_objects_between_processes_is_taken_out(code: str, remedies: list[str]) -> None:
    """Measured: nobody can follow the hint of an error of Dynamo's own, which is for those who write torch; without the one call all is compiled."""
    log = f"""torch._dynamo.exc.InternalTorchDynamoError: UnsafeScriptObjectError: Attempted to access unregistered member on an OpaqueObject
  Explanation: Member '_device_types' is not registered for this opaque object type.
  Hint: Register '_device_types' with a MemberType in register_opaque_type(members=...).

from user code:
   File "/srv/train.py", line 24, in forward
    {code}
  File "/v/site-packages/torch/distributed/distributed_c10d.py", line 911, in _get_object_coll_device
    devices = group._device_types

"""
    (failed,) = _told(log)
    assert [one.name for one in failed.advice[:2]] == remedies and "follow_hint" not in [one.name for one in failed.advice]
    assert remedies[0] != "objects_outside" or failed.advice[0].apply.startswith("# at /srv/train.py:24: take this call out of the compiled function")


def test_a_machine_without_a_gpu_records_nothing() -> None:
    """Measured: the line of backend="cudagraphs" on a CPU; to move the tensors to a GPU fails there."""
    (finding,) = _told("skipping cudagraphs due to skipping cudagraphs due to cpu device (arg0_1)\n")
    assert [one.name for one in finding.advice] == ["move_cpu_tensor_to_gpu", "graph_partition", "other_backend"]
    assert "without a GPU it fails" in (finding.advice[0].caution or "") and 'backend="inductor"' in finding.advice[2].apply


def test_what_is_disabled_may_not_be_compiled_whole() -> None:
    """Measured: on a forward that fullgraph=True compiles the decorator raises as well; on a helper, without fullgraph, the program runs."""
    story = Story("compile_error", None, "forward", "/srv/model.py", 9, "InternalTorchDynamoError: no", (), frozenset())
    for torch in (ANY_VERSION, exactly((2, 0)), exactly((2, 13))):
        (disable,) = (one for one in advise(story, CATALOG, torch) if one.name == "exclude_from_compile")
        assert "leave fullgraph=True out" in (disable.caution or "") and "not a whole forward" in (disable.caution or "")
