"""Tests of `--models` through the real program: advice in a model's own words, mistakes in env files, drift, limits not in force."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import LIMIT, ROOT, SKIP, log, run

BOT = str(ROOT / "sample_logs/bot-2025-10-30.log")
QUIET = "V1030 10:28:52.255000 3989 torch/_dynamo/guards.py:5396] [6/1] [__recompiles] Recompiling function f in /srv/m/a.py:105\n"
TOTO = '[models.toto]\nenv_file = "bot.env"\n'


def models(tmp_path: Path, text: str, env: str | None = None) -> str:
    """The path of a models file with an env file beside it."""
    path = tmp_path / "models.toml"
    path.write_text(text)
    if env is not None:
        (tmp_path / "bot.env").write_bytes(env.encode())
    return str(path)


def analysed(*arguments: str, code: int | None = None) -> dict[str, Any]:
    """The JSON report."""
    done = run("analyze", "--format", "json", *arguments)
    assert code is None or done.returncode == code, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def mistakes(tmp_path: Path, env: str, *options: str, text: str = TOTO) -> list[dict[str, Any]]:
    """What is found in an env file, in the order of its lines."""
    path = models(tmp_path, text, env)
    findings = analysed("--models", path, *options, log(tmp_path, QUIET))["findings"]
    return sorted((f for f in findings if f["kind"] == "ineffective_setting"), key=lambda f: f["line_no"])


@pytest.mark.parametrize(
    ("line", "cause", "severity", "mend"),
    [
        ("export TOTO_DISABLE_COMPILE=disabled", "ignored_word", "warning", "export TOTO_DISABLE_COMPILE=1"),
        ("export TOTO_DISABLE_COMPILE=nope", "ignored_word", "warning", "export TOTO_DISABLE_COMPILE=0"),
        ("export KRONOS_COMPILE=disabled", "ignored_word", "warning", "export KRONOS_COMPILE=0"),
        ("export TOTO_COMPILE_MODE=", "empty", "warning", "unset TOTO_COMPILE_MODE"),
        ("export TOTO_COMPILE_MODE=reduce_overhead", "unknown_value", "warning", "export TOTO_COMPILE_MODE=reduce-overhead"),
        ("export TORCHDYNAMO_RECOMPILE_LIMIT=64", "no_effect", "warning", "unset TORCHDYNAMO_RECOMPILE_LIMIT"),
        ("export TORCH_CUDAGRAPHS=0", "no_effect", "warning", "unset TORCH_CUDAGRAPHS"),
        ("export TORCH_COMPILE_MODE=default", "no_effect", "warning", "unset TORCH_COMPILE_MODE"),
        ("export TOTO_DISABLE_COMPIL=1", "misspelt", "warning", "export TOTO_DISABLE_COMPILE=1"),
        ("export KRONOS_DISABLE_COMPILE=1", "unknown", "warning", "unset KRONOS_COMPILE MARKETSIM_KRONOS_COMPILE"),
        ("export TORCHDYNAMO_WISH=1", "unknown", "warning", "unset TORCHDYNAMO_WISH"),
        ("TOTO_DISABLE_COMPILE=1", "not_exported", "warning", "export TOTO_DISABLE_COMPILE=1"),
        ("ADD_LATEST = 1", "no_assignment", "warning", "export ADD_LATEST=…"),
        ("export KRONOS_COMPILE_MODE=default", "dormant", "info", "unset KRONOS_COMPILE_MODE"),
        ("export ADD_LATEST=1\nexport ADD_LATEST=1", "repeated", "info", "# delete line 1"),
        ("export ADD_LATEST=0\nexport ADD_LATEST=1", "duplicate", "warning", "# delete line 1, or line 2"),
        ("export ADD_LATEST=1\r\n", "carriage_returns", "warning", None),
    ],
)
def test_a_mistake_in_an_env_file(tmp_path: Path, line: str, cause: str, severity: str, mend: str | None) -> None:
    """One finding at its line, with what to paste instead."""
    [found] = mistakes(tmp_path, line)
    assert (found["cause"], found["severity"], found["line_no"]) == (cause, severity, 1)
    assert found["file"] == found["evidence"][0]["source"] == str(tmp_path / "bot.env")
    [advice] = found["advice"]
    assert advice["remedy"] == "remove_ineffective_setting" and advice["restart"] is True
    assert mend is None or advice["apply"] == mend
    if mend is not None and mend.startswith("export ") and "…" not in mend:
        assert mistakes(tmp_path, mend) == []  # what is to be pasted is right itself


@pytest.mark.parametrize(
    "text",
    [
        "export TOTO_DISABLE_COMPILE=1\nexport ADD_LATEST=1",
        "export TOTO_DISABLE_COMPILE=0\nexport TOTO_COMPILE_MODE=max-autotune\nexport TOTO_COMPILE_BACKEND=inductor",
        "set -a\nTOTO_DISABLE_COMPILE=TRUE\nset +a",
        "export TORCH_COMPILED=disabled",
        "export TORCHINDUCTOR_PROFILE=1 TORCH_LOGS=recompiles TORCH_HOME=/x CMAKE_EXPORT_COMPILE_COMMANDS=1 PATH=/bin OMP_NUM_THREADS=2",
        'export TOTO_COMPILE_MODE="${MODE:-default}"',
        "export TOTO_COMPILE_MODE=default REAL_TOTO_COMPILE_MODE=default",
        "if [ -n x ]; then export TOTO_COMPILE_MODE=default; fi\nexport TOTO_COMPILE_MODE=max-autotune",
        "# export TOTO_DISABLE_COMPILE=disabled",
    ],
)
def test_what_is_right_is_not_told(tmp_path: Path, text: str) -> None:
    """Settings that count, other people's variables, and what only running the file would tell."""
    assert mistakes(tmp_path, text) == []


