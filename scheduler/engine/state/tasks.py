"""The pods of each gang in task order, and which of them have no place yet."""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from scheduler.domain.tables import Ints, Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.state.gang import Gang

if TYPE_CHECKING:
    from scheduler.engine.session import Session

TaskKey = tuple[Any, ...]

# In the place of a class of pods:
NO_CLASS: Final = -1  # no pod waits
MIXED: Final = -2  # pods of more than one class wait

# Members of an enum are slow to look up, and this one is looked up for every pod.
_PENDING = int(PodStatus.PENDING)


# The same pods are put in order session after session.
@lru_cache(maxsize=2**17)
def ordinal(pod_key: str) -> int:
    """The number at the end of a name of three or more parts (`job-role-7`); -1 without one."""
    head, _, tail = pod_key.rpartition("-")
    has_three_parts = head.rfind("-") > head.rfind("/")
    if tail.isdecimal() and has_three_parts:
        return int(tail)
    return -1


class Tasks:
    """What a session asks about the pods of a gang."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._snapshot = session.snapshot
        self._keys: dict[int, TaskKey] = {}
        self._pending: dict[int, list[int]] = {}
        # By podgroup, and how many changes of gangs there were by then
        self._unplaced: dict[int, tuple[int, list[int]]] = {}
        self._runs: dict[int, tuple[int, list[tuple[int, int]]]] = {}

    def pods_of(self, row: int) -> Rows:
        """All pods of a podgroup."""
        order, starts = self._pods_by_group
        return order[starts[row] : starts[row + 1]]

    @cached_property
    def _pods_by_group(self) -> tuple[Rows, Rows]:
        """All pods, those of a podgroup side by side; and where each podgroup begins."""
        group = self._snapshot.pods.group
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(len(self._snapshot.groups) + 1))
        return order, starts

    # Pods without a place

    def waiting_classes(self) -> Rows:
        """By podgroup, the class of its pods without a place, as things are now."""
        waiting = np.flatnonzero(self._session.status == _PENDING)
        group = self._snapshot.pods.group[waiting]
        pod_class = self._snapshot.pods.pod_class[waiting]
        pod_classes = np.full(len(self._snapshot.groups), NO_CLASS, dtype=np.intp)
        pod_classes[group] = pod_class
        pod_classes[group[pod_classes[group] != pod_class]] = MIXED
        return pod_classes

    def pending_pods(self, gang: Gang) -> list[int]:
        """Its pods without a place, in task order. Pods with a held place are included."""
        members = self._pending_at_open(gang)
        codes = self._session.status[members].tolist()
        return [
            pod
            for pod, code in zip(members, codes, strict=True)
            if code == _PENDING or pod in gang.held
        ]

    def unplaced_pods(self, gang: Gang) -> list[int]:
        """Its pods without a place or a promise of one, in task order."""
        members = self._pending_at_open(gang)
        if len(members) == 1:
            if self._session.status[members[0]] == _PENDING:
                return members.copy()
            return []
        changes = len(self._session.touched_gangs)
        found = self._unplaced.get(gang.row)
        if found is None or found[0] != changes:
            found = self._unplaced[gang.row] = (changes, self._still_pending(members))
        return found[1].copy()

    def _still_pending(self, members: list[int]) -> list[int]:
        codes = self._session.status[members].tolist()
        return [pod for pod, code in zip(members, codes, strict=True) if code == _PENDING]

    def missing_pods(self, gang: Gang, *, at_least: int = 0) -> list[int]:
        """The pods that the gang still needs a place for, in task order."""
        return self.unplaced_pods(gang)[: max(at_least, gang.missing)]

    def missing_runs(self, gang: Gang) -> list[tuple[int, int]]:
        """The same as runs of alike pods: their class, and how many there are. Not to be changed:
        it is kept until gangs change.
        """
        changes = len(self._session.touched_gangs)
        found = self._runs.get(gang.row)
        if found is None or found[0] != changes:
            found = self._runs[gang.row] = (changes, self._find_runs(self.missing_pods(gang)))
        return found[1]

    def _find_runs(self, pods: list[int]) -> list[tuple[int, int]]:
        if len(pods) == 1:
            return [(int(self._session.pod_classes[pods[0]]), 1)]
        pod_classes = self._session.pod_classes[pods].tolist() if pods else []
        return [(pod_class, len(list(run))) for pod_class, run in groupby(pod_classes)]

    def _pending_at_open(self, gang: Gang) -> list[int]:
        """Its pods without a place when the session opened, in task order."""
        found = self._pending.get(gang.row)
        if found is None:
            found = self._pending[gang.row] = self._sorted_pending(gang.row)
        return found

    def _sorted_pending(self, row: int) -> list[int]:
        order, starts = self._pending_by_group
        pods = order[starts[row] : starts[row + 1]]
        members: list[int] = pods.tolist()
        if len(members) > 1:
            self._keys.update(zip(members, self.pod_keys(pods), strict=True))
            members.sort(key=self._keys.__getitem__)
        return members

    @cached_property
    def _pending_by_group(self) -> tuple[Rows, list[int]]:
        """The same for all podgroups, in no order; and where each podgroup begins."""
        table = self._snapshot.pods
        rows = np.flatnonzero(table.status == _PENDING)
        group = table.group[rows]
        counts = np.bincount(group, minlength=len(self._snapshot.groups))
        return rows[np.argsort(group, kind="stable")], [0, *np.cumsum(counts).tolist()]

    # Task order

    def pod_key(self, pod: int) -> TaskKey:
        """Task order: plugins, then the number in the name, creation time, name."""
        found = self._keys.get(pod)
        if found is None:
            table = self._snapshot.pods
            name = table.key[pod]
            rank = self._session.task_key(int(table.pod_class[pod]))
            found = self._keys[pod] = (rank, ordinal(name), float(table.created[pod]), name)
        return found

    def pod_keys(self, pods: Rows) -> list[TaskKey]:
        """The task order of many pods at once."""
        table = self._snapshot.pods
        names = [table.key[pod] for pod in pods.tolist()]
        classes = table.pod_class[pods].tolist()
        ranks = {pod_class: self._session.task_key(pod_class) for pod_class in set(classes)}
        columns = zip(classes, table.created[pods].tolist(), names, strict=True)
        return [(ranks[number], ordinal(name), created, name) for number, created, name in columns]

    def in_order(self, pods: Rows) -> Rows:
        """These pods in task order."""
        table = self._snapshot.pods
        names = [table.key[pod] for pod in pods.tolist()]
        ordinals = np.fromiter(map(ordinal, names), dtype=np.int64, count=len(names))
        created = table.created[pods]
        rank = self._rank_numbers(table.pod_class[pods])
        order = np.lexsort((created, ordinals, rank))
        columns = np.stack([rank, ordinals, created])[:, order]
        is_tied = (columns[:, 1:] == columns[:, :-1]).all(axis=0)
        if is_tied.any():
            keys = self.pod_keys(pods)
            order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)
        ordered: Rows = pods[order]
        return ordered

    def _rank_numbers(self, pod_classes: Ints) -> Rows:
        """For each of these classes the place of its rank among the ranks of all."""
        classes, which = np.unique(pod_classes, return_inverse=True)
        ranks = [self._session.task_key(pod_class) for pod_class in classes.tolist()]
        places = {rank: place for place, rank in enumerate(sorted(set(ranks)))}
        numbers = np.array([places[rank] for rank in ranks], dtype=np.int64)
        found: Rows = numbers[which]
        return found

    # Pods that ask for nothing

    @cached_property
    def best_effort(self) -> list[bool]:
        """By class: asks for nothing but a place."""
        flags: list[bool] = self._snapshot.classes.best_effort.tolist()
        return flags

    @cached_property
    def any_best_effort(self) -> bool:
        return any(self.best_effort)

    def asks_for_nothing(self, pod: int) -> bool:
        return self.any_best_effort and self.best_effort[int(self._snapshot.pods.pod_class[pod])]

    def asking_for_something(self, pods: list[int]) -> list[int]:
        """Those of these pods that do, in the same order."""
        if not self.any_best_effort:
            return pods
        return [pod for pod in pods if not self.asks_for_nothing(pod)]
