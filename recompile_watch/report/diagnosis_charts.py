"""The charts of a diagnosis: speed-up intervals, how long calls take, calls one by one, compilations call by call.

No chart tells by colour alone: what is chosen says so, lines have their own dashes, and the number stands beside each mark.
"""

from collections.abc import Sequence
from math import log10, nan

from recompile_watch.report.diagnosis_arms import Arm, spread_of
from recompile_watch.report.drawing import INKS, Axes, Figure, Paper, Picture, axes_of, count_axis, guide_lines, picture, row_label, value_axis
from recompile_watch.report.numbers import ms_text
from recompile_watch.report.times import count_text, thousands

MAX_ROWS = 16
_RATIO_TICKS = (
    0.9, 1.1, 0.8, 1.25, 0.7, 1.5, 0.5, 2.0, 0.3, 3.0, 0.2, 5.0, 0.1, 10.0, 0.05, 20.0, 0.02, 50.0, 0.01, 100.0, 0.003, 300.0, 0.001, 1000.0,
)  # fmt: skip
_WIDE_APART = 20.0  # times: what differs by more is drawn on a scale of powers
_BAND = 116  # pixels of one arm's calls


def speedup_chart(arms: Sequence[Arm], effect: float | None, asked: float, profile: str) -> Picture:
    """The interval of each arm that was timed. effect: the smallest gain that can be seen. asked: of the lower end, by the profile."""
    every = [(arm, arm.ratio) for arm in arms if arm.ratio is not None]
    rows = every[:MAX_ROWS]
    noise = 1 + (effect or 0.0)
    low = min(1 / noise, *(ratio.low for _, ratio in rows)) / 1.04
    high = max(noise, asked, *(ratio.high for _, ratio in rows)) * 1.04

    def draw(figure: Figure, paper: Paper) -> None:
        axes = _rows_of(figure, paper, [arm for arm, _ in rows], right_px=12 if paper.is_narrow else 150, top_px=30)
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        _head(axes, 1, "eager", low, high)
        if abs(log10(asked / low) - log10(1 / low)) > (0.3 if paper.is_narrow else 0.1) * log10(high / low):
            _head(axes, asked, f"{asked:g} asked", low, high)
        for place, (arm, ratio) in enumerate(rows):
            ink = INKS["muted" if arm.is_eager else "ok" if arm.is_chosen else "one"]
            center, tall = (place + 0.7, 0.5) if paper.is_narrow else (place + 0.5, 1.0)  # on a telephone the names stand between the rows
            axes.barh(center, noise - 1 / noise, left=1 / noise, height=tall, color=INKS["grid"], linewidth=0)
            axes.plot([1, 1], [center - tall / 2, center + tall / 2], color=INKS["text"], linewidth=1.5, solid_capstyle="butt")
            axes.plot([asked, asked], [center - tall / 2, center + tall / 2], color=INKS["muted"], linewidth=1.5, linestyle=(0, (3, 2)))
            axes.plot([ratio.low, ratio.high], [center, center], color=ink, linewidth=3, solid_capstyle="butt")
            for end in (ratio.low, ratio.high):
                axes.plot([end, end], [center - 0.14, center + 0.14], color=ink, linewidth=3, solid_capstyle="butt")
            axes.plot(
                [ratio.value], [center], marker="D" if arm.is_chosen else "s", markersize=10 if arm.is_chosen else 8, color=ink,
                markeredgecolor=INKS["paper"], markeredgewidth=1.5,
            )  # fmt: skip
            row_label(axes, paper, place, _title(arm))
            _value(axes, paper, place, f"{_times(ratio.value)} [{_times(ratio.low)}, {_times(ratio.high)}]")
        _ratio_ticks(axes, paper, low, high)

    seen = f" Shaded: what two equal arms differ by chance here, {100 * effect:.1f} %; no smaller gain can be seen." if effect is not None else ""
    caption = (
        "How many times as fast as eager: the mark is the ratio of the medians, the line its 95 % interval. Right of 1 is faster; eager's own "
        "row is eager timed against itself."
        f"{seen} Dashed: what the {profile} profile asks of the lower end, {asked:g}.{_left_off(every)}"
    )
    return picture("speedup", "Speed-up against eager", caption, draw)


