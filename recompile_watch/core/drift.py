"""Drift: a model is meant to run in one mode, and the log shows another.

What is meant stands in the models file (``declared``), else in the env file that sets its switches.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from recompile_watch.core.env_file import EnvFile
from recompile_watch.core.env_state import SetMode, set_modes
from recompile_watch.core.events import Event
from recompile_watch.core.groups import Group
from recompile_watch.core.models import Model
from recompile_watch.core.modes import COMPILED, SHOW_COMPILED, agree, mode_shown, mode_words
from recompile_watch.core.remedies import Catalog

KIND = "mode_drift"


def drift_events(groups: Sequence[Group], files: Iterable[EnvFile], catalog: Catalog) -> Iterator[Event]:
    """For each model that ran in another mode than the one that is meant, the line that sets it and the one that shows it."""
    by_file = {one.model.name: one for one in set_modes(files, catalog.models)}
    for model in catalog.models.models:
        set_by = by_file.get(model.name)
        meant = model.declared or (set_by.mode if set_by else None)
        seen = _seen(groups, model, catalog) if meant is not None else None
        shown = mode_shown(seen) if seen is not None else None
        if meant is None or seen is None or shown is None or agree(meant, shown):
            continue
        ran = mode_words(shown)
        title = f"{model.title} is meant to run {mode_words(meant)}, but it ran {ran}"
        mend = _mend(model, meant, set_by)
        extra: dict[str, object] = {"model": model.name, "title": title, "mend": mend, "cause": None}
        if set_by is not None and model.declared is None:
            step = set_by.step
            message = f"{step.name}={step.value}"
            yield Event(
                KIND, set_by.path, step.line, step.line, None, None, None, None, None, None, None, (), False, {**extra, "message": message}
            )  # fmt: skip
        message = f"{seen.kind.replace('_', ' ')} of {model.title}" if seen.kind in SHOW_COMPILED else f"{model.title} ran {ran}"
        yield seen._replace(kind=KIND, function=None, file=None, line_no=None, reasons=(), extra={**extra, "message": message})


def _seen(groups: Sequence[Group], model: Model, catalog: Catalog) -> Event | None:
    """The latest line that says how the model ran; without one, a line that only a compiled model brings about."""
    mine = [group for group in groups if catalog.models.of(group.first) == model.name]
    told = [group.last for group in mine if group.key.kind == "compile_mode" and mode_shown(group.last) is not None]
    if told:
        return max(told, key=lambda event: (event.time or "", event.offset))
    return next((group.last for group in mine if group.key.kind in SHOW_COMPILED), None)


def _mend(model: Model, meant: str, set_by: SetMode | None) -> str | None:
    """What to paste so that what is meant holds."""
    if set_by is not None and set_by.mode == meant:
        return f"set -a; . {shlex.quote(set_by.path)}; set +a  # then start the program from this shell"
    return "; ".join(model.lines_for("default" if meant == COMPILED else meant)) or None
