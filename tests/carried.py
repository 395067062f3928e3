"""Excerpts of logs as people paste, ship and store them, each with the events that a reader of it would write down.

The messages are torch's own, of 2.0 to 2.13, on made-up code; the forms around them are those of launchers, collectors, viewers
and editors. What an excerpt does not show is None. The expectations were written before any program read the excerpts.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Facts = dict[str, Any]


class Excerpt(NamedTuple):
    """text: as it stands in the file. events: the facts of each event, in order; those not named are not compared."""

    name: str
    text: str
    events: tuple[Facts, ...]


# --- what torch prints ------------------------------------------------------------------------------------

RECOMPILE = """\
Recompiling function step in /srv/app/train.py:41
    triggered by the following guard failure(s):
    - 3/1: tensor 'x' size mismatch at index 0. expected 8, actual 16
    - 3/0: tensor 'x' dtype mismatch. expected Float, actual Half"""
RECOMPILED: Facts = {
    "kind": "recompile", "function": "step", "file": "/srv/app/train.py", "line_no": 41, "partial": False, "refused": False,
    "reasons": [
        ("3/1", "tensor 'x' size mismatch at index 0. expected 8, actual 16", "size_mismatch"),
        ("3/0", "tensor 'x' dtype mismatch. expected Float, actual Half", "dtype_mismatch"),
    ],
}  # fmt: skip
OLD_RECOMPILE = """\
Recompiling function step in /srv/app/train.py:41
    triggered by the following guard failure(s):
    - L['n'] == 4                                                 # if n > 3:  # app/train.py:43 in step"""
OLD_RECOMPILED: Facts = {**RECOMPILED, "reasons": [(None, "L['n'] == 4", "int_value")]}
LIMIT = """\
torch._dynamo hit config.recompile_limit (8)
   function: 'rotate' (/srv/app/rope.py:12)
   last reason: 5/7: self._modules['inner'].step == 3
To log all recompilation reasons, use TORCH_LOGS="recompiles".
To diagnose recompilation issues, see https://pytorch.org/docs/main/torch.compiler_troubleshooting.html."""
LIMITED: Facts = {
    "kind": "recompile_limit_hit", "function": "rotate", "file": "/srv/app/rope.py", "line_no": 12, "limit": 8, "limit_name": "recompile_limit",
    "partial": False, "reasons": [("5/7", "self._modules['inner'].step == 3", "module_int_attribute")],
}  # fmt: skip
OLD_LIMIT = """\
torch._dynamo hit config.cache_size_limit (64)
   function: 'rotate' (/srv/app/rope.py:12)
   last reason: L['n'] == 2
To log all recompilation reasons, use TORCH_LOGS="recompiles".
To diagnose recompilation issues, see https://pytorch.org/docs/master/compile/troubleshooting.html."""
OLD_LIMITED: Facts = {**LIMITED, "limit": 64, "limit_name": "cache_size_limit", "reasons": [(None, "L['n'] == 2", "int_value")]}
DYNAMO_2022 = """\
torchdynamo hit config.cache_size_limit (64)
   function: 'rotate' (/srv/app/rope.py:12)
   reasons:  ['n == 2']
to diagnose recompilation issues, see https://github.com/pytorch/torchdynamo/blob/main/TROUBLESHOOTING.md."""
LIMITED_2022: Facts = {**OLD_LIMITED, "reasons": [(None, "n == 2", "int_value")]}
BREAK = """\
Graph break in user code at /srv/app/data.py:7
Graph Break Reason: Call to `torch._dynamo.graph_break()`
  Explanation: User-inserted graph break. Message: None
  Hint: Remove the `torch._dynamo.graph_break()` call.

  Developer debug context: Called `torch._dynamo.graph_break()` with args `[]`, kwargs `{}`

 For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0025.html

User code traceback:
  File "/srv/app/data.py", line 7, in collate
    torch._dynamo.graph_break()
"""
BROKEN: Facts = {
    "kind": "graph_break", "function": "collate", "file": "/srv/app/data.py", "line_no": 7, "partial": False,
    "reasons": [(None, "Call to `torch._dynamo.graph_break()`", None)],
}  # fmt: skip
SKIP = "skipping cudagraphs due to mutated inputs (2 instances)"
SKIPPED: Facts = {"kind": "cudagraph_skip", "instances": 2, "function": None, "partial": False, "reasons": [(None, "mutated inputs", None)]}
CPU_SKIP = """\
skipping cudagraphs due to skipping cudagraphs due to cpu device (arg2_1). Found from : 
   File "/srv/app/head.py", line 88, in forward
     x = x + self.table
"""
CPU_SKIPPED: Facts = {
    "kind": "cudagraph_skip", "instances": None, "function": "forward", "file": "/srv/app/head.py", "line_no": 88, "partial": False,
    "reasons": [(None, "cpu device (arg2_1)", None)],
}  # fmt: skip
OVERWRITTEN = """\
Traceback (most recent call last):
  File "/srv/app/serve.py", line 30, in <module>
    print(out.sum())
RuntimeError: Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run. Stack trace: File "/srv/app/head.py", line 61, in forward
    return self.proj(x). To prevent overwriting, clone the tensor outside of torch.compile() or call torch.compiler.cudagraph_mark_step_begin() before each model invocation."""
