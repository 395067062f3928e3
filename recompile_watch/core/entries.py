"""Entries: a log that was exported with several lines for each line of it, one field of which holds the text.

systemd's journal as ``journalctl -o export``, ``verbose`` and ``json-pretty`` print it, and YAML, in which gcloud prints its own. Each entry
becomes the JSON line that a shipper would have written of it.
"""

import json
import re
from enum import Enum
from functools import partial
from itertools import takewhile
from typing import assert_never

from recompile_watch.core.carriers import json_string
from recompile_watch.core.cells import Line
from recompile_watch.core.late import pattern
from recompile_watch.core.prefix_grammar import DAYS, JSON_TEXT, ZONE

_MAX_ENTRY_BYTES = 1 << 19
_MAX_ENTRY_LINES = 20_000
_SIZE_BYTES = 8  # of a field's size in the export format, in front of what is no printable text

_FIELD = pattern(rb"(?P<name>[A-Z_][A-Z0-9_]{0,63})=(?P<value>.*)", re.DOTALL)
_BINARY = pattern(rb"[A-Z_][A-Z0-9_]{0,63}")
_VERBOSE = pattern(
    DAYS + rb" (?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{6})?)(?P<zone>" + ZONE + rb")?(?: [A-Z]{3,5})? \[s=[0-9a-f]+;i=[0-9a-f]+;"
)
_EXPORTED = pattern(rb"(?:[A-Z_][A-Z0-9_]{0,63}=[^\n]*\n){0,3}__REALTIME_TIMESTAMP=\d{16}\n")
_OBJECTS = pattern(rb"\{\n\s+\"[\w@.]{1,80}\" ?: (?s:.)*?\n\}\n\{\n\s+\"")
_KEY = pattern(rb"(?P<indent> *)(?P<name>[\w@./-]{1,80}|'[\w@./-]{1,80}'):(?: (?P<value>.*))?")
_BLOCK = pattern(rb"[|>](?P<indent>\d?)[+-]?")
_YAML = pattern(rb"---\n(?:(?:[\w@./-]{1,80}:| +\S)[^\n]*\n){0,60}?(?:textPayload|jsonPayload):[ \n]")
_HOLDS_TEXT = pattern(rb"\s*[\"']?(?:" + "|".join(map(re.escape, JSON_TEXT)).encode() + rb")[\"']?(?: ?[:=]|$)")
_ESCAPE = pattern(r"\\(?:x([0-9a-fA-F]{2})|([e0a_v NLP]))")
_ESCAPED = {"e": "\x1b", "0": "\x00", "a": "\x07", "_": "\xa0", "v": "\x0b", " ": " ", "N": "\x85", "L": "\u2028", "P": "\u2029"}


class Form(Enum):
    """How the entries are written."""

    EXPORT = "export"  # NAME=value, an empty line behind each entry
    VERBOSE = "verbose"  # a line with the time, below it the indented NAME=value
    OBJECTS = "objects"  # JSON objects over several lines
    YAML = "yaml"  # a line of dashes in front of each entry


def entries_of(head: bytes) -> Form | None:
    """How the entries of a log are written that begins with these bytes; None when it has a line for each."""
    first, head = head[:1], head.replace(b"\r\n", b"\n")
    if first == b"{":
        return Form.OBJECTS if head[:2] == b"{\n" and _OBJECTS.match(head) is not None else None
    if first == b"-":
        return Form.YAML if head[:4] == b"---\n" and _YAML.match(head) is not None else None
    if first == b"_":
        return Form.EXPORT if _EXPORTED.match(head) is not None else None
    return Form.VERBOSE if _VERBOSE.match(head) is not None else None


