"""Which events one record of torch's made, because several of logging's handlers printed it.

Where a program lets torch's loggers propagate (``propagate = True``, for pytest's caplog or a root handler of its own), each
record comes in torch's format, then once more so when ``torch._dynamo`` propagates to ``torch``, and at last in the format of
the application, without torch's prefix (torch 2.13). Only that last one shows that they are copies: a record that stands twice
in torch's own format may be a paste or a benchmark. The report of ``torch._dynamo.explain`` is such a copy of the breaks that were logged.
"""

from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from recompile_watch.core.events import TORCH_KINDS, Event
from recompile_watch.core.same import PAIR_BYTES, Held

_MAX_PRINTED = 32  # ranks and threads that may print between a record and its copy
_MAX_APART_S = 1.0  # an application's format may show whole seconds only
_QUARTER_S = 900  # zone and year of one of the two may only be known from elsewhere
_WORDS = ("limit", "limit_name", "instances", "distinct_sizes", "exception", "message")

Said = tuple[str | int | None, ...]


class _Printed(NamedTuple):
    """A record in torch's own format. said: what it says, whoever prints it."""

    offset: int
    time: str | None
    rank: int | None
    pid: int | None
    compile_id: str | None
    said: Said

    @property
    def whole(self) -> tuple[object, ...]:
        """Everything but its place."""
        return self[1:]


class Handlers:
    """Compares the events of one source with those of torch's format near in front of them."""

    def __init__(self) -> None:
        self._printed: deque[_Printed] = deque(maxlen=_MAX_PRINTED)
        self._doubtful: Held | None = None

    def state(self, held: list[Held]) -> dict[str, object]:
        """What later events depend on, as JSON values. held: those that wait, one of which may be doubtful."""
        doubtful = next((index for index, one in enumerate(held) if one is self._doubtful), None)
        return {"printed": [[*one[:-1], list(one.said)] for one in self._printed], "doubtful": doubtful}

    def resume(self, state: Mapping[str, Any], held: list[Held]) -> None:
        """Goes on where an earlier reading stopped. Raises KeyError, TypeError or ValueError when it is no such state."""
        for offset, time, rank, pid, compile_id, said in state.get("printed", ()):
            self._printed.append(_Printed(int(offset), time, rank, pid, compile_id, tuple(said)))
        doubtful = state.get("doubtful")
        self._doubtful = None if doubtful is None else held[doubtful]

    def is_copy(self, held: Held) -> bool:
        """True for an event that an application's handler printed of a record behind torch's own; what waited in doubt is one, too, then."""
        event = held.event
        if held.is_torchs or not self._printed or event.kind not in TORCH_KINDS:
            return False
        said = _said(held)
        original = next((one for one in self._printed if one.said == said and _may_be_of(event, one)), None)
        if original is None:
            return False
        self._printed.remove(original)
        if self._doubtful is not None and _said(self._doubtful) == said:
            self._doubtful.waits, self._doubtful.drop, self._doubtful = False, True, None
            self._printed = deque((one for one in self._printed if one.whole != original.whole), _MAX_PRINTED)
        return True

    def no_copy(self) -> Held | None:
        """What waited in doubt, when something else came behind it: it counts."""
        held, self._doubtful = self._doubtful, None
        return held

    def is_doubtful(self, held: Held) -> bool:
        """True for an event in torch's own format that follows directly behind itself: what comes next shows whether it is a copy."""
        if not held.is_torchs:
            return False
        event, last = held.event, self._printed[-1] if self._printed else None
        this = _Printed(event.offset, event.time, event.rank, event.pid, event.compile_id, _said(held))
        self._printed.append(this)
        if last is None or event.compile_id is None or this.whole != last.whole or event.offset - last.offset > PAIR_BYTES:
            return False
        held.waits, self._doubtful = True, held
        return True


def _said(held: Held) -> Said:
    """What an event says, whoever prints it."""
    event = held.event
    first = event.reasons[0].text if event.reasons else None
    extra = (value if isinstance(value, str | int) else None for value in map(event.extra.get, _WORDS))
    who = event.kind if event.kind == "graph_break" else held.rule  # torch._dynamo.explain tells of a break again
    return (who, event.function, event.file, event.line_no, len(event.reasons), first, *extra)


def _may_be_of(event: Event, original: _Printed) -> bool:
    """True when it stands near behind the original and shows no other rank, compilation or time."""
    if event.offset - original.offset > PAIR_BYTES or event.rank not in (None, original.rank):
        return False
    if event.compile_id is not None:
        return False
    if event.time is None or original.time is None:
        return True
    apart = (datetime.fromisoformat(event.time) - datetime.fromisoformat(original.time)).total_seconds() % _QUARTER_S
    return min(apart, _QUARTER_S - apart) < _MAX_APART_S
