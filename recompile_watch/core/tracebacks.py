"""Tracebacks: whether one is of torch's compiler, at which stage that failed, and with what.

Every call of a compiled function passes through torch/_dynamo and torch/_functorch, so a traceback that names them proves
nothing by itself: an exception of the program's own code goes the same way. Only frames of the code that compiles count, and
the files that inductor writes. Forms of frames: Python's own, IPython's, pytest's, rich's; with either slash.

Source of the names: torch 2.0 to 2.13, the stacks of failures at each stage; triton 2 and 3; torchdynamo, torchinductor and
functorch of 2022, which torch 2.0 took in.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from recompile_watch.core.late import pattern

_FRAME = pattern(
    rb"(?:^|[\\/\s\"~.])(?P<module>(?:torch|triton|torchdynamo|torchinductor|functorch|(?:vllm|srt)[\\/]compilation)[\\/][\w\\/-]{1,200})\.py\"?"
    rb"(?:(?:(?:, line \d+|:\d+)?[,:]? in |(?::\d+| \.\.\.) (?=\w+\s*$)|, line \d+, (?=[\w.<>]+\"?,?\s*$))(?P<function>[\w.<>]+))"
    # inductor names what it writes by a hash: ab/cab….py
    rb"|[\\/]\w\w[\\/]c\w{40,60}\.py\"?(?:, line \d+|:\d+)?[,:]? in (?P<generated>[\w.<>]+)"
)
# A frame that was cut at the edge of a console, in front of its function.
_CUT_FRAME = pattern(rb"^\s*File \"[^\"\n]{0,300}\b(?P<module>(?:torch|triton)[\\/][\w\\/-]{1,200})\.py\",(?: line(?: \d+)?)?\s*$")
# The statement that raises, where the log ends behind it: the exception, and its text where the code holds it.
_RAISES = pattern(
    r"\s+raise (?:\w+\.){0,4}(?P<name>[A-Z]\w*(?:Error|Exception|Failed|Unsupported|Missing|Resources))"
    r"(?:\((?:[rf]?(?P<quote>[\"'])(?P<said>.{1,300}?)(?P=quote)\s*\)|[^\"']*)|\s*(?:from \w+\s*)?$)"
)
# How a notebook heads a traceback; some exceptions only the compiler raises.
_HEADER = pattern(
    r"(?:(?P<compiler>InternalTorchDynamoError|TorchRuntimeError|BackendCompilerFailed|InductorError|LoweringException|Unsupported)"
    r"|(?P<name>[A-Z]\w{1,40}(?:Error|Exception)))\s{3,}Traceback \("
)
# What the compiled program itself goes through when it runs.
_RUNS = pattern(
    r"torch(?:/_|)dynamo/(?:eval_frame (?:_fn|__call__|__(?:get|set|del)attr__|inner|forward|wrapper|compile_wrapper|_call_lazy_check|fn)$"
    r"|external_utils |decorators |polyfills)"
    r"|torch/_functorch/_aot_autograd/(?:runtime_wrappers (?!_backward_prologue|process_runtime_tangent|coerce_)|utils |subclass_utils )"
    r"|torch/_functorch/(?:(?:apis|vmap|eager_transforms|functional_call|pyfunctorch) "
    r"|aot_autograd (?:forward|backward|wrapper|new_func|g|inner|runtime_wrapper|call_func\w*|debug_compiled_function|boxed_forward)$)"
    r"|torch/_inductor/(?:output_code |hooks |utils |runtime/runtime_utils )"
    r"|torch/_inductor/(?:compile_fx (?:run|wrapper|__call__)$|codecache (?:__call__|_run_from_cache)$)"
)
_RUNNING = ("_fn", "__call__", "inner", "run", "forward", "backward", "wrapper", "_backward_impl")  # functions of which some modules only run
_STAGES = (
    ("running", pattern(r"torch/(?:_inductor/package/package|export/pt2_archive/_package) __call__$")),
    ("kernel", pattern(r"triton/(?:compiler|backends|language|runtime/(?:build|driver))|torch/_inductor/runtime/(?:triton_h|autotune)")),
    ("cudagraphs", pattern(r"torch/_inductor/cudagraph_trees ")),
    ("inductor", pattern(
        r"torch(?:/_|)inductor/|(?:vllm|srt)/compilation/(?:backends?|compiler_interface|inductor_pass|pass_manager|fix_functionalization|fusion\w*) "
    )),
    ("autograd", pattern(r"(?:torch/_functorch|functorch/_src)/(?:_aot_autograd/|aot_autograd |partitioners |compilers )")),
    ("tracing", pattern(
        r"torch/__init__ compile$"
        r"|torch/(?:_dynamo|_export|export)/|torchdynamo/|torch/_subclasses/fake_|torch/fx/experimental/(?:symbolic_|proxy_tensor|sym_node)"
    )),
)  # fmt: skip
# Functions that a program calls to steer the compiler, and to tell it of an operator: what one of these raises itself refuses the call.
_FRAME_OF_ANY = b'File "'
_STEERS = pattern(
    rb"torch[\\/](?:_dynamo[\\/](?:decorators|backends[\\/]registry)|compiler[\\/]__init__)\.py\""
    rb"|torch[\\/]_dynamo[\\/]eval_frame\.py\", line \d+, in _?(?:set_stance|callback_from_stance)\b"
)
_REGISTERS = pattern(
    rb"torch[\\/](?:library|_library[\\/](?:custom_ops|infer_schema|utils|simple_registry|opaque_object|fake_impl|triton)|export[\\/]dynamic_shapes)\.py\""
)
_SUFFIXES = r"Error|Exception|Interrupt|Exit|Iteration|Failed|Unsupported|Resources|Missing|Violation|Timeout|Expired|NotFound"
_EXCEPTION = pattern(
    rf"(?:E\s{{2,}}|│\s*)?(?P<name>(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:{_SUFFIXES})\w*|(?<=\.)[A-Z]\w+|Unsupported))"
    r"(?::\s?(?P<said>.*)|\s*)$"
)
# The end of the process by a signal, told in front of its stack, innermost frame first.
_CRASH = pattern(r"Fatal Python error: (?P<said>[^\n]{1,200})")
# What a compiled function raises because of the tensors it is given: eager code would have been as unlucky, or not, but the remedy is known.
_OF_PIECES = pattern(r"sequence item \d+: expected str instance, \w+ found")  # of an f-string, which eager mode puts together
_OF_INPUTS = pattern(r"Inference tensors cannot be saved for backward\b")
_COMPILED = "torch/_functorch/_aot_autograd/"
# What no compiler raises: somebody ended the program, or the GPU is full, which is an event of its own.
_ENDED = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit", "StopIteration", "CancelledError", "OutOfMemoryError"})


REPORTED = "torch.compile_error.reported"  # for a failure that pytest names once more
# Its place behind its traceback, and the summary of the run: "model.py:12: Unsupported", "FAILED test_model.py::test_fast - Unsupported: …".
_REPORT = pattern(rb"(?:FAILED|ERROR) [^\s:]{1,300}(?:::\S[^\n]{0,300}?)? - \S|[^\s:]{1,300}(?::\\[^\s:]{1,300})?\.py:\d{1,7}: [A-Z]\w{0,60}\s*\Z")


def is_report(line: bytes) -> bool:
    """True for a line in which pytest names a failure that it has told of."""
    return _REPORT.match(line) is not None


@dataclass(frozen=True, slots=True)
class Failure:
    """What a traceback of the compiler ends in.

    exception: its name without the module; None when the log shows only the stack. said, more: the exception's first line
    and the one below. stage: ``tracing`` (Dynamo), ``autograd`` (AOTAutograd), ``inductor``, ``kernel`` (triton),
    ``cudagraphs``, ``running`` (the code that inductor wrote), or ``call`` (a function of torch that refuses what it was called with).
    """

    exception: str | None
    said: str
    more: str
    stage: str


def failure_of(lines: Iterable[bytes], *, is_cut: bool, gave_way: bool) -> Failure | None:
    """The last failure of the compiler in a chain of tracebacks; None when none of them is of the compiler.

    is_cut: the log ends here. gave_way: the line behind these is the head of another record, so an exception that is
    missing here stands there.
    """
    lines = list(lines)
    crash = _CRASH.match(lines[0].decode("utf-8", "replace")) if lines else None
    if crash is not None:
        return _crash(crash["said"].strip(), lines)
    found, last = None, Failure(None, "", "", "")
    stage: str | None = None
    headed: str | None = None  # the exception of the traceback that is being read
    has_frames, is_below, is_compiled, is_resumed = False, False, False, False
    raised: re.Match[str] | None = None
    frame = b""  # the last one, of whatever file
    for raw in lines:
        text = raw.decode("utf-8", "replace").rstrip()
        if is_below and text:
            last, is_below = replace(last, more=text.strip()), False
            found = last if found is not None and found.said == last.said else found
        header = _HEADER.match(text)
        if header is not None and header["compiler"]:
            stage, has_frames = "tracing", True
        elif header is not None:
            headed = header["name"]
        for module, function in _frames(raw):
            stage, has_frames = _stage_of(module, function) or stage, True
            is_compiled = is_compiled or module.startswith(_COMPILED)
        is_resumed = is_resumed or b", in torch_dynamo_resume_in_" in raw
        frame = raw if _FRAME_OF_ANY in raw else frame
        raised = _RAISES.match(text) or (raised if _is_beside_code(text) else None)
        exception = _EXCEPTION.match(text)
        if exception is not None and has_frames:
            name = exception["name"].rpartition(".")[2]
            last = Failure(name, (exception["said"] or "").strip(), "", "")
            stage = stage or _stage_of_run(last.said, is_compiled=is_compiled, is_resumed=is_resumed)
            stage = _stage_of_call(frame, stage)
            last = replace(last, stage=stage or "")
            if stage is not None:
                found = None if name in _ENDED else last
            stage, headed, has_frames, is_below = None, None, False, exception["said"] is not None  # a name alone says nothing below it
    if gave_way and has_frames:
        return None
    if stage is not None and is_cut and headed is None and raised is not None:
        return Failure(raised["name"], raised["said"] or "", "", stage)
    if stage is not None and is_cut:
        return replace(last, stage=stage) if headed is None else Failure(headed, "", "", stage)
    return found


def _stage_of_run(said: str, *, is_compiled: bool, is_resumed: bool) -> str | None:
    """The stage of what a compiled function raises because of the tensors it is given, or of a text that a graph break cut in two."""
    is_of_run = (is_compiled and _OF_INPUTS.match(said) is not None) or (is_resumed and _OF_PIECES.match(said) is not None)
    return "running" if is_of_run else None


def _stage_of_call(frame: bytes, stage: str | None) -> str | None:
    """``call`` where the last frame is of a function that refuses its own arguments; an operator is registered without the compiler as well."""
    is_refused = _STEERS.search(frame) is not None or (stage is not None and _REGISTERS.search(frame) is not None)
    return "call" if is_refused else stage


def _is_beside_code(text: str) -> bool:
    """True for a line that ends no stack behind its last statement: empty, or Python's marks below the code."""
    return not text.strip(" ^~`\t")


