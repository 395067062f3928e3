"""Inputs of many lengths: torch compiles for the first, once more for any, and is quiet then."""

import torch

WIDTH = 64


class Dynamic:
    def __init__(self):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def build(self):
        layers = [torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU(), torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, WIDTH), torch.nn.Softplus()]
        return torch.nn.Sequential(*layers).eval().to(self.device)

    def inputs(self, n):
        generator = torch.Generator().manual_seed(0)
        return [torch.randn(32 + 24 * number, WIDTH, generator=generator).to(self.device) for number in range(n)]

    def call(self, state, x):
        with torch.no_grad():
            return state(x)


def make():
    return Dynamic()
