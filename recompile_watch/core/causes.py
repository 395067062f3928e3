"""Guard failures: what torch printed as a reason becomes the guard's own text and the class of its cause.

Source of the forms: the guard classes of torch 2.1 to 2.15 (torch/_dynamo/guards.py, torch/csrc/dynamo/guards.cpp).
A class is only given when the text proves it; ``other`` is the honest answer for everything else.
"""

import re
from collections.abc import Callable

from recompile_watch.core.events import Reason
from recompile_watch.core.late import pattern

_ENTRY = pattern(r"(?P<entry>!?\d{1,9}/\d{1,9}(?:/\d{1,9})?(?:_\d{1,9})?):(?: |$)")
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_HINT = pattern(r"\s*\(HINT: ")
_PARAMETER_HINT = pattern(r"\.? Guard failed on a parameter, consider using ")
# Forms whose end is known: what stands behind them in a log whose newlines are gone is not part of the guard.
_KNOWN_END = pattern(
    r"(?:tensor '.{1,300}?' (?:size|stride|rank|dtype|Tensor device index) mismatch(?: at index \d+)?\."
    r" [Ee]xpected (?:device index to be )?\S+?, actual [\w-]+"
    r"|expected type of '.{1,300}?' to be (?:a tensor type, ?'?|<class '[^'\n]{1,200}'>,) ?but found (?:<class '[^'\n]{1,200}'>|a different type)"
    r"|tensor '.{1,300}?' requires_grad mismatch\. expected requires_grad=\d"
    r"|tensor '.{1,300}?' dispatch key set mismatch\. expected DispatchKeySet\([^)]*\), actual DispatchKeySet\([^)]*\)"
    r"|GLOBAL_STATE changed:(?: (?:grad_mode|autocast(?:\(\w+\)_\w+)?|default_dtype|deterministic_algorithms(?:_warn_only)?"
    r"|autocast_cache_enabled|cuda_matmul_precision|num_threads|torch_function|allow_\w+|reduced_\w+|inference_mode))++"
    r"|___check_(?:type|obj)_id\(.{1,300}?, \d+\)(?:, type=<class '[^']*'>)?"
    rf"|[^\s'\"=]+(?:{_QUOTED}|[^\s'\"=])* == (?:-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|True|False|None|{_QUOTED})"
    r")(?=\s+(?!and\b|or\b|[-+*/%<>=)&|]))"
)
_LEFT_VALUE = pattern(r", with LHS value: .*", re.DOTALL)  # torch of October 2023 shows what the guard met
_STACK = pattern(r"\s+(?:- )?User stack trace:")

_INT = r"-?\d+"
_FLOAT = r"-?(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf|nan)|float\('-?(?:inf|nan)'\)"
_EQUALS = pattern(rf"(?P<left>.+?) (?:==|!=) (?:(?P<bool>True|False)|(?P<int>{_INT})|(?P<float>{_FLOAT})|(?P<str>{_QUOTED})|(?P<none>None))")
_ZERO_ONE = pattern(r"2 <= \S+\.size\(\)\[\d+\](?: <= (?:2147483647|9223372036854775807))?")  # no size fails on such an upper bound
_CACHE_PATH = pattern(r"_current_idx\b|(?:^|[\W_])(?:kv|k|v|key|value|past|static|dynamic)*_?caches?(?=\W|$)|past_key_values?\b")
_MODULE_PATH = pattern(r"\._(?:modules|parameters|buffers)\[")


def parse_reason(raw: str, function: str | None = None) -> Reason:
    """The reason behind one ``- 6/7: guard  # source (HINT: …)`` line.

    raw: the text behind the dash, newlines allowed. function: the recompiled function, a help for the class.
    """
    entry = None
    match = _ENTRY.match(raw)
    if match:
        entry = match["entry"]
        raw = raw[match.end() :]
    text = clean_guard(raw)
    return Reason(entry, text, _cause(raw, text, function))


def clean_guard(raw: str) -> str:
    """The guard expression alone: without torch's source comment, hint, user stack and padding."""
    text = raw.strip()
    if "User stack trace:" in text:
        text = _STACK.split(text, maxsplit=1)[0]
    if "# " in text and not text.startswith(("tensor '", "BACKEND_MATCH", "GLOBAL_STATE", "Cache line")):
        text = _without_comment(text)
    if ", with LHS value: " in text:
        text = _LEFT_VALUE.sub("", text)
    if "(HINT: " in text:
        text = _HINT.split(text, maxsplit=1)[0]
    if "Guard failed on a parameter" in text:
        text = _PARAMETER_HINT.split(text, maxsplit=1)[0]
    known = _KNOWN_END.match(text)
    return (known[0] if known else text).strip()


def _without_comment(text: str) -> str:
    """The text in front of the first ``# `` that does not stand in a string."""
    at = text.find("# ")
    while at > 0:
        code = text[:at]
        if code[-1].isspace() and code.count("'") % 2 == 0 and code.count('"') % 2 == 0:
            return code
        at = text.find("# ", at + 1)
    return text


def _cause(raw: str, text: str, function: str | None) -> str:
    """The cause (contract, section 4) of one guard failure; ``other`` where the text proves none."""
    if not text:
        return "empty"
    if text.startswith("tensor '") and "' size mismatch" in text:
        return _tensor_size(raw, text)
    form = _FORM.match(text)
    if form is not None:
        cause = _FORMS[int((form.lastgroup or "f0")[1:])][1]
        return cause if isinstance(cause, str) else cause(raw, text)
    return _classify_expression(raw, text, function)


def _tensor_size(raw: str, text: str) -> str:
    on_parameter = "Guard failed on a parameter" in raw or "._parameters[" in text
    return "parameter_size" if on_parameter else "size_mismatch"


