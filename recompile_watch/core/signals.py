"""Signals: what a condition says, in its own words: that something began, goes on or is over."""

from dataclasses import dataclass

from recompile_watch.core.groups import GroupKey
from recompile_watch.core.heard import Trouble, TroubleKind

_CRITICAL = frozenset({TroubleKind.STATE_UNWRITABLE, TroubleKind.STATE_CORRUPT})
_PASSED = frozenset({TroubleKind.GAP, TroubleKind.STATE_CORRUPT, TroubleKind.RECEIVER_GONE})  # nothing that goes on
_COSTS = {
    TroubleKind.GAP: "What stood in these lines is unknown: a problem may have been missed.",
    TroubleKind.UNREADABLE: "Nothing of this source is watched meanwhile; lines are read later if they still exist then.",
    TroubleKind.SOURCE_MISSING: "Nothing of this source is watched.",
    TroubleKind.STATE_CORRUPT: "What the watch remembered is set aside; incidents and positions start anew.",
    TroubleKind.STATE_UNWRITABLE: "The watch goes on in memory; a restart would forget what happened since.",
    TroubleKind.UNDELIVERED: "Somebody was not told, unless another receiver got it instead.",
    TroubleKind.RECEIVER_GONE: "Somebody who was to be told was not, unless another receiver got it instead.",
    TroubleKind.BAD_RELOAD: "The old configuration stays in force.",
    TroubleKind.WAKE_LOST: "Lines are noticed at the next poll instead of at once.",
}


@dataclass(frozen=True, slots=True)
class Signal:
    """One statement of a condition.

    kind, function, file, subject: what names the incident. is_over: the condition is gone. is_lasting: it goes on
    until it is said to be over; else each signal is one event of it. title, cost: what is said of it.
    remedies: keys of the catalogue that help, the one to do first.
    """

    kind: str
    subject: str
    severity: str = "warning"
    title: str = ""
    cost: str = ""
    function: str | None = None
    file: str | None = None
    line_no: int | None = None
    model: str | None = None
    symbol: str | None = None
    cause: str | None = None
    is_over: bool = False
    is_lasting: bool = True
    remedies: tuple[str, ...] = ()

    @property
    def key(self) -> GroupKey:
        """What names the incident."""
        return GroupKey(self.kind, self.function, self.file, self.subject)


def signal_of(trouble: Trouble) -> Signal:
    """A fault of the watching itself as a signal."""
    lost = f" ({trouble.lost_bytes:,} bytes were never read)" if trouble.lost_bytes else ""
    is_lasting = trouble.kind not in _PASSED
    return Signal(
        trouble.kind.value, trouble.subject, "critical" if trouble.kind in _CRITICAL else "warning", trouble.text + lost, _COSTS[trouble.kind],
        is_over=trouble.is_over, is_lasting=is_lasting,
    )  # fmt: skip
