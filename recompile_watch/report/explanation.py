"""What ``recompile-watch explain`` prints: a cause, remedy, setting or kind of event in plain words."""

import textwrap
from collections.abc import Iterable, Sequence

from recompile_watch.core.advice import Advice
from recompile_watch.core.guard_lines import tensor_line
from recompile_watch.core.installs import cache_line, compiler_line, dtype_line, triton_line, upgrade_line
from recompile_watch.core.models import MODES, Model, ModelSetting, caution_of, where_set
from recompile_watch.core.remedies import PATTERNS, Case, Catalog, Look, Remark, Remedy
from recompile_watch.core.rules import Ruleset
from recompile_watch.core.versions import ANY_VERSION, dotted
from recompile_watch.core.wording import CAUSES, cause_means
from recompile_watch.report.safe import safe
from recompile_watch.report.watch_kinds import WATCH_KINDS

WIDTH = 96
_MAX_APPLY = 2000
# What stands for the words in braces where no log fills them in.
EXAMPLES = {
    "function": "f", "place": "model.py:105", "guard": "kv_cache._current_idx[7] == 0", "reason": "what torch names", "attribute": "self.index",
    "tensor": "x", "mark_dynamic": "torch._dynamo.mark_dynamic(x, 0)", "mark_unbacked": "torch._dynamo.decorators.mark_unbacked(x, 0)",
    "sources": "L['kv_cache']._current_idx[7]", "source_pattern": r"L\['kv_cache'\]\._current_idx\[.*\]", "variants": "12", "limit": "16",
    "own_call": "at model.py:211 in forward", "sources_by_dimension": "L['x']:0",
    "compiled_at": "where the model is compiled",
    "printed_limit": "8", "raised_limit": "64", "made_at": "at model.py:211", "break_at": "append, line 25 of cache.py",
    "disable_line": "export TOTO_DISABLE_COMPILE=1", "disable_where": "in the environment of the process, before it starts",
    "disable_caution": "Only 1, true, yes and on count.", "mode_line": "export KRONOS_COMPILE_MODE=max-autotune-no-cudagraphs",
    "mode_where": "in the environment of the process, before it starts", "mode_caution": "What wins over it must go.",
    "mend": "unset TORCHDYNAMO_RECOMPILE_LIMIT", "batch_line": "export TOTO_SAMPLES_PER_BATCH=192",
    "batch_where": "in the environment of the process, before it starts", "setting": "TORCHDYNAMO_RECOMPILE_LIMIT",
    "callee": "model", "holder": "f, at model.py:211", "dtype": "torch.float32", "operator": "mylib::name", "loggers": "logging.Logger.info",
    "module": "setuptools", "config_module": "torch._inductor.config",
    "structure": "# config: make the object once and pass the same one in every call, or pass what it holds (a tensor, a number)",
    "state_line": "# what the guard names: the same at warm-up and in use; put `with torch.autocast(...)` inside the compiled function",
    "lr_line": "for group in optimizer.param_groups: group['lr'] = torch.tensor(group['lr'])  # once, right behind the optimizer",
    "keys": "# batch: the same keys in every call, in one order: mask always (a neutral tensor for a tensor: None is one more variant) or never",
    "own_number": "self.index",
    "compiler_line": compiler_line("", windows=False), "cache_line": cache_line(windows=False), "dtype_line": dtype_line(""),
    "upgrade_line": upgrade_line(""),
    "class_named": "Output",
    "multiple_line": "# x: torch.nn.functional.pad by -x.size(2) % 7 in dimension 2",
    "triton_line": triton_line(None, windows=False),
    "tensor_line": tensor_line("self.index") or "",
    "fixing": "app/model.py:13 (return self.layers[index](x))",
    "own_limit": "16", "fixed_at": "app/model.py:13 (if n not in self.tables:)",
    "clones": "y = y.clone()", "grad_line": "x = x.detach()  # where no gradient is wanted",
    "constraint_line": "torch._dynamo.maybe_mark_dynamic(x, 0)",
    "check_line": "torch._check(n > 0)  # the condition of the message, with your own variable,", "option_line": 'mode="reduce-overhead"',
    "reorder_line": "torch._dynamo.config.reorderable_logging_functions.add(print)",
    "to_gpu": "model.to('cuda'); x = x.to('cuda', non_blocking=True)  # before the compiled call: one of its inputs is on the CPU",
    "limit_key": "recompile_limit", "old_limit_key": "cache_size_limit", "broken_on": "this (what torch names)", "backend": "openvino",
    "hint": "what torch's message says", "hinted_config": "torch._dynamo.config.trace_numpy = True", "hinted_env": "TORCHINDUCTOR_AUTOGRAD_CACHE=0",
    "buckets": "(8, 16, 32, 64, 128)", "padded": "x.shape[0]",
    "instead": "What to do instead stands beside each name.",
}  # fmt: skip


