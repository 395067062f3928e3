"""Prefixes: what a carrier says besides the message, and what must stay of the message."""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import as_json, engine_events
from tests.truth import Event

SKIP = "skipping cudagraphs due to mutated inputs (2 instances)"
FAILURE = """torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
RuntimeError: CppCompileError

from user code:
   File "/srv/app/model.py", line 33, in forward
    h = self.layer(x)
  File "/srv/app/layer.py", line 12, in inner
    return x + 1
"""


def events(text: str) -> list[Event]:
    return as_json(engine_events([text.encode()]))


def prefixed(prefix: str, text: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("prefix", "when", "pid"),
    [
        ("Nov 07 10:28:52 gpu1 python[777]: ", "2025-11-07T10:28:52+00:00", 777),
        ("<30>Nov  7 10:28:52 gpu1 bot: ", "2025-11-07T10:28:52+00:00", None),
        ("Fri 2025-11-07 10:28:52 UTC gpu1 python[777]: ", "2025-11-07T10:28:52+00:00", 777),
        ("1762511332.300000 gpu1 python[777]: ", "2025-11-07T10:28:52.300000+00:00", 777),
        ("[12345.678901] gpu1 python[777]: ", None, 777),
        ("Nov 07 10:28:52 ", "2025-11-07T10:28:52+00:00", None),
        ("2025-11-07T10:28:52.300000Z 01E+", "2025-11-07T10:28:52.300000+00:00", None),
        ("stack_bot.1.x2kq7@node1    | ", None, None),
        ("[2025-11-07 10:28:52,255: WARNING/ForkPoolWorker-1] ", "2025-11-07T10:28:52.255+00:00", None),
        ("[2025-11-07 10:28:52,255: INFO/MainProcess] bot.run[0c5d1c1e-8d9a-4b38-9d0a-7f3b6a5a1c11]: ", "2025-11-07T10:28:52.255+00:00", None),
        ("> 3: ", None, None),
        ("Feb 30 10:28:52 gpu1 python[777]: ", None, 777),
    ],
)
def test_time_and_process_of_a_carrier(prefix: str, when: str | None, pid: int | None) -> None:
    """A message without a prefix of its own has the carrier's time and process, where that shows them."""
    (event,) = events(prefix + SKIP + "\n")
    assert (event["kind"], event["time"], event["pid"], event["instances"]) == ("cudagraph_skip", when, pid, 2)


LIMIT = (
    "torch._dynamo hit config.recompile_limit (8)",
    "   function: 'forward' (/srv/app/model.py:33)",
    "   last reason: 0/7: tensor 'x' size mismatch at index 0. expected 8, actual 9",
    'To log all recompilation reasons, use TORCH_LOGS="recompiles".',
    "To diagnose recompilation issues, see https://pytorch.org/docs/main/torch.compiler_troubleshooting.html.",
)


def test_celery_heads_the_first_line_of_a_record() -> None:
    """Its time is the record's, whose other lines have no prefix."""
    (event,) = events("[2025-11-07 10:28:52,255: WARNING/ForkPoolWorker-1] " + "\n".join(LIMIT) + "\n")
    assert (event["kind"], event["function"], event["limit"], event["time"][:19]) == ("recompile_limit_hit", "forward", 8, "2025-11-07T10:28:52")


@pytest.mark.parametrize(
    "time", ["W1017 xx:50:14.963000 17892", "W**** **:**:**.****** ****", "WXXXX XX:XX:XX.XXXXXX 17892", "W1017 10:50:14.963000 xxxxx"]
)
@pytest.mark.parametrize("front", ["", "  0%|          | 0/2 [00:00<?, ?it/s]", "[rank1]:", "> ", "(Worker pid=7) "])
def test_a_time_that_somebody_made_unreadable(front: str, time: str) -> None:
    """The record is torch's all the same, at no time of torch's own when that cannot be read."""
    lines = [f"{time} torch/_dynamo/convert_frame.py:1016] [0/8] {line}" for line in LIMIT]
    keeps = "" if "%" in front else front
    (event,) = events("".join(f"{front if line is lines[0] else keeps}{line}\n" for line in lines))
    assert (event["kind"], event["function"], event["line_no"], event["compile_id"], event["limit"]) == (
        "recompile_limit_hit",
        "forward",
        33,
        "0/8",
        8,
    )
    assert event["partial"] is False


