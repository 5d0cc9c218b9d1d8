"""Which waiting gangs fit on one node, and what the node has against the others.

What is free is what allocate would find: what is used and what is promised to others is not.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

import numpy as np

from scheduler.domain.codes import PhaseCode, StatusCode
from scheduler.domain.node_fit import RANK, Fit, NodeVerdict, Shortage, WaitingGang
from scheduler.domain.nodes import Amounts
from scheduler.domain.tables import NO_QUEUE
from scheduler.engine.session import Session
from scheduler.engine.state.constraints import is_selected, keeps_out_when_cordoned, repelling_taint
from scheduler.engine.state.nodes import copies, fits

_WAITING = (PhaseCode.PENDING, PhaseCode.INQUEUE)


class NodeQuestion:
    """Asked of a session before its first action. A class of pods is looked at once."""

    def __init__(self, session: Session, node: str) -> None:
        self.session = session
        self.node = session.snapshot.nodes.rows[node]
        self._fits: dict[int, NodeVerdict] = {}

    def waiting_gangs(self) -> list[WaitingGang]:
        """All that wait, each with the best that can be said of any of its pods."""
        groups = self.session.snapshot.groups
        queues = self.session.snapshot.queues
        found = []
        for row, pod_classes in self._waiting_classes.items():
            place = int(groups.queue[row])
            found.append(
                WaitingGang(
                    row=row,
                    key=groups.key[row],
                    queue="" if place == NO_QUEUE else queues[place].name,
                    priority=int(groups.priority[row]),
                    created=float(groups.created[row]),
                    fit=self._best_fit(row, pod_classes),
                )
            )
        return found

    def verdict(self, gang: WaitingGang) -> NodeVerdict:
        """The same with figures: those of the class of pods that comes closest."""
        pod_classes = self._waiting_classes[gang.row]
        pods = sum(pod_classes.values())
        kept = self._kept_here.get(gang.row, 0)
        if kept:
            return NodeVerdict(Fit.KEPT, pods=pods, places=kept)
        best = min((self._of_class(kind) for kind in pod_classes), key=lambda one: RANK[one.fit])
        places = 0
        if best.fit is Fit.FITS:
            places = self._places(pod_classes)
        return NodeVerdict(best.fit, pods, places, best.shortages, best.taint)

    @cached_property
    def _waiting_classes(self) -> dict[int, dict[int, int]]:
        """By podgroup that waits, how many of its pods of which class have no place."""
        snapshot = self.session.snapshot
        is_waiting = snapshot.groups.alive & np.isin(snapshot.groups.phase, _WAITING)
        pods = np.flatnonzero(snapshot.pods.status == StatusCode.PENDING)
        pods = pods[is_waiting[snapshot.pods.group[pods]]]
        pairs = np.stack([snapshot.pods.group[pods], snapshot.pods.pod_class[pods]])
        different, numbers = np.unique(pairs, axis=1, return_counts=True)
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for group, pod_class, number in zip(*different.tolist(), numbers.tolist(), strict=True):
            found[group][pod_class] = number
        return found

    @cached_property
    def _kept_here(self) -> dict[int, int]:
        """By podgroup, for how many of its pods a place is kept on this node."""
        counts: dict[int, int] = defaultdict(int)
        for pod, node in self.session.reserved_nodes.items():
            if node == self.node:
                counts[int(self.session.snapshot.pods.group[pod])] += 1
        return counts

    def _best_fit(self, row: int, pod_classes: dict[int, int]) -> Fit:
        if row in self._kept_here:
            return Fit.KEPT
        found = [self._of_class(pod_class).fit for pod_class in pod_classes]
        return min(found, key=RANK.__getitem__)

    def _of_class(self, pod_class: int) -> NodeVerdict:
        found = self._fits.get(pod_class)
        if found is None:
            found = self._fits[pod_class] = self._look_at(pod_class)
        return found

    def _look_at(self, pod_class: int) -> NodeVerdict:
        """What no waiting helps with comes first."""
        unsuitable = self._unsuitable(pod_class)
        if unsuitable is not None:
            return unsuitable
        request = self.session.request[pod_class]
        if not fits(self._whole, request)[0]:
            return NodeVerdict(Fit.TOO_SMALL, shortages=self._shortages(pod_class, self._whole))
        if not self.session.snapshot.nodes.ready[self.node]:
            return NodeVerdict(Fit.NOT_READY)
        if not self.session.node_scores(pod_class).suitable[self.node]:
            return NodeVerdict(Fit.CORDONED)
        if not fits(self._free, request)[0]:
            return NodeVerdict(Fit.FULL, shortages=self._shortages(pod_class, self._free))
        if not self.session.allows_on(pod_class, self.node):
            return NodeVerdict(Fit.POD_RULES)
        return NodeVerdict(Fit.FITS)

    def _unsuitable(self, pod_class: int) -> NodeVerdict | None:
        """A taint, a selector or affinity, or what no session can honour."""
        classes = self.session.snapshot.classes
        constraint = classes.constraints[int(classes.constraint[pod_class])]
        nodes = self.session.snapshot.nodes
        if constraint.unsupported:
            return NodeVerdict(Fit.NOT_SUPPORTED)
        if not is_selected(constraint, nodes, self.node):
            return NodeVerdict(Fit.NOT_SELECTED)
        taint = repelling_taint(constraint, nodes.taints[self.node])
        if taint is not None:
            shown = f"{taint.key}={taint.value}" if taint.value else taint.key
            return NodeVerdict(Fit.TAINTED, taint=f"{shown}:{taint.effect}")
        if keeps_out_when_cordoned(constraint, nodes, self.node):
            return NodeVerdict(Fit.CORDONED)
        return None

    def _shortages(self, pod_class: int, room: Amounts) -> tuple[Shortage, ...]:
        found = []
        for dim, need in enumerate(self.session.request[pod_class].tolist()):
            free = int(room[dim, 0])
            if need > free:
                whole = int(self._whole[dim, 0])
                name = self.session.snapshot.resources[dim]
                found.append(Shortage(name, need, max(0, free), whole))
        return tuple(found)

    def _places(self, pod_classes: dict[int, int]) -> int:
        """How many of these pods the room here takes, one class after the other."""
        room = self._free.copy()
        places = 0
        for pod_class, number in sorted(pod_classes.items()):
            if self._of_class(pod_class).fit is not Fit.FITS:
                continue
            request = self.session.request[pod_class]
            taken = min(number, int(copies(room, request)[0]))
            room -= request[:, None] * taken
            places += taken
        return places

    @cached_property
    def _free(self) -> Amounts:
        return self.session.node_table.free([self.node])

    @cached_property
    def _whole(self) -> Amounts:
        """What the node has when it is empty; the table counts one that is lost as nothing."""
        whole: Amounts = self.session.snapshot.nodes.allocatable[[self.node]].T
        return whole
