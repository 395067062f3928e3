"""Says where parsed events differ from what torch itself did, as the corpus recorded it.

A corpus, one folder per torch version and run, holds raw logs and, beside each, a `truth.json` written
by hooks inside dynamo. `compare` takes the events a parser printed for one log and returns one
readable line per difference; an empty list means equal. What a log can show at all depends on
the environment of its run: `expected` says it.

    python -m tests.truth ROOT                             # runs `recompile-watch events`
    python -m tests.truth ROOT --events module:function    # calls function(data, name) in process

What is true but easy to get wrong (counted over all 254 runs of 2.5.1, 2.9.1 and 2.13.0):

Recompiles
    * One block per truth event, the refused attempt included. An exception `RecompileError:
      Recompiling function ...` repeats the block when TORCH_LOGS shows blocks, and is the only
      trace of it when not; the truth marks it `raised` and keeps no reasons (taken here from
      `exceptions`).
    * Every guard line stands for one reason, also with an empty text (`1/0: `, 2.5-2.9 when the
      backend differs).
    * TORCH_LOGS_TRACE_ID_FILTER (2.7+; 2.5 ignores it) hides blocks and limit warnings of
      other compiles. The attempt's own id is not in the truth; it is newest entry + 1.
    * s08_accum on 2.13.0 has no recompile at all: the setting that made it id-match is gone there.

Graph breaks: which log lines are one event (truth `graph_break_events`, in the same order)
    * `Graph break in user code at F:N` and `Graph break (user stack suppressed due to duplicate
      graph break) in user code at F:N` [__graph_breaks], 2.7+: each is exactly one event, without
      exception (2.13.0 s10: 20 + 2 = 22; capture 17 + 2 = 19; 2.9.1 s10: 17 + 2 = 19, capture
      15 + 2 = 17). The duplicate names no function.
    * `*** While handling this graph break, another graph break occurred: ***` (2.13) is inside
      the record of the first: no event of its own.
    * `Graph break: skip: from user code at:` [__graph_breaks] (2.5, 2.9; from convert_frame.py) is
      NOT in `graph_break_events` and has no other record: it is a break of its own, the whole
      frame is skipped. Its partner in the truth is a metric with fail_type "Unsupported".
      2.13 reports the same two places as `Graph break in user code` ("Failed to handle graph
      break gracefully. Skipping the function ..."), so they are in its list.
    * `Graph break: torch.compile cannot properly resume from this graph break` (2.10+) does not
      occur in the corpus. torch prints it only `if not e.logged`, that is only for a break that
      has had no other record: like `skip:`, an event of its own.
    * `Graph break: from user code at:` [__graph_breaks] (2.5): one event each. Its function is the
      last `File` line before `Traceback`, its reason the last `torch._dynamo.exc.X: ` line.
      With 2.5's repeats, `Unsupported break in user code at F:N (details suppressed)` (no artifact
      tag, only with +dynamo), they equal counters["graph_break"] exactly (s10: 15 + 2 = 17).
      Data-dependent jumps print nothing in 2.5 and are in no counter.
    * ``Graph break from `Tensor.item()` `` (W, no artifact tag, default logs too; once a process)
      belongs to the `[__graph_breaks]` record that follows it, same compile id and line. The line
      `Graph break: from user code at:` inside that record is not a record: only with the
      [__graph_breaks] tag is that text an event.
    * `UserWarning: Dynamo does not know how to trace the builtin` / `Graph break due to unsupported
      builtin` (default logs) belong to the break record that follows them, too.
    * The truth's `fn` is the frame being compiled; the log's traceback ends at the inlined callee
      that broke (`helper` in `gb_inner_break`) and prints `torch_dynamo_resume_in_F_at_N` as `F`.
    * TORCH_TRACE: artifact `dynamo_graph_break_reason`, one per event, 2.7+ (none in 2.5).

Truth files
    * `graph_break_events` missing (older hooks) or null (2.5): then only bounds from
      counters["graph_break"] are checked. In 2.7+ that counter misses jumps and skipped frames.
    * torchrun: `.rank0.truth.json`, `.rank1.truth.json`, compared with the events of that rank.
    * TORCH_TRACE of a refused compile: 2.9+ has a failed compilation_metrics, 2.5 nothing.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import importlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

Event: TypeAlias = dict[str, Any]
EventSource: TypeAlias = Callable[[bytes, str], list[Event]]
Place: TypeAlias = tuple[str | None, str | None, int | None]
View: TypeAlias = Literal["log", "trace", "logs_out"]

COMPARED_REASONS = 2  # the truth keeps no more than two reasons of an event
ENTRY = re.compile(r"^(!?\d+(?:/\d+){1,2}(?:_\d+)?): ?")
RESUME = re.compile(r"^torch_dynamo_resume_in_(.*)_at_\d+$")
PARAMETER_HINT = re.compile(r"\.? Guard failed on a parameter, consider using .*$", re.DOTALL)
LIMIT_ERRORS = ("FailOnRecompileLimitHit", "CacheLimitExceeded", "RecompileLimitExceeded")


# --- the corpus -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the corpus: its log, its truth, and how it was started.

    version: torch version, such as "2.13.0".
    truths: rank -> truth; rank None for a run without torchrun.
    trace: folder of TORCH_TRACE files, where the corpus kept it.
    logs_out: the file TORCH_LOGS_OUT wrote, a copy of the log's torch lines.
    """

    version: str
    name: str
    log: Path
    trace: Path | None
    logs_out: Path | None
    truths: Mapping[int | None, dict[str, Any]]
    meta: dict[str, Any]

    @property
    def label(self) -> str:
        """Version and name, such as "2.13.0/s01_kvcache_std"."""
        return f"{self.version}/{self.name}"

    def truth(self) -> dict[str, Any] | list[dict[str, Any]]:
        """The truth as `compare` takes it: a list in rank order for torchrun."""
        if set(self.truths) == {None}:
            return self.truths[None]
        return [self.truths[rank] for rank in sorted(r for r in self.truths if r is not None)]

    def views(self) -> Iterator[tuple[View, list[Path]]]:
        """Each place that shows this run, with its files; each is complete by itself."""
        yield "log", [self.log]
        if self.trace is not None:
            yield "trace", sorted(path for path in self.trace.iterdir() if path.is_file())
        if self.logs_out is not None:
            yield "logs_out", [self.logs_out]


