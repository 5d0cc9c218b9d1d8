"""The API server of the settings, for processes that ask it now and then: one client each."""

from __future__ import annotations

import os
from functools import cache

from scheduler.clusters.kubernetes.client import Client, Timeouts
from scheduler.clusters.kubernetes.credentials import load_credentials
from scheduler.conf import conf

TIMEOUTS = Timeouts(connect=3.0, read=10.0)


def client_of_process() -> Client:
    """A process that was forked from this one gets a client of its own."""
    given = conf().kubernetes
    return _client(os.getpid(), given.kubeconfig, given.context)


@cache
def _client(_process: int, kubeconfig: str, context: str) -> Client:
    return Client(load_credentials(kubeconfig, context), timeouts=TIMEOUTS)
