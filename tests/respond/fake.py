"""Interpreters that are none: scripts that answer the worker's protocol, or break it, without torch."""

from __future__ import annotations

import sys
from pathlib import Path

CALM = {"recompiles": 0, "late_recompiles": 0, "graph_breaks": 0, "limit_hits": 0, "frames_compiled": 1, "cudagraph_skips": 0}
EQUAL = {
    "max_abs": 0.0, "mae": 0.0, "mae_pct": 0.0, "noise_floor_pct": 0.0, "same_seed_delta": 0.0, "is_close": True, "rmse_eager": None,
    "rmse_candidate": None, "multiplier": 2.0, "metric_pct": None, "mae_pct_by_seed": [0.0],
}  # fmt: skip
# A worker that measures nothing: eager takes 20 ms, a candidate what GAIN says, with a little noise.
HONEST = f"""
import json, random, sys
request = json.loads(sys.stdin.readline())
def say(**record):
    print(json.dumps(record), flush=True)
say(record="hello", torch="2.13.0", python="3.11", device="cpu", variants=VARIANTS)
say(record="progress", phase="warming up", done=1, total=4)
name, draw = request["name"], random.Random(request["name"])
gain = 1.0 if name == "eager" else GAIN.get(name, 1.0)
def call(ms):
    ms *= draw.uniform(0.98, 1.02)
    return [ms, ms, WAITS]
structure = {{**{CALM!r}, **STRUCTURE.get(name, {{}})}}
outcome = dict(status="ok", reason="", calls=40, calls_ok=40, warmup=[[9.0, 8.0, 1]], structure=structure)
if request["stage"] == "timed":
    outcome.update(pairs=[[call(20), call(20 / gain)] for _ in range(request["pairs"])], compiles=[0] * request["pairs"], first_call_s=9.0,
        overhead_s=9.0, overhead_cpu_s=8.0, compile_s=8.5, peak_memory_mb=400.0, accuracy={EQUAL!r})
outcome.update(OUTCOME.get(name, {{}}))
say(record="outcome", **outcome)
"""


def script(folder: Path, text: str, name: str = "python") -> str:
    """An executable that runs `text` under this interpreter."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return str(path)


def honest(
    folder: Path, *, gain: dict[str, float] | None = None, structure: dict[str, dict[str, int]] | None = None,
    outcome: dict[str, dict[str, object]] | None = None, variants: tuple[str, ...] = (), waits: int = 0,
) -> str:  # fmt: skip
    """A worker that answers as told, by candidate."""
    head = f"GAIN, STRUCTURE, OUTCOME, VARIANTS, WAITS = {gain or {}!r}, {structure or {}!r}, {outcome or {}!r}, {list(variants)!r}, {waits}\n"
    return script(folder, head + HONEST)
