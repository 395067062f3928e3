"""Live progress of the diagnostic on a terminal: one line for each worker that runs."""

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from recompile_watch.report.safe import safe
from recompile_watch.respond.diagnose import Progress as Step

_ENDS = frozenset({"ok", "failed", "ineffective", "timeout", "crashed"})


class Lines:
    """The lines; they go away when all is done."""

    def __init__(self) -> None:
        self._progress = Progress(
            SpinnerColumn(), TextColumn("{task.fields[who]}", markup=False), TextColumn("{task.description}", markup=False), BarColumn(),
            TimeElapsedColumn(), console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._tasks: dict[tuple[str, str], TaskID] = {}

    def __enter__(self) -> "Lines":
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def show(self, step: Step) -> None:
        """Shows where one worker is."""
        key = (step.candidate, step.stage)
        if key not in self._tasks:
            self._tasks[key] = self._progress.add_task("", who=f"{safe(step.candidate, 40)}, {step.stage}", total=None)
        if step.phase in _ENDS:
            self._progress.remove_task(self._tasks.pop(key))
        else:
            self._progress.update(self._tasks[key], description=safe(step.phase), completed=step.done, total=step.total or None)
