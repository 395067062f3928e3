"""Which events of a log are about the same thing: torch says much of it twice."""

from collections.abc import Iterable
from typing import NamedTuple

from recompile_watch.core.compile_id import without_attempt
from recompile_watch.core.events import Event, is_accumulated
from recompile_watch.core.exception_text import MAX_MESSAGE
from recompile_watch.core.late import pattern
from recompile_watch.core.versions import surer

HOLD_BYTES = 1 << 20  # the warning of a refused recompile follows at once; other ranks may print between
PAIR_BYTES = 1 << 16
SAME_WORDS = 40  # characters of a message that tell it from others; a wrapped exception repeats them

HANDED_ON = "torch.compile_error.subprocess"  # the rule for a failure of another process, whose traceback follows
REFUSED = "torch.graph_break.backend"  # the rule for a graph that the backend could not compile, behind which torch tells of the break itself
# The rules for what a packaged program says, behind which torch raises that its call failed.
PACKAGED = frozenset({"torch.compile_error.exported_input", "torch.compile_error.packaged"})
BUILT = "torch.compile_error.compiler"  # the rule for what a C compiler says, behind which torch raises that its command failed
# Rules for lines behind which torch may say the same again, with place and stack: a warning, and the cause of an exception.
ANNOUNCED = frozenset(
    {
        "torch.graph_break.warned", "torch.compile_error.cause", "torch.compile_error.traceback", "torch.compile_error.kernel",
        "torch.compile_error.trailed", "torch.compile_error.said", "torch.compile_error.words", "torch.compile_error.own",
        "torch.compile_error.unsupported", "torch.compile_error.logged", HANDED_ON, BUILT, *PACKAGED, REFUSED,
    }
)  # fmt: skip
# Rules for what torch says around a failure, for logs that do not show the failure itself.
TAILS = frozenset(
    {
        "torch.compile_error.user_code",
        "torch.compile_error.context",
        "torch.compile_error.codegen",
        "torch.compile_error.printed",
        "torch.compile_error.onnx",
        "torch.compile_error.unconverted",
    }
)
SPECIALIZED = "torch.recompile.specialized"  # the rule for a line that torch logs while it compiles again: the code fixes a size
_ACTUAL_SIZE = pattern(r" size mismatch at index \d+\. expected \d+, actual (?P<size>\d+)$")
# Exceptions of the compiler that it raises again as another one, what begins the name of those of the code that Dynamo traces, and the others.
_WRAPPED = frozenset(
    {
        "ConstraintViolationError", "DataDependentOutputException", "DynamicOutputShapeException", "GuardOnDataDependentSymNode",
        "UnsupportedOperatorException",
    }
)  # fmt: skip
_OBSERVED = "Observed"
_WRAPPING = frozenset({"UserError", "Unsupported", "TorchRuntimeError", "BackendCompilerFailed", "InternalTorchDynamoError", "InductorError"})
# Rules for a guard that could not be made, and for what suppress_errors puts up with: torch tells of the failure, and then prints it once more.
LOGGED = ("torch.compile_error.guard", "torch.compile_error.suppressed")

_SCROLL_UP = "Scroll up to find out what causes the graph break"  # of torch.cond and its like, until torch 2.11: the exception above says it
_WITHOUT_KERNEL = ": attempted to run this operator with Meta tensors"  # an operator by its name, which torch raises again as another exception
_CALL_FAILED = pattern(r"^run_func_\(|API call failed at ")

FAILURES = frozenset({"compile_error", "recompile_limit_error", "recompile_forbidden"})

Process = tuple[bytes, int | None, int | None]  # channel, rank and pid


class Held:
    """An event that waits for the next one of its process. ``drop`` takes it out again."""

    __slots__ = ("channel", "drop", "event", "is_torchs", "rule", "stack", "waits")

    def __init__(self, event: Event, rule: str, channel: bytes = b"", *, is_torchs: bool = False) -> None:
        """is_torchs: see ``Sighting``."""
        self.event, self.rule, self.channel, self.waits, self.drop, self.is_torchs = event, rule, channel, False, False, is_torchs
        self.stack: tuple[int, ...] = ()  # of the traceback in front of it

    def called_by(self, caller: Event) -> None:
        """Takes the stack of the traceback in front of it, and where nothing else tells the place of a failure the program's line that called."""
        event, told = self.event, {name: value for name, value in caller.extra.items() if value is not None}
        stack = told.pop("stack", None)
        self.stack = stack if isinstance(stack, tuple) else ()
        if event.kind not in FAILURES:
            return
        torch = surer(event.extra.get("torch"), told.pop("torch", None))
        known = {**event.extra, "torch": torch} if torch is not None else event.extra
        if event.file is None and event.function is None and event.offset - caller.offset < PAIR_BYTES:
            self.event = event._replace(function=caller.function, file=caller.file, line_no=caller.line_no, extra={**known, **told})
        else:
            self.event = event._replace(extra={**{name: told[name] for name in ("exported", "statement", "code") if name in told}, **known})

    def placed_as(self, raised: Event) -> None:
        """Takes the place of the same failure when it is raised, where what was logged shows none."""
        event = self.event
        if event.file is None and event.function is None:
            told = {name: raised.extra[name] for name in ("called_from", "entered_at", "in_backward", "exported") if name in raised.extra}
            self.event = event._replace(function=raised.function, file=raised.file, line_no=raised.line_no, extra={**event.extra, **told})

    def raised_as(self, raised: Event) -> None:
        """Takes what torch raised of it: the exception, or of what failed in an operator's function the place; its own exception says more."""
        told = {name: raised.extra[name] for name in ("exception", "called_from", "torch") if name in raised.extra}
        if _is_of_an_operator(self.event):
            told.pop("exception", None)
            self.placed_as(raised)
        self.event = self.event._replace(extra={**self.event.extra, **told})

    @property
    def process(self) -> Process:
        """Whose event it is, as far as the log tells."""
        return self.channel, self.event.rank, self.event.pid


