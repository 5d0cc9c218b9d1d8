"""Scheduling gates: what holds a pod back before any scheduler may look at it.

All are somebody else's and are left alone, but one: Volcano's gate for queues. It says that a pod
is no matter for autoscalers as long as its queue holds it back, and the scheduler opens it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.resources import PODS

QUEUE_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"


def only_queue_holds(gates: Collection[str]) -> bool:
    """Whether this gate is the only one."""
    return tuple(gates) == (QUEUE_GATE,)


def open_queue_gate(client: Client, uid: str, namespace: str, name: str) -> None:
    """Takes this gate away and no other. Twice is harmless.

    Raises as any request does; `Invalid` if another pod has the name now.
    """
    change = {
        "metadata": {"uid": uid},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": QUEUE_GATE}]},
    }
    client.patch(PODS, name, change, namespace, merges_lists=True)
