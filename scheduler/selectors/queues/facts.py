"""The queue tree, and all that admission and the queue states need to know.

It takes a handful of queries, whatever the size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from django.db.models import Count
from django.utils import timezone

from scheduler.admission.facts import Facts
from scheduler.domain.durations import seconds_between
from scheduler.domain.queue_fields import PLAIN_FIELDS, with_choices
from scheduler.domain.queues import QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import Resources, total
from scheduler.models import Job, Namespace, Node, Pod, PodGroup, Queue
from scheduler.models.workload import LIVE_PHASES
from scheduler.selectors.jobs.run_limits import BEGUN
from scheduler.selectors.queues.tree import StoredQueue, stored_queues, tree_of

ALLOCATED_PHASES = ("Binding", "Bound", "Running")


def spec_of(queue: Queue) -> QueueSpec:
    """The stored queue as a value; its parent must have been selected with it."""
    values = {}
    for field in PLAIN_FIELDS:
        values[field.name] = getattr(queue, field.name)
    return QueueSpec(
        name=queue.name,
        parent=queue.parent_name,
        state=QueueState(queue.wish),
        labels=queue.labels,
        annotations=queue.annotations,
        **with_choices(values),
    )


def queue_tree() -> QueueTree:
    return tree_of(stored_queues())


def live_podgroups() -> dict[str, int]:
    """How many podgroups of each queue are not Completed; queues without any are left out."""
    rows = (
        PodGroup.objects.filter(phase__in=LIVE_PHASES)
        .values_list("queue__name")
        .annotate(number=Count("id"))
    )
    return dict(rows.order_by())


def allocated_pods() -> dict[str, int]:
    rows = (
        Pod.objects.filter(phase__in=ALLOCATED_PHASES)
        .values_list("podgroup__queue__name")
        .annotate(number=Count("id"))
    )
    return dict(rows.order_by())


def cluster_total() -> Resources | None:
    """What all ready nodes have together; None while no node is known."""
    amounts = list(Node.objects.filter(ready=True).values_list("allocatable", flat=True))
    if amounts:
        return total(amounts)
    return None


def room_for_queues() -> Resources | None:
    """The same without what pods of other schedulers hold: what queues can really have."""
    amounts = []
    ready = Node.objects.filter(ready=True).values_list("allocatable", "taken")
    for allocatable, taken in ready:
        amounts.append(_left_of(allocatable, taken))
    if amounts:
        return total(amounts)
    return None


def _left_of(allocatable: Resources, taken: Resources) -> Resources:
    if not taken:
        return allocatable
    left = {name: max(0, amount - taken.amount(name)) for name, amount in allocatable.items()}
    return Resources(left)


def admission_scene() -> tuple[QueueTree, Facts]:
    """The tree, and the facts that go with it, as they are now."""
    return scene_of(stored_queues())


def scene_of(queues: dict[str, StoredQueue]) -> tuple[QueueTree, Facts]:
    """The same, of queues that have just been read."""
    states = {}
    for name, queue in queues.items():
        states[name] = queue.standing.state
    facts = Facts(
        states=states,
        live_podgroups=live_podgroups(),
        allocated_pods=allocated_pods(),
        unknown=unknown_of(queues),
        total=cluster_total(),
        namespaces=dict(Namespace.objects.values_list("name", "annotations")),
        reads_hierarchy_annotations=False,
        run_seconds=RunSeconds(),
    )
    return tree_of(queues), facts


def unknown_of(queues: Mapping[str, StoredQueue]) -> frozenset[str]:
    return frozenset(name for name, queue in queues.items() if queue.is_unknown)


class RunSeconds(Mapping[str, Sequence[float]]):
    """By queue, how long each of its running jobs has run.

    It is read when somebody asks, which few changes of queues do.
    """

    @cached_property
    def _by_queue(self) -> dict[str, list[float]]:
        now = timezone.now()
        found: dict[str, list[float]] = {}
        running = Job.objects.filter(phase="Running", run_paused_at=None).alias(begun=BEGUN)
        known = running.filter(begun__isnull=False).order_by()
        for queue, since in known.values_list("queue__name", BEGUN):
            found.setdefault(queue, []).append(seconds_between(since, now))
        return found

    def __getitem__(self, queue: str) -> Sequence[float]:
        return self._by_queue[queue]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_queue)

    def __len__(self) -> int:
        return len(self._by_queue)
