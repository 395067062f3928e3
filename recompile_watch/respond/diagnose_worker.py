"""Runs a workload eagerly and under one candidate setting of torch.compile, and says what it saw, as JSON lines.

This file is run by path under the workload's own interpreter: it needs Python 3.9 and torch 2.3, and imports nothing of
recompile-watch. One request (a line of JSON) comes on standard input; records leave on what was standard output when it
started. Whatever the workload prints goes to standard error, where torch logs too. One process serves one candidate.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import importlib
import json
import logging
import math
import os
import random
import resource
import select
import signal
import socket
import sys
import threading
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    import torch

MAX_ROUNDS = 8  # rounds over all inputs in which compiling may come to rest
QUIET_ROUNDS = 3  # a CUDA graph is warmed up, recorded and replayed before it shows what it costs
LATE_ROUNDS = 2  # rounds of the structural stage in which nothing may be compiled any more
HEARTBEAT_S = 2.0
MESSAGE_BYTES = 1 << 16
LEAST_MS = 3.0  # what is shorter is timed several calls at a time: else the switch from arm to arm would be part of it
MAX_REPEAT = 50
MOST_PAIRS = 3  # times as many as asked for, where they scatter
STEADY = 0.01  # spread of the middle half over the root of the number: an interval of about 4 %
OTHER_SEED = 7919  # far from the seeds of the calls
PR_SET_PDEATHSIG = 1  # linux/prctl.h
LIMIT_NAMES = ("recompile_limit", "cache_size_limit")  # torch 2.7 renamed it
FLAGS = ("allow_unspec_int_on_nn_module", "capture_scalar_outputs")
# As torch.testing.assert_close, but for single precision, where compiled sums differ in their order: there as torch's benchmarks.
TOLERANCE = {"float64": 1e-7, "float32": 1e-4, "bfloat16": 1.6e-2, "float16": 1e-3}
HALF = ("float16", "bfloat16")


class BadWorkloadError(Exception):
    """The workload cannot be used at all: no candidate can."""


class CandidateError(Exception):
    """This candidate cannot be run; others may."""


class IneffectiveError(Exception):
    """A setting does not read back as it was set."""


class Report:
    """The way out: one JSON object a line, and a sign of life while nothing else is said."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._lock = out, threading.Lock()
        self.phase, self.done, self.total = "starting", 0, 0
        threading.Thread(target=self._beat, daemon=True).start()

    def say(self, record: str, **fields: object) -> None:
        with self._lock:
            self._out.write(json.dumps({"record": record, **fields}) + "\n")
            self._out.flush()

    def enter(self, phase: str, total: int = 0) -> None:
        self.phase, self.done, self.total = phase, 0, total
        self.say("progress", phase=phase, done=0, total=total)

    def _beat(self) -> None:
        while True:
            time.sleep(HEARTBEAT_S)
            self.say("progress", phase=self.phase, done=self.done, total=self.total)


def main() -> None:
    del sys.path[0]  # this file's own folder, whose modules would shadow the workload's and the standard library's
    if sys.argv[1:] == ["nursery"]:
        nurse()
    else:
        serve({})


def serve(changes: dict) -> None:  # type: ignore[type-arg]
    """One run. changes: of its request."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a workload prints must not look like a record
    request = {**json.loads(sys.stdin.readline()), **changes}
    behave(request)
    report = Report(out)
    try:
        outcome = run(request, report)
    except BadWorkloadError as error:
        outcome = {"status": "failed", "reason": str(error), "fault": "workload"}
    except CandidateError as error:
        outcome = {"status": "failed", "reason": str(error)}
    except IneffectiveError as error:
        outcome = {"status": "ineffective", "reason": str(error)}
    except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever happened is a result for the parent to judge)
        outcome = {"status": "crashed", "reason": words_of(error)}
    report.say("outcome", **outcome)
    os._exit(0)  # nothing at exit may hang or fail after the result is out


def nurse() -> None:
    """Imports torch and forks a process for each run that is asked for, until nobody is left to ask. Standard input is a socket."""
    channel = socket.socket(fileno=os.dup(0))
    request = json.loads(channel.recv(MESSAGE_BYTES))
    behave(request)
    gc.disable()
    import_torch()
    gc.freeze()
    here, there = os.pipe()
    os.set_blocking(there, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(there)
    channel.send(b'{"ready": true}')
    with contextlib.suppress(OSError):
        while True:
            readable = select.select([channel.fileno(), here], [], [])[0]
            if here in readable:
                os.read(here, 1 << 16)
                bury(channel)
            if channel.fileno() in readable:
                message, fds, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, 3)
                if not message:
                    break
                asked = json.loads(message)
                pid = os.fork()
                if pid == 0:
                    leave_home(channel, (here, there), fds)
                    os.environ.update(asked["environment"])
                    serve({"parent": os.getppid(), "nice": 0})
                for fd in fds:
                    os.close(fd)
                channel.send(json.dumps({"run": asked["run"], "pid": pid}).encode())
    os._exit(0)


def bury(channel: socket.socket) -> None:
    """Tells how what was forked ended."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            status = os.WEXITSTATUS(ended[1]) if os.WIFEXITED(ended[1]) else -os.WTERMSIG(ended[1])
            channel.send(json.dumps({"pid": ended[0], "status": status}).encode())


