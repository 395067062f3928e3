"""Stack frames that a message shows, and which of them is the user's code."""

import re
from itertools import takewhile
from typing import NamedTuple
from zlib import crc32

from recompile_watch.core.late import pattern
from recompile_watch.core.sightings import decode

# A frame of a stack, not one in the comments of a printed graph.
_FRAME = pattern(rb"(?<!# )File \"(?P<file>[^\"\n]+)\", (?:line (?P<line>\d+), )?in (?P<function>[^\n]+?)(?=\s{2,}|\n|$| [a-z_]+ ?[=(.])")
# Where torch names the code that an exception is about, best first: what Dynamo traced when it failed; behind a constraint or a number that it
# does not know, also in an export (torch/fx/experimental/symbolic_shapes.py); the node of a lowering (torch/_inductor/exc.py); what a tensor
# came out of.
_STACKS = (
    pattern(rb"from user code:\n(?:\s+[^\n]*\n?)+"),
    pattern(
        rb"(?m)(?:^User [Ss]tack(?: \(most recent call last\))?:|(?:^|\. )Found from ?:"
        rb"|^The (?:forward output was created here|following call raised this error):)[ \t]*\n"
        rb"(?:[ \t]+[^\n]*\n?|\n)+"
    ),
)
_OF_TORCH = pattern(r"[\\/](?:site|dist)-packages[\\/]torch[\\/]|(?:^|[\\/])torch[\\/](?:_\w+|nn)[\\/]")
# Installed packages, Python itself, the scripts that start them, and what the compiler wrote.
_LIBRARY = pattern(
    r"[\\/](?:site|dist)-packages[\\/]|[\\/]python3\.\d+[\\/](?!(?:site|dist)-packages[\\/])|[\\/](?:Lib|Python3\d+[\\/]lib)[\\/](?!site-packages[\\/])"
    r"|[\\/]triton[\\/](?:compiler|runtime|language|backends)[\\/]"
    r"|[\\/](?:bin|Scripts)[\\/][\w.-]+(?<!\.py)$|\.pyx$|^<frozen |[\\/]torchinductor_[^\\/]+[\\/]|[\\/]\w\w[\\/]c\w{40,60}\.py$"
)
_TREE_OF_TORCH = pattern(r"^(?P<root>(?:.*?[\\/])?torch[\\/])(?:(?:_tensor|__init__)\.py$|_(?:dynamo|functorch|inductor)[\\/])")  # installed or not
_COMPILES = pattern(r"(?:^|[\\/])torch[\\/]_(?:dynamo|functorch|inductor)[\\/]")
_ENTERS = pattern(r"[\\/]_dynamo[\\/](?:eval_frame|external_utils)\.py$")  # the way into what is compiled
_BACKWARD = pattern(r"(?:^|[\\/])torch[\\/](?:_tensor|autograd[\\/](?:__init__|graph))\.py$")
_CAUSED = pattern(rb"(?m)^Caused by: (?:[^\n]{0,400} # |\()(?P<file>[^\s():]{1,300}):(?P<line>\d{1,9}) in (?P<function>[\w<>]{1,200})")
# How the paths begin that torch shortens, of its own files.
_SHORT_OF_TORCH = pattern(r"^(?:nn|_refs|_prims\w*|_decomp|fx|_\w+|functorch|distributions|utils|ao|optim|autograd|distributed|export)/|^\w+\.py$")
_OF_TRACING = pattern(rb"[\\/]fx[\\/]_symbolic_trace\.py\"")  # whose flag is the whole process's
_IN_THREAD = pattern(rb"[\\/](?:threading|concurrent[\\/]futures[\\/]thread)\.py\", line \d+, in _?run\b")
_SAMPLED = pattern(rb"(?:inferred to be|specialized it to be) a constant \(1\)|export 0/1 specialized due to hint of 1\b")
_EXPORTS = pattern(
    rb"[\\/]torch[\\/](?:_?export|onnx[\\/]_internal[\\/]exporter)[\\/]\w+\.py\"|\boccurred when calling torch\.export\."
    rb"|Caused by: [^\n]{0,400}\b_export/\w+\.py:"
)
_ONNX = pattern(rb"\bonnx[\\/]_internal[\\/]exporter[\\/]|of exporting the model to ONNX")
CALLER = "torch.compile_error.caller"  # for a traceback whose exception is a record of its own: what calls
_MAX_FRAMES = 200  # of a stack that are compared
_HEADER = b"Traceback (most recent call last)"
_CALLS_MODULE = pattern(r"[\\/]torch[\\/]nn[\\/]modules[\\/]module\.py$")
_FRAMES_OF_A_CALL = 2  # of torch for the call of a module; the compiled module has two more of its own
# What is done with the number, the size or the truth value that torch would have to read.
_STATEMENTS = (
    ("asserts", pattern(rb"^assert\b")),
    (
        "asks_empty",
        pattern(rb"^(?:el)?if\b[^\n]*(?:\blen\(|\.(?:numel|nelement)\(\)|\.shape\[|\.size\(\d)[^\n]{0,100}?(?:[=!]= *0|> *0|< *1|>= *1|<= *0)\b"),
    ),
    (
        "works_on_mask",
        pattern(
            rb"^(?:el)?if\b(?:(?!\bnot\b|~)[^\n])*?(?:\bany\([^\n]*mask|mask[^\n]*\.any\()"
            rb"|^(?:el)?if\b[^\n]*?\bnot\b[^\n]*?(?:\ball\([^\n]*mask|mask[^\n]*\.all\()"
        ),
    ),
    ("asks_mask", pattern(rb"^(?:el)?if\b[^\n]*?(?:\b(?:all|any)\([^\n]*mask|mask[^\n]*\.(?:all|any)\()")),
    (
        "asks_to_stop",
        pattern(rb"^(?:(?:el)?if|while)\b[^\n]*\b(?:un)?(?:finished|done|eos|eos_\w+|converged|stopped|is_finished|all_done)\b[^\n]*\.(?:all|any)\("),
    ),
    ("counts_bins", pattern(rb"\bbincount\(")),
    ("branches", pattern(rb"\b(?:if|while|and|or|not)\b(?:(?!:\s|\belse\b).)*(?:\.item\(|\bbool\()")),
    ("branches", pattern(rb"^(?:(?:el)?if|while)\b[^\n]* in [A-Za-z_]")),  # a tensor is asked whether it holds a number
    # For a log, or for a list, a table or a sum that the program keeps; the graph does not go on with it.
    ("reads_out", pattern(rb"\.detach\(\)[^\n]{0,100}\.(?:item|tolist)\(")),
    ("reads_out", pattern(rb"^self(?:\.\w+)+(?:\[[^\]\n]{1,80}\])? [+-]= [^\n]*(?:\.item\(|\bfloat\()")),
    ("reads_out", pattern(rb"^[\w.]{1,100}(?:\[[^\]\n]{1,80}\])?\.append\([^\n]*(?:\.item\(|\.tolist\(|\bfloat\()")),
    ("reads_out", pattern(rb"^[\w.]{1,100}\[f?[\"'][^\]\n]{1,80}\] \+?= [^\n]*\.(?:item|tolist)\(")),
    (
        "reads_out",
        pattern(
            rb"^(?:print|[\w.()\"'\[\]]{0,80}\.(?:debug|info|warning|error|add_scalar|add_histogram|record|report|put|update|log\w{0,20}))\([^\n]*\.(?:item|tolist)\("
        ),
    ),
    ("draws_numbers", pattern(rb"\b(?:np|numpy)\.random\.|\btorch\.Generator\(|\bgenerator=(?!None)")),
    ("steps_optimizer", pattern(rb"\b\w*(?:opt\w*|scaler|sched\w*)\.(?:step|zero_grad|unscale_|update)\(")),
    ("picks_experts", pattern(rb"\bexpert_(?:hit|idx|mask)\b")),  # the loop of transformers' mixtures of experts
    ("exchanges_objects", pattern(rb"\b(?:all_)?gather_object\(|\b(?:broadcast|scatter|send|recv)_object_list\(")),  # of torch.distributed
    (
        "sized_by_tensor",
        pattern(
            rb"^(?!.*(?:\.item\(|\.tolist\(|\bint\(|\bfloat\())[^\n]*"
            rb"(?:\btorch\.(?:arange|zeros|ones|full|empty|linspace|eye|rand\w*)\(|\.(?:expand|repeat|view|reshape|new_\w+)\()"
        ),
    ),
)

