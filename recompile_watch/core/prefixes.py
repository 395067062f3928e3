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
import json
import re
from collections.abc import Callable
from typing import NamedTuple

from recompile_watch.core.compile_id import COMPILE_ID


class Stamp(NamedTuple):
    """A time as printed.

    form: ``"zoned"`` (full date and zone), ``"local"`` (full date, no zone), ``"glog"`` (no year, no zone),
    ``"epoch"`` (microseconds since 1970). text: the digits as printed, ``2025-10-30 09:08:09.06``.
    """

    form: str
    text: str


class Piece(NamedTuple):
    """One message line without its prefixes.

    channel: the stable outer identity; torch: torch's own prefix bytes (b"" when there is none), equal for all
    lines of one torch record; text: the message; stamp: the innermost time, outer_stamp: the transport's.
    headed: an application or torch prefix stood in front (not so for a bare line).
    continues: the carrier cut the line here, the next piece of the channel goes on (Docker 16 KiB, CRI ``P``).
    carried, carrier: what the carrier's layer holds before anything inside it is peeled, and the carrier's own
    channel (only where such cuts can happen; carrier None elsewhere).
    same_entry: a further line inside one JSON log entry, so it belongs to the line before it.
    """

    channel: bytes
    torch: bytes
    text: bytes
    stamp: Stamp | None
    outer_stamp: Stamp | None
    rank: int | None
    pid: int | None
    compile_id: bytes | None
    artifact: bytes
    headed: bool
    continues: bool
    carried: bytes = b""
    carrier: bytes | None = None
    same_entry: bool = False


MAX_LAYERS = 12
_LINUX_PID_MAX = 1 << 22  # a larger number in the glog prefix is the thread id that torch 2.2 to 2.4 print there

_ISO = rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE = rb" ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)(?![\w:])"
LEVEL = rb"(?:TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL|trace|debug|info|notice|warning|warn|error|critical|fatal|Warning)"
_MONTHS = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"

_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
# Colours whose escape byte a viewer ate or syslog spelled out: "[1;36m", "#033[0m".
_ANSI_WRECK = re.compile(rb"#033\[[\d;]{0,12}m|(?<![\w\]])\[(?:0|\d{1,3}(?:;\d{1,3})+)m")
_ENTITY = re.compile(rb"&(?:gt|lt|amp|quot|apos|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,6});")
_GLOG = re.compile(
    rb"[VDIWECF](?P<stamp>\d{4} \d\d:\d\d:\d\d(?:\.\d{1,9})?) +"
    rb"(?:(?P<pid>\d{1,20}) +)?"
    rb"(?:(?:[A-Za-z]:\\[^\]\n]{1,300}?|[^\s\]\[:\"']{1,300}):\d+\](?: |$))?"
    rb"(?:\[(?P<cid>" + COMPILE_ID + rb")\](?: |$))?"
    rb"(?:\[(?P<artifact>__\w+)\](?: |$))?"
)
# Inside a line only the full form counts: five fields that no application prints by chance.
_GLOG_INSIDE = re.compile(
    rb"(?:\[(?:rank|default)\d+\]:\s?)*"
    rb"[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} \d{1,20} (?:[A-Za-z]:\\[^\]\n]{1,300}?|[^\s\]\[:\"']{1,300}):\d+\](?= |$)"
)
_BRACKET_TORCH = re.compile(
    rb"(?:\[(?P<stamp>" + _ISO + rb")\] (?:\[(?P<cid>" + COMPILE_ID + rb")\] )?)?"
    rb"(?P<logger>torch(?:dynamo|inductor)?(?:\.\w+)*?(?:\.__(?P<tag>\w+))?):? \[?(?:" + LEVEL + rb"|CODE)\](?: |$)"
)
# A glog prefix of which the copying person left only the end: ".../torch/_dynamo/guards.py:2772] [16/8] [__recompiles] ", "[0/8] ".
_GLOG_STUMP = re.compile(
    rb"(?:(?:[VDIWEC] +)?[\w./\\~-]{0,300}\b\w+\.py:\d+\](?: |$)(?:\[(?P<cid>" + COMPILE_ID + rb")\](?: |$))?(?:\[(?P<artifact>__\w+)\](?: |$))?"
    rb"|\[(?P<cid2>\d{1,6}/\d{1,6}(?:_\d+)?)\] (?:\[(?P<artifact2>__\w+)\](?: |$))?|\[(?P<artifact3>__\w+)\](?: |$))"
)
_BRACKET_INSIDE = re.compile(rb"\[" + _ISO + rb"\] (?:\[" + COMPILE_ID + rb"\] )?torch(?:dynamo|inductor)?(?:\.\w+)*: \[" + LEVEL + rb"\] ")
_TORCH_AHEAD = re.compile(rb"[\s>*`_#~|-]{1,60}(?=(?:\[(?:rank|default)\d+\]:\s?)*[VDIWEC]\d{4} \d\d:\d\d:\d\d|\[(?:rank|default)\d+\]:)")

