"""Patterns over the guards of one function: what single guards do not tell.

One recompile for each layer inside one call, a value that grows with each step, two states, the first step to a
dynamic graph, a frame resumed behind a graph break, a frame that computes nothing with tensors, sizes that were equal by
chance.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

from recompile_watch.core.compile_id import entry_number, parse_compile_id
from recompile_watch.core.events import Reason
from recompile_watch.core.late import pattern

MIN_STEPS = 3  # so many guards show a direction
_MODULE_INDEX = pattern(r"\['?\d+'?\]|\.\d+(?=\.)")
_OF_CLASS = pattern(r"___check_type_id\((?P<source>.{1,300}), (?P<id>\d+)\), type=(?P<name><class '.{1,300}'>)")
_INTEGER = pattern(r"(?<![\w.])-?\d+(?![\w.])")
_INDEX = pattern(r"\[(\d+)\]|\b(?:layers?|blocks?|h|_modules\[')\.?'?(\d+)")
_LENGTH = pattern(r"len\([^\n]{1,300}\) == (\d+)")
_DUCK = pattern(r"(?P<one>[\w.\[\]']+)\.size\(\)\[\d+\] == (?P<other>[\w.\[\]']+)\.size\(\)\[\d+\]")
# The code behind a graph break, as each version of torch names it: "torch_dynamo_resume_in_f_at_3" and "resume_in_f_at_3" since 2.2,
# "<resume in f>" and "<graph break in f>" before, without the line.
RESUMED = pattern(r"(?:(?P<angle><)(?:resume|graph break) in |(?:torch_dynamo_|__)?resume_(?:in|at)_)(?P<name>.+?)(?(angle)>|_at_(?P<line>\d+))$")
# What logs, draws, counts progress and keeps objects: torch meets it behind a graph break, and no model is made of it.
_BESIDE = pattern(
    r"(?:site|dist)-packages[\\/](?:matplotlib|seaborn|plotly|PIL|wandb|mlflow|comet_ml|neptune|tensorboardX?|tqdm|rich|loguru|structlog)[\\/]"
    r"|[\\/](?:python3\.\d+|Lib)[\\/](?:logging|json|pickle|threading|queue|weakref|inspect|tempfile|subprocess|warnings|traceback)(?:\.py|[\\/])"
    r"|(?:^|[\\/])(?:torchinfo|torchsummary|torchviz|ptflops|fvcore)[\\/]"
)
# torch wraps what has no code of its own to compile, such as a module of torch's: all of it runs through this one function.
# A part of a module: one module keeps its parts, and the sizes of its parameters; several that share the code differ in them.
_PART = pattern(r"(?:not )?(?:___\w+\(|len\(|dict\.keys\(|KeyError on |tensor ')(?:L\['self'\]|self)\.(?:_modules|_parameters)\b")
_KEPT = pattern(r"len\([^\n]{1,300}\]\.[A-Za-z]\w{0,60}\) == (?P<length>\d{1,9})$")
_HOOKS = pattern(r"\w_hooks\b")  # registered on a module and taken off again, it is still the same one
_OTHER_SELF = pattern(r"___check_obj_id\(L\['self'\], \d{1,20}\)$")
_OF_PARTS = frozenset({"type_identity", "dict_keys", "container_length", "parameter_size"})
SHARED_WRAPPER = pattern(r"torch[\\/]_dynamo[\\/]external_utils\.py$")
_TO_ZERO_OR_ONE = pattern(r" size mismatch at index \d+\. expected \d+, actual [01]\b")
_AT_ZERO_OR_ONE = pattern(r" size mismatch at index \d+\. (?:expected [01],|expected \d+, actual [01]\b)")
_EXPECTED = pattern(r" size mismatch at index \d+\. expected (?P<size>[2-9]|\d{2,}), actual \d+")  # 0 and 1 are static
_DIMENSION = pattern(r"tensor '.+?' size mismatch at index \d+")
MAX_FIRST_STEPS = 3  # dimensions that may each take their first step before somebody should look
_BACKENDS = pattern(r"Cached backend: [^\n]{0,200}?compiler='(?P<cached>[\w.-]+)'.{0,200}?New backend: [^\n]{0,200}?compiler='(?P<new>[\w.-]+)'")
_BENCHMARK = pattern(r"(?i)(?:^|[\\/_.-])bench(?:marks?|marking|es)?(?:[\\/_.-]|$)")
_PACKAGE = pattern(r"[\\/](?:site|dist)-packages[\\/](?!torch[\\/])(?P<name>[^\\/]{1,100})")
_OFFLOAD = pattern(r"[\\/]accelerate[\\/]hooks\.py$")
_PER_PARAMETER = pattern(
    r"(?i)(?:^|_)(?:optim(?:izer)?|adam\w{0,6}|sgd|muon|lion|adafactor|shampoo|soap|lamb|rmsprop|ema_(?:update|step)|update_ema|step_param\w*|param\w*_(?:step|update)|update_param\w*)(?:_|$)"
)
_PARAMETER = pattern(r"tensor '(?:L\[')?(?:\w{1,30}_)?(?:param|parameter|exp_avg|exp_avg_sq)(?:'\])?' (?:rank|size) mismatch")
_OPTIMIZER = pattern(r"[\\/]torch[\\/]optim[\\/]")
_TORCH = pattern(r"[\\/](?:site|dist)-packages[\\/]torch[\\/](?:distributed|nn[\\/]parallel)[\\/]")
# A number in a closure or a default of a function that is passed: what is read through a global torch takes for a constant, and an integer default.
_PASSED_NUMBER = pattern(r"(?!G\[)[^\s=]{1,300}(?:\.cell_contents == -?\d+(?:\.\d+)?|__defaults__\[\d+\] == -?\d+\.\d+)$")
# torch before 2.5 compares the stride of a dimension before the sizes of those behind it: a size that changes shows as the stride in front of it.
OF_A_SIZE_BEHIND = pattern(r"tensor 'L\['.{1,300}' stride mismatch at index \d+\. expected (?:[2-9]|\d{2,}), actual (?:[2-9]|\d{2,})\b")
DYNAMIC_BY_ITSELF = frozenset({"size_mismatch", "int_value", "float_value"})
_KEY_SETS = pattern(r"dispatch key set mismatch\. expected DispatchKeySet\((?P<expected>[^)]*)\), actual DispatchKeySet\((?P<actual>[^)]*)\)")
_DEVICES = frozenset({"CPU", "CUDA", "HIP", "XPU", "MPS", "HPU", "XLA", "MTIA", "Meta", "PrivateUse1", "IPU", "VE", "Lazy", "Vulkan", "FPGA", "MAIA"})
# What torch compares of a tensor, in its order: torch/csrc/dynamo/guards.cpp, TensorCheck::check_verbose.
_IN_TURN = ("dtype_mismatch", "device_mismatch", "rank_mismatch", "size_mismatch", "stride_mismatch")
_TEXT_VALUE = pattern(r" == ['\"](?P<text>[^'\"]{0,200})['\"]\s*$")
_DIGITS = pattern(r"\d{1,18}")
_OF_ONE_CALL = pattern(  # what is named for one call or one person: there is always one more
    r"(?:\b|_|')(?:(?:request|req|session|trace|span|user|client|customer|order|task|job|message|msg|run|chat|conversation|ticket|transaction)_?id|uuid|guid)"
    r"(?:'\])? == "
)
# What else than an undefined name Python raised where torch tried the guard: which one failed is not told.
_UNTRIED = pattern(
    r"(?:\w+Error: )?(?:'[\w.]+' object (?:has no attribute '|is not )|(?:list|tuple|string) index out of range"
    r"|unsupported operand type|can't multiply sequence|bad operand type)"
)
_MANY = 100  # no program has so many variants of one thing
TWO_STATES = frozenset({"bool_value", "grad_mode", "autocast", "global_state", "requires_grad", "dispatch_keys"})


def decisive_first(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """The reasons with the one first that made torch compile again.

    torch names for each cache entry the first guard that failed. What has two values only tells that an entry is of the other
    state; the new one was made because those of its own state did not fit either, and these fail on something else. Likewise an
    entry of another dtype tells less than one of the same dtype and another stride, and an entry of another module of the class,
    which torch before 2.5 compiles each for itself, tells nothing of those of this one.
    """
    if len(reasons) < 2:
        return reasons
    found = _nearest(reasons) if reasons[0].cause in _IN_TURN else None
    if reasons[0].cause in TWO_STATES:
        found = next((reason for reason in reasons if reason.cause not in TWO_STATES), None)
    if _is_untried(reasons[0]):
        found = next((reason for reason in reasons if not _is_untried(reason)), None)
    if is_of_another_instance(reasons[0]):
        found = next((reason for reason in reasons if not is_of_another_instance(reason)), None)
    return reasons if found is None else (found, *(reason for reason in reasons if reason is not found))


def _is_untried(reason: Reason) -> bool:
    """True for a guard that torch could not try, as with the ToFloat of torch 2.4."""
    return reason.cause == "undefined_name" or _UNTRIED.match(reason.text) is not None


def _nearest(reasons: tuple[Reason, ...]) -> Reason | None:
    """The reason that failed last in the order in which torch compares a tensor, where it is further than the first one's; None else.

    What is compared before it fitted: that entry is the nearest to the new one.
    """
    tensor = reasons[0].text.partition(" mismatch")[0].rpartition("' ")[0]
    alike = [one for one in reasons if one.cause in _IN_TURN and one.text.startswith(f"{tensor}' ")]
    found = max(alike, key=lambda one: _IN_TURN.index(one.cause), default=reasons[0])
    return None if found.cause == reasons[0].cause else found


def is_of_another_module(guard: Reason) -> bool:
    """True for a guard that fails when the code is called for another module of the same class: another part, or a parameter of another size."""
    return guard.cause in _OF_PARTS and _PART.match(guard.text) is not None and _HOOKS.search(guard.text) is None and not _grows(guard)


def _grows(guard: Reason) -> bool:
    """True for what a part keeps and fills: it holds as many as there are entries before it, or one more."""
    kept, entry = _KEPT.match(guard.text), entry_number(guard.entry)
    return kept is not None and int(kept["length"]) - entry in (0, 1)


def is_of_another_instance(guard: Reason) -> bool:
    """True for a guard that fails when a method is called of another object of the class."""
    return _OTHER_SELF.match(guard.text) is not None


def are_of_the_first_layer(guards: Sequence[Reason]) -> bool:
    """True where the oldest entry alone was made for an input without gradient: where sizes differ as well, layers stand behind each other."""
    return bool(guards) and all(entry_number(guard.entry) == 0 and "expected requires_grad=0" in guard.text for guard in guards)


def is_static_thrice(texts: Iterable[str]) -> bool:
    """True when three entries each have a size of their own for one dimension of one tensor, which torch makes dynamic in the second.

    0 and 1 do not count: torch never makes them dynamic.
    """
    return len({match["size"] for text in texts if (match := _EXPECTED.search(text)) is not None}) >= MIN_STEPS


def patterns_of(guards: Sequence[Reason], *, function: str | None, worst_process: int, phase: str, file: str | None = None) -> frozenset[str]:
    """The patterns that the guards show. guards: newest guard of each recompile of one process, oldest first.

    worst_process: most recompiles of this guard in one process. file: of the function.
    """
    found = {"late"} if phase == "steady" else set()
    texts = [guard.text for guard in guards]
    cause = guards[-1].cause if guards else ""
    if function is not None and RESUMED.search(function):
        found.add("resumed_frame")
    found |= {"of_parameters"} if _runs_per_parameter(function, texts) else set()
    found |= _of_file(file or "")
    found |= _of_cause(cause, texts)
    if 2 * sum(_AT_ZERO_OR_ONE.search(text) is not None for text in texts) > len(texts):
        found.add("mostly_zero_or_one")
    if cause in TWO_STATES and len(set(texts)) <= 2:
        found.add("two_states")
    shapes = (match for text in texts if ".size()[" in text and "._base." not in text and (match := _DUCK.fullmatch(text)))
    if any(match["one"] != match["other"] for match in shapes):
        found.add("duck_sizing")
    varying = varying_integer(texts)
    if varying is not None:
        template, position, values = varying
        steps = {after - before for before, after in pairwise(values)}
        is_rising = len(values) >= MIN_STEPS and min(steps) > 0
        if is_rising and steps == {1} and _is_index(template, position):
            found.add("per_layer_index")
        elif is_rising and not _is_index(template, position) and _never_returns(texts):
            found.add("growing_value")
    elif len(guards) == 1 and _names_its_entry(guards[0]):
        found.add("per_layer_index")
    elif len(guards) == 1 and cause == "container_length" and _counts_its_entry(guards[0]):
        found.add("growing_value")
    is_of_sizes = cause == "stride_mismatch" and all(map(OF_A_SIZE_BEHIND.match, texts))
    found |= {"strides_of_sizes"} if is_of_sizes else set()
    is_dynamic = cause in DYNAMIC_BY_ITSELF or is_of_sizes or (cause == "closure_or_global" and all(map(_PASSED_NUMBER.match, texts)))
    if is_dynamic and _are_first_steps(guards, worst_process) and not (len(texts) > 1 and "per_layer_index" in found):
        found.add("first_dynamic_step")
        if any(_TO_ZERO_OR_ONE.search(text) for text in texts):
            found.add("to_zero_or_one")
    return frozenset(found)


def _runs_per_parameter(function: str | None, texts: Iterable[str]) -> bool:
    """True for a function that runs once for each parameter and writes into it: an optimizer's step, an average of weights.

    Parameters are of several shapes, whose number is that of the model: no size of them grows, and none can be padded.
    """
    return _PER_PARAMETER.search(function or "") is not None or any(map(_PARAMETER.match, texts))


def _of_cause(cause: str, texts: Sequence[str]) -> set[str]:
    """The pattern that guards of this class alone have."""
    match cause:
        case "backend_match" if any(match["cached"] != match["new"] for text in texts for match in _BACKENDS.finditer(text)):
            return {"several_backends"}
        case "str_value" if _is_chosen_per_module(texts):
            return {"chosen_per_module"}
        case "str_value" if _are_numbered(texts):
            return {"numbered_texts"}
        case "type_identity" if _is_class_made_anew(texts):
            return {"class_made_anew"}
        case "dispatch_keys":
            return _key_patterns(texts[-1])
    return set()


def _is_chosen_per_module(texts: Sequence[str]) -> bool:
    """True when the same attribute of several modules changes: the variants of one multiply with those of the others."""
    values: dict[str, set[str]] = {}
    for text in texts:
        source, _, value = text.partition(" == ")
        values.setdefault(source, set()).add(value)
    is_one_attribute = len({_MODULE_INDEX.sub("[]", source) for source in values}) == 1
    return len(values) > 1 and is_one_attribute and max(map(len, values.values())) > 1


def _are_numbered(texts: Sequence[str]) -> bool:
    """True when texts differ in a number alone that has no end, as ids and dates: names of a few things count from 0 or 1."""
    values = {match["text"] for text in texts if (match := _TEXT_VALUE.search(text)) is not None}
    numbers = [int(digits) for value in values for digits in _DIGITS.findall(value)]
    if numbers and all(_OF_ONE_CALL.search(text) is not None for text in texts):
        return True
    return len(values) >= MIN_STEPS and len({_DIGITS.sub("N", value) for value in values}) == 1 and max(numbers, default=0) >= _MANY


def _is_class_made_anew(texts: Sequence[str]) -> bool:
    """True when objects of one place are of several classes that have one name."""
    found = [match for text in texts if (match := _OF_CLASS.match(text)) is not None]
    return len({match["id"] for match in found}) >= MIN_STEPS and len({(match["source"], match["name"]) for match in found}) == 1


def _never_returns(texts: Sequence[str]) -> bool:
    """True when no text comes again behind another one: what grows does not shrink."""
    return len([one for one, _ in groupby(texts)]) == len(set(texts))


def _key_patterns(text: str) -> set[str]:
    """What the two sets of dispatch keys of a guard differ in: torch compares them before it compares devices."""
    match = _KEY_SETS.search(text)
    if match is None:
        return set()
    expected, actual = ({key.strip() for key in match[side].split(",")} for side in ("expected", "actual"))
    changed = expected ^ actual
    if expected & _DEVICES and actual & _DEVICES and changed & _DEVICES:
        return {"other_device"}
    if any(key.startswith("Autocast") for key in changed):
        return {"autocast_keys"}
    if changed & {"Conjugate", "Negative"}:
        return {"lazy_view"}
    if "ADInplaceOrView" in changed and any(key.startswith("Autograd") for key in changed):
        return {"called_in_inference"}  # torch adds that key to every tensor, but under inference_mode (c10's default set of included keys)
    return {"inference_tensor"} if changed and all(key == "ADInplaceOrView" or key.startswith("Autograd") for key in changed) else set()


def _are_first_steps(guards: Sequence[Reason], worst_process: int) -> bool:
    """True when each number, or each dimension of each tensor, changed once: torch makes it dynamic then.

    A size of 0 or 1 takes one step more, there or back; the same change against another entry is that of another mode, in which torch had not met it.
    """
    texts = [text for _, text in dict.fromkeys((guard.entry, guard.text) for guard in guards)]
    if worst_process <= 1 and len(set(texts)) <= 1:
        return True
    steps = Counter(match[0] for text in dict.fromkeys(texts) if (match := _DIMENSION.match(text)) is not None)
    to_one = {match[0] for text in texts if _AT_ZERO_OR_ONE.search(text) and (match := _DIMENSION.match(text)) is not None}
    is_each_once = all(count <= (2 if name in to_one else 1) for name, count in steps.items())
    return steps.total() == len(set(texts)) and len(texts) == len(guards) == worst_process <= MAX_FIRST_STEPS and is_each_once


def _of_file(file: str) -> set[str]:
    """What the place of the function tells."""
    places = (
        ("beside_the_model", _BESIDE),
        ("shared_wrapper", SHARED_WRAPPER),
        ("benchmark", _BENCHMARK),
        ("of_torch", _TORCH),
        ("of_optimizer", _OPTIMIZER),
        ("of_package", _PACKAGE),
        ("offload_hooks", _OFFLOAD),
    )
    return {name for name, place in places if place.search(file)}


def is_of_a_wrapper(file: str | None) -> bool:
    """True for a file of torch's wrappers for distributed training, whose graph breaks are meant."""
    return _TORCH.search(file or "") is not None


