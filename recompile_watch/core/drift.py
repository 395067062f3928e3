"""Drift: a model is meant to run in one mode, and the log shows another.

What is meant stands in the models file (``declared``), else in the env file that sets its switches.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from recompile_watch.core.env_file import EnvFile
from recompile_watch.core.env_state import SetMode, set_modes
from recompile_watch.core.events import Event
from recompile_watch.core.findings import LIMIT_KIND
from recompile_watch.core.groups import Group
from recompile_watch.core.models import Model
from recompile_watch.core.remedies import Catalog

KIND = "mode_drift"
# What torch prints of compiled code only.
_COMPILES = frozenset(
    {"recompile", LIMIT_KIND, "recompile_limit_error", "cudagraph_skip", "cudagraph_rerecord", "cudagraph_overwritten_error", "graph_break"}
)


def drift_events(groups: Sequence[Group], files: Iterable[EnvFile], catalog: Catalog) -> Iterator[Event]:
    """For each model that ran in another mode than the one that is meant, the line that sets it and the one that shows it."""
    by_file = {one.model.name: one for one in set_modes(files, catalog.models)}
    for model in catalog.models.models:
        set_by = by_file.get(model.name)
        meant = model.declared or (set_by.mode if set_by else None)
        seen = _seen(groups, model, catalog) if meant is not None else None
        if meant is None or seen is None or _agrees(meant, seen):
            continue
        ran = (
            "in eager mode"
            if seen.extra.get("compiled") is False
            else " ".join(["compiled", *([f"({mode})"] if (mode := seen.extra.get("mode")) else [])])
        )
        title = f"{model.title} is meant to run {_words(meant)}, but it ran {ran}"
        mend = _mend(model, meant, set_by)
        extra: dict[str, object] = {"model": model.name, "title": title, "mend": mend, "cause": None}
        if set_by is not None and model.declared is None:
            step = set_by.step
            message = f"{step.name}={step.value}"
            yield Event(
                KIND, set_by.path, step.line, step.line, None, None, None, None, None, None, None, (), False, {**extra, "message": message}
            )  # fmt: skip
        message = f"{seen.kind.replace('_', ' ')} of {model.title}" if seen.kind in _COMPILES else f"{model.title} ran {ran}"
        yield seen._replace(kind=KIND, function=None, file=None, line_no=None, reasons=(), extra={**extra, "message": message})


def _seen(groups: Sequence[Group], model: Model, catalog: Catalog) -> Event | None:
    """The latest line that says how the model ran; without one, a line that only a compiled model brings about."""
    mine = [group for group in groups if catalog.models.of(group.first) == model.name]
    told = [group.last for group in mine if group.key.kind == "compile_mode" and isinstance(group.last.extra.get("compiled"), bool)]
    if told:
        return max(told, key=lambda event: (event.time or "", event.offset))
    return next((group.last for group in mine if group.key.kind in _COMPILES), None)


def _agrees(meant: str, seen: Event) -> bool:
    is_compiled, mode = seen.extra.get("compiled") is not False, seen.extra.get("mode")
    if meant == "eager":
        return not is_compiled
    return is_compiled and (meant == "compiled" or mode is None or mode == meant)


def _words(mode: str) -> str:
    return "in eager mode" if mode == "eager" else "compiled" if mode == "compiled" else f"compiled ({mode})"


def _mend(model: Model, meant: str, set_by: SetMode | None) -> str | None:
    """What to paste so that what is meant holds."""
    if set_by is not None and set_by.mode == meant:
        return f"set -a; . {shlex.quote(set_by.path)}; set +a  # then start the program from this shell"
    return "; ".join(model.lines_for("default" if meant == "compiled" else meant)) or None
