"""Guards as lines of code: what a person changes in the program, by the form of the guard that failed.

Pure text: which dtype, which state of torch, which object. Nothing here knows of remedies.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from recompile_watch.core.late import pattern
from recompile_watch.core.patterns import varying_integer

# torch's names of dtypes in guards (c10/core/ScalarType.h) and in Python.
DTYPES = {
    "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Double": "float64", "Long": "int64", "Int": "int32", "Short": "int16",
    "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
    "Float8_e4m3fn": "float8_e4m3fn", "Float8_e5m2": "float8_e5m2",
}  # fmt: skip
_DTYPE = pattern(r"dtype mismatch\. expected (\w+)")
_OPERATOR = pattern(
    r"\b(?!torch\b|aten\b|prims?\b)([A-Za-z_]\w*)(?:\.|::)([A-Za-z_]\w*)"
    r"(?:\.(?:default|[A-Z]\w+)\b|: attempted to run this operator|\)> ?\.? ?This is necessary|(?:\.\w+)?' with arguments from the )"
)
_SIZES = pattern(r"\b(?:expected|actual) (\d{1,9})\b")
_MISSING = pattern(r"No module named '(\w{1,100})")
_WITHOUT_CONFIG = pattern(r"module '(torch\.\w{1,40})' has no attribute 'config'")
_LOGGED = pattern(r"\bLogger\.(debug|info|warning|error|exception|critical|log|isEnabledFor)\b")
_QUOTED_NAME = pattern(r"\"([^\"]{1,200})\"")
_CONSTRAINED = pattern(r"\b[LG]\['(?:(?:kw)?args'\]\[(?P<number>[0-2])|(?:kwargs'\]\[')?(?P<name>\w+)')\]\.size\(\)\[(?P<dim>\d+)\]")
_KNOWN_MODES = pattern(r"Unrecognized mode=(?P<mode>[^,\s]{1,60}), should be one of: (?P<known>[\w, -]{1,300})")
_KNOWN_OPTIONS = pattern(r"Unexpected optimization option (?P<option>[\w.]{1,80}), known options are \[(?P<known>[^\]]*)")
# The list of options is long, and mostly cut in the log: what is not alike was not meant. What people set most, all switches of torch 2.1 to 2.15:
_SWITCHES = (
    "max_autotune", "max_autotune_gemm", "epilogue_fusion", "shape_padding", "fallback_random", "coordinate_descent_tuning", "freezing",
    "triton.cudagraphs", "trace.enabled",
)  # fmt: skip
_TYPED_OPTION = pattern(r"Unexpected type of attr (?P<option>[\w.-]{1,80}), got \w{1,80} should be (?P<type>\w{1,80})")
_ARGUMENTS = (
    (_KNOWN_MODES, "mode", (), 'mode="{}"', 0.0, 'mode="reduce-overhead"'),
    (_KNOWN_OPTIONS, "option", _SWITCHES, 'options={{"{}": ...}}', 0.85, 'options={"...": ...}'),
)
_CONFIG_NAMED = pattern(r"\btorch\._dynamo\.(?:config\.)?(?P<name>[a-z]\w{2,60})`?(?: ?= ?| to `?)(?P<value>True|False)\b")
_VARIABLE_NAMED = pattern(r"\b(?P<line>TORCH(?!_LOGS)[A-Z0-9_]{3,60}=\w{1,20})\b")
_DETERMINISTIC, _WARN_ONLY = "torch.use_deterministic_algorithms(True)", "torch.use_deterministic_algorithms(True, warn_only=True)"
_STATES = (
    ("num_threads", "torch.set_num_threads(N)"),
    ("default_dtype", "torch.set_default_dtype(torch.float32)"),
    ("deterministic_algorithms_warn_only", _WARN_ONLY),
    ("deterministic_algorithms", _DETERMINISTIC),
    ("matmul_precision", "torch.set_float32_matmul_precision('high')"),
    ("tf32", "torch.backends.cuda.matmul.allow_tf32 = True"),
    ("CURRENT_DEVICE", "torch.set_default_device('cuda')"),
)
_MAX_CODE = 60
_MAX_KEYS = 12
_NAMES_IN = pattern(r"(?<![\w.)\]])[A-Za-z_][\w.]*+(?:\[[\w'\"]+\])?+(?!\()")
_INNER = pattern(r"\._(?!(?:modules|parameters|buffers|orig_mod)\b)\w+(?:\.\w+){2}")
_OF = r"[\w.\[\]']{1,200}"
_KEY = pattern(
    rf"KeyError on (?P<of>{_OF})\['(?P<key>[\w.-]{{1,60}})'\]$|(?:not )?___dict_contains\('(?P<other>[\w.-]{{1,60}})', (?P<holder>{_OF})\)$"
    rf"|list\(dict\.keys\((?P<whole>{_OF})\)\)\[\d+\] == "
)
_LAYER = pattern(r"nn[\\/](?:modules[\\/](?:linear|conv|batchnorm|instancenorm|normalization|rnn)\.py:|functional\.py:\d+ \([^\n]*\bweight\b)")
# The type that the guard was made for is named from torch 2.14 on.
TENSOR_EXPECTED = r"to be (?:a tensor type, ?'?|<class '[^'\n]{1,200}'>,) ?but found "
_NAME = r"(?P<name>[^']+(?:'\w+'[^']*)*)"
TENSOR = pattern(
    r"tensor '(?P<source>.+?)' (?P<what>size|strides?|dtype|rank|requires_grad|dispatch key set|(?:Tensor )?device index) mismatch"
    r"(?: at index (?P<dim>\d+))?"
)
_READ_OUT = pattern(r"___as_tensor\((?P<source>[^\s()]{1,300})\)\.item\(\)")  # a number that torch made a tensor of, to trace it
_EQUALS = pattern(r"(?P<source>.+?) (?:==|!=) .+")
_COMPUTED = pattern(r"\((?P<computed>[^=<>\n]{1,500})\) == -?\d[\d.e+-]*")  # as torch 2.13 prints what was computed with a float before it was fixed
_IN_COMPUTED = pattern(r"(?<![\w.'\]])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\['[^'\n]{1,100}'\]|\[\d+\])*(?![\w.(\[])")
SIZE = pattern(r"(?:2 <= |\()?(?P<source>[\w.\[\]'\"]+?)\.size\(\)\[(?P<dim>\d+)\]")
_ROOTED = pattern(r"(?P<root>[A-Za-z_]\w*)(?P<rest>(?:[.\[].*)?)", re.DOTALL)
# What may stand in a line that a person pastes into a shell: names, attributes, indices, keys.
_PLAIN_SOURCE = pattern(r"[LG]\['\w+'\](?:\.\w+|\[\d+\]|\['[\w.-]+'\])*")
_ONE_TYPE = "# {name}: pass objects of one type in every call (a tuple, never a list now and then), or the tensors and numbers they hold"
_RANK = r"tensor '(?P<name>.+?)' rank mismatch\. expected (?P<one>\d{1,3}), actual (?P<other>\d{1,3})"
RANK = pattern(_RANK)
# What a guard looks like, and the line for it; the first that fits counts.
_STRUCTURE = tuple(
    (pattern(form), line)
    for form, line in (
        (
            _RANK,
            "{name} = {name}.reshape(-1, *{name}.shape[-{least}:]).clone()  # if the rest is batch; reshape the result, and compare it with eager's",
        ),
        (
            rf"expected type of '{_NAME}' {TENSOR_EXPECTED}<class '[^']*Parameter'>",
            "{name} = {name}.detach()  # a Tensor in every call: here came a Parameter",
        ),
        (
            rf"expected type of '{_NAME}' to be <class '[^']*Parameter'>, but found <class 'torch\.Tensor'>",
            "# {name}: pass a Tensor in every call, or a Parameter: it was compiled for a Parameter",
        ),
        (rf"expected type of '{_NAME}' {TENSOR_EXPECTED}", "# {name}: pass a Tensor in every call"),
        (r"___check_type_id\((?P<name>.+?), \d+\)", _ONE_TYPE),
        (r"(?:type\()?(?P<name>[\w.\[\]']+)(?:\)|\.__class__) ==", _ONE_TYPE),
        (
            r"___check_obj_id\((?P<name>.+?)(?:\.func)?\.__code__, \d+\)",
            "# {name}: call it outside of the compiled code, and pass in what it returns; or pass the same function in every call",
        ),
        (
            r"___check_obj_id\((?P<name>.+?), \d+\)",
            "# {name}: make the object once and pass the same one in every call, or pass what it holds (a tensor, a number)",
        ),
        (
            r"(?P<name>(?:self|G\['\w+'\]|\w+\.\w+)\.\S+) is (?:not )?None$",
            "# {name}: where it is set once and stays, set it before the first compiled call; a counter that begins with None is left alone",
        ),
        (
            r"(?P<name>\S+) is (?:not )?None$|(?P<left>\S+) == None$",
            "# {name}: pass it in every call (a neutral tensor where there is nothing), or in none",
        ),
        (
            r"(?:not |len\()?(?P<name>[\w.\[\]']*_hooks)\b",
            "# {name}: register hooks before the first compiled call, and keep them; a number that grows is a leak: .remove() them",
        ),
        (
            r"len\((?:L\[')?kwargs(?:'\])?\) ",
            "# pass the same keyword arguments in every call, never leave one out: a neutral tensor where others pass one, None where none ever does",
        ),
        (
            r"(?:not )?len\((?P<name>(?:L\['self'\]|self)\..+)\) (?:==|!=|<|<=|>|>=) |not (?P<left>(?:L\['self'\]|self)\.[\w.\[\]'\"]+)$",
            "# {name}: return what the compiled code appends, and append it outside; or one stacked tensor with a mask, filled in place",
        ),
        (
            r"(?:not )?len\((?P<name>.+)\) (?:==|!=|<|<=|>|>=) |not (?P<left>[\w.\[\]'\"]+)$",
            "# {name}: one stacked tensor with a mask (of numbers: torch.tensor), and no loop; or, of tensors, as many entries in every call, masked",
        ),
        (
            r"(?:not )?set\.__contains__\((?P<name>[\w.\[\]'\"]+), |(?P<left>[\w.\[\]'\"]+) == (?:\{|frozenset\()",
            "# {name}: pass what the code asks of it (a flag, a tensor, a mask) in place of the set: torch guards all of its members",
        ),
        (
            r"Duplicate tensors? found",
            "# the same tensor in the same places in every call, or tensors of their own in every call",
        ),
        (
            r"Cache line invalidated because (?P<name>\S+) got deallocated",
            "# {name}: keep the compiled object, and what it holds, for as long as it is called; a new one compiles again",
        ),
        (
            r"(?P<name>[\w.\[\]']+?)\.__(?:closure|defaults|kwdefaults)__",
            "# {name}: define this function once, at module level, and pass what changes as an argument",
        ),
    )
)


def dtype_named(guard: str) -> str:
    """The dtype that a guard was made for, as Python names it; ``dtype`` where it names none that is known."""
    match = _DTYPE.search(guard)
    name = DTYPES.get(match[1]) if match else None
    return f"torch.{name}" if name else "dtype"


def operator_named(message: str) -> str:
    """The operator that a message is about, as torch.library names it: ``acme::fuse`` of ``acme.fuse.default``."""
    match = _OPERATOR.search(message)
    return f"{match[1]}::{match[2]}" if match else "mylib::name"


def reorder_line(message: str) -> str:
    """The function that writes, given to torch to be called behind the graph; what it is called by must be there."""
    line = "torch._dynamo.config.reorderable_logging_functions.add({})"
    return f"import warnings; {line.format('warnings.warn')}" if "warnings.warn" in message else line.format("print")


def tensor_line(name: str | None) -> str | None:
    """What makes a number a tensor: one that an object keeps stays the same tensor, for until torch 2.4 a new one is another object."""
    if name is None or ".shape[" in name:  # nothing can be put into a shape
        return None
    kept = f"once, 0-dimensional (a buffer, where a module holds it); from then on {name}.fill_(value)"
    return f"{name} = torch.tensor({name})  # {kept if name.startswith('self.') else '0-dimensional, made outside the compiled function'}"


def logger_methods(message: str) -> str:
    """The method of a logger that torch could not trace; those that programs call where the log does not name it."""
    match = _LOGGED.search(message)
    return ", ".join(f"logging.Logger.{name}" for name in ([match[1]] if match else ("debug", "info", "warning", "error")))


def missing_module(message: str) -> str | None:
    """The package of a module that Python did not find."""
    match = _MISSING.search(message)
    return match[1] if match else None


def config_module(message: str) -> str | None:
    """The settings of a part of torch, of which Python says that it has none."""
    match = _WITHOUT_CONFIG.search(message)
    return f"{match[1]}.config" if match else None


def is_of_stride(guard: str) -> bool:
    """True for a guard on a stride, in front of the dimension whose size it stands for."""
    match = TENSOR.match(guard)
    return match is not None and match["what"].startswith("stride")


def buckets_for(guards: Iterable[str]) -> str:
    """Five sizes, each twice the one before, of which the last holds every size that the guards show: a stride is none."""
    seen = [int(size) for guard in guards if not is_of_stride(guard) for size in _SIZES.findall(guard)]
    largest = 1 << max(max(seen, default=0) - 1, 127).bit_length()
    return f"({', '.join(str(largest >> step) for step in range(4, -1, -1))})"


def lr_line(guard: str) -> str:
    """What makes a learning rate a tensor: that of an optimizer where it is kept, whatever its class and its first value; else the number itself."""
    if re.match(r"(?:L\['lr'\]|lr) [=!]=", guard):
        return "lr = torch.tensor(lr)  # 0-dimensional, made outside the compiled function"
    return "for group in optimizer.param_groups: group['lr'] = torch.tensor(group['lr'])  # once, right behind the optimizer"


def clone_lines(guard: str) -> str | None:
    """Each tensor but the first of those that are one and the same, cloned; None where the guard is of another form."""
    names = _QUOTED_NAME.findall(guard) if guard.startswith("Duplicate tensors found") else []
    return "; ".join(f"{name} = {name}.clone()" for name in map(code_name, names[1:]) if name is not None) or None


def grad_line(name: str, *, is_parameter: bool) -> str:
    """How a tensor gets one requires_grad for all calls. name: of the tensor, as code: a parameter cannot be detached in its place."""
    if not is_parameter:
        adapters = f"where adapters alone are trained: {name}.requires_grad_(True) behind the embedding (model.enable_input_require_grads())"
        return (
            f"# only where no gradient is wanted: {name} = {name}.detach(); {adapters}; in other training leave it: a graph for each state is normal"
        )
    return f"{name}.requires_grad_(...)  # True or False, before the first compiled call; what is unfrozen later compiles once more, as it must"


def constraint_line(message: str) -> str:
    """The sizes that were marked and that the code fixes, marked in a way that lets torch decide."""
    named = ((match["name"] or ("x", "y", "z")[int(match["number"])], match["dim"]) for match in _CONSTRAINED.finditer(message.partition("!")[0]))
    marks = [f"maybe_mark_dynamic({name}, {dim})" for name, dim in named] or ["maybe_mark_dynamic(x, dim)"]
    return "; ".join(f"torch._dynamo.{mark}" for mark in dict.fromkeys(marks))


def option_line(message: str) -> str:
    """The argument of torch.compile that was meant: the known name that is most like the one that was written, a value of the right type."""
    for form, written, switches, argument, cutoff, otherwise in _ARGUMENTS:
        match = form.search(message)
        if match is not None:
            like = get_close_matches(match[written], [*switches, *re.findall(r"[\w.-]+", match["known"])], 1, cutoff)
            return argument.format(like[0]).replace("...", "True" if like[0] in switches else "...") if like else otherwise
    typed = _TYPED_OPTION.search(message)
    if typed is not None:
        value = "..." if typed["type"] == "NoneType" else f"{typed['type']}(...)"
        return f'options={{"{typed["option"]}": {value}}}'
    return 'mode="reduce-overhead"'


def hinted_config(hint: str) -> str | None:
    """The line for the setting of Dynamo that torch's hint names with its value; none where torch itself warns of it.

    torch leaves out ``config`` in one of its hints.
    """
    match = _CONFIG_NAMED.search(hint) if "incorrectness" not in hint else None
    return f"torch._dynamo.config.{match['name']} = {match['value']}" if match else None


def hinted_variable(hint: str) -> str | None:
    """The variable of the environment that torch's hint names with its value."""
    match = _VARIABLE_NAMED.search(hint)
    return match["line"] if match else None


