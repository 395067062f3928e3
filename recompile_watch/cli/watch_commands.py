"""The commands of the daemon: running it, asking it, telling it."""

from recompile_watch.cli.parsing import Parser


def watch_options(parser: Parser) -> None:
    parser.add_argument("--config", metavar="FILE", help="the watch's TOML file")
    parser.add_argument("--check", action="store_true", help="only checks the file: exit status 0 or 78")
    parser.add_argument("--once", action="store_true", help="reads what is new, sends what is due, and ends; for cron")
    parser.add_argument("--reference", action="store_true", help="prints every key of the file, with its default, as Markdown")
    parser.add_argument("--schema", action="store_true", help="prints the file's JSON Schema, for editors")


def state_options(parser: Parser) -> None:
    parser.add_argument("--config", metavar="FILE", help="the watch's TOML file, for its state directory")
    parser.add_argument(
        "--state-dir", metavar="DIR", help="the watch's state directory (default: $STATE_DIRECTORY, else ~/.local/state/recompile-watch)"
    )


def status_options(parser: Parser) -> None:
    state_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")


def incidents_list_options(parser: Parser) -> None:
    state_options(parser)
    parser.add_argument("--all", action="store_true", help="resolved ones as well")
    parser.add_argument("--json", action="store_true", help="one JSON list")


def incidents_show_options(parser: Parser) -> None:
    parser.add_argument("incident", metavar="ID", help="its id, or how that begins")
    state_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")


def incidents_ack_options(parser: Parser) -> None:
    parser.add_argument("incident", metavar="ID", help="its id, or how that begins")
    state_options(parser)
    parser.add_argument("--until", metavar="TIME", help="expected until then: 2025-10-30, 09:08, or in 4h as 4h (default: until it is over)")
    parser.add_argument("--why", metavar="TEXT", default="", help="what you know about it")


def incidents_silence_options(parser: Parser) -> None:
    parser.add_argument("matchers", metavar="FIELD=VALUE", nargs="+", help="kind=graph_break, model!=toto, function=~decode.*")
    state_options(parser)
    parser.add_argument("--until", metavar="TIME", required=True, help="when it ends: 2025-10-30, 09:08, or in 4h as 4h")
    parser.add_argument("--why", metavar="TEXT", default="", help="why nobody is to be told")


def incidents_unsilence_options(parser: Parser) -> None:
    parser.add_argument("silence", metavar="ID", help="the silence's id, or how that begins")
    state_options(parser)


def notify_test_options(parser: Parser) -> None:
    parser.add_argument("--config", metavar="FILE", required=True, help="the watch's TOML file")
    parser.add_argument("receivers", metavar="NAME", nargs="*", help="only these receivers (default: all)")


def notify_digest_options(parser: Parser) -> None:
    parser.add_argument("--config", metavar="FILE", required=True, help="the watch's TOML file")


def notify_failed_options(parser: Parser) -> None:
    parser.add_argument("--config", metavar="FILE", required=True, help="the watch's TOML file")
    parser.add_argument("--unit", metavar="UNIT", default="recompile-watch.service", help="the unit that failed")


def replay_options(parser: Parser) -> None:
    parser.add_argument("log", metavar="LOG", nargs="+", help="a log, or the rotated family of one, oldest first")
    parser.add_argument("--config", metavar="FILE", help="the watch's TOML file (default: one receiver that wants warnings)")
    parser.add_argument("--speed", metavar="N", default="max", help="N times the log's own speed, or max (default)")
    parser.add_argument("--tz", metavar="ZONE", help="zone of lines without one (default: that of the configured source, else local)")
    parser.add_argument("--json", action="store_true", help="one JSON object a message")


def doctor_options(parser: Parser) -> None:
    parser.add_argument("--config", metavar="FILE", required=True, help="the watch's TOML file")
    parser.add_argument("--pid", metavar="PID", help="the running bot's process id, whose TORCH_LOGS are looked at")
    parser.add_argument("--json", action="store_true", help="one JSON list")