def latency_chart(arms: Sequence[Arm], clock: str) -> Picture:
    """How long the calls of each arm take. clock: which one measured."""
    timed = [arm for arm in arms if arm.times_ms]
    rows = timed[:MAX_ROWS]
    times_ms = [time for arm in rows for time in arm.times_ms]
    is_log = max(times_ms) > _WIDE_APART * min(times_ms)

    def draw(figure: Figure, paper: Paper) -> None:
        axes = _rows_of(figure, paper, rows, right_px=12 if paper.is_narrow else 86, top_px=8, step_px=56 if paper.is_narrow else 48)
        if is_log:
            axes.set_xscale("log")
        axes.set_xlim(min(times_ms) / 1.1 if is_log else 0, max(times_ms) * (1.1 if is_log else 1.04))
        guide_lines(axes, "x")
        for place, arm in enumerate(rows):
            ink, spread = INKS["muted" if arm.is_eager else "ok" if arm.is_chosen else "one"], spread_of(arm.times_ms)
            center = place + (0.62 if paper.is_narrow else 0.4)
            axes.plot([spread.low, spread.high], [center, center], color=ink, linewidth=2, solid_capstyle="butt")
            width = spread.three_quarters - spread.quarter
            axes.barh(center, width, left=spread.quarter, height=0.3, facecolor=INKS["paper"], edgecolor=ink, linewidth=2, zorder=2.1)
            axes.plot(
                [spread.middle, spread.middle], [center - 0.2, center + 0.2], color=INKS["text"], linewidth=3, solid_capstyle="butt", zorder=2.2
            )
            _ticks_of_calls(axes, arm.times_ms, center + 0.26, ink)
            row_label(axes, paper, place, _title(arm), 0.4)
            _value(axes, paper, place, ms_text(spread.middle), 0.4)
        if is_log:
            _decades(axes, min(times_ms), max(times_ms))
        else:
            value_axis(axes, paper)

    scale = "a scale of powers of ten" if is_log else "one scale from 0"
    caption = (
        f"Milliseconds a call ({clock}), on {scale}. The box holds the middle half of the calls, the thick line is the median (also at the "
        f"right), the thin one goes from the 5th to the 95th percentile; below stands a stroke for every call.{_left_off(timed)}"
    )
    return picture("latency", "How long a call takes", caption, draw)


def calls_chart(arms: Sequence[Arm], clock: str) -> Picture:
    """The calls of each timed candidate in the order in which they were made, beside eager's."""
    timed = [(arm, arm.timing) for arm in arms if arm.timing is not None and not arm.is_eager]
    rows = timed[:MAX_ROWS]
    courses = [[seconds * 1000 for seconds, _ in timing.warmup] + [pair.candidate_ms for pair in timing.pairs] for _, timing in rows]
    known = [time for course in courses for time in course if time > 0] + [pair.eager_ms for _, timing in rows for pair in timing.pairs]
    low, high = log10(min(known)) - 0.05, log10(max(known)) + 0.05
    longest = max(map(len, courses))

    def draw(figure: Figure, paper: Paper) -> None:
        axes = axes_of(
            figure, _BAND * len(rows) + 66, left_px=56 if paper.is_narrow else _margin_px([arm for arm, _ in rows]) + 40, right_px=12,
            top_px=48 if paper.is_narrow else 34, bottom_px=32,
        )  # fmt: skip
        axes.set_ylim(len(rows), 0)
        axes.set_xlim(0.5, longest + 0.5)
        for place, ((arm, timing), course) in enumerate(zip(rows, courses, strict=True)):
            heights = [_height(place, time, low, high) for time in course]
            warm = len(timing.warmup)
            axes.barh(place + 0.6, warm, left=0.5, height=0.72, color=INKS["grid"], linewidth=0)
            axes.axhline(place + 0.97, color=INKS["grid"], linewidth=1)
            axes.plot(
                range(warm + 1, len(course) + 1), [_height(place, pair.eager_ms, low, high) for pair in timing.pairs], color=INKS["two"],
                linewidth=1.5, linestyle=(0, (3, 2)), drawstyle="steps-mid", label="eager" if place == 0 else None,
            )  # fmt: skip
            axes.plot(
                range(1, len(course) + 1), heights, color=INKS["one"], linewidth=1.8, drawstyle="steps-mid", label="candidate" if place == 0 else None
            )
            compiles = [n for _, n in timing.warmup] + list(timing.compiles)
            marked = [number for number, n in enumerate(compiles, 1) if n]
            _mark_compiles(axes, [number for number in marked if number <= warm], place, "warning", "compiled" if place == 0 else None)
            _mark_compiles(axes, [number for number in marked if number > warm], place, "critical", None)
            if paper.is_narrow:
                axes.text(1, place + 0.06, _title(arm), transform=axes.get_yaxis_transform(), color=INKS["text"], va="center", ha="right")
            else:
                row_label(axes, paper, place, _title(arm), 0.16)
        _time_ticks(axes, len(rows), low, high)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0 + 14 * paper.is_narrow / (_BAND * len(rows))), ncols=3, borderpad=0, columnspacing=1.6)
        count_axis(axes, paper)

    caption = (
        f"Each step is a call, from the first one on; time goes up in powers of ten. Shaded: the warm-up, by the clock on the wall; then the "
        f"measured pairs ({clock}). A triangle marks a call that compiled something.{_left_off(timed)}"
    )
    return picture("calls", "Calls one by one", caption, draw)


