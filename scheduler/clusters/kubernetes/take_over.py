"""Which new work is given to Fumarole while another scheduler goes on with the rest.

Policies of the API server write our name into jobs and pods as they are created. What is there
already stays with whom it is. The names are kept as annotations of a policy, so that they can be
read again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import Forbidden, NotFound
from scheduler.clusters.kubernetes.manifests import (
    POLICIES,
    Manifest,
    resource_of,
    take_over_manifests,
)
from scheduler.clusters.kubernetes.resources import NAMESPACES, QUEUES
from scheduler.domain.taken_over import NOTHING, TakenOver

_NAMESPACES: Final = "fumarole.io/taken-over-namespaces"
_QUEUES: Final = "fumarole.io/taken-over-queues"
_POLICY: Final = "fumarole-take-over-pods"
_EXAMPLES: Final = {"['example-namespace']": "namespaces", "['example-queue']": "queues"}


class CannotTakeOver(Exception):
    """Why not, and what to do instead."""


def read_taken_over(client: Client) -> TakenOver:
    """What the cluster has stored. Nothing where there are no policies, or we may not see them."""
    try:
        policy = client.get(POLICIES, _POLICY)
    except (NotFound, Forbidden):
        return NOTHING
    annotations = policy["metadata"].get("annotations") or {}
    return TakenOver(_names(annotations, _NAMESPACES), _names(annotations, _QUEUES))


def _names(annotations: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(name for name in annotations.get(key, "").split(",") if name)


def take_over(client: Client, wanted: TakenOver) -> TakenOver:
    """Take this over beside what already is. What is ours then. Raises CannotTakeOver."""
    _check_policies_are_served(client)
    _check_exist(client, wanted)
    whole = read_taken_over(client) | wanted
    _apply(client, whole)
    return whole


def give_back(client: Client, unwanted: TakenOver) -> TakenOver:
    """New work of these is left to the other scheduler; all of it if nothing is named.

    What is still ours then. Raises CannotTakeOver.
    """
    left = NOTHING
    if unwanted:
        taken = read_taken_over(client)
        _check_are_taken_over(taken, unwanted)
        left = taken - unwanted
    if left:
        _apply(client, left)
    else:
        _remove(client)
    return left


def policies_for(taken: TakenOver) -> Iterator[Manifest]:
    """As they are applied."""
    for manifest in take_over_manifests():
        if manifest["kind"] == POLICIES.kind:
            annotations = {_NAMESPACES: ",".join(taken.namespaces), _QUEUES: ",".join(taken.queues)}
            manifest["metadata"]["annotations"] = annotations
            for condition in manifest["spec"]["matchConditions"]:
                condition["expression"] = _with_names(condition["expression"], taken)
        yield manifest


def _with_names(expression: str, taken: TakenOver) -> str:
    for example, field in _EXAMPLES.items():
        names: tuple[str, ...] = getattr(taken, field)
        expression = expression.replace(example, json.dumps(names))  # a list of CEL too
    return expression


def _check_policies_are_served(client: Client) -> None:
    try:
        answer: Mapping[str, Any] = client.get_path(POLICIES.root)
    except NotFound:
        answer = {}
    if any(item["name"] == POLICIES.plural for item in answer.get("resources") or ()):
        return
    raise CannotTakeOver(
        "This API server has no MutatingAdmissionPolicy: that needs Kubernetes 1.36 or newer. "
        "Write “schedulerName: fumarole” into the jobs and pods that Fumarole is to place."
    )


def _check_exist(client: Client, wanted: TakenOver) -> None:
    """A name that is written wrong would take over nothing, and nobody would notice."""
    for resource, names in ((NAMESPACES, wanted.namespaces), (QUEUES, wanted.queues)):
        for name in names:
            try:
                client.get(resource, name)
            except NotFound as problem:
                noun = resource.kind.lower()
                raise CannotTakeOver(f"There is no {noun} {name} in this cluster.") from problem


def _check_are_taken_over(taken: TakenOver, unwanted: TakenOver) -> None:
    """With a name that is written wrong, the right one would stay ours unnoticed."""
    unknown = unwanted - taken
    if unknown:
        raise CannotTakeOver(
            f"Nothing was given back. Not taken over: {unknown.in_words()}. "
            f"Taken over: {taken.in_words()}."
        )


def _apply(client: Client, taken: TakenOver) -> None:
    for manifest in policies_for(taken):
        client.apply(resource_of(manifest), manifest["metadata"]["name"], manifest, force=True)


def _remove(client: Client) -> None:
    """The bindings first: without one a policy does nothing."""
    for manifest in reversed(list(policies_for(NOTHING))):
        try:
            client.delete(resource_of(manifest), manifest["metadata"]["name"])
        except NotFound:
            continue
