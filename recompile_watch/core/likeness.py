"""Which known word somebody meant. Only mistakes ask, so what compares words is loaded when one is made."""

from collections.abc import Iterable


def close_matches(given: str, known: Iterable[str], likeness: float = 0.6) -> list[str]:
    """The known word most like the given one, if any is. likeness: from 0, anything, to 1, the word itself."""
    import difflib

    return difflib.get_close_matches(given, [*known], 1, likeness)
