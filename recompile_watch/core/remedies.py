"""Remedies as data: what can be changed, in which version it works, and which finding it fits.

The files are TOML: ``[[remedy]]``, ``[[case]]``, ``[[setting]]``, ``[[known]]``, ``[[ineffective]]``, ``[[cause]]``; docs/rules.md has the reference.
"""

import string
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

import re2

from recompile_watch.core.errors import RuleError
from recompile_watch.core.models import Model, Models
from recompile_watch.core.rules import Pattern, compile_pattern, late_pattern
from recompile_watch.core.versions import Version, VersionRange, dotted, version_of, version_range

# What a remedy's texts may be built from; core/evidence.py fills them in from the log.
PLACEHOLDERS = frozenset(
    {
        "function", "place", "guard", "attribute", "tensor", "mark_dynamic", "mark_unbacked", "sources", "source_pattern", "limit", "variants",
        "printed_limit", "raised_limit", "made_at", "reason", "break_at", "setting", "instead",
        "disable_line", "disable_where", "disable_caution", "mode_line", "mode_where", "mode_caution", "mend", "batch_line", "batch_where",
        "callee", "holder", "structure", "state_line", "dtype", "lr_line", "clones", "grad_line", "to_gpu", "operator", "reorder_line", "loggers",
        "module", "config_module",
        "broken_on", "buckets", "padded", "backend", "hint", "hinted_config", "hinted_env", "constraint_line", "check_line", "option_line",
        "own_call", "compiled_at", "own_limit", "limit_key", "old_limit_key", "fixed_at", "fixing", "keys", "own_number",
        "tensor_line", "compiler_line", "cache_line", "dtype_line", "triton_line", "upgrade_line", "multiple_line", "class_named",
    }
)  # fmt: skip
KINDS = ("env", "config", "kwarg", "code", "ops")
# What a case may ask of a finding beside its message, in words.
PATTERNS = {
    "of_torch_2_0": "torch is 2.0, which makes nothing dynamic by itself",
    "per_layer_index": "each layer has its own index",
    "growing_value": "the value grows with each step",
    "two_states": "there are two states",
    "first_dynamic_step": "it happened once",
    "to_zero_or_one": "the size became 0 or 1",
    "learned_again": "each start learns it anew",
    "late": "it happens after warm-up",
    "resumed_frame": "the frame lies behind a graph break",
    "broken_function": "a graph break cuts this function",
    "duck_sizing": "two sizes were equal by chance",
    "several_backends": "it was compiled with backends of several names",
    "benchmark": "the file is a benchmark",
    "of_torch": "the file is one of torch's own",
    "of_optimizer": "the file is one of torch's optimizers",
    "of_package": "the function is another package's",
    "own_call": "the log shows which line of the program leads there",
    "entered_package": "the compiled object is the package's own",
    "offload_hooks": "accelerate wraps each module, to move it to its device and back",
    "lightning_step": "the call stands in a step of a LightningModule",
    "many_in_package": "the package breaks the graph at four places or more",
    "was_dynamic": "torch had made the size dynamic, and the code fixed it",
    "stays_static": "three sizes each got a compile of their own",
    "only_last_reason": "the log shows no other reason",
    "gradient_output": "the tensor is a gradient that the recorded backward made",
    "few_variants": "there is room for more variants, and no limit was hit",
    "limit_raised_elsewhere": "the limit was raised, but not in this thread",
    "other_parameter_sizes": "the sizes of parameters differ as well",
    "beside_the_model": "the function computes nothing with tensors",
    "shared_wrapper": "the function is torch's own, and all that is compiled shares it",
    "cascade": "a CUDA graph output was overwritten before",
    "raised": "error_on_recompile makes an exception of it",
    "other_device": "the tensor came from another device",
    "inference_tensor": "the tensor was made under torch.inference_mode(), or ceased to be",
    "autocast_keys": "autocast was switched, which older versions show on each tensor",
    "foreign_backend": "the backend is not one of torch's",
    "several_modules": "several modules share the code, and differ in their parts",
    "fixed_by_code": "torch had made the number or size dynamic, and the code fixed it",
    "counts_up": "the line of code counts it up",
    "counts_steps": "a loop runs as often as the number says",
    "names_member": "the line of code names a member of the object's class, as of an enum",
    "cuts_modules": "a list of modules is cut at the number",
    "of_a_dict": "the container is a dict, whose keys differ as well",
    "numbered_texts": "the texts differ in a number that has no end, as ids and dates",
    "chosen_per_module": "the same text attribute of several modules changes",
    "class_made_anew": "its class has one name, and is another one each time",
    "reads_out": "the line of code reads a number for a log, a list or a sum",
    "looks_up": "a dict is looked up by the text, or filled under it",
    "keyed_by_size": "a dict is looked up by the size",
    "counts_from_none": "the attribute was None first, and a number later",
    "hinted": "torch's message says what to do",
    "setting_hinted": "torch's message names the setting that helps",
    "asserts": "the line of code is an assert",
    "strides_of_sizes": "strides changed, neither from nor to 1, as torch before 2.5 prints a size that changed behind them",
    "exported": "torch.export was to trace it",
    "to_onnx": "torch.onnx.export called torch.export, and the program's line tells nothing else",
    "sample_of_one": "an export was given a sample whose size is 1, which makes that dimension a constant",
    "asks_buffers": "the branch asks for numbers that are kept in buffers, and for nothing else",
    "asks_empty": "the line of code asks whether a tensor is empty",
    "shows_code": "torch shows the line of code that asks for the number, or fixes the size",
    "sized_by_tensor": "the line of code makes or shapes a tensor by a number that a tensor holds",
    "works_on_mask": "the line of code does something only where a mask is set",
    "ddp_backend": "what raised is compiled by the backend that cuts a graph into DistributedDataParallel's buckets",
    "asks_mask": "the line of code asks whether a mask is set everywhere, or anywhere",
    "branches": "the line of code branches on the number",
    "asks_to_stop": "the line of code asks whether all is done",
    "counts_bins": "the line of code counts with bincount",
    "many_flags": "several flags of one function change, each by itself",
    "low_limit": "the limit that was hit has room for two versions at most",
    "formats_text": "the line of code puts the text into another one",
    "behind_clock": "the graph break in front of the function reads a clock",
    "custom_function": "the line of code stands in an autograd.Function",
    "checks_arguments": "torch.distributions checks its arguments there",
    "checks_norm": "clip_grad_norm_ checks there whether the norm is finite",
    "indexes_by_tensor": "the line of code takes an entry by a number that a tensor holds",
    "takes_no_tensor": "the line of code gives the float to an operation that takes no tensor for it",
    "fills": "the line of code puts something into the container",
    "loops_over": "the line of code goes through the object's own container",
    "does_math": "the line of code computes with Python's math",
    "draws_numbers": "the line of code draws random numbers",
    "steps_optimizer": "the line of code steps an optimizer, a scaler or a scheduler",
    "training_step": "the file breaks the graph at an optimizer, a scaler or a scheduler as well",
    "picks_experts": "the line of code picks the experts of a mixture that got tokens",
    "exchanges_objects": "the line of code sends Python objects between processes",
    "lazy_view": "the tensor is a conjugated or negated view, or ceased to be",
}
_TEXTS = ("title", "apply", "where", "expect", "caution")
_REMEDY = {
    "key": str, "title": str, "kind": str, "apply": str, "where": str, "restart": bool, "expect": str, "torch": str, "caution": str,
    "docs": str, "verified": str, "settings": list, "kinds": list, "without": list,
}  # fmt: skip
_CASE = {
    "id": str, "kinds": list, "causes": list, "patterns": list, "without": list, "stages": list, "reason": str, "function": str, "torch": str,
    "remedies": list,
}  # fmt: skip
_SETTING = {"name": str, "kind": str, "since": str, "sets": str, "note": str}
_INEFFECTIVE = {"names": list, "instead": str}
_KNOWN = {"names": list, "source": str}
_CAUSE = {"name": str, "looks": list, "never": str}
_REMARK = {"text": str, "means": str, "do": str}
_TABLES: dict[str, Mapping[str, type]] = {
    "remedy": _REMEDY,
    "case": _CASE,
    "setting": _SETTING,
    "ineffective": _INEFFECTIVE,
    "known": _KNOWN,
    "cause": _CAUSE,
    "remark": _REMARK,
}
_REQUIRED = {
    "remedy": ("key", "title", "kind", "apply", "where", "expect", "torch", "verified"), "case": ("id", "remedies"),
    "setting": ("name", "kind", "since"), "ineffective": ("names", "instead"), "known": ("names", "source"), "cause": ("name", "looks"),
    "remark": ("text", "means", "do"),
}  # fmt: skip

