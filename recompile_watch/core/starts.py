"""Compilations that begin: where a log has no recompile blocks, only they show that torch compiled a function again.

``TORCH_LOGS=dynamo`` and ``+dynamo`` print "torchdynamo start compiling f" with the compile id, and no block without ``recompiles``.
A block stands in front of the start that it is about, with its id (torch 2.2 to 2.15) or with none (2.1).
"""

from collections.abc import Mapping
from typing import Any

from recompile_watch.core.compile_id import entry_number, without_attempt
from recompile_watch.core.events import Event
from recompile_watch.core.same import Held, Process

STARTED = "torch.recompile.start"  # the rule for a compilation that begins
MAX_PROCESSES = 64
MAX_FRAMES = 1024


class Starts:
    """The compilations that each process of one source has begun: the latest of each frame, None where it prints recompile blocks."""

    def __init__(self) -> None:
        self._begun: dict[Process, dict[str, int] | None] = {}

    def state(self) -> list[list[object]]:
        """What later events depend on, as JSON values."""
        return [[channel.decode("latin-1"), rank, pid, begun and {**begun}] for (channel, rank, pid), begun in self._begun.items()]

    def resume(self, state: Mapping[str, Any]) -> None:
        """Goes on where an earlier reading stopped. Raises KeyError, TypeError or ValueError when it is no such state."""
        self._begun = {(channel.encode("latin-1"), rank, pid): begun and {**begun} for channel, rank, pid, begun in state.get("begun", ())}

    def is_news(self, held: Held) -> bool:
        """False for a start that is no recompile, or that says what another line said."""
        if held.rule != STARTED:
            if held.event.kind == "recompile" and self._begun.get(held.process, {}) is not None:
                self._keep(held.process, None)
            return True
        begun = self._begun.get(held.process, {})
        if begun is None or (place := _place(held.event)) is None:
            return False
        frame, entry = place
        is_news = entry > begun.get(frame, 0)
        if len(begun) < MAX_FRAMES or frame in begun:
            begun[frame] = entry  # 0 once more behind torch._dynamo.reset()
        self._keep(held.process, begun)
        return is_news

    def _keep(self, process: Process, begun: dict[str, int] | None) -> None:
        """Keeps what a process did; beyond the bound the one that was kept longest ago goes."""
        self._begun.pop(process, None)
        self._begun[process] = begun
        if len(self._begun) > MAX_PROCESSES:
            del self._begun[next(iter(self._begun))]


def _place(event: Event) -> tuple[str, int] | None:
    """The frame of a compile id and the number of the compilation in it; None without an id."""
    entry = entry_number(event.compile_id)
    return (without_attempt(event.compile_id).rpartition("/")[0], entry) if event.compile_id and entry >= 0 else None
