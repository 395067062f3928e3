"""What the daemon knows, as JSON values and as text: status and incidents."""

from collections.abc import Iterable, Mapping, Sequence

from recompile_watch.core.units import duration_text
from recompile_watch.report.safe import safe
from recompile_watch.report.times import ago_text, count_text, iso_text, size_text, time_text

STATUS_SCHEMA = "recompile-watch/status/1"
_ORDER = ("critical", "warning", "info")
_STATES = ("open", "acknowledged", "silenced", "resolved")
Row = Mapping[str, object]
_NO_FILE: Row = {"problem": "leads to no file yet"}  # what is said of a source without a stream


def status_to_json(
    daemon: Row | None, progress: Mapping[str, Sequence[Row]], incidents: Iterable[Row], outbox: Iterable[Row], silences: Iterable[Row]
) -> dict[str, object]:
    """The status as the contract has it. daemon: None while none runs. progress: of each source's streams."""
    rows = list(incidents)
    states = [str(row.get("state")) for row in rows]
    parcels = [str(row.get("state")) for row in outbox]
    return {
        "schema": STATUS_SCHEMA,
        "daemon": None if daemon is None else {**daemon, "started_at": iso_text(_number(daemon, "started_at"))},
        "sources": [_source(name, stream) for name, streams in progress.items() for stream in streams or (_NO_FILE,)],
        "incidents": {state: states.count(state) for state in _STATES},
        "outbox": {"due": sum(state in ("due", "sending") for state in parcels), "dead": parcels.count("dead")},
        "diagnosis": _diagnosis(rows, is_live=daemon is not None),
        "silences": [dict(silence) for silence in silences],
        "deploy": None,
    }  # fmt: skip


