"""The agenda: what has to be done when, so that nothing is looked at before its time."""

import heapq


class Agenda:
    """Keys with a due time each, in seconds of one clock; a key that is set again has only its newest time."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def set(self, key: str, due: float | None) -> None:
        """Sets or, with None, clears the due time of a key."""
        if due is None:
            self._due.pop(key, None)
        elif self._due.get(key) != due:
            self._due[key] = due
            heapq.heappush(self._heap, (due, key))
            if len(self._heap) > 4 * len(self._due) + 1024:
                self._heap = sorted((due, key) for key, due in self._due.items())

    def next(self) -> tuple[float, str] | None:
        """The earliest due time with its key; of equal times the key that comes first in the alphabet."""
        heap = self._heap
        while heap and self._due.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0] if heap else None

    def pop(self) -> str:
        """Takes the earliest key off the agenda. Raises IndexError when there is none."""
        found = self.next()
        if found is None:
            raise IndexError("the agenda is empty")
        heapq.heappop(self._heap)
        del self._due[found[1]]
        return found[1]
