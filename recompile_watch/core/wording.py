"""What a finding is called and what it means, in plain words.

Titles name the function, the number and the cause; consequences are true for the torch version at hand.
Sources: torch/_dynamo/convert_frame.py and the runs of ``remedies-measured.md``; after a limit: ``torch-messages.md`` B.5.
"""

from collections.abc import Callable

from recompile_watch.core.events import Reason
from recompile_watch.core.evidence import broken_on, failure, shown
from recompile_watch.core.exception_text import broken_call
from recompile_watch.core.groups import Group
from recompile_watch.core.guard_lines import fixing_line
from recompile_watch.core.late import pattern
from recompile_watch.core.patterns import OF_A_SIZE_BEHIND, RESUMED, SHARED_WRAPPER, is_of_another_instance, is_of_another_module
from recompile_watch.core.stack_frames import is_of_a_library
from recompile_watch.core.versions import told_range

MAX_LINES = 4
_SUFFIX = 90
_LIMIT_RAISED = "The limit became an exception (fullgraph=True, or fail_on_recompile_limit_hit): the call failed, and nothing ran in eager mode."
_LONG_PATH = pattern(r"(?<![\w.…/])/(?:[^/\s'\":,;]+/)+?(?=[^/\s'\":,;]+/[^/\s'\":,;]+(?![^\s'\":,;]))")
_GENERATED = pattern(r"\b(c[a-z2-7]{7})[a-z2-7]{41,48}(?=\.)")  # the name of a file that inductor wrote
_AROUND = pattern(r"^(?:\w+(?:Error|Exception|Failed): )+(?=\w+(?:Error|Exception): )")  # exceptions that wrap the one that says what is wrong
_OF_SIZES = pattern(r"\.(?:size|stride|storage_offset)\(\)|^\"?Shape guard|\b(?:Eq|Ne|Le|Lt|Ge|Gt|Mod|PythonMod)\(|(?<![\w.])[su]\d+\b")
_OFTEN_NONE = pattern(r"^\S+ is (?:not )?None$")

CAUSES = {
    "size_mismatch": "a tensor's size changed",
    "size_zero_one": "a size became 0 or 1, or ceased to be",
    "parameter_size": "a parameter's size changed",
    "stride_mismatch": "a tensor's memory layout changed",
    "dtype_mismatch": "a tensor's dtype changed",
    "device_mismatch": "a tensor's device changed",
    "rank_mismatch": "a tensor's number of dimensions changed",
    "requires_grad": "requires_grad of a tensor changed",
    "grad_mode": "grad mode was switched",
    "dispatch_keys": "a tensor's dispatch keys changed",
    "global_state": "global torch state changed",
    "autocast": "autocast was switched",
    "int_value": "an integer changed",
    "float_value": "a float changed",
    "str_value": "a string changed",
    "bool_value": "a flag changed",
    "module_int_attribute": "an integer attribute of a module changed",
    "kv_cache_index": "the KV cache index changed",
    "object_identity": "another object was passed",
    "type_identity": "an object of another type was passed",
    "container_length": "a container's length changed",
    "dict_keys": "the keys of a dict changed",
    "closure_or_global": "a closure, default or global variable changed",
    "backend_match": "another backend object was used",
    "symbolic_shape": "a relation between sizes changed",
    "tensor_aliasing": "tensors share memory now, or ceased to",
    "undefined_name": "a guard names something undefined (a torch bug)",
    "empty": "torch gave no reason",
}

