"""A process that ends when its parent does."""

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def lives_with(parent: int, end: signal.Signals) -> bool:
    """Has Linux send this process ``end`` when its parent dies (elsewhere nothing does); False when that is gone already."""
    if sys.platform == "linux":
        import ctypes  # no other command needs it

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, end, 0, 0, 0)
    return os.getppid() == parent
