"""The objects that a change set is about, as they are now."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from scheduler.admission.reading.cluster import read_node
from scheduler.admission.reading.queue import queue_manifest
from scheduler.domain.change_sets import (
    NODE,
    POLICY,
    POLICY_TEXT,
    QUEUE,
    THE_POLICY,
    ChangeItem,
    Crossing,
    Manifest,
    crossing_of,
)
from scheduler.domain.resources import Resources, total
from scheduler.models import ClusterState, Node, Queue
from scheduler.scenarios.policies import default_policy_text
from scheduler.selectors.files.manifests import stored_node
from scheduler.selectors.queues.facts import spec_of

Key = tuple[str, str]


def manifests_now(keys: Collection[Key]) -> dict[Key, Manifest]:
    """Those that exist, by kind and name."""
    found: dict[Key, Manifest] = {}
    queues = _names_of(QUEUE, keys)
    if queues:
        for queue in Queue.objects.select_related("parent").filter(name__in=queues):
            found[QUEUE, queue.name] = queue_manifest(spec_of(queue))
    nodes = _names_of(NODE, keys)
    if nodes:
        for node in Node.objects.filter(name__in=nodes):
            found[NODE, node.name] = stored_node(node)
    if (POLICY, THE_POLICY) in keys:
        found[POLICY, THE_POLICY] = {POLICY_TEXT: policy_text_now()}
    return found


def _names_of(kind: str, keys: Iterable[Key]) -> list[str]:
    return sorted(name for other, name in keys if other == kind)


def policy_text_now() -> str:
    state = ClusterState.objects.select_related("policy").get(pk=1)
    if state.policy is None:
        return default_policy_text()
    return state.policy.text


def total_after(items: Iterable[ChangeItem], lost: Iterable[str] = ()) -> Resources | None:
    """What all ready nodes but the lost ones would have; None where there would be none."""
    room: dict[str, Resources] = {}
    for name, amounts in Node.objects.filter(ready=True).values_list("name", "allocatable"):
        room[name] = amounts
    for item in items:
        if item.kind == NODE:
            room.pop(item.name, None)
            if item.wanted is not None:
                node = read_node(item.wanted).value
                if node is not None and node.ready:
                    room[item.name] = node.allocatable
    for name in lost:
        room.pop(name, None)
    if room:
        return total(room.values())
    return None


def crossings_of(items: Collection[ChangeItem]) -> tuple[Crossing, ...]:
    """What others changed since it was added."""
    now = manifests_now([item.key for item in items])
    found = []
    for item in items:
        crossing = crossing_of(item, now.get(item.key))
        if crossing is not None:
            found.append(crossing)
    return tuple(found)
