"""The command line. ``main`` is the console entry; each command's module is imported only when it runs."""

from recompile_watch.cli.program import main

__all__ = ["main"]
