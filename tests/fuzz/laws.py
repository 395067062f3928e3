"""What must hold for any bytes (promises P1, P2, P5): each law returns what is wrong, None when it holds."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence

from recompile_watch.core.events import Event as CoreEvent
from tests.conftest import as_json, engine_events
from tests.fuzz.mutate import split

LIMIT_S = 10.0  # for a log of at most 300 KB; the product needs milliseconds


def broken_law(data: bytes, seed: int) -> str | None:
    """Reads `data` whole, in random blocks, and without the matcher; the first law that does not hold."""
    start = time.perf_counter()
    try:
        events = engine_events([data])
    except Exception as error:  # noqa: BLE001 - the fuzzer reports it
        return f"raises {type(error).__name__}: {error}"
    if time.perf_counter() - start > LIMIT_S:
        return f"takes {time.perf_counter() - start:.1f} s"
    return bad_json(events) or _unequal(data, events, seed)


def bad_json(events: Sequence[CoreEvent]) -> str | None:
    """Why the events cannot be printed as JSON in UTF-8."""
    try:
        for event in as_json(events):
            json.dumps(event, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, TypeError) as error:
        return f"no JSON: {error}"
    return None


def _unequal(data: bytes, events: Sequence[CoreEvent], seed: int) -> str | None:
    blocks = split(random.Random(seed), data)
    others = {
        f"blocks of {[len(block) for block in blocks]}": engine_events(blocks),
        "no matcher": engine_events([data], with_matcher=False),
    }
    for name, other in others.items():
        if other != events:
            return f"{name}: {difference(events, other)}"
    return None


def difference(events: Sequence[CoreEvent], others: Sequence[CoreEvent]) -> str:
    """The first event that differs."""
    for one, other in zip(events, others, strict=False):
        if one != other:
            return f"{one} became {other}"
    return f"{len(events)} events became {len(others)}: {[*events, *others][-1]}"
