"""The daemon's configuration: ten lines are enough, every mistake is told with its key, no secret is shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recompile_watch.core.errors import ConfigError
from recompile_watch.daemon.building import rules_of
from recompile_watch.settings import keys_of
from recompile_watch.watch_config import (
    UNIT_STATE_FOLDER,
    WatchConfig,
    default_state_folder,
    read_config,
    readable_receivers,
)
from recompile_watch.watch_tables import TABLES, config_reference
from tests.conftest import ROOT

TEN_LINES = """
state_dir = "{folder}/state"

[[source]]
name = "bot"
path = "{folder}/logs/*.log"
timezone = "UTC"

[[receiver]]
name = "ops"
url = "json://127.0.0.1:8080/alerts"
"""


def config(folder: Path, text: str = TEN_LINES, environment: dict[str, str] | None = None) -> WatchConfig:
    file = folder / "watch.toml"
    file.write_text(text.replace("{folder}", str(folder)))
    return read_config(file, environment or {})


def mistakes(folder: Path, text: str, environment: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config(folder, text, environment)
    return str(caught.value).replace(str(folder / "watch.toml"), "watch.toml").split("\n")


def test_ten_lines_are_enough(tmp_path: Path) -> None:
    """A source and a receiver; everything else has a default, and the watch's own folder is never followed."""
    found = config(tmp_path)
    assert found.state_folder == tmp_path / "state"
    assert [(source.name, source.follow.paths, str(source.zone)) for source in found.sources] == [("bot", (f"{tmp_path}/logs/*.log",), "UTC")]
    assert str(tmp_path / "state") in found.sources[0].follow.excluded
    assert [(receiver.name, receiver.url) for receiver in found.receivers] == [("ops", "json://127.0.0.1:8080/alerts")]
    assert [rule.min_severity for rule in found.watch.receivers] == ["warning"]


@pytest.mark.parametrize(
    "url",
    [
        "no address",
        "json://:8080",
        "json://127.0.0.1:99999/",
        "json://host/?token=CANARY",
        "slack://CANARY",
        "https://hooks.slack.com/",
        "slack+https://h/",
    ],
)
def test_an_address_that_cannot_be_right_is_a_mistake(tmp_path: Path, url: str) -> None:
    """Else nobody would hear of anything, and nobody would hear of that; the address itself is not quoted."""
    (found,) = mistakes(tmp_path, TEN_LINES.replace("json://127.0.0.1:8080/alerts", url))
    assert found.startswith("watch.toml: receiver[1]: ") and "CANARY" not in found