def compilations_chart(arms: Sequence[Arm]) -> Picture:
    """What each candidate compiled, call by call."""
    every = [(arm, arm.trial.structure) for arm in arms if arm.trial.structure is not None and arm.trial.structure.compiles_by_call]
    rows = every[:MAX_ROWS]
    longest = max(len(seen.compiles_by_call) for _, seen in rows)

    def draw(figure: Figure, paper: Paper) -> None:
        step = 44 if paper.is_narrow else 34
        left_px = 8 if paper.is_narrow else _margin_px([arm for arm, _ in rows])
        axes = axes_of(figure, step * len(rows) + 44, left_px=left_px, right_px=46, top_px=12, bottom_px=32)
        axes.set_ylim(len(rows), 0)
        axes.set_xlim(0.5, longest + 0.5)
        for place, (arm, seen) in enumerate(rows):
            floor, tall = place + 0.9, 0.4 if paper.is_narrow else 0.66
            warm = min(seen.warmup_calls, len(seen.compiles_by_call))
            axes.barh(floor - tall / 2 - 0.02, warm, left=0.5, height=tall + 0.1, color=INKS["grid"], linewidth=0)
            axes.axhline(floor, color=INKS["grid"], linewidth=1)
            most = max(seen.compiles_by_call) or 1
            bars = [(number, n) for number, n in enumerate(seen.compiles_by_call, 1) if n]
            for is_late, ink in ((False, "info"), (True, "critical")):
                group = [(number, n) for number, n in bars if (number > seen.warmup_calls) == is_late]
                axes.bar(
                    [number for number, _ in group], [-tall * n / most for _, n in group], width=0.76, bottom=floor, color=INKS[ink],
                    hatch="///" if is_late else None, edgecolor=INKS["paper"], linewidth=0,
                )  # fmt: skip
            row_label(axes, paper, place, _title(arm), 0.62)
            axes.text(
                1.01, floor - 0.04, thousands(sum(seen.compiles_by_call)), transform=axes.get_yaxis_transform(), color=INKS["text"], va="bottom"
            )
        axes.set_yticks([])
        count_axis(axes, paper)

    cut_off = sum(max(0, seen.calls - len(seen.compiles_by_call)) for _, seen in rows)
    more = f" {count_text(cut_off, 'later call')} stand in the sums of the table of candidates only." if cut_off else ""
    caption = (
        "Compilations that each call set off, refused ones included; bars are scaled within their row, the number is the row's sum. "
        f"Shaded: the warm-up. A bar behind it is a recompile while calls waited.{more}{_left_off(every)}"
    )
    return picture("compilations", "Compilations call by call", caption, draw)


def _left_off(arms: Sequence[object]) -> str:
    """How many arms there was no room for."""
    return f" {count_text(len(arms) - MAX_ROWS, 'more candidate')} stand in the table only." if len(arms) > MAX_ROWS else ""


