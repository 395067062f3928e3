"""A template for Kronos (github.com/shiyu-coder/Kronos): its two decoding steps, compiled apart as wrappers do. Copy it and fill it in.

    git clone https://github.com/shiyu-coder/Kronos && cp kronos_template.py Kronos/kronos_workload.py && cd Kronos
    recompile-watch diagnose --workload kronos_workload:make --python /srv/bot/.venv/bin/python

Written from the published interface of `model/kronos.py`. With it and random weights the default mode hits the recompile limit in
`decode_s1`: its rotary embedding remembers the length of the history, so each new length compiles it again.
"""

import torch

S1_BITS = S2_BITS = 10
LAYERS, WIDTH, HEADS = 4, 256, 4
LENGTHS = (64, 65, 66, 67)  # history lengths, as production has them: a constant window recompiles once, a growing one storms
STEPS = 4


class KronosDecoding:
    def __init__(self, has_clone=False):
        self.has_clone = has_clone
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def build(self):
        from model.kronos import Kronos  # of the checkout that this file was copied into

        model = Kronos(S1_BITS, S2_BITS, LAYERS, WIDTH, HEADS, 2 * WIDTH, 0.0, 0.0, 0.0, 0.0, True)
        return model.eval().to(self.device)

    def apply(self, state, compile_fn):
        state.decode_s1, state.decode_s2 = compile_fn(state.decode_s1), compile_fn(state.decode_s2)

    def inputs(self, n):
        generator = torch.Generator().manual_seed(0)
        return [self.history(LENGTHS[number % len(LENGTHS)], generator) for number in range(n)]

    def history(self, length, generator):
        s1, s2 = (torch.randint(0, 2**bits, (2, length), generator=generator).to(self.device) for bits in (S1_BITS, S2_BITS))
        stamp = torch.zeros(2, length, 5, device=self.device)  # minute, hour, weekday, day, month
        return s1, s2, stamp

    def call(self, state, x):
        s1, s2, stamp = x
        with torch.no_grad():
            for _ in range(STEPS):
                logits, context, *_ = state.decode_s1(s1, s2, stamp)  # newer versions add a cache
                token = logits[:, -1].argmax(-1, keepdim=True)
                out = state.decode_s2(context.clone() if self.has_clone else context, token)
        return logits, out

    def variants(self):
        return {"clone": KronosDecoding(has_clone=True)}


def make():
    return KronosDecoding()
