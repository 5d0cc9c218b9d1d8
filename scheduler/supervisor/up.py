"""`manage.py up`: the whole installation in one terminal, from the first check to the stop."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from scheduler.supervisor import programs
from scheduler.supervisor.console import Console
from scheduler.supervisor.installation import (
    BASE,
    HOST,
    Installation,
    check_port_free,
    check_writable,
    installation_from,
)
from scheduler.supervisor.lock import SupervisorLock
from scheduler.supervisor.problems import StartError
from scheduler.supervisor.redis_server import answers, find_redis
from scheduler.supervisor.runtime import ADDRESS_FILE, ADMIN_PASSWORD_FILE, REDIS_URL_FILE
from scheduler.supervisor.supervisor import Supervisor

KUBERNETES = "kubernetes"
_REDIS_SECONDS = 20.0
_WEB_SECONDS = 90.0
_SECOND_SIGNAL_SECONDS = 1.0  # a faster one is the same signal, passed on by `make`


def main() -> int:
    """Run until a stop is requested. The exit code is 0 after a signal, 1 after a problem."""
    try:
        installation = installation_from(os.environ)
        check_writable(installation.var)
        with SupervisorLock(installation):
            check_port_free(installation.port)
            _run(installation)
    except StartError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def _run(installation: Installation) -> None:
    console = Console()
    supervisor = Supervisor(console, installation.environment(), BASE)
    with _signals_to(supervisor), _files_of_this_run(installation):
        try:
            _start(installation, supervisor, console)
            supervisor.watch(until=lambda: False)
        finally:
            supervisor.stop()


def _start(installation: Installation, supervisor: Supervisor, console: Console) -> None:
    _start_redis(installation, supervisor)
    known_password = _password(installation)
    console.say("preparing the database")
    _prepare(supervisor)
    for program in _lasting_programs(installation):
        if supervisor.must_stop:
            return
        supervisor.start(program)
    if _wait_for_web(installation, supervisor):
        tell_how_to_sign_in(installation, console, known_password)


def _start_redis(installation: Installation, supervisor: Supervisor) -> None:
    own = find_redis(os.environ, installation.var)
    if own is None:
        return
    supervisor.start(programs.redis_program(own))
    has_answered = supervisor.watch(lambda: answers(own.url), _REDIS_SECONDS, needs="redis")
    if not has_answered and not supervisor.must_stop:
        last_lines = "\n".join(supervisor.last_lines("redis"))
        raise StartError(
            f"The Redis server {own.binary} was started and does not answer "
            f"after {_REDIS_SECONDS:g} s. Its last lines:\n{last_lines}",
        )


def _prepare(supervisor: Supervisor) -> None:
    """Tables and first contents, in a process of its own.

    So the supervisor needs no Django, and its settings cannot be out of date.
    """
    child = supervisor.run_once(programs.prepare_program())
    if child.exit_code() and not supervisor.must_stop:
        raise StartError("\n".join(child.last_lines))


def _lasting_programs(installation: Installation) -> list[programs.Program]:
    lasting = [
        programs.web_program(installation),
        programs.scheduler_program(installation),
        programs.worker_program(installation),
        programs.beat_program(),
    ]
    if os.environ.get("SCHEDULER_CLUSTER") == KUBERNETES:
        lasting.append(programs.watcher_program())
    return lasting


def _wait_for_web(installation: Installation, supervisor: Supervisor) -> bool:
    if supervisor.watch(lambda: _web_answers(installation.port), _WEB_SECONDS, needs="web"):
        return True
    if supervisor.must_stop:
        return False
    last_lines = "\n".join(supervisor.last_lines("web"))
    raise StartError(
        f"The web process does not answer at {installation.address} "
        f"after {_WEB_SECONDS:g} s. Its last lines:\n{last_lines}",
    )


def _web_answers(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _password(installation: Installation) -> str:
    try:
        return (installation.var / ADMIN_PASSWORD_FILE).read_text().strip()
    except OSError:
        return ""


def tell_how_to_sign_in(installation: Installation, console: Console, known_password: str) -> None:
    console.say(f"Fumarole is running at {installation.address}")
    console.say(_how_to_sign_in(installation, console, known_password))
    console.say("Ctrl-C stops it")


def _how_to_sign_in(installation: Installation, console: Console, known_password: str) -> str:
    password = _password(installation)
    file = _short_path(installation.var / ADMIN_PASSWORD_FILE)
    if not password:
        return "Sign in with your account"
    if password == known_password or not console.is_terminal:
        return f"Sign in as admin; the password is in {file}"
    return f"Sign in as admin with the password {password} (shown this once; kept in {file})"


def _short_path(path: Path) -> Path:
    if path.is_relative_to(Path.cwd()):
        return path.relative_to(Path.cwd())
    return path


@contextlib.contextmanager
def _signals_to(supervisor: Supervisor) -> Iterator[None]:
    """The first signal requests an orderly stop, a later SIGINT a quick one."""
    first_at = 0.0

    def on_signal(number: int, _frame: FrameType | None) -> None:
        nonlocal first_at
        if not first_at:
            first_at = time.monotonic()
            supervisor.request_stop()
        elif number == signal.SIGINT and time.monotonic() - first_at > _SECOND_SIGNAL_SECONDS:
            supervisor.hurry()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _files_of_this_run(installation: Installation) -> Iterator[None]:
    """Files that are true only while it runs: the address of the site, and that of its Redis."""
    address = installation.var / ADDRESS_FILE
    address.write_text(installation.address + "\n")
    try:
        yield
    finally:
        for path in (address, installation.var / REDIS_URL_FILE):
            path.unlink(missing_ok=True)
