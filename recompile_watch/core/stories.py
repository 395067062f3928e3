"""Groups become stories: what the log shows about each finding, gathered from all groups of the same function."""

from collections.abc import Iterable, Sequence
from itertools import chain

from recompile_watch.core.compile_id import entry_number
from recompile_watch.core.events import Event, Reason, is_accumulated
from recompile_watch.core.findings import BREAK_KIND, LIMIT_KIND, Cuts, cause_of
from recompile_watch.core.fingerprint import normalised
from recompile_watch.core.groups import Group
from recompile_watch.core.guard_lines import TENSOR, fixing_line, hinted_config, hinted_variable, is_of_a_layer, shortened
from recompile_watch.core.late import pattern
from recompile_watch.core.patterns import (
    DYNAMIC_BY_ITSELF,
    MIN_STEPS,
    RESUMED,
    TWO_STATES,
    are_of_the_first_layer,
    is_of_a_wrapper,
    is_of_another_module,
    is_static_thrice,
    package_of,
    patterns_of,
)
from recompile_watch.core.remedies import Catalog
from recompile_watch.core.same import PAIR_BYTES
from recompile_watch.core.sightings import text_or_none
from recompile_watch.core.story import Story, message_of, own_guards
from recompile_watch.core.versions import DEFAULT_LIMIT, FIRST_VERSION, VersionRange, dotted

THREAD_LOCAL_SINCE = (2, 12)  # torch._dynamo.config overrides hold in the thread that made them
MANY_BREAKS = 4  # places of one package at which it is left out sooner than mended
MANY_FLAGS = 4  # flags of one function, whose values multiply: a limit of 8 has room for three
LOW_LIMIT = 2  # less than two states of a program need with a first entry of another kind
FEW = 4  # recompiles that leave half of the default limit
_OF_DDP = "compile_fn"  # the name of the backend of torch/_dynamo/backends/distributed.py, as torch prints it
_OF_KEYS = frozenset({"size_mismatch", "dict_keys", "container_length"})
_KEY = pattern(r"(?:not )?___dict_contains\((?P<number>\d+), ")
_EXPECTED_SIZE = pattern(r"size mismatch at index \d+\. expected (\d+), actual")
# Causes with as many values as the program has: a higher limit is a cure for these only.
_FINITE = frozenset({"str_value", "object_identity", "type_identity", "parameter_size", "closure_or_global", "dict_keys"})
_CLOCK = pattern(r"\btime\.\w|\b(?:perf_counter|monotonic|process_time|datetime)\b|time function")  # what reads one, as torch names it
_MAX_BREAK = 80  # characters of what torch says of a graph break
_OF_LIGHTNING = pattern(r" in (?:training|validation|test|predict)_step$")  # what a LightningModule calls its steps
_OF_TRAINING = pattern(r"\b(?:GradScaler|Optimizer|LRScheduler|\w{1,40}LR)\.\w{1,40}$")
_LENGTH = pattern(r"(?:not |len\()(?P<source>[^\s()]{1,300})(?:\) |$)")
_NONE = pattern(r"(?P<source>\S+) is (?:not )?None$")
_ON_WHAT = pattern(r"(?s)(?:\. expected | == |: ).*$")  # behind what a guard is on
_RECOMPILES = ("recompile", LIMIT_KIND, "recompile_limit_error")


