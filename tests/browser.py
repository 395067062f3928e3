"""Chromium without a window, driven through its debugging pipe: what a page really does in a browser.

Debian's package ``chromium`` is enough. Messages are JSON with a NUL behind each, on the browser's file descriptors 3 and 4
(``--remote-debugging-pipe``), so no library and no port is needed.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import cast

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
DEADLINE_S = 60.0
Json = dict[str, object]


def chromium() -> str | None:
    """Its program, None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of one browser. events: what the browser told meanwhile, in order."""

    def __init__(self, program: str, profile: Path) -> None:
        to_browser, mine = os.pipe()
        my_end, from_browser = os.pipe()
        command = [
            program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--hide-scrollbars", "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4),
            preexec_fn=lambda: _as_three_and_four(to_browser, from_browser),
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._write, self._read = mine, my_end
        self._rest, self._number = b"", 0
        self._session: str | None = None
        self.events: list[Json] = []
        targets = cast(list[Json], self.call("Target.getTargets", session=None)["targetInfos"])
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = str(self.call("Target.attachToTarget", {"targetId": page, "flatten": True}, session=None)["sessionId"])
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, parameters: Mapping[str, object] | None = None, *, session: str | None = "page") -> Json:
        """The browser's answer to one command."""
        self._number += 1
        message: Json = {"id": self._number, "method": method, "params": dict(parameters or {})}
        if session is not None and self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return cast(Json, answer["result"])
            self.events.append(answer)

    def open(self, path: Path, *, width: int = 1400, height: int = 900, scheme: str = "light", media: str = "") -> None:
        """Opens a file in a window of this size, for a reader who prefers this scheme of colours."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.call("Emulation.setEmulatedMedia", {"media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.call("Page.navigate", {"url": path.resolve().as_uri()})
        deadline = time.monotonic() + DEADLINE_S
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next(deadline))

    def value(self, expression: str) -> object:
        """What JavaScript says; a promise is waited for."""
        answer = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True, "userGesture": True})
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return cast(Json, answer["result"]).get("value")

    def press(self, key: str, code: int, modifiers: int = 0) -> None:
        """Presses a key and lets it go. code: its Windows virtual key code. modifiers: 8 is Shift."""
        text = {"Enter": "\r"}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                {
                    "type": kind,
                    "key": key,
                    "code": key,
                    "windowsVirtualKeyCode": code,
                    "modifiers": modifiers,
                    "text": text if kind == "keyDown" else "",
                },
            )

    def click(self, selector: str) -> None:
        """Clicks into the middle of an element with the mouse."""
        place = cast(
            dict[str, float],
            self.value(
                f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
                " const r = e.getBoundingClientRect(); return {x: r.x + r.width / 2, y: r.y + r.height / 2} })()"
            ),
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", {"type": kind, **place, "button": "left", "clickCount": 1})

    def screenshot(self, path: Path) -> None:
        """The whole page as PNG."""
        size = cast(dict[str, float], self.call("Page.getLayoutMetrics")["cssContentSize"])
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        answer = self.call("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path.write_bytes(base64.b64decode(str(answer["data"])))

    def pdf(self, path: Path) -> None:
        """The page as it is printed."""
        answer = self.call("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True, "paperWidth": 8.27, "paperHeight": 11.69})
        path.write_bytes(base64.b64decode(str(answer["data"])))

    def _next(self, deadline: float) -> Json:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser did not answer in time"
            more = os.read(self._read, 1 << 20)
            assert more, "the browser ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return cast(Json, json.loads(message))


def _as_three_and_four(first: int, second: int) -> None:
    """In the child: its ends of the pipes become the file descriptors that the browser looks at."""
    spare = os.dup(first), os.dup(second)
    while min(spare) < 5:  # 3 and 4 may be in use by the pipes themselves
        spare = os.dup(spare[0]), os.dup(spare[1])
    os.dup2(spare[0], 3)
    os.dup2(spare[1], 4)
