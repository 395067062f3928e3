"""The daemon's configuration: one TOML file in, each layer's own settings out, all mistakes at once.

A table may hold the settings of several layers: a ``[[receiver]]`` has an address for ``respond`` and rules for ``core``.
"""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from pathlib import Path

from recompile_watch.core.delivery import DeliverySettings
from recompile_watch.core.errors import ConfigError
from recompile_watch.core.matchers import Matcher, parse_matcher
from recompile_watch.core.retention import RetentionSettings
from recompile_watch.core.watch_settings import DeclaredModel, Receiver, RunSettings, WatchedSource, WatchSettings
from recompile_watch.respond.diagnose_settings import DiagnoseSettings
from recompile_watch.respond.receivers import ReceiverSettings
from recompile_watch.settings import Mistakes, json_schema, keys_of, note_unknown, read_table, reference
from recompile_watch.sources.follow_settings import FollowSettings
from recompile_watch.zones import parse_zone

MAX_CONFIG_BYTES = 1 << 20
MAX_SECRET_BYTES = 1 << 16
CREDENTIALS = "CREDENTIALS_DIRECTORY"  # systemd.exec(5), LoadCredential=
STATE_FOLDER = "STATE_DIRECTORY"
_BY_HAND = "; systemd hands it to the unit, by hand set CREDENTIALS_DIRECTORY to the folder that holds it"
UNIT_STATE_FOLDER = Path("/var/lib/recompile-watch")  # the unit's StateDirectory=


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


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Prometheus metrics and health. listen: address and port, such as "127.0.0.1:9464"; default none, which is off."""

    listen: str | None = None


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


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """One source: where it comes from, its zone (None: local), and how its files are followed."""

    name: str
    origin: Origin
    zone: tzinfo | None
    follow: FollowSettings


@dataclass(frozen=True, slots=True)
class WatchConfig:
    """The whole configuration. heartbeat_url is a secret."""

    file: Path
    state_folder: Path
    general: General
    sources: tuple[SourceConfig, ...]
    receivers: tuple[ReceiverSettings, ...]
    deliveries: tuple[DeliverySettings, ...]
    watch: WatchSettings
    heartbeat_url: str | None = field(default=None, repr=False)

    @property
    def rule_folders(self) -> list[Path]:
        """The folders of the user's own rules."""
        return [Path(path) for path in self.general.rules.paths]


def read_config(file: Path, environment: Mapping[str, str] = os.environ) -> WatchConfig:
    """The configuration in a file. Raises ConfigError with all mistakes, one line each."""
    table = _toml(file)
    mistakes = Mistakes(str(file), [], _AS_TEXT)
    watch_table = _table(table.pop("watch", {}), "watch", mistakes)
    source_tables = _tables(table.pop("source", []), "source", mistakes)
    receiver_tables = _tables(table.pop("receiver", []), "receiver", mistakes)
    general = read_table(General, table, "", mistakes) or General()
    sources = [source for index, item in enumerate(source_tables, 1) if (source := _source(item, f"source[{index}]", file.parent, mistakes))]
    receivers = [found for index, item in enumerate(receiver_tables, 1) if (found := _receiver(item, f"receiver[{index}]", environment, mistakes))]
    if not source_tables:
        mistakes.add("", 'no [[source]]; write one with a name and a path, such as path = "/srv/bot/*.log"')
    _note_twins([source.name for source, _ in sources], "source", mistakes)
    _note_twins([receiver.name for receiver, _, _ in receivers], "receiver", mistakes)
    models = tuple(DeclaredModel(name, model.declared) for name, model in general.models.items() if model.declared is not None)
    given = {
        "receivers": tuple(rule for _, _, rule in receivers), "sources": tuple(watched for _, watched in sources), "models": models,
        "runs": _runs(general.diagnose),
    }  # fmt: skip
    watch = read_table(WatchSettings, watch_table, "watch", mistakes, given)
    beat = general.heartbeat
    url = _secret(Address(beat.url, beat.url_file, beat.credential, beat.env), "heartbeat", environment, mistakes, is_needed=False)
    if url is not None and not url.startswith(("http://", "https://")):
        mistakes.add("heartbeat", "its address is no http or https address; write the one that your dead-man's switch gave you")
    folder = _state_folder(general.state_dir, environment, mistakes)
    if mistakes.lines or watch is None:
        raise ConfigError("\n".join(mistakes.lines))
    followed = tuple(replace(source, follow=replace(source.follow, excluded=(*source.follow.excluded, str(folder)))) for source, _ in sources)
    addresses, deliveries = tuple(receiver for receiver, _, _ in receivers), tuple(delivery for _, delivery, _ in receivers)
    return WatchConfig(file, folder, general, followed, addresses, deliveries, watch, url)