_TORCH_STARTS = re.compile(rb"[VDIWEC]\d{4} \d\d:\d\d:\d\d|\[(?:rank|default)\d+\]:|\[" + _ISO + rb"\] (?:\[[\d/_]+\] )?torch")
_INDENTED_HEADER = re.compile(rb"[ \t]{1,12}(?=" + LEVEL + rb":[\w.]+:\S)")
_RANK = re.compile(rb"\[(?:rank|Rank|RANK):?[ =]?(?P<rank>\d{1,6})\]:?\s?|rank(?P<rank2>\d{1,6}): ")
_ROLE = re.compile(rb"\[[a-z_-]{1,40}\d{1,6}\]:\s?")
_MPI = re.compile(rb"\[\d+,(?P<rank>\d+)\]<std(?:out|err)>:\s?")
_WORKER = re.compile(rb"\((?P<name>[^()\n]{0,120}?)\bpid=(?P<pid>\d{1,10})(?:, ip=[\w.:-]{1,60})?\)\s?")
_WORKER_RANK = re.compile(rb"\brank=(\d{1,6})\b")
_SLURM = re.compile(rb" {0,6}\d{1,6}: |\d{1,8}:(?=\[|[VDIWEC]\d{4} )")
_CI_TABS = re.compile(rb"[^\t\n]{1,120}\t[^\t\n]{1,120}\t(?=(?:\xef\xbb\xbf)?\d{4}-)")
_CI_STREAM = re.compile(rb"\d\d[OE]\+? ")
_POD = re.compile(rb"\[pod/[^\]\s]{1,300}\] ")
_COMPOSE = re.compile(rb"[A-Za-z0-9][\w.-]{0,80}\s{0,40}\| ")
_CRI = re.compile(rb"(?P<stamp>" + _ISO + rb")(?P<zone>Z|[+-]\d\d:\d\d) (?P<stream>stdout|stderr) (?P<flag>[FP])(?: |$)")
_SYSLOG = re.compile(
    rb"(?:<\d{1,3}>)?" + _MONTHS + rb" [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})? (?P<id>[\w.-]{1,255} [^\s\[:]{1,128}(?:\[(?P<pid>\d{1,10})\])?): ?"
)
_JOURNAL_ISO = re.compile(
    rb"(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,6})?[+-]\d\d:?\d\d) (?P<id>[\w.-]{1,255} [^\s\[:]{1,128}\[(?P<pid>\d{1,10})\]): ?"
)
_RFC5424 = re.compile(
    rb"<\d{1,3}>1 (?P<stamp>" + _ISO + rb"(?:Z|[+-]\d\d:\d\d)) (?P<id>\S{1,255} \S{1,128} (?P<pid>\d{1,10}|-|\S{1,128}) \S{1,64}) "
    rb"(?:-|(?:\[(?:[^\]\\]|\\.)*\])+)(?: |$)(?:\xef\xbb\xbf)?"
)
_QUOTE = re.compile(rb"(?:> ?)+")

