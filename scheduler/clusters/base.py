"""What the scheduler asks of a cluster: tell me what happened, run this pod there, stop that pod.

Nothing else. `docs/how-to/add-a-cluster.md` shows how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class Reported(StrEnum):
    """What a cluster can say of a pod."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    GONE = "Gone"  # it was stopped, or its machine was lost: nothing is left of it


@dataclass(frozen=True, slots=True)
class PodReport:
    pod_id: int
    phase: Reported
    exit_code: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class BindRequest:
    """Run this pod on that node.

    `template` is what the cluster needs to run it (image, command, simulated duration).
    """

    pod_id: int
    uid: str
    name: str
    node: str
    template: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EvictRequest:
    pod_id: int
    name: str
    reason: str = ""
    grace_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one request.

    Asking twice is harmless: the second answer is as good as the first.
    """

    pod_id: int
    error: str = ""

    @property
    def accepted(self) -> bool:
        return not self.error


class Cluster(Protocol):
    """Three methods.

    Asking twice must be as good as asking once: whoever asks may die before it has written the
    answer down.
    """

    def observe(self) -> Sequence[PodReport]:
        """What happened since the last call, oldest first.

        A report may come again after a crash; it must then be the same.
        """

    def bind(self, requests: Sequence[BindRequest]) -> Sequence[Answer]:
        """One answer a request, in the same order. A pod that is there already is accepted."""

    def evict(self, requests: Sequence[EvictRequest]) -> Sequence[Answer]:
        """The same.

        `observe` tells when a pod is really gone; of one that was never there it tells so too.
        """
