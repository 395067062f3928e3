"""How often something happened over time, in a few equal stretches however long it lasts."""

from dataclasses import dataclass, field

STRETCHES = 24
FIRST_WIDTH_S = 60.0


@dataclass(slots=True)
class Pace:
    """start: epoch seconds of the first stretch. width_s: of each. counts: events in each, at most ``STRETCHES``."""

    start: float
    width_s: float = FIRST_WIDTH_S
    counts: list[int] = field(default_factory=list)

    def add(self, at: float) -> None:
        """Takes an event; one before the start counts in the first stretch."""
        index = max(0, int((at - self.start) // self.width_s))
        while index >= STRETCHES:
            self.width_s *= 2
            self.counts = [sum(self.counts[i : i + 2]) for i in range(0, len(self.counts), 2)]
            index = int((at - self.start) // self.width_s)
        while len(self.counts) <= index:
            self.counts.append(0)
        self.counts[index] += 1
