"""What is wrong in an env file: settings that nothing reads, words that are ignored, values that another one overrides.

Each mistake becomes an event ``ineffective_setting`` at its file and line, so that it is told like what a log shows.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from recompile_watch.core.env_file import EnvFile, Step
from recompile_watch.core.env_state import EnvState
from recompile_watch.core.events import Event
from recompile_watch.core.late import pattern
from recompile_watch.core.likeness import close_matches
from recompile_watch.core.models import COMPILED_MODES, Model, ModelSetting
from recompile_watch.core.remedies import Catalog
from recompile_watch.core.versions import VersionRange, dotted

KIND = "ineffective_setting"
NOTES = frozenset({"repeated", "dormant"})  # causes that change nothing and mislead nobody for long: notes, not warnings
MIN_LIKENESS = 0.9
# Names that look as if they set something about compiling; all others in the file are nobody's business here.
_OF_TORCH = pattern(r"TORCHDYNAMO_\w+|TORCHINDUCTOR_\w+|TORCH_COMPILE\w*|TORCH_DYNAMO_\w+|TORCH_CUDAGRAPH\w*")
_SECRET = pattern(r"KEY|SECRET|TOKEN|PASS|CREDENTIAL|ACCOUNT|AUTH|COOKIE|WEBHOOK|DSN", re.IGNORECASE)
_PLAIN = pattern(r"[\w.,:/+'\[\]\\*-]{0,64}")
HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class _Mistake:
    """One mistake. why: what it means, a sentence. mend: what to paste. title: a sentence that names the setting."""

    cause: str
    step: Step
    title: str
    why: str
    mend: str
    model: str | None = None


def env_events(files: Iterable[EnvFile], catalog: Catalog, torch: VersionRange) -> Iterator[Event]:
    """The mistakes of all files as events, in the order of the lines. torch: the versions that it may be."""
    for file in files:
        for mistake in sorted(_Judge(file, catalog, torch).mistakes(), key=lambda one: one.step.line):
            step = mistake.step
            extra = {
                "setting": step.name, "value": shown_value(step), "cause": mistake.cause, "model": mistake.model, "title": mistake.title,
                "why": mistake.why, "mend": mistake.mend,
            }  # fmt: skip
            yield Event(KIND, file.path, step.line, step.line, None, None, None, None, None, file.path, step.line, (), False, extra)


def shown_value(step: Step) -> str | None:
    """The value as it may be shown: hidden when it is no short plain word, or when the name sounds like a secret's."""
    if step.value is None:
        return None
    return step.value if _PLAIN.fullmatch(step.value) and not _SECRET.search(step.name) else HIDDEN


