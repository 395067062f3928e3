"""Ordinary application lines of 60 to 200 bytes: training metrics, web access, JSON, loguru and stdlib logging."""

from __future__ import annotations

import random

from lines import Clock

_PATHS = ("/api/v1/orders", "/api/v1/positions", "/healthz", "/metrics", "/api/v2/forecast", "/static/app.3f9c1.js", "/api/v1/bars/daily", "/login")
_AGENTS = ("python-requests/2.32.3", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "kube-probe/1.31", "Prometheus/2.53.1")
_MESSAGES = ("batch committed", "partition assigned", "cache refreshed", "request finished", "rows upserted", "lease renewed")
_WORKERS = ("ingest.worker", "feature.store", "orders.sync", "bars.loader", "gateway.http")
_TASKS = ("heartbeat ok", "queue drained", "snapshot written", "model registry polled", "feature window advanced", "retry scheduled")
_TABLES = ("bars_daily", "orders", "positions", "features_v3", "quotes_l1")


def app_line(rng: random.Random, clock: Clock) -> str:
    """The next ordinary line; moves the clock by up to 40 ms."""
    draw = rng.random()
    clock.now_ms += int(draw * 1e6) % 40
    if draw < 0.25:
        return _training(rng, clock)
    if draw < 0.5:
        return _access(rng, clock)
    if draw < 0.7:
        return _json(rng, clock)
    if draw < 0.85:
        return _loguru(rng, clock)
    return _stdlib(rng, clock)


def _training(rng: random.Random, clock: Clock) -> str:
    a, b, c = rng.random(), rng.random(), rng.random()
    epoch, step = int(a * 40), int(b * 50000)
    if c < 0.2:
        return f"{clock.millis(',')} INFO trainer: eval epoch={epoch} step={step} val_loss={1 + a:.4f} mae={b:.5f} acc={c:.4f} best={a < b}"
    return f"{clock.millis(',')} INFO trainer: epoch={epoch} step={step}/50000 loss={1 + a * 2:.4f} lr={c * 1e-3:.3e} grad_norm={b:.3f} tokens/s={int(15000 + c * 4000)} mem={20 + a:.1f}GiB"


def _access(rng: random.Random, clock: Clock) -> str:
    a, b = rng.random(), rng.random()
    status = 200 if a < 0.95 else 404
    path = _PATHS[int(a * 8)]
    return f'10.2.{int(a * 255)}.{int(b * 255)} - - [{clock.access()}] "GET {path}?limit={int(b * 500)} HTTP/1.1" {status} {int(a * 90000)} "-" "{_AGENTS[int(b * 4)]}" {b:.3f}'


def _json(rng: random.Random, clock: Clock) -> str:
    a, b = rng.random(), rng.random()
    second, _, milli = clock.millis(".").partition(" ")
    return (
        f'{{"ts":"{second}T{milli}Z","level":"info","logger":"{_WORKERS[int(a * 5)]}","msg":"{_MESSAGES[int(b * 6)]}",'
        f'"partition":{int(a * 64)},"offset":{int(b * 1e9)},"rows":{int(a * 4096)},"ms":{int(b * 120)}}}'
    )


def _loguru(rng: random.Random, clock: Clock) -> str:
    a, b = rng.random(), rng.random()
    level = "INFO    " if a < 0.9 else "WARNING "
    return f"{clock.millis('.')} | {level} | app.scheduler:tick:{80 + int(b * 9)} - {_TASKS[int(a * 6)]}, depth {int(b * 90)}, lag {a:.3f}s"


def _stdlib(rng: random.Random, clock: Clock) -> str:
    a, b = rng.random(), rng.random()
    if a < 0.5:
        return f'{clock.millis(",")} - urllib3.connectionpool - DEBUG - https://storage.internal:443 "PUT /{_TABLES[int(b * 5)]}/part-{int(b * 99999):05d}.parquet HTTP/1.1" 200 {int(a * 900)}'
    return f"{clock.millis(',')} - sqlalchemy.engine.Engine - INFO - SELECT id, ts, value FROM {_TABLES[int(b * 5)]} WHERE ts >= {int(a * 1e9)} ORDER BY ts LIMIT {int(b * 1000)}"