WAS_OVERWRITTEN: Facts = {"kind": "cudagraph_overwritten_error", "function": "forward", "file": "/srv/app/head.py", "line_no": 61, "partial": False}
PENDING = """\
/opt/venv/lib/python3.11/site-packages/torch/_inductor/cudagraph_trees.py:2345: UserWarning: Unable to hit fast path of CUDAGraphs because of pending, uninvoked backwards. Consider running with torch.no_grad() or using torch.compiler.cudagraph_mark_step_begin() before each model invocation
  warnings.warn("""
IS_PENDING: Facts = {"kind": "cudagraph_pending_backward_warning"}
SHAPES = (
    "CUDAGraph supports dynamic shapes by recording a new graph for each distinct input size. Recording too many CUDAGraphs may lead to extra overhead. "
    "We have observed 51 distinct sizes. Please consider the following options for better performance: a) padding inputs to a few fixed number of shapes; "
    "or b) set torch._inductor.config.triton.cudagraph_skip_dynamic_graphs=True. "
    "Set torch._inductor.config.triton.cudagraph_dynamic_shape_warn_limit=None to silence this warning."
)
HAS_SHAPES: Facts = {"kind": "cudagraph_dynamic_shapes_warning", "distinct_sizes": 51}
RERECORD = (
    "skipping cudagraph due to function 3 exceeding max re-recording limit (=128) on cudagraph node 2 due to static input data pointer changed."
)
RERECORDED: Facts = {"kind": "cudagraph_rerecord", "limit": 128}
STANCE = """\
Traceback (most recent call last):
  File "/srv/app/serve.py", line 30, in <module>
    model(x)
RuntimeError: Detected recompile when torch.compile stance is 'fail_on_recompile'. filename: '/srv/app/head.py', function name: 'forward', line number: 52
    triggered by the following guard failure(s):
    - 2/0: mode == 'train'"""
FORBIDDEN: Facts = {
    "kind": "recompile_forbidden", "stance": "fail_on_recompile", "function": "forward", "file": "/srv/app/head.py", "line_no": 52,
    "reasons": [("2/0", "mode == 'train'", "str_value")],
}  # fmt: skip
HARD = """\
Traceback (most recent call last):
  File "/srv/app/serve.py", line 30, in <module>
    model(x)
  File "/opt/venv/lib/python3.11/site-packages/torch/_dynamo/convert_frame.py", line 1008, in _compile
    raise FailOnRecompileLimitHit(
torch._dynamo.exc.FailOnRecompileLimitHit: recompile_limit reached with one_graph=True. Excessive recompilations can degrade performance."""
WAS_HARD: Facts = {"kind": "recompile_limit_error", "exception": "FailOnRecompileLimitHit", "limit_name": "recompile_limit", "limit": None}
BACKEND = """\
Traceback (most recent call last):
  File "/srv/app/serve.py", line 30, in <module>
    model(x)
  File "/opt/venv/lib/python3.11/site-packages/torch/_dynamo/output_graph.py", line 1446, in _call_user_compiler
    raise BackendCompilerFailed(self.compiler_fn, e).with_traceback(
torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
RuntimeError: Cannot find a working triton installation. Either the package is not installed or it is too old.

from user code:
   File "/srv/app/head.py", line 33, in forward
    return self.proj(x)
"""
FAILED: Facts = {"kind": "compile_error", "exception": "BackendCompilerFailed", "function": "forward", "file": "/srv/app/head.py", "line_no": 33}
BUILTIN = """\
/opt/venv/lib/python3.11/site-packages/torch/_dynamo/variables/functions.py:1850: UserWarning: Dynamo does not know how to trace the builtin `time.time.` This function is either a Python builtin (e.g. _warnings.warn) or a third-party C/C++ Python extension (perhaps created with pybind).
If it is a Python builtin, please file an issue on GitHub so the PyTorch team can add support for it and see the next case for a workaround.
  torch._dynamo.utils.warn_once(explanation + "\\n" + "\\n".join(hints))"""
UNTRACED: Facts = {"kind": "graph_break", "function": None, "reasons": [(None, "Dynamo does not know how to trace the builtin `time.time.`", None)]}
FLEX = (
    "/opt/venv/lib/python3.11/site-packages/torch/nn/attention/flex_attention.py:1628: UserWarning: flex_attention called without torch.compile() - "
    "this will use an unfused implementation that materializes the full scores matrix instead of generating a fused kernel."
)
IS_FLEX: Facts = {"kind": "flex_attention_eager_fallback"}
TIMES = """\
TorchDynamo compilation metrics:
Function, Runtimes (s)
_compile.compile_inner, 1.5000, 0.2500
bytecode_tracing, 0.1073, 0.0298"""
TIMED: Facts = {"kind": "compile_time", "seconds": 1.75}


# --- torch's own prefixes -----------------------------------------------------------------------------------


def each(prefix: str, text: str) -> str:
    """The text with the prefix before every line."""
    return "\n".join(prefix + line for line in text.split("\n"))


def glog(text: str, at: str = "W1107 10:28:52.255000 3989", place: str = "torch/_dynamo/convert_frame.py:1358", ids: str = "", rank: str = "") -> str:
    """The text as torch 2.2 and later print it. ids: compile id and artifact with a blank in front of each."""
    return each(f"{rank}{at} {place}]{ids} ", text)


def guards(text: str, ids: str = " [3/2] [__recompiles]", rank: str = "", pid: str = "3989") -> str:
    """A recompile block."""
    return glog(text, f"V1107 10:28:52.255000 {pid}", "torch/_dynamo/guards.py:2813", ids, rank)


