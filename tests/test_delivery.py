"""Outbox, senders and receivers together: the outbox decides by a clock of the test's own, the rest is real."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from recompile_watch.core.delivery import DeliverySettings, Outbox
from recompile_watch.core.heard import Trouble
from recompile_watch.core.notices import NoticeSort
from recompile_watch.core.parcels import Parcel, parcel_from_json, parcel_to_json
from recompile_watch.notify import sender_command
from recompile_watch.report.message import message_of
from recompile_watch.respond.courier import Courier
from recompile_watch.respond.receivers import ReceiverSettings
from recompile_watch.respond.wire import Job
from tests.loopback import answer, receiver, reset
from tests.notices import ALERT, NOW, QUOTES, notice
from tests.respond.test_courier import ENVIRONMENT


class Delivery:
    """What the daemon's loop does with notices, without the loop. kept: the rows as they are committed."""

    def __init__(self, receivers: list[ReceiverSettings], settings: list[DeliverySettings], kept: dict[str, dict[str, object]] | None = None) -> None:
        self.receivers = {one.name: one for one in receivers}
        self.kept = kept if kept is not None else {}
        self.outbox = Outbox(settings, list(self._stored()))
        self.courier = Courier(receivers, sender_command(), ENVIRONMENT)

    def _stored(self) -> Iterator[Parcel]:
        yield from (parcel_from_json(row) for row in self.kept.values())

    def step(self, now: float) -> list[Trouble]:
        """Sends what is due and waits for what becomes of it."""
        taken = self.outbox.take(now)
        self.commit()
        for one in taken:
            self.courier.submit(Job(one.id, one.receiver, message=message_of(one, self.receivers[one.receiver].form, now=now)), time.monotonic())
        troubles = [trouble for result in self.courier.wait(30) for trouble in self.outbox.settle(result.id, result.outcome, now)]
        self.commit()
        return troubles

    def commit(self) -> None:
        """Stores the rows that changed."""
        self.kept |= {parcel.id: parcel_to_json(parcel) for parcel in self.outbox.changes()}


def test_an_outage_ends_with_one_digest() -> None:
    """A receiver that answers 429, 500 and not at all, and then works, gets three attempts in vain and one digest (cases 81, 83)."""
    with receiver(answer(429, "Retry-After: 7"), answer(500), reset, answer(200)) as made:
        delivery = Delivery([ReceiverSettings("ops", made.url())], [DeliverySettings("ops")])
        delivery.outbox.add([notice(id="a")], NOW)
        delivery.step(NOW)
        delivery.outbox.add([notice(NoticeSort.OPENED, QUOTES, id="b")], NOW + 1)
        due = delivery.outbox.next_due(NOW + 1)
        assert due is not None and due >= NOW + 7
        delivery.outbox.add([notice(NoticeSort.RESOLVED, replace(ALERT, state="resolved"), id="c")], NOW + 2)
        now = NOW + 2
        while delivery.outbox.counts()["due"]:
            now = max(now, delivery.outbox.next_due(now) or now)
            delivery.step(now)
        delivery.courier.close()
    sorts = [request.json()["sort"] for request in made.requests]
    assert sorts == ["opened", "digest", "digest", "digest"]
    last = made.requests[-1].json()
    assert last["possible_duplicate"] is True  # the attempt that was reset may have arrived
    assert isinstance(last["incidents"], list)
    assert [(incident["id"], incident["state"]) for incident in last["incidents"]] == [("18", "open"), ("17", "resolved")]


def test_a_kill_between_sending_and_its_outcome() -> None:
    """The message that was on its way goes again, marked; nothing else does (case 85)."""
    with receiver() as made:
        settings, rules = [ReceiverSettings("ops", made.url())], [DeliverySettings("ops")]
        killed = Delivery(settings, rules)
        killed.outbox.add([notice(id="a"), notice(NoticeSort.OPENED, QUOTES, id="b")], NOW)
        taken = killed.outbox.take(NOW)
        killed.commit()
        killed.courier.submit(Job(taken[0].id, "ops", message=message_of(taken[0], settings[0].form, now=NOW)), time.monotonic())
        assert made.got_one.wait(20)
        killed.courier.close()
        again = Delivery(settings, rules, killed.kept)
        for second in range(5):
            again.step(NOW + second)
        again.courier.close()
    assert [(request.json()["notice"], request.json()["possible_duplicate"]) for request in made.requests] == [
        ("a", False),
        ("a", True),
        ("b", False),
    ]


def test_what_one_refuses_the_other_gets() -> None:
    """A webhook that is gone costs one attempt; its fallback gets the message with the reason, and the watch hears of it (case 83)."""
    with receiver(answer(404, body=b"no_service")) as gone, receiver() as pager:
        receivers = [ReceiverSettings("ops", gone.url("slack+http", "/services/T0/B0/XX")), ReceiverSettings("pager", pager.url())]
        delivery = Delivery(receivers, [DeliverySettings("ops", fallback="pager"), DeliverySettings("pager")])
        delivery.outbox.add([notice(id="a")], NOW)
        troubles = [trouble for second in range(3) for trouble in delivery.step(NOW + second)]
        delivery.courier.close()
    assert len(gone.requests) == 1
    assert "This was meant for ops, which did not take it (HTTP 404 (no_service))." in str(pager.requests[0].json()["message"])
    assert [(trouble.subject, trouble.is_over) for trouble in troubles] == [("ops", False), ("pager", True)]
