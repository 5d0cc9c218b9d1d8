"""What stands against applying a set now. Nothing is locked and nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from scheduler.admission.violations import Notice, Violation, one_for_each_rule
from scheduler.domain.access import Forbidden, OutOfSight, Permission
from scheduler.domain.change_sets import (
    NODE,
    POLICY,
    POLICY_TEXT,
    QUEUE,
    ChangeItem,
    Crossing,
    Operation,
)
from scheduler.domain.queues import ROOT
from scheduler.selectors.change_sets.objects import crossings_of, total_after
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.change_sets.apply import attempted, of_kind
from scheduler.services.change_sets.drafts import renewed
from scheduler.services.change_sets.queue_changes import plan_queues
from scheduler.services.cluster import nodes
from scheduler.services.sessions.policies import check_policy


@dataclass(frozen=True, slots=True)
class SetVerdict:
    """Broken rules, changes of others since the objects were added, and a missing right."""

    violations: tuple[Violation, ...] = ()
    notices: tuple[Notice, ...] = ()
    crossings: tuple[Crossing, ...] = ()
    forbidden: str = ""

    @property
    def may_be_applied(self) -> bool:
        return not (self.violations or self.crossings or self.forbidden)


def verdict_on(items: tuple[ChangeItem, ...], *, by: Actor = SYSTEM) -> SetVerdict:
    crossings = crossings_of(items)
    if crossings:
        return SetVerdict(crossings=crossings)
    try:
        return _verdict_of_rules(items, by)
    except (Forbidden, OutOfSight) as refusal:
        return SetVerdict(forbidden=str(refusal))


def require_right_to_apply(items: tuple[ChangeItem, ...], by: Actor) -> None:
    """Whatever the objects are by now: only rights are asked. Raises `Forbidden`."""
    current = list(items)
    for crossing in crossings_of(items):
        place = current.index(crossing.item)
        current[place] = renewed(crossing.item, crossing.now)
    left = tuple(item for item in current if item.base != item.wanted)
    verdict = verdict_on(left, by=by)
    if verdict.forbidden:
        raise Forbidden(Permission.ADMINISTER, ROOT, message=verdict.forbidden)


def _verdict_of_rules(items: tuple[ChangeItem, ...], by: Actor) -> SetVerdict:
    problems: list[Violation] = []
    notices: list[Notice] = []
    for item in of_kind(items, NODE):
        problems += attempted(partial(_check_node, item, by), item)
    for item in of_kind(items, POLICY):
        problems += attempted(partial(_check_policy, item, by), item)
    queues = of_kind(items, QUEUE)
    if queues:
        total = total_after(items)
        problems += attempted(lambda: notices.extend(plan_queues(queues, by, total).notices))
    return SetVerdict(one_for_each_rule(problems), tuple(notices))


def _check_node(item: ChangeItem, by: Actor) -> None:
    if item.operation is Operation.CREATE:
        nodes.create_node(item.wanted, by=by, dry_run=True)
    elif item.operation is Operation.DELETE:
        nodes.delete_node(item.name, by=by, dry_run=True)
    else:
        nodes.update_node(item.name, item.wanted, by=by, dry_run=True)


def _check_policy(item: ChangeItem, by: Actor) -> None:
    access.require_cluster(by, doing="replace the policy")
    wanted: Mapping[str, Any] = item.wanted or {}
    check_policy(wanted[POLICY_TEXT])
