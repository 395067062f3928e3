"""All commands with their options: what ``--help``, the shell completion and the parser need, and nothing heavier."""

from collections.abc import Callable
from dataclasses import dataclass

from recompile_watch.cli import watch_commands as watch
from recompile_watch.cli.parsing import Parser

PROGRAM = "recompile-watch"
_LOGS = "a log, .gz or .zst, a folder, a pattern in quotes, or - for standard input"


@dataclass(frozen=True, slots=True)
class Command:
    """One command. name: its words. module: what runs it. arguments: adds its own options to its parser."""

    name: tuple[str, ...]
    module: str
    summary: str
    description: str
    example: str
    arguments: Callable[[Parser], None]

    def parser(self) -> Parser:
        """Its argument parser."""
        parser = Parser(prog=" ".join((PROGRAM, *self.name)), description=self.description, example=self.example)
        self.arguments(parser)
        return parser


def _reading(parser: Parser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="*", help=_LOGS)
    parser.add_argument("--rules", metavar="DIR", action="append", default=[], help="adds a folder of rules; may be given more than once")
    parser.add_argument("--rotated", action="store_true", help="reads bot.log, bot.log.1, bot.log.2.gz as one log, oldest first")
    parser.add_argument("--since", metavar="TIME", help="only events from then on: 2025-10-30, 2025-10-30T09:08, 09:08, or 2h ago as 2h")
    parser.add_argument("--until", metavar="TIME", help="only events before then, written likewise")
    parser.add_argument("--year", metavar="YYYY", help="year of lines without one (default: that of dated lines nearby, else of the file)")
    parser.add_argument("--tz", metavar="ZONE", help="zone of lines without one, such as UTC, Europe/Berlin or +02:00 (default: local)")
    parser.add_argument("--jobs", metavar="N", help="processes that read in parallel; 0 is one for each core (default 1)")
    parser.add_argument("--strict", action="store_true", help="exit status 3 if a line of torch could not be read")


def _analyze(parser: Parser) -> None:
    _reading(parser)
    parser.add_argument(
        "--format", choices=("text", "json", "markdown", "html", "sarif", "github"), default="text",
        help="text for people (default), json for programs, markdown, html for a browser, sarif for code scanning, github for annotations",
    )  # fmt: skip
    parser.add_argument("--output", metavar="FILE", help="writes there instead of to standard output, whole or not at all")
    _weighing(parser)
    parser.add_argument("--baseline", metavar="FILE", help="an earlier JSON report: marks each finding new, worse, same, better or gone")
    parser.add_argument("--accept", metavar="FILE", help="findings that a person has accepted until a day, as TOML")
    parser.add_argument(
        "--fail-on", choices=("critical", "warning", "never"), help="lowest severity that counts for the exit status (default: warning)"
    )


def _decide(parser: Parser) -> None:
    _reading(parser)
    parser.add_argument("--output", metavar="FILE", help="writes there instead of to standard output, whole or not at all")
    _weighing(parser)
    parser.set_defaults(baseline=None, accept=None)


def _weighing(parser: Parser) -> None:
    parser.add_argument("--torch-version", metavar="X", help="the torch that wrote the log, such as 2.9.1, where the log does not say it")
    _models(parser)
    parser.add_argument(
        "--diagnosis", metavar="M=FILE", action="append", default=[], help="a JSON report of diagnose for a model: its verdict is the decision"
    )  # fmt: skip
    parser.add_argument(
        "--state-dir", metavar="DIR", help="a watch's state directory: the newest diagnosis of each model that it keeps is the decision"
    )


def _models(parser: Parser) -> None:
    parser.add_argument("--models", metavar="FILE", help="your own models: their code, their switches, their env files (TOML, docs/models.md)")


def _diagnose(parser: Parser) -> None:
    parser.add_argument("--workload", metavar="M:F", help="your workload, as module:factory; 'diagnose init' writes one to fill in")
    parser.add_argument("--builtin", choices=("kv-storm", "steady", "handoff", "dynamic-shapes"), help="measures a small workload of its own instead")
    parser.add_argument(
        "--stage", choices=("structural", "timed", "both", "auto"), default="both",
        help="structural: seconds, no GPU; timed; both (default); auto: both where a GPU may be used now, else structural",
    )  # fmt: skip
    parser.add_argument(
        "--python", metavar="PATH", help="the interpreter that has torch and the workload's packages (default: of --config, else this one)"
    )
    parser.add_argument("--candidates", metavar="A,B", action="append", default=[], help="settings to try against eager (default: the usual ones)")
    parser.add_argument("--advice", metavar="FILE", help="a JSON report of analyze: what it advises is tried as well")
    parser.add_argument(
        "--profile", choices=("production", "balanced", "accuracy", "research", "max-performance"), help="what to ask of them (default: production)"
    )  # fmt: skip
    parser.add_argument("--mode", choices=("quick", "full", "production-check"), help="how much to measure (default: quick)")
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="where the timed stage runs (default: an idle GPU, else the CPU)"
    )
    parser.add_argument("--expected-calls", metavar="N", help="calls of one process in which compiling must pay for itself (default 10000)")
    parser.add_argument(
        "--format", choices=("text", "json", "markdown", "html"), default="text",
        help="text for people (default), json for programs, markdown, html for a browser",
    )  # fmt: skip
    parser.add_argument("--from", dest="kept", metavar="FILE", help="measures nothing: shows a JSON report of an earlier run in the wanted format")
    parser.add_argument("--output", metavar="FILE", help="writes there instead of to standard output, whole or not at all")
    parser.add_argument("--log", metavar="FILE", help="writes what torch logged, for analyze")
    parser.add_argument("--config", metavar="FILE", help="a configuration file with a [diagnose] section")
    parser.add_argument(
        "--state-dir", metavar="DIR",
        help="the watch's state directory, where the lock lies (default: of --config, else $STATE_DIRECTORY, else ~/.local/state/recompile-watch)",
    )  # fmt: skip
    parser.add_argument("--incident", metavar="ID", help="what it is run for: its advice is tried; not again within the configuration's cooldown")
    parser.add_argument("--parent", metavar="PID", help="ends with this process and steps back behind all others; for the watch")
    parser.add_argument("--time-limit", metavar="SECONDS", help="for one candidate (default 600)")
    parser.add_argument("--seed", metavar="N", help="of everything random in it (default 0)")


