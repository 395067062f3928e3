"""Laws that hold for any input: promises P1 (block borders), P2 (matcher, jobs), P5 (hostile bytes) and P6 (nothing invented).

`make fuzz` runs the same laws for longer. Everything here is deterministic: the examples are those of a fixed seed.
"""

from __future__ import annotations

import functools
import gzip
import random
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from recompile_watch.core.analysis import Analysis, Facts, SourceFacts
from recompile_watch.core.bulk import Bulk
from recompile_watch.core.context import Context, Item
from recompile_watch.core.engine import SourceEngine
from recompile_watch.core.errors import SourceError
from recompile_watch.core.events import Event as CoreEvent
from recompile_watch.core.lines import MAX_LINE_BYTES
from recompile_watch.core.near import BEFORE_BYTES
from recompile_watch.core.parts import Part, PartReader, PartReading, agree, numbered
from recompile_watch.core.shape import HEAD_BYTES, shape_of
from recompile_watch.core.times import TimeResolver
from recompile_watch.report.json import report_to_json
from recompile_watch.sources.find import find_sources
from recompile_watch.survey import SMALL_PART_BYTES, Survey, SurveyOptions
from tests.conftest import DATA, ROOT, SAMPLES, TIMES, as_json, engine_events, events_of_bytes, events_of_path, matcher, only_events, rules
from tests.fuzz.laws import bad_json, difference
from tests.fuzz.mutate import mutated, split
from tests.truth import Event
from tests.variants import CUT_FACTS, Variant, differences

settings.register_profile(
    "house", derandomize=True, max_examples=40, deadline=timedelta(seconds=20), suppress_health_check=list(HealthCheck), database=None
)
settings.load_profile("house")

