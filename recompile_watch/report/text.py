"""The report for a person at a terminal: worst first, one screen for the common case.

Log text goes through ``safe`` and into ``Text`` objects, so neither control codes nor rich's markup in it have an effect.
"""

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recompile_watch.core.analysis import Report, SourceReport
from recompile_watch.core.evidence import shorter_paths
from recompile_watch.core.findings import Evidence, Finding, is_expected, severities
from recompile_watch.report.blocks import Block, blocks_of, title_of
from recompile_watch.report.console import printed
from recompile_watch.report.numbers import print_numbers
from recompile_watch.report.safe import safe
from recompile_watch.report.times import Clock, count_text, size_text
from recompile_watch.report.words import (
    PHASES,
    TITLE_SAYS_ALL,
    doubles_text,
    first_sentence,
    list_text,
    other_text,
    short_names,
    times_text,
    told_apart,
    unsaid,
    where_text,
)  # fmt: skip

PLAIN_WIDTH = 100
_MAX_BLOCKS = 15
_MAX_NOTES = 10
_MAX_SOURCES = 8
_INDENT = 10
_BAR_CELLS = 8
_DOT = " · "
_PLAIN_SIGNS = str.maketrans("·×–…█░", "|x-~#.")
_STYLES = {
    "critical": "bold white on red",
    "warning": "bold black on yellow",
    "info": "bold",
    "unknown": "bold white on magenta",
    "ok": "bold black on green",
}
_IN_NUMBERS = "compile_mode"
_MAX_OTHERS = 6
_HAS_PLACE = ("code", "config", "kwarg")  # a line for the environment, or for a person, has one place only
_MAX_APPLY = 2000
_MAX_REASONS = 3
_MAX_REASON = 300


def report_text(report: Report, *, encoding: str, width: int, is_terminal: bool, has_color: bool) -> str:
    """The report. encoding: of where it will be shown; without Unicode it gets plain signs. width: columns, at least 40."""
    return printed(
        lambda console: _Printer(console, report).print(), _PLAIN_SIGNS, encoding=encoding, width=width, is_terminal=is_terminal, has_color=has_color
    )