def _crash(said: str, lines: Iterable[bytes]) -> Failure | None:
    """The failure that ended the process, when the innermost frame of torch that it shows is of the compiler."""
    stages = [_stage_of(*frame) for line in lines for frame in _frames(line)]
    return Failure("Fatal Python error", said, "", stages[0]) if stages and stages[0] is not None else None


def _frames(line: bytes) -> Iterator[tuple[str, str]]:
    """Module, as a path below site-packages without its ending, and function of each frame on a line; ``""`` for code that inductor wrote."""
    for match in _FRAME.finditer(line):
        if match["generated"] is not None:
            yield "", match["generated"].decode()
        else:
            yield match["module"].decode().replace("\\", "/"), match["function"].decode().rpartition(".")[2]
    cut = _CUT_FRAME.match(line)
    if cut is not None:
        yield cut["module"].decode().replace("\\", "/"), ""


def _stage_of(module: str, function: str) -> str | None:
    """The stage that a frame belongs to; None when the compiled program passes it as well."""
    if not module:
        return "running"
    place = f"{module} {function}"
    if any(_RUNS.match(f"{module} {name}") is not None for name in ((function,) if function else _RUNNING)):
        return None
    return next((stage for stage, frames in _STAGES if frames.match(place) is not None), None)


# What Dynamo met, which torch from 2.7 on names in the explanation only; of a module that it notes and breaks on when it is called, why.
_OPERATION = pattern(
    rb"(?m)^\s*(?:Explanation: [^\n`]{0,120}?(?:builtin(?: operator)?|function|[Oo]perator|enter an?|method) "
    rb"`(?:<function )?(?P<traced>(?:<unknown module>\.)?[^`\s]{1,80}?)\.?(?: at 0x\w+>)?`"
    rb"|Explanation: Dynamo graph breaks on `(?P<clock>[^`\s()]{1,80})\(\)`"
    rb"|Explanation: Dynamo determined that a graph break should occur when calling `[^`\n]{1,300}`\. Reason: (?P<delayed>[^\n]{1,200}?)(?:\. |\.?$)"
    rb"|Explanation: Backend compiler `[^`\n]{1,100}` failed with (?P<failed>[^\n]{1,120}?)(?:\. Adding a graph break|[ \t\r]{0,9}$)"
    rb"|Explanation: Can't find numpy (?:numpy )?function <(?:class '|(?:(?:built-in|bound) )?(?:function|method) )(?P<numpy>[\w.]{1,80})"
    rb"|Explanation: Dynamo has no bytecode reconstruction implemented for sourceless variable (?P<unbuilt>[^\n]{1,80}?)\.[ \t\r]{0,9}$"
    rb"|Developer debug context: (?:unsupported operator: (?P<unsupported>\S{1,80})|method: <Logger [^\n>]{1,120}>\.(?P<logged>\w{1,40})"
    rb"|TypeError [^\n:]{1,200}: (?P<refused>[^\n]{1,200}?)[ \t\r]{0,9}$))"
)


