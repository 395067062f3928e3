"""What the control socket answers: how the watch is doing, and what a person asks it to do."""

import os
from collections.abc import Callable, Mapping

from recompile_watch.core.commands import Acknowledge, Command, Silence, Unsilence
from recompile_watch.core.errors import StoreError
from recompile_watch.core.matchers import parse_matcher
from recompile_watch.daemon.loop import Clock, Loop


class Questions:
    """Answers questions about the loop that runs now."""

    def __init__(self, loop: Callable[[], Loop], clock: Clock) -> None:
        self._loop, self._started_at = loop, clock.now()

    def answer(self, question: Mapping[str, object]) -> Mapping[str, object]:
        """The answer, or ``{"error": one line}``."""
        try:
            if question.get("ask") == "status":
                loop = self._loop()
                daemon = {"pid": os.getpid(), "started_at": self._started_at, "healthy": not loop.is_unwritable}
                return {"daemon": daemon, "progress": loop.progress()}
            if question.get("ask") == "measured":
                self._loop().measured(_report(question), _text(question, "incident") or None, _text(question, "model") or None)
            else:
                self._loop().command(_command(question))
        except (StoreError, ValueError) as error:
            return {"error": str(error)}
        return {"done": True}


def _command(question: Mapping[str, object]) -> Command:
    """The command that a question stands for. Raises ValueError."""
    who, why = _text(question, "who"), _text(question, "why")
    match question.get("ask"):
        case "acknowledge":
            return Acknowledge(_text(question, "incident"), _until(question), who, why)
        case "silence":
            texts, until = question.get("matchers"), _until(question)
            if not isinstance(texts, list) or not texts or until is None:
                raise ValueError("a silence needs matchers and an end")
            return Silence(tuple(parse_matcher(str(text)) for text in texts), until, who, why)
        case "unsilence":
            return Unsilence(_text(question, "silence"))
    raise ValueError("the watch does not know this question; it may be of another version than the command")


def _report(question: Mapping[str, object]) -> Mapping[str, object]:
    value = question.get("report")
    if not isinstance(value, Mapping):
        raise ValueError("report is no JSON object")
    return value


def _text(question: Mapping[str, object], name: str) -> str:
    value = question.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value


def _until(question: Mapping[str, object]) -> float | None:
    value = question.get("until")
    if value is not None and not isinstance(value, int | float):
        raise ValueError("until is no time")
    return None if value is None else float(value)