def bracket(text: str, logger: str = "torch._dynamo.convert_frame", level: str = "WARNING", rank: str = "", cid: str = "") -> str:
    """As torch 2.1 prints it, on every line."""
    return each(f"{rank}[2023-11-07 10:28:52,255] {cid}{logger}: [{level}] ", text)


TORCH = "2025-11-07T10:28:52.255000+00:00"  # the time in glog's prefix
PID: Facts = {"pid": 3989, "time": TORCH, "rank": None}


def limit_at(cid: str | None = "5/8", **more: object) -> Facts:
    return {**LIMITED, "compile_id": cid, **PID, **more}


def recompile_at(cid: str | None = "3/2", **more: object) -> Facts:
    return {**RECOMPILED, "compile_id": cid, **PID, **more}


def docker(text: str) -> str:
    """Docker's json-file."""
    return "\n".join(json.dumps({"log": line + "\n", "stream": "stderr", "time": "2025-11-07T10:28:53.1Z"}) for line in text.split("\n"))


def cri(text: str) -> str:
    """The container runtime's lines."""
    return each("2025-11-07T10:28:53.100000000Z stderr F ", text)


def journal_json(text: str) -> str:
    """journalctl -o json."""
    fields = {"__REALTIME_TIMESTAMP": "1762511333100000", "_PID": "3989", "_HOSTNAME": "gpu1"}
    return "\n".join(json.dumps({**fields, "MESSAGE": line}) for line in text.split("\n"))


def wrapped(text: str, width: int) -> str:
    """A terminal of this width, copied."""
    return "\n".join(line[at : at + width] for line in text.split("\n") for at in range(0, max(len(line), 1), width))


def turns(*texts: str) -> str:
    """Lines of several writers, in turn."""
    rows = [text.split("\n") for text in texts]
    return "\n".join(row[at] for at in range(max(map(len, rows))) for row in rows if at < len(row))


Cases = Iterator[Excerpt]


def case(name: str, text: str, *events: Facts) -> Excerpt:
    return Excerpt(name, text + "\n", events)


def torch_prefixes() -> Cases:
    """The prefix of every version, alone."""
    lim, rec = glog(LIMIT, ids=" [5/8]"), guards(RECOMPILE)
    yield case("2.7 limit", lim, limit_at())
    yield case(
        "2.13 limit in site-packages",
        glog(LIMIT, place="/opt/venv/lib/python3.11/site-packages/torch/_dynamo/convert_frame.py:1994", ids=" [5/8]"),
        limit_at(),
    )
    yield case("2.5 recompile", rec, recompile_at())
    yield case(
        "2.3 thread id", glog(OLD_LIMIT, "W1107 10:28:52.255000 139637715699520"), {**OLD_LIMITED, "pid": None, "time": TORCH, "compile_id": None}
    )
    yield case(
        "2.2 recompile", guards(OLD_RECOMPILE, ids=" [__recompiles]", pid="140234866534208"), {**OLD_RECOMPILED, "pid": None, "compile_id": None}
    )
    yield case("2.1 limit", bracket(OLD_LIMIT), {**OLD_LIMITED, "pid": None, "time": "2023-11-07T10:28:52.255000+00:00", "compile_id": None})
    yield case("2.1 limit with id", bracket(OLD_LIMIT, cid="[5/64] "), {**OLD_LIMITED, "compile_id": "5/64"})
    yield case("2.1 recompile", bracket(OLD_RECOMPILE, "torch._dynamo.guards.__recompiles", "DEBUG"), {**OLD_RECOMPILED})
    yield case("2.1 rank", bracket(OLD_LIMIT, rank="[rank3]:"), {**OLD_LIMITED, "rank": 3})
    yield case(
        "2.0 first line only",
        "[2023-03-20 10:28:52,255] torch._dynamo.convert_frame: [WARNING] " + OLD_LIMIT,
        {**OLD_LIMITED, "time": "2023-03-20T10:28:52.255000+00:00"},
    )
    yield case(
        "2022 bracket",
        "[2022-10-14 15:59:22,874] torchdynamo.convert_frame: [WARNING] " + DYNAMO_2022,
        {**LIMITED_2022, "time": "2022-10-14T15:59:22.874000+00:00"},
    )
    yield case("2022 no time", "torchdynamo.convert_frame: [WARNING] " + DYNAMO_2022, {**LIMITED_2022, "time": None})
    yield case("2022 basic format", "WARNING:torchdynamo.convert_frame:" + DYNAMO_2022, {**LIMITED_2022, "time": None})
    yield case("rank", glog(LIMIT, ids=" [5/8]", rank="[rank5]:"), limit_at(rank=5))
    yield case("torchrun tee", glog(LIMIT, ids=" [5/8]", rank="[default2]:[rank10]:"), limit_at(rank=10))
    yield case("torchrun role", glog(LIMIT, ids=" [5/8]", rank="[trainer1]:[rank1]: "), limit_at(rank=1))
    yield case(
        "two ranks in turn",
        turns(guards(RECOMPILE, rank="[rank0]:"), guards(RECOMPILE, rank="[rank1]:", pid="3990")),
        recompile_at(rank=0),
        recompile_at(rank=1, pid=3990),
    )
    yield case("same pid in two containers", turns(each("bot-1  | ", rec), each("bot-2  | ", rec)), recompile_at(), recompile_at())
    yield case("attempt and compiled autograd", guards(RECOMPILE, ids=" [!0/3/2_1] [__recompiles]"), recompile_at("!0/3/2_1"))
    yield case("short format", "DEBUG:torch._dynamo.guards.__recompiles:" + RECOMPILE, {**RECOMPILED, "compile_id": None, "time": None, "pid": None})
    yield case("short limit", "WARNING:torch._dynamo.convert_frame:" + LIMIT, {**LIMITED, "compile_id": None})
    yield case("custom format", "2025-11-07 10:28:52,255 torch._dynamo.convert_frame WARNING " + LIMIT, {**LIMITED, "time": TORCH})
    yield case("custom format, name only", "[torch._dynamo.guards.__recompiles] " + RECOMPILE, RECOMPILED)
    yield case("custom format with process", "10:28:52 3989/MainThread DEBUG torch._dynamo.guards.__recompiles: " + RECOMPILE, RECOMPILED)
    yield case(
        "break 2.9",
        glog(BREAK, "V1107 10:28:52.255000 3989", "torch/_dynamo/symbolic_convert.py:5124", " [1/0] [__graph_breaks]"),
        {**BROKEN, "compile_id": "1/0"},
    )
    yield case("cpu skip 2.13", glog(CPU_SKIP, place="torch/_inductor/cudagraph_utils.py:380", ids=" [__cudagraphs]"), {**CPU_SKIPPED, **PID})
    yield case("shapes 2.9", glog(SHAPES, place="torch/_inductor/cudagraph_utils.py:516", ids=" [0/3] [__perf_hints]"), {**HAS_SHAPES, **PID})
    yield case("rerecord", glog(RERECORD, place="torch/_inductor/cudagraph_trees.py:2355", ids=" [__cudagraphs]"), {**RERECORDED, **PID})
    yield case(
        "Windows",
        glog(
            LIMIT.replace("/srv/app/", "C:\\work\\app\\"), place="C:\\venv\\Lib\\site-packages\\torch\\_dynamo\\convert_frame.py:1358", ids=" [5/8]"
        ),
        {**limit_at(), "file": "C:\\work\\app\\rope.py"},
    )


