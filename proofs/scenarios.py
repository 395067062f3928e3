"""Small programs that show one cause each, and the same with its remedy. Runs under torch; imports nothing else.

`python scenarios.py NAME before|after` runs one of them with backend="eager" and prints {"equal": true} when every result
equals what the same code gives without torch.compile. What torch logs meanwhile goes to standard error.
"""

import contextlib
import functools
import json
import logging
import math
import subprocess
import sys
import threading
import zlib

import torch
import torch._dynamo

SIZES = (8, 9, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28)
SCENARIOS = {}


def scenario(function):
    """Registers a scenario: a function of whether the remedy is applied that yields (compiled result, eager result)."""
    SCENARIOS[function.__name__] = function
    return function


def compiled(function, **options):
    return torch.compile(function, backend="eager", **options)


def double(x):
    return x * 2 + 1


def over(sizes, run):
    """The doubled tensors of some sizes, compiled and not."""
    for size in sizes:
        x = torch.arange(float(size))
        yield run(x), double(x)


@scenario
def size_fixed(after):
    """dynamic=False forbids what torch does by itself."""
    run = compiled(double) if after else compiled(double, dynamic=False)
    yield from over(SIZES, run)


@scenario
def size_marked(after):
    run = compiled(double, dynamic=False)
    for size in SIZES:
        x = torch.arange(float(size))
        if after:
            torch._dynamo.mark_dynamic(x, 0)
        yield run(x), double(x)


@scenario
def size_from_outside(after):
    """The same program before and after: only the environment differs."""
    run = compiled(double, dynamic=False)
    yield from over(SIZES, run)


@scenario
def size_to_one(after):
    """A batch that is doubled and halved: one step for the change, one more for the size of one."""
    run = compiled(double)
    for size in (2, 1, 4, 2, 1, 6):
        x = torch.ones(size, 4)
        if after:
            torch._dynamo.decorators.mark_unbacked(x, 0)
        yield run(x), double(x)


@scenario
def last_batch(after):
    """Thirteen items in batches of four, and of six: the last batch has one."""
    run = compiled(double)
    for size in (4, 6):
        for x in torch.utils.data.DataLoader(torch.arange(13.0), batch_size=size, drop_last=after):
            yield run(x), double(x)


@scenario
def size_in_buckets(after):
    run = compiled(double, dynamic=False)
    for size in SIZES:
        x = torch.arange(float(size))
        room = next(bucket for bucket in (8, 16, 32) if bucket >= size) if after else size
        yield run(torch.nn.functional.pad(x, (0, room - size)))[:size], double(x)


@scenario
def size_as_key(after):
    """A dict of tables by their length: the key needs the size's value."""
    tables = {size: torch.arange(float(size)) for size in SIZES}

    def looked_up(x):
        return x * tables[x.shape[0]]

    def given(x, table):
        return x * table

    run = compiled(given if after else looked_up)
    for size in SIZES:
        x = torch.ones(size)
        yield run(x, tables[size]) if after else run(x), looked_up(x)


@scenario
def size_learned_before(after):
    """The second start of a program, whose first one is another process; the advice needs a log of both."""
    if after:
        subprocess.run([sys.executable, __file__, "size_learned_before", "before"], check=True, capture_output=True)
    yield from over(SIZES, compiled(double))


@scenario
def size_first_step(after):
    """Default settings: one recompile, then quiet."""
    run = compiled(double)
    yield from over(SIZES[:1] if after else SIZES, run)


@scenario
def size_zero_one(after):
    run = compiled(double)
    for size in (4, 5, 1, 6):
        x = torch.arange(float(size))
        if after:
            torch._dynamo.decorators.mark_unbacked(x, 0)
        yield run(x), double(x)


@scenario
def size_eager_stance(after):
    run = compiled(double, dynamic=False)
    for number, size in enumerate(SIZES):
        if after and number == 1:
            torch.compiler.set_stance("eager_on_recompile")
        x = torch.arange(float(size))
        yield run(x), double(x)


