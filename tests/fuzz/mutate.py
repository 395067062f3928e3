"""Turns a real log into one that a bad disk, a torn write, a bad merge or an enemy could leave."""

from __future__ import annotations

import random
from collections.abc import Callable

# Pieces that parsers stumble over: prefixes without a message, messages without a prefix, borders of every grammar.
TOKENS = (
    b"\n", b"\r", b"\r\n", b"\0", b"\x1b[", b"\x1b]0;", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\t",
    b" " * 300,
    b"V1120 10:28:52.255000 3989 torch/_dynamo/guards.py:2813] [0/1] [__recompiles] ", b"[rank0]:", b"[default1]:[rank1]:", b"[0/", b"[!0/0/1_2]",
    b"Recompiling function f in /srv/bot/x.py:1\n", b"    triggered by the following guard failure(s):\n", b"    - 0/0: ", b"   last reason: ",
    b"torch._dynamo hit config.recompile_limit (8)\n", b"skipping cudagraphs due to ", b" (2 instances)", b"Found from",
    b"Graph break in user code at ",
    b'{"log":"', b'","stream":"stderr","time":"2025-11-20T10:28:52.255000123Z"}', b"2025-11-20T10:28:52.255000123Z stderr P ",
    b" stdout F ",
    b'{"message": "', b"\\n", b"\\u001b", b"\\ud800", b"&lt;", b"**", b"> ",
    b'  File "/srv/bot/x.py", line 1, in f\n', b"Traceback (most recent call last):\n",
    b"2025-10-30 09:07:15 UTC | 2025-10-30 05:07:15 EDT | 2025-10-30 22:07:15 NZDT | ",
    b"Backtest summary for X (1 simulations)\n  Strategy Return\n  --- ---\n",
    b"9" * 400, b"1e999", b"nan", b"-", b"%s", b"(" * 200, b"'", b'"', b"2025-02-30 25:61:61,999 ", b"W1399 99:99:99.999999 1 a.py:1] ",
)  # fmt: skip

Mutation = Callable[[random.Random, bytes], bytes]


def flip(rng: random.Random, data: bytes) -> bytes:
    """Some bytes become others."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 20)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def insert(rng: random.Random, data: bytes) -> bytes:
    """A token or random bytes come in between."""
    place = rng.randint(0, len(data))
    new = rng.choice(TOKENS) if rng.random() < 0.8 else rng.randbytes(rng.randint(1, 200))
    return data[:place] + new + data[place:]


def remove(rng: random.Random, data: bytes) -> bytes:
    """A stretch is lost."""
    start = rng.randint(0, len(data))
    return data[:start] + data[start + rng.randint(1, 2000) :]


def repeat(rng: random.Random, data: bytes) -> bytes:
    """A stretch comes twice."""
    start = rng.randint(0, len(data))
    end = start + rng.randint(1, 2000)
    return data[:end] + data[start:end] + data[end:]


def truncate(rng: random.Random, data: bytes) -> bytes:
    """The head or the tail is gone."""
    place = rng.randint(0, len(data))
    return data[:place] if rng.random() < 0.5 else data[place:]


def shuffle_lines(rng: random.Random, data: bytes) -> bytes:
    """Some hundred neighbouring lines change their places."""
    lines = data.split(b"\n")
    start = rng.randint(0, len(lines))
    part = lines[start : start + 300]
    rng.shuffle(part)
    return b"\n".join(lines[:start] + part + lines[start + 300 :])


def join_lines(rng: random.Random, data: bytes) -> bytes:
    """Newlines become something else."""
    return data.replace(b"\n", rng.choice((b" ", b"\r", b"\\n", b"\r\n", b"", b"\0")), rng.randint(1, 400))


MUTATIONS: tuple[Mutation, ...] = (flip, insert, insert, remove, repeat, truncate, shuffle_lines, join_lines)


def mutated(rng: random.Random, data: bytes) -> bytes:
    """`data` after one to five mutations; at most 20 times 2000 bytes longer."""
    for _ in range(rng.randint(1, 5)):
        data = rng.choice(MUTATIONS)(rng, data)
    return data


def split(rng: random.Random, data: bytes) -> list[bytes]:
    """`data` in up to 40 blocks."""
    cuts = sorted(rng.randint(0, len(data)) for _ in range(rng.randint(0, 40)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
