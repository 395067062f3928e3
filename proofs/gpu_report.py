"""Writes docs/gpu-report.md: every built-in workload on the GPU of this machine, and what `analyze` makes of torch's log of it.

Run by `make gpu-report` where torch sees a GPU; exit status 3 where it does not, and nothing is written then.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

BUILTINS = ("steady", "dynamic-shapes", "handoff", "kv-storm")
CANDIDATES = "default,reduce-overhead,max-autotune-no-cudagraphs,max-autotune"
HEAD = """# The diagnostic on a GPU

`make gpu-report` measured every built-in workload under each mode, and had `analyze` read what torch logged meanwhile.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="the interpreter whose torch sees the GPU")
    parser.add_argument("--markdown", type=Path, required=True, metavar="FILE", help="where the report goes")
    options = parser.parse_args()
    code = "import sys, torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else ''); print(torch.__version__)"
    device, version = subprocess.run([options.python, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()[:2]
    if not device:
        print(f"{options.python}: its torch {version} sees no GPU; nothing is written", file=sys.stderr)
        return 3
    parts = [HEAD, f"{device}, torch {version}."]
    parts += [_measured(builtin, options.python) for builtin in BUILTINS]
    options.markdown.write_text("\n\n".join(parts) + "\n")
    return 0


def _measured(builtin: str, python: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "torch.log"
        words = ["--builtin", builtin, "--python", python, "--device", "cuda", "--profile", "balanced", "--mode", "full", "--stage", "timed"]
        report = _run("diagnose", *words, "--candidates", CANDIDATES, "--format", "markdown", "--state-dir", folder, "--log", str(log))
        counts = json.loads(_run("analyze", "--format", "json", str(log)))["counts"]
    seen = ", ".join(f"{count} `{kind}`" for kind, count in sorted(counts.items())) or "nothing"
    return f"## {builtin}\n\nIn torch's log `analyze` found {seen}.\n\n" + report.replace("\n## ", "\n#### ").replace("# Eager", "### Eager", 1)


def _run(*arguments: str) -> str:
    return subprocess.run([sys.executable, "-m", "recompile_watch", *arguments], capture_output=True, text=True, check=False).stdout


if __name__ == "__main__":
    sys.exit(main())