def test_precedence(tmp_path: Path) -> None:
    """The name that wins is told, and the switch that makes another one meaningless."""
    [found] = mistakes(tmp_path, "export REAL_TOTO_COMPILE_MODE=max-autotune\nexport TOTO_COMPILE_MODE=default")
    assert (found["cause"], found["line_no"], found["advice"][0]["apply"]) == ("overridden", 2, "unset REAL_TOTO_COMPILE_MODE")
    assert "REAL_TOTO_COMPILE_MODE=max-autotune in line 1 wins over it." in found["consequence"]
    [found] = mistakes(tmp_path, "export TOTO_COMPILE=1\nexport TOTO_DISABLE_COMPILE=1")
    assert (found["cause"], found["line_no"]) == ("overridden", 1) and "TOTO_DISABLE_COMPILE wins" in found["title"]


def test_settings_by_torch_version(tmp_path: Path) -> None:
    """What torch reads from 2.13 on does nothing in the versions before; what an older one reads already is no mistake there."""
    line = "export TORCH_COMPILE_DYNAMIC_VALUES=64"
    for version in ("2.9.1", "2.12.1"):
        [found] = mistakes(tmp_path, line, "--torch-version", version)
        assert found["cause"] == "too_new" and "from 2.13 on" in found["title"]
    assert mistakes(tmp_path, line, "--torch-version", "2.13.0") == mistakes(tmp_path, line) == []
    cache = "export TORCHINDUCTOR_FX_GRAPH_CACHE=1"  # torch/_inductor/config.py of 2.2.2
    assert mistakes(tmp_path, cache, "--torch-version", "2.3.1") == mistakes(tmp_path, cache, "--torch-version", "2.2.2") == []
    [found] = mistakes(tmp_path, cache, "--torch-version", "2.1.2")
    assert found["cause"] == "too_new" and "from 2.2 on" in found["title"]
    newer = "export TORCH_COMPILE_STATIC_SOURCES=L['x']"
    [found] = mistakes(tmp_path, newer, "--torch-version", "2.14.1")
    assert found["cause"] == "too_new" and "from 2.15 on" in found["title"]
    assert mistakes(tmp_path, newer, "--torch-version", "2.15.0") == []


