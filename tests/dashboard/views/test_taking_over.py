"""What pages say of a cluster of which a part is taken over, and of two schedulers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from scheduler.domain.taken_over import TakenOver
from scheduler.models import ClusterState, Pod, SchedulingSession
from scheduler.selectors.cluster.mirror import may_decide
from scheduler.services.cluster.mirror import state
from scheduler.services.sessions.runner import SessionRunner
from tests.dashboard.work import text
from tests.mirrored import MadeUpCluster, kubernetes_mode, node, pod

pytestmark = [pytest.mark.django_db]
BOTH_NAMES = ("fumarole", "volcano")
PART = TakenOver(namespaces=("team-a",), queues=("one", "two"))


@pytest.fixture
def reader() -> Client:
    """Somebody who sees no queue yet."""
    client = Client()
    client.force_login(get_user_model().objects.create_user("somebody", password="x" * 12))
    return client


def cluster(**settings: Any) -> Iterator[None]:
    with kubernetes_mode(**settings):
        MadeUpCluster().lists(node("n1"), pod("p1", scheduler="volcano"))
        yield


@pytest.fixture
def scheduling() -> Iterator[None]:
    yield from cluster(mode="schedule", scheduler_names=BOTH_NAMES)


@pytest.fixture
def scheduling_a_part() -> Iterator[None]:
    yield from cluster(mode="schedule", scheduler_names=("fumarole",))


def sessions_check(client: Client) -> str:
    checks: dict[str, dict[str, str]] = client.get("/readyz").json()["checks"]
    return checks["sessions"]["message"]


@pytest.fixture
def watching() -> Iterator[None]:
    yield from cluster()


@pytest.mark.usefixtures("scheduling")
def test_who_serves_volcanos_name_too_has_all_of_it(root_admin: Client) -> None:
    state.note_neighbours(state.Neighbours(PART))

    assert "Kubernetes · scheduling<" in text(root_admin.get("/"))


@pytest.mark.usefixtures("scheduling_a_part")
def test_the_badge_says_how_much_is_taken_over_and_names_it_to_who_sees_all(
    root_admin: Client, reader: Client
) -> None:
    assert "Kubernetes · scheduling<" in text(root_admin.get("/"))

    state.note_neighbours(state.Neighbours(PART))
    words = "Kubernetes · scheduling 1 namespace, 2 queues"
    names = "the namespace team-a and the queues one, two"
    page = text(root_admin.get("/"))
    assert words in page
    assert names in page
    page = text(reader.get("/"))
    assert words in page
    assert "team-a" not in page


@pytest.mark.usefixtures("scheduling")
def test_beside_another_scheduler_of_the_same_pods_nothing_is_placed(root_admin: Client) -> None:
    state.note_neighbours(state.Neighbours(other_schedulers=frozenset({"volcano"})))

    SessionRunner("test").run_if_due()

    assert not may_decide()
    assert not SchedulingSession.objects.exists()
    assert Pod.objects.get().node is None
    sentence = "Volcano’s scheduler runs, and places the pods of the same schedulerName (volcano)."
    assert sentence in text(root_admin.get("/")).replace("&#x27;", "’")
    assert (
        "KUBERNETES_SCHEDULER_NAMES leaves out volcano"
        in root_admin.get("/readyz").content.decode()
    )


@pytest.mark.usefixtures("scheduling")
def test_the_check_of_sessions_names_the_other_scheduler_and_not_the_worker(
    root_admin: Client,
) -> None:
    SessionRunner("test").run_if_due()
    long_ago = timezone.now() - timedelta(hours=1)
    ClusterState.objects.update(last_session_at=long_ago)
    assert "Is the scheduler worker running?" in sessions_check(root_admin)

    state.note_neighbours(state.Neighbours(other_schedulers=frozenset({"volcano"})))

    message = sessions_check(root_admin)
    assert "Volcano's scheduler runs" in message
    assert "worker running" not in message + text(root_admin.get("/"))


@pytest.mark.usefixtures("scheduling")
def test_beside_a_scheduler_of_other_pods_ours_are_placed() -> None:
    state.note_neighbours(state.Neighbours(other_schedulers=frozenset({"kai-scheduler"})))

    SessionRunner("test").run_if_due()

    assert Pod.objects.get().node is not None


@pytest.mark.usefixtures("watching")
def test_who_only_watches_is_no_rival_and_says_so_if_work_is_given_to_it(
    root_admin: Client,
) -> None:
    state.note_neighbours(state.Neighbours(other_schedulers=frozenset({"volcano"})))
    assert may_decide()
    assert "nobody places them" not in text(root_admin.get("/"))

    state.note_neighbours(state.Neighbours(PART, frozenset({"volcano"})))

    assert "nobody places them" in text(root_admin.get("/"))
