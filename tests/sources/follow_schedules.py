"""Runs the follower through random schedules of writing, rotating, cutting, packing, deleting, killing and waiting.

    python -m tests.sources.follow_schedules --schedules 1000 --seed 1 --report docs/following.md

Each schedule has a seed of its own, which is printed when it breaks a law: `--schedules 1 --seed N --shorten` shows
why. Status 1 then.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tests.sources.follow_judge import Broken
from tests.sources.follow_world import START, World

STEPS = 60
STYLES = ("plain", "plain", "link", "pattern")
# How often each step is taken, against the others.
WEIGHTS = {
    "poll": 30, "write": 25, "write_many": 3, "write_part": 5, "leave_part": 2, "write_stale": 6, "rotate": 8, "rotate_twice": 3,
    "copy_and_truncate": 5,
    "truncate": 2, "stale_hole": 1, "compress": 4, "delete": 3, "forbid": 2, "allow": 3, "jump_clock": 2, "wait": 3, "idle": 2, "commit": 12,
    "restart": 4, "restart_older": 1, "down": 3,
}  # fmt: skip
HEADERS = (b"", b"", b"# log\n", b"# " + b"=" * 100 + b"\n", b"# banner of the bot\n" * 80)
LAST_RUN = "## The last run"
REFILLS = ("none", "smaller", "equal", "larger")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a story: what is done, and the seed of everything in it that is left to chance."""

    name: str
    seed: int


@dataclass(frozen=True, slots=True)
class Story:
    """A schedule: what kind of log it is about (see `World`), and its steps."""

    style: str
    keep: int
    header: bytes
    is_hasty: bool
    steps: tuple[Step, ...]


def story_of(seed: int, steps: int = STEPS) -> Story:
    """The schedule that a seed stands for."""
    rng = random.Random(seed)
    style, keep, header, is_hasty = rng.choice(STYLES), rng.randrange(1, 7), rng.choice(HEADERS), rng.random() < 0.2
    names = rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=steps)
    return Story(style, keep, header, is_hasty, tuple(Step(name, rng.getrandbits(32)) for name in names))


def take(world: World, name: str, rng: random.Random) -> None:
    """Takes one step."""
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
            world.is_down = True
            for _ in range(rng.randrange(1, 5)):
                take(world, rng.choice(("write", "rotate", "copy_and_truncate", "compress", "write_stale", "rotate_twice", "delete")), rng)
            world.is_down = False
            world.restart()
        case _:
            getattr(world, name)()


def tell(story: Story, on_step: Callable[[World, str], None] = lambda world, name: None) -> Counter[str]:
    """Plays a story to its end; the steps taken, by name. Raises Broken."""
    world = World(random.Random(0), story.style, story.keep, story.header, is_hasty=story.is_hasty)
    done: Counter[str] = Counter()
    try:
        for step in story.steps:
            world.rng.seed(step.seed)
            take(world, step.name, world.rng)
            done[step.name] += 1
            on_step(world, step.name)
        world.finish()
        on_step(world, "finish")
    except Broken:
        on_step(world, "broken")
        raise
    finally:
        world.close()
    done["lines written"] = len(world.judge.written)
    done["lines that ceased to exist unread"] = len(world.judge.lost - world.judge.verdict.given)
    done["gaps reported"] = world.judge.verdict.told
    return done


def run(seed: int, steps: int = STEPS) -> Counter[str]:
    """One schedule; the steps taken, by name. Raises Broken."""
    return tell(story_of(seed, steps))


def shortened(story: Story) -> Story:
    """As few steps as break the same law."""
    law = fault(story)
    size = len(story.steps) // 2
    while size:
        at = 0
        while at < len(story.steps):
            shorter = replace(story, steps=story.steps[:at] + story.steps[at + size :])
            if fault(shorter) == law:
                story = shorter
            else:
                at += size
        size //= 2
    return story


def fault(story: Story) -> str | None:
    """The law that the story breaks, None for none; a crash is a broken law too."""
    try:
        tell(story)
    except Exception as problem:  # noqa: BLE001
        return f"{type(problem).__name__}: {problem}".split(":")[1] if isinstance(problem, Broken) else type(problem).__name__
    return None


def show(story: Story) -> None:
    """Prints the story step by step: the files after each, and what the follower said."""
    told = 0

    def shown(world: World, name: str) -> None:
        nonlocal told
        print(f"{name}  (second {world.now - START:g})")
        for line in world.told[told:]:
            print("      ", re.sub(r"x{4,}", lambda match: f"x*{len(match[0])}", line.replace(str(world.folder) + "/", ""))[:300])
        told = len(world.told)
        for path in sorted(world.folder.iterdir()):
            status = path.lstat()
            lead = f"-> {os.readlink(path)}" if path.is_symlink() else repr(path.read_bytes()[:12]) + ".." + repr(path.read_bytes()[-12:])
            print(f"    {path.name}  inode {status.st_ino % 1000}  {status.st_size} bytes  {status.st_mtime - START:g}  {lead}")

    print(story.style, "keep", story.keep, "header", len(story.header), "hasty" * story.is_hasty)
    with suppress(Exception):
        tell(story, shown)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs schedules and reports; status 1 if any broke a law."""
    parser = argparse.ArgumentParser(prog="python -m tests.sources.follow_schedules", description=main.__doc__)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--shorten", action="store_true", help="cut each schedule that breaks a law down to the steps that matter and show them")
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
                print(f"seed {seed}: {type(problem).__name__}: {problem}"[:300], flush=True)
            if options.shorten:
                show(shortened(story_of(seed, options.steps)))
    page = report(options.schedules, options.seed, broken, total, time.monotonic() - begun)
    print(page)
    if options.report:
        options.report.write_text(options.report.read_text().partition(LAST_RUN)[0] + page)
    return 1 if broken else 0


def report(schedules: int, seed: int, broken: int, total: Counter[str], seconds: float) -> str:
    """The part of the page that `--report` writes anew."""
    rows = "".join(f"| {name.replace('_', ' ')} | {count} |\n" for name, count in sorted(total.items()))
    return (
        f"{LAST_RUN}\n\n`python -m tests.sources.follow_schedules --schedules {schedules} --seed {seed}`: {schedules} schedules, "
        f"{broken} broke a law, {seconds:.0f} s.\n\n| step | times |\n|---|---|\n{rows}"
    )


if __name__ == "__main__":
    sys.exit(main())