def state_line(guard: str) -> str:
    """The line that sets a global state of torch once; for those that have none what to do about the guard."""
    if "dispatch key set mismatch" in guard:  # torch before 2.7 shows autocast on each tensor
        return "# torch.autocast(...): the same at warm-up and in use, or inside the compiled function"
    if guard.startswith("___check_global_state"):
        return "# grad mode, autocast, deterministic algorithms, number of threads, default dtype: the same at warm-up and in use"
    if "mode_stack" in guard or "torch_function" in guard:
        return "# torch.device(...) and torch.set_default_device(...): the same at warm-up and in use, or inside the compiled function"
    named = [next((line for name, line in _STATES if name in state), None) for state in guard.partition(" changed: ")[2].split() or [guard]]
    lines = [line for line in dict.fromkeys(named) if line and (line != _DETERMINISTIC or _WARN_ONLY not in named)]
    return f"{'; '.join(lines)}  # once, before the first compiled call, and no other value later" if lines else (
        f"# {guard}: the same at warm-up and in use; put `with torch.autocast(...)` inside the compiled function"
    )  # fmt: skip


_ROOT = pattern(r"^(?:G\['__import___main__'\]\.|[LG]\['(\w+)'\]|__import___main__\.)")  # a local, or a global of the program's own module


def structure_line(guard: str) -> str:
    """What to change about the object that a guard looks at."""
    for form, line in _STRUCTURE:
        match = form.match(guard)
        if match is not None:
            found = match.groupdict()
            name = found.get("name") or found.get("left") or ""
            return line.format(name=_ROOT.sub(r"\1", name), least=min(found.get("one") or "1", found.get("other") or "1", key=int))
    return f"# {guard}: build this once and reuse it, or replace it by what it holds (a tensor, a number, a tuple of fixed length)"


