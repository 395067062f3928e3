"""The tables of a diagnosis as a page shows them; a cell of what was not measured is a dash."""

from collections.abc import Iterable, Mapping, Sequence

from recompile_watch.core.diagnosis import Diagnosis
from recompile_watch.core.profiles import EFFORTS
from recompile_watch.core.trials import Status, Trial
from recompile_watch.report.diagnosis_arms import NAME_CHARS, Arm, spread_of
from recompile_watch.report.diagnosis_rows import HEADER, NOTHING, rows_of
from recompile_watch.report.numbers import ms_text
from recompile_watch.report.page import LONG, NUM, Listing, listing
from recompile_watch.report.safe import safe
from recompile_watch.report.times import count_text, thousands

_MAX_TEXT = 2000
_NAME = ("candidate", "Candidate", "")
_RUNS = (
    _NAME, ("result", "Result", LONG), ("recompiles", "Recompiles", NUM), ("breaks", "Graph breaks", NUM), ("limit", "Limit hits", NUM),
    ("skips", "Skipped CUDA graphs", NUM), ("error", "Error", NUM), ("noise floor", "Noise floor", NUM),
)  # fmt: skip
_GAINS = (
    _NAME, ("p50 ms", "Median, ms", NUM), ("speed-up [95 %]", "Times as fast [95 %]", NUM), ("memory", "Memory", NUM),
    ("first call", "First call", NUM), ("compiling", "Compiling", NUM), ("pays after", "Pays after", NUM),
)  # fmt: skip


def candidates_listings(diagnosis: Diagnosis) -> tuple[Listing, ...]:
    """Eager and every candidate that was run: how each runs, and what it gains and costs. A column of which nothing was measured is left out."""
    trials = [diagnosis.eager] if diagnosis.eager is not None else []
    trials += [one.trial for one in diagnosis.judgement.candidates if one.trial.status is not Status.SKIPPED]
    cells = [{**dict(zip(HEADER, row, strict=True)), **_more(trial)} for row, trial in zip(rows_of(diagnosis), trials, strict=True)]
    star = "; the chosen one has a star" if diagnosis.judgement.verdict.choose else ""
    both = ((f"How each one runs{star}", _RUNS), ("What it gains and costs", _GAINS))
    shown = (_of_columns(caption, columns, cells) for caption, columns in both)
    return tuple(one for one in shown if len(one.columns) > 1)


def _of_columns(caption: str, columns: Sequence[tuple[str, str, str]], cells: Sequence[Mapping[str, str]]) -> Listing:
    """The columns of which anything is known."""
    kept = [column for column in columns if any(row[column[0]] != NOTHING for row in cells)]
    return listing(caption, [(name, kind) for _, name, kind in kept], (tuple(row[key] for key, _, _ in kept) for row in cells), "candidate")


def speedup_listing(arms: Sequence[Arm], effect: float | None) -> Listing:
    """The intervals of the timed arms."""
    seen = "" if effect is None else f"; a gain of less than {100 * effect:.1f} % cannot be seen"
    rows = [
        ("eager against itself" if arm.is_eager else arm.name, f"{arm.ratio.value:.3f}", f"{arm.ratio.low:.3f}", f"{arm.ratio.high:.3f}",
         thousands(len(arm.times_ms)))
        for arm in arms if arm.ratio is not None
    ]  # fmt: skip
    columns = (("Arm", ""), ("Times as fast", NUM), ("95 % from", NUM), ("to", NUM), ("Pairs of calls", NUM))
    return listing(f"speed-up against eager{seen}", columns, rows, "arm")


def skipped_listing(diagnosis: Diagnosis) -> Listing:
    """What was not run, and why."""
    skipped = [one.trial for one in diagnosis.judgement.candidates if one.trial.status is Status.SKIPPED]
    rows = [(safe(trial.name, NAME_CHARS), safe(trial.reason, _MAX_TEXT)) for trial in skipped]
    return listing("Not run", (("Candidate", ""), ("Why", LONG)), rows, "candidate")


def untimed_listing(arms: Iterable[Arm]) -> Listing:
    """What was run and not timed, and why."""
    rows = [(arm.name, arm.reason) for arm in arms if arm.ratio is None and not arm.is_eager]
    return listing("Not timed", (("Candidate", ""), ("Why", LONG)), rows, "candidate")


def latency_listing(arms: Sequence[Arm]) -> Listing:
    """Percentiles of the timed calls."""
    rows = []
    for arm in arms:
        if arm.times_ms:
            spread = spread_of(arm.times_ms)
            times = (min(arm.times_ms), spread.low, spread.quarter, spread.middle, spread.three_quarters, spread.high, max(arm.times_ms))
            rows.append((arm.name, *map(ms_text, times), thousands(len(arm.times_ms))))
    names = ("Shortest", "5 %", "25 %", "Median", "75 %", "95 %", "Longest", "Calls")
    return listing("how long a call takes", (("Arm", ""), *((name, NUM) for name in names)), rows, "arm")


