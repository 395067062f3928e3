"""Sightings become events: what only the neighbourhood can tell.

In log order: the time, whether a limit refused a recompile, which of two lines about the same thing is the event,
the latency that the bot prints nowhere, and the compile mode that shows only in what is missing.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from recompile_watch.core.counters import CallCounters, derived_latency
from recompile_watch.core.events import EXTRA_FIELDS, Event, event_from_json, event_state
from recompile_watch.core.handlers import Handlers
from recompile_watch.core.runs import Metrics, Run, Stretch
from recompile_watch.core.same import (
    FAILURES,
    HOLD_BYTES,
    LOGGED,
    PAIR_BYTES,
    SPECIALIZED,
    TAILS,
    Held,
    Process,
    Raised,
    is_break_of,
    is_followed,
    is_raised_again,
    is_refused_by,
    is_same_place,
    is_why,
    may_be_one,
    may_follow,
    nearest_first,
    refused,
    says,
    tells_no_failure,
    with_what_fixed_it,
)
from recompile_watch.core.sightings import TableRows
from recompile_watch.core.stack_frames import CALLER
from recompile_watch.core.starts import Starts
from recompile_watch.core.sums import Seen, Sums, offset_of
from recompile_watch.core.times import TimeResolver
from recompile_watch.core.tracebacks import REPORTED

MAX_LOADING = 256  # models whose loader has not said yet whether it compiles
MAX_ANNOUNCED = 32  # ranks that may print between a line and what it announces

Item = Event | TableRows | Sums | Stretch
_IN_BULK = frozenset({"gpu_memory", "quote", "strategy_return", "strategy_daily_return", "validation_loss"})  # not seen one by one in bulk
_IN_USE = ("pipeline_loaded", "usage", "predict_begin")  # stages in which a model works


class Context:
    """Completes the sightings of one source. ``push`` and ``flush`` return events in log order."""

    def __init__(self, times: TimeResolver) -> None:
        self._times = times
        self._queue: deque[Held | TableRows | Sums | Stretch] = deque()
        self._waiting: dict[Process, Held] = {}
        self._announced: list[Held] = []
        self._last_failure = -PAIR_BYTES  # offset of the last failed compilation or graph break
        self._logged: Held | None = None  # a failed guard that torch logged, and is about to raise
        self._callers: dict[Process, Event] = {}  # of a traceback whose exception comes next: the line that calls
        self._raised: list[Raised] = []
        self._handlers, self._starts = Handlers(), Starts()
        self._loading: dict[str, Event] = {}
        self._counters = CallCounters()

    def state(self) -> dict[str, object]:
        """Everything that later lines depend on, as JSON values, for ``resume``. Sums and tables cannot be part of it."""
        held = [one for item in self._queue for one in _each(item)]
        return {
            "times": self._times.state(),
            "held": [[event_state(item.event), item.rule, item.waits, item.drop, item.channel.decode("latin-1"), item.stack] for item in held],
            "announced": [index for index, item in enumerate(held) if any(item is one for one in self._announced)],
            "last_failure": self._last_failure,
            "logged": None if self._logged is None else event_state(self._logged.event),
            "callers": [[channel.decode("latin-1"), event_state(event)] for (channel, *_), event in self._callers.items()],
            "raised": [[one.process[0].decode("latin-1"), *one.process[1:], *one[1:]] for one in self._raised],
            **self._handlers.state(held),
            "begun": self._starts.state(),
            "loading": {model: event_state(event) for model, event in self._loading.items()},
            "counts": self._counters.state(),
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Goes on where an earlier reading stopped. Raises KeyError, TypeError or ValueError when it is no such state."""
        self._times.resume(state["times"])
        held: list[Held] = []
        for event, rule, waits, drop, *more in state["held"]:  # an older state has no channel, or no stack
            item = Held(event_from_json(event), rule, more[0].encode("latin-1") if more else b"")
            item.waits, item.drop, item.stack = waits, drop, tuple(more[1]) if len(more) > 1 else ()
            held.append(item)
            if item.waits and state.get("doubtful") != len(held) - 1 and (item.event.kind == "recompile" or item.rule.endswith(".item")):
                self._waiting[item.process] = item
        self._queue.extend(held)
        self._handlers.resume(state, held)
        self._starts.resume(state)
        self._announced = [held[index] for index in state["announced"]]
        self._last_failure = int(state["last_failure"])
        logged = None if state.get("logged") is None else event_from_json(state["logged"])
        self._logged = logged and next((one for one in held if one.event == logged), Held(logged, ""))
        callers = ((channel.encode("latin-1"), event_from_json(value)) for channel, value in state.get("callers", ()))
        self._callers = {(channel, event.rank, event.pid): event for channel, event in callers}
        raised = state.get("raised", ())
        self._raised = [
            Raised((channel.encode("latin-1"), rank, pid), at, time, said, tuple(stack)) for channel, rank, pid, at, time, said, stack in raised
        ]
        self._loading = {model: event_from_json(value) for model, value in state["loading"].items()}
        self._counters.resume(state["counts"])

    @property
    def is_waiting(self) -> bool:
        """True while something is held that a later line may still change."""
        return bool(self._queue)

    def waits_from(self, end: int) -> int:
        """The offset of the first thing that is held, else ``end``."""
        return min((item.event.offset for item in self._queue if isinstance(item, Held)), default=end)

    def push(self, seen: Iterable[Seen | Stretch]) -> list[Item]:
        """Takes sightings, tables, sums and stretches in log order; what is now certain."""
        ready: list[Item] = []
        for item in seen:
            match item:
                case Stretch():
                    self._queue.extend(self._stretch(item))
                    ready += self._release(item.last)
                    continue
                case Sums():
                    self._queue.append(self._sums(item))
                case TableRows():
                    self._queue.append(item._replace(time=self._times.resolve(item.stamp, item.outer_stamp)))
                case _:
                    before, after = item.event[:4], item.event[5:]
                    time = self._times.resolve(item.stamp, item.outer_stamp)
                    if item.event.kind not in _IN_BULK:
                        self._times.learn_beside(item.stamp, time)
                    event = Event._make((*before, time, *after))
                    self._queue.extend(self._complete(Held(event, item.rule, item.channel, is_torchs=item.is_torchs)))
            ready += self._release(offset_of(item))
        return ready

    def _sums(self, sums: Sums) -> Sums:
        """Sums with their times; what they tell about compile mode and latency joins the queue."""
        first, last = sums.stamps
        dated = [(time, n, peaks) for stamp, n, peaks in sums.moments if (time := self._times.resolve(stamp)) is not None]
        times = self._times.resolve(first), self._times.resolve(last)
        for memory in sums.memory:
            if self._loading:
                event = sums.event(memory.line, memory.offset, self._times.resolve(memory.stamp), model=memory.model, stage=memory.stage)
                self._queue.extend(self._loaded(event))
        for offset, stamp, count, model, symbol, settings in sums.counts:
            time = self._times.resolve(stamp)
            calls = None if time is None else self._counters.calls((None, *settings), count, time, symbol)
            if calls is not None:
                event = sums.event(0, offset, time, model=model)
                self._queue.append(Held(derived_latency(event, *calls), "context.latency"))
        return sums._replace(times=times, moments=[], dated=dated)

    def _stretch(self, stretch: Stretch) -> Iterator[Stretch | Held]:
        """A stretch with its times; those of its events that tell about compile mode or latency come out of it."""
        stretch = Stretch(tuple(run.dated(self._times.resolve) for run in stretch.runs))
        told = [pair for run in stretch.runs if run.kind == "gpu_memory" for pair in self._told_by(run)]
        if not told:
            yield stretch
            return
        for part, (_, found) in zip(stretch.without([offset for offset, _ in told]), [*told, (0, [])], strict=True):
            if part.runs:
                yield part
            yield from (Held(event, "context.stretch") for event in found)

    def _told_by(self, run: Run) -> Iterator[tuple[int, list[Event]]]:
        """The events of a run of GPU memory that tell more than they say: the offset of each, it and what it tells."""
        assert isinstance(run.cells, Metrics)
        counters = {index: (calls, settings) for index, calls, settings in run.cells.counters()}
        for index in sorted({*counters, *self._in_use(run)}):
            found: list[Event] = []
            time, symbol = run.times[index], run.cells.forms[index].symbol
            calls, settings = counters.get(index, (None, ()))
            latency = self._counters.calls((None, *settings), calls, time, symbol) if calls is not None and time is not None else None
            if latency is not None or str(run.cells.forms[index].model) in self._loading:
                event = run.event(index)
                found = [event, *(held.event for held in self._loaded(event))]
                found += [derived_latency(event, *latency)] if latency is not None else []
            if len(found) > 1:
                yield run.offsets[index], found

    def _in_use(self, run: Run) -> list[int]:
        """The events of a run that show a model in use, of models that were loaded and did not say that they compile."""
        if not self._loading:
            return []
        names = zip(run.column("model"), run.column("stage"), strict=True)
        return [index for index, (model, stage) in enumerate(names) if stage in _IN_USE and str(model) in self._loading]

    def flush(self) -> list[Item]:
        """The rest, at the end of the source."""
        for held in self._queue:
            if isinstance(held, Held):
                held.waits = False
        return self._release(0)

    def _release(self, offset: int) -> list[Item]:
        ready: list[Item] = []
        queue = self._queue
        while queue:
            held = queue[0]
            if not isinstance(held, Held):
                ready.append(held)
            elif held.waits and held.event.offset + HOLD_BYTES >= offset:
                break
            else:
                if self._waiting.get(held.process) is held:
                    del self._waiting[held.process]
                if not held.drop:
                    ready.append(held.event)
            queue.popleft()
        return ready

    def _complete(self, held: Held) -> list[Held]:
        if not self._starts.is_news(held):
            return []
        caller = self._callers.pop(held.process, None)
        if held.rule == CALLER:
            self._callers = dict([*self._callers.items(), (held.process, held.event)][-MAX_ANNOUNCED:])
            return []
        if caller is not None and held.event.offset - caller.offset < HOLD_BYTES:
            held.called_by(caller)
            raised = Raised.of(held)
            if held.event.kind in FAILURES and any(raised.is_again(one) for one in self._raised):
                return []
            self._raised = [*self._raised[1 - MAX_ANNOUNCED :], raised]
        if self._handlers.is_copy(held):
            return []
        if (counts := self._handlers.no_copy()) is not None:
            counts.waits = False
            counts.drop = not self._counted(counts)
        return [held] if self._handlers.is_doubtful(held) else self._counted(held)

    def _counted(self, held: Held) -> list[Held]:
        event, rule = held.event, held.rule
        if rule == SPECIALIZED:
            if (before := self._waiting.get(held.process)) is not None:
                before.event = with_what_fixed_it(before.event, event)
            return []
        if event.kind == "graph_break" or event.kind in FAILURES:
            is_tail = (rule in TAILS or rule == REPORTED or tells_no_failure(event, rule)) and event.offset - self._last_failure < PAIR_BYTES
            self._last_failure = self._last_failure if rule == REPORTED else event.offset  # each test that failed has one
            if is_tail:
                return []
        if event.kind == "compile_error" and (self._was_logged(held) or self._was_built(held)):
            return []
        match event.kind:
            case "graph_break" | "compile_error" if is_followed(held) or may_follow(held):
                self._drop_announced(held)
                held.waits = True
                self._announced = [*self._announced[1 - MAX_ANNOUNCED :], held]
                return [held]
            case "graph_break" | "compile_error" | "recompile_limit_error":
                self._drop_announced(held)
        return self._with_what_it_tells(held)

    def _with_what_it_tells(self, held: Held) -> list[Held]:
        event = held.event
        if event.kind in ("model_load", "analysis_start"):
            self._counters.drop(event.pid)
        match event.kind:
            case "recompile" | "recompile_limit_hit" | "graph_break":
                return self._torch(held)
            case "recompile_limit_error":
                return self._limit_error(held)
            case "model_load":
                self._load(str(event.extra.get("model")), event)
            case "compile_mode" if event.extra.get("compiled") is not None:
                self._loading.pop(str(event.extra.get("model")), None)
            case "gpu_memory":
                return [held, *self._from_gpu_memory(event)]
        return [held]

    def _was_logged(self, held: Held) -> bool:
        """True for the exception of a failure that torch logged a moment ago, which gets its place from it; remembers what it logs."""
        if held.rule.startswith(LOGGED):
            self._logged = held
            return False
        if self._logged is None or not is_raised_again(held.event, self._logged.event):
            return False
        self._logged.placed_as(held.event)
        return True

    def _was_built(self, held: Held) -> bool:
        """True for a command, a call or an operator that failed when what failed in it has said why: that is the event, with what torch raised."""
        built = next((one for one in nearest_first(self._announced, held) if is_why(one, held.event)), None)
        if built is not None:
            built.raised_as(held.event)
        return built is not None

    def _drop_announced(self, held: Held) -> None:
        """Takes out the line in front that says the same in fewer words, and is no event of its own then."""
        if held.rule.endswith(".item"):
            return
        near = [one for one in self._announced if held.event.offset - one.event.offset < PAIR_BYTES]
        before = next((one for one in nearest_first(near, held) if says(held, one)), None)
        if before is not None:
            before.waits, before.drop = False, True
            if held.event.time is None:
                held.event = held.event._replace(time=before.event.time)
        self._announced = [one for one in near if one is not before]

    def _torch(self, held: Held) -> list[Held]:
        event = held.event
        before = self._waiting.pop(held.process, None)
        if before is not None:
            before.waits = False
            if event.kind == "recompile_limit_hit" and is_refused_by(before.event, event):
                before.event = refused(before.event, event)
            elif before.rule.endswith(".item") and is_break_of(before.event, event):
                before.drop = True
        if held.rule == "torch.recompile_error":
            twin = self._twin(held)
            if twin is not None:
                twin.waits = False
                twin.event = twin.event._replace(extra={**twin.event.extra, "raised": True})
                return []
        if event.kind == "recompile" or held.rule.endswith(".item"):
            held.waits = True
            self._waiting[held.process] = held
        return [held]

    def _twin(self, raised: Held) -> Held | None:
        """The recompile that is held and that now was raised; of another process only one that was not raised yet."""
        recompiles = self._near(raised.event, "recompile")
        able = (one for one in recompiles if one.process == raised.process or not one.event.extra.get("raised"))
        twin = next((one for one in nearest_first(able, raised) if is_same_place(one.event, raised.event)), None)
        return twin if twin is not None and twin.event.reasons[:1] == raised.event.reasons[:1] else None

    def _limit_error(self, held: Held) -> list[Held]:
        """An exception chain prints its cause first; both are one error."""
        event = held.event
        held.waits = event.extra.get("exception") == "Unsupported" or held.rule.endswith(".header")
        before = next((one for one in self._near(event, event.kind) if one.waits and may_be_one(one.process, held.process)), None)
        if before is not None:
            cause = before.event.extra
            extra = {**event.extra, **{name: cause.get(name) for name in ("limit", "limit_name") if event.extra.get(name) is None}}
            held.event = event._replace(extra=extra)
            before.drop, before.waits = True, False
        return [held]

    def _near(self, event: Event, kind: str) -> Iterator[Held]:
        """The events of a kind that are held and lie near this one, the latest first."""
        held = (one for one in reversed(self._queue) if isinstance(one, Held))
        near = takewhile(lambda one: event.offset - one.event.offset < PAIR_BYTES, held)
        return (one for one in near if one.event.kind == kind)

    def _from_gpu_memory(self, event: Event) -> list[Held]:
        found = self._loaded(event)
        derived = self._latency(event)
        return [*found, Held(derived, "context.latency")] if derived is not None else found

    def _loaded(self, event: Event) -> list[Held]:
        """The compile mode of a model that is in use and never said that it compiles."""
        model = str(event.extra.get("model"))
        found: list[Held] = []
        loading = self._loading.get(model)
        if loading is not None and event.extra.get("stage") in _IN_USE:
            # The wrapper says "Using torch.compile" at once when it compiles; the model is loaded and it never did.
            del self._loading[model]
            extra = {**EXTRA_FIELDS["compile_mode"], "model": event.extra.get("model"), "compiled": False}
            found.append(Held(event._replace(kind="compile_mode", reasons=(), extra=extra), "context.eager"))
        return found

    def _load(self, model: str, event: Event) -> None:
        """Keeps a load as the latest; beyond the bound the one that was kept longest ago goes."""
        self._loading.pop(model, None)
        self._loading[model] = event
        if len(self._loading) > MAX_LOADING:
            del self._loading[next(iter(self._loading))]

    def _latency(self, event: Event) -> Event | None:
        """The latency that a usage line proves together with an earlier one."""
        count = event.extra.get("count")
        if not isinstance(count, int) or event.time is None:
            return None
        settings = (event.pid, event.extra.get("num_samples"), event.extra.get("samples_per_batch"))
        calls = self._counters.calls(settings, count, event.time, event.extra.get("symbol"))
        return None if calls is None else derived_latency(event, *calls)


def _each(item: Held | TableRows | Sums | Stretch) -> list[Held]:
    """What is held, one by one, as it can be saved."""
    match item:
        case Held():
            return [item]
        case Stretch():
            return [Held(event, "context.stretch") for event in item.events()]
    return []
