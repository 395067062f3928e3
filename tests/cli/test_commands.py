"""Tests of the command line through the real program: exit statuses, messages, formats, hostile input."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from recompile_watch.cli import main

ROOT = Path(__file__).resolve().parents[2]
LIMIT = """\
W1030 09:08:09.060000 101341 torch/_dynamo/convert_frame.py:1358] [6/8] torch._dynamo hit config.recompile_limit (8)
W1030 09:08:09.060000 101341 torch/_dynamo/convert_frame.py:1358] [6/8]    function: 'positional_embedding' (/srv/toto/model/attention.py:105)
W1030 09:08:09.060000 101341 torch/_dynamo/convert_frame.py:1358] [6/8]    last reason: 6/7: kv_cache._current_idx[7] == 0
W1030 09:08:09.060000 101341 torch/_dynamo/convert_frame.py:1358] [6/8] To log all recompilation reasons, use TORCH_LOGS="recompiles".
W1030 09:08:09.060000 101341 torch/_dynamo/convert_frame.py:1358] [6/8] To diagnose recompilation issues, see https://pytorch.org/docs/main/x.html.
"""
RECOMPILE = """\
V1030 10:28:52.255000 3989 torch/_dynamo/guards.py:5396] [6/1] [__recompiles] Recompiling function f in /srv/m/a.py:105
V1030 10:28:52.255000 3989 torch/_dynamo/guards.py:5396] [6/1] [__recompiles]     triggered by the following guard failure(s):
V1030 10:28:52.255000 3989 torch/_dynamo/guards.py:5396] [6/1] [__recompiles]     - 6/0: tensor 'x' size mismatch at index 0. expected 8, actual 9
"""
SKIP = "skipping cudagraphs due to mutated inputs (2 instances)\n"


def run(
    *arguments: str, stdin: str | bytes = b"", env: dict[str, str] | None = None, cwd: Path | None = None, timeout_s: float = 60
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Runs the program as a user does."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [sys.executable, "-m", "recompile_watch", *arguments], input=data, capture_output=True, timeout=timeout_s, cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TZ": "UTC", **(env or {})}, check=False,
    )  # fmt: skip
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode())


def log(tmp_path: Path, text: str | bytes, name: str = "bot.log") -> str:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


@pytest.mark.parametrize(("text", "status", "code"), [(LIMIT, "critical", 2), (SKIP, "warning", 1), (RECOMPILE, "ok", 0)])
def test_exit_status(tmp_path: Path, text: str, status: str, code: int) -> None:
    """The exit status is the report's status."""
    done = run("analyze", "--format", "json", log(tmp_path, text))
    assert (done.returncode, json.loads(done.stdout)["status"], done.stderr) == (code, status, "")


@pytest.mark.parametrize(
    ("text", "option", "code"), [(LIMIT, "critical", 2), (SKIP, "critical", 0), (SKIP, "warning", 1), (LIMIT, "never", 0), ("hello\n", "never", 3)]
)
def test_fail_on(tmp_path: Path, text: str, option: str, code: int) -> None:
    """--fail-on lowers the exit status of findings, never that of missing evidence."""
    assert run("analyze", "--fail-on", option, log(tmp_path, text)).returncode == code


def test_text_report(tmp_path: Path) -> None:
    """The text says what happened, where, how often, and what it means; without colours in a pipe."""
    done = run("analyze", log(tmp_path, LIMIT))
    for words in ("CRITICAL", "positional_embedding hit the recompile limit (8)", "model/attention.py:105", "line 1", "run in eager mode"):
        assert words in done.stdout
    assert "\x1b" not in done.stdout and max(map(len, done.stdout.split("\n"))) <= 100


@pytest.mark.parametrize("command", ["analyze", "events"])
@pytest.mark.parametrize("text", ["", "INFO nothing to see\n" * 10_000, bytes(range(256)) * 50])
def test_nothing_recognisable(tmp_path: Path, text: str | bytes, command: str) -> None:
    """An empty, an unrelated and a binary file: 3 and one line that says what to do."""
    done = run(command, log(tmp_path, text))
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1 and "nothing recognisable in" in done.stderr and "2>&1" in done.stderr


