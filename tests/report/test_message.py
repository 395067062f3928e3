"""Tests of messages: each form reads as its golden file, fits its limits, and is inert whatever the log says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recompile_watch.core.messages import Form, Message
from recompile_watch.core.notices import Alert, Excerpt, Notice, NoticeSort, Place
from recompile_watch.report.message import message_of
from recompile_watch.report.message_html import PICTURE_MARK
from recompile_watch.respond import mail
from tests.notices import ADVICE, ALERT, NOW, notice
from tests.report.messages import FOLDER, golden, told
from tests.slack_limits import check_payload

GOLDEN = dict(golden())
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2060-\u2069\ud800-\udfff]")


@pytest.mark.parametrize("name", GOLDEN)
def test_messages_read_as_they_were_approved(name: str) -> None:
    """Each form of each sort of message is the golden file; python -m tests.report.messages writes them anew."""
    assert GOLDEN[name] == (FOLDER / name).read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    """Every golden file is checked."""
    assert {path.name for path in FOLDER.iterdir()} == set(GOLDEN)


@pytest.mark.parametrize("name", told())
def test_every_sort_fits_slack(name: str) -> None:
    """Each message is within Slack's limits."""
    made, now = told()[name]
    check_payload(message_of(made, Form.SLACK, now=now).payload)


def long_alert(number: int) -> Alert:
    """An incident with everything as long as it gets."""
    advice = replace(ADVICE, apply="\n".join(f"line_{n} = {'x' * 200}" for n in range(100)), where="w" * 900, expect="e" * 900, caution="c" * 900)
    excerpt = Excerpt("/srv/" + "d/" * 300, 1, tuple(f"{n} " + "y" * 2000 for n in range(60)), (30,))
    return replace(
        ALERT, incident=str(number), what="w" * 5000, cost="c" * 5000, why="y" * 5000, measured="m" * 5000, explains=("e" * 900,) * 50,
        symbols=("S" * 90,) * 500, advice=(advice,) * 4, excerpt=excerpt, places=(Place("/srv/" + "d/" * 300, 30, 1, "t" * 9000),) * 9,
    )  # fmt: skip


@pytest.mark.parametrize("sort", list(NoticeSort))
def test_the_longest_message_fits_and_says_what_is_cut(sort: NoticeSort) -> None:
    """100 incidents of the largest size stay within every limit; what is left out is named, with the command that shows it (case 86)."""
    made = replace(notice(sort, *(long_alert(n) for n in range(100))), left_out=900)
    slack = message_of(made, Form.SLACK, now=NOW).payload
    check_payload(slack)
    text = message_of(made, Form.TEXT, now=NOW)
    assert len(text.title) <= 400 and len(text.text) <= 31_000
    if sort is not NoticeSort.TEST:
        assert "recompile-watch incidents list" in slack and "recompile-watch incidents list" in text.text


@pytest.mark.parametrize("form", [Form.TEXT, Form.SLACK, Form.MAIL])
def test_a_large_group_names_ten_incidents(form: Form) -> None:
    """Of a group the first three incidents are told in full and the next seven in a few lines; the rest is counted, in every form."""
    made = message_of(notice(NoticeSort.OPENED, *(replace(ALERT, incident=f"inc-{n}") for n in range(12))), form, now=NOW)
    whole = made.text if form is Form.TEXT else made.payload or made.html
    assert [f"inc-{n}" in whole for n in range(12)] == [True] * 10 + [False] * 2
    assert "2 more incidents" in whole and "Cut here" not in whole
    assert [f"incidents ack inc-{n}" in whole for n in range(12)] == [True] * 3 + [False] * 9


def test_the_first_line_says_it_all() -> None:
    """The first line of the text: what, where, since when and how often."""
    lead = message_of(notice(), Form.JSON, now=NOW).text.split("\n")[0]
    for fact in (
        "positional_embedding hit the recompile limit of 8",
        "toto",
        "attention.py:105",
        "8 times",
        "2025-10-30 09:08:09 UTC",
        "4 min 12 s ago",
    ):
        assert fact in lead


