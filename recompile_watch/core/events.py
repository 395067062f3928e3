"""Events: the typed meaning of one record, as ``recompile-watch events`` prints them.

An event is a value. What the log does not show is None, never a guess.
"""

from collections.abc import Mapping
from typing import NamedTuple, cast

TORCH_KINDS = frozenset(
    {
        "recompile",
        "recompile_limit_hit",
        "recompile_limit_error",
        "recompile_forbidden",
        "graph_break",
        "cudagraph_skip",
        "cudagraph_overwritten_error",
        "cudagraph_pending_backward_warning",
        "cudagraph_dynamic_shapes_warning",
        "cudagraph_rerecord",
        "compile_error",
        "compile_time",
        "flex_attention_eager_fallback",
        "profiler_report",
    }
)

# The further fields of each kind; a field that the log does not show is present and None.
EXTRA_FIELDS: Mapping[str, Mapping[str, object]] = {
    "recompile": {"refused": False},
    "recompile_limit_hit": {"limit": None, "limit_name": None},
    "recompile_limit_error": {"exception": None, "limit": None, "limit_name": None},
    "recompile_forbidden": {"stance": None},
    "cudagraph_skip": {"instances": None},
    "cudagraph_dynamic_shapes_warning": {"distinct_sizes": None},
    "compile_error": {"exception": None, "message": None},
    "compile_time": {"seconds": None},
    "profiler_report": {"recompiles": ()},
    "ineffective_setting": {"setting": None, "value": None},
    "recompile_limit_set": {"limit": None, "limit_name": None},
    "synthetic_quote": {"symbol": None, "cause": None, "spread_bps": None},
    "quote": {"symbol": None, "bid": None, "ask": None, "spread_bps": None},
    "strategy_return": {
        "symbol": None, "strategy": None, "return": None, "sharpe": None, "final_day": None, "annual_return": None,
        "forecast_return": None, "simulations": None,
    },
    "strategy_daily_return": {"symbol": None, "strategy": None, "return": None},
    "validation_loss": {"symbol": None, "target": None, "value": None},
    "compile_mode": {"model": None, "compiled": None, "mode": None, "backend": None},
    "model_load": {"model": None, "device": None, "model_id": None},
    "analysis_start": {"analysis": None},
    "warmup_done": {"model": None, "seconds": None},
    "gpu_memory": {"symbol": None, "model": None, "stage": None, "allocated_mb": None, "reserved_mb": None, "peak_mb": None},
    "inference": {"model": None, "symbol": None, "milliseconds": None, "derived": False},
    "forecast_failure": {"model": None, "symbol": None, "target": None, "message": None, "cause": None},
    "out_of_memory": {"model": None, "symbol": None, "device": None, "attempt": None},
    "cpu_fallback": {"model": None, "symbol": None},
    "bot_error": {"symbol": None, "message": None},
    "synthetic_account": {"message": None},
    "inverted_prediction": {"symbol": None},
    "order": {"symbol": None, "side": None, "quantity": None, "price": None, "status": None},
    "plan": {"plan": None, "count": None},
}  # fmt: skip


class Reason(NamedTuple):
    """Why torch compiled again (or broke, or skipped): one guard of one cache entry.

    entry: the cache entry the guard belongs to (``"6/7"``), None where the log does not name it.
    text: the guard expression or message, without torch's source comment and hint.
    cause: one of the causes of the contract, such as ``"kv_cache_index"``.
    """

    entry: str | None
    text: str
    cause: str


class Event(NamedTuple):
    """One thing that happened, with the place in the log that shows it.

    source: path, or ``-`` for standard input. line: 1-based first physical line. offset: its byte offset.
    time: ISO 8601 with offset, or None. rank, pid, compile_id: as printed.
    function, file, line_no: the user's code the event is about.
    partial: True when part of the record is cut off in the log.
    extra: the further fields of the event's kind.
    rule: the rule that made it, which says why it matters; empty for what is only noted, and where none is known.
    """

    kind: str
    source: str
    line: int
    offset: int
    time: str | None
    rank: int | None
    pid: int | None
    compile_id: str | None
    function: str | None
    file: str | None
    line_no: int | None
    reasons: tuple[Reason, ...]
    partial: bool
    extra: Mapping[str, object]
    rule: str = ""


def is_accumulated(limit_name: object) -> bool:
    """True for the name of the limit that counts all entries of a code object; the other counts those that share id-matched objects."""
    return "accumulated" in str(limit_name)


def event_to_json(event: Event) -> dict[str, object]:
    """The event as the JSON object of the contract, section 3."""
    return {
        "kind": event.kind,
        "at": {"source": event.source, "line": event.line, "offset": event.offset},
        "time": event.time,
        "rank": event.rank,
        "pid": event.pid,
        "compile_id": event.compile_id,
        "function": event.function,
        "file": event.file,
        "line_no": event.line_no,
        "reasons": [{"entry": r.entry, "text": r.text, "cause": r.cause} for r in event.reasons],
        "partial": event.partial,
        **event.extra,
    }


def event_state(event: Event) -> dict[str, object]:
    """The event with the rule that made it, for ``event_from_json``."""
    return {**event_to_json(event), "rule": event.rule}


_FIELDS = frozenset(
    {"kind", "at", "time", "rank", "pid", "compile_id", "function", "file", "line_no", "reasons", "partial", "rule"}
)  # fmt: skip


def event_from_json(value: Mapping[str, object]) -> Event:
    """The event of such an object. Raises KeyError, TypeError or ValueError when it is none."""
    at = cast(Mapping[str, object], value["at"])
    reasons = tuple(Reason(cast(str | None, r["entry"]), str(r["text"]), str(r["cause"])) for r in cast(list[Mapping[str, object]], value["reasons"]))
    return Event(
        str(value["kind"]), str(at["source"]), int(cast(int, at["line"])), int(cast(int, at["offset"])), cast(str | None, value["time"]),
        cast(int | None, value["rank"]), cast(int | None, value["pid"]), cast(str | None, value["compile_id"]),
        cast(str | None, value["function"]), cast(str | None, value["file"]), cast(int | None, value["line_no"]), reasons,
        bool(value["partial"]), {name: _as_made(extra) for name, extra in value.items() if name not in _FIELDS},
        str(value.get("rule", "")),
    )  # fmt: skip


def _as_made(extra: object) -> object:
    """Lists as the tuples that they were before they were JSON."""
    return tuple(_as_made(item) for item in extra) if isinstance(extra, list | tuple) else extra
