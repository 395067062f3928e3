"""The order of records: those that closed in another one come back into that of their first lines."""

from recompile_watch.core.records import Record


class RecordOrder:
    """Puts records that closed in another order back into the order of their first lines."""

    def __init__(self) -> None:
        self._waiting: list[Record] = []

    def ordered(self, closed: list[Record], still_open: list[Record]) -> list[Record]:
        """The records that nothing open stands before."""
        if closed:
            self._waiting += closed
            self._waiting.sort(key=lambda record: (record.offset, record.line, record.place))
        if not still_open:
            ready, self._waiting = self._waiting, []
            return ready
        first = min(record.offset for record in still_open)
        count = next((i for i, record in enumerate(self._waiting) if record.offset >= first), len(self._waiting))
        ready, self._waiting = self._waiting[:count], self._waiting[count:]
        return ready
