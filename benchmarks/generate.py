"""Writes a log of one mix: `generate.py sparse --bytes 512MB --seed 0 -o sparse.log`.

The same mix, size and seed give the same bytes. Beside FILE stands FILE.truth.json: how many lines there are, how many matter,
and how many events of each undisputed kind they hold.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from mixes import MIXES

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_WRITE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Truth:
    """What a generated file holds."""

    mix: str
    seed: int
    size_bytes: int
    line_count: int
    relevant_count: int
    kinds: dict[str, int]


def parse_size(text: str) -> int:
    """Bytes of `512MB` (1 MB = 1e6) or `64MiB`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?i?B?)", text.strip(), re.IGNORECASE)
    unit = match[2].upper() if match else ""
    unit = unit if unit in _UNITS else f"{unit}B"
    if not match or unit not in _UNITS:
        raise argparse.ArgumentTypeError(f"not a size: {text!r}; write for example 512MB or 64MiB")
    return int(float(match[1]) * _UNITS[unit])


def generate(mix: str, size_bytes: int, seed: int, output: Path) -> Truth:
    """Writes `output`, whole records only, until it holds `size_bytes` or a little more; then the truth beside it."""
    written = lines = relevant = 0
    kinds: Counter[str] = Counter()
    partial = output.with_name(output.name + ".partial")
    with partial.open("wb", buffering=_WRITE_BYTES) as stream:
        for chunk in MIXES[mix](random.Random(f"{mix}/{seed}")):
            written += stream.write(chunk.text.encode())
            lines += chunk.line_count
            relevant += chunk.relevant_count
            for kind, number in chunk.kinds:
                kinds[kind] += number
            if written >= size_bytes:
                break
    truth = Truth(mix, seed, written, lines, relevant, dict(sorted(kinds.items())))
    truth_path(output).write_text(json.dumps(asdict(truth), indent=1) + "\n")
    partial.replace(output)
    return truth


def truth_path(output: Path) -> Path:
    """Where the truth about a generated file stands."""
    return output.with_name(output.name + ".truth.json")


def cached(mix: str, size_bytes: int, seed: int, folder: Path) -> tuple[Path, Truth]:
    """The generated file in `folder`, written only where it is not there yet."""
    output = folder / f"{mix}-{size_bytes}-{seed}-{_generator_id()}.log"
    if output.exists() and truth_path(output).exists():
        return output, Truth(**json.loads(truth_path(output).read_text()))
    return output, generate(mix, size_bytes, seed, output)


def _generator_id() -> str:
    """Changes with the generator's source, so that a cached file never outlives what made it."""
    import hashlib

    here = Path(__file__).parent
    names = ("generate.py", "mixes.py", "lines.py", "app_lines.py", "bot_lines.py", "torch_lines.py")
    return hashlib.sha256(b"".join((here / name).read_bytes() for name in names)).hexdigest()[:10]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mix", choices=sorted(MIXES))
    parser.add_argument("--bytes", type=parse_size, default=parse_size("128MB"), dest="size_bytes", metavar="SIZE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    truth = generate(options.mix, options.size_bytes, options.seed, options.output)
    print(json.dumps(asdict(truth)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