# Measured on 2.5.1, 2.7.1, 2.9.1 and 2.13 (remedies-measured.md).
_BY_CAUSE = {
    "size_mismatch": "torch makes a size dynamic after its first change; where dynamic=False forbids it, or the code fixes it, each compiles again.",
    "parameter_size": "Parameters keep static sizes by default, so each width of this layer compiles again.",
    "size_zero_one": "torch compiles sizes 0 and 1 apart from all others, at most once more for each.",
    "int_value": "torch makes an integer dynamic after its first change; where dynamic=False or the code fixes it, each new one compiles again.",
    "float_value": "torch from 2.6 on makes a float dynamic after its first change; where dynamic=False or the code fixes it, each compiles again.",
    "str_value": "Strings cannot be dynamic: each new value compiles again, up to the limit.",
    "bool_value": "At most one more compile for each value, which is usually fine.",
    "module_int_attribute": "torch takes integer attributes of modules for constants: each new value compiles again, up to the limit.",
    "kv_cache_index": "torch takes the cache's index for a constant: each new value, and each layer's index, compiles again, up to the limit.",
    "object_identity": "Each new object compiles again, even when it does the same.",
    "closure_or_global": "torch makes a number dynamic after its first change, unless the code fixes it; of all else each new value compiles again.",
    "container_length": "Each new length compiles again, up to the limit.",
    "stride_mismatch": "Each memory layout compiles again; dynamic=True helps only where the order of the dimensions stays.",
    "requires_grad": "One compile for each state is normal; a layer that comes first often gets an input without gradient, those behind it one with.",
    "dtype_mismatch": "Each dtype compiles again: of a model that should have one, two dtypes are often a mistake.",
    "rank_mismatch": "Each number of dimensions compiles again; torch never makes it dynamic.",
    "grad_mode": "One compile for each state is normal; more means that the state differs between call sites.",
    "autocast": "One compile for each state is normal; more means that the state differs between call sites.",
    "symbolic_shape": "Each side of a condition on sizes needs a graph of its own, which is normal.",
    "device_mismatch": "Each device compiles again.",
    "dispatch_keys": "Each set of keys compiles again: another device, inference_mode, a conjugated view; in older versions autocast.",
    "global_state": "What is compiled holds for one state of these settings: each other state compiles again.",
    "type_identity": "Each type that is passed compiles again, up to the limit.",
    "dict_keys": "Each set of keys, and each order of them, compiles again, up to the limit.",
    "backend_match": "What was compiled for one backend object is not used for another: each new one compiles again, up to the limit.",
    "tensor_aliasing": "One compile for tensors that share memory and one for those that do not: two at most for each pair, which is usually fine.",
    "undefined_name": "torch failed to say which guard did not hold: each call that fits nothing compiles again, up to the limit.",
    "empty": "torch does not say why what it compiled before did not fit: each such call compiles again, up to the limit.",
}
# What failed, by the stage that a traceback shows; the rules say it for those that have a message of their own.
_AT_STAGE = {
    "tracing": "torch could not trace the function, or not state when the compiled version fits: the call failed, unless the program catches it.",
    "autograd": "torch could not make the graphs for forward and backward: the call failed, unless the program catches it.",
    "inductor": "inductor could not write or build the code for a graph: the call failed, unless the program catches it.",
    "input": "The program was exported for what its sample looked like: this call failed, and so does every other one with such an input.",
    "running": "What was compiled, or the check whether it fits, raised in the call: it failed, unless the program catches it.",
}
_IN_BACKWARD = "The backward of what was compiled could not be made or run: backward() failed, unless the program catches it."
_IN_EXPORT = "torch.export could not trace the program, or not state for which inputs it holds: nothing was exported."
_SIZES_FIRST_SINCE = (2, 5)  # torch compares all sizes of a tensor before its strides
_STATIC_SINCE = (2, 8)  # measured: 20 values make 4 graphs in torch 2.1 and 2.4, 2 in 2.6, and fill the limit from 2.8 on
_FORBIDS = ("that the stance forbids", "and was compiled ahead of time")
_DEFAULT_RECOMPILE = "Every new value of what this guard checks compiles again, up to the recompile limit; calls wait meanwhile."


def cause_means(cause: str) -> str:
    """What a guard failure of this class costs, in one sentence."""
    return _BY_CAUSE.get(cause, _DEFAULT_RECOMPILE)