_TELLS_OF_CODE = pattern(rb"\bdata-dependent expression\b|\bbut your code specialized it\b")
_INPUT = pattern(rb": graph input \((\w{1,300})\)")  # from what torch 2.12 and later say a branch's condition is computed

# What the whole stack tells: a keyword that the program gave torch's own code, or an autograd.Function.
_IN_STACK = (
    ("checks_arguments", pattern(rb"[\\/]torch[\\/]distributions[\\/]\w+\.py\b")),
    (
        "checks_norm",
        pattern(rb"\bclip_grad\.py\b[^\n]{0,200}\berror_if_nonfinite\b|\berror_if_nonfinite\s*=\s*True\b(?s:.){0,4000}\bclip_grad\.py\b"),
    ),
    ("custom_function", pattern(rb"\n[ \t][^\n]{0,180}\b[A-Z]\w{0,80}\.apply\(")),
)


class StackFrame(NamedTuple):
    """One entry of a stack. line_no: None where the log cut it out."""

    file: str
    line_no: int | None
    function: str

    @property
    def place(self) -> str:
        """``/srv/m.py:12 in forward``."""
        return f"{self.file}:{self.line_no} in {self.function}"


def frames(message: bytes) -> list[StackFrame]:
    """The stack frames in a message, outermost first. Its line breaks may be spelled out."""
    if b"\\n  " in message:
        message = message.replace(b"\\n  ", b"\n  ")
    return [StackFrame(decode(m["file"]), int(m["line"]) if m["line"] else None, decode(m["function"]).strip()) for m in _FRAME.finditer(message)]


