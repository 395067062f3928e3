"""Metric lines: single lines of the bot that come by the hundred thousand, told apart by their shape.

Lines of one shape have one form: the same header, the same columns in the same places. So a pattern is matched once for
each shape, and a line costs one look-up.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress, islice
from operator import ne
from typing import NamedTuple

from recompile_watch.core.digits import TO_ZERO, make_room
from recompile_watch.core.prefix_grammar import DIALECT_HEADERS, Stamp
from recompile_watch.core.rules import Rule
from recompile_watch.core.sightings import decode, typed

# The numbers that a report wants of a metric line, by event; a line of any other event is no metric line.
_NUMBERS = {"gpu_memory": frozenset({"peak_mb"}), "quote": frozenset({"bid", "ask"})}
_COUNTER = ("count", "num_samples", "samples_per_batch")
_TELLS_COUNTERS = ("symbol", "num_samples", "samples_per_batch")
_NAMES = frozenset({"stage", "model", "symbol"})
_NAME = re.compile(r"\(\?P<(\w+)>")
# What may hold digits in a pattern that makes no difference between them: bounds of a repeat, names of groups.
_NO_DIGITS_MEANT = re.compile(r"(?<!\\)\{\d+(?:,\d*)?\}|\(\?P<\w+>")
_STAMP = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?")
_DIGIT = re.compile(rb"\d")
_REST = rb"[^\n\r\x00\x1b&|]*\n"  # a bar would be of another header, in front of which this line breaks off
HEADER = re.compile(b"(?:" + b"|".join(DIALECT_HEADERS) + b")")
TEN_SECONDS = len("2025-10-30 09:07:1")  # as many characters of a time tell its ten seconds
Settings = tuple[int | None, int | None]  # number of samples, samples per batch
_NOWHERE = slice(0)


class HeaderForm(NamedTuple):
    """How a header prints its time. is_utc: else it is local time. size: bytes of the time, in front of all else."""

    is_utc: bool
    size: int

    def stamp(self, line: bytes) -> Stamp:
        """The time of a line that begins with such a header."""
        return self._stamp(line[: self.size].decode())

    def ten_seconds(self, line: bytes) -> Stamp:
        """The same, rounded down to ten seconds."""
        return self._stamp(line[:TEN_SECONDS].decode() + "0")

    def _stamp(self, text: str) -> Stamp:
        return Stamp("zoned", text + "+00:00") if self.is_utc else Stamp("local", text)


class RowForm(NamedTuple):
    """What all lines of one shape have in common, which name the same things.

    head: the beginning of the line, up to the last of what tells call counters apart. numbers: where each number stands
    that a report wants. stage, model, symbol: what they name.
    """

    rule: Rule
    header: HeaderForm
    head: slice
    numbers: Mapping[str, slice]
    stage: str | None = None
    model: str | None = None
    symbol: str | None = None

    @property
    def counts(self) -> bool:
        """True when its lines show a call counter."""
        return "count" in self.numbers

    def calls(self, line: bytes) -> int | None:
        """What a line that shows a call counter counts."""
        return _int(line[self.numbers["count"]])

    def settings(self, line: bytes) -> Settings:
        """With what it forecasts; None for what the line does not show."""
        return _settings(line[self.numbers["num_samples"]], line[self.numbers["samples_per_batch"]])


class RowPattern(NamedTuple):
    """A rule's pattern for a metric line and the rest of its line. numbers: those that a report wants of it."""

    rule: Rule
    pattern: re.Pattern[bytes]
    numbers: frozenset[str]

    @classmethod
    def of(cls, rule: Rule) -> "RowPattern | None":
        """The pattern of a rule for metric lines; None for any other, and for one that tells digits apart."""
        source = rule.text.decode()
        tells_digits = re.search(r"\d", _NO_DIGITS_MEANT.sub("", source)) is not None
        if not rule.bulk or rule.is_mute or rule.event not in _NUMBERS or len(rule.literals) != 1 or tells_digits:
            return None
        counts = rule.event == "gpu_memory" and "(?P<count>" in source
        numbers = _NUMBERS[rule.event] | (frozenset(_COUNTER) if counts else frozenset())
        text = _NAME.sub(lambda name: name[0] if name[1] in numbers | _NAMES else "(?:", source)
        return cls(rule, re.compile(text.encode() + _REST), numbers)

    def names_with_digits(self, line: bytes) -> tuple[slice, ...] | None:
        """Where such names stand in a line; None when it is no plain metric line."""
        literal = self.rule.literals[0]
        match = self.pattern.search(line)
        if match is None or not line.isascii() or line.find(literal) != line.rfind(literal) or header_form(line[: match.start()]) is None:
            return None
        return tuple(slice(*match.span(name)) for name, text in match.groupdict().items() if name in _NAMES and text and _DIGIT.search(text))

    def form(self, line: bytes) -> RowForm:
        """The form of a plain metric line."""
        match = self.pattern.search(line)
        header = header_form(line[: match.start()]) if match is not None else None
        assert match is not None and header is not None
        found = match.groupdict()
        names = {name: None if value is None else value.decode().strip() for name, value in found.items() if name in _NAMES}
        fixed = {name: value for name, value in self.rule.values.items() if name in _NAMES and isinstance(value, str)}
        numbers = {name: slice(*match.span(name)) if found.get(name) else _NOWHERE for name in self.numbers}
        head = max([header.size, *(match.end(name) for name in _TELLS_COUNTERS if found.get(name))])
        return RowForm(self.rule, header, slice(head), numbers, **{**fixed, **names})


