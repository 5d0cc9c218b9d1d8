"""Evictions as values: whose pods go, for whom, by which rule, and with which figures."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scheduler.domain.evictions import RULE_OF_ACTION, EvictionRule
from scheduler.domain.nodes import Amounts
from scheduler.domain.resources import COMMON, NOTHING, Resources
from scheduler.engine.actions.shed import REASON as SHED_REASON
from scheduler.engine.decisions import Evict, Grounds, Holding
from scheduler.engine.grounds import Exchange
from scheduler.engine.report.figures import named_amounts, named_values
from scheduler.engine.session import Session
from scheduler.engine.state.queue_quotas import Quotas
from scheduler.engine.statement import Operation

_RANKS = {"cpu": 1, "memory": 2}


class Meeting(NamedTuple):
    """What all evictions from one queue for another have in common."""

    deserved: Resources
    guarantee: Resources
    beneficiary_queue: str = ""
    level: str = ""
    depth: int = 0


class NamedSums:
    """Sums with names, each made once: what one victim leaves is what the next one finds."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._made: dict[tuple[int, ...], Resources] = {}

    def of(self, values: Amounts) -> list[Resources]:
        """One for each row."""
        found = []
        for row in values.tolist():
            key = tuple(row)
            if key not in self._made:
                self._made[key] = named_values(self._session, row, zeros=True)
            found.append(self._made[key])
        return found


def all_evictions(session: Session) -> tuple[Evict, ...]:
    operations = session.evictions
    if not operations:
        return ()
    meetings = Meetings(session)
    sums = NamedSums(session)
    before = np.array([operation.before for operation in operations])
    pod_classes = [operation.pod_class for operation in operations]
    requests = {
        number: named_amounts(session, session.request[number]) for number in set(pod_classes)
    }
    pods = [operation.pods[0] for operation in operations]
    columns = zip(
        operations,
        pods,
        sums.of(before),
        sums.of(before - session.request[pod_classes]),
        [requests[number] for number in pod_classes],
        _seconds_run(session, pods),
        strict=True,
    )
    return tuple([_eviction(session, meetings.of(row[0]), *row) for row in columns])


