"""What waits in a suspended queue is told as pending everywhere, although no share is
made of it.
"""

from __future__ import annotations

import pytest

from dashboard.present.queues import present_queues
from dashboard.views.overview import cluster_bars
from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import QueueFigures, QueueSample
from scheduler.selectors.queues.listing import queue_rows
from scheduler.services.queues.commands import command_queue
from scheduler.services.sessions.runner import SessionRunner
from tests.dashboard.work import small_cluster, submitted
from tests.worlds import run_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def suspended() -> None:
    """vision waits for 8 CPU, of which nothing may start, and has a job of 40 CPU that could never
    run there.
    """
    small_cluster()
    command_queue("vision", QueueCommand.SUSPEND)
    submitted("train-3", "vision", "sam", replicas=4, cpu="2")
    run_session(SessionRunner("test"))


@pytest.mark.usefixtures("suspended")
class TestPending:
    def test_the_tree_tells_what_waits_in_the_queue_and_above_it(self):
        rows = present_queues(queue_rows())

        assert [
            rows[name]["resources"]["cpu"]["pending"] for name in ("vision", "research", "root")
        ] == ["8"] * 3

    def test_the_overview_counts_it_as_asked_for(self):
        bars = {bar["name"]: bar for bar in cluster_bars(queue_rows())}

        assert bars["cpu"]["pending"] == "8"

    def test_the_history_keeps_it(self):
        newest = QueueSample.objects.filter(queue_name="vision").order_by("-at", "-pk").first()

        assert newest.data["pending"] == {"cpu": 8_000}

    def test_no_share_is_made_of_it(self):
        figures = QueueFigures.objects.get(queue__name="vision")

        assert figures.request == figures.allocated
        assert figures.held.to_quantities() == {"cpu": "48"}

    def test_after_resuming_it_is_part_of_the_request_again(self):
        assert QueueFigures.objects.get(queue__name="vision").request["cpu"] == 4_000

        command_queue("vision", QueueCommand.RESUME)
        run_session(SessionRunner("test"))

        figures = QueueFigures.objects.get(queue__name="vision")
        assert figures.request["cpu"] == 52_000
        assert figures.held.to_quantities() == {}
