"""Carriers: what transports lines with a structure of its own, such as JSON logs and the container runtime's files."""

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from recompile_watch.core.prefix_grammar import ANSI, BETWEEN_ENTRIES, CRI, ISO, JSON_CHANNEL, JSON_TEXT, JSON_TIME, LOGFMT, TRACEBACK, ZONE, Stamp


class Carried(NamedTuple):
    """What one carrier line holds.

    channel: the stable identity of the stream. lines: the text in it. is_whole: the carrier did not cut the last one.
    """

    channel: list[bytes]
    stamp: Stamp | None
    rank: int | None
    pid: int | None
    lines: list[bytes]
    is_whole: bool


def read_cri(raw: bytes) -> Carried | None:
    """A line in the container runtime's format, ``2025-10-30T09:08:09.06Z stdout F text``; None when it is none."""
    match = CRI.match(raw)
    if match is None:
        return None
    stamp = Stamp("zoned", digits(match["stamp"]) + zone(match["zone"]))
    return Carried([match["stream"]], stamp, None, None, [raw[match.end() :]], match["flag"] == b"F")


_MAX_DEPTH = 8
_NOT_BLANK = re.compile(r"\S")


def read_jsons(raw: bytes) -> list[Carried]:
    """The JSON log lines that stand on one, as shippers write them without newlines, or as one document.

    Empty when there is anything else or one carries no text.
    """
    document = _document(raw)
    if document is None and (raw[:1] in (b",", b"[") or raw.rstrip()[-1:] in (b",", b"]")):  # one object of an array that has a line for each
        document = _document(raw.strip().lstrip(b"[,").rstrip(b"],"))
    read = _reader_of(raw)
    if document is not None:
        return list(_entries(document, read))
    try:
        entries = [read(value) for value in _values(raw.decode())] if BETWEEN_ENTRIES.search(raw) is not None else []
    except (ValueError, RecursionError):
        return []
    return [one for one in entries if one is not None] if None not in entries else []


_Reader = Callable[[object], Carried | None]


def _reader_of(raw: bytes) -> _Reader:
    """How an entry of this line is read."""
    return _read_failure if TRACEBACK in raw else _read_entry


def _entries(value: object, read: _Reader, stamp: Stamp | None = None, depth: int = 0) -> Iterator[Carried]:
    """The entries with a text that a JSON value holds, itself or inside. stamp: the time of what it stands in."""
    entry = read(value)
    if entry is not None:
        yield entry if entry.stamp is not None else entry._replace(stamp=stamp)
    elif depth < _MAX_DEPTH:
        inside = value.values() if isinstance(value, dict) and value.keys() != _ATTRIBUTE else value if isinstance(value, list) else ()
        stamp = _stamp_of(value) or stamp if isinstance(value, dict) else stamp
        around = _channel(value)
        for item in inside:
            yield from (one._replace(channel=[*one.channel, *around]) for one in _entries(item, read, stamp, depth + 1))


def _values(text: str) -> Iterator[object]:
    """The JSON values that stand one behind the other. Raises ValueError where there is none."""
    decoder, at = json.JSONDecoder(), 0
    while (begin := _NOT_BLANK.search(text, at)) is not None:
        value, at = decoder.raw_decode(text, begin.start())
        yield value


def read_json(raw: bytes) -> Carried | None:
    """A JSON log line, or None when it is none or carries no text field."""
    return next(_entries(_document(raw), _reader_of(raw)), None)


def read_logfmt(raw: bytes) -> Carried | None:
    """A line of ``key=value`` pairs, ``time=2026-11-22T23:58:01Z level=info msg="text"``, as such a JSON log line; None when it is none."""
    pairs: dict[str, object] = {}
    at = 0
    while at < len(raw) and (pair := LOGFMT.match(raw, at)) is not None:
        quoted = pair["quoted"] if pair["single"] is None else _SINGLE.sub(_as_double, pair["single"])
        text = pair["bare"] if quoted is None else json_string(quoted)
        pairs[pair["key"].decode()] = None if text is None else text.decode("utf-8", "replace")
        at = pair.end()
    return _reader_of(raw)(pairs) if at == len(raw) else None


