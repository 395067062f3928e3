"""The story of a finding: all that advice needs to know of it, and what a single event says."""

from dataclasses import dataclass

from recompile_watch.core.causes import parse_reason
from recompile_watch.core.events import Event, Reason
from recompile_watch.core.installs import is_windows
from recompile_watch.core.models import Model, ModelSetting


@dataclass(frozen=True, slots=True)
class Story:
    """What the log shows about one finding, as far as advice needs it.

    guards: the newest guard of each recompile of one process, oldest first. reason: the newest guard or message.
    limits: recompile limits that the log prints. model: the model it is about. break_at: the graph break that made a
    frame of it. setting, instead: the name of a setting that it is about, and what to do instead of setting it. mend: what
    to paste against a mistake in an env file. batch: what sets the size of its model's batches. stage: where in the compiler
    it failed (``tracebacks.Failure``). limit: the recompile limit that the function ran into, if the log prints it.
    is_accumulated: it is the limit of all entries of the code. backend: the one whose own code raised, where it is not torch's.
    lines: of a graph break: all on which it happened. others: guards of the same class on which the function failed as well.
    hint, hinted: what torch's message tells the program to do, and the line that does it, where it is one of torch's settings.
    fixed_at: the line of code that fixes a size which torch had made dynamic, as torch prints it. fixed_in: its function, where that is another one.
    called_from: the program's own line that leads into a library, ``/srv/m.py:12 in forward``. entered_at: what calls a library's compiled object.
    code: the line of code that asks for a number of the data, or that fixes a size. torch: its version, ``2.9``, where the log shows one only.
    """

    kind: str
    cause: str | None
    function: str | None
    file: str | None
    line_no: int | None
    reason: str
    guards: tuple[Reason, ...]
    patterns: frozenset[str]
    limits: frozenset[int] = frozenset()
    model: Model | None = None
    break_at: str | None = None
    setting: str | None = None
    instead: str | None = None
    mend: str | None = None
    batch: ModelSetting | None = None
    stage: str | None = None
    limit: int | None = None
    is_accumulated: bool = False
    backend: str | None = None
    lines: tuple[int, ...] = ()
    others: tuple[Reason, ...] = ()
    hint: str | None = None
    hinted: str | None = None
    fixed_at: str | None = None
    called_from: str | None = None
    entered_at: str | None = None
    code: str | None = None
    torch: str | None = None
    fixed_in: str | None = None

    @property
    def newest(self) -> str:
        """The newest guard, else the message."""
        return self.guards[-1].text if self.guards else self.reason

    @property
    def oldest(self) -> str:
        """The oldest guard, which tells what the first call had; else the message."""
        return self.guards[0].text if self.guards else self.reason

    @property
    def place(self) -> str | None:
        """File and line."""
        return f"{self.file}:{self.line_no}" if self.file and self.line_no is not None else self.file

    @property
    def windows(self) -> bool:
        """Whether it happened on Windows, as far as its paths and its message tell."""
        return is_windows(self.file, self.called_from, self.entered_at, self.reason)


def own_guards(event: Event) -> tuple[Reason, ...]:
    """The guard that forbade a recompile; of a profiler's table those of the function that it shows compiled again most often."""
    if event.kind == "recompile_forbidden":
        return event.reasons[:1]
    rows = event.extra.get("recompiles")
    if event.kind != "profiler_report" or not isinstance(rows, list) or not rows:
        return ()
    row = max(rows, key=lambda one: int(one["recompiles"]))
    return tuple(parse_reason(str(reason), str(row["function"])) for reason in row["reasons"])


def message_of(event: Event) -> str:
    """What an event says: its guard with the operation behind it, else its message, with the exception's name for a failure."""
    if event.reasons:
        operation = event.extra.get("operation")
        return f"{event.reasons[0].text}: {operation}" if isinstance(operation, str) else event.reasons[0].text
    message = str(event.extra.get("message") or "")
    name = event.extra.get("exception")
    return f"{name}: {message}" if event.kind == "compile_error" and isinstance(name, str) else message
