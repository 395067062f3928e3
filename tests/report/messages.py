"""The messages kept as golden files, and how they are made: python -m tests.report.messages writes them anew.

Read what changed before you commit it: somebody is woken by these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from recompile_watch.core.messages import Form, Message
from recompile_watch.core.notices import Notice, NoticeSort
from recompile_watch.report.message import message_of
from tests.conftest import DATA
from tests.notices import ALERT, BEGAN, NOW, QUOTES, notice

FOLDER = DATA / "messages"
RESOLVED = replace(ALERT, incident="16", state="resolved", until=BEGAN + 7200.0, count=214, why="It did not happen again for 30 min.")
GAP = replace(
    QUOTES,
    incident="21",
    kind="watch_gap",
    symbols=(),
    count=1,
    what="4 120 bytes of /srv/bot/trade.log were lost: the file was cut before they were read",
    cost="What stood there is not known.",
    why="The watch itself has trouble.",
    places=(),
)


def told() -> dict[str, tuple[Notice, float]]:
    """Each notice with the time at which it is sent."""
    measured = replace(ALERT, measured="eager is 1.8 times as fast as default (1.71 to 1.92; 50 calls each on the bot's GPU): switch toto to eager.")
    fallback = replace(notice(), note="This was meant for slack-ops, which did not take it (HTTP 404 (no_service)).", possible_duplicate=True)
    outage = "This is instead of 3 messages that could not reach you for 6 h 2 min (HTTP 503)."
    return {
        "opened": (notice(), NOW),
        "opened-group": (replace(notice(NoticeSort.OPENED, ALERT, QUOTES), left_out=3), NOW),
        "opened-many": (notice(NoticeSort.OPENED, *(replace(QUOTES, incident=str(n)) for n in range(31, 43))), NOW),
        "opened-gap": (notice(NoticeSort.OPENED, GAP), NOW),
        "worse": (notice(NoticeSort.WORSE), NOW),
        "repeated": (notice(NoticeSort.REPEATED, replace(ALERT, count=214, until=BEGAN + 14_380.0)), BEGAN + 14_400.0),
        "escalated": (notice(NoticeSort.ESCALATED), BEGAN + 1800.0),
        "resolved": (notice(NoticeSort.RESOLVED, RESOLVED), BEGAN + 9000.0),
        "flapping": (notice(NoticeSort.FLAPPING, replace(QUOTES, why="It came and went 6 times in 10 min.")), NOW),
        "digest": (replace(notice(NoticeSort.DIGEST, ALERT, QUOTES, RESOLVED), note=outage, left_out=2), BEGAN + 9000.0),
        "backlog": (notice(NoticeSort.BACKLOG, ALERT, QUOTES), NOW),
        "measured": (notice(NoticeSort.MEASURED, measured), NOW),
        "test": (replace(notice(NoticeSort.TEST), alerts=(), severity="info"), NOW),
        "fallback": (fallback, NOW),
    }


def golden() -> Iterator[tuple[str, str]]:
    """The name and content of each golden file."""
    for name, (made, now) in told().items():
        text = message_of(made, Form.TEXT, now=now)
        yield f"{name}.txt", f"{text.title}\n\n{text.text}"
        if name in ("opened", "digest", "resolved", "measured"):
            yield f"{name}.html", message_of(made, Form.MAIL, now=now).html
            yield f"{name}.slack.json", pretty(message_of(made, Form.SLACK, now=now, state_dir="/srv/watch state"))
            yield f"{name}.json", pretty(message_of(made, Form.JSON, now=now))


def pretty(message: Message) -> str:
    """The payload, to be read."""
    return json.dumps(json.loads(message.payload), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in golden():
        (FOLDER / name).write_text(content, encoding="utf-8")