def test_the_body_for_programs_has_the_same_facts() -> None:
    """The body for `json://` keeps apprise's fields and has the text's facts as numbers and ISO times."""
    body = json.loads(message_of(notice(), Form.JSON, now=NOW).payload)
    assert {"version", "title", "message", "attachments", "type"} <= set(body) and body["version"] == "1.0"
    (incident,) = body["incidents"]
    assert (incident["id"], incident["fingerprint"], incident["count"], incident["line_no"]) == ("17", "5f0c2a9e81d4b377", 8, 105)
    assert incident["first_time"] == "2025-10-30T09:08:09+00:00" and incident["last_time"] == "2025-10-30T09:12:01+00:00"
    assert incident["advice"]["apply"] == ADVICE.apply and incident["advice"]["restart"] is True
    assert incident["excerpt"]["lines"][2].endswith("torch._dynamo hit config.recompile_limit (8)") and 2 in incident["excerpt"]["matched"]
    assert body["possible_duplicate"] is False and body["sort"] == "opened"


def test_the_state_directory_is_named_where_it_is_not_the_usual_one() -> None:
    """Commands can be pasted: they name the state directory, quoted, only where it is needed."""
    assert "--state-dir" not in message_of(notice(), Form.TEXT, now=NOW).text
    text = message_of(notice(), Form.TEXT, now=NOW, state_dir="/srv/watch state;rm").text
    assert "recompile-watch incidents show 17 --state-dir '/srv/watch state;rm'" in text


def test_wrong_clocks_do_not_break_a_message() -> None:
    """Times that no calendar holds, or that lie ahead, give a message without 'ago' (cases 64 to 67)."""
    for since in (-1e18, 1e18, float("nan"), float("inf"), NOW + 1e6, 0.0):
        made = notice(NoticeSort.OPENED, replace(ALERT, since=since, until=since))
        for form in Form:
            assert "ago" not in message_of(made, form, now=NOW).title
        assert " ago)" not in message_of(made, Form.TEXT, now=NOW).text.split("\n")[0]


def test_both_sides_mean_the_same_picture_mark() -> None:
    """The report side marks where the sender puts a picture."""
    assert mail.PICTURE_MARK == PICTURE_MARK


def test_an_incident_with_one_event_has_no_picture() -> None:
    """A picture of one bar says nothing; a message about many incidents has three pictures at most."""
    assert message_of(notice(NoticeSort.OPENED, replace(ALERT, count=1, counts=(1,))), Form.MAIL, now=NOW).pictures == ()
    many = notice(NoticeSort.OPENED, *(replace(ALERT, incident=str(n)) for n in range(9)))
    made = message_of(many, Form.MAIL, now=NOW)
    assert len(made.pictures) == made.html.count(PICTURE_MARK) == 3


HOSTILE = (
    "<!channel>",
    "<@U012345>",
    "<#C1>",
    "@everyone",
    "@here",
    "@someone",
    "<http://evil.example/x|click>",
    "https://evil.example/x.png",
    "```",
    "`",
    "*b*",
    "_i_",
    "~s~",
    "</pre><script>alert(1)</script>",
    "<img src=https://evil.example/t.png>",
    PICTURE_MARK,
    "]]>",
    "\" onload='x'",
    "&lt;",
    "&#64;",
    "\r\n",
    "\r\nBcc: victim@example.org",
    "\n\nRESOLVED: all is well",
    "\x1b[31m",
    "\x1b]52;c;aGk=\x07",
    "\x1b]0;title\x07",
    "\u202e",
    "\u2066",
    "\u200b",
    "\x00",
    "\x9b2J",
    "\ud800",
    "\ufeff",
    "{{7*7}}",
    "{% x %}",
    "${HOME}",
    "%s",
    "%(x)s",
    "{0}",
    "\\n",
    "$(rm -rf /)",
    "'; rm -rf /; '",
    "\t",
    "\u2028",
    " APCA-API-SECRET-KEY: CANARYCANARY1 ",
    " https://hooks.slack.com/services/T0/B0/CANARYCANARY1 ",
    " token=CANARYCANARY1 ",
    "plain words",
    "日本語",
    "🔥",
)
TEXTS = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=8)), max_size=6).map("".join)