def title_of(group: Group, rule_title: str | None) -> str:
    """A short sentence that names the thing itself."""
    namer = _TITLES.get(group.key.kind)
    return namer(group) if namer else (rule_title or group.key.kind.replace("_", " ").capitalize())


def consequence_of(group: Group, rule_why: str | None, torch_version: tuple[int, int] | None, *, is_raised: bool = False) -> str:
    """What it means for the program, in one sentence. is_raised: the limit that was hit became an exception."""
    match group.key.kind:
        case "recompile_limit_hit":
            return _LIMIT_RAISED if is_raised else _after_limit(group, torch_version)
        case "recompile" if group.has_raised:
            return "error_on_recompile turns a recompile into an exception: the call failed."
        case "recompile":
            return _recompile_means(group, torch_version)
        case "compile_error" if not (group.first.extra.get("caught") or group.first.extra.get("suppressed")):
            is_backward, is_export = group.first.extra.get("in_backward"), group.first.extra.get("exported")
            stage = str(group.first.extra.get("stage"))
            known = _IN_EXPORT if is_export and stage != "input" else _IN_BACKWARD if is_backward else _AT_STAGE.get(stage)
            return known or rule_why or "See the evidence."
        case "compile_mode" if group.first.extra.get("compiled") is None:
            return "The log does not say whether the model was compiled in the end."
        case "compile_mode" if group.first.extra["compiled"]:
            return "Recompiles, limits and CUDA graph troubles of this model are possible; expected if the configuration says compiled."
        case "compile_mode":
            return "The model loaded without torch.compile; expected if the configuration says eager."
        case "ineffective_setting" if group.first.extra.get("why"):
            return str(group.first.extra["why"])
        case "mode_drift":
            return "The process that wrote this log was started without the setting, before it, or from elsewhere: what was decided does not hold."
        case "limit_not_in_force":
            return "Functions still stop compiling at the lower limit: whoever raised it believes in a change that did not happen where it counts."
        case "bot_error" if group.count > 1:
            return "The bot reports failures of its own: a symbol, a price or a whole cycle may be missing."
    stopped = group.values.get("not_resumed")
    return _where_not_resumed(group) + (rule_why or "See the evidence.") + (f" What stops it: {_short(str(stopped))}." if stopped else "")


def _where_not_resumed(group: Group) -> str:
    """Which of the breaks those are behind which torch cannot resume; nothing where all are, or none."""
    lines = group.lines_not_resumed
    if lines is None:
        return ""
    shown = " and ".join(str(line) for line in lines[:MAX_LINES] if line is not None)
    return f"On line {shown} " if shown and len(lines) < len(group.lines) else "At times "


def _recompile_means(group: Group, torch_version: tuple[int, int] | None) -> str:
    newest = group.first.reasons[0] if group.first.reasons else None
    if newest is not None and newest.cause == "module_int_attribute" and torch_version is not None and torch_version < _STATIC_SINCE:
        return "Until 2.7 torch makes integer attributes of modules dynamic after their first changes: a few recompiles, then none."
    if newest is not None and _OFTEN_NONE.search(newest.text):
        return "One compile with the object and one without it: two at most, which is usually fine."
    if group.first.extra.get("statement") == "names_member":
        return "Each member of this class that is passed, as of an enum, has a graph of its own: as many compiles as there are members."
    if newest is not None and newest.cause == "object_identity" and ".__code__" in newest.text:
        return "Each function that is passed has a graph of its own; a partial, lambda or closure that is made anew of the same code has not."
    line = fixing_line(group.last.extra) or fixing_line(group.first.extra)
    if line is not None and newest is not None and (newest.cause == "size_mismatch" or group.last.extra.get("fixed_by")):
        what = "size" if newest.cause == "size_mismatch" else "number"
        return f"torch had made the {what} dynamic, and {line} fixes it: each {what} compiles again, up to the recompile limit."
    if newest is not None and is_of_another_instance(newest):
        return "Until 2.4 torch compiles a method for each module that it is called of; each has the recompile limit for itself."
    if newest is not None and _is_of_sizes(newest, group):
        return (
            "torch before 2.5 prints a size that changed as the stride in front of it; it makes both dynamic after their first change, where it may."
        )
    if newest is not None and _is_on_a_number(newest):
        return "Each side of a condition on a number that torch made dynamic needs a graph of its own, which is normal."
    if group.first.extra.get("derived"):
        return "torch began to compile it again, while calls waited; TORCH_LOGS did not have recompiles, so the log does not say why."
    return cause_means(newest.cause if newest is not None else "empty")


