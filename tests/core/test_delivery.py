"""Tests of `recompile_watch.core.delivery`: what goes to whom and when, whatever fails, restarts or jumps."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recompile_watch.core.delivery import DeliverySettings, Outbox
from recompile_watch.core.errors import StoreError
from recompile_watch.core.heard import TroubleKind
from recompile_watch.core.messages import Delivered, Outcome, Reason, Refused, Retry
from recompile_watch.core.notices import Notice, NoticeSort
from recompile_watch.core.parcels import Parcel, ParcelState, parcel_from_json, parcel_to_json
from tests.notices import ALERT, NOW, QUOTES, notice

OPS = DeliverySettings("ops", fallback="pager", at_once=100)
PAGER = DeliverySettings("pager", at_once=100)
DOWN = Retry(Reason.SERVER, "HTTP 503")
RESOLVED = replace(ALERT, state="resolved")


def outbox(*parcels: Parcel) -> Outbox:
    """An outbox for `ops`, whose fallback is `pager`."""
    return Outbox((OPS, PAGER), parcels)


def failed_once(box: Outbox, now: float, outcome: Outcome = DOWN) -> float:
    """Takes what is due and lets it fail; gives when the next attempt is due."""
    for taken in box.take(now):
        box.settle(taken.id, outcome, now)
    due = box.next_due(now)
    assert due is not None
    return due


def alone() -> Outbox:
    """An outbox for `ops`, which has no fallback."""
    return Outbox([DeliverySettings("ops", at_once=100)])


def states(box: Outbox) -> dict[str, str]:
    """The state of each parcel that changed."""
    return {parcel.id: parcel.state.value for parcel in box.changes()}


def test_one_at_a_time() -> None:
    """A receiver has one message on its way; the next goes when that one's outcome is known."""
    box = outbox()
    box.add([notice(id="a"), notice(NoticeSort.OPENED, QUOTES, id="b")], NOW)
    assert [taken.id for taken in box.take(NOW)] == ["a"]
    assert box.take(NOW) == [] and box.next_due(NOW) is None
    box.settle("a", Delivered(), NOW)
    assert [taken.id for taken in box.take(NOW)] == ["b"]


def test_receivers_do_not_wait_for_each_other() -> None:
    """One of two receivers fails: only that one is tried again (case 84)."""
    box = outbox()
    box.add([notice(id="a"), notice(receiver="pager", id="b")], NOW)
    for taken in box.take(NOW):
        box.settle(taken.id, Delivered() if taken.receiver == "pager" else DOWN, NOW)
    assert [taken.id for taken in box.take(NOW + 3600)] == ["a"]


def test_waits_grow_with_jitter_to_a_cap() -> None:
    """Waits double from 5 s to 15 min, each up to a fifth shorter or longer, differently for different ids."""
    box, now, waits = alone(), NOW, []
    box.add([notice()], NOW)
    for _ in range(14):
        due = failed_once(box, now)
        waits.append(due - now)
        now = due
    for attempt, wait in enumerate(waits):
        assert 0.8 * min(900, 5 * 2**attempt) <= wait <= 1.2 * min(900, 5 * 2**attempt)
    other = alone()
    other.add([notice(id="other")], NOW)
    assert failed_once(other, NOW) - NOW != waits[0]


@pytest.mark.parametrize(("after_s", "least", "most"), [(30.0, 30, 36), (0.0, 1, 1.2), (1e9, 3600, 4320), (None, 4, 6)])
def test_retry_after_is_honoured_up_to_a_cap(after_s: float | None, least: float, most: float) -> None:
    """A receiver's own Retry-After is never cut short, but it cannot ask for more than an hour."""
    box = alone()
    box.add([notice()], NOW)
    due = failed_once(box, NOW, Retry(Reason.RATE_LIMIT, "HTTP 429", after_s))
    assert least <= due - NOW <= most
    assert box.take(due - 0.01) == [] and len(box.take(due)) == 1


def test_one_digest_after_an_outage() -> None:
    """A receiver that was down for six hours gets one message: what is open, and what came and went meanwhile (case 81)."""
    box, now = alone(), NOW
    box.add([notice(id="a")], now)
    now = failed_once(box, now)
    box.add([notice(NoticeSort.OPENED, QUOTES, id="b")], now)
    while now < NOW + 6 * 3600:
        now = failed_once(box, now)
    box.add([notice(NoticeSort.RESOLVED, RESOLVED, id="c")], now)
    (digest,) = box.take(now)
    box.settle(digest.id, Delivered(), now)
    assert box.take(now + 3600) == []
    assert digest.sort is NoticeSort.DIGEST
    assert [(alert.incident, alert.state) for alert in digest.alerts] == [("18", "open"), ("17", "resolved")]
    assert digest.severity == "warning" and "HTTP 503" in digest.note and "3 messages" in digest.note