def test_no_secret_of_an_env_file_is_shown(tmp_path: Path) -> None:
    """Names that sound like secrets are nobody's business; odd values are hidden even where the name is of interest."""
    secrets = ("PKABCDEF1234567890AB", "hunter22hunter22", "sk-abcdefghijklmnop1234", "a b$c;d")
    env = f"export ALPACA_API_KEY={secrets[0]}\nexport TOTO_COMPILE_PASSWORD={secrets[1]}\n"
    env += f"export TORCHDYNAMO_WISH={secrets[2]}\nexport TOTO_COMPILE_MODE='{secrets[3]}'"
    path = models(tmp_path, TOTO, env)
    for form in ("text", "json", "markdown", "sarif", "github"):
        shown = run("analyze", "--format", form, "--models", path, log(tmp_path, QUIET)).stdout
        assert not [secret for secret in secrets if secret in shown], form
        assert "ALPACA" not in shown


def test_an_env_file_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    """Missing evidence is told and never ok; so is a quote that is never closed."""
    path = models(tmp_path, TOTO)
    done = run("analyze", "--models", path, log(tmp_path, QUIET))
    assert done.returncode == 3 and "bot.env: cannot be read" in done.stderr and "env_file" in done.stderr
    models(tmp_path, TOTO, "export A='1\n")
    done = run("analyze", "--models", path, log(tmp_path, QUIET))
    assert done.returncode == 3 and "line 1 is never closed" in done.stderr


def test_an_env_file_is_no_evidence_of_a_log(tmp_path: Path) -> None:
    """A log without anything known stays unknown, whatever the env file holds."""
    path = models(tmp_path, TOTO, "export TOTO_DISABLE_COMPILE=disabled")
    assert analysed("--models", path, log(tmp_path, "hello\n"), code=3)["status"] == "unknown"


def test_all_mistakes_of_a_models_file_at_once(tmp_path: Path) -> None:
    """Exit status 78, a line each with file and key, before anything is read."""
    path = models(tmp_path, "[models.x]\ntitle = 3\npathz = []\n[[settings]]\nnames = []\n")
    done = run("analyze", "--models", path, "no-such.log")
    lines = done.stderr.splitlines()
    assert done.returncode == 78 and len(lines) == 5 and all(line.startswith(f"recompile-watch: {path}: ") for line in lines)
    done = run("analyze", "--models", str(tmp_path / "none.toml"), BOT)
    assert done.returncode == 78 and "--models takes a file" in done.stderr and done.stderr.count("\n") == 1


def test_a_model_that_ran_in_another_mode_than_meant(tmp_path: Path) -> None:
    """The env file says eager, the log says compiled: both lines are shown, and how to start it right."""
    path = models(tmp_path, TOTO, "export TOTO_DISABLE_COMPILE=1\n")
    [found] = [f for f in analysed("--models", path, BOT)["findings"] if f["kind"] == "mode_drift"]
    assert found["title"] == "Toto is meant to run in eager mode, but it ran compiled (max-autotune)" and found["model"] == "toto"
    assert [place["source"] for place in found["evidence"]] == [str(tmp_path / "bot.env"), BOT] and found["count"] == 1
    assert found["advice"][0]["apply"].startswith(f"set -a; . {tmp_path}/bot.env; set +a")


@pytest.mark.parametrize(
    ("text", "env", "drifting"),
    [
        ('[models.toto]\ndeclared = "eager"', None, ["toto"]),
        ('[models.toto]\ndeclared = "max-autotune"', None, []),
        ('[models.toto]\ndeclared = "reduce-overhead"', None, ["toto"]),
        ('[models.toto]\ndeclared = "compiled"', None, []),
        ('[models.kronos]\ndeclared = "eager"', None, ["kronos"]),
        (TOTO, "TOTO_DISABLE_COMPILE=1", []),
        (TOTO, "export TOTO_DISABLE_COMPILE=disabled", []),
        (TOTO, "export KRONOS_COMPILE=0", ["kronos"]),
        (TOTO, "export TOTO_COMPILE=1 REAL_TOTO_COMPILE_MODE=default TOTO_COMPILE_MODE=max-autotune", ["toto"]),
        ("", None, []),
    ],
)
def test_drift_follows_what_counts(tmp_path: Path, text: str, env: str | None, drifting: list[str]) -> None:
    """Toto ran compiled with max-autotune, Kronos raised what only compiled code raises; what is not exported or ignored is no declaration."""
    findings = analysed("--models", models(tmp_path, text, env), BOT)["findings"]
    assert [f["model"] for f in findings if f["kind"] == "mode_drift"] == drifting


