"""Who waits for whom: queue commands take the tree for themselves, submissions share it.

So a submission sees a queue either before a close or after it, never in between. Whoever changes
many pods at once does it alone: two that change the same rows in another order would wait for each
other for ever. And so does whoever forbids that pods are placed (a node is cordoned, a queue
suspended, scheduling paused): a session that has looked whether it may place them commits before,
and none does after. The order of locks is: tree, pods, limits, jobs, states, anything else. On
SQLite every writing transaction is alone anyway.
"""

from __future__ import annotations

from django.db import connection

from scheduler.domain.queues import ROOT
from scheduler.models import Queue
from scheduler.models.kept_plans import cursor_that_keeps_plans


def lock_tree() -> None:
    """For whoever changes the tree or the states in it; held until the transaction ends.

    Rows that refer to root, such as its figures, can be written meanwhile: a session writes them
    when it has the pods already.
    """
    Queue.objects.select_for_update(no_key=True).only("id").get(name=ROOT)


def share_tree() -> None:
    """For whoever puts work into queues: many may, while nobody changes the tree."""
    if connection.vendor == "postgresql":
        with cursor_that_keeps_plans() as cursor:
            cursor.execute("SELECT id FROM scheduler_queue WHERE name = %s FOR SHARE", [ROOT])


_PODS_LOCK = 7_320_002  # any number that nothing else locks


def alone_with_pods() -> None:
    """For whoever moves pods from phase to phase (write-back, reports of the cluster, commands),
    and for whoever changes where they may go; held until the transaction ends.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_PODS_LOCK])


_LIMITS_LOCK = 7_320_003


def alone_at_the_limit() -> None:
    """For whoever submits where a limit on what may wait is near.

    Held until the transaction ends.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LIMITS_LOCK])


_QUEUE_LOCKS = 7_320_004


def alone_below(queue: int) -> None:
    """For whoever puts work below a queue that limits what may wait there.

    It comes after the lock of the pods, where both are needed, and before that of the settings'
    limits. Held until the transaction ends.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_QUEUE_LOCKS, queue])