def is_of_a_library(file: str | None) -> bool:
    """True for a file of Python's or of an installed package, which nobody edits to mend a program."""
    return file is not None and _LIBRARY.search(file) is not None


def users_own(stack: list[StackFrame]) -> list[StackFrame]:
    """The stack up to the innermost frame that is not of torch's library; all of it where all frames are."""
    last = next((n for n, frame in reversed([*enumerate(stack, 1)]) if _OF_TORCH.search(frame.file) is None), len(stack))
    return stack[:last]


def called_from(stack: list[StackFrame]) -> dict[str, object]:
    """Which line of the program's own leads into a library, as a field of the event: ``called_from`` inside of what is compiled, ``entered_at`` where
    the compiled object is the library's, as far as the stack tells."""
    if not stack or not is_of_a_library(stack[-1].file):
        return {}
    own = next((n for n, frame in reversed([*enumerate(stack)]) if not is_of_a_library(frame.file)), None)
    if own is None or stack[own].line_no is None or stack[own].file.startswith("<"):
        return {}
    calls = sum(1 for _ in takewhile(lambda frame: _CALLS_MODULE.search(frame.file) is not None, stack[own + 1 :]))
    file, line_no, function = stack[own]
    is_inside = calls <= _FRAMES_OF_A_CALL and function != "<module>"
    return {"called_from": stack[own].place} if is_inside else {"entered_at": f"{file}:{line_no}"}


def caller(message: bytes) -> dict[str, object]:
    """The program's own line at which the last traceback of a failure leaves it for torch, as fields of the event.

    A line that was running as compiled code is the failure's place; one that called what is compiled is none, nor is the code of a backend: in front
    of that stands the call.
    """
    stacks = (frames(part) for part in reversed(message.split(_HEADER)))
    for stack in stacks:
        root = next((found["root"] for frame in stack if (found := _TREE_OF_TORCH.search(frame.file)) is not None), None)
        own = next((n for n, frame in reversed([*enumerate(stack)]) if not _is_of_others(frame.file, root)), None)
        if own is None or stack[own].line_no is None:
            continue
        file, line_no, function = stack[own]
        through = [frame for frame in stack[:own] if _COMPILES.search(frame.file) is not None]
        if not through:
            behind = takewhile(lambda frame: _COMPILES.search(frame.file) is None, stack[own + 1 :])
            is_backward = any(_BACKWARD.search(frame.file) is not None for frame in behind)
            return {"called_from": stack[own].place} | ({"in_backward": True} if is_backward else {})
        if all(_ENTERS.search(frame.file) is not None for frame in through):
            return {"function": function, "file": file, "line_no": line_no}
        return _entered_from(stack[: stack.index(through[0])], root)
    return {}


