"""A real terminal for tests: a program on a pty, its screen as text, keys typed into it."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

BASE = Path(__file__).resolve().parents[3]
PATIENCE_SECONDS = 150.0  # only how long a broken test may take
# The pty becomes the terminal of the new session, so that Ctrl-C typed into it is a signal. The
# signal is heard even where the tests run in the background of a script, whose children ignore it.
_OWN_TERMINAL = (
    "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


def launchers(folder: Path) -> Path:
    """vcctl and its short forms of this checkout, to be put on a PATH."""
    folder.mkdir(exist_ok=True)
    for name in ("vcctl", "vsub", "vjobs", "vqueues", "vcancel", "vsuspend", "vresume"):
        function = "main" if name == "vcctl" else name
        program = f"from dashboard.cli.main import {function}; {function}()"
        script = folder / name
        script.write_text(
            f'#!/bin/sh\nPYTHONPATH={BASE} exec {sys.executable} -P -c "{program}" "$@"\n'
        )
        script.chmod(0o755)
    return folder


class Terminal:
    """`with Terminal("vcctl", "queue", "tree", env=…) as screen:` a program that believes to speak
    to a person.
    """

    def __init__(self, *command: str, env: dict[str, str], columns: int = 160) -> None:
        self._command = command
        self._env = {**env, "TERM": "xterm-256color"}
        self._columns = columns
        self._seen = b""

    def __enter__(self) -> Terminal:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, self._columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWN_TERMINAL, *self._command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=self._env,
            start_new_session=True,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._reader.join(PATIENCE_SECONDS)
        os.close(self._master)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # how Linux says that nobody is at the other end any more
                return
            if not data:
                return
            self._seen += data

    @property
    def text(self) -> str:
        return self._seen.decode(errors="replace")

    def wait_for(self, text: str, since: int = 0) -> int:
        """Until the text is on the screen.

        Gives the place behind it, to look further from there.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self.text[since:]:
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"waited in vain for “{text}”; the screen had:\n{self.text[-3000:]}"
                )
            time.sleep(0.1)
        return self.text.index(text, since) + len(text)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def exit_code(self) -> int:
        code = self.process.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        return code
