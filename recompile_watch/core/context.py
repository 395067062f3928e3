"""Sightings become events: what only the neighbourhood can tell.

In log order: the time, whether a limit refused a recompile, which of two lines about the same thing is the event,
the latency that the bot prints nowhere, and the compile mode that shows only in what is missing.
"""

from collections import deque
from collections.abc import Iterable
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from recompile_watch.core.bulk import MetricRows, MetricTable, Rows
from recompile_watch.core.compile_id import without_attempt
from recompile_watch.core.events import EXTRA_FIELDS, Event
from recompile_watch.core.sightings import Sighting, TableRows, decode, typed
from recompile_watch.core.times import TimeResolver

HOLD_BYTES = 1 << 20  # the warning of a refused recompile follows at once; other ranks may print between
PAIR_BYTES = 1 << 16
DERIVE_MIN_S = 10.0  # the bot's clock has seconds: over ten of them a rate is right to 10 %
DERIVE_MIN_CALLS = 2
DERIVE_MIN_CALLS_BETWEEN = 20

Key = tuple[int | None, int | None]
Seen = Sighting | TableRows | Rows
Item = Event | MetricTable | MetricRows


class _Window(NamedTuple):
    """Where a call counter stood when the measured window began."""

    calls: int
    since: datetime
    symbol: object


class _Held:
    """An event that waits for the next one of its process. ``drop`` takes it out again."""

    __slots__ = ("drop", "event", "rule", "waits")

    def __init__(self, event: Event, rule: str, waits: bool) -> None:
        self.event, self.rule, self.waits, self.drop = event, rule, waits, False