_SINGLE = re.compile(rb"\\.|\"")  # what another quote changes in a text that Python quoted, as structlog's pairs are


def _as_double(part: "re.Match[bytes]") -> bytes:
    return b"'" if part[0] == b"\\'" else b'\\"' if part[0] == b'"' else part[0]


def _document(raw: bytes) -> object:
    """The JSON value that the bytes are; None when they are none, as for JSON's null."""
    try:
        value: object = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value


_ATTRIBUTE = {"key", "value"}  # of OpenTelemetry, which writes a name beside the entries so: {"key": "host.name", "value": {"stringValue": …}}
_DOCKER = {"log", "stream", "time"}  # its json-file; of what Fluent Bit writes each entry is whole
_DOCKER_MAY = {*_DOCKER, "attrs"}


def _read_entry(entry: object) -> Carried | None:
    if not isinstance(entry, dict):
        return _read_pair(entry) if isinstance(entry, list) else None
    text = next((value for key in JSON_TEXT if (value := _as_bytes(entry.get(key))) is not None), None)
    if text is None:
        return None
    channel = [f"{key}={entry[key]}".encode("utf-8", "replace") for key in JSON_CHANNEL if isinstance(entry.get(key), str | int)]
    channel += _channel(entry)
    pids = (_json_int(entry, key) for key in ("_PID", "SYSLOG_PID", "pid", "process", "process_id"))
    is_whole = text.endswith(b"\n") or not _DOCKER <= entry.keys() <= _DOCKER_MAY
    return Carried(channel, _stamp_of(entry), _json_int(entry, "rank"), next((pid for pid in pids if pid is not None), None), _lines(text), is_whole)


def _read_pair(entry: list[object]) -> Carried | None:
    """A time since 1970 and the line behind it, as Loki's programming interface gives them."""
    stamp = _json_stamp(entry[0]) if len(entry) in (2, 3) and isinstance(entry[0], str) else None
    text = None if stamp is None or stamp.form != "epoch" else _as_bytes(entry[1])
    return None if text is None else Carried([], stamp, None, None, _lines(text), is_whole=True)


def _read_failure(entry: object) -> Carried | None:
    """An entry with its text and, below it, the tracebacks that stand in fields of their own (``exc_info``, ``error.stack_trace``), each once."""
    carried = _read_entry(entry)
    if not isinstance(entry, dict) or (carried is not None and not carried.is_whole):
        return carried
    lines = [] if carried is None else carried.lines
    depth = _MAX_DEPTH if carried is None else 0  # without a text the entry is the object that holds the traceback
    for traceback in sorted(_tracebacks(entry, depth), key=len, reverse=True):
        found = _lines(traceback)
        if b"\n".join(found).strip() not in b"\n".join(lines):
            lines = lines + found
    if carried is None:
        return _read_entry({**entry, JSON_TEXT[0]: b"\n".join(lines).decode("utf-8", "replace")}) if lines else None
    return carried._replace(lines=lines)


def _tracebacks(value: object, depth: int) -> Iterator[bytes]:
    """The texts with a traceback that a JSON object holds."""
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        text = _as_bytes(item)
        if text is not None and TRACEBACK in text:
            yield text
        elif text is None and depth < _MAX_DEPTH:
            yield from _tracebacks(item, depth + 1)


def _lines(text: bytes) -> list[bytes]:
    return [ANSI.sub(b"", line).replace(b"\x00", b"") for line in text.removesuffix(b"\n").split(b"\n")]


def _stamp_of(entry: dict[str, object]) -> Stamp | None:
    """The time of an entry; loguru keeps it in a record beside the text."""
    for key in JSON_TIME:
        if key in entry and (found := _json_stamp(entry[key])) is not None:
            return found
    record = entry.get("record")
    return _json_stamp(record.get("time")) if isinstance(record, dict) else None


def _channel(value: object) -> list[bytes]:
    """What else an object, or those in it, tell of the stream: its pod, its host, its file."""
    return [f"{path}={text}".encode("utf-8", "replace") for path, text in _texts(value)]


