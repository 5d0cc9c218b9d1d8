"""The API server of the cluster, for requests of pages, of the API and of webhooks."""

from __future__ import annotations

from functools import lru_cache

from scheduler.clusters.kubernetes.client import Client, Timeouts
from scheduler.clusters.kubernetes.credentials import load_credentials
from scheduler.conf import KubernetesConf, conf


def api_server(timeouts: Timeouts) -> Client:
    """One pool of connections for each process. Raises `CredentialsError`."""
    return _client(conf().kubernetes).with_timeouts(timeouts)


@lru_cache(maxsize=1)
def _client(given: KubernetesConf) -> Client:
    return Client(load_credentials(given.kubeconfig, given.context))
