"""Tests of `recompile_watch.core.findings`, `analysis`, `fingerprint`, `phases` and `groups`: events become findings."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from recompile_watch.config import load_catalog, load_rules
from recompile_watch.core.analysis import Analysis, Facts, Report, SourceFacts
from recompile_watch.core.events import EXTRA_FIELDS, Event, Reason
from recompile_watch.core.findings import Finding
from recompile_watch.core.fingerprint import fingerprint, normalised
from recompile_watch.core.remedies import Catalog

RULES = load_rules()
FILE = "/srv/bot/toto/model/attention.py"


def event(kind: str, line: int = 1, **fields: object) -> Event:
    """An event of the bot's process; fields of `Event` by name, all others become extra fields."""
    places: dict[str, object] = {
        "source": "bot.log", "time": None, "rank": None, "pid": 7, "compile_id": None, "function": None, "file": None, "line_no": None,
        "reasons": (), "partial": False,
    }  # fmt: skip
    known = {name: fields.pop(name) for name in list(fields) if name in places}
    extra = {**EXTRA_FIELDS.get(kind, {}), **fields}
    return Event(kind=kind, line=line, offset=line * 100, extra=extra, **{**places, **known})  # type: ignore[arg-type]


def recompile(index: int, text: str = "x == 1", cause: str = "int_value", **fields: object) -> Event:
    """The recompile that makes entry `index` of function f."""
    fields = {"function": "f", "file": FILE, "line_no": 9, "compile_id": f"0/{index}", **fields}
    return event("recompile", index, reasons=(Reason(f"0/{index - 1}", text, cause),), **fields)


def limit_hit(**fields: object) -> Event:
    """f is at its limit of eight."""
    fields = {"function": "f", "file": FILE, "line_no": 9, "limit": 8, "limit_name": "recompile_limit", **fields}
    return event("recompile_limit_hit", 50, reasons=(Reason("0/7", "x == 7", "int_value"),), **fields)


def report_of(events: Iterable[Event], facts: Facts | None = None, catalog: Catalog | None = None) -> Report:
    analysis = Analysis(RULES)
    for one in events:
        analysis.add(one)
    return analysis.report(facts or Facts((SourceFacts("bot.log", 1000, 10),)), catalog)


def only(events: Iterable[Event], facts: Facts | None = None, catalog: Catalog | None = None) -> Finding:
    """The one finding of these events."""
    findings = report_of(events, facts, catalog).findings
    assert len(findings) == 1
    return findings[0]


def at(second: int) -> str:
    return f"2025-10-30T09:{second // 60:02d}:{second % 60:02d}+00:00"


@pytest.mark.parametrize("cause", ["size_mismatch", "int_value", "float_value", "symbolic_shape"])
def test_one_recompile_is_normal(cause: str) -> None:
    """One recompile of a size or a number is the step to a dynamic graph, and no alarm."""
    finding = only([recompile(1, cause=cause)])
    assert (finding.severity, finding.count, finding.cause) == ("info", 1, cause)
    assert report_of([recompile(1)]).status == "ok"


def test_third_recompile_of_a_guard_warns() -> None:
    """The third recompile of one guarded source is a warning, the second is not."""
    events = [recompile(1, f"x == {n}") for n in (1, 2, 3)]
    assert only(events[:2]).severity == "info"
    assert only(events).severity == "warning"


def test_the_same_recompile_on_many_ranks_is_no_storm() -> None:
    """Eight ranks with one recompile each are eight normal steps."""
    finding = only([recompile(1, rank=rank, pid=100 + rank) for rank in range(8)])
    assert (finding.severity, finding.count, finding.ranks) == ("info", 8, tuple(range(8)))


def test_half_of_the_limit_warns() -> None:
    """At half of the limit's entries every guard of the function is a warning, however rare."""
    headroom = only([recompile(3)]).headroom
    assert headroom is not None and (headroom.entries, headroom.limit) == (4, 8)
    assert only([recompile(3)]).severity == "warning"
    assert only([recompile(2)]).severity == "info"


def test_headroom_takes_the_limit_of_the_log() -> None:
    """A limit hit of another function tells the limit that is in force."""
    report = report_of([recompile(6), limit_hit(function="g", limit=16)])
    headroom = {finding.kind: finding.headroom for finding in report.findings}
    assert headroom["recompile"] is not None and (headroom["recompile"].entries, headroom["recompile"].limit) == (7, 16)
    assert headroom["recompile_limit_hit"] is not None and headroom["recompile_limit_hit"].entries == 16