@pytest.mark.parametrize("prefix", ["ERROR 11-07 10:28:52 [core.py:586] ", "(EngineCore_0 pid=31) ERROR 11-07 10:28:52 [core.py:586] ", "10:28:52  "])
def test_indentation_stays(prefix: str) -> None:
    """Behind a place or a clock the blanks belong to the stack that is printed line by line."""
    (event,) = events(prefixed(prefix, FAILURE))
    assert (event["exception"], event["function"], event["file"], event["line_no"]) == ("BackendCompilerFailed", "inner", "/srv/app/layer.py", 12)


def test_json_behind_a_logger_is_quoted() -> None:
    """What an application prints behind a level and a name of its own is not its log line, but a value of it."""
    line = json.dumps({"text": SKIP})
    assert events(f"2025-11-07 10:28:52,300 - slack - INFO - {line}\n") == []
    assert len(events(f"[pod/bot-0/main] {line}\n")) == 1


def test_newlines_that_were_printed_as_two_characters() -> None:
    """A record on one line, its newlines spelled out, is the record."""
    head = "V1107 10:28:52.255000 3989 torch/_dynamo/guards.py:5396] [6/1] [__recompiles] "
    texts = ("Recompiling function step in /srv/a.py:9", "    triggered by the following guard failure(s):", "    - 6/0: n == 7")
    (event,) = events("".join(f"{head}{text}\\n" for text in texts) + "\n")
    assert (event["line_no"], event["reasons"]) == (9, [{"entry": "6/0", "text": "n == 7", "cause": "int_value"}])


@pytest.mark.parametrize(
    "text",
    [
        '    log.warning(\n        "skipping cudagraphs due to mutated inputs"\n    )\n',
        '    raise RuntimeError(\n        "Detected recompile when torch.compile stance is \'fail_on_recompile\'. "\n        "More."\n',
        "            #   RuntimeError: 0 active drivers ([]). There should only be one.\n",
        "| backend error | `torch._dynamo.exc.BackendCompilerFailed: backend='X' raised:` | yes |\n",
        '      "Explanation": "torch.compile does not support sparse Tensors",\n',
        "        torch._dynamo.exc.Unsupported: ...\n",
    ],
)
def test_source_and_documentation_quote(text: str) -> None:
    """Strings and comments in a program's source, tables in a manual and examples are no log."""
    assert events(text) == []


def test_the_output_of_a_notebook_is_a_list_of_strings() -> None:
    """Its last string has no comma, as one in a program's source: the line in front tells them apart."""
    assert len(events(f'   "text": [\n    "{SKIP}\\n"\n   ]\n')) == 1
    assert len(events(f'   "text": [\n    "epoch 1\\n",\n    "{SKIP}"\n   ]\n')) == 1


HEAD = "V1107 10:28:52.255000 3989 torch/_dynamo/guards.py:5396] [6/1] [__recompiles] "
RECOMPILE = (
    f"{HEAD}Recompiling function step in /srv/a.py:9",
    f"{HEAD}    triggered by the following guard failure(s):",
    f"{HEAD}    - 6/0: name == 'n'",
)
QUOTED = {
    "cloud": lambda line, _: json.dumps({"jsonPayload": {"message": line}, "severity": "ERROR"}),
    "search": lambda line, _: json.dumps({"_source": {"message": line, "@timestamp": "2025-11-07T10:28:52Z"}}),
    "fluentd": lambda line, _: f"2025-11-07T10:28:52+00:00\tkube.bot\t{json.dumps({'log': line})}",
    "pretty": lambda line, _: json.dumps({"level": "info", "message": line}, indent=2),
    "logfmt": lambda line, _: f'time=2025-11-07T10:28:52Z level=info msg="{line}"',
    "csv": lambda line, _: f'2025-11-07T10:28:52Z,"{line}"',
    "backticks": lambda line, _: f"`{line}`",
    "web page": lambda line, _: line.replace("    ", "\u00a0\u00a0\u00a0\u00a0"),
    "grep -n": lambda line, number: f"{number}:{line}",
}


@pytest.mark.parametrize("form", QUOTED.values(), ids=QUOTED)
def test_a_torch_line_inside_a_string(form: Callable[[str, int], str]) -> None:
    """What closes the string, and what stands behind it, is no part of the message."""
    (event,) = events("".join(form(line, number) + "\n" for number, line in enumerate(RECOMPILE, 1)))
    assert (event["function"], event["file"], event["line_no"], event["compile_id"], event["partial"]) == ("step", "/srv/a.py", 9, "6/1", False)
    assert event["reasons"] == [{"entry": "6/0", "text": "name == 'n'", "cause": "str_value"}]


