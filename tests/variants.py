"""Turns a log into what people really paste, ship or store: wrapped, prefixed, cut, recoloured.

Each `Variant` is a pure function of bytes and says which facts of the events must survive it.

    python -m tests.variants ROOT                            # runs `recompile-watch events`
    python -m tests.variants ROOT --events module:function --variant 'wrap*' --runs '2.13.0/*'

The command prints a matrix, variant by run: `ok`, the number of differences, or `-` where the
variant does not suit the log; then the first difference of each cell that failed.

Every variant is deterministic. Without a `suits` it applies to every log.
Facts: kind, count, function, file, line_no, entries (the reasons' cache entries), text (their
guards), text_squeezed (the guards without white space), rank, pid, time, compile_id.
Without "count" events may be missing (the log was cut), but none may be invented.
`time` is compared without year and zone, since an outer prefix may supply them; `time`, `rank`
and `pid` only where the unmangled log has them, since the mangled one may carry more.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import html
import io
import itertools
import json
import logging
import re
import sys
import textwrap
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.truth import Event, EventSource, load_event_source

IDENTITY = frozenset({"kind", "count", "function", "file", "line_no"})
GUARDS = frozenset({"entries", "text"})
STAMPS = frozenset({"rank", "pid", "time", "compile_id"})
ALL_FACTS = IDENTITY | GUARDS | STAMPS
CUT_FACTS = (IDENTITY - {"count"}) | GUARDS | {"rank"}  # an exception may outlive its block
SQUEEZED = (ALL_FACTS - {"text"}) | {"text_squeezed"}
LENIENT = ("time", "rank", "pid")  # a mangled log may show more of these, never something else
JOURNAL = "Nov 20 10:28:52 host python3[3989]: "
_MICROSECONDS = 1_763_634_532_255_000
KIB_16 = 16 * 1024  # Docker's and containerd's limit for one piece of a line
STAMP = "2025-11-20T10:28:52.255"  # the corpus was written on 20 November
GLOG = re.compile(
    rb"^(?:\[default\d+\]:)?(?:\[rank\d+\]:)?[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ [^\s\]]+:\d+\]"
    rb"(?: \[[!\d/_]+\])?(?: \[__\w+\])? ?"
)
RICH_PLACE = re.compile(rb"(?P<level>[VDIWEC])\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ (?P<path>[^\s\]]+):(?P<line>\d+)\]")
TORCH_TEXT = re.compile(
    rb"Recompiling function |triggered by the following guard|torch\._dynamo hit config"
    rb"|skipping cudagraph|Graph break|torch\._dynamo\.exc\.|CUDAGraph"
)
HEADER = re.compile(rb"Recompiling function |torch\._dynamo hit config|Graph break (?:in|\()")


def unchanged(events: list[Event]) -> list[Event]:
    """Expects of a mangled log the events of the log itself."""
    return events


def anything(_data: bytes) -> bool:
    """Suits every log."""
    return True


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to mangle a log.

    apply: the mangling; deterministic.
    keeps: facts that must survive (see the module's docstring).
    suits: whether the variant makes sense for a log.
    expect: the events of the mangled log, from those of the log.
    """

    name: str
    apply: Callable[[bytes], bytes]
    keeps: frozenset[str] = ALL_FACTS
    suits: Callable[[bytes], bool] = anything
    expect: Callable[[list[Event]], list[Event]] = unchanged


# --- lines and records ----------------------------------------------------------------------


def split_lines(data: bytes) -> list[bytes]:
    """The lines without their ends; a last line without end counts."""
    lines = data.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def join_lines(lines: Iterable[bytes]) -> bytes:
    """The lines, each with a newline."""
    return b"".join(line + b"\n" for line in lines)


def each_line(change: Callable[[bytes], bytes], data: bytes) -> bytes:
    """`data` with every line changed."""
    return join_lines(map(change, split_lines(data)))


def prefix_lines(prefix: str, data: bytes) -> bytes:
    """`data` with `prefix` before every line."""
    head = prefix.encode()
    return each_line(lambda line: head + line, data)


def glog_prefix(line: bytes) -> bytes | None:
    """torch's own prefix of a line, None when there is none at its start."""
    match = GLOG.match(line)
    return match[0].rstrip(b" ") if match else None


def records(data: bytes) -> list[list[bytes]]:
    """Lines grouped as they were logged: the same torch prefix and no new header among them."""
    groups: list[list[bytes]] = []
    previous: bytes | None = None
    for line in split_lines(data):
        prefix = glog_prefix(line)
        if groups and prefix is not None and prefix == previous and not HEADER.search(line):
            groups[-1].append(line)
        else:
            groups.append([line])
        previous = prefix
    return groups


def is_prefixed(data: bytes) -> bool:
    """Whether every line that tells of torch carries torch's own prefix at its start."""
    lines = split_lines(data)
    return any(map(glog_prefix, lines)) and all(glog_prefix(line) is not None or not TORCH_TEXT.search(line) for line in lines)


