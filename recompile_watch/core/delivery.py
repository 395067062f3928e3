"""The outbox: which message goes to whom and when, until it is delivered or given up. Pure: it is told the time.

Each receiver has one message on its way at most. What fails is tried again after a growing wait; what is made meanwhile
waits, and then all of it goes as one digest. What a receiver refuses, or does not take for long, its fallback gets.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256

from recompile_watch.core.bounds import at_least, insist
from recompile_watch.core.digests import covers, digest_of
from recompile_watch.core.heard import Trouble, TroubleKind
from recompile_watch.core.messages import Delivered, Outcome, Refused, Retry
from recompile_watch.core.notices import Notice, NoticeSort
from recompile_watch.core.parcels import FINAL, Parcel, ParcelState
from recompile_watch.core.units import duration_text

MAX_KEPT = 100  # notices that wait for one receiver, also while it is down
MAX_WAITING = 20  # a receiver that is merely slow gets a digest from here on, too
_UNNAMED = "the configuration no longer names this receiver"
_CLOCK_SLACK_S = 1.0
_JITTER = 0.2  # of a wait, so that what failed together is not tried again together


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """How one receiver is delivered to.

    name: of the receiver. fallback: name of the receiver that gets what this one does not take; default none.
    per_second: messages a second on average (default 1, Slack's limit for a webhook). at_once: messages without a pause (default 3).
    first_wait_s: before the second attempt (default 5 s); doubled each time. longest_wait_s: up to this (default 15 min).
    longest_retry_after_s: how long a receiver may ask to wait (default 1 h). late_s: not taken for so long, the
    fallback is told (default 15 min). give_up_s: not taken for so long, it is given up (default 24 h).
    """

    name: str
    fallback: str | None = None
    per_second: float = 1.0
    at_once: int = 3
    first_wait_s: float = 5.0
    longest_wait_s: float = 900.0
    longest_retry_after_s: float = 3600.0
    late_s: float = 900.0
    give_up_s: float = 86_400.0

    def __post_init__(self) -> None:
        insist(
            at_least(0.001, per_second=self.per_second),
            at_least(1, at_once=self.at_once),
            at_least(self.first_wait_s, longest_wait=self.longest_wait_s),
        )


class Outbox:
    """All parcels that are not final. ``changes`` are to be committed before what ``take`` gave is sent.

    settings: of every receiver. parcels: those of before a restart; final ones are passed over. What was being sent
    then is sent again as a possible duplicate.
    """

    def __init__(self, settings: Iterable[DeliverySettings], parcels: Iterable[Parcel] = ()) -> None:
        self._settings = {one.name: one for one in settings}
        self._parcels: dict[str, Parcel] = {}
        self._changed: dict[str, Parcel] = {}
        self._buckets = {name: _Bucket(one.per_second, one.at_once) for name, one in self._settings.items()}
        self._known_good: set[str] = set()  # receivers whose trouble, if any, was told to be over
        for parcel in parcels:
            if parcel.state is ParcelState.SENDING:
                self._put(_again(parcel))
            elif parcel.state is ParcelState.DUE:
                self._parcels[parcel.id] = parcel

    def add(self, notices: Iterable[Notice], now: float) -> None:
        """Takes new notices; drops waiting ones that they make needless. A notice that is here already changes nothing."""
        for notice in notices:
            if notice.id in self._parcels:
                continue
            waiting = self._waiting(notice.receiver)
            late = next((parcel for parcel in waiting if parcel.is_late), None)
            needless = [parcel for parcel in waiting if covers(notice, parcel.notice)]
            for parcel in needless:
                self._put(replace(parcel, state=ParcelState.DROPPED, reason=f"overtaken by {notice.id}"))
            self._put(_heir(notice, needless, now))
            self._crowd(notice.receiver, now)
            if late is not None:
                self._tell_late(notice.receiver, late.reason, now)

    def take(self, now: float) -> list[Notice]:
        """What is to be sent now, at most one notice a receiver; each counts as being sent from here on."""
        taken: list[Notice] = []
        for name in dict.fromkeys(parcel.receiver for parcel in [*self._parcels.values()]):
            if name in self._settings and not self._is_busy(name) and (parcel := self._next(name, now)) is not None and self._buckets[name].take(now):
                self._put(replace(parcel, state=ParcelState.SENDING, attempts=parcel.attempts + 1))
                taken.append(parcel.notice)
        return taken

    def clear_out(self, now: float) -> tuple[Trouble, ...]:
        """Gives up what waits for receivers that the configuration no longer names; their fallbacks get it."""
        troubles: list[Trouble] = []
        for name in dict.fromkeys(parcel.receiver for parcel in [*self._parcels.values()] if parcel.receiver not in self._settings):
            waiting = [parcel for parcel in self._waiting(name) if parcel.notice.sort is not NoticeSort.TEST]
            targets = {parcel.fallback for parcel in waiting if not parcel.is_late and self._fall_back(parcel, _UNNAMED, now)}
            for parcel in self._waiting(name):
                self._put(replace(parcel, state=ParcelState.DEAD, reason=_UNNAMED))
            if waiting:
                count = "a message" if len(waiting) == 1 else f"{len(waiting)} messages"
                instead = f"went to {' and '.join(sorted(filter(None, targets)))} instead" if targets else "reached nobody"
                text = f"What waited for the receiver {name}, which the configuration no longer names, {instead} ({count})."
                text += "" if targets else " See recompile-watch incidents list."
                troubles.append(Trouble(TroubleKind.RECEIVER_GONE, name, text))
        return tuple(troubles)

    def settle(self, notice_id: str, outcome: Outcome, now: float) -> tuple[Trouble, ...]:
        """What became of one that was taken; gives what the watch must know of the receiver. Unknown ids are passed over."""
        parcel = self._parcels.get(notice_id)
        if parcel is None or parcel.state is not ParcelState.SENDING:
            return ()
        match outcome:
            case Delivered():
                self._put(replace(parcel, state=ParcelState.SENT, reason=outcome.words))
                return self._recovered(parcel.receiver)
            case Refused():
                return self._bury(parcel, outcome.words, now)
            case Retry():
                return self._retry(parcel, outcome, now)

    def changes(self) -> list[Parcel]:
        """The parcels that changed since the last call, each once; final ones are forgotten here."""
        changed, self._changed = list(self._changed.values()), {}
        return changed

    def next_due(self, now: float) -> float | None:
        """When ``take`` has something to give; None while it has nothing or waits for outcomes."""
        due = [self._due_at(name, now) for name in self._settings if not self._is_busy(name) and self._waiting(name)]
        return min(due, default=None)

    def parcels(self) -> tuple[Parcel, ...]:
        """All that are not final, oldest first; for an outbox with other settings."""
        return tuple(self._parcels.values())

    def counts(self) -> dict[str, int]:
        """How many parcels are ``due`` and ``sending``."""
        states = [parcel.state for parcel in self._parcels.values()]
        return {state.value: states.count(state) for state in (ParcelState.DUE, ParcelState.SENDING)}

    def _put(self, parcel: Parcel) -> None:
        settings = self._settings.get(parcel.receiver)
        if settings is not None and parcel.fallback != settings.fallback:
            parcel = replace(parcel, fallback=settings.fallback)
        self._changed[parcel.id] = parcel
        if parcel.state in FINAL:
            self._parcels.pop(parcel.id, None)
        else:
            self._parcels[parcel.id] = parcel

    def _waiting(self, name: str) -> list[Parcel]:
        return [parcel for parcel in self._parcels.values() if parcel.receiver == name and parcel.state is ParcelState.DUE]

    def _is_busy(self, name: str) -> bool:
        return any(parcel.receiver == name and parcel.state is ParcelState.SENDING for parcel in self._parcels.values())

    def _due_at(self, name: str, now: float) -> float:
        """When the receiver may be tried: after the wait of what failed, else when the first is due and the rate allows."""
        waiting = self._waiting(name)
        failed = [parcel.next_at for parcel in waiting if parcel.wait_s]
        return max(max(failed) if failed else min(parcel.next_at for parcel in waiting), self._buckets[name].due_at(now))

    def _next(self, name: str, now: float) -> Parcel | None:
        """The parcel to try now, a digest of all when the receiver fails or falls behind."""
        self._bound(name, now)
        waiting = self._waiting(name)
        if not waiting or self._due_at(name, now) > now:
            return None
        together = [parcel for parcel in waiting if parcel.notice.sort is not NoticeSort.TEST]
        if len(together) > 1 and (any(parcel.wait_s for parcel in together) or len(together) > MAX_WAITING):
            return self._merge(together, now)
        return next((parcel for parcel in waiting if parcel.wait_s), waiting[0])

    def _crowd(self, name: str, now: float) -> None:
        """Merges what waits before it becomes too much to keep."""
        together = [parcel for parcel in self._waiting(name) if parcel.notice.sort is not NoticeSort.TEST]
        if len(together) > MAX_KEPT:
            self._merge(together, now)

    def _bound(self, name: str, now: float) -> None:
        """Keeps a clock that went back from putting an attempt off: a wait is never longer than it was meant to be."""
        for parcel in self._waiting(name):
            if parcel.next_at > now + parcel.wait_s + _CLOCK_SLACK_S:
                self._put(replace(parcel, next_at=now + parcel.wait_s))

    def _merge(self, parcels: list[Parcel], now: float) -> Parcel:
        reason = next((parcel.reason for parcel in reversed(parcels) if parcel.reason), "")
        count = sum(parcel.stands_for for parcel in parcels)
        notice = digest_of([parcel.notice for parcel in parcels], stands_for=count, reason=reason, now=now)
        for parcel in parcels:
            self._put(replace(parcel, state=ParcelState.DROPPED, reason=f"told in {notice.id}"))
        digest = Parcel(
            notice, ParcelState.DUE, next_at=max(parcel.next_at for parcel in parcels), attempts=max(parcel.attempts for parcel in parcels),
            wait_s=max(parcel.wait_s for parcel in parcels), waited_s=min(parcel.waited_s for parcel in parcels), reason=reason, stands_for=count,
            is_late=all(parcel.is_late for parcel in parcels), tried=tuple(dict.fromkeys(name for parcel in parcels for name in parcel.tried)),
        )  # fmt: skip
        self._put(digest)
        return digest

    def _retry(self, parcel: Parcel, outcome: Retry, now: float) -> tuple[Trouble, ...]:
        settings = self._settings.get(parcel.receiver) or DeliverySettings(parcel.receiver)
        wait_s = _wait_s(settings, parcel, outcome.after_s)
        waited_s = parcel.waited_s + wait_s
        if waited_s > settings.give_up_s or parcel.notice.sort is NoticeSort.TEST:
            return self._bury(parcel, outcome.words, now)
        notice = replace(parcel.notice, possible_duplicate=True) if outcome.is_maybe_delivered else parcel.notice
        is_late = parcel.is_late or waited_s >= settings.late_s
        later = replace(
            parcel, notice=notice, state=ParcelState.DUE, next_at=now + wait_s, wait_s=wait_s, waited_s=waited_s, reason=outcome.words,
            is_late=is_late,
        )  # fmt: skip
        self._put(later)
        if not is_late or parcel.is_late:
            return ()
        self._fall_back(later, outcome.words, now)
        self._tell_late(parcel.receiver, outcome.words, now)
        return self._trouble(parcel.receiver, f"has not taken messages for {duration_text(waited_s)}: {outcome.words}")

    def _bury(self, parcel: Parcel, reason: str, now: float) -> tuple[Trouble, ...]:
        self._put(replace(parcel, state=ParcelState.DEAD, reason=reason))
        if parcel.notice.sort is NoticeSort.TEST:
            return ()
        if not parcel.is_late:
            self._fall_back(parcel, reason, now)
        return self._trouble(parcel.receiver, f"did not take a message: {reason}")

    def _fall_back(self, parcel: Parcel, reason: str, now: float) -> bool:
        """A copy for the receiver's fallback, unless that did not take it either. True when it got one."""
        settings = self._settings.get(parcel.receiver)
        target = settings.fallback if settings is not None else parcel.fallback
        if target is None or target not in self._settings or target == parcel.receiver or target in parcel.tried:
            return False
        note = f"This was meant for {parcel.receiver}, which did not take it ({reason})."
        notice = replace(parcel.notice, id=f"{parcel.id}>{target}", receiver=target, note=f"{note} {parcel.notice.note}".strip())
        if notice.id not in self._parcels:
            self._put(Parcel(notice, ParcelState.DUE, next_at=now, tried=(*parcel.tried, parcel.receiver)))
        return True

    def _tell_late(self, name: str, reason: str, now: float) -> None:
        """Gives the fallback what waits for a receiver that has been failing for long."""
        for parcel in self._waiting(name):
            if not parcel.is_late and parcel.notice.sort is not NoticeSort.TEST:
                self._put(replace(parcel, is_late=True))
                self._fall_back(parcel, reason, now)

    def _trouble(self, receiver: str, what: str) -> tuple[Trouble, ...]:
        self._known_good.discard(receiver)
        text = f"Receiver {receiver} {what}. Check its address, then run recompile-watch notify test."
        return (Trouble(TroubleKind.UNDELIVERED, receiver, text),)

    def _recovered(self, receiver: str) -> tuple[Trouble, ...]:
        """Told once: after trouble, and after each start, because trouble may be older than that."""
        if receiver in self._known_good:
            return ()
        self._known_good.add(receiver)
        return (Trouble(TroubleKind.UNDELIVERED, receiver, f"Receiver {receiver} takes messages.", is_over=True),)


class _Bucket:
    """A token bucket. It survives a clock that jumps: time that runs backwards adds nothing."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = float(burst)
        self._at: float | None = None

    def take(self, now: float) -> bool:
        """Takes a token; False when there is none yet."""
        self._fill(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def due_at(self, now: float) -> float:
        """When there is a token."""
        self._fill(now)
        return now if self._tokens >= 1.0 else now + (1.0 - self._tokens) / self._per_second

    def _fill(self, now: float) -> None:
        passed_s = 0.0 if self._at is None else max(0.0, now - self._at)
        self._tokens = min(float(self._burst), self._tokens + passed_s * self._per_second)
        self._at = now


def _heir(notice: Notice, needless: Iterable[Parcel], now: float) -> Parcel:
    """The parcel of a new notice; it goes on waiting where those that it makes needless waited for a receiver that fails."""
    made = Parcel(notice, ParcelState.DUE, next_at=now)
    for parcel in needless:
        if parcel.next_at >= made.next_at:
            made = replace(
                made, next_at=parcel.next_at, wait_s=parcel.wait_s, waited_s=parcel.waited_s, attempts=parcel.attempts, reason=parcel.reason
            )
    return made


def _again(parcel: Parcel) -> Parcel:
    """A parcel that was being sent when the watch ended: it may be there already."""
    return replace(parcel, notice=replace(parcel.notice, possible_duplicate=True), state=ParcelState.DUE, next_at=0.0)


def _wait_s(settings: DeliverySettings, parcel: Parcel, after_s: float | None) -> float:
    """Seconds until the next attempt. Jitter comes of the id, for the core draws no random numbers."""
    drawn = int.from_bytes(sha256(f"{parcel.id} {parcel.attempts}".encode("utf-8", "replace")).digest()[:4]) / 2**32
    if after_s is not None:  # never before the receiver's own time
        return min(settings.longest_retry_after_s, max(after_s, 1.0)) * (1 + _JITTER * drawn)
    doubled = settings.first_wait_s * 2.0 ** min(max(parcel.attempts, 1) - 1, 40)
    return min(settings.longest_wait_s, doubled) * (1 - _JITTER + 2 * _JITTER * drawn)