def _is_of_sizes(guard: Reason, group: Group) -> bool:
    """True for a stride that may stand for a size: of a torch of which the log tells that it is older than 2.5."""
    torch = str(group.first.extra.get("torch") or "")
    end = told_range(torch).end
    is_old = end is not None and end <= _SIZES_FIRST_SINCE
    return guard.cause == "stride_mismatch" and is_old and OF_A_SIZE_BEHIND.match(guard.text) is not None


def _is_on_a_number(guard: Reason) -> bool:
    """True for a condition on a number that the program passes, such as ``sigma > 1.0``, which names no size."""
    return guard.cause == "symbolic_shape" and _OF_SIZES.search(guard.text) is None


def _after_limit(group: Group, version: tuple[int, int] | None) -> str:
    name = shown_function(group.key.function) if group.key.function else "the function"
    is_old = "cache_size_limit" in str(group.values.get("limit_name")) if version is None else version < (2, 6)
    limit = group.values.get("limit")
    entries = f"{limit} compiled versions" if isinstance(limit, int) and "accumulated" not in group.key.subject else "compiled versions"
    if not is_old:
        return f"From now on new inputs of {name} run in eager mode, with everything it calls; its {entries} stay in use for inputs they fit."
    if version is None:
        return f"From now on {name} runs in eager mode: torch before 2.6 drops its {entries}, 2.6 still uses them for inputs they fit."
    callees = "what it calls is compiled on its own" if version < (2, 5) else "what it calls is not compiled either"
    return f"From now on {name} runs in eager mode for all inputs: its {entries} are dropped, and {callees}."


def shown_function(name: str) -> str:
    """``append (resumed at line 25)`` for the function that Dynamo makes of the code behind a graph break."""
    resumed = RESUMED.search(name)
    if resumed is None:
        return name
    at = f"resumed at line {resumed['line']}" if resumed["line"] else "resumed behind a graph break"
    return f"{name[: resumed.start()]}{resumed['name']} ({at})"


def _name(group: Group) -> str:
    if SHARED_WRAPPER.search(group.key.file or ""):
        return f"A compiled module (torch's frame {group.key.function or '?'})"
    if group.key.function:
        return shown_function(group.key.function)
    if caller := _caller(group):
        return f"A function called at {caller}"
    return (group.key.file or "").rpartition("/")[2] or "A function"


def _caller(group: Group) -> str:
    """The program's line that called, in short, where nothing tells what it called, or that is a library's."""
    is_own = bool(group.key.file) and not is_of_a_library(group.first.file)
    called_from = "" if is_own else str(group.first.extra.get("called_from") or "")
    return called_from.replace("\\", "/").rpartition("/")[2].partition(" in ")[0]


def _reason(group: Group) -> str:
    return _short(group.first.reasons[0].text) if group.first.reasons else ""


def shorter_paths(text: str) -> str:
    """A text whose long paths have lost their first folders; addresses of pages keep theirs."""
    return _LONG_PATH.sub("…/", text)


