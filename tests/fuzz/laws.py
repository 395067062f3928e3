"""What must hold for any bytes (promises P1, P2, P5): each law returns what is wrong, None when it holds."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence

from recompile_watch.core.analysis import Analysis, Facts, SourceFacts
from recompile_watch.core.bulk import Bulk
from recompile_watch.core.engine import SourceEngine
from recompile_watch.core.events import Event as CoreEvent
from recompile_watch.core.records import HEAD_LINES
from recompile_watch.report.json import json_text, report_to_json
from tests.conftest import TIMES, as_json, engine_events, matcher, rules
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
    return bad_json(events) or _unequal(data, events, seed) or _unequal_in_bulk(data, seed)


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


def _unequal_in_bulk(data: bytes, seed: int) -> str | None:
    """Whether a report differs when metric lines and tables are read in bulk; ordinary lines stand in front, where no record can be headless."""
    padded = b"an ordinary line of the application\n" * HEAD_LINES + data
    whole, in_bulk = _reported([padded], None), _reported(split(random.Random(seed), padded), Bulk.of(rules()))
    if whole == in_bulk:
        return None
    at = next((i for i, (one, other) in enumerate(zip(whole, in_bulk, strict=False)) if one != other), 0)
    return f"in bulk: …{whole[max(0, at - 60) : at + 60]}… became …{in_bulk[max(0, at - 60) : at + 60]}…"


def _reported(blocks: Sequence[bytes], bulk: Bulk | None) -> str:
    analysis = Analysis(rules())
    engine = SourceEngine("bot.log", rules(), matcher(), TIMES, bulk)
    for items in (*(engine.feed(block) for block in blocks), engine.end()):
        for item in items:
            analysis.take(item)
    return json_text(report_to_json(analysis.report(Facts((SourceFacts("bot.log"),))), generated_at="", tool_version=""))


def difference(events: Sequence[CoreEvent], others: Sequence[CoreEvent]) -> str:
    """The first event that differs."""
    for one, other in zip(events, others, strict=False):
        if one != other:
            return f"{one} became {other}"
    return f"{len(events)} events became {len(others)}: {[*events, *others][-1]}"