class Cache(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self._current_idx = [0] * layers


def rotate(x, kv_cache, layer):
    return x + kv_cache._current_idx[layer]


@scenario
def cache_index(after):
    """One integer of a module that grows with each step."""
    torch._dynamo.config.allow_unspec_int_on_nn_module = after
    yield from _steps()


@scenario
def cache_index_from_outside(after):
    yield from _steps()


def _steps():
    cache = Cache(8)

    def step(x, kv_cache):
        return x + kv_cache._current_idx[7]

    run = compiled(step)
    for index in range(2, 14):
        cache._current_idx[7] = index
        x = torch.ones(4)
        yield run(x, cache), x + index


@scenario
def index_excluded(after):
    """The smallest function that reads the index is left out of compilation."""

    def add_index(x, kv_cache):
        return x + kv_cache._current_idx[7]

    inner = torch.compiler.disable(add_index) if after else add_index

    def step(x, kv_cache):
        return inner(x * 2, kv_cache) * 3

    cache = Cache(8)
    run = compiled(step)
    for index in range(2, 14):
        cache._current_idx[7] = index
        x = torch.ones(4)
        yield run(x, cache), (x * 2 + index) * 3


@scenario
def layers_from_outside(after):
    """Each layer's index leaves its first value one after the other, inside one call."""
    cache = Cache(10)

    def step(x, kv_cache):
        for layer in range(10):
            x = x + kv_cache._current_idx[layer]
        return x

    run = compiled(step)
    for layer in range(10):
        x = torch.ones(4)
        yield run(x, cache), x + sum(cache._current_idx)
        cache._current_idx[layer] = layer + 5


@scenario
def index_in_tensor(after):
    cache = Cache(1)
    cache.register_buffer("position", torch.zeros((), dtype=torch.long))

    def step(x, kv_cache):
        return x + (kv_cache.position if after else kv_cache._current_idx[0])

    run = compiled(step)
    for index in range(2, 14):
        cache._current_idx[0] = index
        cache.position.fill_(index)
        x = torch.ones(4)
        yield run(x, cache), x + index


class Layer(torch.nn.Module):
    def __init__(self, layer_idx, name="same"):
        super().__init__()
        self.layer_idx = layer_idx
        self.name = name

    def forward(self, x):
        return x * (self.layer_idx + 2) if self.name != "never" else x


@scenario
def layers_apart(after):
    """Each instance compiled on its own, against the parent compiled once."""
    layers = [Layer(number) for number in range(12)]

    def parent(x):
        for layer in layers:
            x = layer(x)
        return x

    run = compiled(parent)
    each = [compiled(layer) for layer in layers]
    for _ in range(2):
        x = torch.ones(4)
        if after:
            yield run(x), parent(x)
        else:
            for layer, one in zip(layers, each, strict=True):
                yield one(x), layer(x)


class CachingLayer(torch.nn.Module):
    """A layer that keeps what it saw in its own entry of a list."""

    def __init__(self, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx

    def forward(self, x, cache):
        cache[self.layer_idx] = torch.cat([cache[self.layer_idx], x])
        return x + cache[self.layer_idx].mean(0)


@scenario
def layer_caches(after):
    """Each instance compiled on its own: the first size that differs is that of its own entry of the cache."""
    layers = [CachingLayer(number) for number in range(12)]

    def parent(x, cache, each):
        for layer in each:
            x = layer(x, cache)
        return x

    run = compiled(parent) if after else parent
    each = layers if after else [compiled(layer) for layer in layers]
    for _ in range(2):
        x = torch.ones(2, 4)
        yield run(x, [torch.zeros(0, 4) for _ in layers], each), parent(x, [torch.zeros(0, 4) for _ in layers], layers)


@scenario
def layers_isolated(after):
    layers = [Layer(number) for number in range(12)]
    each = [compiled(layer, **({"isolate_recompiles": True} if after else {})) for layer in layers]
    x = torch.ones(4)
    for layer, one in zip(layers, each, strict=True):
        yield one(x), layer(x)


def layers_of(widths, after):
    """Each layer compiled for itself, as is advised for large models, and each of another width."""

    class Layer(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.linear = torch.nn.Linear(width, width)

        def forward(self, x):
            return self.linear(x).relu()

    torch.manual_seed(0)
    for width in widths:
        layer = Layer(width)
        x = torch.ones(2, width)
        yield compiled(layer, **({"isolate_recompiles": True} if after else {}))(x), layer(x)


@scenario
def layers_of_widths(after):
    yield from layers_of(SIZES, after)


@scenario
def layers_by_name(after):
    def scaled(x, layer_name, factor):
        return x * factor if after else x * (len(layer_name) + 2)

    run = compiled(scaled)
    for number in range(12):
        x, layer_name = torch.ones(4), "q" * (number + 1)
        yield run(x, "layer" if after else layer_name, torch.tensor(float(number + 3))), x * (number + 3)


@scenario
def names_and_limit(after):
    """A finite set of strings: one compile each."""
    if after:
        torch._dynamo.config.recompile_limit = 16
    yield from _names()


@scenario
def names_and_own_limit(after):
    yield from _names(**({"recompile_limit": 16} if after else {}))


@scenario
def text_as_argument(after):
    """A free text as an argument; afterwards the compiled part gets only the number that the text is turned into."""

    def scaled(x, number):
        return x * number

    def predict(x, text):
        return scaled(x, len(text))

    run = compiled(scaled if after else predict)
    for number in range(10):
        x, text = torch.ones(4), "a sentence of " + "many " * (number + 2) + "words"
        yield run(x, len(text) if after else text), predict(x, text)


def _names(**options):
    def scaled(x, name):
        return x * (len(name) + 2)

    run = compiled(scaled, **options)
    for number in range(10):
        x, name = torch.ones(4), "n" * (number + 1)
        yield run(x, name), scaled(x, name)


@scenario
def widths(after):
    """Layers of different width share their code."""
    if after:
        torch._dynamo.config.force_parameter_static_shapes = False
        torch._dynamo.config.force_nn_module_property_static_shapes = False
    layers = [torch.nn.Linear(4, 4 + number) for number in range(12)]
    for layer in layers:
        x = torch.ones(2, 4)
        yield compiled(layer)(x), layer(x)


@scenario
def buffer_that_grows(after):
    """An index to which documents are added between the queries."""
    if after:
        torch._dynamo.config.force_parameter_static_shapes = False
        torch._dynamo.config.force_nn_module_property_static_shapes = False

    class Index(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("vectors", torch.ones(5, 4))

        def forward(self, query):
            return self.vectors @ query

    index = Index()
    run = compiled(index)
    for number in range(12):
        index.vectors = torch.cat([index.vectors, torch.full((2, 4), float(number))])
        query = torch.ones(4)
        yield run(query), index(query)


@scenario
def layers_cast_one_by_one(after):
    class Layer(torch.nn.Linear):
        def forward(self, x):
            return torch.nn.functional.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))

    model = torch.nn.Sequential(*(Layer(3, 3) for _ in range(10)))
    if after:
        model.to(torch.bfloat16)
    run = compiled(model)
    for layer in model:
        x = torch.ones(2, 3)
        yield run(x).detach(), model(x).detach()
        layer.weight.data = layer.weight.data.bfloat16()


@scenario
def under_a_transform(after):
    """The same function plain, for an ensemble, and for its gradients."""

    def score(x, heat):
        return torch.sigmoid(x / heat).sum()

    def ensemble(x, heat, score=score):
        return torch.vmap(score, in_dims=(0, None))(x, heat)

    def gradients(x, heat, score=score):
        return torch.vmap(torch.func.grad(score), in_dims=(0, None))(x, heat)

    run, heat = compiled(score), torch.tensor(1.3)
    steps = [(run, score)]
    for use in (ensemble, gradients):
        steps.append((compiled(use) if after else functools.partial(use, score=run), use))
    for step, plain in steps:
        for number in range(2):
            x = torch.arange(8.0).reshape(2, 4) + number
            yield step(x, heat), plain(x, heat)


@scenario
def heat_under_math(after):
    """A temperature that falls with each step."""

    class Info:
        heat = 2.0

    def weighed(x, info):
        weight = torch.log(1.0 + info.heat) if after else math.log(1.0 + info.heat)
        return x * weight

    run = compiled(weighed)
    for step in range(12):
        heat, info = 2.0 * math.exp(-0.1 * step), Info()
        info.heat = torch.tensor(heat) if after else heat
        yield run(torch.ones(3), info), torch.ones(3) * math.log(1.0 + heat)


@scenario
def scale_of_a_picture(after):
    def smaller(image, factor):
        return torch.nn.functional.interpolate(image, scale_factor=factor, mode="nearest") * 2

    def sized(image, size):
        return torch.nn.functional.interpolate(image, size=size, mode="nearest") * 2

    run, image = compiled(sized if after else smaller), torch.arange(1600.0).reshape(1, 1, 40, 40)
    for step in range(12):
        factor = 0.25 + 0.05 * step
        size = tuple(smaller(image, factor).shape[2:])
        yield run(image, size if after else factor), smaller(image, factor)


@scenario
def sorted_by_score(after):
    def best(beams, scores):
        if after:
            order = torch.stack(scores).argsort(descending=True)
            return torch.stack(beams).index_select(0, order)
        return torch.stack([beam for _, beam in sorted(zip(scores, beams, strict=True), key=lambda pair: pair[0], reverse=True)])

    run = compiled(best)
    beams, scores = [torch.full((3,), float(n)) for n in range(4)], [torch.tensor(s) for s in (0.2, 0.9, 0.1, 0.5)]
    yield run(beams, scores), best(beams, scores)


@scenario
def mask_without_effect(after):
    """Attention that leaves a mask out where it masks nothing."""

    def attended(scores, mask):
        if after:
            if not torch.compiler.is_compiling() and torch.all(mask == 1):
                return scores.softmax(-1)
        elif torch.all(mask == 1):
            return scores.softmax(-1)
        return scores.masked_fill(mask == 0, float("-inf")).softmax(-1)

    run = compiled(attended)
    scores = torch.linspace(-1, 1, 8).reshape(2, 4)
    for mask in (torch.ones(2, 4), torch.tensor([[1.0, 1, 1, 0], [1, 1, 0, 0]])):
        yield run(scores, mask), attended(scores, mask)


@scenario
def margin_in_closure(after):
    """A loss that is made for each phase of a training."""

    def made(margin):
        return lambda scores: torch.relu(margin - scores).mean()

    def loss_of(objective, scores):
        return objective(scores) * 2

    run = compiled(loss_of, dynamic=False)
    for phase in range(12):
        margin, scores = 1.0 + 0.1 * phase, torch.linspace(0, 2, 5)
        yield run(made(torch.tensor(margin) if after else margin), scores), made(margin)(scores) * 2


@scenario
def entry_of_a_step(after):
    """A table of noise levels, and the step as a tensor without dimensions."""
    table = torch.linspace(0.1, 1, 20)

    def noised(x, step):
        return x * (table.index_select(0, step.reshape(1)).squeeze(0) if after else table[step])

    run = compiled(noised)
    for number in range(19, 7, -1):
        yield run(torch.ones(3), torch.tensor(number)), torch.ones(3) * table[number]


@scenario
def checked_distribution(after):
    def scored(x):
        keywords = {} if after else {"validate_args": True}
        return torch.distributions.Normal(x, torch.ones_like(x), **keywords).log_prob(x * 2)

    run = compiled(scored)
    yield run(torch.ones(3)), scored(torch.ones(3))


@scenario
def checked_norm(after):
    def step(weight, gradient):
        keywords = {} if after else {"error_if_nonfinite": True}
        weight.grad = gradient.clone()
        norm = torch.nn.utils.clip_grad_norm_([weight], 1.0, **keywords)
        return weight.grad * norm

    run, weight = compiled(step), torch.ones(3)
    yield run(weight, torch.full((3,), 4.0)), step(weight, torch.full((3,), 4.0))


@scenario
def number_as_tensor(after):
    def scaled(x, step):
        return x * step

    run = compiled(scaled, dynamic=False)
    for step in range(2, 14):
        x = torch.ones(4)
        yield run(x, torch.tensor(step) if after else step), x * step


@scenario
def learning_rate(after):
    """A scheduler that changes the rate in each step; floats are specialised, as torch before 2.7 always does.

    The weights begin at one: ten compiled steps differ from eager's by 2e-6 (their bias correction is single precision),
    which a weight that chance put near zero shows as a wrong result.
    """
    torch._dynamo.config.specialize_float = True
    compiled_model, eager_model = (torch.nn.Linear(2, 2) for _ in range(2))
    for model in (compiled_model, eager_model):
        torch.nn.init.ones_(model.weight)
        torch.nn.init.ones_(model.bias)
    one = torch.optim.Adam(compiled_model.parameters(), lr=0.1)
    if after:
        for group in one.param_groups:
            group["lr"] = torch.tensor(group["lr"])
    other = torch.optim.Adam(eager_model.parameters(), lr=0.1)
    step = compiled(one.step)
    for number in range(10):
        value = 0.1 / (number + 1)
        for model in (compiled_model, eager_model):
            model(torch.ones(1, 2)).sum().backward()
        if after:
            one.param_groups[0]["lr"].fill_(value)
        else:
            one.param_groups[0]["lr"] = value
        other.param_groups[0]["lr"] = value
        step()
        other.step()
        one.zero_grad()
        other.zero_grad()
    yield compiled_model.weight.detach(), eager_model.weight.detach()


@scenario
def backends(after):
    def make():
        return lambda graph, inputs: graph.forward

    kept = make()
    for _ in range(10):
        x = torch.ones(4)
        yield torch.compile(double, backend=kept if after else make())(x), double(x)


@scenario
def backends_compared(after):
    """The arms of a benchmark: each is meant to be compiled for itself."""
    for name in ("eager", "aot_eager", "aot_eager_decomp_partition"):
        if after:
            torch._dynamo.reset()
        x = torch.ones(4)
        yield torch.compile(double, backend=name)(x), double(x)


@scenario
def compile_in_a_loop(after):
    def make():
        return torch.compile(double, backend=lambda graph, inputs: graph.forward)

    kept = make()
    for _ in range(10):
        x = torch.ones(4)
        yield (kept if after else make())(x), double(x)


@scenario
def structure(after):
    def total(items):
        return items[0] + items[1]

    run = compiled(total)
    for items in ([torch.ones(2), torch.ones(2)], (torch.ones(2), torch.ones(2))):
        yield run(tuple(items) if after else items), total(items)


@scenario
def growing_list(after):
    """A cache that gets longer with each step, against one of fixed length written at a tensor index."""
    run = compiled(lambda cache: torch.stack(cache).sum(0))
    fixed, position = torch.zeros(16, 2), torch.zeros(1, dtype=torch.long)

    def write(cache, at, value):
        return cache.index_copy(0, at, value)

    write_compiled = compiled(write)
    cache = []
    for number in range(12):
        cache.append(torch.full((2,), float(number)))
        wanted = torch.stack(cache).sum(0)
        if after:
            fixed = write_compiled(fixed, position, cache[-1][None])
            position = position + 1
            yield fixed.sum(0), wanted
        else:
            yield run(cache), wanted


@scenario
def list_index(after):
    """A number that torch makes dynamic and the list fixes again, against the list's item as a tensor."""
    steps = [10.0 - number for number in range(12)]
    by_number, by_item = compiled(lambda x, number: x * steps[number]), compiled(lambda x, item: x * item)
    x = torch.ones(4)
    for number, step in enumerate(steps):
        yield by_item(x, torch.tensor(step)) if after else by_number(x, number), x * step


def balanced(x):
    return x / (1 + x)


def balanced_often(x, rounds):
    for _ in range(rounds):
        x = balanced(x)
    return x


@scenario
def rounds(after):
    """A loop is unrolled, and compiled for each number of its rounds; one round, in a loop outside, once."""
    often, once = compiled(balanced_often), compiled(balanced)
    for number in range(2, 14):
        x = y = torch.ones(4)
        for _ in range(number if after else 0):
            y = once(y)
        yield y if after else often(x, number), balanced_often(x, number)


@scenario
def states(after):
    """A dict of states that the compiled code looks up and fills, against the state passed in and stored outside."""
    kept, plain = {}, {}

    def by_name(x, name):
        state = kept.get(name)
        kept[name] = (torch.zeros_like(x) if state is None else state) + x
        return kept[name]

    looking_up, adding = compiled(by_name), compiled(lambda x, state: state + x)
    for number in range(20):
        name, x = f"sensor-{number % 10}", torch.full((4,), float(number))
        plain[name] = plain.get(name, torch.zeros(4)) + x
        if after:
            kept[name] = adding(x, kept.get(name, torch.zeros(4)))
        else:
            looking_up(x, name)
        yield kept[name], plain[name]


class Schedule:
    """Counts its steps."""

    def __init__(self):
        self.step, self.rates = None, torch.linspace(1, 0, 20)

    def scaled(self, x):
        self.step = 0 if self.step is None else self.step + 1
        return x * self.rates[self.step]


SCHEDULE = Schedule()


@scenario
def global_counter(after):
    """A number that is read through a global is a constant; with the object passed it becomes dynamic."""
    plain = Schedule()
    run = compiled((lambda x, schedule: schedule.scaled(x)) if after else (lambda x: SCHEDULE.scaled(x)))
    for _ in range(12):
        x = torch.ones(4)
        yield run(x, SCHEDULE) if after else run(x), plain.scaled(x)


class Model:
    """Keeps what it computed, in the compiled code or behind it."""

    def __init__(self):
        self.losses = []

    def loss(self, x):
        return x.square().mean()

    def kept_loss(self, x):
        self.losses.append(self.loss(x))
        return self.losses[-1]


@scenario
def history(after):
    """A list that the compiled code appends to, against one that is filled with what it returns."""
    model = Model()
    run = compiled(model.loss if after else model.kept_loss)
    for number in range(12):
        x = torch.full((4,), float(number))
        yield run(x), model.loss(x)


@scenario
def dict_keys(after):
    def masked(inputs):
        mask = inputs.get("mask")
        return inputs["x"] * 2 if mask is None else inputs["x"] * 2 * mask

    run = compiled(masked)
    for number in range(2):
        inputs = {"x": torch.ones(3)}
        if after or number:
            inputs["mask"] = torch.ones(3)
        yield run(inputs), masked(inputs)


@scenario
def keys_that_are_data(after):
    """A dict under another name in each call, against its values alone."""
    doubled, doubled_values = compiled(lambda of: {name: x * 2 for name, x in of.items()}), compiled(lambda values: [x * 2 for x in values])
    for number in range(12):
        x = torch.full((4,), float(number))
        of = {f"SYM{number}": x}
        yield doubled_values(list(of.values()))[0] if after else doubled(of)[f"SYM{number}"], x * 2


@scenario
def globals_as_tensors(after):
    run = compiled(_scaled_by_tensor if after else _scaled_by_global)
    for value in range(2, 14):
        globals()["SCALE"] = value
        SCALE_TENSOR.fill_(value)
        x = torch.ones(4)
        yield run(x), x * value


SCALE = 1
SCALE_TENSOR = torch.ones(())


def _scaled_by_global(x):
    return x * SCALE


def _scaled_by_tensor(x):
    return x * SCALE_TENSOR


@scenario
def layout(after):
    run = compiled(double)
    for x in (torch.ones(4, 6), torch.ones(6, 4).t(), torch.ones(4, 12)[:, ::2]):
        yield run(x.contiguous() if after else x), double(x)


@scenario
def dtypes(after):
    run = compiled(double)
    for dtype in (torch.float32, torch.float64, torch.float16, torch.int64):
        x = torch.ones(4, dtype=dtype)
        yield run(x.to(torch.float32) if after else x).to(torch.float32), double(x).to(torch.float32)


@scenario
def gradients(after):
    run = compiled(double)
    for wants in (False, True):
        x = torch.ones(4, requires_grad=wants)
        yield run(x.detach() if after else x).detach(), double(x).detach()


@scenario
def unfrozen(after):
    """A layer that is frozen at first and unfrozen later; a parameter cannot be detached in its place."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    model[0].requires_grad_(after)

    def forward(x):
        return model(x)

    run = compiled(forward)
    for _ in range(3):
        x = torch.ones(2, 4)
        yield run(x).detach(), forward(x).detach()
        model[0].requires_grad_(True)


@scenario
def grad_modes(after):
    run = compiled(double)
    for number in range(4):
        with torch.set_grad_enabled(number % 2 == 1 and not after):
            x = torch.ones(4)
            yield run(x), double(x)


@scenario
def autocasts(after):
    def plain(x):
        return x @ x

    def inside(x):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
            return x @ x

    run = compiled(inside if after else plain)
    for number in range(2):
        x = torch.eye(4)
        if after:
            yield run(x), plain(x)
        else:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=number == 1):
                yield run(x).float(), plain(x).float()


@scenario
def threads(after):
    run = compiled(double)
    if after:
        torch.set_num_threads(1)
    for number in range(2):
        if number and not after:
            torch.set_num_threads(torch.get_num_threads() + 1)
        x = torch.ones(4)
        yield run(x), double(x)


@scenario
def duck_sizes(after):
    torch.fx.experimental._config.use_duck_shape = not after
    yield from _pairs(((4, 4), (5, 5), (6, 7)))


@scenario
def duck_sizes_warmed_up(after):
    yield from _pairs(((4, 5), (6, 8), (6, 7)) if after else ((4, 4), (5, 5), (6, 7)))


def _pairs(pairs):
    def both(x, y):
        return x.sum() + y.sum()

    run = compiled(both, dynamic=True)
    for one, other in pairs:
        x, y = torch.ones(one), torch.ones(other)
        yield run(x, y), both(x, y)


@scenario
def aliases(after):
    """Of one tensor passed three times two are cloned: with one of them the other two are still the same."""

    def attention(q, k, v):
        return q * k + v

    run = compiled(attention)
    q, k, v = torch.ones(3), torch.ones(3), torch.ones(3)
    yield run(q, k, v), attention(q, k, v)
    q = k = v = torch.ones(3)
    if after:
        q = q.clone()
        v = v.clone()
    yield run(q, k, v), attention(q, k, v)


@scenario
def limit_in_a_thread(after):
    """A limit set on the main thread, and a thread that compiles."""
    torch._dynamo.config.recompile_limit = 20
    results = []

    def work():
        if after:
            torch._dynamo.config.recompile_limit = 20
        results.extend(_names())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    yield from results


@scenario
def item(after):
    """Before and after differ in the environment only."""

    def scaled(x):
        return x * x.sum().item()

    run = compiled(scaled)
    x = torch.ones(4)
    yield run(x), scaled(x)


@scenario
def nonzero(after):
    torch._dynamo.config.capture_dynamic_output_shape_ops = after

    def positive(x):
        return torch.nonzero(x > 0) + 1

    run = compiled(positive)
    x = torch.tensor([1.0, -1.0, 2.0])
    yield run(x), positive(x)


@scenario
def branch(after):
    def choose(x):
        if after:
            return torch.where(x.sum() > 0, x + 1, x - 1)
        return x + 1 if x.sum() > 0 else x - 1

    run = compiled(choose)
    x = torch.ones(4)
    yield run(x), x + 1


@scenario
def explicit_break(after):
    def broken(x):
        x = x + 1
        if not after:
            torch._dynamo.graph_break()
        return x * 2

    run = compiled(broken)
    x = torch.ones(4)
    yield run(x), (x + 1) * 2


@scenario
def builtin_of_c(after):
    """A function written in C, which Dynamo cannot look into."""

    def checksum(x):
        return torch.tensor(float(zlib.crc32(repr(x.shape).encode())))

    @torch.library.custom_op("proof::checksum", mutates_args=())
    def opaque(x: torch.Tensor) -> torch.Tensor:
        return checksum(x)

    @opaque.register_fake
    def _(x):
        return torch.empty(())

    def labelled(x):
        return x + (opaque(x) if after else checksum(x))

    run = compiled(labelled)
    x = torch.ones(4)
    yield run(x), x + checksum(x)


@scenario
def recurrent(after):
    torch._dynamo.config.allow_rnn = after
    model = torch.nn.GRU(2, 2)
    run = compiled(lambda x: model(x)[0] * 2)
    x = torch.ones(3, 1, 2)
    yield run(x).detach(), (model(x)[0] * 2).detach()


@scenario
def logged(after):
    if after:
        torch._dynamo.config.ignore_logging_functions.add(logging.Logger.info)
    logger = logging.getLogger("scenario")

    def talkative(x):
        x = x + 1
        logger.info("half-way, %s", x.shape)
        return x * 2

    run = compiled(talkative)
    x = torch.ones(4)
    yield run(x), (x + 1) * 2


@scenario
def logged_outside(after):
    """Behind the question the call is no part of the graph."""
    logger = logging.getLogger("scenario")

    def talkative(x):
        if not after or not torch.compiler.is_compiling():
            logger.info("half-way, %s", x.shape)
        return x * 2

    run = compiled(talkative)
    x = torch.ones(4)
    yield run(x), x * 2


@scenario
def repeated(after):
    """A length regulator: how long the result is stands in a tensor."""
    repeats = torch.tensor([3, 2, 4])

    def regulated(x, total):
        out = torch.repeat_interleave(x, repeats, dim=0, **({"output_size": total} if after else {}))
        return out * 2

    run = compiled(regulated)
    x = torch.rand(3, 4)
    yield run(x, 9), torch.repeat_interleave(x, repeats, dim=0) * 2


class Padded(torch.nn.Module):
    """A layer of an audio codec: what it pads follows from its stride."""

    def __init__(self, as_python):
        super().__init__()
        if as_python:
            self.stride = 4
        else:
            self.register_buffer("stride", torch.tensor(4))

    def forward(self, x):
        extra = self.stride - x.shape[-1] % self.stride
        if extra <= 1:
            x = torch.nn.functional.pad(x, (0, 1))
        return x * 2


@scenario
def size_in_a_buffer(after):
    run = torch.compile(Padded(as_python=after), backend="eager")
    x = torch.rand(2, 7)
    yield run(x), Padded(as_python=True)(x)


@scenario
def printed(after):
    if after:
        torch._dynamo.config.reorderable_logging_functions.add(print)

    def talkative(x):
        x = x + 1
        print("half-way")
        return x * 2

    run = compiled(talkative)
    x = torch.ones(4)
    with contextlib.redirect_stdout(sys.stderr):
        yield run(x), (x + 1) * 2


@scenario
def fake_kernel(after):
    """An operator that tells torch nothing about the shape of its result."""
    library = torch.library.Library("proof", "FRAGMENT")
    library.define("halved(Tensor x) -> Tensor")
    library.impl("halved", lambda x: x[: len(x) // 2].clone(), "CPU")
    if after:
        torch.library.register_fake("proof::halved", lambda x: x.new_empty(x.shape[0] // 2), lib=library)

    def twice(x):
        return torch.ops.proof.halved(x + 1) * 2

    run = compiled(twice)
    x = torch.ones(4)
    yield run(x), twice(x)


@scenario
def checked(after):
    """With a text that is no constant torch cannot keep the assert."""

    def sane(x):
        if after:
            torch._assert_async(x.sum() > 0, "not positive")
        else:
            assert x.sum() > 0, f"not positive: {x}"
        return x * 2

    run = compiled(sane)
    x = torch.ones(4)
    yield run(x), x * 2


@scenario
def branch_on_item(after):
    """The setting for .item() keeps the number in the graph, and the branch breaks it."""

    def choose(x):
        if after:
            return torch.where(x.any(), x + 1, x)
        return x + 1 if bool(x.any()) else x

    run = compiled(choose)
    x = torch.ones(4)
    yield run(x), x + 1


@scenario
def gradient_inside(after):
    torch._dynamo.config.trace_autograd_ops = after

    def slope(x):
        y = (x**2).sum()
        return torch.autograd.grad(y, x)[0] * 1.0

    run = compiled(slope)
    x = torch.ones(4, requires_grad=True)
    yield run(x), slope(x)


@scenario
def fake_kernel_of_dynamic_shape(after):
    """The setting for such operators is on already; nothing says how large the result is."""
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    library = torch.library.Library("proof", "FRAGMENT")
    library.define("positive(Tensor x) -> Tensor", tags=(torch.Tag.dynamic_output_shape,))
    library.impl("positive", lambda x: (x > 0).nonzero(), "CPU")
    if after:

        @torch.library.register_fake("proof::positive", lib=library)
        def _(x):
            return x.new_empty((torch.library.get_ctx().new_dynamic_size(), x.dim()), dtype=torch.int64)

    def found(x):
        return torch.ops.proof.positive(x) + 1

    run = compiled(found)
    x = torch.tensor([1.0, -1.0, 2.0])
    yield run(x), found(x)


@scenario
def running_loss(after):
    """A number that is kept for people: in the graph it would be a guard of the next step."""
    meter = {"loss": 0.0}

    class Step:
        running = 0.0

        def loss(self, x):
            loss = x.square().mean()
            if after:
                return loss
            self.running += loss.item()
            return loss * 1

    step = Step()
    run = compiled(step.loss)
    for n in range(12):
        x = torch.full((4,), 0.3 * n)
        loss = run(x)
        meter["loss"] += loss.item()
        yield loss, x.square().mean()


@scenario
def list_left_outside(after):
    """As many targets as a picture has: the part that takes tensors alone is compiled."""

    class Detector(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Linear(4, 4)

        def forward(self, x, targets):
            y = self.body(x)
            return sum(((y - target) ** 2).sum() for target in targets)

    torch.manual_seed(0)
    model = Detector()
    body = model.body
    if after:
        model.body = compiled(body)
    run = model if after else compiled(model)
    for n in range(1, 12):
        x, targets = torch.ones(4), [torch.full((4,), float(k)) for k in range(n)]
        yield run(x, targets), sum(((body(x) - target) ** 2).sum() for target in targets)


@scenario
def gradient_of_a_function(after):
    """Forces of an energy. What torch.autograd.grad consumed is returned: the setting that torch names is not enough."""

    def energy(x):
        return (x**4).sum()

    def forces(x):
        if after:
            grad, value = torch.func.grad_and_value(energy)(x)
            return value, -grad
        x = x.detach().requires_grad_(True)
        value = energy(x)
        return value.detach(), -torch.autograd.grad(value, x)[0]

    run = compiled(forces)
    x = torch.ones(3)
    value, force = run(x)
    yield value, energy(x)
    yield force, -4 * x**3


@scenario
def function_called_outside(after):
    """Kernels to choose among: a partial made anew is no new function, another function is."""

    def solve(x, kernel):
        return kernel(x) * 2 + 1

    def solved(x, values):
        return values * 2 + 1

    run = compiled(solved if after else solve)
    for power in (1, 2, 3, 4):
        for kernel in (torch.sin, torch.cos, torch.tanh):
            made = functools.partial(_powered(kernel.__name__), power=power)
            x = torch.linspace(0, 1, 5)
            yield run(x, made(x) if after else made), made(x) * 2 + 1


def _powered(name):
    return {"sin": _sine, "cos": _cosine, "tanh": _tangent}[name]


def _sine(x, power):
    return torch.sin(x) * power


def _cosine(x, power):
    return torch.cos(x) * power


def _tangent(x, power):
    return torch.tanh(x) * power


@scenario
def one_hot(after):
    def coded(x):
        return (torch.nn.functional.one_hot(x, num_classes=3) if after else torch.nn.functional.one_hot(x)) + 1

    run = compiled(coded)
    x = torch.tensor([0, 2])
    yield run(x), coded(x)


def main():
    name, when = sys.argv[1:3]
    equal = all(torch.allclose(one, other, rtol=1e-4, atol=1e-6) for one, other in SCENARIOS[name](when == "after"))
    print(json.dumps({"equal": equal, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
