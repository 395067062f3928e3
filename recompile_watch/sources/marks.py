"""Where reading stands, as plain values: what a poll gives, and the marks that a store keeps of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from recompile_watch.core.errors import StoreError

FORGET_AFTER_S = 30 * 86_400.0
FORGET_BEYOND = 64
FileKey = tuple[int, int]  # device and inode
_NONE = type(None)
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("stream", "head_hash", "tail_hash", "copied_hash"), (str,)),
    **dict.fromkeys(("generation", "device", "inode", "head_bytes", "position", "tail_bytes", "lines", "size_bytes", "modified_ns"), (int,)),
    **dict.fromkeys(("given", "copied_bytes"), (int,)),
    "ended_at": (int, float, _NONE),
    "cursor": (str, _NONE),
    "counted_bytes": (int, _NONE),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """Where reading of one generation of one file stands; JSON-able by `mark_to_json`.

    stream: the path by which the file is followed, undecodable bytes as lone surrogates; or `journal`, or `-`.
    generation: 1, 2, … per stream; each new content under the path is a new one.
    device, inode: of the file that holds it; head_bytes, head_hash: signature of its first bytes (as many as were there, at
    most SIGNATURE_BYTES). position: byte offset of the first byte not yet committed. lines: complete lines before it.
    given: offset behind the last byte given, committed or not; tail_bytes, tail_hash: signature of the bytes before that.
    copied_bytes, copied_hash: how far a copy of the file went that was seen beside it, which may be all that is left of it, and the
    signature of the bytes before that; 0 for none.
    size_bytes, modified_ns: the file's when it was last looked at.
    ended_at: when the generation ended (epoch seconds), None while it is read. cursor: of the journal's last entry.
    counted_bytes: where `lines` was counted up to, while that is not yet the position.
    """

    stream: str
    generation: int
    device: int
    inode: int
    head_bytes: int
    head_hash: str
    position: int
    tail_bytes: int
    tail_hash: str
    lines: int
    size_bytes: int = 0
    modified_ns: int = 0
    ended_at: float | None = None
    cursor: str | None = None
    counted_bytes: int | None = None
    given: int = 0
    copied_bytes: int = 0
    copied_hash: str = ""

    @property
    def file_key(self) -> FileKey:
        """Device and inode."""
        return self.device, self.inode


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines of one generation, in order.

    offset: of the first byte in the file (in the unpacked content, where only a packed copy was left). line: 1-based number of
    the first line. payload: ends with a line feed, except for a piece of a line longer than the limit, which goes on in the next
    chunk, and for text that no line feed will ever follow: the last line of a generation, or text before a hole of NULs. A hole
    is skipped: then the next chunk's offset is not the end of this one, and it begins a new line.
    is_backlog: these bytes were there when the file was first seen, at the very first start.
    """

    stream: str
    generation: int
    offset: int
    line: int
    payload: bytes
    is_backlog: bool = False

    @property
    def end(self) -> int:
        """Offset of the first byte after it."""
        return self.offset + len(self.payload)


@dataclass(frozen=True, slots=True)
class GenerationStarted:
    """A generation is read from `position` on: the time for its first mark, or a restart would take it for a new file."""

    stream: str
    generation: int
    position: int
    lines: int


@dataclass(frozen=True, slots=True)
class GenerationEnded:
    """Nothing more comes of this generation: all of it was given, or what is missing was told as a gap."""

    stream: str
    generation: int


@dataclass(frozen=True, slots=True)
class Watched:
    """What earlier runs watched, so that files which appeared since are told from files first seen now.

    patterns: the paths and patterns of that source. until: epoch seconds of the last commit.
    """

    patterns: tuple[str, ...]
    until: float


@dataclass(frozen=True, slots=True)
class Around:
    """Lines around one, without their line feeds. offset: of the first byte of the first; at: index of the one in the middle."""

    offset: int
    lines: tuple[bytes, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one stream is read, for a person to look at.

    size_bytes: of the file under the path; lag_bytes: not yet given, over all generations. generation: the newest.
    gaps: times that something was lost. hole_bytes: NULs skipped. last_growth_at: epoch seconds, None before the first.
    problem: why it cannot be read, None while it can.
    """

    stream: str
    size_bytes: int
    position: int
    lag_bytes: int
    generation: int
    gaps: int
    hole_bytes: int
    last_growth_at: float | None
    problem: str | None


def mark_to_json(mark: Mark) -> dict[str, object]:
    """The mark as a JSON object; the path of the stream keeps lone surrogates, which `json` writes as escapes."""
    return asdict(mark)


def mark_from_json(stored: Mapping[str, object]) -> Mark:
    """The mark that `mark_to_json` gave. Raises StoreError, one line, for anything else."""
    wrong = sorted(name for name, value in stored.items() if not isinstance(value, _KINDS.get(name, ())))
    if wrong:
        raise StoreError(f"a stored mark has a wrong {wrong[0]!r}; remove the state directory to begin anew")
    try:
        return Mark(**stored)  # type: ignore[arg-type]  # checked above
    except TypeError as error:
        raise StoreError("a stored mark is incomplete; remove the state directory to begin anew") from error


def outlived(marks: Iterable[Mark], now: float, keep_s: float = FORGET_AFTER_S) -> list[Mark]:
    """The marks that a store may delete once their files are gone: ended over ``keep_s`` ago, or beyond the FORGET_BEYOND newest ended of a stream.

    Marks of generations that have not ended never are among them, however long nobody watched.
    """
    by_stream: dict[str, list[Mark]] = {}
    for mark in marks:
        if mark.ended_at is not None:
            by_stream.setdefault(mark.stream, []).append(mark)
    old: list[Mark] = []
    for ended in by_stream.values():
        ended.sort(key=lambda mark: mark.generation, reverse=True)
        old += ended[FORGET_BEYOND:]
        old += [mark for mark in ended[:FORGET_BEYOND] if mark.ended_at is not None and now - mark.ended_at > keep_s]
    return old
