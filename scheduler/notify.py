"""Announce changes to open dashboards, after the transaction that made them has committed.

News is small: it says which things changed, never what they are now. Whoever hears it reads the
database. So losing a piece of news costs a little time (readers look again by themselves every few
seconds), and a Redis that is away never makes a service fail.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

from scheduler.outages import Outage

logger = logging.getLogger(__name__)

NEWS_GROUP: Final = "news"
EVERYTHING: Final = "*"  # stands for every name of its kind
_MOST_NAMES = 200  # more than this many names are said as "everything": the message stays small
_PUBLISH_SECONDS = 2.0
_LONG_SECONDS = 1.0
_LEAVE_ALONE_SECONDS = (
    5.0  # a Redis that hangs is not waited for at every change; pages look by themselves meanwhile
)
_away_until = 0.0
_silence = Outage(logger, "Open pages are told of changes again.")


def queues_changed(names: Iterable[str] = (EVERYTHING,)) -> None:
    """These queues were created, changed or deleted."""
    _announce(queues=_few(names))


def jobs_changed(keys: Iterable[str] = (EVERYTHING,), queues: Iterable[str] = ()) -> None:
    """These jobs or podgroups ("namespace/name") were created, changed or deleted, and with them
    what these queues have.
    """
    _announce(jobs=_few(keys), queues=_few(queues))


def nodes_changed(names: Iterable[str] = (EVERYTHING,)) -> None:
    _announce(nodes=_few(names))


def cluster_changed() -> None:
    """Something about the cluster as a whole: its name, its policy, paused or not."""
    _announce(cluster=[EVERYTHING])


def access_changed() -> None:
    """Somebody may see more or less than before, or is signed out: grants, groups, accounts,
    sessions, or the tree that grants count in.
    """
    _announce(access=[EVERYTHING])


def session_finished(
    queues: Iterable[str] = (EVERYTHING,),
    jobs: Iterable[str] = (EVERYTHING,),
    nodes: Iterable[str] = (EVERYTHING,),
) -> None:
    """A scheduling session has written its outcome.

    The names are those that it changed. Without them, anything may have changed.
    """
    _announce(queues=_few(queues), jobs=_few(jobs), nodes=_few(nodes), cluster=[EVERYTHING])


def _few(names: Iterable[str]) -> list[str]:
    some = sorted(set(names))
    if len(some) <= _MOST_NAMES:
        return some
    return [EVERYTHING]


def _announce(**changed: list[str]) -> None:
    news = {}
    for kind, names in changed.items():
        if names:
            news[kind] = names
    if news:
        transaction.on_commit(partial(_publish, news), robust=True)


def _publish(news: dict[str, list[str]]) -> None:
    global _away_until
    began = time.monotonic()
    if began < _away_until:
        return
    message: dict[str, object] = {"type": "news", "changed": news}
    layer = get_channel_layer()
    try:
        if hasattr(type(layer), "publish"):
            layer.publish(NEWS_GROUP, message)
        else:
            async_to_sync(_send)(layer, message)
    except Exception as problem:  # whatever it is, the work itself is done and committed
        if time.monotonic() - began > _LONG_SECONDS:
            _away_until = time.monotonic() + _LEAVE_ALONE_SECONDS
        _silence.noticed(
            "Open pages are not told of changes: %s. They find them when they next look, until it "
            "is back.",
            problem,
        )
    else:
        _silence.over()


async def _send(layer: Any, message: dict[str, object]) -> None:
    async with asyncio.timeout(_PUBLISH_SECONDS):
        await layer.group_send(NEWS_GROUP, message)