GUARD = (
    "Recompiling function forward in /srv/app/model.py:33",
    "    triggered by the following guard failure(s):",
    "    - 7/0: tensor 'x' size mismatch at index 0. expected 8, actual 9",
)
GRAPH_BREAK = (
    "Graph break in user code at /srv/app/model.py:33",
    "Graph Break Reason: Call to `torch._dynamo.graph_break()`",
    "  Explanation: User-inserted graph break. Message: None",
    "User code traceback:",
    '  File "/srv/app/model.py", line 33, in forward',
)


@pytest.mark.parametrize("front", ["", "[rank1]:", "(Worker_TP1 pid=7) [rank1]:", "2026-01-10 10:28:52,255 INFO run: "])
@pytest.mark.parametrize(
    ("place", "lines"),
    [
        ("W0811 15:54:35.943000 18878 torch/_dynamo/convert_frame.py:906] [0/8] ", LIMIT),
        ("V0811 15:54:35.943000 18878 torch/_dynamo/guards.py:906] [7/1] [__recompiles] ", GUARD),
        ("V0811 15:54:35.943000 18878 torch/_dynamo/symbolic_convert.py:906] [0/0] [__graph_breaks] ", GRAPH_BREAK),
    ],
)
def test_copying_began_inside_the_first_prefix(front: str, place: str, lines: tuple[str, ...]) -> None:
    """Wherever a paste begins inside a record's prefix, it shows the one event, and what the other lines say of it."""
    text = prefixed(front + place, "\n".join(lines))
    (whole,) = events(text)
    for cut in range(1, len(front + place) + 1):
        (event,) = events(text[cut:])
        assert (event["kind"], event["function"], event["line_no"], event["reasons"]) == (whole["kind"], "forward", 33, whole["reasons"]), text[cut:]
        assert event["compile_id"] in (whole["compile_id"], None)
        assert event.get("limit") == whole.get("limit")


ITEM_HINT = (
    "Graph break from `Tensor.item()`, consider setting:",
    "    torch._dynamo.config.capture_scalar_outputs = True",
    "Graph break: from user code at:",
    '  File "/srv/app/model.py", line 33, in forward',
)
KINDS_OF_RECORDS: dict[str, tuple[tuple[str, ...], str, str, str]] = {
    "recompile_limit_hit": (LIMIT, "convert_frame.py:1016", "", "torch._dynamo.convert_frame"),
    "recompile": (GUARD, "guards.py:2813", "__recompiles", "torch._dynamo.guards.__recompiles"),
    "graph_break": (GRAPH_BREAK, "symbolic_convert.py:611", "__graph_breaks", "torch._dynamo.symbolic_convert.__graph_breaks"),
    "graph_break of item": (ITEM_HINT, "variables/tensor.py:913", "", "torch._dynamo.variables.tensor"),
}
SPOKEN_OF = (
    "we saw torch._dynamo hit config.recompile_limit (8) again, see the wiki",
    "the log said: Graph break in user code at /srv/app/model.py:33",
    "Recompiling function names is planned",
    "Graph break from `Tensor.item()` was mended",
)


def shortened_glog(place: str, artifact: str) -> Iterator[str]:
    """Whatever parts of torch's prefix since 2.2 somebody leaves: level, date, time, process, place, the bracket behind them, id, artifact."""
    fronts = itertools.product(
        ("", "W"), ("", "1017"), ("", "10:50:14", "10:50:14.963000"), ("", "17892"), ("", f"torch/_dynamo/{place}", place, "]")
    )
    for level, date, clock, process, where in fronts:
        front = " ".join(filter(None, (level + date, clock, process, where.strip("]"))))
        if not (level + clock) and (process or date):
            continue  # a number and a place are the rest of a line that another one tore, numbers alone count lines
        bracket = "]" if where and front else ""
        for compile_id, name in itertools.product(("", "[0/8]", "[0/8_1]", "[!0/0/8]"), ("", f"[{artifact}]" if artifact else "")):
            yield " ".join(filter(None, (front + bracket, compile_id, name)))