def test_a_resolve_overtakes_what_waits() -> None:
    """A message that still waits is dropped when the incident's end is told; the end itself is told."""
    box = outbox()
    box.add([notice(NoticeSort.REPEATED, id="a"), notice(NoticeSort.RESOLVED, RESOLVED, id="b")], NOW)
    assert [taken.id for taken in box.take(NOW)] == ["b"]
    assert states(box) == {"a": "dropped", "b": "sending"}


def test_a_resolve_of_another_incident_overtakes_nothing() -> None:
    """A message about two incidents waits on when only one of them ends."""
    box = outbox()
    box.add([notice(NoticeSort.OPENED, ALERT, QUOTES, id="a"), notice(NoticeSort.RESOLVED, RESOLVED, id="b")], NOW)
    assert [taken.id for taken in box.take(NOW)] == ["a"]


def test_refused_goes_to_the_fallback_with_the_reason() -> None:
    """A message that a receiver refuses is dead there, goes to its fallback, and the watch hears of it (case 83)."""
    box = outbox()
    box.add([notice(id="a")], NOW)
    box.take(NOW)
    (trouble,) = box.settle("a", Refused(Reason.REJECTED, "HTTP 404"), NOW)
    assert (trouble.kind, trouble.subject, trouble.is_over) == (TroubleKind.UNDELIVERED, "ops", False)
    (copy,) = box.take(NOW)
    assert copy.receiver == "pager" and copy.alerts == (ALERT,) and "ops, which did not take it (HTTP 404)" in copy.note
    assert states(box)["a"] == "dead"


def test_fallbacks_in_a_circle_end() -> None:
    """Two receivers that are each other's fallback do not play a message back and forth."""
    box = Outbox((OPS, replace(PAGER, fallback="ops")))
    box.add([notice(id="a")], NOW)
    for _ in range(3):
        for taken in box.take(NOW):
            box.settle(taken.id, Refused(Reason.REJECTED, "HTTP 404"), NOW)
    assert box.take(NOW) == []
    assert set(states(box).values()) == {"dead"}


def test_a_receiver_down_for_long_is_told_elsewhere_once() -> None:
    """After a quarter of an hour the fallback gets what waits, each message once; the receiver itself is tried on."""
    box, now, elsewhere = outbox(), NOW, []
    box.add([notice(id="a")], now)
    for hour in range(40):
        for taken in box.take(now):
            if taken.receiver == "pager":
                elsewhere.append(taken)
            box.settle(taken.id, Delivered() if taken.receiver == "pager" else DOWN, now)
        if hour == 20:
            box.add([notice(NoticeSort.OPENED, QUOTES, id="b")], now)
        now += 900
    assert [[alert.incident for alert in taken.alerts] for taken in elsewhere] == [["17"], ["18"]]


def test_given_up_after_a_day_of_trying() -> None:
    """After 24 hours of waits a message is dead."""
    box, now = outbox(), NOW
    box.add([notice(id="a")], now)
    seen: dict[str, str] = {}
    while now < NOW + 40 * 3600:
        for taken in box.take(now):
            box.settle(taken.id, Delivered() if taken.receiver == "pager" else DOWN, now)
        seen |= states(box)
        now += 600
    assert seen["a"] == "dead" and box.counts() == {"due": 0, "sending": 0}


def test_what_was_being_sent_is_sent_again_and_marked() -> None:
    """After a kill between sending and its outcome, the message goes again as a possible duplicate, the others as they are (case 85)."""
    box = outbox()
    box.add([notice(id="a"), notice(NoticeSort.OPENED, QUOTES, id="b")], NOW)
    box.take(NOW)
    kept = [parcel_from_json(json.loads(json.dumps(parcel_to_json(parcel)))) for parcel in box.changes()]
    again = outbox(*kept)
    first = again.take(NOW)
    assert [(taken.id, taken.possible_duplicate) for taken in first] == [("a", True)]
    again.settle("a", Delivered(), NOW)
    assert [(taken.id, taken.possible_duplicate) for taken in again.take(NOW)] == [("b", False)]


