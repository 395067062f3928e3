"""What systemd is told: ready, alive, reloading, stopping. Does nothing when no service manager asks.

Protocol: sd_notify(3), one datagram of ``NAME=value`` lines to ``$NOTIFY_SOCKET``; a leading ``@`` names an abstract one.
"""

import contextlib
import os
import socket
from collections.abc import Mapping


class Service:
    """The service manager of this process. watchdog_s: how often it wants a sign of life, None for never."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        usec = environment.get("WATCHDOG_USEC", "")
        is_ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self.watchdog_s = int(usec) / 1_000_000 if usec.isdigit() and is_ours and int(usec) > 0 else None
        self._status = ""

    def ready(self, status: str) -> None:
        """The state is open and the first look at every source is done."""
        self._tell(f"READY=1\nSTATUS={status}\nMAINPID={os.getpid()}")

    def alive(self) -> None:
        """A sign of life; only the loop itself may give it, after a whole turn."""
        self._tell("WATCHDOG=1")

    def reloading(self, monotonic_s: float) -> None:
        """A reload begins; ``ready`` ends it."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={int(monotonic_s * 1_000_000)}")

    def stopping(self) -> None:
        """The process is about to end."""
        self._tell("STOPPING=1")

    def status(self, text: str) -> None:
        """One line for ``systemctl status``, sent when it changed."""
        if text != self._status:
            self._status = text
            self._tell(f"STATUS={text}")

    def _tell(self, text: str) -> None:
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.setblocking(False)
            channel.sendto(text.encode(), self._address)
