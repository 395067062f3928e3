"""The literals of all rules as one matcher over a whole block: which places of it are worth a look.

Making a Python object of every line caps the speed at about 50 MB/s; a production log is mostly lines that nobody
needs. The matcher runs at more than 2 GB/s and names only the places where a literal ends.
"""

from collections.abc import Collection, Iterable
from typing import Protocol

import hyperscan

from recompile_watch.core.prefix_grammar import BYTE_LIST

# Lines in which a literal cannot be seen: cut by their carrier (CRI's P flag, Docker's entry without a newline), or
# printed by journald as a list of numbers.
_CUT_LINES = (rb" std(out|err) P ", rb'([^n]|[^\\]n)","stream":"std', BYTE_LIST.pattern)


class Matcher(Protocol):
    """Finds literals in bytes."""

    def which(self, text: bytes) -> set[int]:
        """The numbers of the literals that ``text`` holds."""
        ...

    def ends(self, block: bytes) -> list[int]:
        """The offsets, ascending, just behind each literal (or sign of a cut line) found in ``block``."""
        ...

    def ends_apart(self, block: bytes, apart: Collection[int]) -> tuple[list[int], dict[int, list[int]]]:
        """Like ``ends``; but the offsets of the literals whose numbers are in ``apart`` come on their own, by number."""
        ...


class LiteralMatcher:
    """Hyperscan over all literals at once, case-sensitive, byte for byte."""

    def __init__(self, literals: Collection[bytes], compiled: bytes | None = None) -> None:
        """compiled: what ``compiled`` gave for the same literals; without it, or when it does not suit this machine, they are compiled."""
        self._count = len(literals)
        self._database = _loaded(compiled) or _compiled(expressions_of(literals))

    def compiled(self) -> bytes:
        """What spares a later program the compiling, for this compiler and this kind of processor."""
        dumped: bytes = hyperscan.dumpb(self._database)
        return dumped

    def which(self, text: bytes) -> set[int]:
        """The numbers of the literals that ``text`` holds."""
        found: set[int] = set()

        def on_match(number: int, _start: int, _end: int, _flags: int, _context: object) -> None:
            if number < self._count:
                found.add(number)

        self._database.scan(text, match_event_handler=on_match)
        return found

    def ends(self, block: bytes) -> list[int]:
        """The offsets, ascending, just behind each literal (or sign of a cut line) found in ``block``."""
        return self.ends_apart(block, ())[0]

    def ends_apart(self, block: bytes, apart: Collection[int]) -> tuple[list[int], dict[int, list[int]]]:
        """Like ``ends``; but the offsets of the literals whose numbers are in ``apart`` come on their own, by number."""
        found: list[int] = []
        by_number: dict[int, list[int]] = {number: [] for number in apart}
        take = [found.append] * (self._count + len(_CUT_LINES))
        for number, ends in by_number.items():
            take[number] = ends.append

        def on_match(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            take[number](end)

        self._database.scan(block, match_event_handler=on_match)
        return found, by_number


def expressions_of(literals: Iterable[bytes]) -> list[bytes]:
    """What is compiled."""
    return [*map(_escaped, literals), *_CUT_LINES]


def _compiled(expressions: list[bytes]) -> hyperscan.Database:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(expressions=expressions, ids=list(range(len(expressions))), elements=len(expressions), flags=[0] * len(expressions))
    return database


def _loaded(compiled: bytes | None) -> hyperscan.Database | None:
    if compiled is None:
        return None
    try:
        database = hyperscan.loadb(compiled, mode=hyperscan.HS_MODE_BLOCK)
    except hyperscan.error:  # damaged, or of another hyperscan or kind of processor
        return None
    database.scratch = hyperscan.Scratch(database)
    return database


def _escaped(literal: bytes) -> bytes:
    """The literal as a pattern: every byte that is no letter or digit in hexadecimal."""
    return b"".join(bytes([byte]) if chr(byte).isalnum() and byte < 128 else b"\\x%02x" % byte for byte in literal)
