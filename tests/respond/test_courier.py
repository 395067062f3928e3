"""Tests of `recompile_watch.respond.courier`: real senders, real receivers, and nothing that hangs stalls anything else."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from recompile_watch.core.errors import DeliveryError
from recompile_watch.core.messages import Delivered, Form, Message, Reason, Refused, Retry
from recompile_watch.core.notices import NoticeSort
from recompile_watch.notify import sender_command
from recompile_watch.report.message import message_of
from recompile_watch.respond.courier import Courier, Result
from recompile_watch.respond.receivers import ReceiverSettings
from recompile_watch.respond.wire import Job, Task
from tests.conftest import ROOT
from tests.loopback import Behaviour, answer, drip, hang, receiver
from tests.notices import NOW, notice
from tests.slack_limits import check_payload

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def message() -> Message:
    """A message for a `json://` receiver."""
    return message_of(notice(), Form.JSON, now=NOW)


def job(receiver_name: str = "ops", id: str = "n1") -> Job:
    """A job for it."""
    return Job(id, receiver_name, message=message())


def courier_for(*settings: ReceiverSettings, command: tuple[str, ...] | None = None) -> Courier:
    """A courier with the real sender, or another program in its place."""
    return Courier(settings, command or sender_command(), ENVIRONMENT)


def python(code: str) -> tuple[str, ...]:
    """A sender that does this instead."""
    return (sys.executable, "-c", code)


def processes_of(parent: int) -> list[int]:
    """The children of a process that are not zombies."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, ppid = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if int(ppid) == parent and state != "Z":
                found.append(int(folder.name))
    return found


@pytest.fixture
def no_children() -> Iterator[None]:
    """Checks that no child process is left behind."""
    before = set(processes_of(os.getpid()))
    yield
    assert set(processes_of(os.getpid())) <= before


def the_one(results: list[Result]) -> Result:
    """The only result."""
    (result,) = results
    return result


@pytest.mark.usefixtures("no_children")
def test_a_message_arrives() -> None:
    """A job for a `json://` receiver becomes one POST with the message and the incident's fingerprint."""
    with receiver() as made:
        courier = courier_for(ReceiverSettings("ops", made.url()))
        courier.submit(job(), time.monotonic())
        assert the_one(courier.wait(20)) == Result("n1", "ops", Delivered())
        courier.close()
        (request,) = made.requests
    assert request.line == "POST /alerts HTTP/1.1"
    body = request.json()
    assert body["type"] == "failure" and body["message"] == message().text
    assert isinstance(body["incidents"], list) and body["incidents"][0]["fingerprint"] == "5f0c2a9e81d4b377"


@pytest.mark.parametrize("sort", list(NoticeSort))
def test_slack_takes_it(sort: NoticeSort) -> None:
    """What a Slack webhook gets is within Slack's limits, for every sort of notice."""
    with receiver(answer(200, body=b"ok")) as made:
        settings = ReceiverSettings("ops", made.url("slack+http", "/services/T0/B0/XX"))
        courier = courier_for(settings)
        courier.submit(Job("n1", "ops", message=message_of(notice(sort), settings.form, now=NOW)), time.monotonic())
        assert the_one(courier.wait(20)).outcome == Delivered()
        courier.close()
    assert made.requests[0].line == "POST /services/T0/B0/XX HTTP/1.1"
    check_payload(made.requests[0].body)


def test_a_sign_of_life() -> None:
    """A heartbeat is a GET on its address as it stands, without a body."""
    with receiver() as made:
        courier = courier_for(ReceiverSettings("heartbeat", made.url("http", "/ping/XX?rid=1&a=b")))
        courier.submit(Job("h1", "heartbeat", Task.PING), time.monotonic())
        assert the_one(courier.wait(20)).outcome == Delivered()
        courier.close()
    assert made.requests[0].line == "GET /ping/XX?rid=1&a=b HTTP/1.1" and made.requests[0].body == b""


@pytest.mark.parametrize("url", ["json://host/", "https:///x", "https://host/a b", "https://host/\u00e9"])
def test_a_heartbeat_to_a_bad_address(url: str) -> None:
    """An address that is no web address is refused."""
    courier = courier_for(ReceiverSettings("heartbeat", url))
    courier.submit(Job("h1", "heartbeat", Task.PING), time.monotonic())
    outcome = the_one(courier.wait(20)).outcome
    assert isinstance(outcome, Refused) and outcome.reason is Reason.ADDRESS
    courier.close()