def test_headroom_is_never_guessed() -> None:
    """Without a compile id there is no headroom; with more entries than the default limit, the limit is unknown."""
    assert only([event("recompile", function="f", file=FILE, reasons=(Reason(None, "x == 1", "int_value"),))]).headroom is None
    raised = only([recompile(20)]).headroom
    assert raised is not None and (raised.entries, raised.limit) == (21, None)


def test_refused_recompiles_belong_to_the_limit() -> None:
    """The block that torch prints for a refused recompile is no recompile of its own."""
    events = [*(recompile(n, f"x == {n}") for n in range(1, 8)), recompile(8, refused=True), limit_hit()]
    limit, storm = report_of(events).findings
    assert (limit.kind, limit.severity, limit.count, limit.refused) == ("recompile_limit_hit", "critical", 1, 1)
    assert (storm.kind, storm.count) == ("recompile", 7)
    assert limit.title == "f hit the recompile limit (8)"


@pytest.mark.parametrize("kind", ["recompile_limit_hit", "recompile_limit_error", "recompile_forbidden", "cudagraph_overwritten_error"])
def test_what_stops_or_disables_compilation_is_critical(kind: str) -> None:
    """Limit hits and errors are critical from the first one on."""
    assert only([event(kind)]).severity == "critical"


@pytest.mark.parametrize(
    ("kind", "severity"),
    [
        ("cudagraph_skip", "warning"), ("cudagraph_rerecord", "warning"), ("cudagraph_dynamic_shapes_warning", "warning"),
        ("cudagraph_pending_backward_warning", "warning"), ("flex_attention_eager_fallback", "warning"), ("graph_break", "info"),
        ("compile_mode", "info"), ("synthetic_quote", "warning"), ("out_of_memory", "warning"),
    ],
)  # fmt: skip
def test_severity_of_other_kinds(kind: str, severity: str) -> None:
    """Everything else follows the measured rules or the rule's own severity."""
    assert only([event(kind)]).severity == severity


def test_graph_breaks_in_a_loop_warn() -> None:
    """Ten graph breaks at one place are a loop."""
    breaks = [event("graph_break", n, function="f", file=FILE, reasons=(Reason(None, "print", "other"),)) for n in range(10)]
    assert only(breaks[:9]).severity == "info"
    assert only(breaks).severity == "warning"


def graph_break(line_no: int, operation: str, **fields: object) -> Event:
    """A break in f for the reason that most untraceable calls share."""
    reason = Reason(None, "Failed to trace builtin operator", "other")
    return event("graph_break", line_no, function="f", file=FILE, line_no=line_no, reasons=(reason,), operation=operation, **fields)


def test_breaks_at_different_calls_are_different_problems() -> None:
    """The same call on two lines is one problem, whose advice names both lines."""
    breaks = [graph_break(5, "print"), graph_break(7, "open"), graph_break(9, "print")]
    findings = report_of(breaks, catalog=load_catalog()).findings
    assert [(one.count, one.title.rpartition(": ")[2]) for one in findings] == [(2, "print"), (1, "open")]
    assert f"at {FILE}:5 (also on line 9)" in next(one.apply for one in findings[0].advice if one.remedy == "exclude_from_compile")
    assert f"at {FILE}:7: " in findings[1].advice[0].apply


def test_what_torch_skips_is_worse_than_a_break() -> None:
    """A function that runs in eager mode as a whole is no function cut in two."""
    skipped, broken = only([graph_break(5, "print", skipped=True)]), only([graph_break(5, "print")])
    assert (skipped.severity, broken.severity) == ("warning", "info")
    assert "the function around it runs in eager mode" in skipped.consequence and "cut in two graphs" in broken.consequence


def test_a_rule_says_how_bad_its_own_event_is() -> None:
    """One recording of a CUDA graph is a note, too many are a warning, an address that may not change is the end of the call."""
    moved = (Reason(None, "static input data pointer changed", "other"),)
    often = event("cudagraph_rerecord", reasons=moved, limit=128)
    once, raised = event("cudagraph_rerecord", reasons=moved, once=True), event("cudagraph_rerecord", 9, reasons=moved, raised=True)
    assert [only([one]).severity for one in (once, often, raised)] == ["info", "warning", "critical"]
    assert {one.severity for one in report_of([once, raised]).findings} == {"info", "critical"}
    assert only([event("graph_break", reasons=moved, backend_failed=True)]).severity == "warning"