def test_a_doubtful_failure_marks_the_next_attempt() -> None:
    """A message that failed on its way is marked when it is tried again; one that never left is not."""
    box = outbox()
    box.add([notice(id="a"), notice(receiver="pager", id="b")], NOW)
    for taken in box.take(NOW):
        box.settle(taken.id, Retry(Reason.TIMEOUT, "no answer in time", is_maybe_delivered=taken.id == "a"), NOW)
    assert {taken.id: taken.possible_duplicate for taken in box.take(NOW + 60)} == {"a": True, "b": False}


def test_the_rate_is_kept() -> None:
    """A receiver with one message a second gets its burst at once and then one a second."""
    box = Outbox([DeliverySettings("ops", per_second=1.0, at_once=2)])
    box.add([notice(NoticeSort.OPENED, replace(ALERT, incident=str(n)), id=str(n)) for n in range(5)], NOW)
    sent_at, now = [], NOW
    while box.counts()["due"]:
        for taken in box.take(now):
            box.settle(taken.id, Delivered(), now)
            sent_at.append(round(now - NOW, 3))
        now = max(now, box.next_due(now) or now)
    assert sent_at == [0, 0, 1, 2, 3]


def test_a_long_queue_becomes_a_digest() -> None:
    """A receiver that falls behind by more than 20 messages gets one digest instead (case 89)."""
    box = outbox()
    box.add([notice(NoticeSort.OPENED, replace(ALERT, incident=str(n)), id=str(n)) for n in range(500)], NOW)
    (digest,) = box.take(NOW)
    assert digest.sort is NoticeSort.DIGEST and len(digest.alerts) + digest.left_out == 500


def test_what_waits_is_bounded() -> None:
    """While a receiver is down, at most about a hundred messages wait for it; none of their incidents is forgotten (cases 81, 89)."""
    box = alone()
    box.add([notice(id="first")], NOW)
    due = failed_once(box, NOW)
    for number in range(1000):
        box.add([notice(NoticeSort.OPENED, replace(ALERT, incident=f"i{number}"), id=f"n{number}")], NOW + 1)
        assert box.counts()["due"] <= 101
    assert box.take(due - 1) == []
    (digest,) = box.take(due)
    assert len(digest.alerts) + digest.left_out == 1001 and "1001 messages" in digest.note


def test_other_settings_take_over_what_waits() -> None:
    """After a reload of the configuration an outbox with other settings goes on where the old one stood."""
    box = outbox()
    box.add([notice(id="a"), notice(receiver="pager", id="b")], NOW)
    failed_once(box, NOW)
    reloaded = Outbox([replace(OPS, per_second=5.0)], box.parcels())
    assert [taken.id for taken in reloaded.take(NOW + 60)] == ["a"]
    assert [trouble.subject for trouble in reloaded.clear_out(NOW + 60)] == ["pager"]
    assert states(reloaded)["b"] == "dead"


def test_the_fallback_of_a_receiver_that_is_gone_gets_what_waits() -> None:
    """Its name was noted while the configuration still had both; the watch learns what became of the messages, once."""
    box = outbox()
    box.add([notice(id="a"), notice(id="b"), notice(NoticeSort.TEST, id="t")], NOW)
    stored = [parcel_from_json(json.loads(json.dumps(parcel_to_json(parcel)))) for parcel in box.parcels()]
    reloaded = Outbox([PAGER], stored)
    (trouble,) = reloaded.clear_out(NOW + 60)
    assert (trouble.kind, trouble.subject) == (TroubleKind.RECEIVER_GONE, "ops")
    assert trouble.text == "What waited for the receiver ops, which the configuration no longer names, went to pager instead (2 messages)."
    assert states(reloaded) == {"a": "dead", "b": "dead", "t": "dead", "a>pager": "due", "b>pager": "due"}
    assert [taken.note.split(",")[0] for taken in reloaded.take(NOW + 60)] == ["This was meant for ops"]
    assert reloaded.clear_out(NOW + 60) == ()
    (alone_,) = Outbox([DeliverySettings("mail")], stored).clear_out(NOW)
    assert alone_.text.endswith("reached nobody (2 messages). See recompile-watch incidents list.")


def test_trouble_is_over_with_the_first_delivery() -> None:
    """The first delivery after trouble, or after a start, says that the receiver works; later ones say nothing."""
    box = outbox()
    box.add([notice(id="a")], NOW)
    box.take(NOW)
    (over,) = box.settle("a", Delivered(), NOW)
    assert over.is_over and over.subject == "ops"
    box.add([notice(id="b")], NOW)
    box.take(NOW)
    assert box.settle("b", Delivered(), NOW) == ()


