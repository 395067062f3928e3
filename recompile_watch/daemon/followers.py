"""What gives the bytes of a source: followed files, the journal, standard input, all seen the same way by the loop."""

from collections.abc import Collection, Sequence
from typing import Protocol

from recompile_watch.core.heard import Trouble, TroubleKind
from recompile_watch.sources.journal import STREAM as JOURNAL_STREAM
from recompile_watch.sources.journal import Journal, JournalSettings
from recompile_watch.sources.live_input import STREAM as INPUT_STREAM
from recompile_watch.sources.live_input import LiveInput
from recompile_watch.sources.marks import Around, Chunk, GenerationEnded, GenerationStarted, Mark, Progress, Watched
from recompile_watch.sources.retirement import Retired


class Follower(Protocol):
    """What gives the bytes of one source. fd: becomes readable when there are new ones; None where only polling tells."""

    @property
    def has_more(self) -> bool: ...
    @property
    def fd(self) -> int | None: ...
    def poll(self, now: float, budget_bytes: int) -> Sequence[Chunk | GenerationStarted | GenerationEnded | Trouble]: ...
    def mark(self, stream: str, generation: int, position: int, lines: int) -> Mark | None: ...
    def release(self, stream: str, generation: int) -> Mark | None: ...
    def excerpt(self, stream: str, generation: int, offset: int, before_lines: int, after_lines: int) -> Around | None: ...
    def progress(self) -> Sequence[Progress]: ...
    def retire(self, now: float, keep_s: float) -> Retired: ...
    def streams(self) -> Collection[str]: ...
    def watched(self) -> Watched | None: ...
    def folders(self) -> Sequence[str]: ...
    def concerns(self, path: str) -> bool: ...
    def hint(self) -> None: ...
    def close(self) -> None: ...


class _Flow:
    """What a source that is no file has in common: nothing to look back into, no folders."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._position = self._gaps = 0
        self._grown_at: float | None = None
        self.problem: str | None = None

    def release(self, stream: str, generation: int) -> Mark | None:
        """Nothing is kept of what ended."""
        return None

    def excerpt(self, stream: str, generation: int, offset: int, before_lines: int, after_lines: int) -> Around | None:
        """What has flowed by cannot be read again."""
        return None

    def progress(self) -> Sequence[Progress]:
        """How far it is read."""
        return [Progress(self._stream, self._position, self._position, 0, 1, self._gaps, 0, self._grown_at, self.problem)]

    def retire(self, now: float, keep_s: float) -> Retired:
        """No file comes or goes."""
        return Retired()

    def streams(self) -> Collection[str]:
        """The only one."""
        return [self._stream]

    def watched(self) -> Watched | None:
        """There are no files to tell apart."""
        return None

    def folders(self) -> Sequence[str]:
        """None to be woken by."""
        return []

    def concerns(self, path: str) -> bool:
        """No file does."""
        return False

    def hint(self) -> None:
        """There is nothing to look for."""

    def _took(self, items: Sequence[object], now: float) -> None:
        for item in items:
            if isinstance(item, Chunk):
                self._position, self._grown_at = item.end, now
            elif isinstance(item, Trouble) and item.kind is TroubleKind.GAP:
                self._gaps += 1
            elif isinstance(item, Trouble) and item.kind is TroubleKind.UNREADABLE:
                self.problem = None if item.is_over else item.text


class JournalFollower(_Flow):
    """Follows systemd's journal."""

    def __init__(self, settings: JournalSettings, mark: Mark | None) -> None:
        super().__init__(JOURNAL_STREAM)
        self._journal = Journal(settings, mark)

    @property
    def has_more(self) -> bool:
        """True when the budget ended the last poll."""
        return self._journal.has_more

    @property
    def fd(self) -> int | None:
        """Of the child's output."""
        return self._journal.fd

    def poll(self, now: float, budget_bytes: int) -> Sequence[Chunk | GenerationStarted | GenerationEnded | Trouble]:
        """The entries that came."""
        items = self._journal.poll(now, budget_bytes)
        self._took(items, now)
        return items

    def mark(self, stream: str, generation: int, position: int, lines: int) -> Mark | None:
        """The cursor at a position."""
        return self._journal.mark(position, lines)

    def close(self) -> None:
        """Ends the child."""
        self._journal.close()


class InputFollower(_Flow):
    """Follows standard input; it cannot be read again after a restart."""

    def __init__(self) -> None:
        super().__init__(INPUT_STREAM)
        self._input = LiveInput()

    @property
    def has_more(self) -> bool:
        """True when the budget ended the last poll."""
        return self._input.has_more

    @property
    def is_ended(self) -> bool:
        """True when its writer closed it."""
        return self._input.is_ended

    @property
    def fd(self) -> int | None:
        """Standard input, while it is open."""
        return None if self._input.is_ended else self._input.fd

    def poll(self, now: float, budget_bytes: int) -> Sequence[Chunk | GenerationStarted | GenerationEnded | Trouble]:
        """What came."""
        items = self._input.poll(budget_bytes)
        self._took(items, now)
        return items

    def mark(self, stream: str, generation: int, position: int, lines: int) -> Mark | None:
        """There is nothing to come back to."""
        return None

    def close(self) -> None:
        """Standard input stays as it is."""