def shortened_brackets(logger: str) -> Iterator[str]:
    """The same of the prefix before 2.2: time, id, logger, level."""
    for parts in itertools.product(
        ("", "[2023-10-17 10:50:14,963]", "[10:50:14,963]", "2023-10-17 10:50:14,963"),
        ("", "[0/8]", "[0/8_1]", "[!0/0/8]"),
        ("", f"{logger}:"),
        ("", "[WARNING]", "WARNING", "WARNING:", "[DEBUG]"),
    ):
        if any(parts[1:3]):  # a time and a level alone are the application's own header
            yield " ".join(filter(None, parts))


@pytest.mark.parametrize("name", KINDS_OF_RECORDS)
def test_a_prefix_that_somebody_shortened(name: str) -> None:
    """Whatever is left of torch's prefix, the record is one event with all that its lines say."""
    lines, place, artifact, logger = KINDS_OF_RECORDS[name]
    (whole,) = events("\n".join(lines) + "\n")
    for prefix in dict.fromkeys((*shortened_glog(place, artifact), *shortened_brackets(logger))):
        if (
            "graph_break" in name
            and prefix
            and "[0/" not in prefix
            and "[!" not in prefix
            and "[__" not in prefix
            and not re.search(r"\.py:\d+\]|^W.*\.963000", prefix)
        ):
            continue  # the frames of a stack behind a level or a time alone are anybody's
        (event,) = events(prefixed(f"{prefix} " if prefix else "", "\n".join(lines)))
        assert (event["kind"], event["function"], event["line_no"]) == (name.split()[0], "forward", 33), prefix
        assert [reason["text"] for reason in event["reasons"]] == [reason["text"] for reason in whole["reasons"]], prefix
        found = re.search(r"\[([!\d/_]+)\]", prefix)
        assert event["compile_id"] == (whole["compile_id"] if found is None else found[1]), prefix


@pytest.mark.parametrize("quoted", SPOKEN_OF)
def test_a_shortened_prefix_makes_no_message(quoted: str) -> None:
    """What merely speaks of torch stays nothing, whatever stands in front."""
    prefixes = (*shortened_glog("guards.py:2813", "__recompiles"), *shortened_brackets("torch._dynamo.guards"))
    assert [prefix for prefix in dict.fromkeys(prefixes) if events(f"{prefix} {quoted}\n")] == []


COLOURED = """2025-12-09 20:01:06 UTC | 2025-12-09 15:01:06 EST | 2025-12-10 09:01:06 NZDT | a.py:main:1 \x1b[32mINFO\x1b[0m | Error analyzing ZZ
2025-12-09 20:01:06 UTC | 2025-12-09 15:01:06 EST | 2025-12-10 09:01:06 NZDT | a.py:_log_table:249 \x1b[1;32mINFO\x1b[0m |\x20
Backtest summary for AAPL (70 simulations)
  Strategy          Return  Sharpe  FinalDay
  ----------------- ------- ------- --------
  Simple            -0.0359 -6.3100 -0.0061\x20
\x1b[32m2025-12-09 20:01:06.800\x1b[0m | \x1b[1mINFO    \x1b[0m | \x1b[36mdata_curate_daily\x1b[0m:\x1b[36mf\x1b[0m:\x1b[36m288\x1b[0m - \x1b[1mPopulating synthetic bid/ask (0 spread) for AMD (ADD_LATEST=False)\x1b[0m
"""  # noqa: E501


@pytest.mark.parametrize("escape", ["", "^[", "\\x1b", "\\u001b", "\\033", "\\e", "#033", "\ufffd", "\u241b", "\u2190"])
def test_colours_whose_escape_byte_is_shown_or_lost(escape: str) -> None:
    """What a page, a ticket or a program leaves of colours changes nothing, in a JSON log neither."""
    shown = COLOURED.replace("\x1b", escape)
    entries = "".join(json.dumps({"message": line}) + "\n" for line in shown.splitlines())
    for text in (shown, entries):
        found = [{name: value for name, value in event.items() if name != "at"} for event in events(text)]
        assert found == [{name: value for name, value in event.items() if name != "at"} for event in events(COLOURED)]
    assert [event["kind"] for event in events(COLOURED)] == ["bot_error", "strategy_return", "synthetic_quote"]


