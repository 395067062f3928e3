"""What an env file leaves set: the value that counts for each setting, and the mode in which a model then runs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from recompile_watch.core.env_file import EnvFile, Step
from recompile_watch.core.models import Model, Models, ModelSetting


@dataclass(frozen=True, slots=True)
class SetMode:
    """The mode in which an env file has a model run: one of ``MODES``, or ``compiled``; with the step that decides it."""

    model: Model
    mode: str
    step: Step
    path: str


def set_modes(files: Iterable[EnvFile], models: Models) -> Iterator[SetMode]:
    """The mode of each model that the files decide; nothing where they leave it to a default or to a condition."""
    for file in files:
        state = EnvState(file)
        for model in models.models:
            found = state.mode_of(model)
            if found is not None:
                yield SetMode(model, found[0], found[1], file.path)


class EnvState:
    """The variables as a file leaves them. last: the step that decides each, without a value where only running it would tell."""

    def __init__(self, file: EnvFile) -> None:
        self.last: Mapping[str, Step] = _last(file.steps)

    def winner(self, setting: ModelSetting) -> Step | None:
        """The step that decides a setting; None where none does, or where only running the file would tell."""
        for name in setting.names:
            step = self.last.get(name)
            if step is not None and (step.value is None or setting.takes(step.value)):
                return step if step.value is not None else None
        return None

    def mode_of(self, model: Model) -> tuple[str, Step] | None:
        """The mode in which the file has a model run, with the step that decides it."""
        for does in ("disable", "enable"):
            setting = model.setting(does)
            step = self.winner(setting) if setting is not None else None
            is_on = setting.says(step.value or "") if setting is not None and step is not None and step.is_exported else None
            if step is not None and is_on is not None and (is_on or does == "enable"):
                return ("eager", step) if is_on == (does == "disable") else (self._compiled_mode(model), step)
        return None

    def _compiled_mode(self, model: Model) -> str:
        setting = model.setting("mode")
        step = self.winner(setting) if setting is not None else None
        return step.value if step is not None and step.value and step.is_exported else "compiled"


def _last(steps: Iterable[Step]) -> Mapping[str, Step]:
    """The step that decides each variable; none for what is unset again."""
    last: dict[str, Step] = {}
    for step in steps:
        if step.does == "set":
            last[step.name] = step if step.is_certain else Step(step.name, "set", None, step.line, step.is_exported, False)
        elif step.does == "unset" and step.is_certain:
            last.pop(step.name, None)
    return last
