"""A table of results that somebody published: what its numbers say if they are taken as printed, and whether they carry a decision.

Such a table holds one number a cell, not the calls behind it. So there is no interval, and the sound verdict on it is
*inconclusive* with the flaws as reasons; the choice by the printed numbers is given beside it, to show that the rule is not at fault.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from recompile_watch.core.candidates import EAGER
from recompile_watch.core.gates import MIN_PAIRS
from recompile_watch.core.profiles import Pick, Profile
from recompile_watch.core.statistics import median
from recompile_watch.core.verdict import Verdict

_ROUNDING = 0.06  # a speed-up printed with one digit
_FAR = 2.0  # times as slow for the same shapes: another state of the machine, not another model
_MANY = 2  # cells of one mode that lie far from its fastest: two kinds of runs, not one outlier


@dataclass(frozen=True, slots=True)
class Cell:
    """One mode for one class of input. sigma_ms: of its time over runs. error_pct: as computed from the other numbers printed."""

    latency_ms: float
    error_pct: float
    sigma_ms: float
    printed_speedup: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One class of input, such as a symbol."""

    name: str
    eager_ms: float
    cells: Mapping[str, Cell]

    def speedup(self, mode: str) -> float:
        """Eager's time over the mode's."""
        return self.eager_ms / self.cells[mode].latency_ms


@dataclass(frozen=True, slots=True)
class Table:
    """A published table. calls: timed calls behind each cell. cold_runs of runs: how many runs behind sigma_ms held compiling.

    has_same_shapes: the rows differ in values only. counts_recompiles: it shows them. error_is_of_target: its errors are against
    a known truth, not the size of the output.
    """

    rows: tuple[Row, ...]
    calls: int
    cold_runs: int
    runs: int
    has_same_shapes: bool
    counts_recompiles: bool
    error_is_of_target: bool

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes, in the order of the table."""
        return tuple(dict.fromkeys(mode for row in self.rows for mode in row.cells))


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a number proves less than it seems. row, mode: where; None for all."""

    kind: str
    row: str | None
    mode: str | None
    detail: str


def as_printed(row: Row, profile: Profile) -> str:
    """What the rule chooses for one row if its numbers held."""
    if profile.pick is Pick.NONE:
        return EAGER
    fit = [mode for mode, cell in row.cells.items() if cell.error_pct < profile.max_error_percent and row.speedup(mode) >= profile.min_speedup]
    if profile.pick is Pick.STEADIEST:
        return min(fit, key=lambda mode: row.cells[mode].sigma_ms, default=EAGER)
    return max(fit, key=row.speedup, default=EAGER)


def fleet_as_printed(table: Table, profile: Profile) -> str:
    """One mode for all rows: the best geometric mean, its worst row within the bound of error."""
    if profile.pick is Pick.NONE:
        return EAGER
    fit = [mode for mode in table.modes if max(row.cells[mode].error_pct for row in table.rows) < profile.max_error_percent]
    fit = [mode for mode in fit if geometric_mean(table, mode) >= profile.min_speedup]
    return max(fit, key=lambda mode: geometric_mean(table, mode), default=EAGER)


def geometric_mean(table: Table, mode: str) -> float:
    """Of the mode's speed-ups over all rows."""
    return prod(row.speedup(mode) for row in table.rows) ** (1 / len(table.rows))


def normalised(row: Row, table: Table) -> dict[str, float]:
    """The row's speed-ups against the median of all rows' eager times: for rows of the same shapes the better baseline."""
    eager_ms = median([one.eager_ms for one in table.rows])
    return {mode: eager_ms / cell.latency_ms for mode, cell in row.cells.items()}


def flaws(table: Table) -> tuple[Flaw, ...]:
    """What can be seen to be wrong with the numbers, row by row."""
    found = [flaw for row in table.rows for flaw in (*_of_row(row), *_of_baseline(row, table))]
    return (*found, *_of_modes(table))


