"""The lines of a recompile block become reasons: a guard for each cache entry, newest first.

A storm repeats its lines up to the limit, and those that it does not repeat differ in their numbers only. So a line that
was read is remembered, and so is where its shape has the entry and the guard.
"""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from recompile_watch.core.causes import parse_reason
from recompile_watch.core.digits import TO_ZERO, make_room
from recompile_watch.core.events import Reason
from recompile_watch.core.late import pattern
from recompile_watch.core.sightings import decode

ENTRY_START = pattern(rb"\s- (?=!?\d{1,9}/\d{1,9}(?:/\d+)?:(?: |$))")
_REASON_LINE = pattern(rb"\s*- (?:(?=!?\d{1,9}/\d{1,9}(?:/\d+)?(?:_\d+)?:(?: |$))|(?!User stack trace:| {2,}\S))")
_REMEMBERED_BYTES = 512  # of a line; a longer one is parsed again
_NUMBER_TELLS = b"0 <= "  # as a shape: "2 <= x.size()[0]" has a cause of its own


class _Form(NamedTuple):
    """What all lines of one shape say. entry, guard: where they stand; None where the lines hold no reason."""

    entry: slice | None
    guard: slice
    cause: str

    def reason(self, line: str) -> Reason:
        """The reason on such a line."""
        return Reason(None if self.entry is None else line[self.entry], line[self.guard], self.cause)


class _Seen:
    """What was read so far: the reasons of each line, and the form of each shape that has one; None for one that holds no reason."""

    def __init__(self) -> None:
        self.lines: dict[bytes, tuple[Reason, ...]] = {}
        self.forms: dict[bytes, _Form | None] = {}


class Reasons:
    """Parsed reasons, remembered."""

    def __init__(self) -> None:
        self._seen = {False: _Seen(), True: _Seen()}  # a class may depend on whether a module's forward is compiled

    def on(self, lines: list[bytes], function: str | None) -> Iterator[Reason]:
        """The reasons on the lines of a recompile block."""
        seen = self._seen[function == "forward"]
        found = list(map(seen.lines.get, lines))
        if None in found:
            make_room(seen.lines)
            for index in [index for index, reasons in enumerate(found) if reasons is None]:
                found[index] = parsed = _read(lines[index], function, seen)
                if len(lines[index]) <= _REMEMBERED_BYTES:
                    seen.lines[lines[index]] = parsed
        return chain.from_iterable(filter(None, found))


def _read(line: bytes, function: str | None, seen: _Seen) -> tuple[Reason, ...]:
    """The reasons on one line, by the form of its shape where that is known."""
    shape = line.translate(TO_ZERO)
    if shape in seen.forms:
        form = seen.forms[shape]
        return () if form is None else (form.reason(line.decode("ascii")),)
    reasons = tuple(_parse(line, function))
    if len(line) <= _REMEMBERED_BYTES and len(reasons) <= 1 and line.isascii() and _NUMBER_TELLS not in shape:
        make_room(seen.forms)
        seen.forms[shape] = _form(line.decode("ascii"), reasons[0]) if reasons else None
    return reasons


def _form(line: str, reason: Reason) -> _Form:
    """Where a line has its entry, which stands first, and its guard."""
    entry = None if reason.entry is None else _place(line, reason.entry, 0)
    return _Form(entry, _place(line, reason.text, 0 if entry is None else entry.stop), reason.cause)


def _place(line: str, text: str, behind: int) -> slice:
    at = line.index(text, behind)
    return slice(at, at + len(text))


def _parse(line: bytes, function: str | None) -> Iterator[Reason]:
    for part in ENTRY_START.split(line) if line.count(b" - ") > 1 else (line,):
        start = _REASON_LINE.match(part)
        if start is not None and part[start.end() :].strip():
            yield parse_reason(decode(part[start.end() :]), function)
        elif part[:1].isdigit() or part[:1] == b"!":
            yield parse_reason(decode(part), function)
