"""The form of the watch's configuration: which tables the file has, which keys each may hold, and both in words.

A table may hold the settings of several layers: a ``[[receiver]]`` has an address for ``respond`` and rules for ``core``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from recompile_watch.core.bounds import at_least, insist, loopback_of
from recompile_watch.core.delivery import DeliverySettings
from recompile_watch.core.matchers import Matcher, parse_matcher
from recompile_watch.core.models import MODES
from recompile_watch.core.modes import COMPILED
from recompile_watch.core.retention import RetentionSettings
from recompile_watch.core.watch_settings import Receiver, WatchedSource, WatchSettings
from recompile_watch.respond.diagnose_settings import DiagnoseSettings
from recompile_watch.respond.receivers import ReceiverSettings
from recompile_watch.settings import json_schema, reference
from recompile_watch.sources.follow_settings import FollowSettings


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the lines of a source come from: one of path, journal, stdin.

    path: a file or a pattern such as "/srv/bot/*.log", or a list of them; rotated siblings are found by
    themselves. journal: a systemd unit, or "*" for all.
    stdin: standard input. timezone: of lines without one, such as "UTC"; default the local one.
    """

    path: str | None = None
    paths: tuple[str, ...] = ()
    journal: str | None = None
    stdin: bool = False
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a receiver, an apprise URL: one of url, url_file, credential, env.

    url: the address itself; it is a secret, so the others are better. url_file: a file that holds it. credential: a
    systemd credential that holds it. env: an environment variable that holds it.
    """

    url: str | None = None
    url_file: str | None = None
    credential: str | None = None
    env: str | None = None


@dataclass(frozen=True, slots=True)
class ModelTable:
    """What is declared of a model. declared: "eager", "compiled", or a compile mode. env_file: the file that sets it."""

    declared: str | None = None
    env_file: str | None = None

    def __post_init__(self) -> None:
        if self.declared is not None and self.declared not in (COMPILED, *MODES):
            raise ValueError(f"declared is {self.declared!r:.40}; write one of {', '.join((COMPILED, *MODES))}")


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Prometheus metrics and health. listen: address and port, such as "127.0.0.1:9464"; default none, which is off."""

    listen: str | None = None

    def __post_init__(self) -> None:
        if self.listen is not None and loopback_of(self.listen) is None:
            raise ValueError(f'listen is {self.listen!r:.80}, no loopback address with a port; write one such as "127.0.0.1:9464"')


@dataclass(frozen=True, slots=True)
class HeartbeatSettings:
    """A sign of life to an external dead-man's switch, which alarms when it stops.

    url: asked by GET; a secret. url_file, credential, env: as for a receiver. interval_s: how often.
    """

    url: str | None = None
    url_file: str | None = None
    credential: str | None = None
    env: str | None = None
    interval_s: float = 60.0

    def __post_init__(self) -> None:
        insist(at_least(1, interval=self.interval_s))


@dataclass(frozen=True, slots=True)
class RulesTable:
    """Further detection rules. paths: folders of rule files."""

    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class General:
    """The top of the file.

    state_dir: where the watch remembers; default $STATE_DIRECTORY, else ~/.local/state/recompile-watch.
    poll_interval_s: how often sources are looked at where the system cannot wake the watch.
    models, metrics, heartbeat, diagnose, rules, retention: tables of their own.
    """

    state_dir: str | None = None
    poll_interval_s: float = 1.0
    models: Mapping[str, ModelTable] = field(default_factory=dict)
    metrics: MetricsSettings = MetricsSettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    diagnose: DiagnoseSettings = field(default_factory=DiagnoseSettings)
    rules: RulesTable = RulesTable()
    retention: RetentionSettings = field(default_factory=RetentionSettings)

    def __post_init__(self) -> None:
        insist(at_least(0.01, poll_interval=self.poll_interval_s))


# Which settings classes make up each table of the file; a name stands once.
TABLES: Mapping[str, tuple[type, ...]] = {
    "": (General,),
    "[[source]]": (Origin, FollowSettings, WatchedSource),
    "[[receiver]]": (Address, ReceiverSettings, DeliverySettings, Receiver),
    "[watch]": (WatchSettings,),
}
# Fields that the file does not name: they are made of other keys.
_GIVEN = frozenset({"receivers", "sources", "paths", "runs", "looks"})
AS_TEXT: Mapping[type, Callable[[str], object]] = {Matcher: parse_matcher}


def config_reference() -> Iterator[tuple[str, str, str, str, str]]:
    """Every key of the file: its table, its name, its form, its default, what it means."""
    for table, kinds in TABLES.items():
        rows = {}
        for kind in kinds:
            rows.update({row[0]: row for row in reference(kind, as_text=AS_TEXT) if not _is_given(kind, row[0])})
        yield from ((table, *row) for row in rows.values())


def config_schema() -> dict[str, object]:
    """The file as a JSON Schema, for editors."""
    tables = {name: _joined_schema(kinds) for name, kinds in TABLES.items()}
    top = tables[""]
    properties = top["properties"]
    assert isinstance(properties, dict)
    lists = {name: {"type": "array", "items": tables[f"[[{name}]]"]} for name in ("source", "receiver")}
    whole = {**properties, **lists, "watch": tables["[watch]"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "recompile-watch watch",
        **top,
        "properties": whole,
        "required": ["source"],
    }


def _is_given(kind: type, name: str) -> bool:
    first = name.partition(".")[0].strip("[]")
    return (first in _GIVEN and kind is not RulesTable) or (kind is WatchSettings and first == "models")


def _joined_schema(kinds: Sequence[type]) -> dict[str, object]:
    properties: dict[str, object] = {}
    for kind in kinds:
        found = json_schema(kind, as_text=AS_TEXT)["properties"]
        assert isinstance(found, dict)
        properties.update({name: value for name, value in found.items() if not _is_given(kind, name)})
    return {"type": "object", "properties": properties, "additionalProperties": False}