def test_a_raised_limit_that_is_not_in_force(tmp_path: Path) -> None:
    """A line that set 64, and a later hit of 8: in every thread from 2.12 on, in the process before."""
    text = "2025-10-30 09:07:15,120 - serve - INFO - torch._dynamo.config.recompile_limit = 64\n" + LIMIT
    for version, remedy in (("2.13.0", "set_config_in_every_thread"), ("2.9.1", "check_limit_in_process")):
        report = analysed("--torch-version", version, log(tmp_path, text))
        [found] = [f for f in report["findings"] if f["kind"] == "limit_not_in_force"]
        assert found["title"] == "The recompile limit was set to 64, but 8 is in force" and found["severity"] == "warning"
        assert [place["line"] for place in found["evidence"]] == [1, 2]
        assert [one["remedy"] for one in found["advice"]] == [remedy] and "64" in found["advice"][0]["apply"] + found["advice"][0]["expect"]
        hit = next(f for f in report["findings"] if f["kind"] == "recompile_limit_hit")
        assert hit["advice"][0]["remedy"] == "exclude_from_compile"


@pytest.mark.parametrize(
    "text",
    [
        LIMIT,
        LIMIT + "INFO torch._dynamo.config.recompile_limit = 64\n",  # afterwards
        "INFO torch._dynamo.config.recompile_limit = 8\n" + LIMIT,
        "INFO torch._dynamo.config.recompile_limit = 64\n" + LIMIT + LIMIT.replace("(8)", "(64)").replace("positional_embedding", "g"),
        "INFO torch._dynamo.config.accumulated_recompile_limit = 512\n" + LIMIT,
        "INFO torch._dynamo.config.recompile_limit = 64\n" + SKIP,
    ],
)
def test_a_limit_is_not_called_ineffective_without_a_sign(tmp_path: Path, text: str) -> None:
    """Nobody set it, or later, or to the default, or it is in force as well, or it is another limit."""
    assert not [f for f in analysed(log(tmp_path, text))["findings"] if f["kind"] == "limit_not_in_force"]


def test_the_bots_own_line_that_it_set_the_limit(tmp_path: Path) -> None:
    """toto_compile_config.apply() sets 32 and prints `Dynamo configuration`."""
    block = "Toto Compilation Optimizations Applied:\n  ✓ Compile mode: reduce-overhead\n  ✓ Compilation enabled\n  ✓ Dynamo configuration\n"
    [found] = [f for f in analysed(log(tmp_path, block + LIMIT))["findings"] if f["kind"] == "limit_not_in_force"]
    assert "set to 32, but 8" in found["title"] and found["model"] == "toto" and "Dynamo configuration" in found["evidence"][0]["text"]


def test_a_variable_that_was_meant_to_raise_the_limit(tmp_path: Path) -> None:
    """It is told twice: that nothing reads it, and that the limit it names is not the one in force."""
    path = models(tmp_path, TOTO, "export TORCHDYNAMO_RECOMPILE_LIMIT=64\n")
    found = {f["kind"]: f for f in analysed("--models", path, log(tmp_path, LIMIT))["findings"]}
    assert found["ineffective_setting"]["cause"] == "no_effect"
    assert found["limit_not_in_force"]["advice"][0]["apply"] == "unset TORCHDYNAMO_RECOMPILE_LIMIT"
    assert "in code" in found["limit_not_in_force"]["advice"][0]["caution"]


