"""The lifecycle cases once more, from the outside: stored in the database and asked through the
webhooks.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from scheduler.admission.reading.reader import is_subdomain
from scheduler.models import Namespace, Pod, PodClass, PodGroup, Queue
from scheduler.services.queues.states import refresh_states
from tests.conformance.lifecycle_cases import Case, all_cases, facts_of, queue_of
from tests.dashboard.reviews import answer, causes, patch_of, review

pytestmark = pytest.mark.django_db

_KINDS = {"queue": "queues", "job": "jobs", "podgroup": "podgroups", "pod": "pods"}
_ALWAYS_THERE = ("root", "default")


def _is_reachable(case: Case) -> bool:
    """Not those that our decisions override, that need names Kubernetes would refuse, or a queue
    without any state.
    """
    names = [queue["metadata"]["name"] for queue in case.given.get("queues") or []]
    stateless = any(
        (queue.get("status") or {}).get("state") == "" for queue in case.given.get("queues") or []
    )
    spec = (case.when.get("object") or {}).get("spec") or {}
    return (
        not case.is_overridden
        and not stateless
        and all(map(is_subdomain, [*names, spec.get("queue") or "q"]))
    )


def _cases(*endings: str) -> list[Any]:
    return [
        pytest.param(case, id=case.id)
        for case in all_cases()
        if case.operation.endswith(endings) and _is_reachable(case)
    ]


def _store(given: dict[str, Any]) -> None:
    waiting = [queue_of(queue) for queue in given.get("queues") or []]
    while waiting:
        ready = [
            queue
            for queue in waiting
            if queue.name in _ALWAYS_THERE
            or Queue.objects.filter(name=queue.parent or "root").exists()
        ]
        assert ready, waiting
        for queue in ready:
            _store_queue(queue)
        waiting = [queue for queue in waiting if queue not in ready]
    for namespace in given.get("namespaces") or []:
        Namespace.objects.update_or_create(
            name=namespace["name"], defaults={"annotations": namespace.get("annotations", {})}
        )
    _store_work(given)
    refresh_states()


def _store_queue(queue: Any) -> None:
    values = {
        name: getattr(queue, name)
        for name in ("weight", "capability", "deserved", "guarantee", "annotations")
    }
    parent = None if queue.name == "root" else Queue.objects.get(name=queue.parent or "root")
    Queue.objects.update_or_create(
        name=queue.name, defaults={**values, "wish": queue.state.value, "parent": parent}
    )


def _store_work(given: dict[str, Any]) -> None:
    """Allocated pods become a running podgroup.

    A Closing queue has one, or it would be Closed; an Unknown one is marked.
    """
    for queue in Queue.objects.all():
        manifest = next(
            (item for item in given.get("queues") or [] if item["metadata"]["name"] == queue.name),
            {},
        )
        state = (manifest.get("status") or {}).get("state")
        if state == "Unknown":
            Queue.objects.filter(pk=queue.pk).update(is_unknown=True)
        if (
            facts_of(given).allocated_pods.get(queue.name) and not queue.children.exists()
        ) or state == "Closing":
            group = PodGroup.objects.create(
                namespace="ns",
                name=f"g-{queue.name}"[:253],
                queue=queue,
                phase="Running",
            )
            pod_class, _ = PodClass.objects.get_or_create(digest="x")
            Pod.objects.create(
                namespace="ns",
                name=group.name,
                podgroup=group,
                pod_class=pod_class,
                phase="Running",
            )


def _asked(client: Client, case: Case, task: str) -> dict[str, Any]:
    kind = _KINDS[case.operation.split(".")[0]]
    when = case.when
    body = review(
        kind,
        when["verb"],
        when.get("object"),
        when.get("old_object"),
        name=when.get("request_name", ""),
    )
    return answer(client, kind, body, task)


@pytest.mark.parametrize("case", _cases(".admission.validate", "podgroup.api", "queue.api"))
def test_a_case_is_answered_the_same_through_the_webhook(client: Client, case: Case):
    _store(case.given)

    if case.operation.endswith(".api") and case.when["verb"] == "CREATE":
        assert _asked(client, case, "mutate")["allowed"]
    response = _asked(client, case, "validate")

    assert response["allowed"] is case.expect["allowed"]
    if not response["allowed"]:
        assert {case.expect["reason"], *case.expect.get("reasons", [])} <= set(causes(response))


@pytest.mark.parametrize("case", _cases(".admission.mutate"))
def test_a_case_is_defaulted_the_same_through_the_webhook(client: Client, case: Case):
    _store(case.given)

    response = _asked(client, case, "mutate")

    written = patch_of(response) if "patch" in response else {}
    for path, value in case.expect["set"].items():
        section, _, key = path.partition("[")
        pointer = (
            "/"
            + section.replace(".", "/")
            + (f"/{key.rstrip(']').replace('/', '~1')}" if key else "")
        )
        assert written[pointer] == value