def explained_cause(cause: str, catalog: Catalog, advice: Sequence[Advice] = ()) -> str:
    """A class of guard failures: what it is, what it costs, what to do. advice: about one guard; without it for each case."""
    words = CAUSES.get(cause, "torch names a guard of a class that is not known here")
    look = catalog.looks.get(cause, Look(()))
    shown = "\n".join(["In the log:", *(f"  {text}" for text in look.texts)]) if look.texts else ""
    parts = [f"{cause}: {words}", shown, _wrapped(cause_means(cause))]
    cases = [] if advice else [case for case in catalog.cases if cause in case.causes]
    exact = "What to do, if it happens more than once:\n" + "\n".join(_advice(number, one) for number, one in enumerate(advice, 1)) if advice else ""
    return _joined([*parts, exact, *(_case(case, catalog) for case in cases), _wrapped(f"Does not help: {look.never}") if look.never else ""])


def explained_kind(kind: str, rules: Ruleset, catalog: Catalog, advice: Sequence[Advice] = ()) -> str:
    """A kind of event: which messages show it, why it matters, what to do. advice: for one message; without it for each case."""
    mine = [rule for rule in rules.rules if rule.event == kind]
    whys = list(dict.fromkeys(rule.why for rule in mine))
    shown = [f"  {rule.id}: {rule.title}" for rule in mine[:12]]
    more = [f"  … and {len(mine) - 12} more; recompile-watch rules list shows all"] if len(mine) > 12 else []
    made = "made from what several lines or files say together" if not mine else ""
    parts = [f"{kind}: an event", made, *(_wrapped(why) for why in whys[:3]), "\n".join(["Rules that find it:", *shown, *more]) if mine else ""]
    if advice:
        return _joined([*parts, "What to do:\n" + "\n".join(_advice(number, one) for number, one in enumerate(advice, 1))])
    cases = [case for case in catalog.cases if kind in case.kinds and not case.causes]
    return _joined([*parts, *(_case(case, catalog) for case in cases)])


def explained_watch_kind(kind: str) -> str:
    """What the watch itself raises: what it means, what to do, what judges it."""
    words = WATCH_KINDS[kind]
    key = f"Judged by {words.key} in the configuration: see docs/watch-config.md." if words.key else ""
    return _joined([f"{kind}: raised by the watch", _wrapped(words.means), _wrapped(f"What to do: {words.do}"), key])


def explained_remark(remark: Remark) -> str:
    """A message of torch's compiler that is no finding."""
    return _joined([f"{remark.text}: a message of torch, no finding", _wrapped(remark.means), _wrapped(f"What to do: {remark.do}")])


def explained_remedy(name: str, catalog: Catalog) -> str:
    """A remedy, with the names of its forms; or one of these."""
    mine = [remedy for remedy in catalog.remedies if remedy.name == name]
    forms = {remedy.name: remedy.title for remedy in catalog.remedies if remedy.key == name != remedy.name}
    used = sorted({cause for case in catalog.cases if name in case.remedies for cause in case.causes})
    parts = [f"{name}: a remedy" + "".join(dict.fromkeys(f", a form of {one.key}" for one in mine if one.form))]
    parts += [_remedy(remedy) for remedy in mine]
    parts += ["Forms:\n" + "\n".join(f"  {form}: {title}" for form, title in forms.items()) if forms else ""]
    return _joined([*parts, f"Fits: {', '.join(used)}" if used else ""])


def explained_setting(name: str, catalog: Catalog) -> str:
    """A setting that torch reads, or a name that it does not."""
    instead = catalog.ineffective.get(name)
    if instead is not None:
        return _joined([f"{name}: no torch reads this", _wrapped(instead)])
    if name in catalog.known:
        return _joined([f"{name}: an environment variable", _wrapped("torch's compiler reads it (from torch 2.13 to 2.15); no remedy needs it.")])
    setting = catalog.settings[name]
    words = {"env": "an environment variable", "config": "a configuration key", "call": "a function", "argument": "an argument"}[setting.kind]
    parts = [f"{name}: {words}, from torch {dotted(setting.since)} on"]
    parts += [f"Sets {setting.sets}." if setting.sets else "", _wrapped(setting.note or "")]
    used = [remedy.name for remedy in catalog.remedies if name in remedy.settings]
    return _joined([*parts, f"Used by: {', '.join(dict.fromkeys(used))}" if used else ""])


def explained_model(model: Model) -> str:
    """A model: how it is told, what its wrapper reads, and what to paste for each mode."""
    told = [("paths", model.paths), ("functions", model.functions), ("lines", model.lines)]
    shown = "\n".join(_wrapped(", ".join(repr(text) for text in texts), f"  {name + ':':<11}") for name, texts in told if texts)
    modes = [
        f"  {mode + ':':<28}{lines[0]}\n" + "".join(f"{'':<30}{line}\n" for line in lines[1:]) for mode in MODES if (lines := model.lines_for(mode))
    ]
    settings = [f"  {name}" for setting in model.settings for name in setting.names]
    parts = [f"{model.name}: a model ({model.title})", _wrapped(by_default(model)), f"Told by:\n{shown}"]
    parts += [
        "What to paste, by mode:\n" + "".join(modes).rstrip() if modes else "",
        "\n".join(["Its wrapper reads:", *settings]) if settings else "",
    ]
    return _joined([*parts, _wrapped(model.caution or "")])