def corpus_runs(root: Path) -> Iterator[Run]:
    """Every run below `root` that has a truth, sorted; `root` holds one folder per version."""
    for meta_path in sorted(root.glob("*/*.meta.json")):
        name = meta_path.name.removesuffix(".meta.json")
        folder = meta_path.parent
        truths: dict[int | None, dict[str, Any]] = {}
        for path in sorted(folder.glob(f"{name}.truth.json")):
            truths[None] = json.loads(path.read_text())
        for path in sorted(folder.glob(f"{name}.rank*.truth.json")):
            rank = int(path.name.removeprefix(f"{name}.rank").removesuffix(".truth.json"))
            truths[rank] = json.loads(path.read_text())
        log = folder / f"{name}.log"
        if truths and log.exists():
            trace = folder / f"{name}.trace"
            logs_out = folder / f"{name}.torch_logs_out.txt"
            yield Run(
                version=folder.name,
                name=name,
                log=log,
                trace=trace if trace.is_dir() else None,
                logs_out=logs_out if logs_out.exists() else None,
                truths=truths,
                meta=json.loads(meta_path.read_text()),
            )


# --- what a view can show -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expectation:
    """What one view of a run shows of the truth.

    recompiles: "all" blocks, only those "raised" as RecompileError, or "none".
    refused: whether a block refused by a limit can be told from the others.
    limits: "exact", or "at_most" where the view may leave them out (traces).
    graph_breaks: "exact", or "at_most" where only hints are printed.
    repeats: whether repeated graph breaks are printed (2.5 needs +dynamo).
    exceptions: whether exceptions that the application caught and printed are in it.
    only_compile_id: TORCH_LOGS_TRACE_ID_FILTER in force, such as "6/3".
    torn: ranks shared a pipe; events marked partial are excused.
    """

    recompiles: Literal["all", "raised", "none"]
    refused: bool = True
    limits: Literal["exact", "at_most"] = "exact"
    graph_breaks: Literal["exact", "at_most"] = "at_most"
    repeats: bool = True
    exceptions: bool = True
    only_compile_id: str | None = None
    torn: bool = False


