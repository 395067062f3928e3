"""When to decide again, so that a machine can check it: a quantity of a later report or diagnosis, and a bound."""

from collections.abc import Mapping
from dataclasses import dataclass

from recompile_watch.core.versions import Version, version_of


@dataclass(frozen=True, slots=True)
class Condition:
    """When to decide again. check: a quantity that a later report or diagnosis shows. relation: ``<``, ``>=`` or ``=``.

    value: a number, or a version of torch where ``check`` is ``torch_version``.
    """

    check: str
    relation: str
    value: float | str
    text: str

    def is_met(self, quantities: Mapping[str, float | str]) -> bool | None:
        """Whether it holds now; None where the quantity is not known, or is no number."""
        known = quantities.get(self.check)
        if isinstance(known, str) or isinstance(self.value, str):
            here, there = version_of(str(known)), version_of(str(self.value))
            return None if here is None or there is None else self._compares((here > there) - (here < there))
        return None if known is None or known != known else self._compares((known > self.value) - (known < self.value))

    def _compares(self, sign: int) -> bool:
        match self.relation:
            case "<":
                return sign < 0
            case ">=":
                return sign >= 0
        return sign == 0


def newer_torch(version: Version | None) -> tuple[Condition, ...]:
    """The next minor version of torch, whose compiler may do otherwise; nothing where the version is not known."""
    if version is None:
        return ()
    following = f"{version[0]}.{version[1] + 1}"
    return (Condition("torch_version", ">=", following, f"torch is {following} or newer: another compiler, another measurement"),)
