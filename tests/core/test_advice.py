"""Tests of `recompile_watch.core.advice` and of the remedies that ship: the right one first, exact, for the version at hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recompile_watch.config import load_catalog
from recompile_watch.core import wording
from recompile_watch.core.advice import MAKERS, Advice, Story, advise, code_name, rooted
from recompile_watch.core.analysis import Analysis, Facts, SourceFacts
from recompile_watch.core.causes import parse_reason
from recompile_watch.core.errors import RuleError
from recompile_watch.core.findings import Finding
from recompile_watch.core.patterns import patterns_of
from recompile_watch.core.remedies import PATTERNS, PLACEHOLDERS, parse_tables
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
    return {one.remedy: one for one in advise(story(*guards, **more), CATALOG, torch)}  # type: ignore[arg-type]


def findings(path: Path, torch: str | None = None) -> list[Finding]:
    """The findings of a real log."""
    analysis = Analysis(rules())
    for event in engine_events([path.read_bytes()], str(path)):
        analysis.add(event)
    return list(analysis.report(Facts((SourceFacts(str(path)),), torch_version=torch), CATALOG).findings)


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
    assert not RAISES & {one.remedy for one in found}


def test_one_setting_does_not_cure_many_layers() -> None:
    """allow_unspec_int_on_nn_module helps one attribute, measured; for one index of each layer it changes nothing."""
    assert "allow_unspec_int_on_nn_module" not in advice(*LAYERS)
    assert next(iter(advice("0/5: self._modules['rotary'].seq_len_cached == 69", function="decode"))) == "allow_unspec_int_on_nn_module"


def test_a_step_mark_never_stands_alone() -> None:
    """mark_step_begin alone failed in public threads: the clone comes first."""
    for case in CATALOG.cases:
        if "mark_step_begin" in case.remedies:
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
    assert hit.advice[0].remedy == first
    assert "dynamic_sources_env" in {one.remedy for one in hit.advice}


def test_the_log_itself_tells_old_from_new() -> None:
    """A log that says cache_size_limit is older than 2.7: nothing newer is advised."""
    hit = next(f for f in findings(ROOT / "sample_logs/sizes-torch-2.5.log") if f.kind == "recompile_limit_hit")
    assert [one.remedy for one in hit.advice] == ["mark_dynamic", "remove_dynamic_false", "pad_or_bucket", "exclude_from_compile"]


def test_a_model_is_switched_off_by_its_own_switch() -> None:
    """The bot's Kronos failure names what its wrapper reads."""
    failed = next(f for f in findings(ROOT / "sample_logs/bot-2025-10-30.log") if f.kind == "forecast_failure")
    assert {one.remedy: one.apply for one in failed.advice}["disable_compile_for_model"] == "unset KRONOS_COMPILE MARKETSIM_KRONOS_COMPILE"


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
    assert names <= set(CATALOG.settings) | wrappers
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
    assert (finding.severity, only.remedy, only.apply) == ("warning", "remove_ineffective_setting", "unset TORCHDYNAMO_RECOMPILE_LIMIT")
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
    return [one.remedy for one in finding.advice]


def test_what_each_start_learns_anew_may_be_kept() -> None:
    """A job id where a program was started again; not for one start, not for the ranks of one, not for what never becomes dynamic."""
    first, second = "V1120 10:32:48.195000 7135", "V1120 11:32:48.195000 7999"
    assert _started(first) == ["none_first_automatic_dynamic"]
    assert _started(first, second) == ["none_first_automatic_dynamic", "pgo_job_id"]
    assert _started(f"[rank0]:{first}", f"[rank1]:{second}") == ["none_first_automatic_dynamic"]
    assert "pgo_job_id" not in _started(first, second, shape="dtype mismatch. expected Float, actual Double")
    assert "pgo_job_id" not in _started(first, first, second)


def test_every_remedy_is_in_the_documentation() -> None:
    """docs/remedies.md says of each how it was proven, or how else it is known."""
    text = (ROOT / "docs/remedies.md").read_text()
    assert [remedy.key for remedy in CATALOG.remedies if f"| `{remedy.key}`" not in text] == []


def test_every_pattern_has_words() -> None:
    """What the catalog may name, a person can read."""
    assert set(wording.PATTERNS) == PATTERNS


def test_every_placeholder_is_made() -> None:
    """What a remedy may name, the log can fill in."""
    assert set(MAKERS) == PLACEHOLDERS


def test_a_lone_surrogate_breaks_no_search() -> None:
    """A JSON log can hold one, in a guard as anywhere; the patterns of the cases still look at the text around it."""
    found = advise(Story("recompile", "object_identity", "\ud800f", "/m.py", 1, "mask\ud800 is None", (), frozenset()), CATALOG, ANY_VERSION)
    assert [one.remedy for one in found] == ["stable_arg_structure", "warmup"]
