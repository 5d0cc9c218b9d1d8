"""Running pods that could be victims, found once per action: queue by queue in the order in which
they would go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from typing import Any

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import STATUSES, Floats, Ints, Rows, Scores
from scheduler.domain.workloads import PodStatus
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

_RELEASING = int(PodStatus.RELEASING)
_FEW_RANKS = 4
"""More ranks than these are not looked at one after the other."""


class RunningPods:
    """Columns over all candidates, those of a queue side by side: `pods`, and of each its `queue`,
    `pod_class` and `node`.

    The lines of a queue are sorted once and kept until the queue changes: gangs that ask one after
    the other find them ready.
    """

    def __init__(
        self, session: Session, statuses: Collection[PodStatus], *, borrowed_first: bool = False
    ) -> None:
        self.session = session
        self._borrows = borrowed_first and bool(session.borrowed)
        pods = session.snapshot.pods
        groups = session.snapshot.groups
        rows = np.flatnonzero(_one_of(statuses)[session.status])
        rows = (
            rows[session.snapshot.classes.preemptable[pods.pod_class[rows]]] if len(rows) else rows
        )
        queue = groups.queue[pods.group[rows]]
        order = np.argsort(
            queue.astype(np.int16) if len(session.queue_tree) < 2**15 else queue, kind="stable"
        )
        order = order[np.searchsorted(queue[order], 0) :]  # without those whose queue is not there
        self.pods = rows[order]
        self.queue = queue[order]
        self.pod_class = pods.pod_class[self.pods]
        self.node = session.nodes[self.pods]
        self._starts = np.searchsorted(self.queue, np.arange(len(session.queue_tree) + 1))
        self._classes_of_queue: dict[int, Rows] = {}
        self._groups_of_queue: dict[int, Rows] = {}
        self._of_queue: dict[int, QueueCandidates] = {}
        self._lines: dict[tuple[object, ...], tuple[int, Rows]] = {}

    @cached_property
    def queues(self) -> Rows:
        """Those that run anything that could go."""
        return np.flatnonzero(np.diff(self._starts))

    @cached_property
    def pairs(self) -> tuple[Rows, Rows, Rows]:
        """Every queue with every class that runs in it, each pair once; and the pair of each
        candidate.
        """
        classes = len(self.session.request)
        codes, pair = np.unique(
            self.queue.astype(np.int64) * classes + self.pod_class, return_inverse=True
        )
        return codes // classes, codes % classes, pair

    def pod_classes_of(self, queue: int) -> Rows:
        """The classes of its candidates."""
        if queue not in self._classes_of_queue:
            self._classes_of_queue[queue] = np.unique(
                self.pod_class[self._starts[queue] : self._starts[queue + 1]]
            )
        return self._classes_of_queue[queue]

    def groups_of(self, queue: int) -> Rows:
        """The podgroups of its candidates, each once."""
        if queue not in self._groups_of_queue:
            pods = self.pods[self._starts[queue] : self._starts[queue + 1]]
            self._groups_of_queue[queue] = np.unique(self.session.snapshot.pods.group[pods])
        return self._groups_of_queue[queue]

    def _candidates_of(self, queue: int) -> QueueCandidates:
        found = self._of_queue.get(queue)
        if found is None:
            pods = self.pods[self._starts[queue] : self._starts[queue + 1]]
            found = self._of_queue[queue] = QueueCandidates(self.session, pods)
        return found

    def of_gang(self, gang: Gang) -> Rows:
        """The candidates of one gang, last in task order first."""
        return self._candidates_of(gang.queue).of_gang(gang)

    def last_first(self, queue: int, *, sparing: bool) -> Rows:
        """Borrowed pods, then those of the gang that plugins rank last; last in task order first,
        also across gangs of equal rank.

        With `sparing` only pods of gangs that have more of them than their gang needs.
        """
        return self._kept((queue, sparing), queue, lambda: self._last_first(queue, sparing))

    def first_of_line(self, queue: int, count: int, *, sparing: bool) -> Rows:
        """The first so many of `last_first`, without putting all of them in order."""
        if self._borrows:
            return self.last_first(queue, sparing=sparing)[:count]
        return self._candidates_of(queue).first_by_rank(count, sparing=sparing)

    def first_on_best_node(
        self, queue: int, pod_class: int, asked: Callable[[Rows, Rows], Mask], *, sparing: bool
    ) -> Rows:
        """Those on the best node for a pod of the class, in the order of `last_first`.

        Each must be as large as the pod, so that whoever goes makes room. `asked` tells which
        podgroups may lose a pod of the class beside each.
        """
        candidates = self._candidates_of(queue)
        return candidates.first_on_best_node(pod_class, asked, sparing=sparing)

    def surplus(self, queue: int) -> Rows:
        """The same, but only as many pods of each gang as it can spare."""
        return self._kept((queue, "surplus"), queue, lambda: self._surplus(queue))

    def whole_gangs(self, queue: int) -> Rows:
        """Gang after gang, starving ones and small ones first."""
        candidates = self._candidates_of(queue)
        return self._kept((queue, "whole"), queue, candidates.whole_gangs)

    def _kept(self, key: tuple[object, ...], queue: int, find: Callable[[], Rows]) -> Rows:
        version = self.session.queue_usage.version[queue]
        found = self._lines.get(key)
        if found is None or found[0] != version:
            found = self._lines[key] = (version, find())
        return found[1]

    def _last_first(self, queue: int, sparing: bool) -> Rows:
        return self._borrowed_first(self._candidates_of(queue).by_rank(sparing=sparing))

    def _borrowed_first(self, pods: Rows) -> Rows:
        if not self._borrows:
            return pods
        borrowed = self.session.snapshot.pods.borrowed[pods]
        return np.concatenate([pods[borrowed], pods[~borrowed]])

    def _surplus(self, queue: int) -> Rows:
        line = self.last_first(queue, sparing=True)
        group = self.session.snapshot.pods.group[line]
        minimum = self.session.snapshot.groups.min_member[group]
        spare = self.session.ready_counts[group] - minimum
        surplus: Rows = line[_count_before(group) < spare]
        return surplus

    def amounts_by_node(self, chosen: Mask, dim: int) -> Floats:
        """About how much of a resource the chosen candidates hold on each node."""
        request = self.session.request[self.pod_class[chosen], dim]
        amounts: Floats = np.bincount(
            self.node[chosen], weights=request, minlength=len(self.session.node_table.names)
        ).astype(np.float64)
        return amounts


class QueueCandidates:
    """The candidates of one queue in the one order that never changes: last in task order first.

    What plugins and counts say of their gangs is kept, and asked anew only of gangs that changed.
    """

    def __init__(self, session: Session, pods: Rows) -> None:
        self.session = session
        self._pods = session.tasks.in_order(pods)[::-1]
        group = session.snapshot.pods.group[self._pods]
        # The rows of the gangs, and for each pod the place of its gang among them
        rows, self._gang = np.unique(group, return_inverse=True)
        self._rows: Rows = rows.astype(np.intp)
        self._minimum = session.snapshot.groups.min_member[self._rows]
        self._node = session.nodes[self._pods]
        # By class of newcomers: how often pods were put on nodes or taken off, and what followed
        self._scores: dict[int, tuple[int, Scores]] = {}
        self._gangs = [session.gang(row) for row in self._rows.tolist()]
        self._ranks = GangNumbers(session, self._gangs, session.gang_rank)
        self._sizes = GangNumbers(session, self._gangs, self._goes_last)

    def of_gang(self, gang: Gang) -> Rows:
        pods: Rows = self._pods[self._is_left() & (self._rows[self._gang] == gang.row)]
        return pods

    def by_rank(self, *, sparing: bool) -> Rows:
        """The pods of the gang with the highest rank first."""
        return self._ordered_by(-self._ranks.current(), np.flatnonzero(self._may_go(sparing)))

    def first_by_rank(self, count: int, *, sparing: bool) -> Rows:
        """The first so many of them. Most often a few of the highest ranks have enough."""
        numbers = self._ranks.current()[self._gang]
        numbers[~self._may_go(sparing)] = -1
        found: list[int] = []
        for _ in range(_FEW_RANKS):
            highest = numbers.max(initial=-1)
            if highest < 0:
                break
            places = np.flatnonzero(numbers == highest)[: count - len(found)]
            found.extend(places.tolist())
            if len(found) == count:
                break
            numbers[numbers == highest] = -1
        else:
            return self.by_rank(sparing=sparing)[:count]
        first: Rows = self._pods[found]
        return first

    def first_on_best_node(
        self, pod_class: int, asked: Callable[[Rows, Rows], Mask], *, sparing: bool
    ) -> Rows:
        """Those on the node with the best score, where the first of them is; in order of rank."""
        may_go = self._may_go(sparing) & self._agreed(asked)
        scores = np.where(may_go, self._scores_for(pod_class), -np.inf)
        best = scores.max(initial=-np.inf)
        if best == -np.inf:
            return self._pods[:0]
        numbers = self._ranks.current()[self._gang]
        first = int(np.where(scores == best, numbers, -1).argmax())
        there = np.flatnonzero(may_go & (self._node == self._node[first]))
        ordered: Rows = self._pods[there[np.argsort(-numbers[there], kind="stable")]]
        return ordered

    def _agreed(self, asked: Callable[[Rows, Rows], Mask]) -> Mask:
        """For each pod, whether its gang may lose it."""
        agreed = np.zeros(len(self._pods), dtype=np.bool_)
        for pod_class, is_of_class in self._by_class:
            may_lose = asked(self._rows, np.full(len(self._rows), pod_class))
            if may_lose.all():
                agreed |= is_of_class
            else:
                agreed |= may_lose[self._gang] & is_of_class
        return agreed

    @cached_property
    def _by_class(self) -> list[tuple[int, Mask]]:
        """Each class of these pods, and which of them are of it."""
        pod_class = self.session.pod_classes[self._pods]
        return [(number, pod_class == number) for number in np.unique(pod_class).tolist()]

    def _scores_for(self, pod_class: int) -> Scores:
        """The score of each pod's node for a pod of the class; -inf where that must not run."""
        node_scores = self.session.node_scores(pod_class)
        uses = self.session.node_table.uses
        known = self._scores.get(pod_class)
        if known is None or known[0] != uses:
            by_node = node_scores.scores_of(np.arange(len(node_scores.suitable)))
            is_suitable = (self._node >= 0) & node_scores.suitable[self._node]
            scores = np.where(is_suitable, by_node[self._node], -np.inf)
            known = self._scores[pod_class] = (uses, scores)
        return known[1]

    def _may_go(self, sparing: bool) -> Mask:
        """Those that are left; with `sparing` only of gangs that have more than they need."""
        chosen = self._is_left()
        if sparing:
            can_spare = self.session.ready_counts[self._rows] > self._minimum
            if not can_spare.all():
                chosen &= can_spare[self._gang]
        return chosen

    def whole_gangs(self) -> Rows:
        """Gang after gang, starving ones and small ones first."""
        return self._ordered_by(self._sizes.current(), np.flatnonzero(self._is_left()))

    def _is_left(self) -> Mask:
        """Those that have not had to go yet."""
        is_left: Mask = self.session.status[self._pods] != _RELEASING
        return is_left

    def _ordered_by(self, numbers: Rows, chosen: Rows) -> Rows:
        """By the number of their gang; where numbers are equal, the order given stays."""
        order = np.argsort(numbers[self._gang[chosen]], kind="stable")
        ordered: Rows = self._pods[chosen[order]]
        return ordered

    def _goes_last(self, gang: Gang) -> tuple[object, ...]:
        return (not self.session.job_starving(gang), self.session.dominant_share(gang), gang.key)


