"""Change sets for tests, and the tree as an export has it."""

from __future__ import annotations

from typing import Any

import yaml

from scheduler.admission.reading.queue import queue_manifest
from scheduler.models import Node, Queue
from scheduler.selectors.change_sets.objects import policy_text_now
from scheduler.selectors.files.manifests import stored_node
from scheduler.selectors.queues.facts import spec_of
from scheduler.services.demo.setup import ensure_builtin_objects
from scheduler.services.queues.states import refresh_states
from tests.dashboard.work import people
from tests.worlds import node, queue


def quiet_cluster() -> None:
    """The queues and people of `small_cluster`, and nobody at work."""
    ensure_builtin_objects()
    node("n1", cpu="16", memory="64Gi")
    queue("research", deserved={"cpu": "12"})
    queue("vision", "research", deserved={"cpu": "8"}, capability={"cpu": "12"})
    queue("language", "research", deserved={"cpu": "4"})
    queue("batch", deserved={"cpu": "4"})
    refresh_states()
    people()


def edit(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "Queue", "metadata": {"name": name}, "spec": spec}


def gone(kind: str, name: str) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name}, "$patch": "delete"}


def machine(name: str, cpu: str) -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


def policy(text: str) -> dict[str, Any]:
    return {"kind": "Policy", "spec": {"policy": text}}


def exported() -> str:
    """Everything that a change set can change, as text."""
    queues = Queue.objects.select_related("parent").order_by("name")
    documents: list[Any] = [queue_manifest(spec_of(queue)) for queue in queues]
    documents += [stored_node(node) for node in Node.objects.order_by("name")]
    return yaml.safe_dump_all(documents, sort_keys=False) + policy_text_now()
