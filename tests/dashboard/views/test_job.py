"""One job: why it waits, its timeline, who may command it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from scheduler.domain.resources import Resources
from scheduler.models import Eviction, Job, Pod, PodClass, PodGroup, Queue, SchedulingSession
from tests.dashboard.work import signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def test_a_waiting_job_says_why_with_every_check():
    page = signed_in("sam").get("/jobs/default/train-2/")

    reason = page.context["reason"]
    assert reason["code"] == PodGroup.objects.get(name="train-2").reason_code
    assert reason["message"] in page.context["gang"].reason_message
    assert any(not check["passed"] for check in reason["checks"])
    assert signed_in("sam").get("/jobs/default/train-1/").context["reason"] is None


def test_the_card_says_where_it_stands_and_what_would_help():
    page = signed_in("ruth").get("/jobs/default/train-2/")

    assert page.context["reason"]["place"] == "1st of 1 in research/vision"
    assert (
        page.context["reason"]["usual"]
        == "no estimate: fewer than 5 jobs of this size have started here"
    )
    assert (
        page.context["reason"]["help"]
        == "Ask for 12 CPU in all at most, or ask an admin of vision for a higher capability."
    )
    assert "Cannot start as it is" in text(page)


def test_a_level_out_of_sight_is_named_without_a_link():
    PodGroup.objects.filter(name="train-2").update(reason_figures={"level": "root"})

    assert "/queues/root/" not in text(signed_in("sam").get("/jobs/default/train-2/"))
    assert "/queues/root/" in text(signed_in("admin").get("/jobs/default/train-2/"))


def test_the_gang_is_told_in_one_sentence():
    figures = {"resource": "nvidia.com/gpu", "placeable": 7}
    PodGroup.objects.filter(name="train-2").update(
        reason_code="GangIncomplete", reason_figures=figures
    )

    page = signed_in("sam").get("/jobs/default/train-2/")

    assert (
        page.context["gang_sentence"]
        == "0 of 20 needed have a place, 7 fit now, 13 blocked by nvidia.com/gpu"
    )


def test_a_gang_that_was_not_tried_fits_nobody_knows_where():
    figures = {"resource": "cpu", "level": "vision", "need": 20_000, "free": 7_000, "short": 13_000}
    PodGroup.objects.filter(name="train-2").update(
        reason_code="WaitingForQuota", reason_figures=figures
    )

    page = signed_in("sam").get("/jobs/default/train-2/")

    assert page.context["gang_sentence"] == "0 of 20 needed have a place"


def test_a_gang_that_can_never_start_has_no_pods_that_fit():
    page = signed_in("sam").get("/jobs/default/train-2/")

    assert page.context["reason"]["code"] == "ExceedsCapability"
    assert page.context["gang_sentence"] == "0 of 20 needed have a place; it cannot start as it is"


def _starts(number: int, cpu: str) -> None:
    """So many gangs that started in vision within ten seconds."""
    now = timezone.now()
    PodGroup.objects.bulk_create(
        PodGroup(
            namespace="default",
            name=f"fast-{cpu}-{place}",
            queue=Queue.objects.get(name="vision"),
            min_resources=Resources.parse({"cpu": cpu}),
            phase="Completed",
            started_at=now + timedelta(seconds=10),
        )
        for place in range(number)
    )


def test_how_fast_small_jobs_start_says_nothing_about_a_large_one():
    """train-2 needs 40 cores at once."""
    _starts(20, "1")
    _starts(4, "20")
    assert (
        signed_in("sam")
        .get("/jobs/default/train-2/")
        .context["reason"]["usual"]
        .startswith("no estimate")
    )

    _starts(1, "64")
    assert (
        "of the last 5 starts"
        in signed_in("sam").get("/jobs/default/train-2/").context["reason"]["usual"]
    )


def test_a_gang_of_a_thousand_is_drawn_whole_and_its_pods_are_turned_by_pages():
    gang = PodGroup.objects.get(name="train-2")
    kind = PodClass.objects.first()
    gang.pods.all().delete()
    PodGroup.objects.filter(pk=gang.pk).update(min_member=900)
    pods = (
        Pod(
            namespace="default",
            name=f"train-2-w-{i}",
            podgroup=gang,
            pod_class=kind,
            task="w",
            index=i,
        )
        for i in range(1000)
    )
    Pod.objects.bulk_create(pods, batch_size=500)

    page = signed_in("sam").get("/jobs/default/train-2/?from=200")

    assert (
        page.context["grid"]["gang"].count("<li"),
        page.context["grid"]["elastic"].count("<li"),
    ) == (900, 100)
    assert "201 to 400 of 1000" in text(page)
    assert [pod["name"] for pod in page.context["pods"]][:1] == ["train-2-w-200"]


def test_the_log_of_a_pod_that_has_a_node_is_one_click_away():
    page = text(signed_in("sam").get("/jobs/default/train-1/"))
    waiting = text(signed_in("sam").get("/jobs/default/train-2/"))

    assert 'href="/jobs/default/train-1/pods/train-1-worker-0/#log"' in page
    assert "#log" not in waiting


def test_pods_are_filtered_by_their_state():
    Pod.objects.filter(name="train-1-worker-0").update(phase="Failed")

    page = signed_in("sam").get("/jobs/default/train-1/?pods=Failed")

    assert [pod["name"] for pod in page.context["pods"]] == ["train-1-worker-0"]


def _evicted(
    podgroup: str,
    queue: str,
    beneficiary: str,
    beneficiary_queue: str,
    **fields: Any,
) -> None:
    values = {
        "session": SchedulingSession.objects.first(),
        "session_number": 1,
        "pod_name": f"{podgroup}-worker-0",
        "podgroup_name": podgroup,
        "queue_name": queue,
        "beneficiary": beneficiary,
        "beneficiary_queue": beneficiary_queue,
        "action": "reclaim",
        "reason": "reclaim",
        "common_ancestor": "research",
        "created_at": timezone.now(),
    }
    Eviction.objects.create(**values | fields)


def test_what_a_gang_lost_in_one_session_stands_in_one_line():
    for number in range(3):
        before = {"allocated": {"cpu": 8000 - 1000 * number}}
        after = {"allocated": {"cpu": 7000 - 1000 * number}}
        _evicted(
            "default/train-1",
            "vision",
            "default/label",
            "language",
            pod_name=f"default/train-1-worker-{number}",
            before=before,
            after=after,
        )
    _evicted("default/train-1", "vision", "default/label", "language", session_number=2)

    page = signed_in("ruth").get("/jobs/default/train-1/evictions/")

    later, earlier = page.context["suffered"]
    assert (len(later["pods"]), len(earlier["pods"])) == (1, 3)
    assert [pod.pod[-1] for pod in earlier["pods"]] == ["0", "1", "2"]
    assert (earlier["before"], earlier["after"]) == (
        "8\N{NO-BREAK SPACE}CPU",
        "5\N{NO-BREAK SPACE}CPU",
    )
    assert "3 pods" in text(page)


def test_an_eviction_is_linked_from_both_jobs():
    _evicted("default/label", "language", "default/train-1", "vision")

    suffered, caused = (
        text(signed_in("ruth").get(f"/jobs/default/{name}/evictions/"))
        for name in ("label", "train-1")
    )

    assert 'href="/jobs/default/train-1/"' in suffered
    assert 'href="/jobs/default/label/"' in caused


def test_who_may_not_see_the_other_job_is_not_told_its_name():
    _evicted("default/train-1", "vision", "default/label", "language")

    pages = [
        text(signed_in("sam").get(f"/jobs/default/train-1/{tab}/"))
        for tab in ("evictions", "timeline")
    ]

    assert all("default/label" not in page for page in pages)
    assert all("a job in a queue that you may not see" in page for page in pages)


@pytest.mark.parametrize(
    ("who", "phases"),
    [("sam", ("Aborting", "Aborted")), ("ruth", ("Aborting", "Aborted")), ("vera", ("Running",))],
)
def test_who_may_suspend_a_job(who: str, phases: tuple[str, ...]):
    client = signed_in(who)
    page = client.get("/jobs/default/train-1/")

    answer = client.post("/jobs/default/train-1/suspend/", {"reason": "a test"})

    assert ("Suspend…" in text(page)) is (who != "vera")
    assert answer.status_code == (403 if who == "vera" else 302)
    assert Job.objects.get(name="train-1").phase in phases


def test_what_the_state_forbids_is_told():
    client = signed_in("sam")
    client.post("/jobs/default/train-1/resume/")

    assert "Running already" in text(client.get("/jobs/default/train-1/")) or "is Running" in text(
        client.get("/jobs/default/train-1/")
    )


def test_a_timeline_tells_what_was_asked_and_how_long_it_waited():
    PodGroup.objects.filter(name="train-2").update(
        created_at=timezone.now() - timedelta(minutes=12)
    )
    client = signed_in("sam")
    client.post("/jobs/default/train-2/suspend/", {"reason": "not today"})

    page = client.get("/jobs/default/train-2/timeline/")

    titles = [entry["step"].title for entry in page.context["steps"]]
    assert titles[0] == "Submitted"
    assert "Suspend, asked for by sam" in titles
    assert titles[-1] == "Aborted"
    assert "waited 12 min" in text(page)
