"""The part of the tree that a change of one queue can touch, or that the rules look at for it.

That is the way up, those beside each queue on it, everything below the queue that is changed, and
everything below a queue above that is to be closed, because its state follows from theirs. Of the
other children of root only the sums are read: they share the cluster with those on the way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import Count, QuerySet, TextField
from django.db.models.functions import Cast

from scheduler.admission.facts import Facts
from scheduler.domain.queues import ROOT, QueueTree, Together
from scheduler.domain.resources import Resources, Sum
from scheduler.models import Node, Pod, PodGroup, Queue
from scheduler.models.bulk import values_table
from scheduler.models.prepared import Prepared, condition_with_slot, slot
from scheduler.models.workload import LIVE_PHASES
from scheduler.selectors.queues.facts import ALLOCATED_PHASES, RunSeconds, unknown_of
from scheduler.selectors.queues.tree import (
    StoredQueue,
    amounts_in,
    life_columns,
    queues_of_rows,
    whole_columns,
)
from scheduler.selectors.sessions.snapshot_rows import ids_parameter, one_of_ids


class Around(NamedTuple):
    """Which queues a change is about: those that it changes, and parents that it names.

    They need not exist.
    """

    changed: frozenset[str]
    parents: frozenset[str] = frozenset()


_NAMED = {"name": "text", "is_changed": "boolean"}
_BRANCHES = """
  WITH RECURSIVE named AS (
    SELECT queue.id, queue.parent_id, queue.name, d.is_changed
    FROM {names} JOIN scheduler_queue queue ON queue.name = d.name
    WHERE queue.deleted_at IS NULL
  ), starts AS (
    SELECT id FROM named
    UNION
    SELECT id FROM scheduler_queue WHERE name = 'root' AND deleted_at IS NULL
  ), above AS (
    SELECT queue.id, queue.parent_id, queue.name, queue.wish
    FROM starts JOIN scheduler_queue queue ON queue.id = starts.id
    UNION
    SELECT queue.id, queue.parent_id, queue.name, queue.wish
    FROM above JOIN scheduler_queue queue ON queue.id = above.parent_id
    WHERE queue.deleted_at IS NULL
  ), below AS (
    SELECT id FROM above WHERE name <> 'root' AND
      (wish = 'Closed' OR id IN (SELECT id FROM named WHERE is_changed))
    UNION
    SELECT queue.id FROM below JOIN scheduler_queue queue ON queue.parent_id = below.id
    WHERE queue.deleted_at IS NULL
  )
  SELECT id FROM above
  UNION
  SELECT id FROM below
"""
_BESIDE = """
  UNION
  SELECT queue.id FROM above JOIN scheduler_queue queue ON queue.parent_id = above.id
  WHERE queue.deleted_at IS NULL AND above.name <> 'root'
  UNION
  SELECT queue.id FROM scheduler_queue queue
  WHERE queue.deleted_at IS NULL
    AND queue.parent_id = (SELECT id FROM above WHERE name = 'root')
    AND EXISTS (
      SELECT 1 FROM named WHERE name = 'root'
      OR (is_changed AND parent_id = (SELECT id FROM above WHERE name = 'root')))
