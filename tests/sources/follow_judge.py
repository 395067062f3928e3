"""The laws of following files, and who judges by them.

Every line says which incarnation of the log it belongs to and which number it has there, so that a line that is lost, repeated,
torn or glued shows itself. The laws:

- every line is given once, whole;
- a line may be missing only if, at some moment before it was given, no file and no deleted file still held open had its bytes;
- what is lost of an incarnation that was given in part is reported after the last of its lines that was given, once for each;
- no more is reported than was ever cut short or deleted;
- older lines come first: no line is given while one that was written before it can be read and was not given.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace


class Broken(AssertionError):
    """A law that the follower broke."""


@dataclass(slots=True)
class Verdict:
    """What the judge knows that a restart from an older store takes back.

    given: lines given. told: gaps reported. last_given: by incarnation, how many gaps had been reported when its last line was given. ended:
    incarnations of which nothing more was expected.
    """

    given: set[bytes] = field(default_factory=set)
    told: int = 0
    last_given: dict[int, int] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)

    def copy(self) -> Verdict:
        """An independent one."""
        return replace(self, given=set(self.given), last_given=dict(self.last_given), ended=set(self.ended))


@dataclass(frozen=True, slots=True)
class Written:
    """One line. order: of writing, over all lines. is_expected: into a file that had a name and that the follower had not given up."""

    incarnation: int
    order: int
    is_expected: bool


class Judge:
    """Hears what is written, given and told, and what is still on the disk. header: what files begin with, of no interest.

    parts: beginnings of lines that nobody finished, by incarnation. destroyed: times that a file was cut or deleted.
    """

    def __init__(self, header: bytes) -> None:
        self._ignored = frozenset(header.split(b"\n"))
        self.written: dict[bytes, Written] = {}
        self.parts: dict[bytes, int] = {}
        self.lost: set[bytes] = set()
        self.verdict = Verdict()
        self.destroyed = 0
        self._ahead: dict[int, set[bytes]] = {}
        self._overtaken: set[bytes] = set()

    def wrote(self, text: bytes, incarnation: int, *, has_name: bool = True) -> None:
        """A whole line was written."""
        is_late = incarnation in self.verdict.ended
        self.written[text] = Written(incarnation, len(self.written), has_name and not is_late)

    def finished(self, part: bytes, incarnation: int) -> None:
        """What looked like a part became a line."""
        self.parts.pop(part, None)
        if part not in self.written:
            self.wrote(part, incarnation)

    def let_go(self, texts: set[bytes]) -> None:
        """These lines go and leave nothing by which anybody could know of them."""
        for text in texts:
            self.written[text] = replace(self.written[text], is_expected=False)

    def look(self, texts: set[bytes], *, is_blocked: bool) -> None:
        """A poll begins; these lines are in files with a name. What cannot be read, or could not a moment ago, holds nothing up."""
        waiting = {text for text in (texts & self.written.keys()) - self.verdict.given if self.written[text].is_expected}
        if is_blocked:
            self._overtaken |= waiting
        self._ahead = {}
        for text in waiting - self._overtaken:
            self._ahead.setdefault(self.written[text].incarnation, set()).add(text)

    def take(self, text: bytes) -> int:
        """A whole line was given; its incarnation, 0 where it is of no interest."""
        if text in self._ignored:
            return 0
        if text not in self.written:
            raise Broken(f"torn, glued or never written: {text[:200]!r}")
        if text in self.verdict.given:
            raise Broken(f"given twice: {text[:80]!r}")
        self.verdict.given.add(text)
        line = self.written[text]
        self.verdict.last_given[line.incarnation] = self.verdict.told
        self._take_in_order(text, line)
        return line.incarnation

    def _take_in_order(self, text: bytes, line: Written) -> None:
        if text not in self._ahead.get(line.incarnation, ()):
            return
        self._ahead[line.incarnation].discard(text)
        for incarnation, waiting in self._ahead.items():
            if incarnation < line.incarnation and any(self.written[other].order < line.order for other in waiting):
                raise Broken(f"given too early: {text[:80]!r} before a line of {incarnation}")

    def take_part(self, text: bytes) -> None:
        """A line was given that ended without a line feed."""
        if text not in self.parts and text not in self._ignored:
            raise Broken(f"a torn end: {text[:80]!r}")
        if text in self.verdict.given:
            raise Broken(f"given twice: {text[:80]!r}")
        self.verdict.given.add(text)

    def ended(self, incarnation: int | None) -> None:
        """Nothing more was expected of the file of this incarnation; what is written to it from now on is late."""
        if incarnation:
            self.verdict.ended.add(incarnation)

    def missing(self) -> set[bytes]:
        """Lines that were not given, and were on the disk at the last look."""
        return self.written.keys() - self.verdict.given - self.lost

    def exist(self, texts: set[bytes]) -> None:
        """Only these are on the disk now."""
        self.lost |= self.missing() - texts

    def close(self, rotated: set[bytes]) -> None:
        """Everything was read to its end; what stands in files that were rotated away is whole, and given even without a line feed."""
        missing = self.missing() | ((self.parts.keys() & rotated) - self.verdict.given)
        if missing:
            raise Broken(f"lost though it was there: {sorted(missing)[:3]!r} ({len(missing)} lines)")
        verdict = self.verdict
        lost = {self.written[text].incarnation for text in self.lost - verdict.given if self.written[text].is_expected}
        before = sorted((verdict.last_given[incarnation] for incarnation in lost & verdict.last_given.keys()), reverse=True)
        if any(verdict.told - told < count for count, told in enumerate(before, start=1)):
            raise Broken(f"lost and not reported: incarnations {sorted(lost & verdict.last_given.keys())}, {verdict.told} reports")
        if verdict.told > self.destroyed:
            raise Broken(f"more reported than lost: {verdict.told} gaps for {self.destroyed} times that a file was cut or deleted")
