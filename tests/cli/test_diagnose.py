"""Tests of `recompile-watch diagnose` through the real program, with workers that answer as told instead of measuring."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from recompile_watch.store import Changes, Store
from tests.cli.test_commands import run
from tests.respond.fake import honest, script

STORM = {"recompiles": 30, "graph_breaks": 20, "limit_hits": 1}
GATES = ["effective", "success", "compiled", "limit", "recompiles", "late_recompiles", "error", "memory", "speedup", "break_even"]


def diagnose(tmp_path: Path, python: str, *options: str, written: bool = False) -> tuple[int, dict[str, object], str]:
    """Exit status, JSON report (empty when written to a file) and standard error of one diagnosis of a built-in workload."""
    done = run(
        "diagnose", "--builtin", "steady", "--python", python, "--device", "cpu", "--state-dir", str(tmp_path / "state"), "--format", "json", *options
    )
    return done.returncode, {} if written else json.loads(done.stdout), done.stderr


def verdict(report: Mapping[str, object]) -> dict[str, object]:
    found = report["verdict"]
    assert isinstance(found, dict)
    return found


def candidates(report: Mapping[str, object]) -> dict[str, dict[str, object]]:
    found = report["candidates"]
    assert isinstance(found, list)
    return {one["name"]: one for one in found}


def test_a_decision(tmp_path: Path) -> None:
    """Exit status 0, the contract's fields, the gates in order, and the lines to paste."""
    code, report, errors = diagnose(tmp_path, honest(tmp_path, gain={"default": 3.0}))
    assert (code, errors, report["schema"]) == (0, "", "recompile-watch/diagnosis/1")
    assert (verdict(report)["choose"], verdict(report)["settings"]) == ("default", ["model = torch.compile(model)"])
    assert set(report) >= {"workload", "device", "torch_version", "profile", "mode", "control", "candidates", "verdict"}
    default = candidates(report)["default"]
    assert isinstance(default["gates"], list) and [gate["gate"] for gate in default["gates"]] == GATES
    timing = default["timing"]
    assert (
        isinstance(timing, dict)
        and timing["calls"] == 30
        and timing["ci_low"] > 2
        and timing["p99_ms"] is None
        and 590 <= timing["break_even_calls"] <= 610
    )
    assert set(report["control"]) == {"ratio", "ci_low", "ci_high", "minimum_detectable_effect"}  # type: ignore[call-overload]


def test_what_is_not_run_says_why(tmp_path: Path) -> None:
    """A calm default mode leaves nothing to mend, and without a GPU reduce-overhead is the default mode."""
    _, report, _ = diagnose(tmp_path, honest(tmp_path, gain={"default": 3.0}))
    reasons = {name: one["reason"] for name, one in candidates(report).items() if one["status"] == "skipped"}
    assert set(reasons) == {"dynamic", "recompile_limit=64", "allow_unspec_int_on_nn_module", "capture_scalar_outputs", "reduce-overhead"}
    assert "without a GPU" in str(reasons["reduce-overhead"])


def test_a_storm_stays_eager(tmp_path: Path) -> None:
    """What its structure rejects is not timed; the limit is a reason."""
    everything = dict.fromkeys(("default", "dynamic", "recompile_limit=64", "allow_unspec_int_on_nn_module", "capture_scalar_outputs"), STORM)
    code, report, _ = diagnose(tmp_path, honest(tmp_path, gain={"default": 3.0}, structure=everything))
    assert code == 0 and verdict(report)["choose"] == "eager" and candidates(report)["default"]["timing"] is None
    assert any("limit was hit" in reason for reason in verdict(report)["because"])  # type: ignore[attr-defined]


def test_a_crash_does_not_stop_the_rest(tmp_path: Path) -> None:
    """One candidate fails every call: it is rejected, the others are judged."""
    crash: dict[str, dict[str, object]] = {"dynamic": {"status": "failed", "reason": "IndexError: x", "calls": 5, "calls_ok": 0}}
    code, report, _ = diagnose(tmp_path, honest(tmp_path, gain={"default": 3.0}, outcome=crash), "--candidates", "default,dynamic")
    assert code == 0 and verdict(report)["choose"] == "default"
    assert (candidates(report)["dynamic"]["status"], candidates(report)["dynamic"]["success"]) == ("failed", "0/5")


