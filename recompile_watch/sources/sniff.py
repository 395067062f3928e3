"""The first bytes of a file become what it is: packed or plain, which encoding, log or binary. Names are never asked."""

from __future__ import annotations

import re
from enum import Enum

HEAD_BYTES = 4096
MAGIC_BYTES = 4

_GZIP = b"\x1f\x8b\x08"  # RFC 1952; 8 (deflate) is the only method there is
_ZSTD = b"\x28\xb5\x2f\xfd"  # RFC 8878, 3.1.1
_ZSTD_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # RFC 8878, 3.1.2

_UNSUPPORTED = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x04\x22\x4d\x18": "lz4",
    b"7z\xbc\xaf": "7z",
    b"\x1f\x9d": "compress",
}
# Formats that carry much text at their start; all others give themselves away by their control bytes.
_BINARY_MAGIC = (
    b"%PDF-",
    b"\x7fELF",
    b"SQLite format 3\x00",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"PK\x03\x04",
    b"PAR1",
    b"LPKSHHRH",
    b"\x93NUMPY",
)
_TAR_MAGIC_AT = 257
_SAFETENSORS = re.compile(rb"[\s\S]{4}\x00{4}\{")  # a 64-bit length, then JSON

_NUL_HOLE = re.compile(rb"\x00{64,}")
_CONTROL_BYTES = bytes(code for code in (*range(32), 127) if chr(code) not in "\b\t\n\f\r\x1b")
# Random or packed bytes hold 10 % of these, text none; a log with some damage stays a log.
_MOST_CONTROL_SHARE = 0.05
# In UTF-16 text that is mostly ASCII, one byte of each pair is NUL and the other is not.
_LEAST_NUL_SHARE = 0.6
_MOST_STRAY_NUL_SHARE = 0.02
_LEAST_PAIRS = 2


class Compression(Enum):
    """How the bytes on disk are packed."""

    PLAIN = "plain"
    GZIP = "gzip"
    ZSTD = "zstd"


class Encoding(Enum):
    """How the unpacked bytes spell text; BYTES is everything that is passed on as it is."""

    BYTES = "bytes"
    UTF8_WITH_BOM = "utf-8-sig"
    UTF16_LE = "utf-16-le"
    UTF16_BE = "utf-16-be"


_BYTE_ORDER_MARKS = {
    b"\xef\xbb\xbf": Encoding.UTF8_WITH_BOM,
    b"\xff\xfe": Encoding.UTF16_LE,
    b"\xfe\xff": Encoding.UTF16_BE,
}


def compression_of(head: bytes) -> Compression:
    """The packing that the first MAGIC_BYTES bytes announce."""
    if head.startswith(_GZIP):
        return Compression.GZIP
    if head.startswith(_ZSTD) or _ZSTD_SKIPPABLE.match(head):
        return Compression.ZSTD
    return Compression.PLAIN


def encoding_of(head: bytes) -> Encoding:
    """The encoding by byte order mark, else by where NULs stand in the first HEAD_BYTES bytes."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding
    return _encoding_by_nuls(head[:HEAD_BYTES])


def _encoding_by_nuls(head: bytes) -> Encoding:
    pairs = len(head) // 2
    if pairs < _LEAST_PAIRS:
        return Encoding.BYTES
    even_share = head[0 : pairs * 2 : 2].count(0) / pairs
    odd_share = head[1 : pairs * 2 : 2].count(0) / pairs
    if odd_share >= _LEAST_NUL_SHARE and even_share <= _MOST_STRAY_NUL_SHARE:
        return Encoding.UTF16_LE
    if even_share >= _LEAST_NUL_SHARE and odd_share <= _MOST_STRAY_NUL_SHARE:
        return Encoding.UTF16_BE
    return Encoding.BYTES


def unsupported_compression(head: bytes) -> str | None:
    """The name of a packing that is not read (`"xz"`), or None."""
    return next((name for magic, name in _UNSUPPORTED.items() if head.startswith(magic)), None)


def is_binary(head: bytes) -> bool:
    """True for the start of an image, database, archive or program. In doubt it is a log.

    Long runs of NULs say nothing: copy-and-truncate leaves them at the start of a log, a power cut at its end.
    """
    if encoding_of(head) is not Encoding.BYTES:
        return False
    if head.startswith(_BINARY_MAGIC) or _SAFETENSORS.match(head) or head.startswith(b"ustar", _TAR_MAGIC_AT):
        return True
    sample = _NUL_HOLE.sub(b"", head[:HEAD_BYTES])
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    return controls > len(sample) * _MOST_CONTROL_SHARE
