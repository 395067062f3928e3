"""``recompile-watch diagnose``: eager against compiled, measured, with a verdict."""

import argparse
import json
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from recompile_watch import __version__
from recompile_watch.cli import exit_status
from recompile_watch.cli.diagnose_watch import advised, as_child_of, hand_over, incident_of, state_folder
from recompile_watch.cli.output import STANDARD_OUTPUT, is_color_wanted, write_error, write_result
from recompile_watch.config import load_diagnose_settings, load_matcher, load_rules, read_text_file, shipped_workloads
from recompile_watch.core.candidates import EAGER, Candidate, advised_candidate, parse_candidates
from recompile_watch.core.diagnosis import Diagnosis
from recompile_watch.core.errors import ConfigError, DiagnosisError, SourceError, UsageError
from recompile_watch.core.kept_diagnosis import read_diagnosis
from recompile_watch.core.profiles import PROFILES, Profile
from recompile_watch.report.diagnosis_json import diagnosis_to_json
from recompile_watch.report.safe import safe
from recompile_watch.respond.diagnose import Plan, Progress, Surroundings, diagnose, not_run
from recompile_watch.respond.diagnose_settings import DiagnoseSettings
from recompile_watch.respond.gpu_guard import Gpu, GuardError, GuardSettings
from recompile_watch.respond.gpu_watch import GpuWatch, gpu_to_use
from recompile_watch.respond.latency_watch import LatencyWatch
from recompile_watch.respond.run_lock import cooldown_left_s, only_run, remember_run

