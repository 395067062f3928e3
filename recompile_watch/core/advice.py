"""Advice: the remedies that fit a finding, with what to paste made of the log's own evidence.

A remedy whose text needs something that the log does not show is left out: advice is exact or it is not given.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from recompile_watch.core.checks import check_line
from recompile_watch.core.compile_id import entry_number
from recompile_watch.core.exception_text import broken_call
from recompile_watch.core.guard_lines import (
    RANK,
    SIZE,
    TENSOR,
    TENSOR_EXPECTED,
    buckets_for,
    clone_lines,
    code_name,
    config_module,
    constraint_line,
    dtype_named,
    grad_line,
    is_of_stride,
    keys_line,
    layers_before,
    logger_methods,
    lr_line,
    missing_module,
    operator_named,
    option_line,
    own_number,
    reorder_line,
    rooted,
    source_pattern,
    source_text,
    state_line,
    structure_line,
    tensor_line,
)
from recompile_watch.core.installs import cache_line, compiler_line, dtype_line, set_line, triton_line, upgrade_line
from recompile_watch.core.late import pattern
from recompile_watch.core.models import where_set
from recompile_watch.core.patterns import RESUMED, SHARED_WRAPPER
from recompile_watch.core.remedies import Case, Catalog, Remedy
from recompile_watch.core.rules import Pattern
from recompile_watch.core.stack_frames import is_of_a_library
from recompile_watch.core.story import Story
from recompile_watch.core.versions import VersionRange, default_limit, told_range

MAX_ADVICE = 5
MAX_SOURCES = 64
MAX_GUARD_CHARS = 2000  # a guard that is longer names nothing that a person could paste
_ONE = r"((?:[LG]\['\w+'\]|[A-Za-z_]\w*)(?:\.(?!_base\b)\w+|\[\d+\]|\['\w+'\])*)"
_ALIAS = pattern(rf"{_ONE} ?should not alias|{_ONE}\._base\b|\"{_ONE}\"\]$| is {_ONE}$")
# What a wrapper is given: it stands between the program and the code, and has no names of its own for what it hands on.
_PASSED = pattern(r"(?:L\['(?:args|kwargs)'\]|args|kwargs)\[(?:(?P<number>[0-2])|'(?P<name>[A-Za-z_]\w*)')\](?P<rest>(?:\.\w+|\[\d+\]|\['\w+'\])*)")
_HANDS_ON = pattern(r"(?:^|['( ])(?:L\[')?(?:kw)?args(?:'\])?[\[.)]|^wrapper$|^wrapped$|^inner$")
_OF_MODULES = frozenset({"forward", "__call__", "_call_impl", "_wrapped_call_impl"})
_GRAPH_INPUT = pattern(r"\b(?:arg|primals_)\d+")
_EXPRESSION = pattern(r"[\w.\[\]'\"(), +*/%<>=!-]{1,200}")  # one line of code at most, whoever wrote the log
_LENGTH = pattern(r"(?:not )?len\((?P<source>[^()\n]{1,200})\) [!=<>]|not (?P<empty>[\w.\[\]']{1,200})$")
_ASSIGNED = pattern(
    r"(?:Mutating module attribute |attrs were (?:created|deleted) in the model\.forward: \{'|tensor attributes? self\.)(?P<name>[\w.]{1,80})"
)
_CLASS = pattern(r"<class '(?:[\w.<>]{1,200}\.)?(?P<name>[A-Za-z]\w{0,80})'>")
_MULTIPLE = pattern(r"(?P<source>[\w.\[\]'\"]{1,200}?)\.size\(\)\[(?P<dim>\d{1,2})\] % (?P<multiple>\d{1,6})\)")
_NUMBER_FOR_TENSOR = pattern(rf"expected type of '(?P<source>.+)' {TENSOR_EXPECTED}<class '(?:float|int|bool|complex)'>")


@dataclass(frozen=True, slots=True)
class Advice:
    """One remedy, made exact. remedy: its key. apply: the text to paste. torch: the versions in which it works. form: as in ``Remedy``."""

    remedy: str
    title: str
    kind: str
    apply: str
    where: str
    restart: bool
    torch: str
    expect: str
    verified: str
    caution: str | None
    docs: str | None
    form: str = ""

    @property
    def name(self) -> str:
        """What cases and ``explain`` call it."""
        return self.form or self.remedy


def advise(story: Story, catalog: Catalog, torch: VersionRange) -> tuple[Advice, ...]:
    """The remedies for a finding, the one to do first; empty where nothing fits. torch: the versions that it may be."""
    case = next((case for case in catalog.cases if _fits(case, story, torch)), None)
    return remedied(case.remedies, story, catalog, torch) if case is not None else ()


def remedied(names: Iterable[str], story: Story, catalog: Catalog, torch: VersionRange) -> tuple[Advice, ...]:
    """The remedies of these names, made exact for a finding."""
    words = _Words(story)
    found = (catalog.remedy(name, story.kind, torch, story.patterns) for name in names)
    advice = [made for remedy in found if remedy is not None and (made := _made(remedy, words)) is not None]
    return tuple(advice[:MAX_ADVICE])


def _fits(case: Case, story: Story, torch: VersionRange) -> bool:
    if case.torch is not None and not case.torch.overlaps(torch):
        return False
    if case.kinds and story.kind not in case.kinds:
        return False
    if (case.causes and story.cause not in case.causes) or (case.stages and story.stage not in case.stages):
        return False
    if not case.patterns <= story.patterns or case.without & story.patterns:
        return False
    if case.reason is not None and not _holds(case.reason, story.reason):
        return False
    return case.function is None or (story.function is not None and _holds(case.function, story.function))


def _holds(wanted: Pattern, text: str) -> bool:
    return wanted.search(text.encode("utf-8", "replace")) is not None


class _Words:
    """What the placeholders stand for, as far as the log shows it; each is made when a text asks for it."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self.windows = story.windows
        self._made: dict[str, str | None] = {}

    def __getitem__(self, name: str) -> str:
        """Raises KeyError where the log does not show it."""
        if name not in self._made:
            self._made[name] = MAKERS[name](self._story)
        value = self._made[name]
        if not value:
            raise KeyError(name)
        return " ".join(value.split())