def test_a_warm_sender_is_used_again() -> None:
    """The second message goes through the same process."""
    with receiver() as made:
        courier = courier_for(ReceiverSettings("ops", made.url()))
        seen = set()
        for number in range(3):
            courier.submit(job(id=str(number)), time.monotonic())
            assert isinstance(the_one(courier.wait(20)).outcome, Delivered)
            seen |= set(processes_of(os.getpid()))
        courier.close()
    assert len(seen) == 1 and len(made.requests) == 3


@pytest.mark.usefixtures("no_children")
@pytest.mark.parametrize("behaviour", [hang, drip], ids=["hangs", "drips"])
def test_a_receiver_that_hangs_stalls_nobody(behaviour: Callable[[threading.Event], Behaviour]) -> None:
    """While one receiver hangs or drips, another gets its messages; the first is given up at its deadline (case 82)."""
    with receiver() as good, receiver() as bad:
        bad.script[:] = [behaviour(bad.stopping)]
        courier = courier_for(ReceiverSettings("good", good.url()), ReceiverSettings("bad", bad.url(), deadline_s=2.0))
        began = time.monotonic()
        courier.submit(job("bad", "b"), began)
        courier.submit(job("good", "g"), began)
        results = courier.wait(20)
        took_s = time.monotonic() - began
        courier.close()
    assert [result.receiver for result in results] == ["good", "bad"]
    outcome = results[1].outcome
    assert isinstance(outcome, Retry) and outcome.reason in (Reason.DEADLINE, Reason.TIMEOUT) and outcome.is_maybe_delivered
    assert took_s < 6


@pytest.mark.usefixtures("no_children")
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.abort()", "ended before"),
        ("raise SystemExit(3)", "ended before"),
        ("print('hello')", "nonsense"),
        ("import json, time; print(json.dumps({'id': 'other', 'outcome': 'Delivered', 'words': ''}), flush=True); time.sleep(60)", "nonsense"),
        ("import sys, time; sys.stdout.write('x' * 200_000); sys.stdout.flush(); time.sleep(60)", "nonsense"),
        ("import json; print('[' * 60_000)", "nonsense"),
        ("import time; time.sleep(60)", "no outcome within 1 s"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "no outcome within 1 s"),
        ("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)", "no outcome within 1 s"),
    ],
)
def test_a_sender_that_misbehaves_is_replaced(code: str, words: str) -> None:
    """A sender that crashes, is stopped, says nothing or speaks nonsense costs one attempt, which may have been delivered."""
    courier = courier_for(ReceiverSettings("ops", "json://127.0.0.1:9/", deadline_s=1.0), command=python(code))
    for number in ("1", "2"):
        courier.submit(job(id=number), time.monotonic())
        result = the_one(courier.wait(20))
        assert result.id == number
        assert isinstance(result.outcome, Retry) and words in result.outcome.words and result.outcome.is_maybe_delivered
    courier.close()


def test_a_sender_that_cannot_be_started() -> None:
    """A missing interpreter is one failed attempt with a reason."""
    courier = courier_for(ReceiverSettings("ops", "json://127.0.0.1:9/"), command=("/nonexistent/python",))
    courier.submit(job(), time.monotonic())
    outcome = the_one(courier.wait(5)).outcome
    assert isinstance(outcome, Retry) and outcome.reason is Reason.SENDER and "No such file" in outcome.words


def test_the_whole_group_is_killed(tmp_path: Path) -> None:
    """What a sender has started goes with it when it is killed."""
    code = "import subprocess, time; p = subprocess.Popen(['sleep', '600']); open(OUT, 'w').write(str(p.pid)); time.sleep(600)"
    path = tmp_path / "grandchild"
    courier = courier_for(ReceiverSettings("ops", "json://127.0.0.1:9/", deadline_s=1.5), command=python(f"OUT = {str(path)!r}; {code}"))
    courier.submit(job(), time.monotonic())
    courier.wait(20)
    courier.close()
    assert is_gone(int(path.read_text()))


