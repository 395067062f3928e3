"""How the tests read: through the product's own path, files to blocks to events, in this process.

python -m tests.truth ROOT --events tests.conftest:events_of_bytes
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from recompile_watch.config import load_rules
from recompile_watch.core.engine import SourceEngine
from recompile_watch.core.events import Event as CoreEvent
from recompile_watch.core.events import event_to_json
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.scan import LiteralMatcher, Matcher
from recompile_watch.core.times import TimeOptions
from recompile_watch.sources.find import find_sources
from recompile_watch.sources.read import read_blocks
from tests.truth import Event

os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="recompile-watch-tests-")  # no test leaves anything in the user's own folders
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
SAMPLES = ROOT / "sample_logs"
TIMES = TimeOptions(year=2025)  # the logs are of 2025; torch prints no year, and a checkout has a date of its own


@functools.cache
def rules() -> Ruleset:
    """The shipped rules."""
    return load_rules()


@functools.cache
def matcher() -> Matcher:
    """The literals of the shipped rules."""
    return LiteralMatcher(rules().literals)


def engine_events(blocks: Iterable[bytes], name: str = "bot.log", *, with_matcher: bool = True) -> list[CoreEvent]:
    """The events of a source that comes in these blocks."""
    engine = SourceEngine(name, rules(), matcher() if with_matcher else None, TIMES)
    items = [item for block in blocks for item in engine.feed(block)] + engine.end()
    return only_events(items)


def only_events(items: Iterable[object]) -> list[CoreEvent]:
    """The events; rows of metrics come only from a reading in bulk."""
    return [item for item in items if isinstance(item, CoreEvent)]


def as_json(events: Iterable[CoreEvent]) -> list[Event]:
    """The events as `recompile-watch events` prints them."""
    return [event_to_json(event) for event in events]


def events_of_path(path: Path) -> list[Event]:
    """The events of a file, or of all files of a folder, as `recompile-watch events` prints them."""
    found, errors = find_sources([str(path)])
    if errors:
        raise errors[0]
    return [event for source in found for event in as_json(engine_events(read_blocks(source), source.path))]


def events_of_bytes(data: bytes, name: str) -> list[Event]:
    """The events of a file called `name` with this content; `tests.truth` and `tests.variants` take it as --events."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_bytes(data)
        return events_of_path(path) if data else []