def leave_home(channel: socket.socket, wake: tuple[int, int], fds: Sequence[int]) -> None:
    """What was forked becomes a process of its own."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    channel.close()
    for fd in wake:
        os.close(fd)
    for target, fd in enumerate(fds):
        os.dup2(fd, target)
        os.close(fd)


def import_torch() -> None:
    globals()["torch"] = importlib.import_module("torch")
    importlib.import_module("torch._dynamo")


def behave(request: dict) -> None:  # type: ignore[type-arg]
    """The process steps back behind everything else on the machine, and dies with its parent."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != request["parent"]:
            os._exit(1)  # the parent died before the signal was asked for
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, request.get("cpus") or os.sched_getaffinity(0))
    with contextlib.suppress(OSError):
        os.nice(request["nice"])
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if request.get("memory_limit_mb") and request["device"] == "cpu":  # CUDA reserves far more addresses than it uses
            resource.setrlimit(resource.RLIMIT_AS, (request["memory_limit_mb"] * 1_000_000,) * 2)


def run(request: dict, report: Report) -> dict:  # type: ignore[type-arg]
    """The outcome of one request."""
    settings = request["settings"]
    if "dynamic_sources" in settings:
        os.environ["TORCH_COMPILE_DYNAMIC_SOURCES"] = settings["dynamic_sources"]
    report.enter("importing torch")
    gc.disable()  # modules are never garbage: half a second less
    try:
        import_torch()
    except Exception as error:  # noqa: BLE001 (a broken installation fails in any way it likes)
        return {
            "status": "crashed",
            "reason": f"torch cannot be imported ({words_of(error)}); --python names the interpreter",
            "fault": "interpreter",
        }
    gc.freeze()
    gc.enable()
    is_cuda = request["device"] == "cuda"
    if is_cuda and not torch.cuda.is_available():
        return {"status": "crashed", "reason": f"torch {torch.__version__} sees no GPU", "fault": "interpreter"}
    if is_cuda and request.get("memory_fraction"):
        torch.cuda.set_per_process_memory_fraction(request["memory_fraction"])
    if request.get("threads"):
        torch.set_num_threads(request["threads"])
    workload = workload_of(request)
    variants = variants_of(workload)
    device = torch.cuda.get_device_name() if is_cuda else "cpu"
    report.say("hello", torch=torch.__version__, python=sys.version.split()[0], device=device, variants=sorted(variants))
    counter = Counter()
    read_back = set_config(settings)
    other, name = workload, settings.get("variant")
    if name is not None:
        if name not in variants:
            raise IneffectiveError(f"the workload has no variant '{name}'; it has {', '.join(sorted(variants)) or 'none'}")
        other = variants[name]
        check_workload(other, f"its variant '{name}'", CandidateError)
    return {**Measurement(request, report, counter, workload, other).outcome(), "read_back": read_back}


def workload_of(request: dict) -> object:  # type: ignore[type-arg]
    """The workload. Raises BadWorkloadError with what to change."""
    target = request["workload"]
    sys.path[0:0] = request["paths"]
    module_name, _, factory_name = target.partition(":")
    try:
        factory: object = importlib.import_module(module_name)
        for name in factory_name.split("."):
            factory = getattr(factory, name)
        workload: object = factory()  # type: ignore[operator]
    except (Exception, SystemExit) as error:
        raise BadWorkloadError(f"workload {target} cannot be made: {words_of(error)}") from error
    check_workload(workload, f"workload {target}")
    return workload


