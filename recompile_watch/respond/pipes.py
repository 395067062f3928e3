"""Reading from a child without waiting for it."""

import os

_CHUNK_BYTES = 1 << 16


def read_ready(fd: int, most: int) -> tuple[bytes, bool]:
    """What stands in a pipe that does not block, a chunk beyond ``most`` bytes at most; and whether the other end closed it."""
    found = bytearray()
    while len(found) <= most:
        try:
            chunk = os.read(fd, _CHUNK_BYTES)
        except BlockingIOError:
            return bytes(found), False
        except OSError:
            return bytes(found), True
        if not chunk:
            return bytes(found), True
        found += chunk
    return bytes(found), False
