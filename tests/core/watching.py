"""Plays events to a watch as the daemon would: each at its own time, with a tick whenever one is due."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from recompile_watch.config import load_catalog
from recompile_watch.core.commands import Command, Refusal
from recompile_watch.core.diagnostic_runs import RunEnd, RunOrder
from recompile_watch.core.events import EXTRA_FIELDS, Event, Reason
from recompile_watch.core.heard import Heard, Trouble
from recompile_watch.core.moments import epoch_of
from recompile_watch.core.notices import Notice
from recompile_watch.core.remedies import Catalog
from recompile_watch.core.watch import Step, Watch
from recompile_watch.core.watch_settings import Receiver, WatchSettings
from recompile_watch.sources.find import find_sources
from recompile_watch.sources.read import read_blocks
from tests.conftest import engine_events, rules

START = 1_761_815_232.0  # 2025-10-30 09:07:12 UTC, when the bot's day begins
OPS = Receiver("ops")
Dated = tuple[float, Heard]


@functools.cache
def catalog() -> Catalog:
    """The shipped remedies."""
    return load_catalog()


def never_open(at: float) -> bool:
    """A stock market that is closed."""
    return False


def iso(at: float | None) -> str | None:
    """The time as an event has it."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat()


_lines = iter(range(1, 10_000_000))


def event(kind: str, at: float | None = None, *, line: int | None = None, **fields: object) -> Event:
    """An event at a time; what is no common field of events is one of its kind's own; ``share`` is the return."""
    number = line if line is not None else next(_lines)
    reasons = fields.pop("reasons", ())
    common = {name: fields.pop(name, None) for name in ("pid", "rank", "compile_id", "function", "file", "line_no")}
    if "share" in fields:
        fields["return"] = fields.pop("share")
    extra = {**EXTRA_FIELDS.get(kind, {}), **fields}
    return Event(
        kind, str(extra.pop("source", "bot.log")), number, number * 100, iso(at), common["rank"], common["pid"], common["compile_id"],  # type: ignore[arg-type]
        common["function"], common["file"], common["line_no"], reasons, False, extra,  # type: ignore[arg-type]
    )  # fmt: skip


def recompile(at: float, entries: int, *, function: str = "step", pid: int = 7, value: int = 0) -> Event:
    """The recompile after which a function has so many entries, because a size changed."""
    reason = Reason(f"3/{entries - 2}", f"tensor 'L['x']' size mismatch at index 0. expected {value}, actual {value + entries}", "size_mismatch")
    return event("recompile", at, function=function, file="/srv/model.py", line_no=12, pid=pid, compile_id=f"3/{entries - 1}", reasons=(reason,))


def limit_hit(at: float, *, function: str = "step", limit: int = 8) -> Event:
    """A recompile limit that was hit."""
    return event(
        "recompile_limit_hit", at, function=function, file="/srv/model.py", line_no=12, pid=7, limit=limit, limit_name="recompile_limit",
        reasons=(Reason("3/7", "tensor 'L['x']' size mismatch at index 0. expected 1, actual 9", "size_mismatch"),),
    )  # fmt: skip


def bot_error(at: float, message: str = "Error in main loop") -> Event:
    """An error of the bot."""
    return event("bot_error", at, message=message)


def heard(*events: Event, source: str = "bot", stream: str = "bot.log", lines: int = 1, is_backlog: bool = False) -> Heard:
    """What one reading of a stream gave."""
    return Heard(source, stream, events, lines, is_backlog)


def watch(
    settings: WatchSettings | None = None, memory: dict[str, object] | None = None, *, receivers: tuple[Receiver, ...] = (OPS,),
    is_open: Callable[[float], bool] = never_open,
) -> Watch:  # fmt: skip
    """A watch with one receiver."""
    settings = settings or WatchSettings()
    if not settings.receivers:
        settings = replace(settings, receivers=receivers)
    return Watch(settings, rules(), catalog(), memory, host="box", is_market_open=is_open)