_FILLED = "what is missing filled with what the code ignores, by a mask or ignore_index: None is one more variant"


def keys_line(guards: Sequence[str]) -> str:
    """The keys of a dict that come and go, to be passed always or never; keys that are data stay outside."""
    found = [match for guard in guards if (match := _KEY.match(guard)) is not None]
    if not found:
        return f"# {guards[-1] if guards else 'a dict'}: the same keys in every call, {_FILLED}"
    name = code_name((found[-1]["of"] or found[-1]["holder"] or found[-1]["whole"]).removesuffix("._tensordict")) or "the dict"
    keys = list(dict.fromkeys(key for match in found if (key := match["key"] or match["other"]) is not None))[:_MAX_KEYS]
    always = (
        f": {', '.join(keys)} always ({_FILLED}) or never" if keys else f", {_FILLED}; where they are data (an id, a symbol): list({name}.values())"
    )
    chosen = f"; or {name}.select(...) with those that are used" if any("._tensordict" in guard for guard in guards) else ""
    ordered = "" if all("___dict_contains" in guard for guard in guards) else ", in one order"
    return f"# {name}: the same keys in every call{ordered}{always}{chosen}"


def layers_before(source: str, most: int) -> list[str]:
    """The source with each smaller last index as well: ``c.k[0]`` and ``c.k[1]`` of ``c.k[1]``."""
    indices = list(re.finditer(r"\[(\d+)\]", source))
    if not indices:
        return [source]
    last = indices[-1]
    return [f"{source[: last.start()]}[{index}]{source[last.end() :]}" for index in range(min(int(last[1]) + 1, most))]