@pytest.mark.parametrize("jump_s", [-3600.0, 366 * 86_400.0, -366 * 86_400.0])
def test_a_clock_that_jumps_does_not_stop_delivery(jump_s: float) -> None:
    """After the clock jumps by an hour back or a year either way, a failed message is tried again after its wait (cases 64, 65)."""
    box = alone()
    box.add([notice(id="a")], NOW)
    wait_s = failed_once(box, NOW) - NOW
    now = NOW + jump_s
    early = box.take(now)
    assert [taken.id for taken in early or box.take(now + wait_s)] == ["a"]


def test_unknown_receivers_and_outcomes_are_passed_over() -> None:
    """A message for a receiver that was taken out of the configuration is dead; an outcome of an unknown job changes nothing."""
    box = outbox()
    box.add([notice(receiver="gone", id="a")], NOW)
    assert box.take(NOW) == []
    assert len(box.clear_out(NOW)) == 1
    assert states(box) == {"a": "dead"}
    assert box.settle("never", Delivered(), NOW) == ()


def test_the_same_notice_twice_is_one() -> None:
    """Adding a notice that is on its way already changes nothing."""
    box = outbox()
    box.add([notice(id="a")], NOW)
    box.changes()
    box.add([notice(id="a")], NOW)
    assert box.changes() == []


@pytest.mark.parametrize("broken", [{}, {"notice": 3}, {"state": "due", "notice": {"id": 5}}])
def test_a_stored_parcel_of_another_version_is_an_error_of_the_store(broken: dict[str, object]) -> None:
    """What cannot be read back is one line, not a crash."""
    with pytest.raises(StoreError, match="another version"):
        parcel_from_json(broken)


OUTCOMES: dict[str, Outcome] = {"ok": Delivered(), "fail": DOWN, "refuse": Refused(Reason.REJECTED, "HTTP 404")}
Step = tuple[str, int]
STEPS = st.lists(st.tuples(st.sampled_from(["open", "resolve", "ok", "fail", "refuse", "wait", "restart"]), st.integers(0, 5)), max_size=60)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_nothing_is_lost(steps: Iterable[Step]) -> None:
    """Whatever fails and restarts: each incident's newest state reaches `ops` or, with the reason, `pager`, or stands as dead.

    And a receiver that failed is left alone for the first wait at least.
    """
    now, box, kept, failed_at = NOW, outbox(), dict[str, Parcel](), dict[str, float]()
    told: dict[str, str] = {}
    newest: dict[str, str] = {}
    for number, (step, which) in enumerate(steps):
        now += 1
        if step in ("open", "resolve"):
            alert = replace(ALERT, incident=str(which), state="open" if step == "open" else "resolved")
            newest[alert.incident] = alert.state
            box.add([notice(NoticeSort.OPENED if step == "open" else NoticeSort.RESOLVED, alert, id=f"n{number}")], now)
        elif step == "wait":
            now += 1000
        elif step == "restart":
            kept |= {parcel.id: parcel for parcel in box.changes()}
            box = outbox(*[parcel_from_json(parcel_to_json(parcel)) for parcel in kept.values()])
        else:
            _attempt(box, OUTCOMES[step], told, failed_at, now)
        kept |= {parcel.id: parcel for parcel in box.changes()}
    for _ in range(200):
        now += 4000
        _attempt(box, Delivered(), told, failed_at, now)
    kept |= {parcel.id: parcel for parcel in box.changes()}
    dead = {alert.incident for parcel in kept.values() if parcel.state is ParcelState.DEAD for alert in parcel.notice.alerts}
    assert box.counts() == {"due": 0, "sending": 0}
    for incident, state in newest.items():
        assert told.get(incident) == state or incident in dead


def _attempt(box: Outbox, outcome: Outcome, told: dict[str, str], failed_at: dict[str, float], now: float) -> None:
    for taken in box.take(now):
        assert now - failed_at.pop(taken.receiver, 0.0) >= 4.0
        if outcome is DOWN:
            failed_at[taken.receiver] = now
        box.settle(taken.id, outcome, now)
        if isinstance(outcome, Delivered):
            told |= _states_in(taken)


def _states_in(taken: Notice) -> dict[str, str]:
    return {alert.incident: alert.state for alert in taken.alerts}
