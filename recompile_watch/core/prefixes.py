"""What stands in front of a message: physical lines become pieces, each a message with its prefixes split off.

Three layers are taken off, from the outside in:

* *transport*: what carried the line (Docker json-file, CRI, journald, syslog, kubectl, compose, Ray, Slurm, CI,
  a JSON log, a Markdown quote, a notebook). Its stable part is the piece's ``channel``: two lines belong to
  one stream only when their channels are equal.
* *application*: a timestamp, level and logger name put there by the application's own logging.
* *torch*: the glog prefix of torch 2.2 and later, or the bracket prefix of 2.1 and the torchdynamo of 2022.

Source of torch's formats: torch/_logging/_internal.py (TorchLogsFormatter.format), torch 2.1 to 2.13.
A record of torch repeats its glog prefix on every line, and each line of one record carries the very same bytes.
"""

import html
import re
from collections.abc import Callable

from recompile_watch.core.carriers import Carried, digits, iso_stamp, json_string, read_cri, read_json, zone
from recompile_watch.core.prefix_grammar import (
    ANSI,
    ANSI_WRECK,
    BASIC_INSIDE,
    BASIC_LOGGER,
    BOLD,
    BRACKET_CUT,
    BRACKET_INSIDE,
    BRACKET_TORCH,
    CI_STREAM,
    CI_TABS,
    CLOCK,
    COMPOSE,
    DIALECT_A,
    DIALECT_A_OLD,
    DIALECT_B,
    ENTITY,
    GLOG,
    GLOG_CUT,
    GLOG_INSIDE,
    GLOG_STUMP,
    HARMLESS,
    INDENTED_HEADER,
    JOURNAL_ISO,
    LEVEL_FIRST,
    LINK,
    LINUX_PID_MAX,
    MAX_LAYERS,
    MAY_PEEL,
    MPI,
    NUMBERED,
    POD,
    QUOTE,
    RANK,
    REPEATED,
    RFC5424,
    ROLE,
    SLURM,
    STAMP,
    STRING_ELEMENT,
    SYSLOG,
    TOKEN,
    TORCH_AHEAD,
    TORCH_LOGGER,
    TORCH_STARTS,
    WORKER,
    WORKER_CUT,
    WORKER_RANK,
    Piece,
    Stamp,
)


class _Peeling:
    """The prefixes found so far while one line is peeled."""

    __slots__ = ("artifact", "channel", "cid", "complete", "continues", "headed", "outer", "pid", "rank", "stamp", "torch")

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
        self.complete = False  # the application's header ended with its own grammar, no token of it can follow

    def see_stamp(self, stamp: Stamp) -> None:
        if self.stamp is not None and self.stamp.form != "glog":
            self.outer = self.outer or self.stamp
        self.stamp = stamp

    def piece(self, text: bytes) -> Piece:
        return Piece(
            b"\x00".join(self.channel), self.torch, text, self.stamp, self.outer, self.rank, self.pid,
            self.cid, self.artifact, self.headed, self.continues,
        )  # fmt: skip

    def fork(self) -> "_Peeling":
        twin = _Peeling()
        twin.channel, twin.stamp, twin.outer = list(self.channel), self.stamp, self.outer
        twin.rank, twin.pid, twin.headed = self.rank, self.pid, self.headed
        return twin


