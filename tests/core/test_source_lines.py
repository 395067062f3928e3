"""Tests of `recompile_watch.core.source_lines`: the version of torch by the line of its source that a prefix names."""

from __future__ import annotations

import pytest

from recompile_watch.core.source_lines import torch_of, torch_of_message
from tests.conftest import events_of_bytes
from tests.core.test_graph_breaks import findings

LIMIT = (
    "{p}torch._dynamo hit config.{name} (8)\n{p}   function: 'f' (/srv/m.py:3)\n{p}   last reason: 0/7: key == 'order-7'\n"
    '{p}To log all recompilation reasons, use TORCH_LOGS="recompiles".\n'
)


@pytest.mark.parametrize(
    ("prefix", "version"),
    [
        ("V1122 11:15:31.432000 15922 torch/_dynamo/guards.py:5396] [0/1] [__recompiles] ", "2.13"),
        ("V0628 16:16:07.987000 140422897132672 torch/_dynamo/guards.py:2609] [0/8] [__recompiles_verbose] ", "2.4"),
        ("[rank0]:W1105 08:39:08.194000 77 torch/_dynamo/convert_frame.py:844] [10/8] ", "2.5"),
        ("[rank0]:W1105 08:39:08.194000 77 site-packages/torch/_dynamo/convert_frame.py:906] [10/8] ", "2.6"),
        ("I1123 16:10:48.063000 1 torch/_inductor/cudagraph_utils.py:341] [__cudagraphs] ", "2.9"),
        ("V1122 11:15:31.432000 15922 torch/_dynamo/guards.py:5397] [0/1] [__recompiles] ", None),  # a build between two releases
        ("W1122 11:15:31.432000 15922 torch/_dynamo/convert_frame.py:5396] [0/1] ", None),
        ("[2023-11-23 16:09:13,395] torch._dynamo.convert_frame: [WARNING] ", "<2.3"),
        ("[2023-11-23 21:56:59,425] torch._dynamo.convert_frame.__recompiles: [DEBUG] ", "2.1"),
        ("[2024-02-29 19:44:37,740] [43/0_1] torch._guards: [ERROR] ", None),
        ("", None),
    ],
)
def test_a_prefix_tells_the_version_that_wrote_it(prefix: str, version: str | None) -> None:
    """Each release has its calls on other lines; up to 2.2 no line is named."""
    assert torch_of(prefix.encode()) == version


FRAME = '  File "/v/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py", line {}, in {}\n    return fn(*args, **kwargs)\n'


@pytest.mark.parametrize(
    ("frames", "version"),
    [
        ([(328, "_fn")], "2.1"),
        ([(574, "_fn"), (1750, "_call_impl")], "2.6"),
        ([(1183, "compile_wrapper"), (1446, "_fn")], "2.13"),
        ([(1202, "compile_wrapper")], None),  # 2.13's and 2.14's
        ([(1202, "compile_wrapper"), (1547, "_fn")], "2.14"),
        ([(574, "_fn"), (1446, "_fn")], None),  # tracebacks of two installations
        ([(574, "wrapper")], None),
    ],
)
def test_a_traceback_tells_the_version_that_it_went_through(frames: list[tuple[int, str]], version: str | None) -> None:
    """The lines of eval_frame.py that call a compiled function."""
    stack = "".join(FRAME.format(*frame) for frame in frames)
    log = f'Traceback (most recent call last):\n  File "/srv/m.py", line 9, in main\n    f(x)\n{stack}torch._dynamo.exc.Unsupported: generic_jump\n'
    (event,) = events_of_bytes(log.encode(), "-")
    assert event.get("torch") == version
    assert torch_of_message(stack.encode().replace(b"/", b"\\")) == ({} if version is None else {"torch": version})


TORCH = "/v/lib/python3.11/site-packages/torch/"
TAIL = """torch._dynamo.exc.Unsupported: {said}

from user code:
   File "/srv/m.py", line 24, in forward
    logger.info("text")

{words}
"""