def _entered_from(stack: list[StackFrame], root: str | None) -> dict[str, object]:
    """The program's own line that called what is compiled. stack: the frames in front of the compiler's; behind those a backend's own code raised."""
    own = next((frame for frame in reversed(stack) if not _is_of_others(frame.file, root)), None)
    return {} if own is None or own.line_no is None else {"called_from": own.place}


def caused_by(message: bytes) -> StackFrame | None:
    """The program's own frame that torch names as the cause of a number that it does not know; its path is short where no stack shows it whole."""
    named = _CAUSED.search(message)
    if named is None:
        return None
    cause = StackFrame(decode(named["file"]), int(named["line"]), decode(named["function"]))
    whole = (one for one in frames(message) if one[1:] == cause[1:] and one.file.replace("\\", "/").endswith(f"/{cause.file}"))
    cause = next(whole, cause)
    return None if is_of_a_library(cause.file) or _SHORT_OF_TORCH.search(cause.file) is not None else cause


def traced_elsewhere(message: bytes) -> dict[str, object]:
    """Whether a thread of the program met the flag of what another one traced, as a field of the event."""
    is_met = _OF_TRACING.search(message) is not None and _IN_THREAD.search(message) is not None
    return {"statement": "in_thread"} if is_met else {}


def exported(message: bytes) -> dict[str, object]:
    """Whether torch.export was to trace the program, whether with a sample whose size is 1, and what the program's own line does.

    As fields of the event. An export runs the program's line as it is: it stands in the traceback.
    """
    found: dict[str, object] = {"exported": True} if _EXPORTS.search(message) is not None else {}
    if _SAMPLED.search(message) is not None:
        return found | {"statement": "sample_of_one"}
    if not found:
        return found
    own = [frame for frame in frames(message.rpartition(_HEADER)[2]) if frame.line_no and not is_of_a_library(frame.file)]
    to_onnx = {"statement": "to_onnx"} if _ONNX.search(message) is not None else {}
    return found | to_onnx | statement_at(message, own[-1:])


def stack_of(message: bytes) -> tuple[int, ...]:
    """The last traceback in a message, frame by frame, as far as comparing needs it."""
    return tuple(crc32(repr(frame).encode()) for frame in frames(message.rpartition(_HEADER)[2]))[-_MAX_FRAMES:]


def _is_of_others(file: str, torch: str | None) -> bool:
    """True for a file that is none of the program's own. torch: the folder of torch, if the stack tells."""
    return file.startswith("<") or (torch is not None and file.startswith(torch)) or is_of_a_library(file)


def user_code(message: bytes) -> list[StackFrame] | None:
    """The stack down to the user's frame in what an exception says of where it came from; None where it does not say."""
    shown = (code for stack in _STACKS if (code := stack.search(message)) is not None)
    stack = next((found for code in shown if (found := frames(code[0]))), None)
    return users_own(stack) if stack else None


def code_at(message: bytes, frame: StackFrame) -> bytes:
    """The line of code below a frame, the last one where it stands in several stacks; empty where none does."""
    if not frame.line_no:
        return b""
    form = rb'File "%s", line %d, in [^\n]{1,200}\n[ \t]{1,80}([^\n]{1,200})' % (re.escape(frame.file.encode()), frame.line_no)
    found: list[bytes] = re.findall(form, message)
    return found[-1] if found else b""


def statement_at(message: bytes, stack: list[StackFrame]) -> dict[str, object]:
    """What the line of code at a break does, as a field of the event, where that decides. stack: the frame that broke."""
    inputs = set(_INPUT.findall(message))
    if inputs and all(b"_buffers_" in name for name in inputs):
        return {"statement": "asks_buffers"}
    code = [line for frame in stack if (line := code_at(message, frame))][-1:]
    found = next((name for line in code for name, form in _STATEMENTS if form.search(line) is not None), None)
    found = found or next((name for name, form in _IN_STACK if form.search(message) is not None), None)
    shown: dict[str, object] = {"code": decode(code[0]).strip()} if code and _TELLS_OF_CODE.search(message) is not None else {}
    return shown | ({"statement": found} if found is not None else {})