def expected(meta: Mapping[str, Any], view: View = "log") -> Expectation:
    """What `view` of the run that `meta` describes can show."""
    env: Mapping[str, str] = meta.get("env") or {}
    version = version_of(meta)
    settings = {word.strip() for word in env.get("TORCH_LOGS", "").split(",")}
    names = {word.lstrip("+") for word in settings}
    debug = bool({"+dynamo", "+torch._dynamo", "+all"} & settings)
    if view == "trace":
        return Expectation(
            recompiles="all",
            refused=version >= (2, 7),
            limits="at_most",
            graph_breaks="exact" if version >= (2, 7) else "at_most",
            exceptions=False,
        )
    blocks = debug or bool({"recompiles", "recompiles_verbose"} & names)
    filter_ids = env.get("TORCH_LOGS_TRACE_ID_FILTER")
    return Expectation(
        recompiles="all" if blocks else "raised",
        graph_breaks="exact" if debug or "graph_breaks" in names else "at_most",
        repeats=debug or version >= (2, 7),
        exceptions=view == "log",
        only_compile_id=filter_ids.strip("[]") if filter_ids and version >= (2, 7) else None,
        torn=meta["name"].endswith("_pipe"),
    )


def version_of(meta: Mapping[str, Any]) -> tuple[int, int]:
    """Major and minor torch version: "2.13.0" is (2, 13)."""
    major, minor = str(meta["torch"]).split(".")[:2]
    return int(major), int(minor)


# --- the truth, in the words of events ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reason:
    """One failed guard: `entry` such as "6/0" (None up to 2.3) and the guard expression."""

    entry: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.entry}: {self.text}"


@dataclass(frozen=True, slots=True)
class Block:
    """One recompile of the truth; `reasons` are at most the first two, None if unrecorded."""

    place: Place
    thread: str
    refused: bool
    raised: bool
    n_reasons: int | None
    reasons: tuple[Reason, ...] | None

    @property
    def compile_id(self) -> str | None:
        """The attempt that printed the block: the newest entry's id plus one."""
        entries = [r.entry.split("_")[0] for r in self.reasons or () if r.entry]
        if not entries:
            return None
        head, _, _ = entries[0].rpartition("/")
        return f"{head}/{max(int(e.rpartition('/')[2]) for e in entries) + 1}"


@dataclass(frozen=True, slots=True)
class Break:
    """One graph break of the truth; `reason` is the line that names its type."""

    file: str | None
    reason: str
    function: str


def guard_reason(raw: str) -> Reason:
    """`raw` as torch keeps it ("6/0: x == 1   # source  # file:1 in f (HINT: ...)\\nUser stack
    trace: ...") without all that torch appends to the guard."""
    head = raw.split("\nUser stack trace:", maxsplit=1)[0]
    match = ENTRY.match(head)
    entry = match[1] if match else None
    code = head[match.end() :] if match else head
    code = code[: comment_start(code)]
    return Reason(entry, code.split(" (HINT: ")[0].strip())


def comment_start(code: str) -> int:
    """Where torch's "  # source" begins; a "  # " inside a string is part of the guard."""
    quote = ""
    index = 0
    while index < len(code):
        char = code[index]
        if quote and char == "\\":
            index += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif code.startswith("  # ", index):
            return index
        index += 1
    plain = code.find("  # ")  # unbalanced quote, as in "to be a tensor type, ' but found"
    return plain if quote and plain >= 0 else len(code)


def truth_blocks(truth: Mapping[str, Any]) -> list[Block]:
    """The recompiles of a truth in order."""
    raised = [str(item["message"]) for item in truth.get("exceptions") or () if str(item["type"]).endswith("RecompileError")]
    blocks = []
    for item in truth["events"]:
        if item["kind"] != "recompile":
            continue
        reasons = item.get("reasons")
        count = item.get("n_reasons")
        if "raised" in item:
            reasons, count = _raised_reasons(item, raised)
        blocks.append(
            Block(
                place=(item["fn"], item["file"], item["line"]),
                thread=item["thread"],
                refused=bool(item.get("blocked_by_limit")),
                raised="raised" in item,
                n_reasons=count,
                reasons=None if reasons is None else tuple(map(guard_reason, reasons)),
            )
        )
    return blocks


def _raised_reasons(item: Mapping[str, Any], messages: Sequence[str]) -> tuple[list[str] | None, int | None]:
    start = f"Recompiling function {item['fn']} in {item['file']}:{item['line']}"
    for message in messages:
        lines = message.split("\n")
        if lines[0] == start:
            bullets = [line.removeprefix("    - ") for line in lines if line.startswith("    - ")]
            reasons = [bullet for bullet in bullets if ENTRY.match(bullet)]
            return reasons[:COMPARED_REASONS], len(reasons)
    return None, None


