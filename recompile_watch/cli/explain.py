"""``recompile-watch explain``: a cause, an event kind, a remedy, a setting, a model, or a message that somebody pasted."""

import argparse

from recompile_watch.cli import exit_status
from recompile_watch.cli.output import write_result
from recompile_watch.cli.parsing import nearest
from recompile_watch.config import load_catalog, load_matcher, load_rules
from recompile_watch.core.advice import advise
from recompile_watch.core.analysis import Analysis, Facts
from recompile_watch.core.causes import parse_reason
from recompile_watch.core.engine import SourceEngine
from recompile_watch.core.errors import UsageError
from recompile_watch.core.events import EXTRA_FIELDS, Event
from recompile_watch.core.models import COMPILED_MODES
from recompile_watch.core.patterns import patterns_of
from recompile_watch.core.remedies import Catalog
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.story import Story
from recompile_watch.core.times import TimeOptions
from recompile_watch.core.versions import ANY_VERSION
from recompile_watch.core.wording import CAUSES
from recompile_watch.report.explanation import (
    explained_cause,
    explained_kind,
    explained_model,
    explained_model_settings,
    explained_remark,
    explained_remedy,
    explained_setting,
    explained_watch_kind,
)
from recompile_watch.report.guide import guide
from recompile_watch.report.watch_kinds import WATCH_KINDS

_MAX_MESSAGE = 1 << 20


def run(arguments: argparse.Namespace, _name: tuple[str, ...]) -> int:
    """Prints what the topic is."""
    topic = " ".join(arguments.topic)[:_MAX_MESSAGE].strip()
    rules, catalog = load_rules(), load_catalog(arguments.models)
    if arguments.guide:
        write_result(guide(rules, catalog), None)
        return exit_status.OK
    if not topic:
        raise UsageError("name a topic, such as recompile-watch explain kv_cache_index; --guide prints everything")
    text = _by_name(topic, rules, catalog) or _by_name(_as_name(topic), rules, catalog) or _by_message(topic, rules, catalog)
    if text is None:
        known = [
            *CAUSES,
            *sorted({rule.event for rule in rules.rules}),
            *dict.fromkeys(name for remedy in catalog.remedies for name in (remedy.key, remedy.name)),
            *catalog.settings,
        ]
        known += [name.rpartition(".")[2] for name in catalog.settings] + [*WATCH_KINDS]
        known += [model.name for model in catalog.models.models] + [name for _, setting in catalog.models.settings() for name in setting.names]
        hint = nearest(topic, known) if len(topic) < 80 and " " not in topic else "paste a whole line of the log, in quotes"
        raise UsageError(f"nothing known about that; {hint if len(hint) < 200 else 'try a cause such as kv_cache_index, or paste a message'}")
    write_result(text, None)
    return exit_status.OK


def _as_name(topic: str) -> str:
    """Words as the names of kinds, causes and remedies are written: ``Graph breaks`` is ``graph_break``."""
    return "_".join(topic.lower().replace("-", " ").split()).removesuffix("s")


def _by_name(topic: str, rules: Ruleset, catalog: Catalog) -> str | None:
    """Everything of that name: a remedy and the setting that it sets may share one."""
    kinds = {*EXTRA_FIELDS, *(rule.event for rule in rules.rules)}.union(*(case.kinds for case in catalog.cases))
    model = catalog.model(topic) or catalog.model(topic.lower())
    texts = [explained_cause(topic, catalog)] if topic in CAUSES or topic == "other" else []
    texts += [explained_remedy(topic, catalog)] if any(topic in (remedy.key, remedy.name) for remedy in catalog.remedies) else []
    texts += [explained_setting(name, catalog) for name in _settings(topic, catalog)]
    texts += [explained_model(model)] if model is not None else []
    texts += [text] if (text := explained_model_settings(topic, catalog)) is not None else []
    texts += [explained_kind(topic, rules, catalog)] if topic in kinds else []
    texts += [explained_watch_kind(topic)] if topic in WATCH_KINDS else []
    return "\n".join(texts) or None


def _settings(topic: str, catalog: Catalog) -> list[str]:
    """The settings of that name: whole, without the module in front, or an argument of torch.compile with or without its value."""
    if topic in catalog.settings or topic in catalog.ineffective or topic in catalog.known:
        return [topic]
    argument = "mode" if topic in COMPILED_MODES else topic.partition("=")[0].rstrip()
    return [name for name in catalog.settings if name.endswith(f".{topic}") or name == f"torch.compile({argument}=)"]


def _by_message(topic: str, rules: Ruleset, catalog: Catalog) -> str | None:
    """The event that a pasted message is, with its cause; or the class of a pasted guard."""
    engine, analysis = SourceEngine("-", rules, load_matcher(rules), TimeOptions()), Analysis(rules)
    items = engine.feed(topic.replace("\\n", "\n").encode("utf-8", "surrogateescape") + b"\n") + engine.end()
    for item in items:
        analysis.take(item)
    event = next((item for item in items if isinstance(item, Event)), None)
    causes = [reason.cause for reason in event.reasons[:1]] if event is not None else []
    if event is None and (remark := catalog.remark_in(topic.replace("\\n", " "))) is not None:
        return explained_remark(remark)
    if event is None:
        guard = parse_reason(topic.lstrip("- "))
        if guard.cause in ("other", "empty"):
            return None
        patterns = patterns_of((guard,), function=None, worst_process=2, phase="unknown")
        story = Story("recompile", guard.cause, None, None, None, guard.text, (guard,), patterns)
        return explained_cause(guard.cause, catalog, advise(story, catalog, ANY_VERSION))
    findings = analysis.report(Facts(), catalog).findings
    advice = next((finding.advice for finding in findings if finding.kind == event.kind), ())
    parts = [explained_kind(event.kind, rules, catalog, advice), *(explained_cause(cause, catalog) for cause in causes if cause in CAUSES)]
    return "\n".join(parts)
