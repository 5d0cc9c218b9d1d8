"""No process outlives the one that started it, even when that one is killed."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(parent: int | None = None) -> None:
    """Have the kernel kill this process when its parent goes; called in the child, after the fork. Does nothing but on Linux.

    The kernel goes by the thread that forked, and forgets the wish in a fork of this process: the pool processes of a worker ask again.
    """
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if (
            parent is not None and os.getppid() != parent
        ):  # it went before the kernel could be asked
            os._exit(1)