def judge_published(table: Table) -> Verdict:
    """What may be concluded: nothing, where a cell holds fewer calls than an interval needs, with every reason."""
    because = list(_reasons(table, flaws(table)))
    if table.calls >= MIN_PAIRS and table.counts_recompiles:
        because.insert(0, "the calls behind the cells are not printed, so no interval can be computed")
    advice = "keep eager, and measure again: calls in pairs, in turn, each arm warmed up"
    return Verdict("inconclusive", None, (), "none: the table does not carry a decision", (*because, advice), (), ())


def _reasons(table: Table, found: Sequence[Flaw]) -> Iterable[str]:
    cells = sum(len(row.cells) for row in table.rows)
    counts = Counter(flaw.kind for flaw in found)
    if table.calls < MIN_PAIRS:
        calls = "one timed call" if table.calls == 1 else f"{table.calls} timed calls"
        yield f"{calls} in a cell: no interval is possible"
    if counts["sigma-exceeds-saving"]:
        cold = f" ({table.cold_runs} of {table.runs} runs hold compiling)" if table.cold_runs else ""
        yield f"σ of the time exceeds the saving in {counts['sigma-exceeds-saving']} of {cells} cells{cold}"
    if not table.counts_recompiles:
        yield "recompiles, limit hits and skipped CUDA graphs are not in the table: fewer than 10 recompiles is not shown"
    if not table.error_is_of_target:
        yield "its MAE is the mean size of the output (the price level), not an error: differences mix sampling noise and drift"
    if table.has_same_shapes and len(table.rows) > 1:
        yield "all rows have the same shapes, so the same kernels: differences between rows are noise, and advice by row an artefact"
    yield from (flaw.detail for flaw in found if flaw.kind in ("eager-baseline-outlier", "bimodal-across-identical-shapes"))
    yield from (flaw.detail for flaw in found if flaw.kind in ("printed-speedup-mismatch", "delta-over-5pct"))


def _of_row(row: Row) -> Iterable[Flaw]:
    for mode, cell in row.cells.items():
        saving = abs(row.eager_ms - cell.latency_ms)
        if cell.error_pct > 5:
            yield Flaw("delta-over-5pct", row.name, mode, f"{row.name}, {mode}: the outputs differ by {cell.error_pct:.2f} %")
        if cell.sigma_ms > saving:
            words = f"{row.name}, {mode}: σ of the time, {cell.sigma_ms:.1f} ms, exceeds the saving, {saving:.1f} ms"
            yield Flaw("sigma-exceeds-saving", row.name, mode, words)
        speedup = row.speedup(mode)
        if cell.printed_speedup is not None and abs(cell.printed_speedup - speedup) > _ROUNDING:
            words = f"{row.name}, {mode}: {row.eager_ms:g} / {cell.latency_ms:g} is {speedup:.2f}, printed as {cell.printed_speedup:g}"
            yield Flaw("printed-speedup-mismatch", row.name, mode, words)


def _of_baseline(row: Row, table: Table) -> Iterable[Flaw]:
    usual = median([one.eager_ms for one in table.rows])
    if table.has_same_shapes and not 1 / _FAR <= row.eager_ms / usual <= _FAR:
        against = ", ".join(f"{mode} {value:.2f}" for mode, value in normalised(row, table).items())
        words = (
            f"{row.name}: eager takes {row.eager_ms:g} ms, and {usual:g} ms for the same shapes elsewhere: a bad baseline (against that: {against})"
        )
        yield Flaw("eager-baseline-outlier", row.name, None, words)


def _of_modes(table: Table) -> Iterable[Flaw]:
    for mode in table.modes if table.has_same_shapes else ():
        times = sorted(row.cells[mode].latency_ms for row in table.rows)
        if sum(time > 1.5 * times[0] for time in times) >= _MANY and times[-1] > _FAR * times[0]:
            shown = ", ".join(f"{time:g}" for time in times)
            yield Flaw("bimodal-across-identical-shapes", None, mode, f"{mode} takes {shown} ms for the same shapes: two kinds of runs")