class Meetings:
    """Each made once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._made: dict[tuple[int, int], Meeting] = {}

    def of(self, operation: Operation) -> Meeting:
        pair = (operation.gang.queue, _taking_queue(operation))
        if pair not in self._made:
            self._made[pair] = _meeting(self._session, *pair)
        return self._made[pair]


def _taking_queue(operation: Operation) -> int:
    """-1 where nobody takes the room."""
    if operation.beneficiary is None:
        return -1
    return operation.beneficiary.queue


def _meeting(session: Session, losing: int, taking: int) -> Meeting:
    """Whom it makes room for, and the deepest queue above both."""
    quotas = session.quotas
    meeting = Meeting(NOTHING, NOTHING)
    if quotas is not None:
        deserved = named_amounts(session, quotas.deserved[losing])
        meeting = Meeting(deserved, named_amounts(session, quotas.guarantee[losing]))
    if taking < 0:
        return meeting
    tree = session.queue_tree
    meeting = meeting._replace(beneficiary_queue=tree.names[taking])
    level = tree.common(losing, taking)
    if level < 0:
        return meeting
    return meeting._replace(level=tree.names[level], depth=tree.depth(level))


def _eviction(
    session: Session,
    meeting: Meeting,
    operation: Operation,
    pod: int,
    before: Resources,
    after: Resources,
    request: Resources,
    ran_seconds: float,
) -> Evict:
    gang = operation.gang
    node = operation.nodes[0]
    return Evict(
        pod=session.snapshot.pods.key[pod],
        node=session.node_table.names[node] if node >= 0 else "",
        podgroup=gang.key,
        queue=session.queue_tree.names[gang.queue],
        row=pod,
        action=operation.action,
        reason=eviction_reason(operation.action),
        beneficiary=operation.beneficiary.key if operation.beneficiary else "",
        beneficiary_queue=meeting.beneficiary_queue,
        level=meeting.level,
        depth=meeting.depth,
        allocated_before=before,
        allocated_after=after,
        deserved=meeting.deserved,
        guarantee=meeting.guarantee,
        grounds=grounds_of(session, operation),
        request=request,
        ran_seconds=ran_seconds,
    )


def _seconds_run(session: Session, pods: list[int]) -> list[float]:
    """0 for a pod of which nobody knows when it started."""
    ran = np.maximum(0.0, session.snapshot.taken_at - session.snapshot.pods.started[pods])
    seconds: list[float] = np.nan_to_num(ran, nan=0.0).tolist()
    return seconds


def eviction_reason(action: str) -> str:
    """What a decision says about an eviction by this action."""
    if action == "shed":
        return SHED_REASON
    return action


# The rule and its figures


def grounds_of(session: Session, operation: Operation) -> Grounds:
    """Found once for all evictions that were decided together and are alike."""
    if operation.grounds is None:
        operation.grounds = _shared_grounds(session, operation)
    return operation.grounds


def _shared_grounds(session: Session, operation: Operation) -> Grounds:
    taker = operation.beneficiary
    key = (
        operation.action,
        taker.row if taker is not None else -1,
        operation.gang.priority,
        id(operation.choice),
        id(operation.exchange),
    )
    if key not in session.grounds:
        session.grounds[key] = _new_grounds(session, operation)
    return session.grounds[key]


def _new_grounds(session: Session, operation: Operation) -> Grounds:
    rule = RULE_OF_ACTION.get(operation.action, EvictionRule.OVERUSED)
    grounds = Grounds(rule)
    taker = operation.beneficiary
    if taker is not None:
        grounds = Grounds(rule, priority=taker.priority, victim_priority=operation.gang.priority)
    choice = operation.choice
    if choice is not None:
        grounds = replace(
            grounds,
            rule=choice.rule,
            possible=choice.possible,
            chosen=choice.chosen,
            has_tried_all=choice.has_tried_all,
        )
    return _with_holdings(session, grounds, operation)


def _with_holdings(session: Session, grounds: Grounds, operation: Operation) -> Grounds:
    """With what both queues have of the resource that it is about."""
    exchange = operation.exchange
    quotas = session.quotas
    if exchange is None or quotas is None:
        return grounds
    dim = _resource_in_question(session, operation, exchange, quotas)
    if dim < 0:
        return grounds
    return replace(
        grounds,
        resource=session.snapshot.resources[dim],
        taker=_taker(session, grounds.rule, exchange, quotas, dim),
        loser=Holding(
            session.queue_tree.names[exchange.loser],
            int(exchange.loser_before[dim]),
            int(exchange.loser_after[dim]),
            int(quotas.deserved[exchange.loser, dim]),
        ),
    )


def _taker(
    session: Session, rule: EvictionRule, exchange: Exchange, quotas: Quotas, dim: int
) -> Holding:
    due = quotas.deserved
    due_is = "deserved"
    if rule is EvictionRule.GUARANTEE:
        due = quotas.guarantee
        due_is = "guarantee"
    return Holding(
        session.queue_tree.names[exchange.taker],
        int(exchange.taker_before[dim]),
        int(exchange.taker_after[dim]),
        int(due[exchange.taker, dim]),
        due_is,
    )


def _resource_in_question(
    session: Session, operation: Operation, exchange: Exchange, quotas: Quotas
) -> int:
    """The scarcest resource that passes from one queue to the other; -1 if there is none.

    One that the taker lacked, and of which the loser had more than its due, comes first. In plain
    numbers: asked for each gang that takes something.
    """
    moved = (
        exchange.taker_before,
        exchange.taker_after,
        exchange.loser_before,
        exchange.loser_after,
    )
    taker_before, taker_after, loser_before, loser_after = (side.tolist() for side in moved)
    passed = []
    for dim, _ in session.queue_resources:
        if taker_after[dim] > taker_before[dim] and loser_after[dim] < loser_before[dim]:
            passed.append(dim)
    deserved = quotas.deserved_rows[exchange.loser]
    too_much = [amount > due for amount, due in zip(loser_before, deserved, strict=True)]
    choice = operation.choice
    short = too_much
    if choice is not None and choice.short is not None:
        short = choice.short.tolist()
    names = session.snapshot.resources

    def rank(dim: int) -> tuple[bool, bool, int, int]:
        return (not short[dim], not too_much[dim], _rank(names[dim]), dim)

    return min(passed, key=rank, default=-1)


def _rank(name: str) -> int:
    """Devices, then cpu, then memory."""
    if name not in COMMON:
        return 0
    return _RANKS.get(name, 3)
