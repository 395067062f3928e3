"""Where results go: standard output, or a file that is written whole or not at all."""

import os
import stat
import sys
from pathlib import Path
from typing import TextIO

from recompile_watch.core.errors import UsageError

STANDARD_OUTPUT = "-"


def write_result(text: str, output: str | None) -> None:
    """Writes ``text`` to the file ``output``, or to standard output. A reader who left early is no error."""
    if output is None or output == STANDARD_OUTPUT:
        try:
            write_stdout(text)
            sys.stdout.flush()
        except BrokenPipeError:
            forget_stdout()
        return
    data = text.encode("utf-8", "backslashreplace")
    try:
        _write_file(Path(output), data)
    except OSError as error:
        raise UsageError(f"--output: {output} cannot be written ({error.strerror}); name a file in a folder that exists") from error


def write_stdout(text: str) -> None:
    """Writes to standard output; what its encoding cannot show is escaped."""
    out = sys.stdout
    try:
        out.write(text)
    except UnicodeEncodeError:
        encoding = out.encoding or "ascii"
        out.write(text.encode(encoding, "backslashreplace").decode(encoding))


def write_error(line: str) -> None:
    """Says one line on standard error; the exit status tells the same to a reader who left early."""
    try:
        print(f"recompile-watch: {line}", file=sys.stderr, flush=True)
    except OSError:
        return


def is_color_wanted(out: TextIO) -> bool:
    """True on a terminal, unless NO_COLOR is set (https://no-color.org) or the terminal is dumb."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def open_missing_streams() -> None:
    """A program started with a closed standard stream (``>&-``, some service managers) has none to write to."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def forget_stdout() -> None:
    """Nobody reads any more: what is still buffered must not fail when the interpreter ends."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is closed, or a test's own
        return
    finally:
        os.close(devnull)


def _write_file(path: Path, data: bytes) -> None:
    """A regular file is replaced in one step; a device or a FIFO is written to."""
    target = path.resolve()
    try:
        is_regular = stat.S_ISREG(target.stat().st_mode)
    except FileNotFoundError:
        is_regular = True
    if not is_regular:
        with target.open("wb") as file:
            file.write(data)
        return
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            part.chmod(stat.S_IMODE(target.stat().st_mode))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
