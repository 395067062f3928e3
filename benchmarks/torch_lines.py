"""Records as torch prints them: recompile blocks, limit hits, graph breaks, cudagraph skips, failures.

Shapes are copied from logs of torch 2.9.1 and 2.13.0 run with TORCH_LOGS=recompiles (`torch/_logging/_internal.py`).
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from lines import Chunk, Clock, relevant

_DIRECTORIES = ("/srv/bot/toto/toto/model", "/srv/bot/external/kronos/model", "/srv/app/models", "/opt/train/net")
_FILES = ("attention.py", "kronos.py", "module.py", "rope.py", "decoder.py", "embedding.py", "mixer.py", "head.py")
_FUNCTIONS = (
    "positional_embedding",
    "forward",
    "decode_s1",
    "decode_s2",
    "rotate_half",
    "apply_rotary",
    "scaled_attention",
    "update_cache",
    "norm",
    "project",
    "mlp",
    "sample_logits",
)
_SOURCES = (
    "pos = torch.arange(x.shape[0]) + idx",
    "return y + len(tag)",
    "h = self.norm(x) * self.weight",
    "k, v = kv_cache.append(layer, k, v)",
    "x = x.view(batch, seq, -1)",
    "return F.linear(x, self.w)",
)
_GUARDS = (
    "kv_cache._current_idx[{layer}] == {value}",
    "tag == 'tag{layer}_{letters}'",
    "tensor 'x' size mismatch at index 1. expected {value}, actual {actual}",
    "tensor 'mask' size mismatch at index {axis}. expected {value}, actual {actual}",
    "len(states) == {value}",
    "self.step == {value}",
    "tensor 'k' stride mismatch at index 0. expected {value}, actual {actual}",
    "seq_len == {value}",
    "___check_obj_id(self.layers[{layer}], {identity})",
)
_SKIPS = (
    "mutated inputs ({n} instances)",
    "incompatible op aten._local_scalar_dense.default",
    "cpu device (arg{n}_1)",
    "multiple devices: device(type='cuda', index=0), device(type='cpu')",
    "graph with symbolic shapes inputs and config.triton.cudagraph_skip_dynamic_graphs=True.",
)
_GUIDE = (
    "To diagnose recompilation issues, see https://docs.pytorch.org/docs/main/user_guide/torch_compiler/compile/programming_model.recompilation.html"
)
_GUARDS_PY = "torch/_dynamo/guards.py:5396]"
_CONVERT_PY = "torch/_dynamo/convert_frame.py:1994]"
_BREAKS_PY = "torch/_dynamo/symbolic_convert.py:5124]"
_CUDAGRAPH_PY = "torch/_inductor/cudagraph_utils.py:380]"


def prefixed(prefix: str, lines: list[str]) -> list[str]:
    """Every line of a torch record repeats the prefix."""
    return [f"{prefix} {line}" for line in lines]


@dataclass(slots=True)
class CompiledFunction:
    """One code object that Dynamo compiled, and the entries that its cache holds so far.

    entry_count: entries its cache holds; each has one guard that now fails.
    """

    name: str
    file: str
    line_no: int
    frame_id: int
    source: str
    guard: str
    layer: int
    entry_count: int = 1

    def reason(self, number: int) -> str:
        """Why entry `number` does not fit the call that now comes: `6/7: kv_cache._current_idx[7] == 0   # source  # file:line in f`."""
        text = self.guard.format(
            layer=self.layer,
            value=8 + number,
            actual=8 + self.entry_count,
            axis=self.layer % 3,
            letters="x" * number,
            identity=139942232097072 + 4096 * number,
        )
        # torch pads the guard and shortens the path by common prefix characters, not by folders.
        return f"{self.frame_id}/{number}: {text:<55}  # {self.source}  # {self.file[2:]}:{self.line_no + 2} in {self.name}"

    def user_stack(self) -> list[str]:
        """The three lines below a reason, new in torch 2.13."""
        return ["User stack trace:", f'  File "{self.file}", line {self.line_no + 2}, in {self.name}', f"    {self.source}"]

    def block(self, clock: Clock, pid: int, *, with_stack: bool) -> list[str]:
        """The lines that announce a recompile: every entry's reason, newest first."""
        prefix = f"V{clock.glog()} {pid} {_GUARDS_PY} [{self.frame_id}/{self.entry_count}] [__recompiles]"
        stack = [f"    - {line}" for line in self.user_stack()] if with_stack else []
        lines = [f"Recompiling function {self.name} in {self.file}:{self.line_no}", "    triggered by the following guard failure(s):"]
        for number in range(self.entry_count - 1, -1, -1):
            lines.append(f"    - {self.reason(number)}")
            lines += stack
        return prefixed(prefix, lines)

    def limit_hit(self, clock: Clock, pid: int, *, with_stack: bool) -> list[str]:
        """The warning that follows when the cache is full."""
        limit = self.entry_count
        prefix = f"W{clock.glog()} {pid} {_CONVERT_PY} [{self.frame_id}/{limit}]"
        lines = [f"torch._dynamo hit config.recompile_limit ({limit})", f"   function: '{self.name}' ({self.file}:{self.line_no})"]
        lines.append(f"   last reason: {self.reason(limit - 1)}")
        if with_stack:
            lines += self.user_stack()
        return prefixed(prefix, [*lines, 'To log all recompilation reasons, use TORCH_LOGS="recompiles".', _GUIDE])


