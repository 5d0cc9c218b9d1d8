"""Finding places for the pods of one job: runs of alike pods, best node first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler.engine.plugins.gang import roles_count
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Job
from scheduler.engine.state.nodes import copies
from scheduler.engine.statement import Statement

Allowance = Callable[[int, int, int], int]
"""(queue, class, wanted) -> how many pods of the class the queue may have."""


class TaskLine:
    """The pods of a job that still want a place, in task order, as runs of one class."""

    def __init__(self, session: Session, pods: Sequence[int]) -> None:
        self.runs: list[tuple[int, list[int]]] = []
        for pod, kind in zip(pods, session.kinds[pods].tolist() if pods else (), strict=True):
            if not self.runs or self.runs[-1][0] != kind:
                self.runs.append((kind, []))
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
        kind, pods = self.runs.pop()
        if len(pods) > count:
            self.runs.append((kind, pods[count:]))
        return pods[:count]


class Placement:
    """One turn of one job: pods are placed until it is ready, and no further."""

    def __init__(
        self,
        session: Session,
        statement: Statement,
        job: Job,
        line: TaskLine,
        allowance: Allowance,
        *,
        later: bool = True,
    ) -> None:
        self.session, self.statement, self.job, self.line, self.allowance = (
            session,
            statement,
            job,
            line,
            allowance,
        )
        self.later = later  # whether room that is being released will do
        self.borrowed = False
        self.failed_roles: set[int] = set()

    def run(self) -> None:
        """Places runs of alike pods; where the queue or the nodes have no room for a class, the next is tried, if that can help."""
        job, session = self.job, self.session
        while self.line:
            kind, pods = self.line.peek()
            wanted = min(len(pods), self._needed())
            allowed = self.allowance(job.queue, kind, wanted)
            if allowed <= 0 or session.role[kind] in self.failed_roles:
                job.failed = job.failed or ("quota" if allowed <= 0 else "room")
                self.line.drop()
                continue
            placed = self._place(kind, pods[:allowed])
            self._advance(kind, placed, allowed, wanted)
            if placed < allowed and not self._may_continue():
                return
            if placed and session.job_ready(job):
                return

    def _advance(self, kind: int, placed: int, allowed: int, wanted: int) -> None:
        if placed:
            self.line.take(placed)
        if (
            placed < wanted
            and self.line
            and self.line.peek()[0] == kind
            and (placed < allowed or allowed < wanted)
        ):
            self.line.drop()
        if allowed < wanted:
            self.job.failed = self.job.failed or "quota"
        if placed < allowed:
            self.job.failed = self.job.failed or "room"
            if self.session.snapshot.classes.roles[self.session.role[kind]]:
                self.failed_roles.add(self.session.role[kind])

    def _needed(self) -> int:
        """A job can not be ready before its gang is whole, so that many are placed at one go; after that, one at a time."""
        if not self.session.gang_decides:
            return 1
        return max(1, self.job.min_member - self.job.ready)

    def _place(self, kind: int, pods: Sequence[int]) -> int:
        """As many of these alike pods as there is room for, each on the best node at its time; answers how many."""
        nodes = self.session.board_for(self.job, kind).places(len(pods))
        placed = len(nodes)
        if placed:
            self.statement.allocate(self.job, kind, pods[:placed], nodes, borrowed=self.borrowed)
        return placed + (
            self._place_later(kind, pods[placed:]) if self.later and placed < len(pods) else 0
        )

    def _place_later(self, kind: int, pods: Sequence[int]) -> int:
        """The rest waits for room that is being released."""
        board, placed, floor = self.session.board_for(self.job, kind), 0, self.session.floor
        while placed < len(pods):
            node = board.best_later()
            if node < 0:
                break
            room = int(copies(floor.future([node]), self.session.request[kind])[0])
            count = min(room, len(pods) - placed)
            self.statement.pipeline(self.job, kind, pods[placed : placed + count], [node] * count)
            placed += count
        return placed

    def _may_continue(self) -> bool:
        """Whether other pods of the job could still make its gang after some did not fit."""
        job = self.job
        if job.min_member == job.tasks:
            return False
        if job.roles and not roles_count(job):
            left = sum(
                len(pods)
                for kind, pods in self.line.runs
                if self.session.role[kind] not in self.failed_roles
            )
            return job.ready + left >= job.min_member
        return not any(
            role in self.failed_roles and counts.ready < counts.minimum
            for role, counts in job.roles.items()
        )