class Play:
    """A watch and what it gave: ``notices``, and the rows of its incidents by id."""

    def __init__(self, one: Watch, start: float = START) -> None:
        self.watch, self.notices, self.rows, self.parts = one, list[Notice](), dict[str, dict[str, object]](), dict[str, object]()
        self.runs = list[RunOrder]()
        self.now = start
        self._take(one.tick(start))

    def until(self, now: float) -> Play:
        """Time passes up to ``now``, with every tick that is due."""
        while (due := self.watch.next_due()) is not None and due <= now:
            self._take(self.watch.tick(due))
        self.now = max(self.now, now)
        return self

    def at(self, now: float, *events: Event, is_backlog: bool = False) -> Play:
        """Events are read at ``now``."""
        return self.feed([heard(*events, is_backlog=is_backlog)], now)

    def feed(self, chunk: Sequence[Heard], now: float, troubles: Sequence[Trouble] = ()) -> Play:
        """A call of the watch, after all ticks that are due before the first event of the chunk."""
        first = next((epoch_of(one.time) for piece in chunk[:1] for one in piece.events[:1] if isinstance(one, Event) and one.time), None)
        self.until(min(now, first if first is not None else self.now))
        self.now = max(self.now, now)
        self._take(self.watch.feed(chunk, troubles, self.now))
        return self

    def _take(self, step: Step) -> None:
        self.notices += step.notices
        self.runs += step.runs
        self.rows.update({name: dict(row) for name, row in step.incidents.items()})
        for key, part in step.memory.items():
            if part is None:
                self.parts.pop(key, None)
            else:
                self.parts[key] = json.loads(json.dumps(part))

    def row(self, kind: str) -> dict[str, object]:
        """The latest row of the only incident of a kind."""
        found = [row for row in self.rows.values() if row["kind"] == kind]
        assert len(found) == 1, [row["kind"] for row in self.rows.values()]
        return found[0]

    def command(self, command: Command) -> Refusal | None:
        """A person asks something; why it was not done."""
        answer = self.watch.command(command, self.now)
        if isinstance(answer, Refusal):
            return answer
        self._take(answer)
        return None

    def ended(self, end: RunEnd, incident: str | None = None) -> Play:
        """The latest run that was ordered, or that of an incident, ends now."""
        self._take(self.watch.ended(incident or self.runs[-1].incident, end, self.now))
        return self

    def restart(self, settings: WatchSettings | None = None) -> Play:
        """The watch is made anew from what the steps gave to remember."""
        self.watch = watch(settings, json.loads(json.dumps(self.parts)))
        return self

    def told(self, receiver: str = "ops") -> list[tuple[str, str, int]]:
        """What a receiver was told: sort, kind of the first incident, number of incidents."""
        return [(one.sort.value, one.alerts[0].kind, len(one.alerts) + one.left_out) for one in self.notices if one.receiver == receiver]


def events_of(*paths: Path) -> Iterator[tuple[float, Event]]:
    """The events of logs with their times, in order of time; an undated one has the time of the one before it."""
    found: list[tuple[float, int, Event]] = []
    for path in paths:
        for source in find_sources([str(path)])[0]:
            last = 0.0
            for one in engine_events(read_blocks(source), source.path):
                last = (epoch_of(one.time) if one.time else None) or last
                found.append((last, len(found), one))
    first = min((at for at, _, _ in found if at), default=START)
    yield from sorted(((at or first, one) for at, _, one in found), key=lambda item: item[0])


def by_record(events: Iterable[tuple[float, Event]]) -> Iterator[Dated]:
    """Each record by itself, as the shortest reading that there can be."""
    held: list[Event] = []
    at = 0.0
    for when, one in events:
        if held and (one.source, one.offset) != (held[0].source, held[0].offset):
            yield at, heard(*held, stream=held[0].source)
            held = []
        at = when if not held else at
        held.append(one)
    if held:
        yield at, heard(*held, stream=held[0].source)
