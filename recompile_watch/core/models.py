"""Models: which code and which lines belong to which model, what its wrapper reads, and what to paste to run it in a mode.

The profiles are TOML (``rules/models``, and the user's own with ``--models``); docs/models.md has the reference.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from recompile_watch.core.events import Event
from recompile_watch.core.patterns import RESUMED

# What torch.compile takes as mode=; torch/__init__.py, list_mode_options, unchanged from 2.1 to 2.15.
COMPILED_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
MODES = ("eager", *COMPILED_MODES)
DOES = ("disable", "enable", "mode", "backend", "batch", "other")
READ_AT = ("import", "load", "call")
DEFAULTS = ("compiled", "eager", "varies")
WITHOUT_CUDAGRAPHS = "max-autotune-no-cudagraphs"


@dataclass(frozen=True, slots=True)
class DatedDefault:
    """What holds from a day on (ISO 8601) when nothing is set."""

    since: str
    value: str


@dataclass(frozen=True, slots=True)
class ModelSetting:
    """One thing that a wrapper reads from the environment.

    names: the variables, the one that wins first. use: the one to write. does: one of ``DOES``. on, off: the words that
    count as yes and as no, in lower case; without ``off`` every other word is a no, without ``on`` any text is taken.
    values: the texts that are taken, empty for any. default: what counts when none is set; defaults: the same, from a day on.
    read: one of ``READ_AT``. where: the code that reads it.
    """

    names: tuple[str, ...]
    does: str
    use: str
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    default: str | None = None
    defaults: tuple[DatedDefault, ...] = ()
    read: str = "load"
    where: str | None = None
    note: str | None = None

    def takes(self, value: str) -> bool:
        """True when the wrapper understands the text; else it does as if nothing were set, or fails."""
        if self.on:
            return not self.off or self.says(value) is not None
        return bool(value) and (not self.values or value in self.values)

    def says(self, value: str) -> bool | None:
        """What a word means to a switch; None where it means nothing."""
        word = value.strip().lower()
        if word in self.on:
            return True
        return False if word in self.off or not self.off else None

    @property
    def halved(self) -> str | None:
        """The line that halves a batch; None where the profile does not name its default."""
        default = self.default or ""
        return f"export {self.use}={max(1, int(default) // 2)}" if default.isascii() and default.isdigit() else None


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the program.

    paths: parts of the names of its folders and files. functions: whole names of its functions. lines: texts that only
    its lines hold. default: ``compiled`` or ``eager`` without any setting; ``varies`` where that changed from version to
    version. limits: texts of a line that show that its code set the recompile limit, and to what. declared: the mode it
    is meant to run in. env_file: the path of the shell file that sets its environment. caution: what else to know.
    """

    name: str
    title: str
    paths: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    default: str = "varies"
    settings: tuple[ModelSetting, ...] = ()
    limits: tuple[tuple[str, int], ...] = ()
    declared: str | None = None
    env_file: str | None = None
    caution: str | None = None

    def setting(self, does: str) -> ModelSetting | None:
        """Its setting that does this."""
        return next((setting for setting in self.settings if setting.does == does), None)

    def where_set(self, *does: str) -> str | None:
        """Where the first of these settings that it has takes effect, in words."""
        found = self._first(does)
        return where_set(found) if found is not None else None

    def caution_with(self, *does: str) -> str | None:
        """What to beware of with that setting, and with the model."""
        found = self._first(does)
        if found is None:
            return None
        has_no_switch = found.does == "enable" and self.default == "eager"
        by_default = f"{self.title} is eager unless {found.use} is set: there is no switch to disable it." if has_no_switch else ""
        said = " ".join(text for text in (by_default, caution_of(found), self.caution) if text)
        return said or f"Check in the log that {self.title} ran as wanted."

    def _first(self, does: Iterable[str]) -> ModelSetting | None:
        return next((setting for one in does if (setting := self.setting(one)) is not None), None)

    def lines_for(self, mode: str) -> tuple[str, ...]:
        """What to paste, in this order, so that it runs in a mode, whatever was set before; empty where its wrapper cannot be told.

        mode: one of ``MODES``.
        """
        return self._eager_lines() if mode == "eager" else self._compiled_lines(mode)

    def _eager_lines(self) -> tuple[str, ...]:
        disable, enable = self.setting("disable"), self.setting("enable")
        if disable is not None:
            return (f"export {disable.use}={disable.on[0]}",)
        if enable is None:
            return ()
        if self.default == "eager":  # it has no switch that turns compiling off: what turns it on must go
            return (f"unset {' '.join(enable.names)}",)
        return (f"export {enable.use}={(enable.off or ('0',))[0]}",)

    def _compiled_lines(self, mode: str) -> tuple[str, ...]:
        setting, enable, disable = self.setting("mode"), self.setting("enable"), self.setting("disable")
        if setting is None or (setting.values and mode not in setting.values):
            return ()
        over = [*(disable.names if disable else ()), *(enable.names[: enable.names.index(enable.use)] if enable else ()), *_winning(setting)]
        switch = (f"export {enable.use}={enable.on[0]}",) if enable else ()
        return (*((f"unset {' '.join(over)}",) if over else ()), *switch, f"export {setting.use}={mode}")

    @property
    def mode_line(self) -> str | None:
        """The line that has it compiled without CUDA graphs, and otherwise as before."""
        setting = self.setting("mode")
        if setting is None or (setting.values and WITHOUT_CUDAGRAPHS not in setting.values):
            return None
        over = _winning(setting)
        return "; ".join([*([f"unset {' '.join(over)}"] if over else []), f"export {setting.use}={WITHOUT_CUDAGRAPHS}"])