def test_a_full_measurement(tmp_path: Path) -> None:
    """Twice as many pairs, and each candidate's first call once more with full caches."""
    _, report, _ = diagnose(tmp_path, honest(tmp_path, gain={"default": 3.0}), "--mode", "full", "--candidates", "default")
    timing = candidates(report)["default"]["timing"]
    assert isinstance(timing, dict) and timing["calls"] == 60 and timing["first_call_cached_s"] == 9.0 and timing["sigma_ms"] > 0


def test_variants_of_the_workload_are_tried(tmp_path: Path) -> None:
    """The workload's own variants become candidates by themselves."""
    _, report, _ = diagnose(tmp_path, honest(tmp_path, gain={"variant:no-cache": 4.0}, structure={"default": STORM}, variants=("no-cache",)))
    assert verdict(report)["choose"] == "variant:no-cache"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys; sys.exit('No module named torch')", "No module named torch"),
        ("import time; time.sleep(100)", "was ended after 1 s"),
        ("print('garbage ' * 100)", "no result"),
        ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"),
    ],
)
def test_without_eager_there_is_no_verdict(tmp_path: Path, text: str, words: str) -> None:
    """A worker that cannot run at all: each candidate says so, status 3, nothing chosen."""
    code, report, _ = diagnose(tmp_path, script(tmp_path, text), "--candidates", "default", "--time-limit", "1")
    assert code == 3 and verdict(report)["status"] == "inconclusive" and verdict(report)["choose"] is None
    assert words in str(candidates(report)["default"]["reason"]) or words in str(verdict(report)["because"])


def test_a_workload_that_cannot_be_used(tmp_path: Path) -> None:
    """It is said once, in a line, and nothing more is run."""
    broken: dict[str, dict[str, object]] = {"default": {"status": "failed", "reason": "workload x:y has no method call", "fault": "workload"}}
    code, report, errors = diagnose(tmp_path, honest(tmp_path, outcome=broken))
    assert code == 3 and errors.count("\n") == 1 and "has no method call" in errors
    assert "has no method call" in str(verdict(report)["because"])
    assert candidates(report)["default"]["status"] == "skipped" and not verdict(report)["against"]


def test_the_structural_stage(tmp_path: Path) -> None:
    """Nothing is timed: a quiet candidate is no decision yet, a storm is."""
    code, report, _ = diagnose(tmp_path, honest(tmp_path), "--stage", "structural", "--candidates", "default")
    assert code == 3 and candidates(report)["default"]["timing"] is None and report["control"] is None
    assert diagnose(tmp_path, honest(tmp_path, structure={"default": STORM}), "--stage", "structural", "--candidates", "default")[0] == 0


def test_text_and_markdown(tmp_path: Path) -> None:
    """The verdict first; nothing wider than the page; no markup of the workload's making."""
    python = honest(tmp_path, gain={"default": 3.0})
    common = ("diagnose", "--builtin", "steady", "--python", python, "--device", "cpu", "--state-dir", str(tmp_path / "state"))
    text = run(*common).stdout
    assert text.startswith(" default ") and max(map(len, text.split("\n"))) <= 100 and "\x1b" not in text
    markdown = run(*common, "--format", "markdown").stdout
    assert markdown.startswith("# Eager against compiled: run default") and "| eager |" in markdown
    assert next(line for line in markdown.split("\n") if "●" in line and line.startswith("default")).endswith("]")
    done = run(*common, "--output", str(tmp_path / "report.txt"), "--log", str(tmp_path / "torch.log"))
    assert done.stdout == "" and (tmp_path / "report.txt").read_text().startswith(" default ") and (tmp_path / "torch.log").exists()


