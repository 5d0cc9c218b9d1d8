"""The resources on the page of a queue."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from dashboard.present.queue_page import columns, division, resource_lines
from dashboard.present.queues import present_queues
from scheduler.domain.resources import Resources
from scheduler.models import ClusterState, Queue
from scheduler.selectors.queues.listing import queue_rows
from tests.dashboard.sample import GPU, add_queue, amounts, set_figures


@pytest.mark.usefixtures("tree")
class TestResources:
    def test_a_queue_s_page_shows_one_resource_or_all(self, admin: Client):
        assert [
            line["name"] for line in admin.get("/queues/vision/?resource=gpu").context["lines"]
        ] == [GPU]
        assert len(admin.get("/queues/vision/").context["lines"]) == 3
        assert "resource=gpu" in admin.get("/queues/vision/?resource=gpu").context["tabs"][1]["url"]

    def test_who_lends_says_to_whom_and_who_borrows_from_whom(self):
        board = queue_rows()
        rows = present_queues(board)

        words = {
            name: resource_lines(board, rows[name], GPU)["lines"][0]["loans"]
            for name in ("vision", "language", "serving")
        }

        assert words == {
            "vision": "lending 10 to language",
            "language": "borrowing 10 from vision",
            "serving": "",
        }

    def test_who_may_not_see_the_other_queue_is_not_told_its_name(self):
        board = queue_rows()

        line = resource_lines(board, present_queues(board)["vision"], GPU, frozenset({"vision"}))[
            "lines"
        ][0]

        assert line["loans"] == "lending 10 to other queues"

    def test_with_many_resources_what_a_queue_has_nothing_of_is_folded_away(self):
        licences = {f"example.com/licence-{number}": 5 for number in range(9)}
        ClusterState.objects.update(total=Resources.parse({"cpu": 1024, **licences}))
        board = queue_rows()

        found = resource_lines(board, present_queues(board)["vision"])

        assert [line["name"] for line in found["lines"]] == [GPU, "cpu", "memory"]
        assert len(found["idle_lines"]) == 9
        resources = [line["name"] for line in found["resources"]]
        assert (
            len(columns("", resources)),
            len(columns("all", resources)),
            columns("cpu", resources),
        ) == (4, 12, ("cpu",))

    def test_every_number_of_columns_is_laid_out(self):
        style = " ".join(Path("static/css/queues.css").read_text().split())
        most = len(columns("all", [f"example.com/licence-{number}" for number in range(100)]))

        assert [
            number
            for number in range(1, most + 1)
            if f".resources-{number} {{ --count: {number}; }}" not in style
        ] == []

    def test_a_parent_s_deserved_is_divided_with_what_nobody_has(self):
        add_queue("archive", "production", deserved=amounts(0))
        set_figures("archive", amounts(0), amounts(0), amounts(0))
        Queue.objects.filter(name="batch").update(deserved=amounts(4))
        set_figures("batch", amounts(3), amounts(4), amounts(6))

        found = division(queue_rows(), "production", GPU)

        assert [(span["name"], span["amount"]) for span in found["spans"]] == [
            ("batch", "4 GPU"),
            ("serving", "16 GPU"),
        ]
        assert (found["whole"], found["rest"], found["over"]) == ("24 GPU", "4 GPU", "")
