"""What a message leaves out because an earlier one said it: one happening that torch tells in several records.

* torch prints the stack of a graph break once for a place ("user stack suppressed due to duplicate graph break").
* Where it cannot resume behind a break it says so in a second record, whose reason is what it could not carry over it.
* It warns of the function that hit its recompile limit, and raises without naming it.

Source: torch/_dynamo/symbolic_convert.py of 2.1 to 2.15, which remembers the file and line of each break, and convert_frame.py.
"""

from recompile_watch.core.compile_id import without_attempt
from recompile_watch.core.events import Event
from recompile_watch.core.findings import BREAK_KIND, LIMIT_KIND, group_key
from recompile_watch.core.groups import Group
from recompile_watch.core.same import PAIR_BYTES

MAX_PLACES = 10_000
MAX_STREAMS = 256
LIMIT_ERROR = "recompile_limit_error"
KINDS = (BREAK_KIND, LIMIT_KIND)  # of the events that say what others leave out
_OF_THE_BREAK = ("operation", "statement", "hint", "gb_id")
_Stream = tuple[str, int | None] | tuple[str, int | None, int | None]


class Earlier:
    """What was said so far: the graph breaks by file and line, and of each process the latest break and limit hit."""

    def __init__(self) -> None:
        self._breaks: dict[tuple[str, int], Event] = {}
        self._latest: dict[_Stream, Event] = {}

    def see(self, event: Event) -> Event:
        """The event with what an earlier one said; remembers what it says itself."""
        if event.kind not in KINDS:
            return self._limit_error(event) if event.kind == LIMIT_ERROR else event
        event = self._told(event)
        self._keep(_stream(event), event)
        if event.kind == BREAK_KIND and event.function is not None and event.file is not None and event.line_no is not None:
            self._keep_break((event.file, event.line_no), event)
        return event

    def name(self, group: Group) -> None:
        """Gives a group of a later part of the log what the events of this part said."""
        if group.key.kind in (BREAK_KIND, LIMIT_ERROR):
            first = group.first
            group.retell(self._told)
            group.key = group.key if group.first is first else group_key(group.first)

    def merge(self, later: "Earlier") -> None:
        """Takes in what the part of the log that follows said."""
        for place, event in later._breaks.items():
            self._keep_break(place, event)
        for stream, event in later._latest.items():
            self._keep(stream, event)

    def _keep_break(self, place: tuple[str, int], event: Event) -> None:
        if place in self._breaks or len(self._breaks) < MAX_PLACES:
            self._breaks[place] = event

    def _keep(self, stream: _Stream, event: Event) -> None:
        """Keeps an event as the latest; beyond the bound the one that was kept longest ago goes."""
        self._latest.pop(stream, None)
        self._latest[stream] = event
        if len(self._latest) > MAX_STREAMS:
            del self._latest[next(iter(self._latest))]

    def _told(self, event: Event) -> Event:
        if event.kind == LIMIT_ERROR:
            return self._limit_error(event)
        if event.kind != BREAK_KIND or event.file is None or event.line_no is None:
            return event
        if event.function is None and (known := self._breaks.get((event.file, event.line_no))) is not None:
            event = event._replace(function=known.function) if event.reasons else _as(known, event)
        return self._not_resumed(event) if event.extra.get("skipped") else event

    def _not_resumed(self, event: Event) -> Event:
        """A break behind which torch cannot resume, with the reason of the break itself."""
        broken = self._latest.get(_stream(event))
        if broken is None or broken.extra.get("skipped") or not _is_same_break(broken, event):
            return event
        extra = {name: value for name, value in event.extra.items() if name not in _OF_THE_BREAK}
        extra |= {name: broken.extra[name] for name in _OF_THE_BREAK if name in broken.extra}
        if event.reasons[:1] != broken.reasons[:1]:
            extra["not_resumed"] = ": ".join(
                str(part) for part in (*(reason.text for reason in event.reasons[:1]), event.extra.get("operation")) if part
            )
        return event._replace(function=broken.function, reasons=broken.reasons, extra=extra)

    def _limit_error(self, event: Event) -> Event:
        """What torch raises at a recompile limit, with the function and the reason of the warning in front of it."""
        hit = self._latest.get(_stream(event)) if event.function is None else None
        if hit is None or hit.function is None or not 0 < event.offset - hit.offset < PAIR_BYTES or event.pid not in (None, hit.pid):
            return event
        extra = {**event.extra, **{name: hit.extra.get(name) for name in ("limit", "limit_name") if event.extra.get(name) is None}}
        return event._replace(function=hit.function, file=hit.file, line_no=hit.line_no, reasons=hit.reasons, extra=extra)


def _as(known: Event, event: Event) -> Event:
    """A break of which torch says only the place, with the reason of the one that it met there before."""
    extra = {**event.extra, **{name: known.extra[name] for name in _OF_THE_BREAK if name in known.extra}}
    return event._replace(function=known.function, reasons=known.reasons, extra=extra)


def _is_same_break(broken: Event, event: Event) -> bool:
    """True for two records about one break: the same line in the same compilation, near each other."""
    if broken.compile_id is None or event.compile_id is None or without_attempt(broken.compile_id) != without_attempt(event.compile_id):
        return False
    return (broken.file, broken.line_no) == (event.file, event.line_no) and 0 < event.offset - broken.offset < PAIR_BYTES


def _stream(event: Event) -> _Stream:
    """What the events of one happening share; what is raised at a limit carries no process id of its own."""
    return (event.source, event.rank, event.pid) if event.kind == BREAK_KIND else (event.source, event.rank)