def test_what_was_compiled_ahead_is_forbidden_by_no_stance() -> None:
    """Nobody set one: what aot_compile made has this one version."""
    forbidden = [event("recompile_forbidden", stance="fail_on_recompile"), event("recompile_forbidden", stance=None, ahead=True)]
    by_stance, ahead = (only([one]) for one in forbidden)
    assert by_stance.title.endswith("a recompile that the stance forbids") and "set_stance" in by_stance.consequence
    assert ahead.title.endswith("a recompile and was compiled ahead of time") and "compiled ahead of time" in ahead.consequence


@pytest.mark.parametrize(
    ("kind", "extra"),
    [("quote", {"symbol": "A"}), ("gpu_memory", {}), ("inference", {}), ("order", {}), ("plan", {}), ("compile_time", {}), ("model_load", {})],
)
def test_numbers_are_no_findings(kind: str, extra: dict[str, object]) -> None:
    """Metrics count, and nothing more."""
    report = report_of([event(kind, 1, **extra)])
    assert report.findings == () and report.counts == {kind: 1} and report.status == "ok"


def test_a_kind_of_the_users_own_is_a_finding() -> None:
    """A rule may name a kind that nobody knows; it still becomes a finding."""
    assert only([event("gpu_fell_off_the_bus")]).severity == "warning"


@pytest.mark.parametrize(
    ("option", "name", "words"),
    [
        (None, "recompile_limit", "its 8 compiled versions stay in use"),
        (None, "cache_size_limit", "torch before 2.6 drops its 8 compiled versions"),
        ("2.9.1", "cache_size_limit", "stay in use"),
        ("2.5.1", "recompile_limit", "what it calls is not compiled either"),
        ("2.3.1+cu121", None, "what it calls is compiled on its own"),
    ],
)
def test_consequence_of_a_limit_depends_on_the_version(option: str | None, name: str | None, words: str) -> None:
    """What happens after a limit hit differs between torch versions."""
    facts = Facts((SourceFacts("bot.log"),), torch_version=option)
    assert words in only([limit_hit(limit_name=name)], facts).consequence


@pytest.mark.parametrize(("version", "limit", "severity"), [("2.1.2", 64, "info"), ("2.2.2", 8, "warning"), (None, 8, "warning")])
def test_room_is_told_against_the_default_of_the_version(version: str | None, limit: int, severity: str) -> None:
    """Seven entries are few of the 64 that torch 2.0 and 2.1 keep, and many of the 8 of all later ones."""
    finding = only([recompile(6)], Facts((SourceFacts("bot.log"),), torch_version=version))
    assert finding.headroom is not None and (finding.headroom.entries, finding.headroom.limit, finding.severity) == (7, limit, severity)


def test_torch_version_of_a_trace() -> None:
    """A trace names its torch; an option wins over it."""
    source = SourceFacts("t.log", torch_version="2.9.1")
    assert [report_of([], Facts((source,))).torch_version, report_of([], Facts((source,))).torch_version_from] == ["2.9.1", "log"]
    assert report_of([], Facts((source,), torch_version="2.5")).torch_version_from == "option"


def test_phases() -> None:
    """A model load starts a warm-up; a minute without compiling, or the end of a warm-up, ends it; before, nothing is known."""
    assert only([recompile(1, time=at(0))]).phase == "unknown"
    load = event("model_load", pid=None, time=at(0))
    assert only([load, recompile(1, time=at(30))]).phase == "warmup"
    assert only([load, recompile(1, time=at(30)), recompile(2, time=at(80))]).phase == "warmup"
    assert only([load, recompile(1, time=at(30)), recompile(2, time=at(90))]).phase == "steady"
    assert only([event("warmup_done", pid=None, time=at(0)), recompile(1, time=at(1))]).phase == "steady"
    assert only([recompile(1, time=at(0)), load, recompile(2, time=at(3))]).phase == "warmup"


def test_cost_of_recompiles() -> None:
    """The seconds of a compile belong to the recompile with its compile id."""
    events = [recompile(1), event("compile_time", compile_id="0/1", seconds=1.5), event("compile_time", compile_id="0/0", seconds=9.0)]
    assert only(events).compile_seconds == 1.5


