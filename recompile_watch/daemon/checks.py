"""What a look at one thing gives: how it is, and what to do where it is not well."""

from dataclasses import dataclass

OK, WEAK, BROKEN, UNKNOWN = "ok", "weak", "broken", "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """One look. state: ``ok``, ``weak``, ``broken`` or ``unknown``. text: what was seen and, where not ok, what to do."""

    what: str
    state: str
    text: str
