"""What rich prints, as text for a terminal or a file."""

import io
from collections.abc import Callable, Mapping

from rich.console import Console

MIN_WIDTH = 40


def printed(
    show: Callable[[Console], None], plain_signs: Mapping[int, int], *, encoding: str, width: int, is_terminal: bool, has_color: bool
) -> str:  # fmt: skip
    """What ``show`` prints. encoding: of where it will be shown; without Unicode it gets plain signs. width: columns, at least 40."""
    shown = io.StringIO()
    console = Console(
        file=shown, width=max(width, MIN_WIDTH), force_terminal=is_terminal, no_color=not has_color, markup=False, highlight=False, emoji=False,
        color_system="auto" if has_color and is_terminal else None, legacy_windows=False,
    )  # fmt: skip
    show(console)
    text = "\n".join(line.rstrip() for line in shown.getvalue().split("\n"))
    return text if "utf" in encoding.lower() else text.translate(plain_signs)
