"""The process that watches: from its start to its end, with signals, the service manager and the control socket."""

import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from recompile_watch.core.errors import ConfigError, RecompileWatchError, StoreError
from recompile_watch.core.heard import Trouble, TroubleKind
from recompile_watch.daemon.building import build, rules_of
from recompile_watch.daemon.control import ControlSocket, made_in
from recompile_watch.daemon.journal import Journal
from recompile_watch.daemon.loop import Clock, Loop
from recompile_watch.daemon.questions import Questions
from recompile_watch.daemon.service import Service
from recompile_watch.store import Store
from recompile_watch.watch_config import UNIT_STATE_FOLDER, WatchConfig, default_state_folder, read_config

if TYPE_CHECKING:
    from recompile_watch.daemon.metrics import Metrics, MetricsServer

STOP_GRACE_S = 10.0  # for messages under way when the watch is told to end; systemd waits 30 s
MAX_BACK_OFF_S = 60.0
LOOKS_S = 8 * 86_400.0  # between two runs of cron: once a week, and one that was late
LINGER_S = 4.0  # so long a look waits for the next message, which a receiver's rate puts off; less than after a failed attempt
SYSTEM_CLOCK = Clock(time.time, time.monotonic)


class Program:
    """Watches with the configuration of a file until it is told to end."""

    def __init__(
        self, file: Path, journal: Journal, *, clock: Clock = SYSTEM_CLOCK, service: Service | None = None,
        read: Callable[[Path], WatchConfig] = read_config,
    ) -> None:  # fmt: skip
        """Raises ConfigError for a bad configuration, StoreError when the state directory cannot be used."""
        self._file, self._journal, self._clock, self._read = file, journal, clock, read
        self._service = service or Service()
        self._config = read(file)
        self._store = Store(self._config.state_folder, now=clock.now())
        self._selector = selectors.DefaultSelector()
        self._is_ending = self._must_reload = False
        self._metrics, self._server = _measured(self._config, clock)
        self._loop = self._new_loop(self._config)
        self._failures = 0

    def run(self) -> None:
        """Watches until SIGTERM or SIGINT, or until standard input ends where that is the only source."""
        with _signals(self._selector, self._end, self._reload_soon):
            control = ControlSocket(made_in(self._config.state_folder), self._selector, Questions(lambda: self._loop, self._clock).answer)
            self._journal.told("watch_started", config=str(self._file), state=str(self._config.state_folder), sources=len(self._config.sources))
            try:
                is_ready = False
                while not self._is_ending:
                    if self._turn():
                        self._service.alive()
                    if not is_ready and not self._failures:
                        is_ready = True
                        self._service.ready(self._status())
                    if self._loop.is_over:
                        self._journal.told("input_ended")
                        self._conclude()
                        break
                    self._loop.wait(self._service.watchdog_s / 2 if self._service.watchdog_s else None)
                    if self._must_reload:
                        self._reload()
            finally:
                self._service.stopping()
                control.close()
                self._close()
        self._selector.close()

    def run_once(self) -> list[str]:
        """Reads what is there, tells all of it, and ends; for cron. What could not be read, one sentence each."""
        try:
            self._conclude()
        finally:
            self._close()
            self._selector.close()
        return [*self._loop.unread.values()]

    def _conclude(self) -> None:
        """Does what is left to do, and tells what waits for company."""
        self._run_out()
        self._loop.conclude()
        self._run_out()

    def _run_out(self) -> None:
        """Turns until there is nothing left to do."""
        while self._loop.turn(settles_at_once=True) or self._loop.has_more or self._loop.is_sending(LINGER_S) or self._loop.is_measuring:
            self._loop.wait()

    def _turn(self) -> bool:
        """One turn; False when it failed. The only catch-all: a fault of ours is told, and the loop goes on, after a growing
        pause, from what was written down last.
        """
        try:
            self._loop.turn()
        except Exception as error:  # noqa: BLE001
            self._failures += 1
            self._journal.failed("turn_failed", error, failures=self._failures)
            pause_s = min(2.0**self._failures, MAX_BACK_OFF_S, *([self._service.watchdog_s / 2] if self._service.watchdog_s else []))
            self._loop.drop()
            self._selector.select(pause_s)
            self._loop = self._new_loop(self._config)
            return False
        self._failures = 0
        return True

    def _new_loop(self, config: WatchConfig) -> Loop:
        parts, troubles = build(config, self._store, now=self._clock.now())
        state = None if config.state_folder in (UNIT_STATE_FOLDER, default_state_folder({})) else str(config.state_folder)
        parts.metrics = self._metrics
        loop = Loop(parts, self._clock, self._selector, poll_interval_s=config.general.poll_interval_s, state_dir=state)
        for trouble in troubles:
            loop.trouble(trouble)
        return loop

    def _end(self) -> None:
        self._is_ending = True

    def _reload_soon(self) -> None:
        self._must_reload = True

    def _reload(self) -> None:
        """Takes over a changed configuration; a bad one is told, and the old one stays."""
        self._must_reload = False
        self._service.reloading(self._clock.monotonic())
        try:
            config = self._read(self._file)
            if config.state_folder != self._config.state_folder:
                raise ConfigError(f"{self._file}: state_dir changes only with a restart")
            rules_of(config)  # while the old loop still runs: a bad rule must not end it
        except RecompileWatchError as error:
            self._journal.warned("reload_refused", error=str(error))
            text = f"the changed configuration is bad, the old one stays: {str(error).splitlines()[0]}"
            self._loop.trouble(Trouble(TroubleKind.BAD_RELOAD, str(self._file), text))
            self._service.ready(f"{self._status()}; {text[:200]}")
        else:
            self._loop.close(STOP_GRACE_S)
            self._config = config
            self._loop = self._new_loop(config)
            self._loop.trouble(Trouble(TroubleKind.BAD_RELOAD, str(self._file), "the configuration was read again", is_over=True))
            self._journal.told("config_reloaded", sources=len(config.sources), receivers=len(config.receivers))
            self._service.ready(self._status())

    def _status(self) -> str:
        return f"sources watched: {len(self._config.sources)}, receivers: {len(self._config.receivers)}"

    def _close(self) -> None:
        try:
            self._loop.close(STOP_GRACE_S)
        except StoreError as error:
            self._journal.warned("state_unwritten", error=str(error))
        self._store.close()
        if self._server is not None:
            self._server.close()


