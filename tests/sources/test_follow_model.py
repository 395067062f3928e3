"""The follower against a model: any order of writing, rotating, cutting, packing, deleting, killing and waiting.

Hypothesis chooses the steps and makes failing orders short; `python -m tests.sources.follow_schedules` runs as many as one likes.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.sources.follow_schedules import REFILLS, run, take
from tests.sources.follow_world import World


class Following(RuleBasedStateMachine):
    """Every step of the world is a rule; the laws are checked by the world itself, in each poll and at the end."""

    world: World

    @initialize(seed=st.integers(0, 1 << 30), style=st.sampled_from(("plain", "link", "pattern")), keep=st.integers(1, 6))
    def begin(self, seed: int, style: str, keep: int) -> None:
        """A log that nobody has written yet."""
        self.world = World(random.Random(seed), style, keep)

    @rule(lines=st.integers(1, 30))
    def write(self, lines: int) -> None:
        """Whole lines."""
        self.world.write(lines)

    @rule()
    def poll(self) -> None:
        """One look, with any budget."""
        self.world.poll()

    @rule(refill=st.sampled_from(REFILLS), with_copy=st.booleans())
    def cut(self, refill: str, with_copy: bool) -> None:
        """In place, with or without a copy, refilled to any size."""
        if with_copy:
            self.world.copy_and_truncate(refill)
        else:
            self.world.truncate(refill)

    @rule(
        name=st.sampled_from(
            (
                "write_part",
                "leave_part",
                "write_stale",
                "rotate",
                "rotate_twice",
                "stale_hole",
                "compress",
                "delete",
                "forbid",
                "allow",
                "jump_clock",
                "wait",
                "idle",
            )
        )
    )
    def change(self, name: str) -> None:
        """Everything else that happens to a log."""
        take(self.world, name, self.world.rng)

    @rule()
    def commit(self) -> None:
        """The store keeps marks at or before what was given."""
        self.world.commit()

    @rule(back=st.integers(0, 3))
    def restart(self, back: int) -> None:
        """Killed, and started from the store or an older copy of it."""
        self.world.restart(back)

    def teardown(self) -> None:
        """Everything is read to its end and judged."""
        if hasattr(self, "world"):
            try:
                self.world.finish()
            finally:
                self.world.close()


Following.TestCase.settings = settings(
    max_examples=25, stateful_step_count=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), print_blob=True
)
TestFollowing = Following.TestCase


# Schedules that broke a law once.
MENDED = (
    712728, 740006, 740054, 740055, 740065, 740066, 740129, 740138, 781182, 782269, 782408, 782979, 790059, 790083, 790088, 790153, 790276,
    800888, 800975, 801742, 801995, 840146, 880395, 922043, 922830, 924416, 991302, 1304989,
)  # fmt: skip


@pytest.mark.parametrize("seed", (*range(1, 41), *MENDED))
def test_a_schedule_breaks_no_law(seed: int) -> None:
    """Sixty random steps: every line once, whole, in order; lost only where its bytes were gone, and then reported."""
    assert run(seed)["lines written"]