def _made(remedy: Remedy, words: _Words) -> Advice | None:
    """The remedy with its texts filled in; None when the log lacks something that they need."""
    try:
        apply, where, expect, caution = (text and text.format_map(words) for text in (remedy.apply, remedy.where, remedy.expect, remedy.caution))
    except KeyError:
        return None
    line = set_line(apply or "", windows=words.windows)
    return Advice(
        remedy.key, remedy.title, remedy.kind, line, where or "", remedy.restart, remedy.torch_text, expect or "", remedy.verified, caution,
        remedy.docs, remedy.form,
    )  # fmt: skip


def _function(story: Story) -> str:
    if _is_wrapper(story):
        return "the compiled module"
    resumed = RESUMED.search(story.function or "")
    return resumed["name"] if resumed else story.function or "the compiled function"


def _is_wrapper(story: Story) -> bool:
    """True for the frame that torch puts around a module of its own, such as ``nn.Linear``, and for a decorator of another package."""
    if story.function is None or SHARED_WRAPPER.search(story.file or "") is not None:
        return story.function is not None
    is_handed_on = _HANDS_ON.search(story.newest[:MAX_GUARD_CHARS]) is not None or _HANDS_ON.search(story.function) is not None
    return is_handed_on and is_of_a_library(story.file)


def _callee(story: Story) -> str:
    """What the program calls, as code: a module by its name there, for its ``forward`` is called by torch."""
    name = _function(story)
    return name if name.isidentifier() and name not in _OF_MODULES else "model" if name in _OF_MODULES or _is_wrapper(story) else "compiled"


def _made_at(story: Story) -> str:
    if story.place is None:
        return f"inside what is compiled and called at {story.called_from}" if story.called_from else "inside the compiled function"
    others = ", ".join(str(line) for line in story.lines if line != story.line_no)
    place = f"{story.place} (also on line {others})" if others else story.place
    own = f"at {story.called_from}, your own code" if story.called_from else "in your own code"
    return f"{own} that leads to {place}" if is_of_a_library(story.file) else f"at {place}"


