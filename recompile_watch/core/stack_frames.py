"""Stack frames that a message shows, and which of them is the user's code."""

import re
from typing import NamedTuple

from recompile_watch.core.late import pattern
from recompile_watch.core.sightings import decode

# A frame of a stack, not one in the comments of a printed graph.
_FRAME = pattern(rb"(?<!# )File \"(?P<file>[^\"\n]+)\", (?:line (?P<line>\d+), )?in (?P<function>[^\n]+?)(?=\s{2,}|\n|$| [a-z_]+ ?[=(.])")
# Where torch names the code that an exception is about, best first: what Dynamo traced when it failed; behind a constraint or a number that it
# does not know (torch/fx/experimental/symbolic_shapes.py); the node of a lowering (torch/_inductor/exc.py); what a tensor came out of.
_STACKS = (
    pattern(rb"from user code:\n(?:\s+[^\n]*\n?)+"),
    pattern(
        rb"(?m)(?:^User [Ss]tack(?: \(most recent call last\))?:|(?:^|\. )Found from ?:|^The forward output was created here:)[ \t]*\n"
        rb"(?:[ \t]+[^\n]*\n?|\n)+"
    ),
)
_OF_TORCH = pattern(r"[\\/](?:site|dist)-packages[\\/]torch[\\/]|(?:^|[\\/])torch[\\/](?:_\w+|nn)[\\/]")
# What is done with the number, or the truth value, that torch would have to read.
_STATEMENTS = (
    ("asserts", pattern(rb"^assert\b")),
    ("branches", pattern(rb"\b(?:if|while|and|or|not)\b(?:(?!:\s).)*(?:\.item\(|\bbool\()")),
    ("draws_numbers", pattern(rb"\b(?:np|numpy)\.random\.")),
)


class StackFrame(NamedTuple):
    """One entry of a stack. line_no: None where the log cut it out."""

    file: str
    line_no: int | None
    function: str


def frames(message: bytes) -> list[StackFrame]:
    """The stack frames in a message, outermost first. Its line breaks may be spelled out."""
    if b"\\n  " in message:
        message = message.replace(b"\\n  ", b"\n  ")
    return [StackFrame(decode(m["file"]), int(m["line"]) if m["line"] else None, decode(m["function"]).strip()) for m in _FRAME.finditer(message)]


def users_own(stack: list[StackFrame]) -> StackFrame:
    """The innermost frame that is not of torch's library; the innermost one where all are."""
    return next((frame for frame in reversed(stack) if _OF_TORCH.search(frame.file) is None), stack[-1])


def user_code(message: bytes) -> StackFrame | None:
    """The user's frame in what an exception says of where it came from; None where it does not say."""
    shown = (code for stack in _STACKS if (code := stack.search(message)) is not None)
    stack = next((found for code in shown if (found := frames(code[0]))), None)
    return users_own(stack) if stack else None


def statement_at(message: bytes, stack: list[StackFrame]) -> dict[str, object]:
    """What the line of code at a break does, as a field of the event, where that decides. stack: the frame that broke."""
    frame = [rb'File "%s", line %d, in [^\n]{1,200}\n[ \t]{1,80}([^\n]{1,200})' % (re.escape(file.encode()), line) for file, line, _ in stack if line]
    code = [found for form in frame for found in re.findall(form, message)][-1:]
    found = next((name for line in code for name, form in _STATEMENTS if form.search(line) is not None), None)
    return {"statement": found} if found is not None else {}
