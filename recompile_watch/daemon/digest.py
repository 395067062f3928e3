"""A digest made of what the watch has written down, whether it runs or not."""

from collections.abc import Iterable, Mapping
from typing import cast

from recompile_watch.core.advice import Advice
from recompile_watch.core.codec import from_json
from recompile_watch.core.errors import StoreError
from recompile_watch.core.notices import MAX_ALERTS, Alert, Notice, NoticeSort, Place
from recompile_watch.core.rules import SEVERITIES

DAY_S = 86_400.0
Row = Mapping[str, object]


def digest_of_rows(rows: Iterable[Row], receiver: str, *, host: str, now: float, is_running: bool) -> Notice:
    """What goes on, and what ended within the last day, worst first."""
    alerts = sorted((_alert(row) for row in rows if _is_news(row, now)), key=_weight)
    severity = alerts[0].severity if alerts else "info"
    note = "" if is_running else "The watch does not run; this is what it knew when it ended. Start it with systemctl start recompile-watch."
    shown = tuple(alerts[:MAX_ALERTS])
    return Notice(
        f"digest-{now:.3f}-{receiver}", receiver, NoticeSort.DIGEST, severity, now, host, shown, left_out=len(alerts) - len(shown), note=note
    )


def _is_news(row: Row, now: float) -> bool:
    resolved_at = row.get("resolved_at")
    return row.get("state") != "resolved" or (isinstance(resolved_at, int | float) and now - resolved_at < DAY_S)


def _weight(alert: Alert) -> tuple[bool, int, float]:
    return alert.state == "resolved", -SEVERITIES.index(alert.severity) if alert.severity in SEVERITIES else 0, -alert.until


def _alert(row: Row) -> Alert:
    """A row of the incidents as a message tells it. Raises StoreError when it is of another version."""
    try:
        return Alert(
            incident=str(row["id"]), fingerprint=str(row["fingerprint"]), kind=str(row["kind"]), severity=str(row["severity"]),
            state=str(row["state"]), what=str(row["title"]), cost=str(row["consequence"]), why="it is in the daily digest",
            model=_text(row, "model"), function=_text(row, "function"), file=_text(row, "file"), line_no=cast(int | None, row["line_no"]),
            since=float(cast(float, row["since"])), until=float(cast(float, row["until"])), count=int(cast(int, row["count"])),
            counts=from_json(tuple[int, ...], row["counts"]), places=from_json(tuple[Place, ...], row["places"]),
            symbols=from_json(tuple[str, ...], row["symbols"]), advice=from_json(tuple[Advice, ...], row["advice"]),
            measured=_measured(row),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"an incident in the state cannot be read ({error!r}); it was written by another version") from None


def _measured(row: Row) -> str | None:
    run = row.get("diagnosis")
    return str(run["text"]) if isinstance(run, Mapping) and run.get("text") else None


def _text(row: Row, name: str) -> str | None:
    value = row[name]
    return None if value is None else str(value)
