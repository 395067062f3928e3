"""The charts of the HTML report: what happened when, limits, returns, latency, memory, quotes.

No chart tells by colour alone: lines have their own dashes, marks their own shapes, bars their hatching, and the number
stands beside them.
"""

from collections.abc import Mapping

import pandas as pd

from recompile_watch.report.drawing import (
    INKS,
    SERIES,
    Axes,
    Figure,
    Paper,
    Picture,
    axes_of,
    cut,
    guide_lines,
    picture,
    row_label,
    time_axis,
    unit_words,
    value_axis,
)
from recompile_watch.report.frames import TimeTables
from recompile_watch.report.times import count_text, thousands
from recompile_watch.report.words import kind_words

MAX_LANES = 18
MAX_FUNCTIONS = 12
MAX_STRATEGIES = 14
MAX_SYMBOLS = 12
MAX_LINES = 6
MAX_LOADS = 24
_ROW = 26
_SHAPES = ("o", "s", "^", "D", "v", "P")
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 2)), (0, (7, 2, 1.5, 2)), (0, (3, 1.5)), (0, (9, 3)))


def events_chart(tables: TimeTables, lanes: Mapping[str, str]) -> Picture:
    """What happened when: a lane for each kind. lanes: the kinds to draw, worst first, each with its severity."""
    shown = tables.events[tables.events["kind"].isin(list(lanes))]
    begin, end = shown["begin"].min(), shown["begin"].max() + pd.Timedelta(seconds=tables.length_s)

    def draw(figure: Figure, paper: Paper) -> None:
        step = 40 if paper.is_narrow else 30
        axes = axes_of(figure, step * len(lanes) + 58, left_px=8 if paper.is_narrow else 250, right_px=46, top_px=26)
        axes.set_ylim(len(lanes), 0)
        axes.set_xlim(begin, end)
        thin = (end - begin) * (2.5 / paper.width_px)
        width = max(pd.Timedelta(seconds=tables.length_s) * 0.9, thin)
        for place, (kind, severity) in enumerate(lanes.items()):
            lane = shown[shown["kind"] == kind]
            floor = place + 0.9
            height = lane["n"] / lane["n"].max() * (0.4 if paper.is_narrow else 0.66)
            axes.axhline(floor, color=INKS["grid"], linewidth=1)
            axes.bar(lane["begin"], -height, width=width, bottom=floor, align="edge", color=INKS[severity], linewidth=0)
            row_label(axes, paper, place, kind_words(kind), 0.66)
            axes.text(1.01, floor - 0.04, thousands(int(lane["n"].sum())), transform=axes.get_yaxis_transform(), color=INKS["text"], va="bottom")
        axes.set_yticks([])
        if len(_loads(tables.marks)) <= MAX_LOADS:  # more of them are their lane, no lines
            _draw_marks(axes, tables.marks, paper)
        time_axis(axes, paper)

    caption = f"Each bar is {_length_text(tables.length_s)}; bars are scaled within their row, the number is the row's sum. Times in {tables.zone}."
    loads = " Dashed lines: a model was loaded." if 0 < len(_loads(tables.marks)) <= MAX_LOADS else ""
    return picture("events", "Events over time, by kind", caption + loads, draw)


def limits_chart(limits: pd.DataFrame) -> Picture:
    """Compiled versions of each function against the recompile limit."""
    rows = limits[limits["entries"].notna()].head(MAX_FUNCTIONS)
    most = float(rows[["limit", "entries"]].max().max())  # where no limit is known at all, that of the entries

    def draw(figure: Figure, paper: Paper) -> None:
        step, right = (46, 96) if paper.is_narrow else (34, 120)
        axes = axes_of(figure, step * len(rows) + 20, left_px=8 if paper.is_narrow else 250, right_px=right, top_px=4, bottom_px=8)
        axes.set_ylim(len(rows), 0)
        axes.set_xlim(0, most)
        for place, (function, entries, limit) in enumerate(zip(*(rows[name].tolist() for name in ("function", "entries", "limit")), strict=True)):
            has_limit = limit == limit
            ink = "info" if not has_limit or entries < limit / 2 else "critical" if entries >= limit else "warning"
            size = 0.3 if paper.is_narrow else 0.42
            center = place + 0.74 if paper.is_narrow else place + 0.5
            if has_limit:
                axes.barh(center, limit, height=size, color=INKS["grid"], linewidth=0)
                axes.plot([limit, limit], [center - size * 0.8, center + size * 0.8], color=INKS["text"], linewidth=2, solid_capstyle="butt")
            axes.barh(center, entries, height=size, color=INKS[ink], linewidth=0)
            words = f"{entries:.0f} of {limit:.0f}" if has_limit else f"{entries:.0f} of ?"
            words += ", full" if has_limit and entries >= limit else ""
            axes.text(1.02, center, words, transform=axes.get_yaxis_transform(), color=INKS["text"], va="center")
            row_label(axes, paper, place, function)
        axes.set_xticks([])
        axes.set_yticks([])

    caption = "Filled: compiled versions of the function in its fullest process. The line at the end of the bar is the recompile limit."
    return picture("limits", "Recompiles per function against the limit", caption, draw)