@pytest.mark.parametrize("url", ["nosuch://CANARY", "https://host/CANARY", "mailto://CANARY"])
def test_check_also_reads_what_only_apprise_can(tmp_path: Path, url: str) -> None:
    """``watch --check`` loads apprise where it must, touches no network, and names the receiver."""
    file = tmp_path / "watch.toml"
    file.write_text(TEN_LINES.replace("{folder}", str(tmp_path)).replace("json://127.0.0.1:8080/alerts", url))
    command = [sys.executable, "-m", "recompile_watch", "watch", "--check", "--config", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 78
    assert done.stderr.count("\n") == 1 and "receiver ops: " in done.stderr and "CANARY" not in done.stderr + done.stdout


def test_a_misspelt_table_is_told_with_the_right_name(tmp_path: Path) -> None:
    """``[[sources]]`` is what one writes first."""
    found = mistakes(tmp_path, TEN_LINES.replace("[[source]]", "[[sources]]"))
    assert any("sources: unknown key; did you mean 'source'?" in line for line in found)


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    """Unknown keys, wrong types, two origins, no address, an unknown zone, a name that stands twice."""
    found = mistakes(
        tmp_path,
        """
pol_interval = "1s"
[[source]]
name = "bot"
path = "x.log"
journal = "bot.service"
timezone = "Mars/Olympus"
grace = 5
[[source]]
name = "bot"
stdin = true
starts = "end"
[[receiver]]
name = "ops"
min_severity = 3
[[receiver]]
name = "mail"
url = "json://x"
env = "OPS"
[models.toto]
declare = "eager"
[watch.latency]
factor = "2"
""",
    )
    assert [line.partition("; ")[0] for line in found] == [
        "watch.toml: pol_interval: unknown key",
        "watch.toml: models.toto.declare: unknown key",
        "watch.toml: source[1].grace: 5 is not a duration such as \"90s\"",
        "watch.toml: source[1].timezone: no zone 'Mars/Olympus' here",
        "watch.toml: source[1]: a source has one of path, journal and stdin",
        "watch.toml: source[2].starts: unknown key",
        "watch.toml: receiver[1].min_severity: 3 is not one of \"info\", \"warning\", \"critical\"",
        "watch.toml: receiver[1]: an address comes from one of url, url_file, credential and env",
        "watch.toml: receiver[2]: an address comes from one of url, url_file, credential and env, not from url and env",
        "watch.toml: watch.latency.factor: '2' is not a number",
    ]  # fmt: skip
    assert "pol_interval: unknown key; did you mean 'poll_interval'" in "".join(found)


SOURCE = "[[source]]\nname='bot'\npath='x.log'\n"
RECEIVER = SOURCE + "[[receiver]]\nname='ops'\nurl='json://x'\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("poll_interval = '0s'\n" + SOURCE, "poll_interval is 0; write 0.01 or more"),
        (SOURCE + "[metrics]\nlisten = '0.0.0.0:9464'", "metrics: listen is '0.0.0.0:9464', no loopback address"),
        (SOURCE + "[models.toto]\ndeclared = 'fast'", "models.toto: declared is 'fast'; write one of compiled, eager"),
        (SOURCE + "schedule = [{ start = '9h', end = '25:00' }]", "source[1].schedule[1]: start is '9h'; write a time of day"),
        (SOURCE + "[watch.latency]\nfactor = 0.5", "watch.latency: factor is 0.5; write 1 or more"),
        (SOURCE + "[[watch.rates]]\nkind = 'bot_error'\ncount = 0\nwindow = '1m'", "watch.rates[1]: count is 0; write 1 or more"),
        (RECEIVER + "digest_at = '25:99'", "receiver[1]: digest_at is '25:99'; write a time of day"),
        (RECEIVER + "digest_timezone = 'Mars'", "receiver[1]: digest_timezone is 'Mars'"),
        (RECEIVER + "quiet_hours = { start = '10pm', end = '06:00' }", "receiver[1].quiet_hours: start is '10pm'"),
        (RECEIVER + "group_by = ['modle']", "receiver[1]: group_by: 'modle' is no field"),
        (RECEIVER + "escalate_to = 'boss'", "receiver[1].escalate_to: no other receiver is called 'boss'"),
        (RECEIVER + "fallback = 'ops'", "receiver[1].fallback: no other receiver is called 'ops'"),
        (SOURCE + "[heartbeat]\nurl = 'https:///x'", "heartbeat: "),
        (SOURCE + "[watch]\ntorch_version = 'abc'", "watch: torch_version is 'abc'; write one such as"),
        ("[[source]]\nname = 'bot'\npath = 3", "source[1].path: 3 is not text or a list of text"),
    ],
)
def test_a_value_that_would_do_harm_is_a_mistake(tmp_path: Path, text: str, words: str) -> None:
    """What has the right type and no sense: a time of day that is none would stop each turn, a receiver that is not there tells nobody."""
    (found,) = mistakes(tmp_path, text)
    assert words in found


@pytest.mark.parametrize("text", ["", "[[receiver]]\nname='a'\nurl='json://x'", "x = [", "source = 1", "[source]\nname='a'"])
def test_a_file_that_is_none_is_a_config_error(tmp_path: Path, text: str) -> None:
    """No source, no TOML, a table in the wrong form: one line each, no traceback."""
    assert all(line.startswith("watch.toml: ") for line in mistakes(tmp_path, text))


