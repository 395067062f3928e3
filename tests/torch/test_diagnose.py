"""The diagnostic on the built-in workloads and on bad ones, under a real torch on a CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import run
from tests.conftest import ROOT

WORKLOAD = """
import os, torch

class Workload:
    def build(self):
        return torch.nn.Linear(8, 8)
    def inputs(self, n):
        return [torch.randn(4, 8) for _ in range(n)]
    def call(self, state, x):
        {call}
        return state(x)
    {more}

def make():
    return Workload()
"""


def diagnose(tmp_path: Path, python: str, *options: str) -> tuple[int, dict[str, dict[str, object]], dict[str, object]]:
    """Exit status, candidates by name, and the whole report."""
    options = ("--python", python, "--device", "cpu", "--state-dir", str(tmp_path / "state"), "--format", "json", *options)
    done = run("diagnose", *options, cwd=tmp_path, timeout_s=600)
    report = json.loads(done.stdout)
    return done.returncode, {one["name"]: one for one in report["candidates"]}, report


def structural(tmp_path: Path, python: str, candidates: str, *, call: str = "pass", more: str = "pass") -> tuple[int, dict[str, dict[str, object]]]:
    """The structural stage of a workload of one's own."""
    (tmp_path / "own.py").write_text(WORKLOAD.format(call=call, more=more))
    code, found, _ = diagnose(tmp_path, python, "--workload", "own:make", "--stage", "structural", "--candidates", candidates)
    return code, found


def test_kv_storm(tmp_path: Path, python: str) -> None:
    """The bot's limit hit line for line; no setting mends it, leaving the function out does; eager, with the limit as a reason."""
    code, found, report = diagnose(tmp_path, python, "--builtin", "kv-storm", "--stage", "structural", "--log", str(tmp_path / "torch.log"))
    verdict = report["verdict"]
    assert isinstance(verdict, dict) and (code, verdict["choose"]) == (0, "eager")
    assert any("the recompile limit was hit once" in reason for reason in verdict["because"])
    log = "\n".join(found["default"]["log"])  # type: ignore[arg-type]
    for words in ("torch._dynamo hit config.recompile_limit (8)", "function: 'positional_embedding'", "kv_cache._current_idx[7] == 0"):
        assert words in log
    counts = found["default"]["structural"]
    assert isinstance(counts, dict) and counts["limit_hits"] == 1 and counts["recompiles"] >= 10 and counts["late_recompiles"] == 0
    raised = found["recompile_limit=64"]["structural"]
    assert isinstance(raised, dict) and raised["recompiles"] > counts["recompiles"] and raised["limit_hits"] == 0
    analyzed = json.loads(run("analyze", "--format", "json", str(tmp_path / "torch.log")).stdout)
    assert analyzed["counts"]["recompile_limit_hit"] == 4  # default, dynamic and the two flags; not with the limit raised


def test_an_excluded_function(tmp_path: Path, python: str) -> None:
    """The first advice on such a log, as a candidate: few recompiles, no limit."""
    _, found, _ = diagnose(tmp_path, python, "--builtin", "kv-storm", "--stage", "structural", "--candidates", "exclude=positional_embedding")
    counts = found["exclude=positional_embedding"]["structural"]
    assert isinstance(counts, dict) and counts["limit_hits"] == 0 and counts["recompiles"] < 10


# The published interface of Kronos, and what makes it compile again: a rotary embedding that remembers the length of the history.
KRONOS = """
import torch

class Kronos(torch.nn.Module):
    def __init__(self, s1_bits, s2_bits, layers, width, *_):
        super().__init__()
        self.s1, self.s2 = torch.nn.Embedding(2**s1_bits, width), torch.nn.Embedding(2**s2_bits, width)
        self.head1, self.head2 = torch.nn.Linear(width, 2**s1_bits), torch.nn.Linear(width, 2**s2_bits)
        self.seq_len_cached = self.cached = None

    def decode_s1(self, s1_ids, s2_ids, stamp=None, padding_mask=None):
        x = self.s1(s1_ids) + self.s2(s2_ids) + stamp.sum(-1, keepdim=True)
        if x.shape[1] != self.seq_len_cached:
            self.seq_len_cached = x.shape[1]
            self.cached = torch.arange(x.shape[1]).unsqueeze(-1).cos()
        x = x * self.cached
        return self.head1(x), x

    def decode_s2(self, context, s1_ids, padding_mask=None):
        return self.head2(context + self.s1(s1_ids))
"""