def make_function(rng: random.Random, frame_id: int, layer: int) -> CompiledFunction:
    """A function somewhere in a model, with one compiled entry."""
    return CompiledFunction(
        name=f"layer_{layer:02d}_{rng.choice(_FUNCTIONS)}" if rng.random() < 0.5 else rng.choice(_FUNCTIONS),
        file=f"{rng.choice(_DIRECTORIES)}/{rng.choice(_FILES)}",
        line_no=rng.randrange(20, 900),
        frame_id=frame_id,
        source=rng.choice(_SOURCES),
        guard=rng.choice(_GUARDS),
        layer=layer,
    )


class TracedProcess:
    """A process with TORCH_LOGS=recompiles: its functions recompile one by one, never up to the limit."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._restart()

    def _restart(self) -> None:
        self._pid = self._rng.randrange(2000, 400000)
        self._functions = [make_function(self._rng, frame_id, frame_id) for frame_id in range(6)]
        self._with_stack = False

    def recompile(self, clock: Clock) -> Chunk:
        """The next recompile block, of 3 to 8 lines; when all functions are used up the process starts again."""
        open_ones = [function for function in self._functions if function.entry_count < 7]
        if not open_ones:
            self._restart()
            open_ones = self._functions
        function = self._rng.choice(open_ones)
        lines = function.block(clock, self._pid, with_stack=self._with_stack)
        function.entry_count += 1
        return relevant(lines, "recompile")


def limit_hit(rng: random.Random, clock: Clock) -> Chunk:
    """A limit hit of a process that logs no recompiles: only the warning shows."""
    function = make_function(rng, rng.randrange(1, 40), rng.randrange(12))
    function.entry_count = 8
    return relevant(function.limit_hit(clock, rng.randrange(2000, 400000), with_stack=rng.random() < 0.5), "recompile_limit_hit")


def cudagraph_skip(rng: random.Random, clock: Clock) -> Chunk:
    """A skip, prefixed as in torch 2.13 or bare as up to 2.9.1."""
    text = "skipping cudagraphs due to " + rng.choice(_SKIPS).format(n=rng.randrange(1, 9))
    bare = rng.random() < 0.5
    return relevant([text if bare else f"W{clock.glog()} {rng.randrange(2000, 400000)} {_CUDAGRAPH_PY} [__cudagraphs] {text}"], "cudagraph_skip")


def graph_break(rng: random.Random, clock: Clock) -> Chunk:
    """A graph break seen before, so that torch prints its reason without the user's stack."""
    file = f"{rng.choice(_DIRECTORIES)}/{rng.choice(_FILES)}:{rng.randrange(20, 900)}"
    prefix = f"V{clock.glog()} {rng.randrange(2000, 400000)} {_BREAKS_PY} [{rng.randrange(9)}/0] [__graph_breaks]"
    lines = [
        f"Graph break (user stack suppressed due to duplicate graph break) in user code at {file}",
        "Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):",
        "Failed to trace builtin operator",
        "  Explanation: Dynamo does not know how to trace builtin operator `print` with argument types ['str', 'Size']",
        "  Hint: Please report an issue to PyTorch.",
    ]
    return relevant(prefixed(prefix, lines), "graph_break")


def backend_failure(rng: random.Random) -> Chunk:
    """An uncaught compile failure: an unprefixed traceback."""
    number = rng.randrange(20, 900)
    if rng.random() < 0.5:
        last = [
            "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:",
            "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered",
        ]
    else:
        last = ["torch._dynamo.exc.FailOnRecompileLimitHit: Hard failure due to fullgraph=True"]
    head = ["Traceback (most recent call last):", f'  File "/srv/app/models/serve.py", line {number}, in step', "    out = self.model(batch)"]
    return relevant([*head, *last])