def test_evidence_is_bounded_and_spread() -> None:
    """A storm keeps five places: the first, the last, and some between."""
    finding = only([recompile(n, "x == 1", compile_id="0/1") for n in range(1, 1001)])
    lines = [place.line for place in finding.evidence]
    assert len(lines) == 5 and lines == sorted(lines) and (lines[0], lines[-1]) == (1, 1000)
    assert finding.evidence[0].text == f"Recompiling function f in {FILE}:9; 0/0: x == 1"


def test_times_are_the_earliest_and_the_latest() -> None:
    """Two sources are not in order of time, and zones may differ."""
    events = [recompile(1, time=at(60)), recompile(1, time="2025-10-30T10:00:30+01:00", source="b.log"), recompile(1, time=at(45))]
    finding = only(events)
    assert (finding.first_time, finding.last_time) == ("2025-10-30T10:00:30+01:00", at(60))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tensor 'x' size mismatch at index 0. expected 8, actual 9", "tensor 'x' size mismatch at index 1. expected 16, actual 3"),
        ("tensor 'L['x']' size mismatch at index 0. expected 8, actual 9", "tensor 'x' size mismatch at index 0. expected 1, actual 2"),
        ("___check_obj_id(fn, 139942232097072)", "___check_obj_id(fn, 94329845908704)"),
        ("name == 'q_proj'", "name == 'k_proj'"),
        ("s == 0.5", "s == 1e-05"),
        ("kv_cache._current_idx[7] == 0", "kv_cache._current_idx[3] == 12"),
        ("<object at 0x7f3a2b>", "<object at 0x55d0ff>"),
        ("___check_type_id(rule, 94743065831680)", "___check_type_id(rule, 94743065841952), type=<class '__main__.Rule1'>"),
        ("tensor 'x' dtype mismatch. expected Float, actual Half", "tensor 'x' dtype mismatch. expected Double, actual BFloat16"),
        ("KeyError on features['rsi']", "KeyError on features['macd']"),
        ("Data-dependent jump", "Unsupported: Dynamic control flow is not supported at the moment. Please use functorch.experimental"),
        ("list(dict.keys(x)) == ['a', 'b']", "list(dict.keys(x)) == ['a']"),
    ],
)
def test_the_same_guard_is_the_same_problem(one: str, other: str) -> None:
    """Numbers, addresses, ids and values differ from run to run; the problem does not."""
    assert normalised(one) == normalised(other)


def test_different_guards_are_different_problems() -> None:
    """Names are not normalised away."""
    texts = ["tensor 'x' size mismatch at index 0. expected 1, actual 2", "tensor 'x1' size mismatch at index 0. expected 1, actual 2"]
    texts += ["x2 == 1", "x3 == 1", "KeyError on x['a']['b']", "KeyError on x['c']['b']"]
    assert len({normalised(text) for text in texts}) == 6


def test_fingerprints_are_the_same_on_other_machines() -> None:
    """Only the last folder of a path counts, and a temporary one not at all."""
    one = fingerprint("recompile", "f", "/home/a/toto/model/attention.py", "x == N")
    assert one == fingerprint("recompile", "f", "/srv/model/attention.py", "x == N")
    assert len(one) == 16
    assert one != fingerprint("recompile", "f", "/srv/other/attention.py", "x == N")
    assert fingerprint("k", None, "/tmp/tmpab12cd/m.py", "") == fingerprint("k", None, "/tmp/tmpzz98yx/m.py", "")
    assert fingerprint("k", None, "<ipython-input-6-4764417fa0ae>", "") == fingerprint("k", None, "<ipython-input-9-2764417fa0ab>", "")


def test_model_by_path() -> None:
    """A function of toto's code is about toto."""
    assert only([recompile(1)], catalog=load_catalog()).model == "toto"
    assert only([recompile(1, file="/srv/external/kronos/model/module.py")], catalog=load_catalog()).model == "kronos"
    assert only([recompile(1, file="/srv/x.py")], catalog=load_catalog()).model is None


