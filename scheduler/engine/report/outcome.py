"""The end of a session: phases, and everything decided, as one outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.resources import Resources
from scheduler.domain.tables import IS_READY, IS_SCHEDULED, Codes
from scheduler.domain.workloads import Phase, PodStatus
from scheduler.engine.actions.shed import REASON as SHED_REASON
from scheduler.engine.decisions import Bind, Evict, Outcome, PhaseChange, Reservation
from scheduler.engine.plugins.gang import roles_count
from scheduler.engine.report.figures import Figures, amounts
from scheduler.engine.report.messages import Report, report
from scheduler.engine.reservations import last_session_of
from scheduler.engine.session import Session
from scheduler.engine.statement import Operation


class Phases(Mapping[str, Phase]):
    """Phase by podgroup, read from columns: nobody pays for podgroups that are not looked at."""

    def __init__(self, session: Session, codes: Codes) -> None:
        self._groups = session.snapshot.groups
        self._codes = codes

    def __getitem__(self, key: str) -> Phase:
        return Phase(int(self._codes[self._groups.rows[key]]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups.rows)

    def __len__(self) -> int:
        return len(self._groups.rows)


def final_counts(session: Session) -> Amounts:
    """Pods per podgroup and status, after all decisions."""
    counts = session.snapshot.aggregates.group_counts.astype(np.int64)
    changed = np.flatnonzero(session.status != session.snapshot.pods.status)
    group = session.snapshot.pods.group[changed]
    np.add.at(counts, (group, session.snapshot.pods.status[changed]), -1)
    np.add.at(counts, (group, session.status[changed]), 1)
    return counts


def final_phases(session: Session, counts: Amounts, unschedulable: Mask) -> Codes:
    """Volcano's rule: Unknown if something runs and the gang can not; else by how many pods got as
    far as a node.
    """
    groups = session.snapshot.groups
    completed = counts[:, PodStatus.SUCCEEDED] + counts[:, PodStatus.FAILED]
    scheduled = _scheduled(session, counts)
    enough = scheduled >= np.maximum(1, groups.min_member)
    inqueue = _current_phases(session) == Phase.INQUEUE
    phases = np.where(inqueue, Phase.INQUEUE, Phase.PENDING)
    phases = np.where(
        enough, np.where(completed == scheduled, Phase.COMPLETED, Phase.RUNNING), phases
    )
    phases = np.where(unschedulable & (counts[:, PodStatus.RUNNING] > 0), Phase.UNKNOWN, phases)
    shed = np.isin(np.arange(len(groups)), list(session.shed_gangs))
    phases = np.where(shed, Phase.PENDING, phases)
    known = groups.alive & (groups.queue >= 0)
    return np.where(known, phases, groups.phase).astype(np.int8)


def short_of_gang(session: Session, counts: Amounts) -> Mask:
    """Podgroups that do not have the pods in place that they need to run, or none at all."""
    groups = session.snapshot.groups
    ready = counts[:, IS_READY].sum(axis=1)
    short: Mask = groups.alive & (ready < np.maximum(1, groups.min_member))
    for gang in session.known_gangs():
        if gang.roles and not short[gang.row]:
            short[gang.row] = roles_count(gang) and any(
                role.ready < role.minimum for role in gang.roles.values()
            )
    return short


def only_leaving(session: Session, counts: Amounts) -> Mask:
    """Podgroups that are short only because pods that they had are on their way out, and wait for
    no place: nothing is said of them yet.
    """
    waiting = counts[:, PodStatus.PENDING] + counts[:, PodStatus.PIPELINED]
    leaving: Mask = (
        _scheduled(session, counts) >= np.maximum(1, session.snapshot.groups.min_member)
    ) & (waiting == 0)
    leaving[list(session.shed_gangs)] = False
    return leaving


def _scheduled(session: Session, counts: Amounts) -> Amounts:
    """Pods that got as far as a node, those on their way out of it included."""
    scheduled: Amounts = (
        counts[:, IS_SCHEDULED].sum(axis=1) + counts[:, PodStatus.RELEASING] - _nowhere(session)
    )
    return scheduled


def _nowhere(session: Session) -> Amounts:
    """Pods that are going without ever having had a node."""
    rows = np.flatnonzero((session.status == PodStatus.RELEASING) & (session.nodes == -1))
    return np.bincount(session.snapshot.pods.group[rows], minlength=len(session.snapshot.groups))


def _current_phases(session: Session) -> Codes:
    phases = session.snapshot.groups.phase.copy()
    for gang in session.known_gangs():
        phases[gang.row] = gang.phase
    return phases


def phase_changes(session: Session, phases: Codes) -> tuple[PhaseChange, ...]:
    groups = session.snapshot.groups
    rows = sorted(
        np.flatnonzero(groups.alive & (phases != groups.phase)).tolist(), key=groups.key.__getitem__
    )
    return tuple(
        PhaseChange(groups.key[row], row, Phase(int(groups.phase[row])), Phase(int(phases[row])))
        for row in rows
    )


def binds(session: Session) -> tuple[Bind, ...]:
    keys = session.snapshot.pods.key
    names = session.queue_tree.names
    nodes = session.node_table.names
    return tuple(
        Bind(
            keys[pod],
            nodes[node],
            operation.gang.key,
            names[operation.gang.queue],
            pod,
            operation.borrowed,
        )
        for operation in session.binds
        for pod, node in zip(operation.pods, operation.nodes, strict=True)
    )


def evictions(session: Session) -> tuple[Evict, ...]:
    return tuple(_eviction(session, operation) for operation in session.evictions)


def _eviction(session: Session, operation: Operation) -> Evict:
    queue_tree = session.queue_tree
    gang = operation.gang
    quotas = session.quotas
    (pod,) = operation.pods
    (node,) = operation.nodes
    taker = operation.beneficiary
    level = queue_tree.common(gang.queue, taker.queue) if taker is not None else -1
    before = (
        operation.before
        if operation.before is not None
        else session.queue_usage.allocated[gang.queue]
    )
    return Evict(
        pod=session.snapshot.pods.key[pod],
        node=session.node_table.names[node] if node >= 0 else "",
        podgroup=gang.key,
        queue=queue_tree.names[gang.queue],
        row=pod,
        action=operation.action,
        reason=SHED_REASON if operation.action == "shed" else operation.action,
        beneficiary=taker.key if taker is not None else "",
        beneficiary_queue=queue_tree.names[taker.queue] if taker is not None else "",
        level=queue_tree.names[level] if level >= 0 else "",
        depth=queue_tree.depth(level) if level >= 0 else 0,
        allocated_before=amounts(session, before, zeros=True),
        allocated_after=amounts(session, before - session.request[operation.pod_class], zeros=True),
        deserved=amounts(session, quotas.deserved[gang.queue]) if quotas else Resources(),
        guarantee=amounts(session, quotas.guarantee[gang.queue]) if quotas else Resources(),
    )


def reservations(session: Session) -> tuple[Reservation, ...]:
    """Places kept for pods that wait."""
    pods = session.snapshot.pods
    groups = session.snapshot.groups
    kept = []
    for pod, node in sorted(session.reserved_nodes.items(), key=lambda item: pods.key[item[0]]):
        kept.append(
            Reservation(
                pods.key[pod],
                session.node_table.names[node],
                groups.key[pods.group[pod]],
                pod,
                last_session_of(session, pod),
            )
        )
    return tuple(kept)


def outcome_of(session: Session, at_open: Figures, *, reporting: bool = True) -> Outcome:
    counts = final_counts(session)
    short = short_of_gang(session, counts) & ~only_leaving(session, counts)
    phases = final_phases(
        session, counts, short & (session.task_counts > 0) & (session.plugin("gang") is not None)
    )
    told = report(session, short & (phases != Phase.COMPLETED)) if reporting else Report()
    return Outcome(
        binds=binds(session),
        evictions=evictions(session),
        reservations=reservations(session),
        phases=Phases(session, phases),
        phase_changes=phase_changes(session, phases),
        reasons=told.reasons,
        said=tuple(told.said),
        conditions=tuple(told.conditions),
        pod_conditions=tuple(told.pod_conditions),
        events=tuple(told.events),
        queues=Figures(session, told.waiting),
        queues_at_open=at_open,
        starving=dict(session.starving),
        warnings=tuple(session.warnings),
        total=amounts(session, session.total),
        preemption_attempts=session.preemption_attempts,
    )
