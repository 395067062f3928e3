"""``recompile-watch diagnose init``: a workload to fill in."""

import argparse
from pathlib import Path

from recompile_watch.cli import exit_status
from recompile_watch.cli.output import write_result
from recompile_watch.config import shipped_workloads
from recompile_watch.core.errors import UsageError


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Writes the template. Raises UsageError where a file is there already."""
    path = Path(arguments.file)
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise UsageError(f"{path}: a workload is a Python module; name a file such as bot_workload.py")
    if path.exists():
        raise UsageError(f"{path} is there already; name another file, or remove it")
    text = (shipped_workloads() / "template.py").read_text().replace("WORKLOAD:make", f"{path.stem}:make")
    write_result(text, str(path))
    write_result(f"{path} is written; fill it in, then: recompile-watch diagnose --workload {path.stem}:make\n", None)
    return exit_status.OK