def test_senders_die_with_the_daemon() -> None:
    """A daemon that is killed takes its senders with it, even one that hangs in the middle of an attempt."""
    code = (
        "import os, sys, time\n"
        "from tests.respond.test_courier import *\n"
        "courier = courier_for(ReceiverSettings('ops', sys.argv[1]))\n"
        "courier.submit(job(), 0.0)\n"
        "courier.collect(0.0)\n"
        "print(*processes_of(os.getpid()), flush=True)\n"
        "time.sleep(60)\n"
    )
    with receiver() as made:
        made.script[:] = [hang(made.stopping)]
        daemon = subprocess.Popen([sys.executable, "-c", code, made.url()], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=ROOT)
        assert daemon.stdout is not None
        senders = [int(word) for word in daemon.stdout.readline().split()]
        assert made.got_one.wait(20) and senders
        daemon.kill()
        daemon.communicate()
        assert all(is_gone(pid) for pid in senders)


def is_gone(pid: int) -> bool:
    """True when the process ends within 5 seconds."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        select.select([], [], [], 0.02)
    return False


@pytest.mark.usefixtures("no_children")
def test_closing_takes_no_longer_than_its_grace() -> None:
    """Shutdown with an attempt under way and another waiting ends in time and leaves no process (case 105)."""
    with receiver() as made:
        made.script[:] = [hang(made.stopping)]
        courier = courier_for(ReceiverSettings("ops", made.url()))
        courier.submit(job(id="1"), time.monotonic())
        courier.submit(job(id="2"), time.monotonic())
        assert made.got_one.wait(20)
        began = time.monotonic()
        assert courier.close(grace_s=0.5) == []
        assert time.monotonic() - began < 2


def test_closing_waits_for_what_is_nearly_done() -> None:
    """An attempt that ends within the grace counts."""
    with receiver() as made:
        courier = courier_for(ReceiverSettings("ops", made.url()))
        courier.submit(job(), time.monotonic())
        assert courier.close(grace_s=20) == [Result("n1", "ops", Delivered())]


def test_an_idle_sender_leaves() -> None:
    """Ten minutes after its last message a sender is ended; the next message starts another. The clock is the caller's."""
    with receiver() as made:
        courier = courier_for(ReceiverSettings("ops", made.url()))
        now = 1000.0
        courier.submit(job(), now)
        assert _collected(courier, now)
        assert courier.next_due() == now + 600
        courier.collect(now + 599)
        assert courier.fds()[0]
        courier.collect(now + 600)
        assert courier.fds() == ([], [])
        courier.submit(job(id="n2"), now + 601)
        assert _collected(courier, now + 601)
        courier.close()


def _collected(courier: Courier, now: float) -> list[Result]:
    """What comes, while the caller's clock stands still."""
    for _ in range(1000):
        results = courier.collect(now)
        if results:
            return results
        reading, writing = courier.fds()
        select.select(reading, writing, [], 1.0)
    return []


def test_a_clock_that_goes_back_starts_the_deadline_anew() -> None:
    """After a jump of an hour back, an attempt is given up one deadline later, not an hour later."""
    courier = courier_for(ReceiverSettings("ops", "json://127.0.0.1:9/", deadline_s=5.0), command=python("import time; time.sleep(60)"))
    courier.submit(job(), 10_000.0)
    assert courier.collect(6400.0) == [] and courier.next_due() == 6405.0
    outcome = the_one(courier.collect(6405.0)).outcome
    assert isinstance(outcome, Retry) and outcome.reason is Reason.DEADLINE
    courier.close()


def test_a_job_larger_than_a_pipe() -> None:
    """A message of half a megabyte is handed over bit by bit, without waiting."""
    big = Message(Form.JSON, message().tone, "t", "x" * 400_000, payload='{"message": "' + "x" * 400_000 + '"}')
    with receiver() as made:
        courier = courier_for(ReceiverSettings("ops", made.url()))
        began = time.monotonic()
        courier.submit(Job("n1", "ops", message=big), began)
        assert courier.fds()[1]
        assert isinstance(the_one(courier.wait(20)).outcome, Delivered)
        courier.close()
    assert len(made.requests[0].body) > 400_000


