"""Warnings about the tree, stored with the queues.

The cluster may be too small for what was promised, or a queue may break a rule of the hierarchy.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.utils import timezone

from scheduler import notify
from scheduler.admission.facts import Facts
from scheduler.admission.rules.quotas import hierarchy_problems, tree_notices
from scheduler.admission.violations import Notice, Violation
from scheduler.domain.queues import QueueTree
from scheduler.domain.resources import Resources
from scheduler.models.bulk import as_parameter, execute, json_column, values_table
from scheduler.selectors.queues.facts import room_for_queues
from scheduler.selectors.queues.tree import StoredQueue, stored_queues, tree_of
from scheduler.services.locks import lock_tree
from scheduler.services.notices.queues import say_invalid

_COLUMNS = {"id": "bigint", "warnings": "text", "conditions": "text"}


_WAITING: ContextVar[list[bool] | None] = ContextVar("warnings that wait for the end", default=None)


@contextmanager
def warnings_wait() -> Iterator[list[bool]]:
    """For many changes in one transaction: work the warnings out once, at the end.

    The list that it gives is filled where they have to be worked out.
    """
    asked: list[bool] = []
    before = _WAITING.set(asked)
    try:
        yield asked
    finally:
        _WAITING.reset(before)


def refresh_warnings() -> list[str]:
    """To be called, in the transaction that did it, when the nodes changed.

    The names of the queues told something new.
    """
    if _must_wait():
        return []
    lock_tree()
    queues = stored_queues()
    return settle_warnings(queues, tree_of(queues), room_for_queues())


def _must_wait() -> bool:
    waiting = _WAITING.get()
    if waiting is not None:
        waiting.append(True)
    return waiting is not None


def settle_warnings(
    queues: Mapping[str, StoredQueue],
    tree: QueueTree,
    total: Resources | None,
    also: Mapping[str, list[Notice]] | None = None,
    only: Collection[str] | None = None,
    rearranged: Collection[str] | None = None,
) -> list[str]:
    """The same of queues that have just been read, or written.

    `also` are notices by queue that do not follow from the tree. With `only`, nothing that other
    queues are told can have changed; with `rearranged`, no other queue can have come to break a
    rule of the hierarchy, or to keep it.
    """
    if _must_wait():
        return []
    facts = Facts(total=total)
    notices = tree_notices(tree, facts, only)
    problems = hierarchy_problems(tree, facts.max_depth, rearranged)
    more = also or {}
    rows = []
    for queue in queues.values():
        if only is not None and queue.name not in only:
            continue
        of_queue = [*notices.get(queue.name, []), *more.get(queue.name, [])]
        conditions = queue.conditions
        if rearranged is None or queue.name in rearranged:
            conditions = _conditions(queue, problems.get(queue.name, []))
        row = _row(queue, of_queue, conditions)
        if row:
            rows.append(row)
    if rows:
        _store(rows)
        say_invalid(_newly_invalid(queues, rows))
        notify.queues_changed(row["name"] for row in rows)
    return [row["name"] for row in rows]


def _newly_invalid(
    queues: Mapping[str, StoredQueue], rows: Iterable[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    found = {}
    for row in rows:
        was = _invalid_condition(queues[row["name"]].conditions)
        now = _invalid_condition(json.loads(row["conditions"]))
        if now and not was:
            found[row["name"]] = now
    return found


def _invalid_condition(conditions: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    for condition in conditions:
        if condition.get("type") == "HierarchyInvalid":
            return condition
    return None


def _conditions(queue: StoredQueue, problems: list[Violation]) -> list[dict[str, Any]]:
    kept = []
    for condition in queue.conditions:
        if condition.get("type") != "HierarchyInvalid":
            kept.append(condition)
    return kept + _invalid(queue, problems)


def _row(
    queue: StoredQueue, notices: Iterable[Notice], conditions: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """The queue's new warnings and conditions, None where they are as they were."""
    warnings = []
    for notice in notices:
        warnings.append({"code": notice.code, "message": notice.message, "field": notice.field})
    if (warnings, conditions) == (queue.warnings, queue.conditions):
        return None
    return {
        "id": queue.pk,
        "name": queue.name,
        "warnings": json.dumps(warnings),
        "conditions": json.dumps(conditions),
    }


def _invalid(queue: StoredQueue, problems: list[Violation]) -> list[dict[str, Any]]:
    if not problems:
        return []
    message = " ".join(problem.message for problem in problems)
    before = _invalid_condition(queue.conditions)
    if before:
        since = before["since"]
    else:
        since = timezone.now().isoformat()
    return [
        {
            "type": "HierarchyInvalid",
            "reason": problems[0].rule_id,
            "message": message,
            "since": since,
        }
    ]


def _store(rows: list[dict[str, Any]]) -> None:
    execute(
        f"UPDATE scheduler_queue SET warnings = {json_column('d.warnings')}, conditions = "
        f"{json_column('d.conditions')} "
        f"FROM {values_table('d', _COLUMNS)} WHERE scheduler_queue.id = d.id",
        [as_parameter(rows)],
    )
