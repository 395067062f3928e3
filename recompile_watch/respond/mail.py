"""Mail: one message with text, HTML and pictures, handed to an SMTP server once; says what became of it.

apprise reads the address (it knows the servers of the large providers); sending is done here, because apprise tells
451 from 550 to nobody.
"""

import re
import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.headerregistry import Address as Mailbox
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from hashlib import sha256
from socket import gaierror

from recompile_watch.core.errors import DeliveryError
from recompile_watch.core.messages import Delivered, Message, Outcome, Reason, Refused, Retry
from recompile_watch.respond.http import REACHED

PICTURE_MARK = "<!--picture-->"  # where the HTML of a message wants its picture; text of a log has no "<" there
NO_PICTURE = "The picture of the events over time is left out: matplotlib is not installed."
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_STATUS = re.compile(rb"\b([45]\.\d{1,3}\.\d{1,3})\b")  # RFC 3463


@dataclass(frozen=True, slots=True)
class MailAddress:
    """Where mail goes. mode: ``starttls``, ``ssl`` or ``insecure``. sender, recipients: bare addresses."""

    host: str = field(repr=False)
    port: int
    mode: str
    user: str = field(repr=False)
    password: str = field(repr=False)
    sender: str
    recipients: tuple[str, ...]
    copies: tuple[str, ...] = ()
    blind_copies: tuple[str, ...] = ()


def mail_address(url: str) -> MailAddress:
    """The address in ``mailto://user:password@host:port?from=…&to=…``. Raises DeliveryError, which quotes nothing of it."""
    from apprise import Apprise
    from apprise.plugins.email import NotifyEmail

    found = Apprise.instantiate(url)
    if not isinstance(found, NotifyEmail) or not found.targets:
        raise DeliveryError(
            "the address is no mail address; write one such as mailtos://user:password@smtp.example.org?from=me@example.org&to=you@example.org"
        )
    if not found.verify_certificate:
        raise DeliveryError("certificates are always checked; leave out verify=no and set SSL_CERT_FILE to the server's own authority")
    return MailAddress(
        host=str(found.smtp_host), port=int(found.port or 25), mode=str(found.secure_mode), user=str(found.user or ""),
        password=str(found.password or ""), sender=str(found.from_addr[1]), recipients=tuple(str(address) for _, address in found.targets),
        copies=tuple(map(str, sorted(found.cc))), blind_copies=tuple(map(str, sorted(found.bcc))),
    )  # fmt: skip


def mime(message: Message, job_id: str, address: MailAddress, pictures: Sequence[bytes]) -> EmailMessage:
    """The mail. Its Message-ID comes of the notice, so that a second delivery of the same shows as the same."""
    mail = EmailMessage(policy=SMTP)
    mail["Subject"] = message.title
    mail["From"] = Mailbox("recompile-watch", addr_spec=address.sender)
    mail["To"] = ", ".join(address.recipients)
    if address.copies:
        mail["Cc"] = ", ".join(address.copies)
    mail["Date"] = formatdate(usegmt=True)
    mail["Message-ID"] = f"<{sha256(job_id.encode()).hexdigest()[:32]}@recompile-watch.invalid>"
    mail["Auto-Submitted"] = "auto-generated"
    note = f"\n{NO_PICTURE}\n" if message.pictures and not pictures else ""
    mail.set_content(message.text + note)
    mail.add_alternative(_with_pictures(message.html, len(pictures), note), subtype="html")
    page = mail.get_body(("html",))
    assert page is not None
    for number, png in enumerate(pictures):
        page.add_related(png, "image", "png", cid=f"<picture{number}>", filename=f"events-{number + 1}.png", disposition="inline")
    return mail


def _with_pictures(html: str, count: int, note: str) -> str:
    """The page with a picture at each mark, or with a note at the first."""
    for number in range(count):
        html = html.replace(PICTURE_MARK, f'<p><img src="cid:picture{number}" alt="events over time" style="max-width:100%"></p>', 1)
    return html.replace(PICTURE_MARK, f"<p>{note.strip()}</p>" if note else "", 1).replace(PICTURE_MARK, "")


