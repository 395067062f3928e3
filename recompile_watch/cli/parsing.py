"""Argument parsing that talks like a person: one line about the mistake, and the nearest word that exists."""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from recompile_watch.core.errors import UsageError
from recompile_watch.core.likeness import close_matches

_COLUMNS = 80  # where nothing tells how wide the terminal is
_CHOICE = re.compile(r"argument (?P<name>[^:]+): invalid choice: '?(?P<given>[^']*)'? \(choose from (?P<known>.*)\)")


class Parser(argparse.ArgumentParser):
    """Raises UsageError instead of ending the program."""

    def __init__(self, *, prog: str, description: str, example: str, usage: str | None = None) -> None:
        super().__init__(
            prog=prog, usage=usage, description=description, epilog=f"example:\n  {example}", allow_abbrev=False, add_help=False,
            formatter_class=_Formatter,
        )  # fmt: skip
        self.add_argument("-h", "--help", action="help", help="show this help and exit")

    def error(self, message: str) -> NoReturn:
        """argparse calls this with its own words for a mistake."""
        found = _CHOICE.fullmatch(message)
        if found:
            known = re.findall(r"[\w-]+", found["known"])
            raise UsageError(f"{found['name']}: no such choice '{found['given']}'; {_hint(found['given'], known)}")
        raise UsageError(f"{message.removeprefix('argument ')}; {self.help_hint()}")

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The arguments, options and paths in any order. Raises UsageError."""
        namespace, unknown = self.parse_known_intermixed_args(list(arguments))
        if unknown:
            option = unknown[0].partition("=")[0]
            options = [name for action in self._actions for name in action.option_strings if name.startswith("--")]
            what = f"unknown option {option}" if option.startswith("-") else f"unexpected argument {option}"
            close = close_matches(option, options)
            raise UsageError(f"{what}; did you mean {close[0]}?" if close else f"{what}; {self.help_hint()}")
        return namespace

    def help_hint(self) -> str:
        """Where to read on."""
        return f"try '{self.prog} --help'"


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the example as it is written, and leaves the option column wide enough for most names."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=_columns() - 2)


def _columns() -> int:
    """How wide help may be. argparse asks at each option, with a module of the standard library that takes milliseconds to load."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ is not None else 1).columns or _COLUMNS
    except (OSError, ValueError):
        return _COLUMNS


def nearest(given: str, known: Sequence[str]) -> str:
    """What to say about a word that does not exist."""
    return _hint(given, known)


def _hint(given: str, known: Sequence[str]) -> str:
    close = close_matches(given, known, 0.5)
    return f"did you mean '{close[0]}'?" if close else f"choose one of {', '.join(known)}"