def operation_of(message: bytes) -> str | None:
    """What Dynamo could not trace, or carry over a break, as torch from 2.7 on explains a graph break; None where it names none."""
    match = _OPERATION.search(message)
    if match is None:
        return None
    named = next(text for text in match.groups() if text).decode("utf-8", "replace")
    return f"Logger.{named}" if match["logged"] else named


_BACKEND = pattern(
    rb"\bBackendCompilerFailed\b: (?:backend='(?:(?P<name>[\w.<>-]{1,80})|<(?:[\w<>]{1,80}\.){0,9}(?P<of>\w{1,80}) object at 0x\w{1,16}>)'"
    rb"|(?P<old>[\w.]{1,80})) raised:?"
)
# Backends that torch brings, and what its own wrappers call theirs; DDP's, compile_fn, is told: what it does can be switched off.
_OF_TORCH = frozenset({"inductor", "compile_fx", "cudagraphs", "eager", "debug_wrapper", "inner_compile"})


def backend_of(message: bytes) -> dict[str, object]:
    """The backend whose code raised, as a field of the event, where the message names one that is not torch's own."""
    match = _BACKEND.search(message)
    name = (match["name"] or match["of"] or match["old"]).decode("utf-8", "replace") if match else None
    return {"backend": name} if name is not None and name not in _OF_TORCH and not name.startswith(("aot_", "_", "<")) else {}


