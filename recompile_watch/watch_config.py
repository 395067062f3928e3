"""The daemon's configuration: one TOML file in, each layer's own settings out, all mistakes at once."""

import os
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from pathlib import Path

from recompile_watch.core.delivery import DeliverySettings
from recompile_watch.core.errors import ConfigError, DeliveryError
from recompile_watch.core.likeness import close_matches
from recompile_watch.core.watch_settings import DeclaredModel, Receiver, RunSettings, WatchedSource, WatchSettings
from recompile_watch.respond.addresses import ping_address
from recompile_watch.respond.diagnose_settings import DiagnoseSettings
from recompile_watch.respond.receivers import ReceiverSettings, check_own_address
from recompile_watch.settings import Mistakes, keys_of, note_unknown, read_table
from recompile_watch.sources.follow_settings import FollowSettings
from recompile_watch.watch_tables import AS_TEXT, Address, General, Origin
from recompile_watch.zones import parse_zone

MAX_CONFIG_BYTES = 1 << 20
MAX_SECRET_BYTES = 1 << 16
CREDENTIALS = "CREDENTIALS_DIRECTORY"  # systemd.exec(5), LoadCredential=
STATE_FOLDER = "STATE_DIRECTORY"
_BY_HAND = "; systemd hands it to the unit, by hand set CREDENTIALS_DIRECTORY to the folder that holds it"
UNIT_STATE_FOLDER = Path("/var/lib/recompile-watch")  # the unit's StateDirectory=


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
    mistakes = Mistakes(str(file), [], AS_TEXT)
    note_unknown(table, {*_names(General), "source", "receiver", "watch"}, "", mistakes)
    watch_table = _table(table.get("watch", {}), "watch", mistakes)
    source_tables = _tables(table.get("source", []), "source", mistakes)
    receiver_tables = _tables(table.get("receiver", []), "receiver", mistakes)
    general = read_table(General, _part(table, General), "", mistakes) or General()
    sources = [source for index, item in enumerate(source_tables, 1) if (source := _source(item, f"source[{index}]", file.parent, mistakes))]
    receivers = [found for index, item in enumerate(receiver_tables, 1) if (found := _receiver(item, f"receiver[{index}]", environment, mistakes))]
    if not source_tables:
        mistakes.add("", 'no [[source]]; write one with a name and a path, such as path = "/srv/bot/*.log"')
    _note_twins([source.name for source, _ in sources], "source", mistakes)
    _note_twins([receiver.name for receiver, _, _ in receivers], "receiver", mistakes)
    _note_strangers(receiver_tables, mistakes)
    models = tuple(DeclaredModel(name, model.declared) for name, model in general.models.items() if model.declared is not None)
    given = {
        "receivers": tuple(rule for _, _, rule in receivers), "sources": tuple(watched for _, watched in sources), "models": models,
        "runs": _runs(general.diagnose), "looks_s": 0.0,
    }  # fmt: skip
    watch = read_table(WatchSettings, watch_table, "watch", mistakes, given)
    beat = general.heartbeat
    url = _secret(Address(beat.url, beat.url_file, beat.credential, beat.env), "heartbeat", environment, mistakes, is_needed=False)
    if url is not None:
        try:
            ping_address(url)
        except DeliveryError as error:
            mistakes.add("heartbeat", f"{error}; write the one that your dead-man's switch gave you")
    folder = _state_folder(general.state_dir, environment, mistakes)
    if mistakes.lines or watch is None:
        raise ConfigError("\n".join(mistakes.lines))
    followed = tuple(replace(source, follow=replace(source.follow, excluded=(*source.follow.excluded, str(folder)))) for source, _ in sources)
    addresses, deliveries = tuple(receiver for receiver, _, _ in receivers), tuple(delivery for _, delivery, _ in receivers)
    return WatchConfig(file, folder, general, followed, addresses, deliveries, watch, url)


def check_kinds(config: WatchConfig, events: Collection[str], raised: Collection[str]) -> None:
    """Raises ConfigError for kinds that nothing ever is: what waits for one would wait for ever.

    events: kinds of events; raised: kinds of incidents that the watch makes of them.
    """
    mistakes = Mistakes(str(config.file), [], AS_TEXT)
    for index, rate in enumerate(config.watch.rates, 1):
        _note_kind(rate.kind, events, f"watch.rates[{index}].kind", mistakes)
    for index, life in enumerate(config.watch.life.resolve_kinds, 1):
        _note_kind(life.kind, {*events, *raised}, f"watch.life.resolve_kinds[{index}].kind", mistakes)
    for index, receiver in enumerate(config.watch.receivers, 1):
        for matcher in receiver.matchers:
            if matcher.field == "kind" and matcher.operator in ("=", "!="):
                _note_kind(matcher.value, {*events, *raised}, f"receiver[{index}].matchers", mistakes)
    if mistakes.lines:
        raise ConfigError("\n".join(mistakes.lines))


