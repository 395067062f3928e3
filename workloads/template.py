"""The workload that recompile-watch measures: your model, as your program calls it. Everything here is yours to change.

    recompile-watch diagnose --workload WORKLOAD:make --python /srv/bot/.venv/bin/python

The factory at the end is called in a fresh process for each candidate setting, under the interpreter named with --python.
"""

import torch


class Workload:
    def __init__(self):
        # Without a GPU, and in the structural stage, torch sees none and this is "cpu".
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def build(self):
        """Makes one independent instance: weights, caches, everything that a call may change. It is called for each arm."""
        return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64)).eval().to(self.device)

    def inputs(self, n):
        """About n inputs, as different from each other as those of production: lengths, batch sizes, options."""
        generator = torch.Generator().manual_seed(0)
        return [torch.randn(16, 64, generator=generator).to(self.device) for _ in range(n)]

    def call(self, state, x):
        """One call as production makes it; its tensors are compared between eager and compiled."""
        with torch.inference_mode():
            return state(x)

    # Optional, and best left out until you need it:
    #
    # def apply(self, state, compile_fn):
    #     """Compiles what your program compiles. Without it: state.model if there is one, else the state itself."""
    #     state.decoder = compile_fn(state.decoder)
    #
    # def reference(self, x):
    #     """The right answer, in double precision: tells rounding from error."""
    #
    # def metric(self, out, x):
    #     """Your own measure of error, smaller is better: it must not become worse."""
    #     return 0.0
    #
    # def variants(self):
    #     """Other ways to run the model, measured like settings: name -> workload."""
    #     return {"no-cache": Workload(use_kv_cache=False)}


def make():
    return Workload()
