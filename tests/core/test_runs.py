"""Tests of `recompile_watch.core.runs`: a watch that reads in bulk understands and decides what it does event by event."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain, zip_longest

import pytest

from recompile_watch.core.bulk import Bulk
from recompile_watch.core.events import Event
from recompile_watch.core.heard import Heard
from recompile_watch.core.moments import epoch_of
from recompile_watch.core.normals import Judgement, Level, judge, judge_all
from recompile_watch.core.runs import Stretch
from recompile_watch.core.streams import Piece, Stream
from recompile_watch.core.times import TimeOptions
from recompile_watch.core.watch_settings import LevelSettings, Rate, Receiver, WatchSettings
from tests.conftest import SAMPLES, matcher, rules
from tests.core.test_bulk import random_log
from tests.core.watching import START, watch

TIMES = TimeOptions(zone=UTC, zone_is_given=True, year=2025)
BEGIN = datetime(2025, 10, 30, 9, 7, 12, tzinfo=UTC)
HEADER = "%s UTC | 2025-10-30 05:07:15 EDT | 2025-10-30 22:07:15 NZDT | backtest_test3_inline.py:_snapshot:249 INFO | "
USAGE = "Toto GPU usage symbol=%s num_samples=3072 samples_per_batch=%d peak=%.1f MB delta=416.1 MB (count=%d)"
TABLE = (
    "Backtest summary for %s (70 simulations)\n  Strategy          Return  Sharpe  \n"
    "  ----------------- ------- --------\n  MaxDiff           %.4f 1.0000  \n"
)
SETTINGS = WatchSettings(receivers=(Receiver("ops", min_severity="info", repeat_interval_s=600.0), Receiver("slow", group_by=("kind",))))
EVERY_QUANTITY = (Rate("gpu_memory", 40, 60.0), Rate("strategy_return", 3, 600.0))


def busy_log(seed: int) -> bytes:
    """A bot at work: memory that jumps and calms down, call counters, tables, quotes, analyses, recompiles, lines that nobody needs."""
    chance = random.Random(seed)
    now, count, level = BEGIN, 0, 600.0
    lines: list[str] = []
    for _ in range(400):
        now += timedelta(seconds=chance.choice((0, 0, 0, 1, 2, 3, 30, 400)), milliseconds=chance.randrange(900))
        level = chance.choice((level, level, level, level, 600.0, 900.0, 250.0))
        header = HEADER % now.strftime("%Y-%m-%d %H:%M:%S")
        symbol, peak = chance.choice(("BTCUSD", "BTCUSD", "BTCUSD", "ETHUSD")), level + chance.random()
        kind = chance.random()
        if kind < 0.6:
            count = 0 if chance.random() < 0.01 else count + chance.randrange(30)
            lines += [
                header + f"GPU[0] toto_predict_begin({symbol}) alloc=609.7 MB reserved=1092.6 MB peak={peak:.1f} MB",
                header + f"GPU[0] toto_predict_end({symbol}) alloc=609.7 MB reserved=1092.6 MB peak={peak * 2:.1f} MB",
                header + USAGE % (symbol, chance.choice((384, 384, 96)), peak, count),
            ]
        elif kind < 0.73:
            lines += [chance.choice((header, header, header.rstrip())), *(TABLE % (symbol, chance.choice((0.1, 0.2, -0.3)))).splitlines()]
        elif kind < 0.78:
            lines.append(header + f"Latest {symbol} bid: {chance.choice((0.0, 3.0))}, ask: 4.0 (attempt 1)")
        elif kind < 0.82:
            lines.append(
                now.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
                + f" | INFO     | data_curate_daily:f:1 - Populating synthetic bid/ask (0 spread) for {symbol} (ADD_LATEST=False)"
            )
        elif kind < 0.85:
            lines.append(header + "Loading Toto pipeline 'Datadog/Toto-Open-Base-1.0' on cuda")
        elif kind < 0.92:
            lines.append(header + chance.choice(("MARKET OPEN HOUR 2 ANALYSIS STARTING...", "TRADING PLAN (MARKET OPEN PLAN) - no candidates")))
        elif kind < 0.96:
            prefix = now.strftime("V%m%d %H:%M:%S.%f") + f" 4242 torch/_dynamo/guards.py:2999] [0/{chance.randrange(1, 9)}] [__recompiles] "
            lines += [
                prefix + "Recompiling function f in /srv/m.py:1",
                prefix + "    triggered by the following guard failure(s):",
                prefix + "    - 0/0: L['x'] == 3",
            ]
        else:
            lines.append(chance.choice(("an ordinary line", "2019-13-45 99:99:99 UTC | no time", header + "nothing", "")))
    return "\n".join(lines).encode() + b"\n"


def blocks(log: bytes, seed: int) -> Iterator[tuple[int, int, bytes]]:
    """The log in pieces of whole lines: offset, line number, bytes."""
    chance = random.Random(seed)
    at = 0
    while at < len(log):
        end = log.find(b"\n", min(at + chance.choice((1, 300, 3000, 30_000)), len(log) - 1)) + 1 or len(log)
        yield at, log.count(b"\n", 0, at) + 1, log[at:end]
        at = end


def judged(log: bytes, *, in_bulk: bool) -> list[str]:
    """The events of a log that a watch judges, each as text, read by rules that give no others."""
    wanted = rules().only(watch(SETTINGS).judges)
    reading = Stream("bot.log", wanted, matcher(), bulk=Bulk.of(wanted) if in_bulk else None)
    seen = [*reading.feed(Piece(1, 0, 1, log), TIMES), *reading.settle()]
    return [repr(event) for event in one_by_one(one.event for one in seen)]


def stream(state: object = None, *, in_bulk: bool) -> Stream:
    """A stream that begins, or goes on from a state that went through JSON."""
    bulk = Bulk.of(rules()) if in_bulk else None
    return Stream("bot.log", rules(), matcher(), None if state is None else json.loads(json.dumps(state)), bulk=bulk)


def read(log: bytes, seed: int, *, in_bulk: bool) -> list[list[Event | Stretch]]:
    """What each piece gives, and the end; the file joined in the middle of a stream, so that places differ from those in it."""
    reading = stream(in_bulk=in_bulk)
    reading.feed(Piece(1, 700, 8, b"the old file\n"), TIMES)
    found = [[seen.event for seen in reading.feed(Piece(2, offset, line, piece), TIMES)] for offset, line, piece in blocks(log, seed)]
    return [*found, [seen.event for seen in reading.settle()]]


def one_by_one(items: Iterable[Event | Stretch]) -> list[Event]:
    """The events, those of runs too."""
    return [event for item in items for event in (item.events() if isinstance(item, Stretch) else [item])]


def assert_same(found: list[Event], expected: list[Event]) -> None:
    """The same events; as texts, as a table may hold what is no number, and only the first that differ, as there are many."""
    pairs = zip_longest(map(repr, found), map(repr, expected))
    assert next((pair for pair in pairs if pair[0] != pair[1]), None) is None


def killed(log: bytes, seed: int) -> list[Event]:
    """The events of a reading in bulk that is killed after some pieces and goes on with what it saved before."""
    chance = random.Random(seed)
    reading, found = stream(in_bulk=True), list[Event]()
    for offset, line, piece in blocks(log, seed):
        if chance.random() < 0.3 and offset:
            position = reading.positions()[1]
            reading, again = stream(reading.state(), in_bulk=True), log[position.offset : offset]
            assert position.offset <= offset and log.count(b"\n", 0, position.offset) == position.lines
            if again:
                found += one_by_one([seen.event for seen in reading.feed(Piece(1, position.offset, position.lines + 1, again), TIMES)])
        found += one_by_one([seen.event for seen in reading.feed(Piece(1, offset, line, piece), TIMES)])
    return found + one_by_one([seen.event for seen in reading.settle()])


def decided(parts: list[list[Event | Stretch]], settings: WatchSettings, *, is_backlog: bool) -> tuple[list[str], dict[str, dict[str, object]]]:
    """All that a watch says of what it heard, each part read when its last event was written."""
    one, now = watch(settings), START
    told = [*one.tick(now).notices]
    rows: dict[str, object] = {}
    for part in parts:
        times = [epoch_of(event.time) or now for event in one_by_one(part) if event.time]
        now = max([now, *times])
        while (due := one.next_due()) is not None and due <= now and not is_backlog:
            told += one.tick(due).notices
        step = one.feed([Heard("bot", "bot.log", tuple(part), 1, is_backlog)], (), now)
        told += step.notices
        rows.update(step.incidents)
    while (due := one.next_due()) is not None and due <= now + 20_000.0:
        told += one.tick(due).notices
    return [str(notice) for notice in told], {name: json.loads(json.dumps(one.incident(name), default=str)) for name in rows}


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("make", [random_log, busy_log])
def test_runs_are_the_events_of_their_lines(seed: int, make: Callable[[int], bytes]) -> None:
    """However the log is torn and cut: the same events at the same places, in the same order."""
    log = make(seed)
    log = log if log.endswith(b"\n") else log + b"\n"
    assert_same(one_by_one(chain(*read(log, seed, in_bulk=True))), one_by_one(chain(*read(log, seed, in_bulk=False))))


@pytest.mark.parametrize("seed", range(40))
def test_killed_in_bulk_nothing_is_lost_or_repeated(seed: int) -> None:
    """Saved, killed and resumed between any two pieces: the events of one reading, also where runs wait behind a recompile."""
    log = busy_log(seed)
    whole = stream(in_bulk=False)
    events = whole.feed(Piece(1, 0, 1, log), TIMES) + whole.settle()
    assert_same(killed(log, seed), one_by_one([seen.event for seen in events]))


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("is_backlog", [False, True])
@pytest.mark.parametrize("rates", [(), EVERY_QUANTITY])
def test_a_watch_decides_of_runs_what_it_decides_of_events(seed: int, is_backlog: bool, rates: tuple[Rate, ...]) -> None:
    """The same notices at the same times, the same incidents; also where a rate must see each event by itself."""
    settings = WatchSettings(receivers=SETTINGS.receivers, rates=rates)
    parts = read(busy_log(seed), seed, in_bulk=True)
    singles = [list[Event | Stretch](one_by_one(part)) for part in parts]
    assert decided(parts, settings, is_backlog=is_backlog) == decided(singles, settings, is_backlog=is_backlog)


def analyses() -> bytes:
    """Three analyses of two symbols; the last one is over before the table of its second symbol comes, behind other metric lines."""
    lines: list[str] = []

    def at(seconds: int, *texts: str) -> None:
        header = HEADER % (BEGIN + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")
        for text in texts:
            lines.extend([header + text] if "\n" not in text else [header, *text.splitlines()])

    usage, eth = USAGE % ("BTCUSD", 384, 600.0, 1), TABLE % ("ETHUSD", 0.1)
    for number in range(3):
        at(1000 * number, "MARKET OPEN HOUR 2 ANALYSIS STARTING...", usage, TABLE % ("BTCUSD", 0.1), *([eth] if number < 2 else []))
        at(1000 * number + 1, "TRADING PLAN (MARKET OPEN PLAN) - no candidates", usage)
        at(1000 * number + 200, usage, eth, usage)
    return "\n".join(lines).encode() + b"\n"


def test_time_that_judges_between_the_lines_of_a_stretch() -> None:
    """An analysis ends between two lines that come together: what stands behind its end does not count for it."""
    parts = [[seen.event for seen in stream(in_bulk=True).feed(Piece(1, 0, 1, analyses()), TIMES)]]
    found = decided(parts, SETTINGS, is_backlog=True)
    assert {row["kind"] for row in found[1].values()} == {"symbol_missing"}
    assert found == decided([list[Event | Stretch](one_by_one(parts[0]))], SETTINGS, is_backlog=True)


def test_the_busy_log_makes_incidents_of_runs() -> None:
    """The comparison above compares something: what comes in bulk becomes incidents, or ends them."""
    kinds = {row["kind"] for seed in range(9) for row in decided(read(busy_log(seed), seed, in_bulk=True), SETTINGS, is_backlog=False)[1].values()}
    assert {"memory_high", "return_low", "symbol_missing", "synthetic_quote", "recompile"} <= kinds


@pytest.mark.parametrize("in_bulk", [False, True])
@pytest.mark.parametrize("log", ["busy", "random", *(path.name for path in sorted(SAMPLES.glob("*.log")))])
def test_what_nobody_judges_is_left_out(log: str, in_bulk: bool) -> None:
    """The other events are the same, all of them: the rules for what is left out still take their lines."""
    text = busy_log(1) if log == "busy" else random_log(1) if log == "random" else (SAMPLES / log).read_bytes()
    whole = stream(in_bulk=False)
    events = [seen.event for seen in [*whole.feed(Piece(1, 0, 1, text), TIMES), *whole.settle()]]
    assert judged(text, in_bulk=in_bulk) == [repr(event) for event in events if isinstance(event, Event) and watch(SETTINGS).judges(event.kind)] != []


def test_what_nobody_judges() -> None:
    """What only a report shows; a rate that counts them makes the watch judge them."""
    kinds = {rule.event for rule in rules().rules}
    assert {kind for kind in kinds if not watch(SETTINGS).judges(kind)} == {"order", "strategy_daily_return", "validation_loss"}
    counted = WatchSettings(rates=(Rate("validation_loss", 40, 60.0),))
    assert watch(counted).judges("validation_loss")


def test_a_real_day_comes_in_runs() -> None:
    """The bot's own log gives runs, and they stand for the events that it gives one by one."""
    log = (SAMPLES / "bot-2025-10-30.log").read_bytes()
    items = [seen.event for seen in stream(in_bulk=True).feed(Piece(1, 0, 1, log), TIMES)]
    assert {run.kind for item in items if isinstance(item, Stretch) for run in item.runs} >= {"gpu_memory", "strategy_return"}
    assert_same(one_by_one(items), one_by_one([seen.event for seen in stream(in_bulk=False).feed(Piece(1, 0, 1, log), TIMES)]))


@pytest.mark.parametrize("seed", range(60))
def test_measurements_judged_together_are_judged_as_one_by_one(seed: int) -> None:
    """The same level and the same judgements, in any portions, beyond the age at which old measurements count half."""
    chance = random.Random(seed)
    limits = LevelSettings(
        bound=chance.choice((None, 900.0)), factor=1.25, margin=chance.choice((5.0, 100.0)), calm_factor=1.1, normal_from=20, recent=3
    )
    values = [chance.choice((600.0, 600.0, 601.5, 640.0)) * chance.choice((1,) * 300 + (2, 0.01)) for _ in range(12_000)]
    single, together = Level(), Level()
    expected = [(index, one) for index, value in enumerate(values) if (one := judge(single, value, limits, 50)) is not None]
    found, at = list[tuple[int, Judgement]](), 0
    while at < len(values):
        portion = values[at : at + chance.choice((1, 7, 500, 7000))]
        found += [(at + index, one) for index, one in judge_all(together, portion, limits, 50)]
        at += len(portion)
    assert found == expected
    assert together == single and list(together.counts) == list(single.counts)