def test_status() -> None:
    """Critical beats unknown, unknown beats warning, and no evidence is never ok."""
    missing = Facts((SourceFacts("bot.log"),), errors=("x.log: no such file",))
    assert report_of([], Facts()).status == "unknown"
    assert report_of([recompile(1)]).status == "ok"
    assert report_of([recompile(3)]).status == "warning"
    assert report_of([recompile(3)], missing).status == "unknown"
    assert report_of([limit_hit()], missing).status == "critical"


@pytest.mark.parametrize(
    ("reason", "strict", "status"),
    [
        ("truncated_gzip", False, "unknown"), ("bomb", False, "unknown"), ("zero_padding", False, "ok"), ("packed_copy", False, "ok"),
        ("bad_trace_line", False, "ok"), ("bad_trace_line", True, "unknown"),
    ],
)  # fmt: skip
def test_input_cut_short_is_unknown(reason: str, strict: bool, status: str) -> None:
    """What should have been read and was not makes the status unknown; with --strict unread torch lines do, too."""
    facts = Facts((SourceFacts("bot.log", unread={reason: 1}),), is_strict=strict)
    assert report_of([recompile(1)], facts).status == status


def test_findings_are_bounded() -> None:
    """A hostile log with a million functions does not fill the memory."""
    report = report_of(recompile(1, function=f"f{n}") for n in range(6000))
    assert len(report.findings) <= 5001
    assert sum(finding.count for finding in report.findings) == 6000


def random_events(seed: int) -> list[Event]:
    chance = random.Random(seed)
    events: list[Event] = []
    second = 0
    for n in range(120):
        second += chance.choice([0, 1, 5, 70])
        time = at(min(second, 3599)) if chance.random() < 0.8 else None
        pid = chance.choice([7, 8, None])
        match chance.randrange(8):
            case 0:
                events.append(event("model_load", n, pid=None, time=time, model="toto"))
            case 1:
                events.append(event("warmup_done", n, pid=None, time=time))
            case 2:
                events.append(limit_hit(pid=pid, time=time)._replace(line=n, offset=n * 100))
            case 3:
                events.append(event("compile_time", n, pid=pid, time=time, compile_id=f"0/{chance.randrange(4)}", seconds=1.0))
            case 4:
                events.append(event("synthetic_quote", n, symbol=chance.choice("AB"), time=time))
            case 5:
                events.append(event("cudagraph_overwritten_error", n, pid=pid, time=time))
            case _:
                index = chance.randrange(1, 8)
                events.append(recompile(index, f"x{index % 3} == {n}", pid=pid, time=time)._replace(line=n, offset=n * 100))
    return events


def merged(parts: Sequence[Sequence[Event]]) -> Report:
    whole = Analysis(RULES)
    for part in parts:
        analysis = Analysis(RULES)
        for one in part:
            analysis.add(one)
        whole.merge(pickle.loads(pickle.dumps(analysis)))
    return whole.report(Facts((SourceFacts("bot.log"),)))


@pytest.mark.parametrize("seed", range(40))
def test_parts_add_up(seed: int) -> None:
    """Analyses of the parts of a log, also of other processes, merge into the analysis of the whole."""
    events = random_events(seed)
    whole = report_of(events, Facts((SourceFacts("bot.log"),)))
    cuts = sorted(random.Random(seed + 1000).sample(range(len(events)), 3))
    parts = [events[a:b] for a, b in zip([0, *cuts], [*cuts, len(events)], strict=True)]
    assert merged(parts) == whole


def test_a_recompile_that_raised() -> None:
    """Under error_on_recompile a recompile is an exception: critical, and it fills no entry."""
    finding = only([recompile(1, raised=True)])
    assert (finding.severity, finding.headroom) == ("critical", None)
    assert finding.title == "f needed a recompile, which error_on_recompile forbids: an integer changed"
    assert "the call failed" in finding.consequence


def test_only_a_long_compilation_is_worth_a_word() -> None:
    """Compile times count for the costs of findings; half an hour is one itself, and no fault."""
    assert report_of([event("compile_time", seconds=299.0)]).findings == ()
    report = report_of([event("compile_time", seconds=299.0), event("compile_time", 2, seconds=2219.43)], catalog=load_catalog())
    (finding,) = report.findings
    assert (finding.severity, finding.title, finding.advice[0].name) == ("info", "Compiling took 2219.43 s", "keep_compile_cache")


