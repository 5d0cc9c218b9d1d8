"""Making room for one more pod on one node: who of the candidates there has to go."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.eviction.alike import is_at_least_as_large
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.statement import Statement

Veto = Callable[[Gang, int], bool]
"""(victim's gang, victim's class) -> may it go, on the sums as they are now?"""

RELEASING = int(PodStatus.RELEASING)
NOBODY: Rows = np.zeros(0, dtype=np.intp)


def covers(room: Amounts, request: Amounts) -> bool:
    return bool(((room >= request) | (request <= 0)).all())


class NodeEvictions:
    """Candidates that had their turn gather on their nodes; on one of them room is made.

    Every veto is asked anew after each eviction.
    """

    _every_victim_helps = False

    def __init__(self, session: Session, veto: Veto, *, sparing: bool = False) -> None:
        self.session = session
        self._veto = veto
        self._sparing = sparing  # gangs are broken, and only for what is short
        self._gathered = NOBODY  # candidates that had their turn, in order
        self._verdicts: dict[tuple[int, int], tuple[int, bool]] = {}

    # One node

    def evict_on(
        self, statement: Statement, gang: Gang, pod_class: int, node: int, action: str
    ) -> bool:
        """Evicts on this node until a pod of the class fits and may be counted in.

        If that cannot be, nobody goes.
        """
        candidates = self._gathered_on(node)
        freed = self.session.request[self.session.pod_classes[candidates]].sum(axis=0)
        room = self.session.node_table.future([node])[:, 0] + freed
        if not covers(room, self.session.request[pod_class]):
            return False
        mark = statement.mark
        self._evict_in_order(statement, candidates, gang, pod_class, node, action)
        if not self._is_settled(gang, pod_class, node):
            statement.discard(mark)
            return False
        if self._sparing:
            self._take_back_needless(statement, mark, gang, pod_class, node)
        return True

    def _gathered_on(self, node: int) -> list[int]:
        """Those gathered on the node who may go and have not gone already."""
        session = self.session
        pods = self._gathered[session.nodes[self._gathered] == node]
        pods = pods[session.status[pods] != RELEASING]
        return [pod for pod in pods.tolist() if self._may_go(pod)]

    def _evict_in_order(
        self,
        statement: Statement,
        candidates: list[int],
        gang: Gang,
        pod_class: int,
        node: int,
        action: str,
    ) -> None:
        """As long as it is not enough, whoever may go and whose going helps."""
        for pod in candidates:
            if self._is_settled(gang, pod_class, node):
                break
            if self._may_go(pod) and self._helps(gang, pod_class, node, pod):
                statement.evict(self._gang_of(pod), pod, action, gang)

    def _take_back_needless(
        self, statement: Statement, mark: int, gang: Gang, pod_class: int, node: int
    ) -> None:
        """Whoever turns out not to be needed after the last victim stays."""
        for operation in reversed(statement.operations[mark:-1]):
            statement.undo(operation)
            if not self._is_settled(gang, pod_class, node):
                statement.redo(operation)

    def _is_settled(self, gang: Gang, pod_class: int, node: int) -> bool:
        """The pod fits on the node, and no level above its queue is in the way."""
        if not self._fits_on(pod_class, node):
            return False
        return not self.session.full_levels(gang.queue, pod_class)

    def _fits_on(self, pod_class: int, node: int) -> bool:
        room = self.session.node_table.future([node])[:, 0]
        return covers(room, self.session.request[pod_class])

    def _helps(self, gang: Gang, pod_class: int, node: int, pod: int) -> bool:
        """Whether it helps that this candidate goes.

        While the node is short, whoever is next has to go, but a gang is only broken for what is
        short. Where the node has room already, a level above the newcomer has none: then only
        candidates below that level help.
        """
        if self._every_victim_helps:
            return True
        if not self._fits_on(pod_class, node):
            return not self._sparing or self._frees_what_is_short(pod_class, node, pod)
        above_victim = self.session.queue_tree.path_list(self._gang_of(pod).queue)
        full = self.session.full_levels(gang.queue, pod_class)
        return any(level in above_victim for level in full)

    def _frees_what_is_short(self, pod_class: int, node: int, pod: int) -> bool:
        request = self.session.request[pod_class]
        frees = self.session.request[self.session.pod_classes[pod]]
        room = self.session.node_table.future([node])[:, 0]
        is_short = (request > 0) & (room < request)
        return bool((is_short & (frees > 0)).any())

    # One candidate

    def _gang_of(self, pod: int) -> Gang:
        return self.session.gang(int(self.session.snapshot.pods.group[pod]))

    def _may_go(self, pod: int) -> bool:
        """The veto, asked once as long as nothing changes."""
        victim = self._gang_of(pod)
        key = (victim.row, int(self.session.pod_classes[pod]))
        state = self.session.queue_usage.state
        known = self._verdicts.get(key)
        if known is None or known[0] != state:
            known = self._verdicts[key] = (state, self._veto(victim, key[1]))
        return known[1]

    # Many candidates at once

    def _is_suitable(self, pods: Rows, pod_class: int) -> Mask:
        """Whose nodes the class may run on."""
        node = self.session.nodes[pods]
        suitable: Mask = (node >= 0) & self.session.node_scores(pod_class).suitable[node]
        return suitable

    def _positions_with_room(self, pods: Rows, before: Rows, pod_class: int) -> Rows:
        """Positions of those who, with all before them on the same node, would free enough there.

        Prefix sums by node; `before` are candidates that stand before all of these.
        """
        session = self.session
        dims = np.flatnonzero(session.request[pod_class] > 0)
        if self._each_frees_enough(pods, before, pod_class):
            return np.arange(len(pods))
        node: Rows = session.nodes[pods].astype(np.intp)
        order = np.argsort(node, kind="stable")
        sums: Amounts = np.cumsum(self._freed(pods[order], dims), axis=1)
        nodes, starts, sizes = np.unique(node[order], return_index=True, return_counts=True)
        nothing = np.zeros((len(dims), 1), dtype=np.int64)
        on_earlier_nodes = np.concatenate([nothing, sums], axis=1)[:, starts]
        at_hand = session.node_table.future(nodes)[dims]
        at_hand = at_hand + self._freed_by_node(before, nodes, dims) - on_earlier_nodes
        room = sums + np.repeat(at_hand, sizes, axis=1)
        is_enough = (room >= session.request[pod_class][dims, None]).all(axis=0)
        return np.sort(order[is_enough])

    def _each_frees_enough(self, pods: Rows, before: Rows, pod_class: int) -> bool:
        """Whether every one of these pods alone is as large as the newcomer.

        Nodes that are over-full need more than that.
        """
        session = self.session
        if len(before) or not len(pods):
            return False
        classes = np.flatnonzero(np.bincount(session.pod_classes[pods]))
        if not is_at_least_as_large(session, classes, pod_class):
            return False
        return not session.node_table.is_over_full(session.request[pod_class] > 0)

    def _freed(self, pods: Rows, dims: Rows) -> Amounts:
        """Resources by pods."""
        freed: Amounts = self.session.request[self.session.pod_classes[pods]].T[dims]
        return freed

    def _freed_by_node(self, pods: Rows, nodes: Rows, dims: Rows) -> Amounts:
        """What those of these pods that are still there would free: resources by nodes."""
        sums = np.zeros((len(dims), len(nodes)), dtype=np.int64)
        if not len(pods):
            return sums
        pods = pods[self.session.status[pods] != RELEASING]
        pods = pods[np.isin(self.session.nodes[pods], nodes)]
        columns = np.searchsorted(nodes, self.session.nodes[pods])
        np.add.at(sums.T, columns, self._freed(pods, dims).T)
        return sums


class PoolMemory:
    """Attempts that failed fail again until something changes: alike gangs are not tried twice."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._failed: dict[tuple[object, ...], int] = {}

    def knows(self, key: tuple[object, ...]) -> bool:
        return self._failed.get(key) == self._session.queue_usage.state

    def remember(self, key: tuple[object, ...]) -> None:
        self._failed[key] = self._session.queue_usage.state


class BrokenGangs:
    """Gangs that fell below their minimum, which changes their place among the victims."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def is_news(self, victim: Gang) -> bool:
        """Whether this gang has just fallen below its minimum; true once for each gang."""
        if victim.ready >= victim.min_member or victim.row in self._known:
            return False
        self._known.add(victim.row)
        return True