def _note_kind(kind: str, known: Collection[str], place: str, mistakes: Mistakes) -> None:
    if kind not in known:
        near = close_matches(kind, known)
        hint = f"did you mean {near[0]!r}?" if near else "recompile-watch rules list has the kinds"
        mistakes.add(place, f"nothing is of the kind '{kind}'; {hint}")


def readable_receivers(file: Path, environment: Mapping[str, str] = os.environ) -> list[ReceiverSettings]:
    """Those receivers of a wrong configuration that can be reached: somebody has to be told. Raises ConfigError if it is no TOML."""
    found: list[ReceiverSettings] = []
    for item in _tables(_toml(file).get("receiver", []), "receiver", Mistakes(str(file), [], AS_TEXT)):
        receiver = _receiver(item, "receiver", environment, Mistakes(str(file), [], AS_TEXT))
        found += [receiver[0]] if receiver is not None and receiver[0].url else []
    return found


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
    note_unknown(table, {*_names(Origin), *_names(FollowSettings), *_names(WatchedSource)}.difference({"paths"}), place, mistakes)
    paths = _paths(table, place, mistakes)
    origin = read_table(Origin, _part(table, Origin, without="path paths"), place, mistakes, {"paths": paths or ()})
    follow = read_table(
        FollowSettings, _part(table, FollowSettings, without="paths"), place, mistakes, {"paths": tuple(str(folder / path) for path in paths or ())}
    )  # fmt: skip
    zone = _zone(origin.timezone, place, mistakes) if origin else None
    if origin is not None and paths is not None and sum((bool(paths), origin.journal is not None, origin.stdin)) != 1:
        mistakes.add(place, 'a source has one of path, journal and stdin; write path = "/srv/bot/*.log"')
    if origin is None or follow is None:
        return None
    watched = read_table(WatchedSource, _part(table, WatchedSource, without="name"), place, mistakes, {"name": follow.name})
    if watched is None:
        return None
    return SourceConfig(follow.name, origin, zone, follow), watched


def _paths(table: Mapping[str, object], place: str, mistakes: Mistakes) -> tuple[str, ...] | None:
    """What the key ``path`` names, one or a list; None where it is neither, which is noted."""
    given = table.get("path", [])
    found = [given] if isinstance(given, str) else given
    if isinstance(found, list) and all(isinstance(path, str) for path in found):
        return tuple(found)
    mistakes.add(f"{place}.path", f"{given!r:.80} is not text or a list of text")
    return None


def _receiver(
    table: Mapping[str, object], place: str, environment: Mapping[str, str], mistakes: Mistakes
) -> tuple[ReceiverSettings, DeliverySettings, Receiver] | None:
    note_unknown(table, {*_names(Address), *_names(ReceiverSettings), *_names(DeliverySettings), *_names(Receiver)}, place, mistakes)
    address = read_table(Address, _part(table, Address), place, mistakes)
    rule = read_table(Receiver, _part(table, Receiver), place, mistakes)
    url = None if address is None else _secret(address, place, environment, mistakes, is_needed=True)
    if url:
        try:
            check_own_address(url)
        except DeliveryError as error:
            mistakes.add(place, str(error))
            url = None
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


def _note_strangers(tables: Sequence[Mapping[str, object]], mistakes: Mistakes) -> None:
    """Notes receivers that name another one which is not there: nobody would be told."""
    known = [name for table in tables if isinstance(name := table.get("name"), str)]
    for index, table in enumerate(tables, 1):
        for key in ("fallback", "escalate_to"):
            name = table.get(key)
            others = [one for one in known if one != table.get("name")]
            if isinstance(name, str) and name not in others:
                mistakes.add(f"receiver[{index}].{key}", f"no other receiver is called '{name}'; there {_are(others)}")


def _are(names: Sequence[str]) -> str:
    return "is none" if not names else f"is {names[0]}" if len(names) == 1 else f"are {', '.join(names)}"


def _note_twins(names: Sequence[str], place: str, mistakes: Mistakes) -> None:
    for name in sorted({name for name in names if names.count(name) > 1}):
        mistakes.add(place, f"the name '{name}' stands {names.count(name)} times; each needs its own")
