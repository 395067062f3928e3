"""What a person may set of the watch's decisions; every field has a default that makes sense."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from recompile_watch.core.bounds import at_least, at_most, clock_times, insist, zones
from recompile_watch.core.matchers import FIELDS, Matcher
from recompile_watch.core.versions import version_of

Severity = Literal["info", "warning", "critical"]
HOUR_S = 3600.0
DAY_S = 86_400.0
MARKET_ZONE = "America/New_York"


@dataclass(frozen=True, slots=True)
class QuietHours:
    """When a receiver is left alone.

    start, end: ``HH:MM``; an end before the start lies on the next day. timezone: IANA name, default UTC.
    passes: severity from which a notice goes out all the same; default ``critical``.
    """

    start: str
    end: str
    timezone: str = "UTC"
    passes: Severity = "critical"

    def __post_init__(self) -> None:
        insist(clock_times(start=self.start, end=self.end), zones(timezone=self.timezone))


@dataclass(frozen=True, slots=True)
class Receiver:
    """Who is told what, and how often.

    name: as the receiver is called in the configuration.
    min_severity: ``info``, ``warning`` or ``critical``; default ``warning``.
    matchers: all must fit an incident; default none, which fits all.
    group_by: fields of an incident; what differs in one of them goes into another message. Default none: one message.
    critical_wait_s: seconds to wait for more before a critical incident is told; default 0, at once.
    warning_wait_s: the same for milder ones; default 30.
    resolve_wait_s: the same for a critical incident that is over; default 60.
    same_kind_wait_s: after a message about a kind of milder incident, how long further ones of that kind wait, unless
    another message goes out, which takes them along; also how long milder ones that are over wait for each other; 30 min.
    burst: messages that may go out without a pause; default 4.
    pause_s: seconds for which one more of them is allowed; default 60.
    repeat_interval_s: when what still goes on is told again; default 24 h, 0 never.
    tells_resolved: whether it is told when something is over; default yes.
    digest_at: ``HH:MM`` of a daily digest of what was not told by itself and what is still open; default none.
    digest_timezone: IANA name of that time's zone; default UTC.
    quiet_hours: default none.
    escalate_to: name of the receiver that is told when nobody acknowledges a critical incident; default none.
    escalate_after_s: after how long; default 30 min.
    only_escalations: whether it is told of escalations only; default no.
    """

    name: str
    min_severity: Severity = "warning"
    matchers: tuple[Matcher, ...] = ()
    group_by: tuple[str, ...] = ()
    critical_wait_s: float = 0.0
    warning_wait_s: float = 30.0
    resolve_wait_s: float = 60.0
    same_kind_wait_s: float = 1800.0
    burst: int = 4
    pause_s: float = 60.0
    repeat_interval_s: float = DAY_S
    tells_resolved: bool = True
    digest_at: str | None = None
    digest_timezone: str = "UTC"
    quiet_hours: QuietHours | None = None
    escalate_to: str | None = None
    escalate_after_s: float = 1800.0
    only_escalations: bool = False

    def __post_init__(self) -> None:
        unknown = (f"group_by: {name!r:.40} is no field; known are {', '.join(FIELDS)}" for name in self.group_by if name not in FIELDS)
        insist(at_least(1, burst=self.burst), clock_times(digest_at=self.digest_at), zones(digest_timezone=self.digest_timezone), unknown)


@dataclass(frozen=True, slots=True)
class Slot:
    """A stretch of a trading day in which the bot works. start, end: ``HH:MM`` in the market's zone (New York)."""

    start: str
    end: str

    def __post_init__(self) -> None:
        insist(clock_times(start=self.start, end=self.end))


# The bot's analyses; between them its loop sleeps in silence (trade_stock_e2e.py of autumn 2025).
BOT_SCHEDULE = (Slot("09:30", "10:00"), Slot("10:30", "11:00"), Slot("15:00", "15:15"), Slot("22:00", "22:30"))


@dataclass(frozen=True, slots=True)
class WatchedSource:
    """A source and when it should have lines.

    name: as the source is called in the configuration.
    silent_after_s: seconds of watching without a line after which it counts as silent; default 26 h (one day of the
    bot's schedule and some), 0 never.
    schedule: when lines must come on a trading day; default None, the bot's own schedule once the source has shown
    that it is the bot (an ``analysis_start``). An empty one: never.
    slot_grace_s: how long after the end of such a stretch; default 15 min.
    """

    name: str
    silent_after_s: float = 26 * HOUR_S
    schedule: tuple[Slot, ...] | None = None
    slot_grace_s: float = 900.0


@dataclass(frozen=True, slots=True)
class DeclaredModel:
    """How a model is meant to run. declared: ``eager``, ``compiled``, or the compile mode such as ``max-autotune``."""

    name: str
    declared: str


@dataclass(frozen=True, slots=True)
class Rate:
    """Too many events of a kind in a window make an incident ``too_many``.

    kind: of the event. count: how many, at most 1000. window_s: in how many seconds by the log's own time.
    severity: of the incident; default ``critical``.
    """

    kind: str
    count: int
    window_s: float
    severity: Severity = "critical"

    def __post_init__(self) -> None:
        insist(at_least(1, count=self.count, window=self.window_s), at_most(1000, count=self.count))


@dataclass(frozen=True, slots=True)
class ResolveAfter:
    """When incidents of one kind end. kind: of the event. after_s: seconds without such an event."""

    kind: str
    after_s: float


