"""What stands near in front of a line: the lines there, and the header whose message the line is.

The bot's logger prints its header with an empty message, and the message on the next line of the same stream. A pretty-printed JSON entry
has its time on a line of its own.
"""

from collections.abc import Callable

from recompile_watch.core.carriers import json_time
from recompile_watch.core.fronts import joined, peeled
from recompile_watch.core.prefix_grammar import BETWEEN_TEXTS, JSON_TIME, Piece, Stamp

BEFORE_BYTES = 4096  # so near the header stands, with lines of other streams between
_NEAR_LINES = 32


def lines_before(text: bytes) -> bytes:
    """The lines at the end of ``text``, which ends without its newline, as far as they are whole and so near."""
    near = text[-BEFORE_BYTES - 1 :]
    if len(near) <= BEFORE_BYTES:
        return near
    begin = near.find(b"\n") + 1
    return near[begin:] if begin else b""


def stamp_before(peel: Callable[[bytes], list[Piece]], piece: Piece, before: bytes) -> Stamp | None:
    """The time on the line before a piece in its own stream, when the message there is empty, else the piece's own.

    before: the lines in front of it. What torch logs itself, to the same place, is no header.
    """
    for raw in reversed(before.split(b"\n")[-_NEAR_LINES:]):
        header = peel(raw)[-1]
        if piece.tag and header.text.startswith(piece.tag):
            header = peeled(header._replace(channel=joined(header.channel, piece.tag)), header.text[len(piece.tag) :])[-1]
        if header.channel == piece.channel and not header.torch:
            is_carried = not piece.headed or (header.outer_stamp is not None and piece.outer_stamp is None)  # that time is the carrier's
            is_empty = header.headed and not header.text.strip()
            return header.stamp if is_empty and (piece.stamp is None or is_carried) else piece.stamp
    return piece.stamp


def stamp_beside(before: bytes) -> Stamp | None:
    """The time that an object of a JSON document shows in front of its text, on a line of its own; None where it shows none."""
    for raw in reversed(before.split(b"\n")[-_NEAR_LINES:]):
        name, _, value = raw.strip(b' \t\r,"').partition(b'"')
        if BETWEEN_TEXTS.fullmatch(raw) is None or not name.strip(b"{}"):
            return None
        if name.decode("utf-8", "replace") in JSON_TIME:
            return json_time(value.lstrip(b': "'))
    return None