_MAX_SEED = 2**31
# Options of a new run, which mean nothing for a kept one.
_OF_A_RUN = (
    "workload", "builtin", "candidates", "advice", "profile", "mode", "python", "expected_calls", "log", "config", "state_dir", "incident",
    "time_limit", "seed",
)  # fmt: skip


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Measures, or reads what was measured; writes the report; returns the exit status: 0 decided, 3 inconclusive or not run."""
    if arguments.kept is not None:
        diagnosis = _kept(arguments)
        return _told(diagnosis, _report(diagnosis), arguments)
    told_to_end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told_to_end.set())  # an exception might come while a worker begins, and lose it
    settings = load_diagnose_settings(Path(arguments.config)) if arguments.config else DiagnoseSettings()
    parent = None if arguments.parent is None else _number("--parent", arguments.parent, 1, 2**31)
    if parent is not None:
        settings = as_child_of(parent, settings)
    folder = state_folder(arguments)
    incident = incident_of(folder, arguments.incident) if arguments.incident else {}
    cools_down = str(incident.get("id")) if incident and parent is None else None  # a watch has its own memory of that
    plan = _plan(arguments, settings, incident)
    try:
        diagnosis = _measured(plan, arguments, settings, _Surety(folder, cools_down, told_to_end))
    except (DiagnosisError, SourceError) as refusal:
        if arguments.format == "html":  # a page is looked at later, and by people who do not see the terminal
            refused = not_run(plan, str(refusal))
            write_result(_rendered(refused, _report(refused), arguments), arguments.output)
        raise
    report = _report(diagnosis)
    status = _told(diagnosis, report, arguments)
    if parent is None:
        is_configured = not (arguments.workload or arguments.builtin)
        model = incident.get("model") or (settings.model if is_configured else None)
        hand_over(folder, report, str(incident.get("id", "")), str(model or ""))
    return status


def _report(diagnosis: Diagnosis) -> dict[str, object]:
    return diagnosis_to_json(diagnosis, generated_at=datetime.now(UTC).isoformat(timespec="seconds"), tool_version=__version__)


def _told(diagnosis: Diagnosis, report: dict[str, object], arguments: argparse.Namespace) -> int:
    """Writes the report and what was wrong; the exit status."""
    write_result(_rendered(diagnosis, report, arguments), arguments.output)
    is_shown = arguments.format == "text" and arguments.output in (None, STANDARD_OUTPUT) and sys.stdout.isatty()
    for problem in () if is_shown else diagnosis.problems:
        write_error(safe(problem, 2000))
    return exit_status.OK if diagnosis.judgement.verdict.is_decided else exit_status.UNKNOWN


def _kept(arguments: argparse.Namespace) -> Diagnosis:
    """What an earlier run measured. Raises UsageError beside options that ask for a new one, and ConfigError where the file holds none."""
    others = [name for name in _OF_A_RUN if getattr(arguments, name)]
    others += [name for name, usual in (("stage", "both"), ("device", "auto")) if getattr(arguments, name) != usual]
    if others:
        raise UsageError(f"--from shows what was measured, so it takes no --{others[0].replace('_', '-')}; leave one of them out")
    return read_diagnosis(read_text_file(arguments.kept, "--from"), arguments.kept)


@dataclass(frozen=True, slots=True)
class _Surety:
    """What keeps runs apart and ends them: the folder of the lock, the incident that has to cool down, the wish to end."""

    folder: Path
    cools_down: str | None
    told_to_end: threading.Event


def _measured(plan: Plan, arguments: argparse.Namespace, settings: DiagnoseSettings, surety: _Surety) -> Diagnosis:
    """A new diagnosis. Raises DiagnosisError where nothing may be measured now."""
    guard_settings = GuardSettings(settings.allow_live_gpu)
    stage, gpu, postponed = _stage(plan.stage, arguments.device, guard_settings)
    around = _surroundings(arguments, settings, gpu.uuid if gpu is not None else "")
    guard = _guard(GpuWatch(gpu, guard_settings), settings.bot_log, surety.told_to_end)
    with only_run(surety.folder), _progress() as on_progress:
        if surety.cools_down is not None:
            _cool_down(surety.folder, surety.cools_down, settings.cooldown_s)
        diagnosis, log = diagnose(replace(plan, stage=stage), around, on_progress, guard)
    if arguments.log:
        write_result(log, arguments.log)
    return replace(diagnosis, postponed=postponed)


def _cool_down(folder: Path, incident: str, cooldown_s: float) -> None:
    """Notes that the incident is diagnosed now. Raises DiagnosisError where that was done a short while ago."""
    now = time.time()
    left_s = cooldown_left_s(folder, incident, now, cooldown_s)
    if left_s:
        raise DiagnosisError(f"incident {incident} was diagnosed a short while ago; again in {left_s / 60:.0f} minutes ([diagnose] cooldown)")
    remember_run(folder, incident, now)


def _stage(wanted: str, device: str, settings: GuardSettings) -> tuple[str, Gpu | None, str]:
    """The stage, its GPU, and why the timed one must wait. ``auto`` times only on a GPU that may be used. Raises GuardError for others."""
    if wanted != "auto":
        return wanted, gpu_to_use(device, settings) if wanted != "structural" else None, ""
    try:
        gpu = gpu_to_use(device, settings)
    except GuardError as error:
        return "structural", None, str(error)
    return "structural" if gpu is None else "both", gpu, ""


def _guard(watch: GpuWatch, bot_log: str | None, told_to_end: threading.Event) -> Callable[[], str | None]:
    """What may stop the run: SIGTERM, the GPU, and the bot's own latency where its log is named."""
    latency: LatencyWatch | None = None
    if bot_log is not None:
        rules = load_rules()
        latency = LatencyWatch(Path(bot_log), rules, load_matcher(rules))

    def why_stop() -> str | None:
        if told_to_end.is_set():
            return "it was told to end"
        return watch.why_stop() or (latency.why_stop() if latency is not None else None)

    return why_stop


def _plan(arguments: argparse.Namespace, settings: DiagnoseSettings, incident: Mapping[str, object]) -> Plan:
    target = arguments.workload or (None if arguments.builtin else settings.workload)
    if arguments.builtin and arguments.workload:
        raise UsageError("--builtin and --workload exclude each other; name one")
    if arguments.builtin:
        name, target = arguments.builtin, f"{arguments.builtin.replace('-', '_')}:make"
    elif target is None:
        raise DiagnosisError(
            "no workload: name what to measure with --workload module:factory, or --builtin kv-storm; 'recompile-watch diagnose init' writes one"
        )
    elif not all(word.isidentifier() for part in target.split(":") for word in part.split(".")) or target.count(":") != 1:
        raise UsageError(f"--workload: '{target}' is no module:factory; write one such as bot_workload:make, or --builtin kv-storm")
    else:
        name = target
    return Plan(
        name, target, arguments.stage, arguments.mode or settings.mode, _profile(arguments, settings), _candidates(arguments.candidates),
        (*advised(incident), *(_advised(arguments.advice) if arguments.advice else ())), seed=_number("--seed", arguments.seed, 0, _MAX_SEED),
    )  # fmt: skip