def _fixing(story: Story) -> str:
    """The line of code that fixes a size, with what it says where torch shows it."""
    code = f" ({story.code})" if story.code else ""
    return story.fixed_at or (f"{'' if code else 'the code of '}{story.place}{code}" if story.place else "the code")


def _holder(story: Story) -> str:
    """The function that a decorator belongs on: one of the program's own, never one of torch or of Python."""
    name = _function(story)
    if story.kind == "compile_error" and story.function is None:
        return 'your function that fails: the last behind "from user code:", "Found from" or "User stack:" in the whole log (TORCHDYNAMO_VERBOSE=1)'
    if is_of_a_library(story.file):
        return f"your own function{f' at {story.called_from},' * bool(story.called_from)} that leads to {name} ({story.place} is a library's)"
    if story.fixed_in is not None:
        return f"{story.fixed_in}, which holds {story.fixed_at or 'the guard'}"
    return f"{name}, at {story.place}" if story.place else name


def _attribute(story: Story) -> str | None:
    if (assigned := _ASSIGNED.search(story.reason)) is not None:
        return assigned["name"]
    number = _NUMBER_FOR_TENSOR.match(story.newest)
    length = _LENGTH.match(story.newest)
    source = number["source"] if number is not None else (length["source"] or length["empty"]) if length is not None else source_text(story.newest)
    if not source or "___stack" in source:
        return None
    return _named(story, source) or (source if _EXPRESSION.fullmatch(source) else None)


def _variants(story: Story) -> int:
    """How many values were seen or entries are in use, the newest included; of a dict's key twice: its entry is not there at first."""
    entries = max([story.limit or 0, *(entry_number(guard.entry) + 1 for guard in story.guards if guard.entry)])
    return (max(len({guard.text for guard in story.guards}), entries) + 1) * (1 + ("looks_up" in story.patterns))


def _first_dtype(story: Story) -> str:
    """The dtype of the oldest cache entry that the log names, a floating one before any other: weights are not cast to integers."""
    guards = sorted((*story.guards, *story.others), key=lambda guard: entry_number(guard.entry))
    named = [dtype_named(guard.text) for guard in guards if guard.cause == "dtype_mismatch"]
    return next((name for name in named if "float" in name), named[0] if named else dtype_named(story.oldest))