def _short(text: str) -> str:
    text = " ".join(text[: _SUFFIX * 10].split())
    if len(text) > _SUFFIX:
        text = _GENERATED.sub(r"\1…", shorter_paths(text))
    return text if len(text) <= _SUFFIX else text[: _SUFFIX - 1].rstrip() + "…"


def _broken(group: Group) -> str:
    return broken_on(_short(broken_call(group.first.reasons[0].text)) if group.first.reasons else "", group.first)


def _colon(text: str) -> str:
    return f": {text}" if text else ""


def _recompile(group: Group) -> str:
    cause = group.first.reasons[0].cause if group.first.reasons else "empty"
    words = CAUSES.get(cause) or _reason(group) or cause.replace("_", " ")
    newest = group.first.reasons[0] if group.first.reasons else None
    if newest is not None and (is_of_another_instance(newest) or (cause != "parameter_size" and is_of_another_module(newest))):
        words = "another module of its class was called"
    if newest is not None and _is_of_sizes(newest, group):
        words = "a tensor's size, or its memory layout, changed"
    if newest is not None and _is_on_a_number(newest):
        words = "a condition on a number turned out the other way"
    if group.first.extra.get("derived"):
        words = "the log does not say why"
    times = f" {group.count} times" if group.count > 1 else ""
    name = _name(group) + _at_lines(group.lines)
    if group.has_raised:
        return f"{name} needed a recompile{times}, which error_on_recompile forbids: {words}"
    return f"{name} compiled again{times}: {words}"


def _at_lines(lines: tuple[int, ...]) -> str:
    """Where functions of one name in one file are told together (nearly every one of PyTorch is called forward), or breaks of one function."""
    if len(lines) < 2:
        return ""
    shown = [str(line) for line in lines[:MAX_LINES]]
    more = f" and {len(lines) - MAX_LINES} more" if len(lines) > MAX_LINES else ""
    return f" (lines {', '.join(shown)}{more})"


def _limit_hit(group: Group) -> str:
    which = "accumulated recompile limit" if "accumulated" in group.key.subject else "recompile limit"
    limit = group.values.get("limit")  # the attempt that it refused comes before the line that names it
    return f"{_name(group)} hit the {which}" + (f" ({limit})" if limit is not None else "")


def _limit_error(group: Group) -> str:
    exception = group.first.extra.get("exception")
    raised = f" and raised {exception}" if exception else ""
    return f"{_name(group)} exceeded the recompile limit{raised}"


def _skip(group: Group) -> str:
    instances = group.values.get("instances")
    return f"CUDA graphs skipped: {_reason(group) or 'no reason printed'}" + (f" ({instances} instances)" if instances else "")


def _overwritten(group: Group) -> str:
    maker = f" (made in {group.key.function})" if group.key.function else ""
    return f"A CUDA graph output was overwritten by the next run{maker}"


def _compile_error(group: Group) -> str:
    if group.first.extra.get("stage") == "wrapper":
        at = f", at {caller}" if (caller := _caller(group)) else ""
        return f"A compiled wrapper stands where the module itself is wanted{at}{_colon(_short(str(group.first.extra.get('message') or '')))}"
    if group.first.extra.get("stage") == "input":
        at = f", called at {caller}" if (caller := _caller(group)) else ""
        return f"An exported program did not take its input{at}{_colon(_short(str(group.first.extra.get('message') or '')))}"
    is_survived, is_export = group.first.extra.get("suppressed"), group.first.extra.get("exported")
    caller, is_backward = _caller(group), group.first.extra.get("in_backward")
    where = " in backward()" * bool(is_backward) + (f"{' at' if is_backward else ', called at'} {caller}" if caller else "")
    if group.first.extra.get("stage") == "running" and not is_survived:
        what = f"Compiled code{f' of {shown_function(group.key.function)}' if group.key.function else ''} raised{where}"
    else:
        what = (
            f"{shown_function(group.key.function)} was not {'exported' if is_export else 'compiled'}{where}"
            if group.key.function
            else f"torch.{'export' if is_export else 'compile'} {'gave up' if is_survived else 'failed'}{where}"
        )
    said = failure(group.first.extra.get("exception"), group.first.extra.get("message"))
    return what + _colon(_short(_AROUND.sub("", said)) or _reason(group))