Tables = dict[str, list[dict[str, object]]]  # the entries of each table, without a mistake


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change that helps, in a range of torch versions.

    title, apply, where, expect, caution: texts with placeholders in braces. kind: one of ``KINDS``. kinds: the event
    kinds it is meant for; empty for all. without: patterns under which it does nothing. settings: what it sets, each in the table of settings.
    """

    key: str
    title: str
    kind: str
    apply: str
    where: str
    expect: str
    torch: VersionRange
    verified: str
    torch_text: str
    restart: bool = False
    caution: str | None = None
    docs: str | None = None
    settings: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Case:
    """When which remedies fit. Everything it names must fit; what it leaves empty fits always."""

    id: str
    remedies: tuple[str, ...]
    kinds: frozenset[str] = frozenset()
    causes: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    stages: frozenset[str] = frozenset()
    reason: Pattern | None = None
    function: Pattern | None = None
    torch: VersionRange | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that torch reads, from version ``since`` on."""

    name: str
    kind: str
    since: Version
    sets: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """How a cause looks in a log, and what does not help against it."""

    texts: tuple[str, ...]
    never: str | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """A message of torch's compiler that is no finding. text: what every form of it contains."""

    text: str
    means: str
    do: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """All remedies, cases, settings and models, how each cause looks, and torch's messages that are no finding.

    known: further variables that torch's source reads. ineffective: names that no torch reads, with what to do instead.
    """

    remedies: tuple[Remedy, ...] = ()
    cases: tuple[Case, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)
    ineffective: Mapping[str, str] = field(default_factory=dict)
    models: Models = field(default_factory=Models)
    looks: Mapping[str, Look] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    remarks: tuple[Remark, ...] = ()

    def remedy(self, key: str, kind: str, torch: VersionRange, patterns: frozenset[str] = frozenset()) -> Remedy | None:
        """The remedy of a key for an event kind, the patterns of a finding, and what is known of the torch version.

        The one made for the kind comes first, then one that works in every version that it may be.
        """
        alike = (one for one in self.remedies if one.key == key and not one.without & patterns)
        fitting = [one for one in alike if one.torch.overlaps(torch) and (not one.kinds or kind in one.kinds)]
        return min(fitting, key=lambda one: _preference(one, torch), default=None)

    def remark_in(self, text: str) -> Remark | None:
        """The message of torch that is no finding, however its lines are broken."""
        words = " ".join(text.split()).lower()
        return next((remark for remark in self.remarks if remark.text.lower() in words), None)

    def model(self, name: str | None) -> Model | None:
        """A model by its name."""
        return self.models.named(name)


