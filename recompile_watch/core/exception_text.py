"""What an exception of the compiler says, with what is wrong in front."""

import re

from recompile_watch.core.late import pattern

MAX_MESSAGE = 300  # characters of an exception's text that an event keeps


def what_is_wrong(text: str, more: str, message: str) -> str:
    """What is wrong, first: behind a backend's name, a traced call, or a compiler's command line.

    text, more: the exception's first line and the one below. message: the whole record.
    """
    if not text and _ANNOUNCES_NOTHING.match(more) is None:  # what it says begins on a line of its own
        text, more = more, ""
    if text.endswith("Got graph break/error:") and (inner := _NESTED.search(message)) is not None:  # a higher order operator
        text, more = inner["text"], inner["more"] or ""
    if more.startswith("Higher Order Operator: ") and (explained := _EXPLAINED.search(message)) is not None:
        more = explained["more"]
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
        text = f"{text}: {_inner_first(more.removeprefix('Explanation: '))}"
    text = _SKIPPED.sub("skipping cudagraphs due to ", text).removesuffix(" Found from :").removesuffix(" Found from:")
    text = re.sub(r"\s{2,}", " ", text)  # tables and terminals stretch the blanks
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


def _inner_first(text: str) -> str:
    """``Dynamo failed to run FX node …: got RuntimeError('…')`` (torch 2.7 and later) with the error in front."""
    inner = re.search(r": got (?P<error>\w+\(.*\))$", text)
    return text if inner is None else f"{inner['error']} ({text[: inner.start()]})"


_CPP_ERROR = pattern(r"(?m)^[^\n]{0,300}?\b(?P<error>(?:fatal )?error(?: \w+)?: [^\n]{1,200}|no matching function for call[^\n]{0,200})")
_ANNOUNCED = pattern(r"(?:(?!CppCompileError)[A-Z]\w{0,60}(?:Error|Exception): ?){1,3}")
_ANNOUNCES_NOTHING = pattern(r"Set TORCH|You can suppress|from user code:|The above exception|During handling|Traceback |File \"")
_SKIPPED = pattern(r"(?:(?:skipp|disabl)ing cudagraphs due to ){2,}")  # torch puts it in front of what may begin with it
_NESTED = pattern(r"Got graph break/error:\s*\n[ \t]*(?P<text>\S[^\n]*)(?:\n[ \t]*(?P<more>\S[^\n]*))?")
_EXPLAINED = pattern(r"\n[ \t]*Higher Order Operator: [^\n]*\n[ \t]*(?P<more>Explanation: [^\n]+)")
_OBSERVED = pattern(r"\n[ \t]*Developer debug context: raised exception (?P<error>[^\n]{1,200})")
_RAISED = pattern(r"[A-Z]\w{0,60}(?:Error|Exception): \S")
# A place in a kernel, whose error stands below its source; what triton says before it shows the words of NVIDIA's assembler; an operation.
_DETAILS = (
    (pattern(r"\bwhere we guessed its$"), pattern(r"(?m)^(?P<error>metadata incorrectly\.)$")),
    (
        pattern(r"\bat \d+:\d+:$"),
        pattern(r"(?m)^(?P<error>[A-Z]\w*(?:Error|Exception)\([^\n]{1,280}|(?!CompilationError: at)[A-Z]\w*(?:Error|Exception): [^\n]{1,280})"),
    ),
    (pattern(r"\bat \d+:\d+:$"), pattern(r"\n[ \t]{0,80}(?P<error>tmp\d+ = [^\n]{1,200})(?:\n[ \t]{0,200}\^|\s{0,9}\Z)")),
    (pattern(r"\brunning with fake tensors$"), pattern(r"debug context: (?P<error>unsupported operator: \S{1,200})")),
    (pattern(r"\bNo choices to select\b"), pattern(r"(?m)^\s*(?P<error>target: \S{1,100})")),
    (pattern(r"PTX codegen error:?$"), pattern(r"(?m)^(?P<error>`?ptxas [^\n]{0,200}?\b(?:error|fatal)\s*: [^\n]{1,200})")),
)