def _global_state(_raw: str, text: str) -> str:
    names = text.removeprefix("GLOBAL_STATE changed:").split()
    if names == ["grad_mode"]:
        return "grad_mode"
    if names and all(name.startswith("autocast") for name in names):
        return "autocast"
    return "global_state"


def _object_id(_raw: str, text: str) -> str:
    return "bool_value" if re.match(r"___check_obj_id\([^,]*\.training,", text) else "object_identity"


_FORMS: tuple[tuple[str, str | Callable[[str, str], str]], ...] = (
    (r"tensor '.*' size mismatch", _tensor_size),
    (r"tensor '.*' strides? mismatch", "stride_mismatch"),
    (r"tensor '.*' dtype mismatch", "dtype_mismatch"),
    (r"tensor '.*' rank mismatch", "rank_mismatch"),
    (r"tensor '.*' requires_grad mismatch", "requires_grad"),
    (r"tensor '.*' (?:Tensor )?device index mismatch", "device_mismatch"),
    (r"tensor '.*' dispatch key set mismatch", "dispatch_keys"),
    (r"expected type of '.*' to be ", "type_identity"),
    (r"NO_TENSOR_ALIASING guard ", "tensor_aliasing"),
    (r"Duplicate tensors? found|[^ ]+ is (?!None|not )[^ ]+$|[^ ]+ (?:is aliased$|should not alias)|[^ ]*should not alias", "tensor_aliasing"),
    (r"GLOBAL_STATE changed:", _global_state),
    (r"(?:not )?___(?:is_grad_enabled|set_grad_enabled)|(?:not )?torch\.is_grad_enabled", "grad_mode"),
    (r"___check_global_state|___check_torch_function_mode_stack|(?:not )?___is_torch_function_enabled", "global_state"),
    (r"torch\._functorch\.|torch\.autograd\.forward_ad|___compile_config_hash", "global_state"),
    (r"\"?Shape guard failed with values", "symbolic_shape"),
    (r"(?:not )?___are_deterministic_algorithms_enabled|utils_device\.CURRENT_DEVICE", "global_state"),
    (r"BACKEND_MATCH failure|\(?___(?:check_current_backend|skip_backend_check|current_backend)", "backend_match"),
    (r"Cache line invalidated because|(?:not )?___guarded_code\.valid", "object_identity"),
    (r"(?:NameError: )?name '\w+' is not defined", "undefined_name"),
    (r"___check_type_id|type\(.*\) ==|.*\.__class__ ==", "type_identity"),
    (r"___check_obj_id", _object_id),
    (r"(?:not )?(?:set\.__contains__|___dict_contains)\(|KeyError on ", "dict_keys"),
    (r"(?:not |len\().*\.keys\(\)\)\[\d+\]\](?:\.[A-Za-z_]\w*)+\)?(?: [=!]= \d+)?$", "container_length"),
    (r"(?:list|set|str|tuple)?\(?(?:dict\.keys\(|[^=]*\.keys\(\))", "dict_keys"),
    (r"(?:not )?___(?:dict_\w+|odict\w*|key_to_id|const_keys\w*)\(", "dict_keys"),
    (r"(?:set|frozenset)\.__len__\(|___\w+_len\(", "container_length"),
    (r"len\(.*\) (?:==|!=|<|<=|>|>=) ", "container_length"),
    (r"not (?:[\w.\[\]'\"]|list\(dict\.keys\([\w.\[\]'\"]+\)\)\[\d+\])+$", "container_length"),
)
# All forms as one pattern: which alternative matched names the cause.
_FORM = pattern("|".join(f"(?P<f{number}>{form})" for number, (form, _) in enumerate(_FORMS)), re.DOTALL)


def _classify_expression(raw: str, text: str, function: str | None) -> str:
    if re.search(r"\.(?:size|stride|storage_offset)\(\)", text) or re.match(r"(?:Eq|Ne|Le|Lt|Ge|Gt|Mod|PythonMod)\(", text):
        return "size_zero_one" if _ZERO_ONE.fullmatch(text) else "symbolic_shape"
    if re.search(r" % | // |\bMod\(|\bmin\(|\bmax\(", text) and not re.search(r"['\"] % ", text):
        return "symbolic_shape"
    if re.search(r"\.__closure__|\.__defaults__|\.__kwdefaults__|\.cell_contents|\bG\[", text):
        return "closure_or_global"
    equals = _EQUALS.fullmatch(text)
    if equals is None:
        return _classify_relation(text)
    if equals["int"] is not None:
        return _integer(raw, equals["left"], function)
    kinds = (("bool", "bool_value"), ("float", "float_value"), ("str", "str_value"), ("none", "object_identity"))
    return next(cause for group, cause in kinds if equals[group] is not None)


def _classify_relation(text: str) -> str:
    if re.fullmatch(r"\S+ is (?:not )?None", text):
        return "object_identity"
    if re.fullmatch(r"-?\d+ <=? [\w.\[\]'\"]+(?: <=? -?\d+)?|[\w.\[\]'\"]+ (?:<|<=|>|>=|!=) [\w.\[\]'\"]+", text):
        return "symbolic_shape"
    return "other"


def _integer(raw: str, left: str, function: str | None) -> str:
    if _CACHE_PATH.search(left):
        return "kv_cache_index"
    on_module = "integer attributes of the nn.Module" in raw or _MODULE_PATH.search(left) is not None
    root_is_self = re.match(r"(?:L\['self'\]|self)\.\w", left) is not None
    # torch before 2.9 prints neither hint nor source comment: `self` inside `forward` is then the module itself.
    if on_module or (root_is_self and (function == "forward" or left.endswith(".layer_idx"))):
        return "module_int_attribute"
    return "int_value"
