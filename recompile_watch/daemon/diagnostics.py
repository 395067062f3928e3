"""Diagnoses that alerts start: what the watch orders is run as a child, and the results, also those of a person's, are kept."""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from recompile_watch.core.diagnostic_runs import RunOrder, without_calls
from recompile_watch.respond.diagnostic_process import DiagnosticProcess, Ended
from recompile_watch.store import Changes

TABLE = "diagnoses"
MAX_KEPT = 50
MAX_KEPT_BYTES = 256 << 10  # of one; a usual one has 20 KiB
_SHORT = ("schema", "generated_at", "tool_version", "workload", "device", "torch_version", "profile", "mode", "stage", "problems", "verdict")


def diagnose_command() -> tuple[str, ...]:
    """The diagnostic, under this interpreter; ``-P`` keeps it from importing what lies in the folder it starts in."""
    return (sys.executable, "-P", "-m", "recompile_watch", "diagnose")


def mark_in(folder: Path, mark: str) -> str:
    """A run's mark in this state directory: another watch of the same log orders a run of the same mark."""
    return hashlib.sha256(f"{folder.resolve()}\0{mark}".encode()).hexdigest()[:32]


class Diagnostics:
    """Runs what is ordered, one at a time. file, folder: the configuration and state directory that a run is told; kept: numbers of results."""

    def __init__(self, process: DiagnosticProcess, file: Path, folder: Path, model: str | None, kept: Iterable[int]) -> None:
        self._process, self._model, self._folder = process, model, folder
        self._options = ("--config", str(file.absolute()), "--state-dir", str(folder.absolute()), "--format", "json", "--parent", str(os.getpid()))
        self._kept = sorted(kept)
        self._ordered: list[RunOrder] = []
        self._incident = ""
        self._at_once: Ended | None = None

    def order(self, runs: Sequence[RunOrder]) -> None:
        """Takes orders; they begin when what was decided is written down."""
        self._ordered += runs

    def begin(self, monotonic: float) -> None:
        """Starts what was ordered, unless another run goes on."""
        if not self._ordered or self.is_busy:
            return
        order = self._ordered.pop(0)
        stage = ("--stage", "both", "--device", "cuda") if order.needs_gpu else ("--stage", "auto")
        self._incident = order.incident
        self._at_once = self._process.start([*self._options, "--incident", order.incident, *stage], mark_in(self._folder, order.mark), monotonic)

    def collect(self, monotonic: float) -> tuple[str, Ended] | None:
        """The incident whose run has ended, and how."""
        ended, self._at_once = self._at_once or self._process.collect(monotonic), None
        return (self._incident, ended) if ended is not None else None

    def keep(self, changes: Changes, report: Mapping[str, object], now: float, *, incident: str | None, model: str | None, is_by_hand: bool) -> None:
        """Notes a result; the oldest beyond ``MAX_KEPT`` go. incident, model: what it is about, None where that is not known."""
        lean = without_calls(report)
        if len(json.dumps(lean)) > MAX_KEPT_BYTES:
            lean = {name: lean[name] for name in _SHORT if name in lean}
        row = {"at": now, "incident": incident, "model": model, "is_by_hand": is_by_hand, "report": lean}
        self._kept.append(self._kept[-1] + 1 if self._kept else 1)
        changes.put(TABLE, (self._kept[-1],), row)
        for number in self._kept[:-MAX_KEPT]:
            changes.put(TABLE, (number,), None)
        del self._kept[:-MAX_KEPT]

    @property
    def model(self) -> str | None:
        """Whose workload the configuration names."""
        return self._model

    @property
    def is_busy(self) -> bool:
        """True while a run goes on."""
        return self._process.next_due() is not None or self._at_once is not None

    def fds(self) -> list[int]:
        """The descriptors that wake."""
        return self._process.reading()

    def next_due(self) -> float | None:
        """When ``collect`` has something to do, on the monotonic clock."""
        return float("-inf") if self._at_once is not None else self._process.next_due()

    def close(self) -> None:
        """Ends the run that goes on."""
        self._process.kill()