def source_pattern(sources: Sequence[str], *, is_per_layer: bool) -> str | None:
    """The sources, or for one index of each layer the regular expression that covers all layers (torch 2.9 and later)."""
    if not is_per_layer or not sources:
        return ",".join(sources) or None
    varying = varying_integer(list(sources))
    indices = list(re.finditer(r"\[(\d+)\]", sources[-1]))
    if varying is None or not indices:
        return ",".join(sources)
    number = next((i for i in indices if int(i[1]) == varying[2][-1]), indices[-1])
    head, tail = re.escape(sources[-1][: number.start()]), re.escape(sources[-1][number.end() :])
    return f"{head}\\[.*\\]{tail}"


def own_number(name: str | None) -> str | None:
    """A number that the program itself sets, of an expression the only name in it: deep in a private object of a library is no place to write to."""
    if name is not None and name.startswith("("):
        names = set(_NAMES_IN.findall(name))
        name = names.pop() if len(names) == 1 else None
    return name if name is None or _INNER.search(name) is None else None


def fixing_line(extra: Mapping[str, object]) -> str | None:
    """The line of code that fixes a size, as torch prints its place: ``app/table.py:13 (if n not in tables:)``."""
    place, code = extra.get("fixed_at"), extra.get("fixed_code")
    return None if place is None else f"{place} ({shortened(str(code), _MAX_CODE)})" if code else str(place)


