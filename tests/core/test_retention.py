"""What is kept for how long: rows that are over, and parts of the memory that nothing touches."""

from __future__ import annotations

import json

from recompile_watch.core.fading import PERIOD_S, Fading
from recompile_watch.core.retention import Archive
from recompile_watch.core.shelves import Shelf, always

NOW = 1_760_000_000.0


def test_rows_go_by_age_and_beyond_the_bound() -> None:
    """The oldest first; those beyond the bound all at once, those that are too old a few at a time."""
    archive = Archive[str](keep_s=100.0, most=6)
    for number in range(10):
        archive.put(f"r{number}", NOW + number)
    assert archive.served(NOW + 50, 2) == ["r0", "r1", "r2", "r3"]
    assert archive.served(NOW + 50, 2) == []
    assert archive.served(NOW + 107.5, 2) == ["r4", "r5"]
    assert archive.served(NOW + 107.5, 2) == ["r6", "r7"]
    assert archive.served(NOW + 107.5, 2) == []
    assert len(archive) == 2


def test_a_wrong_clock_costs_few_rows() -> None:
    """A year ahead for some looks and back again: as many looks' worth of rows that were over, and no more."""
    archive = Archive[int](keep_s=90 * 86_400.0, most=5_000)
    for number in range(1_000):
        archive.put(number, NOW)
    gone = sum(len(archive.served(NOW + 366 * 86_400.0, 100)) for _ in range(3))
    assert gone == 300
    assert archive.served(NOW + 60, 100) == []


def test_what_nothing_touched_for_two_periods_fades() -> None:
    """What is used stays; what never fades stays; a restart in between changes nothing."""
    parts: dict[str, object] = {}

    def started() -> tuple[Fading, Shelf[int], Shelf[int]]:
        fading, names, kept = Fading(parts), Shelf("name", int, parts, 100, always), Shelf("kept", int, parts, 100)
        fading.resume((names, kept))
        return fading, names, kept

    for period in range(5):
        fading, names, kept = started()
        fading.run(NOW + period * PERIOD_S, (names, kept))
        names.put(f"new {period}", period)
        names.put("used", period)
        kept.put(f"new {period}", period)
        parts.clear()
        for shelf in (fading.shelf, names, kept):
            parts.update(json.loads(json.dumps(shelf.everything())))
    assert sorted(names) == ["new 3", "new 4", "used"]
    assert len(kept) == 5


def test_a_shelf_that_was_emptied_does_not_forget_what_is_new() -> None:
    """Its numbers go on where they were, though no part has them any more."""
    parts: dict[str, object] = {}
    fading, names = Fading(parts), Shelf("name", int, parts, 100, always)
    for number in range(50):
        names.put(str(number), number)
    fading.run(NOW, (names,))
    for number in range(50):
        names.drop(str(number))
    parts.update(json.loads(json.dumps(fading.shelf.everything())))
    again, new = Fading(parts), Shelf("name", int, parts, 100, always)
    again.resume((new,))
    new.put("fresh", 1)
    again.run(NOW + PERIOD_S, (new,))
    assert list(new) == ["fresh"]


def test_a_clock_that_goes_back_forgets_nothing() -> None:
    """Only the period begins anew."""
    fading, names = Fading({}), Shelf("name", int, {}, 100, always)
    fading.run(NOW, (names,))
    names.put("a", 1)
    fading.run(NOW + PERIOD_S, (names,))
    fading.run(NOW, (names,))
    fading.run(NOW + 0.5 * PERIOD_S, (names,))
    assert list(names) == ["a"]