def check_workload(workload: object, name: str, kind: type[Exception] = BadWorkloadError) -> None:
    missing = [method for method in ("build", "inputs", "call") if not callable(getattr(workload, method, None))]
    if missing:
        raise kind(f"{name} has no method {', '.join(missing)}; 'recompile-watch diagnose init' writes one that has all")


def variants_of(workload: object) -> dict:  # type: ignore[type-arg]
    found = hooked("variants()", workload.variants) if hasattr(workload, "variants") else {}
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise BadWorkloadError("variants() of the workload gives no dict of workloads by name")
    return found


def hooked(name: str, method: Callable[..., object], *arguments: object, kind: type[Exception] = BadWorkloadError) -> object:
    """What a method of the workload gives; what it raises gets the method's name."""
    try:
        return method(*arguments)
    except (Exception, SystemExit) as error:
        raise kind(f"{name} of the workload fails: {words_of(error)}") from error


def set_config(settings: dict) -> dict[str, object]:  # type: ignore[type-arg]
    """Sets what the candidate asks of Dynamo; what reads back, with the limit and the threads in force."""
    config = importlib.import_module("torch._dynamo.config")
    limit = next(name for name in LIMIT_NAMES if hasattr(config, name))
    wanted = {limit if name == "recompile_limit" else name: value for name, value in settings.items() if name in (*FLAGS, "recompile_limit")}
    for name, value in wanted.items():
        set_key(config, name, value)
    read_back = {name: getattr(config, name) for name in dict.fromkeys((limit, *wanted))} | {"threads": torch.get_num_threads()}
    if "dynamic_sources" in settings:
        found = getattr(getattr(torch.compiler, "config", None), "dynamic_sources", None)
        if found != settings["dynamic_sources"]:
            raise IneffectiveError(f"torch {torch.__version__} does not read TORCH_COMPILE_DYNAMIC_SOURCES; it came with 2.7")
        read_back["dynamic_sources"] = found
    if "exclude" in settings:
        read_back["functions_excluded"] = exclude(settings["exclude"])
    return read_back


def set_key(config: object, name: str, value: object) -> None:
    try:
        setattr(config, name, value)
    except AttributeError:
        raise IneffectiveError(f"torch {torch.__version__} has no setting {name}") from None
    if getattr(config, name) != value:
        raise IneffectiveError(f"{name} was set to {value} and reads {getattr(config, name)}")


def exclude(name: str) -> int:
    """Leaves every function of that name (or qualified name) out of compilation, where it is defined; how many there are."""
    functions = [one for one in gc.get_objects() if isinstance(one, types.FunctionType) and name in (one.__name__, one.__qualname__)]
    found = 0
    for function in functions:
        path = function.__qualname__.split(".")
        if (function.__module__ or "torch").partition(".")[0] != "torch" and "<locals>" not in path:
            owner = functools.reduce(getattr, path[:-1], sys.modules.get(function.__module__))
            setattr(owner, path[-1], torch.compiler.disable(function))
            found += 1
    if not found:
        raise IneffectiveError(f"no function '{name}' is defined in the workload's modules")
    return found


