"""Readers: the forms of torch's records that need code, from a record's fields to its events."""

import re
from collections.abc import Callable

from recompile_watch.core.causes import parse_reason
from recompile_watch.core.events import Reason
from recompile_watch.core.exception_text import MAX_MESSAGE, hint_of, what_is_wrong, with_detail
from recompile_watch.core.guarded_code import guarded_code
from recompile_watch.core.late import pattern
from recompile_watch.core.prefix_grammar import GLOG
from recompile_watch.core.reasons import ENTRY_START, Reasons
from recompile_watch.core.records import Record
from recompile_watch.core.rules import captures
from recompile_watch.core.sightings import Fields, Sighting, cut_values, decode, sighting, text_or_none
from recompile_watch.core.source_lines import torch_of_message
from recompile_watch.core.stack_frames import (
    CALLER,
    called_from,
    caller,
    caused_by,
    code_at,
    exported,
    frames,
    stack_of,
    statement_at,
    traced_elsewhere,
    user_code,
    users_own,
)
from recompile_watch.core.tracebacks import REPORTED, backend_of, failure_of, is_aside, is_report, operation_of

_NO_GUARD_YET = pattern(rb"-? ?!?\d*(?:/\d*)?(?:/\d*)?:?")  # a reason that the end of the log cut in front of its guard
# A guard in somebody's words, and one that they pressed into the line of the head, behind three dots.
_QUOTED = pattern(
    rb"(?:[\"`\x9c]|^\s*)(?:[^`\"\n]{0,200} )??(?P<guard>(?:\d+/\d+: )?(?:tensor '[^`\"\n]+? mismatch|GLOBAL_STATE changed: )[^`\"\n]*)"
)
_PRESSED = pattern(rb"^ ?(?:\.\.\.|\xe2\x80\xa6) (?P<guard>[^`\"\n]{2,300})")
_MISS = pattern(rb"Cache miss due to (?:[^\n]{1,300}? previous key sizes=\[[\d,]*\]|[^\n]{1,300})")