def carriers() -> Cases:
    """What launchers and collectors put in front of messages with and without torch's own prefix."""
    lim, rec = glog(LIMIT, ids=" [5/8]"), guards(RECOMPILE)
    fronts: dict[str, tuple[str, Facts]] = {
        "pdsh": ("gpu07: ", {}),
        "pdsh with domain": ("gpu-07.cluster.local: ", {}),
        "clush group": ("node12: ", {}),
        "deepspeed": ("worker-0: ", {}),
        "stern": ("bot-7d4b9c6f5-x2kq7 main ", {}),
        "stern statefulset": ("trainer-0 pytorch ", {}),
        "stern all namespaces": ("ml-prod bot-7d4b9c6f5-x2kq7 main ", {}),
        "stern with time": ("bot-7d4b9c6f5-x2kq7 main 2025-11-07T10:28:53.100000000Z ", {"outer": "2025-11-07T10:28:53.100000+00:00"}),
        "kubetail": ("[bot-7d4b9c6f5-x2kq7 main] ", {}),
        "kail": ("ml/bot-7d4b9c6f5-x2kq7[main]: ", {}),
        "kubectl": ("[pod/bot-7d4b9c6f5-x2kq7/main] ", {}),
        "heroku": ("2025-11-07T10:28:53.100000+00:00 app[worker.1]: ", {"outer": "2025-11-07T10:28:53.100000+00:00"}),
        "foreman": ("10:28:53 worker.1 | ", {}),
        "overmind": ("worker | ", {}),
        "pm2": ("0|bot      | ", {}),
        "openmpi tag": ("[1,3]<stderr>:", {"rank": 3}),
        "openmpi tag and time": ("Fri Nov  7 10:28:53 2025[1,3]<stderr>:", {"rank": 3, "outer": "2025-11-07T10:28:53+00:00"}),
        "openmpi time": ("Fri Nov  7 10:28:53 2025<stderr>:", {"outer": "2025-11-07T10:28:53+00:00"}),
        "openmpi 5 tag": ("[prterun-gpu07-4711@1,3]<stderr>: ", {"rank": 3}),
        "mpich": ("[3] ", {}),
        "srun -l": (" 3: ", {}),
        "ray": ("(RayTrainWorker pid=3989, ip=10.0.0.7) ", {"pid": 3989}),
        "ray coloured": ("\x1b[36m(train_fn pid=3989)\x1b[0m ", {"pid": 3989}),
        "skypilot": ("(bot, rank=1, pid=3989, ip=10.0.0.7) ", {"pid": 3989, "rank": 1}),
        "vllm nested": ("(EngineCore_DP0 pid=11) (Worker_TP1 pid=3989) ", {"pid": 3989}),
        "vllm nested with rank": ("(EngineCore_DP0 pid=11) (Worker_TP1 pid=3989) [rank1]:", {"pid": 3989, "rank": 1}),
        "compose": ("bot-1  | ", {}),
        "journald": ("Nov 07 10:28:53 gpu1 python[3989]: ", {"pid": 3989, "outer": "2025-11-07T10:28:53+00:00"}),
        "journald iso": ("2025-11-07T10:28:53+00:00 gpu1 python[3989]: ", {"pid": 3989, "outer": "2025-11-07T10:28:53+00:00"}),
        "journald iso, no host": ("2025-11-07T10:28:53+00:00 python[3989]: ", {"pid": 3989, "outer": "2025-11-07T10:28:53+00:00"}),
        "journald no host": ("Nov 07 10:28:53 python[3989]: ", {"pid": 3989, "outer": "2025-11-07T10:28:53+00:00"}),
        "journald delta": ("[12345.678901 <    0.000120 >] gpu1 python[3989]: ", {"pid": 3989}),
        "rfc 5424": ("<14>1 2025-11-07T10:28:53.100Z gpu1 bot 3989 - - ", {"pid": 3989, "outer": "2025-11-07T10:28:53.100000+00:00"}),
        "aws logs tail": ("2025-11-07T10:28:53.100000+00:00 ecs/bot/0f1e2d3c4b5a ", {"outer": "2025-11-07T10:28:53.100000+00:00"}),
        "airflow": ("[2025-11-07, 10:28:53 UTC] {subprocess.py:93} INFO - ", {"outer": "2025-11-07T10:28:53+00:00"}),
        "airflow iso": ("[2025-11-07T10:28:53.100+0000] {subprocess.py:93} INFO - ", {"outer": "2025-11-07T10:28:53.100000+00:00"}),
        "github actions": ("2025-11-07T10:28:53.1000000Z ", {"outer": "2025-11-07T10:28:53.100000+00:00"}),
        "github job log": ("train\tRun the bot\t2025-11-07T10:28:53.1000000Z ", {"outer": "2025-11-07T10:28:53.100000+00:00"}),
        "jenkins": ("[2025-11-07T10:28:53.100Z] ", {"outer": "2025-11-07T10:28:53.100000+00:00"}),
        "gnu parallel --tag": ("seed=7\t", {}),
        "transformers": ("11/07/2025 10:28:53 - WARNING - torch - ", {}),  # which is the month?
    }  # fmt: skip
    for name, (front, seen) in fronts.items():
        known = {key: value for key, value in seen.items() if key != "outer"}
        bare = {"pid": None, "rank": None, "time": seen.get("outer"), **known}
        yield case(f"{name}: skip", each(front, SKIP), {**SKIPPED, **bare})
        yield case(f"{name}: backend", each(front, BACKEND.rstrip("\n")), {**FAILED, **bare})
        yield case(f"{name}: recompile", each(front, rec), recompile_at(rank=known.get("rank")))
    yield case("stern: over", each("bot-7d4b9c6f5-x2kq7 main ", OVERWRITTEN), WAS_OVERWRITTEN)
    yield case("pdsh: stance", each("gpu07: ", STANCE), FORBIDDEN)
    yield case("pdsh: hard", each("gpu07: ", HARD), WAS_HARD)
    yield case("pdsh: pending", each("gpu07: ", PENDING), IS_PENDING)
    yield case("pdsh: builtin", each("gpu07: ", BUILTIN), UNTRACED)
    yield case("pdsh: flex", each("gpu07: ", FLEX), IS_FLEX)
    yield case("heroku: times", each("2025-11-07T10:28:53.100000+00:00 app[worker.1]: ", TIMES), TIMED)
    yield case("mpich: cpu skip", each("[3] ", CPU_SKIP), CPU_SKIPPED)
    yield case("stern: cpu skip", each("trainer-0 pytorch ", CPU_SKIP), CPU_SKIPPED)
    yield case("pdsh: short format", each("gpu07: ", "DEBUG:torch._dynamo.guards.__recompiles:" + RECOMPILE), RECOMPILED)
    yield case("pdsh: limit", each("gpu07: ", lim), limit_at())
    yield case("two hosts in turn", turns(each("gpu07: ", BACKEND), each("gpu08: ", BACKEND)), FAILED, FAILED)
    yield case("two hosts in turn, skips", turns(each("gpu07: ", CPU_SKIP), each("gpu08: ", CPU_SKIP)), CPU_SKIPPED, CPU_SKIPPED)