@dataclass(frozen=True, slots=True)
class LifeSettings:
    """When incidents end.

    resolve_after_s: seconds without an event after which an incident is over; default 24 h, one whole schedule.
    resolve_kinds: the same for some kinds; default 2 h for ``bot_error`` and ``synthetic_account``.
    reload_resolves_after_s: an incident of the compiler is over already after this time when its model was loaded, ran
    and was loaded again without it; default 30 min.
    hold_s: how long a condition must be gone before it is over; default 60 s.
    flap_turns, flap_window_s: what comes back so often within this time flaps, and then must be gone for that time;
    default 3 times in 10 min.
    forget_after_s: after how long a resolved incident is forgotten; what comes back before is the same one; default 7 d.
    """

    resolve_after_s: float = DAY_S
    resolve_kinds: tuple[ResolveAfter, ...] = (ResolveAfter("bot_error", 2 * HOUR_S), ResolveAfter("synthetic_account", 2 * HOUR_S))
    reload_resolves_after_s: float = 1800.0
    hold_s: float = 60.0
    flap_turns: int = 3
    flap_window_s: float = 600.0
    forget_after_s: float = 7 * DAY_S

    def __post_init__(self) -> None:
        insist(at_least(1, flap_turns=self.flap_turns))


@dataclass(frozen=True, slots=True)
class CompileSettings:
    """Conditions on compiling.

    headroom: share of the recompile limit in use from which it is told; default 0.75.
    late_recompiles, late_window_s: so many recompiles of a function after warm-up within this time; default 3 in 1 h.
    """

    headroom: float = 0.75
    late_recompiles: int = 3
    late_window_s: float = HOUR_S

    def __post_init__(self) -> None:
        insist(at_least(0.01, headroom=self.headroom), at_most(1, headroom=self.headroom), at_least(1, late_recompiles=self.late_recompiles))


@dataclass(frozen=True, slots=True)
class LevelSettings:
    """When a quantity is above its normal level.

    bound: a level that is too high in any case, in the quantity's unit; default none.
    factor: how many times the normal level is too high. margin: and by how much at least, in the quantity's unit.
    calm_factor: below how many times the normal level it is over.
    normal_from: measurements that the normal level needs; before it is unknown. recent: measurements judged together.
    """

    bound: float | None = None
    factor: float = 1.5
    margin: float = 20.0
    calm_factor: float = 1.2
    normal_from: int = 100
    recent: int = 20

    def __post_init__(self) -> None:
        insist(
            at_least(1, factor=self.factor, calm_factor=self.calm_factor, normal_from=self.normal_from, recent=self.recent),
            at_least(0, margin=self.margin), at_most(self.factor, calm_factor=self.calm_factor),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReturnSettings:
    """When the returns of a symbol's strategy are bad.

    strategies: those that are judged; default the one that the bot trades by.
    bound: a return below it is bad in any case, as a share (0.05 is 5 %); default 0.0: it loses.
    drop: how far below its own normal level, as a share of that; default 0.5.
    margin: and by how much at least; default 0.02.
    normal_from: analyses that the normal level (the median) needs; default 5. window: analyses it is taken from; 20.
    """

    strategies: tuple[str, ...] = ("MaxDiff", "MaxDiffAlwaysOn")
    bound: float = 0.0
    drop: float = 0.5
    margin: float = 0.02
    normal_from: int = 5
    window: int = 20

    def __post_init__(self) -> None:
        insist(
            at_least(0, drop=self.drop, margin=self.margin), at_least(1, normal_from=self.normal_from), at_least(self.normal_from, window=self.window)
        )


@dataclass(frozen=True, slots=True)
class RunSettings:
    """When an alert starts a diagnosis. model: whose incidents the workload stands for.

    wait_s: after the alert, so that the log tells what belongs to it. pause_s: between two runs, also after one that was
    refused. give_up_s: after the alert, when the GPU is never free. cooldown_s: between two diagnoses of one incident.
    """

    model: str
    wait_s: float
    pause_s: float
    give_up_s: float
    cooldown_s: float


def _no_version(text: str | None) -> Iterator[str]:
    if text is not None and version_of(text) is None:
        yield f'torch_version is {text!r:.40}; write one such as "2.9.1"'


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """Everything. torch_version: as the user names it, for wording and advice; default unknown.

    runs: when an alert starts a diagnosis; default never.
    backlog_settles_s: seconds after the last backlog event at which its summary is told; default 10.
    max_incidents: problems that are followed one by one, half of them of one kind; further ones are counted in one incident of
    their own, which is told once; default 500.
    looks_s: how far apart two looks may be, for a watch that only looks from time to time: as each look reads all that came since
    the one before, nothing of that time is unknown. Default 0, for one that runs all the time.
    """

    receivers: tuple[Receiver, ...] = ()
    sources: tuple[WatchedSource, ...] = ()
    models: tuple[DeclaredModel, ...] = ()
    runs: RunSettings | None = None
    looks_s: float = 0.0
    torch_version: str | None = None
    life: LifeSettings = LifeSettings()
    compiling: CompileSettings = CompileSettings()
    latency: LevelSettings = LevelSettings()
    memory: LevelSettings = LevelSettings(factor=1.25, margin=100.0, calm_factor=1.1, normal_from=20, recent=3)
    returns: ReturnSettings = ReturnSettings()
    rates: tuple[Rate, ...] = field(default=(Rate("bot_error", 10, 900.0), Rate("forecast_failure", 30, 900.0), Rate("compile_error", 30, 900.0)))
    backlog_settles_s: float = 10.0
    max_incidents: int = 500

    def __post_init__(self) -> None:
        insist(at_least(2, max_incidents=self.max_incidents), _no_version(self.torch_version))
