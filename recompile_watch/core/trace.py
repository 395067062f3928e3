"""Structured traces (``TORCH_TRACE``): their JSON lines become events.

Format (torch/_logging/structured.py, torch 2.5 to 2.15): a glog prefix, then one JSON object; when it has
``has_payload``, the payload follows in lines that begin with a TAB. One file per process.
"""

import json
import re
from typing import NamedTuple

from recompile_watch.core.causes import parse_reason
from recompile_watch.core.compile_id import without_attempt
from recompile_watch.core.events import EXTRA_FIELDS, Event, Reason
from recompile_watch.core.exception_text import MAX_MESSAGE, what_is_wrong, with_detail
from recompile_watch.core.late import pattern
from recompile_watch.core.prefix_grammar import Stamp
from recompile_watch.core.readers import why_skipped
from recompile_watch.core.sightings import Sighting, decode
from recompile_watch.core.stack_frames import frames

_TRACE_LINE = pattern(rb"(?:\[rank(?P<rank>\d+)\]:)?[VDIWEC](?P<stamp>\d{4} \d\d:\d\d:\d\d\.\d+) (?P<pid>\d+) [^\n\]]+\] (?P<json>\{.*)")
_FIRST_ENTRY = pattern(rb'(?m)^(?:\[rank\d+\]:)?[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ [^\n\]]+\] \{"')
_WANTED = (
    b'"recompile_reasons"', b'"dynamo_start"', b'{"str": ', b'"compilation_metrics"', b'"torch_version"', b'"dynamo_graph_break_reason"',
    b'"dynamo_error"',
)  # fmt: skip
_RANK_IN_NAME = pattern(r"torch_trace_rank_(\d+)_")
_HARD = "FailOnRecompileLimitHit"
_LIMIT = pattern(r"(?P<name>(?:accumulated_)?(?:recompile|cache_size)_limit)(?: cache size limit \(currently set to (?P<limit>\d+)\)| reached)")
MAX_PAYLOAD_BYTES = 8 << 20

_Frame = tuple[str | None, str | None, int | None]


def is_trace(head: bytes) -> bool:
    """True when a file begins as a structured trace does, or in the middle of an entry or a payload of one."""
    entry = _FIRST_ENTRY.search(head) if b'] {"' in head else None
    return entry is not None and all(line.startswith(b"\t") for line in head[: entry.start()].split(b"\n")[1:-1])


class _Entry(NamedTuple):
    """One JSON line with its place."""

    number: int
    offset: int
    stamp: Stamp
    rank: int | None
    pid: int | None
    body: dict[str, object]