class _Printer:
    """One report on one console."""

    def __init__(self, console: Console, report: Report) -> None:
        self._console, self._report = console, report
        times = [time for source in report.sources for time in (source.first_time, source.last_time)]
        self._clock = Clock([*times, *(time for f in report.findings for time in (f.first_time, f.last_time))])
        self._names = short_names([source.facts.path for source in report.sources])
        self._advised: dict[str, str] = {}

    def print(self) -> None:
        """Head, findings, notes, numbers, sources."""
        shown = [finding for finding in self._report.findings if finding.kind != _IN_NUMBERS]
        blocks = blocks_of(shown)
        loud = [block for block in blocks if block.head.severity != "info" and block.head.counts]
        notes = [block for block in blocks if block not in loud]
        self._print_head(blocks)
        for block in loud[:_MAX_BLOCKS]:
            self._console.print()
            self._print_block(block)
        self._print_left_off(len(loud) - _MAX_BLOCKS, "finding")
        self._print_notes(notes)
        self._print_decisions()
        self._console.print()
        print_numbers(self._console, self._report)
        self._print_sources()

    def _print_head(self, blocks: list[Block]) -> None:
        report = self._report
        numbers = severities(tuple(block.head for block in blocks if block.head.counts))
        words = {"critical": "critical", "warning": "warning", "info": "note"}
        counted = [_plural(count, words[severity]) for severity, count in numbers.items() if count]
        line = Text.assemble(_badge(report.status), " ", Text(_DOT.join(counted) or "no findings", style="bold"))
        names = ", ".join(self._names.values())
        about = [safe(names, 60) if len(self._names) <= 2 else f"{len(self._names)} sources", self._clock.head()]
        if report.torch_version:
            about.append(f"torch {safe(report.torch_version, 30)}")
        line.append(_DOT + _DOT.join(part for part in about if part), style="dim")
        self._console.print(line)
        for problem in report.problems:
            self._print_indented(safe(problem), "magenta")

    def _print_block(self, block: Block) -> None:
        head = block.head
        title = Table.grid(padding=0)
        title.add_column(width=_INDENT)
        title.add_column()
        title.add_row(_badge(head.severity), Text(safe(title_of(block)), style="bold"))
        self._console.print(title)
        self._print_indented(self._place(block), "dim")
        if head.headroom is not None and head.headroom.limit is not None:
            self._print_line(self._bar(head))
        self._print_indented(safe(head.consequence))
        others = told_apart(block)
        for other in others[:_MAX_OTHERS]:
            self._print_line(Text.assemble((f"{other.count}× ", "dim"), other_text(other), no_wrap=True, overflow="ellipsis"))
        self._print_left_off(len(others) - _MAX_OTHERS, "other")
        if head.kind not in TITLE_SAYS_ALL:
            for place in _evidence(head):
                self._print_evidence(place)
        self._print_advice(block)

    def _print_advice(self, block: Block, *, is_note: bool = False) -> None:
        """What to do: the first remedy of the block, with the line to paste; where a block above has said it, only that.

        is_note: nothing hangs on it, so that the place and the caution are left to the longer formats.
        """
        advice = next((finding.advice[0] for finding in block.findings if finding.advice), None)
        if advice is None:
            return
        title, said = safe(advice.title), self._advised.get(advice.apply)
        self._advised.setdefault(advice.apply, advice.where)
        if said is None:
            self._print_line(Text.assemble(("do: ", "green"), (title, "bold"), (" (then restart)" if advice.restart else "", "dim")))
            code, mark, comment = safe(advice.apply, _MAX_APPLY).partition("# ")  # what is pasted stays as it is
            self._print_below(f"{code}{mark}{shorter_paths(comment)}".removeprefix("# "), "green")
        else:
            self._print_line(Text.assemble(("do: ", "green"), f"as above ({title})"))
        if is_note:
            return
        where = safe(advice.where)
        if advice.kind in _HAS_PLACE and where not in ("nowhere", safe(said or "")) and where not in advice.apply:
            self._print_below(shorter_paths(where), "dim")
        if said is None and advice.caution and advice.caution != block.head.consequence:
            self._print_below(f"caution: {safe(first_sentence(advice.caution))}", "yellow")

    def _print_below(self, text: str, style: str) -> None:
        """What belongs to a remedy's title, a step further in."""
        self._console.print(Padding(Text(text, style=style), (0, 0, 0, _INDENT + 4), expand=False))

    def _place(self, block: Block) -> str:
        head = block.head
        where = where_text(head)
        span = self._clock.span_of((finding.first_time, finding.last_time) for finding in block.findings)
        counted = times_text(block.count)
        when = f"{counted}{', ' + span if span else ''}"
        ranks = f"rank {list_text(head.ranks)}" if head.ranks else ""
        pids = f"pid {list_text(head.processes)}" if head.processes else ""
        cost = f"{head.compile_seconds:.1f} s compiling" if head.compile_seconds else ""
        has_place = bool(head.evidence) and head.evidence[0].source != head.file
        seen = self._seen(head.evidence[0]) if head.kind in TITLE_SAYS_ALL and has_place else ""
        against = f"{head.baseline} since the baseline" if head.baseline else ""
        parts = (against, where, safe(head.model or "", 30), when, PHASES.get(head.phase, ""), ranks, pids, cost, seen)
        return _DOT.join(part for part in parts if part)

    def _bar(self, finding: Finding) -> Text:
        headroom = finding.headroom
        assert headroom is not None and headroom.limit is not None
        cells = round(_BAR_CELLS * min(headroom.entries, headroom.limit) / max(headroom.limit, 1))
        style = "red" if headroom.entries >= headroom.limit else "yellow"
        rest = "none left" if headroom.entries >= headroom.limit else f"{headroom.limit - headroom.entries} left before the limit"
        return Text.assemble(("█" * cells, style), ("░" * (_BAR_CELLS - cells), "dim"), f" {headroom.entries} of {headroom.limit} entries, {rest}")

    def _print_evidence(self, place: Evidence) -> None:
        text = shorter_paths(unsaid(safe(place.text)))
        self._print_line(Text.assemble((self._seen(place), "blue"), "  ", text, no_wrap=True, overflow="ellipsis"))

    def _seen(self, place: Evidence) -> str:
        if len(self._names) == 1 and place.source in self._names:
            return f"line {place.line}"
        return f"{safe(self._names.get(place.source, place.source), 40)}:{place.line}"

    def _print_notes(self, notes: list[Block]) -> None:
        if not notes:
            return
        self._console.print()
        room = (self._console.width - _INDENT - 2) // 3
        for block in notes[:_MAX_NOTES]:
            head, title = block.head, title_of(block)
            said = "gone" if head.baseline == "gone" else "" if f" {block.count} times" in title else f"{block.count}×"
            until = f"accepted until {head.accepted_until}" if head.accepted_until else ""
            table = Table.grid(padding=(0, 1), expand=True)
            table.add_column(width=_INDENT - 1, justify="right")
            table.add_column(ratio=2, no_wrap=True, overflow="ellipsis")
            table.add_column(ratio=1, no_wrap=True, overflow="ellipsis", style="dim")
            table.add_row(Text(said, style="dim"), Text(safe(title)), Text(until or _end_of(where_text(head), room)))
            self._console.print(table)
            if head.advice and not is_expected(head.advice) and not until:
                self._print_advice(block, is_note=True)
        self._print_left_off(len(notes) - _MAX_NOTES, "note")

    def _print_decisions(self) -> None:
        """The mode for each model that needs another one; what is undecided stands in the other formats."""
        decided = [decision for decision in self._report.decisions if decision.mode != "undecided"]
        if decided:
            self._console.print()
        for decision in decided[:_MAX_OTHERS]:
            confidence = decision.confidence.partition(":")[0]
            line = Text.assemble(("decide    ", "bold"), (f"{safe(decision.model, 30)}: {decision.mode}", "bold"), f" ({confidence} confidence)")
            self._console.print(line)
            reasons = [safe(text, _MAX_REASON) for text in decision.because[:_MAX_REASONS]]
            more = len(decision.because) - len(reasons)
            self._print_indented("; ".join([*reasons, f"and {count_text(more, 'more reason')}"] if more else reasons))
            for setting in decision.settings:
                self._print_indented(f"    {safe(setting)}", "green")
        self._print_left_off(len(decided) - _MAX_OTHERS, "decision")

    def _print_sources(self) -> None:
        sources = self._report.sources
        if self._report.series.strategy_return or self._report.series.gpu_memory or self._report.series.synthetic_quotes:
            self._console.print()
        for source in sources[:_MAX_SOURCES]:
            self._print_source(source)
        if len(sources) > _MAX_SOURCES:
            total = sum(source.facts.bytes for source in sources)
            self._console.print(Text(f"… and {count_text(len(sources) - _MAX_SOURCES, 'source')} more, {size_text(total)} in all", style="dim"))
        passed = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in self._report.unread.items())
        if passed:
            self._console.print(Text(f"passed over in folders: {passed}", style="dim"))

    def _print_source(self, source: SourceReport) -> None:
        facts = source.facts
        span = self._clock.span_of([(source.first_time, source.last_time)])
        parts = [f"read {count_text(facts.lines, 'line')}", size_text(facts.bytes)]
        parts += [f"events {span}"] if span else []
        parts.append(safe(facts.path, 200))
        self._console.print(Text(_DOT.join(parts), style="dim"))
        if facts.unread:
            reasons = ", ".join(f"{reason.replace('_', ' ')} ({count})" for reason, count in facts.unread.items())
            self._print_indented(f"not read: {reasons}", "yellow")
        for doubles in doubles_text(source):
            self._print_indented(doubles, "dim")

    def _print_left_off(self, count: int, what: str) -> None:
        """Says how many of a list are not shown; nothing where all are."""
        if count > 0:
            more = f"{count} more" if what == "other" else f"{count_text(count, what)} more"
            self._print_indented(f"… and {more}; --format json has all of them", "dim")

    def _print_indented(self, text: str, style: str = "") -> None:
        self._print_line(Text(text, style=style))

    def _print_line(self, line: Text) -> None:
        self._console.print(Padding(line, (0, 0, 0, _INDENT), expand=False))


def _badge(severity: str) -> Text:
    return Text.assemble((f"{severity.upper():<8}", _STYLES[severity]))  # a base style would colour the gap behind it, too


def _evidence(finding: Finding) -> list[Evidence]:
    """The first and the last place of what is critical, the first of what is not."""
    places = finding.evidence
    return [places[0], places[-1]] if finding.severity == "critical" and len(places) > 1 else list(places[:1])


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if word == "critical" or count == 1 else f"{count} {word}s"


def _end_of(place: str, room: int) -> str:
    """A place that fits, with its line: what is left out stands in front."""
    return place if len(place) <= room else f"…{place[len(place) - room + 1 :]}"