def test_an_address_comes_from_a_file_a_credential_or_the_environment(tmp_path: Path) -> None:
    """Wherever it comes from it is the address, and it is in no text of the configuration."""
    (tmp_path / "url").write_text("json://user:canary1@h/\n")
    (tmp_path / "ops").write_text("json://user:canary2@h/")
    base = TEN_LINES.replace('url = "json://127.0.0.1:8080/alerts"', "{way}")
    for way, environment in (
        (f'url_file = "{tmp_path}/url"', {}),
        ('credential = "ops"', {"CREDENTIALS_DIRECTORY": str(tmp_path)}),
        ('env = "OPS_URL"', {"OPS_URL": "json://user:canary3@h/"}),
    ):
        found = config(tmp_path, base.replace("{way}", way), environment)
        assert "canary" in found.receivers[0].url
        assert "canary" not in repr(found)
    assert "cannot be read" in mistakes(tmp_path, base.replace("{way}", 'env = "OTHER"'), {"OPS_URL": "x"})[0]


def test_a_service_without_a_home_has_a_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user that systemd makes for a unit may have no home: the unit's own directory is meant, and `~` is a mistake."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2_000_000_000)
    assert default_state_folder({}) == UNIT_STATE_FOLDER
    (mistake,) = mistakes(tmp_path, TEN_LINES.replace("{folder}/state", "~/state"))
    assert mistake == "watch.toml: state_dir: the home folder in it is not known; write the whole path"


def test_the_receivers_of_a_wrong_configuration_can_be_told(tmp_path: Path) -> None:
    """Whatever else is wrong in the file: a receiver with an address can be told of it."""
    file = tmp_path / "watch.toml"
    file.write_text('nonsense = 1\n[[receiver]]\nname = "ops"\nurl = "json://a"\nnonsense = 1\n[[receiver]]\nname = "lost"\ncredential = "x"\n')
    assert [receiver.name for receiver in readable_receivers(file, {})] == ["ops"]


def test_no_key_of_a_table_means_two_things() -> None:
    """A table that holds the settings of several layers has each key once, but for the name that they share."""
    for table, kinds in TABLES.items():
        keys = [key.name for kind in kinds for key in keys_of(kind) if key.name not in ("name", "paths", "url")]
        assert len(keys) == len(set(keys)), f"{table}: {sorted({key for key in keys if keys.count(key) > 1})}"


def test_every_key_has_a_meaning() -> None:
    """The reference says what each key is for."""
    missing = [f"{table} {name}" for table, name, _, _, doc in config_reference() if not doc]
    assert missing == []


def test_the_documentation_is_what_the_program_prints() -> None:
    """docs/watch-config.md and the schema are made by the program itself."""
    for option, file in (("--reference", "watch-config.md"), ("--schema", "watch-config.schema.json")):
        printed = subprocess.run(
            [sys.executable, "-m", "recompile_watch", "watch", option], capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
        assert (ROOT / "docs" / file).read_text() == printed, f"run: recompile-watch watch {option} > docs/{file}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[[watch.rates]]\nkind = "bot_eror"\ncount = 3\nwindow = "1h"\n',
            "rates[1].kind: nothing is of the kind 'bot_eror'; did you mean 'bot_error'?",
        ),
        (
            '[[watch.life.resolve_kinds]]\nkind = "nosuch"\nafter = "1h"\n',
            "life.resolve_kinds[1].kind: nothing is of the kind 'nosuch'",
        ),
        (
            'matchers = ["severity=critical", "kind=recompile_limt_hit"]\n',
            "receiver[1].matchers: nothing is of the kind 'recompile_limt_hit'",
        ),
    ],
)
def test_a_kind_that_nothing_is_of_is_a_mistake(tmp_path: Path, text: str, words: str) -> None:
    """A receiver or a rate that waits for a misspelt kind would wait for ever; watch --check, a start and a reload say so."""
    found = config(tmp_path, TEN_LINES + text)
    with pytest.raises(ConfigError) as caught:
        rules_of(found)
    assert words in str(caught.value)


def test_kinds_that_the_watch_raises_are_known(tmp_path: Path) -> None:
    """Those of events, of conditions and of the watching itself."""
    for kind in ("recompile_limit_hit", "source_silent", "too_many", "mode_drift", "watch_gap", "strategy_return"):
        assert rules_of(config(tmp_path, TEN_LINES + f'matchers = ["kind={kind}", "kind=~nosuch.*"]\n')).rules