def read_for_one_look(file: Path) -> WatchConfig:
    """The configuration of a watch that looks from time to time: what it does not find it says at once. Raises ConfigError."""
    config = read_config(file)
    sources = tuple(replace(source, follow=replace(source.follow, missing_after_s=0.0)) for source in config.sources)
    return replace(config, sources=sources, watch=replace(config.watch, looks_s=LOOKS_S))


def _measured(config: WatchConfig, clock: Clock) -> tuple["Metrics | None", "MetricsServer | None"]:
    """The metrics and their server, where the configuration asks for them; only then their library is loaded."""
    if config.general.metrics.listen is None:
        return None, None
    from recompile_watch.daemon.metrics import Metrics, MetricsServer

    metrics = Metrics(clock.monotonic)
    return metrics, MetricsServer(config.general.metrics.listen, metrics)


@contextmanager
def _signals(selector: selectors.BaseSelector, end: object, reload: object) -> Iterator[None]:
    """SIGTERM and SIGINT end, SIGHUP reloads; each wakes the loop through a pipe."""
    wake, woken = socket.socketpair()
    for channel in (wake, woken):
        channel.setblocking(False)
    handlers = {signal.SIGTERM: end, signal.SIGINT: end, signal.SIGHUP: reload}

    def drain() -> None:
        for number in woken.recv(4096):
            handler = handlers.get(signal.Signals(number))
            if callable(handler):
                handler()

    before_fd = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in handlers}
    selector.register(woken, selectors.EVENT_READ, drain)
    try:
        yield
    finally:
        selector.unregister(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before_fd)
        wake.close()
        woken.close()
