"""Sightings become events: what only the neighbourhood can tell.

In log order: the time, whether a limit refused a recompile, which of two lines about the same thing is the event,
the latency that the bot prints nowhere, and the compile mode that shows only in what is missing.
"""

from collections import deque
from collections.abc import Iterable
from datetime import datetime

from recompile_watch.core.compile_id import without_attempt
from recompile_watch.core.detect import Sighting
from recompile_watch.core.events import EXTRA_FIELDS, Event
from recompile_watch.core.times import TimeResolver

HOLD_BYTES = 1 << 20  # the warning of a refused recompile follows at once; other ranks may print between
PAIR_BYTES = 1 << 16
DERIVE_MIN_S = 10.0  # the bot's clock has seconds: over ten of them a rate is right to 10 %

Key = tuple[int | None, int | None]


class _Held:
    """An event that waits for the next one of its process. ``drop`` takes it out again."""

    __slots__ = ("drop", "event", "rule", "waits")

    def __init__(self, event: Event, rule: str, waits: bool) -> None:
        self.event, self.rule, self.waits, self.drop = event, rule, waits, False


class Context:
    """Completes the sightings of one source. ``push`` and ``flush`` return events in log order."""

    def __init__(self, times: TimeResolver) -> None:
        self._times = times
        self._queue: deque[_Held] = deque()
        self._waiting: dict[Key, _Held] = {}
        self._last_limit_error: _Held | None = None
        self._loading: dict[str, Event] = {}
        self._counts: dict[str, tuple[int, datetime]] = {}

    def push(self, sightings: Iterable[Sighting]) -> list[Event]:
        """Takes sightings in log order; the events that are now certain."""
        ready: list[Event] = []
        for sighting in sightings:
            event = sighting.event._replace(time=self._times.resolve(sighting.stamp, sighting.outer_stamp))
            for derived in self._complete(event, sighting.rule):
                self._queue.append(derived)
            ready += self._release(event.offset)
        return ready

    def flush(self) -> list[Event]:
        """The rest, at the end of the source."""
        for held in self._queue:
            held.waits = False
        return self._release(0)

    def _release(self, offset: int) -> list[Event]:
        ready = []
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
            case "compile_mode":
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
            elif rule == "torch.recompile_error" and _same_place(before.event, event):
                return []
        if rule == "torch.recompile_error":
            twin = next((h for h in reversed(self._queue) if h.event.kind == "recompile" and _same_place(h.event, event)), None)
            if twin is not None and twin.event.reasons[:1] == event.reasons[:1]:
                twin.waits = False
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
        model = str(event.extra.get("model"))
        found = []
        loading = self._loading.get(model)
        if loading is not None and event.extra.get("stage") in ("pipeline_loaded", "usage", "predict_begin"):
            # The wrapper says "Using torch.compile" at once when it compiles; the model is loaded and it never did.
            del self._loading[model]
            extra = {**EXTRA_FIELDS["compile_mode"], "model": event.extra.get("model"), "compiled": False}
            found.append(_Held(event._replace(kind="compile_mode", reasons=(), extra=extra), "context.eager", False))
        derived = self._latency(event)
        return [*found, _Held(derived, "context.latency", False)] if derived is not None else found

    def _latency(self, event: Event) -> Event | None:
        """Milliseconds a call, from the process-lifetime call counter in the usage lines."""
        count = event.extra.get("count")
        if not isinstance(count, int) or event.time is None:
            return None
        key = f"{event.pid}:{event.extra.get('num_samples')}:{event.extra.get('samples_per_batch')}"
        now = datetime.fromisoformat(event.time)
        first = self._counts.get(key)
        if first is None or count <= first[0] or now < first[1]:
            if first is None or count < first[0]:
                self._counts[key] = (count, now)
            return None
        elapsed_s = (now - first[1]).total_seconds()
        if elapsed_s < DERIVE_MIN_S:
            return None
        self._counts[key] = (count, now)
        extra = {
            **EXTRA_FIELDS["inference"], "model": event.extra.get("model"), "symbol": event.extra.get("symbol"),
            "milliseconds": round(elapsed_s * 1000 / (count - first[0]), 3), "derived": True, "calls": count - first[0],
        }  # fmt: skip
        return event._replace(kind="inference", reasons=(), extra=extra)


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
