"""Durations and sizes as people write them: ``90s``, ``15m``, ``48h``, ``64MiB``."""

import re

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|h|d|w)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>B|kB|KB|MB|GB|KiB|MiB|GiB)")
_BYTES = {"B": 1, "kB": 1000, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MAX_DURATION_S = 10 * 366 * 86_400.0


def parse_duration(text: str) -> float:
    """Seconds in ``90s`` or ``1h30m``. Raises ValueError, which says what to write, for anything else."""
    parts = list(_DURATION.finditer(text.strip()))
    if not parts or "".join(part[0] for part in parts).replace(" ", "") != text.strip().replace(" ", ""):
        raise ValueError(f'\'{text}\' is no duration; write one such as "90s", "15m" or "48h"')
    seconds = sum(float(part["number"]) * _SECONDS[part["unit"]] for part in parts)
    if seconds > MAX_DURATION_S:
        raise ValueError(f"'{text}' is longer than ten years")
    return seconds


def parse_size(text: str) -> int:
    """Bytes in ``64MiB``. Raises ValueError, which says what to write, for anything else."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'\'{text}\' is no size; write one such as "64MiB" or "10MB"')
    return int(float(found["number"]) * _BYTES[found["unit"]])


def duration_text(seconds: float) -> str:
    """``2 h 5 min``: the two largest units that are not nothing; ``0 s`` for less than half a second."""
    left = round(seconds)
    parts: list[str] = []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"
