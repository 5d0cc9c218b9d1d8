"""What is known when work is submitted, read by one statement.

Every submit asks: to ask six times takes both sides longer than what is asked.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, connection

from scheduler.admission.facts import QUEUE_ANNOTATION, Backlog, Facts, WorkLimits
from scheduler.conf import conf
from scheduler.domain.queues import QueueSpec, QueueState, QueueTree
from scheduler.models import Queue
from scheduler.models.bulk import fetch_as_planned
from scheduler.models.prepared import Prepared, slot
from scheduler.selectors.queues import backlogs


class PriorityRow(NamedTuple):
    name: str
    value: int
    preemption_policy: str
    is_default: bool


class Scene(NamedTuple):
    """What is asked when work is submitted.

    The tree holds names and parents alone; of `queues` only key and name have been read.
    """

    tree: QueueTree
    facts: Facts
    queues: dict[str, Queue]
    priorities: tuple[PriorityRow, ...] = ()


_CHILDREN = Prepared(
    lambda: Queue.objects.filter(parent__name=slot("parent")).order_by().values_list("name"),
    keep_plan=True,
)
_KINDS = ("namespace", "priority", "queue", "backlog", "user", "limit")

_Found = dict[str, list[list[Any]]]


def submission_scene(queue_names: Collection[str], namespace: str, user: str = "") -> Scene:
    """The queues named, and the one that the namespace names.

    Of their children it is known only that they exist.

    `user` is whose work it will be. What waits is given as an upper bound (`selectors.backlogs`),
    with the limits of these queues and of those above them.
    """
    names = set(queue_names)
    found = _read(names, namespace, user)
    for _, marks in found["namespace"]:
        usual = str(marks.get(QUEUE_ANNOTATION) or "")
        if usual and usual not in names:
            found = _read({*names, usual}, namespace, user)
    queues = {}
    for pk, name, *_ in found["queue"]:
        queues[name] = Queue.from_db(DEFAULT_DB_ALIAS, ["id", "name"], (pk, name))
    priorities = tuple(PriorityRow(*row) for row in found["priority"])
    return Scene(_with_children(found["queue"]), _facts(found, user), queues, priorities)


def _facts(found: _Found, user: str) -> Facts:
    states = {}
    waiting = {}
    for _, name, _, state, _ in found["queue"]:
        states[name] = QueueState(state)
        waiting[name] = Backlog()
    for name, jobs, pods in found["backlog"]:
        waiting[name] = Backlog(jobs, pods)
    namespaces: dict[str, Mapping[str, str]] = {}
    for name, marks in found["namespace"]:
        namespaces[name] = marks
    ((_, *of_user),) = found["user"]
    facts = Facts(
        states=states,
        namespaces=namespaces,
        limits=WorkLimits(**conf().limits),
        queue_backlogs=waiting,
        user=user,
        user_backlog=Backlog(*of_user),
    )
    limits = sorted(found["limit"], key=lambda row: (row[0], row[1]))
    return backlogs.with_queue_limits(facts, ((leaf, *row) for leaf, _, *row in limits))


def _read(names: Iterable[str], namespace: str, user: str) -> _Found:
    if connection.vendor == "postgresql":
        queues: Any = sorted(names)
    else:
        queues = json.dumps(sorted(names))
    found: _Found = {kind: [] for kind in _KINDS}
    for kind, row in fetch_as_planned(_statement(connection.vendor), [queues, namespace, user]):
        found[kind].append(json.loads(row))
    return found


@cache
def _statement(vendor: str) -> str:
    if vendor == "postgresql":
        row = "json_build_array({})::text"
        one_of = "= ANY(%s::text[])"
        marks = "annotations"
    else:
        row = "json_array({})"
        one_of = "IN (SELECT value FROM json_each(%s))"
        marks = "json(annotations)"
    own = ", ".join(["name", "namespaces", *backlogs.LIMIT_COLUMNS])
    of_above = ", ".join(f"above.{name}" for name in own.split(", "))
    limits = ", ".join(f"q.{name}" for name in backlogs.LIMIT_COLUMNS)
    below = (
        "EXISTS (SELECT 1 FROM scheduler_queue below "
        "WHERE below.parent_id = named.id AND below.deleted_at IS NULL)"
    )
    queue = f"named.id, named.name, above.name, named.state, {below}"
    return f"""
WITH RECURSIVE named AS (
  SELECT id, parent_id, state, {own} FROM scheduler_queue
  WHERE deleted_at IS NULL AND name {one_of}
), way_up AS (
  SELECT name AS leaf, 0 AS steps, id, parent_id, {own} FROM named
  UNION ALL
  SELECT below.leaf, below.steps + 1, above.id, above.parent_id, {of_above}
  FROM scheduler_queue above JOIN way_up below ON above.id = below.parent_id
  WHERE below.steps < {backlogs.MOST_STEPS}
)
SELECT 'namespace', {row.format(f"name, {marks}")} FROM scheduler_namespace WHERE name = %s
UNION ALL
SELECT 'priority', {row.format("name, value, preemption_policy, global_default")}
FROM scheduler_priorityclass
UNION ALL
SELECT 'queue', {row.format(queue)}
FROM named LEFT JOIN scheduler_queue above ON above.id = named.parent_id
UNION ALL
SELECT 'backlog', {row.format(f"named.name, {backlogs.BOUND}")}
FROM named JOIN scheduler_podgroup g ON g.queue_id = named.id AND g.phase IN ({backlogs.LIVE})
GROUP BY named.name
UNION ALL
SELECT 'user', {row.format(f"'', {backlogs.BOUND}")}
FROM scheduler_podgroup g WHERE {backlogs.OF_USER} AND g.phase IN ({backlogs.LIVE})
UNION ALL
SELECT 'limit', {row.format(f"q.leaf, q.steps, q.name, q.id, q.namespaces, {limits}")}
FROM way_up q WHERE {backlogs.NAMES_A_LIMIT}
"""


def _with_children(rows: Iterable[Iterable[Any]]) -> QueueTree:
    """These queues and the queues directly below them."""
    specs = {}
    parents = []
    for _, name, parent, _, has_children in rows:
        specs[name] = QueueSpec(name=name, parent=parent or "")
        if has_children:
            parents.append(name)
    for parent in parents:
        for (name,) in _CHILDREN.rows(parent=parent):
            specs.setdefault(name, QueueSpec(name=name, parent=parent))
    return QueueTree(specs.values())