def truth_breaks(truth: Mapping[str, Any], version: tuple[int, int]) -> list[Break] | None:
    """The graph breaks of a truth in order, None where the hooks did not record them."""
    listed = truth.get("graph_break_events")
    if listed is None:
        return None
    breaks = [Break(item["file"], type_line(item["reason"]), original_name(item["fn"])) for item in listed]
    return breaks + (skipped_frames(truth) if version < (2, 10) else [])


def skipped_frames(truth: Mapping[str, Any]) -> list[Break]:
    """Frames given up as a whole: a record of its own up to 2.9, in the list of breaks later."""
    return [
        Break(
            item.get("co_filename"),
            str(item["fail_reason"]).split("\n", maxsplit=1)[0],
            original_name(item["co_name"]),
        )
        for item in truth["metrics"]
        if item.get("fail_type") == "Unsupported" and item.get("co_name")
    ]


def type_line(lines: Sequence[str]) -> str:
    """The line of a break's reason that names its type, below 2.13's introduction to it."""
    if lines and lines[0].endswith(":") and len(lines) > 1:
        return next((line for line in lines[1:] if line.strip()), lines[0])
    return lines[0] if lines else ""


def original_name(function: str) -> str:
    """The user's function behind a resume function: tracebacks print it instead."""
    match = RESUME.match(function)
    return original_name(match[1]) if match else function


# --- comparing ------------------------------------------------------------------------------


def compare(
    events: list[Event],
    truth: dict[str, Any] | list[dict[str, Any]],
    meta: Mapping[str, Any],
    view: View = "log",
) -> list[str]:
    """Each difference between `events` and `truth` as one line; empty means equal.

    `truth` is a list for torchrun: its n-th item is compared with the events of rank n.
    """
    expectation = expected(meta, view)
    if isinstance(truth, dict):
        return _compare_one(events, truth, meta, expectation)
    compared = ("recompile", "recompile_limit_hit", "graph_break")
    problems = [f"{event['kind']} without rank at line {_line(event)}" for event in events if event.get("rank") is None and event["kind"] in compared]
    for rank, one in enumerate(truth):
        mine = [event for event in events if event.get("rank") == rank]
        found = _compare_one(mine, one, meta, expectation)
        problems += [f"rank {rank}: {problem}" for problem in found]
    return problems


def _compare_one(events: list[Event], truth: Mapping[str, Any], meta: Mapping[str, Any], want: Expectation) -> list[str]:
    problems = _compare_recompiles(events, truth, want)
    problems += _compare_limits(events, truth, want)
    problems += _compare_breaks(events, truth, version_of(meta), want)
    return problems + (_compare_exceptions(events, truth) if want.exceptions else [])


def _compare_recompiles(events: list[Event], truth: Mapping[str, Any], want: Expectation) -> list[str]:
    blocks = [block for block in truth_blocks(truth) if _shown(block, want)]
    found = [event for event in events if event["kind"] == "recompile"]
    problems = []
    places = sorted({b.place for b in blocks} | {_place(e) for e in found}, key=repr)
    for place in places:
        mine = [event for event in found if _place(event) == place]
        theirs = [block for block in blocks if block.place == place]
        if len(mine) != len(theirs):
            problems.append(f"{_name(place)}: {len(mine)} recompile events, truth {len(theirs)}")
            continue
        if len({block.thread for block in theirs}) > 1:  # no common order between threads
            mine = sorted(mine, key=_event_key)
            theirs = sorted(theirs, key=_block_key)
        for number, (event, block) in enumerate(zip(mine, theirs, strict=True), 1):
            where = f"{_name(place)} recompile {number} (line {_line(event)})"
            problems += [f"{where}: {p}" for p in _compare_block(event, block, want)]
    return problems


def _shown(block: Block, want: Expectation) -> bool:
    if want.only_compile_id is not None and block.compile_id != want.only_compile_id:
        return False
    return want.recompiles == "all" or (want.recompiles == "raised" and block.raised)


