"""What admission must know beside the proposed object and the tree.

These are states, what is in the queues, the cluster, and the limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.domain.queues import QueueState
from scheduler.domain.resources import Resources

QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits: jobs that have not started, and pods without a node.

    Podgroups from outside count as jobs.
    """

    jobs: int = 0
    pods: int = 0


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """The most that may wait, and the most pods of one job; 0 is no limit."""

    pods_per_job: int = 100_000
    jobs_per_queue: int = 10_000
    pods_per_queue: int = 100_000
    jobs_per_user: int = 10_000
    pods_per_user: int = 100_000


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The limits that one queue names, and what waits in it and below it. None is no limit.

    `namespaces` are those whose work it takes; none named says nothing.
    """

    queue: str
    key: int = 0  # of its row: what those take turns at who put work below it
    max_waiting_jobs: int | None = None
    max_waiting_pods: int | None = None
    max_waiting_jobs_per_user: int | None = None
    max_waiting_pods_per_user: int | None = None
    max_pods_per_job: int | None = None
    max_run_seconds: int | None = None
    namespaces: tuple[str, ...] = ()
    waiting: Backlog = Backlog()
    waiting_of_user: Backlog = Backlog()

    @property
    def counts_all(self) -> bool:
        return self.max_waiting_jobs is not None or self.max_waiting_pods is not None

    @property
    def counts_user(self) -> bool:
        of_user = (self.max_waiting_jobs_per_user, self.max_waiting_pods_per_user)
        return of_user != (None, None)

    @property
    def counts(self) -> bool:
        """Whether one of them is about what waits."""
        return self.counts_all or self.counts_user


@dataclass(frozen=True, slots=True)
class Facts:
    """The cluster as admission sees it.

    `user` is who submits, "" where nobody is named; what waits of theirs is `user_backlog`.
    `states` are the derived ones; a queue without one is not taken for Open. `total` is None while
    no node is known. `namespaces` holds the annotations of each namespace. `queue_limits` are by
    queue: its own, and those of the queues above it, the nearest first. `run_seconds` says by queue
    how long each of its running jobs has run.
    """

    states: Mapping[str, QueueState] = field(default_factory=dict)
    live_podgroups: Mapping[str, int] = field(default_factory=dict)
    allocated_pods: Mapping[str, int] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    total: Resources | None = None
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    max_depth: int = 5
    protects_root: bool = True
    reads_hierarchy_annotations: bool = (
        True  # as a cluster with Volcano's own scheduler may; this one does not
    )
    scheduler_names: frozenset[str] = frozenset({"volcano", "fumarole"})
    limits: WorkLimits = WorkLimits()
    queue_backlogs: Mapping[str, Backlog] = field(default_factory=dict)
    queue_limits: Mapping[str, tuple[QueueLimits, ...]] = field(default_factory=dict)
    run_seconds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    user: str = ""
    user_backlog: Backlog = Backlog()

    def queue_of_namespace(self, namespace: str) -> str:
        """The queue for podgroups of the namespace that name none; "" where it sets none."""
        return self.namespaces.get(namespace, {}).get(QUEUE_ANNOTATION, "")