class Shapes:
    """The forms of the lines that one pattern may match, remembered by shape, and by the names in which digits stand."""

    def __init__(self, by: RowPattern) -> None:
        self.by = by
        self._forms: dict[bytes, RowForm] = {}
        self._names: dict[bytes, tuple[slice, ...] | None] = {}

    def forms(self, lines: list[bytes]) -> list[RowForm | None]:
        """The form of each line (they end in newlines), None for one that is no plain metric line."""
        shapes = b"".join(lines).translate(TO_ZERO).split(b"\n")
        forms = list(map(self._forms.get, shapes[:-1]))
        if None in forms:
            forms = [form or self._form(shape, line) for form, shape, line in zip(forms, shapes, lines, strict=False)]
        return forms

    def _form(self, shape: bytes, line: bytes) -> RowForm | None:
        """The form of a line whose shape does not tell it: the shape is new, no line of it is plain, or a name has digits."""
        if shape not in self._names:
            make_room(self._names)
            self._names[shape] = self.by.names_with_digits(line)
        names = self._names[shape]
        if names is None:
            return None
        key = b"\n".join([shape, *(line[name] for name in names)])
        if key not in self._forms:
            make_room(self._forms)
            self._forms[key] = self.by.form(line)
        return self._forms[key]


class Rows(NamedTuple):
    """Lines of one rule, in log order.

    region: the bytes in which they stand. base: its offset. known: the offset and the number of a line in front of
    them. offsets, lines, forms: of each line.
    """

    by: RowPattern
    region: bytes
    base: int
    known: tuple[int, int]
    offsets: list[int]
    lines: list[bytes]
    forms: list[RowForm]

    def column(self, name: str) -> list[bytes]:
        """One number of all rows, b"" where a line has no such number."""
        return [line[form.numbers[name]] for line, form in zip(self.lines, self.forms, strict=True)]

    def stamp(self, index: int) -> Stamp:
        """The time of a row, as printed."""
        return self.forms[index].header.stamp(self.lines[index])

    def line(self, index: int) -> int:
        """The line number of a row."""
        offset, line = self.known
        return line + self.region.count(b"\n", offset - self.base, self.offsets[index] - self.base)

    def only(self, indexes: Sequence[int]) -> "Rows":
        """Some of the rows, in this order."""
        return self._replace(
            offsets=[self.offsets[i] for i in indexes], lines=[self.lines[i] for i in indexes], forms=[self.forms[i] for i in indexes]
        )

    def without(self, indexes: Collection[int]) -> "Rows":
        """The rows but for some."""
        return self.only([index for index in range(len(self.offsets)) if index not in indexes])

    def outside(self, stretches: Sequence[tuple[int, int]]) -> "Rows":
        """The rows that lie in none of the stretches (begin and end) of the log."""
        inside = {index for a, b in stretches for index in range(bisect_left(self.offsets, a), bisect_left(self.offsets, b))}
        return self.without(inside) if inside else self

    def split(self, places: Sequence[tuple[int, int]]) -> list["Rows"]:
        """The rows cut in front of each of the places (offset and line number, ascending)."""
        parts: list[Rows] = []
        begin, known = 0, self.known
        for place in [*places, None]:
            end = len(self.offsets) if place is None else bisect_left(self.offsets, place[0])
            if begin < end:
                cut = slice(begin, end)
                parts.append(self._replace(known=known, offsets=self.offsets[cut], lines=self.lines[cut], forms=self.forms[cut]))
            begin = end
            known = known if place is None or place[0] < self.base else place
        return parts


def counters(lines: Sequence[bytes], forms: Sequence[RowForm], indexes: Sequence[int]) -> Iterator[tuple[int, int, Settings]]:
    """The lines that show a call counter, by index: what it counts, and the settings. Of neighbours that begin alike only the first.

    indexes: of the lines whose form shows one, ascending.
    """
    heads = [lines[index][forms[index].head] for index in indexes]
    for place in [*range(min(1, len(heads))), *compress(range(1, len(heads)), map(ne, heads, islice(heads, 1, None)))]:
        index = indexes[place]
        line, form = lines[index], forms[index]
        calls = form.calls(line)
        if calls is not None:
            yield index, calls, form.settings(line)


def by_form(forms: Sequence[RowForm]) -> list[list[int]]:
    """Where each form stands among them, in their order."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for index, form in enumerate(map(id, forms)):
        groups[form].append(index)
    return [*groups.values()]


@lru_cache(maxsize=256)
def _settings(num_samples: bytes, samples_per_batch: bytes) -> Settings:
    return _int(num_samples), _int(samples_per_batch)


def _int(cell: bytes) -> int | None:
    if cell.isdigit() and len(cell) < 19:
        return int(cell)
    value = typed(decode(cell), "int")
    return value if isinstance(value, int) else None


def header_form(header: bytes) -> HeaderForm | None:
    """How a header of the bot's prints its time; None when it is none."""
    match = HEADER.fullmatch(header)
    text = (match["utc"] or match["local"]) if match else None
    if match is None or text is None or _STAMP.fullmatch(text) is None:
        return None
    return HeaderForm(bool(match["utc"]), len(text))
