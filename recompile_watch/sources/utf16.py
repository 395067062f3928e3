"""UTF-16 blocks become UTF-8 blocks, wherever the borders fall."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from recompile_watch.core.late import pattern
from recompile_watch.sources.limits import Unread
from recompile_watch.sources.sniff import Encoding

_BYTE_ORDER_MARK = "\ufeff"
_REPLACEMENT = "\ufffd"
_LONE_SURROGATE = pattern("[\ud800-\udfff]")


def utf8_from_utf16(blocks: Iterator[bytes], encoding: Encoding, unread: Unread) -> Iterator[bytes]:
    """The same text in UTF-8, without its byte order mark.

    `encoding` is UTF16_LE or UTF16_BE. A lone surrogate, and half a character at the end, become U+FFFD and are counted
    as invalid_utf16. Decoding with "surrogatepass" never raises, so that hostile input costs linear time.
    """
    decode = codecs.utf_16_le_decode if encoding is Encoding.UTF16_LE else codecs.utf_16_be_decode
    pending = b""
    is_start = True
    for block in blocks:
        encoded = pending + block
        text, used_bytes = decode(encoded, "surrogatepass", False)
        pending = encoded[used_bytes:]
        if is_start and text:
            text = text.removeprefix(_BYTE_ORDER_MARK)
            is_start = False
        if text:
            yield _to_utf8(text, unread)
    if pending:
        unread.add("invalid_utf16")
        yield _REPLACEMENT.encode()


def _to_utf8(text: str, unread: Unread) -> bytes:
    whole, lone_surrogates = _LONE_SURROGATE.subn(_REPLACEMENT, text)
    if lone_surrogates:
        unread.add("invalid_utf16", lone_surrogates)
    return whole.encode()
