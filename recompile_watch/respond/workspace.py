"""The folder of one diagnosis: compile caches and logs of its workers, gigabytes as the case may be."""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "recompile-watch-diagnosis-"
MARK = ".in-use"  # held locked by the process whose folder it is


@contextmanager
def workspace() -> Iterator[Path]:
    """A new folder for temporary files, gone afterwards; what killed processes left behind is removed first."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            _remove(left)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        mark = os.open(folder / f"{MARK}.new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(mark, fcntl.LOCK_EX)
            (folder / f"{MARK}.new").rename(folder / MARK)  # it is locked from the moment that others see it
            yield folder
        finally:
            os.close(mark)


def _remove(left: Path) -> None:
    """Removes a folder of this user's whose process is gone. A folder without a mark is somebody else's, or is just being made."""
    found = left.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return
    mark = os.open(left / MARK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(left)
    finally:
        os.close(mark)