class _Judge:
    """Judges one file. What holds only under a condition is not judged against other lines."""

    def __init__(self, file: EnvFile, catalog: Catalog, torch: VersionRange) -> None:
        self._file, self._catalog, self._torch = file, catalog, torch
        self._read = {name: (model, setting) for model, setting in catalog.models.settings() for name in setting.names}
        self._names = [*self._read, *(name for name, setting in catalog.settings.items() if setting.kind == "env")]
        # How the names of wrappers' variables begin: TOTO_COMPILED is about Toto, CMAKE_EXPORT_COMPILE_COMMANDS about nothing here.
        self._prefixes = {name.partition("_")[0] for model in catalog.models.models for setting in model.settings for name in setting.names}
        self._state = EnvState(file)

    def mistakes(self) -> Iterator[_Mistake]:
        """Every mistake, at most one for each step, and one of the whole file."""
        told: set[Step] = set()
        for mistake in self._all():
            if mistake.step not in told:
                told.add(mistake.step)
                yield mistake
        known = next((step for step in self._file.steps if step.does == "set" and self._is_known(step.name)), None)
        if self._file.has_returns and known is not None:
            yield self._returns(known)

    def _all(self) -> Iterator[_Mistake]:
        for step in self._file.steps:
            if step.does in ("set", "export", "blank") and not _SECRET.search(step.name):
                yield from self._of_name(step)
        for model, setting in self._catalog.models.settings():
            yield from self._of_precedence(model, setting)
        for model in self._catalog.models.models:
            yield from self._of_switches(model)
        for name in dict.fromkeys(step.name for step in self._file.steps):
            if self._is_known(name):
                yield from self._of_order(name)

    def _is_known(self, name: str) -> bool:
        return name in self._read or name in self._catalog.settings

    def _of_name(self, step: Step) -> Iterator[_Mistake]:
        name = step.name
        if step.does == "blank" and (self._is_known(name) or name in self._catalog.ineffective):
            yield _Mistake(
                "no_assignment",
                step,
                f"{name} is not set: there are blanks around its =",
                "A shell takes this line for a command and its arguments; nothing is set.",
                f"export {name}=…",
            )
        elif name in self._catalog.ineffective:
            why = f"No torch from 2.1 on reads this name. {self._catalog.ineffective[name]}"
            yield _Mistake("no_effect", step, f"{_pair(step)} has no effect: no torch reads it", why, f"unset {name}")
        elif name in self._read:
            yield from self._of_word(step, *self._read[name])
        elif name in self._catalog.settings:
            yield from self._of_version(step)
        elif name not in self._catalog.known:
            yield from self._of_stranger(step)

    def _of_version(self, step: Step) -> Iterator[_Mistake]:
        since, end = self._catalog.settings[step.name].since, self._torch.end
        if end is not None and end <= since:
            wanted = dotted(since)
            yield _Mistake(
                "too_new",
                step,
                f"{_pair(step)} has no effect: torch reads it from {wanted} on",
                f"The torch at hand is older than {wanted} and does not know this name.",
                f"unset {step.name}",
            )

    def _of_stranger(self, step: Step) -> Iterator[_Mistake]:
        """A name that is in no table: close to one that is, or one that looks as if it set something about compiling."""
        close = close_matches(step.name, [name for name in self._names if abs(len(name) - len(step.name)) <= 2], MIN_LIKENESS)
        if close:
            model = self._read[close[0]][0] if close[0] in self._read else None
            value = shown_value(step)
            mend = f"export {close[0]}={shlex.quote(value) if value not in (None, HIDDEN) else '…'}" if value is not None else f"export {close[0]}=…"
            yield _Mistake(
                "misspelt", step, f"{step.name} has no effect: it is written {close[0]}", f"Nothing reads {step.name}.", mend, _name(model)
            )
        elif _OF_TORCH.fullmatch(step.name) or ("COMPILE" in step.name and step.name.partition("_")[0] in self._prefixes):
            model = self._sounds_like(step.name)
            why, mend = "It is neither in the tables of torch's settings, nor does a wrapper in the models file read it.", f"unset {step.name}"
            if model is not None and model.lines_for("eager") and "DISABLE" in step.name:
                mend = model.lines_for("eager")[0]
                why = f"{model.title}'s wrapper has no such switch."
            yield _Mistake("unknown", step, f"{_pair(step)} is not known to have an effect", why, mend, _name(model))

    def _sounds_like(self, name: str) -> Model | None:
        return next((model for model in self._catalog.models.models if model.name.upper() in name), None)

    def _of_word(self, step: Step, model: Model | None, setting: ModelSetting) -> Iterator[_Mistake]:
        if step.value is None or setting.takes(step.value):
            return
        name, of = _name(model), model.title if model else "the program"
        if setting.on:
            stays = _stays(model, setting)
            why = f"Only {', '.join((*setting.on, *setting.off))} count. {stays}"
            wanted = setting.on[0] if _means_yes(step.value, setting) else (setting.off or ("0",))[0]
            yield _Mistake("ignored_word", step, f"{_pair(step)} is ignored: {of} does not know this word", why, f"export {step.name}={wanted}", name)
        elif not step.value:
            yield _Mistake(
                "empty",
                step,
                f"{step.name} is empty, which counts as not set",
                f"{of[:1].upper()}{of[1:]} falls back to its default.",
                f"unset {step.name}",
                name,
            )
        else:
            close = (close_matches(step.value, setting.values) or [setting.values[0]])[0]
            fails = (
                "torch.compile raises an error on it." if set(setting.values) & set(COMPILED_MODES) else "It does not name anything that is known."
            )
            yield _Mistake(
                "unknown_value",
                step,
                f"{_pair(step)} names no known value",
                f"Known are {', '.join(setting.values)}. {fails}",
                f"export {step.name}={close}",
                name,
            )

    def _of_precedence(self, model: Model | None, setting: ModelSetting) -> Iterator[_Mistake]:
        """Names of one setting that say another thing than the one that wins."""
        winner = self._state.winner(setting)
        if winner is None:
            return
        for name in setting.names[setting.names.index(winner.name) + 1 :]:
            step = self._state.last.get(name)
            if step is not None and step.value is not None and setting.takes(step.value) and not _agree(setting, step, winner):
                why = f"{_pair(winner)} in line {winner.line} wins over it."
                yield _Mistake("overridden", step, f"{_pair(step)} has no effect: {winner.name} wins", why, f"unset {winner.name}", _name(model))

    def _of_switches(self, model: Model) -> Iterator[_Mistake]:
        """Settings of a model that another of its settings makes meaningless."""
        disable, enable = ((found, self._state.winner(found)) if (found := model.setting(does)) else None for does in ("disable", "enable"))
        off = disable[1] if disable and disable[1] and disable[0].says(disable[1].value or "") else None
        on = enable[1] if enable else None
        if off is not None and on is not None and enable and enable[0].says(on.value or ""):
            why = f"{_pair(off)} in line {off.line} wins: {model.title} stays in eager mode."
            yield _Mistake("overridden", on, f"{_pair(on)} has no effect: {off.name} wins", why, f"unset {off.name}", model.name)
        reason = f"{off.name} turns compiling off" if off else self._never_on(model, enable)
        for does in ("mode", "backend") if reason else ():
            setting = model.setting(does)
            step = self._state.winner(setting) if setting else None
            if step is not None:
                why = f"{model.title} runs in eager mode: {reason}."
                yield _Mistake(
                    "dormant", step, f"{_pair(step)} does nothing while {model.title} runs in eager mode", why, f"unset {step.name}", model.name
                )

    def _never_on(self, model: Model, enable: tuple[ModelSetting, Step | None] | None) -> str | None:
        """Why a model that is eager by default stays so."""
        if enable is None or model.default != "eager":
            return None
        if enable[1] is None:
            return None if any(name in self._state.last for name in enable[0].names) else f"{enable[0].use} is not set here"
        return None if enable[0].says(enable[1].value or "") else f"{enable[1].name} turns it off"

    def _of_order(self, name: str) -> Iterator[_Mistake]:
        """A name that is set twice, or set and never exported."""
        model = self._read[name][0] if name in self._read else None
        steps = [step for step in self._file.steps if step.name == name]
        sets = [step for step in steps if step.does == "set" and step.is_certain]
        for before, after in pairwise(sets):
            if before.value is not None and after.value is not None:
                yield _twice(before, after, model)
        last = steps[-1]
        if last.does == "set" and not any(step.is_exported for step in steps):
            why = "Without export, or `set -a` above it, a shell keeps it to itself: no program sees it. (To systemd and Docker it counts.)"
            value = shown_value(last)
            mend = f"export {name}" + ("" if value in (None, HIDDEN) else f"={shlex.quote(value or '')}")
            yield _Mistake("not_exported", last, f"{_pair(last)} is set but not exported", why, mend, _name(model))

    def _returns(self, step: Step) -> _Mistake:
        why = "Lines end with carriage returns (Windows): a shell takes them into the values, and torch does not take such a 1 for 1."
        return _Mistake("carriage_returns", step, "The env file has Windows line ends", why, f"sed -i 's/\\r$//' {shlex.quote(self._file.path)}")