def is_followed(held: Held) -> bool:
    """True for an event that another one may repeat, or show the place of."""
    return _announces(held) or _is_of_an_operator(held.event)


def _announces(held: Held) -> bool:
    return held.rule in ANNOUNCED or held.rule in TAILS or _is_wrapped(held.event)


def _is_of_an_operator(event: Event) -> bool:
    """True for what Dynamo could not trace in a function that an operator such as torch.cond was given; what follows shows the place."""
    return event.kind == "compile_error" and event.extra.get("exception") == "Unsupported" and event.file is None and event.function is None


def _is_wrapped(event: Event) -> bool:
    name = str(event.extra.get("exception"))
    return event.kind == "compile_error" and (name in _WRAPPED or name.startswith(_OBSERVED))


def may_be_one(process: Process, other: Process) -> bool:
    """True for two that nothing tells apart: one channel, and no two ranks or pids."""
    return process[0] == other[0] and all(None in pair or pair[0] == pair[1] for pair in zip(process[1:], other[1:], strict=True))


class Raised(NamedTuple):
    """A failure with its traceback, as one that is printed once more is compared with it."""

    process: Process
    offset: int
    time: str | None
    said: list[object]
    stack: tuple[int, ...]

    @classmethod
    def of(cls, held: Held) -> "Raised":
        """That of an event behind a traceback."""
        event = held.event
        return cls(held.process, event.offset, event.time, [event.kind, event.extra.get("exception"), event.extra.get("message")], held.stack)

    def is_again(self, other: "Raised") -> bool:
        """True for the exception of an earlier one on its way out: what catches it further out prints that stack with more in front.

        The same stack to the end is another call, unless both are of one moment: an exception may carry its traceback as a note.
        """
        if self.said != other.said or not may_be_one(self.process, other.process) or self.offset - other.offset > HOLD_BYTES:
            return False
        more = len(self.stack) - len(other.stack)
        if not other.stack or more < 0 or self.stack[more:] != other.stack:
            return False
        return more > 0 or (self.time is not None and self.time == other.time)


def may_follow(held: Held) -> bool:
    """True for a failure in one line, behind which its traceback may come: a program tells of it and has logging print that."""
    return held.event.kind == "compile_error" and not held.stack and not held.event.extra.get("suppressed")


def says(held: Held, announced: Held) -> bool:
    """True when the event is what one before it announced: the break itself, or an exception that goes on with it."""
    if not _announces(announced):
        return bool(held.stack) and not announced.stack and _tells_of(held.event, announced.event)
    event, before, rule = held.event, announced.event, announced.rule
    is_wrapping = _is_wrapped(before) or _is_wrapped(event)
    if _announces(held) and rule != HANDED_ON and not is_wrapping:
        return False  # what announces something says less than any other
    if announced.rule == REFUSED:
        is_break_of_it = event.kind == "graph_break" and event.compile_id == before.compile_id and bool(event.reasons)
        return is_break_of_it and event.reasons[0].text.startswith("Backend compiler exception")
    if event.kind == "graph_break" and before.kind == "compile_error" and event.compile_id is not None:
        return event.compile_id == before.compile_id  # torch logs what failed under it, and breaks the graph there
    if "graph_break" in (event.kind, before.kind):
        return before.kind == "graph_break" and (event.kind == "graph_break" or event.extra.get("exception") == "Unsupported")
    if rule == HANDED_ON:
        return event.rank == before.rank
    name, again = str(before.extra.get("exception")), str(event.extra.get("exception"))
    if rule == "torch.compile_error.logged" and name == again:
        return False  # a program that tells of it once more in words of its own
    told, message = (str(one.extra.get("message") or "") for one in (before, event))
    if _is_wrapped(before) and again not in _WRAPPING and "(Failed running" not in message:
        return False  # another call that failed like it, or a program's words
    if name.startswith(_OBSERVED):
        return message.startswith("Observed exception")
    said = told.partition(" (Failed running")[0].partition(_WITHOUT_KERNEL)[0].replace("::", ".")[:SAME_WORDS]
    return rule in TAILS or (bool(said) and said in message.replace("::", "."))