def test_a_profiler_s_table_is_advised_by_its_guards() -> None:
    """The function that was compiled again most often tells what helps."""
    rows = [
        {"function": "g", "file": "m.py", "line_no": 2, "recompiles": 1, "reasons": ["L['n'] == 1"]},
        {"function": "f", "file": "m.py", "line_no": 9, "recompiles": 8, "reasons": ["tensor 'x' requires_grad mismatch. expected requires_grad=1"]},
    ]
    assert [one.name for one in only([event("profiler_report", recompiles=rows)], catalog=load_catalog()).advice] == [
        "keep_requires_grad_consistent", "keep_grad_mode_consistent",
    ]  # fmt: skip
    assert [one.name for one in only([event("profiler_report", recompiles=[])], catalog=load_catalog()).advice] == ["inspect_recompile_reason"]


def test_parameters_of_several_sizes_are_no_normal_step() -> None:
    """torch makes an input's size dynamic by itself, a parameter's never."""
    size, weight = "tensor 'x' size mismatch at index 1. expected 7, actual 6", "tensor 'self.weight' size mismatch at index 0. expected 8, actual 9"
    block = event("recompile", 1, function="f", file=FILE, compile_id="0/2", reasons=(Reason("0/0", size, "size_mismatch"),))
    both = block._replace(reasons=(*block.reasons, Reason("0/1", weight, "parameter_size")))
    assert only([block], catalog=load_catalog()).advice[0].name == "none_first_automatic_dynamic"
    assert only([both], catalog=load_catalog()).advice[0].name == "force_parameter_static_shapes_false"


@pytest.mark.parametrize(
    ("exception", "message", "words"),
    [
        ("InductorError", "LoweringException: KeyError: 'op566'", "KeyError: 'op566'"),
        ("BackendCompilerFailed", "cannot find -lcuda", "BackendCompilerFailed: cannot find -lcuda"),
        ("AssertionError", None, "AssertionError"),
    ],
)
def test_a_failed_compilation_is_called_by_what_is_wrong(exception: str, message: str | None, words: str) -> None:
    """Not by the exceptions around it, which are the same for every failure."""
    finding = only([event("compile_error", exception=exception, message=message)])
    assert finding.title == f"torch.compile failed: {words}"
    assert finding.evidence[0].text == (f"{exception}: {message}" if message else exception)


def test_a_failure_says_when_it_came() -> None:
    """In backward(), or in code that was compiled; of a function of which only the call is known, where that is."""
    words: dict[str, Any] = {"exception": "RuntimeError", "message": "no such thing", "called_from": f"{FILE}:27 in main"}
    backward = only([event("compile_error", in_backward=True, **words)], catalog=load_catalog())
    at = f"{FILE.rpartition('/')[2]}:27"
    assert backward.title == f"torch.compile failed in backward() at {at}: RuntimeError: no such thing"
    assert "backward() failed" in backward.consequence
    assert all("compiled and called at" in one.where for one in backward.advice if FILE in one.where)
    running = only([event("compile_error", stage="running", function="f", exception="RuntimeError", message="no such thing")])
    assert running.title == "Compiled code of f raised: RuntimeError: no such thing"
    limit = only([event("recompile_limit_error", exception="FailOnRecompileLimitHit", called_from=f"{FILE}:27 in main")])
    assert limit.title.startswith(f"A function called at {at} exceeded the recompile limit")


def test_failed_compilations_with_different_causes_are_different_problems() -> None:
    """Each needs its own remedy; only the names that inductor numbers, sizes and places are the same problem."""
    failures = ["KeyError: 'op566'", "KeyError: 'op7'", "No valid triton configs", "expected size 8==9", "expected size 16==9"]
    found = report_of(event("compile_error", line, exception="InductorError", message=said) for line, said in enumerate(failures)).findings
    assert sorted(finding.count for finding in found) == [1, 2, 2]


def broken(line: int, function: str | None, line_no: int, text: str = "print") -> Event:
    """A graph break; torch prints the function of each place once."""
    return event("graph_break", line, function=function, file=FILE, line_no=line_no, reasons=(Reason(None, text, "other"),))


def test_a_break_without_its_stack_is_the_one_before_it() -> None:
    """torch prints the stack of each place once; the same line of the same file is the same break."""
    events = [broken(1, "f", 10), broken(2, None, 10), broken(3, "g", 20), broken(4, None, 20), broken(5, None, 10)]
    assert sorted((finding.function, finding.count) for finding in report_of(events).findings) == [("f", 3), ("g", 2)]