def incident_to_json(row: Row) -> dict[str, object]:
    """An incident as the contract has it, and everything else that is known of it."""
    names = ("id", "fingerprint", "kind", "severity", "state", "model", "function", "file", "line_no", "count")
    rest = {name: value for name, value in row.items() if name not in (*names, "since", "until")}
    times = {"first_time": iso_text(_number(row, "since")), "last_time": iso_text(_number(row, "until"))}
    return {**{name: row.get(name) for name in names}, **times, **rest}


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Worst first, then the latest."""

    def rank(row: Row) -> tuple[int, int, float]:
        severity, state = str(row.get("severity")), str(row.get("state"))
        return (
            _STATES.index(state) if state == "resolved" else 0, _ORDER.index(severity) if severity in _ORDER else len(_ORDER), -_number(row, "until"),
        )  # fmt: skip

    return sorted(rows, key=rank)


def status_text(status: Row, *, now: float) -> str:
    """The status for a person."""
    daemon = status.get("daemon")
    lines = ["no watch runs here; what follows is what the last one knew"]
    if isinstance(daemon, Mapping):
        health = "" if daemon.get("healthy") else "; its state cannot be written"
        lines = [f"watch running as process {daemon.get('pid')} since {daemon.get('started_at')}{health}"]
    sources = status.get("sources")
    for source in sources if isinstance(sources, list) else []:
        progress, path = _progress_text(source, now), None if source["path"] is None else safe(str(source["path"]))
        is_named = path is None or progress.startswith(path)
        lines.append(f"  {safe(str(source['name']))}: {progress if is_named else f'{path}: {progress}'}")
    incidents, outbox = status.get("incidents"), status.get("outbox")
    if isinstance(incidents, Mapping):
        lines.append("incidents: " + ", ".join(f"{incidents.get(state, 0)} {state}" for state in _STATES))
    if isinstance(outbox, Mapping):
        lines.append(f"messages: {outbox.get('due')} waiting, {outbox.get('dead')} not delivered")
    diagnosis = status.get("diagnosis")
    if isinstance(diagnosis, Mapping):
        lines += _diagnosis_lines(diagnosis)
    return "\n".join(lines) + "\n"


def incidents_text(rows: Sequence[Row], *, now: float) -> str:
    """The incidents, one a line and what it says below."""
    if not rows:
        return "no incidents\n"
    lines: list[str] = []
    for row in rows:
        state = "" if row.get("state") == "open" else f" ({row.get('state')})"
        because = f" (explained by {row['explained_by']})" if row.get("explained_by") else ""
        lines.append(f"{row.get('id')}  {row.get('severity')!s:<8}  {safe(str(row.get('title')))}{state}{because}")
        lines.append(f"{'':24}{_seen_text(row, now)}")
    return "\n".join(lines) + "\n"


def incident_text(row: Row, *, now: float) -> str:
    """One incident with everything that is known of it."""
    lines = [f"{str(row.get('severity')).capitalize()}: {safe(str(row.get('title')))}", f"  {_seen_text(row, now)}", ""]
    lines += [f"  {label}: {safe(str(value))}" for label, value in _facts(row) if value]
    lines += [f"  {label}: {safe(text, 800)}" for label, text in _run_facts(row)]
    places = [f"  {_place_text(place)}" for place in _items(row, "places")]
    lines += ["", "Where:", *places] if places else []
    lines += ["", f"What it costs: {safe(str(row.get('consequence') or 'unknown'))}"]
    for number, advice in enumerate(_items(row, "advice")):
        lines += ["", f"{'Do this' if number == 0 else 'Else'}: {safe(str(advice.get('title')))}"]
        lines += [f"    {safe(line, 2000)}" for line in str(advice.get("apply")).splitlines()]
        lines += [
            f"  {label}: {safe(str(advice[name]), 600)}"
            for label, name in (("Where", "where"), ("Expect", "expect"), ("Caution", "caution"))
            if advice.get(name)
        ]
    return "\n".join(lines) + "\n"


def _facts(row: Row) -> list[tuple[str, object]]:
    ack, headroom = row.get("acknowledged"), row.get("headroom")
    file, line = row.get("file"), row.get("line_no")
    return [
        ("id", row.get("id")), ("kind", row.get("kind")), ("state", row.get("state")), ("model", row.get("model")), ("function", row.get("function")),
        ("file", f"{file}:{line}" if file and line else file), ("symbols", ", ".join(map(str, _list(row, "symbols")))), ("cause", row.get("cause")),
        ("recompile limit", f"{headroom.get('entries')} of {headroom.get('limit') or '?'} in use" if isinstance(headroom, Mapping) else None),
        ("acknowledged", _acknowledged(ack) if isinstance(ack, Mapping) else None), ("over", _over(row)),
        ("explained by", row.get("explained_by")), ("explains", ", ".join(map(str, _list(row, "explains")))), ("fingerprint", row.get("fingerprint")),
    ]  # fmt: skip


def _acknowledged(ack: Row) -> str:
    until = f"until {time_text(_number(ack, 'until'))}" if ack.get("until") else "until it is over"
    return f"{until} by {ack.get('who')}" + (f": {ack['why']}" if ack.get("why") else "")


def _over(row: Row) -> str | None:
    return f"since {time_text(_number(row, 'resolved_at'))}: {row.get('ended_because')}" if row.get("resolved_at") else None


def _run_facts(row: Row) -> list[tuple[str, str]]:
    """What was measured of an incident, and whether that goes on."""
    run = row.get("diagnosis")
    if not isinstance(run, Mapping):
        return []
    found = []
    if run.get("text"):
        at = f" ({time_text(_number(run, 'measured_at'))})" if run.get("measured_at") else ""
        found.append(("measured", f"{run['text']}{at}"))
    if run.get("state") == "running":
        found.append(("diagnosis", f"running since {time_text(_number(run, 'started_at'))}"))
    elif run.get("state") == "waiting":
        found.append(("diagnosis", f"waiting: {run['why']}" if run.get("why") else "waiting for its turn"))
    return found


def _diagnosis(rows: Sequence[Row], *, is_live: bool) -> dict[str, object]:
    """The run that goes on, and how many wait."""
    runs = [(row.get("id"), run) for row in rows if isinstance(run := row.get("diagnosis"), Mapping)]
    now = next(((name, run) for name, run in runs if run.get("state") == "running" and is_live), None)
    return {
        "running": None if now is None else {"incident": now[0], "since": iso_text(_number(now[1], "started_at"))},
        "waiting": sum(run.get("state") == "waiting" for _, run in runs),
    }  # fmt: skip


def _diagnosis_lines(diagnosis: Row) -> list[str]:
    running, waiting = diagnosis.get("running"), diagnosis.get("waiting")
    parts = [f"incident {running.get('incident')} is measured since {running.get('since')}"] if isinstance(running, Mapping) else []
    parts += [f"{waiting} waiting"] if waiting else []
    return [f"diagnosis: {', '.join(parts)}"] if parts else []


def _seen_text(row: Row, now: float) -> str:
    since, until, count = _number(row, "since"), _number(row, "until"), row.get("count")
    times = count_text(count, "event") if isinstance(count, int) else "events"
    ago = ago_text(until, now)
    lasted = f" over {duration_text(until - since)}" if until - since >= 1 else ""
    return f"{times}{lasted}, last {time_text(until)}{f' ({ago})' if ago else ''}"


def _place_text(place: Row) -> str:
    return f"{safe(str(place.get('source')))}:{place.get('line')}: {safe(str(place.get('text')), 300)}"


def _source(name: str, stream: Row) -> dict[str, object]:
    grown = stream.get("last_growth_at")
    return {
        "name": name, "path": stream.get("stream"), "position": stream.get("position"), "size": stream.get("size_bytes"),
        "lag_bytes": stream.get("lag_bytes"), "last_line_at": iso_text(float(grown)) if isinstance(grown, int | float) else None,
        "generation": stream.get("generation"), "gaps": stream.get("gaps"), "problem": stream.get("problem"),
    }  # fmt: skip


def _progress_text(source: Row, now: float) -> str:
    if source.get("problem"):
        return safe(str(source["problem"]))
    position, lag, gaps = source.get("position"), source.get("lag_bytes"), source.get("gaps")
    parts = [f"read to {size_text(position)}" if isinstance(position, int) else "not read yet"]
    parts += [f"{size_text(lag)} behind"] if isinstance(lag, int) and lag else []
    parts += [f"last line {source['last_line_at']}"] if source.get("last_line_at") else []
    parts += [count_text(gaps, "gap")] if isinstance(gaps, int) and gaps else []
    return ", ".join(parts)


def _items(row: Row, name: str) -> list[Row]:
    return [item for item in _list(row, name) if isinstance(item, Mapping)]


def _list(row: Row, name: str) -> list[object]:
    value = row.get(name)
    return value if isinstance(value, list) else []


def _number(row: Row, name: str) -> float:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
