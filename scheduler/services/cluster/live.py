"""The API server asked at once, for what the mirror may not know yet."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from scheduler.clusters.kubernetes.client import Timeouts
from scheduler.clusters.kubernetes.credentials import CredentialsError
from scheduler.clusters.kubernetes.errors import ApiError
from scheduler.clusters.kubernetes.read.workloads import read_queue
from scheduler.clusters.kubernetes.resources import QUEUES, WHO_AM_I
from scheduler.clusters.kubernetes.values import QueueObject
from scheduler.clusters.kubernetes.watch import UNREADABLE
from scheduler.conf import KubernetesConf, conf
from scheduler.outages import Outage, in_a_line
from scheduler.services.cluster.api_server import api_server

logger = logging.getLogger(__name__)

_TIMEOUTS = Timeouts(connect=2.0, read=4.0)  # who asks waits for us: webhooks end after 10 s
_away = Outage(logger, "The API server answers again.")


def live_queues() -> list[QueueObject] | None:
    """All queues as the cluster has them now; None if it cannot be asked."""
    try:
        found = api_server(_TIMEOUTS).list(QUEUES)
    except (ApiError, CredentialsError) as problem:
        _away.noticed("The API server cannot be asked for queues: %s", in_a_line(problem))
        return None
    _away.over()
    return list(_readable(found))


def own_account() -> str:
    """What the cluster calls the account of this console; empty if it cannot be asked."""
    try:
        return _own_account(conf().kubernetes)
    except (ApiError, CredentialsError) as problem:
        _away.noticed("The API server cannot be asked who we are: %s", in_a_line(problem))
        return ""


@lru_cache(maxsize=1)
def _own_account(_given: KubernetesConf) -> str:
    question = {"apiVersion": WHO_AM_I.api_version, "kind": WHO_AM_I.kind}
    answer = api_server(_TIMEOUTS).create(WHO_AM_I, question)
    return str(answer["status"]["userInfo"]["username"])


def readable_queue(raw: object) -> QueueObject | None:
    """None for something that is no queue, or cannot be read as one."""
    if not isinstance(raw, Mapping):
        return None
    try:
        return read_queue(raw)
    except UNREADABLE as problem:
        logger.info("A queue cannot be read: %s", in_a_line(problem))
        return None


def _readable(found: Iterable[Mapping[str, Any]]) -> Iterator[QueueObject]:
    for raw in found:
        queue = readable_queue(raw)
        if queue is not None:
            yield queue
