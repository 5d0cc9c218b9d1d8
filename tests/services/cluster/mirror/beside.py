"""A watcher beside a real API server.

It runs in a thread of the test, or as a process that can be killed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from urllib3.exceptions import HTTPError

from scheduler.conf import KubernetesConf
from scheduler.services.cluster.mirror.feed import connect
from scheduler.services.cluster.mirror.watcher import Watcher
from tests.control_plane.api import ApiError
from tests.control_plane.objects import wait_until
from tests.mirrored import is_synced, kubernetes_mode
from tests.services.cluster.mirror.both_sides import differences


@contextmanager
def watching(plane: Any) -> Iterator[None]:
    """A watcher in a thread of this process, from its first list to its end."""
    given = KubernetesConf(kubeconfig=str(plane.kubeconfig))
    watcher = Watcher(partial(connect, given))
    thread = threading.Thread(target=_run, args=(watcher,), name="watcher")
    with kubernetes_mode(kubeconfig=str(plane.kubeconfig)):
        thread.start()
        try:
            wait_until(is_synced, "the first look at the cluster")
            yield
        finally:
            watcher.stop()
            thread.join(30)
            assert not thread.is_alive()


def _run(watcher: Watcher) -> None:
    try:
        watcher.run()
    finally:
        connection.close()


def wait_until_equal(api: Any) -> None:
    try:
        wait_until(lambda: _are_equal(api), "both sides to be equal")
    except AssertionError:
        raise AssertionError("\n".join(differences(api))) from None


def _are_equal(api: Any) -> bool:
    try:
        return not differences(api)
    except (
        ApiError,
        HTTPError,
        OSError,
    ):  # a server that has just started does not answer everything yet
        return False


def insist(ask: Callable[[], object]) -> None:
    """Of a server that has just started."""

    def is_done() -> bool:
        with suppress(ApiError, HTTPError, OSError):
            ask()
            return True
        return False

    wait_until(is_done, "the server to answer")


@contextmanager
def watcher_process(plane: Any, **settings_of_process: str) -> Iterator[subprocess.Popen[bytes]]:
    """A watcher as it runs in production, on the database of this test."""
    environment = {
        **os.environ,
        "SCHEDULER_CLUSTER": "kubernetes",
        "KUBECONFIG": str(plane.kubeconfig),
        "DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
        "SECRET_KEY": "test",
        **settings_of_process,
    }
    process = subprocess.Popen(
        [sys.executable, "manage.py", "watcher"], cwd=Path(settings.BASE_DIR), env=environment
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait(30)
