"""The life of an incident: (state, what happened) -> state, as a table."""

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """What an incident is in."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"  # a person knows; nobody is told again unless it gets worse
    SILENCED = "silenced"  # a silence covers it; nobody is told
    RESOLVED = "resolved"


class Happening(StrEnum):
    """What can happen to an incident."""

    SEEN = "seen"  # another event of it
    WORSENED = "worsened"  # its severity rose
    ENDED = "ended"  # long enough without an event, or its condition is over
    ACKNOWLEDGED = "acknowledged"
    ACK_EXPIRED = "ack_expired"
    SILENCED = "silenced"  # a silence begins to cover it
    UNSILENCED = "unsilenced"  # the last silence that covered it ended


_O, _A, _S, _R = State.OPEN, State.ACKNOWLEDGED, State.SILENCED, State.RESOLVED

TABLE: Mapping[tuple[State, Happening], State] = {
    (_O, Happening.SEEN): _O,
    (_O, Happening.WORSENED): _O,
    (_O, Happening.ENDED): _R,
    (_O, Happening.ACKNOWLEDGED): _A,
    (_O, Happening.ACK_EXPIRED): _O,
    (_O, Happening.SILENCED): _S,
    (_O, Happening.UNSILENCED): _O,
    (_A, Happening.SEEN): _A,
    (_A, Happening.WORSENED): _O,  # what was acknowledged was something milder
    (_A, Happening.ENDED): _R,
    (_A, Happening.ACKNOWLEDGED): _A,
    (_A, Happening.ACK_EXPIRED): _O,
    (_A, Happening.SILENCED): _S,
    (_A, Happening.UNSILENCED): _A,
    (_S, Happening.SEEN): _S,
    (_S, Happening.WORSENED): _S,
    (_S, Happening.ENDED): _R,
    (_S, Happening.ACKNOWLEDGED): _S,  # it becomes acknowledged when the silence ends
    (_S, Happening.ACK_EXPIRED): _S,
    (_S, Happening.SILENCED): _S,
    (_S, Happening.UNSILENCED): _O,
    (_R, Happening.SEEN): _O,
    (_R, Happening.WORSENED): _R,
    (_R, Happening.ENDED): _R,
    (_R, Happening.ACKNOWLEDGED): _R,
    (_R, Happening.ACK_EXPIRED): _R,
    (_R, Happening.SILENCED): _R,
    (_R, Happening.UNSILENCED): _R,
}


def after(state: State, happening: Happening) -> State:
    """The state that follows."""
    return TABLE[state, happening]


def table_markdown() -> str:
    """The table as docs show it: a row for each state, a column for each happening."""
    head = "| | " + " | ".join(happening.value.replace("_", " ") for happening in Happening) + " |"
    rule = "|---" * (len(Happening) + 1) + "|"
    rows = [f"| **{state}** | " + " | ".join(after(state, happening).value for happening in Happening) + " |" for state in State]
    return "\n".join([head, rule, *rows])
