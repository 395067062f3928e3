"""The three mixes, each an endless stream of chunks that depends on its random numbers only."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count

import bot_lines
import torch_lines
from app_lines import app_line
from lines import PRICES, SYMBOLS, Chunk, Clock, ordinary, relevant

SPARSE_SHARE = 0.001
STORM_LIMIT = 64
STORM_FUNCTIONS = 16
PREDICTIONS_PER_SYMBOL = 24


def sparse(rng: random.Random) -> Iterator[Chunk]:
    """Ordinary application lines; one line in a thousand belongs to a message that matters."""
    clock = Clock(datetime(2025, 11, 20, 6, 0, tzinfo=UTC))
    traced = torch_lines.TracedProcess(rng)
    owed = 0.0
    while True:
        record = _sparse_record(rng, clock, traced)
        yield record
        owed += record.relevant_count * (1 / SPARSE_SHARE - 1)
        gap = int(owed * (0.5 + rng.random()))
        owed -= gap
        while gap > 0:
            size = min(gap, 1000)
            yield ordinary([app_line(rng, clock) for _ in range(size)])
            gap -= size


def _sparse_record(rng: random.Random, clock: Clock, traced: torch_lines.TracedProcess) -> Chunk:
    symbol = rng.choice(SYMBOLS)
    writers: tuple[tuple[int, Callable[[], Chunk]], ...] = (
        (30, lambda: traced.recompile(clock)),
        (12, lambda: torch_lines.limit_hit(rng, clock)),
        (10, lambda: torch_lines.cudagraph_skip(rng, clock)),
        (4, lambda: torch_lines.graph_break(rng, clock)),
        (3, lambda: torch_lines.backend_failure(rng)),
        (14, lambda: bot_lines.synthetic_quote(rng, clock)),
        (8, lambda: bot_lines.forecast_failure(rng, clock)),
        (4, lambda: bot_lines.bot_error(rng, clock)),
        (3, lambda: bot_lines.model_load(clock)),
        (4, lambda: bot_lines.predict(rng, clock, symbol, 1)),
        (4, lambda: bot_lines.quote(rng, clock, symbol, PRICES[SYMBOLS.index(symbol)])),
        (2, lambda: bot_lines.validation_losses(rng, clock)),
        (2, lambda: bot_lines.strategy_table(rng, clock, symbol)),
    )
    write = rng.choices([writer for _, writer in writers], [weight for weight, _ in writers])[0]
    return write()


def bot(rng: random.Random) -> Iterator[Chunk]:
    """The bot at work, symbol after symbol; every line that is a metric is balanced by one that is not."""
    clock = Clock(datetime(2025, 10, 30, 9, 7, 12, tzinfo=UTC))
    chatter = bot_lines.Chatter(rng)
    owed = 0
    for chunk in _bot_cycles(rng, clock):
        yield chunk
        owed += 2 * chunk.relevant_count - chunk.line_count
        # Bursts, as real chatter comes, but never more than is owed: the halves stay equal.
        if owed > 6:
            size = 1 + int(rng.random() * owed)
            yield ordinary([chatter.line(clock) for _ in range(size)])
            owed -= size


def _bot_cycles(rng: random.Random, clock: Clock) -> Iterator[Chunk]:
    forecasts = count(1)
    while True:
        yield bot_lines.model_load(clock)
        for symbol, price in zip(SYMBOLS, PRICES, strict=True):
            yield bot_lines.quote(rng, clock, symbol, price)
            for _ in range(PREDICTIONS_PER_SYMBOL):
                yield bot_lines.predict(rng, clock, symbol, next(forecasts))
            if rng.random() < 0.1:
                yield bot_lines.forecast_failure(rng, clock)
            yield bot_lines.validation_losses(rng, clock)
            yield bot_lines.strategy_table(rng, clock, symbol)
            yield bot_lines.synthetic_quote(rng, clock) if rng.random() < 0.2 else bot_lines.quote(rng, clock, symbol, price)
            yield from bot_lines.analysis(rng, clock, symbol)
        clock.advance(60_000)


def storm(rng: random.Random) -> Iterator[Chunk]:
    """Recompile blocks and nothing else: the N-th block of a function carries N reasons, until the limit refuses the last."""
    clock = Clock(datetime(2026, 11, 20, 10, 33, 8, tzinfo=UTC))
    while True:
        pid = rng.randrange(2000, 400000)
        functions = [torch_lines.make_function(rng, frame_id, frame_id) for frame_id in range(STORM_FUNCTIONS)]
        for _ in range(STORM_LIMIT):
            for function in functions:
                clock.advance(18 + int(rng.random() * 12))
                yield relevant(function.block(clock, pid, with_stack=True), "recompile")
                if function.entry_count < STORM_LIMIT:
                    function.entry_count += 1
                else:
                    yield relevant(function.limit_hit(clock, pid, with_stack=True), "recompile_limit_hit")


MIXES: dict[str, Callable[[random.Random], Iterator[Chunk]]] = {"sparse": sparse, "bot": bot, "storm": storm}
