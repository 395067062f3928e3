"""``recompile-watch completion``: a script that completes commands and options in bash or zsh."""

import argparse

from recompile_watch.cli import exit_status
from recompile_watch.cli.commands import COMMANDS, PROGRAM
from recompile_watch.cli.output import write_result
from recompile_watch.core.errors import UsageError


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Prints the script. Raises UsageError where shtab is not installed."""
    try:
        import shtab
    except ImportError:
        raise UsageError("completion scripts need shtab; install it with: pip install 'recompile-watch[completion]'") from None
    script: str = shtab.complete(whole_parser(), arguments.shell)
    write_result(script if script.endswith("\n") else script + "\n", None)
    return exit_status.OK


def whole_parser() -> argparse.ArgumentParser:
    """One parser with all commands below it, as shtab wants it."""
    parser = argparse.ArgumentParser(prog=PROGRAM)
    top = parser.add_subparsers(dest="command")
    own = {command.name[0]: command for command in COMMANDS if len(command.name) == 1}
    groups: dict[str, argparse._SubParsersAction[argparse.ArgumentParser]] = {}
    for command in sorted(COMMANDS, key=lambda command: len(command.name)):
        first, more = command.name[0], command.name[1:]
        if not more:
            _copy(command.parser(), top.add_parser(first, help=command.summary))
            continue
        if first not in groups:
            group = top.choices[first] if first in own else top.add_parser(first, help=f"{first}: more commands")
            groups[first] = group.add_subparsers(dest="subcommand")
        _copy(command.parser(), groups[first].add_parser(more[0], help=command.summary))
    return parser


def _copy(source: argparse.ArgumentParser, target: argparse.ArgumentParser) -> None:
    """The options and arguments of one parser into another; -h is there already."""
    for action in source._actions:
        if not isinstance(action, argparse._HelpAction):
            target._add_action(action)
