"""kill -9 of the watcher and of the API server, at random and under load: the mirror is equal
afterwards.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from scheduler.models import Mirror
from tests.control_plane.objects import wait_until
from tests.services.cluster.mirror.beside import wait_until_equal, watcher_process
from tests.services.cluster.mirror.history import History

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]

LONG = int(os.environ.get("MIRROR_KILLS", "100"))
COMPARED_EVERY = 10
WATCHER = "watcher"
SERVER = "API server"
FROZEN = "API server, frozen for a moment"
VICTIMS = (WATCHER, SERVER, FROZEN)


class Victims:
    """A control plane and a watcher beside it. Whoever is killed is started again."""

    def __init__(self, plane: Any, chance: random.Random) -> None:
        self._plane = plane
        self._chance = chance
        self._stack = ExitStack()
        self.kills = Counter[str]()
        self.start_watcher()

    def start_watcher(self) -> None:
        self._watcher: subprocess.Popen[bytes] = self._stack.enter_context(
            watcher_process(self._plane)
        )

    def kill_one(self, who: str) -> None:
        """At any moment: while it starts, lists, follows or writes."""
        threading.Event().wait(self._chance.uniform(0.0, 4.0))
        self.kills[who] += 1
        if who == WATCHER:
            self._watcher.send_signal(signal.SIGKILL)
            self._watcher.wait(30)
            self.start_watcher()
        elif who == SERVER:
            self._plane.kill_api_server()
            threading.Event().wait(self._chance.uniform(0.0, 1.0))
            self._plane.start_api_server()
        else:
            with self._plane.frozen_api_server():
                threading.Event().wait(self._chance.uniform(0.5, 2.0))

    def close(self) -> None:
        self._stack.close()


@contextmanager
def load(history: History) -> Iterator[threading.Event]:
    """Changes without a pause, as long as the event is set."""
    goes_on = threading.Event()
    is_over = threading.Event()

    def make_changes() -> None:
        while not is_over.is_set():
            if goes_on.wait(0.1):
                history.step()
                is_over.wait(0.02)

    thread = threading.Thread(target=make_changes)
    goes_on.set()
    thread.start()
    try:
        yield goes_on
    finally:
        is_over.set()
        thread.join(90)


def kill_and_compare(plane: Any, kills: int, seed: int) -> Counter[str]:
    chance = random.Random(seed)
    history = History(plane.api, seed)
    victims = Victims(plane, chance)
    try:
        with load(history) as goes_on:
            wait_until(Mirror.objects.exclude(synced_at=None).exists, "the first look")
            for number in range(kills):
                victims.kill_one(VICTIMS[number % len(VICTIMS)])
                if (number + 1) % COMPARED_EVERY == 0:
                    goes_on.clear()
                    wait_until_equal(plane.api)
                    goes_on.set()
        wait_until_equal(plane.api)
    finally:
        victims.close()
    assert history.made > kills
    return victims.kills


def test_whoever_is_killed_the_mirror_is_equal_afterwards(control_plane):
    kills = kill_and_compare(control_plane, 5, seed=11)

    assert kills == {WATCHER: 2, SERVER: 2, FROZEN: 1}


@pytest.mark.long
def test_many_kills(control_plane):
    kills = kill_and_compare(control_plane, LONG, seed=12)

    print(f"killed {dict(kills)}")
