"""The report as one page of HTML: findings with what to do, decisions, and charts of what the log shows over time."""

from collections.abc import Iterator

from recompile_watch.core.analysis import Report
from recompile_watch.core.findings import severities
from recompile_watch.report import charts, frames, listing
from recompile_watch.report.blocks import Block, blocks_of
from recompile_watch.report.cards import Cards, choice
from recompile_watch.report.page import Frame, Part, page
from recompile_watch.report.safe import safe
from recompile_watch.report.times import Clock, count_text, thousands
from recompile_watch.report.words import short_names

MAX_CARDS = 50
MAX_NOTES = 100
_STATUS = {"ok": "OK", "warning": "Warning", "critical": "Critical", "unknown": "Unknown"}
_WORDS = {"critical": "Critical", "warning": "Warning", "info": "Note"}
_LIMIT_KINDS = frozenset({"recompile", "recompile_limit_hit", "recompile_limit_error"})
_NOTHING = {
    "ok": "Nothing at or over warning level was found.",
    "unknown": "Nothing was found, but the evidence is incomplete: that does not mean that all is well.",
}


def report_to_html(report: Report, *, generated_at: str, tool_version: str) -> str:
    """The page. Two pages of one report differ in ``generated_at`` only."""
    times = [time for source in report.sources for time in (source.first_time, source.last_time)]
    clock = Clock([*times, *(time for f in report.findings for time in (f.first_time, f.last_time))])
    names = short_names([source.facts.path for source in report.sources])
    parts = list(_parts(report))
    frame = Frame(
        report.status, _STATUS[report.status], _subject(report, names), _about(report, clock), _contents(report, parts), generated_at, tool_version
    )  # fmt: skip
    return page(
        "analysis.html", frame, **_findings(report, Cards(clock, names)), numbers=_numbers(report), parts=parts, absent=_absent(report, parts),
        overview_tables=[listing.sources_listing(report, clock)], problems=[safe(text, 4096) for text in report.problems], words=_WORDS,
    )  # fmt: skip


def _subject(report: Report, names: dict[str, str]) -> str:
    return safe(", ".join(names.values()), 80) if 0 < len(names) <= 2 else count_text(len(report.sources), "source")


def _about(report: Report, clock: Clock) -> str:
    torch = f"torch {safe(report.torch_version, 30)}" if report.torch_version else "torch version unknown"
    span = clock.span_of((source.first_time, source.last_time) for source in report.sources)
    return " · ".join(part for part in (clock.head(), span, torch) if part)


def _numbers(report: Report) -> list[tuple[str, str, str]]:
    """What stands on the tiles: name, number, and its severity where it has one."""
    numbers = severities(tuple(block.head for block in blocks_of(report.findings) if block.head.counts))
    return [
        ("critical", str(numbers["critical"]), "critical" if numbers["critical"] else ""),
        ("warnings", str(numbers["warning"]), "warning" if numbers["warning"] else ""),
        ("notes", str(_notes(report)), ""),
        ("events", thousands(sum(report.counts.values())), ""),
        ("lines read", thousands(sum(source.facts.lines for source in report.sources)), ""),
    ]


def _findings(report: Report, cards: Cards) -> dict[str, object]:
    blocks = blocks_of(report.findings)
    loud = [block for block in blocks if _is_loud(block)]
    notes = [finding for block in blocks if not _is_loud(block) for finding in block.findings]
    return {
        "cards": [cards.card(block) for block in loud[:MAX_CARDS]], "cards_left_off": max(0, len(loud) - MAX_CARDS),
        "notes": [cards.entry(finding) for finding in notes[:MAX_NOTES]], "notes_left_off": max(0, len(notes) - MAX_NOTES),
        "choices": [choice(decision) for decision in report.decisions],
        "nothing_found": _NOTHING.get(report.status, "Nothing at or over warning level was found."),
    }  # fmt: skip


def _is_loud(block: Block) -> bool:
    return block.head.severity != "info" and block.head.counts


def _notes(report: Report) -> int:
    """How many notes are listed."""
    return sum(len(block.findings) for block in blocks_of(report.findings) if not _is_loud(block))