def returns_chart(returns: pd.DataFrame) -> Picture:
    """The latest return of each strategy, a mark for each symbol."""
    known = returns[returns["return"].notna()]
    strategies = list(dict.fromkeys(known["strategy"]))[:MAX_STRATEGIES]
    symbols = list(dict.fromkeys(known["symbol"]))
    is_crowd = len(symbols) > len(_SHAPES)

    def draw(figure: Figure, paper: Paper) -> None:
        legend_px = 0 if is_crowd else 26 * -(-len(symbols) // (3 if paper.is_narrow else 6))
        axes = axes_of(figure, _ROW * len(strategies) + 44 + legend_px, left_px=128 if paper.is_narrow else 170, top_px=10 + legend_px)
        axes.set_ylim(len(strategies) - 0.5, -0.5)
        axes.axvline(0, color=INKS["muted"], linewidth=1)
        guide_lines(axes, "x")
        places = {strategy: place for place, strategy in enumerate(strategies)}
        if is_crowd:
            _draw_crowd(axes, known, places)
        for number, symbol in enumerate([] if is_crowd else symbols):
            mine = known[(known["symbol"] == symbol) & known["strategy"].isin(strategies)]
            axes.plot(
                mine["return"], mine["strategy"].map(places), linestyle="none", marker=_SHAPES[number], markersize=9, color=INKS[SERIES[number]],
                markeredgecolor=INKS["paper"], markeredgewidth=1.5, label=cut(symbol, 11),
            )  # fmt: skip
        axes.set_yticks(range(len(strategies)), [cut(strategy, 17 if paper.is_narrow else 23) for strategy in strategies])
        axes.margins(x=0.06)
        value_axis(axes, paper)
        if symbols and not is_crowd:
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3 if paper.is_narrow else 6, handletextpad=0.2, columnspacing=1.2, borderpad=0)

    shown = f"A dot for each of {count_text(len(symbols), 'symbol')}, the line is their median." if is_crowd else "A mark for each symbol."
    return picture("returns", "Latest return per strategy", f"{shown} Right of the line at 0 is a gain.", draw)


def latency_chart(latency: pd.DataFrame, zone: str) -> Picture:
    """The percentiles of the latency over time."""

    def draw(figure: Figure, paper: Paper) -> None:
        axes = axes_of(figure, 240 if paper.is_narrow else 280, left_px=52, right_px=40, top_px=34)
        guide_lines(axes, "y")
        lines = {name: (latency["begin"], latency[name].astype(float)) for name in ("p99", "p95", "p50")}
        axes.set_ylim(0, float(latency[list(lines)].astype(float).max().max()) * 1.15 or 1)
        _draw_lines(axes, lines)
        unit_words(axes, "milliseconds a call")
        time_axis(axes, paper)

    caption = f"The median (p50), and what 95 and 99 of 100 calls do not exceed; p99 needs 100 measurements. Times in {zone}."
    return picture("latency", "Latency over time", caption, draw)


def memory_chart(memory: pd.DataFrame, zone: str) -> Picture:
    """The highest GPU memory of each model over time."""
    highest = memory.groupby("model")["peak_mb"].max().sort_values(ascending=False, kind="stable")
    models = list(highest.index[:MAX_LINES])

    def draw(figure: Figure, paper: Paper) -> None:
        axes = axes_of(figure, 220 if paper.is_narrow else 260, left_px=58, right_px=72, top_px=34)
        guide_lines(axes, "y")
        axes.set_ylim(0, float(highest.max()) * 1.15 or 1)
        of = {model: memory[memory["model"] == model] for model in models}
        _draw_lines(axes, {model: (mine["begin"], mine["peak_mb"].astype(float)) for model, mine in of.items()})
        unit_words(axes, "MB (1e6 bytes)")
        time_axis(axes, paper)

    return picture(
        "memory", "GPU memory over time", f"The highest value that the log prints in each stretch of time, by model. Times in {zone}.", draw
    )


