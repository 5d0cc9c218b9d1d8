"""What waits in a queue, and what waits of one user.

There is an upper bound that costs next to nothing, and the exact figures where they matter.

Every submit asks. The bound takes all pods of gangs that live for waiting, and is read from an
index alone. Only where it reaches a limit are the pods themselves looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from scheduler.admission.facts import QUEUE_ANNOTATION, Backlog, Facts, QueueLimits
from scheduler.admission.rules.backlogs import BACKLOG_RULES
from scheduler.admission.violations import Verdict
from scheduler.domain.queue_fields import LIMIT_FIELDS, names_in
from scheduler.models import Namespace
from scheduler.models.bulk import fetch, fetch_as_planned
from scheduler.models.workload import LIVE_PHASES

MOST_STEPS = 100  # on the way up; a ring of parents ends there

LIVE = ", ".join(f"'{phase}'" for phase in LIVE_PHASES)
BOUND = (
    "COALESCE(sum(CASE WHEN g.phase IN ('Pending', 'Inqueue') THEN 1 ELSE 0 END), 0), "
    "COALESCE(sum(g.size), 0)"
)
"""Jobs and pods: no more of these podgroups wait, where they are those that live."""
_OF_QUEUE = "g.queue_id = (SELECT id FROM scheduler_queue WHERE name = %s AND deleted_at IS NULL)"
OF_USER = "g.owner = %s"


def exactly(facts: Facts) -> Facts:
    """The same facts with what really waits."""
    in_queues = {}
    for name, bound in facts.queue_backlogs.items():
        in_queues[name] = _exact(_OF_QUEUE, [name], bound)
    return replace(
        facts,
        queue_backlogs=in_queues,
        user_backlog=_exact(OF_USER, [facts.user], facts.user_backlog),
        queue_limits=_with_counts(facts.queue_limits, facts.user, _exact),
    )


def _exact(whose: str, who: Sequence[object], bound: Backlog) -> Backlog:
    """A job's pods wait from the beginning, also those that are still to be made.

    Pods from outside wait when they are there.
    """
    gangs = f"FROM scheduler_podgroup g WHERE {whose} AND g.phase IN ({LIVE})"
    pods = (
        f"FROM scheduler_podgroup g JOIN scheduler_pod p ON p.podgroup_id = g.id WHERE {whose} AND "
        f"g.phase IN ({LIVE})"
    )
    ((of_jobs, begun, from_outside),) = fetch(
        f"SELECT (SELECT COALESCE(sum(g.size), 0) {gangs} AND g.job_id IS NOT NULL), "
        f"(SELECT count(*) {pods} AND g.job_id IS NOT NULL AND p.phase <> 'Pending'), "
        f"(SELECT count(*) {pods} AND g.job_id IS NULL AND p.phase = 'Pending')",
        [*who, *who, *who],
    )
    return Backlog(bound.jobs, max(0, of_jobs - begun) + from_outside)


# Limits of the queues above

LIMIT_COLUMNS = tuple(field.name for field in LIMIT_FIELDS)
NAMES_A_LIMIT = " OR ".join(
    [*(f"q.{name} IS NOT NULL" for name in LIMIT_COLUMNS), "q.namespaces <> ''"]
)
"""Limits, or namespaces."""
_WAY_UP = f"""
WITH RECURSIVE way_up AS (
  SELECT name AS leaf, 0 AS steps, id, parent_id FROM scheduler_queue
  WHERE deleted_at IS NULL AND name IN ({{names}})
  UNION ALL
  SELECT below.leaf, below.steps + 1, above.id, above.parent_id
  FROM scheduler_queue above JOIN way_up below ON above.id = below.parent_id
  WHERE below.steps < {MOST_STEPS}
)
SELECT way_up.leaf, q.name, q.id, q.namespaces, {", ".join(LIMIT_COLUMNS)}
FROM way_up JOIN scheduler_queue q ON q.id = way_up.id
WHERE {NAMES_A_LIMIT} ORDER BY way_up.leaf, way_up.steps
"""
_BELOW = """g.queue_id IN (
  WITH RECURSIVE below AS (
    SELECT id FROM scheduler_queue WHERE id = %s
    UNION
    SELECT q.id FROM scheduler_queue q JOIN below ON q.parent_id = below.id
  )
  SELECT id FROM below
)"""
_OF_USER_BELOW = f"{_BELOW} AND {OF_USER}"


def with_queue_limits(facts: Facts, rows: Iterable[tuple[Any, ...]]) -> Facts:
    """With the limits in these rows, as the statement has them, and a bound on what waits there."""
    return replace(facts, queue_limits=_with_counts(_by_leaf(rows), facts.user, _bound_below))


def limits_on_the_way(queues: Sequence[str]) -> dict[str, tuple[QueueLimits, ...]]:
    """By queue, the limits and namespaces that it and the queues above name, the nearest first.

    Nothing is counted. Queues without any are left out.
    """
    if not queues:
        return {}
    names = ", ".join(["%s"] * len(queues))
    return _by_leaf(fetch_as_planned(_WAY_UP.format(names=names), list(queues)))


def _by_leaf(rows: Iterable[tuple[Any, ...]]) -> dict[str, tuple[QueueLimits, ...]]:
    found: dict[str, list[QueueLimits]] = {}
    for leaf, name, key, namespaces, *values in rows:
        limits = dict(zip(LIMIT_COLUMNS, values, strict=True))
        own = QueueLimits(name, key, **limits, namespaces=tuple(names_in(namespaces)))
        found.setdefault(leaf, []).append(own)
    return {leaf: tuple(limits) for leaf, limits in found.items()}


def limits_now(queue: str, user: str) -> tuple[QueueLimits, ...]:
    """The same of one queue, with what waits now, and what waits of this user."""
    bounds = _with_counts(limits_on_the_way([queue]), user, _bound_below)
    return _with_counts(bounds, user, _exact).get(queue, ())


Count = Callable[[str, Sequence[object], Backlog], Backlog]


def _with_counts(
    limits: Mapping[str, tuple[QueueLimits, ...]], user: str, count: Count
) -> dict[str, tuple[QueueLimits, ...]]:
    """What waits below each, where one of its limits is about that; each queue is counted once."""
    counted: dict[int, QueueLimits] = {}
    for path in limits.values():
        for own in path:
            if own.key not in counted:
                counted[own.key] = _counted(own, user, count)
    return {leaf: tuple(counted[own.key] for own in path) for leaf, path in limits.items()}


def _counted(limits: QueueLimits, user: str, count: Count) -> QueueLimits:
    waiting = limits.waiting
    of_user = limits.waiting_of_user
    if limits.counts_all:
        waiting = count(_BELOW, [limits.key], waiting)
    if limits.counts_user and user:
        of_user = count(_OF_USER_BELOW, [limits.key, user], of_user)
    return replace(limits, waiting=waiting, waiting_of_user=of_user)


def _bound_below(whose: str, who: Sequence[object], _: Backlog) -> Backlog:
    ((jobs, pods),) = fetch(
        f"SELECT {BOUND} FROM scheduler_podgroup g WHERE {whose} AND g.phase IN ({LIVE})", list(who)
    )
    return Backlog(jobs, pods)


def judged(judge: Callable[[Facts], Verdict], facts: Facts) -> Verdict:
    """The verdict; one that only the bounds would refuse is given on the exact figures."""
    verdict = judge(facts)
    if any(violation.rule_id in BACKLOG_RULES for violation in verdict.violations):
        return judge(exactly(facts))
    return verdict


def comes_near_a_limit(facts: Facts, *, jobs: int, pods: int) -> bool:
    """Whether more than half of a limit would wait with so many more.

    Such submits take turns, so that two at once do not pass the limit.
    """
    limits = facts.limits
    job_pairs = [(facts.user_backlog.jobs, limits.jobs_per_user)]
    pod_pairs = [(facts.user_backlog.pods, limits.pods_per_user)]
    for waiting in facts.queue_backlogs.values():
        job_pairs.append((waiting.jobs, limits.jobs_per_queue))
        pod_pairs.append((waiting.pods, limits.pods_per_queue))
    near = []
    for number, limit in job_pairs:
        near.append(limit and (number + jobs) * 2 > limit)
    near += [limit and (number + pods) * 2 > limit for number, limit in pod_pairs]
    return any(near)


def namespaces_with_default(queue: str) -> list[str]:
    """Namespaces whose work goes to this queue where it names none."""
    key = f"annotations__{QUEUE_ANNOTATION}"
    return list(Namespace.objects.filter(**{key: queue}).values_list("name", flat=True))