def _profile(arguments: argparse.Namespace, settings: DiagnoseSettings) -> Profile:
    profile = PROFILES[arguments.profile or settings.profile]
    calls = arguments.expected_calls
    return profile if calls is None else replace(profile, expected_calls=_number("--expected-calls", calls, 1, 10**12))


def _candidates(texts: list[str]) -> tuple[Candidate, ...]:
    """The candidates named; eager is always measured and need not be."""
    found = tuple(dict.fromkeys(candidate for text in texts for candidate in parse_candidates(text)))
    if texts and not [candidate for candidate in found if candidate.key != EAGER]:
        raise UsageError("--candidates: name at least one besides eager, such as default,reduce-overhead")
    return found


def _advised(path: str) -> tuple[Candidate, ...]:
    """What the advice in an analysis report amounts to. Raises ConfigError where it is none."""
    try:
        findings = json.loads(read_text_file(path, "--advice"))["findings"]
        advices = [(one.get("form") or one["remedy"], one["apply"], finding["function"]) for finding in findings for one in finding["advice"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ConfigError(f"{path}: no report of analyze; write one with 'recompile-watch analyze --format json --output {path} LOG'") from None
    found = (advised_candidate(str(remedy), str(apply), function and str(function)) for remedy, apply, function in advices)
    return tuple(dict.fromkeys(candidate for candidate in found if candidate is not None))


def _surroundings(arguments: argparse.Namespace, settings: DiagnoseSettings, gpu: str) -> Surroundings:
    paths = (str(shipped_workloads()),) if arguments.builtin else (settings.folder or str(Path.cwd()),)
    limit_s = settings.time_limit_s if arguments.time_limit is None else float(_number("--time-limit", arguments.time_limit, 1, 86400))
    return Surroundings(
        arguments.python or settings.python or sys.executable, paths, gpu, limit_s, settings.nice, settings.cpus, settings.threads,
        None if settings.memory_limit_bytes is None else settings.memory_limit_bytes // 1_000_000, settings.memory_fraction, settings.duty,
    )  # fmt: skip


def _number(option: str, text: str | None, least: int, most: int) -> int:
    if text is None:
        return least
    if not text.isdecimal() or not least <= int(text) <= most:
        raise UsageError(f"{option}: '{text}' is no number from {least} to {most}")
    return int(text)


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """What to call with each worker's progress: a line for each on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from recompile_watch.cli.diagnose_progress import Lines

    with Lines() as lines:
        yield lines.show


def _rendered(diagnosis: Diagnosis, report: dict[str, object], arguments: argparse.Namespace) -> str:
    """The diagnosis in the wanted format; only that format's module is loaded."""
    match arguments.format:
        case "json":
            from recompile_watch.report.json import json_text

            return json_text(report) + "\n"
        case "html":
            from recompile_watch.report.diagnosis_html import diagnosis_to_html

            return diagnosis_to_html(diagnosis, generated_at=str(report["generated_at"]), tool_version=__version__)
        case "markdown":
            from recompile_watch.report.diagnosis_markdown import diagnosis_to_markdown

            return diagnosis_to_markdown(diagnosis, generated_at=str(report["generated_at"]), tool_version=__version__)
    from recompile_watch.report.diagnosis_text import diagnosis_text
    from recompile_watch.report.text import PLAIN_WIDTH

    is_file = arguments.output not in (None, STANDARD_OUTPUT)
    is_terminal = sys.stdout.isatty() and not is_file
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if is_terminal else PLAIN_WIDTH
    encoding = "utf-8" if is_file else sys.stdout.encoding or "ascii"
    return diagnosis_text(diagnosis, encoding=encoding, width=width, is_terminal=is_terminal, has_color=is_terminal and is_color_wanted(sys.stdout))
