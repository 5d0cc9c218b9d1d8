"""Which queues and gangs of a preview there are: the others have no page."""

from __future__ import annotations

from collections.abc import Collection

from scheduler.models import PodGroup, Queue


def queues_still_there(names: Collection[str]) -> frozenset[str]:
    """One that the preview creates, or that was deleted since, is not among them."""
    return frozenset(Queue.objects.filter(name__in=names).values_list("name", flat=True))


def gangs_still_there(keys: Collection[str]) -> frozenset[str]:
    """Of `namespace/name`. The tried ones and those that are gone are not among them."""
    names = {key.partition("/")[2] for key in keys}
    rows = PodGroup.objects.filter(name__in=names).values_list("namespace", "name")
    return frozenset(f"{namespace}/{name}" for namespace, name in rows) & frozenset(keys)
