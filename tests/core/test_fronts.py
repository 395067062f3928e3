"""Fronts: what somebody put in front of every line is known by standing there, not by its name."""

import pytest

from recompile_watch.core.fronts import back_of, front_of, peel_behind
from tests.conftest import SAMPLES, as_json, engine_events
from tests.truth import Event

TABLE = """2025-10-30 09:08:42 UTC | 2025-10-30 05:08:42 EDT | 2025-10-30 22:08:42 NZDT | backtest_test3_inline.py:_log_table:249 INFO |\x20
Backtest summary for ETHUSD (70 simulations)
  Strategy          Return  Sharpe   FinalDay
  ----------------- ------- -------- --------
  MaxDiff           0.1043  18.2400  0.0133\x20\x20
2025-10-30 09:08:43 UTC | 2025-10-30 05:08:43 EDT | 2025-10-30 22:08:43 NZDT | trade_stock_e2e.py:main:3098 INFO |\x20
INITIAL ANALYSIS STARTING...
"""
SHORT = """DEBUG:torch._dynamo.guards.__recompiles:Recompiling function f in /srv/app/model.py:9
    triggered by the following guard failure(s):
    - 6/0: tensor 'x' size mismatch at index 0. expected 8, actual 9
DEBUG:torch._dynamo.guards.__recompiles:Recompiling function f in /srv/app/model.py:9
    triggered by the following guard failure(s):
    - 6/1: tensor 'x' size mismatch at index 0. expected 9, actual 10
"""
RAISED = """Traceback (most recent call last):
  File "/srv/app/serve.py", line 15, in <module>
    model(x)
torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
RuntimeError: ptxas fatal: no kernel image

Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace
"""
FRONTS = (
    "[2025-10-30 09:08:{n:02},255: WARNING/ForkPoolWorker-1] ",
    'Step #2 - "train": ',
    "09:08:{n:02}.255 | INFO    | Task run 'train-0' - ",
    "[Container] 2025/10/30 09:08:{n:02}.001344 ",
    "{n}. ",
    "- ",
    "trainer main ",
    "[NeMo W 2025-10-30 09:08:{n:02} exp_manager:42] ",
    "[2025-10-30 09:08:{n:02} +0000] [3989] [INFO] ",
    "I1030 09:08:{n:02}.255123 140735 trainer.py:42] ",
    "[rank0]:",
    "2025-10-30T09:08:{n:02}.123Z\tINFO\trunner/exec.go:42\t",
    "[2025-10-30T09:08:{n:02}.123+0000] {{pod_manager.py:468}} INFO - [base] ",
    "I1030 09:08:{n:02}.123456       1 pump.go:42] ",
)


def _events(text: str) -> list[Event]:
    events = as_json(engine_events([text.encode()]))
    return [{name: value for name, value in event.items() if name not in ("at", "time", "pid", "rank")} for event in events]


def _fronted(front: str, text: str) -> str:
    return "".join(front.format(n=number) + line + "\n" for number, line in enumerate(text.splitlines(), 1))


@pytest.mark.parametrize("text", [TABLE, SHORT, RAISED], ids=["table", "short format", "traceback"])
@pytest.mark.parametrize("front", FRONTS)
def test_an_unknown_front_changes_no_event(front: str, text: str) -> None:
    """Whatever stands in front of every line, with its own numbers: headers, tables and bare lines behind it are read as without."""
    if text == RAISED and front.startswith("I1030"):
        pytest.skip("torch's own prefix, which somebody shortened, looks the same")
    assert len(_events(text)) == 2 - (text == RAISED)
    assert _events(_fronted(front, text)) == _events(text)


def test_a_log_without_a_front_has_none() -> None:
    """Neither torch's own prefix nor the bot's headers are a front, although every line begins with one."""
    logs = sorted(SAMPLES.rglob("*.log"))
    assert logs
    assert [log.name for log in logs if front_of(log.read_bytes().split(b"\n")) is not None] == []


def test_a_known_carrier_needs_no_front() -> None:
    """What `peel` takes off anyway, with its rank, process and time, stays with `peel`."""
    text = "V1030 09:08:09.060000 3989 torch/_dynamo/guards.py:5396] [6/1] [__recompiles] Recompiling function f in /srv/app/model.py:9\n" * 4
    for front in ("[pod/trainer-0/main] ", "bot-1  | ", "Oct 30 09:08:42 host python[3989]: ", "(Worker pid=3989, ip=10.0.0.2) "):
        assert front_of(_fronted(front, text).encode().split(b"\n")) is None


def test_what_is_known_of_a_front_is_kept() -> None:
    """A front that begins with a known carrier tells its process and its time."""
    lines = [b"Oct 30 09:08:42 host python[3989]: <<job>> " + line.encode() for line in TABLE.splitlines()]
    front = front_of([*lines, b""])
    assert front is not None
    (piece,) = peel_behind(front, lines[4])
    assert (piece.text, piece.pid) == (TABLE.splitlines()[4].encode(), 3989)


def test_an_empty_line_may_have_a_part_of_a_front() -> None:
    """A comment in which a log stands, with an empty comment above it."""
    text = "Sample output:\n\n" + "Recompiling function f in /srv/m.py:9\n    triggered by the following guard failure(s):\n    - 0/0: n == 3\n" * 2
    fronted = "".join(f"# >>{line}\n" if line else "#\n" for line in text.splitlines())
    assert len(_events(fronted)) == len(_events(text)) == 2


def test_one_sentence_on_every_line_is_no_front() -> None:
    """A program that quotes torch's message on each of its lines says the same words in front of it; they are its message."""
    lines = [b"monitor: saw torch._dynamo hit config.recompile_limit (8) %d times" % number for number in range(9)]
    assert front_of(lines) is None


def test_a_time_with_its_zone_in_a_front_is_the_records() -> None:
    """Where the record itself shows none, whatever stands around it."""
    text = _fronted("2025-10-30T09:08:{n:02}.123Z\tINFO\trunner/exec.go:42\t", RAISED)
    (event,) = as_json(engine_events([text.encode()]))
    assert str(event["time"]).startswith("2025-10-30T09:08:04.123")


def test_what_closes_a_line_is_not_behind_it() -> None:
    """The other half of a quote, a bracket, a colour or a table's row is taken off with its first half, and what is torch's own stays."""
    text = SHORT.encode()
    for left, right in (
        (b'{"message": "', b'", "level": "info"}'),
        (b"| ", b" |"),
        (b"**", b"**"),
        (b"\x1b[33m", b"\x1b[0m"),
        (b"<li>", b"</li>"),
        (b"", b""),
    ):
        assert back_of(b"".join(left + line + right + b"\n" for line in text.splitlines())) is None
    assert back_of(b"".join(line + b" [id=7]" * (b"guard failure" not in line) + b"\n" for line in text.splitlines())) is None


def test_a_back_of_blanks_costs_no_time() -> None:
    """A hostile line is looked at once."""
    back = back_of(b"".join(line + b"    [id =  7]\n" for line in SHORT.encode().splitlines()))
    assert back is not None
    assert back.search(b" " * 200_000 + b"[id" + b" " * 200_000) is None