def test_missing_file(tmp_path: Path) -> None:
    """A missing source is 3, even beside a good one; a critical finding still wins."""
    missing = str(tmp_path / "none.log")
    done = run("analyze", missing)
    assert done.returncode == 3 and done.stderr.count("\n") == 1 and "none.log: no such file" in done.stderr
    assert run("analyze", missing, log(tmp_path, SKIP)).returncode == 3
    assert run("analyze", missing, log(tmp_path, LIMIT, "b.log")).returncode == 2
    assert run("events", missing, log(tmp_path, LIMIT, "b.log")).returncode == 3


def test_cut_short(tmp_path: Path) -> None:
    """A gzip file that ends early is unknown, whatever was in its beginning."""
    packed = gzip.compress((SKIP + "".join(f"{n} {n * 7919 % 65537}\n" for n in range(50_000))).encode())
    done = run("analyze", log(tmp_path, packed[:-2000], "bot.log.gz"))
    assert done.returncode == 3 and "truncated gzip" in done.stderr


def test_a_rotated_log_is_one_log_and_each_place_lies_in_its_own_file(tmp_path: Path) -> None:
    """With --rotated a record may go on in the next file; what is shown names the file and the line where it stands."""
    head, rest = LIMIT.splitlines(keepends=True)[:1], LIMIT.splitlines(keepends=True)[1:]
    packed = gzip.compress(("a\nb\n" + SKIP + "cut").encode())
    log(tmp_path, packed, "bot.log.2.gz")
    log(tmp_path, "a\n" + "".join(head), "bot.log.1")
    log(tmp_path, "".join(rest) + SKIP, "bot.log")
    wanted = [("bot.log.2.gz", 3, 4), ("bot.log.1", 2, 2), ("bot.log", 5, len("".join(rest)))]
    done = run("events", "--rotated", str(tmp_path))
    events = [json.loads(line) for line in done.stdout.splitlines()]
    places = [(Path(event["at"]["source"]).name, event["at"]["line"], event["at"]["offset"]) for event in events]
    assert places == wanted and events[1]["function"] == "positional_embedding"
    report = json.loads(run("analyze", "--rotated", "--format", "json", str(tmp_path)).stdout)
    shown = {(Path(one["source"]).name, one["line"]) for finding in report["findings"] for one in finding["evidence"]}
    assert {place[:2] for place in wanted} <= shown


def test_standard_input() -> None:
    """With no path and a pipe, standard input is read."""
    assert run("analyze", stdin=LIMIT).returncode == 2
    assert run("analyze", "-", stdin=LIMIT).returncode == 2
    assert json.loads(run("events", stdin=LIMIT).stdout)["at"]["source"] == "-"


def test_a_pipe_that_goes_on_gives_its_events_as_they_come() -> None:
    """``tail -f bot.log | recompile-watch events -``: each event is printed while the pipe is open."""
    command = [sys.executable, "-m", "recompile_watch", "events", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        assert process.stdin is not None and process.stdout is not None
        for text, kind in [(LIMIT, "recompile_limit_hit"), (RECOMPILE, "recompile"), (SKIP, "cudagraph_skip")]:
            process.stdin.write(text.encode())
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["kind"] == kind
        process.stdin.close()
        assert process.stdout.read() == b""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["analyse", "x"], "did you mean 'analyze'?"),
        (["analyze", "--formt", "json", "x"], "did you mean --format?"),
        (["analyze", "--format=csv", "x"], "choose one of text, json"),
        (["analyze", "--format"], "expected one argument"),
        (["analyze", "--jobs", "many", "x"], "--jobs"),
        (["analyze", "--year", "25", "x"], "--year"),
        (["analyze", "--tz", "Mars/Olympus", "x"], "--tz"),
        (["analyze", "--tz", "../../etc/passwd", "x"], "--tz"),
        (["analyze", "--since", "yesteryear", "x"], "--since"),
        (["analyze", "--torch-version", "new", "x"], "--torch-version"),
        (["analyze", "--output", "/no/such/folder/x", "-"], "--output"),
        (["rules", "lst"], "did you mean 'list'?"),
        (["rules", "show", "torch.recompil"], "torch.recompile"),
        (["--verbose"], "unknown option"),
        (["bad\x1b[31m"], "no such command"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str) -> None:
    """64 and one line with a hint; no traceback, no control codes."""
    done = run(*arguments, stdin=LIMIT)
    assert done.returncode == 64 and words in done.stderr and done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr and "\x1b" not in done.stderr


