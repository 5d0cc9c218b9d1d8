"""Finding places for the pods of one gang: runs of alike pods, best node first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler.engine.plugins.gang import roles_count
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.nodes import copies
from scheduler.engine.statement import Statement

Allowance = Callable[[int, int, int], int]
"""(queue, class, wanted) -> how many pods of the class the queue may have."""


class TaskLine:
    """The pods of a gang that still want a place, in task order, as runs of one class."""

    def __init__(self, session: Session, pods: Sequence[int]) -> None:
        if session.pod_rules is not None:
            pods = session.pod_rules.company_last(pods)
        self.runs: list[tuple[int, list[int]]] = []
        for pod, pod_class in zip(
            pods, session.pod_classes[pods].tolist() if pods else (), strict=True
        ):
            if not self.runs or self.runs[-1][0] != pod_class:
                self.runs.append((pod_class, []))
            self.runs[-1][1].append(pod)
        self.runs.reverse()

    def __bool__(self) -> bool:
        return bool(self.runs)

    def __len__(self) -> int:
        return sum(len(pods) for _, pods in self.runs)

    def peek(self) -> tuple[int, list[int]]:
        """The first run: its class and its pods."""
        return self.runs[-1]

    def drop(self) -> None:
        """The first run is not tried any more."""
        self.runs.pop()

    def take(self, count: int) -> list[int]:
        """The first pods of the first run, taken off the line."""
        pod_class, pods = self.runs.pop()
        if len(pods) > count:
            self.runs.append((pod_class, pods[count:]))
        return pods[:count]


class Placement:
    """One turn of one gang: pods are placed until it is ready, and no further."""

    def __init__(
        self,
        session: Session,
        statement: Statement,
        gang: Gang,
        line: TaskLine,
        allowance: Allowance,
        *,
        later: bool = True,
    ) -> None:
        self.session = session
        self.statement = statement
        self.gang = gang
        self.line = line
        self.allowance = allowance
        self.later = later  # whether room that is being released will do
        self.borrowed = False
        self.failed_roles: set[int] = set()

    def run(self) -> None:
        """Places runs of alike pods; where the queue or the nodes have no room for a class, the
        next is tried, if that can help.
        """
        gang = self.gang
        session = self.session
        while self.line:
            pod_class, pods = self.line.peek()
            wanted = min(len(pods), self._needed())
            allowed = self.allowance(gang.queue, pod_class, wanted)
            if allowed <= 0 or session.role[pod_class] in self.failed_roles:
                gang.failed = gang.failed or ("quota" if allowed <= 0 else "room")
                self.line.drop()
                continue
            placed = self._place(pod_class, pods[:allowed])
            self._advance(pod_class, placed, allowed, wanted)
            if placed < allowed and not self._may_continue():
                return
            if placed and session.job_ready(gang):
                return

    def _advance(self, pod_class: int, placed: int, allowed: int, wanted: int) -> None:
        if placed:
            self.line.take(placed)
        if (
            placed < wanted
            and self.line
            and self.line.peek()[0] == pod_class
            and (placed < allowed or allowed < wanted)
        ):
            self.line.drop()
        if allowed < wanted:
            self.gang.failed = self.gang.failed or "quota"
        if placed < allowed:
            self.gang.failed = self.gang.failed or "room"
            if self.session.snapshot.classes.roles[self.session.role[pod_class]]:
                self.failed_roles.add(self.session.role[pod_class])

    def _needed(self) -> int:
        """A gang cannot be ready before it has its minimum, so that many are placed at one go;
        after that, one at a time.
        """
        if not self.session.gang_decides:
            return 1
        return max(1, self.gang.min_member - self.gang.ready)

    def _place(self, pod_class: int, pods: Sequence[int]) -> int:
        """As many of these alike pods as there is room for, each on the best node at its time;
        answers how many.
        """
        if self.session.is_bound_by_rules(pod_class):
            return self._place_one_by_one(pod_class, pods)
        nodes = self.session.node_scores_for(self.gang, pod_class).nodes_for(len(pods))
        placed = len(nodes)
        if placed:
            self.statement.allocate(
                self.gang, pod_class, pods[:placed], nodes, borrowed=self.borrowed
            )
        return placed + (
            self._place_later(pod_class, pods[placed:]) if self.later and placed < len(pods) else 0
        )

    def _place_one_by_one(self, pod_class: int, pods: Sequence[int]) -> int:
        """Where rules between pods bind the class, each pod decides where the next may go."""
        scores = self.session.node_scores_for(self.gang, pod_class)
        for placed, pod in enumerate(pods):
            nodes = scores.nodes_for(1)
            if nodes:
                self.statement.allocate(self.gang, pod_class, [pod], nodes, borrowed=self.borrowed)
                continue
            node = scores.best_node_later() if self.later else -1
            if node < 0:
                self.gang.blocked = scores.excluded_with_room()
                return placed
            self.statement.pipeline(self.gang, pod_class, [pod], [node])
        return len(pods)

    def _place_later(self, pod_class: int, pods: Sequence[int]) -> int:
        """The rest waits for room that is being released."""
        node_scores = self.session.node_scores_for(self.gang, pod_class)
        placed = 0
        node_table = self.session.node_table
        while placed < len(pods):
            node = node_scores.best_node_later()
            if node < 0:
                break
            room = int(copies(node_table.future([node]), self.session.request[pod_class])[0])
            count = min(room, len(pods) - placed)
            self.statement.pipeline(
                self.gang, pod_class, pods[placed : placed + count], [node] * count
            )
            placed += count
        return placed

    def _may_continue(self) -> bool:
        """Whether other pods of the gang could still make its minimum after some did not fit."""
        gang = self.gang
        if gang.min_member == gang.tasks:
            return False
        if gang.roles and not roles_count(gang):
            left = sum(
                len(pods)
                for pod_class, pods in self.line.runs
                if self.session.role[pod_class] not in self.failed_roles
            )
            return gang.ready + left >= gang.min_member
        return not any(
            role in self.failed_roles and counts.ready < counts.minimum
            for role, counts in gang.roles.items()
        )
