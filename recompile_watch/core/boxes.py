"""Boxes: tracebacks as Python's rich draws them, in a box with some lines of code for each frame, become those that Python itself prints.

Below the box stands the exception with its text, broken at its blanks to fit the console. Boxes come anywhere in a log, and behind any
carrier, so this takes the pieces of lines. What others draw below a line of code, the values of its names, is left out.
Source: rich/traceback.py (_render_stack, __rich_console__), rich 10 to 15; loguru/_better_exceptions.py.
"""

from collections.abc import Iterator

from recompile_watch.core.late import pattern
from recompile_watch.core.prefix_grammar import Piece

Placed = tuple[Piece, int, int, bytes]  # a piece, number and offset of its line, and that line as it was read

_TITLE = b" Traceback (most re"  # cut in a narrow column
_TOP = pattern(
    rb"(?P<indent> *)(?:\xe2\x95\xad|\xe2\x94\x8c|\+)(?:\xe2\x94\x80|-)+ Traceback \(most re(?:c|ce|cen|cent(?: call(?: last\))?)?)? [^ \n]+\s*$"
)
_PLAIN = b"Traceback (most recent call last):"
# Rounded, the squares of an old console of Windows, and plain ASCII.
_SIDES = (b"\xe2\x94\x82", b"|")
_BOTTOMS = (b"\xe2\x95\xb0\xe2\x94\x80", b"\xe2\x94\x94\xe2\x94\x80", b"+-")
_RIGHT = (b" \xe2\x94\x82", *(b"\xe2\x94\x80\xe2" + corner for corner in (b"\x95\xae", b"\x94\x90", b"\x95\xaf", b"\x94\x98")))
_NESTED = (*_SIDES, *_BOTTOMS, b"\xe2\x95\xad", b"\xe2\x94\x8c")  # the box of a frame's variables
_HEADER = pattern(rb"(?P<file>[^\n]{1,1000}):(?P<line>\d{1,7}) in (?P<function>\S{1,300})")
_POINTER = pattern(rb"(?:\xe2\x9d\xb1|>) *\d{1,7} (?P<code>[^\n]*)")
_GUIDES = pattern(rb"\A(?:\xe2\x94\x82| )+")
_BESIDE = pattern(rb"  (?:\xe2\x94\x82|\xe2\x95\xad|\xe2\x95\xb0|\xe2\x94\x8c|\xe2\x94\x94)")  # its variables, on a wide console
# Lines that begin so are no rest of the one above; what is indented is none either.
_BEGINS = pattern(
    rb"[\s\xe2]|\Z|Traceback |The above exception |During handling |from user code:|User [Ss]tack|Set TORCH|You can suppress |While executing "
    rb"|Original traceback:|target: |args\[|(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Failed|Unsupported)(?::|\s*\Z)"
)
# What a name in the line of code above stood for, as loguru and better_exceptions print it.
_VALUE = pattern(rb"(?:\xe2\x94\x82| )*\xe2\x94\x94 (?![\w.]{1,120}: )")
_PADDING = 4  # columns of the sides with a blank each
_DEFAULT_WIDTH = 100  # of a box, however wide the console is
_MAX_CONSOLE = 400
_MAX_BOXES = 64  # of as many streams at a time
_MAX_LINES = 20_000  # of one, with what stands below it and between
_REPORTS = 100  # lines after which a record that takes the box is to know that it goes on
_MAX_PARTS = 16  # of a path that is wider than the box
_MAX_BYTES = 1 << 16  # of a line that was put together


def is_boxed(line: bytes) -> bool:
    """True for a line of such a box, whatever stands in front of it: it is no rest of another one."""
    text = line.strip(b" ")
    if text[:1] in (b"|", b"+"):
        return text.endswith((b" |", b"-+")) and text[1:2] in (b" ", b"-")
    return text.endswith(_RIGHT)


def width_of(line: bytes) -> int:
    """How many columns a line takes."""
    return len(line) if line.isascii() else len(line.decode("utf-8", "replace"))


def found_no_room(previous: bytes, text: bytes, width: int) -> bool:
    """True when the first word of a text did not fit behind the line above it."""
    return width_of(previous) + 1 + width_of(text.split(b" ", 1)[0]) > width


