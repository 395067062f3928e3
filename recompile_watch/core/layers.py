"""One layer in front of a message: what it tells, and where it ends.

What carried the line, the application's own logging and torch each put a layer there; ``prefixes`` takes them off one
by one, from the outside in.
"""

import re
from collections.abc import Callable

from recompile_watch.core.carriers import digits, iso_stamp, zone
from recompile_watch.core.prefix_grammar import (
    AIRFLOW,
    BASIC_LOGGER,
    BRACKET_CUT,
    BRACKET_TORCH,
    CELERY,
    CI_COMMAND,
    CI_STREAM,
    CI_TABS,
    CLOCK,
    COMPOSE,
    DAY_OF_YEAR,
    DIALECT_A,
    DIALECT_A_OLD,
    DIALECT_B,
    FLY,
    GLOG,
    GLOG_CUT,
    GLOG_STUMP,
    HTML_OPENS,
    INDENTED_HEADER,
    JOURNAL_FULL,
    JOURNAL_ISO,
    JOURNAL_MONOTONIC,
    JOURNAL_UNIX,
    KAGGLE,
    LABELS,
    LEVEL_FIRST,
    LINE_NUMBER,
    LINUX_PID_MAX,
    LOG_STREAM,
    MONTH_NAMES,
    MPI,
    MPI_DATED,
    PM2,
    POD,
    PODMAN,
    QUOTE,
    RANK,
    RFC5424,
    ROLE,
    RSYSLOG,
    SLURM,
    STAMP,
    STERN,
    SYSLOG,
    TAI64N,
    TEAMCITY,
    TOKEN,
    TORCH_AHEAD,
    TORCH_CUT,
    TORCH_LOGGER,
    TORCH_SAYS,
    WORKER,
    WORKER_CUT,
    WORKER_RANK,
    Piece,
    Stamp,
)


class Peeling:
    """The prefixes found so far while one line is peeled."""

    __slots__ = ("artifact", "channel", "cid", "complete", "continues", "headed", "is_logged", "outer", "pid", "rank", "stamp", "torch")

    def __init__(self) -> None:
        self.channel: list[bytes] = []
        self.torch = b""
        self.stamp: Stamp | None = None
        self.outer: Stamp | None = None
        self.rank: int | None = None
        self.pid: int | None = None
        self.cid: bytes | None = None
        self.artifact = b""
        self.headed = False
        self.continues = False
        self.is_logged = False  # the application's own logging put a level or a name there
        self.complete = False  # the application's header ended with its own grammar, no token of it can follow

    def see_stamp(self, stamp: Stamp) -> None:
        if self.stamp is not None and self.stamp.form != "glog":
            self.outer = self.outer or self.stamp
        self.stamp = stamp

    def see_channel(self, name: bytes) -> None:
        """Takes the name of a channel, once: in front of a line that was joined with empty ones it stands again."""
        if name not in self.channel:
            self.channel.append(name)

    def piece(self, text: bytes) -> Piece:
        return Piece(
            b"\x00".join(self.channel), self.torch, text, self.stamp, self.outer, self.rank, self.pid,
            self.cid, self.artifact, self.headed, self.continues,
        )  # fmt: skip

    def fork(self) -> "Peeling":
        twin = Peeling()
        twin.channel, twin.stamp, twin.outer = list(self.channel), self.stamp, self.outer
        twin.rank, twin.pid, twin.headed = self.rank, self.pid, self.headed
        return twin


def peel_layer(state: Peeling, raw: bytes, at: int) -> int | None:
    """One layer off; None when no layer stands at ``at``."""
    first = raw[at : at + 1]
    if not first:
        return None
    match = GLOG.match(raw, at) if b"C" <= first <= b"W" else None
    if match:
        return _take_glog(state, match, raw)
    for layer, take in _LAYERS.get(first, ()):
        match = layer.match(raw, at)
        if match and match.end() > at:
            return take(state, match, raw)
    if state.headed and state.stamp is not None and not state.complete:
        match = TOKEN.match(raw, at)
        if match:
            state.is_logged = True
            return match.end()
    return None


def _take_glog(state: Peeling, match: "re.Match[bytes]", raw: bytes) -> int:
    state.torch = raw[match.start() : match.end()].rstrip()
    if match["stamp"] is not None:
        state.see_stamp(Stamp("glog", match["stamp"].decode()))
    if match["pid"] is not None:
        number = int(match["pid"])
        if number <= LINUX_PID_MAX:
            state.pid = number
    state.cid = match["cid"] or state.cid
    state.artifact = match["artifact"] or b""
    state.headed = True
    return match.end()


def _take_cut(state: Peeling, match: "re.Match[bytes]", raw: bytes) -> int:
    state.pid = int(match["pid"]) if int(match["pid"]) <= LINUX_PID_MAX else state.pid
    return _take_parts(state, match, raw)


