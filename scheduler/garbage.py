"""When Python's garbage collector runs.

A full collection takes 0.1 s, longer than most sessions.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def set_aside() -> None:
    """What is loaded now stays until the process ends: later collections leave it out."""
    gc.collect()  # or rubbish would be kept with it
    gc.freeze()


@contextmanager
def undisturbed() -> Iterator[None]:
    """No collection in here. Garbage is collected soon afterwards, when nobody waits."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