def _forecast(group: Group) -> str:
    extra = group.first.extra
    cause = extra.get("cause") or extra.get("message")
    words = _short(str(cause or "no message").replace("_", " "))
    return f"{extra.get('model') or 'A model'} forecast failed: {words}"


def _cpu_fallback(group: Group) -> str:
    extra = group.first.extra
    name = extra.get("model") or "A model"
    match extra.get("cause"):
        case "out_of_memory":
            return f"{name} ran out of GPU memory and fell back to the CPU"
        case "no_gpu":
            return f"{name} finds no GPU and runs on the CPU"
    return f"{name} runs on the CPU" + (f" (override={extra['override']})" if extra.get("override") else "")


def _quote(group: Group) -> str:
    words = str(group.first.extra.get("cause") or "").replace("_", " ").replace("add latest", "ADD_LATEST")
    return f"{group.first.extra.get('symbol') or 'A symbol'} is priced without a real quote" + (f" ({words})" if words else "")


def _mode(group: Group) -> str:
    extra = group.first.extra
    model = extra.get("model") or "A model"
    details = ", ".join(str(extra[name]) for name in ("mode", "backend") if extra.get(name))
    is_compiled = extra.get("compiled")
    words = "is set up for compiling" if is_compiled is None else "runs compiled" if is_compiled else "runs in eager mode"
    return f"{model} {words}" + (f" ({details})" if details else "")


def _bot_error(group: Group) -> str:
    return f"The bot reports an error: {_short(str(group.first.extra.get('message') or 'no message'))}"


def _setting(group: Group) -> str:
    extra = group.first.extra
    title = extra.get("title")
    return title if isinstance(title, str) else f"{extra.get('setting')}={extra.get('value')} has no effect: no torch reads it"


_TITLES: dict[str, Callable[[Group], str]] = {
    "recompile": _recompile,
    "recompile_limit_hit": _limit_hit,
    "recompile_limit_error": _limit_error,
    "recompile_forbidden": lambda group: f"{_name(group)} needed a recompile {_FORBIDS[group.first.extra.get('ahead') is True]}",
    "graph_break": lambda group: f"Graph break in {_name(group)}{_at_lines(group.lines)}{_colon(_broken(group))}",
    "cudagraph_skip": _skip,
    "cudagraph_overwritten_error": _overwritten,
    "cudagraph_dynamic_shapes_warning": lambda group: f"CUDA graphs were recorded for {shown(group.values.get('distinct_sizes'))} different sizes",
    "compile_error": _compile_error,
    "compile_time": lambda group: f"Compiling took {shown(group.first.extra.get('seconds'))} s",
    "forecast_failure": _forecast,
    "out_of_memory": lambda group: f"{group.first.extra.get('model') or 'A model'} ran out of GPU memory",
    "cpu_fallback": _cpu_fallback,
    "bot_error": _bot_error,
    "synthetic_account": lambda group: "The bot works on made-up account data" + _colon(_short(str(group.first.extra.get("message") or ""))),
    "inverted_prediction": lambda group: f"{group.first.extra.get('symbol') or 'A symbol'}: inverted predictions (high below low)",
    "synthetic_quote": _quote,
    "compile_mode": _mode,
    "ineffective_setting": _setting,
    "mode_drift": lambda group: str(group.first.extra.get("title")),
    "recompile_limit_set": lambda group: f"The log says that {group.first.extra.get('limit_name')} was set to {group.first.extra.get('limit')}",
    "limit_not_in_force": lambda group: (
        f"The recompile limit was set to {group.first.extra.get('raised')}, but {group.first.extra.get('limit')} is in force"
    ),
}