def test_an_invented_bot(tmp_path: Path) -> None:
    """Its paths tell the model, its own switch is advised and decided, and the shipped ones are not."""
    mine = """
[models.heads]
title = "Heads"
paths = ["srv/toto"]
default = "compiled"
[[models.heads.settings]]
names = ["HEADS_EAGER"]
does = "disable"
on = ["please"]
[[models.heads.settings]]
names = ["HEADS_MODE"]
does = "mode"
"""
    report = analysed("--models", models(tmp_path, mine), log(tmp_path, LIMIT + SKIP))
    hit = next(f for f in report["findings"] if f["kind"] == "recompile_limit_hit")
    assert hit["model"] == "heads"
    assert {one["remedy"]: one["apply"] for one in hit["advice"]}["disable_compile_for_model"] == "export HEADS_EAGER=please"
    assert report["decision"]["per_model"]["heads"]["settings"] == ["export HEADS_EAGER=please"]
    assert "TOTO" not in json.dumps(report)


def test_a_model_without_a_switch_is_switched_off_with_its_process(tmp_path: Path) -> None:
    """No switch is made up for it."""
    report = analysed("--models", models(tmp_path, '[models.plain]\npaths = ["srv/toto"]'), log(tmp_path, LIMIT))
    assert report["decision"]["per_model"]["plain"]["settings"] == ["export TORCHDYNAMO_DISABLE=1"]
    assert "disable_compile_for_model" not in {one["remedy"] for f in report["findings"] for one in f["advice"]}


def test_advice_and_decision_in_the_models_own_words() -> None:
    """The real log: Kronos, eager by default, loses what enables it; Toto gets its switch; the cautions say what is ignored and what traps."""
    report = analysed(BOT)
    per_model = report["decision"]["per_model"]
    assert per_model["kronos"]["settings"] == ["unset KRONOS_COMPILE MARKETSIM_KRONOS_COMPILE"]
    assert per_model["toto"]["settings"] == ["export TOTO_DISABLE_COMPILE=1"]
    failed = next(f for f in report["findings"] if f["kind"] == "forecast_failure")
    advice = {one["remedy"]: one for one in failed["advice"]}
    assert "there is no switch to disable it" in advice["disable_compile_for_model"]["caution"]
    assert advice["change_compile_mode"]["apply"] == "export KRONOS_COMPILE_MODE=max-autotune-no-cudagraphs"
    hit = next(f for f in report["findings"] if f["kind"] == "recompile_limit_hit")
    off = next(one for one in hit["advice"] if one["remedy"] == "disable_compile_for_model")
    assert all(words in off["caution"] for words in ("such as 'disabled', is ignored", ".cache/cached_predict", "Metadata may say compiled"))
    assert "load_toto_pipeline" in off["where"] and off["restart"] is True


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("toto", ["export TOTO_DISABLE_COMPILE=1", "REAL_TOTO_COMPILE_MODE", "cached_predict"]),
        ("Kronos", ["no switch to disable", "unset KRONOS_COMPILE MARKETSIM_KRONOS_COMPILE"]),
        ("TOTO_COMPILE_MODE", ["REAL_TOTO_COMPILE_MODE > TOTO_COMPILE_MODE", "reduce-overhead from 2025-11-05 on"]),
        ("TOTO_DISABLE_COMPILE", ["yes:     1, true, yes, on", "is ignored"]),
        ("ADD_LATEST", ["read once, at import"]),
        ("TORCHINDUCTOR_PROFILE", ["torch's compiler reads it"]),
        ("mode_drift", ["apply_declared_mode"]),
    ],
)
def test_explain(topic: str, words: list[str]) -> None:
    """A model, a wrapper's variable, a variable of torch that nobody advises."""
    done = run("explain", topic)
    assert done.returncode == 0 and all(word in done.stdout for word in words), done.stdout


def test_no_caution_is_cut() -> None:
    """What a profile warns of reaches the report whole."""
    report = analysed(BOT)
    cautions = [one["caution"] for f in report["findings"] for one in f["advice"] if one["caution"]]
    assert cautions and not [text for text in cautions if text.endswith("…")]


def test_explain_with_models_of_your_own(tmp_path: Path) -> None:
    """They are explained like those that ship."""
    done = run("explain", "plain", "--models", models(tmp_path, '[models.plain]\npaths = ["plain"]'))
    assert done.returncode == 0 and "'plain'" in done.stdout
