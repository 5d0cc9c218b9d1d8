"""Stopping pods: by the eviction subresource, which respects disruption budgets, or by deleting
them, as Volcano does.

Either way the pod says why it had to go, in its condition DisruptionTarget.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import ApiError, Conflict, NotFound, TooMany
from scheduler.clusters.kubernetes.reports import set_pod_condition
from scheduler.clusters.kubernetes.resources import PODS
from scheduler.clusters.kubernetes.values import Condition, ObjectMeta

DISRUPTION_TARGET: Final = "DisruptionTarget"


@dataclass(frozen=True, slots=True)
class EvictOrder:
    """`grace_seconds` None leaves the pod the time that it asks for itself.

    `reason` is one word and `message` a sentence for the condition of the pod. Without a reason
    none is set. If it `may_have_no_node`, the server is asked first: a pod that only waits would
    be deleted, and nobody wants that.
    """

    uid: str
    namespace: str
    name: str
    grace_seconds: int | None = None
    reason: str = ""
    message: str = ""
    may_have_no_node: bool = False


class EvictResult(StrEnum):
    LEAVING = "Leaving"  # it has been asked to end; the watch tells when it is gone
    GONE = "Gone"
    HELD = "Held"  # a disruption budget, or the server, says: later
    NOT_PLACED = "NotPlaced"  # the server was asked: it has no node, so there is nothing to stop
    FAILED = "Failed"  # ask again


@dataclass(frozen=True, slots=True)
class EvictAnswer:
    """`message` says who holds it: "disruption budget web needs 3 healthy pods and has 3"."""

    order: EvictOrder
    result: EvictResult
    message: str = ""
    retry_after: float | None = None


def evict_pod(client: Client, order: EvictOrder) -> EvictAnswer:
    """Never raises for what the server does. Asking twice is harmless."""
    if order.may_have_no_node and (answer := _answer_without_node(client, order)):
        return answer
    try:
        client.create_subresource(
            PODS, order.name, "eviction", _eviction_of(order), order.namespace
        )
    except NotFound as error:
        return EvictAnswer(order, EvictResult.GONE, error.message)
    except TooMany as error:
        return EvictAnswer(order, EvictResult.HELD, _who_holds(error), error.retry_after)
    except Conflict as error:
        return _answer_to_conflict(client, order, error)
    except ApiError as error:
        return EvictAnswer(order, EvictResult.FAILED, str(error), error.retry_after)
    _say_why(client, order)  # afterwards: the eviction writes a reason of its own
    return EvictAnswer(order, EvictResult.LEAVING)


def delete_pod(client: Client, order: EvictOrder) -> EvictAnswer:
    """Disruption budgets are not asked. Never raises for what the server does."""
    if order.may_have_no_node and (answer := _answer_without_node(client, order)):
        return answer
    _say_why(client, order)
    try:
        client.delete(
            PODS, order.name, order.namespace, uid=order.uid, grace_seconds=order.grace_seconds
        )
    except NotFound as error:
        return EvictAnswer(order, EvictResult.GONE, error.message)
    except Conflict as error:
        return _answer_to_conflict(client, order, error)
    except ApiError as error:
        return EvictAnswer(order, EvictResult.FAILED, str(error), error.retry_after)
    return EvictAnswer(order, EvictResult.LEAVING)


def _answer_without_node(client: Client, order: EvictOrder) -> EvictAnswer | None:
    """None if the pod has a node, and so can be stopped."""
    try:
        pod = client.get(PODS, order.name, order.namespace)
    except NotFound as error:
        return EvictAnswer(order, EvictResult.GONE, error.message)
    except ApiError as error:
        return EvictAnswer(order, EvictResult.FAILED, str(error), error.retry_after)
    if pod["metadata"]["uid"] != order.uid:
        return EvictAnswer(order, EvictResult.GONE, "another pod has its name now")
    if pod["spec"].get("nodeName"):
        return None
    return EvictAnswer(order, EvictResult.NOT_PLACED)


def _say_why(client: Client, order: EvictOrder) -> None:
    """It is good to know, and no reason to fail."""
    if not order.reason:
        return
    pod = ObjectMeta(order.name, order.uid, order.namespace)
    condition = Condition(DISRUPTION_TARGET, "True", order.reason, order.message)
    with suppress(ApiError):
        set_pod_condition(client, pod, condition)


def _eviction_of(order: EvictOrder) -> dict[str, Any]:
    options: dict[str, Any] = {"preconditions": {"uid": order.uid}}
    if order.grace_seconds is not None:
        options["gracePeriodSeconds"] = order.grace_seconds
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": order.name, "namespace": order.namespace},
        "deleteOptions": options,
    }


def _answer_to_conflict(client: Client, order: EvictOrder, error: Conflict) -> EvictAnswer:
    """Either another pod has its name now, or somebody changed the pod at the same moment."""
    try:
        pod = client.get(PODS, order.name, order.namespace)
    except NotFound:
        return EvictAnswer(order, EvictResult.GONE, error.message)
    except ApiError as failure:
        return EvictAnswer(order, EvictResult.FAILED, str(failure), failure.retry_after)
    if pod["metadata"]["uid"] != order.uid:
        return EvictAnswer(order, EvictResult.GONE, "another pod has its name now")
    return EvictAnswer(order, EvictResult.FAILED, error.message)


def _who_holds(error: TooMany) -> str:
    """The budget by name, as the server gives it among the causes."""
    for cause in error.details.get("causes") or ():
        if cause.get("reason") == "DisruptionBudget":
            return str(cause.get("message") or error.message)
    return error.message