def test_the_kronos_template(tmp_path: Path, python: str) -> None:
    """It runs beside a model of that interface, and shows what a growing history costs."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "kronos.py").write_text(KRONOS)
    (tmp_path / "kronos_workload.py").write_bytes((ROOT / "workloads" / "kronos_template.py").read_bytes())
    options = ("--workload", "kronos_workload:make", "--stage", "structural", "--candidates", "default,variant:clone")
    _, found, _ = diagnose(tmp_path, python, *options)
    for name in ("default", "variant:clone"):
        counts = found[name]["structural"]
        assert isinstance(counts, dict) and counts["recompiles"] >= 3, found[name]


def test_where_it_was_measured(tmp_path: Path, python: str) -> None:
    """Interpreter and versions, the settings as the process read them, how long it took, and what each call compiled."""
    code, found, report = diagnose(tmp_path, python, "--builtin", "kv-storm", "--stage", "structural", "--candidates", "default,recompile_limit=64")
    made, default, raised = report["provenance"], found["default"], found["recompile_limit=64"]
    assert isinstance(made, dict) and made["python"] == python and made["python_version"] and made["threads"] == 1 and made["seconds"] > 1
    limits = [next(value for name, value in one["read_back"].items() if name.endswith("_limit")) for one in (default, raised)]  # type: ignore[attr-defined]
    assert limits == ["8", "64"] and default["read_back"]["threads"] == "1" and default["process_s"] > 0.5  # type: ignore[index, operator]
    seen = default["structural"]
    assert isinstance(seen, dict) and seen["calls"] == len(seen["compiles_by_call"]) > seen["warmup_calls"] > 0
    late = seen["compiles_by_call"][seen["warmup_calls"] :]
    assert sum(seen["compiles_by_call"]) >= seen["recompiles"] and sum(late) >= seen["late_recompiles"] == 0 and code == 0


def test_dynamic_shapes(tmp_path: Path, python: str) -> None:
    """One recompile, then quiet; none with dynamic=True."""
    _, found, _ = diagnose(tmp_path, python, "--builtin", "dynamic-shapes", "--stage", "structural", "--candidates", "default,dynamic")
    counts = {name: one["structural"]["recompiles"] for name, one in found.items()}  # type: ignore[index]
    assert counts == {"default": 1, "dynamic": 0}


def test_steady(tmp_path: Path, python: str) -> None:
    """Compiling wins clearly, and outputs are eager's within rounding. A machine may be too noisy for a verdict, but not three times."""
    for _ in range(3):
        code, found, report = diagnose(tmp_path, python, "--builtin", "steady", "--candidates", "default", "--profile", "balanced")
        if code != 3:
            break
    timing, accuracy = found["default"]["timing"], found["default"]["accuracy"]
    assert isinstance(timing, dict) and isinstance(accuracy, dict)
    assert timing["ci_low"] > 1 and timing["calls"] >= 30 and timing["first_call_s"] > 0.1 and accuracy["is_close"]
    assert (code, report["verdict"]["choose"]) == (0, "default")  # type: ignore[index]


def test_random_numbers(tmp_path: Path, python: str) -> None:
    """A model that draws numbers itself is compared with eager's numbers: compiled code that draws others is no error."""
    (tmp_path / "own.py").write_text(WORKLOAD.format(call="pass", more="pass").replace("torch.nn.Linear(8, 8)", "torch.nn.Dropout(0.5)"))
    _, found, _ = diagnose(tmp_path, python, "--workload", "own:make", "--stage", "timed", "--candidates", "default")
    accuracy = found["default"]["accuracy"]
    assert isinstance(accuracy, dict) and accuracy["noise_floor_pct"] > 10 and accuracy["same_seed_delta"] == 0 and accuracy["mae_pct"] < 1e-3


