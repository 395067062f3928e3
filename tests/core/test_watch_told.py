"""Who is told what, when, and how often."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from recompile_watch.core.commands import Acknowledge, Silence, Unsilence
from recompile_watch.core.events import Reason
from recompile_watch.core.heard import Trouble, TroubleKind
from recompile_watch.core.matchers import parse_matcher
from recompile_watch.core.watch_settings import LifeSettings, QuietHours, Receiver, WatchSettings
from tests.core.watching import OPS, START, Play, bot_error, event, heard, limit_hit, recompile, watch

DAY = 86_400.0
SHORT = WatchSettings(life=LifeSettings(resolve_after_s=600.0, resolve_kinds=()))


def overwritten(at: float, line: int | None = None) -> object:
    """The output of a CUDA graph was overwritten."""
    return event("cudagraph_overwritten_error", at, line=line, model="kronos")


def failure(at: float, cause: str = "assertion", line: int | None = None) -> object:
    """A forecast failed."""
    return event("forecast_failure", at, line=line, model="kronos", symbol="ETHUSD", message="", cause=cause)


def test_a_critical_event_is_told_in_the_very_step() -> None:
    """Nothing waits: the call that takes the event gives the notice, with the place, the words and the remedy."""
    play = Play(watch()).at(START + 1, limit_hit(START + 1))
    (notice,) = play.notices
    (alert,) = notice.alerts
    assert (notice.sort, notice.severity, notice.made_at, notice.host) == ("opened", "critical", START + 1, "box")
    assert alert.what == "step hit the recompile limit (8)"
    assert alert.places[0].line > 0 and "hit config.recompile_limit (8)" in alert.places[0].text
    assert alert.advice and alert.cost.startswith("From now on new inputs of step run in eager mode")
    assert alert.why == "ops takes warning and worse; it is new"


def test_warnings_wait_for_each_other() -> None:
    """What comes within half a minute is one message."""
    play = Play(watch()).at(START + 1, bot_error(START + 1, "one thing")).at(START + 20, bot_error(START + 20, "another thing"))
    assert play.told() == []
    assert play.until(START + 40).told() == [("opened", "bot_error", 2)]


def test_more_of_the_same_kind_waits_longer() -> None:
    """The next warnings of a kind that was just told come together after half an hour."""
    play = Play(watch()).at(START, bot_error(START, "thing number a"))
    for n, name in enumerate("bcdef"):
        play.at(START + 300.0 * (n + 1), bot_error(START + 300.0 * (n + 1), f"thing number {name}"))
    assert play.until(START + 2000).told() == [("opened", "bot_error", 1), ("opened", "bot_error", 5)]


def test_each_event_is_counted_once_and_told_once() -> None:
    """A thousand of the same are one message."""
    play = Play(watch())
    for n in range(1000):
        play.at(START + n / 10, bot_error(START + n / 10, "Error in main loop: 17 retries"))
    assert play.until(START + 200).told() == [("opened", "too_many", 1)]
    assert play.row("bot_error")["count"] == 1000


def test_facts_are_told_to_nobody() -> None:
    """A compile mode, a real quote, a finished warm-up, a plan: nothing of it is an incident."""
    play = Play(watch(receivers=(Receiver("all", min_severity="info"),)))
    play.at(
        START, event("compile_mode", START, model="toto", compiled=True), event("quote", START, symbol="BTCUSD", bid=1.0, ask=1.1),
        event("warmup_done", START, model="toto", seconds=38.0), event("plan", START, count=2), event("order", START, symbol="A"),
    )  # fmt: skip
    assert play.until(START + DAY).notices == [] and play.rows == {}


def test_what_gets_worse_is_told_at_once() -> None:
    """A recompile that was worth a warning becomes critical when error_on_recompile makes an exception of it."""
    play = Play(watch())
    for n in range(3):
        play.at(START + n, recompile(START + n, 2 + n))
    play.until(START + 60)
    raised = recompile(START + 61, 5)
    play.at(START + 61, raised._replace(extra={**raised.extra, "raised": True}))
    assert [(notice.sort, notice.severity) for notice in play.notices] == [("opened", "warning"), ("worse", "critical")]
    assert "it was warning when you were told" in play.notices[1].alerts[0].why


def test_what_is_raised_at_a_limit_is_told_of_the_function() -> None:
    """The warning names it, the exception behind it does not; a watch that begins anew between them knows it still."""
    play = Play(watch()).at(START + 1, limit_hit(START + 1)).restart()
    play.at(START + 2, event("recompile_limit_error", START + 2, exception="FailOnRecompileLimitHit", limit=8, limit_name="recompile_limit"))
    assert play.row("recompile_limit_error")["function"] == "step"
    assert "step exceeded the recompile limit" in play.notices[-1].alerts[0].what


def test_it_is_resolved_after_the_quiet_time() -> None:
    """Ten minutes without such an event, as configured here: over, and told."""
    play = Play(watch(SHORT)).at(START, limit_hit(START)).until(START + 700)
    assert play.told() == [("opened", "recompile_limit_hit", 1), ("resolved", "recompile_limit_hit", 1)]
    row = play.row("recompile_limit_hit")
    assert (row["state"], row["resolved_at"], row["ended_because"]) == ("resolved", START + 600, "no such event for 10 min")


def test_a_run_of_the_model_without_it_resolves_it() -> None:
    """Loaded, ran, loaded again, and no such event between: over, without waiting for a day."""
    play = Play(watch()).at(START, limit_hit(START)._replace(file="/srv/toto/model.py"))
    for at in (START + 3600, START + 7200):
        play.at(at, event("model_load", at, model="toto"))
    assert play.until(START + 7300).row("recompile_limit_hit")["ended_because"] == "its model was loaded again and ran without it"


def test_what_comes_back_is_the_same_incident() -> None:
    """It is told that it came back; its count goes on and its id stays."""
    play = Play(watch(SHORT)).at(START, limit_hit(START)).until(START + 5000).at(START + 5000, limit_hit(START + 5000))
    assert [notice.sort for notice in play.notices] == ["opened", "resolved", "opened"]
    assert play.row("recompile_limit_hit")["count"] == 2
    assert "it was over and has come back" in play.notices[2].alerts[0].why


def test_flapping_at_one_hertz_is_three_messages() -> None:
    """Ten minutes of on and off each second: told once, told once that it flaps, told once that it is over."""
    play = Play(watch())
    for n in range(600):
        trouble = Trouble(TroubleKind.UNREADABLE, "bot.log", "bot.log: permission denied", is_over=bool(n % 2))
        play.until(START + n).feed([], START + n, [trouble])
    play.until(START + 7200)
    assert [notice.sort for notice in play.notices] == ["opened", "flapping", "resolved"]


def test_what_goes_on_is_repeated_after_a_day() -> None:
    """Once a day as long as it happens; not when nothing happened since."""
    play = Play(watch())
    for hour in range(0, 50, 2):
        play.at(START + hour * 3600, limit_hit(START + hour * 3600))
    assert [notice.sort for notice in play.notices] == ["opened", "repeated", "repeated"]


def test_acknowledged_nobody_hears_of_it_until_it_expires() -> None:
    """No repeat and no escalation while somebody knows; afterwards it counts again."""
    ops = Receiver("ops", repeat_interval_s=600.0, escalate_to="chief", escalate_after_s=1200.0)
    play = Play(watch(receivers=(ops, Receiver("chief", only_escalations=True)))).at(START, limit_hit(START))
    name = str(play.row("recompile_limit_hit")["id"])
    assert play.command(Acknowledge(name[:6], START + 3600, "ann", "expected until the release")) is None
    for n in range(1, 6):
        play.at(START + n * 700, limit_hit(START + n * 700))
    assert len(play.notices) == 1
    play.at(START + 3700, limit_hit(START + 3700))
    assert [(notice.receiver, notice.sort) for notice in play.notices[1:]] == [("chief", "escalated"), ("ops", "repeated")]


def test_nobody_acknowledges_and_the_next_one_is_told() -> None:
    """Half an hour without an answer: the second receiver hears of it, once, and also that it is over."""
    receivers = (Receiver("ops", escalate_to="chief"), Receiver("chief", only_escalations=True))
    settings = WatchSettings(receivers=receivers, life=LifeSettings(resolve_after_s=4000.0))
    play = Play(watch(settings)).at(START, limit_hit(START)).until(START + 9000)
    assert [(one.receiver, one.sort, one.made_at - START) for one in play.notices if one.receiver == "chief"] == [
        ("chief", "escalated", 1800.0), ("chief", "resolved", 4060.0),
    ]  # fmt: skip


def test_a_silence_covers_by_fields_and_ends_while_it_still_happens() -> None:
    """Nothing while it lasts; one message when it ends and the trouble does not."""
    play = Play(watch())
    assert play.command(Silence((parse_matcher("kind=~recompile.*"), parse_matcher("function=step")), START + 3600, "ann", "known")) is None
    for n in range(0, 10):
        play.at(START + 1 + n * 300, limit_hit(START + 1 + n * 300), recompile(START + 1 + n * 300, 4), limit_hit(START + 1, function="other"))
    assert [notice.alerts[0].function for notice in play.notices] == ["other"]
    play.until(START + 3700)
    assert [notice.alerts[0].function for notice in play.notices] == ["other", "step"]
    assert "step compiled again 10 times: a tensor's size changed" in play.notices[1].alerts[0].explains


def test_a_silence_can_be_ended_by_hand() -> None:
    """By the beginning of its id; what is unknown or ambiguous is refused in one line."""
    play = Play(watch())
    play.command(Silence((parse_matcher("severity=critical"),), START + 3600, "ann", "known"))
    play.at(START + 1, limit_hit(START + 1))
    (name,) = (key.removeprefix("silence/") for key in play.parts if key.startswith("silence/"))
    refusal = play.command(Unsilence("zzz"))
    assert refusal is not None and refusal.text.startswith("no silences begin with 'zzz'")
    assert play.notices == [] and play.command(Unsilence(name[:4])) is None
    assert [notice.sort for notice in play.notices] == ["opened"]


@pytest.mark.parametrize("text", ["", "kind", "colour=red", "kind=~(", "x" * 600])
def test_a_bad_matcher_says_what_to_write(text: str) -> None:
    """One line, whatever was written."""
    with pytest.raises(ValueError, match=r"matcher|field|pattern"):
        parse_matcher(text)


def test_a_limit_hit_explains_what_led_to_it_and_what_follows() -> None:
    """Recompiles, skips and breaks of the same function are named in its message and not told by themselves."""
    play = Play(watch())
    for n in range(2, 9):
        play.at(START + n, recompile(START + n, n))
    play.at(START + 10, limit_hit(START + 10))
    skip = event("cudagraph_skip", None, reasons=(Reason(None, "mutated inputs", "other"),), function="step", file="/srv/model.py")
    play.at(START + 11, skip).until(START + 3600)
    assert play.told() == [("opened", "recompile_limit_hit", 1)]
    kinds = {row["kind"] for row in play.rows.values() if row["explained_by"]}
    assert kinds == {"recompile", "headroom_low", "cudagraph_skip"}


def test_an_overwritten_output_explains_the_failures_after_it() -> None:
    """The failure that one record shows together with its cause, and the assertions of later calls."""
    play = Play(watch())
    play.at(START, failure(START, "cudagraph_overwritten", line=77), overwritten(START, line=77))  # type: ignore[arg-type]
    for n in range(1, 20):
        play.at(START + n, failure(START + n))  # type: ignore[arg-type]
    play.until(START + 3600)
    assert play.told() == [("opened", "cudagraph_overwritten_error", 1)]


def test_an_unrelated_failure_is_told() -> None:
    """Another model's failure has another cause."""
    play = Play(watch()).at(START, overwritten(START))  # type: ignore[arg-type]
    play.at(START + 1, event("forecast_failure", START + 1, model="toto", symbol="A", message="", cause="assertion")).until(START + 100)
    assert play.told() == [("opened", "cudagraph_overwritten_error", 1), ("opened", "forecast_failure", 1)]


