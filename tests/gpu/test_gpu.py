"""The diagnostic on a real GPU: CUDA graphs are skipped, overwritten and used, and `analyze` understands what torch prints."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.test_commands import run

LIMIT_S = 1800


def diagnose(tmp_path: Path, python: str, builtin: str, candidates: str) -> tuple[dict[str, dict[str, object]], dict[str, int], dict[str, object]]:
    """Candidates by name, the counts of events in what torch logged, and the whole report."""
    log = tmp_path / "torch.log"
    done = run(
        "diagnose", "--builtin", builtin, "--python", python, "--device", "cuda", "--state-dir", str(tmp_path / "state"), "--format", "json",
        "--profile", "balanced", "--stage", "timed", "--candidates", candidates, "--log", str(log), timeout_s=LIMIT_S,
    )  # fmt: skip
    report = json.loads(done.stdout)
    counts = json.loads(run("analyze", "--format", "json", str(log)).stdout)["counts"]
    return {one["name"]: one for one in report["candidates"]}, counts, report


def test_handoff_is_overwritten(tmp_path: Path, python: str) -> None:
    """With CUDA graphs the second step reads what the next recording overwrote: rejected, with torch's words, and what to try instead."""
    found, counts, report = diagnose(tmp_path, python, "handoff", "default,reduce-overhead")
    assert found["reduce-overhead"]["status"] == "failed" and "overwritten by a subsequent run" in str(found["reduce-overhead"]["reason"])
    assert found["default"]["status"] == "ok"
    assert report["verdict"]["choose"] in (None, "eager", "default") and counts is not None  # type: ignore[index]


def test_steady_wins(tmp_path: Path, python: str) -> None:
    """A pointwise chain is clearly faster compiled, and its peak memory is counted without eager's."""
    found, _, report = diagnose(tmp_path, python, "steady", "default,reduce-overhead")
    assert report["verdict"]["choose"] in ("default", "reduce-overhead") and report["device"] != "cpu"  # type: ignore[index]
    timing = found["default"]["timing"]
    assert isinstance(timing, dict) and timing["ci_low"] > 1 and isinstance(found["default"]["peak_memory_mb"], float)


def test_kv_storm_on_the_gpu(tmp_path: Path, python: str) -> None:
    """The limit is hit there too, and writing into the cache makes CUDA graphs impossible; the log shows both."""
    found, counts, report = diagnose(tmp_path, python, "kv-storm", "default,reduce-overhead")
    assert report["verdict"]["choose"] in (None, "eager") and counts.get("recompile_limit_hit", 0) >= 1  # type: ignore[index]
    seen = found["reduce-overhead"]["structural"]
    assert isinstance(seen, dict) and (seen["cudagraph_skips"] > 0) == (counts.get("cudagraph_skip", 0) > 0)


def test_dynamic_shapes_on_the_gpu(tmp_path: Path, python: str) -> None:
    """One recompile, and a graph for each size."""
    found, _, _ = diagnose(tmp_path, python, "dynamic-shapes", "default,reduce-overhead")
    assert {one["status"] for one in found.values()} == {"ok"}