@pytest.mark.parametrize(
    ("frames", "said", "words", "version"),
    [
        (f'  File "{TORCH}_dynamo/exc.py", line 172, in unimplemented\n    raise Unsupported(msg)\n', "call_function x", "", "2.1"),
        (f'  File "{TORCH}_dynamo/symbolic_convert.py", line 1267, in step\n    self.dispatch_table[inst.opcode](self, inst)\n', "x", "", "2.8"),
        ("", "call_function x", 'Set TORCH_LOGS="+dynamo" and TORCHDYNAMO_VERBOSE=1 for more information', "<2.7"),
        ("", "inline in skipfiles: Logger.info  | info /usr/lib/python3.11/logging/__init__.py", "", "<2.7"),
        ("", "Data-dependent branching\n  Developer debug context: attempted to jump with TensorVariable()", "", ">=2.7"),
        ("", "Unsupported Tensor.item() call with capture_scalar_outputs=False\n  Developer debug context: item", "", ">=2.8"),
        ("", "torch.compile with fullgraph=True found no compiled frames. Skipped frames:\n  - f (/srv/m.py:2): why", "", ">=2.12"),
        ("", "call_function x", "", None),
    ],
)
def test_the_tail_of_a_failure_tells_the_version(frames: str, said: str, words: str, version: str | None) -> None:
    """People paste the end alone: the line of torch that raised, or the words of 2.7's new form."""
    log = ("Traceback (most recent call last):\n" if frames else "") + frames + TAIL.format(said=said, words=words)
    (event,) = events_of_bytes(log.encode(), "-")
    assert (event["kind"], event.get("torch")) == ("compile_error", version)


@pytest.mark.parametrize(
    ("line", "name", "apply", "shown"),
    [
        (762, "cache_size_limit", "torch._dynamo.config.cache_size_limit = 16", "2.4"),
        (1016, "recompile_limit", "torch._dynamo.config.recompile_limit = 16", "2.8"),
        (1994, "recompile_limit", "torch.compile(..., recompile_limit=16)", "2.13"),
    ],
)
def test_advice_is_for_the_version_that_wrote_the_log(line: int, name: str, apply: str, shown: str) -> None:
    """torch.compile takes no recompile_limit before 2.13 (measured on 2.8 and 2.11: TypeError)."""
    log = LIMIT.format(p=f"W1123 16:10:48.063000 17806 torch/_dynamo/convert_frame.py:{line}] [0/8] ", name=name)
    assert [event["torch"] for event in events_of_bytes(log.encode(), "-")] == [shown]
    assert findings(log)[0].advice[0].apply == apply


def test_what_a_recompile_costs_is_said_for_the_version_that_wrote_it() -> None:
    """Integer attributes of modules are constants from torch 2.8 on (measured)."""
    log = (
        "{p}Recompiling function forward in /srv/m.py:6\n{p}    triggered by the following guard failure(s):\n{p}    - 0/0: L['self'].step == 1"
        "  # (HINT: torch.compile considers integer attributes of the nn.Module to be static.)\n"
    )
    old, new = (log.format(p=f"V1123 16:07:55.538000 77 torch/_dynamo/guards.py:{line}] [0/1] [__recompiles] ") for line in (2611, 3508))
    assert findings(old)[0].consequence.startswith("Until 2.7 ") and findings(new)[0].consequence.startswith("torch takes integer attributes")


def test_two_versions_in_one_log_are_no_version() -> None:
    """Two processes of two installations: what holds for both is told."""
    logs = [
        LIMIT.format(p=f"W1123 16:10:48.063000 {line} torch/_dynamo/convert_frame.py:{line}] [0/8] ", name="recompile_limit") for line in (1016, 1994)
    ]
    assert {event["torch"] for event in events_of_bytes("".join(logs).encode(), "-")} == {"2.8", "2.13"}
    assert findings("".join(logs))