def _preference(remedy: Remedy, torch: VersionRange) -> tuple[bool, bool, bool, bool, int, int]:
    """Made for the kind; good for all versions it may be; made for findings of some patterns only; and then the newest form.

    Where none is good for all versions, one for the newest of these, and then for most.
    """
    major, minor = remedy.torch.first
    is_sure, end = remedy.torch.covers(torch), remedy.torch.end
    is_of_old = end is not None and (torch.end is None or end < torch.end)
    return (not remedy.kinds, not is_sure, not remedy.without, is_of_old, -major if is_sure else major, -minor if is_sure else minor)


def parse_tables(texts: Iterable[tuple[str, str]]) -> Tables:
    """What several TOML files say, each with its name. Raises RuleError with all mistakes, one line each."""
    tables: Tables = {name: [] for name in _TABLES}
    mistakes: list[str] = []
    for source, text in texts:
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            mistakes.append(f"{source}: not valid TOML: {error}")
            continue
        for name, entries in document.items():
            if name not in _TABLES or not isinstance(entries, list):
                mistakes.append(f"{source}: unknown table '{name}'; known are {', '.join(f'[[{known}]]' for known in _TABLES)}")
                continue
            for number, entry in enumerate(entries, 1):
                found = _mistakes(name, entry)
                mistakes += [f"{source}: {name} {entry.get('key') or entry.get('id') or number}: {mistake}" for mistake in found]
                if not found:
                    tables[name].append(entry)
    if not mistakes:
        mistakes = _unknown_names(tables)
    if mistakes:
        raise RuleError("\n".join(mistakes))
    return tables


def catalog_of(tables: Tables, models: Models) -> Catalog:
    """The catalog that the tables make, with the models."""
    settings = [_setting(entry) for entry in tables["setting"]]
    return Catalog(
        tuple(_remedy(entry) for entry in tables["remedy"]),
        tuple(_case(entry) for entry in tables["case"]),
        {setting.name: setting for setting in settings},
        {name: str(entry["instead"]) for entry in tables["ineffective"] for name in _list(entry, "names")},
        models,
        {str(entry["name"]): Look(_list(entry, "looks"), cast(str | None, entry.get("never"))) for entry in tables["cause"]},
        frozenset(name for entry in tables["known"] for name in _list(entry, "names")),
        tuple(Remark(**cast(dict[str, str], entry)) for entry in tables["remark"]),
    )