def _mark_compiles(axes: Axes, calls: Sequence[int], place: int, ink: str, label: str | None) -> None:
    """A triangle over each of these calls."""
    axes.plot(calls, [place + 0.16] * len(calls), linestyle="none", marker="v", markersize=8, color=INKS[ink], markeredgewidth=0, label=label)


def _rows_of(figure: Figure, paper: Paper, arms: Sequence[Arm], *, right_px: float, top_px: float, step_px: int = 0) -> Axes:
    """Axes with a row for each arm, the first one on top."""
    step = step_px or (48 if paper.is_narrow else 34)
    left_px = 8 if paper.is_narrow else _margin_px(arms)
    axes = axes_of(figure, step * len(arms) + top_px + 30, left_px=left_px, right_px=right_px, top_px=top_px)
    axes.set_ylim(len(arms), 0)
    axes.set_yticks([])
    return axes


def _margin_px(arms: Sequence[Arm]) -> int:
    """Room for the arms' names at the left."""
    return min(max(len(_title(arm)) for arm in arms) * 8 + 24, 250)


def _title(arm: Arm) -> str:
    """The arm's name; the one that was chosen says so."""
    return f"✓ {arm.name}" if arm.is_chosen else arm.name


def _value(axes: Axes, paper: Paper, place: int, words: str, center: float = 0.5) -> None:
    """The number of a row: right of it, or at the right end of its name's line where the paper is narrow."""
    if paper.is_narrow:
        axes.text(0.995, place + 0.27, words, transform=axes.get_yaxis_transform(), color=INKS["text"], va="center", ha="right")
    else:
        axes.text(1.015, place + center, words, transform=axes.get_yaxis_transform(), color=INKS["text"], va="center")


def _head(axes: Axes, value: float, words: str, low: float, high: float) -> None:
    """Words over a vertical line; at the ends they stay inside."""
    share = log10(value / low) / log10(high / low)
    side = "left" if share < 0.06 else "right" if share > 0.94 else "center"
    axes.annotate(words, (share, 1), xycoords="axes fraction", xytext=(0, 6), textcoords="offset points", color=INKS["muted"], va="bottom", ha=side)


def _ratio_ticks(axes: Axes, paper: Paper, low: float, high: float) -> None:
    """A few round ratios that stand apart from each other, 1 always among them."""
    apart = log10(high / low) * (0.16 if paper.is_narrow else 0.08)
    ticks = [1.0]
    for tick in _RATIO_TICKS:
        if low <= tick <= high and all(abs(log10(tick / other)) >= apart for other in ticks):
            ticks.append(tick)
    axes.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
    axes.minorticks_off()


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:.3g}"


def _ticks_of_calls(axes: Axes, times_ms: Sequence[float], top: float, ink: str) -> None:
    """A short stroke for each call, all of them one line with gaps."""
    xs = [x for time in times_ms for x in (time, time, nan)]
    axes.plot(xs, [top, top + 0.14, nan] * len(times_ms), color=ink, linewidth=1, alpha=0.7)


def _decades(axes: Axes, low: float, high: float) -> None:
    """Round times along a horizontal axis of powers."""
    ticks = [10.0**power for power in range(-6, 12) if low / 1.1 <= 10.0**power <= high * 1.1]
    axes.set_xticks(ticks or [low, high], [_span(tick) for tick in ticks or [low, high]])
    axes.minorticks_off()


def _height(place: int, time_ms: float, low: float, high: float) -> float:
    """Where a time lies in its arm's band; low, high: powers of ten at its ends."""
    share = (log10(max(time_ms, 10**low)) - low) / (high - low)
    return place + 0.94 - 0.66 * share


def _time_ticks(axes: Axes, bands: int, low: float, high: float) -> None:
    """Round times at the side of each band, three at most."""
    powers = [power for power in range(-6, 12) if low <= power <= high]
    powers = powers[:: max(1, -(-len(powers) // 3))]
    places = [(_height(place, 10.0**power, low, high), _span(10.0**power)) for place in range(bands) for power in powers]
    axes.set_yticks([place for place, _ in places], [words for _, words in places])


def _span(time_ms: float) -> str:
    """``10 ms``, ``1 s``."""
    if time_ms >= 1000:
        return f"{time_ms / 1000:g} s"
    return f"{time_ms:g} ms" if time_ms >= 1 else f"{time_ms * 1000:g} µs"