def _tells_of(event: Event, before: Event) -> bool:
    """True for the failure that a line told of, whose time is the log's last one."""
    said, again = (str(one.extra.get("message") or "") for one in (before, event))
    return before.time is not None and event.time in (None, before.time) and bool(said) and said[:SAME_WORDS] in again


def is_raised_again(event: Event, logged: Event) -> bool:
    """True for the exception of a failure that torch logged when it happened: the same words, soon after.

    torch 2.8 prints 100 kB of the interpreter's own frames between the two.
    """
    if event.offset - logged.offset > HOLD_BYTES or event.rank not in (None, logged.rank):
        return False
    said, again = str(logged.extra.get("message") or ""), str(event.extra.get("message") or "")
    return bool(said) and said == again and event.extra.get("exception") == logged.extra.get("exception")


def is_why(held: Held, event: Event) -> bool:
    """True for what a compiler, a packaged program or a branch said before the event, which is only that its command, call or operator failed."""
    near = held.event.rank in (None, event.rank) and event.offset - held.event.offset < PAIR_BYTES
    message = str(event.extra.get("message") or "")
    if _SCROLL_UP in message:
        return near and _is_of_an_operator(held.event)
    if held.rule in PACKAGED:
        return near and _CALL_FAILED.search(message) is not None
    is_cut = len(message) >= MAX_MESSAGE - 1  # a command may be longer than what an event keeps of a message
    is_command = "Command '['" in message and ("returned non-zero exit status" in message or is_cut)
    is_command |= not message and event.extra.get("exception") == "CalledProcessError"
    return near and held.rule == BUILT and is_command


def tells_no_failure(event: Event, rule: str) -> bool:
    """True where the log does not show the exception of a traceback or of a warning, and for one that only says around what an earlier one came."""
    is_bare = rule in ("torch.compile_error.traceback", "torch.compile_error.backward") and event.extra.get("exception") is None
    return is_bare or str(event.extra.get("message") or "").startswith("Graph break under ")


def is_same_place(one: Event, other: Event) -> bool:
    """True for two events about the same line of code, near each other."""
    return (one.file, one.line_no) == (other.file, other.line_no) and other.offset - one.offset < PAIR_BYTES


def is_break_of(notice: Event, event: Event) -> bool:
    """True for the break that torch told of in a notice; until 2.5 the notice names no place."""
    if event.kind != "graph_break" or is_same_place(notice, event):
        return event.kind == "graph_break"
    is_said = any(reason.text.startswith("Tensor.item") for reason in event.reasons[:1])
    return is_said and notice.file is None and notice.compile_id == event.compile_id and event.offset - notice.offset < PAIR_BYTES


def is_refused_by(recompile: Event, hit: Event) -> bool:
    """True when the limit's warning is about this very attempt."""
    if recompile.kind != "recompile" or hit.offset - recompile.offset > HOLD_BYTES:
        return False
    if hit.function is not None and (recompile.function, recompile.file, recompile.line_no) != (hit.function, hit.file, hit.line_no):
        return recompile.function is None and _same_compile(recompile, hit)
    return _same_compile(recompile, hit)


def refused(recompile: Event, hit: Event) -> Event:
    """The recompile that this limit refused; a limit that is not the usual one is named."""
    name = hit.extra.get("limit_name")
    named = {"limit_name": name} if is_accumulated(name) else {}
    return recompile._replace(extra={**recompile.extra, "refused": True, **named})


def with_what_fixed_it(recompile: Event, line: Event) -> Event:
    """The recompile with the place that fixes the size which set it off, where the line is about that very size; the first such place stays."""
    actual = {match["size"] for reason in recompile.reasons if (match := _ACTUAL_SIZE.search(reason.text)) is not None}
    size, factor = line.extra.get("value") or line.extra.get("width"), line.extra.get("factor") or 1
    is_it = isinstance(size, int) and isinstance(factor, int) and str(size // factor) in actual and recompile.compile_id is not None
    if not is_it or not _same_compile(recompile, line) or "fixed_at" in recompile.extra:
        return recompile
    return recompile._replace(extra={**recompile.extra, **{name: line.extra.get(name) for name in ("fixed_at", "fixed_code")}})


def _same_compile(one: Event, other: Event) -> bool:
    if one.compile_id is None or other.compile_id is None:
        return True
    return without_attempt(one.compile_id) == without_attempt(other.compile_id)


def nearest_first(several: Iterable[Held], held: Held) -> list[Held]:
    """Those of the process of this one first, then those of its channel, each in their order."""
    return sorted(several, key=lambda one: (one.process != held.process, one.channel != held.channel))
