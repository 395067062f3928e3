"""The ``[diagnose]`` section of the configuration: which interpreter, which workload, and what the diagnostic may take of the machine."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from recompile_watch.core.errors import ConfigError
from recompile_watch.core.profiles import EFFORTS, PROFILES

_DURATION = re.compile(r"(\d{1,6})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZE = re.compile(r"(\d{1,9})(MiB|GiB|MB|GB)")
_BYTES = {"MiB": 1 << 20, "GiB": 1 << 30, "MB": 10**6, "GB": 10**9}


@dataclass(frozen=True, slots=True)
class DiagnoseSettings:
    """What the section may hold.

    python: the interpreter of the worker. workload: ``module:factory``; folder: where its module lies. allow_live_gpu: a GPU that others
    compute on may be used. time_limit: of one worker. cooldown: between two diagnoses of one incident. nice: 0 to 19. cpus: which ones;
    empty for all. threads: of torch; 0 for its own choice. memory_limit: of a worker's process, on the CPU. memory_fraction: of the GPU's
    memory. duty: share of the time that may be spent on calls. bot_log: where the bot prints its latencies; a run stops when they rise.
    """

    python: str | None = None
    workload: str | None = None
    folder: str | None = None
    allow_live_gpu: bool = False
    profile: str = "production"
    mode: str = "quick"
    time_limit_s: float = 600.0
    cooldown_s: float = 6 * 3600.0
    nice: int = 10
    cpus: tuple[int, ...] = ()
    threads: int = 1
    memory_limit_mb: int | None = None
    memory_fraction: float | None = None
    duty: float = 1.0
    bot_log: str | None = None


def settings_of(table: Mapping[str, object], file: str) -> DiagnoseSettings:
    """The settings of the section as TOML gave it. Raises ConfigError with all mistakes, one line each."""
    mistakes: list[str] = []
    values: dict[str, object] = {}
    for key, value in table.items():
        try:
            name, read = _KEYS[key]
            values[name] = read(value)
        except KeyError:
            mistakes.append(f"{file}: [diagnose] has no key '{key}'; it has {', '.join(_KEYS)}")
        except ValueError as error:
            mistakes.append(f"{file}: [diagnose] {key}: {error}")
    if mistakes:
        raise ConfigError("\n".join(mistakes))
    return DiagnoseSettings(**values)  # type: ignore[arg-type]


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("write a text in quotes")
    return value


def _path(value: object) -> str:
    return str(Path(_text(value)).expanduser())


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("write true or false")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1024:
        raise ValueError("write a number from 0 to 1024")
    return value


def _nice(value: object) -> int:
    if _whole(value) > 19:
        raise ValueError("write a number from 0 to 19")
    return _whole(value)


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError("write a share from 0.01 to 1.0")
    return float(value)


def _duration(value: object) -> float:
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('write a duration such as "90s", "15m" or "6h"')
    return float(int(match[1]) * _SECONDS[match[2]])


def _megabytes(value: object) -> int:
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('write a size such as "8GiB" or "500MB"')
    return int(match[1]) * _BYTES[match[2]] // 1_000_000


def _cpus(value: object) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ValueError("write a list of processors such as [0, 1]")
    return tuple(_whole(one) for one in value)


def _profile(value: object) -> str:
    if value not in PROFILES:
        raise ValueError(f"choose of {', '.join(PROFILES)}")
    return str(value)


def _mode(value: object) -> str:
    if value not in EFFORTS:
        raise ValueError(f"choose of {', '.join(EFFORTS)}")
    return str(value)


_KEYS = {
    "python": ("python", _path), "workload": ("workload", _text), "folder": ("folder", _path), "allow_live_gpu": ("allow_live_gpu", _truth),
    "profile": ("profile", _profile), "mode": ("mode", _mode), "time_limit": ("time_limit_s", _duration), "cooldown": ("cooldown_s", _duration),
    "nice": ("nice", _nice), "cpus": ("cpus", _cpus), "threads": ("threads", _whole), "memory_limit": ("memory_limit_mb", _megabytes),
    "memory_fraction": ("memory_fraction", _share), "duty": ("duty", _share), "bot_log": ("bot_log", _path),
}  # fmt: skip
assert {name for name, _ in _KEYS.values()} == {field.name for field in fields(DiagnoseSettings)}
