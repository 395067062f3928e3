"""Records as the trading bot prints them, in its dialects A (three zones, coloured level), B (loguru) and D (bare text).

Shapes, colours and trailing blanks are those of the bot's logs of 2025-10-30; all values are made up.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count

from lines import Chunk, Clock, ordinary, pick_symbol, relevant

_COLOURS = {"DEBUG": 36, "INFO": 32, "WARNING": 33, "ERROR": 31}
_STRATEGIES = ("Simple", "All Signals", "Buy & Hold", "Unprofit Shutdown", "Entry+Takeprofit", "Highlow", "MaxDiff", "CI Guard")
_KEYS = ("simple", "all", "takeprofit", "highlow", "maxdiff", "ci_guard", "unprofit", "composite")
_BACKTEST = "backtest_test3_inline.py"
_QUOTES = "data_curate_daily:download_exchange_latest_data"
_OVERWRITTEN = (
    'Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run. Stack trace: File "/srv/bot/external/kronos/model/kronos.py", line 371, in decode_s1',
    "    x = self.norm(x)",
    '  File "/srv/bot/external/kronos/model/module.py", line 265, in forward',
    "    return output * self.weight. To prevent overwriting, clone the tensor outside of torch.compile() or call torch.compiler.cudagraph_mark_step_begin() before each model invocation.",
)


def dialect_a(clock: Clock, place: str, level: str, text: str) -> str:
    """`… UTC | … EDT | … NZDT | file.py:function:line ␛[32mINFO␛[0m | text`"""
    return f"{clock.three_zones()} | {place} \x1b[{_COLOURS[level]}m{level}\x1b[0m | {text}"


def dialect_b(clock: Clock, place: str, level: str, text: str) -> str:
    """`2025-10-30 09:07:14.699 | INFO     | module:function:line - text`"""
    return f"{clock.millis('.')} | {level:<8} | {place} - {text}"


def predict(rng: random.Random, clock: Clock, symbol: str, number: int) -> Chunk:
    """One forecast: memory before, memory after, the usage line; `number` is the running count of forecasts."""
    alloc, reserved, peak = 609.7 + rng.random(), 1092.6 + rng.random() * 40, 1025.8 + rng.random() * 30
    snapshot = f"{_BACKTEST}:_gpu_memory_snapshot:716"
    begin = dialect_a(
        clock, snapshot, "DEBUG", f"GPU[0] toto_predict_begin({symbol}) alloc={alloc:.1f} MB reserved={reserved:.1f} MB peak={alloc:.1f} MB"
    )
    clock.advance(180 + int(rng.random() * 90))
    usage = f"Toto GPU usage symbol={symbol} num_samples=3072 samples_per_batch=384 peak={peak:.1f} MB delta={peak - alloc:.1f} MB (count={number})"
    lines = [
        begin,
        dialect_a(clock, snapshot, "DEBUG", f"GPU[0] toto_predict_end({symbol}) alloc={alloc:.1f} MB reserved={reserved:.1f} MB peak={peak:.1f} MB"),
        dialect_a(clock, f"{_BACKTEST}:_record_toto_memory_stats:778", "DEBUG", usage),
    ]
    return relevant(lines)


def quote(rng: random.Random, clock: Clock, symbol: str, price: float) -> Chunk:
    """A real quote and its spread, about 20 basis points."""
    clock.advance(210)
    ask = price * (1.0015 + rng.random() * 0.001)
    lines = [
        dialect_b(clock, f"{_QUOTES}:231", "INFO", f"Latest {symbol} bid: {price:.3f}, ask: {ask:.3f} (attempt 1)"),
        dialect_b(clock, f"{_QUOTES}:274", "INFO", f"{symbol} spread {ask / price!r}"),
    ]
    return relevant(lines, "quote")


def synthetic_quote(rng: random.Random, clock: Clock) -> Chunk:
    """A quote that was made up; four wordings."""
    symbol, price = pick_symbol(rng)
    wording = int(rng.random() * 4)
    if wording == 0:
        line = dialect_b(clock, f"{_QUOTES}:288", "INFO", f"Populating synthetic bid/ask (0 spread) for {symbol} (ADD_LATEST=False)")
    elif wording == 1:
        line = dialect_b(clock, f"{_QUOTES}:280", "WARNING", f"Using synthetic bid/ask (0 spread) for {symbol} due to invalid bid/ask data")
    elif wording == 2:
        line = dialect_b(
            clock, f"{_QUOTES}:262", "WARNING", f"Invalid bid/ask prices for {symbol} after 3 attempts, one is zero - setting both to {price:.2f}"
        )
    else:
        line = dialect_b(clock, f"{_QUOTES}:288", "INFO", f"Populating synthetic bid/ask (0 spread) for {symbol} (ADD_LATEST=True)")
    return relevant([line], "synthetic_quote")


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    cells = [header, tuple("-" * width for width in widths), *rows]
    return ["  " + " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]


def validation_losses(rng: random.Random, clock: Clock) -> Chunk:
    """The table of mean absolute errors, three targets."""
    rows = [(f"{target} Val Loss", f"{0.008 + rng.random() * 0.01:.4f}") for target in ("Close", "High", "Low")]
    lines = [dialect_a(clock, f"{_BACKTEST}:_log_table:249", "INFO", ""), "Average validation losses", *_table(("Metric", "Value"), rows)]
    return relevant(lines, *["validation_loss"] * 3)


def strategy_table(rng: random.Random, clock: Clock, symbol: str) -> Chunk:
    """The backtest's summary: total return, Sharpe and last day's return of eight strategies."""
    rows = [(name, f"{rng.gauss(0, 0.04):.4f}", f"{rng.gauss(0, 8):.4f}", f"{rng.gauss(0, 0.006):.4f}") for name in _STRATEGIES[:-1]]
    rows.append((_STRATEGIES[-1], "0.0000", "0.0000", "-"))
    title = f"Backtest summary for {symbol} (70 simulations)"
    lines = [dialect_a(clock, f"{_BACKTEST}:_log_table:249", "INFO", ""), title, *_table(("Strategy", "Return", "Sharpe", "FinalDay"), rows)]
    return relevant(lines, *["strategy_return"] * len(rows))


def analysis(rng: random.Random, clock: Clock, symbol: str) -> list[Chunk]:
    """The per-symbol analysis: its first line and `returns:` matter, the other continuation lines do not."""
    values = " ".join(f"{key}={rng.gauss(0, 0.01):.3f}" for key in _KEYS)
    head = f"{symbol} analysis strategy={rng.choice(_KEYS)} side={rng.choice(('buy', 'sell'))} mode=normal blocked={rng.choice(('True', 'False'))}"
    rest = [
        f"  edges: move={rng.gauss(0, 40):.3f} expected_pct=0.00400 price_skill=0.01740 edge_strength={rng.random() / 1e4:.5f} directional=0.00007",
        f"  prices: pred_close={rng.random() * 4000:.3f} pred_high={rng.random() * 4000:.3f} pred_low={rng.random() * 4000:.3f} last_close={rng.random() * 4000:.3f}",
        f"  walk_forward: oos={rng.gauss(0, 9):.2f} turnover=0.03 highlow={rng.gauss(0, 9):.2f} takeprofit={rng.gauss(0, 9):.2f} maxdiff={rng.gauss(0, 9):.2f}",
    ]
    first = dialect_a(clock, "trade_stock_e2e.py:_log_detail:538", "INFO", head)
    average, annual = rng.gauss(0, 0.01), rng.gauss(1, 2)
    return [relevant([first, f"  returns: avg={average:.3f} annual={annual:.3f} {values}"]), ordinary(rest)]


def forecast_failure(rng: random.Random, clock: Clock) -> Chunk:
    """A forecast that failed: overwritten CUDA graph output, a bare assertion, a CUDA error, or no memory."""
    symbol, _ = pick_symbol(rng)
    place = f"{_BACKTEST}:run_single_simulation:2106"
    wording = int(rng.random() * 4)
    if wording == 0:
        return relevant([dialect_a(clock, place, "WARNING", f"Kronos forecast failed for {symbol} Close: {_OVERWRITTEN[0]}"), *_OVERWRITTEN[1:]])
    if wording == 1:
        return relevant([dialect_a(clock, place, "WARNING", f"Kronos forecast failed for {symbol} Close: ")])
    if wording == 2:
        return relevant([dialect_a(clock, place, "WARNING", f"Toto forecast failed for {symbol} Close: CUDA error: unspecified launch failure")])
    text = "with num_samples=3072, samples_per_batch=384: CUDA out of memory. Tried to allocate 1.21 GiB. GPU 0 has a total capacity of 23.55 GiB of which 611.44 MiB is free."
    retry = f"Toto forecast OOM for {symbol} Close; retrying with num_samples=1536, samples_per_batch=192 (attempt 1/3)."
    return relevant([f"Toto forecast OOM (attempt 1/5) {text}", dialect_a(clock, f"{_BACKTEST}:_compute_toto_forecast:1084", "WARNING", retry)])


def bot_error(rng: random.Random, clock: Clock) -> Chunk:
    """An error of the bot's own, or fake account data."""
    symbol, _ = pick_symbol(rng)
    wording = int(rng.random() * 3)
    if wording == 0:
        return relevant([dialect_a(clock, "trade_stock_e2e.py:analyze_symbols:2022", "ERROR", f"Error analyzing {symbol}")])
    if wording == 1:
        return relevant(
            [
                dialect_a(
                    clock,
                    "trade_stock_e2e.py:main:3164",
                    "ERROR",
                    "Error in main loop: local variable 'market_open_done' referenced before assignment",
                )
            ]
        )
    return relevant(
        [dialect_a(clock, "alpaca_wrapper.py:get_account:1275", "WARNING", "Alpaca account unavailable; returning synthetic account snapshot.")]
    )