def is_aside(prefix: bytes, message: bytes) -> bool:
    """True for an exception that torch tells of and has dealt with: chatter, a file of a cache, a kernel that autotuning does without.

    prefix: torch's own.
    """
    return prefix[:1] in _CHATTER or _DEALT_WITH.search(prefix) is not None or _TRIED.search(message) is not None


_CHATTER = (b"V", b"D", b"I")  # levels of torch's prefix
# Where torch's prefix says that a line comes from: kernels are tried here at any level, and here it warns and goes on.
# Source: the calls with exc_info=True in torch 2.13.
_DEALT_WITH = pattern(
    rb"_inductor[./](?:select_algorithm|autotune_process)\b"
    rb"|^W.*(?:_dynamo/(?:pgo|package|precompile_context|eval_frame|variables/\w+)|_aot_autograd/autograd_cache|_functorch/partitioners"
    rb"|_inductor/(?:debug|remote_cache|triton_bundler|compile_fx_ext|codecache|cpp_builder|fx_passes/\w+|compile_worker/\w+|runtime/triton_heuristics)"
    rb"|_higher_order_ops/triton_kernel_wrap)\.py"
)
# Candidates of the autotuning that torch does without, and a key of a cache that cannot be made: the graph is then compiled in each start.
# What torch caught begins in the function that caught it.
_TRIED = pattern(
    rb"Ignoring this choice|for benchmark choice |It will be ignored|may help\.\.|, in precompile_with_captured_stdout\b"
    rb"|\ATraceback \(most recent call last\):\n\s+File \"[^\"\n]{1,300}codecache\.py\", line \d+, in dumps\n"
)