def test_a_stopped_sender_is_killed() -> None:
    """A sender stopped by SIGSTOP while idle costs the next message one attempt."""
    with receiver() as made:
        courier = courier_for(ReceiverSettings("ops", made.url(), deadline_s=1.0))
        courier.submit(job(id="1"), time.monotonic())
        assert isinstance(the_one(courier.wait(20)).outcome, Delivered)
        (pid,) = processes_of(os.getpid())
        os.kill(pid, signal.SIGSTOP)
        outcomes = []
        for number in ("2", "3"):
            courier.submit(job(id=number), time.monotonic())
            outcomes.append(type(the_one(courier.wait(20)).outcome))
        courier.close()
    assert outcomes == [Retry, Delivered]


def test_a_stop_of_the_whole_service_leaves_the_attempt_alone() -> None:
    """systemd sends SIGTERM to every process of a service: a sender goes on with its attempt until the daemon ends it (case 105)."""
    go_on = threading.Event()

    def slow(connection: socket.socket) -> None:
        go_on.wait(20)
        answer(200)(connection)

    with receiver(slow) as made:
        courier = courier_for(ReceiverSettings("ops", made.url()))
        courier.submit(job(), time.monotonic())
        assert made.got_one.wait(20)
        for pid in processes_of(os.getpid()):
            os.kill(pid, signal.SIGTERM)
        go_on.set()
        assert courier.close(grace_s=20) == [Result("n1", "ops", Delivered())]


def test_what_a_plug_in_prints_is_no_answer() -> None:
    """Output of a library does not get between the sender and the daemon."""
    code = (
        "from recompile_watch import sender\n"
        "real = sender.deliver\n"
        "def noisy(order):\n"
        "    print('noise', flush=True)\n"
        "    return real(order)\n"
        "sender.deliver = noisy\n"
        "sender.main()\n"
    )
    with receiver() as made:
        courier = courier_for(ReceiverSettings("ops", made.url()), command=python(code))
        courier.submit(job(), time.monotonic())
        assert the_one(courier.wait(20)).outcome == Delivered()
        courier.close()


def test_an_unknown_receiver_is_an_error() -> None:
    """A job for a receiver that is not configured is refused with the names of those that are."""
    with pytest.raises(DeliveryError, match="names ops"):
        courier_for(ReceiverSettings("ops", "json://127.0.0.1:9/")).submit(job("oops"), 0.0)


def environment_of(pid: int) -> Mapping[str, str]:
    """The environment with which a process was started."""
    words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


def test_a_sender_gets_no_secret_by_its_environment() -> None:
    """Of the daemon's environment a sender has only what holds no secret; proxies come through the pipe."""
    with receiver() as made:
        environment = {
            **ENVIRONMENT,
            "OPS_URL": "json://user:CANARYCANARY@host",
            "http_proxy": "http://u:CANARYCANARY@127.0.0.1:1",
            "no_proxy": "127.0.0.1",
        }
        courier = Courier([ReceiverSettings("ops", made.url())], sender_command(), environment)
        courier.submit(job(), time.monotonic())
        assert isinstance(the_one(courier.wait(20)).outcome, Delivered)
        (pid,) = processes_of(os.getpid())
        told = environment_of(pid)
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
        courier.close()
    assert "PATH" in told and not any("CANARY" in value for value in told.values())
    assert b"CANARY" not in arguments


def test_answers_are_read_as_they_come() -> None:
    """Ten receivers are served at the same time."""
    with receiver(answer(200)) as made:
        names = [f"r{number}" for number in range(10)]
        courier = courier_for(*(ReceiverSettings(name, made.url()) for name in names))
        for name in names:
            courier.submit(job(name, name), time.monotonic())
        results = courier.wait(30)
        courier.close()
    assert {result.receiver for result in results if isinstance(result.outcome, Delivered)} == set(names)


def test_no_deadline_is_missed_while_another_answers() -> None:
    """`next_due` names the earliest deadline of all."""
    courier = courier_for(
        ReceiverSettings("a", "json://127.0.0.1:9/", deadline_s=50.0), ReceiverSettings("b", "json://127.0.0.1:9/", deadline_s=7.0),
        command=python("import time; time.sleep(60)"),
    )  # fmt: skip
    courier.submit(job("a"), 100.0)
    courier.submit(job("b"), 110.0)
    assert courier.next_due() == 117.0
    courier.close()
