"""How files are followed: the settings of one source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from recompile_watch.core.bounds import at_least, insist


@dataclass(frozen=True, slots=True)
class FollowSettings:
    """One source of followed files.

    name: the configured name of the source.
    paths: files and patterns (`*`, `?`, `[…]`, `**`); an existing path wins over a pattern.
    start: where to begin with files that are there at the very first start; files that appear later are read from their beginning.
    discovery_s: seconds between two looks for new files that match a pattern; default 5.
    path_check_s: seconds between two looks at whether a path still leads to the file being read; default 1.
    grace_s: seconds without growth after which a file that was rotated away or deleted is given up and closed; default 60.
    missing_after_s: seconds after which a path or pattern that leads to no file is reported; default 60.
    max_line_bytes: a longer line comes in pieces of this size; default 1 MiB.
    on_replace: what to do with a file put in the place of another with the same beginning: read on, or from its beginning.
    rotated_folders: other folders to which rotated files are moved (logrotate's olddir); their own folder is always searched.
    excluded: paths never followed, and folders nothing of which is followed: the daemon's own log and state.
    max_files: files followed at once; default 1024. max_open: files held open; default 256.
    """

    name: str
    paths: tuple[str, ...]
    start: Literal["end", "begin"] = "end"
    discovery_s: float = 5.0
    path_check_s: float = 1.0
    grace_s: float = 60.0
    missing_after_s: float = 60.0
    max_line_bytes: int = 1 << 20
    on_replace: Literal["continue", "restart"] = "continue"
    rotated_folders: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    max_files: int = 1024
    max_open: int = 256

    def __post_init__(self) -> None:
        insist(at_least(1024, max_line=self.max_line_bytes), at_least(1, max_files=self.max_files, max_open=self.max_open))
