"""Work that goes on while the program does something else."""

from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

Result = TypeVar("Result")


class InBackground(Generic[Result]):
    """Work in a thread of its own, begun at once; worth it only where the work lets other threads run."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._results: list[Result] = []
        self._thread = Thread(target=lambda: self._results.append(work()))
        self._thread.start()

    def result(self) -> Result:
        """What came of it; waits for it. What failed there is tried again here, to raise what it raises."""
        self._thread.join()
        return self._results[0] if self._results else self._work()
