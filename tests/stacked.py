"""Stacks the variants of `tests.variants`: a log passes two or three hands, and each does something to it.

What happens to a log happens in an order: the program prints it, its logging dresses it, a launcher and then a
collector put something in front, somebody pastes it, a file stores it. A stack takes at most one change of each stage,
but two of collectors, and applies them in that order.

    python -m tests.stacked                       # all pairs and triples of three committed logs: some ten minutes
    python -m tests.stacked --share 0.05 --seed 3 # every twentieth

It prints the stacks whose events lost a fact, and how many there are of each pair of changes; status 1 when there is one.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.conftest import DATA
from tests.truth import Event, EventSource, load_event_source
from tests.variants import VARIANTS, Variant, check, in_turn

# The stages, innermost first.
STAGES: dict[str, tuple[str, ...]] = {
    "program": ("progress_bars", "coloured", "rank", "torchrun", "two_ranks", "windows_paths", "nul_bytes"),
    "logging": ("logging", "loguru", "hydra", "json_message", "json_log", "json_records", "json_bare_records"),
    "launcher": ("ray", "ray_worker", "ray_coloured", "vllm", "slurm", "mpi", "mpi_tagged", "mpi_timestamped", "pdsh"),
    "collector": (
        "docker_json", "docker_json_split", "cri", "cri_partial", "journal_short", "journal_short_iso", "journal_short_precise", "journal_json",
        "syslog_3164", "syslog_5424", "ts", "heroku",
    ),
    "viewer": (
        "kubectl_prefix", "kubectl_prefix_timestamps", "kubectl_timestamps", "docker_compose", "stern", "github_actions", "gitlab", "gitlab_stream",
    ),
    "paste": (
        "markdown_quote", "markdown_bold", "markdown_fence", "html_escaped", "list_indent", "notebook", "wrap_hard_120", "wrap_hard_200",
        "wrap_words_100", "wrap_words_160", "newlines_to_spaces", "whitespace_collapsed", "without_comments",
    ),
    "file": ("crlf", "utf_16_le", "utf_8_bom", "no_last_newline", "head_cut_37", "tail_cut_62"),
}  # fmt: skip
# What nobody does to a log, or what leaves nothing to know it by. An encoder of whole records meets no bars and no ranks in turn; a screen shows no
# colour codes, no NUL and one bar only; an object has no words to break; the files of a container runtime lie where nobody copies a screen;
# a page or a notebook shows no lists of bytes; of lines joined to one, objects with words in between are no list any more, and with the
# beginning cut nobody knows how a line began; NULs in a last line that was cut leave no beginning of it.
_OBJECTS = ("json_message", "json_log", "json_records", "json_bare_records", "docker_json", "docker_json_split", "journal_json", "notebook")
_SCREEN = ("wrap_hard_120", "wrap_hard_200", "wrap_words_100", "wrap_words_160")
_ONE_LINE = ("newlines_to_spaces", "whitespace_collapsed")
FOREIGN = frozenset(
    {
        *itertools.product(STAGES["program"], ("json_bare_records",)),
        *itertools.product(("nul_bytes", "coloured", "ray_coloured", "progress_bars"), _SCREEN),
        *itertools.product(_OBJECTS, (*_SCREEN, *_ONE_LINE)),
        *itertools.product(("journal_json",), ("notebook", "html_escaped")),
        *itertools.product(("nul_bytes",), ("tail_cut_62",)),
        *itertools.product(("docker_json_split", "cri_partial"), (*_SCREEN, *_ONE_LINE)),
        *itertools.product(("progress_bars",), _ONE_LINE),
        *itertools.product(_ONE_LINE, ("head_cut_37",)),
    }
)
LOGS = ("2.13.0/s03_tensor_props", "2.5.1/s01b_kvcache_branch_std", "2.13.0/s11_ro_cudagraphs_backend_default")


def stacks(size: int) -> Iterator[tuple[Variant, ...]]:
    """Every stack of so many changes, of different stages."""
    known = {stage: [VARIANTS[name] for name in names] for stage, names in STAGES.items()}
    for stages in itertools.combinations(known, size):
        for changes in itertools.product(*(known[stage] for stage in stages)):
            if not any((one.name, other.name) in FOREIGN for one, other in itertools.combinations(changes, 2)):
                yield changes


def stacked(changes: Sequence[Variant]) -> Variant:
    """The changes as one: what each of them keeps, expects and asks of a log."""
    return Variant(
        "+".join(change.name for change in changes),
        in_turn(*(change.apply for change in changes)),
        _kept(changes),
        functools.partial(_suits, changes),
        functools.partial(_expected, changes),
    )


def _kept(changes: Sequence[Variant]) -> frozenset[str]:
    """The facts that all of them keep; a guard whose blanks one of them loses is compared without."""
    has_text = all({"text", "text_squeezed"} & change.keeps for change in changes)
    kept = frozenset[str].intersection(*(change.keeps for change in changes)) - {"text_squeezed"}
    return kept | {"text_squeezed"} if has_text and "text" not in kept else kept


def _suits(changes: Sequence[Variant], data: bytes) -> bool:
    return all(change.suits(data) for change in changes)


def _expected(changes: Sequence[Variant], events: list[Event]) -> list[Event]:
    return functools.reduce(lambda found, change: change.expect(found), changes, events)


def failures(source: EventSource, label: str, data: bytes, chosen: Callable[[], bool]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The stacks of two and three that lose a fact of this log: its name, the changes, the first difference."""
    original = source(data, "bot.log")
    for changes in itertools.chain(stacks(2), stacks(3)):
        variant = stacked(changes)
        if not chosen() or not variant.suits(data):
            continue
        cell = check(variant, data, source, original)
        if cell.error or cell.problems:
            yield label, tuple(change.name for change in changes), cell.error or (cell.problems or ("",))[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Reads the committed logs in stacked forms and compares the events; status 1 on a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.stacked", description=main.__doc__)
    parser.add_argument("--root", type=Path, default=DATA / "torch", help="a folder with one folder per torch version")
    parser.add_argument("--events", default="tests.conftest:events_of_bytes", metavar="MODULE:FUNCTION")
    parser.add_argument("--share", type=float, default=1.0, help="which share of the stacks (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--logs", nargs="*", default=LOGS)
    options = parser.parse_args(arguments)
    source, rng = load_event_source(options.events), random.Random(options.seed)
    share: float = options.share
    count, found = 0, []

    def chosen() -> bool:
        nonlocal count
        count += (taken := rng.random() < share)
        return taken

    for label in options.logs:
        for failure in failures(source, label, (options.root / f"{label}.log").read_bytes(), chosen):
            print(*failure, sep="  ", flush=True)
            found.append(failure[1])
    pairs = Counter(pair for names in found for pair in itertools.combinations(names, 2))
    print(*(f"{number:5d}  {' + '.join(pair)}" for pair, number in pairs.most_common(40)), sep="\n")
    print(f"{len(found)} of {count} stacks lost a fact")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