def test_no_command() -> None:
    """Without a command the usage, and 64."""
    assert run().returncode == 64 and "usage:" in run().stderr


@pytest.mark.parametrize(
    "arguments", [["analyze"], ["events"], ["rules", "list"], ["rules", "show"], ["rules", "check"], ["rules", "test"], ["completion"]]
)
def test_every_help_has_an_example(arguments: list[str]) -> None:
    """The last line of each help is a command that one can type."""
    done = run(*arguments, "--help")
    assert done.returncode == 0 and done.stdout.rstrip().split("\n")[-1].startswith("  recompile-watch " + " ".join(arguments))


def test_help_is_light() -> None:
    """--help loads neither the matcher nor rich nor the core's engine, nor anything heavy."""
    code = (
        "import sys, io; sys.stdout = io.StringIO(); from recompile_watch.cli import main; main(['--help']); main(['analyze', '--help']); "
        "sys.stdout = sys.__stdout__; print(' '.join(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout.split()
    heavy = {"re2", "hyperscan", "rich", "zstandard", "json", "torch", "pandas", "numpy", "matplotlib", "apprise", "tomllib", "logging", "asyncio"}
    assert not heavy & set(loaded)
    assert {name for name in loaded if name.startswith("recompile_watch.core.")} == {"recompile_watch.core.errors", "recompile_watch.core.likeness"}


def test_version() -> None:
    """--version names the program and its version."""
    assert run("--version").stdout.startswith("recompile-watch 0.")


def test_options_and_paths_mix(tmp_path: Path) -> None:
    """Options may stand between and behind paths."""
    done = run("analyze", log(tmp_path, SKIP), "--format", "json", log(tmp_path, LIMIT, "b.log"), "--fail-on=never")
    assert done.returncode == 0 and len(json.loads(done.stdout)["sources"]) == 2


def test_output_file(tmp_path: Path) -> None:
    """--output replaces a file in one step, keeps its mode, and can write to a device."""
    target = tmp_path / "report.json"
    target.write_text("old")
    target.chmod(0o640)
    assert run("analyze", "--format", "json", "--output", str(target), log(tmp_path, LIMIT)).stdout == ""
    assert json.loads(target.read_text())["status"] == "critical" and target.stat().st_mode & 0o777 == 0o640
    assert run("analyze", "--output", "/dev/null", log(tmp_path, LIMIT)).returncode == 2
    assert sorted(os.listdir(tmp_path)) == ["bot.log", "report.json"]


def test_events(tmp_path: Path) -> None:
    """One JSON object a line, with the fields of the contract, in log order."""
    done = run("events", log(tmp_path, LIMIT + SKIP))
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["kind"] for event in events] == ["recompile_limit_hit", "cudagraph_skip"] and done.returncode == 0
    first = events[0]
    assert (first["function"], first["line_no"], first["pid"], first["compile_id"], first["limit"]) == ("positional_embedding", 105, 101341, "6/8", 8)
    assert first["at"]["line"] == 1 and first["at"]["offset"] == 0 and events[1]["at"]["line"] == 6


def test_events_of_hostile_text(tmp_path: Path) -> None:
    """Invalid UTF-8, control codes and direction marks stay inside valid JSON and do nothing in a terminal."""
    text = RECOMPILE.replace("function f", "function f\u202e\u009b31m").encode().replace(b"'x'", b"'\x1b[31m\xff\xfe\xed\xa0\x80'")
    done = run("events", log(tmp_path, text))
    assert done.stdout and all(json.loads(line) for line in done.stdout.splitlines())
    assert not any(char in done.stdout for char in "\x1b\x9b\u202e")


def test_since_and_until(tmp_path: Path) -> None:
    """Events outside the time asked for are left out; when none is left, that is said."""
    path = log(tmp_path, LIMIT + RECOMPILE)
    kinds = {
        options: [json.loads(line)["kind"] for line in run("events", "--year", "2025", "--tz", "UTC", *options, path).stdout.splitlines()]
        for options in (
            ("--since", "2025-10-30T10:00"),
            ("--until", "2025-10-30T10:00"),
            ("--since", "2025-10-31"),
            ("--until", "2025-10-30T11:00+02:00"),
        )
    }
    assert list(kinds.values()) == [["recompile"], ["recompile_limit_hit"], [], []]
    done = run("analyze", "--year", "2025", "--tz", "UTC", "--since", "2025-10-31", path)
    assert done.returncode == 3 and "2 events lie outside" in done.stderr


