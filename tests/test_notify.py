"""Tests of proving receivers, and that no secret of theirs shows anywhere, whatever goes wrong."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recompile_watch.core.messages import Delivered, Reason, Refused, Retry
from recompile_watch.notify import Trial, check_receivers, outcome_text, send_tests, sender_command
from recompile_watch.report.message import message_of
from recompile_watch.respond.courier import Courier
from recompile_watch.respond.receivers import ReceiverSettings
from recompile_watch.respond.wire import Job
from tests.conftest import ROOT
from tests.loopback import Behaviour, answer, hang, receiver, reset
from tests.notices import NOW, notice
from tests.respond.test_courier import ENVIRONMENT, processes_of
from tests.respond.test_mail import Mailbox, server

CANARY = "CANARYc4n4ry"


def test_every_receiver_is_told_how_it_did() -> None:
    """A test message goes to every receiver at once; each outcome is one line in words."""
    mailbox = Mailbox()
    with receiver() as good, receiver(answer(404)) as gone, server(mailbox) as port:
        receivers = [
            ReceiverSettings("good", good.url()),
            ReceiverSettings("gone", gone.url()),
            ReceiverSettings("mail", f"mailto://127.0.0.1:{port}/?from=bot@example.org&to=you@example.org"),
            ReceiverSettings("down", "json://127.0.0.1:9/"),
        ]
        trials = send_tests(receivers, host="bot1", now=NOW, environment=ENVIRONMENT)
    assert trials == [
        Trial("good", True, "delivered"),
        Trial("gone", False, "not delivered: HTTP 404"),
        Trial("mail", True, "delivered"),
        Trial("down", False, "not delivered now: no connection: connection refused; the daemon would try again"),
    ]
    assert good.requests[0].json()["title"] == "Test message from recompile-watch on bot1"
    assert mailbox.mails[0]["Subject"] == "Test message from recompile-watch on bot1"


def test_a_check_sends_nothing() -> None:
    """A check connects where the address names the host, and says no more than that; nobody gets a message."""
    mailbox = Mailbox()
    with receiver() as made, server(mailbox) as port:
        addresses = {
            "good": made.url(), "mail": f"mailto://127.0.0.1:{port}/?from=bot@example.org&to=you@example.org", "chat": "tgram://123456789:abcdefg_hij/42",
            "down": "json://127.0.0.1:9/", "bad": f"json://{CANARY}@/x", "other": "nosuch://x",
        }  # fmt: skip
        trials = check_receivers([ReceiverSettings(name, url) for name, url in addresses.items()], ENVIRONMENT)
    assert made.requests == [] and mailbox.mails == []
    assert [trial.is_good for trial in trials] == [True, True, True, False, False, False]
    assert [trial.words for trial in trials[:4]] == [
        "it can be connected to", "it can be connected to", "the address is good", "no connection: connection refused",
    ]  # fmt: skip
    assert "names no host" in trials[4].words


def test_no_receivers() -> None:
    """Without receivers there is nothing to prove."""
    assert check_receivers([], ENVIRONMENT) == []


def test_outcomes_in_words() -> None:
    """Each kind of outcome has words."""
    assert outcome_text(Delivered("1 of 2 addresses were refused")) == "delivered (1 of 2 addresses were refused)"
    assert outcome_text(Refused(Reason.LOGIN, "HTTP 401")) == "not delivered: HTTP 401"
    assert outcome_text(Retry(Reason.DNS, "x")).endswith("the daemon would try again")


def test_a_sender_does_not_import_what_lies_around(tmp_path: Path) -> None:
    """A module in the folder in which the daemon happens to start is not taken for one of the library."""
    (tmp_path / "json.py").write_text("raise SystemExit('hijacked')")
    code = (
        "import os\n"
        "from recompile_watch.notify import check_receivers\n"
        "from recompile_watch.respond.receivers import ReceiverSettings\n"
        "print(check_receivers([ReceiverSettings('a', 'json://127.0.0.1:9')], os.environ)[0].words)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT, check=True)
    assert done.stdout.strip() == "no connection: connection refused"


def test_the_sender_is_light() -> None:
    """For `json://` and Slack a sender loads no apprise, matplotlib, rich, re2 or numpy."""
    code = "import sys, recompile_watch.sender, recompile_watch.respond.http; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert not set(done.stdout.split()) & {"apprise", "matplotlib", "numpy", "rich", "re2", "hyperscan", "requests", "smtplib", "logging"}


URLS = [
    "json://user:{canary}@127.0.0.1:{port}/{canary}/?+X-Token={canary}&-key={canary}&:field={canary}",
    "jsons://user:{canary}@127.0.0.1:{port}/{canary}",
    "slack+http://127.0.0.1:{port}/services/T0/B0/{canary}",
    "form://user:{canary}@127.0.0.1:{port}/{canary}",
    "xml://user:{canary}@127.0.0.1:{port}/{canary}",
    "mailto://user:{canary}@127.0.0.1:{port}/?from=bot@example.org&to=you@example.org",
    "mailtos://user:{canary}@127.0.0.1:{port}/?from=bot@example.org&to=you@example.org",
    "json://user:{canary}@[::bad/{canary}",
    "json://host/?verify=no&secret={canary}",
    "slack://{canary}",
    "nosuch://user:{canary}@host/{canary}",
    "{canary}",
    "mailto://user:{canary}@",
    "discord://{canary}",
    "tgram://{canary}/{canary}",
]


def failures(url: str) -> list[Behaviour | None]:
    """What goes wrong; None: a receiver that hangs until the deadline. What loads apprise each time gets fewer."""
    refused, others = answer(404, body=CANARY.encode()), [answer(429), reset, None]
    if "{port}" not in url:
        return [refused]
    return [refused, *others] if url.startswith(("json", "slack")) else [refused, None]


@pytest.mark.parametrize("url", URLS)
def test_no_secret_of_an_address_shows(url: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever the address and the failure: no outcome, log, output, argument or environment of a process holds the secret (case 98)."""
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    for behaviour in failures(url):
        with receiver() as made:
            made.script[:] = [behaviour or hang(made.stopping)]
            settings = ReceiverSettings("ops", url.format(canary=CANARY, port=made.port), deadline_s=1.5)
            courier = Courier([settings], sender_command(), {**ENVIRONMENT, "OPS_URL": settings.url})
            courier.submit(Job("n1", "ops", message=message_of(notice(), settings.form, now=NOW)), time.monotonic())
            shown += [text_of_process(pid) for pid in processes_of(os.getpid())]
            shown += [repr(courier.wait(20)), repr(settings), repr(check_receivers([settings], ENVIRONMENT))]
            courier.close()
    output = capfd.readouterr()
    everything = "\n".join([*shown, caplog.text, output.out, output.err])
    assert CANARY not in everything
    assert "Retry" in everything or "Refused" in everything or "Delivered" in everything


def text_of_process(pid: int) -> str:
    """What others on the machine can see of a process."""
    try:
        folder = Path("/proc") / str(pid)
        return ((folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()).decode("utf-8", "replace")
    except OSError:
        return ""


def test_tracebacks_of_a_sender_go_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    """A sender that breaks prints nothing to the daemon's own output."""
    code = f"import sys; raise RuntimeError('{CANARY}')"
    courier = Courier([ReceiverSettings("ops", "json://127.0.0.1:9/")], (sys.executable, "-c", code), ENVIRONMENT)
    courier.submit(Job("n1", "ops", message=message_of(notice(), ReceiverSettings("x", "json://x").form, now=NOW)), time.monotonic())
    courier.wait(20)
    courier.close()
    assert capfd.readouterr() == ("", "")


def test_the_sender_runs_from_anywhere() -> None:
    """The program that the daemon starts is a module of the package, under the same interpreter."""
    assert sender_command()[0] == sys.executable and (ROOT / "recompile_watch" / "sender.py").exists()