class TraceReader:
    """Reads one trace file; ``feed`` and ``end`` return sightings in file order."""

    def __init__(self, source: str) -> None:
        self._source = source
        named = _RANK_IN_NAME.search(source)
        self._rank = int(named[1]) if named else None
        self._carry = b""
        self._number, self._offset = 1, 0
        self._strings: dict[int, str] = {}
        self._frames: dict[str, _Frame] = {}
        self._entry: _Entry | None = None
        self._payload: list[bytes] = []
        self._payload_bytes = 0
        self._recompile: Sighting | None = None
        # The compiles under way that broke their graph, and those whose exception the trace shows.
        self._broken: set[str] = set()
        self._failed: set[str] = set()
        self.unread: dict[str, int] = {}
        self.torch_version: str | None = None

    @property
    def lines(self) -> int:
        """Complete lines read so far."""
        return self._number - 1

    def feed(self, block: bytes) -> list[Sighting]:
        """Takes the next bytes of the file."""
        text = self._carry + block
        cut = text.rfind(b"\n") + 1
        self._carry = text[cut:]
        found: list[Sighting] = []
        for raw in text[:cut].split(b"\n")[:-1]:
            found += self._line(raw)
            self._number += 1
            self._offset += len(raw) + 1
        return found

    def end(self) -> list[Sighting]:
        """The rest; a last line without newline is torn and only counted."""
        if self._carry:
            self.unread["torn_trace_line"] = 1
        return self.settle()

    def settle(self) -> list[Sighting]:
        """What is complete when nothing more comes for now."""
        return self._finish() + self._settle(None)

    def _line(self, raw: bytes) -> list[Sighting]:
        if raw[:1] == b"\t":
            if self._entry is not None and self._payload_bytes < MAX_PAYLOAD_BYTES:
                self._payload.append(raw[1:])
                self._payload_bytes += len(raw)
            return []
        found = self._finish()
        if not any(wanted in raw for wanted in _WANTED):
            return found
        match = _TRACE_LINE.match(raw)
        body = _json(match["json"]) if match else None
        if match is None or not isinstance(body, dict):
            self.unread["bad_trace_line"] = self.unread.get("bad_trace_line", 0) + 1
            return found
        rank = body.get("rank", self._rank)
        self._entry = _Entry(
            self._number, self._offset, Stamp("glog", match["stamp"].decode()), rank if isinstance(rank, int) else None, int(match["pid"]), body
        )
        if not body.get("has_payload"):
            found += self._finish()
        return found

    def _finish(self) -> list[Sighting]:
        """Understands the entry whose payload is complete now."""
        entry, payload = self._entry, b"\n".join(self._payload)
        self._entry, self._payload, self._payload_bytes = None, [], 0
        if entry is None:
            return []
        body = entry.body
        if "str" in body:
            self._learn_string(body["str"])
        elif "dynamo_start" in body:
            self._learn_frame(body)
        elif "compilation_metrics" in body:
            return self._metrics(entry, payload)
        artifact = body.get("artifact")
        name = artifact.get("name") if isinstance(artifact, dict) else None
        if name == "torch_version":
            self._learn_version(payload)
        elif name == "recompile_reasons":
            return self._recompiled(entry, payload)
        elif name == "dynamo_graph_break_reason":
            self._broken.add(_compile(body))
            return self._graph_break(entry, payload)
        elif name == "dynamo_error":
            self._failed.add(_compile(body))
        return []

    def _learn_string(self, value: object) -> None:
        if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], int):
            self._strings[value[1]] = value[0]

    def _learn_version(self, payload: bytes) -> None:
        value = _json(payload)
        if isinstance(value, dict):
            self._see_version(value)

    def _see_version(self, value: dict[str, object]) -> None:
        """torch's version stands in an artifact of its own and in the metrics of each compilation (torch 2.13)."""
        version = value.get("pytorch_version")
        self.torch_version = version if isinstance(version, str) else self.torch_version

    def _learn_frame(self, body: dict[str, object]) -> None:
        start = body["dynamo_start"]
        stack = start.get("stack") if isinstance(start, dict) else None
        if isinstance(stack, list) and stack and isinstance(stack[-1], dict):
            last = stack[-1]
            name, line, filename = last.get("name"), last.get("line"), last.get("filename")
            file = self._strings.get(filename) if isinstance(filename, int) else None
            frame = (name if isinstance(name, str) else None, file, line if isinstance(line, int) else None)
            self._frames.setdefault(str(_frame_id(body)), frame)
            held = self._recompile
            if held is not None and held.event.function is None and held.event.compile_id == _compile_id(body):
                # The trace begins behind the frame's first compilation, so that only this one names it.
                self._recompile = held._replace(event=held.event._replace(function=frame[0], file=frame[1], line_no=frame[2]))

    def _recompiled(self, entry: _Entry, payload: bytes) -> list[Sighting]:
        value = _json(payload) if payload.lstrip()[:1] in (b"[", b'"') else None
        texts = value if isinstance(value, list) else [value if isinstance(value, str) else decode(payload)]
        frame = self._frames.get(str(_frame_id(entry.body)), (None, None, None))
        reasons = tuple(parse_reason(str(text), frame[0]) for text in texts)
        settled = self._settle(None)
        self._recompile = self._sighting(entry, "recompile", frame, reasons, {})
        return settled

    def _metrics(self, entry: _Entry, payload: bytes) -> list[Sighting]:
        metrics = entry.body["compilation_metrics"]
        if not isinstance(metrics, dict) or (not metrics and payload):
            metrics = _json(payload)
        if not isinstance(metrics, dict):
            return []
        self._see_version(metrics)
        frame = self._frame_of(metrics, entry)
        reason = metrics.get("fail_reason")
        text = reason if isinstance(reason, str) else ""
        limit = _LIMIT.search(text)
        if limit is not None or metrics.get("fail_type") == _HARD:
            return self._at_limit(entry, metrics, frame, limit)
        settled = [*self._settle(None), *self._skipped(entry, metrics, frame)]
        if self._is_failure(entry, metrics):
            settled.append(self._failure(entry, metrics, frame, text))
        seconds = metrics.get("entire_frame_compile_time_s")
        if isinstance(seconds, int | float) and metrics.get("fail_type") is None:
            settled.append(self._sighting(entry, "compile_time", frame, (), {"seconds": float(seconds)}))
        return settled

    def _at_limit(self, entry: _Entry, metrics: dict[str, object], frame: _Frame, said: "re.Match[str] | None") -> list[Sighting]:
        """The limit that refused a compile, and the exception that torch made of it. said: what names it; torch since 2.12 does not always."""
        settled = self._settle(_compile_id(entry.body))
        name = said["name"] if said is not None else _reached(metrics, entry.body.get("frame_compile_id"))
        number = (said["limit"] if said is not None else None) or _configured(metrics, name)
        extra: dict[str, object] = {"limit": int(number) if number else None, "limit_name": name}
        reasons = settled[-1].event.reasons[:1] if settled else ()
        settled.append(self._sighting(entry, "recompile_limit_hit", frame, reasons, extra))
        if metrics.get("fail_type") == _HARD:
            settled.append(self._sighting(entry, "recompile_limit_error", frame, (), {**extra, "exception": _HARD}))
        return settled

    def _skipped(self, entry: _Entry, metrics: dict[str, object], frame: _Frame) -> list[Sighting]:
        """Why no CUDA graph is captured, where this compile has one (torch 2.13)."""
        said = metrics.get("cudagraph_skip_reason")
        if not isinstance(said, str):
            return []
        reason, instances, _ = why_skipped(said)
        stack = frames(said.encode("utf-8", "replace"))
        place = (stack[-1].function, stack[-1].file, stack[-1].line_no) if stack else frame
        return [self._sighting(entry, "cudagraph_skip", place, (Reason(None, reason, "other"),), {"instances": instances})]

    def _is_failure(self, entry: _Entry, metrics: dict[str, object]) -> bool:
        """True for an exception that the program sees: one of what Dynamo does not support only where no graph break was made of it."""
        compile_ = _compile(entry.body)
        is_seen = compile_ in self._failed - self._broken
        self._failed.discard(compile_)
        self._broken.discard(compile_)
        match metrics.get("fail_type"):
            case None | "SkipFrame":
                return False
            case "Unsupported":
                return is_seen
        return True

    def _failure(self, entry: _Entry, metrics: dict[str, object], frame: _Frame, said: str) -> Sighting:
        first, _, rest = said.partition("\n")
        message = with_detail(what_is_wrong(first.strip(), rest.partition("\n")[0].strip(), said), said)[:MAX_MESSAGE] or None
        extra: dict[str, object] = {"exception": metrics["fail_type"], "message": message}
        return self._sighting(entry, "compile_error", frame, (), extra)

    def _frame_of(self, metrics: dict[str, object], entry: _Entry) -> _Frame:
        name, file, line = metrics.get("co_name"), metrics.get("co_filename"), metrics.get("co_firstlineno")
        if isinstance(name, str):
            return name, file if isinstance(file, str) else None, line if isinstance(line, int) else None
        return self._frames.get(str(_frame_id(entry.body)), (None, None, None))

    def _graph_break(self, entry: _Entry, payload: bytes) -> list[Sighting]:
        text = decode(payload)
        place = re.search(r"Graph break (?:\(.*?\) )?in user code at (?P<file>.+?):(?P<line>\d+)", text)
        reason = re.search(r"(?:Graph Break )?Reason: (?P<reason>.*)", text, re.DOTALL)
        lines = [line.strip() for line in (reason["reason"] if reason else text).split("\n") if line.strip()]
        short = lines[1] if len(lines) > 1 and lines[0].endswith(":") else lines[0] if lines else ""
        stack = re.findall(r'^\s*File "([^"\n]+)", line (\d+), in ([^\n]+)', text, re.MULTILINE)
        named = next((f for file, line, f in reversed(stack) if place and (file, line) == (place["file"], place["line"])), None)
        frame = (named, place["file"] if place else None, int(place["line"]) if place else None)
        return [self._sighting(entry, "graph_break", frame, (Reason(None, short, "other"),), {})]

    def _settle(self, refused: str | None) -> list[Sighting]:
        """Lets the held recompile go: refused when the compile of that id failed at the limit."""
        held, self._recompile = self._recompile, None
        if held is None:
            return []
        if refused is not None and held.event.compile_id == refused:
            held = held._replace(event=held.event._replace(extra={**held.event.extra, "refused": True}))
        return [held]

    def _sighting(self, entry: _Entry, kind: str, frame: _Frame, reasons: tuple[Reason, ...], extra: dict[str, object]) -> Sighting:
        event = Event(
            kind, self._source, entry.number, entry.offset, None, entry.rank, entry.pid, _compile_id(entry.body), *frame, reasons, False,
            {**EXTRA_FIELDS.get(kind, {}), **extra},
        )  # fmt: skip
        return Sighting(event, entry.stamp, None, f"trace.{kind}", True)