def readable_receivers(file: Path, environment: Mapping[str, str] = os.environ) -> list[ReceiverSettings]:
    """Those receivers of a wrong configuration that can be reached: somebody has to be told. Raises ConfigError if it is no TOML."""
    found: list[ReceiverSettings] = []
    for item in _tables(_toml(file).get("receiver", []), "receiver", Mistakes(str(file), [], _AS_TEXT)):
        receiver = _receiver(item, "receiver", environment, Mistakes(str(file), [], _AS_TEXT))
        found += [receiver[0]] if receiver is not None and receiver[0].url else []
    return found


# Which settings classes make up each table of the file; a name stands once.
_TABLES: Mapping[str, tuple[type, ...]] = {
    "": (General,),
    "[[source]]": (Origin, FollowSettings, WatchedSource),
    "[[receiver]]": (Address, ReceiverSettings, DeliverySettings, Receiver),
    "[watch]": (WatchSettings,),
}
# Fields that the file does not name: they are made of other keys.
_GIVEN = frozenset({"receivers", "sources", "paths", "runs"})
_AS_TEXT: Mapping[type, Callable[[str], object]] = {Matcher: parse_matcher}


def config_reference() -> Iterator[tuple[str, str, str, str, str]]:
    """Every key of the file: its table, its name, its form, its default, what it means."""
    for table, kinds in _TABLES.items():
        rows = {}
        for kind in kinds:
            rows.update({row[0]: row for row in reference(kind, as_text=_AS_TEXT) if not _is_given(kind, row[0])})
        yield from ((table, *row) for row in rows.values())


def config_schema() -> dict[str, object]:
    """The file as a JSON Schema, for editors."""
    tables = {name: _joined_schema(kinds) for name, kinds in _TABLES.items()}
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
        found = json_schema(kind, as_text=_AS_TEXT)["properties"]
        assert isinstance(found, dict)
        properties.update({name: value for name, value in found.items() if not _is_given(kind, name)})
    return {"type": "object", "properties": properties, "additionalProperties": False}


