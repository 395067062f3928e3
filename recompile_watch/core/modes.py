"""How a model is meant to run and how it was seen to run: the words for both, and whether they agree."""

from recompile_watch.core.events import TORCH_KINDS, Event

EAGER, COMPILED = "eager", "compiled"  # compiled: in whatever mode; else the mode's own name, such as reduce-overhead
# What torch prints of compiled code only; the rest it prints in eager mode, too.
SHOW_COMPILED = TORCH_KINDS - {"profiler_report", "flex_attention_eager_fallback"}


def mode_shown(event: Event) -> str | None:
    """The mode that a line shows; None when it shows none."""
    if event.kind in SHOW_COMPILED:
        return COMPILED
    if event.kind != "compile_mode" or not isinstance(event.extra.get("compiled"), bool):
        return None
    return str(event.extra.get("mode") or COMPILED) if event.extra["compiled"] else EAGER


def agree(meant: str, shown: str) -> bool:
    """True unless what is shown contradicts what is meant."""
    if EAGER in (meant, shown):
        return meant == shown
    return COMPILED in (meant, shown) or meant == shown


def mode_words(mode: str) -> str:
    """``in eager mode``, ``compiled``, ``compiled (reduce-overhead)``: after "to run" or "runs"."""
    return "in eager mode" if mode == EAGER else COMPILED if mode == COMPILED else f"compiled ({mode})"