def _compare_block(event: Event, block: Block, want: Expectation) -> list[str]:
    problems = []
    if want.refused and bool(event.get("refused")) != block.refused:
        problems.append(f"refused is {event.get('refused')}, truth {block.refused}")
    if block.reasons is None or (want.torn and event.get("partial")):
        return problems
    reasons: list[dict[str, Any]] = event.get("reasons") or []
    if len(reasons) != block.n_reasons:
        problems.append(f"{len(reasons)} reasons, truth {block.n_reasons}")
    for number, (got, true) in enumerate(zip(reasons, block.reasons, strict=False), 1):
        if got["entry"] != true.entry:
            problems.append(f"reason {number}: entry {got['entry']!r}, truth {true.entry!r}")
        if got["text"] not in {true.text, PARAMETER_HINT.sub("", true.text)}:
            problems.append(f"reason {number}: text {got['text']!r}, truth {true.text!r}")
    return problems


def _compare_limits(events: list[Event], truth: Mapping[str, Any], want: Expectation) -> list[str]:
    true: Counter[tuple[Place, str]] = Counter()
    if want.only_compile_id is None:  # the corpus filters no compile that hits a limit
        for item in truth["events"]:
            if item["kind"] == "limit_hit":
                true[(item["fn"], item["file"], item["line"]), item["limit_type"]] += 1
    got: Counter[tuple[Place, str]] = Counter(
        (_place(event), str(event.get("limit_name"))) for event in events if event["kind"] == "recompile_limit_hit"
    )
    problems = []
    for key in sorted(true.keys() | got.keys(), key=repr):
        if got[key] > true[key] or (got[key] < true[key] and want.limits == "exact"):
            place, name = key
            problems.append(f"{_name(place)}: {got[key]} limit hits of {name}, truth {true[key]}")
    return problems


def _compare_exceptions(events: list[Event], truth: Mapping[str, Any]) -> list[str]:
    """Exceptions that the scenarios caught and printed once each."""
    true: Counter[str] = Counter()
    for item in truth.get("exceptions") or ():
        if str(item["type"]).endswith(LIMIT_ERRORS):
            true["recompile_limit_error"] += 1
        elif str(item["message"]).startswith("Detected recompile when torch.compile stance"):
            true["recompile_forbidden"] += 1
    got = Counter(str(event["kind"]) for event in events)
    return [f"{got[kind]} {kind} events, truth {true[kind]}" for kind in ("recompile_limit_error", "recompile_forbidden") if got[kind] != true[kind]]


def _compare_breaks(
    events: list[Event],
    truth: Mapping[str, Any],
    version: tuple[int, int],
    want: Expectation,
) -> list[str]:
    found = [event for event in events if event["kind"] == "graph_break"]
    breaks = truth_breaks(truth, version)
    if want.graph_breaks == "exact" and breaks is not None:
        return _align_breaks(found, breaks)
    low, high = _break_bounds(truth, breaks, version, want)
    problems = []
    if len(found) < low or (high is not None and len(found) > high):
        limit = "any" if high is None else high
        problems.append(f"{len(found)} graph_break events, truth {low} to {limit}")
    if want.graph_breaks == "exact":
        problems += _missing_reasons(found, truth, version)
    return problems


def _break_bounds(
    truth: Mapping[str, Any],
    breaks: list[Break] | None,
    version: tuple[int, int],
    want: Expectation,
) -> tuple[int, int | None]:
    if breaks is not None:
        return 0, len(breaks)
    counted: Mapping[str, int] = truth["counters"].get("graph_break") or {}
    total = sum(counted.values())
    if version >= (2, 7):  # jumps are printed but not counted
        return (total if want.graph_breaks == "exact" else 0), None
    skipped = len(skipped_frames(truth))
    if want.graph_breaks == "at_most":
        return 0, total + skipped
    return (total if want.repeats else len(counted)) + skipped, total + skipped


def _missing_reasons(found: list[Event], truth: Mapping[str, Any], version: tuple[int, int]) -> list[str]:
    if version >= (2, 7):
        return []
    texts = [_break_text(event) for event in found]
    counted: Mapping[str, int] = truth["counters"].get("graph_break") or {}
    reasons = [reason.split("\n")[0] for reason in counted]
    reasons += [skip.reason for skip in skipped_frames(truth)]
    return [f"no graph_break with reason {reason!r}" for reason in reasons if not any(reason.strip() in text for text in texts)]


