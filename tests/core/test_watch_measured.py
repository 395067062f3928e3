"""Which alerts are measured, when, and who is told what came of it."""

from __future__ import annotations

import json

import pytest

from recompile_watch.core.commands import Acknowledge, Silence
from recompile_watch.core.diagnostic_runs import Failed, Measurement, NotRun, end_of, without_calls
from recompile_watch.core.events import Event, Reason
from recompile_watch.core.matchers import parse_matcher
from recompile_watch.core.watch_settings import LifeSettings, QuietHours, Receiver, RunSettings, WatchSettings
from tests.core.watching import START, Play, event, heard, limit_hit, recompile, watch

RUNS = RunSettings("toto", wait_s=60.0, pause_s=900.0, give_up_s=3600.0, cooldown_s=6 * 3600.0)
SETTINGS = WatchSettings(runs=RUNS, receivers=(Receiver("ops"),))
GAIN = Measurement("31 recompiles → 0, 1.49 times faster [1.47, 1.51]; run variant:no-cache", "variant:no-cache")
REFUSED = NotRun("the GPU is in use by process 7")


def toto(at: float, function: str = "attend", kind: str = "recompile_limit_hit") -> Event:
    """A limit that was hit, or another event, in toto's code."""
    reason = Reason("3/7", "kv_cache._current_idx[7] == 0", "kv_cache_index")
    extra: dict[str, object] = {"limit": 8, "limit_name": "recompile_limit"} if kind == "recompile_limit_hit" else {}
    fields: dict[str, object] = {"function": function, "file": "/srv/toto/model/attention.py", "line_no": 105, "pid": 7, "reasons": (reason,)}
    return event(kind, at, **fields, **extra)  # type: ignore[arg-type]


def played(*events: Event, settings: WatchSettings = SETTINGS) -> Play:
    """A watch that has read events at its start."""
    return Play(watch(settings)).at(START + 1, *events)


def told(play: Play, receiver: str = "ops") -> list[str]:
    """What a receiver was told, in order."""
    return [notice.sort.value for notice in play.notices if notice.receiver == receiver]


def run_of(play: Play, kind: str = "recompile_limit_hit") -> dict[str, object]:
    """The diagnosis of the only incident of a kind, as its row has it."""
    found = play.row(kind)["diagnosis"]
    assert isinstance(found, dict)
    return found


def test_an_alert_begins_a_run_and_is_told_what_came_of_it() -> None:
    """A minute after the alert; the sentence follows to whom was told, and stands in the incident's row."""
    play = played(toto(START + 1))
    assert play.until(START + 60).runs == [] and run_of(play)["state"] == "waiting"
    (order,) = play.until(START + 62).runs
    assert (order.incident, order.needs_gpu, len(order.mark)) == (play.row("recompile_limit_hit")["id"], False, 32)
    assert (run_of(play)["state"], run_of(play)["started_at"]) == ("running", START + 61)
    play.until(START + 100).ended(GAIN)
    assert told(play) == ["opened", "measured"]
    (alert,) = play.notices[-1].alerts
    assert alert.measured == GAIN.text and "it was measured since" in alert.why
    assert run_of(play) == {
        "state": "done", "why": None, "started_at": None, "measured_at": START + 100, "text": GAIN.text, "choose": "variant:no-cache",
    }  # fmt: skip
    assert len(play.until(START + 20 * 3600).runs) == 1


@pytest.mark.parametrize(
    "one",
    [
        limit_hit(START + 1),  # of no model
        event("cudagraph_overwritten_error", START + 1, model="kronos"),
        event("out_of_memory", START + 1, model="toto", device="cuda:0"),  # nothing that eager mode would mend
        event("model_load", START + 1, model="toto"),
    ],
    ids=lambda one: f"{one.kind} {one.extra.get('model')}",
)
def test_what_a_workload_cannot_answer_is_not_measured(one: Event) -> None:
    """Another model, and what compiling has no part in."""
    assert played(one).until(START + 7200).runs == []


def test_nothing_is_started_unless_it_is_asked_for() -> None:
    """Without on_alert there are no runs; what a person has measured is told all the same."""
    play = played(toto(START + 1), settings=WatchSettings(receivers=(Receiver("ops"),))).until(START + 7200)
    assert play.runs == [] and play.row("recompile_limit_hit")["diagnosis"] is None
    play.ended(GAIN, str(play.row("recompile_limit_hit")["id"]))
    assert told(play) == ["opened", "measured"] and run_of(play)["state"] == "done"
    play.ended(REFUSED, str(play.row("recompile_limit_hit")["id"])).ended(GAIN, "no such incident")
    assert told(play) == ["opened", "measured"]


def test_what_old_logs_hold_is_measured_when_it_goes_on() -> None:
    """The summary of what happened before the watch began starts nothing; the same again, live, does."""
    play = Play(watch(SETTINGS)).at(START + 1, toto(START - 500), is_backlog=True).until(START + 3600)
    assert told(play) == ["backlog"] and play.runs == []
    assert len(play.at(START + 3700, toto(START + 3700)).until(START + 3800).runs) == 1


