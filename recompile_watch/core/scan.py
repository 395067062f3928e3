"""The literals of all rules as one matcher over a whole block: which places of it are worth a look.

Making a Python object of every line caps the speed at about 50 MB/s; a production log is mostly lines that nobody
needs. The matcher runs at more than 2 GB/s and names only the places where a literal ends.
"""

from collections.abc import Iterable
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

    def ends_and_marks(self, block: bytes) -> tuple[list[int], set[int]]:
        """Like ``ends``; and the numbers of the marks that ``block`` holds somewhere."""
        ...


class LiteralMatcher:
    """Hyperscan over all literals at once, case-sensitive, byte for byte.

    marks: further literals of which only the presence in a block is wanted.
    """

    def __init__(self, literals: Iterable[bytes], marks: Iterable[bytes] = ()) -> None:
        wanted = [_escaped(literal) for literal in literals]
        once = [_escaped(mark) for mark in marks]
        self._count = len(wanted)
        self._first_mark = len(wanted) + len(_CUT_LINES)
        expressions = [*wanted, *_CUT_LINES, *once]
        flags = [0] * self._first_mark + [hyperscan.HS_FLAG_SINGLEMATCH] * len(once)
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(expressions=expressions, ids=list(range(len(expressions))), elements=len(expressions), flags=flags)

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
        return self.ends_and_marks(block)[0]

    def ends_and_marks(self, block: bytes) -> tuple[list[int], set[int]]:
        """Like ``ends``; and the numbers of the marks that ``block`` holds somewhere."""
        found: list[int] = []
        marks: set[int] = set()
        append, first_mark = found.append, self._first_mark

        def on_match(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            if number < first_mark:
                append(end)
            else:
                marks.add(number - first_mark)

        self._database.scan(block, match_event_handler=on_match)
        return found, marks


def _escaped(literal: bytes) -> bytes:
    """The literal as a pattern: every byte that is no letter or digit in hexadecimal."""
    return b"".join(bytes([byte]) if chr(byte).isalnum() and byte < 128 else b"\\x%02x" % byte for byte in literal)
