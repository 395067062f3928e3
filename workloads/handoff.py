"""Two steps that are compiled apart and hand a tensor on, as Kronos' `decode_s1` and `decode_s2`.

On a GPU with CUDA graphs the second step reads memory that the next recording overwrites; on a CPU all is well.
"""

import torch

WIDTH, STEPS = 64, 4


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Linear(WIDTH, WIDTH)
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.head = torch.nn.Linear(2 * WIDTH, WIDTH)

    def decode_s1(self, x):
        context = torch.relu(self.embed(x))
        return context.mean(-1, keepdim=True), context

    def decode_s2(self, context, token):
        return self.head(torch.cat((self.norm(context), context * token), -1))


class Handoff:
    def __init__(self):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def build(self):
        return Decoder().eval().to(self.device)

    def apply(self, state, compile_fn):
        state.decode_s1, state.decode_s2 = compile_fn(state.decode_s1), compile_fn(state.decode_s2)

    def inputs(self, n):
        generator = torch.Generator().manual_seed(0)
        return [torch.randn(8, WIDTH, generator=generator).to(self.device) for _ in range(n)]

    def call(self, state, x):
        with torch.no_grad():
            for _ in range(STEPS):
                token, context = state.decode_s1(x)
                x = state.decode_s2(context, token)
            return x


def make():
    return Handoff()