def _parts(report: Report) -> Iterator[Part]:
    """The sections for which the log holds anything."""
    tables = frames.time_tables(report)
    if any(finding.baseline for finding in report.findings):
        yield Part("baseline", "Against the baseline", tables=(listing.baseline_listing(report),))
    if report.counts:
        yield _events(report, tables)
    limits = frames.limits_table([finding for finding in report.findings if finding.kind in _LIMIT_KINDS and finding.baseline != "gone"])
    if len(limits):
        shown = listing.limits_listing(limits)
        drawn = charts.limits_chart(limits) if limits["entries"].notna().any() else None
        yield Part("limits", "Recompiles", picture=drawn, alternatives=(shown,) if drawn else (), tables=() if drawn else (shown,))
    yield from _returns(report)
    if report.series.inference.n:
        drawn = charts.latency_chart(tables.latency, tables.zone) if len(tables.latency) > 1 else None
        times = (listing.latency_times_listing(tables),) if drawn else ()
        yield Part("latency", "Latency", picture=drawn, alternatives=times, tables=(listing.latency_listing(report),))
    if report.series.gpu_memory:
        drawn = charts.memory_chart(tables.memory, tables.zone) if tables.memory["begin"].nunique() > 1 else None
        times = (listing.memory_times_listing(tables),) if drawn else ()
        yield Part("memory", "GPU memory", picture=drawn, alternatives=times, tables=(listing.stages_listing(report),))
    quotes = frames.quotes_table(report)
    if len(quotes):
        yield Part("quotes", "Quotes", picture=charts.quotes_chart(quotes), alternatives=(listing.quotes_listing(quotes),))


def _events(report: Report, tables: frames.TimeTables) -> Part:
    counts = listing.counts_listing(report)
    if tables.events["begin"].nunique() < 2:
        when = "All dated events of this log lie close together." if len(tables.events) else "No event of this log carries a time."
        return Part("events", "Events", when, tables=(counts,))
    lanes = _lanes(report)
    drawn = charts.events_chart(tables, dict(list(lanes.items())[: charts.MAX_LANES]))
    more = len(lanes) - charts.MAX_LANES
    lead = f"{count_text(more, 'more kind')} of events stand in the table only." if more > 0 else ""
    folded = (counts, *((listing.marks_listing(tables),) if len(tables.marks) else ()))
    return Part("events", "Events", lead, drawn, (listing.events_listing(tables),), folded=folded)


def _lanes(report: Report) -> dict[str, str]:
    """The kinds of events that carry a time: those of findings first, worst first, each with its severity."""
    dated = {kind for one in report.timeline.slices for kind in one.counts}
    lanes: dict[str, str] = {}
    for finding in report.findings:
        if finding.kind in dated:
            lanes.setdefault(finding.kind, finding.severity)
    rest = sorted(dated - set(lanes), key=lambda kind: (-report.counts.get(kind, 0), kind))
    return {safe(kind, frames.NAME_CHARS): severity for kind, severity in [*lanes.items(), *((kind, "info") for kind in rest)]}


def _returns(report: Report) -> Iterator[Part]:
    series = report.series
    folded = ((listing.daily_listing(report),) if series.strategy_daily_return else ()) + (
        (listing.losses_listing(report),) if series.validation_loss else ()
    )
    if not series.strategy_return:
        if folded:
            yield Part("returns", "Returns", tables=folded)
        return
    returns = frames.returns_table(report)
    shown = listing.returns_listing(returns)
    drawn = charts.returns_chart(returns) if returns["return"].notna().any() else None
    left_off = series.strategy_rows_left_off
    lead = f"Of the log's rows {count_text(left_off, 'later one')} stand for their latest value only." if left_off else ""
    yield Part("returns", "Returns", lead, drawn, (shown,) if drawn else (), () if drawn else (shown,), folded)


def _contents(report: Report, parts: list[Part]) -> list[tuple[str, str, str]]:
    blocks = blocks_of(report.findings)
    loud = sum(map(_is_loud, blocks))
    notes = _notes(report)
    found = [("overview", "Overview", ""), ("findings", "Findings", str(loud) if loud else "")]
    found += [("notes", "Notes", str(notes))] if notes else []
    found += [("decisions", "Decisions", str(len(report.decisions)))] if report.decisions else []
    return [*found, *((part.id, part.title, "") for part in parts)]


def _absent(report: Report, parts: list[Part]) -> str:
    """What the page would show if the log held it."""
    there = {part.id for part in parts}
    names = {"limits": "recompiles", "returns": "returns", "latency": "latency", "memory": "GPU memory", "quotes": "quotes"}
    missing = [name for id, name in names.items() if id not in there] + ([] if report.decisions else ["a model to decide about"])
    return ", ".join(missing)