def stacks() -> Cases:
    """Two and three of them in one log."""
    lim, rec = glog(LIMIT, ids=" [5/8]"), guards(RECOMPILE)
    outer = "2025-11-07T10:28:53.100000+00:00"
    ray = "(RayTrainWorker pid=3989, ip=10.0.0.7) "
    yield case("ray in docker", docker(each(ray, SKIP)), {**SKIPPED, "pid": 3989, "time": outer})
    yield case("ray in cri", cri(each(ray, BACKEND)), {**FAILED, "pid": 3989, "time": outer})
    yield case("cri in stern", each("bot-7d4b9c6f5-x2kq7 main ", cri(BACKEND)), FAILED)
    yield case("docker in stern", each("bot-7d4b9c6f5-x2kq7 main ", docker(CPU_SKIP)), CPU_SKIPPED)
    yield case("srun in ci", each("2025-11-07T10:28:53.1000000Z 3: ", rec), recompile_at())
    yield case("pdsh in ci", each("2025-11-07T10:28:53.1000000Z gpu07: ", BACKEND), {**FAILED, "time": outer})
    yield case("mpi in pdsh", each("gpu07: [1,3]<stderr>:", BACKEND), {**FAILED, "rank": 3})
    yield case("mpi time in cri", cri(each("Fri Nov  7 10:28:53 2025[1,3]<stderr>:", HARD)), {**WAS_HARD, "rank": 3})
    yield case(
        "heroku and logging", each("2025-11-07T10:28:53.100000+00:00 app[worker.1]: 2025-11-07 10:28:53,099 - bot - WARNING - ", SKIP), SKIPPED
    )
    yield case(
        "heroku and json", each("2025-11-07T10:28:53.100000+00:00 app[worker.1]: ", json.dumps({"level": "warning", "message": BACKEND})), FAILED
    )
    yield case("journal of compose", each("Nov 07 10:28:53 gpu1 docker[77]: bot-1  | ", rec), recompile_at())
    yield case("journal json of compose", journal_json(each("bot-1  | ", BACKEND)), FAILED)
    yield case("quoted journal", each("> Nov 07 10:28:53 gpu1 python[3989]: ", rec), recompile_at())
    yield case("quoted pdsh", each("> gpu07: ", BACKEND), FAILED)
    yield case("bold in a quote", each("> ", "\n".join(f"**{line}**" for line in lim.split("\n"))), limit_at())
    yield case("bold cri", "\n".join(f"**{line}**" for line in cri(rec).split("\n")), recompile_at())
    yield case("html of a list", html.escape(each("    ", rec)), recompile_at())
    yield case("html of cri", html.escape(cri(BACKEND)), FAILED)
    yield case("wrapped journal", wrapped(each("Nov 07 10:28:53 gpu1 python[3989]: ", "\n".join([rec] * 3)), 100), *[recompile_at()] * 3)
    yield case("wrapped compose", wrapped(each("bot-1  | ", "\n".join([lim] * 3)), 80), *[limit_at()] * 3)
    yield case("wrapped rank", wrapped(glog("\n".join([LIMIT] * 3), ids=" [5/8]", rank="[rank1]:"), 120), *[limit_at(rank=1)] * 3)
    yield case("wrapped ci", wrapped(each("2025-11-07T10:28:53.1000000Z ", "\n".join([rec] * 3)), 90), *[recompile_at()] * 3)
    yield case("wrapped pdsh", wrapped(each("gpu07: ", "\n".join([rec] * 3)), 100), *[recompile_at()] * 3)
    yield case("one line", " ".join(lim.split("\n")), limit_at())
    yield case("one line of journal", " ".join(each("Nov 07 10:28:53 gpu1 python[3989]: ", rec).split("\n")), recompile_at())
    yield case("one line of compose", " ".join(each("bot-1  | ", lim).split("\n")), limit_at())
    yield case("one line of ci", " ".join(each("2025-11-07T10:28:53.1000000Z ", rec).split("\n")), recompile_at())
    yield case("one line of ray", " ".join(each(ray, rec).split("\n")), recompile_at())
    yield case("bar, then a record", "\r 43%|####3     | 3/7 [00:01<00:01,  2.10it/s]" + rec, recompile_at())
    yield case("bar in ray in docker", docker(each(ray, "\r 43%|####3     | 3/7 [00:01<00:01,  2.10it/s]" + rec)), recompile_at())
    yield case(
        "torn write",
        rec[:150] + glog(LIMIT, ids=" [5/8]", at="W1107 10:28:52.300000 3990") + "\n" + rec[150:],
        recompile_at(),
        limit_at(pid=3990, time="2025-11-07T10:28:52.300000+00:00"),
    )
    yield case("crlf cri", cri(rec).replace("\n", "\r\n"), recompile_at())
    yield case("crlf docker", docker(rec).replace("\n", "\r\n"), recompile_at())
    yield case("record as json", json.dumps({"msg": rec, "level": "debug"}), recompile_at())
    yield case("record as json in kubectl", "[pod/bot-0/main] " + json.dumps({"log": rec}), recompile_at())
    yield case(
        "json in json", json.dumps({"log": json.dumps({"message": rec}) + "\n", "stream": "stderr", "time": "2025-11-07T10:28:53.1Z"}), recompile_at()
    )
    yield case("notebook", '   "text": [\n' + ",\n".join("    " + json.dumps(line + "\n") for line in rec.split("\n")) + "\n   ]", recompile_at())
    yield case(
        "notebook of ray",
        '   "text": [\n' + ",\n".join("    " + json.dumps(ray + line + "\n") for line in BACKEND.split("\n")) + "\n   ]",
        {**FAILED, "pid": 3989},
    )
    yield case("head cut", rec[30:], {"kind": "recompile", "function": "step"})
    yield case("tail cut", lim[:300], {"kind": "recompile_limit_hit", "limit": 8, "partial": True})
    yield case(
        "two ranks of vllm",
        turns(each("(Worker_TP0 pid=11) ", BACKEND), each("(Worker_TP1 pid=12) ", BACKEND)),
        {**FAILED, "pid": 11},
        {**FAILED, "pid": 12},
    )
    yield case(
        "utc time and level of an application", each("2025-11-07 10:28:53Z WARN [bot] ", SKIP), {**SKIPPED, "time": "2025-11-07T10:28:53+00:00"}
    )


