"""What all charts share: paper, inks, axes, and matplotlib without a trace on the machine.

matplotlib keeps a list of fonts in the user's cache and obeys the user's settings. Here it gets a folder that is gone
afterwards, its own fonts and its own settings: the same picture for everyone, and nothing written anywhere.
"""

import io
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from recompile_watch.report.svg import INKS, themed


@contextmanager
def _no_trace() -> Iterator[None]:
    names = ("MPLCONFIGDIR", "MPL_IGNORE_SYSTEM_FONTS")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory(prefix="recompile-watch-") as folder:
        os.environ.update(zip(names, (folder, "1"), strict=True))
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


with _no_trace():
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

__all__ = [
    "INKS", "PAPERS", "SERIES", "Axes", "Figure", "Paper", "Picture", "axes_of", "count_axis", "cut", "guide_lines", "picture", "row_label",
    "time_axis", "unit_words", "value_axis",
]  # fmt: skip

FONT_PX = 12
_DAY_S = 86_400
_DAY_ZERO = datetime(1970, 1, 1)  # where matplotlib begins to count days
_STEPS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
    *(_DAY_S * days for days in (1, 2, 7, 14, 30, 91, 182, 365, 730, 3650, 36_500, 365_000)),
)  # fmt: skip
SERIES = ("one", "two", "three", "four", "five", "six")
_SETTINGS: dict[str, object] = {
    "svg.fonttype": "none", "svg.hashsalt": "recompile-watch", "font.size": FONT_PX, "font.family": "DejaVu Sans", "axes.unicode_minus": False,
    "text.parse_math": False, "text.usetex": False, "axes.titlesize": FONT_PX, "axes.labelsize": FONT_PX, "xtick.labelsize": FONT_PX,
    "ytick.labelsize": FONT_PX, "legend.fontsize": FONT_PX, "path.simplify": False, "text.color": INKS["text"], "hatch.linewidth": 2.0,
    "legend.frameon": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Paper:
    """What a chart is drawn on. name: ``wide`` or ``narrow``. width_px: at which its letters have their true size."""

    name: str
    width_px: int

    @property
    def is_narrow(self) -> bool:
        """For a telephone."""
        return self.name == "narrow"


PAPERS = (Paper("wide", 880), Paper("narrow", 340))


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart in all its sizes. title: what it shows. caption: how to read it."""

    title: str
    caption: str
    drawings: tuple[Markup, ...]


def picture(name: str, title: str, caption: str, draw: Callable[[Figure, Paper], None]) -> Picture:
    """Draws a chart once on each paper. ``draw`` sets the figure's height and fills it."""
    drawings = []
    for paper in PAPERS:
        with mpl.rc_context(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"Glyph \d+ ")  # the reader's fonts show the letters, not matplotlib's
            mpl.rcParams.update(mpl.rcParamsDefault)
            mpl.rcParams.update(_SETTINGS)  # type: ignore[arg-type]  # its keys are literals there
            figure = Figure(figsize=(paper.width_px / 72, 1), dpi=72, facecolor="none")
            FigureCanvasSVG(figure)
            draw(figure, paper)
            shown = io.BytesIO()
            figure.savefig(shown, format="svg", metadata={"Date": None, "Creator": None}, facecolor="none")
        drawings.append(themed(shown.getvalue(), f"{name}-{paper.name}", title, caption))
    return Picture(title, caption, tuple(drawings))


def axes_of(figure: Figure, height_px: float, *, left_px: float, right_px: float = 12, top_px: float = 14, bottom_px: float = 28) -> Axes:
    """The figure's axes with margins in pixels, without a frame."""
    width = figure.get_figwidth() * 72
    figure.set_figheight(height_px / 72)
    place = (left_px / width, bottom_px / height_px, 1 - (left_px + right_px) / width, 1 - (top_px + bottom_px) / height_px)
    axes = figure.add_axes(place)
    axes.set_facecolor("none")
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0, pad=6, labelcolor=INKS["muted"])
    axes.grid(False)
    axes.set_axisbelow(True)
    return axes


def time_axis(axes: Axes, paper: Paper) -> None:
    """Ticks at round times, as few as the paper has room for; with the day where there are several."""
    begin, end = map(_moment, axes.get_xlim())
    first_s, last_s = ((moment - datetime.min).total_seconds() for moment in (begin, end))
    most = 3 if paper.is_narrow else 7
    step_s = next((step for step in _STEPS_S if (last_s - first_s) / step <= most), _STEPS_S[-1])
    ticks = [datetime.min + timedelta(seconds=second) for second in range(int(-(-first_s // step_s) * step_s), int(last_s) + 1, step_s)]
    is_one_day = begin.date() == end.date()
    days = [(tick - _DAY_ZERO) / timedelta(days=1) for tick in ticks]
    axes.set_xticks(days, [_tick_text(tick, step_s, is_one_day) for tick in ticks])


def _moment(place: float) -> datetime:
    """The moment at a place of a time axis; beyond the calendar its first or last day."""
    return _DAY_ZERO + timedelta(days=min(max(place, (datetime.min - _DAY_ZERO).days), (datetime.max - _DAY_ZERO).days))


def _tick_text(tick: datetime, step_s: int, is_one_day: bool) -> str:
    if step_s >= _DAY_S:
        return tick.date().isoformat()
    clock = tick.strftime("%H:%M:%S" if step_s < 60 else "%H:%M")
    return clock if is_one_day else f"{tick:%m-%d} {clock}"


def value_axis(axes: Axes, paper: Paper) -> None:
    """Ticks of a horizontal axis of values, as few as the paper has room for."""
    axes.xaxis.set_major_locator(MaxNLocator(nbins=3 if paper.is_narrow else 7))


def count_axis(axes: Axes, paper: Paper) -> None:
    """Ticks of a horizontal axis of whole numbers, as few as the paper has room for."""
    axes.xaxis.set_major_locator(MaxNLocator(nbins=3 if paper.is_narrow else 7, integer=True))


def guide_lines(axes: Axes, axis: str) -> None:
    """Thin lines at the ticks of one axis."""
    axes.grid(True, axis="x" if axis == "x" else "y", color=INKS["grid"], linewidth=1)


def row_label(axes: Axes, paper: Paper, place: int, words: str, center: float = 0.5) -> None:
    """The name of a row: left of it, or above it where the paper is narrow."""
    words = cut(words, 34)
    if paper.is_narrow:
        axes.text(0.008, place + 0.27, words, transform=axes.get_yaxis_transform(), color=INKS["text"], va="center")
    else:
        axes.text(-0.015, place + center, words, transform=axes.get_yaxis_transform(), color=INKS["text"], va="center", ha="right")


def cut(words: str, chars: int) -> str:
    """A name as far as there is room; the table beside the chart has all of it."""
    return words if len(words) <= chars else words[: chars - 1] + "…"


def unit_words(axes: Axes, words: str) -> None:
    """The unit of a vertical axis, above it."""
    axes.annotate(words, (0, 1), xycoords="axes fraction", xytext=(0, 8), textcoords="offset points", color=INKS["muted"], va="bottom", ha="left")
