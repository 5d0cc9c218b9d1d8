"""A process ends with the process that started it, even if that one is killed."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(parent: int | None = None) -> None:
    """Ask the kernel to kill this process when its parent ends. Only Linux can do that.

    Call it in the child, after the fork. The kernel looks at the thread that forked. A fork of
    this process does not inherit the request, so the pool processes of a worker ask again.
    """
    if _libc is None:
        return
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parent_has_ended = parent is not None and os.getppid() != parent
    if parent_has_ended:  # before the kernel was asked
        os._exit(1)
