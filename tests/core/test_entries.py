"""Tests of logs that were exported with several lines for each line of theirs."""

from __future__ import annotations

import pytest

from recompile_watch.core.entries import Entries, Form, entries_of
from tests.conftest import engine_events, events_of_bytes

# As PyYAML breaks and quotes what does not fit in 80 columns, and what has blanks at the end of a line.
FOLDED = b"""\
---
insertId: 000a
textPayload: 'W1120 10:28:52.255000 77 torch/_dynamo/convert_frame.py:1358] [6/8] torch._dynamo
  hit config.recompile_limit (8)'
timestamp: '2025-11-20T10:28:52.255123456Z'
---
insertId: 000b
textPayload: "W1120 10:28:52.255000 77 torch/_dynamo/convert_frame.py:1358] [6/8]    function:\\
  \\ 'step' (/srv/bot/caf\\xE9.py:9)"
timestamp: '2025-11-20T10:28:52.255123456Z'
---
insertId: 000c
jsonPayload:
  level: warning
  message: |2-
    W1120 10:28:52.255000 77 torch/_dynamo/convert_frame.py:1358] [6/8]    last reason: 6/7: kv._idx == 0
    W1120 10:28:52.255000 77 torch/_dynamo/convert_frame.py:1358] [6/8] To log all recompilation reasons, use TORCH_LOGS="recompiles".
timestamp: '2025-11-20T10:28:52.255123456Z'
---
insertId: 000d
textPayload: 'step

  done'
"""


def test_broken_and_quoted_texts_of_yaml_are_put_together() -> None:
    """Folded, escaped and in blocks: the texts are the program's."""
    (event,) = events_of_bytes(FOLDED, "bot.log")
    assert (event["kind"], event["function"], event["file"], event["line_no"]) == ("recompile_limit_hit", "step", "/srv/bot/café.py", 9)
    assert (event["compile_id"], event["pid"], event["partial"]) == ("6/8", 77, False)
    assert [reason["text"] for reason in event["reasons"]] == ["kv._idx == 0"]
    assert event["at"]["line"] == 3


def test_a_text_of_several_lines_is_indented_by_journalctl() -> None:
    """In verbose output the lines of a message stand below each other."""
    head = b"Thu 2025-11-20 10:28:52.255000 CET [s=f4;i=1;b=9;m=3;t=6;x=1]\n    _PID=77\n    MESSAGE=Recompiling function step in /srv/bot/a.py:9\n"
    rest = b"                triggered by the following guard failure(s):\n                - 0/0: n == 4\n    _TRANSPORT=stdout\n"
    (event,) = events_of_bytes(head + rest, "bot.log")
    assert (event["function"], event["pid"], [reason["text"] for reason in event["reasons"]]) == ("step", 77, ["n == 4"])


@pytest.mark.parametrize(
    "head",
    [
        b'{\n  "loss": 0.12,\n  "step": 4\n}\n',  # one object, whatever comes behind it
        b"---\ntitle: a report\n---\n# Steps\n",
        b"_PID=1\nMESSAGE=one\n",
        b"Thu 2025-11-20 10:28:52 UTC host bot.service[3989]: text\n",
    ],
)
def test_other_texts_have_no_entries(head: bytes) -> None:
    """What only begins like one of these forms is read line by line."""
    assert entries_of(head) is None


@pytest.mark.parametrize("form", list(Form))
def test_lines_of_no_entry_are_given_as_they_are(form: Form) -> None:
    """What stands between entries or was cut loses nothing."""
    entries = Entries(form)
    raws = [b"", b"text", b"}", b"- x", b"MESSAGE", b"\xff\xff\xff\xff\xff\xff\xff\xff", b"    A=b", b"---", b'k: "\\x', b"{"]
    lines = [(number, 10 * number, raw) for number, raw in enumerate(raws, 1)]
    given = [line for number, offset, raw in lines for line in entries.line(number, offset, raw)] + entries.end()
    assert {number for number, _, _ in given} <= set(range(1, len(raws) + 1))
    assert b"text" in b"\n".join(raw for _, _, raw in given) or form is not Form.OBJECTS


def test_an_entry_without_end_does_not_grow() -> None:
    """Of a monster that nothing ends, no more than a part is held."""
    entries = Entries(Form.EXPORT)
    given = [line for number in range(60_000) for line in entries.line(number, number, b"A=" + b"x" * 20)]
    assert given
    assert engine_events([b"__REALTIME_TIMESTAMP=1763634532255000\n" + b"A=" + b"x" * 2_000_000]) == []
