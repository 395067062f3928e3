"""The control socket: how ``incidents ack`` and its like reach the daemon, which alone writes its database.

One connection is one question: a JSON object on one line, answered by one on one line. The socket lies in a folder
of the daemon's user and takes connections of that user and of root only.
"""

import contextlib
import json
import os
import selectors
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from recompile_watch.core.errors import StoreError

SOCKET_NAME = "control.sock"
MAX_QUESTION_BYTES = 1 << 20  # a diagnosis that is handed over
MAX_ASKING = 16
ANSWER_S = 10.0
_RUNTIME_FOLDER = "RUNTIME_DIRECTORY"  # systemd.exec(5)
_UNIT_FOLDER = Path("/run/recompile-watch")  # the unit's own, RuntimeDirectory=recompile-watch
_MAX_PATH_BYTES = 100  # of a Unix socket's address, 108 with its end

Question = Mapping[str, object]
Answer = Mapping[str, object]


def made_in(state_folder: Path) -> Path:
    """The folder in which a watch makes its socket: systemd's runtime directory, else the state directory."""
    given = os.environ.get(_RUNTIME_FOLDER, "").partition(":")[0]
    return Path(given) if given else state_folder


def found_in(state_folder: Path) -> Path:
    """The folder in which the socket of that watch lies; the state directory when it is in none."""
    candidates = (state_folder, made_in(state_folder), _UNIT_FOLDER)
    return next((folder for folder in candidates if os.access(folder / SOCKET_NAME, os.F_OK)), state_folder)


class ControlSocket:
    """Takes questions without ever blocking; ``answer`` gives each its answer."""

    def __init__(self, folder: Path, selector: selectors.BaseSelector, answer: Callable[[Question], Answer]) -> None:
        """Raises StoreError when the socket cannot be made."""
        self._path = folder / SOCKET_NAME
        self._selector, self._answer = selector, answer
        self._asking: dict[socket.socket, bytearray] = {}
        self._server = _listening(self._path)
        selector.register(self._server, selectors.EVENT_READ, self._accept)

    def close(self) -> None:
        """Takes no more questions."""
        for asking in [*self._asking]:
            self._drop(asking)
        self._selector.unregister(self._server)
        self._server.close()
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            asking, _ = self._server.accept()
            asking.setblocking(False)
            if not _is_allowed(asking) or len(self._asking) >= MAX_ASKING:
                asking.close()
                return
            self._asking[asking] = bytearray()
            self._selector.register(asking, selectors.EVENT_READ, lambda: self._read(asking))

    def _read(self, asking: socket.socket) -> None:
        try:
            part = asking.recv(MAX_QUESTION_BYTES)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        text = self._asking[asking]
        text += part
        if b"\n" in text:
            self._reply(asking, bytes(text.partition(b"\n")[0]))
        elif not part or len(text) > MAX_QUESTION_BYTES:
            self._drop(asking)

    def _reply(self, asking: socket.socket, text: bytes) -> None:
        try:
            question = json.loads(text)
            answer = self._answer(question) if isinstance(question, dict) else {"error": "a question is a JSON object"}
        except (ValueError, RecursionError):
            answer = {"error": "a question is a JSON object on one line"}
        with contextlib.suppress(OSError):
            asking.settimeout(1.0)
            asking.sendall(json.dumps(answer).encode() + b"\n")
        self._drop(asking)

    def _drop(self, asking: socket.socket) -> None:
        self._asking.pop(asking, None)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(asking)
        asking.close()


def ask(folder: Path, question: Question) -> Answer:
    """The running daemon's answer. Raises StoreError when none runs, it does not answer, or it refuses."""
    path = folder / SOCKET_NAME
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
            channel.settimeout(ANSWER_S)
            with _address(path) as address:
                channel.connect(address)
            channel.sendall(json.dumps(question).encode() + b"\n")
            text = b""
            while not text.endswith(b"\n"):
                part = channel.recv(1 << 16)
                if not part:
                    break
                text += part
        answer = json.loads(text)
    except (FileNotFoundError, ConnectionRefusedError):
        raise StoreError(f"{path}: no watch runs here; start it, or name its folder with --state-dir") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: the watch does not answer ({error}); see `systemctl status recompile-watch`") from None
    if not isinstance(answer, dict):
        raise StoreError(f"{path}: the watch gave no answer")
    if "error" in answer:
        raise StoreError(str(answer["error"]))
    return answer


def _listening(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()  # of a daemon that was killed; the lock of the state directory says that none runs
        mask = os.umask(0o177)
        try:
            with _address(path) as address:
                server.bind(address)
        finally:
            os.umask(mask)
        server.listen(MAX_ASKING)
    except OSError as error:
        server.close()
        raise StoreError(
            f"{path}: the control socket cannot be made ({error.strerror or error}); set RUNTIME_DIRECTORY or a shorter state_dir"
        ) from None
    return server


@contextlib.contextmanager
def _address(path: Path) -> Iterator[str]:
    """The socket's address: seen through its open folder where the whole path is too long for one."""
    text = str(path)
    if len(os.fsencode(text)) <= _MAX_PATH_BYTES:
        yield text
    elif sys.platform == "linux":
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{folder}/{path.name}"
        finally:
            os.close(folder)
    else:
        yield os.path.relpath(text)


def _is_allowed(asking: socket.socket) -> bool:
    """True for the daemon's own user and root."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # the folder's permissions hold there
    _, uid, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return uid in (0, os.geteuid())
