"""How the reports for people say the same things: places, counts, and what of a finding's text still needs to be said."""

import re

from recompile_watch.core.analysis import SourceReport
from recompile_watch.core.findings import Finding
from recompile_watch.report.blocks import Block
from recompile_watch.report.safe import safe
from recompile_watch.report.times import count_text

_MAX_NAMED = 300
# Kinds whose title holds what the line of the log says.
TITLE_SAYS_ALL = frozenset(
    {"synthetic_quote", "bot_error", "cudagraph_skip", "graph_break", "ineffective_setting", "inverted_prediction", "synthetic_account"}
)
# What stands above the evidence already: function, file and limit.
_SAID = re.compile(
    r"Recompiling function .+? in .+?:\d+; (?=!?\d+/\d+)|torch\._dynamo hit config\.\w+ \(\d+\); (?=last reason)|; function '[^']*' in .+:\d+$"
)
_SENTENCE = re.compile(r"[^\n]{1,400}?\.(?=\s|$)")
PHASES = {"warmup": "while warming up", "steady": "in steady state"}


def times_text(count: int) -> str:
    """``once``, ``7 times``."""
    return "once" if count == 1 else f"{count} times"


def kind_words(kind: str) -> str:
    """``GPU memory`` for ``gpu_memory``."""
    return kind.replace("_", " ").replace("gpu", "GPU")


def doubles_text(source: SourceReport) -> list[str]:
    """``9 events also in out.log, counted there``, for each other source that holds the same lines."""
    return [f"{count_text(n, 'event')} also in {safe(path, 200)}, counted there" for path, n in source.also_in.items()]


def first_sentence(text: str) -> str:
    """What a text begins with, to its first full stop."""
    sentence = _SENTENCE.match(text)
    return text if sentence is None else sentence[0]


def unsaid(text: str) -> str:
    """What a line of evidence says beyond function, file and limit, which stand above it."""
    return _SAID.sub("", text)


def told_apart(block: Block) -> list[Finding]:
    """The findings of a block that need a line of their own."""
    if not block.others or block.head.kind == "synthetic_quote":
        return []
    return list(block.findings if block.head.kind in ("recompile", "bot_error") else block.others)


def where_text(finding: Finding) -> str:
    """``attention.py:105`` with its folder; the whole path is in the JSON report."""
    if not finding.file:
        return ""
    short = "/".join(finding.file.replace("\\", "/").split("/")[-2:])
    return safe(f"{short}:{finding.line_no}" if finding.line_no is not None else short, 80)


def other_text(finding: Finding) -> str:
    """One of several findings of a block, without what the block's title says already."""
    title = safe(finding.title)
    if finding.kind != "recompile":
        symbols = f" ({', '.join(finding.symbols[:5])})" if finding.kind == "forecast_failure" and finding.symbols else ""
        return title.removeprefix("The bot reports an error: ") + safe(symbols, 60)
    _, _, words = title.partition(": ")
    _, _, guard = safe(finding.evidence[0].text).partition("; ") if finding.evidence else ("", "", "")
    return f"{words} ({guard})" if guard else words


def list_text(numbers: tuple[int, ...]) -> str:
    """The first four numbers, and how many more there are."""
    shown = ", ".join(map(str, numbers[:4]))
    return shown if len(numbers) <= 4 else f"{shown} and {len(numbers) - 4} more"


def short_names(paths: list[str]) -> dict[str, str]:
    """The file name where it is unique, else as much of the path as it takes."""
    names: dict[str, str] = {}
    if len(paths) > _MAX_NAMED:  # comparing each with each would take long
        return {path: path for path in paths}
    for path in paths:
        parts = path.split("/")
        length = next((n for n in range(1, len(parts) + 1) if sum(p.split("/")[-n:] == parts[-n:] for p in paths) == 1), len(parts))
        names[path] = "/".join(parts[-length:])
    return names