def test_zone_and_year(tmp_path: Path) -> None:
    """--tz and --year place torch's own times, which have neither."""
    path = log(tmp_path, RECOMPILE)
    assert json.loads(run("events", "--year", "2024", "--tz", "+05:30", path).stdout)["time"] == "2024-10-30T10:28:52.255000+05:30"
    assert json.loads(run("events", "--year", "2024", path, env={"TZ": "EST5EDT"}).stdout)["time"] == "2024-10-30T10:28:52.255000-04:00"


def test_a_reader_that_leaves_early(tmp_path: Path) -> None:
    """`events | head -1` ends quietly."""
    path = log(tmp_path, RECOMPILE * 20_000)
    program = f"{sys.executable} -m recompile_watch"
    done = subprocess.run(["bash", "-c", f"{program} events {path} | head -1"], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert done.stdout.count("\n") == 1 and done.stderr == ""


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C ends with 130 and says nothing."""
    import fcntl
    import signal
    import termios
    import time

    reader, writer = os.pipe()
    command = [sys.executable, "-m", "recompile_watch", "events"]
    process = subprocess.Popen(
        command, stdin=reader, stdout=-1, stderr=-1, cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell lets what it starts in the background ignore it
    )  # fmt: skip
    os.write(writer, b"x\n" * 100)
    give_up_at = time.monotonic() + 60
    while fcntl.ioctl(reader, termios.FIONREAD, b"\0" * 4) != b"\0" * 4:  # until it has read that, and waits for more
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    os.close(reader)
    os.close(writer)
    assert process.returncode == 130 and errors == b""


def test_no_color_and_dumb_terminals() -> None:
    """On a terminal there are colours, unless NO_COLOR says no."""
    import pty

    def shown(env: dict[str, str]) -> bytes:
        main, side = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **env}
        environment.pop("NO_COLOR", None) if "NO_COLOR" not in env else None
        command = [sys.executable, "-m", "recompile_watch", "analyze", "-"]
        process = subprocess.Popen(command, stdin=-1, stdout=side, stderr=-1, cwd=ROOT, env=environment)
        process.communicate(LIMIT.encode(), timeout=30)
        os.close(side)
        data = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:
                break
            if not part:
                break
            data += part
        os.close(main)
        return data

    assert b"\x1b[1;37;41m" in shown({}) or b"\x1b[" in shown({})
    assert b";41m" not in shown({"NO_COLOR": "1"}) and b";41m" not in shown({"TERM": "dumb"})


def test_ascii_locale(tmp_path: Path) -> None:
    """A terminal without Unicode gets plain signs and no traceback."""
    done = run("analyze", log(tmp_path, LIMIT), env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 2 and done.stdout.isascii() and "########" in done.stdout


def test_secrets_stay_out(tmp_path: Path) -> None:
    """What looks like a key or webhook in a log is masked in every output."""
    text = "skipping cudagraphs due to https://hooks.slack.com/services/T0/B0/SECRETSECRET and sk-SECRETSECRETSECRET1\n"
    path = log(tmp_path, text)
    for arguments in (["analyze"], ["analyze", "--format", "json"], ["events"], ["rules", "test"]):
        done = run(*arguments, path)
        assert "SECRETSECRET" not in done.stdout + done.stderr and done.stdout


def test_several_sources(tmp_path: Path) -> None:
    """A folder is read whole; the report counts all and names each."""
    log(tmp_path, SKIP, "a.log")
    log(tmp_path, LIMIT, "b.log")
    done = run("analyze", "--format", "json", str(tmp_path))
    value = json.loads(done.stdout)
    assert value["counts"] == {"cudagraph_skip": 1, "recompile_limit_hit": 1} and done.returncode == 2
    assert [Path(source["path"]).name for source in value["sources"]] == ["a.log", "b.log"]
    assert value["sources"][1]["lines"] == 5


def test_a_reader_who_left_changes_no_status(tmp_path: Path) -> None:
    """`analyze 2>&1 | true` still ends as UNKNOWN when nothing was recognisable."""
    path = log(tmp_path, "nothing of interest\n" * 9)
    program = f"{sys.executable} -m recompile_watch"
    line = f"{program} analyze {path} 2>&1 | true; exit ${{PIPESTATUS[0]}}"
    assert subprocess.run(["bash", "-c", line], cwd=ROOT, timeout=60, check=False).returncode == 3


@pytest.mark.parametrize("words", ["analyze bot.log", "analyze --format json bot.log", "events bot.log", "rules list", "--help"])
def test_a_full_disk_is_one_line(tmp_path: Path, words: str) -> None:
    """A result that cannot be written is no finding and no traceback: UNKNOWN, and why."""
    log(tmp_path, LIMIT)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "recompile_watch", *words.split()], stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, timeout=60, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.decode().startswith("recompile-watch: the result cannot be written (No space left on device)")
    assert done.stderr.count(b"\n") == 1


def test_closed_standard_streams(tmp_path: Path) -> None:
    """With standard output and error closed the exit status still tells."""
    path = log(tmp_path, LIMIT)
    done = subprocess.run(["bash", "-c", f"{sys.executable} -m recompile_watch analyze {path} >&- 2>&-"], cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 2


def test_formats(tmp_path: Path) -> None:
    """Each format goes to standard output or to a file; the exit status is the same for all."""
    formats = {"markdown": "# torch.compile: critical", "sarif": '{"$schema"', "github": "::error ", "json": '{"schema"', "html": "<!DOCTYPE html>"}
    for name, begins in formats.items():
        done = run("analyze", "--format", name, stdin=LIMIT)
        assert done.returncode == 2 and done.stdout.startswith(begins), done.stderr
        file = tmp_path / name
        assert run("analyze", "--format", name, "--output", str(file), stdin=LIMIT).returncode == 2
        assert file.read_text().startswith(begins)


def test_html_without_its_libraries(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Where a library of that format is missing, one line says what to install, before anything is read."""
    monkeypatch.setattr("recompile_watch.cli.analyze.HTML_NEEDS", ("json", "no_such_library", "nor_this"))
    assert main(["analyze", "--format", "html", log(tmp_path, LIMIT)]) == 64
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert "pip install no_such_library nor_this" in said.err


def test_html_on_a_terminal_is_hinted_at() -> None:
    """A page that scrolls through a terminal ends with the option that makes a file of it; the exit status stays that of the report."""
    import pty

    command = [sys.executable, "-m", "recompile_watch", "analyze", "--format", "html", "-"]
    main_side, side = pty.openpty()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=side, stderr=subprocess.PIPE, cwd=ROOT) as process:
        os.close(side)
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(LIMIT.encode())
        process.stdin.close()
        shown = b""
        with contextlib.suppress(OSError):  # a terminal whose other side was closed ends with an error
            while more := os.read(main_side, 1 << 16):
                shown += more
        said = process.stderr.read()
    os.close(main_side)
    assert shown.startswith(b"<!DOCTYPE html>") and b"--output report.html" in said and process.returncode == 2