def peel(raw: bytes) -> list[Piece]:
    """The pieces of one physical line (without its newline); several when messages were glued together.

    A carriage return starts a new piece (progress bars), so does a torch prefix in the middle of the line
    (torn writes, lost newlines) and every line inside a JSON log's message field.
    """
    if b"\x1b" in raw:
        raw = ANSI.sub(b"", raw)
    if b"#033[" in raw or b"m(" in raw:
        raw = ANSI_WRECK.sub(b"", raw)
    if b"\x00" in raw:
        raw = raw.replace(b"\x00", b"")
    if b"&" in raw and ENTITY.search(raw):
        raw = html.unescape(raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    if b"](" in raw:
        raw = LINK.sub(rb"\1", raw)
    cri = read_cri(raw) if raw[:2] == b"20" else None
    if cri is not None:
        return _peel_carried(cri)
    if b"**" in raw:
        raw = BOLD.sub(rb"\1\2", raw)
    if b"\r" not in raw:
        return _peel_segment(raw)
    first, *others = [segment for segment in raw.split(b"\r") if segment] or [b""]
    pieces = _peel_segment(first)
    carrier = _Peeling()  # what carried the line carried all of its overwritten parts
    if others:
        _peel_layers(carrier, first, transport_only=True)
    for segment in others:
        pieces += _split(carrier.fork(), segment)
    return pieces


def are_plain(lines: bytes) -> bool:
    """True for indented lines that ``peel`` would give back as they stand: bare, nothing taken off."""
    doubtful = lines.translate(None, HARMLESS)
    if not doubtful:
        return True
    # Most tables hold no more than "Buy & Hold" and "edges: move=15.573".
    if not doubtful.strip(b"&:") and lines.count(b"& ") + lines.count(b": ") == len(doubtful):
        return b":" not in doubtful or NUMBERED.search(b"\n" + lines) is None
    return MAY_PEEL.search(lines) is None


def _peel_segment(raw: bytes) -> list[Piece]:
    start = raw[:1]
    if start == b"{" or (start == b" " and raw.lstrip()[:1] == b"{"):
        entry = read_json(raw)
        if entry is not None:
            return _peel_carried(entry)
    elif start in (b'"', b" ", b"\t") and raw.rstrip().endswith((b'"', b'",')):
        element = STRING_ELEMENT.fullmatch(raw)
        text = json_string(element["body"]) if element else None
        if text is not None:
            text = ANSI.sub(b"", text)
            return [piece for line in text.split(b"\n") if line for piece in _split(_Peeling(), line)] or _split(_Peeling(), b"")
    return _split(_Peeling(), raw)


def _split(state: _Peeling, raw: bytes) -> list[Piece]:
    """Peels one text, after cutting it where a torch prefix stands inside it."""
    cuts = [m.start() for m in GLOG_INSIDE.finditer(raw)] if b"] " in raw or raw.endswith(b"]") else []
    if b": [" in raw:
        cuts = sorted({*cuts, *(m.start() for m in BRACKET_INSIDE.finditer(raw))})
    if b":torch" in raw:
        cuts = sorted({*cuts, *(m.start() for m in BASIC_INSIDE.finditer(raw))})
    base = state.fork()
    at = _peel_layers(base, raw, transport_only=True) if cuts else 0
    inner = [cut for cut in cuts if cut > at]
    if not inner:
        return [_peel_text(state, raw)]
    lead = _peel_text(state, raw[: inner[0]])
    pieces = [lead] if lead.text.strip(b" \t>*`") or lead.torch else []
    for begin, end in zip(inner, [*inner[1:], len(raw)], strict=True):
        part = raw[begin:end] if end == len(raw) else raw[begin:end].removesuffix(b"\\n").rstrip()
        pieces.append(_peel_text(base.fork(), part))
    return pieces


def _peel_text(state: _Peeling, raw: bytes) -> Piece:
    position = _peel_layers(state, raw)
    text = raw[position:]
    if text.endswith(b"]"):
        text = REPEATED.sub(b"", text)
    return state.piece(text)


def _peel_layers(state: _Peeling, raw: bytes, *, transport_only: bool = False) -> int:
    """Takes off every layer in front; the position where the message begins."""
    position = 0
    for _ in range(MAX_LAYERS):
        if transport_only and TORCH_STARTS.match(raw, position):
            break
        after = _peel_layer(state, raw, position)
        if after is None:
            break
        position = after
        if state.torch:
            break
    return position


def _peel_layer(state: _Peeling, raw: bytes, at: int) -> int | None:
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
            return match.end()
    return None


def _take_glog(state: _Peeling, match: "re.Match[bytes]", raw: bytes) -> int:
    state.torch = raw[match.start() : match.end()].rstrip()
    state.see_stamp(Stamp("glog", match["stamp"].decode()))
    if match["pid"] is not None:
        number = int(match["pid"])
        if number <= LINUX_PID_MAX:
            state.pid = number
    state.cid = match["cid"] or state.cid
    state.artifact = match["artifact"] or b""
    state.headed = True
    return match.end()


def _take_cut(state: _Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    state.torch = match[0].rstrip()
    state.pid = int(match["pid"]) if int(match["pid"]) <= LINUX_PID_MAX else state.pid
    state.cid = match["cid"] or state.cid
    state.artifact = match["artifact"] or b""
    state.headed = True
    return match.end()


def _take_bracket_torch(state: _Peeling, match: "re.Match[bytes]", raw: bytes) -> int:
    state.torch = raw[match.start() : match.end()].rstrip()
    if match["stamp"]:
        state.see_stamp(Stamp("local", digits(match["stamp"])))
    state.cid = match["cid"]
    state.artifact = b"__" + match["tag"] if match["tag"] else b""
    state.headed = True
    return match.end()


def _take_rank(state: _Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    groups = match.groupdict()
    state.rank = int(groups.get("rank") or groups.get("rank2") or 0)
    state.channel.append(b"rank%d" % state.rank)
    return match.end()


def _take_name(state: _Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    state.channel.append(match[0].strip())
    return match.end()


def _take_quote(_state: _Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    return match.end()


def _take_slurm(state: _Peeling, match: "re.Match[bytes]", raw: bytes) -> int | None:
    return _take_name(state, match, raw) if match.start() == 0 else None


def _take_worker(state: _Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    state.pid = int(match["pid"])
    rank = WORKER_RANK.search(match["name"])
    state.rank = int(rank[1]) if rank else state.rank
    state.channel.append(match[0].strip())
    return match.end()


def _take_syslog(state: _Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    groups = match.groupdict()
    if groups.get("stamp"):
        state.see_stamp(iso_stamp(groups["stamp"]))
    if groups.get("pid") and groups["pid"].isdigit():
        state.pid = int(groups["pid"])
    state.channel.append(match["id"])
    return match.end()


def _take_dialect_a(state: _Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    state.see_stamp(Stamp("zoned", match["stamp"].decode() + "+00:00"))
    state.headed = state.complete = True
    return match.end()


def _take_dialect_a_old(state: _Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    offset = "-04:00" if match["zone"] == b"EDT" else "-05:00"
    state.see_stamp(Stamp("zoned", match["stamp"].decode() + offset))
    state.headed = state.complete = True
    return match.end()


def _take_stamp(state: _Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    printed = match.groupdict().get("zone")
    text = digits(match["stamp"])
    state.see_stamp(Stamp("zoned", text + zone(printed)) if printed else Stamp("local", text))
    state.headed = True
    state.complete = match.re is DIALECT_B
    return match.end()


def _take_clock(state: _Peeling, match: "re.Match[bytes]", _raw: bytes) -> int | None:
    if not state.headed and match.start():
        return None
    if match["date"]:  # vLLM prints month and day, as glog does
        state.see_stamp(Stamp("glog", (match["date"].replace(b"-", b"") + b" " + match["clock"].replace(b",", b".")).decode()))
    return match.end()


def _take_stump(state: _Peeling, match: "re.Match[bytes]", _raw: bytes) -> int | None:
    if state.headed and state.stamp is None:
        return None
    state.torch = match[0].rstrip()
    state.cid = match["cid"] or match["cid2"] or state.cid
    state.artifact = match["artifact"] or match["artifact2"] or match["artifact3"] or b""
    state.headed = True
    return match.end()


def _take_level(state: _Peeling, match: "re.Match[bytes]", raw: bytes) -> int:
    state.headed = True
    end = match.end()
    logger = (BASIC_LOGGER if raw[end - 1 : end] == b":" else TORCH_LOGGER).match(raw, end)
    return logger.end() if logger else end


_IsLayer = tuple[re.Pattern[bytes], Callable[[_Peeling, "re.Match[bytes]", bytes], int | None]]
_DATED: tuple[_IsLayer, ...] = (
    (JOURNAL_ISO, _take_syslog),
    (DIALECT_A, _take_dialect_a),
    (DIALECT_A_OLD, _take_dialect_a_old),
    (DIALECT_B, _take_stamp),
    (STAMP, _take_stamp),
    (GLOG_CUT, _take_cut),
    (BRACKET_CUT, _take_quote),
    (CLOCK, _take_clock),
    (SLURM, _take_slurm),
    (CI_STREAM, _take_quote),
)
_LETTER: tuple[_IsLayer, ...] = (
    (SYSLOG, _take_syslog), (RANK, _take_rank), (BRACKET_TORCH, _take_bracket_torch), (LEVEL_FIRST, _take_level),
    (COMPOSE, _take_name), (CI_TABS, _take_name), (WORKER_CUT, _take_worker), (GLOG_STUMP, _take_stump),
)  # fmt: skip
_LAYERS: dict[bytes, tuple[_IsLayer, ...]] = {
    **{bytes([c]): _DATED for c in b"0123456789"},
    **{bytes([c]): _LETTER for c in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"},
    b"[": (
        (RANK, _take_rank), (ROLE, _take_name), (BRACKET_TORCH, _take_bracket_torch), (POD, _take_name),
        (MPI, _take_rank), (STAMP, _take_stamp), (LEVEL_FIRST, _take_level), (GLOG_STUMP, _take_stump),
    ),
    b".": ((GLOG_STUMP, _take_stump),),
    b"/": ((GLOG_STUMP, _take_stump),),
    b"(": ((WORKER, _take_worker),),
    b"<": ((RFC5424, _take_syslog), (SYSLOG, _take_syslog)),
    b">": ((TORCH_AHEAD, _take_quote), (QUOTE, _take_quote)),
    **{bytes([c]): ((TORCH_AHEAD, _take_quote),) for c in b"*`#_~|-"},
    **{bytes([c]): ((TORCH_AHEAD, _take_quote), (INDENTED_HEADER, _take_quote), (SLURM, _take_slurm)) for c in b" \t"},
}  # fmt: skip


def _peel_carried(carried: Carried) -> list[Piece]:
    """The pieces of what a carrier holds; a line that it cut stays unpeeled until its rest has come."""
    state = _Peeling()
    state.channel, state.rank, state.pid, state.headed = carried.channel, carried.rank, carried.pid, carried.stamp is not None
    if carried.stamp is not None:
        state.see_stamp(carried.stamp)
    carrier = b"\x00".join(carried.channel)
    pieces: list[Piece] = []
    for number, line in enumerate(carried.lines):
        if number == len(carried.lines) - 1 and not carried.is_whole:
            found = [state.piece(line)._replace(continues=True)]
        else:
            found = [piece for segment in [part for part in line.split(b"\r") if part] or [b""] for piece in _split(state.fork(), segment)]
        found[0] = found[0]._replace(carried=line, carrier=carrier)
        pieces += [piece._replace(same_entry=number > 0) for piece in found]
    return pieces
