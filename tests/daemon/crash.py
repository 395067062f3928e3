"""Many random schedules of writing, rotating, turning and killing, for longer than a test may take.

python -m tests.daemon.crash --schedules 1000 --seed 1 [--report FILE]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.daemon.test_loop import POINTS, SYMBOLS, play
from tests.daemon.world import World

_ACTIONS = (
    ("quote", SYMBOLS), ("limit", ("attend", "decode")), ("half", SYMBOLS), ("rotate", ("",)), ("turn", ("",)), ("turn", ("",)), ("kill", POINTS),
)  # fmt: skip


def actions_of(seed: int) -> list[tuple[str, str]]:
    """A schedule; the same for the same seed."""
    drawn = random.Random(seed)
    return [(action, drawn.choice(what)) for action, what in (drawn.choice(_ACTIONS) for _ in range(drawn.randrange(5, 40)))]


def faults_of(seed: int) -> tuple[list[str], int, int]:
    """What is wrong after one schedule, how many events it had and how often the watch was killed."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        actions = actions_of(seed)
        written = play(world, actions)
        counts = {name: row["count"] for name, row in world.incidents().items() if not name.startswith("watch_")}
        faults = [] if counts == written else [f"counted {counts}, written {written}"]
        told = world.told()
        faults += [f"nobody was told of {name}" for name in written if name.partition(" ")[2] not in told]
        ids = [job.id for job in world.post.jobs]
        marked = {job.id for job in world.post.jobs if job.message is not None and "Possible duplicate" in job.message.text}
        faults += [f"{one} was sent twice without saying so" for one in sorted(set(ids)) if ids.count(one) > 1 and one not in marked]
        world.store.close()
        return faults, sum(written.values()), world.kills


def main() -> int:
    """Prints each fault with its seed, and a summary; 1 when there was one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    begun, bad, events, kills = time.monotonic(), 0, 0, 0
    for seed in range(options.seed, options.seed + options.schedules):
        faults, count, killed = faults_of(seed)
        events, kills = events + count, kills + killed
        for fault in faults:
            bad += 1
            print(f"seed {seed}: {fault}", flush=True)
    summary = (
        f"{options.schedules} random schedules from seed {options.seed}: {events:,} events, {kills:,} kills at {len(POINTS)} labelled points "
        f"({', '.join(POINTS)}), {bad} faults, {time.monotonic() - begun:.0f} s."
    )
    print(summary)
    if options.report:
        text = "What is written counts once, every incident is told, and what is told twice says so.\n\n"
        options.report.write_text(f"# Killed at any point\n\n`make crash` writes this page. {text}{summary}\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