def quotes_chart(quotes: pd.DataFrame) -> Picture:
    """Real and synthetic quotes of each symbol."""
    rows = quotes.head(MAX_SYMBOLS)

    def draw(figure: Figure, paper: Paper) -> None:
        axes = axes_of(
            figure, _ROW * len(rows) + 46, left_px=70 if paper.is_narrow else 110, right_px=64 if paper.is_narrow else 112, top_px=34, bottom_px=8
        )
        axes.set_ylim(len(rows) - 0.5, -0.5)
        places = range(len(rows))
        axes.barh(
            places, rows["synthetic"], height=0.56, facecolor=INKS["paper"], edgecolor=INKS["warning"], hatch="////", linewidth=1.5, label="synthetic"
        )
        axes.barh(places, rows["real"], left=rows["synthetic"], height=0.56, color=INKS["one"], linewidth=0, label="real")
        for place, (synthetic, real) in enumerate(zip(rows["synthetic"].tolist(), rows["real"].tolist(), strict=True)):
            words = f"{thousands(synthetic)} / {thousands(real)}"
            axes.text(1.02, place, words, transform=axes.get_yaxis_transform(), color=INKS["text"], va="center")
        axes.set_yticks(places, [cut(symbol, 8 if paper.is_narrow else 14) for symbol in rows["symbol"].tolist()])
        axes.set_xticks([])
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderpad=0, columnspacing=1.6)

    return picture("quotes", "Quotes: synthetic against real", "Hatched: priced without a real quote. The numbers are synthetic / real.", draw)


def _draw_crowd(axes: Axes, known: pd.DataFrame, places: Mapping[str, int]) -> None:
    for strategy, place in places.items():
        values = known.loc[known["strategy"] == strategy, "return"]
        axes.plot(values, [place] * len(values), linestyle="none", marker="o", markersize=5, color=INKS["one"], alpha=0.6, markeredgewidth=0)
        axes.plot([values.median()] * 2, [place - 0.32, place + 0.32], color=INKS["text"], linewidth=2.5)


def _draw_lines(axes: Axes, lines: Mapping[str, tuple["pd.Series[pd.Timestamp]", "pd.Series[float]"]]) -> None:
    """Lines with their names at their ends, one name below the other where lines end together; what is not known is a gap."""
    ends: list[tuple[float, str, str]] = []
    for number, (name, (begin, values)) in enumerate(lines.items()):
        marker = "o" if len(values) < 40 else ""
        axes.plot(begin, values, color=INKS[SERIES[number]], linestyle=_DASHES[number], linewidth=2, marker=marker, markersize=4.5)
        known = values.dropna()
        if not known.empty:
            ends.append((float(known.iloc[-1]), name, INKS[SERIES[number]]))
    bottom, top = axes.get_ylim()
    gap = (top - bottom) * 16 / axes.bbox.height
    place = float("inf")
    for end, name, ink in sorted(ends, key=lambda item: -item[0]):
        place = min(end, place - gap)
        axes.text(1.01, place, cut(name, 9), transform=axes.get_yaxis_transform(), color=ink, va="center", weight="bold")


def _draw_marks(axes: Axes, marks: pd.DataFrame, paper: Paper) -> None:
    """A dashed line where a model was loaded, with the model's name where there is room."""
    loads = _loads(marks)
    for begin, model in zip(loads["begin"].tolist(), loads["model"].tolist(), strict=True):
        axes.axvline(begin, color=INKS["muted"], linewidth=1, linestyle=(0, (3, 3)))
        if len(loads) <= (2 if paper.is_narrow else 6):
            axes.text(begin, -0.12, f"{cut(model, 20)} loaded", color=INKS["muted"], va="bottom")


def _loads(marks: pd.DataFrame) -> pd.DataFrame:
    return marks[marks["kind"] == "model_load"].drop_duplicates("begin")


def _length_text(seconds: int) -> str:
    for unit, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit and seconds % unit == 0:
            return count_text(seconds // unit, name)
    return count_text(seconds, "second")
