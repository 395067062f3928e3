"""Two days in half an hour: rotation every 20 seconds, storms, receiver outages; memory and descriptors must stay flat, counts exact.

python benchmarks/soak.py [--minutes N] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from watch import children, limit_hit, usage, watch

ROTATE_S = 20.0
STEP_S = 0.25
SYMBOLS = [f"SYM{index:02d}USD" for index in range(12)]
FUNCTIONS = [f"attend_{index}" for index in range(8)]
KEPT = 3  # rotated files, the others are deleted as logrotate does
PLAIN = b"2025-10-30 09:08:42 UTC | 2025-10-30 05:08:42 EDT | 2025-10-30 22:08:42 NZDT | trade.py:main:12 INFO | step done loss=0.1234 lr=0.001\n"


class Moody:
    """A receiver that takes messages, refuses them for a while, and hangs for a while."""

    def __init__(self) -> None:
        self.mood = "takes"
        self.taken = self.refused = self.doubles = 0
        seen: set[str] = set()
        moody = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if moody.mood == "hangs":
                    time.sleep(5)
                status = 503 if moody.mood == "refuses" else 200
                if status == 200:
                    moody.taken += 1
                    moody.doubles += str(body.get("notice")) in seen and not body.get("possible_duplicate")
                    seen.add(str(body.get("notice")))
                else:
                    moody.refused += 1
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()


class Bot:
    """Writes a log that rotates. written: events by kind and name."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._log = folder / "bot.log"
        self._random = random.Random(seed)
        self.written: dict[str, int] = {}
        self.lines = self.rotations = 0

    def step(self, is_storm: bool) -> None:
        """A quarter of a second of the bot's life; in a storm a hundred times as many events."""
        parts: list[bytes] = []
        for _ in range(100 if is_storm else 1):
            if self._random.random() < 0.5:
                parts.append(self._quote(self._random.choice(SYMBOLS)))
            if self._random.random() < 0.2:
                parts.append(self._limit(self._random.choice(FUNCTIONS)))
        parts.append(PLAIN * self._random.randrange(2_000 if is_storm else 50))
        self._random.shuffle(parts)
        text = b"".join(parts)
        self.lines += text.count(b"\n")
        with self._log.open("ab") as stream:
            stream.write(text)

    def rotate(self) -> None:
        """bot.log becomes bot.log.1, and so on; the oldest goes."""
        self.rotations += 1
        for number in range(KEPT, 0, -1):
            old = self._log.with_name(f"bot.log.{number}")
            if old.exists():
                old.unlink() if number == KEPT else old.rename(self._log.with_name(f"bot.log.{number + 1}"))
        self._log.rename(self._log.with_name("bot.log.1"))
        self._log.touch()

    def _quote(self, symbol: str) -> bytes:
        self._count(f"synthetic_quote {symbol}")
        return f"2025-10-30 09:08:42.123 | INFO     | data_curate_daily:x:1 - Populating synthetic bid/ask (0 spread) for {symbol} (ADD_LATEST=False)\n".encode()

    def _limit(self, function: str) -> bytes:
        self._count(f"recompile_limit_hit {function}")
        return limit_hit(function)

    def _count(self, name: str) -> None:
        self.written[name] = self.written.get(name, 0) + 1


def mood_at(second: float) -> str:
    """Takes messages most of the time; refuses for a minute in ten, hangs for twenty seconds in ten minutes."""
    minute = second / 60 % 10
    return "refuses" if 4 <= minute < 5 else "hangs" if 7 <= minute < 7.33 else "takes"


def soak(minutes: float, seed: int) -> tuple[list[str], bool]:
    """The result as lines of Markdown, and whether all is well."""
    with tempfile.TemporaryDirectory() as name:
        folder, inbox = Path(name), Moody()
        with watch(folder, inbox.port, 'repeat_interval = "30s"\n') as process:
            bot = Bot(folder / "logs", seed)
            samples: list[tuple[float, float, int]] = []
            begun, rotate_at = time.monotonic(), ROTATE_S
            while (second := time.monotonic() - begun) < minutes * 60:
                inbox.mood = mood_at(second)
                bot.step(is_storm=int(second) % 90 < 2)
                if second >= rotate_at:
                    rotate_at += ROTATE_S
                    bot.rotate()
                if not samples or second - samples[-1][0] >= 10:
                    _, resident, descriptors, _ = usage(process.pid)
                    samples.append((second, resident / 1e6, descriptors))
                time.sleep(STEP_S)
            inbox.mood = "takes"
            time.sleep(15)
            cpu_s = usage(process.pid)[0]
            senders = len(children(process.pid))
            config = folder / "watch.toml"
            asked = [sys.executable, "-m", "recompile_watch", "incidents", "list", "--all", "--json", "--config", str(config)]
            rows = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
        counted = {
            f"{row['kind']} {row['function'] or ' '.join(row['symbols'])}": row["count"] for row in rows if not row["kind"].startswith("watch_")
        }
        gaps = [row for row in rows if row["kind"] == "watch_gap"]
        return _told(minutes, bot, inbox, samples, counted, gaps, cpu_s, senders)


def _told(
    minutes: float, bot: Bot, inbox: Moody, samples: list[tuple[float, float, int]], counted: dict[str, int], gaps: list[object], cpu_s: float, senders: int,
) -> tuple[list[str], bool]:  # fmt: skip
    half = len(samples) // 2
    early, late = (statistics.median(sample[1] for sample in part) for part in (samples[half // 2 : half], samples[half:]))
    is_exact, is_flat = counted == bot.written, late <= early * 1.05 + 2
    lines = [
        f"* {minutes:g} minutes, {bot.lines:,} lines, {sum(bot.written.values()):,} events, {bot.rotations} rotations.",
        f"* Events counted: {sum(counted.values()):,}; {'each exactly once' if is_exact else 'NOT what was written'}; gaps told: {len(gaps)}.",
        f"* Messages taken: {inbox.taken}; refused while the receiver was down: {inbox.refused}; doubled and not marked: {inbox.doubles}.",
        f"* Resident memory: {early:.1f} MB in the second quarter, {late:.1f} MB in the second half ({'flat' if is_flat else 'NOT flat'}), "
        + f"{max(sample[1] for sample in samples):.1f} MB at most.",
        f"* Descriptors: {samples[half][2]} in the middle, {samples[-1][2]} at the end; senders at the end: {senders}.",
        f"* CPU: {cpu_s:.1f} s, {cpu_s / (minutes * 60) * 100:.1f} % of a core.",
    ]
    return lines, is_exact and is_flat and not gaps and not inbox.doubles and samples[-1][2] <= samples[half][2] + 3


def main() -> int:
    """Prints the result; 1 when something is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    lines, is_well = soak(options.minutes, options.seed)
    print("\n".join(lines))
    if options.markdown:
        head = [
            "# Soak",
            "",
            f"`make soak` writes this page. Rotation every {ROTATE_S:g} s, storms, a receiver that refuses and hangs; {os.cpu_count()} cores.",
            "",
        ]
        options.markdown.write_text("\n".join([*head, *lines]) + "\n")
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
