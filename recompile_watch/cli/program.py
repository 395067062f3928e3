"""From the arguments of the process to its exit status; no mistake of the user's ends in a traceback."""

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from recompile_watch import __version__
from recompile_watch.cli import exit_status
from recompile_watch.cli.commands import COMMANDS, PROGRAM, Command, top_help
from recompile_watch.cli.output import forget_stdout, open_missing_streams, write_error
from recompile_watch.cli.parsing import nearest
from recompile_watch.core.errors import ConfigError, RecompileWatchError, UsageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    open_missing_streams()
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        forget_stdout()
        return exit_status.OK
    except OSError as error:
        forget_stdout()
        write_error(f"the result cannot be written ({error.strerror}); make room, or send it elsewhere with --output")
        return exit_status.UNKNOWN
    except KeyboardInterrupt:
        forget_stdout()
        return exit_status.INTERRUPTED
    except SystemExit as ended:  # argparse after --help
        return ended.code if isinstance(ended.code, int) else exit_status.OK
    except RecompileWatchError as error:
        return _failed(error)
    return code


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(top_help(), file=sys.stdout if arguments else sys.stderr)
        return exit_status.OK if arguments else exit_status.USAGE
    if arguments[0] in ("--version", "-V"):
        print(f"{PROGRAM} {__version__}")
        return exit_status.OK
    command = _command(arguments)
    parser = command.parser()
    options = parser.read(arguments[len(command.name) :])
    run = import_module(command.module).run
    gc.freeze()  # nothing loaded so far is ever garbage; events are freed without the collector's help
    gc.set_threshold(100_000)
    code = run(options, command.name)
    assert isinstance(code, int)
    return code


def _command(arguments: list[str]) -> Command:
    """The command that the first words name; an option in their place gets a hint of its own."""
    for command in COMMANDS:
        if tuple(arguments[: len(command.name)]) == command.name:
            return command
    first = arguments[0]
    group = [command for command in COMMANDS if command.name[0] == first]
    if group:
        words = [command.name[1] for command in group]
        if len(arguments) == 1 or arguments[1] in ("-h", "--help"):
            print(_group_help(group), file=sys.stderr if len(arguments) == 1 else sys.stdout)
            raise SystemExit(exit_status.USAGE if len(arguments) == 1 else exit_status.OK)
        raise UsageError(f"no such command '{first} {arguments[1]}'; {nearest(arguments[1], words)}")
    if first.startswith("-"):
        raise UsageError(f"unknown option {first}; options stand behind the command, try '{PROGRAM} --help'")
    names = list(dict.fromkeys(command.name[0] for command in COMMANDS))
    hint = f"to read it: {PROGRAM} analyze {first}" if os.path.exists(first) else nearest(first, names)  # noqa: PTH110 (pathlib costs start-up time)
    raise UsageError(f"no such command '{first}'; {hint}")


def _group_help(group: list[Command]) -> str:
    lines = [f"  {command.name[1]:<6}  {command.summary}" for command in group]
    return "\n".join([f"usage: {PROGRAM} {group[0].name[0]} COMMAND", "", "commands:", *lines, "", "example:", f"  {group[0].example}"])


def _failed(error: RecompileWatchError) -> int:
    lines = str(error).split("\n")
    for line in lines:
        write_error(_one_line(line))
    if isinstance(error, UsageError):
        return exit_status.USAGE
    return exit_status.CONFIG if isinstance(error, ConfigError) else exit_status.UNKNOWN


def _one_line(text: str) -> str:
    """What a user typed may hold control codes; standard error is a terminal too."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