def viewers() -> Cases:
    """Other collectors, viewers and editors; written after the first reading of those above, before one of these."""
    rec, lim = guards(RECOMPILE), glog(LIMIT, ids=" [5/8]")
    fronts: dict[str, tuple[str, Facts]] = {
        "excepthook of torch": ("[rank2]: ", {"rank": 2}),
        "excepthook under torchrun": ("[default2]:[rank10]: ", {"rank": 10}),
        "podman compose": ("[bot]   | ", {}),
        "compose with time": ("bot-1  | 2025-11-07T10:28:53.100000000Z ", {"time": "2025-11-07T10:28:53.100000+00:00"}),
        "kubectl prefix and time": ("[pod/bot-0/main] 2025-11-07T10:28:53.100000000Z ", {"time": "2025-11-07T10:28:53.100000+00:00"}),
        "nomad": ("2025-11-07T10:28:53.100Z [INFO] bot: ", {"time": "2025-11-07T10:28:53.100000+00:00"}),
        "wandb": ("2025-11-07 10:28:53,100 INFO    MainThread:3989 [redirect.py:wrap():12] ", {"time": "2025-11-07T10:28:53.100000+00:00"}),
        "pytest captured": ("WARNING  torch._dynamo.convert_frame:convert_frame.py:1358 ", {}),
        "spark": ("25/11/07 10:28:53 WARN Bot: ", {}),
        "log4j": ("2025-11-07 10:28:53,100 [worker-3] WARN  com.acme.Bot - ", {"time": "2025-11-07T10:28:53.100000+00:00"}),
        "rsyslog iso": ("2025-11-07T10:28:53.100000+00:00 gpu1 bot[3989]: ", {"pid": 3989, "time": "2025-11-07T10:28:53.100000+00:00"}),
        "rsyslog iso, no pid": ("2025-11-07T10:28:53.100000+00:00 gpu1 bot: ", {"time": "2025-11-07T10:28:53.100000+00:00"}),
        "fly": ("2025-11-07T10:28:53Z app[3d8d9e] ord [info]", {"time": "2025-11-07T10:28:53+00:00"}),
        "azure": ("2025-11-07T10:28:53.1000000Z stderr: ", {"time": "2025-11-07T10:28:53.100000+00:00"}),
        "tai64n": ("@4000000068d5c1b52a8f1c04 ", {}),
        "ts with format": ("[2025-11-07 10:28:53] ", {"time": "2025-11-07T10:28:53+00:00"}),
        "ts -s": ("00:01:07 ", {}),
        "absl": ("W1107 10:28:53.100000 140234866534208 train.py:88] ", {"time": "2025-11-07T10:28:53.100000+00:00"}),
        "ray 2.4 with index": ("(TorchTrainer pid=77) (RayTrainWorker pid=3989, ip=10.0.0.7) ", {"pid": 3989}),
        "sagemaker": ("[1,mpirank:3,algo-2]<stderr>:", {"rank": 3}),
        "sagemaker local": ("algo-1-x2kq7  | ", {}),
        "kubeflow": ("time=\"2025-11-07T10:28:53.100Z\" level=info msg=\"\" argo=true ", {}),
        "modal": ("[modal-worker-3] ", {}),
        "dask": ("2025-11-07 10:28:53,100 - distributed.nanny - WARNING - ", {"time": "2025-11-07T10:28:53.100000+00:00"}),
        "mosaicml": ("[3][RANK3]: ", {}),
        "tee of a script": ("stderr: ", {}),
        "concurrently": ("[0] ", {}),
        "concurrently by name": ("[bot] ", {}),
        "make": ("bot: ", {}),
    }  # fmt: skip
    for name, (front, seen) in fronts.items():
        bare = {"pid": None, "rank": None, "time": None, **seen}
        if name not in (
            "ts -s",
            "tee of a script",
            "make",
            "kubeflow",
            "mosaicml",
            "modal",
            "absl",
            "concurrently by name",
            "azure",
            "pytest captured",
        ):
            yield case(f"{name}: skip", each(front, SKIP), {**SKIPPED, **bare})
            yield case(f"{name}: backend", each(front, BACKEND.rstrip("\n")), {**FAILED, **bare})
        yield case(f"{name}: limit", each(front, lim), limit_at(rank=bare["rank"]))
    docker_rows = docker(rec).split("\n")
    yield case(
        "loki",
        "\n".join(json.dumps({"line": line, "timestamp": "2025-11-07T10:28:53.1Z", "fields": {"pod": "bot-0"}}) for line in rec.split("\n")),
        recompile_at(),
    )
    yield case(
        "datadog",
        "\n".join(json.dumps({"content": {"message": line, "service": "bot"}, "id": str(n)}) for n, line in enumerate(rec.split("\n"))),
        recompile_at(),
    )
    yield case("vector", "\n".join(json.dumps({"host": "gpu1", "message": line, "source_type": "stdin"}) for line in rec.split("\n")), recompile_at())
    yield case(
        "fluent bit",
        "\n".join(f"[{n}] kube.bot: [[1762511333.1, {{}}], {json.dumps({'log': line})}]" for n, line in enumerate(rec.split("\n"))),
        recompile_at(),
    )
    yield case("objects without newlines", "".join(docker_rows), recompile_at())
    yield case("objects with blanks", " ".join(docker_rows), recompile_at())
    yield case("wrapped docker", wrapped("\n".join(docker_rows * 3), 120), *[recompile_at()] * 3)
    yield case("an issue's details", "<details><summary>log</summary>\n\n```\n" + lim + "\n```\n\n</details>", limit_at())
    yield case("a mail", each("> > ", lim), limit_at())
    yield case("a wiki's preformatted lines", each(" ", lim), limit_at())
    yield case("a web page's <br>", "<br>\n".join(lim.split("\n")), limit_at())
    yield case(
        "rank in front of the error alone",
        "[rank1]: Traceback (most recent call last):\n" + each("[rank1]: ", BACKEND.partition("\n")[2].rstrip("\n")),
        {**FAILED, "rank": 1},
    )
    yield case("numbered listing", "\n".join(f"{n:6}\t{line}" for n, line in enumerate(rec.split("\n"), 1)), recompile_at())
    yield case("grep -H", each("logs/bot.log:", rec), recompile_at())
    yield case("tail of two files", "==> a.log <==\n" + rec + "\n\n==> b.log <==\n" + lim, recompile_at(), limit_at())
    yield case("pytest", each("E   ", BACKEND.partition("traceback(\n")[2]), FAILED)
    yield case("a lone number in front", "note1: " + BACKEND, FAILED)