def _limit(story: Story) -> int:
    """A limit that has room for all variants, and more than the one that was too low."""
    default = default_limit(told_range(story.torch or ""))
    return max(2 * default, 8 * -(-_variants(story) // 8), 2 * (story.limit or 0), *story.limits)


def _least_rank(story: Story) -> str:
    """The newest guard; of those on a number of dimensions that with the fewest, which every call has."""
    ranks = [(int(match["one"]), guard.text) for guard in story.guards if (match := RANK.match(guard.text)) is not None]
    return min(ranks)[1] if ranks and RANK.match(story.newest) is not None else story.newest


def _clones(story: Story) -> str | None:
    """What shares memory with another, cloned: of the same tensor passed several times all but one, else the last that the guard names."""
    guard = story.newest[:MAX_GUARD_CHARS]
    lines = clone_lines(guard)
    match = None if lines else _ALIAS.search(guard)
    name = code_name(next(group for group in match.groups() if group)) if match else None
    return lines or (name and f"{name} = {name}.clone()")


def _grad_line(story: Story) -> str | None:
    name = _tensor_name(story)
    if name is not None and name.startswith("self.") and _function(story) in _OF_MODULES:
        name = f"{_callee(story)}{name[4:]}"  # where it is called, it is no self
    return grad_line(name, is_parameter="._parameters[" in story.newest) if name else None


def _to_gpu(story: Story) -> str:
    """How a tensor on the CPU gets onto the GPU: an input of the graph before the call, another where it is made."""
    if _GRAPH_INPUT.search(story.reason):
        return (
            "model.to('cuda'); x = x.to('cuda', non_blocking=True)  # before the compiled call: one of its inputs is on the CPU, or a tensor that"
            " a module keeps without register_buffer, which model.to() does not move"
        )
    return f"torch.tensor(value, device='cuda')  # {_made_at(story)}; or .to('cuda', non_blocking=True) outside the compiled function"


def _sources(story: Story) -> list[str]:
    """The sources of the guards as torch names them, each with its root wrapped: ``L['kv_cache']._current_idx[7]``."""
    named = dict.fromkeys(source_text(guard.text) for guard in (*story.guards, *story.others))
    found = [source for name in named if (source := rooted(name)) is not None]
    if "per_layer_index" in story.patterns and len(set(found)) == 1:  # only the last layer was printed: those before it had their entries
        found = layers_before(found[0], MAX_SOURCES)
    return list(dict.fromkeys(found))[:MAX_SOURCES]


def _tensor_name(story: Story) -> str | None:
    """The name by which code calls the tensor: ``x`` of ``L['x']``, ``self.lin.weight`` of a module's parameter."""
    match = TENSOR.match(story.newest)
    return _named(story, match["source"]) if match else None


def _named(story: Story, source: str) -> str | None:
    """A source as the program calls it: what torch's shared wrapper is given has another name where the module is called."""
    passed = _PASSED.fullmatch(source) if _is_wrapper(story) else None
    if passed is None:
        name = code_name(source)
        is_module = name is not None and name.startswith(("fn.", "fn[")) and SHARED_WRAPPER.search(story.file or "") is not None
        return f"model{name[2:]}" if name is not None and is_module else name
    return (passed["name"] or ("x", "y", "z")[int(passed["number"])]) + passed["rest"]


def _padded(story: Story) -> str:
    """The size that is to be padded, as code: of a stride the one behind it."""
    match = TENSOR.match(story.newest) or SIZE.match(story.newest)
    name = _named(story, match["source"]) if match and match["dim"] is not None else None
    return f"{name}.shape[{int(match['dim']) + is_of_stride(story.newest)}]" if match and name else "x.shape[dim]"


def _multiples(story: Story) -> str | None:
    """How much is missing of each size to the multiple that the code pads it to."""
    parts = []
    for match in (match for guard in (*story.guards, *story.others) for match in _MULTIPLE.finditer(guard.text[:MAX_GUARD_CHARS])):
        name = _named(story, match["source"])
        if name is not None:
            parts.append((name, f"by -{name}.size({match['dim']}) % {match['multiple']} in dimension {match['dim']}"))
    of_one = [text for name, text in dict.fromkeys(parts) if name == parts[0][0]]
    return f"# {parts[0][0]}: torch.nn.functional.pad {', '.join(of_one)}" if parts else None


def _changed(story: Story) -> tuple[tuple[str, int], ...]:
    """Each tensor and dimension whose size changed."""
    alike = ((guard.text, TENSOR.match(guard.text) or SIZE.match(guard.text)) for guard in (*story.guards, *story.others))
    return tuple(dict.fromkeys((one["source"], int(one["dim"]) + is_of_stride(text)) for text, one in alike if one is not None and one["dim"]))


def _sources_by_dimension(story: Story) -> str:
    """``L['x']:0``, as torch takes it from 2.13 on (torch/compiler/config.py); the sources alone where they have no dimension."""
    found = [f"{source}:{dim}" for name, dim in _changed(story) if (source := rooted(name)) is not None]
    return ",".join(dict.fromkeys(found[:MAX_SOURCES] or _sources(story)))


def _marks(story: Story, call: str) -> str | None:
    """``torch._dynamo.mark_dynamic(x, 0)``, one for each tensor and dimension whose size changed."""
    found = [f"{call}({name}, {dim})" for source, dim in _changed(story) if (name := _named(story, source)) is not None]
    behind = "  # or the dimension behind it, whichever has another size" if found and story.cause == "stride_mismatch" else ""
    return f"{'; '.join(dict.fromkeys(found))}{behind}" if found else None


# How each placeholder is made of a story; None where the log does not show it.
MAKERS: dict[str, Callable[[Story], str | None]] = {
    "function": _function,
    "place": lambda story: story.place,
    "made_at": _made_at,
    "own_call": lambda story: f"at {story.called_from}" if story.called_from else "in your own code",
    "compiled_at": lambda story: f"where the object that {story.entered_at} calls is compiled" if story.entered_at else "where the model is compiled",
    "callee": _callee,
    "holder": _holder,
    "structure": lambda story: structure_line(_least_rank(story)[:MAX_GUARD_CHARS]),
    "state_line": lambda story: state_line(story.newest),
    "dtype": _first_dtype,
    "lr_line": lambda story: lr_line(story.newest),
    "clones": _clones,
    "grad_line": _grad_line,
    "constraint_line": lambda story: constraint_line(story.reason),
    "check_line": lambda story: check_line(story.reason, story.code),
    "option_line": lambda story: option_line(story.reason),
    "loggers": lambda story: logger_methods(story.reason),
    "module": lambda story: missing_module(story.reason),
    "config_module": lambda story: config_module(story.reason),
    "to_gpu": _to_gpu,
    "backend": lambda story: story.backend,
    "hint": lambda story: None if story.hinted else story.hint,  # the line itself is advised
    "fixed_at": lambda story: story.fixed_at,
    "fixing": _fixing,
    "hinted_config": lambda story: story.hinted if (story.hinted or "").startswith("torch.") else None,
    "hinted_env": lambda story: story.hinted if (story.hinted or "").startswith("TORCH") else None,
    "buckets": lambda story: buckets_for(guard.text for guard in story.guards),
    "padded": _padded,
    "multiple_line": _multiples,
    "class_named": lambda story: match["name"] if (match := _CLASS.search(story.reason)) else "Output",
    "broken_on": lambda story: f"this ({broken_call(story.reason)})" if story.reason else "what breaks the graph",
    "operator": lambda story: operator_named(story.reason),
    "reorder_line": lambda story: reorder_line(story.reason),
    "guard": lambda story: story.newest,
    "reason": lambda story: broken_call(story.reason),
    "attribute": _attribute,
    "compiler_line": lambda story: compiler_line(story.reason, windows=story.windows),
    "cache_line": lambda story: cache_line(windows=story.windows),
    "dtype_line": lambda story: dtype_line(story.reason),
    "upgrade_line": lambda story: upgrade_line(story.reason),
    "triton_line": lambda story: triton_line(story.torch, windows=story.windows),
    "own_number": lambda story: own_number(_attribute(story)),
    "tensor_line": lambda story: tensor_line(own_number(_attribute(story))),
    "keys": lambda story: keys_line([guard.text for guard in (*story.guards, *story.others)]),
    "tensor": _tensor_name,
    "mark_dynamic": lambda story: _marks(story, "torch._dynamo.mark_dynamic"),
    "mark_unbacked": lambda story: _marks(story, "torch._dynamo.decorators.mark_unbacked"),
    "sources": lambda story: ",".join(_sources(story)),
    "sources_by_dimension": _sources_by_dimension,
    "source_pattern": lambda story: source_pattern(_sources(story), is_per_layer="per_layer_index" in story.patterns),
    "variants": lambda story: str(_variants(story)),
    "limit": lambda story: str(_limit(story)),
    "own_limit": lambda story: None if story.is_accumulated else str(_limit(story)),
    "limit_key": lambda story: f"{'accumulated_' * story.is_accumulated}recompile_limit",
    "old_limit_key": lambda story: f"{'accumulated_' * story.is_accumulated}cache_size_limit",
    "printed_limit": lambda story: str(min(story.limits)) if story.limits else None,
    "raised_limit": lambda story: str(max(story.limits)) if len(story.limits) > 1 else None,
    "break_at": lambda story: story.break_at,
    "disable_line": lambda story: "; ".join(story.model.lines_for("eager")) if story.model else None,
    "disable_where": lambda story: story.model.where_set("disable", "enable") if story.model else None,
    "disable_caution": lambda story: story.model.caution_with("disable", "enable") if story.model else None,
    "mode_line": lambda story: story.model.mode_line if story.model else None,
    "mode_where": lambda story: story.model.where_set("mode") if story.model else None,
    "mode_caution": lambda story: story.model.caution_with("mode") if story.model else None,
    "batch_line": lambda story: story.batch.halved if story.batch else None,
    "batch_where": lambda story: where_set(story.batch) if story.batch else None,
    "setting": lambda story: story.setting,
    "instead": lambda story: story.instead,
    "mend": lambda story: story.mend or (story.setting and f"unset {story.setting}"),
}