class Counter(logging.Handler):
    """What torch compiled so far: from its own metrics where it has them (2.7), else from what it logs."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._limit_hits = self._logged_recompiles = self._logged_skips = 0
        utils = importlib.import_module("torch._dynamo.utils")
        self._counters = utils.counters
        self._metrics: Callable[[], list[object]] | None = None
        if "compile_id" in getattr(utils.CompilationMetrics, "__dataclass_fields__", {}):
            utils.set_compilation_metrics_limit(100_000)  # the default keeps 64
            self._metrics = utils.get_compilation_metrics
        torch._logging.set_logs(recompiles=True, graph_breaks=True, perf_hints=True)
        for name in ("torch._dynamo.convert_frame", "torch._dynamo.guards.__recompiles", "torch._inductor", "torch._inductor.__perf_hints"):
            logging.getLogger(name).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self._limit_hits += "torch._dynamo hit config." in text
        self._logged_recompiles += text.startswith("Recompiling function ")
        self._logged_skips += "skipping cudagraphs due to" in text

    def seen(self) -> dict[str, int]:
        """Recompiles, graph breaks, limit hits, frames compiled and skipped CUDA graphs until now."""
        graphs = self._counters["stats"]["unique_graphs"]
        recompiles, frames = max(self._logged_recompiles - self._limit_hits, 0), graphs
        if self._metrics is not None:
            compiled = {str(one.compile_id) for one in self._metrics() if one.compile_id is not None and one.fail_type is None}  # type: ignore[attr-defined]
            recompiles = sum(not name.endswith("/0") for name in compiled)
            frames = len(compiled) if graphs else 0
        return {
            "recompiles": recompiles, "graph_breaks": sum(self._counters["graph_break"].values()), "limit_hits": self._limit_hits,
            "frames_compiled": frames, "cudagraph_skips": max(self._counters["inductor"]["cudagraph_skips"], self._logged_skips),
        }  # fmt: skip

    def compiles(self) -> int:
        """A number that grows with each compilation, the refused ones too."""
        return int(self._counters["frames"]["total"]) + self._limit_hits

    def seconds(self) -> float | None:
        """What compiling took, where torch says it."""
        times = [getattr(one, "duration_us", None) or 0 for one in self._metrics()] if self._metrics is not None else []
        return sum(times) / 1e6 if any(times) else None


class Arm:
    """One instance of the workload with its own state: nothing that one arm keeps helps or hinders the other."""

    def __init__(self, workload: object, seed: int, compile_fn: Callable[..., object] | None = None) -> None:
        self._workload = workload
        self.calls = self.calls_ok = 0
        self.error = ""
        seed_all(seed)
        kind = BadWorkloadError if compile_fn is None else CandidateError
        self._state = hooked("build()", workload.build, kind=kind)  # type: ignore[attr-defined]
        if compile_fn is not None:
            self._state = applied(workload, self._state, compile_fn)

    def call(self, x: object, seed: int) -> object:
        """The output; raises what the workload raises."""
        return self.timed(x, seed, 1)[0]

    def timed(self, x: object, seed: int, repeat: int) -> tuple[object, tuple[float, float, int]]:
        """The output, and per call the milliseconds by the clock and of the processor; then how often it waited for something."""
        seed_all(seed)
        self.calls += repeat
        synchronize()
        waits, start, start_cpu = waited(), time.perf_counter(), time.thread_time()
        try:
            for _ in range(repeat):
                out = self._workload.call(self._state, x)  # type: ignore[attr-defined]
            synchronize()
        except Exception as error:
            self.error = self.error or words_of(error)
            raise
        clock, cpu = time.perf_counter() - start, time.thread_time() - start_cpu
        self.calls_ok += repeat
        return out, (clock * 1000 / repeat, cpu * 1000 / repeat, waited() - waits)

    def tensors(self, x: object, seed: int) -> list[torch.Tensor]:
        """The tensors of an output, as copies: a later call may write into the same memory."""
        return copied(self.call(x, seed))


def applied(workload: object, state: object, compile_fn: Callable[..., object]) -> object:
    """The state, compiled: as the workload says, else its ``model``, else itself."""
    if hasattr(workload, "apply"):
        try:
            result = workload.apply(state, compile_fn)
        except (Exception, SystemExit) as error:
            state = workload.build()  # type: ignore[attr-defined]
            hooked("apply()", workload.apply, state, lambda model, *_, **__: model)  # without torch it must work
            raise CandidateError(f"apply() of the workload fails: {words_of(error)}") from error
        return state if result is None else result
    if hasattr(state, "model"):
        state.model = compile_fn(state.model)
        return state
    if callable(state):
        return compile_fn(state)
    raise BadWorkloadError("what build() gives has no 'model' and cannot be called; add apply(state, compile_fn) to the workload")


class Measurement:
    """One candidate against eager."""

    def __init__(self, request: dict, report: Report, counter: Counter, workload: object, other: object) -> None:  # type: ignore[type-arg]
        self._request, self._report, self._counter = request, report, counter
        self._workload, self._other = workload, other
        self._seed, self._is_control = request["seed"], request["name"] == "eager"
        self._calls: list[list[float]] = []

    def outcome(self) -> dict[str, object]:
        """Eager first, alone: where it fails there is nothing to measure. Then the candidate until it is at rest, then both in turn."""
        inputs, is_timed = self._inputs(), self._request["stage"] == "timed"
        before = allocated()
        self._eager = Arm(self._workload, self._seed)
        eager_bytes = allocated() - before
        for x in inputs:
            try:
                self._eager.call(x, self._seed)
            except Exception as error:
                raise BadWorkloadError(f"the workload fails in eager mode: {words_of(error)}") from error
        self._report.say("eager", calls=self._eager.calls_ok)
        self._arm = Arm(self._other, self._seed, None if self._is_control else self._compile_fn())
        self._warm_up(inputs)
        at_rest = self._counter.seen()
        found: dict[str, object] = {"warmup_calls": len(self._calls)}
        if is_timed and not self._arm.error:
            found |= self._timed(inputs, eager_bytes)
        elif not self._arm.error:
            for x in inputs * LATE_ROUNDS:
                self._watched(x)
        seen = self._counter.seen()
        seen["late_recompiles"] = seen["recompiles"] - at_rest["recompiles"]
        found |= {"calls": self._arm.calls, "calls_ok": self._arm.calls_ok, "warmup": self._calls, "structure": seen}
        if is_timed and not self._arm.error:
            found["accuracy"] = self._accuracy(inputs)
        return {**found, "status": "failed" if self._arm.error else "ok", "reason": self._arm.error}

    def _inputs(self) -> list[object]:
        wanted = self._request["inputs"]
        inputs = hooked(f"inputs({wanted})", lambda: list(self._workload.inputs(wanted)))  # type: ignore[attr-defined]
        assert isinstance(inputs, list)
        if not inputs:
            raise BadWorkloadError(f"inputs({wanted}) of the workload gives none")
        return inputs

    def _compile_fn(self) -> Callable[..., object]:
        settings = self._request["settings"]
        options = {name: settings[name] for name in ("mode", "dynamic") if name in settings}
        if self._request["stage"] == "structural":
            options["backend"] = "eager"
        return functools.partial(torch.compile, **options)

    def _warm_up(self, inputs: Sequence[object]) -> None:
        """Until a whole round over all inputs compiled nothing, and CUDA graphs had their calls."""
        least = QUIET_ROUNDS if self._request["device"] == "cuda" else 1
        self._report.enter("warming up", MAX_ROUNDS * len(inputs))
        for number in range(MAX_ROUNDS):
            before = self._counter.compiles()
            for x in inputs:
                self._watched(x)
            if self._arm.error or (number >= least and self._counter.compiles() == before):
                return

    def _watched(self, x: object) -> None:
        """A call that may fail: its seconds by the clock and of all processors, compilers included, and the compilations it set off."""
        before, start, start_cpu = self._counter.compiles(), time.perf_counter(), sum(os.times()[:4])
        with contextlib.suppress(Exception):
            self._arm.call(x, self._seed)
        self._report.done += 1
        self._calls.append([time.perf_counter() - start, sum(os.times()[:4]) - start_cpu, self._counter.compiles() - before])

    def _timed(self, inputs: Sequence[object], eager_bytes: int) -> dict[str, object]:
        """Pairs of calls, in random order, until there are enough (more where times vary much) or time is up."""
        wanted, end, duty = self._request["pairs"], time.monotonic() + self._request["budget_s"], self._request["duty"]
        self._report.enter("measuring", wanted)
        order, clock = random.Random(self._seed), int(self._request["device"] == "cpu")
        pairs: list[list[tuple[float, float, int]]] = []
        compiles: list[int] = []
        _, (eager_ms, _, _) = self._eager.timed(inputs[0], self._seed, 1)
        repeat = max(1, min(MAX_REPEAT, math.ceil(LEAST_MS / max(eager_ms, 1e-3))))
        gc.collect()
        gc.disable()
        with contextlib.suppress(Exception):  # the arm keeps the words of what it raised
            while (len(pairs) < wanted or is_unsteady(pairs, wanted, clock)) and (time.monotonic() < end or len(pairs) < 2):
                x, seed, is_eager_first = inputs[len(pairs) % len(inputs)], self._seed + len(pairs), order.random() < 0.5
                before = self._counter.compiles()
                arms = (self._eager, self._arm) if is_eager_first else (self._arm, self._eager)
                took = [arm.timed(x, seed, repeat)[1] for arm in arms]
                pairs.append(took if is_eager_first else took[::-1])
                compiles.append(self._counter.compiles() - before)
                self._report.done = len(pairs)
                time.sleep(sum(one[0] for one in took) * repeat / 1000 * (1 / duty - 1))
        gc.enable()
        return {
            "pairs": pairs, "compiles": compiles, "first_call_s": self._calls[0][0], "overhead_s": self._overhead(pairs, 0),
            "overhead_cpu_s": self._overhead(pairs, 1), "compile_s": self._counter.seconds(),
            "peak_memory_mb": self._peak_memory(inputs, eager_bytes),
        }  # fmt: skip

    def _overhead(self, pairs: list[list[tuple[float, float, int]]], clock: int) -> float:
        """Seconds that warming up took beyond as many usual calls. clock: 0 for the wall's, 1 for the processor's."""
        usual = sorted(candidate[clock] for _, candidate in pairs)[len(pairs) // 2] / 1000 if pairs else 0.0
        return max(sum(call[clock] - usual for call in self._calls), 0.0)

    def _peak_memory(self, inputs: Sequence[object], eager_bytes: int) -> float:
        """Megabytes: of the GPU without the eager arm's state, else of the whole process."""
        if self._request["device"] != "cuda":
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
        torch.cuda.reset_peak_memory_stats()
        for x in inputs:
            self._watched(x)
        return float(torch.cuda.max_memory_allocated() - eager_bytes) / 1e6

    def _accuracy(self, inputs: Sequence[object]) -> dict[str, object]:
        """Outputs against eager's for the same seeds; once more with eager's random numbers where the model draws some itself."""
        self._report.enter("comparing outputs", len(inputs) * self._request["seeds"])
        found = self._compared(inputs)
        if self._is_control or not found["noise_floor_pct"] or not found["mae_pct"]:
            return found
        torch._dynamo.reset()
        importlib.import_module("torch._inductor.config").fallback_random = True  # type: ignore[attr-defined]
        self._arm = Arm(self._other, self._seed, self._compile_fn())
        return self._compared(inputs)

    def _compared(self, inputs: Sequence[object]) -> dict[str, object]:
        ours, noise, again, exact, exact_eager = (Difference() for _ in range(5))
        by_seed, metrics = [], []
        for number in range(self._request["seeds"]):
            seed, of_seed = self._seed + number, Difference()
            for x in inputs:
                eager, candidate = self._eager.tensors(x, seed), self._arm.tensors(x, seed)
                ours.add(candidate, eager)
                of_seed.add(candidate, eager)
                again.add(self._eager.tensors(x, seed), eager)
                noise.add(self._eager.tensors(x, seed + OTHER_SEED), eager)
                if hasattr(self._workload, "reference"):
                    seed_all(seed)
                    truth = copied(hooked("reference()", self._workload.reference, x))
                    exact.add(candidate, truth)
                    exact_eager.add(eager, truth)
                if hasattr(self._workload, "metric"):
                    metrics.append([self._metric(arm.call(x, seed), x) for arm in (self._eager, self._arm)])
                self._report.done += 1
            by_seed.append(of_seed.mae_pct())
        if self._request["seeds"] and not ours.count:
            raise BadWorkloadError("call() of the workload gives no tensor and no number, so outputs cannot be compared; have it return the output")
        return {
            "max_abs": ours.max_abs, "mae": ours.mae(), "mae_pct": ours.mae_pct(), "noise_floor_pct": noise.mae_pct(),
            "same_seed_delta": again.max_abs, "is_close": ours.is_close, "rmse_eager": exact_eager.rmse(), "rmse_candidate": exact.rmse(),
            "multiplier": 3.0 if ours.is_half or ours.count < 10 else 2.0, "metric_pct": worse_by(metrics), "mae_pct_by_seed": by_seed,
        }  # fmt: skip

    def _metric(self, out: object, x: object) -> float:
        value = hooked("metric()", self._workload.metric, out, x)  # type: ignore[attr-defined]
        try:
            return float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise BadWorkloadError(f"metric() of the workload gives no number, but {value!r:.80}") from error