def test_recompiles_of_a_warm_up_are_expected() -> None:
    """While a model warms up nobody hears of them; of those that come later everybody does."""
    play = Play(watch()).at(START, event("model_load", START, model="toto"))
    for n in range(4):
        play.at(START + 1 + n, recompile(START + 1 + n, 2 + n % 2))
    assert play.until(START + 600).notices == []
    play.at(START + 600, recompile(START + 600, 3)).until(START + 700)
    assert play.told() == [("opened", "recompile", 1)]


def test_ten_thousand_distinct_alerts_are_few_messages_and_all_stored() -> None:
    """A few at once, then one a minute with a count of the rest; each incident has its row where so many are wanted."""
    play = Play(watch(WatchSettings(max_incidents=20_000)))
    for second in range(50):
        names = ("".join(chr(97 + n // 26**i % 26) for i in range(4)) for n in range(second * 200, second * 200 + 200))
        play.at(START + second, *(limit_hit(START + second, function=name) for name in names))
    play.until(START + 400)
    assert len(play.rows) == 10_000
    assert len(play.notices) <= 4 + 3
    assert sum(len(notice.alerts) + notice.left_out for notice in play.notices) == 10_000


def test_keys_that_an_attacker_makes_are_bounded() -> None:
    """Beyond the bound they are counted in one incident, which is told once and says so; the count is right, also after a restart."""
    settings = WatchSettings(max_incidents=40)
    play = Play(watch(settings))
    for n in range(100):
        play.at(START + n, limit_hit(START + n, function=f"f{chr(97 + n // 26)}{chr(97 + n % 26)}"))
        if n == 50:
            play.restart(settings)
    play.until(START + 4000)
    more = play.row("more_problems")
    assert (len(play.rows), more["count"], more["severity"], play.watch.overflowed) == (21, 80, "critical", 80)
    assert str(more["title"]).startswith("More problems than can be told one by one; the latest: fdv hit the recompile limit (8)")
    assert more["function"] is None and more["advice"] == []
    told = [alert for notice in play.notices for alert in notice.alerts if alert.incident == more["id"]]
    assert len(told) == 1 and "analyze" in told[0].cost


def test_a_flood_of_one_kind_hides_no_other() -> None:
    """One kind fills half of the places; faults of the watching are always told; a critical problem among milder ones is told as that."""
    play = Play(watch(WatchSettings(max_incidents=10)))
    for n in range(50):
        play.at(START + n, event("synthetic_quote", START + n, symbol=f"S{n + 10}USD", cause="invalid_quote"))
    assert play.row("more_problems")["severity"] == "warning"
    play.at(START + 60, *(limit_hit(START + 60, function=f"f{chr(97 + n)}") for n in range(5)))
    play.feed([], START + 61, [Trouble(TroubleKind.GAP, "bot.log", "lines were lost")])
    play.until(START + 4000)
    kinds = Counter(str(row["kind"]) for row in play.rows.values())
    assert kinds == {"synthetic_quote": 5, "more_problems": 1, "recompile_limit_hit": 4, "watch_gap": 1}
    more = play.row("more_problems")
    assert (more["count"], more["severity"]) == (46, "critical")
    assert ("worse", "more_problems", 1) in play.told() or any("more_problems" in {one.kind for one in notice.alerts} for notice in play.notices)


def test_what_an_event_holds_is_bounded() -> None:
    """Reasons of a megabyte each: what is remembered of them does not grow with them."""
    play = Play(watch())
    for n in range(40):
        long = Reason(f"3/{n % 7}", f"L['x{n}{'y' * 1_000_000}'] == {n}", "other")
        play.at(START + n, event("recompile", START + n, function="step", file="/srv/m.py", reasons=(long,)))
    assert sum(len(json.dumps(part)) for part in play.parts.values()) < 1_000_000
    assert sum(len(str(part)) for raw in play.watch._casebook._raw for part in raw) < 1_000_000


def test_quiet_hours_hold_back_warnings_only() -> None:
    """What is critical passes; the rest comes in one message when they end. The hours are local."""
    ops = Receiver("ops", quiet_hours=QuietHours("04:00", "06:00", "America/New_York"))  # START is 05:07 there
    play = Play(watch(receivers=(ops,))).at(START, bot_error(START)).at(START + 100, limit_hit(START + 100))
    play.at(START + 200, event("synthetic_quote", START + 200, symbol="BTCUSD", cause="invalid_quote")).until(START + 4000)
    assert [(notice.severity, notice.made_at - START) for notice in play.notices] == [("critical", 100.0), ("warning", 3168.0)]


def test_routing_by_fields_and_severity() -> None:
    """A receiver for one model, one for what is critical, one that groups by model."""
    receivers = (
        Receiver("kronos", matchers=(parse_matcher("model=kronos"),)), Receiver("worst", min_severity="critical"),
        Receiver("split", group_by=("model",)),
    )  # fmt: skip
    play = Play(watch(receivers=receivers))
    play.at(START, bot_error(START), event("out_of_memory", START, model="kronos"), event("out_of_memory", START, model="toto")).until(START + 100)
    assert play.told("kronos") == [("opened", "out_of_memory", 1)]
    assert play.told("worst") == []
    assert len(play.told("split")) == 3


def test_a_digest_lists_what_was_not_told_by_itself() -> None:
    """Once a day, and only when there is something; what is below the threshold stands in it."""
    calm = Receiver("calm", min_severity="critical", digest_at="12:00")
    play = Play(watch(receivers=(calm,))).at(START, bot_error(START)).until(START + 3 * DAY)
    assert [(notice.sort, notice.alerts[0].kind) for notice in play.notices] == []
    settings = WatchSettings(receivers=(calm,), life=LifeSettings(resolve_kinds=()))
    play = Play(watch(settings)).at(START, bot_error(START)).until(START + 3 * DAY)
    assert [(notice.sort, notice.alerts[0].kind) for notice in play.notices] == [("digest", "bot_error")]


def test_a_backlog_is_one_summary() -> None:
    """A thousand problems from before the watch began: one notice, and what goes on is an update, no news."""
    play = Play(watch())
    for n in range(1000):
        play.at(START + n, limit_hit(START + n, function="f" + "abcdefghij"[n % 10] * (1 + n // 10 % 10)), is_backlog=True)
    assert play.notices == []
    play.until(START + 1100)
    (notice,) = play.notices
    assert (notice.sort, len(notice.alerts), notice.left_out) == ("backlog", 10, 90)
    play.at(START + 1200, limit_hit(START + 1200, function="fa")).until(START + 2000)
    assert len(play.notices) == 1
    play.at(START + 2000, limit_hit(START + 2000, function="brand_new"))
    assert [one.sort for one in play.notices] == ["backlog", "opened"]


def test_what_was_over_in_the_backlog_is_not_told() -> None:
    """An incident that the old log itself shows to be over stands in no summary."""
    play = Play(watch(SHORT))
    now = START + 50_000
    play.until(now).feed([heard(limit_hit(START), is_backlog=True)], now)
    play.feed([heard(bot_error(START + 5000), is_backlog=True)], now + 5).until(now + 100)
    assert [(one.sort, [alert.kind for alert in one.alerts]) for one in play.notices] == [("backlog", ["bot_error"])]


def test_trouble_of_the_watching_is_an_incident_of_its_own() -> None:
    """It is told with its sentence and is over when it is said to be."""
    trouble = Trouble(TroubleKind.GAP, "bot.log", "bot.log was rotated twice; make the poll interval shorter", lost_bytes=4096)
    play = Play(watch()).feed([], START, [trouble]).until(START + 100)
    assert play.notices[0].alerts[0].what == "bot.log was rotated twice; make the poll interval shorter (4,096 bytes were never read)"
    assert play.row("watch_gap")["state"] == "open"


def test_two_receivers_have_the_same_default() -> None:
    """Ten lines of configuration: a name is enough."""
    assert Receiver("ops") == OPS


def test_a_lasting_incident_that_flaps_is_not_due_again_and_again() -> None:
    """While it flaps, or another one explains it, no repeat is told, so none is due: time goes on."""
    settings = WatchSettings(receivers=(Receiver("ops", repeat_interval_s=600.0),))
    play = Play(watch(settings))
    for turn in range(8):
        at = START + 90.0 * turn
        play.until(at).at(at, event("strategy_return", at, symbol="BTCUSD", strategy="MaxDiff", share=0.1 if turn % 2 else -0.3))
    play.at(play.now + 90.0, event("strategy_return", play.now + 90.0, symbol="BTCUSD", strategy="MaxDiff", share=-0.3))
    due = play.until(play.now + 3_000.0).watch.next_due()
    assert due is not None and due > play.now
    assert "flapping" in [sort for sort, _, _ in play.told()]
