"""Tests of `recompile_watch.core.guarded_code`: what the line behind a guard does with the value."""

from __future__ import annotations

import time

import pytest

from recompile_watch.core.guarded_code import guarded_code

PLACE = "  # srv/model.py:38 in forward"
FIXED = " (_dynamo/variables/tensor.py:2606 in evaluate_expr)"


@pytest.mark.parametrize(
    ("guard", "does"),
    [
        ("- 0/0: req.sensor == 'b0'  # h = self.state.get(req.sensor)", "looks_up"),
        ("- 0/0: key == 'u0'  # if key not in self.memory:", "looks_up"),
        ("- 0/0: symbol == 'A'  # mean, std = SCALE[symbol]", "looks_up"),
        ("- 0/0: L['symbol'] == 'A'  # self.seen[symbol] = x", "looks_up"),
        ("- 0/0: act == 'relu'  # return ACTS[act](x)", None),  # functions, of which there are few
        ("- 0/0: act == 'relu'  # return ACTS.get(act)(x)", None),
        ("- 0/0: mode == 'a'  # if mode == 'b' and x in self.seen:", None),
        ("- 0/0: mode == 'a'  # y = table[other]", None),
        ("- 0/0: name == 'a'  # for name in names:", None),
        ("- 0/0: n == 4  # for _ in range(n):", "counts_steps"),
        ("- 0/0: self.k == 4  # xs = [f(x) for _ in range(self.k)]", "counts_steps"),
        ("- 0/0: n == 4  # while i < n:", "counts_steps"),
        ("- 0/0: n == 4  # for i in range(m): x = x * n", None),
        ("- 0/0: n == 4  # y = x * n + sum(range(m))", None),
        ("- 0/0: n == 4  # return x * n", None),
        ("- 0/0: (x.size()[0] % 4) == 0  # for _ in range(x.shape[0] // 4):", None),
        ("- 0/0: not kept  # state = kept.get(name)", "looks_up"),
        ("- 0/0: len(self.kept) == 3  # if name not in self.kept:", "looks_up"),
        ("- 0/0: len(kept) != 3  # state = kept.setdefault(name, x)", "looks_up"),
        ("- 0/0: len(xs) == 3  # y = [f(x) for x in xs]", None),
        ("- 0/0: len(xs) == 3  # y = xs[0] + xs[1]", None),
        ("- 0/0: len(xs) == 3  # y = others.get(xs_name)", None),
        ("- 0/0: self.drop.p == 0.11  # return F.dropout(input, self.p, self.training, self.inplace)", "takes_no_tensor"),
        ("- 0/0: factor == 2.5e-01  # y = F.interpolate(img, scale_factor=factor)", "takes_no_tensor"),
        ("- 0/0: other == 0.11  # return F.dropout(input, self.p, self.training)", None),
        ("- 0/0: k == 3  # y = F.interpolate(img, scale_factor=k)", None),
        ("- 0/0: len(stats) == 3  # stats.append(x.mean())", "fills"),
        ("- 0/0: len(stats) == 3  # others.append(stats[0])", None),
        ("- 0/0: len(self.active) == 3  # for i in self.active:", "loops_over"),
        ("- 0/0: len(G['PLUGINS']) != 3  # for n, p in enumerate(PLUGINS):", "loops_over"),
        ("- 0/0: len(xs) == 3  # for x in xs:", None),
        ("- 0/0: not ___dict_contains(8, self.bias.cache)  # if n not in self.cache:", "looks_up"),
        ("- 0/0: ___dict_contains(8, cache)  # return cache.get(n)", "looks_up"),
        ("- 0/0: ___dict_contains('age', quote)  # if name in quote:", None),  # what is passed
        ("- 0/0: info.heat == 2.0  # weight = math.log(1.0 + info.heat)", "does_math"),
        ("- 0/1: (1.0 + info.heat) == 2.846e-05  # weight = math.log(1.0 + info.heat)", "does_math"),
        ("- 0/0: mode == 'log'  # y = math.log(2) if mode == 'log' else x", None),
        ("- 0/0: info.heat == 2.0  # weight = info.heat * x", None),
        ("- 0/0: k.item() == 19  # sigma = self.table[k]", "indexes_by_tensor"),
        ("- 0/0: k.item() == 19  # n = int(k)", None),
        ("- 0/0: ___check_obj_id(kind, 140681652656848), type=<class '__main__.Kind'>  # if kind is Kind.K3: return x + 1", "names_member"),
        ("- 0/0: ___check_obj_id(act, 140681652656848), type=<class 'function'>  # return act(x)", None),
    ],
)
def test_what_the_line_does(guard: str, does: str | None) -> None:
    """The name of the value stands where it is a key, the end of a range, or beside a member of its class."""
    assert guarded_code(f"    {guard}{PLACE}".encode()).get("statement") == does


def test_a_closure_s_number_is_known_by_the_hint() -> None:
    """torch names the cell, and in a hint the variable; once it is dynamic there is no hint, but the place that fixed it."""
    first = '- 0/0: rule.__closure__[1].cell_contents == 1  # for _ in range(rounds):  # srv/m.py:16 in rule (HINT: guard on "rounds")'
    other = '- 0/0: rule.__closure__[1].cell_contents == 1  # for _ in range(rounds):  # srv/m.py:16 in rule (HINT: guard on "scale")'
    fixed = f"- 0/1: rule.__closure__[1].cell_contents == 2  # for _ in range(rounds):  # srv/m.py:16 in rule{FIXED}"
    assert [guarded_code(text.encode()).get("statement") for text in (first, other, fixed)] == ["counts_steps", None, "counts_steps"]
    assert guarded_code(fixed.encode()) == {
        "fixed_by": "_dynamo/variables/tensor.py:2606 in evaluate_expr", "statement": "counts_steps", "fixed_at": "srv/m.py:16",
        "fixed_code": "for _ in range(rounds):", "fixed_in": "rule",
    }  # fmt: skip


def test_a_list_of_modules_has_an_end() -> None:
    """A slice of it runs other modules each time; an index picks one, which can be passed."""
    place = "nn/modules/container.py:384 in __getitem__"
    cut = guarded_code(f"- 0/0: self.depth == 1  # return self.__class__(list(self._modules.values())[idx])  # {place}".encode())
    assert cut.get("statement") == "cuts_modules"
    assert guarded_code(f"- 0/0: index == 1  # idx = operator.index(idx)  # {place}".encode()) == {}


def test_a_module_dict_has_its_modules_from_the_beginning() -> None:
    """What is looked up there is no state that grows."""
    assert guarded_code(b"- 0/0: task == 't0'  # return self._modules[key]  # nn/modules/container.py:555 in __getitem__") == {}
    assert guarded_code(b"- 0/0: key == 't0'  # return self._modules[key]  # nn/modules/container.py:555 in __getitem__") == {}


@pytest.mark.parametrize("filling", [" ", "a.", "[ ", "x in ", "(", "# "])
def test_a_hostile_line_takes_no_time(filling: str) -> None:
    """Whatever stands behind the guard."""
    begin = time.perf_counter()
    guarded_code(f"- 0/0: key == 'a'  # {filling * 100_000}{PLACE}".encode())
    guarded_code(f"- 0/0: {filling * 100_000} == 4  # range({PLACE}".encode())
    assert time.perf_counter() - begin < 0.5