def test_an_interpreter_without_torch(tmp_path: Path) -> None:
    """Status 3 and one line that names the option."""
    (tmp_path / "own.py").write_text("")
    done = run("diagnose", "--workload", "own:make", "--device", "cpu", "--state-dir", str(tmp_path), cwd=tmp_path, env={"PYTHONSAFEPATH": "1"})
    assert done.returncode == 3 and done.stderr.count("\n") == 1 and "--python names the interpreter" in done.stderr


def test_settings_that_do_not_take_effect(tmp_path: Path, python: str) -> None:
    """A function that is not there, and a variant that is not offered, are failed candidates; the rest is judged."""
    _, found = structural(tmp_path, python, "default,exclude=no_such_function,variant:none")
    assert [one["status"] for one in found.values()] == ["ok", "ineffective", "ineffective"]
    assert "no_such_function" in str(found["exclude=no_such_function"]["reason"])


def test_a_candidate_that_fails(tmp_path: Path, python: str) -> None:
    """What fails only when compiled is rejected with its error; eager is chosen."""
    code, found = structural(
        tmp_path, python, "default", call="if torch.compiler.is_compiling() or hasattr(state, '_orig_mod'): raise ValueError('no')"
    )
    assert code == 0 and found["default"]["status"] == "failed" and "ValueError: no" in str(found["default"]["reason"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("raise RuntimeError('eager is broken')", "fails in eager mode: RuntimeError: eager is broken"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("os._exit(3)", "ended with status 3"),
        ('print(\'{"record": "outcome", "status": "ok"}\' * 3); raise RuntimeError(\'after\')', "RuntimeError: after"),
    ],
)
def test_workloads_that_break(tmp_path: Path, python: str, call: str, words: str) -> None:
    """Whatever a workload does in eager mode, the result says it, and no verdict is given."""
    (tmp_path / "own.py").write_text(WORKLOAD.format(call=call, more="pass"))
    code, _, report = diagnose(tmp_path, python, "--workload", "own:make", "--stage", "structural", "--candidates", "default")
    assert code == 3 and words in str(report["verdict"]["because"])  # type: ignore[index]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("def build(self): raise OSError('no weights')", "build() of the workload fails: OSError: no weights"),
        ("def inputs(self, n): return None", "inputs(4) of the workload fails: TypeError"),
        ("def apply(self, state, compile_fn): raise KeyError('layer')", "apply() of the workload fails: KeyError: 'layer'"),
        ("def variants(self): return ['a']", "variants() of the workload gives no dict"),
        ("def variants(self): import sys; sys.exit(4)", "variants() of the workload fails: SystemExit: 4"),
    ],
)
def test_a_method_that_breaks_is_named(tmp_path: Path, python: str, more: str, words: str) -> None:
    """Once, as what is wrong with the workload; no candidate is blamed, and none chosen."""
    (tmp_path / "own.py").write_text(WORKLOAD.format(call="pass", more=more))
    code, found, report = diagnose(tmp_path, python, "--workload", "own:make", "--stage", "structural", "--candidates", "default")
    assert code == 3 and words in str(report["verdict"]["because"]) and found["default"]["status"] == "skipped"  # type: ignore[index]


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ("def apply(self, state, c): os.kill(os.getpid(), 11)", "crashed"),
        ("def apply(self, state, c): import time; time.sleep(100)", "timeout"),
        ("def apply(self, state, c):\n        c(state, mode='default', backend='no such backend')", "failed"),
    ],
)
def test_what_breaks_when_compiled_only_is_the_candidates_fault(tmp_path: Path, python: str, more: str, status: str) -> None:
    """Eager ran before: it is chosen, whatever became of the process."""
    (tmp_path / "own.py").write_text(WORKLOAD.format(call="pass", more=more))
    options = ("--workload", "own:make", "--stage", "structural", "--candidates", "default", "--time-limit", "20")
    code, found, report = diagnose(tmp_path, python, *options)
    assert (code, found["default"]["status"], report["verdict"]["choose"]) == (0, status, "eager")  # type: ignore[index]


