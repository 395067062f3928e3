"""Conditions on compiling: little room below the recompile limit, and recompiles after warm-up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from recompile_watch.core.compile_id import parse_compile_id
from recompile_watch.core.events import Event, is_accumulated
from recompile_watch.core.evidence import shown_function
from recompile_watch.core.findings import LIMIT_KIND
from recompile_watch.core.shelves import Shelf, always
from recompile_watch.core.sight import EventCondition, Sight
from recompile_watch.core.signals import Signal
from recompile_watch.core.units import duration_text
from recompile_watch.core.versions import default_limit, told_range
from recompile_watch.core.watch_settings import CompileSettings
from recompile_watch.core.windows import Recent
from recompile_watch.core.wording import CAUSES

MAX_FUNCTIONS = 2_000
ANYWHERE = "*"


@dataclass(slots=True)
class Limit:
    """The recompile limit that was printed last, of a function or of any."""

    entries: int


class HeadroomCondition(EventCondition):
    """Much of a function's recompile limit is in use: the next few inputs that differ will hit it."""

    kinds = frozenset({"recompile", LIMIT_KIND})

    def __init__(self, settings: CompileSettings, parts: Mapping[str, object]) -> None:
        self._share = settings.headroom
        self._limits = Shelf("limit", Limit, parts, MAX_FUNCTIONS, always)
        self.shelves = (self._limits,)

    def take(self, event: Event, sight: Sight) -> Iterator[Signal]:
        """A recompile that leaves little room."""
        if event.kind == LIMIT_KIND:
            self._learn(event)
            return
        entries = entries_of(event)
        known = self._limits.get(_place(event)) or self._limits.get(ANYWHERE)
        limit = known.entries if known is not None else default_limit(told_range(str(event.extra.get("torch") or "")))
        # More entries than the limit that is known: it was raised without being printed, and the room is unknown.
        if entries is None or event.extra.get("refused") or not self._share * limit <= entries <= limit:
            return
        name = shown_function(event.function) if event.function else "A function"
        yield Signal(
            "headroom_low", "", "warning", f"{name} uses {entries} of {limit} compiled versions",
            f"After {limit - entries} more that differ the recompile limit is hit, and new inputs run in eager mode." if entries < limit
            else "The next input that differs hits the recompile limit: from then on new inputs run in eager mode.",
            event.function, event.file, event.line_no, sight.model, cause=event.reasons[0].cause if event.reasons else None, is_lasting=False,
        )  # fmt: skip

    def _learn(self, event: Event) -> None:
        limit = event.extra.get("limit")
        if type(limit) is int and not is_accumulated(event.extra.get("limit_name")):
            for key in (_place(event), ANYWHERE):
                self._limits.put(key, Limit(limit))


class LateRecompilesCondition(EventCondition):
    """A function is compiled again and again after warm-up, while calls wait."""

    kinds = frozenset({"recompile"})

    def __init__(self, settings: CompileSettings, parts: Mapping[str, object]) -> None:
        self._count, self._window_s = settings.late_recompiles, settings.late_window_s
        self._recent = Shelf("late", Recent, parts, MAX_FUNCTIONS, always)
        self.shelves = (self._recent,)

    def take(self, event: Event, sight: Sight) -> Iterator[Signal]:
        """A recompile in the steady state that is not the first one."""
        if sight.phase != "steady" or event.extra.get("refused"):
            return
        key = _place(event)
        recent = self._recent.get(key) or Recent()
        is_often = recent.add(sight.at, self._count, self._window_s, sight.wall)
        self._recent.put(key, recent)
        if not is_often:
            return
        name = shown_function(event.function) if event.function else "A function"
        cause = event.reasons[0].cause if event.reasons else None
        yield Signal(
            "late_recompiles", "", "warning",
            f"{name} is compiled again after warm-up, {self._count} times or more within {duration_text(self._window_s)}"
            + (f": {CAUSES[cause]}" if cause in CAUSES else ""),
            "Each time the call waits for the compiler, for seconds to minutes.",
            event.function, event.file, event.line_no, sight.model, cause=cause, is_lasting=False,
        )  # fmt: skip


def entries_of(event: Event) -> int | None:
    """How many compiled versions a function has after a recompile; None where the log does not tell."""
    text = event.compile_id or (event.reasons[0].entry if event.reasons else None)
    parsed = parse_compile_id(text) if text else None
    if parsed is None or parsed.frame_compile is None:
        return None
    # The reasons name the entries that exist; the compile id names the one that is being made.
    return parsed.frame_compile + (1 if event.compile_id else 2)


def _place(event: Event) -> str:
    return f"{event.function}|{event.file}|{event.line_no}"