def explained_model_settings(name: str, catalog: Catalog) -> str | None:
    """A variable that a wrapper, or the program around the models, reads; None when none does."""
    found = [(model, setting) for model, setting in catalog.models.settings() if name in setting.names]
    return "\n".join(_model_setting(name, setting, model) for model, setting in found) or None


def _model_setting(name: str, setting: ModelSetting, model: Model | None) -> str:
    title = model.title if model else "the program"
    of = f"read by {title}'s wrapper" if model else "read by the program around the models"
    facts = (
        ("does", DOES_WORDS[setting.does].format(of=title)), ("yes", ", ".join(setting.on)), ("no", ", ".join(setting.off)),
        ("values", ", ".join(setting.values)), ("default", default_words(setting)), ("wins", " > ".join(setting.names)),
        ("where", where_set(setting)), ("caution", caution_of(setting)),
    )  # fmt: skip
    return _joined([f"{name}: {of}", "\n".join(_wrapped(value, f"  {word + ':':<9}") for word, value in facts if value and value != name)])


def default_words(setting: ModelSetting) -> str:
    """What holds when nothing is set, by date where that changed."""
    dated = [f"{one.value} from {one.since} on" for one in setting.defaults]
    return ", ".join([*([setting.default] if setting.default else []), *dated])


def by_default(model: Model) -> str:
    """How a model runs when nothing is set."""
    enable = model.setting("enable")
    words = default_words(enable) if enable is not None else ""
    return BY_DEFAULT[model.default] + (f" ({enable.use}: {words}.)" if enable is not None and words else "")


BY_DEFAULT = {
    "compiled": "Without any setting it is compiled.",
    "eager": "Without any setting it runs in eager mode: there is no switch to disable compiling, what enables it has to go.",
    "varies": "Whether it is compiled without any setting changed from version to version: set it.",
}
DOES_WORDS = {
    "disable": "has {of} run in eager mode", "enable": "has {of} compiled", "mode": "the mode that {of} is compiled in",
    "backend": "the backend that {of} is compiled with", "batch": "the size of {of}'s batches", "other": "a setting of {of}",
}  # fmt: skip


_ID_WORDS = {"limit": "at the recompile limit", "forbidden": "where the stance forbids recompiles", "lr": "the learning rate", "global": "a global"}


def pattern_words(case: Case) -> str:
    """What a case asks of the findings beside the message; empty where it asks nothing."""
    return " and ".join(PATTERNS[pattern] for pattern in sorted(case.patterns))


def id_words(name: str) -> str:
    """``compile error, fsdp`` of a case's id ``compile_error.fsdp``."""
    return ", ".join(_ID_WORDS.get(word, word.replace("_", " ")) for word in name.split("."))


def case_words(case: Case) -> str:
    """When a case fits: its patterns in words, else its name."""
    when = pattern_words(case)
    return f"when {when}" if when else id_words(case.id)


def case_remedies(case: Case, catalog: Catalog, kind: str | None = None) -> list[Remedy]:
    """The remedies of a case in order, each in the form for its kind of event. kind: which one, of a case for several."""
    kind = min(case.kinds, default="") if kind is None else kind
    return [remedy for name in case.remedies if (remedy := catalog.remedy(name, kind, ANY_VERSION)) is not None]


def _case(case: Case, catalog: Catalog) -> str:
    remedies = [f"  {number}. {remedy.title}  [{remedy.name}]" for number, remedy in enumerate(case_remedies(case, catalog), 1)]
    return "\n".join([f"What to do ({case_words(case)}):", *remedies])


def _advice(number: int, advice: Advice) -> str:
    lines = "".join(f"\n       {safe(line, _MAX_APPLY)}" for line in advice.apply.splitlines())
    return f"  {number}. {safe(advice.title)}  [{advice.name}]{lines}"


def _remedy(remedy: Remedy) -> str:
    facts = (
        ("paste", example(remedy.apply)), ("where", example(remedy.where)), ("torch", remedy.torch_text),
        ("then", "restart the process" if remedy.restart else None), ("expect", example(remedy.expect)),
        ("caution", example(remedy.caution or "")), ("known", remedy.verified), ("docs", remedy.docs),
    )  # fmt: skip
    return "\n".join([remedy.title, *(_wrapped(value, f"  {name + ':':<9}") for name, value in facts if value)])


def example(text: str) -> str:
    """A remedy's text with examples in place of what a log would show."""
    return text.format_map(EXAMPLES)


def _wrapped(text: str, head: str = "") -> str:
    return textwrap.fill(text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False, break_on_hyphens=False)


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"
