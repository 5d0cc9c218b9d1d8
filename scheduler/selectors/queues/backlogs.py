"""What waits in a queue, and what waits of one user.

There is an upper bound that costs next to nothing, and the exact figures where they matter.

Every submit asks. The bound takes all pods of gangs that live for waiting, and is read from an
index alone. Only where it reaches a limit are the pods themselves looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from scheduler.admission.facts import Backlog, Facts
from scheduler.admission.rules.backlogs import BACKLOG_RULES
from scheduler.admission.violations import Verdict
from scheduler.models.bulk import fetch
from scheduler.models.workload import LIVE_PHASES

_LIVE = ", ".join(f"'{phase}'" for phase in LIVE_PHASES)
_WAITS = "g.phase IN ('Pending', 'Inqueue')"
_OF_QUEUE = "g.queue_id = (SELECT id FROM scheduler_queue WHERE name = %s AND deleted_at IS NULL)"
_OF_USER = "g.owner = %s"


def with_bounds(facts: Facts, queues: Iterable[str], user: str) -> Facts:
    """No queue and no person has more waiting than this says."""
    names = sorted(queues)
    parts = [_bound(_OF_QUEUE) for _ in names] + [_bound(_OF_USER)]
    numbered = " UNION ALL ".join(
        f"SELECT {place} AS place, b.* FROM ({part}) b" for place, part in enumerate(parts)
    )
    found = {}
    for place, jobs, pods in fetch(f"{numbered} ORDER BY place", [*names, user]):
        found[place] = Backlog(jobs, pods)
    in_queues = {}
    for place, name in enumerate(names):
        in_queues[name] = found[place]
    return replace(facts, queue_backlogs=in_queues, user=user, user_backlog=found[len(names)])


def _bound(whose: str) -> str:
    return (
        f"SELECT COALESCE(sum(CASE WHEN {_WAITS} THEN 1 ELSE 0 END), 0), COALESCE(sum(g.size), 0) "
        f"FROM scheduler_podgroup g WHERE {whose} AND g.phase IN ({_LIVE})"
    )


def exactly(facts: Facts) -> Facts:
    """The same facts with what really waits."""
    in_queues = {}
    for name, bound in facts.queue_backlogs.items():
        in_queues[name] = _exact(_OF_QUEUE, name, bound)
    return replace(
        facts,
        queue_backlogs=in_queues,
        user_backlog=_exact(_OF_USER, facts.user, facts.user_backlog),
    )


def _exact(whose: str, who: str, bound: Backlog) -> Backlog:
    """A job's pods wait from the beginning, also those that are still to be made.

    Pods from outside wait when they are there.
    """
    gangs = f"FROM scheduler_podgroup g WHERE {whose} AND g.phase IN ({_LIVE})"
    pods = (
        f"FROM scheduler_podgroup g JOIN scheduler_pod p ON p.podgroup_id = g.id WHERE {whose} AND "
        f"g.phase IN ({_LIVE})"
    )
    ((of_jobs, begun, from_outside),) = fetch(
        f"SELECT (SELECT COALESCE(sum(g.size), 0) {gangs} AND g.job_id IS NOT NULL), "
        f"(SELECT count(*) {pods} AND g.job_id IS NOT NULL AND p.phase <> 'Pending'), "
        f"(SELECT count(*) {pods} AND g.job_id IS NULL AND p.phase = 'Pending')",
        [who, who, who],
    )
    return Backlog(bound.jobs, max(0, of_jobs - begun) + from_outside)


def judged(judge: Callable[[Facts], Verdict], facts: Facts) -> Verdict:
    """The verdict; one that only the bounds would refuse is given on the exact figures."""
    verdict = judge(facts)
    if any(violation.rule_id in BACKLOG_RULES for violation in verdict.violations):
        return judge(exactly(facts))
    return verdict


def comes_near_a_limit(facts: Facts, *, pods: int) -> bool:
    """Whether more than half of a limit would wait with this job.

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
        near.append(limit and (number + 1) * 2 > limit)
    near += [limit and (number + pods) * 2 > limit for number, limit in pod_pairs]
    return any(near)
