"""What the watch itself raises, in plain words: conditions over many events, and faults of the watching. No line of a log is one of these."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WatchKind:
    """means: what is so. do: what a person does about it. key: of the configuration that judges it; empty where nothing does."""

    means: str
    do: str
    key: str = ""


WATCH_KINDS: Mapping[str, WatchKind] = {
    "headroom_low": WatchKind(
        "One function uses most of the compiled versions that the recompile limit allows; behind the limit new inputs run in eager mode.",
        "Mend the guard that the incident names before the limit is hit: incidents show has the remedy for it.", "compiling.headroom",
    ),
    "late_recompiles": WatchKind(
        "A function is compiled again and again after warm-up, while calls wait for the compiler.",
        "Warm up every variant that comes later, or mend the guard that the incident names.", "compiling.late_recompiles, compiling.late_window",
    ),
    "too_many": WatchKind(
        "Events of one kind came more often within a time than the configuration allows.", "Look at the events: incidents show has the latest.",
        "rates",
    ),
    "latency_high": WatchKind(
        "The slowest of a model's latest calls take clearly longer than they normally do, or longer than the bound.",
        "Look for what began with it: recompiles or a limit hit, the CPU instead of the GPU, another program on the GPU.", "latency",
    ),
    "memory_high": WatchKind(
        "A stage of a model takes clearly more GPU memory than it normally does, or more than the bound.",
        "Look for a larger batch, a second model or another program on the GPU.", "memory",
    ),
    "return_low": WatchKind(
        "A strategy's simulated return for a symbol is below the bound, below its own normal level, or has changed its sign.",
        "Compare with the forecasts and quotes of that analysis: made-up quotes and failed forecasts both move returns.", "returns",
    ),
    "symbol_missing": WatchKind(
        "An analysis finished without a symbol that the ones before had.",
        "Look for the error that ended its analysis, in the same log and just before.",
    ),
    "source_silent": WatchKind(
        "A source gave no line for longer than it may, in a time in which the watch was looking.",
        "See whether the program runs, and whether it still writes to this path: recompile-watch doctor shows both.",
        "source.silent_after, source.schedule",
    ),
    "watch_gap": WatchKind(
        "Lines were written and are gone before anybody read them: a log that was cut to nothing between two looks, or deleted.",
        "Have the log rotated by renaming, not by copying and cutting (logrotate without copytruncate).",
    ),
    "watch_source_unreadable": WatchKind("A log is there and cannot be read.", "Let the user of the watch read it, and the folders above it."),
    "watch_source_missing": WatchKind("A path or pattern leads to no file.", "Correct the path, or start what writes it.", "source.missing_after"),
    "watch_state_corrupt": WatchKind(
        "What the watch remembered could not be read, was put aside, and begun anew: acknowledgements, silences and waiting messages are gone.",
        "Look after the disk. The file that was put aside can be deleted.",
    ),
    "watch_state_unwritable": WatchKind(
        "The watch cannot write down what it knows; it goes on in memory.",
        "Make room on the disk of the state directory, or let its user write there.",
    ),
    "watch_undelivered": WatchKind(
        "A receiver did not take a message.", "Correct its address, then prove it: recompile-watch notify test.", "receiver.give_up",
    ),
    "watch_receiver_gone": WatchKind(
        "Messages waited for a receiver that the configuration no longer has.", "Put it back, or see incidents list for what it was to be told.",
    ),
    "watch_bad_reload": WatchKind(
        "The configuration was changed and is wrong; the old one stays in force.",
        "See all mistakes with recompile-watch watch --check, mend them, reload.",
    ),
    "watch_wake_lost": WatchKind(
        "The system does not wake the watch when a log grows, so it only looks at intervals.",
        "Raise fs.inotify.max_user_watches or max_user_instances (sysctl), or let it be: it costs one interval.", "poll_interval",
    ),
}  # fmt: skip