class GangNumbers:
    """For each gang the place of its key among the keys of all; gangs with equal keys share one.

    Keys are asked anew only of gangs that changed since.
    """

    def __init__(self, session: Session, gangs: list[Gang], key: Callable[[Gang], Any]) -> None:
        self._session = session
        self._gangs = {gang.row: gang for gang in gangs}
        self._key = key
        self._keys: dict[int, Any] = {}  # podgroup -> key; none are asked for before they are used
        self._sorted: list[int] = []  # the podgroups by key, as they were last time
        self._seen = 0  # how many changes of gangs there were by then
        self._numbers: Rows = np.zeros(0, dtype=np.intp)

    def current(self) -> Rows:
        """In the order in which the gangs were given."""
        touched = self._session.touched_gangs
        if not self._keys:
            self._ask(self._gangs)
        elif changed := self._gangs.keys() & set(touched[self._seen :]):
            self._ask(changed)
        self._seen = len(touched)
        return self._numbers

    def _ask(self, rows: Iterable[int]) -> None:
        for row in rows:
            self._keys[row] = self._key(self._gangs[row])
        # Almost in order already, which makes this fast.
        self._sorted = self._sorted or list(self._gangs)
        self._sorted.sort(key=self._keys.__getitem__)
        places: dict[int, int] = {}
        place = -1
        before: Any = None
        for row in self._sorted:
            place += self._keys[row] != before
            before = self._keys[row]
            places[row] = place
        # Few numbers fit into 16 bits, which are sorted faster.
        small = np.int16 if place < 2**15 - 1 else np.intp
        self._numbers = np.array([places[row] for row in self._gangs], dtype=small)


def _count_before(group: Ints) -> Rows:
    """For each entry, how many entries of the same group stand before it."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    is_first = np.ones(len(group), dtype=np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    position = np.arange(len(group))
    start = np.maximum.accumulate(np.where(is_first, position, 0))
    count = np.empty(len(group), dtype=np.intp)
    count[order] = position - start
    return count


def _one_of(statuses: Collection[PodStatus]) -> Mask:
    mask = np.zeros(STATUSES, dtype=np.bool_)
    mask[[int(status) for status in statuses]] = True
    return mask
