"""Which namespaces a reader may know of.

A namespace is a tenant's if a queue of theirs takes work from it, is its default queue, or has
work of it. One that is nobody's can be seen by everybody: somebody has to use it first.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from scheduler.admission.facts import QUEUE_ANNOTATION
from scheduler.domain.access import Access
from scheduler.domain.queues import DEFAULT
from scheduler.models import Namespace, PodGroup, Queue


def namespaces_in_sight(access: Access) -> QuerySet[Namespace]:
    """Without those that are other tenants' alone."""
    everything = Namespace.objects.all()
    if access.visible is None:
        return everything
    mine = {DEFAULT}
    others: set[str] = set()
    near = access.visible | access.above
    for queue, names in _users_of_namespaces():
        (mine if queue in near else others).update(names)
    return everything.exclude(name__in=others - mine)


def _users_of_namespaces() -> Iterable[tuple[str, Iterable[str]]]:
    """Queues with namespaces that they have to do with; a queue may come more than once."""
    granted = Queue.objects.exclude(namespaces="").values_list("name", "namespaces")
    for queue, names in granted:
        yield queue, names.split(",")
    for name, given in Namespace.objects.values_list("name", "annotations"):
        if queue := given.get(QUEUE_ANNOTATION):
            yield queue, [name]
    used = PodGroup.objects.order_by().values_list("queue__name", "namespace").distinct()
    for queue, name in used:
        yield queue, [name]