class Context:
    """Completes the sightings of one source. ``push`` and ``flush`` return events in log order."""

    def __init__(self, times: TimeResolver, source: str = "") -> None:
        self._times, self._source = times, source
        self._queue: deque[_Held] = deque()
        self._waiting: dict[Key, _Held] = {}
        self._last_limit_error: _Held | None = None
        self._loading: dict[str, Event] = {}
        self._counts: dict[tuple[object, ...], _Window] = {}

    def push(self, seen: Iterable[Seen]) -> list[Item]:
        """Takes sightings in log order, and metric rows of the same stretch of log; what is now certain."""
        ready: list[Item] = []
        for item in _in_order(seen):
            if isinstance(item, Rows):
                rows = _real_quotes(item) if item.bulk.rule.event == "quote" else item
                if rows.values:
                    ready.append(self._rows(rows))
                continue
            if isinstance(item, TableRows):
                ready.append(MetricTable(item.rule.event, item.source, self._times.resolve(item.stamp), item.rows))
                continue
            before, after = item.event[:4], item.event[5:]
            event = Event._make((*before, self._times.resolve(item.stamp, item.outer_stamp), *after))
            self._queue.extend(self._complete(event, item.rule))
            ready += self._release(event.offset)
        return ready

    def _rows(self, rows: Rows) -> MetricRows:
        """Rows with their times; what they tell about compile mode and latency joins the queue."""
        kind = rows.bulk.rule.event
        first, last = self._times.resolve(rows.stamps[0]), self._times.resolve(rows.stamps[-1])
        if kind == "gpu_memory":
            if self._loading:
                self._queue.extend(self._loaded(self._row_event(rows, 0)))
            if "count" in rows.bulk.names:
                self._count_rows(rows)
        return MetricRows(kind, self._source, rows, first, last)

    def _row_event(self, rows: Rows, index: int) -> Event:
        """The event that a row stands for; its line is that of the first row."""
        rule = rows.bulk.rule
        extra = {**EXTRA_FIELDS[rule.event], **rule.values}
        for name, value in zip(rows.bulk.names, rows.values[index], strict=True):
            extra[name] = None if value is None else typed(decode(value), rule.types.get(name, "str"))
        time = self._times.resolve(rows.stamps[index])
        return Event(rule.event, self._source, rows.line, rows.offsets[index], time, None, None, None, None, None, None, (), False, extra)

    def _count_rows(self, rows: Rows) -> None:
        """Latency from call counters: of rows that only differ in their count only the first is looked at."""
        numbers, batches, counts, symbols = (rows.column(name) or [] for name in ("num_samples", "samples_per_batch", "count", "symbol"))
        keys = list(zip(numbers, batches, symbols, rows.stamps, strict=True))
        for index in [index for index, (before, key) in enumerate(zip(chain([None], keys), keys, strict=False)) if before != key]:
            number, batch, symbol, stamp = keys[index]
            count, time = _int(counts[index]), self._times.resolve(stamp)
            if time is not None and count is not None:
                calls = self._calls((None, _int(number), _int(batch)), count, time, None if symbol is None else decode(symbol))
                if calls is not None:
                    self._queue.append(_Held(_derived_latency(self._row_event(rows, index), *calls), "context.latency", False))

    def flush(self) -> list[Item]:
        """The rest, at the end of the source."""
        for held in self._queue:
            held.waits = False
        return self._release(0)

    def _release(self, offset: int) -> list[Item]:
        ready: list[Item] = []
        queue = self._queue
        while queue and (not queue[0].waits or queue[0].event.offset + HOLD_BYTES < offset):
            held = queue.popleft()
            if self._waiting.get((held.event.rank, held.event.pid)) is held:
                del self._waiting[(held.event.rank, held.event.pid)]
            if not held.drop:
                ready.append(held.event)
        return ready

    def _complete(self, event: Event, rule: str) -> list[_Held]:
        match event.kind:
            case "recompile" | "recompile_limit_hit" | "graph_break":
                return self._torch(event, rule)
            case "recompile_limit_error":
                return self._limit_error(event, rule)
            case "model_load":
                self._loading[str(event.extra.get("model"))] = event
            case "compile_mode" if event.extra.get("compiled") is not None:
                self._loading.pop(str(event.extra.get("model")), None)
            case "gpu_memory":
                return [_Held(event, rule, False), *self._from_gpu_memory(event)]
        return [_Held(event, rule, False)]

    def _torch(self, event: Event, rule: str) -> list[_Held]:
        key = (event.rank, event.pid)
        before = self._waiting.pop(key, None)
        held = _Held(event, rule, False)
        if before is not None:
            before.waits = False
            if event.kind == "recompile_limit_hit" and _refused_by(before.event, event):
                before.event = before.event._replace(extra={**before.event.extra, "refused": True})
            elif before.rule.endswith(".item") and event.kind == "graph_break" and _same_place(before.event, event):
                before.drop = True
        if rule == "torch.recompile_error":
            twin = next((h for h in reversed(self._queue) if h.event.kind == "recompile" and _same_place(h.event, event)), None)
            if twin is not None and twin.event.reasons[:1] == event.reasons[:1]:
                twin.waits = False
                twin.event = twin.event._replace(extra={**twin.event.extra, "raised": True})
                return []
        if event.kind == "recompile" or rule.endswith(".item"):
            held.waits = True
            self._waiting[key] = held
        return [held]

    def _limit_error(self, event: Event, rule: str) -> list[_Held]:
        """An exception chain prints its cause first; both are one error."""
        before = self._last_limit_error
        held = _Held(event, rule, event.extra.get("exception") == "Unsupported")
        if before is not None and before.waits and event.offset - before.event.offset < PAIR_BYTES:
            cause = before.event.extra
            extra = {**event.extra, **{name: cause.get(name) for name in ("limit", "limit_name") if event.extra.get(name) is None}}
            held.event = event._replace(extra=extra)
            before.drop, before.waits = True, False
        self._last_limit_error = held
        return [held]

    def _from_gpu_memory(self, event: Event) -> list[_Held]:
        found = self._loaded(event)
        derived = self._latency(event)
        return [*found, _Held(derived, "context.latency", False)] if derived is not None else found

    def _loaded(self, event: Event) -> list[_Held]:
        """The compile mode of a model that is in use and never said that it compiles."""
        model = str(event.extra.get("model"))
        found: list[_Held] = []
        loading = self._loading.get(model)
        if loading is not None and event.extra.get("stage") in ("pipeline_loaded", "usage", "predict_begin"):
            # The wrapper says "Using torch.compile" at once when it compiles; the model is loaded and it never did.
            del self._loading[model]
            extra = {**EXTRA_FIELDS["compile_mode"], "model": event.extra.get("model"), "compiled": False}
            found.append(_Held(event._replace(kind="compile_mode", reasons=(), extra=extra), "context.eager", False))
        return found

    def _latency(self, event: Event) -> Event | None:
        """The latency that a usage line proves together with an earlier one."""
        count = event.extra.get("count")
        if not isinstance(count, int) or event.time is None:
            return None
        settings = (event.pid, event.extra.get("num_samples"), event.extra.get("samples_per_batch"))
        calls = self._calls(settings, count, event.time, event.extra.get("symbol"))
        return None if calls is None else _derived_latency(event, *calls)

    def _calls(self, key: tuple[object, ...], count: int, time: str, symbol: object) -> tuple[float, int] | None:
        """Seconds and calls since the window of this counter began, once it is long enough; then a new one begins.

        Between two symbols the bot does other work, which only many calls outweigh.
        """
        now = datetime.fromisoformat(time)
        first = self._counts.get(key)
        if first is None or count < first.calls:
            self._counts[key] = _Window(count, now, symbol)
            return None
        elapsed_s, calls = (now - first.since).total_seconds(), count - first.calls
        is_enough = elapsed_s >= DERIVE_MIN_S and calls >= (DERIVE_MIN_CALLS if symbol == first.symbol else DERIVE_MIN_CALLS_BETWEEN)
        if is_enough or symbol != first.symbol:
            self._counts[key] = _Window(count, now, symbol)
        return (elapsed_s, calls) if is_enough else None


