"""Findings that a person has accepted, each until a day: they count no longer for the status, and come back afterwards."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime

from recompile_watch.core.errors import ConfigError
from recompile_watch.core.findings import Finding

_KEYS = frozenset({"finding", "who", "why", "until"})


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Who accepted which finding, why, and the last day on which that holds."""

    finding: str
    who: str
    why: str
    until: date


def parse_acceptances(text: str, source: str) -> dict[str, Acceptance]:
    """The acceptances of a TOML file by finding. Raises ConfigError with all mistakes, one line each."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: not valid TOML: {error}") from None
    mistakes = [f"{source}: unknown table '{name}', only [[accept]] is known" for name in document if name != "accept"]
    entries = document.get("accept", [])
    if not isinstance(entries, list):
        raise ConfigError(f"{source}: write [[accept]] with two brackets")
    found: dict[str, Acceptance] = {}
    for number, entry in enumerate(entries, 1):
        wrong = [*_mistakes(entry)]
        mistakes += [f"{source}: accept {number}: {mistake}" for mistake in wrong]
        if not wrong:
            one = Acceptance(entry["finding"], entry["who"], entry["why"], _day(entry["until"]) or date.min)
            found[one.finding] = one
    if mistakes:
        raise ConfigError("\n".join(mistakes))
    return found


def accepted(findings: tuple[Finding, ...], acceptances: Mapping[str, Acceptance], today: date) -> tuple[Finding, ...]:
    """The findings, those that are accepted today marked with the last day of that."""
    return tuple(
        replace(finding, accepted_until=one.until.isoformat()) if (one := acceptances.get(finding.id)) is not None and today <= one.until else finding
        for finding in findings
    )


def _mistakes(entry: Mapping[str, object]) -> Iterable[str]:
    yield from (f"key '{key}' is missing" for key in sorted(_KEYS - set(entry)))
    yield from (f"unknown key '{key}'" for key in entry if key not in _KEYS)
    yield from (f"key '{key}' must be a text" for key in ("finding", "who", "why") if key in entry and not _is_text(entry[key]))
    if "until" in entry and _day(entry["until"]) is None:
        yield "key 'until' must be a day such as 2026-12-31"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _day(value: object) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
