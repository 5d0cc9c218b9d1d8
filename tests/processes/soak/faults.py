"""The kinds of faults. Each is a function that begins one, waits, and puts it right again."""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.processes.soak.servers import frozen
from tests.processes.soak.stack import BEAT, WORKER, Stack

DISK_BYTES = 400 * 2**20


@dataclass(frozen=True, slots=True)
class Scene:
    stack: Stack
    dice: random.Random

    def any_of(self, kind: str) -> str:
        return self.dice.choice([name for name in self.stack.names if name.startswith(kind)])

    def rest(self, least: float, most: float) -> None:
        time.sleep(self.dice.uniform(least, most))


Fault = Callable[[Scene], None]


def _killed(kind: str) -> Fault:
    def kill(scene: Scene) -> None:
        name = scene.any_of(kind)
        scene.stack.kill(name)
        scene.rest(0.0, 1.5)
        scene.stack.start(name)

    return kill


def _stopped(kind: str) -> Fault:
    def stop(scene: Scene) -> None:
        with frozen(scene.stack.pid_of(scene.any_of(kind))):
            scene.rest(2.0, 10.0)

    return stop


def _restart_database(scene: Scene) -> None:
    scene.stack.postgres.stop()
    scene.rest(0.0, 3.0)
    scene.stack.postgres.start()
    scene.stack.postgres.wait_until_it_answers()


def _kill_database(scene: Scene) -> None:
    scene.stack.postgres.kill()
    scene.rest(0.0, 1.5)
    scene.stack.postgres.start()
    scene.stack.postgres.wait_until_it_answers()


def _freeze_database(scene: Scene) -> None:
    with scene.stack.postgres.frozen():
        scene.rest(2.0, 8.0)


def _slow_database(scene: Scene) -> None:
    with scene.stack.database_proxy.slow(scene.dice.uniform(0.01, 0.2)):
        scene.rest(4.0, 8.0)


def _cut_database(scene: Scene) -> None:
    for _ in range(5):
        scene.stack.database_proxy.cut()
        scene.rest(0.1, 0.8)


def _send_away(scene: Scene) -> None:
    scene.stack.postgres.send_everybody_away()


def _kill_redis(scene: Scene) -> None:
    scene.stack.redis.kill()
    scene.rest(0.0, 3.0)
    scene.stack.redis.start()


def _flush_redis(scene: Scene) -> None:
    scene.stack.redis.flush()


def _freeze_redis(scene: Scene) -> None:
    with scene.stack.redis.frozen():
        scene.rest(2.0, 8.0)


def _slow_redis(scene: Scene) -> None:
    with scene.stack.redis_proxy.slow(scene.dice.uniform(0.05, 0.5)):
        scene.rest(4.0, 8.0)


def _cut_redis(scene: Scene) -> None:
    for _ in range(5):
        scene.stack.redis_proxy.cut()
        scene.rest(0.1, 0.8)


def _fill_disk(scene: Scene) -> None:
    """The one that holds the database and `var/`. PostgreSQL may give up, and is started again
    when there is room.
    """
    ballast = scene.stack.data / "ballast"
    until = time.monotonic() + scene.dice.uniform(3.0, 6.0)
    try:
        with ballast.open("wb") as file:
            while time.monotonic() < until:
                _take_all(file.fileno())
                time.sleep(0.05)
    finally:
        ballast.unlink()
    scene.stack.postgres.wait_until_it_answers()


def _take_all(file: int) -> None:
    """To the last block."""
    step = 2**24
    while step >= 4096:
        try:
            os.posix_fallocate(file, os.fstat(file).st_size, step)
        except OSError as problem:
            if problem.errno != errno.ENOSPC:
                raise
            step //= 4


KINDS: Mapping[str, Fault] = {
    "kill -9 of a web process": _killed("web"),
    "kill -9 of a scheduler": _killed("scheduler"),
    "kill -9 of the worker": _killed(WORKER),
    "kill -9 of beat": _killed(BEAT),
    "kill -9 of PostgreSQL": _kill_database,
    "kill -9 of Redis, which forgets all": _kill_redis,
    "web process frozen for 2 to 10 s": _stopped("web"),
    "scheduler frozen for 2 to 10 s": _stopped("scheduler"),
    "worker frozen for 2 to 10 s": _stopped(WORKER),
    "beat frozen for 2 to 10 s": _stopped(BEAT),
    "PostgreSQL frozen for 2 to 8 s": _freeze_database,
    "Redis frozen for 2 to 8 s": _freeze_redis,
    "PostgreSQL restarted": _restart_database,
    "all sent away by PostgreSQL": _send_away,
    "slow PostgreSQL, 10 to 200 ms more": _slow_database,
    "slow Redis, 50 to 500 ms more": _slow_redis,
    "connections to PostgreSQL cut, 5 times": _cut_database,
    "connections to Redis cut, 5 times": _cut_redis,
    "Redis flushed": _flush_redis,
    "disk full for 3 to 6 s": _fill_disk,
}
NEEDS_ROOT = ("disk full for 3 to 6 s",)
IN_SHORT = (
    "kill -9 of a web process",
    "kill -9 of a scheduler",
    "kill -9 of the worker",
    "PostgreSQL restarted",
    "connections to PostgreSQL cut, 5 times",
    "Redis flushed",
    "disk full for 3 to 6 s",
)


def possible_kinds() -> list[str]:
    """A small disk of one's own takes root to make."""
    is_root = os.geteuid() == 0
    return [name for name in KINDS if is_root or name not in NEEDS_ROOT]


def make_small_disk(place: Path) -> None:
    """A tmpfs, in this process's own mount namespace (see `__main__.py`)."""
    import subprocess

    place.mkdir(parents=True)
    size = f"size={DISK_BYTES}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(place)], check=True)


def leave_small_disk(place: Path) -> None:
    import subprocess

    with suppress(subprocess.CalledProcessError):
        subprocess.run(["umount", "--lazy", str(place)], check=True, capture_output=True)
