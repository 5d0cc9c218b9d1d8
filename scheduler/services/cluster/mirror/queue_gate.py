"""Whether a pod waits for more than nodes, so that Volcano's gate of queues stays closed."""

from __future__ import annotations

from scheduler.domain.resources import Resources
from scheduler.services.cluster.mirror.store import Store


def fits_in_queues(store: Store, name: str, requests: Resources) -> bool:
    """Whether no queue from this one up to root has less capability than that."""
    seen: set[str] = set()
    queue = store.queue(name)
    while queue is not None and queue.meta.name not in seen:
        seen.add(queue.meta.name)  # what is imported may have a cycle
        capability = queue.spec.capability
        if any(requests.get(resource, 0) > most for resource, most in capability.items()):
            return False
        queue = store.queue(queue.spec.parent)
    return True
