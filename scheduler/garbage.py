"""When Python looks for garbage.

One look over all that a process has loaded takes 0.1 s, longer than most sessions.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def set_aside() -> None:
    """What is loaded now stays as long as the process; no later look passes over it."""
    gc.collect()  # or rubbish would be kept with it
    gc.freeze()


@contextmanager
def undisturbed() -> Iterator[None]:
    """No look in between. What this leaves behind is found soon afterwards, when nobody waits."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
