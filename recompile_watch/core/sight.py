"""What is known about the moment in which an event is taken in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sight:
    """at: epoch seconds by the log's time. wall, steady: of the clocks. phase: of the compiler, None while unknown.

    source: the configured name of the source.
    """

    at: float
    wall: float
    steady: float
    phase: str | None
    source: str
