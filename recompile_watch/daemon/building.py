"""A configuration and what the store remembers become the parts that the loop drives."""

import os
import socket
from collections.abc import Callable, Iterator, Mapping

from recompile_watch.config import load_catalog, load_matcher, load_rules
from recompile_watch.core.delivery import Outbox
from recompile_watch.core.errors import StoreError
from recompile_watch.core.events import EXTRA_FIELDS, TORCH_KINDS
from recompile_watch.core.findings import KIND_ORDER
from recompile_watch.core.heard import Trouble, TroubleKind
from recompile_watch.core.parcels import Parcel, parcel_from_json
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.watch import Watch
from recompile_watch.daemon.diagnostics import TABLE, Diagnostics, diagnose_command, mark_in
from recompile_watch.daemon.followers import Follower, InputFollower, JournalFollower
from recompile_watch.daemon.loop import HEARTBEAT, Parts
from recompile_watch.daemon.pruning import Pruner
from recompile_watch.daemon.readings import SourceReading
from recompile_watch.daemon.series import Series
from recompile_watch.market import is_market_open
from recompile_watch.notify import sender_command
from recompile_watch.report.watch_kinds import WATCH_KINDS
from recompile_watch.respond.courier import Courier
from recompile_watch.respond.diagnostic_process import DiagnosticProcess
from recompile_watch.respond.receivers import ReceiverSettings
from recompile_watch.respond.worker_process import kill_marked
from recompile_watch.sources.follow import Follower as FileFollower
from recompile_watch.sources.journal import JournalSettings
from recompile_watch.sources.marks import Mark, Watched, mark_from_json
from recompile_watch.sources.wake import Wake
from recompile_watch.store import Changes, Store
from recompile_watch.watch_config import SourceConfig, WatchConfig, check_kinds

HEARTBEAT_DEADLINE_S = 10.0
LEFT_OVER_S = 5.0  # for what a watch that was killed has left behind to be gone


def build(config: WatchConfig, store: Store, *, now: float) -> tuple[Parts, list[Trouble]]:
    """The parts, and what is wrong with what was remembered: each damaged piece is told, and begun anew."""
    rules = rules_of(config)
    troubles: list[Trouble] = []
    if store.quarantined is not None:
        text = f"the state was damaged and lies in {store.quarantined} now; the watch began anew, as at its first start"
        troubles.append(Trouble(TroubleKind.STATE_CORRUPT, "state", text))
    repairs = Changes()
    watch = _watch(config, rules, store, troubles, repairs)
    outbox = Outbox(config.deliveries, _parcels(store, troubles, repairs))
    troubles += outbox.clear_out(now)
    pruner = Pruner(config.general.retention, store, watch.remembers, now)
    pruner.repairs.merge(repairs)
    courier = Courier([*config.receivers, *_heartbeat(config)], sender_command(), os.environ)
    readings = list(_readings(config, store, rules.only(watch.judges), troubles))
    receivers = {receiver.name: receiver for receiver in config.receivers}
    beat_s = None if config.heartbeat_url is None else config.general.heartbeat.interval_s
    wake = Wake(_concerns(readings), on_growth=True) if any(source.origin.paths for source in config.sources) else None
    series, diagnostics = Series(config.general.retention, store, now), _diagnostics(config, store, watch)
    return Parts(store, readings, watch, outbox, courier, pruner, series, receivers, diagnostics, beat_s, wake), troubles


def rules_of(config: WatchConfig) -> Ruleset:
    """The rules of a configuration. Raises RuleError for wrong ones, ConfigError where the configuration waits for what none of them finds."""
    rules = load_rules(config.rule_folders)
    check_kinds(config, {rule.event for rule in rules.rules} | TORCH_KINDS | set(EXTRA_FIELDS), {*WATCH_KINDS, *KIND_ORDER})
    return rules


def _diagnostics(config: WatchConfig, store: Store, watch: Watch) -> Diagnostics:
    """What runs diagnoses; nothing of one that an earlier watch started goes on."""
    for mark in watch.interrupted:
        kill_marked(mark_in(config.state_folder, mark), LEFT_OVER_S)
    settings = config.general.diagnose
    process = DiagnosticProcess(diagnose_command(), os.environ, settings.run_limit_s)
    kept = (int(number) for (number,) in store.load(TABLE))
    return Diagnostics(process, config.file, config.state_folder, settings.model, kept)


def _concerns(readings: list[SourceReading]) -> Callable[[str], bool]:
    """Whether a path in a watched folder concerns a source."""
    return lambda path: any(reading.follower.concerns(path) for reading in readings)


def _heartbeat(config: WatchConfig) -> list[ReceiverSettings]:
    """The external switch as a receiver."""
    url = config.heartbeat_url
    return [] if url is None else [ReceiverSettings(HEARTBEAT, url, deadline_s=HEARTBEAT_DEADLINE_S)]


def _watch(config: WatchConfig, rules: Ruleset, store: Store, troubles: list[Trouble], repairs: Changes) -> Watch:
    memory = {str(name): value for (name,), value in store.load("memory").items()}
    catalog, host = load_catalog(), socket.gethostname()
    try:
        return Watch(config.watch, rules, catalog, memory or None, host=host, is_market_open=is_market_open)
    except StoreError as error:
        troubles.append(Trouble(TroubleKind.STATE_CORRUPT, "memory", f"{error}; incidents begin anew"))
        for name in memory:
            repairs.put("memory", (name,), None)
        return Watch(config.watch, rules, catalog, None, host=host, is_market_open=is_market_open)


def _parcels(store: Store, troubles: list[Trouble], repairs: Changes) -> Iterator[Parcel]:
    for key, value in store.each("outbox"):
        try:
            yield parcel_from_json(value if isinstance(value, Mapping) else {})
        except StoreError as error:
            troubles.append(Trouble(TroubleKind.STATE_CORRUPT, "outbox", str(error)))
            repairs.put("outbox", key, None)


def _readings(config: WatchConfig, store: Store, rules: Ruleset, troubles: list[Trouble]) -> Iterator[SourceReading]:
    matcher = load_matcher(rules)
    marks, states, watched = _marks(store, troubles), store.load("readings"), store.load("facts")
    for source in config.sources:
        saved = {str(stream): state for (name, stream), state in states.items() if name == source.name and isinstance(state, Mapping)}
        follower = _follower(source, marks.get(source.name, []), _watched(watched.get((f"watched/{source.name}",))))
        yield SourceReading(source.name, follower, source.zone, rules, matcher, saved)


def _follower(source: SourceConfig, marks: list[Mark], watched: Watched | None) -> Follower:
    origin = source.origin
    if origin.stdin:
        return InputFollower()
    if origin.journal is not None:
        units = () if origin.journal == "*" else (origin.journal,)
        return JournalFollower(JournalSettings(source.name, units=units, start=source.follow.start), marks[-1] if marks else None)
    return FileFollower(source.follow, marks, watched)


def _marks(store: Store, troubles: list[Trouble]) -> dict[str, list[Mark]]:
    found: dict[str, list[Mark]] = {}
    for (source, *_), value in store.load("marks").items():
        try:
            found.setdefault(str(source), []).append(mark_from_json(value if isinstance(value, Mapping) else {}))
        except StoreError as error:
            troubles.append(Trouble(TroubleKind.STATE_CORRUPT, str(source), str(error)))
    return found


def _watched(value: object) -> Watched | None:
    if not isinstance(value, Mapping):
        return None
    patterns, until = value.get("patterns"), value.get("until")
    return Watched(tuple(patterns), float(until)) if isinstance(patterns, list) and isinstance(until, int | float) else None