class Difference:
    """How far outputs lie from those they are compared with, over any number of calls."""

    def __init__(self) -> None:
        self.max_abs, self.count, self.is_close, self.is_half = 0.0, 0, True, False
        self._total = self._squares = self._size = 0.0

    def add(self, ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> None:
        """Takes one output in; other shapes, or another number of tensors, are infinitely far."""
        if [one.shape for one in ours] != [one.shape for one in theirs]:
            self.max_abs = self._total = self._squares = math.inf
            self.is_close = False
            return
        for one, other in zip(ours, theirs):
            kind = str(one.dtype).rpartition(".")[2]
            tolerance = TOLERANCE.get(kind, 0.0)
            a, b = one.double(), other.double()
            gap = (a - b).abs()
            gap[(a == b) | (a.isnan() & b.isnan())] = 0.0  # equal infinities, and gaps in the same place, are no difference
            gap = gap.nan_to_num(math.inf, math.inf)  # a gap in one of them is
            self.is_close = self.is_close and bool((gap <= tolerance * (1 + b.abs())).all())
            self.is_half = self.is_half or kind in HALF
            self.max_abs = max(self.max_abs, float(gap.max()) if gap.numel() else 0.0)
            self._total += float(gap.sum())
            self._squares += float((gap * gap).sum())
            self._size += float(b.nan_to_num(0.0, 0.0, 0.0).abs().sum())
            self.count += gap.numel()

    def mae(self) -> float:
        return self._total / max(self.count, 1)

    def mae_pct(self) -> float:
        """Of the mean size of what it is compared with."""
        return 100 * self._total / self._size if self._size else math.inf if self._total else 0.0

    def rmse(self) -> float | None:
        return math.sqrt(self._squares / self.count) if self.count else None


def is_unsteady(pairs: Sequence[Sequence[tuple[float, float, int]]], wanted: int, clock: int) -> bool:
    """True when the quarter points of the ratios say that more pairs would narrow the interval. clock: as in _overhead."""
    if wanted == 0 or len(pairs) >= MOST_PAIRS * wanted:
        return False
    ratios = sorted(candidate[clock] / max(eager[clock], 1e-6) for eager, candidate in pairs)
    low, middle, high = (ratios[len(ratios) * part // 4] for part in (1, 2, 3))
    return (high - low) / max(middle, 1e-6) / math.sqrt(len(ratios)) > STEADY


def worse_by(metrics: Sequence[Sequence[float]]) -> float | None:
    """Percent by which the candidate's error measure is larger than eager's; None without one."""
    if not metrics:
        return None
    eager, ours = (sum(pair[arm] for pair in metrics) for arm in (0, 1))
    return 100 * (ours - eager) / abs(eager) if eager else math.inf if ours > 0 else 0.0


def copied(out: object) -> list[torch.Tensor]:
    """Every tensor in an output, on the CPU; numbers count as tensors."""
    if isinstance(out, torch.Tensor):
        return [out.detach().cpu().clone()]
    if isinstance(out, (bool, int, float)):
        return [torch.tensor(float(out), dtype=torch.float64)]
    if hasattr(out, "tolist"):  # an array of numpy, and what resembles one
        kind = getattr(torch, str(getattr(out, "dtype", "")), None)
        with contextlib.suppress(TypeError, ValueError):  # of texts or objects
            return [torch.tensor(out.tolist(), dtype=kind if isinstance(kind, torch.dtype) else torch.float64)]
        return []
    if isinstance(out, dict):
        return [one for key in sorted(out, key=str) for one in copied(out[key])]
    if isinstance(out, (list, tuple)):
        return [one for part in out for one in copied(part)]
    return copied(vars(out)) if hasattr(out, "__dict__") else []


def seed_all(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def waited() -> int:
    """How often this thread gave the processor up to wait, on Linux; being pushed off by other programs does not count."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw if sys.platform == "linux" else int(time.monotonic() * 1e6)


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def allocated() -> int:
    return int(torch.cuda.memory_allocated()) if torch.cuda.is_available() else 0


def words_of(error: BaseException) -> str:
    """The error in one line: its type, and the first line of its text that says something."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}"[:500]


if __name__ == "__main__":
    main()