def calls_listing(arm: Arm) -> Listing:
    """One candidate's calls in order; its warm-up first."""
    timing = arm.timing
    assert timing is not None
    warm = [("warm-up", NOTHING, ms_text(seconds * 1000), str(n)) for seconds, n in timing.warmup]
    compiles = (*timing.compiles, *(0 for _ in timing.pairs))
    pairs = [("measured", ms_text(pair.eager_ms), ms_text(pair.candidate_ms), str(n)) for pair, n in zip(timing.pairs, compiles, strict=False)]
    rows = [(str(number), *row) for number, row in enumerate((*warm, *pairs), 1)]
    columns = (("Call", NUM), ("Part", ""), ("Eager", NUM), ("Candidate", NUM), ("Compilations", NUM))
    return listing(f"calls of {arm.name}", columns, rows, "call")


def compilations_listing(arms: Iterable[Arm]) -> Listing:
    """The calls that compiled something."""
    rows = [
        (arm.name, str(number), "warm-up" if number <= seen.warmup_calls else "later", str(n))
        for arm in arms if (seen := arm.trial.structure) is not None
        for number, n in enumerate(seen.compiles_by_call, 1) if n
    ]  # fmt: skip
    return listing("calls that compiled something", (("Candidate", ""), ("Call", NUM), ("Part", ""), ("Compilations", NUM)), rows)


def revisit_listing(diagnosis: Diagnosis) -> Listing:
    """When to measure again: in words, and as a machine can check it."""
    rows = [
        (safe(one.text), f"{safe(one.check, 60)} {safe(one.relation, 4)} {_bound(one.value)}") for one in diagnosis.judgement.verdict.revisit_when
    ]
    return listing("Measure again when", (("What happens", LONG), ("As a machine checks it", "")), rows, "condition")


def provenance_listing(diagnosis: Diagnosis) -> Listing:
    """Under which conditions it was measured."""
    made, effort = diagnosis.provenance, EFFORTS.get(diagnosis.mode)
    pairs = f", at least {count_text(effort.pairs, 'pair')} of calls of each candidate" if effort is not None else ""
    facts = [
        ("Workload", diagnosis.workload), ("Device", diagnosis.device), ("torch", diagnosis.torch_version or "unknown"),
        ("Python", (made and made.python_version) or "not recorded"), ("Interpreter", made.python if made else "not recorded"),
        ("Profile", diagnosis.profile), ("Mode", f"{diagnosis.mode}{pairs}"), ("Stage", diagnosis.stage), ("Seed", str(diagnosis.seed)),
        ("Clock", clock_of(diagnosis)), ("Threads of torch", _threads(made.threads) if made else "not recorded"),
        ("Started", made.started_at if made else "not recorded"), ("Took", f"{made.seconds:.0f} s" if made else "not recorded"),
    ]  # fmt: skip
    return listing("How it was measured", (("What", ""), ("Value", LONG)), [(name, safe(str(value))) for name, value in facts], "fact")


def settings_listing(diagnosis: Diagnosis) -> Listing:
    """What each process was told, and what it read back."""
    trials = [diagnosis.eager] if diagnosis.eager is not None else []
    trials += [one.trial for one in diagnosis.judgement.candidates if one.trial.status is not Status.SKIPPED]
    rows = [
        (safe(trial.name, NAME_CHARS), _settings(trial),
         ", ".join(f"{safe(name)}={safe(value)}" for name, value in trial.read_back) or "not recorded",
         NOTHING if trial.seconds is None else f"{trial.seconds:.1f} s")
        for trial in trials
    ]  # fmt: skip
    columns = (("Candidate", ""), ("Set", LONG), ("Read back", LONG), ("Process took", NUM))
    return listing("Settings as each process read them back", columns, rows, "candidate")


def clock_of(diagnosis: Diagnosis) -> str:
    """Which clock the times are of."""
    return "processor time" if diagnosis.by_processor else "wall time"


def _more(trial: Trial) -> dict[str, str]:
    """The cells that only the page has."""
    seen, timing, structure = trial.accuracy, trial.timing, trial.structure
    return {
        "noise floor": NOTHING if seen is None else f"{seen.noise_floor_pct:.2g} %",
        "compiling": NOTHING if timing is None or timing.compile_s is None else f"{timing.compile_s:.1f} s",
        "skips": NOTHING if structure is None or not structure.cudagraph_skips else str(structure.cudagraph_skips),
    }


def _settings(trial: Trial) -> str:
    return ", ".join(f"{name}={safe(str(value), _MAX_TEXT)}" for name, value in trial.candidate.settings().items()) or "nothing"


def _threads(threads: int) -> str:
    return str(threads) if threads else "torch's own choice"


def _bound(value: float | str) -> str:
    return safe(value, 40) if isinstance(value, str) else f"{value:g}"