def test_a_kept_result(tmp_path: Path) -> None:
    """`--from` shows what was measured in any format, byte for byte as when it was fresh, with the same status, and starts nothing."""
    kept, stage = tmp_path / "kept.json", ("--stage", "structural")
    code, _, _ = diagnose(tmp_path, honest(tmp_path), *stage, "--candidates", "default", "--output", str(kept), written=True)
    assert code == 3
    shown = {style: run("diagnose", "--from", str(kept), "--format", style) for style in ("text", "json", "markdown", "html")}
    assert {done.returncode for done in shown.values()} == {3} and not "".join(done.stderr for done in shown.values())
    first, again = json.loads(kept.read_text()), json.loads(shown["json"].stdout)
    assert {**again, "generated_at": ""} == {**first, "generated_at": ""}
    assert shown["text"].stdout.startswith(" INCONCLUSIVE ") and shown["markdown"].stdout.startswith("# Eager against compiled: inconclusive")
    assert "Not measured: structural stage only." in shown["html"].stdout


def test_a_page(tmp_path: Path) -> None:
    """`--format html` writes one file with the verdict and its charts, and says nothing."""
    page = tmp_path / "page.html"
    code, _, errors = diagnose(
        tmp_path, honest(tmp_path, gain={"default": 3.0}), "--format", "html", "--output", str(page), "--candidates", "default", written=True
    )
    assert (code, errors) == (0, "")
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>") and "steady: run default" in text and 'id="speedup-wide-title"' in text


def test_a_page_about_a_refusal(tmp_path: Path) -> None:
    """What must not run now gives a page that says so, beside the line on standard error; other formats give the line alone."""
    state, page = ("--state-dir", str(tmp_path)), tmp_path / "page.html"
    (tmp_path / "bot.log").write_text("hello\n")
    (tmp_path / "rw.toml").write_text(f'[diagnose]\nbot_log = "{tmp_path / "bot.log"}"\n')
    common = ("diagnose", "--builtin", "steady", "--python", honest(tmp_path), "--device", "cpu", "--config", str(tmp_path / "rw.toml"), *state)
    done = run(*common, "--format", "html", "--output", str(page))
    assert done.returncode == 3 and done.stderr.count("\n") == 1
    assert "Not measured" in page.read_text() and "shows 0 calls" in page.read_text()
    assert run(*common, "--format", "json").stdout == ""


@pytest.mark.parametrize("options", [["--builtin", "steady"], ["--seed", "3"], ["--stage", "timed"], ["--expected-calls", "9"]])
def test_a_kept_result_is_not_measured_again(tmp_path: Path, options: list[str]) -> None:
    """Options of a new run are wrong usage beside `--from`."""
    done = run("diagnose", "--from", str(tmp_path / "kept.json"), *options)
    assert done.returncode == 64 and done.stderr.count("\n") == 1 and f"it takes no {options[0]}" in done.stderr


def test_a_kept_file_that_holds_no_result(tmp_path: Path) -> None:
    """78, and one line that says how to get one."""
    (tmp_path / "kept.json").write_text('{"schema": "recompile-watch/analysis/1"}')
    for path in (tmp_path / "kept.json", tmp_path / "none.json"):
        done = run("diagnose", "--from", str(path))
        assert done.returncode == 78 and done.stderr.count("\n") == 1 and path.name in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--builtin", "kv-storn"], "did you mean 'kv-storm'?"),
        (["--builtin", "steady", "--workload", "a:b"], "exclude each other"),
        (["--workload", "bot"], "no module:factory"),
        (["--workload", "a-b:c"], "no module:factory"),
        (["--builtin", "steady", "--candidates", "fast"], "no such candidate 'fast'"),
        (["--builtin", "steady", "--candidates", "eager"], "besides eager"),
        (["--builtin", "steady", "--profile", "fast"], "--profile"),
        (["--builtin", "steady", "--seed", "x"], "--seed"),
        (["--builtin", "steady", "--time-limit", "0"], "--time-limit"),
    ],
)
def test_wrong_usage(options: list[str], words: str) -> None:
    """64, and one line that says what to do."""
    done = run("diagnose", *options)
    assert done.returncode == 64 and done.stderr.count("\n") == 1 and words in done.stderr


def test_no_workload() -> None:
    """Nothing was named, so nothing was run: 3, and how to name it."""
    done = run("diagnose")
    assert done.returncode == 3 and done.stderr.count("\n") == 1 and "--workload module:factory" in done.stderr