def _align_breaks(found: list[Event], breaks: list[Break]) -> list[str]:
    """Pairs each break of the truth with the first event left that names its type and file."""
    problems = []
    left = list(found)
    for number, true in enumerate(breaks, 1):
        match = next((event for event in left if _is_break(event, true)), None)
        if match is None:
            problems.append(f"graph break {number} of {len(breaks)} ({true.function}, {true.file}, {true.reason!r}): no such event")
        else:
            left.remove(match)
    problems += [
        f"graph_break too many at line {_line(event)}: {event.get('function')} {event.get('file')}:{event.get('line_no')} {_break_text(event)[:80]!r}"
        for event in left
    ]
    known = {true.function for true in breaks}
    for event in found:
        function = event.get("function")
        if function is not None and original_name(function) not in known:
            problems.append(f"graph_break at line {_line(event)}: no function {function} in truth")
    return problems


def _is_break(event: Event, true: Break) -> bool:
    same_file = true.file is None or event.get("file") == true.file
    return same_file and true.reason.strip() in _break_text(event)


def _break_text(event: Event) -> str:
    reasons: list[dict[str, Any]] = event.get("reasons") or []
    return str(reasons[0]["text"]) if reasons else ""


def _place(event: Event) -> Place:
    return event.get("function"), event.get("file"), event.get("line_no")


def _name(place: Place) -> str:
    function, file, line_no = place
    return f"{function} ({file}:{line_no})"


def _line(event: Event) -> int | None:
    at: Mapping[str, int] = event.get("at") or {}
    return at.get("line")


def _event_key(event: Event) -> str:
    reasons: list[dict[str, Any]] = event.get("reasons") or []
    return repr((len(reasons), [(r["entry"], r["text"]) for r in reasons[:COMPARED_REASONS]]))


def _block_key(block: Block) -> str:
    return repr((block.n_reasons, [(r.entry, r.text) for r in block.reasons or ()]))


# --- getting events -------------------------------------------------------------------------


def events_of_path(path: Path) -> list[Event]:
    """What `recompile-watch events PATH` prints."""
    beside = Path(sys.executable).with_name("recompile-watch")
    program = str(beside) if beside.exists() else shutil.which("recompile-watch")
    start = [program] if program else [sys.executable, "-m", "recompile_watch"]
    command = [*start, "events", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 2, 3) or "Traceback (most recent" in done.stderr:
        message = f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()[-400:]}"
        raise RuntimeError(message)
    return [json.loads(line) for line in done.stdout.splitlines()]


def events_of_bytes(data: bytes, name: str) -> list[Event]:
    """What `recompile-watch events` prints for a file called `name` with this content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_bytes(data)
        return events_of_path(path)


def load_event_source(spec: str) -> EventSource:
    """The callable that "module:function" names; it takes (data, name), returns events."""
    module, _, function = spec.partition(":")
    source: EventSource = getattr(importlib.import_module(module), function)
    return source


def compare_run(run: Run, source: EventSource) -> Iterator[tuple[View, list[str]]]:
    """Each view of `run` with its differences from the truth."""
    for view, paths in run.views():
        events: list[Event] = []
        for path in paths:
            events += source(path.read_bytes(), path.name)
        yield view, compare(events, run.truth(), run.meta, view)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares every run below ROOT; status 1 when one differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=main.__doc__)
    parser.add_argument("root", type=Path, metavar="ROOT")
    parser.add_argument("--events", default="tests.truth:events_of_bytes", metavar="MODULE:FUNCTION")
    parser.add_argument("--runs", default="*", metavar="GLOB", help="such as '2.5.1/s1*'")
    parser.add_argument("--all", action="store_true", help="every difference, not the first ones")
    options = parser.parse_args(arguments)
    source = load_event_source(options.events)
    write = functools.partial(print, flush=True)
    total = equal = 0
    for run in corpus_runs(options.root):
        if not fnmatch.fnmatch(run.label, options.runs):
            continue
        total += 1
        views = [(view, problems) for view, problems in compare_run(run, source) if problems]
        equal += not views
        for view, problems in views:
            write(f"{run.label} [{view}]: {len(problems)} differences: {problems[0]}")
            for problem in problems[1 : None if options.all else 1]:
                write(f"    {problem}")
    write(f"{equal} of {total} runs equal")
    return 0 if equal == total else 1


if __name__ == "__main__":
    sys.exit(main())