def send_mail(mail: EmailMessage, address: MailAddress, timeout_s: float) -> Outcome:
    """Hands the mail over. timeout_s: seconds to wait for each answer of the server."""
    is_sent = False
    try:
        with _connection(address, timeout_s) as server:
            _secure(server, address)
            if address.user and address.password:
                server.login(address.user, address.password)
            is_sent = True
            everyone = [*address.recipients, *address.copies, *address.blind_copies]
            refused = server.send_message(mail, address.sender, everyone)
            words = f"{len(refused)} of {len(everyone)} addresses were refused" if refused else ""
            is_sent = False  # it is there, whatever QUIT says
            return Delivered(words)
    except DeliveryError as error:
        return Refused(Reason.TLS, str(error))
    except (OSError, smtplib.SMTPException) as error:
        return _failure(error, is_sent=is_sent)


def reach_mail(address: MailAddress, timeout_s: float) -> Outcome:
    """Connects to the mail server and says goodbye. timeout_s: seconds to wait for each of its answers."""
    try:
        with _connection(address, timeout_s):
            return Delivered(REACHED)
    except (OSError, smtplib.SMTPException) as error:
        return _failure(error, is_sent=False)


def _connection(address: MailAddress, timeout_s: float) -> smtplib.SMTP:
    if address.mode == "ssl":
        return smtplib.SMTP_SSL(address.host, address.port, timeout=timeout_s, context=ssl.create_default_context())
    return smtplib.SMTP(address.host, address.port, timeout=timeout_s)


def _secure(server: smtplib.SMTP, address: MailAddress) -> None:
    """STARTTLS where it is asked for, or offered when a password is to be sent. Raises DeliveryError without it."""
    if address.mode == "ssl":
        return
    server.ehlo_or_helo_if_needed()
    has_login = bool(address.user and address.password)
    if address.mode == "starttls" or (has_login and server.has_extn("starttls")):
        if not server.has_extn("starttls"):
            raise DeliveryError("the server offers no STARTTLS; write mode=ssl if it speaks TLS from the start")
        server.starttls(context=ssl.create_default_context())
    elif has_login and address.host not in _LOOPBACK:
        raise DeliveryError("the password would travel unencrypted: the server offers no STARTTLS; write mailtos://…?mode=ssl")


def _failure(error: Exception, *, is_sent: bool) -> Outcome:
    match error:
        case smtplib.SMTPRecipientsRefused():
            return _worst([(code, said) for code, said in error.recipients.values()])
        case smtplib.SMTPAuthenticationError() if error.smtp_code >= 500:
            return Refused(Reason.LOGIN, f"SMTP {error.smtp_code}: the server does not take user and password")
        case smtplib.SMTPResponseException():
            return _worst([(error.smtp_code, error.smtp_error)])
        case smtplib.SMTPServerDisconnected():
            return Retry(Reason.CONNECTION, "the mail server ended the connection", is_maybe_delivered=is_sent)
        case smtplib.SMTPNotSupportedError():
            return Refused(Reason.LOGIN, "the mail server lacks what is needed to log in or to take this address")
        case gaierror():
            return Retry(Reason.DNS, "the host name is not known here")
        case ssl.SSLCertVerificationError():
            return Retry(Reason.TLS, "the mail server's certificate is not valid")
        case ssl.SSLError():
            return Retry(Reason.TLS, "no TLS connection could be made", is_maybe_delivered=is_sent)
        case TimeoutError():
            return Retry(Reason.TIMEOUT, "no answer in time", is_maybe_delivered=is_sent)
    return Retry(Reason.CONNECTION, "no connection to the mail server", is_maybe_delivered=is_sent)


def _worst(answers: list[tuple[int, bytes | str]]) -> Outcome:
    """What one or several answers of the server mean: 4yz passes, 5yz does not. Only codes are passed on, no text."""
    passing = [answer for answer in answers if 400 <= answer[0] < 500 or answer[0] < 200]
    code, said = (passing or answers)[0]
    status = _STATUS.search(said if isinstance(said, bytes) else said.encode("utf-8", "replace"))
    words = f"SMTP {code}{f' {status[1].decode()}' if status else ''}"
    return Retry(Reason.SERVER, words) if passing else Refused(Reason.REJECTED, words)
