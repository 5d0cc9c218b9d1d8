"""Evictions as values: whose pods go, for whom, by which rule, and with which figures."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import NamedTuple

import numpy as np

from scheduler.domain.evictions import RULE_OF_ACTION, EvictionRule
from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.resources import COMMON, NOTHING, Resources
from scheduler.engine.actions.shed import REASON as SHED_REASON
from scheduler.engine.decisions import Evict, Grounds, Holding
from scheduler.engine.grounds import Exchange
from scheduler.engine.report.figures import named_amounts
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
        self._made: dict[bytes, Resources] = {}

    def of(self, values: Amounts) -> Resources:
        key = values.tobytes()
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = named_amounts(self._session, values, zeros=True)
        return found


def all_evictions(session: Session) -> tuple[Evict, ...]:
    meetings: dict[tuple[int, int], Meeting] = {}
    sums = NamedSums(session)
    requests: dict[int, Resources] = {}
    found = []
    for operation in session.evictions:
        pair = (operation.gang.queue, _taking_queue(operation))
        if pair not in meetings:
            meetings[pair] = _meeting(session, *pair)
        pod_class = operation.pod_class
        if pod_class not in requests:
            requests[pod_class] = named_amounts(session, session.request[pod_class])
        found.append(_eviction(session, operation, meetings[pair], sums, requests[pod_class]))
    return tuple(found)


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
    operation: Operation,
    meeting: Meeting,
    sums: NamedSums,
    request: Resources,
) -> Evict:
    gang = operation.gang
    (pod,) = operation.pods
    (node,) = operation.nodes
    before = operation.before
    if before is None:
        before = session.queue_usage.allocated[gang.queue]
    after = before - session.request[operation.pod_class]
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
        allocated_before=sums.of(before),
        allocated_after=sums.of(after),
        deserved=meeting.deserved,
        guarantee=meeting.guarantee,
        grounds=grounds_of(session, operation),
        request=request,
        ran_seconds=_seconds_run(session, pod),
    )


def _seconds_run(session: Session, pod: int) -> float:
    """0 for a pod of which nobody knows when it started."""
    started = float(session.snapshot.pods.started[pod])
    if isnan(started):
        return 0.0
    return max(0.0, session.snapshot.taken_at - started)


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

    One that the taker lacked, and of which the loser had more than its due, comes first.
    """
    gained: Mask = exchange.taker_after > exchange.taker_before
    lost: Mask = exchange.loser_after < exchange.loser_before
    passed = np.flatnonzero(gained & lost & session.queue_usage.dims).tolist()
    too_much = exchange.loser_before > quotas.deserved[exchange.loser]
    choice = operation.choice
    short = too_much
    if choice is not None and choice.short is not None:
        short = choice.short
    names = session.snapshot.resources

    def rank(dim: int) -> tuple[bool, bool, int, int]:
        return (not short[dim], not too_much[dim], _rank(names[dim]), dim)

    return min(passed, key=rank, default=-1)


def _rank(name: str) -> int:
    """Devices, then cpu, then memory."""
    if name not in COMMON:
        return 0
    return _RANKS.get(name, 3)
