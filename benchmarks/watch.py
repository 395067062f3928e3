"""Measures the daemon: latency from a line written to its message received, bursts, and what it costs while idle.

A burst of each mix is read by `analyze --jobs 1` and by a running daemon in turn, and what counts is the processor time of both.

python benchmarks/watch.py [--markdown FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from generate import cached
from measure import measure as measured

# About a million lines of each mix.
MIX_BYTES = {"sparse": 132_000_000, "bot": 180_000_000, "storm": 155_000_000}
ROUNDS = 3
HALF = 0.5  # of analyze's speed, at which the daemon must read a burst
PEAK_MB = 90.0
MESSAGES = 200
BURST_LINES = 1_000_000
IDLE_S = 60.0
PATIENCE_S = 120.0
CONFIG = """
state_dir = "{folder}/state"
[[source]]
name = "bot"
path = "{folder}/logs/*.log"
timezone = "UTC"
[[receiver]]
name = "ops"
url = "json://127.0.0.1:{port}/alerts"
burst = 100000
at_once = 100000
same_kind_wait = "5s"
per_second = 100000.0
"""


@dataclass(frozen=True)
class Row:
    """One figure. bar: what it must not pass, or with ``is_floor`` must reach; None where it is only shown."""

    name: str
    value: float
    unit: str
    bar: float | None
    is_floor: bool = False

    @property
    def is_met(self) -> bool:
        return self.bar is None or (self.value >= self.bar if self.is_floor else self.value <= self.bar)


class Inbox:
    """A receiver on loopback that notes when each message came."""

    def __init__(self) -> None:
        self.received: queue.Queue[tuple[float, str]] = queue.Queue()
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                inbox.received.put((time.monotonic(), json.loads(body)["title"]))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def until(self, text: str) -> float:
        """When the message with this text in its title came."""
        while True:
            at, title = self.received.get(timeout=PATIENCE_S)
            if text in title:
                return at


@contextmanager
def watch(folder: Path, port: int, extra: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A running daemon. extra: further keys of its receiver."""
    (folder / "logs").mkdir()
    (folder / "logs" / "bot.log").write_bytes(b"the bot starts\n")
    config = folder / "watch.toml"
    config.write_text(CONFIG.replace("{folder}", str(folder)).replace("{port}", str(port)) + extra)
    ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ready.bind(str(folder / "notify"))
    ready.settimeout(PATIENCE_S)
    command = [sys.executable, "-m", "recompile_watch", "watch", "--config", str(config)]
    process = subprocess.Popen(command, env={**os.environ, "NOTIFY_SOCKET": str(folder / "notify")})
    try:
        while b"READY=1" not in ready.recv(4096):
            pass
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
        ready.close()


def limit_hit(function: str) -> bytes:
    """torch reaches the recompile limit of a function; its record ends with its last line, so nothing waits for more."""
    head = "W1030 09:08:09.059999 101341 torch/_dynamo/convert_frame.py:1358] [6/8] "
    lines = (
        "torch._dynamo hit config.recompile_limit (8)", f"   function: '{function}' (/srv/bot/{function}.py:105)",
        "   last reason: 6/7: kv_cache._current_idx[7] == 0", 'To log all recompilation reasons, use TORCH_LOGS="recompiles".',
        "To diagnose recompilation issues, see https://pytorch.org/docs/main/torch.compiler_troubleshooting.html",
    )  # fmt: skip
    return "".join(f"{head}{line}\n" for line in lines).encode()


def latencies(log: Path, inbox: Inbox, count: int, stem: str) -> list[float]:
    """Milliseconds from the write of a critical event to its message, one after another."""
    found = []
    for index in range(count):
        name = f"{stem}_{index:04d}_attend"
        with log.open("ab", buffering=0) as stream:
            begun = time.monotonic()
            stream.write(limit_hit(name))
        found.append((inbox.until(name) - begun) * 1000)
        time.sleep(0.02)
    return found


