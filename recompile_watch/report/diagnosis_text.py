"""A diagnosis for a person at a terminal: the verdict first, then the table, then what torch itself said."""

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recompile_watch.core.diagnosis import Diagnosis
from recompile_watch.core.verdict import Verdict
from recompile_watch.report.console import printed
from recompile_watch.report.diagnosis_rows import HEADER, NOTHING, control_text, facts_of, gain_text, log_of, problems_of, rows_of, skipped_of
from recompile_watch.report.safe import safe

_INDENT = 2
_MAX_TEXT = 2000
_PLAIN_SIGNS = str.maketrans("·×–…σ→", "|x-~s>")
_NUMBERS = frozenset(HEADER[2:])
_MAY_GO = ("memory", "error", "breaks", "pays after", "first call")  # on a narrow terminal, from the first one on
_MAY_WRAP = frozenset({"candidate", "result"})
_WRAPPED = 18


def diagnosis_text(diagnosis: Diagnosis, *, encoding: str, width: int, is_terminal: bool, has_color: bool) -> str:
    """The report. encoding: of where it will be shown; without Unicode it gets plain signs. width: columns, at least 40."""
    return printed(
        lambda console: _print(console, diagnosis), _PLAIN_SIGNS, encoding=encoding, width=width, is_terminal=is_terminal, has_color=has_color
    )


def _print(console: Console, diagnosis: Diagnosis) -> None:
    verdict = diagnosis.judgement.verdict
    console.print(_headline(verdict), Text(f" {gain_text(diagnosis) or verdict.confidence}"))
    console.print(Padding(Text(" · ".join(facts_of(diagnosis)), style="dim"), (0, 0, 0, _INDENT)))
    for problem in problems_of(diagnosis):
        _point(console, "!", problem, "bold red")
    if diagnosis.postponed:
        _point(console, "later", f"the timed stage: {diagnosis.postponed}", "bold")
    for text in verdict.because:
        _point(console, "because", text)
    for text in verdict.against:
        _point(console, "against", text)
    for setting in verdict.settings:
        _point(console, "do", setting, "bold")
    if verdict.revisit_when:
        _point(console, "again", "look again when " + "; ".join(one.text for one in verdict.revisit_when), "dim")
    console.print()
    console.print(_table(diagnosis, console.width))
    control = control_text(diagnosis)
    if control:
        console.print(Padding(Text(control, style="dim"), (1, 0, 0, _INDENT)))
    for text in skipped_of(diagnosis):
        _point(console, "not run", text, "dim")
    lines = log_of(diagnosis)
    if lines:
        console.print(Padding(Text("torch said:"), (1, 0, 0, _INDENT)))
        for line in lines:
            console.print(Padding(Text(line, style="dim", overflow="fold"), (0, 0, 0, _INDENT)))


def _headline(verdict: Verdict) -> Text:
    if not verdict.is_decided:
        return Text(" INCONCLUSIVE ", style="bold white on magenta")
    return Text(f" {safe(verdict.choose or '')} ", style="bold black on green")


def _point(console: Console, label: str, text: str, style: str = "") -> None:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=8)
    grid.add_column(overflow="fold")
    grid.add_row(Text(label), Text(safe(text, _MAX_TEXT), style=style))
    console.print(Padding(grid, (0, 0, 0, _INDENT)))


def _table(diagnosis: Diagnosis, width: int) -> Table:
    """Columns that hold nothing are left out, and on a narrow terminal those that matter least."""
    rows = rows_of(diagnosis)
    kept = [place for place in range(len(HEADER)) if any(row[place] != NOTHING for row in rows)]
    for name in _MAY_GO:
        if _needed(rows, kept) > width:
            kept = [place for place in kept if HEADER[place] != name]
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for place in kept:
        name = HEADER[place]
        table.add_column(name, justify="right" if name in _NUMBERS else "left", overflow="fold", no_wrap=name not in _MAY_WRAP)
    for row in rows:
        table.add_row(*(Text(row[place], style="bold" if row[0].endswith("*") else "") for place in kept))
    return table


def _needed(rows: list[tuple[str, ...]], kept: list[int]) -> int:
    """The columns' width when nothing is wrapped but what may be."""
    widest = [max(len(HEADER[place]), *(len(row[place]) for row in rows)) for place in kept]
    return sum(min(wide, _WRAPPED) if HEADER[place] in _MAY_WRAP else wide for place, wide in zip(kept, widest, strict=True)) + 2 * len(kept)
