"""What a cause is and what a finding means, in plain words.

Consequences are true for the torch version at hand.
Sources: torch/_dynamo/convert_frame.py of each version, and the runs of ``docs/remedies.md``.
"""

from recompile_watch.core.events import Reason
from recompile_watch.core.evidence import MAX_LINES, short, shown_function
from recompile_watch.core.groups import Group
from recompile_watch.core.guard_lines import fixing_line
from recompile_watch.core.late import pattern
from recompile_watch.core.patterns import OF_A_SIZE_BEHIND, is_of_another_instance
from recompile_watch.core.versions import told_range

_LIMIT_RAISED = "The limit became an exception (fullgraph=True, or fail_on_recompile_limit_hit): the call failed, and nothing ran in eager mode."
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

# Measured on 2.5.1, 2.7.1, 2.9.1 and 2.13.
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
    "call": "torch refused what one of its functions was called with, before it compiled anything: that call failed, unless the program catches it.",
    "running": "What was compiled, or the check whether it fits, raised in the call: it failed, unless the program catches it.",
}
_IN_BACKWARD = "The backward of what was compiled could not be made or run: backward() failed, unless the program catches it."
_IN_EXPORT = "torch.export could not trace the program, or not state for which inputs it holds: nothing was exported."
_SIZES_FIRST_SINCE = (2, 5)  # torch compares all sizes of a tensor before its strides
_STATIC_SINCE = (2, 8)  # measured: 20 values make 4 graphs in torch 2.1 and 2.4, 2 in 2.6, and fill the limit from 2.8 on
_DEFAULT_RECOMPILE = "Every new value of what this guard checks compiles again, up to the recompile limit; calls wait meanwhile."


def cause_means(cause: str) -> str:
    """What a guard failure of this class costs, in one sentence."""
    return _BY_CAUSE.get(cause, _DEFAULT_RECOMPILE)


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
    return _where_not_resumed(group) + (rule_why or "See the evidence.") + (f" What stops it: {short(str(stopped))}." if stopped else "")


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
    if newest is not None and is_of_sizes(newest, group):
        return (
            "torch before 2.5 prints a size that changed as the stride in front of it; it makes both dynamic after their first change, where it may."
        )
    if newest is not None and is_on_a_number(newest):
        return "Each side of a condition on a number that torch made dynamic needs a graph of its own, which is normal."
    if group.first.extra.get("derived"):
        return "torch began to compile it again, while calls waited; TORCH_LOGS did not have recompiles, so the log does not say why."
    return cause_means(newest.cause if newest is not None else "empty")


def is_of_sizes(guard: Reason, group: Group) -> bool:
    """True for a stride that may stand for a size: of a torch of which the log tells that it is older than 2.5."""
    torch = str(group.first.extra.get("torch") or "")
    end = told_range(torch).end
    is_old = end is not None and end <= _SIZES_FIRST_SINCE
    return guard.cause == "stride_mismatch" and is_old and OF_A_SIZE_BEHIND.match(guard.text) is not None


def is_on_a_number(guard: Reason) -> bool:
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