def _winning(setting: ModelSetting) -> tuple[str, ...]:
    """The names that win over the one to write."""
    return setting.names[: setting.names.index(setting.use)]


def where_set(setting: ModelSetting) -> str:
    """Where a setting takes effect, in words."""
    at = f" by {setting.where}" if setting.where else ""
    if setting.read == "import":
        return f"in the environment of the process before it starts: it is read once, at import{at}"
    when = "each time the model is loaded" if setting.read == "load" else "at each call"
    return f"in the environment of the process before it starts (an env file counts only when it is sourced there); read {when}{at}"


def caution_of(setting: ModelSetting) -> str:
    """Which words are ignored, and which other names win."""
    said = []
    if setting.on and setting.off:
        said.append(f"Only {_list(setting.on)} count as yes and {_list(setting.off)} as no; any other word, such as 'disabled', is ignored.")
    elif setting.on:
        said.append(f"Only {_list(setting.on)} count as yes.")
    over = _winning(setting)
    said += [f"{_list(over)} wins over {setting.use}: take it out."] if over else []
    return " ".join([*said, *([setting.note] if setting.note else [])])


def _list(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


@dataclass(frozen=True)
class Models:
    """All models, and the settings of the program around them. Without slots: it remembers its indices."""

    models: tuple[Model, ...] = ()
    program: tuple[ModelSetting, ...] = ()

    def named(self, name: str | None) -> Model | None:
        """A model by its name."""
        return self._by_name.get(name) if name is not None else None

    def of(self, event: Event) -> str | None:
        """The model an event is about: as printed, else by its function, the folders and files of its path, or its text."""
        printed = event.extra.get("model")
        if isinstance(printed, str) and printed:
            return printed
        function = event.function and RESUMED.sub(r"\g<name>", event.function)
        if function is not None and function in self._by_function:
            return self._by_function[function]
        return self._by_path(event.file) or self._by_text(event)

    def batch_of(self, model: Model | None) -> ModelSetting | None:
        """What sets the size of a model's batches; of a model without such a setting, that of one that shares the GPU with it."""
        if model is None:
            return None
        return next((setting for one in (model, *self.models) if (setting := one.setting("batch")) is not None), None)

    def settings(self) -> Iterator[tuple[Model | None, ModelSetting]]:
        """Every setting with the model it belongs to; None for the program's own."""
        yield from ((model, setting) for model in self.models for setting in model.settings)
        yield from ((None, setting) for setting in self.program)

    def _by_path(self, file: str | None) -> str | None:
        """The model whose part of a path lies nearest to the file's own name."""
        if not file or self._paths is None:
            return None
        found = self._paths.findall(file.replace("\\", "/").lower())
        return self._by_part[found[-1]] if found else None

    def _by_text(self, event: Event) -> str | None:
        texts = [event.extra.get("message"), *(reason.text for reason in event.reasons[:1])]
        return next((name for text in texts if isinstance(text, str) for line, name in self._lines if line in text), None)

    @cached_property
    def _by_name(self) -> Mapping[str, Model]:
        return {model.name: model for model in self.models}

    @cached_property
    def _by_function(self) -> Mapping[str, str]:
        return {function: model.name for model in reversed(self.models) for function in model.functions}

    @cached_property
    def _by_part(self) -> Mapping[str, str]:
        return {part.lower(): model.name for model in reversed(self.models) for part in model.paths}

    @cached_property
    def _paths(self) -> re.Pattern[str] | None:
        """All parts of paths, the longest first; letters around one make it another word: ``toto`` is not in ``totoro``."""
        parts = sorted(self._by_part, key=lambda part: (-len(part), part))
        return re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, parts))})(?![a-z])") if parts else None

    @cached_property
    def _lines(self) -> tuple[tuple[str, str], ...]:
        return tuple((line, model.name) for model in self.models for line in model.lines)
