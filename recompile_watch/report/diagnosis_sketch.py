"""The speed-up intervals of a diagnosis as a picture of letters, for Markdown."""

from collections.abc import Sequence
from math import log

from recompile_watch.report.diagnosis_arms import Arm

_COLUMNS = 48
_NAME_CHARS = 30
_FEWEST_BETWEEN = 3  # columns between the line at 1 and what is asked; nearer they are one


def sketch(arms: Sequence[Arm], asked: float) -> str:
    """A line for each arm that was timed; empty where none was. asked: what the profile asks of an interval's lower end.

    A line of it::

        default           │         ┊             ├──●─┤   3.68 [3.23, 3.88]
    """
    rows = [(arm.name, arm.ratio) for arm in arms if arm.ratio is not None]
    if not rows:
        return ""
    low, high = min(1.0, *(ratio.low for _, ratio in rows)) / 1.05, max(asked, *(ratio.high for _, ratio in rows)) * 1.05

    def column(value: float) -> int:
        return round((_COLUMNS - 1) * log(value / low) / log(high / low))

    width = min(max(len(name) for name, _ in rows), _NAME_CHARS)
    lines = [_head(width, column(1), column(asked), asked)]
    for name, ratio in rows:
        cells = [" "] * _COLUMNS
        cells[column(asked)], cells[column(1)] = "┊", "│"
        first, middle, last = column(ratio.low), column(ratio.value), column(ratio.high)
        cells[first : last + 1] = "─" * (last - first + 1)
        if last > first:
            cells[first], cells[last] = "├", "┤"
        cells[middle] = "●"
        lines.append(f"{name[:_NAME_CHARS]:<{width}}  {''.join(cells)}  {ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]")
    return "\n".join(lines)


def _head(width: int, one: int, asked_at: int, asked: float) -> str:
    """What the two upright lines are."""
    words = f"{' ' * one}1"
    if asked_at - one >= _FEWEST_BETWEEN:
        words = f"{words:<{asked_at}}{asked:g} asked"
    return f"{'':<{width}}  {words}".rstrip()
