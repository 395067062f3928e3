"""What a person asks of the watch: to acknowledge, to silence, to end a silence."""

from dataclasses import dataclass

from recompile_watch.core.matchers import Matcher

MAX_TEXT_CHARS = 500


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """A person knows of an incident. incident: its id or how that begins. until: epoch seconds, None until it is over."""

    incident: str
    until: float | None
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Silence:
    """Nobody is told of what fits all matchers, until a moment in epoch seconds."""

    matchers: tuple[Matcher, ...]
    until: float
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Unsilence:
    """Ends a silence. silence: its id or how that begins."""

    silence: str


Command = Acknowledge | Silence | Unsilence


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a command was not obeyed: one line that says what to do."""

    text: str