TORCH = DATA / "torch"
LOGS = {
    path.relative_to(root).as_posix(): path
    for root, names in (
        (SAMPLES, ("bot-2025-10-30.log", "cudagraphs.log", "mixed-app.log", "two-ranks.log", "kronos-rotary-length.log")),
        (
            TORCH,
            (
                "2.5.1/s10_breaks.log", "2.13.0/s10_breaks_capture.log", "2.9.1/s12_fullgraph_limit.log", "2.9.1/s19_format_short.log",
                "2.13.0/s14_ranks_tee3.log", "2.13.0/s24_compiled_autograd.log", "2.5.1/s01c_kvcache_layers_std.log",
            ),
        ),
        (DATA / "bot" / "kinds_oct30", ("01_strategy_table.log", "05_model_failures.log", "07_errors.log")),
    )
    for path in (root / name for name in names)
}  # fmt: skip
SMALL = [name for name, path in LOGS.items() if path.stat().st_size <= 20_000]
TRACES = sorted(TORCH.glob("2.5.1/*.trace/*.gz"))
# The first bytes of a source are held until its shape is known; behind this padding every block border counts.
PADDING = b"tick\n" * (HEAD_BYTES // 5 + 1)

names = st.sampled_from(sorted(LOGS))
seeds = st.integers(0, 2**32 - 1)
shares = st.floats(0, 1, exclude_max=True)


@functools.cache
def log(name: str) -> bytes:
    """The content of one of the logs."""
    return LOGS[name].read_bytes()


@functools.cache
def whole(name: str) -> list[CoreEvent]:
    """Its events, read in one go."""
    return engine_events([log(name)])


@functools.cache
def padded(name: str) -> list[CoreEvent]:
    """Its events behind the padding, read in one go."""
    return engine_events([PADDING + log(name)])


def same(events: list[CoreEvent], others: list[CoreEvent]) -> None:
    """Fails with the first difference."""
    assert events == others, difference(events, others)


# --- P1: block borders ----------------------------------------------------------------------


@given(names, seeds)
def test_any_blocks_give_the_same_events(name: str, seed: int) -> None:
    """Where the blocks of a log begin and end makes no difference, neither in its head nor behind it."""
    rng = random.Random(seed)
    same(whole(name), engine_events(split(rng, log(name))))
    same(padded(name), engine_events([PADDING, *split(rng, log(name))]))


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("step", [1, 2, 7])
def test_byte_by_byte(name: str, step: int) -> None:
    """Blocks of one, two and seven bytes give the same events."""
    data = log(name)
    blocks = [data[start : start + step] for start in range(0, len(data), step)]
    same(whole(name), engine_events(blocks))
    same(padded(name), engine_events([PADDING, *blocks]))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_traces_in_blocks(path: Path) -> None:
    """TORCH_TRACE files read the same in any blocks."""
    data = gzip.decompress(path.read_bytes())
    events = engine_events([data])
    for seed in range(3):
        same(events, engine_events(split(random.Random(seed), data)))
    same(events, engine_events([data[start : start + 1] for start in range(len(data))]))


# --- P2: matcher and jobs -------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(LOGS))
def test_without_the_matcher(name: str) -> None:
    """Looking at every line finds what the literal matcher finds."""
    same(whole(name), engine_events([log(name)], with_matcher=False))
    same(padded(name), engine_events([PADDING + log(name)], with_matcher=False))


def joined_parts(data: bytes, borders: list[int]) -> list[CoreEvent]:
    """The events of a log read in parts with these line starts as borders, joined as `survey` joins them."""
    shape = shape_of(data[:HEAD_BYTES])
    context = Context(TimeResolver(TIMES, shape.first_date, shape.offset_s))
    edges = [0, *borders]
    events: list[CoreEvent] = []
    lines = 0
    held: tuple[Part, PartReading] | None = None
    for start, end in zip(edges, [*borders, None], strict=True):
        part = Part(start, end, line_before(data, start))
        reading = read_one(data, part)
        if held is not None and agree(held[1], reading, part.end):
            events += only_events(context.push(numbered(held[1], lines)))
            lines += held[1].lines
        elif held is not None:
            part = Part(held[0].start, end, held[0].before)
            reading = read_one(data, part)
        held = (part, reading)
    assert held is not None
    return events + only_events(context.push(numbered(held[1], lines)) + context.flush())


def read_one(data: bytes, part: Part) -> PartReading:
    """One part of a log."""
    behind = () if part.end is None else (data[part.end :],)
    return PartReader("bot.log", rules(), matcher()).read(part, [data[part.start : part.end]], behind)


def line_before(data: bytes, start: int) -> bytes:
    """The lines in front of a line start, as far as they are near."""
    lines = data[: max(start - 1, 0)].split(b"\n")
    while sum(map(len, lines)) + len(lines) - 1 > BEFORE_BYTES:
        del lines[0]
    return b"\n".join(lines)


def line_starts(data: bytes) -> list[int]:
    """Every place where a line begins, but the first."""
    return [index + 1 for index, byte in enumerate(data[:-1]) if byte == 10]


@given(names, st.data())
def test_parts_join_without_a_seam(name: str, draw: st.DataObject) -> None:
    """A log read in parts that begin at any lines gives the events of reading it in one go."""
    data = log(name)
    assume(shape_of(data[:HEAD_BYTES]).wrap_width is None)
    borders = sorted(draw.draw(st.sets(st.sampled_from(line_starts(data)), min_size=1, max_size=8)))
    same(whole(name), joined_parts(data, borders))


@pytest.mark.parametrize("name", SMALL)
def test_every_single_border(name: str) -> None:
    """Two parts join without a seam wherever the border between them is."""
    for border in line_starts(log(name)):
        same(whole(name), joined_parts(log(name), [border]))


def surveyed(path: Path, jobs: int) -> list[CoreEvent]:
    """The events of a file as the commands read it."""
    found, errors = find_sources([str(path)])
    assert not errors
    survey = Survey(found, rules(), matcher(), SurveyOptions(lambda _: TIMES, jobs))
    return [event for _, items in survey.items() for event in only_events(items)]


def test_jobs_on_a_large_file(tmp_path: Path) -> None:
    """Three processes that share one file give the events of one process, line numbers and offsets included."""
    logs = (log(name) for name in ("mixed-app.log", "two-ranks.log", "bot-2025-10-30.log", "2.5.1/s10_breaks.log"))
    unit = b"".join(part for text in logs for part in (text, PADDING * 4))
    path = tmp_path / "large.log"
    path.write_bytes(unit * (16 * SMALL_PART_BYTES // len(unit) + 1))
    one = surveyed(path, 1)
    assert len(one) > 3000
    same(one, surveyed(path, 3))


def reported(items: Iterable[Item]) -> dict[str, object]:
    """What `analyze --format json` says of these events and rows."""
    analysis = Analysis(rules())
    for item in items:
        analysis.take(item)
    return report_to_json(analysis.report(Facts((SourceFacts("bot.log"),))), generated_at="", tool_version="")


BULK_LOGS = [name for name in sorted(LOGS) if name.endswith(("bot-2025-10-30.log", "table.log", "failures.log"))]


@pytest.mark.parametrize("name", BULK_LOGS)
@pytest.mark.parametrize("seed", range(5))
def test_metrics_in_bulk(name: str, seed: int) -> None:
    """Metric lines read as rows give the report that they give as events, one by one."""
    data = PADDING + log(name) * 3
    bulk = Bulk.of(rules())
    engine = SourceEngine("bot.log", rules(), matcher(), TIMES, bulk)
    items = [item for block in split(random.Random(seed), data) for item in engine.feed(block)] + engine.end()
    assert reported(items) == reported(engine_events([data]))


@given(names, shares)
def test_analyses_merge(name: str, share: float) -> None:
    """Two analyses of neighbouring parts of a log's events merge into the analysis of all of them."""
    events = whole(name)
    place = int(len(events) * share)
    first, second, both = Analysis(rules()), Analysis(rules()), Analysis(rules())
    for number, event in enumerate(events):
        (first if number < place else second).add(event)
        both.add(event)
    first.merge(second)
    facts = Facts((SourceFacts("bot.log"),))
    merged, expected = (report_to_json(one.report(facts), generated_at="", tool_version="") for one in (first, both))
    assert merged == expected


# --- P5: hostile bytes ----------------------------------------------------------------------


def harmless(data: bytes) -> list[CoreEvent]:
    """The events of any bytes: read without an exception, printable as JSON."""
    events = engine_events([data])
    assert bad_json(events) is None
    return events


@given(st.binary(max_size=5000))
def test_arbitrary_bytes(data: bytes) -> None:
    """Any bytes are read without an exception, and nothing is found in noise."""
    assert harmless(data) == []


@settings(max_examples=300)
@given(names, seeds)
def test_mutated_logs(name: str, seed: int) -> None:
    """A real log with bytes changed, lost, repeated, shuffled or put in between is read without an exception."""
    harmless(mutated(random.Random(seed), log(name)))


@settings(max_examples=300)
@given(names, seeds)
def test_mutated_logs_in_blocks(name: str, seed: int) -> None:
    """Block borders make no difference in a damaged log either."""
    rng = random.Random(seed)
    data = PADDING + mutated(rng, log(name))
    same(engine_events([data]), engine_events(split(rng, data)))


@settings(max_examples=300)
@given(names, seeds)
def test_mutated_logs_without_the_matcher(name: str, seed: int) -> None:
    """The matcher makes no difference in a damaged log either."""
    data = mutated(random.Random(seed), log(name))
    same(engine_events([data]), engine_events([data], with_matcher=False))


PREFIX = b"V1120 10:55:36.837000 15144 torch/_dynamo/guards.py:617] [22/3] [__recompiles] "
NEXT = b"V1120 10:55:36.838000 15144 torch/_dynamo/guards.py:617] [23/1] [__recompiles] Recompiling function g in /srv/bot/x.py:9\n"
RECORD = (
    PREFIX + b"Recompiling function f in /srv/bot/x.py:1\n",
    PREFIX + b"    triggered by the following guard failure(s):\n",
    PREFIX + b"    - 22/0: L['x'] == 1\n",
    PREFIX + b"    - 22/1: L['x'] == 2\n",
)


@pytest.mark.parametrize("place", [2, 3])
def test_a_foreign_line_inside_a_record(place: int) -> None:
    """A line of another writer between two lines of a record is read for itself, and counted."""
    foreign = b"skipping cudagraphs due to mutated inputs (2 instances)\n"
    data = b"".join([*RECORD[:place], foreign, *RECORD[place:], NEXT])
    found = [(event.kind, event.line, len(event.reasons)) for event in engine_events([data])]
    assert found == [("recompile", 1, 2), ("cudagraph_skip", place + 1, 1), ("recompile", 6, 0)]


def test_two_messages_with_one_prefix() -> None:
    """Two messages of one place in the same millisecond are two events, also when two rules find them."""
    prefix = b"W1120 10:43:22.983000 11485 torch/_inductor/cudagraph_utils.py:205] [__perf_hints] "
    first = prefix + b"skipping cudagraphs due to non-cuda device\n"
    second = prefix + b"skipping cudagraph due to function 3 exceeding max re-recording limit (=128) on cudagraph node 2 due to x.\n"
    found = [(event.kind, event.line) for event in engine_events([first + second])]
    assert found == [("cudagraph_skip", 1), ("cudagraph_rerecord", 2)]


def test_a_line_is_cleaned_whatever_line_of_its_shape_was_plain_before_it() -> None:
    """A colour that syslog spelled out is taken off, also behind a line that has zeros in its digits' places and is none."""
    prefix = b"V0101 00:00:00.000000 1 torch/_dynamo/guards.py:2611] [0/1] [__recompiles] "
    head = [b"Recompiling function f in /a/b.py:1\n", b"    triggered by the following guard failure(s):\n"]
    for codes in ((b"#033[31m", b"#000[00m"), (b"#000[00m", b"#033[31m")):
        guards = [b"    - 0/0: L['x'] == '%sz'\n" % code for code in codes]
        (event,) = engine_events([b"".join(prefix + line for line in (*head, *guards))])
        assert {reason.text for reason in event.reasons} == {"L['x'] == 'z'", "L['x'] == '#000[00mz'"}


def test_a_torn_last_line_far_behind_a_record() -> None:
    """A record that a later line of the same process has closed is complete, whatever the last line of the log looks like."""
    later = b"W1120 10:55:37.000000 15144 torch/other.py:1] [24/0] something else\n"
    data = PADDING + b"".join(RECORD) + later + b"tor"
    (event,) = engine_events([data])
    assert not event.partial
    same([event], engine_events([data], with_matcher=False))


@given(st.sampled_from(["gz", "zst"]), names, seeds)
def test_mutated_archives(kind: str, name: str, seed: int) -> None:
    """A damaged archive is read as far as it goes, or refused with a SourceError; nothing else comes out."""
    packed = gzip.compress(log(name), 1) if kind == "gz" else zstandard.compress(log(name))
    data = mutated(random.Random(seed), packed)
    assume(data)
    try:
        events_of_bytes(data, f"bot.log.{kind}")
    except SourceError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("value", [rb'"\\ud800"', rb'"a\\udfffb"', '"²"'.encode(), b"[1, 999]", b"NaN", b"1e400"])
@pytest.mark.parametrize("key", ["MESSAGE", "_PID", "rank", "time", "stream", "log"])
def test_strange_values_in_json_lines(key: str, value: bytes) -> None:
    """Half characters, digits of other scripts and numbers that are none are read without an exception."""
    line = b'{"msg": "skipping cudagraphs due to mutated inputs (2 instances)", "%s": %s}\n' % (key.encode(), value)
    harmless(line)


def test_monstrous_lines() -> None:
    """A line without end is passed over in bounded memory; the lines around it are read."""
    monster = b"A" * (3 * MAX_LINE_BYTES)
    events = engine_events([log("cudagraphs.log"), monster, monster, b"\n", log("cudagraphs.log")])
    assert [event.kind for event in events] == [event.kind for event in whole("cudagraphs.log")] * 2


def test_a_record_without_end() -> None:
    """A hundred thousand reasons in one record are read in time that grows with their number only."""
    line = b"V1120 10:28:52.255000 3989 torch/_dynamo/guards.py:2813] [0/1] [__recompiles] "
    head = line + b"Recompiling function f in /srv/bot/x.py:1\n" + line + b"    triggered by the following guard failure(s):\n"
    harmless(head + b"".join(line + b"    - 0/%d: L['x'] == %d\n" % (n, n) for n in range(100_000)))


# --- P6: nothing invented -------------------------------------------------------------------


def facts_known(cut: list[Event], full: list[Event]) -> None:
    """No function and no file stands in the events of a cut log that the whole log does not have."""
    for field in ("function", "file"):
        known = {event[field] for event in full} | {None}
        assert {event[field] for event in cut} <= known


@settings(max_examples=200)
@given(names, shares)
def test_cut_anywhere(name: str, share: float) -> None:
    """A log cut anywhere invents no function or file, and an event that lost a part of its record says so."""
    data, full = log(name), as_json(whole(name))
    place = int(len(data) * share)
    for kept in (data[place:], data[:place].removesuffix(b"\n")):
        cut = as_json(engine_events([kept]))
        facts_known(cut, full)
        assert differences(Variant("cut", lambda data: data, CUT_FACTS), full, cut) == []


@pytest.mark.parametrize("name", SMALL)
def test_cut_at_every_line(name: str) -> None:
    """Cut at any line border, no function or file is invented."""
    data, full = log(name), as_json(whole(name))
    for place in line_starts(data):
        facts_known(as_json(engine_events([data[place:]])), full)
        facts_known(as_json(engine_events([data[:place]])), full)


LOOKALIKES = {
    "prose": "When Dynamo recompiles it prints Recompiling function forward in model.py:12, then triggered by the following guard failure(s).\n"
    "If the torch._dynamo hit config.recompile_limit (8) warning appears, raise the limit.\n"
    "I read that skipping cudagraphs due to mutated inputs (2 instances) is harmless, is that so?\n",
    "documentation": "## Reading the log\n\nA recompile looks like this: `Recompiling function fn in test.py:3`.\n\n"
    "* `torch._dynamo hit config.cache_size_limit (8)` means that the limit was hit.\n"
    "* The message `skipping cudagraphs due to mutated inputs` comes from inductor.\n"
    "* See `torch._dynamo.exc.FailOnRecompileLimitHit` for the error.\n"
    "* A `Graph break in user code at test.py:3` ends the graph.\n"
    "| message | meaning |\n|---|---|\n| `Recompiling function` | a guard failed |\n| `skipping cudagraphs due to` | no graph |\n",
    "source": '        recompiles_log.debug(\n            "Recompiling function %s in %s:%s\\n%s", code.co_name, code.co_filename, line, reasons)\n'
    '    message = f"Recompiling function {name} in {filename}:{line}\\n    triggered by the following guard failure(s):"\n'
    '    log.warning("torch._dynamo hit config.%s (%s)\\n   function: %s\\n   last reason: %s", name, limit, function, reason)\n'
    '    perf_hint_log.warning("skipping cudagraphs due to %s", reason)\n'
    '    raise FailOnRecompileLimitHit("recompile_limit reached with fullgraph=True")\n'
    '    assert "skipping cudagraphs due to mutated inputs" in captured\n'
    "# Graph break in user code at FILE:LINE is what we look for\n",
    "grep": 'torch/_dynamo/guards.py:2813:        f"Recompiling function {code.co_name} in {code.co_filename}:{line}"\n'
    'torch/_inductor/utils.py:120:    return f"skipping cudagraphs due to {msg}"\n'
    'torch/_dynamo/convert_frame.py:844:            "torch._dynamo hit config.%s (%s)\\n"\n'
    "docs/faq.md:10:Recompiling function is printed when a guard fails.\n"
    "tests/test_log.py-33-    line = 'Recompiling function f in x.py:1'\n",
    "shell": "$ grep -c 'Recompiling function' bot.log\n42\n$ rg 'torch._dynamo hit config.recompile_limit' bot.log | wc -l\n"
    "+ grep 'skipping cudagraphs due to' stderr.log\n$ TORCH_LOGS=recompiles,graph_breaks python bot.py\n",
    "application": "2025-10-30 09:07:15,100 INFO alerts: rule 'Recompiling function' loaded (3 rules)\n"
    "2025-10-30 09:07:15,101 INFO alerts: will warn when 'torch._dynamo hit config.recompile_limit' is seen\n"
    '2025-10-30 09:07:15,102 DEBUG chat: user said "Recompiling function forward in model.py:12"\n'
    '2025-10-30 09:07:15,103 DEBUG search: query="skipping cudagraphs due to mutated inputs" hits=12\n'
    "2025-10-30 09:07:15,104 INFO docs: see also: CUDA out of memory\n",
    "other compilers": "[ 12%] Building CXX object foo.o\nRecompiling function bodies in a.c\n"
    "Recompiling 12 files because the headers changed\nRecompiling module core (stale .beam)\n"
    "Compiling serde v1.0.1\nwarning: function `main` is never used\nwebpack: Compiled with 3 warnings; recompiling...\n",
    "server": '10.0.0.7 - - [20/Nov/2025:10:28:52 +0000] "GET /Recompiling%20function HTTP/1.1" 404 153\n'
    '10.0.0.7 - - [20/Nov/2025:10:28:53 +0000] "GET /search?q=skipping+cudagraphs+due+to HTTP/1.1" 200 9000\n',
    "glog of others": "I1120 10:28:52.255000 3989 server.cc:100] Recompiling regex cache\n"
    "W1120 10:28:52.300000 3989 pool.cc:7] cache_size_limit (8) reached\n"
    "I1120 10:28:52.255000 3989 main.cc:10] hit config reload\n"
    "I1120 10:00:03.000000 123 compiler.cc:12] Recompiling function main in module.wasm:12\n",
    "trading": "Backtest summary for the week\n  Strategy          Return\nReturn of the strategy: 0.1 (see Backtest summary for details)\n"
    "The spread for BTCUSD is 10 bps\nanalysis of returns: avg is 0.1\n",
    "python logging": "WARNING:root:this test checks that 'Graph break in user code at' is printed\n"
    "DEBUG:docs:`torch._dynamo.exc.Unsupported` explained\n",
    "changes": "* `torch._dynamo.exc.FailOnRecompileLimitHit: Hard failure due to fullgraph=True` replaces the old text.\n"
    '* Fixed "RuntimeError: Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run."\n'
    "    Graph break in user code at model.py:12 removed\n"
    "+    # W1120 10:00:00.000000 123 torch/_dynamo/convert_frame.py:1994] [0/8] torch._dynamo hit config.recompile_limit (8)\n",
    "tests": "def test_limit_line():\n"
    '    line = "W1120 10:00:00.000000 123 torch/_dynamo/convert_frame.py:1994] [0/8] torch._dynamo hit config.recompile_limit (8)"\n'
    "    assert parse(line).limit == 8\n"
    '    text = """V1120 10:00:00.000000 123 torch/_dynamo/guards.py:5396] [0/1] [__recompiles] Recompiling function f in /a.py:3"""\n'
    "except torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n",
    "help": "  --fail-on-recompile   RuntimeError: Detected recompile when torch.compile stance is 'fail_on_recompile'.\n"
    "  -q, --quiet  skipping cudagraphs due to mutated inputs is not shown\n",
    "filters": "filterwarnings =\n    ignore:Unable to hit fast path of CUDAGraphs because of pending, uninvoked backwards:UserWarning\n",
    "templates": "skipping cudagraphs due to %s\nskipping cudagraphs due to {reason}\n"
    "Recompiling function {code.co_name} in {code.co_filename}:{code.co_firstlineno}\nGraph break in user code at %s:%s\n",
    "docstring": "Base exceptions:\n    - TorchDynamoException: Base class for all TorchDynamo-specific exceptions\n"
    "    - UserError: Exceptions for user-facing errors in TorchDynamo usage\n",
    "chat": '2026-11-26 02:07:59,658 INFO support.chat user=ken text="W1126 01:59:56.292000 14402 torch/_dynamo/convert_frame.py:1994] [0/8]'
    ' torch._dynamo hit config.recompile_limit (8)"\n'
    "2026-11-26 02:07:59,658 INFO support.chat user=ken text=\"and then torch._dynamo.exc.InternalTorchDynamoError: 'NoneType' object has none\"\n"
    "2026-11-26 02:07:59,658 [INFO] kb.indexer: chunk 3: '```\\nV1126 01:55:27.365000 13190 torch/_dynamo/guards.py:5396] [0/1] [__recompiles] "
    "Recompiling function forward in app/model.py:67\\nV1126 01:55:27.365000 13190 torch/_dynamo/guards.py:5396] [0/1] [__recompiles]     "
    "triggered by the following guard failure(s):\\n```'\n",
    "manual": "If you see `torch._dynamo.exc.Unsupported: Dynamo recompile limit exceeded`, remove fullgraph=True.\n"
    'q/chat.py:6:log.info("%s", json.dumps("W1126 01:59:56.292000 14402 torch/_dynamo/convert_frame.py:1994] [0/8] torch._dynamo hit '
    'config.recompile_limit (8)"))\n',
    "counts": "2026-11-20 10:00:12 INFO app: torch.compile failed 0 times; eager fallbacks 0\n",
}
LOREM = (
    "lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "recompile", "graph", "break", "cudagraph",
    "guard", "torch", "dynamo", "limit", "function", "reason", "spread", "table", "return",
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(LOOKALIKES))
def test_lookalikes(name: str) -> None:
    """Text that only speaks about torch's or the bot's messages is no event."""
    assert [(event.kind, event.line) for event in engine_events([LOOKALIKES[name].encode()])] == []


@pytest.mark.parametrize("name", sorted(LOOKALIKES))
def test_lookalikes_inside_carriers(name: str) -> None:
    """Nor is it one behind the prefix of a carrier."""
    for prefix in ("> ", "bot-1  | ", "2025-11-20T10:28:52.255000123Z ", "Nov 20 10:28:52 host python3[3989]: "):
        text = "".join(prefix + line + "\n" for line in LOOKALIKES[name].splitlines())
        assert [(event.kind, event.line) for event in engine_events([text.encode()])] == []


@given(st.lists(st.lists(st.sampled_from(LOREM), max_size=12).map(" ".join), max_size=60).map("\n".join))
def test_words_are_no_events(text: str) -> None:
    """Words of torch in any order are no event."""
    assert engine_events([text.encode()]) == []


@pytest.mark.parametrize("folder", ["recompile_watch", "tests/sources", "tests/truth.py", "tests/variants.py"])
def test_our_own_sources_are_no_log(folder: str) -> None:
    """Python files that hold the messages as string literals hold no event."""
    place = ROOT / folder
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    found = [f"{path.name}:{event['at']['line']} {event['kind']}" for path in files for event in events_of_path(path)]
    assert found == []
