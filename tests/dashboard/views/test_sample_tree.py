"""The sample tree that an empty cluster offers."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from scheduler.admission.rules.quotas import hierarchy_problems
from scheduler.domain.resources import Resources
from scheduler.models import ClusterState, Queue
from scheduler.selectors.queues.facts import queue_tree
from scheduler.services.demo.sample import QUEUES
from scheduler.services.demo.setup import ensure_builtin_objects
from tests.dashboard.clients import signed_in
from tests.dashboard.sample import GPU, add_queue, add_user
from tests.dashboard.work import text


@pytest.mark.django_db
class TestSampleTree:
    @pytest.fixture
    def client(self) -> Client:
        ensure_builtin_objects()
        return signed_in(get_user_model().objects.create(username="admin", is_superuser=True))

    @pytest.mark.parametrize(
        "total",
        [
            {"cpu": 96, "memory": "384Gi", GPU: 8},
            {"cpu": 7},
            {},
            {"cpu": 100_000, "memory": "1Pi", GPU: 9000},
        ],
    )
    def test_it_fits_the_cluster_that_is_there(self, client: Client, total: dict[str, Any]):
        ClusterState.objects.update(total=Resources.parse(total))
        assert "Load sample tree" in text(client.get("/queues/"))

        client.post("/queues/-/sample/")

        names = set(Queue.objects.values_list("name", flat=True))
        assert names == {"root", "default", *(queue["name"] for queue in QUEUES)}
        assert hierarchy_problems(queue_tree(), 10) == {}
        asked = {
            name
            for queue in Queue.objects.all()
            for name in (*queue.deserved, *queue.guarantee, *queue.capability)
        }
        assert asked <= set(total)
        assert "Load sample tree" not in text(client.get("/queues/"))

    def test_where_there_are_queues_it_is_refused(self, client: Client):
        add_queue("mine")

        answer = client.post("/queues/-/sample/", follow=True)

        assert "There are queues already" in answer.getvalue().decode()
        assert Queue.objects.count() == 3

    def test_who_may_not_create_queues_is_not_offered_it(self, client: Client):
        reader = signed_in(add_user("reader"))

        assert "Load sample tree" not in text(reader.get("/queues/"))
        assert reader.post("/queues/-/sample/").status_code == 403
