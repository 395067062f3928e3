"""Several notices become one: what a receiver gets once, after it could not be reached for a while."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256

from recompile_watch.core.notices import Alert, Notice, NoticeSort
from recompile_watch.core.units import duration_text

MAX_MERGED = 100  # a digest names so many incidents; further ones are counted
SEVERITIES = ("critical", "warning", "unknown", "info")
RESOLVED = "resolved"


def digest_of(notices: Sequence[Notice], *, stands_for: int, reason: str, now: float) -> Notice:
    """One notice for all of them, which are for one receiver and in the order in which they were made.

    Each incident is told once, as it stands in the newest notice; open ones come first, the worst first of all. What
    opened and ended meanwhile is told as ended. stands_for: how many notices these are, counted through earlier
    digests. reason: why they waited.
    """
    latest: dict[str, Alert] = {}
    for notice in notices:
        for alert in notice.alerts:
            latest[alert.incident] = _kept(latest.get(alert.incident), alert)
    ranked = sorted(latest.values(), key=_urgency)
    told = tuple(ranked[:MAX_MERGED])
    head = notices[-1]
    return Notice(
        id=f"digest-{sha256(' '.join(notice.id for notice in notices).encode()).hexdigest()[:24]}", receiver=head.receiver,
        sort=NoticeSort.DIGEST, severity=_worst(told, notices), made_at=notices[0].made_at, host=head.host, alerts=told,
        left_out=len(ranked) - len(told) + sum(notice.left_out for notice in notices),
        possible_duplicate=any(notice.possible_duplicate for notice in notices), note=_note(stands_for, reason, now - notices[0].made_at),
    )  # fmt: skip


def covers(newer: Notice, older: Notice) -> bool:
    """True when the newer notice makes the older one, which still waits, needless: each of its incidents is told anew."""
    if older.sort not in _OVERTAKEN.get(newer.sort, frozenset()) or older.left_out or older.receiver != newer.receiver:
        return False
    return {alert.incident for alert in older.alerts} <= {alert.incident for alert in newer.alerts}


# By the newer sort: which older ones it makes needless. A repeat does not overtake the first message: that waits on.
_OVERTAKEN = {
    NoticeSort.RESOLVED: frozenset({NoticeSort.OPENED, NoticeSort.WORSE, NoticeSort.REPEATED, NoticeSort.ESCALATED, NoticeSort.FLAPPING}),
    NoticeSort.REPEATED: frozenset({NoticeSort.REPEATED}),
    NoticeSort.WORSE: frozenset({NoticeSort.REPEATED}),
    NoticeSort.ESCALATED: frozenset({NoticeSort.REPEATED, NoticeSort.ESCALATED}),
}


def _kept(older: Alert | None, newer: Alert) -> Alert:
    """The newer one, with what only the older one knows: a measurement stays true."""
    return newer if older is None or newer.measured is not None else replace(newer, measured=older.measured)


def _urgency(alert: Alert) -> tuple[bool, int, float]:
    rank = SEVERITIES.index(alert.severity) if alert.severity in SEVERITIES else len(SEVERITIES)
    return alert.state == RESOLVED, rank, alert.since


def _worst(alerts: Sequence[Alert], notices: Iterable[Notice]) -> str:
    """The worst severity of what is still open, else of all."""
    found = [alert.severity for alert in alerts if alert.state != RESOLVED] or [notice.severity for notice in notices]
    return min(found, key=lambda severity: SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES))


def _note(stands_for: int, reason: str, waited_s: float) -> str:
    why = f" ({reason})" if reason else ""
    return f"This is instead of {stands_for} messages that could not reach you for {duration_text(max(0.0, waited_s))}{why}."