def _derived_latency(event: Event, elapsed_s: float, calls: int) -> Event:
    """Milliseconds a call, from the process-lifetime call counter in the usage lines."""
    extra = {
        **EXTRA_FIELDS["inference"], "model": event.extra.get("model"), "symbol": event.extra.get("symbol"),
        "milliseconds": round(elapsed_s * 1000 / calls, 3), "derived": True, "calls": calls,
    }  # fmt: skip
    return event._replace(kind="inference", reasons=(), extra=extra)


def _int(cell: bytes | None) -> int | None:
    value = None if cell is None else typed(decode(cell), "int")
    return value if isinstance(value, int) else None


def _real_quotes(rows: Rows) -> Rows:
    """Without the quotes that have a zero side: they are none."""
    sides = zip(rows.column("bid") or [], rows.column("ask") or [], strict=True)
    wrong = [index for index, pair in enumerate(sides) if not all(map(_is_price, pair))]
    return rows.without(wrong) if wrong else rows


def _is_price(text: bytes | None) -> bool:
    value = None if text is None else typed(decode(text), "float")
    return isinstance(value, float) and value > 0


def _in_order(seen: Iterable[Seen]) -> list[Seen]:
    """Rows cut where a model is loaded or its mode is said, so that each part stands on its side of that."""
    items = list(seen)
    if not any(isinstance(item, Rows) for item in items):
        return items
    marks = [item.event.offset for item in items if isinstance(item, Sighting) and item.event.kind in ("model_load", "compile_mode")]
    parts: list[Seen] = []
    for item in items:
        parts += item.split(marks) if marks and isinstance(item, Rows) else [item]
    return sorted(parts, key=_offset_of)


def _offset_of(item: Seen) -> int:
    match item:
        case Rows():
            return item.offsets[0]
        case TableRows():
            return item.rows[0][1]
        case _:
            return item.event.offset


def _same_place(one: Event, other: Event) -> bool:
    return (one.file, one.line_no) == (other.file, other.line_no) and other.offset - one.offset < PAIR_BYTES


def _refused_by(recompile: Event, hit: Event) -> bool:
    """True when the limit's warning is about this very attempt."""
    if recompile.kind != "recompile" or hit.offset - recompile.offset > HOLD_BYTES:
        return False
    if hit.function is not None and (recompile.function, recompile.file, recompile.line_no) != (hit.function, hit.file, hit.line_no):
        return recompile.function is None and _same_compile(recompile, hit)
    return _same_compile(recompile, hit)


def _same_compile(one: Event, other: Event) -> bool:
    if one.compile_id is None or other.compile_id is None:
        return True
    return without_attempt(one.compile_id) == without_attempt(other.compile_id)
