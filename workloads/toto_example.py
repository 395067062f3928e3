"""Toto (PyPI: toto-ts) with tiny random weights and the key-value cache that the bot used; `make example-toto` runs it.

The bot's cache keeps its positions in a Python list, behind an explicit graph break: each of the 11 time-wise layers is a
recompile of `positional_embedding`, and the ninth hits the limit. Variants: `upstream-cache` (positions in a tensor) and
`no-cache` (use_kv_cache=False; equal for one patch, another forecast for several).
"""

import importlib.util
import sys
import types

import torch

LAYERS, CONTEXT, PATCH, SERIES = 12, 512, 64, 4


def without_lightning():
    """gluonts.torch imports lightning, of which Toto's model needs nothing: the package is put there without running it."""
    spec = importlib.util.find_spec("gluonts")
    if spec is None:
        raise ImportError("the Toto example needs toto-ts and gluonts; 'make example-toto' installs them")
    package = types.ModuleType("gluonts.torch")
    package.__path__ = [f"{spec.submodule_search_locations[0]}/torch"]
    sys.modules.setdefault("gluonts.torch", package)


class ListCache:
    """The bot's form of the cache, rebuilt from its documents."""

    def __init__(self, upstream):
        self._keys, self._values = upstream._keys, upstream._values
        self._layer_cache_map = [int(index) for index in upstream._layer_cache_map]
        self._current_idx = [0] * len(upstream._current_idx)

    def __getitem__(self, layer_idx):
        place = self._layer_cache_map[layer_idx]
        end = self._current_idx[place]
        return self._keys[place, :, :, :end], self._values[place, :, :, :end]

    def current_len(self, place):
        return self._current_idx[place]

    def seq_len(self, layer_idx):
        return self._current_idx[self._layer_cache_map[layer_idx]]

    def append(self, layer_idx, kv):
        place = self._layer_cache_map[layer_idx]
        keys, values = kv
        torch._dynamo.graph_break()
        start = self._current_idx[place]
        end = start + keys.shape[2]
        self._keys[place, :, :, start:end] = keys
        self._values[place, :, :, start:end] = values
        self._current_idx[place] = end


class Toto:
    def __init__(self, cache="bot"):
        without_lightning()
        self.cache = cache
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def build(self):
        from toto.model.backbone import TotoBackbone

        model = TotoBackbone(
            patch_size=PATCH, stride=PATCH, embed_dim=64, num_layers=LAYERS, num_heads=4, mlp_hidden_dim=128, dropout=0.0,
            spacewise_every_n_layers=LAYERS, spacewise_first=False, scaler_cls="<class 'model.scaler.CausalPatchStdMeanScaler'>",
            output_distribution_classes=["<class 'model.distribution.MixtureOfStudentTsOutput'>"], output_distribution_kwargs={"k_components": 5},
            use_memory_efficient_attention=False,
        )  # fmt: skip
        return Holder(model.eval().to(self.device))

    def inputs(self, n):
        generator = torch.Generator().manual_seed(0)
        return [(100 + torch.randn(SERIES, 1, CONTEXT, generator=generator).cumsum(-1)).to(self.device) for _ in range(n)]

    def call(self, state, series):
        mask, ids = torch.ones_like(series, dtype=torch.bool), torch.zeros_like(series)
        with torch.no_grad():
            out = state.model(series, mask, ids, self.new_cache(state, series))
        return out.distribution.mean, out.loc, out.scale

    def new_cache(self, state, series):
        if self.cache is None:
            return None
        upstream = state.plain.allocate_kv_cache(SERIES, 1, CONTEXT + PATCH, series.device, series.dtype)
        return ListCache(upstream) if self.cache == "bot" else upstream

    def variants(self):
        return {"upstream-cache": Toto("upstream"), "no-cache": Toto(None)}


class Holder:
    """What `build` gives: the diagnostic compiles `model`; `plain` stays as it is, for making caches."""

    def __init__(self, model):
        self.model = self.plain = model


def make():
    return Toto()
