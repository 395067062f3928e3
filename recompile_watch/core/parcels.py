"""Parcels: notices on their way to a receiver, as the outbox keeps them over a restart."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

from recompile_watch.core.errors import StoreError
from recompile_watch.core.notice_json import notice_from_json, notice_to_json
from recompile_watch.core.notices import Notice


class ParcelState(StrEnum):
    """Where a parcel stands. The last three are final."""

    DUE = "due"
    SENDING = "sending"
    SENT = "sent"
    DEAD = "dead"  # refused, or given up
    DROPPED = "dropped"  # overtaken by a newer one, or told in a digest


FINAL = frozenset({ParcelState.SENT, ParcelState.DEAD, ParcelState.DROPPED})


@dataclass(frozen=True, slots=True)
class Parcel:
    """One notice on its way to one receiver.

    next_at: epoch seconds before which it is not tried again. wait_s: the wait that led there. waited_s: all waits (not
    by the clock, which may jump). attempts: begun so far. reason: why it is where it is, one line without secrets.
    stands_for: how many notices it holds, more than 1 for a digest. is_late: its receiver has not taken it for so
    long that somebody else was told. tried: receivers that did not take it, for a copy that a fallback gets. fallback: name of
    the receiver that gets it when this one does not take it.
    """

    notice: Notice
    state: ParcelState
    next_at: float
    attempts: int = 0
    wait_s: float = 0.0
    waited_s: float = 0.0
    reason: str = ""
    stands_for: int = 1
    is_late: bool = False
    tried: tuple[str, ...] = ()
    fallback: str | None = None

    @property
    def id(self) -> str:
        """Unique; that of the notice."""
        return self.notice.id

    @property
    def receiver(self) -> str:
        """The name of the receiver."""
        return self.notice.receiver

    @property
    def made_at(self) -> float:
        """When the notice was made, epoch seconds."""
        return self.notice.made_at


def parcel_to_json(parcel: Parcel) -> dict[str, object]:
    """The parcel as a JSON object, with its id and receiver for a table's columns."""
    plain = {field.name: getattr(parcel, field.name) for field in fields(Parcel) if field.name != "notice"}
    return {"id": parcel.id, "receiver": parcel.receiver, "made_at": parcel.made_at, **plain, "notice": notice_to_json(parcel.notice)}


def parcel_from_json(value: Mapping[str, object]) -> Parcel:
    """The parcel in a JSON object. Raises StoreError for anything else."""
    tried, fallback = value.get("tried", ()), value.get("fallback")
    try:
        return Parcel(
            notice=notice_from_json(value["notice"]), state=ParcelState(str(value["state"])), next_at=_number(value, "next_at"),
            attempts=int(_number(value, "attempts")), wait_s=_number(value, "wait_s"),
            waited_s=_number(value, "waited_s"), reason=str(value.get("reason", "")),
            stands_for=int(_number(value, "stands_for")), is_late=value.get("is_late") is True,
            tried=tuple(map(str, tried)) if isinstance(tried, list | tuple) else (),
            fallback=fallback if isinstance(fallback, str) else None,
        )  # fmt: skip
    except (KeyError, ValueError, OverflowError):
        raise StoreError("a message in the outbox cannot be read; it was written by another version") from None


def _number(value: Mapping[str, object], name: str) -> float:
    found = value[name]
    if not isinstance(found, int | float):
        raise ValueError
    return float(found)
