"""The lifecycle cases: where they are, how their objects become values, and which of them our
decisions override.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.admission.facts import Facts
from scheduler.admission.reading.queue import read_queue
from scheduler.domain.queues import QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import parse_quantity

FOLDER = Path(__file__).parent / "lifecycle"

NO_DESERVED = "a guarantee needs no deserved"
# Decided otherwise: the case by the end of its source or its name, and why. Each has a test that
# says what happens instead.
OVERRIDDEN = {
    (
        "Normal Case Queue With Open State Can Be Deleted (Until close queue in kubectl supported)"
    ): "only a Closed queue is deleted",
    "Delete queue without child queue": "only a Closed queue is deleted",
    "Closed + CloseQueue, 1 podgroups": "a queue with podgroups is Closing",
    "Closed + SuspendQueue, 1 podgroups": "a queue with podgroups is Closing",
    "Closed + ResumeQueue, 1 podgroups": "a queue with podgroups is Closing",
    "Should reject queue creation with only guarantee resource (deserved required)": NO_DESERVED,
    "Should reject queue creation with guarantee resource type not in deserved": NO_DESERVED,
    "Queue with negative guarantee should be rejected": f"{NO_DESERVED}: only the first is given",
    "update of a Closing queue": "the state is checked only when the request sets it",
    "podgroup into a non-leaf queue": "only leaves take work, whatever its kind",
}

# Another system's internals, or pairs that cannot happen: not run, and here is why.
INTERNALS = {
    "controller.event": (
        "watches and work queues of another system; here a change of a podgroup refreshes the "
        "states in its transaction"
    ),
    "controller.process_next": "the work queue of another system",
}

COMMAND_LINE = ("cli", "cli.describe")


@dataclass(frozen=True)
class Case:
    file: str
    data: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.data["name"])

    @property
    def id(self) -> str:
        return f"{self.file}: {self.name}"

    @property
    def operation(self) -> str:
        return str(self.data["when"]["operation"])

    @property
    def given(self) -> dict[str, Any]:
        return dict(self.data["given"])

    @property
    def when(self) -> dict[str, Any]:
        return dict(self.data["when"])

    @property
    def expect(self) -> dict[str, Any]:
        return dict(self.data["expect"])

    @property
    def is_overridden(self) -> bool:
        return self.name in OVERRIDDEN

    @property
    def can_not_happen(self) -> bool:
        """The handler of one state is given a queue that is in another."""
        handler = self.given.get("handler_state")
        return handler is not None and handler != self.given["queue"]["status"]["state"]

    @property
    def is_left_out(self) -> bool:
        return self.operation in INTERNALS or self.can_not_happen


def all_cases() -> list[Case]:
    files = sorted(FOLDER.rglob("*.json"))
    return [
        Case(str(file.relative_to(FOLDER).with_suffix("")), case)
        for file in files
        for case in json.loads(file.read_text())
    ]


def queue_of(manifest: dict[str, Any]) -> QueueSpec:
    """A stored queue. Whatever a check would say about its name is not the point of a case."""
    reading = read_queue(manifest, imported=True)
    assert reading.value is not None, reading.violations
    return reading.value.spec


def tree_of(manifests: list[dict[str, Any]]) -> QueueTree:
    return QueueTree(queue_of(manifest) for manifest in manifests)


def facts_of(given: dict[str, Any]) -> Facts:
    config = given.get("config") or {}
    queues = given.get("queues") or []
    return Facts(
        states={
            queue["metadata"]["name"]: state for queue in queues if (state := stored_state(queue))
        },
        allocated_pods={queue["metadata"]["name"]: _allocated_pods(queue) for queue in queues},
        namespaces={
            namespace["name"]: namespace.get("annotations", {})
            for namespace in given.get("namespaces") or []
        },
        max_depth=config.get("max_queue_depth", 5),
        protects_root=config.get("root_queue_protection", True),
        scheduler_names=frozenset(config.get("scheduler_names", ["volcano"])),
    )


def stored_state(queue: dict[str, Any]) -> QueueState | None:
    """A queue without a status is Open; one whose state is written down as empty has none yet."""
    status = queue.get("status") or {}
    if "state" not in status:
        return QueueState.OPEN
    return QueueState(status["state"]) if status["state"] else None


def _allocated_pods(queue: dict[str, Any]) -> int:
    return parse_quantity(
        "pods", ((queue.get("status") or {}).get("allocated") or {}).get("pods", 0)
    )