def test_one_run_at_a_time_the_worst_first_and_a_pause_between() -> None:
    """Three incidents: critical before warning, each after the end of the one before and the pause."""
    play = played(toto(START + 1, "late", "graph_break"), toto(START + 1), toto(START + 1, "decode")).until(START + 7200)
    assert len(play.runs) == 1
    functions = [str(play.rows[play.runs[0].incident]["function"])]
    for _ in range(2):
        before = len(play.runs)
        play.ended(GAIN)
        assert len(play.until(play.now + 890).runs) == before
        if len(play.until(play.now + 20).runs) > before:
            functions.append(str(play.rows[play.runs[-1].incident]["function"]))
    assert functions[:2] == ["attend", "decode"]


def test_what_is_refused_is_tried_again_and_then_given_up_and_told() -> None:
    """Every quarter of an hour, for an hour; the reason is in the row at once, in a message only at the end."""
    play = played(toto(START + 1)).until(START + 62).ended(REFUSED)
    assert (run_of(play)["state"], run_of(play)["why"]) == ("waiting", REFUSED.why)
    for _ in range(10):
        play.until(play.now + 901)
        if run_of(play)["state"] == "running":
            play.ended(REFUSED)
    assert len(play.runs) == 5 and run_of(play)["state"] == "given_up"
    assert told(play) == ["opened", "measured"] and play.notices[-1].alerts[0].measured == f"not measured: {REFUSED.why}"


@pytest.mark.parametrize(("is_final", "tries"), [(False, 3), (True, 1)])
def test_what_breaks_is_tried_three_times_at_most(is_final: bool, tries: int) -> None:
    """A wrong configuration once."""
    play = played(toto(START + 1))
    for _ in range(6):
        play.until(play.now + 901)
        if run_of(play)["state"] == "running":
            play.ended(Failed("it ended with status 78", is_final))
    assert len(play.runs) == tries and run_of(play)["text"] == "not measured: it ended with status 78"
    assert told(play) == ["opened", "measured"]


def test_the_structure_at_once_and_the_times_when_the_gpu_is_free() -> None:
    """What the structure shows is told; the run that times waits for the GPU, and is told as well."""
    structure = Measurement("26 recompiles → 3 with exclude=attend; not decided: nothing was timed", None, REFUSED.why)
    play = played(toto(START + 1)).until(START + 62).ended(structure)
    assert told(play) == ["opened", "measured"] and (run_of(play)["state"], run_of(play)["why"]) == ("waiting", REFUSED.why)
    play.until(play.now + 901).ended(REFUSED)
    assert [order.needs_gpu for order in play.runs] == [False, True] and run_of(play)["text"] == structure.text
    play.until(play.now + 901).ended(GAIN)
    assert told(play) == ["opened", "measured", "measured"] and run_of(play)["text"] == GAIN.text
    again = played(toto(START + 1)).until(START + 62).ended(structure)
    for _ in range(10):
        again.until(again.now + 901)
        if run_of(again)["state"] == "running":
            again.ended(REFUSED)
    assert run_of(again)["state"] == "given_up" and told(again) == ["opened", "measured"]  # nobody is told the same twice


def test_an_incident_cools_down() -> None:
    """It ends and comes back: measured again, but not before six hours after the result."""
    settings = WatchSettings(runs=RUNS, receivers=(Receiver("ops"),), life=LifeSettings(resolve_after_s=600.0, resolve_kinds=()))
    play = played(toto(START + 1), settings=settings).until(START + 62).ended(GAIN)
    for hour in range(1, 8):
        play.at(START + hour * 3600.0, toto(START + hour * 3600.0)).until(START + hour * 3600.0 + 300)
    assert len(play.runs) == 2 and run_of(play)["started_at"] == START + 62 + RUNS.cooldown_s
    assert run_of(play)["text"] == GAIN.text  # it stays true meanwhile


def test_what_is_over_or_silenced_meanwhile_is_not_measured() -> None:
    """A person silences it within the minute."""
    play = played(toto(START + 1))
    assert play.command(Silence((parse_matcher("function=attend"),), START + 9000.0, "ann", "known")) is None
    assert play.until(START + 3600).runs == [] and run_of(play)["state"] == "given_up" and told(play) == ["opened"]


def test_an_acknowledged_incident_is_measured_and_a_silenced_one_is_not_told() -> None:
    """Who works on it wants to know; who is to hear nothing hears nothing."""
    play = played(toto(START + 1))
    name = str(play.row("recompile_limit_hit")["id"])
    assert play.command(Acknowledge(name, None, "ann", "")) is None
    play.until(START + 62).ended(GAIN)
    assert told(play) == ["opened", "measured"]
    play = played(toto(START + 1)).until(START + 62)
    assert play.command(Silence((parse_matcher("function=attend"),), START + 9000.0, "ann", "known")) is None
    play.ended(GAIN).until(START + 3600)
    assert told(play) == ["opened"] and run_of(play)["text"] == GAIN.text