@st.composite
def hostile_notices(draw: st.DrawFn) -> Notice:
    """A notice in which every text that may come from a log or a file name is hostile."""
    advice = replace(
        ADVICE, title=draw(TEXTS), apply=draw(TEXTS), where=draw(TEXTS), expect=draw(TEXTS), caution=draw(TEXTS), torch=draw(TEXTS),
    )  # fmt: skip
    lines = draw(st.lists(TEXTS, min_size=1, max_size=3))
    alert = replace(
        ALERT, incident=draw(TEXTS), what=draw(TEXTS), cost=draw(TEXTS), why=draw(TEXTS), model=draw(TEXTS), function=draw(TEXTS), file=draw(TEXTS),
        symbols=(draw(TEXTS),), advice=(advice,), excerpt=Excerpt(draw(TEXTS), 1, tuple(lines), (0,)), explains=(draw(TEXTS),), measured=draw(TEXTS),
        places=(Place(draw(TEXTS), 1, 0, draw(TEXTS)),), state=draw(st.sampled_from(("open", "resolved"))),
    )  # fmt: skip
    sort = draw(st.sampled_from(list(NoticeSort)))
    return replace(notice(sort, *[alert] * draw(st.integers(1, 2))), host=draw(TEXTS), receiver=draw(TEXTS), note=draw(TEXTS))


class Page(HTMLParser):
    """What a mail client makes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.comments: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes a tag and its attributes."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_comment(self, data: str) -> None:
        """Notes a comment."""
        self.comments.append(data)


TAGS = {"html", "head", "meta", "title", "style", "body", "div", "h1", "p", "strong", "pre", "span", "ul", "li", "code", "hr", "br"}


def check_words(message: Message) -> None:
    """Title and text hold no control character, no secret, and the title is one line."""
    assert "\n" not in message.title
    for text in (message.title, message.text, message.html):
        assert STEERING.search(text) is None
        assert "CANARYCANARY1" not in text
        text.encode()


@settings(max_examples=150, deadline=None)
@given(hostile_notices())
def test_hostile_text_is_inert_in_every_form(made: Notice) -> None:
    """No control code, no forged line, no markup, no mention, no link, no secret: in no form, whatever stands in the log (cases 93 to 97, 99)."""
    messages = {form: message_of(made, form, now=NOW) for form in Form}
    for message in messages.values():
        check_words(message)
    for form in (Form.JSON, Form.SLACK):
        assert "CANARYCANARY1" not in messages[form].payload
    check_payload(messages[Form.SLACK].payload)
    page = Page()
    page.feed(messages[Form.MAIL].html)
    assert page.tags <= TAGS and page.attributes <= {"style", "class", "lang", "charset", "name", "content"}
    assert set(page.comments) <= {PICTURE_MARK[4:-3]}
    assert messages[Form.MAIL].html.count(PICTURE_MARK) == len(messages[Form.MAIL].pictures)
    for text in (messages[Form.TEXT].title, words_of(messages[Form.TEXT].text)):
        assert not re.search(r"@(?:everyone|here|channel|all)\b|<[@!#&:]|://|``", text)


def words_of(text: str) -> str:
    """The text without its commands, which are to be pasted as they stand."""
    return "\n".join(line for line in text.split("\n") if "recompile-watch incidents" not in line)


@given(TEXTS)
def test_no_line_of_a_log_forges_a_line_of_the_message(text: str) -> None:
    """The number of lines of a message does not depend on what a line of the log says (case 96)."""

    def lines(said: str) -> int:
        alert = replace(ALERT, what=f"x{said}", excerpt=Excerpt("/srv/bot.log", 1, (f"x{said}",), (0,)), places=())
        return message_of(notice(NoticeSort.OPENED, alert), Form.TEXT, now=NOW).text.count("\n")

    assert lines(text) == lines("")