def read_plain(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    cut = cut_values(record)
    return [sighting(source, record, {**fields, **dict.fromkeys(cut)}, partial=True) if cut else sighting(source, record, fields)]


def _read_recompile(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    """A recompile block of any version: one reason per cache entry, newest first."""
    function = text_or_none(fields.get("function"))
    reasons: list[Reason] = []
    if record.match is not None:
        for line in _reasons_on_head(record.texts[0][record.match.end() :]):
            reasons += reasons_of.on([line], function)
    quoted = _QUOTED.search(record.texts[0]) if record.match is None else None
    if quoted is not None:
        reasons.append(parse_reason(decode(quoted["guard"]).strip(" ."), function))
    lines = record.texts[1:] if record.match is not None or quoted is not None else record.texts
    if record.cut and record.unterminated and lines and _NO_GUARD_YET.fullmatch(lines[-1].strip()) is not None:
        lines = lines[:-1]
    reasons += reasons_of.on(lines, function)
    fields = {**fields, **guarded_code(next((line for line in lines if line.lstrip().startswith(b"- ")), b""))}
    if any(reason.entry is not None for reason in reasons):  # then the others are lines of a user stack
        reasons = [reason for reason in reasons if reason.entry is not None]
    is_sure = bool(reasons or (fields.get("file") and fields.get("line_no")) or record.head.torch or record.unterminated)
    if record.rule.event == "recompile" and not is_sure:
        return []  # another program compiles functions, too
    index = _index(record)
    cut = (record.cut and record.unterminated) or ((record.cut or record.torn) and index is not None and len(reasons) < index)
    partial = cut or (record.rule.event == "recompile" and (not reasons or record.match is None or function is None))
    fields = {"function": None, "file": None, "line_no": None, **fields}
    if record.cut and record.unterminated and len(record.texts) == 1:  # the head itself is cut, its last number may go on
        fields["file"] = fields["file"] if fields["line_no"] is not None else None
        fields["line_no"] = None
        if function is not None and record.texts[0].endswith(function.encode()):
            fields["function"] = None
    if fields["line_no"] is None and GLOG.match(record.head.torch) is not None:  # there torch prints no path without the line
        partial, fields["file"] = partial or fields["file"] is not None, None
    return [sighting(source, record, fields, reasons=tuple(reasons), partial=partial)]


def _reasons_on_head(rest: bytes) -> list[bytes]:
    """Reasons that stand behind the head on the same line: newlines lost, or the tuple repr of torch 2.1."""
    old = re.search(rb"triggered by the following guard failures?(?:\(s\))?: (?P<list>[^\s-].*)", rest, re.DOTALL)
    if old is None:
        if (pressed := _PRESSED.match(rest)) is not None:
            return [b"- " + pressed["guard"]]
        parts = ENTRY_START.split(rest)
        return parts[1:] if len(parts) > 1 else [b"- " + p for p in re.split(rb"\s{2,}- (?!  )", rest)[1:]]
    opened = rest[max(old.start() - 1, 0) : old.start()]  # the quote of a string in a tuple; the lines of the program may stand behind its end
    end = re.search(rb"(?<!\\)" + opened + rb"\)", old["list"]) if opened in (b"'", b'"') else None
    text = re.sub(rb"[\"']\)\s*$", b"", old["list"]) if end is None else old["list"][: end.start()]
    items = re.findall(rb"(?:\"((?:[^\"\\]|\\.)+)\"|'((?:[^'\\]|\\.)+)')(?=, |\])", text) if text.startswith(b"[") else []
    return [b"- " + (a or b).replace(b"\\'", b"'") for a, b in items] or [b"- " + text.replace(b"\\'", b"'").lstrip(b"[")]


def _index(record: Record) -> int | None:
    """How many entries the frame has, by the compile id that is being tried: ``[6/8]`` has eight."""
    cid = record.head.compile_id
    tail = cid.rpartition(b"/")[2].partition(b"_")[0] if cid and b"/" in cid else b""
    return int(tail) if tail.isdigit() else None


def _read_autograd_miss(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    """What compiled autograd lacks a graph for: a node, or sizes. It names no function, and no guard."""
    fields = {name: value for name, value in fields.items() if name != "reason"}
    texts = [match[0].decode("utf-8", "replace") for text in record.texts if (match := _MISS.search(text)) is not None]
    reasons = tuple(Reason(None, text, "other" if "new autograd node" in text else "size_mismatch") for text in texts)
    return [sighting(source, record, fields, reasons=reasons, partial=not record.head.headed)]


def _read_limit_hit(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    if not (record.head.headed or record.cut) and fields.get("function") is None and fields.get("reason") is None:
        return []  # somebody quotes the first line
    raw = fields.pop("reason", None)
    function = text_or_none(fields.get("function"))
    reasons: tuple[Reason, ...] = ()
    if isinstance(raw, str):
        whole = _BROKEN_GUARD.sub(lambda end: "" if end["next"] in ".[" else " ", raw)
        text = re.split(r"\s+(?:User stack trace:|[Tt]o log all recompilation|[Tt]o diagnose recompilation)", whole, maxsplit=1)[0].strip(" *")
        items = re.findall(r"\"([^\"]+)\"|'((?:[^'\\]|\\.)+)'", text) if text.startswith("[") else []
        reasons = tuple(parse_reason(a or b, function) for a, b in items) or (parse_reason(text, function),)
        fields |= guarded_code(text.encode())
    fields |= torch_of_message(record.message())
    partial = any(fields.get(name) is None for name in record.rule.needs) or (not record.ended and (record.cut or not reasons))
    return [sighting(source, record, fields, reasons=reasons, partial=partial)]


_BROKEN_GUARD = pattern(r"\n[ \t]+(?=(?P<next>\S))")  # at a page's width, by the person who kept it


def _read_graph_break(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    message = record.sure_message()
    if _UNFILLED.search(message) is not None:
        return []  # the template of the message, in torch's source
    # Dynamo's own frames come behind "Traceback" in torch before 2.6; the user's are those in front of it.
    user = frames(message.partition(b"Traceback (most recent call last):")[0] or message)
    if record.match is None and b"ser code" not in message:  # "User code traceback", "from user code": cut off with the head
        user = []
    same = [frame for frame in user if fields.get("file") in (None, frame[0]) and fields.get("line_no") in (None, frame[1])]
    stack = users_own(user[: user.index(same[-1]) + 1]) if same else []
    if stack:
        fields["file"], fields["line_no"], fields["function"] = stack[-1]
        fields |= called_from(stack)
    reason = fields.get("reason")
    if isinstance(reason, str):
        fields["reason"] = _first_reason_line(reason)
    if (operation := operation_of(message)) not in (None, fields.get("reason")):
        fields["operation"] = operation
    if (further := _FURTHER_BREAK.search(message)) is not None:
        fields["not_resumed"] = decode(further["reason"]).strip()
    fields |= hint_of(decode(message)) | statement_at(message, stack[-1:])
    is_whole = fields.get("file") is not None or (not record.unterminated and _HINT_WITHOUT_PLACE.search(message) is not None)
    return [sighting(source, record, fields, partial=not is_whole or record.match is None or (record.cut and record.unterminated))]


_HINT_WITHOUT_PLACE = pattern(rb"to include these operations in the captured graph\.\s*\Z")  # torch before 2.6
# Why torch cannot resume behind the break that it tells of: a loop, a context manager.
_FURTHER_BREAK = pattern(rb"another graph break occurred:[ \t*]{0,9}\n(?:[ \t]{0,40}\n){0,3}[ \t]{0,40}(?P<reason>[^\s*][^\n]{1,200})")
_UNFILLED = pattern(rb"(?m)^\s*%s\s*$")


def _first_reason_line(reason: str) -> str:
    """torch's short name of the break: the line below the 2.13 introduction, else the first line."""
    lines = [line.strip() for line in reason.split("\n") if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Encountered graph break when attempting to trace"):
        return lines[1]
    if len(lines) > 1 and lines[0].endswith("Graph break encountered:"):
        return lines[1]
    return lines[0] if lines else ""


def _read_cudagraph_skip(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    reason, fields["instances"], has_place = why_skipped(decode(record.message()))
    if not record.head.torch and _TELLS_OF_SKIP.match(reason) is not None:
        return []
    fields["reason"] = reason
    if stack := frames(record.sure_message()):
        fields["file"], fields["line_no"], fields["function"] = stack[-1]
    partial = not reason or (record.cut and record.unterminated) or (has_place and fields.get("file") is None)
    return [sighting(source, record, fields, partial=partial)]


def why_skipped(message: str) -> tuple[str, int | None, bool]:
    """Why torch captures no CUDA graph, in how many instances, and whether it says behind that where the reason stands."""
    found = re.search(r"(?:skipping|disabling) cudagraphs (?:for backward )?due to (?P<reason>.*)", re.sub(r"\s+\n", "\n", message), re.DOTALL)
    reason = found["reason"] if found else ""
    while (again := re.match(r"(?:skipping|disabling) cudagraphs due to ", reason)) is not None:
        reason = reason[again.end() :]
    head, tail, _ = reason.partition("Found from")
    head = head.strip().split("\n")[0]
    if tail:
        head = head.removesuffix(".").rstrip()
    instances = re.search(r"\s*\((\d{1,9}) instances?\)", head)
    if instances:
        head = head[: instances.start()] + head[instances.end() :]
    return head.strip(), int(instances[1]) if instances else None, bool(tail)


_TELLS_OF_SKIP = pattern(r"mutated inputs(?:,| [a-z])")  # somebody's sentence goes on where torch's ends


_MARKS_BELOW = pattern(rb"\n[ \t]*[~^]+[ \t]*\Z")  # of the place in the line above


def _read_overwritten(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    """The frames inside ``Stack trace: {…}. To prevent overwriting``; the last one made the output. Of a gradient torch says so."""
    message = record.message()
    begin = record.match.start() if record.match is not None else 0
    is_gradient = b"accessing gradient tensor" in message[begin:]
    fields |= {"output": "gradient"} if is_gradient else {}
    body = message[begin:].partition(b"This can happen with" if is_gradient else b"To prevent overwriting")
    stack = frames(re.sub(rb"\.\s*$", b"", body[0])) if body[1] else []  # a cut stack does not show its last frame
    if stack:
        own = users_own(stack)
        fields["file"], fields["line_no"], fields["function"] = own[-1]
        text = body[0].rstrip().removesuffix(b".")
        code = _MARKS_BELOW.sub(b"", text).rpartition(b"\n")[2] if own == stack else code_at(text, own[-1])
        fields["message"] = decode(code).strip()[:MAX_MESSAGE] or None if b'File "' not in code else None
    return [sighting(source, record, fields, partial=record.match is None or (not body[1] and b"This can happen" not in message))]


def _read_exception(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    name = fields.get("exception")
    if isinstance(name, str):
        fields["exception"] = name.rpartition(".")[2]
    if fields.get("function") is None and (stack := user_code(record.sure_message())) is not None:
        fields["file"], fields["line_no"], fields["function"] = stack[-1]
        fields |= statement_at(record.sure_message(), stack[-1:]) | called_from(stack)
    elif fields.get("function") is None and fields.get("file") is None:
        cause = caused_by(record.sure_message())
        fields |= cause._asdict() if cause is not None else caller(record.sure_message())
    message = record.message()
    fields |= backend_of(message) | hint_of(decode(message), name) | exported(message) | torch_of_message(message)
    seen = sighting(source, record, fields)
    return [seen._replace(rule=REPORTED) if is_report(record.texts[0]) else seen]


def _read_compile_error(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    """An exception of the compiler, with what it says: of an exception that wraps another one what that says."""
    if is_aside(record.head.torch, record.message()) or (
        _GUARD_MADE.search(record.head.torch) is not None and _STACK_ALONE.match(record.texts[0]) is not None
    ):
        return []
    name = fields.get("exception")
    said = (
        re.search(rb"\b%s:[ \t]*(?P<text>[^\n]*)(?P<more>\n[^\n]*)?" % re.escape(name.encode()), record.message()) if isinstance(name, str) else None
    )
    known = fields.get("message")
    if said is not None and (known in (None, decode(said["text"])) or (isinstance(known, str) and known.startswith("Failed running "))):
        fields["message"] = (
            what_is_wrong(decode(said["text"]).strip(), decode(said["more"] or b"").strip(), decode(record.message()))[:MAX_MESSAGE] or None
        )
    at = fields.get("message")
    if isinstance(at, str) and _NO_MESSAGE.fullmatch(at) is not None:
        return []
    fields["message"] = with_detail(at, decode(record.message())) if isinstance(at, str) else at
    return _read_exception(source, reasons_of, record, fields)


def _read_traceback(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    """A traceback of the compiler whose exception no other rule knows; nothing for any other traceback."""
    if is_aside(record.head.torch, record.message()):
        return []
    failure = failure_of(record.texts, is_cut=record.cut, gave_way=record.gave_way)
    is_failure = failure is not None and (failure.exception is not None or _GUARD_MADE.search(record.head.torch) is None)
    if not is_failure and not record.gave_way:
        return []
    whole = record.message()
    told = {**caller(whole), **exported(whole), **traced_elsewhere(whole), **torch_of_message(whole), "stack": stack_of(whole)}
    calls = sighting(source, record, told)._replace(rule=CALLER)
    if failure is None or not is_failure:
        return [calls]
    message = decode(whole)
    fields["message"] = with_detail(what_is_wrong(failure.said, failure.more, message), message)[:MAX_MESSAGE] or None
    return [calls, *_read_exception(source, reasons_of, record, {**fields, "exception": failure.exception, "stage": failure.stage})]


def _read_trailed(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    """Any failure that the compiler logged, or behind which its last words or a compiled module's names stand; nothing for any other."""
    is_of_torch = _OF_COMPILER.search(record.head.torch) is not None or _LAST_WORDS.search(record.message()) is not None
    return _read_compile_error(source, reasons_of, record, fields) if is_of_torch else []


def _read_titled(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    """Somebody's words for a failure; nothing where the failure itself follows, which is an event of its own."""
    return [] if record.gave_way else [sighting(source, record, fields)]


_OF_COMPILER = pattern(rb"torch/_(?:dynamo|functorch|subclasses)/")
# "Created at:", a stack that belongs to the message in front of it.
_GUARD_MADE = pattern(rb"\btorch[./\\]_guards\b")
_STACK_ALONE = pattern(rb"Created at:|\s+File \"")
_NO_MESSAGE = pattern(r"\.\.\.|(?:None|True|False|\d+|[\w.]+\.\w+),")  # an example in documentation, a value in a program's table
_LAST_WORDS = pattern(
    rb"(?m)^(?:from user code:|Set TORCH(?:_LOGS|DYNAMO_VERBOSE)=|Set torch\._dynamo\.config\.verbose"
    rb"|You can suppress this exception and fall|\s*\"?_orig_mod\.|While executing %|\s*target: aten\.|[^\n]*\b(?:in|out|in_out)_ptr\d+\b)"
)


def _read_limit_error(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    fields.setdefault("limit", None)
    cause, chained, last = record.texts[0].rpartition(b"The above exception was the direct cause of the following exception:")
    again = record.rule.pattern.search(last) if chained and cause else None  # the whole chain in one line
    if again is not None:
        fields |= {name: decode(value) for name, value in captures(again).items() if name == "exception" and value is not None}
    return _read_exception(source, reasons_of, record, fields)


def _read_quote(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    bid, ask = fields.get("bid"), fields.get("ask")
    if not (isinstance(bid, float) and isinstance(ask, float) and bid > 0 and ask > 0):
        return []
    if record.unterminated and fields.get("attempt") is None:  # the ask may go on
        return [sighting(source, record, {**fields, "ask": None, "spread_bps": None}, partial=True)]
    return [sighting(source, record, {**fields, "spread_bps": spread_bps(bid, ask)})]


def spread_bps(bid: float, ask: float) -> float:
    """The spread of a quote, in hundredths of a percent."""
    return round((ask / bid - 1) * 10_000, 4)


def _read_profiler(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    """CompileProfiler's report: its recompilation table as ``[{function, file, line_no, recompiles, reasons}]``."""
    message = decode(record.message())
    recompiles: list[dict[str, object]] = []
    for line in message.split("\n"):
        row = re.match(r"\s*'(?P<function>[^']+)' \((?P<file>.+?):(?P<line>\d+)\)\s+(?P<count>\d+)\s*(?P<reason>.*)", line)
        if row:
            reasons = [row["reason"].strip()] if row["reason"].strip() else []
            recompiles.append(
                {"function": row["function"], "file": row["file"], "line_no": int(row["line"]), "recompiles": int(row["count"]), "reasons": reasons}
            )
        elif recompiles and re.match(r"\s{20,}\S", line):
            known = recompiles[-1]["reasons"]
            assert isinstance(known, list)
            known.append(line.strip())
    return [sighting(source, record, {**fields, "recompiles": recompiles})]


def _read_compile_times(source: str, reasons_of: Reasons, record: Record, fields: Fields) -> list[Sighting]:
    """``TorchDynamo compilation metrics``: the seconds of the outermost phase, summed over its compiles."""
    for text in record.texts:
        row = re.match(rb"\s*_compile(?:\.compile_inner|\.<locals>\.compile_inner)?[, ]\s*(?P<seconds>[\d., ]+)$", text)
        if row:
            seconds = sum(float(value) for value in re.findall(rb"\d+\.\d+", row["seconds"]))
            return [sighting(source, record, {**fields, "seconds": round(seconds, 6)})]
    return []


READERS: dict[str, Callable[[str, Reasons, Record, Fields], list[Sighting]]] = {
    "recompile": _read_recompile,
    "autograd_miss": _read_autograd_miss,
    "limit_hit": _read_limit_hit,
    "limit_error": _read_limit_error,
    "graph_break": _read_graph_break,
    "cudagraph_skip": _read_cudagraph_skip,
    "overwritten": _read_overwritten,
    "exception": _read_compile_error,
    "traceback": _read_traceback,
    "trailed": _read_trailed,
    "titled": _read_titled,
    "quote": _read_quote,
    "profiler_table": _read_profiler,
    "compile_times": _read_compile_times,
}
