"""What an analysis remembers of one source: between which times its events lie, and which of them other sources hold as well."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class SourceSpan:
    """The times of a source's first and last dated event, by their place in the log.

    also_in: how many of its events were counted in another source, by its path.
    """

    path: str
    first: str | None = None
    last: str | None = None
    first_offset: int = 0
    last_offset: int = -1
    also_in: dict[str, int] = field(default_factory=dict)

    def see(self, first: str | None, first_offset: int, last: str | None, last_offset: int) -> None:
        """Takes in a stretch of the log."""
        if first is not None and (self.first is None or first_offset < self.first_offset):
            self.first, self.first_offset = first, first_offset
        if last is not None and last_offset >= self.last_offset:
            self.last, self.last_offset = last, last_offset

    def count_in(self, other: str, n: int) -> None:
        """Notes that so many of its events were counted in another source, which holds the same lines."""
        self.also_in[other] = self.also_in.get(other, 0) + n

    def merge(self, later: "SourceSpan") -> None:
        """Takes in what was remembered of another part of the source."""
        self.see(later.first, later.first_offset, later.last, later.last_offset)
        for path, n in later.also_in.items():
            self.count_in(path, n)