def test_baseline_and_acceptance(tmp_path: Path) -> None:
    """A report of yesterday tells what is new; an accepted finding counts no longer."""
    old, accept = tmp_path / "old.json", tmp_path / "accept.toml"
    run("analyze", "--format", "json", "--output", str(old), stdin=LIMIT)
    again = json.loads(run("analyze", "--format", "json", "--baseline", str(old), stdin=LIMIT).stdout)
    assert {finding["baseline"] for finding in again["findings"]} == {"same"}
    ids = [finding["id"] for finding in again["findings"]]
    accept.write_text("".join(f'[[accept]]\nfinding = "{one}"\nwho = "anna"\nwhy = "known"\nuntil = 2999-01-01\n' for one in ids))
    done = run("analyze", "--accept", str(accept), stdin=LIMIT)
    assert done.returncode == 0 and "accepted until 2999-01-01" in done.stdout


@pytest.mark.parametrize(("option", "text"), [("--baseline", "no report"), ("--baseline", None), ("--accept", "[[accept]]"), ("--accept", None)])
def test_files_that_options_name(option: str, text: str | None, tmp_path: Path) -> None:
    """A file that is missing or wrong is a mistake in the configuration: 78, one line, nothing analyzed."""
    file = tmp_path / "given"
    if text is not None:
        file.write_text(text)
    done = run("analyze", option, str(file), stdin=LIMIT)
    assert done.returncode == 78 and str(file) in done.stderr and "Traceback" not in done.stderr and not done.stdout