def _texts(value: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """The names of the stream in an object, with their paths."""
    for key, item in value.items() if isinstance(value, dict) else ():
        if isinstance(item, dict):
            if depth < _CHANNEL_DEPTH:
                yield from _texts(item, f"{path}{key}.", depth + 1)
        elif isinstance(item, str) and key not in JSON_TEXT and (_is_of_stream(f"{path}{key}") or _LOG_FILE.fullmatch(item)):
            yield f"{path}{key}", item


_CHANNEL_DEPTH = 2  # "resource": {"labels": {"pod_name": …}}, "log": {"file": {"path": …}}
_OF_STREAM = re.compile(r"(?:^|[./_])(?:pod|container|host|node|instance|log_?stream)(?:[._]?(?:name|id))?$", re.IGNORECASE)
_LOG_FILE = re.compile(r"(?:/|[A-Za-z]:\\)[^\n]{0,400}\.(?:log|out|err)")


@lru_cache(maxsize=1024)
def _is_of_stream(path: str) -> bool:
    """True for ``kubernetes.pod_name``, ``host.name``, ``containerId``; the names at the top that are always known are not asked."""
    return path not in JSON_CHANNEL and len(path) < 200 and _OF_STREAM.search(path) is not None


def _as_bytes(value: object) -> bytes | None:
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    if isinstance(value, list) and value and all(isinstance(item, int) and 0 <= item < 256 for item in value):
        return bytes(value)  # journald prints a MESSAGE that is not UTF-8 as a list of numbers
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return "".join(value).encode("utf-8", "replace")  # a notebook prints the lines of an output
    return None


def _json_int(entry: dict[str, object], key: str) -> int | None:
    value = entry.get(key)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _json_stamp(value: object) -> Stamp | None:
    if isinstance(value, str):
        if value.isascii() and value.isdigit():
            return _epoch(int(value)) if len(value) in _EPOCH_DIGITS else None
        stamp = iso_stamp(value.encode("utf-8", "replace"))
        return stamp if stamp.form != "none" else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _epoch(value)
    return _json_stamp(value.get("repr")) if isinstance(value, dict) and isinstance(value.get("repr"), str) else None


_EPOCH_DIGITS = (13, 16, 19)  # of milliseconds, microseconds and nanoseconds since 1970
_EPOCH_UNITS = ((1e9, 1_000_000), (1e12, 1_000), (1e15, 1), (1e18, 0.001))  # the least such number of each unit, and its microseconds


def _epoch(number: float) -> Stamp | None:
    """A time since 1970, in the unit that its size tells: from 2001 to the year 2128, of seconds to 5138."""
    for least, microseconds in _EPOCH_UNITS:
        if least < number < least * (100 if microseconds == 1_000_000 else 5):
            return Stamp("epoch", str(round(number * microseconds)))
    return None


def json_string(body: bytes) -> bytes | None:
    """The text between the quotes of a JSON string; None when it is none."""
    try:
        text = json.loads(b'"' + body + b'"', strict=False)
    except (ValueError, UnicodeDecodeError):
        return None
    return text.encode("utf-8", "replace") if isinstance(text, str) else None


def json_time(text: bytes) -> Stamp | None:
    """A time as a JSON log gives it, without the quotes."""
    return _json_stamp(text.decode("utf-8", "replace"))


def digits(stamp: bytes) -> str:
    """A printed time with the separators that ISO 8601 has."""
    return stamp.decode().replace("/", "-").replace("T", " ").replace(",", ".")


def zone(printed: bytes) -> str:
    """A printed zone as ``+HH:MM``."""
    text = printed.strip().decode()
    if text in ("Z", "UTC", "GMT"):
        return "+00:00"
    return text if ":" in text else f"{text[:3]}:{text[3:]}"


def iso_stamp(text: bytes) -> Stamp:
    """A full ISO 8601 time as a stamp; the form ``none`` when it is no such time."""
    match = re.fullmatch(rb"(" + ISO + rb")(" + ZONE + rb")?", text)
    if match is None:
        return Stamp("none", "")
    return Stamp("zoned", digits(match[1]) + zone(match[2])) if match[2] else Stamp("local", digits(match[1]))
