"""Lists put together from texts made before.

Always what is stored now, whoever changed it and how.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from dashboard.api.framework.json_cache import JsonCache
from scheduler.domain.resources import Resources
from scheduler.models import Job, Pod, PodGroup, Queue, QueueFigures
from tests.dashboard.api.conftest import Caller, job, queue

pytestmark = [pytest.mark.django_db]

WHOLE = "fields=apiVersion,kind,metadata,spec,status"  # the same, by the long way


def _same(admin: Caller, path: str) -> list[dict[str, Any]]:
    shelved = admin.get(path)
    assert shelved["results"] == admin.get(f"{path}{'&' if '?' in path else '?'}{WHOLE}")["results"]
    return shelved["results"]


CHANGES: dict[str, Callable[[], Any]] = {
    "weight": lambda: Queue.objects.filter(name="b").update(weight=7),
    "labels": lambda: Queue.objects.filter(name="b").update(labels={"team": "x"}),
    "warnings": lambda: Queue.objects.filter(name="b").update(
        warnings=[{"code": "w", "message": "beware"}]
    ),
    "state": lambda: Queue.objects.filter(name="b").update(state="Suspended", suspended_by="a"),
    "first figures": lambda: QueueFigures.objects.create(
        queue=Queue.objects.get(name="b"), share=0.5
    ),
    "figures": lambda: QueueFigures.objects.filter(queue__name="b").update(
        allocated=Resources.parse({"cpu": "3"}), session=1
    ),
    "figures of the same session": lambda: QueueFigures.objects.filter(queue__name="b").update(
        overused=True
    ),
    "a gang": lambda: PodGroup.objects.create(
        namespace="default",
        name="g",
        queue=Queue.objects.get(name="b"),
    ),
    "a gang's phase": lambda: PodGroup.objects.filter(name="g").update(phase="Running"),
    "a job's phase": lambda: Job.objects.filter(name="train").update(phase="Running"),
    "a reason": lambda: PodGroup.objects.filter(name="train").update(
        reason_code="ClusterBusy", reason_message="full"
    ),
    "a pod's phase": lambda: Pod.objects.filter(podgroup__name="train").update(phase="Succeeded"),
    "its pods": lambda: Pod.objects.filter(podgroup__name="train").delete(),
    "its podgroup": lambda: PodGroup.objects.filter(name="train").delete(),
    "the gang": lambda: PodGroup.objects.filter(name="g").delete(),
}


@pytest.mark.both_databases
def test_lists_show_every_change_at_once(admin: Caller):
    admin.post("queues/", [queue("a"), queue("b", "a"), queue("c")])
    admin.post("jobs/", job("train", "b", replicas=2), expect=201)
    before = (_same(admin, "queues/"), _same(admin, "jobs/"))

    for what, change in CHANGES.items():
        change()
        after = (_same(admin, "queues/"), _same(admin, "jobs/"))
        assert after != before, what
        before = after


@pytest.mark.both_databases
def test_pages_orders_and_filters_are_the_same_by_either_way(admin: Caller):
    admin.post("queues/", [queue("a", weight=3), queue("b", "a", weight=2), queue("c", weight=3)])
    admin.post("jobs/", [job(f"j{number}", "b") for number in range(5)])

    assert [
        row["metadata"]["name"] for row in _same(admin, "queues/?ordering=-weight,name&page_size=3")
    ] == ["a", "c", "b"]
    assert [row["metadata"]["name"] for row in _same(admin, "queues/?queue=a")] == ["a", "b"]
    first = admin.get("jobs/?page_size=2&ordering=name")
    second = admin.get(first["next"])
    names = [row["metadata"]["name"] for row in first["results"] + second["results"]]
    assert names == ["j0", "j1", "j2", "j3"]
    assert admin.get(second["previous"])["results"] == first["results"]
    assert _same(admin, "jobs/?phase=Failed") == []


def test_a_reader_sees_no_text_that_was_made_for_another(
    admin: Caller, caller: Callable[..., Caller]
):
    admin.post("queues/", [queue("a"), queue("b")])
    admin.post("jobs/", [job("mine", "a"), job("theirs", "b")])
    admin.get("queues/"), admin.get("jobs/")

    ann = caller("ann", viewer="a")
    assert [row["metadata"]["name"] for row in ann.get("queues/")["results"]] == ["a"]
    assert [row["metadata"]["name"] for row in ann.get("jobs/")["results"]] == ["mine"]


def test_only_what_changed_is_read():
    cache = JsonCache()
    asked = []

    def read(ids: list[int]) -> dict[int, dict[str, Any]]:
        asked.append(ids)
        return {key: {"key": key, "time": len(asked)} for key in ids if key != 9}

    assert cache.texts_of({1: "x", 2: "x"}, read) == ['{"key":1,"time":1}', '{"key":2,"time":1}']
    assert cache.texts_of({2: "y", 1: "x", 9: "x"}, read) == [
        '{"key":2,"time":2}',
        '{"key":1,"time":1}',
    ]  # 9 is gone meanwhile
    assert asked == [[1, 2], [2, 9]]


def test_long_answers_are_packed_and_say_so(admin: Caller):
    import gzip

    admin.post("queues/", [queue(f"team-{number}") for number in range(60)])
    answer = Client().get("/api/v1/queues/", headers={**admin.headers, "Accept-Encoding": "gzip"})

    assert (answer["Content-Encoding"], int(answer["Content-Length"])) == (
        "gzip",
        len(answer.content),
    )
    assert "Accept-Encoding" in answer["Vary"]
    assert len(json.loads(gzip.decompress(answer.content))["results"]) == 62
    assert len(answer.content) < 10_000
