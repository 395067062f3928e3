"""A small picture of an incident's events over time, as PNG. Loads matplotlib: only the sender's process imports this."""

import io
from datetime import UTC, datetime

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from recompile_watch.core.messages import Picture

_INCHES = (6.4, 1.9)
_DPI = 120
_BAR = "#c62828"
_INK = "#59636e"


def draw(picture: Picture) -> bytes:
    """The picture, 768 × 228 pixels on white, which stays readable in a dark mail."""
    figure = Figure(figsize=_INCHES, dpi=_DPI, layout="constrained", facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    start, end = (date2num(datetime.fromtimestamp(moment, UTC)) for moment in (picture.since, max(picture.until, picture.since + 1)))
    width = (end - start) / max(1, len(picture.counts))
    axes.bar([start + width * index for index in range(len(picture.counts))], picture.counts, width=width * 0.9, align="edge", color=_BAR)
    axes.set_xlim(start, end)
    locator = AutoDateLocator(tz=UTC, minticks=3, maxticks=7)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
    axes.set_title(picture.title, fontsize=9, color=_INK, loc="left", parse_math=False)
    axes.xaxis.get_offset_text().set(size=8, color=_INK)  # the date
    axes.tick_params(labelsize=8, colors=_INK)
    axes.set_xlabel("UTC", fontsize=8, color=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    shown = io.BytesIO()
    canvas.print_png(shown)
    return shown.getvalue()