def test_a_break_of_which_only_the_place_is_known() -> None:
    """Where the log begins behind the stack: each place is a problem of its own, and a later one names none before it."""
    findings = report_of([broken(1, None, 10), broken(2, None, 20), broken(3, "f", 10), broken(4, None, 10)]).findings
    assert sorted((finding.function or "", finding.line_no, finding.count) for finding in findings) == [("", 10, 1), ("", 20, 1), ("f", 10, 2)]


@pytest.mark.parametrize("place", range(6))
def test_breaks_are_the_same_in_parts(place: int) -> None:
    """The stack may stand in the part before."""
    events = [broken(1, "f", 10), broken(2, None, 20), broken(3, None, 10), broken(4, "g", 20), broken(5, None, 20), broken(6, None, 10)]
    first, second = Analysis(RULES), Analysis(RULES)
    for number, one in enumerate(events):
        (first if number < place else second).add(one)
    first.merge(second)
    assert first.report(Facts()).findings == report_of(events, Facts()).findings


def limit_error(line: int, **fields: object) -> Event:
    """What is raised at the limit, without the function."""
    return event("recompile_limit_error", line, pid=None, exception="FailOnRecompileLimitHit", limit=8, limit_name="recompile_limit", **fields)


def test_what_is_raised_at_a_limit_has_the_function_that_hit_it() -> None:
    """torch warns of the function, then raises without naming it: one happening."""
    (raised, hit) = report_of([limit_hit(), limit_error(60)]).findings
    assert (raised.kind, raised.function, raised.line_no, raised.cause, raised.headroom) == (
        "recompile_limit_error", hit.function, hit.line_no, hit.cause, hit.headroom,
    )  # fmt: skip
    assert raised.evidence[0].text == f"FailOnRecompileLimitHit at recompile_limit (8); last reason: 0/7: x == 7; function 'f' in {FILE}:9"
    for other in (limit_error(60, rank=1), limit_error(800), limit_error(40), limit_error(60, function="g")):
        assert [one.function for one in report_of([limit_hit(), other]).findings if one.kind == "recompile_limit_error"] == [other.function]


def not_resumed(line: int, reason: str = "Reconstruction failure", **fields: object) -> list[Event]:
    """A break, and torch's word that it cannot resume behind it."""
    fields = {"function": "f", "file": FILE, "line_no": 12, "compile_id": "0/0", **fields}
    first = event("graph_break", line, reasons=(Reason(None, "Data-dependent branching", "other"),), hint="Use `torch.cond`", **fields)
    fields |= {"function": None, "compile_id": f"{fields['compile_id']}_1"}
    return [first, event("graph_break", line + 1, reasons=(Reason(None, reason, "other"),), operation="Iterator()", skipped=True, **fields)]


def test_a_break_that_cannot_be_resumed_is_one_finding() -> None:
    """It has the reason and the advice of the break, and what torch could not do about it."""
    finding = only(not_resumed(3), catalog=load_catalog())
    assert (finding.severity, finding.function, finding.count, finding.advice[0].name) == ("warning", "f", 2, "branch_as_tensor")
    assert finding.consequence.endswith("What stops it: Reconstruction failure: Iterator().")
    assert "eager mode" in finding.consequence and finding.evidence[1].text.endswith("; not resumed: Reconstruction failure: Iterator()")
    alone = only(not_resumed(3)[1:], catalog=load_catalog())
    assert (alone.severity, alone.advice[0].name) == ("warning", "rebuildable_values")
    (broken, skipped), (_, of_another_frame) = not_resumed(3), not_resumed(4, compile_id="4/0")
    assert len(report_of([broken, of_another_frame]).findings) == 2
    assert len(report_of([broken, skipped._replace(line_no=14)]).findings) == 2


@pytest.mark.parametrize("place", range(9))
def test_what_one_happening_says_is_the_same_in_parts(place: int) -> None:
    """What an event leaves out may stand in the part before."""
    events = [limit_hit(), limit_error(51), *not_resumed(60), *not_resumed(70, pid=8), limit_hit()._replace(line=80, offset=8000), limit_error(81)]
    first, second = Analysis(RULES), Analysis(RULES)
    for number, one in enumerate(events):
        (first if number < place else second).add(one)
    first.merge(second)
    assert first.report(Facts()).findings == report_of(events, Facts()).findings
