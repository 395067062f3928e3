"""Runs the follower through random schedules of writing, rotating, cutting, packing, deleting, killing and waiting.

    python -m tests.sources.follow_schedules --schedules 1000 --seed 1 --report docs/following.md

Each schedule has a seed of its own, which is printed when it breaks a law: `--schedules 1 --seed N` runs it again. Status 1 then.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.sources.follow_world import Broken, World

STEPS = 60
STYLES = ("plain", "plain", "link", "pattern")
# How often each step is taken, against the others.
WEIGHTS = {
    "poll": 30, "write": 25, "write_many": 3, "write_part": 5, "leave_part": 2, "write_stale": 6, "rotate": 8, "rotate_twice": 3,
    "copy_and_truncate": 5,
    "truncate": 2, "stale_hole": 1, "compress": 4, "delete": 3, "forbid": 2, "allow": 3, "jump_clock": 2, "wait": 3, "commit": 12, "restart": 4,
    "restart_older": 1, "down": 3,
}  # fmt: skip
REFILLS = ("none", "smaller", "equal", "larger")


def step(world: World, name: str, rng: random.Random) -> None:
    """One step of a schedule."""
    match name:
        case "write":
            world.write(rng.randrange(1, 6))
        case "write_many":
            world.write(rng.randrange(50, 200))
        case "copy_and_truncate":
            world.copy_and_truncate(rng.choice(REFILLS))
        case "truncate":
            world.truncate(rng.choice(REFILLS))
        case "restart_older":
            world.restart(back=rng.randrange(1, 4))
        case "down":  # killed, and started again only after the world went on
            world.commit()
            for _ in range(rng.randrange(1, 5)):
                step(world, rng.choice(("write", "rotate", "copy_and_truncate", "compress", "write_stale", "rotate_twice", "delete")), rng)
            world.restart()
        case _:
            getattr(world, name)()


def run(seed: int, steps: int = STEPS) -> Counter[str]:
    """One schedule; the steps taken, by name. Raises Broken."""
    rng = random.Random(seed)
    world = World(rng, rng.choice(STYLES), keep=rng.randrange(1, 7))
    names = rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=steps)
    done: Counter[str] = Counter()
    try:
        for name in names:
            if name.startswith("restart") and world.style == "link":
                world.commit()
            step(world, name, rng)
            done[name] += 1
        world.finish()
        done["lines written"] = len(world.written)
        done["lines that ceased to exist unread"] = len(world.lost - world.given.keys())
        done["gaps reported"] = world.reports
    except Broken as problem:
        trail = "\n".join([f"seed {seed} ({world.style}, keep {world.keep}): {problem}", *names, *world.told[-12:]])
        raise Broken(trail) from problem
    finally:
        world.close()
    return done


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs schedules and reports; status 1 if any broke a law."""
    parser = argparse.ArgumentParser(prog="python -m tests.sources.follow_schedules", description=main.__doc__)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--report", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    total: Counter[str] = Counter()
    broken = 0
    begun = time.monotonic()
    for seed in range(options.seed, options.seed + options.schedules):
        try:
            total += run(seed, options.steps)
        except Exception as problem:  # noqa: BLE001  # a crash is a broken law too
            broken += 1
            if broken <= 5:
                print(f"seed {seed}: {type(problem).__name__}: {problem}"[:3000], flush=True)
    page = report(options.schedules, options.seed, broken, total, time.monotonic() - begun)
    print(page)
    if options.report:
        options.report.write_text(page)
    return 1 if broken else 0


def report(schedules: int, seed: int, broken: int, total: Counter[str], seconds: float) -> str:
    """The page that `--report` writes."""
    rows = "".join(f"| {name.replace('_', ' ')} | {count} |\n" for name, count in sorted(total.items()))
    return (
        "# Following files\n\nRandom schedules of a bot that writes, a rotator, and a watch that is killed and started again, against a judge that\n"
        "reads the disk: every line is given once, whole and in order; lost only where its bytes no longer existed anywhere, and then\n"
        "reported.\n\n"
        f"Last run: `python -m tests.sources.follow_schedules --schedules {schedules} --seed {seed}`: {schedules} schedules, "
        f"{broken} broke a law, {seconds:.0f} s.\n\n| step | times |\n|---|---|\n{rows}"
    )


if __name__ == "__main__":
    sys.exit(main())