def default_state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the watch remembers when nothing else is said."""
    given = environment.get(STATE_FOLDER, "").partition(":")[0]
    if given:
        return Path(given)
    base = environment.get("XDG_STATE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".local" / "state") / "recompile-watch"
    except RuntimeError:  # the user of a service may have no home
        return UNIT_STATE_FOLDER


def _state_folder(given: str | None, environment: Mapping[str, str], mistakes: Mistakes) -> Path:
    try:
        return Path(given).expanduser() if given else default_state_folder(environment)
    except RuntimeError:
        mistakes.add("state_dir", "the home folder in it is not known; write the whole path")
        return Path()


def _runs(diagnose: DiagnoseSettings) -> RunSettings | None:
    """What alerts start; None where nothing."""
    if not diagnose.on_alert or diagnose.model is None:
        return None
    return RunSettings(diagnose.model, diagnose.wait_s, diagnose.pause_s, diagnose.give_up_s, diagnose.cooldown_s)


def _source(table: Mapping[str, object], place: str, folder: Path, mistakes: Mistakes) -> tuple[SourceConfig, WatchedSource] | None:
    table = (
        {**table, "paths": [table["path"]]}
        if isinstance(table.get("path"), str)
        else {**table, **({"paths": table["path"]} if "path" in table else {})}
    )
    table.pop("path", None)
    note_unknown({**table}, {"path", *_names(Origin), *_names(FollowSettings), *_names(WatchedSource)}, place, mistakes)
    origin = read_table(Origin, _part(table, Origin), place, mistakes)
    given = {"paths": tuple(str(folder / path) for path in origin.paths)} if origin else {}
    follow = read_table(
        FollowSettings, {name: item for name, item in _part(table, FollowSettings).items() if name != "paths"}, place, mistakes, given
    )
    zone = _zone(origin.timezone, place, mistakes) if origin else None
    if origin is not None and sum((bool(origin.paths), origin.journal is not None, origin.stdin)) != 1:
        mistakes.add(place, 'a source has one of path, journal and stdin; write path = "/srv/bot/*.log"')
    if origin is None or follow is None:
        return None
    watched = read_table(WatchedSource, _part(table, WatchedSource, without="name"), place, mistakes, {"name": follow.name})
    if watched is None:
        return None
    return SourceConfig(follow.name, origin, zone, follow), watched


def _receiver(
    table: Mapping[str, object], place: str, environment: Mapping[str, str], mistakes: Mistakes
) -> tuple[ReceiverSettings, DeliverySettings, Receiver] | None:
    note_unknown(table, {*_names(Address), *_names(ReceiverSettings), *_names(DeliverySettings), *_names(Receiver)}, place, mistakes)
    address = read_table(Address, _part(table, Address), place, mistakes)
    rule = read_table(Receiver, _part(table, Receiver), place, mistakes)
    url = None if address is None else _secret(address, place, environment, mistakes, is_needed=True)
    if rule is None:
        return None
    settings = read_table(
        ReceiverSettings, _part(table, ReceiverSettings, without="name url"), place, mistakes, {"name": rule.name, "url": url or ""}
    )
    delivery = read_table(DeliverySettings, _part(table, DeliverySettings, without="name"), place, mistakes, {"name": rule.name})
    return None if settings is None or delivery is None else (settings, delivery, rule)


def _secret(address: Address, place: str, environment: Mapping[str, str], mistakes: Mistakes, *, is_needed: bool) -> str | None:
    """The address itself, from where the configuration says; no mistake shows it."""
    ways = [name for name in ("url", "url_file", "credential", "env") if getattr(address, name) is not None]
    if len(ways) != 1:
        if ways or is_needed:
            mistakes.add(
                place, "an address comes from one of url, url_file, credential and env" + (f", not from {' and '.join(ways)}" if ways else "")
            )
        return None
    try:
        found = _secret_by(ways[0], address, environment)
    except (OSError, UnicodeDecodeError, KeyError, RuntimeError) as error:
        mistakes.add(
            f"{place}.{ways[0]}",
            f"cannot be read ({getattr(error, 'strerror', None) or 'it is not there'}); the watch needs the address at its start"
            + (_BY_HAND if ways[0] == "credential" and CREDENTIALS not in environment else ""),
        )
        return None
    if not found:
        mistakes.add(f"{place}.{ways[0]}", "is empty; it holds the address")
    return found


def _secret_by(way: str, address: Address, environment: Mapping[str, str]) -> str:
    if way == "url":
        return (address.url or "").strip()
    if way == "env":
        return environment[address.env or ""].strip()
    file = Path(address.url_file or "").expanduser() if way == "url_file" else Path(environment[CREDENTIALS]) / (address.credential or "")
    with file.open("rb") as stream:
        return stream.read(MAX_SECRET_BYTES).decode().strip()


def _zone(name: str | None, place: str, mistakes: Mistakes) -> tzinfo | None:
    try:
        return None if name is None else parse_zone(name)
    except ValueError as error:
        mistakes.add(f"{place}.timezone", str(error))
        return None


def _toml(file: Path) -> dict[str, object]:
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_CONFIG_BYTES + 1)
        if len(content) > MAX_CONFIG_BYTES:
            raise ConfigError(f"{file}: larger than {MAX_CONFIG_BYTES >> 20} MiB; a configuration is a page of text")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}); --config takes the watch's TOML file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: no TOML: {error}") from None


def _table(value: object, name: str, mistakes: Mistakes) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    mistakes.add(name, f"is a table; write [{name}]")
    return {}


def _tables(value: object, name: str, mistakes: Mistakes) -> list[dict[str, object]]:
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    mistakes.add(name, f"is a list of tables; write [[{name}]]")
    return []


def _names(kind: type) -> list[str]:
    return [key.name for key in keys_of(kind)]


def _part(table: Mapping[str, object], kind: type, without: str = "") -> dict[str, object]:
    """The keys of a table that belong to one of the classes it holds settings of."""
    names = set(_names(kind)).difference(without.split())
    return {name: item for name, item in table.items() if name in names}


def _note_twins(names: Sequence[str], place: str, mistakes: Mistakes) -> None:
    for name in sorted({name for name in names if names.count(name) > 1}):
        mistakes.add(place, f"the name '{name}' stands {names.count(name)} times; each needs its own")
