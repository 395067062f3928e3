"""A small transformer with a key-value cache that keeps a position per layer, behind a graph break: the bot's limit hit.

Each layer is one recompile of `positional_embedding`, all within the first call; more than eight layers hit the limit.
"""

import torch

LAYERS, WIDTH, LENGTH, ROOM = 10, 32, 8, 16


class KVCache:
    """Keys and values of each layer in memory of a fixed size, and how many there are, as Python integers."""

    def __init__(self, like):
        shape = (like.shape[0], ROOM, WIDTH)
        self._keys = [torch.zeros(shape, device=like.device) for _ in range(LAYERS)]
        self._values = [torch.zeros(shape, device=like.device) for _ in range(LAYERS)]
        self._current_idx = [0] * LAYERS

    def __getitem__(self, layer):
        end = self._current_idx[layer]
        return self._keys[layer][:, :end], self._values[layer][:, :end]

    def append(self, layer, keys, values):
        start = self._current_idx[layer]
        end = start + keys.shape[-2]
        torch._dynamo.graph_break()
        self._keys[layer][:, start:end] = keys
        self._values[layer][:, start:end] = values
        self._current_idx[layer] = end

    def seq_len(self, layer):
        return self._current_idx[layer]


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.to_qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)

    def rotated(self, x, offset):
        place = torch.arange(LENGTH, dtype=x.dtype, device=x.device) + offset
        return x * place.cos()[:, None] + x.flip(-1) * place.sin()[:, None]

    def positional_embedding(self, q, k, v, kv_cache, layer_idx):
        offset = kv_cache.seq_len(layer_idx)
        q, k = self.rotated(q, offset), self.rotated(k, offset)
        kv_cache.append(layer_idx, k, v)
        k, v = kv_cache[layer_idx]
        return q, k, v

    def forward(self, x, kv_cache, layer_idx):
        q, k, v = self.to_qkv(x).chunk(3, -1)
        q, k, v = self.positional_embedding(q, k, v, kv_cache, layer_idx)
        return self.out(torch.softmax(q @ k.transpose(-2, -1), -1) @ v)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.attention = Attention()

    def forward(self, layer_idx, x, kv_cache):
        return x + self.attention(self.norm(x), kv_cache, layer_idx)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, x, kv_cache):
        for layer_idx, layer in enumerate(self.layers):
            x = layer(layer_idx, x, kv_cache)
        return x


class KVStorm:
    def __init__(self):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def build(self):
        return Model().eval().to(self.device)

    def inputs(self, n):
        generator = torch.Generator().manual_seed(0)
        return [torch.randn(2, LENGTH, WIDTH, generator=generator).to(self.device) for _ in range(n)]

    def call(self, state, x):
        with torch.no_grad():
            return state(x, KVCache(x))


def make():
    return KVStorm()