def look_alikes() -> Cases:
    """What tells of torch's messages and is none."""
    quoting = {
        "source of the limit": '            log.warning(\n                "torch._dynamo hit config.%s (%s)\\n"\n                "   function: %s\\n"\n                "   last reason: %s\\n"',
        "source of a skip": '    return f"skipping cudagraphs due to {reason}"',
        "source of a skip, old": '        perf_hint_log.warning("skipping cudagraphs due to %s", msg)',
        "source of a stance": """            message = (\n                "Detected recompile when torch.compile stance is "\n                f"'{_stance.stance}'"\n            )""",
        "source of a stance, 2.6": """                    raise RuntimeError(\n                        "Detected recompile when torch.compile stance is 'fail_on_recompile'"\n                    )""",
        "source of overwritten": '            raise RuntimeError(\n                "Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run. "\n                f"Stack trace: {stack_trace}. "\n                "To prevent overwriting, clone the tensor outside of torch.compile() "\n                "or call torch.compiler.cudagraph_mark_step_begin() before each model invocation."\n            )',
        "source of overwritten, 2.1": '            "Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run. Stack trace: "',
        "source of recompiling": '            failures = f"triggered by the following guard failure(s):\\n{textwrap.indent(reasons, \'- \')}"\n        guard_failure_details = (\n            f"triggered by the following {failures}"\n        )\n        message = (\n            f"Recompiling function {code.co_name} in {code.co_filename}:{code.co_firstlineno}\\n"',
        "source of a break": '            "Graph break in user code at %s:%s\\nReason: %s\\nUser code traceback:\\n%s",',
        "source of a warning": '            "Unable to hit fast path of CUDAGraphs because of pending, uninvoked backwards. "',
        "source of shapes": '            "CUDAGraph supports dynamic shapes by recording a new graph for each "\n            "distinct input size. Recording too many CUDAGraphs may lead to "',
        "source of a failure": "        raise FailOnRecompileLimitHit(\n            f\"{limit_type} reached with one_graph=True. Excessive recompilations can degrade performance\"",
        "source with line numbers": "1358             log.warning(\n1359                 \"torch._dynamo hit config.%s (%s)\\n\"",
        "a test": '        self.assertIn("skipping cudagraphs due to mutated inputs", log)\n        FileCheck().check("skipping cudagraphs due to cpu device").run(s)\n        with self.assertRaisesRegex(RuntimeError, "Detected recompile when torch.compile stance is \'fail_on_recompile\'"):',
        "grep of source": 'torch/_inductor/cudagraph_utils.py:204:    return f"skipping cudagraphs due to {reason}"\ntorch/_dynamo/eval_frame.py:88:            "Detected recompile when torch.compile stance is \'fail_on_recompile\'"',
        "a diff": '+        log.warning("skipping cudagraphs due to mutated inputs")\n-        raise RuntimeError("Detected recompile when torch.compile stance is \'fail_on_recompile\'")',
        "an import": "from torch._dynamo.exc import TorchRuntimeError, Unsupported, UserError\n    from torch._dynamo.debug_utils import AccuracyError",
        "a table of exceptions": "        TorchRuntimeError: None,\n        Unsupported: ExportErrorType.UNSUPPORTED,",
        "a function that gives a string": '            lambda: "TODO: graph recording observed an input tensor deallocate during graph "\n            " recording that did not occur during replay."',
        "an argument": '    raise errors.SymbolicValueError(\n        "Unsupported: ONNX export of __contains__ for non-constant list or element.",\n        self,\n    )',
        "a template": "                    Graph break from `Tensor.item()`, consider setting:\n                        torch._dynamo.config.capture_scalar_outputs = True\n                    or:\n                        env TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=1\n                    to include these operations in the captured graph.\n\n                    Graph break: from user code at:\n                    %s",
        "chat": "does anybody know what skipping cudagraphs due to means?",
        "chat with a name": "anna: we saw it skipping cudagraphs due to the cpu table",
        "commit": "inductor: stop skipping cudagraphs due to mutated inputs (#12345)",
        "other recompile": "INFO webpack2: Recompiling function bundle because src changed",
        "counter": "counters['inductor']['cudagraph_skips'] = 0, recompiles: 0, graph breaks: 0",
        "settings": "TORCH_LOGS=recompiles python train.py --recompile-limit 64",
        "two tokens in front": "bot-0 main says hello\nbot-0 main Traceback (most recent call last):\nbot-0 main ValueError: no such symbol",
        "traceback of the program": each("gpu07: ", 'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 3, in <module>\n    main()\nKeyError: \'x\''),
    }  # fmt: skip
    for name, text in quoting.items():
        yield case(f"no event: {name}", text)


def excerpts() -> Iterator[Excerpt]:
    """All of them; a name comes once."""
    parts: tuple[Callable[[], Cases], ...] = (torch_prefixes, carriers, stacks, viewers, look_alikes)
    for part in parts:
        yield from part()
