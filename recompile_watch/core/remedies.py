"""Remedies: what can be changed, in which version it works, and which finding it fits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from recompile_watch.core.models import Model, Models
from recompile_watch.core.rules import Pattern
from recompile_watch.core.versions import Version, VersionRange

# What a case may ask of a finding beside its message, in words.
PATTERNS = {
    "of_torch_2_0": "torch is 2.0, which makes nothing dynamic by itself",
    "per_layer_index": "each layer has its own index",
    "growing_value": "the value grows with each step",
    "two_states": "there are two states",
    "first_dynamic_step": "it happened once",
    "to_zero_or_one": "the size became 0 or 1",
    "mostly_zero_or_one": "most changes were to or from a size of 0 or 1",
    "learned_again": "each start learns it anew",
    "late": "it happens after warm-up",
    "resumed_frame": "the frame lies behind a graph break",
    "broken_function": "a graph break cuts this function",
    "duck_sizing": "two sizes were equal by chance",
    "several_backends": "it was compiled with backends of several names",
    "benchmark": "the file is a benchmark",
    "of_torch": "the file is one of torch's own",
    "of_optimizer": "the file is one of torch's optimizers",
    "of_parameters": "the function runs for each parameter, as the step of an optimizer does, and writes into it",
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
    "called_in_inference": "one of the calls ran under torch.inference_mode(), whatever the tensor was made under",
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
    "in_thread": "a thread of the program met the flag that another one had set while it compiled",
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
    "accumulated_limit": "the limit that was hit is that of all graphs of the code",
    "low_limit": "the limit that was hit has room for two versions at most",
    "formats_text": "the line of code puts the text into another one",
    "behind_clock": "the graph break in front of the function reads a clock",
    "custom_function": "the line of code stands in an autograd.Function",
    "checks_arguments": "torch.distributions checks its arguments there",
    "checks_norm": "clip_grad_norm_ checks there whether the norm is finite",
    "indexes_by_tensor": "the line of code takes an entry by a number that a tensor holds",
    "takes_no_tensor": "the line of code gives the float to an operation that takes no tensor for it",
    "fills": "the line of code puts something into the container, or takes it out",
    "loops_over": "the line of code goes through the object's own container",
    "does_math": "the line of code computes with Python's math",
    "draws_numbers": "the line of code draws random numbers",
    "steps_optimizer": "the line of code steps an optimizer, a scaler or a scheduler",
    "training_step": "the file breaks the graph at an optimizer, a scaler or a scheduler as well",
    "picks_experts": "the line of code picks the experts of a mixture that got tokens",
    "exchanges_objects": "the line of code sends Python objects between processes",
    "lazy_view": "the tensor is a conjugated or negated view, or ceased to be",
}


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change that helps, in a range of torch versions.

    key: what a report calls it. form: which way of doing it, where the key has several; empty otherwise.
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
    form: str = ""

    @property
    def name(self) -> str:
        """What cases and ``explain`` call it."""
        return self.form or self.key


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

    def remedy(self, name: str, kind: str, torch: VersionRange, patterns: frozenset[str] = frozenset()) -> Remedy | None:
        """The remedy of that name for an event kind, the patterns of a finding, and what is known of the torch version.

        The one made for the kind comes first, then one that works in every version that it may be.
        """
        alike = (one for one in self.remedies if one.name == name and not one.without & patterns)
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
