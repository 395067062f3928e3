"""What an exception of the compiler says, with what is wrong in front."""

import re

from recompile_watch.core.late import pattern

MAX_MESSAGE = 300  # characters of an exception's text that an event keeps


def what_is_wrong(text: str, more: str, message: str) -> str:
    """What is wrong, first: behind a backend's name, a traced call, or a compiler's command line.

    text, more: the exception's first line and the one below. message: the whole record.
    """
    if text.endswith(",") or more.endswith(","):
        text, more = _in_one_line(text, more, message)
    if not text and _ANNOUNCES_NOTHING.match(more) is None:  # what it says begins on a line of its own
        text, more = more, ""
    if text.endswith("Got graph break/error:") and (inner := _NESTED.search(message)) is not None:  # a higher order operator
        text, more = inner["text"], inner["more"] or ""
    if text.endswith("raised:"):
        text = more
    elif text == "Observed exception" and (raised := _OBSERVED.search(message)) is not None:
        text = f"{text}: {raised['error']}"
    elif text.endswith(":") and more and text.startswith("Failed running "):  # torch 2.0 to 2.6
        text = f"{more} ({text[:-1]})"
    elif more and _ANNOUNCED.fullmatch(text) is not None and _ANNOUNCES_NOTHING.match(more) is None:  # broken behind the exception's name
        text = f"{text} {more}"
    elif text == "Dynamo failed to run FX node with fake tensors" and _RAISED.match(more) is not None:  # the traced call left out
        text = f"{more} ({text})"
    elif more.startswith("Explanation: "):
        traced = _inner_first(more.removeprefix("Explanation: "))
        text = traced if text == _ANNOUNCES_INNER and _RAISED_AS.match(traced) is not None else f"{text}: {traced}"
    elif more.startswith("Higher Order Operator: ") and (explained := _EXPLAINED.search(message)) is not None:
        text = f"{text}: {more.removeprefix('Higher Order Operator: ')}: {explained['text']}"
    text = _SKIPPED.sub("skipping cudagraphs due to ", text).removesuffix(" Found from :").removesuffix(" Found from:")
    text = re.sub(r"\s{2,}", " ", text).removeprefix(_ADVISES)  # tables and terminals stretch the blanks
    text = _inner_first(text).partition(" This function is either a Python builtin")[0]  # what follows is the same for every function
    if ("C++ compile error" in text or text.endswith("CppCompileError:")) and (error := _CPP_ERROR.search(message)) is not None:
        text = f"{text}: {error['error']}"
    return text


def with_detail(text: str, message: str) -> str:
    """A message that only announces what is wrong, with that, from the lines below it."""
    for announces, detail in _DETAILS:
        if announces.search(text) is not None and (cause := detail.search(message)) is not None:
            return f"{text[: MAX_MESSAGE - 1 - len(cause['error'])]} {cause['error']}"[:MAX_MESSAGE]
    return text


def hint_of(message: str, exception: object = None) -> dict[str, object]:
    """What torch itself tells the program to do, as a field of the event, where it says more than it says of every failure.

    Its first hint that begins with a deed; of an exception else the sentence of its text that asks for something.
    """
    # torch suggests the very range that was given, where only multiples of a number fit.
    given = {
        f"{name} = Dim('{name}', min={least}, max={most})": f"{name} = {of}*_{name}" if of else ""
        for least, name, most, of in _GIVEN.findall(message)
    }
    derived = [*filter(None, (given.get(fix, fix) for fix in _DERIVED.findall(message.partition("Suggested fixes:")[2])))]
    if derived:
        unfit = set(_UNFIT.findall(message))  # until torch 2.6 its own suggestion of such a maximum raised (measured)
        fixes = (
            _LARGEST.sub(lambda match: str(int(match[0]) - (match[0] in unfit)), fix).replace("= Dim(", "= torch.export.Dim(") for fix in derived
        )
        return {"hint": "; ".join(dict.fromkeys(fixes))[:_MAX_HINT]}
    hint = _HINT.search(message)
    if hint is None and isinstance(exception, str):
        said = message.rpartition(f"{exception}: ")[2].partition("from user code:")[0]
        hint = _ASKS.search(said[:_MAX_SAID])
    return {"hint": hint["hint"]} if hint is not None else {}


