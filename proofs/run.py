"""Proves remedies: runs a small program that shows the cause, then the same with the remedy, each in a fresh process under torch.

What torch logs is read by recompile-watch itself: recompiles, limit hits and graph breaks before and after. A remedy that is set in the
environment gets exactly the line that the advice on the first log says. Exit status: 0 every remedy helped and every result equals
eager's, 1 one did not, 2 a program failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from recompile_watch.config import load_catalog, load_rules
from recompile_watch.core.advice import Advice
from recompile_watch.core.analysis import Analysis, Facts, Report, SourceFacts
from recompile_watch.core.engine import SourceEngine
from recompile_watch.core.scan import LiteralMatcher
from recompile_watch.core.times import TimeOptions

SCENARIOS = Path(__file__).with_name("scenarios.py")
RULES = load_rules()
CATALOG = load_catalog()


@dataclass(frozen=True, slots=True)
class Proof:
    """A remedy and the program that shows it.

    cause: what the first log must show. is_advised: the advice on it names the remedy. logs: what torch is told to log.
    """

    remedy: str
    scenario: str
    cause: str
    is_advised: bool = True
    is_quick: bool = False
    logs: str = "recompiles,graph_breaks"


PROOFS = (
    Proof("none_first_automatic_dynamic", "size_first_step", "size_mismatch", is_quick=True),
    Proof("pgo_job_id", "size_learned_before", "size_mismatch", is_advised=False),
    Proof("remove_dynamic_false", "size_fixed", "size_mismatch"),
    Proof("mark_dynamic", "size_marked", "size_mismatch", is_quick=True),
    Proof("dynamic_sources_env", "size_from_outside", "size_mismatch", is_quick=True),
    Proof("drop_last", "last_batch", "size_mismatch"),
    Proof("pad_or_bucket", "size_in_buckets", "size_mismatch"),
    Proof("free_the_size", "size_as_key", "size_mismatch", logs="recompiles,dynamic"),
    Proof("stance_eager_on_recompile", "size_eager_stance", "size_mismatch", is_advised=False),
    Proof("exclude_from_compile", "index_excluded", "kv_cache_index"),
    Proof("mark_unbacked", "size_zero_one", "size_zero_one"),
    Proof("mark_unbacked", "size_to_one", "size_mismatch"),
    Proof("unbacked_sources_env", "size_from_outside", "size_mismatch", is_advised=False),
    Proof("allow_unspec_int_on_nn_module", "cache_index", "kv_cache_index"),
    Proof("dynamic_sources_env", "cache_index_from_outside", "kv_cache_index"),
    Proof("dynamic_sources_env", "layers_from_outside", "kv_cache_index", is_quick=True),
    Proof("tensor_wrap_scalar", "index_in_tensor", "kv_cache_index"),
    Proof("compile_whole_model", "layers_apart", "module_int_attribute"),
    Proof("compile_whole_model", "layer_caches", "size_mismatch"),
    Proof("isolate_recompiles", "layers_isolated", "module_int_attribute"),
    Proof("isolate_recompiles", "layers_of_widths", "size_mismatch", logs="recompiles,dynamic"),
    Proof("remove_per_layer_attribute", "layers_by_name", "str_value"),
    Proof("raise_recompile_limit", "names_and_limit", "str_value"),
    Proof("recompile_limit_kwarg", "names_and_own_limit", "str_value"),
    Proof("compile_tensor_part", "text_as_argument", "str_value", is_quick=True),
    Proof("force_parameter_static_shapes_false", "widths", "parameter_size"),
    Proof("force_parameter_static_shapes_false", "buffer_that_grows", "size_mismatch"),
    Proof("one_dtype_for_model", "layers_cast_one_by_one", "dtype_mismatch"),
    Proof("torch_for_math", "heat_under_math", "float_value"),
    Proof("number_outside_operation", "scale_of_a_picture", "float_value"),
    Proof("sort_by_tensor", "sorted_by_score", "graph_break"),
    Proof("general_way", "mask_without_effect", "graph_break"),
    Proof("tensor_in_closure", "margin_in_closure", "closure_or_global"),
    Proof("select_by_tensor", "entry_of_a_step", "int_value"),
    Proof("no_argument_checks", "checked_distribution", "graph_break"),
    Proof("no_norm_check", "checked_norm", "graph_break"),
    Proof("compile_around_transform", "under_a_transform", "dispatch_keys"),
    Proof("tensor_wrap_scalar", "number_as_tensor", "int_value"),
    Proof("lr_tensor", "learning_rate", "float_value"),
    Proof("same_backend", "backends", "backend_match"),
    Proof("reset_between_arms", "backends_compared", "backend_match"),
    Proof("compile_once", "compile_in_a_loop", "backend_match"),
    Proof("stable_arg_structure", "structure", "type_identity"),
    Proof("static_cache", "growing_list", "container_length"),
    Proof("pass_derived_value", "list_index", "int_value"),
    Proof("loop_outside", "rounds", "int_value"),
    Proof("pass_the_entry", "states", "container_length"),
    Proof("pass_as_argument", "global_counter", "closure_or_global"),
    Proof("fill_outside", "history", "container_length"),
    Proof("drop_unused_argument", "dict_keys", "dict_keys"),
    Proof("drop_unused_argument", "keys_that_are_data", "dict_keys"),
    Proof("tensor_wrap_scalar", "globals_as_tensors", "closure_or_global"),
    Proof("contiguous_layout", "layout", "stride_mismatch"),
    Proof("keep_dtype_consistent", "dtypes", "dtype_mismatch"),
    Proof("keep_requires_grad_consistent", "gradients", "requires_grad"),
    Proof("keep_requires_grad_consistent", "unfrozen", "requires_grad"),
    Proof("keep_grad_mode_consistent", "grad_modes", "grad_mode"),
    Proof("keep_global_state_consistent", "autocasts", "autocast"),
    Proof("set_threads_before_warmup", "threads", "global_state"),
    Proof("duck_shape_off", "duck_sizes", "symbolic_shape"),
    Proof("warmup", "duck_sizes_warmed_up", "symbolic_shape"),
    Proof("clone_inputs", "aliases", "tensor_aliasing"),
    Proof("set_config_in_every_thread", "limit_in_a_thread", "str_value", is_advised=False),
    Proof("capture_scalar_outputs", "item", "graph_break"),
    Proof("capture_dynamic_output_shape_ops", "nonzero", "graph_break"),
    Proof("branch_as_tensor", "branch", "graph_break"),
    Proof("remove_graph_break", "explicit_break", "graph_break", is_quick=True),
    Proof("custom_op", "builtin_of_c", "graph_break"),
    Proof("register_fake", "fake_kernel", "graph_break"),
    Proof("assert_async", "checked", "graph_break"),
    Proof("branch_as_tensor", "branch_on_item", "graph_break"),
    Proof("set_hinted_config", "gradient_inside", "graph_break"),
    Proof("name_num_classes", "one_hot", "graph_break"),
    Proof("register_fake", "fake_kernel_of_dynamic_shape", "graph_break"),
    Proof("allow_rnn", "recurrent", "graph_break"),
    Proof("reorder_logging", "printed", "graph_break"),
    Proof("ignore_logging", "logged", "graph_break"),
    Proof("log_outside", "logged_outside", "graph_break"),
    Proof("output_size", "repeated", "graph_break"),
    Proof("numbers_as_python", "size_in_a_buffer", "graph_break"),
    Proof("read_number_outside", "running_loss", "graph_break"),
    Proof("compile_the_body", "list_left_outside", "container_length"),
    Proof("functional_grad", "gradient_of_a_function", "graph_break"),
    Proof("stable_arg_structure", "function_called_outside", "object_identity"),
    Proof("disable_compile_process", "size_from_outside", "size_mismatch", is_advised=False),
)
# What the advice on the first log cannot say, because its finding is another one.
ENVIRONMENT = {
    ("unbacked_sources_env", "size_from_outside"): {"TORCH_COMPILE_UNBACKED_SOURCES": "L['x']"},
    ("disable_compile_process", "size_from_outside"): {"TORCHDYNAMO_DISABLE": "1"},
    ("pgo_job_id", "size_learned_before"): {"TORCH_COMPILE_JOB_ID": "bot"},
}


@dataclass(frozen=True, slots=True)
class Counts:
    """What one run logged."""

    recompiles: int
    limit_hits: int
    graph_breaks: int

    def __str__(self) -> str:
        names = ("recompile", "limit hit", "graph break")
        values = (self.recompiles, self.limit_hits, self.graph_breaks)
        parts = [f"{value} {name}{'' if value == 1 else 's'}" for name, value in zip(names, values, strict=True) if value]
        return ", ".join(parts) or "none"

    def is_better_than(self, other: Counts) -> bool:
        """Fewer limit hits, or as few with fewer recompiles, or as few of both with fewer graph breaks."""
        mine, theirs = ((one.limit_hits, one.recompiles, one.graph_breaks) for one in (self, other))
        return mine < theirs


@dataclass(frozen=True, slots=True)
class Outcome:
    """One proof carried out. failures: why it proves nothing; empty when it holds."""

    proof: Proof
    before: Counts
    after: Counts
    applied: str
    torch: str
    failures: tuple[str, ...]


class ScenarioFailedError(Exception):
    """A program ended with an error."""


def main() -> int:
    options = _parse_options()
    proofs = [proof for proof in PROOFS if not options.quick or proof.is_quick]
    if options.only:
        proofs = [proof for proof in proofs if options.only in (proof.remedy, proof.scenario)]
    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            outcomes = list(pool.map(lambda proof: _shown(carried_out(proof, options.python)), proofs))
    except ScenarioFailedError as failure:
        print(f"failed: {failure}", file=sys.stderr)
        return 2
    if options.markdown:
        options.markdown.write_text(_markdown(outcomes))
    return 1 if any(outcome.failures for outcome in outcomes) else 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has torch (default: this one)")
    parser.add_argument("--quick", action="store_true", help="a few proofs only")
    parser.add_argument("--only", metavar="NAME", help="one remedy, or one scenario")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default 2)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="writes the table for the documentation")
    return parser.parse_args()


def carried_out(proof: Proof, python: str) -> Outcome:
    """Runs both programs of a proof. Raises ScenarioFailedError when one fails."""
    report, before, equal_before, torch = _run(proof, "before", python, {})
    found = {text for finding in report.findings for text in (finding.cause, finding.kind) if text}
    advised = {advice.name: advice for finding in report.findings for advice in finding.advice}
    failures = []
    if proof.cause not in found:
        failures.append(f"the log shows {', '.join(sorted(found)) or 'nothing'} and not {proof.cause}")
    if proof.is_advised and proof.remedy not in advised:
        failures.append(f"the advice is {', '.join(advised) or 'none'}")
    environment = ENVIRONMENT.get((proof.remedy, proof.scenario)) or _environment(advised.get(proof.remedy))
    _, after, equal_after, _ = _run(proof, "after", python, environment)
    if not (equal_before and equal_after):
        failures.append("a result differs from eager's")
    if not after.is_better_than(before):
        failures.append("it does not help")
    applied = " ".join(f"{name}={value}" for name, value in environment.items())
    return Outcome(proof, before, after, applied, torch, tuple(failures))


def _run(proof: Proof, when: str, python: str, environment: dict[str, str]) -> tuple[Report, Counts, bool, str]:
    with tempfile.TemporaryDirectory() as cache:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
        clean |= {"TORCH_LOGS": proof.logs, "TORCHINDUCTOR_CACHE_DIR": cache, **environment}
        done = subprocess.run([python, str(SCENARIOS), proof.scenario, when], capture_output=True, timeout=300, env=clean, check=False)
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        raise ScenarioFailedError(f"{proof.scenario} {when}: {last}")
    answer = json.loads(done.stdout)
    report, counts = _read(done.stderr, answer["torch"])
    return report, counts, answer["equal"], answer["torch"]


def _read(log: bytes, torch: str) -> tuple[Report, Counts]:
    engine = SourceEngine("proof.log", RULES, LiteralMatcher(RULES.literals), TimeOptions())
    analysis, kinds = Analysis(RULES), Counter[str]()
    for event in engine.feed(log) + engine.end():
        analysis.take(event)
        kind = getattr(event, "kind", "")
        kinds[kind] += not (kind == "recompile" and event.extra.get("refused"))  # type: ignore[union-attr]
    report = analysis.report(Facts((SourceFacts("proof.log"),), torch_version=torch), CATALOG)
    return report, Counts(kinds["recompile"], kinds["recompile_limit_hit"], kinds["graph_break"])


def _environment(advice: Advice | None) -> dict[str, str]:
    """What the advised line sets, as a shell would read it; nothing for other kinds of remedies."""
    if advice is None or advice.kind != "env":
        return {}
    words = shlex.split(advice.apply, comments=True)
    return dict(word.split("=", 1) for word in words[1:]) if words[:1] == ["export"] else {}


def _shown(outcome: Outcome) -> Outcome:
    mark = "ok  " if not outcome.failures else "FAIL"
    why = f"  ({'; '.join(outcome.failures)})" if outcome.failures else ""
    print(f"{mark} {outcome.proof.remedy} [{outcome.proof.scenario}]: {outcome.before} -> {outcome.after}{why}", flush=True)
    return outcome


def _row(outcome: Outcome) -> str:
    star = "" if outcome.proof.is_advised else " \\*"
    applied = f"`{outcome.applied}`" if outcome.applied else ""
    return f"| `{outcome.proof.remedy}`{star} | `{outcome.proof.cause}` | {outcome.before} | {outcome.after} | {applied} |"


def _markdown(outcomes: list[Outcome]) -> str:
    versions = ", ".join(sorted({outcome.torch for outcome in outcomes}))
    rows = [_row(outcome) for outcome in outcomes]
    proven = {outcome.proof.remedy for outcome in outcomes}
    others: dict[str, str] = {}
    for remedy in CATALOG.remedies:
        known = others.get(remedy.name, "").split("; ")
        if remedy.name not in proven and remedy.verified not in known:
            others[remedy.name] = "; ".join([*filter(None, known), remedy.verified])
    return "\n".join(
        [
            "# Remedies",
            "",
            f'`make prove` ran each remedy below on torch {versions} (CPU, `backend="eager"`; counts are the same for every backend and mode): a',
            "small program that shows the cause, then the same with the remedy, each in a fresh process. The log was read by recompile-watch itself,",
            "the remedy was one that its advice named (but for \\*), and every result equals eager's. The programs are in `proofs/scenarios.py`.",
            "",
            "torch 2.15.0 gave the same counts on a machine without a GPU, but for `allow_rnn`: 1 graph break before.",
            "",
            "| remedy | cause in the log | before | after | set in the environment, as advised |",
            "| --- | --- | --- | --- | --- |",
            *rows,
            "",
            "## Not proven here",
            "",
            "These need a GPU, a real model, another torch, or time; how each is known:",
            "",
            "| remedy | how it is known |",
            "| --- | --- |",
            *[f"| `{key}` | {verified} |" for key, verified in sorted(others.items())],
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
