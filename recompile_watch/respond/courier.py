"""The courier: hands jobs to senders, one process a receiver, and collects what became of them. Never waits.

For a loop that sleeps in ``select``: ``submit``, sleep on ``fds()`` until ``next_due()``, ``collect``. A sender starts with
its receiver's first job, stays warm for a while, and is killed with all its children when an attempt takes longer than
the receiver's deadline. It has no threads and reads no clock; ``now`` is any clock in seconds, even one that jumps.
"""

import select
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from recompile_watch.core.errors import DeliveryError
from recompile_watch.core.messages import Outcome
from recompile_watch.respond.process import SenderProcess
from recompile_watch.respond.receivers import ReceiverSettings
from recompile_watch.respond.wire import Job


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a job: id of the notice, name of the receiver."""

    id: str
    receiver: str
    outcome: Outcome


class Courier:
    """The senders of all receivers.

    command: the program that sends, such as ``(sys.executable, "-m", …)``. environment: the daemon's own; of it a
    sender gets on its command line and in its environment only what holds no secrets.
    """

    def __init__(self, receivers: Iterable[ReceiverSettings], command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._senders = {settings.name: SenderProcess(settings, command, environment) for settings in receivers}

    def submit(self, job: Job, now: float) -> None:
        """Takes a job; it starts at once unless its receiver is busy. Raises DeliveryError for an unknown receiver."""
        sender = self._senders.get(job.receiver)
        if sender is None:
            raise DeliveryError(f"no receiver is called '{job.receiver}'; the configuration names {', '.join(self._senders) or 'none'}")
        sender.submit(job, now)

    def fds(self) -> tuple[list[int], list[int]]:
        """The file descriptors to wait for: those to read, those to write."""
        reading = [fd for sender in self._senders.values() for fd in sender.reading()]
        writing = [fd for sender in self._senders.values() for fd in sender.writing()]
        return reading, writing

    def collect(self, now: float) -> list[Result]:
        """What has become known since the last call; also enforces deadlines and ends idle senders. Call it after each sleep."""
        return [
            Result(job_id, name, outcome) for name, sender in self._senders.items() for job_id, outcome in sender.collect(now)
        ]  # fmt: skip

    def next_due(self) -> float | None:
        """When ``collect`` has something to do even if no descriptor wakes; None without senders."""
        return min((due for sender in self._senders.values() if (due := sender.next_due()) is not None), default=None)

    @property
    def in_flight(self) -> int:
        """Jobs without an outcome."""
        return sum(sender.jobs for sender in self._senders.values())

    def wait(self, timeout_s: float) -> list[Result]:
        """The results until no job is left, at most ``timeout_s`` seconds; for programs without a loop of their own."""
        results: list[Result] = []
        end = time.monotonic() + timeout_s
        while (now := time.monotonic()) < end:
            results += self.collect(now)
            if not self.in_flight:
                break
            reading, writing = self.fds()
            due = self.next_due()
            select.select(reading, writing, [], max(0.0, min(end, due if due is not None else end) - now))
        return results

    def close(self, grace_s: float = 0.0) -> list[Result]:
        """Gives attempts under way ``grace_s`` seconds, then kills what is left; no sender remains. The results of the grace.

        A job without a result may have been delivered or not: it stays ``sending`` and is marked as a possible duplicate.
        """
        for sender in self._senders.values():
            sender.drop_waiting()
        results = self.wait(grace_s) if grace_s > 0 else []
        for sender in self._senders.values():
            sender.kill()
        return results
