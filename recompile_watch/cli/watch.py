"""``recompile-watch watch``: the daemon."""

import argparse
import json
from pathlib import Path

from recompile_watch.cli import exit_status
from recompile_watch.cli.output import write_error, write_stdout
from recompile_watch.core.errors import ConfigError, UsageError


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Watches until it is told to end; with --check only reads the configuration, with --once only what is there now."""
    if arguments.reference or arguments.schema:
        return _describe(arguments.schema)
    if arguments.config is None:
        raise UsageError("--config is missing; it takes the watch's TOML file, of which ten lines are enough (see docs/watch.md)")
    file = Path(arguments.config)
    if arguments.check:
        return _check(file)
    from recompile_watch.daemon.journal import Journal
    from recompile_watch.daemon.program import Program, read_for_one_look

    if not arguments.once:
        Program(file, Journal()).run()
        return exit_status.OK
    unread = Program(file, Journal(), read=read_for_one_look).run_once()
    for text in unread:
        write_error(text)
    return exit_status.UNKNOWN if unread else exit_status.OK


def _describe(as_schema: bool) -> int:
    """Prints what the configuration file may hold."""
    from recompile_watch.watch_tables import config_reference, config_schema

    if as_schema:
        write_stdout(json.dumps(config_schema(), indent=1) + "\n")
        return exit_status.OK
    lines = [
        "# The watch's configuration",
        "",
        '`recompile-watch watch --reference` prints this page. Durations are written as `"90s"`, sizes as `"64MiB"`.',
    ]
    before = None
    for table, name, form, default, doc in config_reference():
        if table != before:
            lines += ["", f"## {table or 'Top of the file'}", "", "| key | form | default | meaning |", "|---|---|---|---|"]
        before = table
        lines.append("| " + " | ".join(_cell(text) for text in (f"`{name}`", form, default or "required", doc)) + " |")
    write_stdout("\n".join(lines) + "\n")
    return exit_status.OK


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _check(file: Path) -> int:
    """Says what the configuration means; ConfigError has all its mistakes."""
    from recompile_watch.config import load_catalog
    from recompile_watch.core.units import duration_text
    from recompile_watch.daemon.building import rules_of
    from recompile_watch.notify import address_mistakes
    from recompile_watch.watch_config import read_config

    config = read_config(file)
    wrong = [f"{file}: receiver {name}: {why}" for name, why in address_mistakes(config.receivers)]
    if wrong:
        raise ConfigError("\n".join(wrong))
    rules = rules_of(config)
    load_catalog()
    print(f"{file}: good")
    for source in config.sources:
        origin = source.origin
        what = f"the journal of {origin.journal}" if origin.journal else "standard input" if origin.stdin else ", ".join(source.follow.paths)
        print(f"  source {source.name}: {what}, from its {'end' if source.follow.start == 'end' else 'beginning'}")
    for receiver, rule in zip(config.receivers, config.watch.receivers, strict=True):
        print(
            f"  receiver {receiver.name}: {receiver.form.value}, {rule.min_severity} and worse, again after {duration_text(rule.repeat_interval_s)}"
        )
    if not config.receivers:
        print("  no receiver: incidents are kept, and nobody is told")
    diagnose = config.general.diagnose
    if diagnose.on_alert:
        print(f"  an alert about {diagnose.model} has {diagnose.workload} measured, once in {duration_text(diagnose.cooldown_s)} for an incident")
    print(f"  state in {config.state_folder}; {len(rules.rules)} rules")
    return exit_status.OK
