"""Tests of mail: a real SMTP server on loopback, told what to answer, and the mail as a client reads it."""

from __future__ import annotations

import email
import email.policy
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import EmailMessage

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from hypothesis import given, settings

from recompile_watch import sender
from recompile_watch.core.errors import DeliveryError
from recompile_watch.core.messages import Delivered, Form, Message, Outcome, Reason, Refused, Retry
from recompile_watch.core.notices import Notice, NoticeSort
from recompile_watch.report.message import message_of
from recompile_watch.respond.mail import NO_PICTURE, PICTURE_MARK, MailAddress, mail_address, mime
from recompile_watch.respond.wire import Order, Task
from tests.notices import NOW, notice
from tests.report.test_message import TAGS, Page, hostile_notices
from tests.respond.test_http import CERTIFICATE, no_proxy_here

__all__ = ["no_proxy_here"]


class Mailbox:
    """Keeps what comes, and answers to DATA, RCPT and logins as it is told."""

    def __init__(self, to_data: str = "250 OK", to_rcpt: Mapping[str, str] | None = None, to_login: bool = True) -> None:
        self.to_data = to_data
        self.to_rcpt = to_rcpt or {}
        self.to_login = to_login
        self.mails: list[EmailMessage] = []
        self.logins: list[LoginPassword] = []
        self.recipients: list[str] = []

    async def handle_RCPT(self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]) -> str:
        """Takes a recipient or not."""
        if address in self.to_rcpt:
            return self.to_rcpt[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        """Takes the mail or not."""
        assert isinstance(envelope.content, bytes)
        parsed = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(parsed, EmailMessage)
        if self.to_data.startswith("250"):
            self.mails.append(parsed)
            self.recipients += envelope.rcpt_tos
        return self.to_data

    def authenticate(self, _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, login: object) -> AuthResult:
        """Takes the login or not."""
        assert isinstance(login, LoginPassword)
        self.logins.append(login)
        return AuthResult(success=self.to_login, handled=False)


@contextmanager
def server(mailbox: Mailbox, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of an SMTP server with that mailbox, with STARTTLS where there is a context for it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(
        mailbox, hostname="127.0.0.1", port=port, authenticator=mailbox.authenticate, tls_context=tls, auth_require_tls=tls is not None
    )  # fmt: skip
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


def tls_context() -> ssl.SSLContext:
    """The server's side of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


def mail_message(sort: NoticeSort = NoticeSort.OPENED) -> Message:
    """A message in the form for mail."""
    return message_of(notice(sort), Form.MAIL, now=NOW)


def sent(url: str, message: Message | None = None) -> Outcome:
    """What becomes of a mail to this address."""
    return sender.deliver(Order("n1", Task.SEND, url, 15.0, message or mail_message()))


def test_a_whole_mail() -> None:
    """Text, HTML and the picture in one mail with one subject line; its Message-ID is the same for the same notice."""
    mailbox = Mailbox()
    with server(mailbox) as port:
        url = f"mailto://127.0.0.1:{port}/?from=bot@example.org&to=you@example.org,me@example.org"
        assert sent(url) == Delivered() and sent(url) == Delivered()
    mail, again = mailbox.mails
    assert mailbox.recipients[:2] == ["you@example.org", "me@example.org"]
    assert mail.get_all("Subject") == [mail_message().title] and mail["From"].addresses[0].addr_spec == "bot@example.org"
    assert mail["Message-ID"] == again["Message-ID"] and mail["Auto-Submitted"] == "auto-generated"
    text, page = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None and page is not None
    assert text.get_content().replace("\r\n", "\n") == mail_message().text
    assert 'src="cid:picture0"' in page.get_content() and PICTURE_MARK not in page.get_content()
    (picture,) = [part for part in mail.walk() if part.get_content_type() == "image/png"]
    assert picture["Content-ID"] == "<picture0>" and picture.get_content().startswith(b"\x89PNG")
    assert mail.get_content_type() == "multipart/alternative"


@settings(max_examples=60, deadline=None)
@given(hostile_notices())
def test_hostile_text_forges_no_header(made: Notice) -> None:
    """Whatever stands in the log: one subject, the headers that are ours, both bodies, and nothing is loaded from anywhere (cases 94, 95)."""
    address = MailAddress("127.0.0.1", 25, "insecure", "", "", "bot@example.org", ("you@example.org",))
    raw = mime(message_of(made, Form.MAIL, now=NOW), "n1", address, []).as_bytes()
    mail = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(mail, EmailMessage)
    assert sorted(mail.keys()) == ["Auto-Submitted", "Content-Type", "Date", "From", "MIME-Version", "Message-ID", "Subject", "To"]
    assert [part.get_content_type() for part in mail.walk()] == ["multipart/alternative", "text/plain", "text/html"]
    body, page = mail.get_body(("html",)), Page()
    assert body is not None
    page.feed(body.get_content())
    assert page.tags <= TAGS and not page.attributes & {"src", "href", "onload"}


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no picture can be drawn, the mail goes without it and says so in both forms."""
    monkeypatch.setitem(__import__("sys").modules, "recompile_watch.report.chart", None)
    mailbox = Mailbox()
    with server(mailbox) as port:
        assert sent(f"mailto://127.0.0.1:{port}/?from=bot@example.org&to=you@example.org") == Delivered()
    parts = {part.get_content_type(): part for part in mailbox.mails[0].walk()}
    assert "image/png" not in parts
    assert NO_PICTURE in parts["text/plain"].get_content() and NO_PICTURE in parts["text/html"].get_content()


@pytest.mark.parametrize(
    ("mailbox", "outcome"),
    [
        (lambda: Mailbox("451 4.7.1 greylisted, token CANARY"), Retry(Reason.SERVER, "SMTP 451 4.7.1")),
        (lambda: Mailbox("550 5.7.1 no CANARY"), Refused(Reason.REJECTED, "SMTP 550 5.7.1")),
        (lambda: Mailbox(to_rcpt={"you@example.org": "450 busy"}), Retry(Reason.SERVER, "SMTP 450")),
        (lambda: Mailbox(to_rcpt={"you@example.org": "550 unknown"}), Refused(Reason.REJECTED, "SMTP 550")),
        (lambda: Mailbox("421 closing"), Retry(Reason.SERVER, "SMTP 421")),
    ],
)
def test_4yz_is_tried_again_and_5yz_is_not(mailbox: Callable[[], Mailbox], outcome: Outcome) -> None:
    """Codes decide; the server's own words are not passed on (case 88)."""
    with server(mailbox()) as port:
        assert sent(f"mailto://127.0.0.1:{port}/?from=bot@example.org&to=you@example.org") == outcome


def test_one_of_two_recipients_is_refused() -> None:
    """The mail is delivered to the other, and the outcome says so."""
    with server(Mailbox(to_rcpt={"you@example.org": "550 unknown"})) as port:
        outcome = sent(f"mailto://127.0.0.1:{port}/?from=bot@example.org&to=you@example.org,me@example.org")
    assert outcome == Delivered("1 of 2 addresses were refused")


@pytest.mark.parametrize(
    ("takes", "outcome"), [(True, Delivered()), (False, Refused(Reason.LOGIN, "SMTP 535: the server does not take user and password"))]
)
def test_logins(takes: bool, outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    """User and password are sent after STARTTLS; a login that is refused stays refused."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    mailbox = Mailbox(to_login=takes)
    with server(mailbox, tls_context()) as port:
        assert sent(f"mailtos://user:pa%20ss@localhost:{port}/?from=bot@example.org&to=you@example.org&mode=starttls") == outcome
    assert [(login.login, login.password) for login in mailbox.logins[:1]] == [(b"user", b"pa ss")]


def test_no_starttls() -> None:
    """A server without STARTTLS gets no mail that asks for it (case 88)."""
    mailbox = Mailbox()
    with server(mailbox) as port:
        outcome = sent(f"mailtos://127.0.0.1:{port}/?from=bot@example.org&to=you@example.org")
    assert isinstance(outcome, Refused) and outcome.reason is Reason.TLS and "STARTTLS" in outcome.words
    assert mailbox.mails == []


def test_a_certificate_that_nobody_vouches_for() -> None:
    """The password is not sent to a server with a certificate that is not valid."""
    mailbox = Mailbox()
    with server(mailbox, tls_context()) as port:
        outcome = sent(f"mailtos://user:word@localhost:{port}/?from=bot@example.org&to=you@example.org")
    assert outcome == Retry(Reason.TLS, "the mail server's certificate is not valid")
    assert mailbox.logins == []


def test_nobody_listens() -> None:
    """No connection may work later."""
    outcome = sent("mailto://127.0.0.1:9/?from=bot@example.org&to=you@example.org")
    assert outcome == Retry(Reason.CONNECTION, "no connection to the mail server")


@pytest.mark.parametrize("url", ["mailto://", "mailto://host/?to=nobody", "mailto://user:word@host/?from=no address"])
def test_bad_addresses(url: str) -> None:
    """An address that is none is refused in words that quote nothing of it."""
    with pytest.raises(DeliveryError, match="no mail address"):
        mail_address(url)


def test_certificates_cannot_be_turned_off() -> None:
    """verify=no is refused with what to do instead."""
    with pytest.raises(DeliveryError, match="SSL_CERT_FILE"):
        mail_address("mailtos://user:word@host/?from=a@example.org&to=b@example.org&verify=no")


def test_the_servers_of_large_providers_are_known() -> None:
    """apprise knows their hosts and ports."""
    address = mail_address("mailto://someone:word@gmail.com")
    assert (address.host, address.port, address.mode) == ("smtp.gmail.com", 587, "starttls")
