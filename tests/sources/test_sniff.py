"""Tests of `recompile_watch.sources.sniff`: what the first bytes say."""

from __future__ import annotations

import gzip
import os
import random
import sqlite3
from pathlib import Path

import pytest
import zstandard

from recompile_watch.sources.sniff import (
    Compression,
    Encoding,
    compression_of,
    encoding_of,
    is_binary,
    unsupported_compression,
)

LOG = "2025-10-30 14:05:01,123 INFO bot: quote AAPL ± spread 3 bps ✔\n".encode() * 80


def test_packings_are_told_by_their_magic() -> None:
    """gzip, zstd and a zstd skippable frame are told apart from text."""
    assert compression_of(gzip.compress(LOG)) is Compression.GZIP
    assert compression_of(zstandard.compress(LOG)) is Compression.ZSTD
    assert compression_of(b"\x5f\x2a\x4d\x18\x00\x00\x00\x00") is Compression.ZSTD
    assert compression_of(LOG) is Compression.PLAIN
    assert compression_of(b"") is Compression.PLAIN


@pytest.mark.parametrize(
    ("codec", "expected"),
    [("utf-16-le", Encoding.UTF16_LE), ("utf-16-be", Encoding.UTF16_BE), ("utf-8", Encoding.BYTES)],
)
def test_utf16_without_a_mark_is_told_by_its_nuls(codec: str, expected: Encoding) -> None:
    """Mostly ASCII text in UTF-16 has a NUL in each pair, on the side of the high byte."""
    assert encoding_of(LOG.decode().encode(codec)) is expected


def test_nuls_that_are_no_utf16_change_nothing() -> None:
    """The hole that copy-and-truncate leaves, and single NULs, are not UTF-16."""
    assert encoding_of(bytes(4096) + LOG) is Encoding.BYTES
    assert encoding_of(b"a\0b\n" * 1000) is Encoding.BYTES
    assert encoding_of(b"\0") is Encoding.BYTES


@pytest.mark.parametrize(
    "head",
    [
        b"",
        LOG,
        LOG.decode().encode("utf-16"),
        "größer\n".encode("latin-1") * 100,
        b"\x1b[31mERROR\x1b[0m red\n" * 100,
        bytes(4096),
        bytes(1000) + LOG,
        LOG[:1000] + bytes(3096),
        LOG[:2000] + b"\x01\x02\x03" + LOG,
    ],
    ids=["empty", "utf8", "utf16", "latin1", "colours", "hole", "hole_then_text", "text_then_hole", "some_damage"],
)
def test_logs_are_no_binaries(head: bytes) -> None:
    """Odd encodings, colours, holes and a little damage leave a log a log."""
    assert not is_binary(head)


@pytest.mark.parametrize(
    "head",
    [
        b"\x89PNG\r\n\x1a\n" + bytes(50),
        b"\xff\xd8\xff\xe0 JFIF",
        b"PK\x03\x04 model.pt",
        b"%PDF-1.7\n" + LOG,
        b"\x10\x00\x00\x00\x00\x00\x00\x00{" + b'"weight": 1}' * 100,
        b"run.log".ljust(257, b"\0") + b"ustar\x0000" + LOG,
        random.Random(7).randbytes(4096),
    ],
    ids=["png", "jpeg", "zip", "pdf", "safetensors", "tar", "random"],
)
def test_binaries_are_told(head: bytes) -> None:
    """Known formats and bytes that no text has are binary."""
    assert is_binary(head)


def test_real_databases_and_programs_are_binary(tmp_path: Path) -> None:
    """A SQLite file, a compiled Python module and an executable, as they lie in real folders."""
    database = tmp_path / "state.db"
    with sqlite3.connect(database) as connection:
        connection.execute("create table words (word text)")
    connection.close()
    assert is_binary(database.read_bytes()[:4096])
    assert is_binary(Path(os.path.realpath("/proc/self/exe")).read_bytes()[:4096])
    compiled = next(Path(pytest.__file__).parent.glob("__pycache__/*.pyc"), None)
    if compiled is not None:
        assert is_binary(compiled.read_bytes()[:4096])


def test_packings_that_are_not_read_have_a_name() -> None:
    """The user is told which packing it is."""
    assert unsupported_compression(b"BZh91AY&SY") == "bzip2"
    assert unsupported_compression(b"\xfd7zXZ\x00\x00") == "xz"
    assert unsupported_compression(gzip.compress(b"")) is None
