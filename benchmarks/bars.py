"""The bars that recompile-watch has to clear, and the table that says whether it does. Numbers in, words out; runs nothing."""

from __future__ import annotations

from dataclasses import dataclass

from measure import Measurement, Spread, spread

MB = 1_000_000
RG_TIME_AT_MOST = {"sparse": 5.0}
MTAIL_SPEED_AT_LEAST = {"sparse": 15.0, "bot": 4.0, "storm": 1.0}
PEAK_MB_AT_MOST = {"sparse": 150.0, "bot": 150.0, "storm": 200.0}
JOBS_SPEEDUP_AT_LEAST = 1.7
HELP_TIME_AT_MOST = 8.0


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the verdict: what was measured, the bar, the value, and whether it is cleared."""

    what: str
    bar: str
    measured: str
    passed: bool


def ratio(over: list[Measurement], under: list[Measurement]) -> Spread:
    """Wall time of `over` in units of `under`, pair by pair: the two of a pair ran one after the other."""
    return spread([a.wall_s / b.wall_s for a, b in zip(over, under, strict=True)])


def mix_rows(mix: str, runs: dict[str, list[Measurement]]) -> list[Row]:
    """The verdict on one mix from its runs of `rg`, `one job`, `mtail` and, on a machine with several cores, `two jobs`."""
    one = runs["one job"]
    rows: list[Row] = []
    if mix in RG_TIME_AT_MOST:
        rows.append(_at_most(f"{mix}: time, in units of rg's", RG_TIME_AT_MOST[mix], ratio(one, runs["rg"]), "x"))
    if mix in MTAIL_SPEED_AT_LEAST:
        rows.append(_at_least(f"{mix}: speed, in units of mtail's", MTAIL_SPEED_AT_LEAST[mix], ratio(runs["mtail"], one), "x"))
    if "two jobs" in runs:
        rows.append(_at_least(f"{mix}: two jobs against one", JOBS_SPEEDUP_AT_LEAST, ratio(one, runs["two jobs"]), "x"))
    peak = spread([run.peak_bytes / MB for run in one])
    # The largest run counts, not the middle one: a limit on memory is a limit.
    rows.append(_at_most(f"{mix}: peak memory, one job", PEAK_MB_AT_MOST[mix], Spread(peak.high, peak.low, peak.high), " MB"))
    return rows


def help_row(product: list[Measurement], bare: list[Measurement]) -> Row:
    """The verdict on the time of `--help`."""
    return _at_most("--help: time, in units of a bare interpreter's", HELP_TIME_AT_MOST, ratio(product, bare), "x")


def imports_row(loaded: list[str], trouble: str | None) -> Row:
    """The verdict on what the command line's import loads."""
    measured = trouble or ", ".join(loaded) or "none"
    return Row("import recompile_watch.cli: forbidden modules", "none", measured, not loaded and trouble is None)


def _at_most(what: str, bar: float, value: Spread, unit: str) -> Row:
    return Row(what, f"<= {bar:g}{unit}", _shown(value, unit), value.median <= bar)


def _at_least(what: str, bar: float, value: Spread, unit: str) -> Row:
    return Row(what, f">= {bar:g}{unit}", _shown(value, unit), value.median >= bar)


def _shown(value: Spread, unit: str) -> str:
    return f"{value.median:.2f}{unit} ({value.low:.2f}-{value.high:.2f})"


def times_table(mix: str, size_bytes: int, line_count: int, runs: dict[str, list[Measurement]]) -> list[tuple[str, ...]]:
    """One line a command: wall time, processor time, speed and peak memory."""
    table: list[tuple[str, ...]] = []
    for name, measured in runs.items():
        wall = spread([run.wall_s for run in measured])
        cpu = spread([run.cpu_s for run in measured])
        peak = max(run.peak_bytes for run in measured) / MB
        speed = f"{size_bytes / MB / wall.median:.0f} MB/s"
        lines = f"{line_count / 1e6 / wall.median:.2f} M/s"
        table.append((mix, name, f"{wall.median:.3f} s ({wall.low:.3f}-{wall.high:.3f})", f"{cpu.median:.3f} s", speed, lines, f"{peak:.0f} MB"))
    return table


TIMES_HEADER = ("mix", "command", "wall: median (min-max)", "cpu", "speed", "lines", "peak")
ROWS_HEADER = ("what", "bar", "measured: median (min-max)", "")


def row_cells(rows: list[Row]) -> list[tuple[str, ...]]:
    """The verdict's rows as cells."""
    return [(row.what, row.bar, row.measured, "pass" if row.passed else "MISS") for row in rows]


def plain(header: tuple[str, ...], cells: list[tuple[str, ...]]) -> str:
    """A table for the terminal."""
    widths = [max(len(line[column]) for line in [header, *cells]) for column in range(len(header))]
    lines = [header, tuple("-" * width for width in widths), *cells]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def markdown(header: tuple[str, ...], cells: list[tuple[str, ...]]) -> str:
    """The same table for the documentation."""
    lines = [header, tuple("---" for _ in header), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