class Boxes:
    """Gives the pieces of a log in which no traceback is boxed."""

    def __init__(self) -> None:
        self._boxes: dict[tuple[bytes, int | None], _Box] = {}

    @property
    def is_open(self) -> bool:
        """True while lines may belong to a box, or to the exception below it."""
        return bool(self._boxes)

    def first_open(self) -> list[tuple[int, int, bytes]]:
        """Offset and number of the lines that are held, and nothing in front of them."""
        return [(box.held[2], box.held[1], b"") for box in self._boxes.values() if box.held is not None]

    def line(self, pieces: list[Piece], number: int, offset: int, raw: bytes) -> Iterator[Placed]:
        """The pieces that are complete now. raw: the line that they stand in."""
        for piece in pieces:
            if b"\xe2\x94\x94 " in piece.text and not piece.torch and _VALUE.match(piece.text) is not None:
                yield _with_text((piece, number, offset, raw), b"")
                continue
            if not self._boxes and _TITLE not in piece.text:
                yield piece, number, offset, raw
                continue
            key = piece.channel, piece.rank
            box = self._boxes.get(key)
            if _TITLE in piece.text and not piece.torch and (top := _TOP.match(piece.text)) is not None:
                yield from self._ended(key)
                self._boxes[key] = _Box(_front(piece), len(top["indent"]), width_of(top[0].rstrip()))
                yield _with_text((piece, number, offset, raw), _PLAIN)
            elif box is None:
                yield piece, number, offset, raw
            elif piece.torch or _front(piece) != box.front or not box.lines_left:
                yield from self._ended(key)
                yield piece, number, offset, raw
            else:
                yield from box.line((piece, number, offset, raw))
        if len(self._boxes) > _MAX_BOXES:
            yield from self._ended(next(iter(self._boxes)))

    def end(self) -> list[Placed]:
        """What is still held, when no lines come, or none that could go on with it."""
        return [placed for key in list(self._boxes) for placed in self._ended(key)]

    def _ended(self, key: tuple[bytes, int | None]) -> list[Placed]:
        box = self._boxes.pop(key, None)
        return [] if box is None else box.end()


class _Box:
    """One box, and the text below it.

    front: what stands in front of its lines. width: its columns; those of the text are as many, or more below a box of the usual width.
    """

    def __init__(self, front: tuple[bool, bool], indent: int, width: int) -> None:
        self.front = front
        self.held: Placed | None = None
        self.lines_left = _MAX_LINES
        self._indent, self._width = indent, width - indent
        self._is_inside = True
        self._path: list[bytes] = []
        self._previous = b""

    def line(self, placed: Placed) -> list[Placed]:
        """What is complete with this line."""
        self.lines_left -= 1
        text = placed[0].text
        text = text[self._indent :] if not text[: self._indent].strip() else text
        if not self._is_inside:
            return self._below(text.rstrip(), placed)
        done = self._inside(text, placed)
        return done or ([] if self.lines_left % _REPORTS else [_with_text(placed, b"")])

    def end(self) -> list[Placed]:
        """The line that is still held."""
        done = [] if self.held is None else [self.held]
        self.held = None
        return done

    def _inside(self, text: bytes, placed: Placed) -> list[Placed]:
        if text.startswith(_BOTTOMS):
            self._is_inside = False
            return self._frame()
        side = next((side for side in _SIDES if text.startswith(side)), None)
        if side is None:
            return [placed]
        inner = text.removeprefix(side)[1:].rstrip().removesuffix(side).rstrip()
        inner = inner[1:] if self._path and inner[:4] == b" in " else inner  # it found no room behind the line's number
        pointer = _POINTER.match(inner)
        if inner[:1] in (b"", b" ") or inner.startswith(_NESTED):
            return self._frame()
        if pointer is not None:
            code = _BESIDE.split(_GUIDES.sub(b"", pointer["code"], 1), 1)[0].rstrip()
            return [*self._frame(), _with_text(placed, b"    " + code)]
        if len(self._path) < _MAX_PARTS:
            self._path.append(inner)
            self.held = self.held or placed
        return []

    def _frame(self) -> list[Placed]:
        """The frame whose path, line and function were read; they stand on several lines where they are too long for the box."""
        parts, self._path = self._path, []
        placed, self.held = self.held, None
        if placed is None:
            return []
        header = b""
        for part, after in zip(parts, [*parts[1:], b""], strict=True):
            is_cut = b" " not in part and width_of(part) == self._width - _PADDING and not after.startswith(b"in ")
            header += part if is_cut else part + b" "
        frame = _HEADER.fullmatch(header.rstrip(b" "))
        if frame is None:
            return []
        return [_with_text(placed, b'  File "%s", line %s, in %s' % (frame["file"], frame["line"], frame["function"]))]

    def _below(self, text: bytes, placed: Placed) -> list[Placed]:
        """A line of the exception's text: with those that go on with it, once another begins."""
        if self.held is not None and len(self.held[0].text) < _MAX_BYTES and self._goes_on(text):
            is_cut = width_of(self._previous) == self._width and b" " not in self._previous
            self.held = _with_text(self.held, self.held[0].text + (b"" if is_cut else b" ") + text)
            self._previous = text
            return []
        done, self.held, self._previous = self.end(), _with_text(placed, text), text
        if self._width >= _DEFAULT_WIDTH and width_of(text) <= _MAX_CONSOLE:
            self._width = max(self._width, width_of(text))
        return done

    def _goes_on(self, text: bytes) -> bool:
        """True when the first word of a line found no room in the one above."""
        if _BEGINS.match(text) is not None or not self._previous:
            return False
        return found_no_room(self._previous, text, self._width)


def _front(piece: Piece) -> tuple[bool, bool]:
    """Whether a header stands in front of a piece, and a time behind that of its carrier."""
    return piece.headed, piece.outer_stamp is None


def _with_text(placed: Placed, text: bytes) -> Placed:
    return placed[0]._replace(text=text), placed[1], placed[2], text
