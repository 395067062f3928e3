"""Excerpts of logs that the program had not seen: other days and modes of the bot, other versions of torch, in the shapes logs come in.

What an excerpt says is written down before the program reads it: every event, and of each every field of the contract. A field
that is not listed is null (`partial` is false, `reasons` is empty), so that nothing may be missing, guessed or invented; `*` stands
where the log can be read either way. `shapes` says what carried or quoted the log, the text holds it already.

    python -m tests.excerpts           # what is not as written down, and the rate of each file
"""

from __future__ import annotations

import functools
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import cast

from recompile_watch.core.events import EXTRA_FIELDS
from tests.conftest import DATA, as_json, engine_events
from tests.truth import Event

EXCERPTS = DATA / "excerpts"
FILES = ("bot", "torch", "torch_again")
NULL = ("time", "rank", "pid", "compile_id", "function", "file", "line_no")
ANY = "*"
NOT_IN_CONTRACT = frozenset({"message"})  # of a failed compilation: compared where it is listed


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A log with what it says. shapes: what carried or quoted it, innermost first."""

    file: str
    name: str
    log: str
    events: tuple[Event, ...]
    shapes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.file}-{self.name}"

    def read(self) -> list[Event]:
        """The events that the program finds."""
        return as_json(engine_events([self.log.encode()]))


@functools.cache
def excerpts(file: str) -> tuple[Excerpt, ...]:
    """The excerpts of a file."""
    path = EXCERPTS / f"{file}.toml"
    cases = tomllib.loads(path.read_text())["case"] if path.exists() else []
    return tuple(Excerpt(file, case["name"], case["log"], tuple(case["events"]), tuple(case.get("shapes", ()))) for case in cases)


def problems(excerpt: Excerpt) -> list[str]:
    """What the program says otherwise than written down; empty when all is right."""
    found, events = excerpt.read(), excerpt.events
    kinds = [str(event["kind"]) for event in found]
    if kinds != [event["kind"] for event in events]:
        return [f"events are {kinds}, not {[event['kind'] for event in events]}"]
    pairs = zip(found, events, strict=True)
    return [f"{index} {event['kind']}: {line}" for index, (got, event) in enumerate(pairs) for line in _differences(got, event, excerpt.shapes)]


def _differences(got: Event, expected: Event, shapes: Sequence[str]) -> list[str]:
    extras = [name for name in EXTRA_FIELDS.get(str(expected["kind"]), {}) if not (expected["kind"] == "compile_error" and name in NOT_IN_CONTRACT)]
    defaults: dict[str, object] = {**dict.fromkeys(NULL), "partial": False, "refused": False, "derived": False, "recompiles": ()}
    names = [*NULL, "partial", *extras, *(name for name in expected if name not in (*NULL, "kind", "partial", "reasons", *extras))]
    if shapes:  # what carries a log may add a time, a rank and a process
        names = [name for name in names if name not in ("time", "rank", "pid") or name in expected]
    lines = []
    for name in names:
        have, want = got.get(name), expected.get(name, defaults.get(name))
        if want != ANY and not _is_same(name, have, want):
            lines.append(f"{name} is {have!r}, not {want!r}")
    if _is_any(expected.get("reasons")):
        return lines
    have, want = [_reason(reason) for reason in got["reasons"]], [_reason(reason) for reason in expected.get("reasons", ())]
    causes = [reason.get("cause") for reason in expected.get("reasons", ())]
    have = [(*pair[:2], pair[2] if index < len(causes) and causes[index] else None) for index, pair in enumerate(have)]
    return lines if have == want else [*lines, f"reasons are {have!r}, not {want!r}"]


def _reason(reason: Mapping[str, object]) -> tuple[object, ...]:
    return reason.get("entry"), reason["text"], reason.get("cause")


def _is_any(reasons: object) -> bool:
    return isinstance(reasons, list) and [reason["text"] for reason in reasons] == [ANY]


def _is_same(name: str, have: object, want: object) -> bool:
    if isinstance(have, float) and not isfinite(have):
        have = None  # as JSON prints it
    if name == "time" and isinstance(have, str) and isinstance(want, str):
        return datetime.fromisoformat(have) == datetime.fromisoformat(want)
    if isinstance(have, bool) or isinstance(want, bool):
        return have is want
    if isinstance(want, list | tuple):
        return list(cast("Sequence[object]", have)) == list(want) if isinstance(have, list | tuple) else False
    return have == want


def main() -> int:
    """Prints what is not right; status 1 when there is any."""
    wrong = 0
    for file in FILES:
        cases = excerpts(file)
        told = {excerpt.label: problems(excerpt) for excerpt in cases}
        for label, lines in told.items():
            for line in lines:
                print(f"{label}: {line}")
        bad = sum(bool(lines) for lines in told.values())
        wrong += bad
        print(f"{file}: {len(cases) - bad} of {len(cases)} excerpts exactly right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