def test_a_variant_that_is_none_does_not_stop_the_rest(tmp_path: Path, python: str) -> None:
    """It fails, the others are judged."""
    _, found = structural(tmp_path, python, "default,variant:x", more="def variants(self): return {'x': 3}")
    assert (found["default"]["status"], found["variant:x"]["status"]) == ("ok", "failed")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("def metric(self, out, x): raise OSError('no prices')", "metric() of the workload fails: OSError: no prices"),
        ("def metric(self, out, x): return None", "metric() of the workload gives no number, but None"),
        ("def reference(self, x): raise OSError('no truth')", "reference() of the workload fails: OSError: no truth"),
        ("def call(self, state, x): state(x)", "call() of the workload gives no tensor and no number"),
    ],
)
def test_outputs_that_cannot_be_compared(tmp_path: Path, python: str, more: str, words: str) -> None:
    """What was not compared is never equal: the run ends with the control, and says why."""
    (tmp_path / "own.py").write_text(WORKLOAD.format(call="pass", more=more))
    code, _, report = diagnose(tmp_path, python, "--workload", "own:make", "--stage", "timed", "--candidates", "default")
    assert code == 3 and words in str(report["verdict"]["because"])  # type: ignore[index]


def test_arrays_are_compared(tmp_path: Path, python: str) -> None:
    """What has a list of numbers and a type, as an array of numpy, counts as a tensor; a gap that eager has not is an error."""
    more = """def call(self, state, x):
        import types
        out = state(x).detach() + (float("nan") if hasattr(state, "_orig_mod") else 0)
        return types.SimpleNamespace(tolist=out.tolist, dtype="float32")"""
    (tmp_path / "own.py").write_text(WORKLOAD.format(call="pass", more=more))
    _, found, _ = diagnose(tmp_path, python, "--workload", "own:make", "--stage", "timed", "--candidates", "default")
    gates = {gate["gate"]: gate for gate in found["default"]["gates"]}  # type: ignore[attr-defined]
    assert not gates["error"]["passed"] and found["default"]["success"] != "0/0"


def test_a_workload_that_takes_all_memory(tmp_path: Path, python: str) -> None:
    """With a memory limit a candidate fails with the words of the allocator, and the machine is left alone."""
    config = tmp_path / "rw.toml"
    config.write_text('[diagnose]\nmemory_limit = "6GB"\n')
    (tmp_path / "own.py").write_text(WORKLOAD.format(call="torch.empty(1 << 36).fill_(1)", more="pass"))
    options = ("--workload", "own:make", "--stage", "structural", "--candidates", "default", "--config", str(config))
    code, _, report = diagnose(tmp_path, python, *options)
    assert code == 3 and "allocate" in str(report["verdict"]["because"])  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "has no attribute 'make'"),
        ("import no_such_module", "No module named 'no_such_module'"),
        ("def make(): return 3", "has no method build"),
    ],
)
def test_modules_that_are_no_workload(tmp_path: Path, python: str, text: str, words: str) -> None:
    """One line that says what to change."""
    (tmp_path / "own.py").write_text(text)
    code, _, report = diagnose(tmp_path, python, "--workload", "own:make", "--candidates", "default")
    assert code == 3 and words in str(report["problems"])


def test_the_template_runs(tmp_path: Path, python: str) -> None:
    """What `diagnose init` writes is a workload that can be measured as it is."""
    run("diagnose", "init", "fresh.py", cwd=tmp_path)
    _, found, _ = diagnose(tmp_path, python, "--workload", "fresh:make", "--stage", "structural", "--candidates", "default")
    assert found["default"]["status"] == "ok"


def test_chance_does_not_win_here(tmp_path: Path, python: str) -> None:
    """Eager against eager on this machine: a variant that is the same model is not chosen."""
    (tmp_path / "own.py").write_text(WORKLOAD.format(call="pass", more="def apply(self, state, compile_fn): compile_fn(lambda y: y)(torch.ones(1))"))
    options = ("--workload", "own:make", "--stage", "timed", "--candidates", "default", "--profile", "max-performance")
    _, found, report = diagnose(tmp_path, python, *options)
    assert report["verdict"]["choose"] in (None, "eager") and found["default"]["status"] == "ok"  # type: ignore[index]
