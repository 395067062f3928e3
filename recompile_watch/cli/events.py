"""``recompile-watch events``: what was seen, one JSON object a line."""

import argparse
import sys

from recompile_watch.cli import exit_status
from recompile_watch.cli.inputs import complain, inputs_of
from recompile_watch.core.events import Event, event_to_json
from recompile_watch.report.json import json_text
from recompile_watch.report.safe import masked

_MAY_HOLD_SECRETS = 16  # characters; a shorter text holds none


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Prints the events as they are understood; returns the exit status."""
    inputs = inputs_of(arguments, "events")
    from recompile_watch.cli.reading import Reader

    reader = Reader(inputs.rules, inputs.matcher, inputs.options, None)
    has_events = False
    for _, events in reader.read_events(inputs.sources):
        if events:
            has_events = True
            _write("".join(map(event_line, events)))
    from recompile_watch.core.analysis import problems_of

    facts = inputs.facts(reader.facts)
    complain(facts, has_events=has_events, outside=reader.outside)
    return exit_status.UNKNOWN if problems_of(facts, has_events=has_events) else exit_status.OK


def event_line(event: Event) -> str:
    """The event as one line of JSON, secrets masked."""
    value = event_to_json(event)
    for name, item in value.items():
        if isinstance(item, str) and len(item) >= _MAY_HOLD_SECRETS and name != "file":
            value[name] = masked(item)
    value["reasons"] = [{"entry": r.entry, "text": masked(r.text), "cause": r.cause} for r in event.reasons]
    return json_text(value) + "\n"


def _write(text: str) -> None:
    """A lone surrogate, which JSON text may not hold, is already escaped."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()