def package_of(file: str | None) -> str | None:
    """The package that a file belongs to, by its folder among the installed ones; None for torch and for what is not installed."""
    found = _PACKAGE.search(file or "")
    return found["name"] if found else None


def varying_integer(texts: Sequence[str]) -> tuple[str, int, list[int]] | None:
    """The template of texts that differ in one integer only, which of its integers that is, and its values in order.

    None when they differ in more, or in none.
    """
    texts = list(dict.fromkeys(texts))
    if len(texts) < 2 or len({_INTEGER.sub("#", text) for text in texts}) > 1:
        return None
    columns = list(zip(*([int(number) for number in _INTEGER.findall(text)] for text in texts), strict=True))
    varying = [position for position, column in enumerate(columns) if len(set(column)) > 1]
    if len(varying) != 1:
        return None
    return texts[-1], varying[0], list(columns[varying[0]])


def _is_index(text: str, position: int) -> bool:
    """True when that integer of the text is an index into a list, or the number of a layer."""
    number = list(_INTEGER.finditer(text))[position]
    return any(match.start(1) == number.start() or match.start(2) == number.start() for match in _INDEX.finditer(text))


def _names_its_entry(guard: Reason) -> bool:
    """True when the guard's index is the number of the cache entry it belongs to: entry 7 was made for layer 7."""
    entry = _late_entry(guard)
    return entry is not None and any(int(match[1] or match[2]) == entry for match in _INDEX.finditer(guard.text.partition(" == ")[0]))


def _counts_its_entry(guard: Reason) -> bool:
    """True when the guard's length is the number of its cache entry, or the next: entry 7 was made for a list of 7, which began empty."""
    entry, length = _late_entry(guard), _LENGTH.match(guard.text)
    return entry is not None and length is not None and int(length[1]) - entry in (0, 1) and not is_of_another_module(guard)


def _late_entry(guard: Reason) -> int | None:
    """The number of the guard's cache entry, where so many came before it that a number that it shares is no chance."""
    parsed = parse_compile_id(guard.entry) if guard.entry else None
    entry = parsed.frame_compile if parsed is not None else None
    return None if entry is None or entry < MIN_STEPS - 1 else entry
