"""Tests of `recompile_watch.core.models` and `model_files`: what belongs to a model, and what to paste for it."""

from __future__ import annotations

import re

import pytest

from recompile_watch.config import load_models
from recompile_watch.core.errors import ConfigError
from recompile_watch.core.events import EXTRA_FIELDS, Event, Reason
from recompile_watch.core.model_files import MODEL_KEYS, SETTING_KEYS, parse_models
from recompile_watch.core.models import COMPILED_MODES, Models, caution_of, where_set
from tests.conftest import ROOT

SHIPPED = load_models()
EXAMPLE = re.search(r"```toml\n(.*?)```", (ROOT / "docs/models.md").read_text(), re.DOTALL)


def event(*, file: str | None = None, function: str | None = None, text: str = "", **extra: object) -> Event:
    """A recompile, or what a line of the bot says."""
    reasons = (Reason(None, text, "other"),) if text else ()
    return Event("recompile", "bot.log", 1, 0, None, None, None, None, function, file, 9, reasons, False, {**EXTRA_FIELDS["recompile"], **extra})


def with_mine(text: str) -> Models:
    """The shipped models with a file of the user's."""
    return parse_models([("bot.toml", (ROOT / "rules/models/bot.toml").read_text()), ("mine.toml", text)])


@pytest.mark.parametrize(
    ("file", "model"),
    [
        ("/srv/bot/vendor/toto-0.1.4/toto/model/attention.py", "toto"),
        ("/srv/bot/model/toto_caches.py", "toto"),
        ("/srv/bot/external/kronos/model/module.py", "kronos"),
        ("/srv/bot/src/models/chronos2_wrapper.py", "chronos2"),
        ("/venv/site-packages/chronos/chronos2/layers.py", "chronos2"),
        ("C:\\bot\\Toto\\model.py", "toto"),
        ("/srv/kronos/toto/rope.py", "toto"),
        ("/home/totoro/bot/m.py", None),
        ("/srv/x.py", None),
        (None, None),
    ],
)
def test_the_part_of_a_path_nearest_to_the_file_tells_the_model(file: str | None, model: str | None) -> None:
    """A part is a word of its own; of two the one nearer to the file's name counts."""
    assert SHIPPED.of(event(file=file)) == model


def test_what_is_printed_counts_most_then_functions_then_paths_then_texts() -> None:
    """Each way to tell a model yields to the one before it."""
    models = with_mine('[models.mine]\npaths = ["toto/heads"]\nfunctions = ["decode"]\nlines = ["[mine]"]')
    assert models.of(event(file="/srv/toto/heads/a.py")) == "mine"
    assert models.of(event(file="/srv/toto/a.py", function="decode")) == "mine"
    assert models.of(event(file="/srv/toto/a.py", function="torch_dynamo_resume_in_decode_at_25")) == "mine"
    assert models.of(event(file="/srv/toto/a.py", function="decode", model="kronos")) == "kronos"
    assert models.of(event(text="[mine] failed")) == "mine" and models.of(event(message="all [mine] failed")) == "mine"
    assert models.of(event(text="failed")) is None


@pytest.mark.parametrize(
    ("model", "mode", "lines"),
    [
        ("toto", "eager", ["export TOTO_DISABLE_COMPILE=1"]),
        (
            "toto",
            "reduce-overhead",
            [
                "unset TOTO_DISABLE_COMPILE MARKETSIM_TOTO_DISABLE_COMPILE REAL_TOTO_COMPILE_MODE",
                "export TOTO_COMPILE=1",
                "export TOTO_COMPILE_MODE=reduce-overhead",
            ],
        ),
        ("kronos", "eager", ["unset KRONOS_COMPILE MARKETSIM_KRONOS_COMPILE"]),
        ("kronos", "max-autotune-no-cudagraphs", ["export KRONOS_COMPILE=1", "export KRONOS_COMPILE_MODE=max-autotune-no-cudagraphs"]),
        ("chronos2", "eager", ["export TORCH_COMPILED=0"]),
        ("chronos2", "default", ["export TORCH_COMPILED=1", "export CHRONOS_COMPILE_MODE=default"]),
        ("toto", "fast", []),
    ],
)
def test_lines_for_a_mode(model: str, mode: str, lines: list[str]) -> None:
    """They hold whatever was set before; a model that is eager by default has no switch to disable it."""
    found = SHIPPED.named(model)
    assert found is not None and list(found.lines_for(mode)) == lines


def toto_reads(environment: dict[str, str]) -> str:
    """What the bot's load_toto_pipeline makes of an environment on CUDA (its source of 2025-10-30, retold)."""

    def flag(*names: str) -> bool | None:
        words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
        return next((words[word] for name in names if (word := environment.get(name, "").strip().lower()) in words), None)

    enabled = flag("TOTO_COMPILE", "MARKETSIM_TOTO_COMPILE")
    if flag("TOTO_DISABLE_COMPILE", "MARKETSIM_TOTO_DISABLE_COMPILE") or enabled is False:
        return "eager"
    return environment.get("REAL_TOTO_COMPILE_MODE") or environment.get("TOTO_COMPILE_MODE") or "max-autotune"