class Stories:
    """Tells the story of each group. limits: the recompile limits that the log prints. torch: the versions that it may be."""

    def __init__(self, groups: Iterable[Group], catalog: Catalog, limits: frozenset[int], torch: VersionRange) -> None:
        self._catalog, self._limits, self._torch = catalog, limits, torch
        self._breaks: dict[tuple[str, str | None], tuple[str, int | str | None, str | None]] = {}
        self._broke_on: dict[tuple[str | None, int | None], str] = {}
        self._subjects: dict[str, str] = {}
        self._best_of: dict[tuple[str | None, str | None], dict[str, tuple[Reason, ...]]] = {}
        self._on_what_of: dict[tuple[str | None, str | None], dict[str, dict[str, dict[str, Reason]]]] = {}
        self._of_function: dict[tuple[str | None, str | None], list[Group]] = {}
        self._overwritten: set[str | None] = set()
        self._broken: dict[str, list[Group]] = {}
        self._training: set[str | None] = set()
        self._cuts: dict[tuple[str, int | None, int | None], list[tuple[str | None, int | None]]] = {}
        self._hits: list[Group] = []
        self._errors: list[Event] = []
        self._raised_limits: set[int] = set()
        for group in groups:
            for cut in () if is_of_a_wrapper(group.key.file) else group.breaks:
                self._cuts.setdefault(cut[:3], []).append((group.key.file, cut[4]))
            if group.key.kind == BREAK_KIND and _OF_TRAINING.search(message_of(group.first)) is not None:
                self._training.add(group.first.file)
            if group.key.kind == BREAK_KIND:
                self._broke_on |= {(group.first.file, line): message_of(group.first) for line in group.lines or (group.first.line_no,)}
            if group.key.kind == BREAK_KIND and (package := package_of(group.key.file)) is not None:
                self._broken.setdefault(package, []).append(group)
            if group.key.kind == "recompile_limit_error":
                self._errors += [group.first, group.last]
            if (
                group.key.kind == "limit_not_in_force"
                and group.first.extra.get("cause") is None
                and isinstance(raised := group.first.extra["raised"], int)
            ):
                self._raised_limits.add(raised)
            if group.key.kind == LIMIT_KIND:
                self._hits.append(group)
            if group.key.kind in _RECOMPILES:
                self._of_function.setdefault((group.key.function, group.key.file), []).append(group)
                resumed = RESUMED.search(group.key.function or "")
                if resumed is not None:
                    line = resumed["line"] or group.first.line_no  # the code behind a break begins on its line
                    self._breaks[resumed["name"], group.key.file] = (resumed["name"], line, group.first.file)
            if group.key.kind == "cudagraph_overwritten_error" or group.first.extra.get("cause") == "cudagraph_overwritten":
                self._overwritten.add(self._catalog.models.of(group.first))
        self._hits_that_raised = {hit.key for error in self._errors for hit, _ in self._hit_before(error)}

    def of(self, group: Group) -> Story:
        """The story of one group."""
        told, group = group, self._cause_of_error(group)
        first = group.first
        guards = self._guards(group) if group.key.kind in _RECOMPILES else own_guards(first)
        limit, limit_name = self._limit_of(group)
        patterns = patterns_of(guards, function=group.key.function, worst_process=group.worst_process, phase=group.phase, file=first.file)
        hinted, fixed_at, called_from = self._hinted(first), self._fixed_at(group), self._called_from(group)
        patterns |= (
            self._at_place(group, called_from)
            | self._wider_patterns(group, hinted, "of_parameters" in patterns)
            | self._on_sizes(group, guards, fixed_at)
        )
        patterns -= {"first_dynamic_step"} if "stays_static" in patterns and self._is_static((group.key.function, group.key.file)) else set()
        model = self._catalog.model(self._catalog.models.of(first))
        resumed = RESUMED.search(group.key.function or "")
        setting = text_or_none(first.extra.get("setting"))
        behind = (resumed["name"], resumed["line"] or first.line_no, first.file) if resumed else None
        break_at = self._break_at(behind or self._breaks.get((group.key.function or "", group.key.file)))
        code = text_or_none(first.extra.get("code"))
        patterns |= ({"broken_function"} if break_at else set()) | ({"shows_code"} if code else set())
        patterns |= {"of_torch_2_0"} if self._torch.only == FIRST_VERSION else set()
        patterns |= {"behind_clock"} if break_at and _CLOCK.search(break_at) is not None else set()
        return Story(
            told.key.kind, guards[-1].cause if guards else cause_of(first), group.key.function, first.file,
            first.line_no if first.line_no is not None else group.last.line_no, guards[-1].text if guards else message_of(first),
            guards, patterns, self._limits_of(first),
            model, break_at, setting, text_or_none(first.extra.get("why")) or self._catalog.ineffective.get(setting or ""),
            text_or_none(first.extra.get("mend")), self._catalog.models.batch_of(model), text_or_none(first.extra.get("stage")),
            limit, is_accumulated(limit_name), text_or_none(first.extra.get("backend")) if told.key.kind == "compile_error" else None,
            group.lines if told.key.kind == "graph_break" else (), self._others(group, guards),
            text_or_none(first.extra.get("hint")), hinted, fixed_at, called_from, self._entered_at(group, called_from),
            code, dotted(self._torch.only) if self._torch.only is not None else None, self._fixed_in(group),
        )  # fmt: skip

    def _break_at(self, broken: tuple[str, int | str | None, str | None] | None) -> str | None:
        """The graph break that cuts a function, by its name, line and file, and what torch says of it where the log shows that."""
        if broken is None:
            return None
        name, line, file = broken
        what = " ".join(self._broke_on.get((file, int(line)) if line else (None, None), "").split())
        return f"{name}, line {line or '?'} of {file or '?'}{f' ({shortened(what, _MAX_BREAK)})' if what else ''}"

    def is_raised(self, group: Group) -> bool:
        """True for a limit hit that became an exception: torch warns of the function, then it raises, most often without naming it."""
        return group.key.kind == LIMIT_KIND and group.key in self._hits_that_raised

    def cuts(self, group: Group) -> Cuts | None:
        """The graph breaks of the process in which this one is one of most; None where torch's own wrapper breaks the graph."""
        found = () if is_of_a_wrapper(group.key.file) else (self._cuts[cut[:3]] for cut in group.breaks)
        places = max(found, key=len, default=[])
        return Cuts(len(places), len(set(places))) if places else None

    def _hit_before(self, error: Event) -> list[tuple[Group, Event]]:
        """The limit hit that stands in front of an exception in the same process, with its group; none or one."""
        before = [
            (hit, event)
            for hit in self._hits
            for event in (hit.first, hit.last)
            if (event.source, event.rank) == (error.source, error.rank) and 0 < error.offset - event.offset < PAIR_BYTES
        ]
        return [max(before, key=lambda one: one[1].offset)] if before else []

    def _tellers(self, group: Group) -> tuple[Event, ...]:
        """The events that tell what a group is about: of an exception at a limit the hit of its function in front of it as well."""
        own = group.last, group.first
        hits = [hit for error in own for hit in self._hit_before(error)] if group.key.kind == "recompile_limit_error" else []
        return (*own, *(event for hit, event in hits if (hit.key.function, hit.key.file) == (group.key.function, group.key.file)))

    def _limit_of(self, group: Group) -> tuple[int | None, str]:
        """The limit that the group's function ran into, and its name, as far as the log prints them."""
        if group.key.kind not in _RECOMPILES:
            return None, ""
        hits = [group, *self._of_function.get((group.key.function, group.key.file), [])]
        hit = next((one for one in hits if isinstance(one.values.get("limit"), int)), None)
        limit = hit.values["limit"] if hit is not None else None
        return (limit, str(hit.values.get("limit_name"))) if hit is not None and isinstance(limit, int) else (None, "")

    def _limits_of(self, event: Event) -> frozenset[int]:
        """The recompile limits that the log prints; of a limit that is not in force that one and the one that is."""
        raised, limit = event.extra.get("raised"), event.extra.get("limit")
        return frozenset({raised, limit}) if isinstance(raised, int) and isinstance(limit, int) else self._limits | self._raised_limits

    def _called_from(self, group: Group) -> str | None:
        """The program's own line that leads to the group's place in a library; where the log shows none, the only one that leads into the package."""
        alike = [group, *self._broken.get(package_of(group.key.file) or "", [])]
        found = [text for one in alike if (text := text_or_none(one.values.get("called_from"))) is not None]
        return found[0] if group.values.get("called_from") or len(set(found)) == 1 else None

    def _entered_at(self, group: Group, call: str | None) -> str | None:
        """The program's own line that calls the compiled object, where that is the package's; None where the program's own code is compiled."""
        alike = [group, *self._broken.get(package_of(group.key.file) or "", [])] if call is None else []
        return next((text for one in alike if (text := text_or_none(one.values.get("entered_at"))) is not None), None)

    def _at_place(self, group: Group, call: str | None) -> set[str]:
        """What the log shows about the place of a break or a failure. call: the program's own line that leads there."""
        call = None if group.key.function is None else call  # the call of what is compiled
        found = {"own_call"} if call is not None else {"entered_package"} if self._entered_at(group, call) is not None else set()
        found |= {"exported"} if group.first.extra.get("exported") else set()
        found |= {"lightning_step"} if _OF_LIGHTNING.search(call or "") else set()
        is_cut = group.key.kind == BREAK_KIND or RESUMED.search(group.key.function or "") is not None
        found |= {"training_step"} if is_cut and group.first.file in self._training else set()
        is_often = group.key.kind == BREAK_KIND and len(self._broken.get(package_of(group.key.file) or "", [])) >= MANY_BREAKS
        return found | {"many_in_package"} if is_often else found

    def _cause_of_error(self, group: Group) -> Group:
        """The limit hit that an exception is about, when the log shows one only of its function: torch warns, then it raises."""
        if group.key.kind != "recompile_limit_error":
            return group
        hits = [hit for hit in self._hits if group.key.function is None or (hit.key.function, hit.key.file) == (group.key.function, group.key.file)]
        return hits[0] if len(hits) == 1 else group

    def _refused_like(self, group: Group) -> list[Reason]:
        """What a limit without a reason refused, as far as the log tells: the recompiles of the same function in front of it failed on it."""
        same = self._of_function.get((group.key.function, group.key.file), []) if group.key.function is not None else []
        return max((one.guards for one in same), key=len, default=[])[-1:]

    def _guards(self, group: Group) -> tuple[Reason, ...]:
        """The guards of one kind that this function failed on, oldest first: from the group that shows most of them."""
        newest = (group.guards or list(group.widest[:1]))[-1:] or (self._refused_like(group) if group.key.kind != "recompile" else [])
        if not newest:
            return ()
        best = self._best((group.key.function, group.key.file))
        found = best.get(self._subject(newest[0]), ())
        if group.key.kind != "recompile" and newest[0].text not in {guard.text for guard in found}:
            found = (*found, newest[0])  # what was refused made no entry
        if group.key.kind == "recompile":
            return found
        # Two states fill no eight entries, nor does what torch up to 2.7 names last: the guard of the oldest entry.
        least = _distinct(found) if newest[0].cause in TWO_STATES else MIN_STEPS - 1
        many = [guards for guards in best.values() if guards[-1].cause not in TWO_STATES and _distinct(guards) > least >= _distinct(found)]
        return max(many, key=_distinct, default=found)

    def _hinted(self, event: Event) -> str | None:
        """The line that a hint says to set, where it is one of torch's settings: the log may be anybody's."""
        hint = text_or_none(event.extra.get("hint")) or ""
        line = hinted_config(hint) or hinted_variable(hint)
        name = (line or "").partition("=")[0].strip()
        return line if name in self._catalog.settings or name in self._catalog.known else None

    def _others(self, group: Group, guards: Sequence[Reason]) -> tuple[Reason, ...]:
        """The guards of the same class on which the same function failed beside these: further sizes, numbers, dtypes."""
        if not guards or group.key.kind not in _RECOMPILES:
            return ()
        cause, of_function = guards[-1].cause, self._on_what((group.key.function, group.key.file))
        alike = of_function.get(cause, {}) | (of_function.get("dict_keys", {}) if cause == "container_length" else {})
        least = 2 if cause in DYNAMIC_BY_ITSELF and group.key.kind == "recompile" else 1  # one change of a size is torch's own step
        return tuple(guard for found in alike.values() if len(found) >= least for guard in found.values())

    def _on_what(self, place: tuple[str | None, str | None]) -> dict[str, dict[str, dict[str, Reason]]]:
        """The guards of one function, by their class, what they are on, and their text."""
        found = self._on_what_of.get(place)
        if found is None:
            found = self._on_what_of[place] = {}
            for guard in (guard for one in self._of_function.get(place, []) for guard in (*one.guards, *one.widest)):
                found.setdefault(guard.cause, {}).setdefault(_ON_WHAT.sub("", guard.text), {}).setdefault(guard.text, guard)
        return found

    def _best(self, place: tuple[str | None, str | None]) -> dict[str, tuple[Reason, ...]]:
        """For each kind of guard of one function the group's list that shows most of them, oldest first."""
        best = self._best_of.get(place)
        if best is None:
            best = self._best_of[place] = {}
            groups = self._of_function.get(place, [])
            for guards in chain.from_iterable((one.guards, sorted(one.widest, key=_entry)) for one in groups):
                alike: dict[str, list[Reason]] = {}
                for guard in guards:
                    alike.setdefault(self._subject(guard), []).append(guard)
                for subject, found in alike.items():
                    if _distinct(found) > _distinct(best.get(subject, ())):
                        best[subject] = tuple(found)
        return best

    def _subject(self, guard: Reason) -> str:
        """The guard without what differs between runs, remembered: a storm shows the same few thousand again and again."""
        subject = self._subjects.get(guard.text)
        if subject is None:
            subject = self._subjects[guard.text] = normalised(guard.text)
        return subject

    def _on_sizes(self, group: Group, guards: Sequence[Reason], fixed_at: str | None) -> set[str]:
        """What became of a size that changed again and again; that a limit hit which names a state of two values leaves its cause open."""
        place = group.key.function, group.key.file
        cause = guards[-1].cause if guards else None
        if cause == "size_mismatch" and (match := TENSOR.match(guards[-1].text)) is not None:
            if fixed_at is not None:
                return {"several_modules" if is_of_a_layer(fixed_at) else "fixed_by_code"}
            symbolic = self._on_what(place).get("symbolic_shape", {})
            if any(f"{match['source']}.size()[" in text for found in symbolic.values() for text in found):
                return {"was_dynamic"}
            return {"stays_static"} if self._is_static(place) else set()
        if cause == "container_length" and (length := _LENGTH.match(guards[-1].text)) is not None:
            keys = (text for found in self._on_what(place).get("dict_keys", {}).values() for text in found)
            told = (f" on {length['source']}[", f"dict.keys({length['source']})")
            return {"of_a_dict"} if any(sign in text for text in keys for sign in told) else set()
        is_alone = all(one.key.kind != "recompile" for one in self._of_function.get(place, []))
        return {"only_last_reason"} if cause in TWO_STATES and group.key.kind != "recompile" and is_alone else set()

    def _is_static(self, place: tuple[str | None, str | None]) -> bool:
        """Whether a size of the function keeps getting entries of its own, so that no size of it takes a first step only."""
        return any(map(is_static_thrice, self._on_what(place).get("size_mismatch", {}).values()))

    def _fixed_at(self, group: Group) -> str | None:
        """The line that fixes what a recompile is about; of a limit hit one that a recompile of its function was about."""
        same = self._of_function.get((group.key.function, group.key.file), [])
        alike = [group] if group.key.kind == "recompile" else [one for one in same if _cause(one) == _cause(group)]
        groups = self._keyed_by_size(group) or alike
        lines = (fixing_line(event.extra) for one in groups for event in self._tellers(one))
        return next((line for line in lines if line is not None), None)

    def _fixed_in(self, group: Group) -> str | None:
        """The function of the line behind the guard, where that is another one than torch compiles: one that it calls."""
        found = {text for event in self._tellers(group) if (text := text_or_none(event.extra.get("fixed_in")))}
        name = found.pop() if len(found) == 1 else ""
        return name if name.isidentifier() and not name.startswith("__") and name != group.key.function else None

    def _keyed_by_size(self, group: Group) -> list[Group]:
        """The groups of the same function that fail on a dict whose key is one of the sizes that fail as well: looked up by it, the size is fixed."""
        same = self._of_function.get((group.key.function, group.key.file), []) if _cause(group) in _OF_KEYS else []
        sizes = {size for one in same for guard in one.guards for size in _EXPECTED_SIZE.findall(guard.text)}
        keys = ((one, _KEY.match(message_of(one.first))) for one in same if one.first.extra.get("statement") == "looks_up")
        return [one for one, key in keys if key is not None and key["number"] in sizes]

    def _of_several(self, group: Group) -> set[str]:
        """Whether several modules share the code of the function: one of its guards is on a part that one module would keep."""
        place = group.key.function, group.key.file
        alike = self._on_what(place).items() if group.key.kind in _RECOMPILES else ()
        guards = {cause: [guard for found in on_what.values() for guard in found.values()] for cause, on_what in alike}
        is_chain = are_of_the_first_layer(guards.get("requires_grad", ())) and self._is_static(place)
        return {"several_modules"} if is_chain or any(map(is_of_another_module, chain.from_iterable(guards.values()))) else set()

    def _began_as_none(self, group: Group) -> set[str]:
        """Whether what was None holds a number later, on which a function of the same file fails."""
        none = _NONE.match(group.guards[-1].text) if group.guards else None
        alike = (self._on_what(place) for place in self._of_function if place[1] == group.key.file) if none is not None else ()
        numbers = (text for of in alike for found in of.values() for text in found.get(none["source"] if none else "", ()))
        return {"counts_from_none"} if any(" == " in text for text in numbers) else set()

    def _of_room(self, group: Group) -> set[str]:
        """Whether the variants of a function have no end, or the limit has no room for the fewest that a program has."""
        flags = self._on_what((group.key.function, group.key.file)).get("bool_value", {})
        limit, name = self._limit_of(group)
        found = {"many_flags"} if len(flags) >= MANY_FLAGS else set()
        found |= {"low_limit"} if limit is not None and limit <= LOW_LIMIT else set()
        return found | ({"accumulated_limit"} if is_accumulated(name) else set())

    def _wider_patterns(self, group: Group, hinted: str | None, is_of_parameters: bool) -> set[str]:
        """The patterns that only other groups show. hinted: the line that a hint says to set. is_of_parameters: its shapes are a model's."""
        found = self._of_several(group) | self._began_as_none(group) | self._of_room(group)
        found |= {"keyed_by_size"} if self._keyed_by_size(group) else set()
        may_be_threads = self._torch.end is None or self._torch.end > THREAD_LOCAL_SINCE
        if group.has_raised:
            found.add("raised")
        backend = group.first.extra.get("backend") if group.key.kind == "compile_error" else None
        if backend not in (None, "inductor"):
            found.add("ddp_backend" if backend == _OF_DDP else "foreign_backend")
        limits = self._limits | (self._raised_limits if is_of_parameters or _cause(group) in _FINITE else frozenset())
        if group.values.get("limit") == DEFAULT_LIMIT and may_be_threads and any(limit > DEFAULT_LIMIT for limit in limits):
            found.add("limit_raised_elsewhere")
        if any(reason.cause == "parameter_size" for reason in group.widest):
            found.add("other_parameter_sizes")
        has_room = group.worst_process <= FEW or max(map(_entry, group.guards), default=0) >= DEFAULT_LIMIT  # the limit is a higher one
        if group.key.kind == "recompile" and has_room and self._limit_of(group)[0] is None:
            found.add("few_variants")
        if any(event.extra.get("fixed_by") for event in self._tellers(group)):
            found.add("fixed_by_code")
        if group.key.kind == "recompile" and group.starts > 1:
            found.add("learned_again")
        if group.first.extra.get("hint") is not None:
            found |= {"hinted", "setting_hinted"} if hinted else {"hinted"}
        if isinstance(statement := group.first.extra.get("statement"), str):
            found.add(statement)
        if group.first.extra.get("output") == "gradient":
            found.add("gradient_output")
        if group.key.kind == "forecast_failure" and (self._overwritten & {self._catalog.models.of(group.first), None}):
            found.add("cascade")
        return found


def _cause(group: Group) -> str | None:
    reasons = group.last.reasons or group.first.reasons
    return reasons[0].cause if reasons else None


def _distinct(guards: Sequence[Reason]) -> int:
    return len({guard.text for guard in guards})


def _entry(guard: Reason) -> int:
    return entry_number(guard.entry)
