"""The settings that the diagnostic tries against eager: what the worker applies, and the lines a person would write.

A candidate is named on the command line as it is printed: ``default``, ``recompile_limit=64``, ``exclude=positional_embedding``,
``dynamic_sources=L['kv_cache']._current_idx[7]``, ``variant:no-cache`` (one that the workload itself offers).
"""

import re
import shlex
from dataclasses import dataclass

from recompile_watch.core.errors import UsageError
from recompile_watch.core.late import pattern

EAGER = "eager"
VARIANT = "variant:"
DISABLE_ALL = "export TORCHDYNAMO_DISABLE=1"  # with TORCH_COMPILE_DISABLE=1 fullgraph=True raises in torch 2.12 and newer (measured on 2.13.0)
DEFAULT_LIMIT = 64
MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
# Without a GPU there are no CUDA graphs: each mode is the one beside it.
WITHOUT_CUDAGRAPHS = {"reduce-overhead": "default", "max-autotune": "max-autotune-no-cudagraphs"}
_FLAGS = ("allow_unspec_int_on_nn_module", "capture_scalar_outputs")
_VALUED = ("recompile_limit", "dynamic_sources", "exclude")
# From the simplest: of two that are equally fast, the earlier one is taken.
_ORDER = (EAGER, *MODES[:2], "dynamic", *_FLAGS, "recompile_limit", "dynamic_sources", "exclude", *MODES[2:], VARIANT)
# Settings that can only mend a recompile, a limit hit or a graph break.
MENDS = (*_FLAGS, "recompile_limit")
STRUCTURAL = ("default", "dynamic", f"recompile_limit={DEFAULT_LIMIT}", *_FLAGS)
_KNOWN = (EAGER, *MODES, "dynamic", *_FLAGS, *(f"{name}=VALUE" for name in _VALUED), f"{VARIANT}NAME")
_STARTS = "|".join(re.escape(name) for name in (EAGER, *MODES, "dynamic", *_FLAGS, *_VALUED, VARIANT))
_BETWEEN = pattern(rf",(?=\s*(?:(?:{_STARTS})(?:[=,:]|\s*$)|{VARIANT}))")
_SOURCES = "TORCH_COMPILE_DYNAMIC_SOURCES"
_LIMIT = pattern(r"recompile_limit\s*=\s*(\d+)")
_OF_REMEDY = {
    "exclude_from_compile": "exclude", "dynamic_sources_env": "dynamic_sources", "recompile_limit_kwarg": "recompile_limit",
    "raise_recompile_limit": "recompile_limit", "allow_unspec_int_on_nn_module": "allow_unspec_int_on_nn_module",
    "capture_scalar_outputs": "capture_scalar_outputs", "mode_without_cudagraphs": "max-autotune-no-cudagraphs",
}  # fmt: skip
_NAME = pattern(r"[\w.:<>-]{1,200}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to run the model. key: the kind of setting; value: what follows ``=`` or ``variant:``."""

    key: str
    value: str = ""

    @property
    def name(self) -> str:
        """As it is printed, and typed."""
        if self.key == VARIANT:
            return f"{VARIANT}{self.value}"
        return f"{self.key}={self.value}" if self.value else self.key

    @property
    def rank(self) -> int:
        """Its place from the simplest on."""
        return _ORDER.index(self.key)

    @property
    def mode(self) -> str | None:
        """The ``mode=`` of torch.compile; None for the default one."""
        return self.key if self.key in MODES[1:] else None

    @property
    def has_own_structure(self) -> bool:
        """False for a mode: it belongs to the backend, and Dynamo's graphs and recompiles are the default's."""
        return self.key not in MODES[1:]

    def settings(self) -> dict[str, object]:
        """What the worker applies."""
        match self.key:
            case "eager" | "default":
                return {}
            case "dynamic":
                return {"dynamic": True}
            case "recompile_limit":
                return {"recompile_limit": int(self.value)}
            case "dynamic_sources" | "exclude":
                return {self.key: self.value}
            case key if key in _FLAGS:
                return {key: True}
            case key if key == VARIANT:
                return {"variant": self.value}
        return {"mode": self.key}

    def lines(self) -> tuple[str, ...]:
        """The exact lines that bring it about."""
        match self.key:
            case "eager":
                return (DISABLE_ALL,)
            case "default":
                return ("model = torch.compile(model)",)
            case "dynamic":
                return ("model = torch.compile(model, dynamic=True)",)
            case "recompile_limit":
                return (f"torch._dynamo.config.recompile_limit = {self.value}  # in every thread that compiles",)
            case "dynamic_sources":
                quoted = self.value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
                return (f'export TORCH_COMPILE_DYNAMIC_SOURCES="{quoted}"',)
            case "exclude":
                return (f"@torch.compiler.disable  # on {self.value}",)
            case key if key in _FLAGS:
                return (f"torch._dynamo.config.{key} = True  # in every thread that compiles",)
            case key if key == VARIANT:
                return (f"# the workload's own variant '{self.value}'", "model = torch.compile(model)")
        return (f'model = torch.compile(model, mode="{self.key}")',)


def parse_candidates(text: str) -> tuple[Candidate, ...]:
    """The candidates of a comma-separated list, each once. Raises UsageError."""
    return tuple(dict.fromkeys(parse_candidate(part.strip()) for part in _BETWEEN.split(text) if part.strip()))


def parse_candidate(name: str) -> Candidate:
    """The candidate of that name. Raises UsageError where there is none."""
    if name.startswith(VARIANT):
        return Candidate(VARIANT, _checked(name, name.removeprefix(VARIANT), _NAME))
    key, has_value, value = name.partition("=")
    if key == "dynamic" and value in ("", "True"):
        return Candidate(key)
    if key in _VALUED:
        value = value or (str(DEFAULT_LIMIT) if key == "recompile_limit" else "")
        allowed = {"recompile_limit": re.compile(r"[1-9]\d{0,5}"), "exclude": _NAME}.get(key, re.compile(r"[^\x00-\x1f]{1,2000}"))
        return Candidate(key, _checked(name, value, allowed))
    if not has_value and (key == EAGER or key in MODES or key in _FLAGS):
        return Candidate(key)
    raise UsageError(f"--candidates: no such candidate '{name}'; choose of {', '.join(_KNOWN)}")


def advised_candidate(remedy: str, apply: str, function: str | None) -> Candidate | None:
    """The candidate that an advice amounts to, so that it can be measured; None for advice that no setting carries out.

    apply: the advised text, such as ``export TORCH_COMPILE_DYNAMIC_SOURCES="L['x']"``. function: of the finding.
    """
    name = _OF_REMEDY.get(remedy)
    match name:
        case "exclude":
            name = f"exclude={function}"
        case "dynamic_sources":
            words = _words(apply)
            name = next((f"dynamic_sources={value}" for key, _, value in (word.partition("=") for word in words) if key == _SOURCES), None)
        case "recompile_limit":
            found = _LIMIT.search(apply)
            name = f"recompile_limit={found[1]}" if found else None
    try:
        return parse_candidate(name) if name is not None else None
    except UsageError:
        return None


def _words(line: str) -> list[str]:
    """The words of a line as a shell reads them; none where it could not."""
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


def _checked(name: str, value: str, allowed: re.Pattern[str]) -> str:
    if not allowed.fullmatch(value):
        raise UsageError(
            f"--candidates: '{name}' has no usable value; write recompile_limit=64, exclude=FUNCTION, dynamic_sources=SOURCE, variant:NAME"
        )
    return value