def test_what_is_over_before_the_result_is_told_as_over_once() -> None:
    """The result comes late: it is told, and nothing else is told again because of it."""
    settings = WatchSettings(runs=RUNS, receivers=(Receiver("ops"),), life=LifeSettings(resolve_after_s=600.0, resolve_kinds=()))
    play = played(toto(START + 1), settings=settings).until(START + 3600).ended(GAIN).until(START + 7200)
    assert told(play) == ["opened", "resolved", "measured"] and play.notices[-1].alerts[0].state == "resolved"


@pytest.mark.parametrize(
    ("choose", "first", "is_tried_again"),
    [("eager", "disable_compile_for_model", False), ("exclude=attend", "exclude_from_compile", True), (None, "exclude_from_compile", True)],
)
def test_what_was_measured_to_be_best_is_advised_first(choose: str | None, first: str, is_tried_again: bool) -> None:
    """What lost against eager is not advised any more."""
    play = played(toto(START + 1)).until(START + 62).ended(Measurement("measured", choose))
    advice = [one.name for one in play.notices[-1].alerts[0].advice]
    assert advice[0] == first and ("exclude_from_compile" in advice) is is_tried_again


def test_the_row_of_a_run_has_its_advice_in_a_burst() -> None:
    """A run reads the incident's advice from its row: that is made anew however many others change in the same step."""
    play = played(toto(START + 1)).until(START + 50)
    step = play.watch.feed([heard(*(toto(START + 62, f"function_{n}") for n in range(60)))], (), START + 62)
    (order,) = step.runs
    assert step.incidents[order.incident]["advice"] and sum(not row["advice"] for row in step.incidents.values()) > 30


def test_only_those_are_told_who_were_told() -> None:
    """A receiver of other models hears nothing; one in its quiet hours hears it in the morning; one whose message waits reads it there."""
    receivers = (
        Receiver("ops"), Receiver("kronos", matchers=(parse_matcher("model=kronos"),)),
        Receiver("night", quiet_hours=QuietHours("09:08", "12:00")), Receiver("slow", critical_wait_s=600.0),
    )  # fmt: skip
    play = played(toto(START + 1), settings=WatchSettings(runs=RUNS, receivers=receivers)).until(START + 62).ended(GAIN)
    assert [told(play, name) for name in ("ops", "kronos", "slow")] == [["opened", "measured"], [], []]
    play.until(START + 700)
    assert told(play, "slow") == ["opened"] and play.notices[-1].alerts[0].measured == GAIN.text
    assert told(play, "night") == ["opened", "measured"]  # critical ones pass


def test_what_another_incident_explains_is_not_measured() -> None:
    """The recompiles of a function whose limit was hit: one run, for the limit."""
    play = played(*(recompile(START + 1, n) for n in range(2, 9)), toto(START + 1), toto(START + 2, kind="graph_break")).until(START + 7200)
    assert [play.rows[order.incident]["kind"] for order in play.runs] == ["recompile_limit_hit"]


def test_killed_while_it_runs() -> None:
    """The mark of its processes is remembered, it is tried again after a pause, and not for ever."""
    play = played(toto(START + 1)).until(START + 62)
    mark = play.runs[-1].mark
    for attempt in range(1, 4):
        play.restart(SETTINGS)
        assert len(play.watch.interrupted) == 1 and (attempt > 1 or play.watch.interrupted == (mark,))
        play.until(play.now + 1200)
        assert len(play.runs) == min(attempt + 1, 3)
    assert run_of(play)["state"] == "given_up" and "the watch ended while it ran" in str(run_of(play)["text"])
    assert play.restart(SETTINGS).watch.interrupted == ()


def test_switched_off_while_one_waits() -> None:
    """After a restart without on_alert nothing is started any more."""
    play = played(toto(START + 1)).restart(WatchSettings(receivers=(Receiver("ops"),))).until(START + 7200)
    assert play.runs == [] and run_of(play)["state"] == "given_up"


REPORT = {
    "schema": "recompile-watch/diagnosis/1", "eager": {"status": "ok", "per_call": [1]}, "postponed": "in use",
    "candidates": [{"name": "default", "timing": {"speedup": 2.0, "per_call": [{"eager_ms": 1}], "warmup": [1]}}],
    "verdict": {"status": "inconclusive", "choose": None, "summary": "not decided"},
}  # fmt: skip


def test_reading_a_report() -> None:
    """What it says; a decided one is not postponed, a stopped one says nothing yet, and what is none is refused."""
    assert end_of(REPORT) == Measurement("not decided", None, "in use")
    assert end_of({**REPORT, "verdict": {"status": "decided", "choose": "eager", "summary": "keep eager"}}) == Measurement("keep eager", "eager")
    assert end_of({**REPORT, "eager": {"status": "skipped", "reason": "the bot's own calls take 90 ms"}}) == NotRun("the bot's own calls take 90 ms")
    for wrong in ({}, {"schema": "x"}, {**REPORT, "verdict": 3}):
        with pytest.raises(ValueError, match="no report"):
            end_of(wrong)
    assert "per_call" not in json.dumps(without_calls(REPORT)) and without_calls(REPORT)["postponed"] == "in use"
