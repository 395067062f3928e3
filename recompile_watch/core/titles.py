"""What a finding is called: titles name the function, the number and the cause."""

from collections.abc import Callable

from recompile_watch.core.evidence import MAX_LINES, broken_on, failure, short, shown, shown_function
from recompile_watch.core.exception_text import broken_call
from recompile_watch.core.groups import Group
from recompile_watch.core.late import pattern
from recompile_watch.core.patterns import SHARED_WRAPPER, is_of_another_instance, is_of_another_module
from recompile_watch.core.stack_frames import is_of_a_library
from recompile_watch.core.wording import CAUSES, is_of_sizes, is_on_a_number

_AROUND = pattern(r"^(?:\w+(?:Error|Exception|Failed): )+(?=\w+(?:Error|Exception): )")  # exceptions that wrap the one that says what is wrong
# Failures that are none of a compilation: what they are called, and what the program's line did.
_OWN_TITLES = {
    "wrapper": ("A compiled wrapper stands where the module itself is wanted", "at"),
    "input": ("An exported program did not take its input", "called at"),
    "call": ("A function of torch's compiler refused what it was called with", "called at"),
    "state": ("An exported program does not keep what forward assigns", "exported at"),
}
_FORBIDS = ("that the stance forbids", "and was compiled ahead of time")


def title_of(group: Group, rule_title: str | None) -> str:
    """A short sentence that names the thing itself."""
    namer = _TITLES.get(group.key.kind)
    return namer(group) if namer else (rule_title or group.key.kind.replace("_", " ").capitalize())


def _name(group: Group) -> str:
    if SHARED_WRAPPER.search(group.key.file or ""):
        return f"A compiled module (torch's frame {group.key.function or '?'})"
    if group.key.function:
        return shown_function(group.key.function)
    if caller := _caller(group):
        return f"A function called at {caller}"
    return (group.key.file or "").rpartition("/")[2] or "A function"


def _inside(group: Group) -> str:
    """The name in the middle of a sentence."""
    name = _name(group)
    return f"a {name[2:]}" if name.startswith("A ") else name


def _caller(group: Group) -> str:
    """The program's line that called, in short, where nothing tells what it called, or that is a library's."""
    is_own = bool(group.key.file) and not is_of_a_library(group.first.file)
    called_from = "" if is_own else str(group.first.extra.get("called_from") or "")
    return called_from.replace("\\", "/").rpartition("/")[2].partition(" in ")[0]


def _reason(group: Group) -> str:
    return short(group.first.reasons[0].text) if group.first.reasons else ""


def _broken(group: Group) -> str:
    return broken_on(short(broken_call(group.first.reasons[0].text)) if group.first.reasons else "", group.first)


def _colon(text: str) -> str:
    return f": {text}" if text else ""


def _recompile(group: Group) -> str:
    cause = group.first.reasons[0].cause if group.first.reasons else "empty"
    words = CAUSES.get(cause) or _reason(group) or cause.replace("_", " ")
    newest = group.first.reasons[0] if group.first.reasons else None
    if newest is not None and (is_of_another_instance(newest) or (cause != "parameter_size" and is_of_another_module(newest))):
        words = "another module of its class was called"
    if newest is not None and is_of_sizes(newest, group):
        words = "a tensor's size, or its memory layout, changed"
    if newest is not None and is_on_a_number(newest):
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
    if (own := _OWN_TITLES.get(str(group.first.extra.get("stage")))) is not None:
        at = f", {own[1]} {caller}" if (caller := _caller(group)) else ""
        return f"{own[0]}{at}{_colon(short(str(group.first.extra.get('message') or '')))}"
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
    return what + _colon(short(_AROUND.sub("", said)) or _reason(group))


def _forecast(group: Group) -> str:
    extra = group.first.extra
    cause = extra.get("cause") or extra.get("message")
    words = short(str(cause or "no message").replace("_", " "))
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
    return f"The bot reports an error: {short(str(group.first.extra.get('message') or 'no message'))}"


def _setting(group: Group) -> str:
    extra = group.first.extra
    title = extra.get("title")
    return title if isinstance(title, str) else f"{extra.get('setting')}={extra.get('value')} has no effect: no torch reads it"


_TITLES: dict[str, Callable[[Group], str]] = {
    "recompile": _recompile,
    "recompile_limit_hit": _limit_hit,
    "recompile_limit_error": _limit_error,
    "recompile_forbidden": lambda group: f"{_name(group)} needed a recompile {_FORBIDS[group.first.extra.get('ahead') is True]}",
    "graph_break": lambda group: f"Graph break in {_inside(group)}{_at_lines(group.lines)}{_colon(_broken(group))}",
    "cudagraph_skip": _skip,
    "cudagraph_overwritten_error": _overwritten,
    "cudagraph_dynamic_shapes_warning": lambda group: f"CUDA graphs were recorded for {shown(group.values.get('distinct_sizes'))} different sizes",
    "compile_error": _compile_error,
    "compile_time": lambda group: f"Compiling took {shown(group.first.extra.get('seconds'))} s",
    "forecast_failure": _forecast,
    "out_of_memory": lambda group: f"{group.first.extra.get('model') or 'A model'} ran out of GPU memory",
    "cpu_fallback": _cpu_fallback,
    "bot_error": _bot_error,
    "synthetic_account": lambda group: "The bot works on made-up account data" + _colon(short(str(group.first.extra.get("message") or ""))),
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
