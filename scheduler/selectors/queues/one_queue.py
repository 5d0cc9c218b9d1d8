"""What other rows say of one queue: the counts of its own gangs and jobs, those of what is below
it, and what it inherits. The rest of the tree is not looked at.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from scheduler.domain.queue_fields import LIMIT_FIELDS
from scheduler.models.bulk import fetch_as_planned
from scheduler.selectors.queues.backlogs import MOST_STEPS
from scheduler.selectors.queues.objects import Found, QueueCounts, counts_from

_BELOW: Final = 0
"""Stands for all queues below; no queue has this number."""


def counts_of_queue(queue_id: int) -> QueueCounts:
    """As `queue_counts`, but only of this queue."""
    rows = fetch_as_planned(_statement(), [queue_id] * 4)
    found: Found = {"queue": [(_BELOW, queue_id, "", 0), (queue_id, None, "", 0)]}
    nearest_first = []
    for kind, place, *row in rows:
        if kind == "min run":
            nearest_first.append((place, queue_id, *row))
        else:
            found.setdefault(kind, []).append((place, *row))
    if nearest_first:
        _, *nearest = min(nearest_first)
        found["min run"] = [tuple(nearest)]
    return counts_from(found)


@cache
def _statement() -> str:
    limits = ""
    for place, field in enumerate(LIMIT_FIELDS):
        limits += (
            f"UNION ALL SELECT 'limit', (SELECT id FROM target), {field.name}, name, {place} "
            f"FROM way_up WHERE {field.name} IS NOT NULL\n"
        )
    columns = ", ".join(["name", "min_run_seconds", *(field.name for field in LIMIT_FIELDS)])
    of_above = ", ".join(f"above.{column}" for column in columns.split(", "))
    return f"""
WITH RECURSIVE target AS (
  SELECT id FROM scheduler_queue WHERE id = %s
), below AS (
  SELECT id FROM target
  UNION
  SELECT child.id FROM scheduler_queue child JOIN below ON child.parent_id = below.id
  WHERE child.deleted_at IS NULL
), way_up AS (
  SELECT 0 AS steps, parent_id, {columns} FROM scheduler_queue
  WHERE id = %s AND deleted_at IS NULL
  UNION ALL
  SELECT way_up.steps + 1, above.parent_id, {of_above} FROM scheduler_queue above
  JOIN way_up ON above.id = way_up.parent_id
  WHERE above.deleted_at IS NULL AND way_up.steps < {MOST_STEPS}
)
SELECT 'gang', CASE WHEN queue_id = %s THEN queue_id ELSE {_BELOW} END,
  CASE WHEN job_id IS NULL THEN 1 ELSE 0 END, phase, count(*)
FROM scheduler_podgroup WHERE queue_id IN (SELECT id FROM below) GROUP BY 2, 3, 4
UNION ALL
SELECT 'job', queue_id, 0, phase, count(*) FROM scheduler_job WHERE queue_id = %s GROUP BY 2, 4
UNION ALL
SELECT 'min run', steps, min_run_seconds, name, 0 FROM way_up WHERE min_run_seconds IS NOT NULL
{limits}UNION ALL
SELECT 'policy', 0, 0, policy.text, 0 FROM scheduler_clusterstate state
JOIN scheduler_policyversion policy ON policy.id = state.policy_id
"""
