"""What one step of the daemon heard: new events and how much of the world it saw."""

from dataclasses import dataclass
from enum import StrEnum

from recompile_watch.core.events import Event
from recompile_watch.core.runs import Stretch


@dataclass(frozen=True, slots=True)
class Heard:
    """What one step read of one stream.

    source: the configured name of the source. stream: the file's path, or ``journal`` or ``-``. events: in log order, some of them in stretches.
    lines: complete lines read, with and without events. is_backlog: they were written before the watch began.
    """

    source: str
    stream: str
    events: tuple[Event | Stretch, ...]
    lines: int
    is_backlog: bool = False


class TroubleKind(StrEnum):
    """What can go wrong with the watching itself. Each becomes an incident of its own kind, ``watch_…``."""

    GAP = "watch_gap"  # lines that nobody read and that no longer exist
    UNREADABLE = "watch_source_unreadable"
    SOURCE_MISSING = "watch_source_missing"
    STATE_CORRUPT = "watch_state_corrupt"
    STATE_UNWRITABLE = "watch_state_unwritable"
    UNDELIVERED = "watch_undelivered"
    RECEIVER_GONE = "watch_receiver_gone"  # messages waited for a receiver that the configuration no longer names
    BAD_RELOAD = "watch_bad_reload"
    WAKE_LOST = "watch_wake_lost"  # inotify is not available: polling only


@dataclass(frozen=True, slots=True)
class Trouble:
    """A fault of the watching itself, or its end.

    subject: the stream, receiver or file it is about. text: one sentence that says what happened and what to do.
    is_over: the fault is gone. lost_bytes: how much nobody read; None when that cannot be known.
    """

    kind: TroubleKind
    subject: str
    text: str
    is_over: bool = False
    lost_bytes: int | None = None