def test_the_configuration(tmp_path: Path) -> None:
    """Interpreter and workload come from [diagnose]; a mistake in it is 78."""
    config = tmp_path / "rw.toml"
    config.write_text(f'[diagnose]\npython = "{honest(tmp_path, gain={"default": 3.0})}"\nworkload = "bot:make"\nprofile = "balanced"\n')
    done = run("diagnose", "--config", str(config), "--device", "cpu", "--state-dir", str(tmp_path / "state"), "--format", "json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["workload"], report["profile"]) == (0, "bot:make", "balanced")
    config.write_text('[diagnose]\npyton = "x"\n')
    done = run("diagnose", "--config", str(config))
    assert done.returncode == 78 and done.stderr.count("\n") == 1 and "pyton: unknown key; did you mean 'python'" in done.stderr
    assert run("diagnose", "--config", str(tmp_path / "none.toml")).returncode == 78


def test_advice_is_tried(tmp_path: Path) -> None:
    """What the analysis of a log advises becomes a candidate, and what it gains stands in the first line."""
    log = Path(__file__).parents[2] / "sample_logs" / "bot-2025-10-30.log"
    run("analyze", "--format", "json", "--torch-version", "2.9.1", "--output", str(tmp_path / "analysis.json"), str(log))
    python = honest(tmp_path, gain={"exclude=positional_embedding": 1.5}, structure={"default": STORM})
    common = (
        "diagnose",
        "--builtin",
        "steady",
        "--python",
        python,
        "--device",
        "cpu",
        "--state-dir",
        str(tmp_path / "state"),
        "--profile",
        "balanced",
    )
    done = run(*common, "--advice", str(tmp_path / "analysis.json"))
    assert done.returncode == 0 and "measured: 30 recompiles → 0, 1.5" in done.stdout.split("\n")[0]
    assert run(*common, "--advice", str(log)).returncode == 78


def test_a_verdict_becomes_the_decision(tmp_path: Path) -> None:
    """`analyze --diagnosis` decides by the measurement, keeps what the log has against it, and leaves an inconclusive one open."""
    log = str(Path(__file__).parents[2] / "sample_logs" / "bot-2025-10-30.log")
    for name, gain in (("won", 3.0), ("lost", 1.0)):
        diagnose(
            tmp_path, honest(tmp_path, gain={"default": gain}), "--output", str(tmp_path / f"{name}.json"), "--candidates", "default", written=True
        )
    done = run("analyze", "--format", "json", "--diagnosis", f"toto={tmp_path / 'won.json'}", "--diagnosis", f"kronos={tmp_path / 'lost.json'}", log)
    decisions = json.loads(done.stdout)["decision"]["per_model"]
    assert (decisions["toto"]["mode"], decisions["toto"]["settings"][-1]) == ("default", "export TOTO_COMPILE_MODE=default")
    assert decisions["toto"]["confidence"].startswith("measured, high") and any("the log: " in reason for reason in decisions["toto"]["against"])
    assert decisions["kronos"]["mode"] == "eager" and decisions["kronos"]["confidence"].startswith("measured")
    for wrong, code in (("toto", 64), (f"toto={log}", 78), ("toto=/no/such/file", 78)):
        assert run("analyze", "--diagnosis", wrong, log).returncode == code


def test_it_does_not_run_blindly_beside_a_bot(tmp_path: Path) -> None:
    """A log that is named, and shows no latency to watch, is a reason not to start."""
    (tmp_path / "bot.log").write_text("hello\n")
    (tmp_path / "rw.toml").write_text(f'[diagnose]\nbot_log = "{tmp_path / "bot.log"}"\n')
    done = run("diagnose", "--builtin", "steady", "--python", honest(tmp_path), "--device", "cpu", "--config", str(tmp_path / "rw.toml"))
    assert done.returncode == 3 and done.stderr.count("\n") == 1 and "shows 0 calls" in done.stderr


def test_an_incident_cools_down(tmp_path: Path) -> None:
    """The second diagnosis of the same incident is refused with the time to wait; another incident is not; one that is not there is wrong usage."""
    advice = [{"remedy": "exclude_from_compile", "apply": "@torch.compiler.disable"}]
    incidents: dict[tuple[str | int, ...], object] = {
        ("a1f0",): {"id": "a1f0", "function": "attend", "advice": advice}, ("b2f0",): {"id": "b2f0", "function": None, "advice": []},
    }  # fmt: skip
    store = Store(tmp_path, now=0.0)
    store.commit(Changes({"incidents": incidents}))
    store.close()
    python = honest(tmp_path, gain={"exclude=attend": 3.0}, structure={"default": STORM})
    common = ["diagnose", "--builtin", "steady", "--python", python, "--device", "cpu", "--stage", "structural", "--state-dir", str(tmp_path)]
    first = run(*common, "--incident", "a1")
    assert first.returncode == 3 and "exclude=attend" in first.stdout
    done = run(*common, "--incident", "a1f0")
    assert done.returncode == 3 and "again in 360 minutes" in done.stderr and done.stderr.count("\n") == 1
    assert "exclude=" not in run(*common, "--incident", "b2").stdout
    for name, code, folder in (("zz", 64, tmp_path), ("a1", 3, tmp_path / "none")):
        wrong = run(*common[:-1], str(folder), "--incident", name)
        assert (wrong.returncode, wrong.stderr.count("\n"), wrong.stdout) == (code, 1, "")


def test_the_stage_that_is_allowed(tmp_path: Path) -> None:
    """Without a GPU `--stage auto` is the structural one, and nothing is postponed; a parent that is gone is a reason not to run."""
    _, report, _ = diagnose(tmp_path, honest(tmp_path), "--stage", "auto", "--candidates", "default")
    assert (report["stage"], report["postponed"]) == ("structural", None)
    assert verdict(report)["summary"] == "not decided: " + str(verdict(report)["because"][0])  # type: ignore[index]
    done = run("diagnose", "--builtin", "steady", "--state-dir", str(tmp_path), "--parent", "1")
    assert done.returncode == 3 and "process 1 is not there any more" in done.stderr and done.stderr.count("\n") == 1


HOSTILE = "\x1b[31mred\x1b]0;owned\x07 <script>alert(1)</script>\n# heading `tick` | cell api_key=abcdef0123456789 \u202egnp"


@pytest.mark.parametrize("fault", [None, "workload"])
def test_what_a_worker_says_is_data(tmp_path: Path, fault: str | None) -> None:
    """Names and errors of a workload steer no terminal, forge no line or markup, and give no secret away, in any format."""
    bad: dict[str, object] = {"status": "failed", "reason": HOSTILE, "calls": 3, "calls_ok": 0, "fault": fault}
    python = honest(tmp_path, gain={"default": 3.0}, outcome={f"variant:{HOSTILE}": bad, "dynamic": bad}, variants=(HOSTILE,))
    common = ["diagnose", "--builtin", "steady", "--python", python, "--device", "cpu", "--state-dir", str(tmp_path)]
    for style in ("text", "json", "markdown", "html"):
        done = run(*common, "--format", style, "--log", str(tmp_path / "torch.log"))
        shown = done.stdout + done.stderr
        assert "red" in shown and not any(sign in shown for sign in ("\x1b", "\x07", "\u202e", "abcdef0123456789", "\n# heading"))
        assert style not in ("markdown", "html") or "<script>alert" not in done.stdout
        assert done.returncode == (3 if fault else 0)


def test_init(tmp_path: Path) -> None:
    """It writes a module that Python can read, says how to go on, and overwrites nothing."""
    done = run("diagnose", "init", "my_workload.py", cwd=tmp_path)
    assert done.returncode == 0 and "--workload my_workload:make" in done.stdout
    text = (tmp_path / "my_workload.py").read_text()
    assert "--workload my_workload:make" in text and ast.parse(text)
    assert run("diagnose", "init", "my_workload.py", cwd=tmp_path).returncode == 64
    assert run("diagnose", "init", "my-workload.txt", cwd=tmp_path).returncode == 64
