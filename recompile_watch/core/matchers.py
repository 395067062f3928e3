"""Matchers: ``field = value`` and its kin, by which silences and receivers choose incidents.

``severity=critical``, ``model!=toto``, ``function=~decode.*`` and ``symbol!~BTC.*``; patterns are RE2 and must match
the whole value. A field with several values, such as ``symbol``, matches when one of them does.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, cast

import re2

FIELDS = ("id", "fingerprint", "kind", "severity", "model", "function", "file", "symbol", "source", "cause", "host")
_MATCHER = re.compile(r"\s*(?P<field>\w+)\s*(?P<operator>=~|!~|!=|=)\s*(?P<value>.*?)\s*", re.DOTALL)
_MAX_CHARS = 500
Values = Mapping[str, Sequence[str]]


class _TextPattern(Protocol):
    def fullmatch(self, text: str) -> object | None: ...


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition on a field. operator: ``=``, ``!=``, ``=~`` or ``!~``."""

    field: str
    operator: str
    value: str

    def holds(self, values: Values) -> bool:
        """True when it fits these values; a field without any is the empty text."""
        found = values.get(self.field) or ("",)
        if self.operator in ("=", "!="):
            return (self.value in found) == (self.operator == "=")
        pattern = _compiled(self.value)
        return any(pattern.fullmatch(text) is not None for text in found) == (self.operator == "=~")

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{self.value}"


def parse_matcher(text: str) -> Matcher:
    """The matcher of such a text. Raises ValueError, which says what to write, for anything else."""
    found = _MATCHER.fullmatch(text[: _MAX_CHARS + 1])
    if found is None or len(text) > _MAX_CHARS:
        raise ValueError(f"'{text[:80]}' is no matcher; write one such as severity=critical or function=~decode.*")
    if found["field"] not in FIELDS:
        raise ValueError(f"'{found['field']}' is no field; known are {', '.join(FIELDS)}")
    value = found["value"]
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = value[1:-1]
    if "~" in found["operator"]:
        try:
            _compiled(value)
        except re2.error as error:
            raise ValueError(f"'{value[:80]}' is no RE2 pattern: {error}") from None
    return Matcher(found["field"], found["operator"], value)


def all_hold(matchers: Sequence[Matcher], values: Values) -> bool:
    """True when every matcher fits; no matcher fits everything."""
    return all(matcher.holds(values) for matcher in matchers)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> _TextPattern:
    options = re2.Options()
    options.log_errors = False
    return cast(_TextPattern, re2.compile(pattern, options))