def _diagnose_init(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", default="bot_workload.py", help="the module to write (default bot_workload.py)")


def _explain(parser: Parser) -> None:
    parser.add_argument("topic", metavar="TOPIC", nargs="*", help="a cause, event kind, remedy, setting or model, or a message of the log in quotes")
    _models(parser)
    parser.add_argument("--guide", action="store_true", help="prints everything as one page of Markdown")


def _rules_list(parser: Parser) -> None:
    _rule_folders(parser)
    parser.add_argument("--json", action="store_true", help="one JSON list")


def _rules_show(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="the rule's id, such as torch.recompile")
    _rule_folders(parser)


def _rules_check(parser: Parser) -> None:
    parser.add_argument("folders", metavar="DIR", nargs="*", help="folders of rules (default: the shipped ones)")


def _rules_test(parser: Parser) -> None:
    parser.add_argument("log", metavar="LOG", help=_LOGS)
    _rule_folders(parser)


def _rule_folders(parser: Parser) -> None:
    parser.add_argument("--rules", metavar="DIR", action="append", default=[], help="adds a folder of rules; may be given more than once")


def _completion(parser: Parser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh"), help="the shell to complete in")


COMMANDS = (
    Command(
        ("analyze",), "recompile_watch.cli.analyze", "what a log means: findings, evidence, status",
        "Says what a log of torch.compile (or of the trading bot) means.\nexit status: 0 ok, 1 warning, 2 critical, 3 unknown",
        "recompile-watch analyze bot.log stderr.log", _analyze,
    ),
    Command(
        ("events",), "recompile_watch.cli.events", "what was seen: one JSON object a line, in log order",
        "Prints what was seen, one JSON object a line, in log order.", "recompile-watch events --since 2h bot.log | jq .kind", _reading,
    ),
    Command(
        ("diagnose", "init"), "recompile_watch.cli.diagnose_init", "writes a workload to fill in",
        "Writes a commented workload: your model, as your program calls it.", "recompile-watch diagnose init bot_workload.py", _diagnose_init,
    ),
    Command(
        ("diagnose",), "recompile_watch.cli.diagnose", "eager against compiled, measured; a verdict",
        "Measures a workload in eager mode and under each setting, each in a fresh process, and says which to run.\n"
        "exit status: 0 decided, 3 inconclusive or not run",
        "recompile-watch diagnose --workload bot_workload:make --python /srv/bot/.venv/bin/python", _diagnose,
    ),
    Command(
        ("decide",), "recompile_watch.cli.decide", "a decision record: which mode each model should run in, and why",
        "Writes which mode each model should run in, why, on what evidence, and when to look again, as Markdown to keep.\n"
        "exit status: 0 decided, 3 undecided",
        "recompile-watch decide --diagnosis toto=toto.json --output decision.md bot.log", _decide,
    ),
    Command(
        ("explain",), "recompile_watch.cli.explain", "a cause, event kind, remedy, setting, model or message, in plain words",
        "Explains a cause, an event kind, a remedy, a setting, a model, or a message of the log.",
        "recompile-watch explain kv_cache_index", _explain,
    ),
    Command(
        ("watch",), "recompile_watch.cli.watch", "the daemon: follows logs and raises alerts",
        "Follows logs and raises alerts, until it is told to end. SIGHUP reads the configuration again.\n"
        "exit status: 0 ended as told, 78 bad configuration",
        "recompile-watch watch --config /etc/recompile-watch/config.toml", watch.watch_options,
    ),
    Command(
        ("status",), "recompile_watch.cli.status", "what the daemon knows now: sources, lag, incidents, outbox",
        "Shows what the watch knows: sources, incidents, outbox. Works without a running watch, too.",
        "recompile-watch status --state-dir /var/lib/recompile-watch", watch.status_options,
    ),
    Command(
        ("incidents", "list"), "recompile_watch.cli.incidents", "the problems that go on",
        "Lists the incidents that go on, worst first; with --all those that are over as well.",
        "recompile-watch incidents list --all", watch.incidents_list_options,
    ),
    Command(
        ("incidents", "show"), "recompile_watch.cli.incidents", "one incident with its evidence and advice",
        "Shows one incident: what, where, since when, what it costs, what to change.", "recompile-watch incidents show 3f2a",
        watch.incidents_show_options,
    ),
    Command(
        ("incidents", "ack"), "recompile_watch.cli.incidents", "you know of it: no repeats, no escalation",
        "Acknowledges an incident: it is not repeated and not escalated.", "recompile-watch incidents ack 3f2a --until 4h --why 'redeploy at noon'",
        watch.incidents_ack_options,
    ),
    Command(
        ("incidents", "silence"), "recompile_watch.cli.incidents", "nobody is told of what matches, until then",
        "Silences what matches all FIELD=VALUE (also !=, =~ and !~ with a pattern) until a time.",
        "recompile-watch incidents silence model=kronos kind=graph_break --until 24h --why 'known'", watch.incidents_silence_options,
    ),
    Command(
        ("incidents", "unsilence"), "recompile_watch.cli.incidents", "ends a silence",
        "Ends a silence.", "recompile-watch incidents unsilence 8d01", watch.incidents_unsilence_options,
    ),
    Command(
        ("notify", "test"), "recompile_watch.cli.notify", "sends a test message to every receiver",
        "Sends a test message to every receiver and says what became of it.\nexit status: 0 all delivered, 2 one was not",
        "recompile-watch notify test --config watch.toml", watch.notify_test_options,
    ),
    Command(
        ("notify", "digest"), "recompile_watch.cli.notify", "sends every receiver what goes on and what ended today",
        "Sends every receiver what goes on and what ended within a day, whether the watch runs or not; for a daily timer.",
        "recompile-watch notify digest --config watch.toml", watch.notify_digest_options,
    ),
    Command(
        ("notify", "failed"), "recompile_watch.cli.notify", "tells every receiver that the watch itself failed",
        "Tells every receiver that the watch itself failed; for the failure unit of systemd.",
        "recompile-watch notify failed --config watch.toml --unit recompile-watch.service", watch.notify_failed_options,
    ),
    Command(
        ("replay",), "recompile_watch.cli.replay", "what the daemon would have sent for an old log",
        "Runs the daemon's own engine over an old log, by the log's own time, and prints what it would have sent, and when.",
        "recompile-watch replay bot.log.1 bot.log --config watch.toml", watch.replay_options,
    ),
    Command(
        ("doctor",), "recompile_watch.cli.doctor", "is everything in place for the watch?",
        "Checks the configuration, the sources, the running bot's TORCH_LOGS, the receivers, the state directory and the clock.\n"
        "exit status: 0 all is well, 1 something is weak, 2 something is broken, 3 something cannot be known",
        "recompile-watch doctor --config watch.toml --pid $(pgrep -f bot.py)", watch.doctor_options,
    ),
    Command(
        ("rules", "list"), "recompile_watch.cli.rules_list", "the detection rules in force",
        "Lists the detection rules in force.", "recompile-watch rules list --rules my_rules/", _rules_list,
    ),
    Command(
        ("rules", "show"), "recompile_watch.cli.rules_list", "one rule with its pattern and samples",
        "Shows one rule: what it matches, why it matters, its samples.", "recompile-watch rules show torch.recompile_limit_hit", _rules_show,
    ),
    Command(
        ("rules", "check"), "recompile_watch.cli.rules_check", "whether rules are valid and match their own samples",
        "Checks rule files and runs every sample in them. Exit status 78 if one is wrong.", "recompile-watch rules check my_rules/", _rules_check,
    ),
    Command(
        ("rules", "test"), "recompile_watch.cli.rules_test", "what each rule finds in a log of your own",
        "Shows what each rule finds in a log.", "recompile-watch rules test bot.log --rules my_rules/", _rules_test,
    ),
    Command(
        ("completion",), "recompile_watch.cli.completion", "a completion script for bash or zsh",
        "Prints a completion script for a shell.", "recompile-watch completion bash > ~/.local/share/bash-completion/completions/recompile-watch",
        _completion,
    ),
)  # fmt: skip


def top_help() -> str:
    """The program's own ``--help``."""
    width = max(len(" ".join(command.name)) for command in COMMANDS)
    lines = [f"  {' '.join(command.name):<{width}}  {command.summary}" for command in COMMANDS]
    return "\n".join(
        [
            f"usage: {PROGRAM} COMMAND [OPTION]... [PATH]...",
            "",
            "Reads torch.compile logs (and a trading bot's) and says what happened.",
            "",
            "commands:",
            *lines,
            "",
            "options:",
            "  -h, --help  show this help; after a command, the help of that command",
            "  --version   show the version",
            "",
            "exit status: 0 ok, 1 warning, 2 critical, 3 unknown, 64 wrong usage, 78 bad configuration",
            "",
            "example:",
            "  python bot.py 2>&1 | tee bot.log; recompile-watch analyze bot.log",
        ]
    )