def is_of_a_layer(line: str) -> bool:
    """True for such a line of one of torch's layers, whose weight has the size: several layers of several widths share the code."""
    return _LAYER.match(line) is not None


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def rooted(source: str | None) -> str | None:
    """A guard's source with ``L['…']`` around the root local, as TORCH_COMPILE_DYNAMIC_SOURCES wants it.

    torch from 2.7 on prints ``kv_cache._current_idx[7]``, before that ``L['kv_cache']._current_idx[7]``. None for what
    is no plain source.
    """
    if source is None:
        return None
    match = None if re.match(r"[LG]\['", source) else _ROOTED.fullmatch(source)
    text = f"L['{match['root']}']{match['rest']}" if match else source
    return text if _PLAIN_SOURCE.fullmatch(text) else None


def source_text(guard: str) -> str | None:
    """The source that a guard is about, as printed; None where it names none."""
    guard = _READ_OUT.sub(r"\g<source>", guard) if "___as_tensor(" in guard else guard
    tensor = TENSOR.match(guard)
    if tensor is not None:
        return tensor["source"]
    size = SIZE.match(guard)
    if size is not None:
        return size["source"]
    computed, equals = _COMPUTED.fullmatch(guard), _EQUALS.fullmatch(guard)
    named = set(_IN_COMPUTED.findall(computed["computed"])) if computed is not None else set()
    return named.pop() if len(named) == 1 else equals["source"] if equals is not None else None


def code_name(source: str) -> str | None:
    """A source as Python code: ``L['self']._modules['lin']._parameters['weight']`` becomes ``self.lin.weight``.

    None for what code cannot name, such as a value on the stack that a graph break hands over (``___stack0``).
    """
    source = _ROOT.sub(r"\1", source)
    source = re.sub(r"\._(?:modules|parameters|buffers)\['(\d+)'\]", r"[\1]", source)
    source = re.sub(r"\._(?:modules|parameters|buffers)\['(\w+)'\]", r".\1", source)
    return source if re.fullmatch(r"(?!___)\w+(?:\.\w+|\[\d+\]|\['[\w.-]+'\])*", source) else None
