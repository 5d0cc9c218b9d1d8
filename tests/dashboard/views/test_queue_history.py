"""The history of a queue, as a chart and as a table."""

from __future__ import annotations

import csv
import io

import pytest
from django.test import Client
from django.utils import timezone

from scheduler.models import Queue, QueueFigures, QueueSample
from tests.dashboard.sample import GPU, amounts, set_figures


class TestHistoryOpensOnWhatTheQueueUses:
    @staticmethod
    def drawn(client: Client, query: str = "") -> str:
        return str(client.get(f"/queues/vision/history/{query}").context["chart_resource"])

    def test_something_that_it_has_now(self, admin: Client):
        set_figures("vision", amounts(0, 3), amounts(0, 3), amounts(0, 3))

        assert self.drawn(admin) == "cpu"

    def test_something_that_it_waits_for(self, admin: Client):
        set_figures("vision", amounts(0, 0), amounts(0, 3), amounts(0, 0, "3Gi"))

        assert self.drawn(admin) == "memory"

    def test_something_that_it_had_in_the_period(self, admin: Client):
        set_figures("vision", amounts(0, 0), amounts(0, 0), amounts(0, 0))
        data = {"state": "Open", "allocated": {"memory": 5}}
        QueueSample.objects.create(
            queue_name="vision",
            at=timezone.now(),
            seconds=QueueSample.RAW,
            data=data,
        )

        assert self.drawn(admin) == "memory"

    def test_something_that_its_quotas_name(self, admin: Client):
        QueueFigures.objects.all().delete()
        Queue.objects.filter(name="vision").update(
            deserved=amounts(cpu=3),
            guarantee=amounts(),
            capability=amounts(),
        )

        assert self.drawn(admin) == "cpu"

    def test_or_on_the_one_that_is_asked_for(self, admin: Client):
        assert self.drawn(admin, "?resource=memory") == "memory"
        assert self.drawn(admin, "?resource=gpu") == GPU


class TestHistoryAsTable:
    @pytest.fixture(autouse=True)
    def sampled(self, tree: None) -> None:
        data = {"state": "Open", "allocated": {GPU: 3000, "cpu": 1500}, "deserved": {GPU: 8000}}
        QueueSample.objects.create(
            queue_name="vision",
            at=timezone.now(),
            seconds=QueueSample.RAW,
            data=data,
        )

    def test_the_page_s_file_has_one_row_a_moment_and_resource_with_exact_quantities(
        self, admin: Client
    ):
        answer = admin.get("/queues/vision/history.csv?period=1h")

        rows = list(csv.DictReader(io.StringIO(answer.getvalue().decode())))
        last = {row["resource"]: row for row in rows}
        assert answer["Content-Disposition"] == 'attachment; filename="vision-1h.csv"'
        assert (last["cpu"]["allocated"], last[GPU]["allocated"], last[GPU]["deserved"]) == (
            "1500m",
            "3",
            "8",
        )
        assert {
            row["resource"]
            for row in csv.DictReader(
                io.StringIO(
                    admin.get("/queues/vision/history.csv?resource=cpu").getvalue().decode()
                )
            )
        } == {"cpu"}

    @pytest.mark.parametrize(
        ("path", "status"), [("vision/history.csv?period=2y", 400), ("nothing/history.csv", 404)]
    )
    def test_a_wrong_question_is_answered_as_such(self, admin: Client, path: str, status: int):
        assert admin.get(f"/queues/{path}").status_code == status

    def test_the_api_gives_it_too(self, admin: Client):
        answer = admin.get(
            "/api/v1/queues/vision/history/?step=raw", headers={"Accept": "text/csv"}
        )

        (cpu, gpu) = csv.DictReader(io.StringIO(answer.getvalue().decode()))
        assert answer["Content-Type"].startswith("text/csv")
        assert (cpu["resource"], cpu["allocated"], gpu["resource"], gpu["deserved"]) == (
            "cpu",
            "1500m",
            GPU,
            "8",
        )
