"""The nodes during a session: what is idle, what is being released, what is promised, and which
node suits a class of pods best.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.tables import Rows, Scores
from scheduler.engine.state.kept_nodes import ClassAtOpen
from scheduler.engine.state.leading_nodes import LeadingNodes

Columns = Rows | slice | list[int]
Places = Sequence[int]

_FEW = 8
"""Up to so many nodes are looked at one by one."""


class Scorer(Protocol):
    """How good each node is for pods of a class."""

    follows_from_use: bool
    """Whether, besides what is fixed, scores follow from what nodes have and what is used there."""

    def __call__(self, pod_class: int, used: Amounts, nodes: Rows) -> Scores:
        """The score of each of these nodes. `used` has resources by nodes."""
        ...

    def fixed(self, pod_class: int, count: int) -> Scores:
        """The part that does not change, for all of `count` nodes."""
        ...


class SessionNodeTable:
    """Amounts are resources by nodes, so that a question about one resource reads one run of
    memory.

    A pod may take room that is idle now and not promised to another: `free` is the smaller of idle
    and what will be idle once released pods are gone and promises kept (`future`).
    """

    def __init__(self, snapshot: Snapshot) -> None:
        nodes = snapshot.nodes
        sums = snapshot.aggregates
        ready = nodes.ready
        self.names = nodes.names
        self.ready = ready
        self.allocatable: Amounts = np.ascontiguousarray(
            np.where(ready[:, None], nodes.allocatable, 0).T
        )
        self.used: Amounts = np.ascontiguousarray(np.where(ready[:, None], sums.node_used, 0).T)
        self.releasing: Amounts = np.ascontiguousarray(
            np.where(ready[:, None], sums.node_releasing, 0).T
        )
        self.promised: Amounts = np.zeros_like(self.used)
        self.touched: list[int] = []  # every node that changed, in order: scores catch up from here
        self.uses = 0  # how often pods were put on nodes or taken off
        self.any_releasing = bool(self.releasing.any())
        self.any_promised = False
        self._future: tuple[int, Amounts] | None = None  # how many changes there were by then

    @property
    def total(self) -> Amounts:
        total: Amounts = self.allocatable.sum(axis=1)
        return total

    def idle(self, nodes: Columns = slice(None)) -> Amounts:
        return self.allocatable[:, nodes] - self.used[:, nodes]

    def future(self, nodes: Columns = slice(None)) -> Amounts:
        return self.idle(nodes) + self.releasing[:, nodes] - self.promised[:, nodes]

    def future_everywhere(self) -> Amounts:
        """The same for all nodes. Not to be changed: it is kept until a node changes."""
        changes = len(self.touched)
        if self._future is None or self._future[0] != changes:
            self._future = (changes, self.future())
        return self._future[1]

    def free(self, nodes: Columns = slice(None)) -> Amounts:
        idle = self.idle(nodes)
        if not self.any_promised:
            return idle
        free: Amounts = np.minimum(idle, idle + self.releasing[:, nodes] - self.promised[:, nodes])
        return free

    def is_over_full(self, dims: Mask) -> bool:
        """Whether any node will have too little of any of these resources."""
        return bool((self.future_everywhere()[dims] < 0).any())

    def use(self, nodes: Places, request: Amounts, sign: int) -> None:
        """A pod of this request runs on each of these nodes (sign 1), or no longer does (-1); a
        node may be named more than once.
        """
        _change(self.used, nodes, request, sign)
        self.uses += 1
        self.touched.extend(nodes)

    def release(self, nodes: Places, request: Amounts, sign: int) -> None:
        """Pods on these nodes will soon be gone."""
        _change(self.releasing, nodes, request, sign)
        self.any_releasing = True
        self.touched.extend(nodes)

    def promise(self, nodes: Places, request: Amounts, sign: int) -> None:
        """Room on these nodes is kept for pods that wait for it."""
        _change(self.promised, nodes, request, sign)
        self.any_promised = True
        self.touched.extend(nodes)


def _change(amounts: Amounts, nodes: Places, request: Amounts, sign: int) -> None:
    if len(nodes) == 1:
        amounts[:, nodes[0]] += request * sign
        return
    different = len(set(nodes))
    if different == 1:
        amounts[:, nodes[0]] += request * (sign * len(nodes))
    elif different == len(nodes):
        amounts[:, nodes] += request[:, None] * sign
    else:
        counts = Counter(nodes)
        amounts[:, list(counts)] += request[:, None] * (np.array(list(counts.values())) * sign)


def _places(nodes: Rows, count: int) -> Columns:
    """To read the columns of these of `count` nodes: all of them need not be picked."""
    if len(nodes) == count:
        return slice(None)
    return nodes


def copies(room: Amounts, request: Amounts) -> Amounts:
    """How many pods of this request each column of `room` takes, at least 0; `request` must ask for
    something.
    """
    first, *others = [(dim, amount) for dim, amount in enumerate(request.tolist()) if amount > 0]
    counts: Amounts = room[first[0]] // first[1]
    for dim, amount in others:
        np.minimum(counts, room[dim] // amount, out=counts)
    return np.maximum(counts, 0, out=counts)


def fits(room: Amounts, request: Amounts) -> Mask:
    """Which columns of `room` take one pod of this request, looking only at what it asks for."""
    dims = request > 0
    fitting: Mask = np.all(room[dims] >= request[dims, None], axis=0)
    return fitting


class NodeScores:
    """One class of pods against all nodes: where it fits now, and how good each place is; catches
    up with what changed.
    """

    def __init__(
        self,
        node_table: SessionNodeTable,
        pod_class: int,
        request: Amounts,
        suitable: Mask,
        scorer: Scorer | None,
        block: Amounts | None = None,
        kept: ClassAtOpen | None = None,
    ) -> None:
        self.node_table = node_table
        self.pod_class = pod_class
        self.request = request
        self.suitable = suitable
        self.scorer = scorer
        self._block = block  # what pods must leave free for gangs with a place in the future
        self._kept = kept  # what earlier sessions found out; not where there is a block
        self._scores: Scores | None = None  # not before they are asked for
        self._copies: Amounts | None = None  # likewise
        self._seen: dict[str, int] = {}  # by what was worked out: how many changes there were
        self._leading_nodes = LeadingNodes()
        self._remembered: dict[tuple[float, ...], float] = {}  # by what a node has and what is used
        # How often pods were put on nodes or taken off, and what scores followed from that
        self._scores_by_use: tuple[int, Scores] = (-1, np.zeros(0))
        self._roomiest = (-1, -1)  # how many changes there were, and the answer
        self._by_resource: tuple[Amounts, Amounts] | None = None  # for which room, and the answer

    def _changed_since(self, what: str) -> Rows:
        """Suitable nodes that changed after `what` was last brought up to date, by number; all of
        them at first.
        """
        touched = self.node_table.touched
        seen = self._seen.get(what)
        self._seen[what] = len(touched)
        if seen is None:
            return np.flatnonzero(self.suitable)
        changed = np.array(sorted(set(touched[seen:])), dtype=np.intp)
        return changed[self.suitable[changed]]

    def _free(self, nodes: Columns) -> Amounts:
        free = self.node_table.free(nodes)
        if self._block is None:
            return free
        return np.minimum(free, self._future(nodes))

    def _future(self, nodes: Columns = slice(None)) -> Amounts:
        future = self.node_table.future(nodes)
        if self._block is None:
            return future
        return future - self._block[:, nodes]

    def _write(self, scores: Scores, nodes: Rows) -> None:
        places = _places(nodes, len(scores))
        scores[nodes] = self._scores_of_fitting(
            nodes, self._free(places), self.node_table.used[:, places]
        )

    def _scores_of_fitting(self, nodes: Rows, free: Amounts, used: Amounts) -> Scores:
        """The score of each of these nodes, -inf where a pod does not fit.

        `free` and `used` have a column for each of them.
        """
        scores = np.full(len(nodes), -np.inf)
        fitting = np.flatnonzero(fits(free, self.request))
        if len(fitting) < len(nodes):
            used = used[:, fitting]
        if self.scorer is None or not len(fitting):
            scores[fitting] = 0.0
        else:
            scores[fitting] = self.scorer(self.pod_class, used, nodes[fitting])
        return scores

    def _scores_with(self, nodes: Rows, used: Amounts) -> Scores:
        """The same if this is used on all nodes, and nothing is promised."""
        places = _places(nodes, used.shape[1])
        used = used[:, places]
        return self._scores_of_fitting(nodes, self.node_table.allocatable[:, places] - used, used)

    def _score(self, nodes: Rows) -> Scores:
        if self.scorer is None or not len(nodes):
            return np.zeros(len(nodes))
        used = self.node_table.used
        if len(nodes) < len(self.suitable):
            used = used[:, nodes]
        return self.scorer(self.pod_class, used, nodes)

    def copies_by_resource(self) -> Amounts:
        """How many pods of the class all suitable nodes will take, by resource, if the others did
        not count. Where pods and victims go one for one the room is as before.
        """
        room = self.node_table.future_everywhere()
        known = self._by_resource
        if known is None or not np.array_equal(known[0], room):
            each = room[:, self.suitable] // np.maximum(self.request, 1)[:, None]
            known = (room, np.maximum(0, each).sum(axis=1))
        self._by_resource = (room, known[1])
        return known[1]

    @cached_property
    def fits_an_empty_node(self) -> bool:
        """Whether any suitable node could hold the pod if it were empty; if not, nobody's going can
        help.
        """
        if self._kept is None:
            return self._fits_an_empty_node()
        return self._kept.fits_an_empty_node(self._fits_an_empty_node)

    def _fits_an_empty_node(self) -> bool:
        return bool((self.suitable & fits(self.node_table.allocatable, self.request)).any())

    @property
    def follow_from_use(self) -> bool:
        """Whether scores stay the same as long as no pod is put on a node or taken off."""
        return self.scorer is None or self.scorer.follows_from_use

    def scores_of(self, nodes: Rows) -> Scores:
        """The score of each of these nodes, whether or not it has room."""
        if self.scorer is None or not self.scorer.follows_from_use:
            return self._score(nodes)
        if self._scores_by_use[0] != self.node_table.uses:
            scores = self._score(np.arange(len(self.suitable)))
            self._scores_by_use = (self.node_table.uses, scores)
        found: Scores = self._scores_by_use[1][nodes]
        return found

    @property
    def by_node(self) -> Scores:
        """Score by node, -inf where the pod does not fit now."""
        if self._scores is None:
            self._scores = self._first_scores()
        seen = self._seen.get("scores")
        if seen != len(self.node_table.touched) and not self._follow_few(self._scores, seen):
            changed = self._changed_since("scores")
            self._write(self._scores, changed)
            self._leading_nodes.follow(self._scores, changed)
        return self._scores

    def _first_scores(self) -> Scores:
        """Those of the beginning of the session, where earlier sessions left them; else none are
        known yet.
        """
        found = self._kept.scores(self._scores_with) if self._kept else None
        if found is None:
            return np.full(len(self.suitable), -np.inf)
        self._seen["scores"] = 0
        return found

    def _follow_few(self, scores: Scores, seen: int | None) -> bool:
        """Brings the scores up to date where only a few nodes changed, one by one."""
        touched = self.node_table.touched
        if seen is None or not self._may_remember:
            return False
        nodes = set(touched[seen:])
        if len(nodes) > _FEW:
            return False
        self._seen["scores"] = len(touched)
        changed = [node for node in nodes if self.suitable[node]]
        for node in changed:
            scores[node] = self._remembered_score(node)
        if self._leading_nodes.is_in_use and changed:
            self._leading_nodes.follow(scores, np.array(sorted(changed), dtype=np.intp))
        return True

    @property
    def _may_remember(self) -> bool:
        """Whether what is idle is free, so that room and score follow from what is used alone."""
        if self.scorer is None or not self.scorer.follows_from_use:
            return False
        return self._block is None and not self.node_table.any_promised

    def _remembered_score(self, node: int) -> float:
        """The score of one node, -inf where the pod does not fit now.

        After a pod is placed only its node has another score, and most often one that another node
        had before.
        """
        whole = self.node_table.allocatable[:, node].tolist()
        used = self.node_table.used[:, node].tolist()
        key = (*whole, *used, self._fixed_scores.item(node))
        score = self._remembered.get(key)
        if score is None:
            score = -np.inf
            if all(used[dim] + amount <= whole[dim] for dim, amount in self._asked):
                score = float(self._score(np.array([node]))[0])
            self._remembered[key] = score
        return score

    @cached_property
    def _asked(self) -> list[tuple[int, int]]:
        """Column and amount of what a pod asks for."""
        amounts = enumerate(self.request.tolist())
        return [(dim, amount) for dim, amount in amounts if amount > 0]

    @cached_property
    def _fixed_scores(self) -> Scores:
        assert self.scorer is not None  # asked before
        return self.scorer.fixed(self.pod_class, len(self.suitable))

    def best_node(self) -> int:
        """The best node with room now, the first by name among equals; -1 if there is none."""
        scores = self.by_node
        if not len(scores):
            return -1
        node = int(scores.argmax())
        if scores[node] > -np.inf:
            return node
        return -1

    def best_node_among(self, nodes: Mask) -> int:
        """The best of these nodes with room now; -1 if there is none."""
        scores = np.where(nodes, self.by_node, -np.inf)
        node = int(scores.argmax()) if len(scores) else -1
        if node >= 0 and scores[node] > -np.inf:
            return node
        return -1

    def best_node_later(self) -> int:
        """The best node that will have room once released pods are gone; -1 if there is none."""
        if not self.node_table.any_releasing or not len(self.suitable):
            return -1
        nodes = np.flatnonzero(self._suitable_later() & fits(self._future(), self.request))
        if not len(nodes):
            return -1
        return int(nodes[self._score(nodes).argmax()])

    def _suitable_later(self) -> Mask:
        return self.suitable

    def nodes_for(self, wanted: int) -> list[int]:
        """A node for each of `wanted` pods, fewer if there is no room: exactly as if they were
        placed one at a time, best node first.
        """
        if wanted == 1:
            node = self.best_node()
            if not node >= 0:
                return []
            return [node]
        nodes = self._leading_nodes.best(
            self.by_node, wanted
        )  # with as many pods to place, no other node can have its turn
        if not len(nodes):
            return []
        rooms = np.minimum(copies(self._free(nodes), self.request), wanted)
        if self.scorer is None:
            return np.repeat(nodes, rooms)[:wanted].tolist()  # type: ignore[no-any-return]
        return _greedy(nodes.tolist(), rooms.tolist(), self._scores_ahead(nodes, rooms), wanted)

    def count_places(self, most: int) -> int:
        """For how many of `most` pods `nodes_for` finds a node."""
        nodes = np.flatnonzero(self.by_node > -np.inf)
        return min(most, int(copies(self._free(nodes), self.request).sum()))

    def _scores_ahead(self, nodes: Rows, rooms: Amounts) -> list[float]:
        """For each node the score of its first, second, ... pod, one node after the other."""
        owner = np.repeat(np.arange(len(nodes)), rooms)
        earlier = np.arange(len(owner)) - np.repeat(np.cumsum(rooms) - rooms, rooms)
        used = self.node_table.used[:, nodes[owner]] + self.request[:, None] * earlier
        scores: list[float] = (
            self.scorer(self.pod_class, used, nodes[owner]).tolist() if self.scorer else []
        )
        return scores

    def excluded_with_room(self) -> tuple[tuple[str, int], ...]:
        """What rules between pods have against how many nodes: nothing, where there are none."""
        return ()

    def total_copies(self) -> int:
        """How many pods of the class all nodes together take, counting room being released."""
        if self._copies is None:
            self._copies = np.zeros(len(self.suitable), dtype=np.int64)
        if self._seen.get("copies") != len(self.node_table.touched):
            changed = self._changed_since("copies")
            self._copies[changed] = copies(self._future(changed), self.request)
        return int(self._copies.sum())

    def roomiest_node(self) -> int:
        """The suitable node that comes closest to holding a pod of the class; -1 without any.

        Among equals one that could hold it if it were empty, then the first by name.
        """
        now = len(self.node_table.touched)
        if self._roomiest[0] != now:
            self._roomiest = (now, self._find_roomiest())
        return self._roomiest[1]

    def _find_roomiest(self) -> int:
        nodes = np.flatnonzero(self.suitable)
        if not len(nodes):
            return -1
        free = self.node_table.free(nodes)
        covered = np.full(len(nodes), np.inf)
        for dim in np.flatnonzero(self.request > 0):
            covered = np.minimum(covered, free[dim] / self.request[dim])
        closest = nodes[covered == covered.max()]
        return int(closest[fits(self.node_table.allocatable[:, closest], self.request).argmax()])


def _greedy(nodes: list[int], rooms: list[int], scores: list[float], wanted: int) -> list[int]:
    """Takes the best next score among all nodes, again and again; the first node among equals."""
    starts = [0]
    for room in rooms:
        starts.append(starts[-1] + room)
    heap = [
        (-scores[start], node, start, end)
        for node, start, end in zip(nodes, starts, starts[1:], strict=False)
        if end > start
    ]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < wanted:
        _, node, position, end = heap[0]
        chosen.append(node)
        if position + 1 < end:
            heapq.heapreplace(heap, (-scores[position + 1], node, position + 1, end))
        else:
            heapq.heappop(heap)
    return chosen
