"""The end of a session: phases, and everything decided, as one outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from scheduler.domain.codes import PhaseCode, StatusCode
from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import IS_READY, IS_SCHEDULED, Codes
from scheduler.domain.workloads import Phase
from scheduler.engine.decisions import Bind, Outcome, PhaseChange, Reservation
from scheduler.engine.plugins.gang import roles_count
from scheduler.engine.report.elastic_pods import with_elastic_pods
from scheduler.engine.report.evictions import all_evictions
from scheduler.engine.report.figures import Figures, named_amounts
from scheduler.engine.report.messages import write_report
from scheduler.engine.reservations import last_sessions_of
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
    """Volcano's rule: Unknown if something runs and the gang cannot.

    Else by how many pods got as far as a node.
    """
    groups = session.snapshot.groups
    completed = counts[:, StatusCode.SUCCEEDED] + counts[:, StatusCode.FAILED]
    scheduled = _scheduled(session, counts)
    has_enough = scheduled >= np.maximum(1, groups.min_member)
    phases = np.full(len(groups), PhaseCode.PENDING, dtype=np.int8)
    phases[session.phases == PhaseCode.INQUEUE] = PhaseCode.INQUEUE
    phases[has_enough] = PhaseCode.RUNNING
    phases[has_enough & (completed == scheduled)] = PhaseCode.COMPLETED
    phases[unschedulable & (counts[:, StatusCode.RUNNING] > 0)] = PhaseCode.UNKNOWN
    phases[list(session.shed_gangs)] = PhaseCode.PENDING
    is_known = groups.alive & (groups.queue >= 0)
    return np.where(is_known, phases, groups.phase).astype(np.int8)


def short_of_gang(session: Session, counts: Amounts) -> Mask:
    """Podgroups that do not have the pods in place that they need to run, or none at all."""
    groups = session.snapshot.groups
    ready = counts[:, IS_READY].sum(axis=1)
    short: Mask = groups.alive & (ready < np.maximum(1, groups.min_member))
    for gang in session.known_gangs():
        if not short[gang.row] and roles_count(gang):
            short[gang.row] = any(role.ready < role.minimum for role in gang.roles.values())
    return short


def only_leaving(session: Session, counts: Amounts) -> Mask:
    """Podgroups that are short only because pods of theirs are leaving, and that wait for no place.

    Nothing is said of them yet.
    """
    waiting = counts[:, StatusCode.PENDING] + counts[:, StatusCode.PIPELINED]
    minimum = np.maximum(1, session.snapshot.groups.min_member)
    leaving: Mask = (_scheduled(session, counts) >= minimum) & (waiting == 0)
    leaving[list(session.shed_gangs)] = False
    return leaving


def _scheduled(session: Session, counts: Amounts) -> Amounts:
    """Pods that got as far as a node, those on their way out of it included."""
    scheduled: Amounts = (
        counts[:, IS_SCHEDULED].sum(axis=1) + counts[:, StatusCode.RELEASING] - _nowhere(session)
    )
    return scheduled


def _nowhere(session: Session) -> Amounts:
    """Pods that are going without ever having had a node."""
    rows = np.flatnonzero((session.status == StatusCode.RELEASING) & (session.nodes == -1))
    return np.bincount(session.snapshot.pods.group[rows], minlength=len(session.snapshot.groups))


def phase_changes(session: Session, phases: Codes) -> tuple[PhaseChange, ...]:
    groups = session.snapshot.groups
    changed = np.flatnonzero(groups.alive & (phases != groups.phase)).tolist()
    found = []
    for row in sorted(changed, key=groups.key.__getitem__):
        old = Phase(int(groups.phase[row]))
        new = Phase(int(phases[row]))
        found.append(PhaseChange(groups.key[row], row, old, new))
    return tuple(found)


def all_binds(session: Session) -> tuple[Bind, ...]:
    return tuple(bind for operation in session.binds for bind in _binds_of(session, operation))


def _binds_of(session: Session, operation: Operation) -> Iterator[Bind]:
    gang = operation.gang
    queue = session.queue_tree.names[gang.queue]
    keys = session.snapshot.pods.key
    names = session.node_table.names
    for pod, node in zip(operation.pods, operation.nodes, strict=True):
        yield Bind(keys[pod], names[node], gang.key, queue, pod, operation.borrowed)


def all_reservations(session: Session) -> tuple[Reservation, ...]:
    """Places kept for pods that wait."""
    pods = session.snapshot.pods
    groups = session.snapshot.groups
    rows = sorted(session.reserved_nodes, key=pods.key.__getitem__)
    columns = zip(rows, pods.group[rows].tolist(), last_sessions_of(session, rows), strict=True)
    kept = []
    for pod, group, expires in columns:
        reservation = Reservation(
            pod=pods.key[pod],
            node=session.node_table.names[session.reserved_nodes[pod]],
            podgroup=groups.key[group],
            row=pod,
            expires=expires,
        )
        kept.append(reservation)
    return tuple(kept)


def outcome_of(session: Session, at_open: Figures) -> Outcome:
    """Everything decided and found, with the reasons and figures that follow from it."""
    counts = final_counts(session)
    short = _short_and_not_leaving(session, counts)
    phases = final_phases(session, counts, _unschedulable(session, short))
    waiting = short & (phases != PhaseCode.COMPLETED)
    waiting |= left_to_another(session)
    report = write_report(session, waiting, with_elastic_pods(session, counts, phases) & ~waiting)
    return replace(
        _decisions(session, phases),
        reasons=report.reasons,
        said=tuple(report.said),
        conditions=tuple(report.conditions),
        pod_conditions=tuple(report.pod_conditions),
        events=tuple(report.events),
        queues=Figures(session, report.waiting),
        queues_at_open=at_open,
    )


def left_to_another(session: Session) -> Mask:
    """Podgroups that would start now, and do not: another scheduler decides."""
    groups = session.snapshot.groups
    left: Mask = np.zeros(len(groups), dtype=np.bool_)
    if session.snapshot.is_watched:
        left[[operation.gang.row for operation in session.binds]] = True
        left &= np.isin(groups.phase, (Phase.PENDING, Phase.INQUEUE))
    return left


def decisions_of(session: Session) -> Outcome:
    """What was decided alone, without reasons and figures."""
    counts = final_counts(session)
    short = _short_and_not_leaving(session, counts)
    return _decisions(session, final_phases(session, counts, _unschedulable(session, short)))


def _short_and_not_leaving(session: Session, counts: Amounts) -> Mask:
    return short_of_gang(session, counts) & ~only_leaving(session, counts)


def _unschedulable(session: Session, short: Mask) -> Mask:
    """Podgroups of which Volcano says that their gang cannot run."""
    unschedulable: Mask = short & (session.task_counts > 0)
    if session.plugin("gang") is None:
        unschedulable[:] = False
    return unschedulable


def _decisions(session: Session, phases: Codes) -> Outcome:
    return Outcome(
        binds=all_binds(session),
        evictions=all_evictions(session),
        reservations=all_reservations(session),
        phases=Phases(session, phases),
        phase_changes=phase_changes(session, phases),
        starving=dict(session.starving),
        warnings=tuple(session.warnings),
        total=named_amounts(session, session.total),
        preemption_attempts=session.preemption_attempts,
    )