def _configured(metrics: dict[str, object], name: str) -> str | None:
    """The value of a limit in the configuration that the compilation ran under, which torch writes along as JSON text."""
    config = metrics.get("dynamo_config")
    found = re.search(rf'"{name}": (\d{{1,9}})\b', config) if isinstance(config, str) else None
    return found[1] if found else None


def _reached(metrics: dict[str, object], number: object) -> str:
    """Which limit a compile of this number reached, where torch says only that it did: the larger one, if its number is that large."""
    most = _configured(metrics, "accumulated_recompile_limit")
    return "accumulated_recompile_limit" if most is not None and isinstance(number, int) and number >= int(most) else "recompile_limit"


def _frame_id(body: dict[str, object]) -> tuple[object, object]:
    return body.get("compiled_autograd_id"), body.get("frame_id")


def _compile_id(body: dict[str, object]) -> str | None:
    frame, compile_, attempt = body.get("frame_id"), body.get("frame_compile_id"), body.get("attempt")
    if frame is None or compile_ is None:
        return None
    autograd = body.get("compiled_autograd_id")
    text = f"{frame}/{compile_}" if autograd is None else f"!{autograd}/{frame}/{compile_}"
    return f"{text}_{attempt}" if attempt else text


def _compile(body: dict[str, object]) -> str:
    """The compile, whichever attempt; ``""`` where the trace does not say which."""
    return without_attempt(_compile_id(body) or "")


def _json(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
