"""A progress bar on standard error, for long input and people only."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from recompile_watch.sources.find import SourceFile

LONG_BYTES = 64_000_000
_LONG_S = 1.0


@contextmanager
def progress_over(sources: Sequence[SourceFile]) -> Iterator[Callable[[int], None] | None]:
    """What to call with the number of bytes taken so far; None where nobody looks or the input is short."""
    sizes = [source.size_bytes for source in sources]
    total_bytes = sum(size for size in sizes if size is not None)
    if not sys.stderr.isatty() or (None not in sizes and total_bytes < LONG_BYTES):
        yield None
        return
    bar = _Bar(None if None in sizes else total_bytes)
    try:
        yield bar.update
    finally:
        bar.close()


class _Bar:
    """Appears after a second, so that short work stays quiet."""

    def __init__(self, total_bytes: int | None) -> None:
        from rich.console import Console  # only for people: a pipe never pays for it
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

        self._progress = Progress(
            TextColumn("reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._task = self._progress.add_task("reading", total=total_bytes)
        self._started_at = time.monotonic()
        self._is_shown = False

    def update(self, taken_bytes: int) -> None:
        """Shows how far the reading is."""
        if not self._is_shown and time.monotonic() - self._started_at >= _LONG_S:
            self._progress.start()
            self._is_shown = True
        if self._is_shown:
            self._progress.update(self._task, completed=taken_bytes)

    def close(self) -> None:
        """Takes the bar away."""
        if self._is_shown:
            self._progress.stop()
