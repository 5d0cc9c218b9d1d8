"""Binding pods to nodes, so that every doubt is settled by a look at the pod.

The server sets the node of a pod once and never changes it. So asking twice is harmless, and an
order that comes late finds out what is the case.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from scheduler.clusters.kubernetes.client import Client, Object
from scheduler.clusters.kubernetes.errors import ApiError, NotFound, ServerError, TooMany
from scheduler.clusters.kubernetes.gates import only_queue_holds, open_queue_gate
from scheduler.clusters.kubernetes.resources import PODS

BINDING_THREADS: Final = 32


@dataclass(frozen=True, slots=True)
class BindOrder:
    """Run this pod on that node. The uid makes sure that it is this pod and no later namesake."""

    uid: str
    namespace: str
    name: str
    node: str


class BindResult(StrEnum):
    BOUND = "Bound"  # to the node of the order
    ELSEWHERE = "Elsewhere"  # another scheduler was first: `node` says where it is
    NOT_BOUND = "NotBound"  # the server was asked: it has no node
    GONE = "Gone"  # there is no such pod any more
    UNKNOWN = "Unknown"  # the server did not say: ask again, and take it for bound meanwhile


@dataclass(frozen=True, slots=True)
class BindAnswer:
    """What became of one order. `message` says why it was not done."""

    order: BindOrder
    result: BindResult
    node: str = ""
    message: str = ""
    retry_after: float | None = None


def bind_pods(
    client: Client, orders: Sequence[BindOrder], threads: int = BINDING_THREADS
) -> list[BindAnswer]:
    """One answer an order, in the same order. Never raises for what the server does."""
    if not orders:
        return []
    with ThreadPoolExecutor(min(threads, len(orders)), thread_name_prefix="bind") as pool:
        return list(pool.map(lambda order: bind_pod(client, order), orders))


def bind_pod(client: Client, order: BindOrder) -> BindAnswer:
    try:
        client.create_subresource(PODS, order.name, "binding", _binding_of(order), order.namespace)
    except NotFound as error:
        return BindAnswer(order, BindResult.GONE, message=error.message)
    except (TooMany, ServerError) as error:
        return _answer_after_failure(client, order, error)
    except ApiError as error:
        return _look_at_pod(client, order, error)
    return BindAnswer(order, BindResult.BOUND, order.node)


def _binding_of(order: BindOrder) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": order.name, "namespace": order.namespace, "uid": order.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": order.node},
    }


def _answer_after_failure(client: Client, order: BindOrder, error: ApiError) -> BindAnswer:
    """An answer that got lost is looked for. A server that has trouble is left alone for now."""
    if error.status:
        return _unknown(order, error)
    return _look_at_pod(client, order, error)


def _unknown(order: BindOrder, error: ApiError) -> BindAnswer:
    return BindAnswer(order, BindResult.UNKNOWN, message=str(error), retry_after=error.retry_after)


def look_at_pod(client: Client, order: BindOrder, why: str) -> BindAnswer:
    """What is the case, without an attempt to bind it. `why` is the message if it has no node."""
    pod = _read_pod(client, order)
    if isinstance(pod, BindAnswer):
        return pod
    return _answer_from_pod(order, pod, why)


def _read_pod(client: Client, order: BindOrder) -> Object | BindAnswer:
    """The pod of that name, or the answer if it cannot be read."""
    try:
        return client.get(PODS, order.name, order.namespace)
    except NotFound as gone:
        return BindAnswer(order, BindResult.GONE, message=gone.message)
    except ApiError as error:
        return _unknown(order, error)


def _look_at_pod(client: Client, order: BindOrder, error: ApiError) -> BindAnswer:
    """What is the case, whatever the answer was."""
    pod = _read_pod(client, order)
    if isinstance(pod, BindAnswer):
        answer = pod
    elif _is_behind_queue_gate(pod, order):
        return _open_gate_and_bind(client, order)
    else:
        answer = _answer_from_pod(order, pod, error.message)
    if answer.result is BindResult.UNKNOWN:
        return _unknown(order, error)
    return replace(answer, retry_after=error.retry_after)


def _is_behind_queue_gate(pod: Object, order: BindOrder) -> bool:
    """The server binds no pod that has a gate. This one is for the scheduler to open."""
    gates = [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]
    return pod["metadata"]["uid"] == order.uid and only_queue_holds(gates)


def _open_gate_and_bind(client: Client, order: BindOrder) -> BindAnswer:
    """A gate that was opened cannot be closed again, so this is done once."""
    try:
        open_queue_gate(client, order.uid, order.namespace, order.name)
    except ApiError as error:
        return look_at_pod(client, order, error.message)
    return bind_pod(client, order)


def _answer_from_pod(order: BindOrder, pod: Object, why: str) -> BindAnswer:
    if pod["metadata"]["uid"] != order.uid:
        return BindAnswer(order, BindResult.GONE, message="another pod has its name now")
    node = pod["spec"].get("nodeName", "")
    if node == order.node:
        return BindAnswer(order, BindResult.BOUND, node)
    if node:
        return BindAnswer(order, BindResult.ELSEWHERE, node, why)
    return BindAnswer(order, BindResult.NOT_BOUND, "", why)