def _remedy(entry: dict[str, object]) -> Remedy:
    text = cast(dict[str, str], entry)
    versions = version_range(text["torch"])
    assert versions is not None
    return Remedy(
        text["key"], text["title"], text["kind"], text["apply"], text["where"], text["expect"], versions, text["verified"], text["torch"],
        bool(entry.get("restart", False)), text.get("caution"), text.get("docs"), _list(entry, "settings"), frozenset(_list(entry, "kinds")),
        frozenset(_list(entry, "without")),
    )  # fmt: skip


def _case(entry: dict[str, object]) -> Case:
    kinds, causes, patterns, without, stages = (frozenset(_list(entry, name)) for name in ("kinds", "causes", "patterns", "without", "stages"))
    reason, function = (late_pattern(str(entry[name])) if name in entry else None for name in ("reason", "function"))
    torch = version_range(str(entry.get("torch", "")))
    return Case(str(entry["id"]), _list(entry, "remedies"), kinds, causes, patterns, without, stages, reason, function, torch)


def _setting(entry: dict[str, object]) -> Setting:
    since = version_of(str(entry["since"]))
    assert since is not None
    return Setting(str(entry["name"]), str(entry["kind"]), since, cast(str | None, entry.get("sets")), cast(str | None, entry.get("note")))


def _list(entry: dict[str, object], name: str) -> tuple[str, ...]:
    return tuple(cast(list[str], entry.get(name, [])))


def _mistakes(table: str, entry: dict[str, object]) -> list[str]:
    found = [f"key '{key}' is missing" for key in _REQUIRED[table] if key not in entry]
    for key, value in entry.items():
        wanted = _TABLES[table].get(key)
        if wanted is None:
            found.append(f"unknown key '{key}'")
        elif not isinstance(value, wanted) or (isinstance(value, list) and not all(isinstance(item, str) for item in value)):
            found.append(f"key '{key}' has the wrong type {type(value).__name__}")
    if found:
        return found
    if table == "remedy":
        found += _remedy_mistakes(cast(dict[str, str], entry))
    if table == "setting" and version_of(str(entry["since"])) is None:
        found.append("key 'since': write a version such as 2.7")
    if table == "case":
        found += [
            f"key 'patterns': unknown pattern '{name}'" for name in (*_list(entry, "patterns"), *_list(entry, "without")) if name not in PATTERNS
        ]
        if "torch" in entry and version_range(str(entry["torch"])) is None:
            found.append("key 'torch': write a range such as >=2.7 or >=2.1,<2.7")
        found += [f"key '{name}': RE2 cannot use it" for name in ("reason", "function") if name in entry and not _is_pattern(str(entry[name]))]
    return found


def _remedy_mistakes(entry: dict[str, str]) -> list[str]:
    found = []
    if entry["kind"] not in KINDS:
        found.append(f"key 'kind' must be one of {', '.join(KINDS)}")
    if version_range(entry["torch"]) is None:
        found.append("key 'torch': write a range such as >=2.7 or >=2.1,<2.7")
    for name in _TEXTS:
        try:
            used = {part[1] for part in string.Formatter().parse(entry.get(name, "")) if part[1] is not None}
        except ValueError as error:
            found.append(f"key '{name}': {error}")
            continue
        found += [f"key '{name}': unknown placeholder '{{{word}}}'" for word in sorted(used - PLACEHOLDERS)]
    return found


def _is_pattern(pattern: str) -> bool:
    try:
        compile_pattern(pattern)
    except re2.error:
        return False
    return True


def _unknown_names(tables: Tables) -> list[str]:
    """What refers to something that no file defines: remedies of a case, settings of a remedy in its versions."""
    keys = {str(entry["key"]) for entry in tables["remedy"]}
    found = [f"case {entry['id']}: unknown remedy '{key}'" for entry in tables["case"] for key in _list(entry, "remedies") if key not in keys]
    settings = {str(entry["name"]): version_of(str(entry["since"])) for entry in tables["setting"]}
    for entry in tables["remedy"]:
        versions = version_range(str(entry["torch"]))
        for name in _list(entry, "settings"):
            since = settings.get(name)
            if since is None:
                found.append(f"remedy {entry['key']}: '{name}' stands in no table of settings")
            elif versions is not None and not versions.lies_in(since):
                found.append(f"remedy {entry['key']}: '{name}' exists from torch {dotted(since)} on only")
    return found