@pytest.mark.parametrize("mode", ["eager", *COMPILED_MODES])
@pytest.mark.parametrize(
    "before",
    [
        {},
        {"TOTO_DISABLE_COMPILE": "1"},
        {"TOTO_DISABLE_COMPILE": "disabled", "MARKETSIM_TOTO_DISABLE_COMPILE": "on"},
        {"TOTO_COMPILE": "0", "REAL_TOTO_COMPILE_MODE": "max-autotune"},
        {"TOTO_COMPILE_MODE": "default", "MARKETSIM_TOTO_COMPILE": "no"},
    ],
)
def test_the_lines_bring_the_mode_about_whatever_was_set(mode: str, before: dict[str, str]) -> None:
    """The wrapper's own logic, applied to what a shell has after the lines, gives the mode."""
    toto, environment = SHIPPED.named("toto"), dict(before)
    assert toto is not None
    for line in toto.lines_for(mode):
        command, _, rest = line.partition(" ")
        if command == "unset":
            for name in rest.split():
                environment.pop(name, None)
        else:
            name, _, value = rest.partition("=")
            environment[name] = value
    assert toto_reads(environment) == mode


def test_words_of_a_switch() -> None:
    """`disabled` means nothing to Toto; to Chronos2 whatever is no yes is a no."""
    toto, chronos = SHIPPED.named("toto"), SHIPPED.named("chronos2")
    assert toto is not None and chronos is not None
    disable, enable = toto.setting("disable"), chronos.setting("enable")
    assert disable is not None and enable is not None
    assert [disable.takes(word) for word in ("1", " TRUE ", "0", "disabled", "")] == [True, True, True, False, False]
    assert (enable.says("disabled"), enable.takes("disabled")) == (False, True)
    assert "such as 'disabled', is ignored" in caution_of(disable)
    mode = toto.setting("mode")
    assert mode is not None and "REAL_TOTO_COMPILE_MODE wins over TOTO_COMPILE_MODE" in caution_of(mode)
    assert "each time the model is loaded" in where_set(mode) and "at import" in where_set(SHIPPED.program[0])


def test_a_file_changes_only_what_it_names() -> None:
    """Keys that are given again replace those that ship; a setting replaces each one that shares a name with it."""
    models = with_mine('[models.toto]\nenv_file = "a.env"\n[[models.toto.settings]]\nnames = ["TOTO_COMPILE_MODE"]\ndoes = "mode"')
    toto, shipped = models.named("toto"), SHIPPED.named("toto")
    assert toto is not None and shipped is not None
    assert (toto.env_file, toto.paths, toto.title, len(toto.settings)) == ("a.env", ("toto",), "Toto", len(shipped.settings))
    assert toto.lines_for("default")[0] == "unset TOTO_DISABLE_COMPILE MARKETSIM_TOTO_DISABLE_COMPILE"
    assert [model.name for model in SHIPPED.models] == ["toto", "kronos", "chronos2"]


def test_the_documented_example_is_right_and_whole() -> None:
    """docs/models.md: its example loads, and every key that may be written stands in it."""
    assert EXAMPLE is not None
    models = with_mine(EXAMPLE[1])
    mine = models.named("forecaster")
    assert mine is not None and mine.lines_for("eager") == ("unset ACME_COMPILE COMPILE_HEADS",)
    assert mine.lines_for("default") == ("unset ACME_MODE_OVERRIDE", "export ACME_COMPILE=1", "export ACME_MODE=default")
    for key in {*MODEL_KEYS, *SETTING_KEYS} - {"settings"}:
        assert re.search(rf"^{key} = ", EXAMPLE[1], re.MULTILINE), key


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "not valid TOML"),
        ("[model.x]", "unknown key 'model'"),
        ("models = 3", "key 'models': write [models.NAME]"),
        ("[models.x]\ntitle = 'X'", "needs key 'paths', 'functions' or 'lines'"),
        ("[models.'a b']\npaths = ['x']", "a model's name is letters"),
        ("[models.x]\npaths = 'x'", "models.x: key 'paths' must be a list"),
        ("[models.x]\npaths = ['']", "must be a list of texts that are not empty"),
        ("[models.x]\npaths = ['x']\ndefault = 'fast'", "key 'default' must be one of compiled, eager, varies"),
        ("[models.x]\npaths = ['x']\ndeclared = 'fast'", "key 'declared' must be one of eager, default"),
        ("[models.x]\npaths = ['x']\nlimits = [{ line = 'l', limit = 0 }]", "key 'limits': write"),
        ("[models.x]\npaths = ['x']\n[models.x.settings]\nnames = ['A']", "write [[models.x.settings]] with two brackets"),
        ("[[settings]]\nnames = ['A']\ndoes = 'fly'", "settings 1: key 'does' must be one of"),
        ("[[settings]]\nnames = ['A']\ndoes = 'enable'", "key 'on' is missing"),
        ("[[settings]]\nnames = ['A B']\ndoes = 'other'", "'A B' is no name of a variable"),
        ("[[settings]]\nnames = ['A']\ndoes = 'other'\nuse = 'B'", "'B' is none of its names"),
        ("[[settings]]\nnames = ['A']\ndoes = 'enable'\non = ['$(reboot)']", "'$(reboot)' is no plain word"),
        ("[[settings]]\nnames = ['A']\ndoes = 'enable'\non = ['1']\noff = ['1']", "both hold '1'"),
        ("[[settings]]\nnames = ['A']\ndoes = 'other'\ndefaults = [{ since = 'now', value = '1' }]", "key 'defaults': write"),
        ("[[settings]]\nnames = ['A']\ndoes = 'other'\n[[settings]]\nnames = ['A']\ndoes = 'other'", "'A' stands in another entry"),
    ],
)
def test_mistakes_in_a_models_file(text: str, words: str) -> None:
    """Each names the file, the table and the key."""
    with pytest.raises(ConfigError) as caught:
        with_mine(text)
    assert words in str(caught.value) and str(caught.value).startswith("mine.toml: ")