def _take_bracket_torch(state: Peeling, match: "re.Match[bytes]", raw: bytes) -> int:
    state.torch = raw[match.start() : match.end()].rstrip()
    if match["stamp"]:
        state.see_stamp(Stamp("local", digits(match["stamp"])))
    state.cid = match["cid"]
    state.artifact = b"__" + match["tag"] if match["tag"] else b""
    if match["logger"] == b"torch._dynamo.symbolic_convert" and b"DEBUG" in state.torch:
        state.artifact = b"__graph_breaks"  # in torch 2.0 to 2.2, which shows here, and only here, why it broke a graph
    state.headed = True
    return match.end()


def _take_rank(state: Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    groups = match.groupdict()
    state.rank = int(groups.get("rank") or groups.get("rank2") or 0)
    state.see_channel(b"rank%d" % state.rank)
    return match.end()


def _take_mpi_dated(state: Peeling, match: "re.Match[bytes]", raw: bytes) -> int:
    _see_day(state, match)
    return _take_rank(state, match, raw) if match["rank"] else match.end()


def _take_name(state: Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    state.see_channel(match[0].strip())
    return match.end()


def _take_service(state: Peeling, match: "re.Match[bytes]", raw: bytes) -> int:
    """Behind a level the same form is the name of a logger: torch gives it on the first line of a record only."""
    return match.end() if state.is_logged else _take_name(state, match, raw)


def _take_labels(state: Peeling, match: "re.Match[bytes]", _raw: bytes) -> int | None:
    if state.stamp is None or state.channel:
        return None
    state.channel.append(match[0].strip())
    return match.end()


def _take_quote(_state: Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    return match.end()


def _take_header(state: Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    state.headed = True
    return match.end()


def _take_slurm(state: Peeling, match: "re.Match[bytes]", raw: bytes) -> int | None:
    if state.is_logged:
        return None
    return match.end() if match[0].endswith(b":") else _take_name(state, match, raw)  # "12:V1107 …" is the line's number, of grep -n


def _take_worker(state: Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    state.pid = int(match["pid"])
    rank = WORKER_RANK.search(match["name"])
    state.rank = int(rank[1]) if rank else state.rank
    state.channel.append(match[0].strip())
    return match.end()


def _take_syslog(state: Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    groups = match.groupdict()
    if groups.get("stamp"):
        state.see_stamp(iso_stamp(groups["stamp"] + (groups.get("zone") or b"")))
    elif groups.get("epoch"):
        state.see_stamp(Stamp("epoch", groups["epoch"].decode().replace(".", "")))
    elif groups.get("day"):
        _see_day(state, match)
    if groups.get("pid") and groups["pid"].isdigit():
        state.pid = int(groups["pid"])
    if match["id"] is not None:
        state.channel.append(match["id"])
    return match.end()


_MONTH_DIGITS = {name: b"%02d" % number for number, name in enumerate(MONTH_NAMES, 1)}


def _see_day(state: Peeling, match: "re.Match[bytes]") -> None:
    """Takes a time without zone, ``Nov  7 10:28:52``; one without a year as glog prints it."""
    day: bytes = match["day"]
    month, day, clock = _MONTH_DIGITS[day[:3]], day[4:].replace(b" ", b"0"), match["clock"]
    year = match.groupdict().get("year")
    if year is not None:
        state.see_stamp(Stamp("local", (b"%b-%b-%b %b" % (year, month, day, clock)).decode()))
    else:
        state.see_stamp(Stamp("glog", (b"%b%b %b" % (month, day, clock)).decode()))


def _take_dialect_a(state: Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    state.see_stamp(Stamp("zoned", match["stamp"].decode() + "+00:00"))
    state.headed = state.is_logged = state.complete = True
    return match.end()


def _take_dialect_a_old(state: Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    offset = "-04:00" if match["zone"] == b"EDT" else "-05:00"
    state.see_stamp(Stamp("zoned", match["stamp"].decode() + offset))
    state.headed = state.is_logged = state.complete = True
    return match.end()


def _take_stamp(state: Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    printed = match.groupdict().get("zone")
    text = digits(match["stamp"])
    state.see_stamp(Stamp("zoned", text + zone(printed)) if printed else Stamp("local", text))
    state.headed = True
    state.is_logged = state.complete = False
    return match.end()


def _take_dialect_b(state: Peeling, match: "re.Match[bytes]", raw: bytes) -> int:
    end = _take_stamp(state, match, raw)
    state.is_logged = state.complete = True
    return end


def _take_airflow(state: Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    state.see_stamp(Stamp("zoned", digits(match["stamp"].replace(b", ", b" ")) + zone(match["zone"])))
    return match.end()


def _take_clock(state: Peeling, match: "re.Match[bytes]", _raw: bytes) -> int | None:
    if not state.headed and match.start():
        return None
    if match["date"]:  # vLLM prints month and day, as glog does
        state.see_stamp(Stamp("glog", (match["date"].replace(b"-", b"") + b" " + match["clock"].replace(b",", b".")).decode()))
    return match.end()


def _take_stump(state: Peeling, match: "re.Match[bytes]", raw: bytes) -> int | None:
    if state.headed and state.stamp is None and not match["artifact"] and TORCH_SAYS.match(raw, match.end()) is None:
        return None
    state.torch = match[0].rstrip()
    state.cid = match["cid"] or match["cid2"] or match["cid3"] or state.cid
    state.artifact = match["artifact"] or match["artifact2"] or b""
    state.headed = True
    return match.end()


def _take_parts(state: Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    state.torch = match[0].rstrip()
    state.cid = match["cid"] or state.cid
    state.artifact = match["artifact"] or b""
    state.headed = True
    return match.end()


def _take_level(state: Peeling, match: "re.Match[bytes]", raw: bytes) -> int:
    state.headed = state.is_logged = True
    end = match.end()
    logger = (BASIC_LOGGER if raw[end - 1 : end] == b":" else TORCH_LOGGER).match(raw, end)
    return logger.end() if logger else end


_IsLayer = tuple[re.Pattern[bytes], Callable[[Peeling, "re.Match[bytes]", bytes], int | None]]
_DATED: tuple[_IsLayer, ...] = (
    (JOURNAL_ISO, _take_syslog),
    (RSYSLOG, _take_syslog),
    (LOG_STREAM, _take_syslog),
    (FLY, _take_syslog),
    (DIALECT_A, _take_dialect_a),
    (DIALECT_A_OLD, _take_dialect_a_old),
    (DIALECT_B, _take_dialect_b),
    (STAMP, _take_stamp),
    (GLOG_CUT, _take_cut),
    (BRACKET_CUT, _take_quote),
    (TORCH_CUT, _take_parts),
    (CLOCK, _take_clock),
    (SLURM, _take_slurm),
    (CI_STREAM, _take_quote),
    (KAGGLE, _take_quote),
    (JOURNAL_UNIX, _take_syslog),
    (PM2, _take_name),
    (DAY_OF_YEAR, _take_header),
    (STERN, _take_name),
    (GLOG_STUMP, _take_stump),
)
_LETTER: tuple[_IsLayer, ...] = (
    (SYSLOG, _take_syslog), (JOURNAL_FULL, _take_syslog), (RANK, _take_rank), (BRACKET_TORCH, _take_bracket_torch),
    (TORCH_CUT, _take_parts), (LEVEL_FIRST, _take_level), (COMPOSE, _take_service), (CI_TABS, _take_name), (WORKER_CUT, _take_worker),
    (GLOG_STUMP, _take_stump), (STERN, _take_name), (MPI_DATED, _take_mpi_dated),
)  # fmt: skip
_BLANK: tuple[_IsLayer, ...] = (
    (LINE_NUMBER, _take_quote), (TORCH_AHEAD, _take_quote), (INDENTED_HEADER, _take_quote), (SLURM, _take_slurm), (GLOG_STUMP, _take_stump),
)  # fmt: skip
_LAYERS: dict[bytes, tuple[_IsLayer, ...]] = {
    **{bytes([c]): _DATED for c in b"0123456789"},
    **{bytes([c]): _LETTER for c in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"},
    b"[": (
        (RANK, _take_rank), (ROLE, _take_name), (BRACKET_TORCH, _take_bracket_torch), (POD, _take_name), (PODMAN, _take_name),
        (MPI, _take_rank), (AIRFLOW, _take_airflow), (TEAMCITY, _take_quote), (JOURNAL_MONOTONIC, _take_syslog),
        (CELERY, _take_dialect_b), (STAMP, _take_stamp), (TORCH_CUT, _take_parts), (LEVEL_FIRST, _take_level), (GLOG_STUMP, _take_stump),
    ),
    b"@": ((TAI64N, _take_quote),),
    b".": ((GLOG_STUMP, _take_stump),),
    b"]": ((GLOG_STUMP, _take_stump),),
    b"/": ((GLOG_STUMP, _take_stump),),
    b"(": ((WORKER, _take_worker),),
    b"<": ((HTML_OPENS, _take_quote), (RFC5424, _take_syslog), (SYSLOG, _take_syslog)),
    b">": ((TORCH_AHEAD, _take_quote), (QUOTE, _take_quote)),
    **{bytes([c]): ((TORCH_AHEAD, _take_quote),) for c in b"*`~|-"},
    b"{": ((LABELS, _take_labels),),
    b"#": ((CI_COMMAND, _take_quote), (TORCH_AHEAD, _take_quote)),
    b"_": ((TORCH_AHEAD, _take_quote), (GLOG_STUMP, _take_stump)),
    **{bytes([c]): _BLANK for c in b" \t"},
    b":": ((GLOG_STUMP, _take_stump),),
}  # fmt: skip
