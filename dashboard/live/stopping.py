"""When this process is told to stop, those who follow something are told before it is gone.

uvicorn stops taking connections at SIGTERM and waits for a moment; then it cuts those that are
left, and the signal ends the process at once. So what has to be done is done when the signal comes.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

_deeds: list[Callable[[], object]] = []


def at_stop(deed: Callable[[], object]) -> None:
    """It is called in the main thread, between any two instructions: it must only ask for work.

    The server has to run already, because it sets its own handler when it begins.
    """
    if _deeds or _listens():
        _deeds.append(deed)


def _listens() -> bool:
    """Before the server's own handler. Where there is none, nobody stops in good order."""
    before = signal.getsignal(signal.SIGTERM)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        return False

    def stop(number: int, frame: FrameType | None) -> None:
        for deed in _deeds:
            with suppress(RuntimeError):  # its loop is closed already
                deed()
        before(number, frame)

    signal.signal(signal.SIGTERM, stop)
    return True