def model_load(clock: Clock) -> Chunk:
    """The pipeline is loaded and says how it is compiled."""
    place = f"{_BACKTEST}:load_toto_pipeline"
    compiled = "Using torch.compile for Toto (mode=max-autotune, backend=inductor, cache_dir=/srv/bot/compiled_models/torch_inductor)."
    lines = [
        dialect_a(clock, f"{place}:1488", "INFO", "Loading Toto pipeline 'Datadog/Toto-Open-Base-1.0' on cuda"),
        dialect_a(clock, f"{place}:1534", "INFO", compiled),
    ]
    clock.advance(4800)
    loaded = "GPU[0] toto_pipeline_loaded alloc=609.7 MB reserved=652.2 MB peak=609.7 MB"
    return relevant([*lines, dialect_a(clock, f"{_BACKTEST}:_gpu_memory_snapshot:714", "INFO", loaded)])


class Chatter:
    """The bot's ordinary lines, which no rule needs."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._offsets = count(1)

    def line(self, clock: Clock) -> str:
        rng = self._rng
        clock.advance(int(rng.random() * 60))
        symbol, price = pick_symbol(rng)
        kind = int(rng.random() * 11)
        if kind < 3:
            return self._quote_chatter(clock, kind, symbol)
        if kind < 6:
            return self._request(clock, kind, symbol)
        if kind == 6:
            idle = f"Keeping Toto pipeline resident (idle {rng.random() * 900:.1f}s < keepalive 900.0s)."
            return dialect_a(clock, f"{_BACKTEST}:release_model_resources:960", "DEBUG", idle)
        if kind == 7:
            text = f"{symbol} prediction snapshot close={price:.4f} pred_close={price * 1.004:.4f} pred_high={price * 1.021:.4f} pred_low={price * 0.978:.4f} maxdiff_side=buy(+1.000)"
            return dialect_a(clock, "trade_stock_e2e.py:_log_detail:538", "INFO", text)
        if kind == 8:
            return dialect_a(
                clock, f"{_BACKTEST}:resolve_toto_params:1353", "INFO", f"Loaded Toto hyperparameters for {symbol} from hyperparamstore."
            )
        if kind == 9:
            text = f"Portfolio eval {symbol}: strategy=maxdiff maxdiff_return={rng.gauss(0, 0.1):.4f} avg_return={rng.gauss(0, 0.02):.4f} passed=True"
            return dialect_a(clock, "trade_stock_e2e.py:_evaluate:1811", "DEBUG", text)
        return dialect_a(clock, f"{_BACKTEST}:cached_predict:622", "DEBUG", f"Disk cache hit key={rng.getrandbits(64):016x} rows=512")

    def _quote_chatter(self, clock: Clock, kind: int, symbol: str) -> str:
        if kind == 0:
            return dialect_b(clock, f"{_QUOTES}:294", "INFO", f"Data timestamp: ('{symbol[:3]}/USD', Timestamp('{clock.plain()}+0000', tz='UTC'))")
        if kind == 1:
            return dialect_b(clock, f"{_QUOTES}:295", "INFO", f"Current time: {clock.millis('.')}934+00:00")
        return dialect_b(clock, "data_curate_daily:download_daily_stock_data:143", "INFO", "Market is closed")

    def _request(self, clock: Clock, kind: int, symbol: str) -> str:
        rng = self._rng
        if kind == 3:
            size = int(rng.random() * 9000)
            return f'{clock.millis(",")} - urllib3.connectionpool - DEBUG - https://data.alpaca.markets:443 "GET /v2/stocks/{symbol}/bars?limit=1000 HTTP/1.1" 200 {size}'
        if kind == 4:
            return dialect_b(
                clock, "src.cache:store:71", "DEBUG", f"stored {int(rng.random() * 4000)} rows for {symbol} at offset {next(self._offsets)}"
            )
        return dialect_b(clock, "src.scheduler:tick:88", "DEBUG", f"tick ok, queue depth {int(rng.random() * 40)}, lag {rng.random():.3f}s")