def is_single_process(data: bytes) -> bool:
    """Whether no line names a rank and every torch line has torch's prefix."""
    return b"[rank" not in data and is_prefixed(data)


def is_text(data: bytes) -> bool:
    """Whether the log is clean UTF-8 without control characters but tab and newline."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)


def _lossy(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _stamps(form: str) -> Iterator[str]:
    """`form` again and again, its {n} nine digits of a second's fraction that grow."""
    for number in itertools.count():
        yield form.format(n=f"{255_000_123 + number * 1000:09d}")


# --- collectors -----------------------------------------------------------------------------


def docker_json(data: bytes, *, piece: int = KIB_16) -> bytes:
    """Docker's json-file: one object a line; a long line comes in pieces, the last with its \\n."""
    out = []
    for stamp, line in zip(_stamps("2025-11-20T10:28:52.{n}Z"), split_lines(data), strict=False):
        for part in _pieces(line + b"\n", piece):
            log = {"log": _lossy(part), "stream": "stderr", "time": stamp}
            out.append(json.dumps(log, ensure_ascii=False, separators=(",", ":")).encode())
    return join_lines(out)


def docker_json_split(data: bytes) -> bytes:
    """docker_json where 16 KiB of progress bar come before a record: the cut is inside it."""
    bar = "\r 12%|█▏        | 3/25 [00:01<00:10,  2.10it/s]".encode()
    filler = (bar * (KIB_16 // len(bar) + 1))[: KIB_16 - 40]
    filler = filler.decode("utf-8", "ignore").encode()
    out = []
    for number, record in enumerate(records(data)):
        first = record[0]
        if number % 5 == 0 and glog_prefix(first):
            first = filler + b"\r" + first
        out += [first, *record[1:]]
    return docker_json(join_lines(out))


def _pieces(line: bytes, size: int) -> Iterator[bytes]:
    """`line` in pieces of at most `size` bytes, cut between characters."""
    while len(line) > size:
        cut = size
        while cut > size - 4 and line[cut] & 0xC0 == 0x80:
            cut -= 1
        yield line[:cut]
        line = line[cut:]
    yield line


def cri(data: bytes, *, piece: int = KIB_16) -> bytes:
    """containerd and CRI-O: time, stream, P (more follows) or F (the line ends here)."""
    out = []
    for stamp, line in zip(_stamps("2025-11-20T10:28:52.{n}Z"), split_lines(data), strict=False):
        parts = list(_pieces(line, piece))
        for number, part in enumerate(parts, 1):
            tag = "F" if number == len(parts) else "P"
            out.append(f"{stamp} stdout {tag} ".encode() + part)
    return join_lines(out)


def kubectl_timestamps(data: bytes) -> bytes:
    """kubectl logs --timestamps and docker logs -t."""
    stamps = _stamps("2025-11-20T10:28:52.{n}Z ")
    lines = split_lines(data)
    return join_lines(s.encode() + line for s, line in zip(stamps, lines, strict=False))


def journal_json(data: bytes) -> bytes:
    """journalctl -o json: MESSAGE is an array of bytes where it is not clean UTF-8 text."""
    out = []
    for number, line in enumerate(split_lines(data)):
        message: str | list[int] = line.decode() if is_text(line) else list(line)
        entry = {
            "__REALTIME_TIMESTAMP": str(1763634532255000 + number),
            "_HOSTNAME": "host",
            "SYSLOG_IDENTIFIER": "python3",
            "_PID": "3989",
            "PRIORITY": "6",
            "MESSAGE": message,
        }
        out.append(json.dumps(entry, ensure_ascii=False).encode())
    return join_lines(out)


def journal_export(data: bytes) -> bytes:
    """journalctl -o export: a field on each line, its size in front of what is no printable text."""
    out = []
    for number, line in enumerate(split_lines(data)):
        text = b"MESSAGE=" + line if is_text(line) else b"MESSAGE\n" + len(line).to_bytes(8, "little") + line
        out.append(
            b"__CURSOR=s=06;i=%x\n__REALTIME_TIMESTAMP=%d\n_HOSTNAME=host\n_PID=3989\n%s\n_TRANSPORT=stdout\n"
            % (number, _MICROSECONDS + number, text)
        )
    return join_lines(out)


def journal_verbose(data: bytes) -> bytes:
    """journalctl -o verbose."""
    out = []
    for number, line in enumerate(split_lines(data)):
        head = f"Thu 2025-11-20 10:28:52.{number:06d} UTC [s=f433410a;i={number:x};b=9;m=3e8;t=6440;x=1afa]\n    PRIORITY=6\n    _PID=3989\n"
        out.append(head.encode() + b"    MESSAGE=" + line + b"\n    _TRANSPORT=stdout")
    return join_lines(out)


def journal_pretty(data: bytes) -> bytes:
    """journalctl -o json-pretty."""
    entries = map(json.loads, split_lines(journal_json(data)))
    return join_lines(json.dumps(entry, indent="\t", separators=(",", " : ")).encode() for entry in entries)


def loki(data: bytes) -> bytes:
    """What Loki's programming interface answers: pairs of a time and a line."""
    values = [[str((_MICROSECONDS + number) * 1000), _lossy(line)] for number, line in enumerate(split_lines(data))]
    result = [{"stream": {"app": "bot", "pod": "bot-0"}, "values": values}]
    return json.dumps({"status": "success", "data": {"resultType": "streams", "result": result}}).encode() + b"\n"


def open_telemetry(data: bytes) -> bytes:
    """What OpenTelemetry's collector writes to a file, an object for each line."""
    resource = {"attributes": [{"key": "k8s.pod.name", "value": {"stringValue": "bot-0"}}]}
    logs = ([{"timeUnixNano": str(_MICROSECONDS * 1000), "body": {"stringValue": _lossy(line)}}] for line in split_lines(data))
    return join_lines(json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": log}]}]}).encode() for log in logs)


def kaggle(data: bytes) -> bytes:
    """The log of a notebook that ran on Kaggle."""
    rows = [
        json.dumps({"stream_name": "stderr", "time": 12.5 + number, "data": _lossy(line) + "\n"}) for number, line in enumerate(split_lines(data))
    ]
    return b"[" + "\n,".join(rows).encode() + b"\n]"


def gcloud(data: bytes, *, by_record: bool) -> bytes:
    """gcloud logging read: YAML, in which a text of several lines is a block, and one that might be misread is quoted."""
    out = []
    for record in records(data) if by_record else [[line] for line in split_lines(data)]:
        lines = [_lossy(line) for line in record]
        text = "'" + lines[0].replace("'", "''") + "'" if len(lines) == 1 else "\n".join(["|-", *("  " + line for line in lines)])
        head = (
            "---\ninsertId: 000a\nlogName: projects/p/logs/stderr\nresource:\n  labels:\n    pod_name: bot-0\n  type: k8s_container\nseverity: ERROR"
        )
        out.append(f"{head}\ntextPayload: {text}\ntimestamp: '2025-11-20T10:28:52.255123456Z'".encode())
    return join_lines(out)


def ray_coloured(data: bytes) -> bytes:
    """Ray's driver log on a terminal."""
    return prefix_lines("\x1b[36m(train_fn pid=3989, ip=10.0.0.7)\x1b[0m ", data)


def behind_lines(suffix: str, data: bytes) -> bytes:
    """`data` with `suffix` behind every line."""
    tail = suffix.encode()
    return each_line(lambda line: line + tail, data)


def grepped(name: str, data: bytes) -> bytes:
    """grep -n with lines of context: what it found has ":" behind the line's number (and the file's name), what stands beside "-"."""
    out = []
    for number, line in enumerate(split_lines(data), 1):
        sign = ":" if TORCH_TEXT.search(line) else "-"
        out.append(f"{name}{sign}{number}{sign}".removeprefix(sign).encode() + line)
    return join_lines(out)


def rich_log(width: int, data: bytes, *, show_path: bool = True) -> bytes:
    """What rich's handler prints of torch's loggers: the records without torch's prefix, in columns."""
    from rich.console import Console
    from rich.logging import RichHandler

    out = io.StringIO()
    handler = RichHandler(console=Console(file=out, width=width), show_path=show_path)
    for number, record in enumerate(records(data)):
        place = RICH_PLACE.match(record[0])
        if place is None:
            out.write("".join(_lossy(line) + "\n" for line in record))
            continue
        message = "\n".join(_lossy(GLOG.sub(b"", line)) for line in record)
        level = logging.WARNING if place["level"] == b"W" else logging.DEBUG
        logged = logging.LogRecord("torch._dynamo", level, place["path"].decode(), int(place["line"]), message, None, None)
        logged.created = _MICROSECONDS / 1_000_000 + number * 0.4
        handler.emit(logged)
    return out.getvalue().encode()


def in_turn(*changes: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """One change after the other, that of the innermost carrier first."""
    return lambda data: functools.reduce(lambda changed, change: change(changed), changes, data)


# --- structured logs ------------------------------------------------------------------------


def json_lines(field: str, data: bytes) -> bytes:
    """One JSON object for each physical line, the line in `field`."""
    out = []
    for line in split_lines(data):
        entry = {"timestamp": STAMP + "Z", "level": "info", field: _lossy(line)}
        out.append(json.dumps(entry).encode())
    return join_lines(out)


def json_records(data: bytes) -> bytes:
    """One JSON object for each whole record, its lines joined by \\n, prefixes kept."""
    out = []
    for record in records(data):
        message = _lossy(b"\n".join(record))
        entry = {"message": message, "severity": "DEFAULT", "time": STAMP + "Z"}
        out.append(json.dumps(entry).encode())
    return join_lines(out)


def json_bare_records(data: bytes) -> bytes:
    """What python-json-logger writes from torch's loggers: the record without torch's prefix."""
    out = []
    for record in records(data):
        prefix = glog_prefix(record[0])
        if prefix is None:
            out += record
            continue
        entry = {
            "asctime": "2025-11-20 10:28:52,255",
            "levelname": "WARNING" if prefix.startswith(b"W") else "DEBUG",
            "name": "torch._dynamo",
            "message": "\n".join(_lossy(GLOG.sub(b"", line)) for line in record),
        }
        out.append(json.dumps(entry).encode())
    return join_lines(out)


def notebook(data: bytes) -> bytes:
    """An .ipynb file whose only cell printed the log to standard error."""
    text = [_lossy(line) + "\n" for line in split_lines(data)]
    output = {"name": "stderr", "output_type": "stream", "text": text}
    cell = {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": {},
        "outputs": [output],
        "source": ["model(x)"],
    }
    document = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"


# --- pasted text ----------------------------------------------------------------------------


def markdown_fence(data: bytes) -> bytes:
    """An issue's text: prose, then the log in a code fence, then prose."""
    return b"Here is what I see:\n\n```python\n" + data.rstrip(b"\n") + b"\n```\n\nAny idea?\n"


def markdown_bold(data: bytes) -> bytes:
    """The lines that matter made bold by hand, in a code fence too."""
    bold = each_line(lambda line: b"**" + line + b"**" if HEADER.search(line) else line, data)
    return markdown_fence(bold)


def html_escaped(data: bytes) -> bytes:
    """Copied out of a web page's source."""
    return html.escape(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def windows_paths(data: bytes) -> bytes:
    """The same run on Windows: back-slashes and a drive in user paths, torch's own relative."""
    text = data.decode("utf-8", "surrogateescape")
    text = re.sub(r"/srv/bot/[\w./-]*", lambda match: windows_path(match[0]), text)
    text = re.sub(r"(?<= )torch/[\w/]+\.py(?=:\d+\])", _site_packages, text)
    return text.encode("utf-8", "surrogateescape")


def windows_path(path: str) -> str:
    """/srv/bot/model/x.py is C:\\Users\\bot\\model\\x.py there."""
    if not path.startswith("/srv/bot"):
        return path
    return path.replace("/srv/bot", "C:/Users/bot").replace("/", "\\")


def _site_packages(match: re.Match[str]) -> str:
    return "Lib\\site-packages\\" + match[0].replace("/", "\\")


def on_windows(events: list[Event]) -> list[Event]:
    """The events with their files as `windows_paths` writes them."""
    return [
        {
            **event,
            "file": windows_path(event["file"]) if event.get("file") else None,
            "reasons": [{**reason, "text": re.sub(r"/srv/bot/[\w./-]*", _windows_match, reason["text"])} for reason in event.get("reasons") or []],
        }
        for event in events
    ]


def _windows_match(match: re.Match[str]) -> str:
    return windows_path(match[0])


def wrap_hard(width: int, data: bytes) -> bytes:
    """A terminal of `width` columns, copied: lines cut anywhere, with no mark of it."""
    out = []
    for line in split_lines(data):
        text = line.decode("utf-8", "surrogateescape")
        cuts = [text[i : i + width] for i in range(0, len(text), width)] or [""]
        out += [cut.encode("utf-8", "surrogateescape") for cut in cuts]
    return join_lines(out)


def wrap_words(width: int, data: bytes) -> bytes:
    """Wrapped as textwrap does: at blanks and hyphens, the blanks at a break are lost."""
    wrapper = textwrap.TextWrapper(width=width, expand_tabs=False, replace_whitespace=False)
    out = []
    for line in split_lines(data):
        parts = wrapper.wrap(line.decode("utf-8", "surrogateescape")) or [""]
        out += [part.encode("utf-8", "surrogateescape") for part in parts]
    return join_lines(out)


def fold_at_blanks(width: int, data: bytes) -> bytes:
    """Broken by `fold -s`: behind the last blank that fits, which stays at the end of its line."""

    def folded(line: str) -> Iterator[str]:
        while len(line) > width:
            end = line.rfind(" ", 0, width) + 1 or width
            yield line[:end]
            line = line[end:]
        yield line

    return join_lines(part.encode() for line in split_lines(data) for part in folded(_lossy(line)))


def newlines_to_spaces(data: bytes) -> bytes:
    """The whole log on one line, each newline a space."""
    return b" ".join(split_lines(data)) + b"\n"


def whitespace_collapsed(data: bytes) -> bytes:
    """As a web page shows it: every run of white space one space."""
    return b" ".join(data.split()) + b"\n"


def without_prefixes(data: bytes) -> bytes:
    """Only the messages, as people copy them out of a log or a logger of their own prints them."""
    return join_lines([GLOG.sub(b"", line) for line in split_lines(data)])


def without_indents(data: bytes) -> bytes:
    """No line begins with a blank: a page that is no code block, or a terminal, took them."""
    return join_lines([line.lstrip(b" \t") for line in split_lines(data)])


def without_comments(data: bytes) -> bytes:
    """Guards without "  # source" and hint, as torch 2.5 and older wrote them."""
    out = []
    for line in split_lines(data):
        guard = re.match(rb"(.*(?:- |last reason: )!?\d+/\d+: )(.*)$", line)
        out.append(guard[1] + re.split(rb"  # | \(HINT: ", guard[2])[0] if guard else line)
    return join_lines(out)


def has_no_quoted_hash(data: bytes) -> bool:
    """Whether no guard compares with a string that itself holds a comment sign."""
    return not re.search(rb"'[^'\n]*  # [^'\n]*' *  # ", data)


# --- terminals and encodings ----------------------------------------------------------------


def progress_bars(data: bytes) -> bytes:
    """tqdm's bar, with no newline after it, glued before each record; half end it with \\r."""
    out = []
    for number, record in enumerate(records(data)):
        bar = f"\r {number % 100:2d}%|█▏        | {number}/100 [00:01<00:10,  2.10it/s]".encode()
        end = b"\r" if number % 2 else b""
        out += [bar + end + record[0] if glog_prefix(record[0]) else record[0], *record[1:]]
    return join_lines(out)


def coloured(data: bytes) -> bytes:
    """Each line in ANSI colours."""
    codes = itertools.cycle((b"33", b"2;37", b"1;31", b"38;5;208"))
    return join_lines(b"\x1b[" + code + b"m" + line + b"\x1b[0m" for code, line in zip(codes, split_lines(data), strict=False))


def terminal_recorded(data: bytes) -> bytes:
    """What tmux or script wrote down: character sets chosen, rests of lines erased, the cursor shown and hidden."""
    return b"\x1b(B\x1b[m\x1b7\x1b[?2004l\r" + each_line(lambda line: b"\x1b(B\x1b[m" + line + b"\x1b[K\x1b=\r", data)


def utf_16(order: str, data: bytes) -> bytes:
    """UTF-16 with a byte order mark ("le" is what PowerShell's > writes)."""
    text = data.decode("utf-8", "replace").replace("\n", "\r\n")
    return ("\ufeff" + text).encode(f"utf-16-{order}")


def nul_bytes(data: bytes, *, seed: int = 7) -> bytes:
    """NUL bytes between lines, as a crash, a hole of copytruncate or a full disk leaves them."""
    sizes = (1, 3, 64, 4096) + (0,) * 28
    out = []
    for number, line in enumerate(split_lines(data)):
        chance = zlib.crc32(f"{seed} {number}".encode())
        out.append(b"\0" * sizes[chance % len(sizes)] + line)
    return join_lines(out)


def head_cut(at: float, data: bytes) -> bytes:
    """`data` from its byte `at` (a share of the whole) on, cut anywhere."""
    return data[int(len(data) * at) :]


def tail_cut(at: float, data: bytes) -> bytes:
    """`data` up to its byte `at` (a share of the whole), cut within a line: that shows the cut."""
    return data[: int(len(data) * at)].removesuffix(b"\n")


# --- several writers ------------------------------------------------------------------------


def two_ranks(data: bytes) -> bytes:
    """Two ranks that log the same at the same microsecond, line by line in turn."""
    out = []
    for line in split_lines(data):
        if glog_prefix(line):
            out += [b"[rank0]:" + line, b"[rank1]:" + line]
        else:
            out += [line, line]
    return join_lines(out)


def on_two_ranks(events: list[Event]) -> list[Event]:
    """Every event once for rank 0 and once for rank 1."""
    return [{**event, "rank": rank} for event in events for rank in (0, 1)]


def on_rank_0(events: list[Event]) -> list[Event]:
    """Every event on rank 0."""
    return [{**event, "rank": 0} for event in events]


def app_lines(data: bytes) -> bytes:
    """A line of the application after every line, those within a record included."""
    noise = itertools.cycle(
        (
            b"2025-11-20 10:28:52,300 INFO bot: step done",
            b"loss=0.3310 lr=1e-4",
            b"    - queue length: 4",
            b"",
            b'{"event": "tick", "symbol": "ETHUSD"}',
        )
    )
    return join_lines(itertools.chain(*zip(split_lines(data), noise, strict=False)))


# --- the table ------------------------------------------------------------------------------


def _prefixes() -> Iterator[Variant]:
    prefixes = {
        "kubectl_prefix": "[pod/bot-0/main] ",
        "kubectl_prefix_timestamps": "[pod/bot-0/main] 2025-11-20T10:28:52.255123456Z ",
        "docker_compose": "bot-1  | ",
        "docker_swarm": "stack_bot.1.x2kq7@node1    | ",
        "journal_short": JOURNAL,
        "journal_short_iso": "2025-11-20T10:28:52+00:00 host python3[3989]: ",
        "journal_short_precise": "Nov 20 10:28:52.255123 host python3[3989]: ",
        "journal_full": "Thu 2025-11-20 10:28:52 UTC host python3[3989]: ",
        "journal_unix": "1763634532.255123 host python3[3989]: ",
        "journal_monotonic": "[12345.678901] host python3[3989]: ",
        "journal_delta": "[    0.001000                ] host python3[3989]: ",
        "journal_with_unit": "Thu 2025-11-20 10:28:52 UTC host bot.service[3989]: ",
        "ts": "Nov 20 10:28:52 ",
        "syslog_3164": "<14>Nov 20 10:28:52 host bot[3989]: ",
        "syslog_5424": "<14>1 2025-11-20T10:28:52.255123Z host bot 3989 - - ",
        "ray": "(train_fn pid=3989, ip=10.0.0.7) ",
        "ray_worker": "(RayTrainWorker pid=123) ",
        "vllm": "(EngineCore_DP0 pid=1) (Worker_TP0 pid=2) ",
        "slurm": "0: ",
        "mpi": "[1,0]<stdout>:",
        "mpi_tagged": "[1,0]<stderr>: ",
        "mpi_timestamped": "Thu Nov 20 10:28:52 2025[1,0]<stderr>:",
        "pdsh": "gpu07: ",
        "stern": "bot-7d4b9c6f5-x2kq7 main ",
        "heroku": "2025-11-20T10:28:52.255123+00:00 app[worker.1]: ",
        "github_actions": "2025-11-20T10:28:52.2550000Z ",
        "gitlab": "[2025-11-20T10:28:52.255Z] ",
        "gitlab_stream": "2025-11-20T10:28:52.255123Z 00O ",
        "slurm_in_ci": "2025-11-20T10:28:52.2550000Z 0: ",
        "logging": "2025-11-20 10:28:52,255 - root - WARNING - ",
        "loguru": "2025-11-20 10:28:52.255 | WARNING  | mod:func:12 - ",
        "hydra": "[2025-11-20 10:28:52,255][torch._dynamo][WARNING] - ",
        "markdown_quote": "> ",
        "list_indent": "    ",
    }
    for name, prefix in prefixes.items():
        yield Variant(name, functools.partial(prefix_lines, prefix))
    for name, prefix in {"rank": "[rank0]:", "torchrun": "[default0]:[rank0]:"}.items():
        yield Variant(
            name,
            functools.partial(prefix_lines, prefix),
            suits=is_single_process,
            expect=on_rank_0,
        )


def _wrappers() -> Iterator[Variant]:
    yield Variant("docker_json", docker_json)
    yield Variant("docker_json_split", docker_json_split, suits=is_prefixed)
    yield Variant("cri", cri)
    yield Variant("cri_partial", functools.partial(cri, piece=120))
    yield Variant("kubectl_timestamps", kubectl_timestamps)
    yield Variant("journal_json", journal_json)
    yield Variant("journal_export", journal_export)
    yield Variant("journal_verbose", journal_verbose, suits=is_text)
    yield Variant("journal_pretty", journal_pretty)
    yield Variant("gcloud", functools.partial(gcloud, by_record=False), suits=is_text)
    yield Variant("gcloud_records", functools.partial(gcloud, by_record=True), suits=is_text)
    yield Variant("loki", loki)
    yield Variant("open_telemetry", open_telemetry)
    yield Variant("kaggle", kaggle)
    yield Variant("ray_coloured", ray_coloured)
    for field in ("message", "log", "msg", "Log"):
        yield Variant(f"json_{field}", functools.partial(json_lines, field))
    yield Variant("json_records", json_records)
    yield Variant("json_bare_records", json_bare_records, IDENTITY | GUARDS, is_single_process)
    for width in (80, 100, 120, 160):
        yield Variant(f"rich_{width}", functools.partial(rich_log, width), IDENTITY | {"entries", "text_squeezed"}, is_single_process)
    yield Variant(
        "rich_without_places", functools.partial(rich_log, 100, show_path=False), IDENTITY | {"entries", "text_squeezed"}, is_single_process
    )
    yield Variant("notebook", notebook)
    yield Variant("json_in_docker", in_turn(functools.partial(json_lines, "message"), docker_json))
    yield Variant("json_in_cri", in_turn(functools.partial(json_lines, "message"), cri))
    yield Variant("json_in_journal", in_turn(functools.partial(json_lines, "msg"), functools.partial(prefix_lines, JOURNAL)))
    yield Variant("json_in_kubectl", in_turn(json_records, functools.partial(prefix_lines, "[pod/bot-0/main] ")))
    yield Variant("ray_bars_in_docker", in_turn(progress_bars, functools.partial(prefix_lines, "(train_fn pid=3989) "), docker_json))
    yield Variant("bars_in_quoted_cri", in_turn(progress_bars, cri, functools.partial(prefix_lines, "> ")))
    yield Variant("windows_cri", in_turn(functools.partial(cri, piece=120), lambda data: data.replace(b"\n", b"\r\n")))


def _pasted() -> Iterator[Variant]:
    for name, suffix in {
        "request": " [request_id=abc]",
        "extra": " | {'job': 4}",
        "place": " (logger.py:58)",
        "labels": ' {pod="b"}',
        "cat_ends": "$",
    }.items():
        yield Variant(f"behind_{name}", functools.partial(behind_lines, suffix))
    aws = functools.partial(prefix_lines, "EVENTS\t3874\t1763634533000\tbot/main/0123\t")
    yield Variant("cloudwatch_text", in_turn(functools.partial(behind_lines, "\t1763634532255"), aws))
    yield Variant("grep", functools.partial(grepped, ""))
    yield Variant("grep_of_files", functools.partial(grepped, "logs/bot.log"))
    yield Variant("escapes_spelled_out", in_turn(functools.partial(behind_lines, "ESC[0m"), functools.partial(prefix_lines, "ESC[33m")))
    yield Variant("markdown_fence", markdown_fence)
    yield Variant("markdown_bold", markdown_bold)
    yield Variant("html_escaped", html_escaped)
    yield Variant("windows_paths", windows_paths, expect=on_windows)
    for width in (80, 100, 120, 160, 200):
        hard = functools.partial(wrap_hard, width)
        words = functools.partial(wrap_words, width)
        yield Variant(f"wrap_hard_{width}", hard, suits=is_prefixed)
        yield Variant(f"wrap_words_{width}", words, SQUEEZED, suits=is_prefixed)
        yield Variant(f"fold_{width}", functools.partial(fold_at_blanks, width), suits=is_prefixed)
    yield Variant("newlines_to_spaces", newlines_to_spaces, suits=is_prefixed)
    yield Variant("whitespace_collapsed", whitespace_collapsed, SQUEEZED, suits=is_prefixed)
    bare = IDENTITY | GUARDS
    yield Variant("without_prefixes", without_prefixes, bare)
    yield Variant("without_indents", without_indents, SQUEEZED)
    yield Variant("messages_without_indents", in_turn(without_prefixes, without_indents), (bare - {"text"}) | {"text_squeezed"})
    yield Variant("without_comments", without_comments, suits=has_no_quoted_hash)


def _bytes() -> Iterator[Variant]:
    yield Variant("crlf", lambda data: data.replace(b"\n", b"\r\n"))
    yield Variant("progress_bars", progress_bars)
    yield Variant("coloured", coloured)
    yield Variant("terminal_recorded", terminal_recorded)
    yield Variant("utf_16_le", functools.partial(utf_16, "le"))
    yield Variant("utf_16_be", functools.partial(utf_16, "be"))
    yield Variant("utf_8_bom", lambda data: b"\xef\xbb\xbf" + data)
    yield Variant("nul_bytes", nul_bytes)
    yield Variant("no_last_newline", lambda data: data.rstrip(b"\n"))
    for share in (0.1, 0.37, 0.62, 0.9):
        number = round(share * 100)
        yield Variant(f"head_cut_{number}", functools.partial(head_cut, share), CUT_FACTS)
        yield Variant(f"tail_cut_{number}", functools.partial(tail_cut, share), CUT_FACTS)
    yield Variant("two_ranks", two_ranks, suits=is_single_process, expect=on_two_ranks)
    yield Variant("app_lines", app_lines, suits=is_prefixed)


VARIANTS: dict[str, Variant] = {variant.name: variant for variant in itertools.chain(_prefixes(), _wrappers(), _pasted(), _bytes())}


# --- comparing ------------------------------------------------------------------------------


def differences(variant: Variant, original: list[Event], mangled: list[Event]) -> list[str]:
    """Where the events of a mangled log lack a fact that `variant` keeps; empty means none."""
    exact = [fact for fact in sorted(variant.keeps - {"count"}) if fact not in LENIENT]
    lenient = [fact for fact in LENIENT if fact in variant.keeps]
    wanted = _by_facts(variant.expect(original), exact)
    whole = "count" in variant.keeps
    got = _by_facts([e for e in mangled if whole or not e.get("partial")], exact)
    problems = []
    for key in sorted(wanted.keys() | got.keys()):
        want, have = wanted[key], got[key]
        if len(have) > len(want):
            problems.append(f"{len(have) - len(want)} invented: {_describe(have[-1])}")
        elif whole and len(have) < len(want):
            problems.append(f"{len(want) - len(have)} missing: {_describe(want[0])}")
        elif whole:
            problems += _lenient_problems(want, have, lenient)
    return problems


def _by_facts(events: list[Event], facts: Sequence[str]) -> defaultdict[str, list[Event]]:
    groups: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        groups[repr([_fact(event, fact) for fact in facts])].append(event)
    return groups


def _fact(event: Event, fact: str) -> object:
    reasons = event.get("reasons") or []
    if fact == "entries":
        return [reason["entry"] for reason in reasons]
    if fact == "text":
        return [reason["text"] for reason in reasons]
    if fact == "text_squeezed":
        return ["".join(reason["text"].split()) for reason in reasons]
    value = event.get(fact)
    if fact == "time" and isinstance(value, str):
        return re.sub(r"(?:Z|[+-]\d\d:?\d\d)$", "", value)[5:]  # without year and zone
    return value


def _lenient_problems(want: list[Event], have: list[Event], facts: Sequence[str]) -> Iterator[str]:
    for fact in facts:
        needed = sorted(repr(_fact(event, fact)) for event in want)
        shown = sorted(repr(_fact(event, fact)) for event in have)
        if "None" not in needed and needed != shown:
            yield f"{fact} {shown[0]}, was {needed[0]}: {_describe(have[0])}"


def _describe(event: Event) -> str:
    line = (event.get("at") or {}).get("line")
    reasons = [f"{r['entry']}: {r['text'][:60]}" for r in (event.get("reasons") or [])[:1]]
    return (
        f"{event['kind']} {event.get('function')} {event.get('file')}:{event.get('line_no')} "
        f"[{event.get('compile_id')}] rank {event.get('rank')} pid {event.get('pid')} "
        f"{event.get('time')} line {line}, {len(event.get('reasons') or [])} reasons {reasons}"
    )


# --- the matrix -----------------------------------------------------------------------------

SELECTED = (
    "2.13.0/s01_kvcache_std",
    "2.9.1/s01c_kvcache_layers_std",
    "2.5.1/s01b_kvcache_branch_std",
    "2.13.0/s03_tensor_props",
    "2.9.1/s06_type_id_verbose",
    "2.13.0/s10_breaks_capture",
    "2.5.1/s14_ranks",
    "2.13.0/s14_ranks_tee3",
    "2.9.1/s12_fullgraph_limit",
    "2.13.0/s12_fullgraph_limit_default",
    "2.13.0/s18_mixed_app",
    "2.9.1/s19_format_short",
    "2.13.0/s11_ro_cudagraphs_backend_default",
    "2.9.1/s21_cudagraph_emulated",
    "2.13.0/s24_compiled_autograd",
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One variant of one run: None differences where the variant does not suit."""

    problems: tuple[str, ...] | None
    error: str | None = None

    def __str__(self) -> str:
        if self.problems is None:
            return "-"
        return "ERROR" if self.error else str(len(self.problems) or "ok")


def check(variant: Variant, data: bytes, source: EventSource, original: list[Event]) -> Cell:
    """Mangles `data`, reads it through `source`, compares with the `original` events."""
    if not variant.suits(data):
        return Cell(None)
    try:
        mangled = source(variant.apply(data), "bot.log")
    except Exception as error:  # noqa: BLE001 - a crash is a result of the matrix
        return Cell((), f"{type(error).__name__}: {error}")
    return Cell(tuple(differences(variant, original, mangled)))


def chosen_runs(root: Path, pattern: str | None) -> dict[str, bytes]:
    """Label and content of the logs: those selected here, or all that `pattern` matches."""
    paths = sorted(root.glob("*/*.log"))
    labels = {f"{path.parent.name}/{path.stem}": path for path in paths}
    wanted = SELECTED if pattern is None else fnmatch.filter(labels, pattern)
    return {label: labels[label].read_bytes() for label in wanted if label in labels}


def print_matrix(cells: dict[str, dict[str, Cell]], labels: Sequence[str]) -> None:
    """Numbers the runs, prints a row per variant, then the first difference of each failure."""
    for number, label in enumerate(labels, 1):
        print(f"{number:3d}  {label}")
    width = max((len(name) for name in cells), default=0)
    print(" " * width + "".join(f"{number:6d}" for number in range(1, len(labels) + 1)))
    for name, row in cells.items():
        print(f"{name:{width}}" + "".join(f"{row[label]!s:>6}" for label in labels))
    for name, row in cells.items():
        for label, cell in row.items():
            if cell.error or cell.problems:
                first = cell.error or (cell.problems or ("",))[0]
                print(f"{name} x {label}: {first}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Mangles a selection of the corpus' logs and compares the events; status 1 on a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.variants", description=main.__doc__)
    parser.add_argument("root", type=Path, metavar="ROOT")
    parser.add_argument("--events", default="tests.truth:events_of_bytes", metavar="MODULE:FUNCTION")
    parser.add_argument("--variant", default="*", metavar="NAME", help="a glob of variant names")
    parser.add_argument("--runs", metavar="GLOB", help="such as '2.5.1/s0*' (default: a selection)")
    options = parser.parse_args(arguments)
    source = load_event_source(options.events)
    data = chosen_runs(options.root, options.runs)
    originals = {label: source(log, "bot.log") for label, log in data.items()}
    cells: dict[str, dict[str, Cell]] = {}
    for name in fnmatch.filter(VARIANTS, options.variant):
        cells[name] = {label: check(VARIANTS[name], log, source, originals[label]) for label, log in data.items()}
    print_matrix(cells, list(data))
    flat = [cell for row in cells.values() for cell in row.values() if cell.problems is not None]
    failed = [cell for cell in flat if cell.error or cell.problems]
    print(f"{len(flat) - len(failed)} of {len(flat)} cells ok")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