_DIALECT_A = re.compile(
    rb"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC \| [^|\n]{1,40}E[SD]T \| [^|\n]{1,40}NZ[SD]T \| "
    rb"(?:\S+?:[^:\n]{1,120}:\d+ )?(?:\| )?" + LEVEL + rb" \| ?"
)
_DIALECT_A_OLD = re.compile(
    rb"(?P<nz>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) NZ[SD]T \| (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<zone>E[SD]T) \| " + LEVEL + rb" \| ?"
)
_DIALECT_B = re.compile(rb"(?P<stamp>" + _ISO + rb")(?P<zone>[+-]\d\d:?\d\d)? \| " + LEVEL + rb" *\| (?:[\w.<>]+:[^:\n]{1,120}:\d+ - ?)?")
_STAMP = re.compile(rb"(?P<bracket>\[)?(?P<stamp>" + _ISO + rb")(?P<zone>" + _ZONE + rb")?(?(bracket)(?: [\w =:]{1,30})?\])(?P<sep> - | ?\| ?|: |:|,? (?: *(?=[A-Z]{4,8}\b|\|))?|$|(?=\[))")
_CLOCK = re.compile(rb"(?:(?P<date>\d\d-\d\d) )?(?P<clock>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?: - |: | +|$)")
# A header token ends in a separator that prose has not; exception names and torch's own words are message, not header.
_TOKEN = re.compile(
    rb"(?:"
    rb"\[?" + LEVEL + rb"\]?(?: - | *\| ?|: ?| +|$|(?=\[))"
    rb"|\[[\w./:<> -]{1,120}\](?: - |: | +|$|(?=\[))"
    rb"|(?!(?:[\w.]*\.)?\w*(?:Error|Exception|Exceeded|Failed|Interrupt|Warning|Unsupported|Hit)\b|function:|reasons?:)"
    rb"(?:[A-Za-z_][\w-]*(?:\.[\w-]+)*|[\w.-]+\.py:\d+(?: \w+\(\))?|[\w.]+:[\w<>.]+:\d+|MainThread|\d{1,10})(?: - | ?\| |\||: |:(?=\S))"
    rb")"
)
_LEVEL_FIRST = re.compile(rb"\[?" + LEVEL + rb"\]?(?: - | *\| |:(?=[\w.]+:)|: ?| +(?=\d\d-\d\d |\[|\d{4}-|torch))")
_BASIC_LOGGER = re.compile(rb"[\w.]+:(?! )")
_TORCH_LOGGER = re.compile(rb"torch(?:dynamo|inductor)?(?:\.[a-z_]\w*)*: ")
_BOLD = re.compile(rb"^([\s>]*)\*\*(.*?)\*\*$")
_REPEATED = re.compile(rb"\s*\[repeated \d+x across cluster\].*$")
# What a line, or a message behind torch's prefix, must hold at least for any layer to change it.
SUSPECT = rb"[\x00\x1b\r]|&[a-z#]|\[(?:rank|default|repeated|\d{4}-|\d*;|0m)|\*\*|\d:\d\d:\d|#033|\]$"
_MAY_PEEL = re.compile(SUSPECT + rb"|^\s*[{\"]|^\s*\d{1,6}: |^\s*" + LEVEL + rb":", re.MULTILINE)
_HARMLESS = bytes(byte for byte in range(256) if byte not in b"\x00\x1b\r&[]*:#{\"")
# Headers of the bot's two file dialects as a whole; no carrier stands in front of them.
DIALECT_HEADERS = (
    rb"(?P<utc>\d{4}-.{13}\d) UTC \| .{19} E[SD]T \| .{19} NZ[SD]T \| [^\s:|]{1,120}:[^:\s|]{1,120}:\d{1,9} "
    rb"(?:\x1b\[\d{1,3}m)?" + LEVEL + rb"(?:\x1b\[0m)? \| ",
    rb"(?P<local>\d{4}-.{17}\d) \| " + LEVEL + rb" *\| [\w.<>]{1,120}:[^:\s]{1,120}:\d{1,9} - ",
)
_STRING_ELEMENT = re.compile(rb"\s*\"(?P<body>(?:[^\"\\]|\\.)*)\",?\s*")