"""


def _chosen(rows: Callable[[], QuerySet[Any, Any]], more: str = "") -> Callable[[], Any]:
    def make() -> QuerySet[Any, Any]:
        ids = _BRANCHES.format(names=values_table("d", _NAMED)) + more
        return rows().filter(condition_with_slot(f"scheduler_queue.id IN ({ids})", "names"))

    return make


_LIVES = Prepared(_chosen(life_columns), keep_plan=True)
_WHOLE = Prepared(_chosen(whole_columns, _BESIDE), keep_plan=True)


def queues_around(around: Around, *, only_life: bool = False) -> dict[str, StoredQueue]:
    """They, in the order of their names; with `only_life` without those beside them."""
    query = _WHOLE
    if only_life:
        query = _LIVES
    named = []
    for name in sorted(around.changed | around.parents):
        named.append({"name": name, "is_changed": name in around.changed})
    return queues_of_rows(query.rows(names=json.dumps(named)))


def _first_level() -> QuerySet[Any, Any]:
    """What the children of root ask for; those that ask for the same are one row."""
    children: QuerySet[Any, Any] = Queue.objects.filter(
        parent__name=slot("root"), parent__deleted_at=None
    )
    texts = {
        "guarantee_text": Cast("guarantee", TextField()),
        "deserved_text": Cast("deserved", TextField()),
    }
    by_text = children.order_by().annotate(**texts).values(*texts)
    found: QuerySet[Any, Any] = by_text.annotate(number=Count("id")).values_list(*texts, "number")
    return found


_FIRST_LEVEL = Prepared(_first_level, keep_plan=True)
_ROOM = Prepared(
    lambda: (
        Node.objects.filter(ready=True)
        .order_by()
        .annotate(text=Cast("allocatable", TextField()))
        .values("text")
        .annotate(number=Count("pk"))
        .values_list("text", "number")
    ),
    keep_plan=True,
)


def first_level_together() -> Together:
    guarantee = []
    deserved = []
    for guarantee_text, deserved_text, number in _FIRST_LEVEL.rows(root=ROOT):
        guarantee.append((amounts_in(guarantee_text), number))
        deserved.append((amounts_in(deserved_text), number))
    return Together(guarantee=Sum.of_many(guarantee), deserved=Sum.of_many(deserved))


def cluster_total_of_kinds() -> Resources | None:
    """As `facts.cluster_total`, added up by kind of node: most nodes are alike."""
    kinds = [(amounts_in(text), number) for text, number in _ROOM.rows()]
    if kinds:
        return Sum.of_many(kinds).resources()
    return None


def _live_of() -> QuerySet[Any, Any]:
    chosen = condition_with_slot(one_of_ids("scheduler_podgroup.queue_id"), "ids")
    live = PodGroup.objects.filter(chosen, phase__in=LIVE_PHASES)
    return (
        live.order_by()
        .values("queue__name")
        .annotate(number=Count("id"))
        .values_list("queue__name", "number")
    )


def _allocated_of() -> QuerySet[Any, Any]:
    chosen = condition_with_slot(one_of_ids("scheduler_podgroup.queue_id"), "ids")
    pods = Pod.objects.filter(chosen, podgroup__queue__isnull=False, phase__in=ALLOCATED_PHASES)
    grouped = pods.order_by().values("podgroup__queue__name").annotate(number=Count("id"))
    return grouped.values_list("podgroup__queue__name", "number")


_LIVE_OF = Prepared(_live_of)
_ALLOCATED_OF = Prepared(_allocated_of)


class CountsOf(Mapping[str, int]):
    """Numbers by queue name, asked for when somebody wants to know: few changes of queues do."""

    def __init__(self, query: Prepared, ids: Iterable[int]) -> None:
        self._query = query
        self._ids = list(ids)

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return dict(self._query.rows(ids=ids_parameter(self._ids)))

    def __getitem__(self, name: str) -> int:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


def scene_around(around: Around, queues: dict[str, StoredQueue]) -> tuple[QueueTree, Facts]:
    """As `facts.scene_of`, of the queues that `queues_around` has read."""
    together = first_level_together()
    tree = QueueTree((queue.spec for queue in queues.values()), together={ROOT: together})
    ids = _ids_with_work(around, tree, queues)
    facts = Facts(
        states={name: queue.standing.state for name, queue in queues.items()},
        live_podgroups=CountsOf(_LIVE_OF, ids),
        allocated_pods=CountsOf(_ALLOCATED_OF, ids),
        unknown=unknown_of(queues),
        total=cluster_total_of_kinds(),
        reads_hierarchy_annotations=False,
        run_seconds=RunSeconds(),
    )
    return tree, facts


def _ids_with_work(
    around: Around, tree: QueueTree, queues: Mapping[str, StoredQueue]
) -> Collection[int]:
    """Of the queues whose work a rule or a state may ask for."""
    names = {queue.name for queue in tree.realms(around.changed, around.parents)}
    names |= around.parents & queues.keys()
    return [queues[name].pk for name in sorted(names)]
