"""What admission must know beside the proposed object and the tree.

These are states, what is in the queues, the cluster, and the limits.
"""

from __future__ import annotations

from collections.abc import Mapping
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
class Facts:
    """The cluster as admission sees it.

    `user` is who submits, "" where nobody is named; what waits of theirs is `user_backlog`.
    `states` are the derived ones; a queue without one is not taken for Open. `total` is None while
    no node is known. `namespaces` holds the annotations of each namespace.
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
    user: str = ""
    user_backlog: Backlog = Backlog()

    def queue_of_namespace(self, namespace: str) -> str:
        """The queue for podgroups of the namespace that name none; "" where it sets none."""
        return self.namespaces.get(namespace, {}).get(QUEUE_ANNOTATION, "")