def _means_yes(word: str, setting: ModelSetting) -> bool:
    """What the one who wrote an ignored word wanted; a word that says the switch's own name over again is a yes."""
    word = word.strip().lower()
    opposite = ("enabl", "compil", "n", "f", "-") if setting.does == "disable" else ("disabl", "eager", "n", "f", "-")
    return bool(word) and not word.startswith(opposite)


def _agree(setting: ModelSetting, one: Step, other: Step) -> bool:
    if setting.on:
        return setting.says(one.value or "") == setting.says(other.value or "")
    return one.value == other.value


def _twice(before: Step, after: Step, model: Model | None) -> _Mistake:
    if before.value == after.value:
        why = f"Line {after.line} says the same."
        return _Mistake("repeated", before, f"{before.name} is set twice to the same value", why, f"# delete line {before.line}", _name(model))
    why = f"{_pair(after)} in line {after.line} replaces it."
    return _Mistake(
        "duplicate",
        before,
        f"{_pair(before)} has no effect: line {after.line} sets it again",
        why,
        f"# delete line {before.line}, or line {after.line}",
        _name(model),
    )


def _stays(model: Model | None, setting: ModelSetting) -> str:
    """What holds when a switch is ignored."""
    if model is None or setting.does not in ("disable", "enable"):
        return "It is as if nothing were set."
    if model.default == "compiled":
        return f"Nothing is changed: {model.title} is compiled by default."
    return f"Nothing is changed: {model.title} is eager by default." if model.default == "eager" else "It is as if nothing were set."


def _name(model: Model | None) -> str | None:
    return model.name if model is not None else None


def _pair(step: Step) -> str:
    value = shown_value(step)
    return step.name if value is None else f"{step.name}={value}"
