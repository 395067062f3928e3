"""Guards as lines of code: what a person changes in the program, by the form of the guard that failed.

Pure text: which dtype, which state of torch, which object. Nothing here knows of remedies.
"""

import re
from collections.abc import Iterable

from recompile_watch.core.late import pattern

# torch's names of dtypes in guards (c10/core/ScalarType.h) and in Python.
DTYPES = {
    "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Double": "float64", "Long": "int64", "Int": "int32", "Short": "int16",
    "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
    "Float8_e4m3fn": "float8_e4m3fn", "Float8_e5m2": "float8_e5m2",
}  # fmt: skip
# The optimizers of torch/optim by their file, and whether they take capturable=.
_OPTIMIZERS = {
    "adam": ("Adam", True), "adamw": ("AdamW", True), "nadam": ("NAdam", True), "radam": ("RAdam", True), "adamax": ("Adamax", True),
    "adadelta": ("Adadelta", True), "asgd": ("ASGD", True), "rprop": ("Rprop", True), "rmsprop": ("RMSprop", True),
    "sgd": ("SGD", False), "adagrad": ("Adagrad", False),
}  # fmt: skip
_LIBRARY = pattern(
    r"[\\/](?:site|dist)-packages[\\/]torch[\\/]|[\\/]python3\.\d+[\\/](?!(?:site|dist)-packages[\\/])|[\\/]Lib[\\/](?!site-packages[\\/])"
)
_DTYPE = pattern(r"dtype mismatch\. expected (\w+)")
_OPERATOR = pattern(r"\b(?!torch\b|aten\b|prims?\b)([A-Za-z_]\w+)(?:\.|::)([A-Za-z_]\w+)\.(?:default|[A-Z]\w+)\b")
_SIZES = pattern(r"\b(?:expected|actual) (\d{1,9})\b")
_LR = pattern(r"\['lr'\] == (\d+(?:\.\d+)?(?:e-?\d+)?)$")
_STATES = (
    ("num_threads", "torch.set_num_threads(N)"),
    ("default_dtype", "torch.set_default_dtype(torch.float32)"),
    ("deterministic_algorithms", "torch.use_deterministic_algorithms(True)"),
    ("matmul_precision", "torch.set_float32_matmul_precision('high')"),
    ("tf32", "torch.set_float32_matmul_precision('high')"),
    ("CURRENT_DEVICE", "torch.set_default_device('cuda')"),
)
_NAME = r"(?P<name>[^']+(?:'\w+'[^']*)*)"
_ONE_TYPE = "# {name}: pass objects of one type in every call (a tuple, never a list now and then), or the tensors and numbers they hold"
# What a guard looks like, and the line for it; the first that fits counts.
_STRUCTURE = tuple(
    (pattern(form), line)
    for form, line in (
        (
            r"tensor '(?P<name>.+?)' rank mismatch",
            "{name} = {name}.reshape(-1, {name}.shape[-1]).clone()  # always two dimensions, if those in front are batch; reshape the result",
        ),
        (
            rf"expected type of '{_NAME}' to be a tensor type, '? ?but found <class '[^']*Parameter'>",
            "{name} = {name}.detach()  # a Tensor in every call: here came a Parameter",
        ),
        (rf"expected type of '{_NAME}' to be a tensor type", "# {name}: pass a Tensor in every call"),
        (r"___check_type_id\((?P<name>.+?), \d+\)", _ONE_TYPE),
        (r"(?:type\()?(?P<name>[\w.\[\]']+)(?:\)|\.__class__) ==", _ONE_TYPE),
        (
            r"___check_obj_id\((?P<name>.+?), \d+\)",
            "# {name}: make the object once and pass the same one in every call, or pass what it holds (a tensor, a number)",
        ),
        (
            r"(?P<name>\S+) is (?:not )?None$|(?P<left>\S+) == None$",
            "# {name}: pass it in every call (a neutral tensor where there is nothing), or in none",
        ),
        (
            r"(?:not |len\()?(?P<name>[\w.\[\]']*_hooks)\b",
            "# {name}: register hooks before the first compiled call, and keep them",
        ),
        (
            r"(?:not )?len\((?P<name>.+)\) (?:==|!=|<|<=|>|>=) |not (?P<left>[\w.\[\]'\"]+)$",
            "# {name}: as many entries in every call: pad it, or pass one stacked tensor",
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


def is_of_a_library(file: str | None) -> bool:
    """True for a file of torch or of Python itself, which nobody edits to mend a program."""
    return file is not None and _LIBRARY.search(file) is not None


def dtype_named(guard: str) -> str:
    """The dtype that a guard was made for, as Python names it; ``dtype`` where it names none that is known."""
    match = _DTYPE.search(guard)
    name = DTYPES.get(match[1]) if match else None
    return f"torch.{name}" if name else "dtype"


def operator_named(message: str) -> str:
    """The operator that a message is about, as torch.library names it: ``acme::fuse`` of ``acme.fuse.default``."""
    match = _OPERATOR.search(message)
    return f"{match[1]}::{match[2]}" if match else "mylib::name"


def buckets_for(guards: Iterable[str]) -> str:
    """Five sizes, each twice the one before, of which the last holds every size that the guards show."""
    seen = [int(size) for guard in guards for size in _SIZES.findall(guard)]
    largest = 1 << max(max(seen, default=0) - 1, 127).bit_length()
    return f"({', '.join(str(largest >> step) for step in range(4, -1, -1))})"


def optimizer_line(file: str | None, guard: str) -> str:
    """How the optimizer whose ``step`` was compiled is built with a tensor as its learning rate."""
    name, takes_capturable = _OPTIMIZERS.get(re.split(r"[\\/]", file or "")[-1].removesuffix(".py"), ("Adam", True))
    rate = match[1] if (match := _LR.search(guard)) else "0.01"
    return f"optimizer = torch.optim.{name}(parameters, lr=torch.tensor({rate}){', capturable=True' if takes_capturable else ''})"


def state_line(guard: str) -> str:
    """The line that sets a global state of torch once; for those that have none what to do about the guard."""
    if "dispatch key set mismatch" in guard:  # torch before 2.7 shows autocast on each tensor
        return "# torch.autocast(...): the same at warm-up and in use, or inside the compiled function"
    if guard.startswith("___check_global_state"):
        return "# grad mode, autocast, deterministic algorithms, number of threads, default dtype: the same at warm-up and in use"
    if "mode_stack" in guard or "torch_function" in guard:
        return "# torch.device(...) and torch.set_default_device(...): the same at warm-up and in use, or inside the compiled function"
    line = next((line for name, line in _STATES if name in guard), None)
    return f"{line}  # once, before the first compiled call, and no other value later" if line else (
        f"# {guard}: the same at warm-up and in use; put `with torch.autocast(...)` inside the compiled function"
    )  # fmt: skip


def structure_line(guard: str) -> str:
    """What to change about the object that a guard looks at."""
    for form, line in _STRUCTURE:
        match = form.match(guard)
        if match is not None:
            name = match.groupdict().get("name") or match.groupdict().get("left") or ""
            return line.format(name=re.sub(r"^[LG]\['(\w+)'\]", r"\1", name))
    return f"# {guard}: build this once and reuse it, or replace it by what it holds (a tensor, a number, a tuple of fixed length)"