MARKED = (
    "Recompiling function step in /srv/a.py:9",
    "    triggered by the following guard failure(s):",
    '    - 0/0: Duplicate tensors found: ["x", "y"]',
)
PREFIXES = (
    "V1120 10:28:52.255000 77 torch/_dynamo/guards.py:5396] [0/1] [__recompiles] ",
    "[rank0]:V1120 10:28:52.255000 77 torch/_dynamo/guards.py:5396] [0/1] [__recompiles] ",
)
MARKS: dict[str, Callable[[str], str]] = {
    "web page, lines": lambda line: f'<div class="line">{html.escape(line)}</div>',
    "web page, items": lambda line: f'<li><span class="t">{html.escape(line)}</span></li>',
    "web page, paragraphs": lambda line: f"<p>{html.escape(line)}</p>",
    "Markdown, code in a list": lambda line: f"- `{line}`",
    "Python's bytes": lambda line: f"2025-11-20 10:28:53 DEBUG child said {line.encode()!r}",
    "a table's cell": lambda line: '2025-11-20T10:28:53Z,host,"' + line.replace('"', '""') + '"',
}


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
def test_marks_around_each_line_are_none_of_it(mark: Callable[[str], str], prefix: str) -> None:
    """What was opened in front of a line is closed at its end, and belongs to neither."""
    (event,) = events("".join(mark(prefix + line) + "\n" for line in MARKED))
    assert (event["function"], event["file"], event["line_no"], event["partial"]) == ("step", "/srv/a.py", 9, False)
    assert [reason["text"] for reason in event["reasons"]] == ['Duplicate tensors found: ["x", "y"]']


@pytest.mark.parametrize("header", ["", "Nov 20 10:28:53 host trainer[77]: "])
@pytest.mark.parametrize("prefix", [*PREFIXES, "(MainThread) "])
def test_newlines_that_syslog_spells_out(header: str, prefix: str) -> None:
    """A record in one line is read as the lines it was."""
    lines = [prefix + line if "[" in prefix or not number else line for number, line in enumerate(MARKED)]
    (event,) = events(header + "#012".join(lines) + "\n")
    assert (event["function"], event["line_no"], event["partial"], len(event["reasons"])) == ("step", 9, False, 1)


def test_a_number_sign_is_no_newline() -> None:
    """A colour among the guards keeps its digits."""
    line = PREFIXES[0] + MARKED[0] + "\n" + PREFIXES[0] + "    - 0/0: L['colour'] == '#012345'\n"
    assert [reason["text"] for reason in events(line)[0]["reasons"]] == ["L['colour'] == '#012345'"]


def test_an_unknown_mark_makes_it_partial() -> None:
    """Where the line number cannot be told from what follows, the file is unknown and the event says so."""
    lines = [f"{PREFIXES[0]}{line}" for line in MARKED]
    (event,) = events("".join(f"{line}{'§' if line.endswith(':9') else ''}\n" for line in lines))
    assert (event["file"], event["line_no"], event["partial"]) == (None, None, True)
    (event,) = events("".join(f"{line}§\n" for line in lines))  # behind every line it is none of them
    assert (event["file"], event["line_no"], event["partial"]) == ("/srv/a.py", 9, False)


CHAIN = """Traceback (most recent call last):
  File "/venv/torch/_dynamo/exc.py", line 727, in unimplemented
    raise Unsupported(msg, gb_type, skip_frame)
torch._dynamo.exc.Unsupported: Dynamo recompile limit exceeded
  Explanation: Dynamo attempted to recompile the code object too many times, exceeding the recompile_limit cache size limit (currently set to 3).
  Developer debug context: Limit type: recompile_limit

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/venv/torch/_dynamo/convert_frame.py", line 2031, in _compile
    raise FailOnRecompileLimitHit(
torch._dynamo.exc.FailOnRecompileLimitHit: Hard failure due to fullgraph=True"""
CHAINS: dict[str, Callable[[str], str]] = {
    "lines": lambda text: text,
    "a field": lambda text: json.dumps({"level": "error", "message": text}),
    "one line": lambda text: text.replace("\n", " "),
    "one line of syslog": lambda text: text.replace("\n", "#012"),
}


@pytest.mark.parametrize("kept", CHAINS.values(), ids=CHAINS)
def test_the_last_exception_of_a_chain_counts(kept: Callable[[str], str]) -> None:
    """Kept as lines, in one field or in one line, a chain is the exception that left the program, with what its cause said."""
    (event,) = events(kept(CHAIN) + "\n")
    assert (event["kind"], event["exception"], event["limit"]) == ("recompile_limit_error", "FailOnRecompileLimitHit", 3)
    assert (event["limit_name"], event["partial"]) == ("recompile_limit", False)
