"""What a setting may be beyond its type: each check gives, for what it finds wrong, a sentence that says what to write."""

import re
import zoneinfo
from collections.abc import Iterable, Iterator

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_CLOCK = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d", re.ASCII)


def insist(*complaints: Iterable[str]) -> None:
    """Raises ValueError with all complaints, when there are any."""
    found = [text for some in complaints for text in some]
    if found:
        raise ValueError("; ".join(found))


def at_least(least: float, **values: float | None) -> Iterator[str]:
    """Numbers that are less. A value of None was not set."""
    return (f"{name} is {value:g}; write {least:g} or more" for name, value in values.items() if value is not None and not value >= least)


def at_most(most: float, **values: float | None) -> Iterator[str]:
    """Numbers that are more."""
    return (f"{name} is {value:g}; write {most:g} or less" for name, value in values.items() if value is not None and not value <= most)


def clock_times(**values: str | None) -> Iterator[str]:
    """Texts that are no time of day such as ``09:30``."""
    return (
        f'{name} is {value!r:.40}; write a time of day such as "09:30"'
        for name, value in values.items()
        if value is not None and not _CLOCK.fullmatch(value)
    )


def zones(**values: str | None) -> Iterator[str]:
    """Texts that are no zone of the IANA list."""
    return (
        f'{name} is {value!r:.40}; write one such as "Europe/Berlin"' for name, value in values.items() if value is not None and not _is_zone(value)
    )


def loopback_of(listen: str) -> tuple[str, int] | None:
    """Host and port of an address such as ``127.0.0.1:9464`` or ``[::1]:9464``; None for what is none of this machine's own."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    is_port = port.isascii() and port.isdigit() and int(port) < 65536
    return (host, int(port)) if host in LOOPBACK and is_port else None


def _is_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
