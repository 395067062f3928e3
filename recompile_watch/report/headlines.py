"""The lines of a message that are read first: its title, and what, where, since when and how often in one line."""

import re

from recompile_watch.core.notices import Alert, Notice, NoticeSort
from recompile_watch.core.units import duration_text
from recompile_watch.report.safe import safe
from recompile_watch.report.times import ago_text, count_text, time_text

TITLE_CHARS = 140  # with a mark before it a Slack header takes 150, and a mail client shows less
WHAT_CHARS = 300
LISTS = frozenset({NoticeSort.DIGEST, NoticeSort.BACKLOG})
RESOLVED = "resolved"
_LEAST_WHAT = 40


def title_of(notice: Notice) -> str:
    """One line that names what happened, and the host."""
    host = safe(notice.host, 60) or "an unnamed host"
    if notice.sort is NoticeSort.TEST:
        return f"Test message from recompile-watch on {host}"
    if notice.sort is NoticeSort.BACKLOG:
        return f"recompile-watch started: {tally(notice)} in the logs already ({host})"
    if notice.sort is NoticeSort.DIGEST or not notice.alerts:
        return f"Digest: {tally(notice)} ({host})"
    total = len(notice.alerts) + notice.left_out
    more = f", and {total - 1} more" if total > 1 else ""
    head, tail = _head(notice, notice.alerts[0]), f"{more} ({host})"
    room = max(_LEAST_WHAT, TITLE_CHARS - len(head) - len(tail))
    return head + safe(notice.alerts[0].what, room).rstrip(".") + tail


def lead_of(notice: Notice, now: float) -> str:
    """The first line of the text."""
    host = safe(notice.host, 60) or "an unnamed host"
    if notice.sort is NoticeSort.TEST:
        return f"Messages from recompile-watch on {host} reach you here, as receiver {safe(notice.receiver, 60)}. Nothing needs to be done."
    if notice.sort is NoticeSort.BACKLOG:
        return f"recompile-watch now watches {host}. Its logs held {tally(notice)} before; from here on you hear of each new one as it happens."
    if notice.sort is NoticeSort.DIGEST or not notice.alerts:
        return f"{tally(notice).capitalize()} on {host}, {time_text(now)}."
    first = notice.alerts[0]
    return _joined(_head(notice, first) + _what(first), where_of(first), often_of(first, now))


def line_of(alert: Alert, now: float) -> str:
    """One incident in one line."""
    return _joined(f"{_state(alert)}: {_what(alert)}", where_of(alert), often_of(alert, now))


def tally(notice: Notice) -> str:
    """``3 open, 2 resolved, 4 more``; of a backlog, of which nothing is open yet, ``9 problems``."""
    if notice.sort is NoticeSort.BACKLOG:
        return count_text(len(notice.alerts) + notice.left_out, "problem")
    resolved = sum(alert.state == RESOLVED for alert in notice.alerts)
    counts = ((len(notice.alerts) - resolved, "open"), (resolved, RESOLVED), (notice.left_out, "more"))
    parts = [f"{count} {word}" for count, word in counts if count]
    return ", ".join(parts) or "nothing to tell"


def where_of(alert: Alert) -> str:
    """Model and code place, ``toto, model/attention.py:105``, as far as they are known and not said by the title."""
    file = "/".join(safe(alert.file or "", WHAT_CHARS).replace("\\", "/").split("/")[-2:])
    place = f"{file}:{alert.line_no}" if file and alert.line_no is not None else file
    return ", ".join(safe(word, 80) for word in (alert.model, place) if word and not _says(alert.what, word))


def often_of(alert: Alert, now: float) -> str:
    """How often and since when, ``8 times since 2025-10-30 09:08:09 UTC (4 min 12 s ago)``."""
    lasted_s = alert.until - alert.since
    if alert.state == RESOLVED:
        lasted = f" in {duration_text(lasted_s)}" if lasted_s >= 1 else ""
        return f"{_times(alert)}{lasted}, the last at {_moment(alert.until, now)}"
    if alert.count == 1:
        return f"once, at {_moment(alert.since, now)}"
    return f"{_times(alert)} since {_moment(alert.since, now)}"


def _says(text: str, word: str) -> bool:
    """True when the text holds the word as one of its own: ``toto_caches.py`` does not name toto."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _head(notice: Notice, alert: Alert) -> str:
    severity = _state(alert)
    heads = {
        NoticeSort.RESOLVED: "Resolved: ", NoticeSort.REPEATED: f"Still {severity}: ", NoticeSort.WORSE: f"Now {severity}: ",
        NoticeSort.ESCALATED: f"Not acknowledged, {severity}: ", NoticeSort.FLAPPING: "Comes and goes: ", NoticeSort.MEASURED: "Measured: ",
    }  # fmt: skip
    return heads.get(notice.sort, f"{severity.capitalize()}: ")


def _state(alert: Alert) -> str:
    return RESOLVED if alert.state == RESOLVED else safe(alert.severity, 20)


def _what(alert: Alert) -> str:
    return safe(alert.what, WHAT_CHARS).rstrip(".")


def _times(alert: Alert) -> str:
    return "once" if alert.count == 1 else count_text(alert.count, "time")


def _moment(moment: float, now: float) -> str:
    ago = ago_text(moment, now)
    return f"{time_text(moment)}{f' ({ago})' if ago else ''}"


def _joined(*words: str) -> str:
    return "; ".join(word for word in words if word)
