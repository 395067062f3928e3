"""Graph breaks without a stack: torch prints the stack of a place once ("user stack suppressed due to duplicate graph break").

Source: torch/_dynamo/symbolic_convert.py of 2.1 to 2.15, which remembers the file and line of each break.
"""

from recompile_watch.core.events import Event
from recompile_watch.core.findings import BREAK_KIND, group_key
from recompile_watch.core.groups import Group

MAX_PLACES = 10_000


class BreakPlaces:
    """The functions of the graph breaks so far, by file and line."""

    def __init__(self) -> None:
        self._functions: dict[tuple[str, int], str] = {}

    def see(self, event: Event) -> Event:
        """The event; a graph break without its function has that of an earlier one at the same place."""
        if event.kind != BREAK_KIND or event.file is None or event.line_no is None:
            return event
        place = event.file, event.line_no
        if event.function is None:
            function = self._functions.get(place)
            return event if function is None else event._replace(function=function)
        if place in self._functions or len(self._functions) < MAX_PLACES:
            self._functions[place] = event.function
        return event

    def name(self, group: Group) -> None:
        """Gives a group of a later part of the log the function of the breaks at its place."""
        group.first, group.last = self.see(group.first), self.see(group.last)
        if group.key.function != group.first.function:
            group.key = group_key(group.first)

    def merge(self, later: "BreakPlaces") -> None:
        """Takes in the places of the part of the log that follows."""
        for place, function in later._functions.items():
            if place in self._functions or len(self._functions) < MAX_PLACES:
                self._functions[place] = function