def burst(log: Path, inbox: Inbox, lines: int) -> float:
    """Seconds from the first of many lines written to the message of an event behind the last of them."""
    plain = b"2025-10-30 09:08:42 UTC | 2025-10-30 05:08:42 EDT | 2025-10-30 22:08:42 NZDT | trade.py:main:12 INFO | step done loss=0.1234 lr=0.001\n"
    block = plain * 10_000
    begun = time.monotonic()
    with log.open("ab", buffering=0) as stream:
        for _ in range(lines // 10_000):
            stream.write(block)
        stream.write(limit_hit("behind_the_burst"))
    return inbox.until("behind_the_burst") - begun


def mix_rows(mix: str, log: Path, lines: int, rounds: int) -> list[Row]:
    """How fast a running daemon reads a burst of a mix, against `analyze` of the same file: in turn, by processor time."""
    analyze = [sys.executable, "-m", "recompile_watch", "analyze", str(log), "--format", "json", "--output", os.devnull, "--jobs", "1", "--tz", "UTC"]
    ratios, peaks, seconds = [], [], []
    for _ in range(rounds):
        alone_s = measured(analyze).cpu_s
        burst_s, peak_mb = mix_burst(log)
        ratios.append(alone_s / burst_s)
        seconds.append(burst_s)
        peaks.append(peak_mb)
    return [
        Row(f"{mix}: a burst of {lines:,} lines read, in units of analyze's speed", statistics.median(ratios), "x", HALF, is_floor=True),
        Row(f"{mix}: processor time of the daemon for it", statistics.median(seconds), "s", None),
        Row(f"{mix}: resident memory, highest", max(peaks), "MB", PEAK_MB),
    ]


def mix_burst(burst: Path) -> tuple[float, float]:
    """Seconds of processor time that a fresh daemon takes for what is written to its log at once, and its resident memory in MB at most."""
    with tempfile.TemporaryDirectory() as name:
        folder, inbox = Path(name), Inbox()
        with watch(folder, inbox.port) as process:
            log = folder / "logs" / "bot.log"
            until_read(folder, log.stat().st_size)
            before, _, _, _ = usage(process.pid)
            with log.open("ab") as target, burst.open("rb") as source:
                shutil.copyfileobj(source, target, 1 << 22)
            until_read(folder, log.stat().st_size)
            after, _, _, _ = usage(process.pid)
            return after - before, high_water_mb(process.pid)


def until_read(folder: Path, size_bytes: int) -> None:
    """Waits until the daemon has evaluated, and written down, so many bytes of its only log."""
    status = [sys.executable, "-m", "recompile_watch", "status", "--json", "--state-dir", str(folder / "state")]
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        answer = subprocess.run(status, capture_output=True, check=False)
        sources = json.loads(answer.stdout)["sources"] if answer.returncode == 0 else []
        if sources and sources[0]["position"] >= size_bytes:
            return
        time.sleep(0.5)
    raise TimeoutError(f"the daemon has not read {size_bytes} bytes in {PATIENCE_S:.0f} s")


def high_water_mb(pid: int) -> float:
    """The most resident memory that a process ever had, in MB."""
    return int(next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")).split()[1]) * 1024 / 1e6


def usage(pid: int) -> tuple[float, int, int, int]:
    """CPU seconds, resident bytes, descriptors and voluntary context switches (wake-ups) of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return (
        ticks / os.sysconf("SC_CLK_TCK"),
        int(status["VmRSS"].split()[0]) << 10,
        len(list(Path(f"/proc/{pid}/fd").iterdir())),
        int(status["voluntary_ctxt_switches"]),
    )


def children(pid: int) -> list[int]:
    """The processes of the daemon's senders."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def measure(count: int, lines: int, idle_s: float) -> list[Row]:
    """All figures."""
    with tempfile.TemporaryDirectory() as name:
        folder, inbox = Path(name), Inbox()
        log = folder / "logs" / "bot.log"
        with watch(folder, inbox.port) as process:
            latencies(log, inbox, 5, "warm")  # the sender is started by the first message
            found = sorted(latencies(log, inbox, count, "step"))
            burst_s = burst(log, inbox, lines)
            time.sleep(2.0)
            before = usage(process.pid)
            time.sleep(idle_s)
            after = usage(process.pid)
            senders = sum(usage(child)[1] for child in children(process.pid))
            peak = high_water_mb(process.pid)
        return [
            Row("latency, median", statistics.median(found), "ms", 50.0),
            Row("latency, 99th percentile", found[min(len(found) - 1, int(len(found) * 0.99))], "ms", 250.0),
            Row(f"burst of {lines:,} lines, all evaluated and told after", burst_s, "s", None),
            Row("idle CPU", (after[0] - before[0]) / idle_s * 100, "% of a core", 0.2),
            Row("wake-ups while idle", (after[3] - before[3]) / idle_s, "a second", 1.5),
            Row("resident memory", after[1] / 1e6, "MB", 90.0),
            Row("resident memory, highest", peak, "MB", None),
            Row("resident memory of the senders", senders / 1e6, "MB", None),
            Row("descriptors", after[2], "", None),
        ]


def _verdict(row: Row) -> str:
    if row.bar is None:
        return ""
    return f"{'at least ' if row.is_floor else ''}{row.bar:g} {'met' if row.is_met else 'MISSED'}"


def main() -> int:
    """Prints the figures; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--lines", type=int, default=BURST_LINES)
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each mix")
    parser.add_argument("--share", type=float, default=1.0, help="of the size of the mixes, for a quick look")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    rows = measure(options.messages, options.lines, options.idle)
    with tempfile.TemporaryDirectory() as work:
        for mix, size_bytes in MIX_BYTES.items():
            log, truth = cached(mix, int(size_bytes * options.share), 0, Path(work))
            rows += mix_rows(mix, log, truth.line_count, options.rounds)
    text = ["| what | measured | bar |", "|---|---|---|"]
    text += [f"| {row.name} | {row.value:.3g} {row.unit} | {_verdict(row)} |" for row in rows]
    load = os.getloadavg()[0]
    text += [
        "",
        f"Load of the machine while measuring: {load:.1f} on {os.cpu_count()} cores; {resource.getpagesize()} byte pages; Python {sys.version.split()[0]}.",
    ]
    print("\n".join(text))
    if options.markdown:
        options.markdown.write_text("# The daemon, measured\n\n`make bench-watch` writes this page.\n\n" + "\n".join(text) + "\n")
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