_JSON_TEXT = ("log", "message", "msg", "MESSAGE", "text", "body", "event", "textPayload", "line")
_JSON_TIME = ("time", "timestamp", "@timestamp", "ts", "asctime", "datetime", "__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP", "t")
_JSON_CHANNEL = (
    "stream", "rank", "local_rank", "pid", "process", "process_id", "_PID", "SYSLOG_PID", "hostname", "host", "_HOSTNAME",
    "pod", "pod_name", "container", "container_name", "_SYSTEMD_UNIT", "logger_pid",
)  # fmt: skip


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
        raw = _ANSI.sub(b"", raw)
    if b"#033[" in raw or b"m(" in raw:
        raw = _ANSI_WRECK.sub(b"", raw)
    if b"\x00" in raw:
        raw = raw.replace(b"\x00", b"")
    if b"&" in raw and _ENTITY.search(raw):
        raw = html.unescape(raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    cri = _CRI.match(raw) if raw[:2] == b"20" else None
    if cri:
        return _peel_cri(cri, raw)
    if b"**" in raw:
        raw = _BOLD.sub(rb"\1\2", raw)
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
    doubtful = lines.translate(None, _HARMLESS)
    if not doubtful or (not doubtful.strip(b"&") and lines.count(b"& ") == len(doubtful)):
        return True
    return _MAY_PEEL.search(lines) is None


def _peel_segment(raw: bytes) -> list[Piece]:
    start = raw[:1]
    if start == b"{" or (start == b" " and raw.lstrip()[:1] == b"{"):
        found = _peel_json(raw)
        if found is not None:
            return found
    elif start in (b'"', b" ", b"\t") and raw.rstrip().endswith((b'"', b'",')):
        element = _STRING_ELEMENT.fullmatch(raw)
        text = _json_string(element["body"]) if element else None
        if text is not None:
            return [piece for line in text.split(b"\n") if line for piece in _split(_Peeling(), line)] or _split(_Peeling(), b"")
    return _split(_Peeling(), raw)


def _split(state: _Peeling, raw: bytes) -> list[Piece]:
    """Peels one text, after cutting it where a torch prefix stands inside it."""
    cuts = [m.start() for m in _GLOG_INSIDE.finditer(raw)] if b"] " in raw or raw.endswith(b"]") else []
    if b": [" in raw:
        cuts = sorted({*cuts, *(m.start() for m in _BRACKET_INSIDE.finditer(raw))})
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
        text = _REPEATED.sub(b"", text)
    return state.piece(text)


def _peel_layers(state: _Peeling, raw: bytes, *, transport_only: bool = False) -> int:
    """Takes off every layer in front; the position where the message begins."""
    position = 0
    for _ in range(MAX_LAYERS):
        if transport_only and _TORCH_STARTS.match(raw, position):
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
    match = _GLOG.match(raw, at) if b"C" <= first <= b"W" else None
    if match:
        return _take_glog(state, match, raw)
    for layer, take in _LAYERS.get(first, ()):
        match = layer.match(raw, at)
        if match and match.end() > at:
            return take(state, match, raw)
    if state.headed and state.stamp is not None and not state.complete:
        match = _TOKEN.match(raw, at)
        if match:
            return match.end()
    return None


_Take = Callable[[_Peeling, "re.Match[bytes]", bytes], int]


def _take_glog(state: _Peeling, match: "re.Match[bytes]", raw: bytes) -> int:
    state.torch = raw[match.start() : match.end()].rstrip()
    state.see_stamp(Stamp("glog", match["stamp"].decode()))
    if match["pid"] is not None:
        number = int(match["pid"])
        if number <= _LINUX_PID_MAX:
            state.pid = number
    state.cid = match["cid"] or state.cid
    state.artifact = match["artifact"] or b""
    state.headed = True
    return match.end()


def _take_bracket_torch(state: _Peeling, match: "re.Match[bytes]", raw: bytes) -> int:
    state.torch = raw[match.start() : match.end()].rstrip()
    if match["stamp"]:
        state.see_stamp(Stamp("local", _digits(match["stamp"])))
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
    rank = _WORKER_RANK.search(match["name"])
    state.rank = int(rank[1]) if rank else state.rank
    state.channel.append(match[0].strip())
    return match.end()


def _take_syslog(state: _Peeling, match: "re.Match[bytes]", _raw: bytes) -> int:
    groups = match.groupdict()
    if groups.get("stamp"):
        state.see_stamp(_iso_stamp(groups["stamp"]))
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
    zone = match.groupdict().get("zone")
    text = _digits(match["stamp"])
    state.see_stamp(Stamp("zoned", text + _zone(zone)) if zone else Stamp("local", text))
    state.headed = True
    state.complete = match.re is _DIALECT_B
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
    logger = (_BASIC_LOGGER if raw[end - 1 : end] == b":" else _TORCH_LOGGER).match(raw, end)
    return logger.end() if logger else end


def _digits(stamp: bytes) -> str:
    return stamp.decode().replace("/", "-").replace("T", " ").replace(",", ".")


def _zone(zone: bytes) -> str:
    text = zone.strip().decode()
    if text in ("Z", "UTC", "GMT"):
        return "+00:00"
    return text if ":" in text else f"{text[:3]}:{text[3:]}"


def _iso_stamp(text: bytes) -> Stamp:
    match = re.fullmatch(rb"(" + _ISO + rb")(" + _ZONE + rb")?", text)
    if match is None:
        return Stamp("none", "")
    return Stamp("zoned", _digits(match[1]) + _zone(match[2])) if match[2] else Stamp("local", _digits(match[1]))


_IsLayer = tuple[re.Pattern[bytes], Callable[[_Peeling, "re.Match[bytes]", bytes], int | None]]
_DATED: tuple[_IsLayer, ...] = (
    (_JOURNAL_ISO, _take_syslog),
    (_DIALECT_A, _take_dialect_a),
    (_DIALECT_A_OLD, _take_dialect_a_old),
    (_DIALECT_B, _take_stamp),
    (_STAMP, _take_stamp),
    (_CLOCK, _take_clock),
    (_SLURM, _take_slurm),
    (_CI_STREAM, _take_quote),
)
_LETTER: tuple[_IsLayer, ...] = (
    (_SYSLOG, _take_syslog), (_RANK, _take_rank), (_BRACKET_TORCH, _take_bracket_torch), (_LEVEL_FIRST, _take_level),
    (_COMPOSE, _take_name), (_CI_TABS, _take_name), (_GLOG_STUMP, _take_stump),
)  # fmt: skip
_LAYERS: dict[bytes, tuple[_IsLayer, ...]] = {
    **{bytes([c]): _DATED for c in b"0123456789"},
    **{bytes([c]): _LETTER for c in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"},
    b"[": (
        (_RANK, _take_rank), (_ROLE, _take_name), (_BRACKET_TORCH, _take_bracket_torch), (_POD, _take_name),
        (_MPI, _take_rank), (_STAMP, _take_stamp), (_LEVEL_FIRST, _take_level), (_GLOG_STUMP, _take_stump),
    ),
    b".": ((_GLOG_STUMP, _take_stump),),
    b"/": ((_GLOG_STUMP, _take_stump),),
    b"(": ((_WORKER, _take_worker),),
    b"<": ((_RFC5424, _take_syslog), (_SYSLOG, _take_syslog)),
    b">": ((_TORCH_AHEAD, _take_quote), (_QUOTE, _take_quote)),
    **{bytes([c]): ((_TORCH_AHEAD, _take_quote),) for c in b"*`#_~|-"},
    **{bytes([c]): ((_TORCH_AHEAD, _take_quote), (_INDENTED_HEADER, _take_quote), (_SLURM, _take_slurm)) for c in b" \t"},
}  # fmt: skip


def _peel_cri(match: "re.Match[bytes]", raw: bytes) -> list[Piece]:
    """The pieces of a line in the container runtime's format; one that it cut (flag ``P``) stays unpeeled."""
    state = _Peeling()
    state.see_stamp(Stamp("zoned", _digits(match["stamp"]) + _zone(match["zone"])))
    state.headed = True
    state.channel.append(match["stream"])
    return _peel_carried(state, raw[match.end() :], continues=match["flag"] == b"P")


def _peel_carried(state: _Peeling, body: bytes, *, continues: bool) -> list[Piece]:
    """The pieces of what a carrier holds that may have cut the line."""
    carrier = b"\x00".join(state.channel)
    if continues:
        return [state.piece(body)._replace(carried=body, carrier=carrier, continues=True)]
    segments = [segment for segment in body.split(b"\r") if segment] or [b""]
    pieces = [piece for segment in segments for piece in _split(state.fork(), segment)]
    pieces[0] = pieces[0]._replace(carried=body, carrier=carrier)
    return pieces


def _peel_json(raw: bytes) -> list[Piece] | None:
    """The pieces of a JSON log line, or None when it is none or carries no text field."""
    try:
        entry = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    text = next((value for key in _JSON_TEXT if (value := _as_bytes(entry.get(key))) is not None), None)
    if text is None:
        return None
    state = _Peeling()
    state.channel = [f"{key}={entry[key]}".encode("utf-8", "surrogateescape") for key in _JSON_CHANNEL if isinstance(entry.get(key), str | int)]
    stamp = next((found for key in _JSON_TIME if (found := _json_stamp(entry.get(key))) is not None), None)
    if stamp is not None:
        state.see_stamp(stamp)
    state.rank = _json_int(entry, "rank")
    state.pid = next((pid for key in ("_PID", "SYSLOG_PID", "pid", "process", "process_id") if (pid := _json_int(entry, key)) is not None), None)
    whole = text.endswith(b"\n") or "log" not in entry or "stream" not in entry
    lines = [_ANSI.sub(b"", line).replace(b"\x00", b"") for line in text.removesuffix(b"\n").split(b"\n")]
    pieces: list[Piece] = []
    for number, line in enumerate(lines):
        cut = number == len(lines) - 1 and not whole
        pieces += [piece._replace(same_entry=number > 0) for piece in _peel_carried(state.fork(), line, continues=cut)]
    return pieces


def _as_bytes(value: object) -> bytes | None:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, list) and value and all(isinstance(item, int) and 0 <= item < 256 for item in value):
        return bytes(value)  # journald prints a MESSAGE that is not UTF-8 as a list of numbers
    return None


def _json_int(entry: dict[str, object], key: str) -> int | None:
    value = entry.get(key)
    if isinstance(value, str) and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _json_stamp(value: object) -> Stamp | None:
    if isinstance(value, str) and value.isdigit() and len(value) == 16:
        return Stamp("epoch", value)
    if isinstance(value, str):
        stamp = _iso_stamp(value.encode("utf-8", "surrogateescape"))
        return stamp if stamp.form != "none" else None
    if isinstance(value, int | float) and not isinstance(value, bool) and 1e9 < value < 1e11:
        return Stamp("epoch", str(round(value * 1_000_000)))
    return None


def _json_string(body: bytes) -> bytes | None:
    try:
        text = json.loads(b'"' + body + b'"', strict=False)
    except (ValueError, UnicodeDecodeError):
        return None
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else None