class Entries:
    """Gives each entry as one line; takes physical lines, as ``Unwrapper`` does."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._held: list[Line] = []
        self._size = 0
        self._until = 0  # so many bytes of the held lines are no text
        self._sized = 0  # the line of them in which such a field begins, with its size

    def line(self, number: int, offset: int, raw: bytes) -> list[Line]:
        """The entry that is complete now: the one in front of this line, where that begins another, or the one that it ends."""
        raw = raw if self._form is Form.EXPORT else raw.rstrip(b"\r")
        done = self.end() if self._begins(raw) or self._size > _MAX_ENTRY_BYTES or len(self._held) > _MAX_ENTRY_LINES else []
        self._held.append((number, offset, raw))
        self._size += len(raw) + 1
        is_last = (self._form is Form.OBJECTS and raw == b"}") or (self._form is Form.EXPORT and self._is_end(raw))
        return done + self.end() if is_last else done

    def end(self) -> list[Line]:
        """The entry that is still held."""
        held, self._held, self._size, self._until, self._sized = self._held, [], 0, 0, 0
        fields = _fields(self._form, [raw for _, _, raw in held])
        if not fields:
            return held  # none of this form
        number, offset, _ = next((line for line in held if _HOLDS_TEXT.match(line[2]) is not None), held[0])
        return [(number, offset, fields)]

    def _begins(self, raw: bytes) -> bool:
        match self._form:
            case Form.VERBOSE:
                return _VERBOSE.match(raw) is not None
            case Form.YAML:
                return raw == b"---"
            case Form.OBJECTS:
                return raw == b"{"
            case Form.EXPORT:
                return False
            case _:
                assert_never(self._form)

    def _is_end(self, raw: bytes) -> bool:
        """True for the empty line behind an entry of the export format; where a field is no text, its size stands in front of it."""
        if self._sized and self._size >= self._until:
            size = b"\n".join(line for _, _, line in self._held[self._sized :])[:_SIZE_BYTES]
            self._until += int.from_bytes(size, "little") + 1
            self._sized = 0
        elif self._size > self._until and _BINARY.fullmatch(raw) is not None:
            self._sized, self._until = len(self._held), self._size + _SIZE_BYTES
        return self._size > self._until and not raw


def _fields(form: Form, lines: list[bytes]) -> bytes:
    """The JSON line of an entry; b"" where these lines are none."""
    match form:
        case Form.OBJECTS:
            return b"".join(map(bytes.strip, lines)) if lines[:1] == [b"{"] and lines[-1] == b"}" else b""
        case Form.EXPORT:
            found = _exported(lines)
        case Form.VERBOSE:
            found = _verbose(lines)
        case Form.YAML:
            found = _yaml(lines)
        case _:
            assert_never(form)
    return json.dumps(found).encode() if found else b""


def _exported(lines: list[bytes]) -> dict[str, object]:
    found: dict[str, object] = {}
    rest = b"\n".join(lines) + b"\n"
    while rest:
        line, _, behind = rest.partition(b"\n")
        if _BINARY.fullmatch(line) is not None:
            end = _SIZE_BYTES + int.from_bytes(behind[:_SIZE_BYTES], "little")
            _add_field(found, line, behind[_SIZE_BYTES:end])
            rest = behind[end + 1 :]
            continue
        field = _FIELD.fullmatch(line)
        if field is not None:
            _add_field(found, field["name"], field["value"])
        rest = behind
    return found


def _verbose(lines: list[bytes]) -> dict[str, object]:
    head = _VERBOSE.match(lines[0]) if lines else None
    if head is None:
        return {}
    found: dict[str, object] = {"time": (head["time"] + (head["zone"] or b"")).decode()}
    name = b""
    for line in lines[1:]:
        field = _FIELD.fullmatch(line, 4) if line[:4] == b"    " else None
        column = 5 + len(name)
        if name and line[:column].strip() == b"":
            found[name.decode()] = f"{found[name.decode()]}\n{line[column:].decode('utf-8', 'replace')}"
        elif field is not None:
            name = field["name"]
            _add_field(found, name, field["value"])
    return found


def _add_field(found: dict[str, object], name: bytes, value: bytes) -> None:
    """Adds a field as journald's own JSON has it; what systemd knows of the time is enough."""
    if name != b"_SOURCE_REALTIME_TIMESTAMP":
        found[name.decode()] = value.decode("utf-8", "replace")


def _yaml(lines: list[bytes]) -> dict[str, object]:
    """The mappings and texts of a document, no lists."""
    found: dict[str, object] = {}
    inside: list[tuple[int, dict[str, object]]] = [(-1, found)]
    at = 0
    while at < len(lines):
        key = _KEY.fullmatch(lines[at])
        at += 1
        if key is None:
            continue
        indent = len(key["indent"])
        while inside[-1][0] >= indent:
            inside.pop()
        value, name = key["value"] or b"", key["name"].strip(b"'").decode()
        if not value:
            inside.append((indent, {}))
            inside[-2][1][name] = inside[-1][1]
            continue
        more = [*takewhile(partial(_is_inside, indent), lines[at:])]
        inside[-1][1][name] = _scalar(value, more)
        at += len(more)
    return found


def _is_inside(indent: int, line: bytes) -> bool:
    """True for a line that belongs to a key with this indent."""
    return line[: indent + 1].strip() == b""


def _scalar(value: bytes, more: list[bytes]) -> str:
    """A text with the lines below it that belong to it."""
    block = _BLOCK.fullmatch(value)
    if block is not None:
        first = next(filter(bytes.strip, more), b"")
        indent = len(first) - len(first.lstrip(b" "))  # of a text that begins with blanks a digit tells how many are YAML's own
        indent = min((len(line) - len(line.lstrip(b" ")) for line in more if line.strip()), default=0) if block["indent"] else indent
        return b"\n".join(line[indent:] for line in more).decode("utf-8", "replace").rstrip("\n")
    text = _folded(value, more)
    if value[:1] == b'"':
        body = _ESCAPE.sub(lambda match: f"\\u{ord(_ESCAPED[match[2]]) if match[2] else int(match[1], 16):04x}", text.strip()[1:-1])
        return (json_string(body.encode()) or body.encode()).decode("utf-8", "replace")
    return text.strip()[1:-1].replace("''", "'") if value[:1] == b"'" else text.strip()


def _folded(value: bytes, more: list[bytes]) -> str:
    """A text that was broken at its blanks; an empty line stands for a newline, a backslash at the end for nothing."""
    text, is_quoted = value.decode("utf-8", "replace"), value[:1] == b'"'
    newlines = 0
    for line in more:
        part = line.strip().decode("utf-8", "replace")
        if not part:
            newlines += 1
        elif is_quoted and text.endswith("\\") and not text.endswith("\\\\"):
            text = text[:-1] + part
        else:
            text, newlines = text.rstrip() + ("\n" * newlines or " ") + part, 0
    return text