def broken_call(reason: str) -> str:
    """What broke the graph, for a sentence: the callable that torch names, without what it says of every callable, else the message."""
    name = _BROKEN_CALL.match(reason)
    if name is None:
        return _REPR.sub(r"\g<name>", reason.partition(" This function is either a Python builtin ")[0])
    return name["skipped"] or name["builtin"] or name["called"]


def _in_one_line(text: str, more: str, message: str) -> tuple[str, str]:
    """The first line of an exception and the one below it, where torch printed a tensor over several lines."""
    _, found, behind = message.partition(text)
    lines = _BROKEN_REPR.sub(", ", f"{found}{behind}").split("\n", 2)
    return (lines[0].strip(), lines[1].strip()) if len(lines) > 1 else (text, more)


def _inner_first(text: str) -> str:
    """``Dynamo failed to run FX node …: got RuntimeError('…')`` (torch 2.7 and later) with the error in front."""
    inner = re.search(r": got (?P<error>\w+\(.*\))$", text)
    return text if inner is None else f"{inner['error']} ({text[: inner.start()]})"


# How Python shows a callable, whose address is of no use.
_REPR = pattern(
    r"<(?:bound method|built-in method|built-in function|function) (?P<name>[\w.]{1,200})(?: of [^<>]{1,200})?(?: at 0x[0-9a-fA-F]{1,16})?>"
)
# Until torch 2.6, and in 2.6 of a builtin.
_BROKEN_CALL = pattern(
    r"^(?:Unsupported: )?(?:'?(?:skip function|call_function) (?P<skipped>[\w.<>]{1,200}) in (?:file|skip_files) "
    r"|call_function BuiltinVariable\((?P<called>\w{1,80})\) "
    r"|Graph break due to unsupported builtin (?P<builtin>[\w.<>]{1,300}?)\.(?: |$))"
)
# A multiple or a range that torch.export suggests for a dimension: ``height = 8*_height``, ``seq = Dim('seq', max=512)``.
_DERIVED = pattern(r"(?m)^[> \t]{0,40}([A-Za-z]\w{0,60} = (?:\d{1,6}\*_\w{1,60}|Dim\('\w{1,60}'(?:, (?:min|max)=\d{1,9}){1,2}\)))[ \t]*\r?$")
_GIVEN = pattern(r"in the specified range (\d+) <= (\w{1,60}) <= (\d+) satisfy(?:[^\n]{0,200}\bMod\([^\n]{1,200}?, (\d+)\))?")
_LARGEST = pattern(r"(?<=max=)\d+")
_UNFIT = pattern(r"satisfy the generated guard (\d{1,9}) != ")
_MAX_HINT = 280
_MAX_SAID = 2000  # characters of an exception's text in which something may be asked for
# A hint whose line ends in a blank goes on below it.
_HINT = pattern(
    r"(?m)^[ \t]{0,40}Hint: (?P<hint>(?:Set|Change|Enable|Use|Remove(?! the `torch\._dynamo\.graph_break)|Move|Make sure|Ensure|Replace|Register"
    r"|Explicitly|Don't|Try to|Refactor|Renaming|Simplify|Only pass|Consume|Manually|Avoid(?! calling)|Write|Fix|Create|Construct|Define"
    r"|Please create|Call|Detach|Check if|Compile the|Consider(?! using the debug)|Do not (?:set|use)|If you (?:don't|need|only)|If the module is)"
    r" [^\n]{0,280}[^\s:])\r?$"
)
_ASKS = pattern(
    r"(?:^|[.!?:;),]\s|,(?=Please)|\n)\s{0,40}(?P<hint>(?:Please (?!report|file|open|see|visit|submit|create|raise|refer|let|note|upgrade"
    r"|convert all)|Workarounds?: |You can fix this by "
    r"|To (?:fix|work around|avoid|resolve|solve|prevent) |Did you accidentally |it can be turned on by setting `)"
    r"[^\n]{3,280}?(?:[.?!](?=\s[A-Z]|\s{0,40}(?:\n|\Z))|(?=\s{0,40}(?:\n|\Z))))"
)
_EXPLAINED = pattern(r"(?m)^[ \t]{0,40}Explanation: (?P<text>[^\n]{1,300})")
_CPP_ERROR = pattern(r"(?m)^[^\n]{0,300}?\b(?P<error>(?:fatal )?error(?: \w+)?: [^\n]{1,200}|no matching function for call[^\n]{0,200})")
_ANNOUNCED = pattern(r"(?:(?!CppCompileError)[A-Z]\w{0,60}(?:Error|Exception): ?){1,3}")
_ANNOUNCES_NOTHING = pattern(r"Set TORCH|You can suppress|from user code:|The above exception|During handling|Traceback |File \"")
# torch breaks a long tensor in front of one of these.
_BROKEN_REPR = pattern(r",[ \t]{0,20}\r?\n[ \t]{0,80}(?=(?:grad_fn|requires_grad|dtype|device|layout|quantization_scheme|tangent|names|size)=)")
_SKIPPED = pattern(r"(?:(?:skipp|disabl)ing cudagraphs due to ){2,}")  # torch puts it in front of what may begin with it
_NESTED = pattern(r"Got graph break/error:\s*\n[ \t]*(?P<text>\S[^\n]*)(?:\n[ \t]*(?P<more>\S[^\n]*))?")
_OBSERVED = pattern(r"\n[ \t]*Developer debug context: raised exception (?P<error>[^\n]{1,200})")
_ADVISES = "Consider annotating your code using torch._check*(). "  # in front of what could not be guarded on, torch 2.7 and later
_ANNOUNCES_INNER = "RuntimeError when making fake tensor call"  # of any exception, which the explanation names
_RAISED_AS = pattern(r"[A-Z]\w{0,60}(?:Error|Exception)\(")
_RAISED = pattern(r"[A-Z]\w{0,60}(?:Error|Exception): \S")
# A place in a kernel, whose error stands below its source; what triton says before it shows the words of NVIDIA's assembler; an operation;
# the operator whose result is not what its fake kernel said; of the frames that fullgraph=True found no compiled one among, the program's own.
_DETAILS = (
    (pattern(r"\bwhere we guessed its$"), pattern(r"(?m)^(?P<error>metadata incorrectly\.)$")),
    (
        pattern(r"\bat \d+:\d+:$"),
        pattern(r"(?m)^(?P<error>[A-Z]\w*(?:Error|Exception)\([^\n]{1,280}|(?!CompilationError: at)[A-Z]\w*(?:Error|Exception): [^\n]{1,280})"),
    ),
    (pattern(r"\bat \d+:\d+:$"), pattern(r"\n[ \t]{0,80}(?P<error>tmp\d+ = [^\n]{1,200})(?:\n[ \t]{0,200}\^|\s{0,9}\Z)")),
    (pattern(r"C\+\+ compile error$"), pattern(r"\n(?P<error>cl(?:\.exe)? /[A-Za-z]{1,8}) ")),
    (pattern(r"non-Tensor cannot be traced into the Dynamo FX graph output$"), pattern(r"target: <(?P<error>function \w{1,60}) at 0x")),
    (pattern(r"\brunning with fake tensors$"), pattern(r"debug context: (?P<error>unsupported operator: \S{1,200})")),
    (
        pattern(r"\bexpected (?:size \d+==\d+|dtype torch\.\w{1,20} but got )|wrong number of dimensions"),
        pattern(r"(?m)^\s{0,20}(?P<error>Error in op: \S{1,120})"),
    ),
    (
        pattern(r"found no compiled frames\. Skipped frames:$"),
        pattern(r"(?m)^\s{0,20}- (?P<error>[\w<>]{1,80} \([^\n]{1,200}\): (?!frame is in the Dynamo skipfiles)[^\n]{1,100}?)\s*$"),
    ),
    (pattern(r"found no compiled frames\.$"), pattern(r"\n\s{0,20}Skipped frames: (?P<error>[^\n]{1,200})")),
    (
        pattern(r"^Constraints violated \([A-Za-z_]\w*\)!"),
        pattern(
            r"(?m)- (?P<error>Not all values of [^\n]{1,250} satisfy the generated guard [^\n]{1,200} (?:!= 1|>= 2|> 1))\.?[ \t]*$(?!\n[ \t]*- )"
        ),
    ),
    (pattern(r"when making fake tensor call$"), pattern(r"\bgot (?P<error>\w{1,60}(?:Error|Exception)\([^\n]{1,250})")),
    (pattern(r"\bNo choices to select\b"), pattern(r"(?m)^\s*(?P<error>target: \S{1,100})")),
    (pattern(r"PTX codegen error:?$"), pattern(r"(?m)^(?P<error>`?ptxas [^\n]{0,200}?\b(?:error|fatal)\s*: [^\n]{1,200})")),
)
