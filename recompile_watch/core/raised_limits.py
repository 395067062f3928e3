"""A recompile limit that somebody raised while the log still prints the lower one.

That somebody did is shown by a line that says so, by one of a model's own lines (``limits`` in its profile), or by a variable
that was meant to do it and that no torch reads. Without any of these nothing is said.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from recompile_watch.core.events import Event, is_accumulated
from recompile_watch.core.findings import LIMIT_KIND
from recompile_watch.core.groups import Group
from recompile_watch.core.late import pattern
from recompile_watch.core.models import Models

KIND = "limit_not_in_force"
_VARIABLE = pattern(r"TORCH_?(?:DYNAMO|COMPILE)_(?:RECOMPILE|CACHE_SIZE)_LIMIT|TORCH_DYNAMO_RECOMPILE_LIMIT")
_NUMBER = pattern(r"[0-9]{1,6}")


class _Raise(NamedTuple):
    """A line that shows that the limit was set, or was meant to be. words: what it says. variable: the one that nothing reads."""

    event: Event
    limit: int
    words: str
    variable: str | None = None


def limit_events(groups: Sequence[Group], models: Models, printed: Collection[int]) -> Iterator[Event]:
    """For each limit that was set, and that no hit prints, the line that set it and the first hit after it of a lower one.

    printed: the limits that the log's hits name.
    """
    hits = [event for group in groups if group.key.kind == LIMIT_KIND and group.key.subject != "accumulated" for event in group.evidence()]
    told: set[int] = set()
    for raised in _raises(groups, models):
        hit = next((hit for hit in hits if _is_lower(hit, raised)), None)
        if hit is None or raised.limit in printed or raised.limit in told:
            continue
        told.add(raised.limit)
        extra: dict[str, object] = {"limit": hit.extra.get("limit"), "raised": raised.limit, "model": models.of(raised.event)}
        if raised.variable is not None:
            extra |= {"cause": "unread_variable", "setting": raised.variable}
        for event, message in ((raised.event, raised.words), (hit, f"hit config.{hit.extra.get('limit_name')} ({hit.extra.get('limit')})")):
            yield event._replace(kind=KIND, function=None, file=None, line_no=None, reasons=(), extra={**extra, "message": message})


def _raises(groups: Iterable[Group], models: Models) -> Iterator[_Raise]:
    for group in groups:
        first = group.first
        limit = first.extra.get("limit")
        if group.key.kind == "recompile_limit_set" and isinstance(limit, int) and not is_accumulated(first.extra.get("limit_name")):
            yield _Raise(first, limit, f"{first.extra.get('limit_name')} set to {limit}")
        if group.key.kind == "ineffective_setting" and _VARIABLE.fullmatch(setting := str(first.extra.get("setting"))):
            wanted = str(first.extra.get("value"))
            yield from [_Raise(first, int(wanted), f"{setting}={wanted}, which no torch reads", setting)] if _NUMBER.fullmatch(wanted) else []
        model = models.named(models.of(first)) if group.key.kind == "compile_mode" else None
        for text, known in model.limits if model else ():
            if any(isinstance(value, str) and text in value for value in first.extra.values()):
                yield _Raise(first, known, f"{text}: this code of {model.title if model else ''} sets the recompile limit to {known}")


def _is_lower(hit: Event, raised: _Raise) -> bool:
    """True when the hit prints a lower limit and does not stand before the line that set it."""
    limit = hit.extra.get("limit")
    is_later = hit.source != raised.event.source or hit.offset > raised.event.offset
    return isinstance(limit, int) and limit < raised.limit and is_later
