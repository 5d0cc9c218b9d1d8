"""What happened to a job: steps in their order, and what the time between was spent on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from scheduler.models import Command, Decision, Event, Eviction, Pod, PodGroup
from scheduler.selectors.jobs.page import events_of, evictions_of
from scheduler.selectors.jobs.timeline import timeline_of
from tests.dashboard.work import small_cluster

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def ago(minutes: float):
    return NOW - timedelta(minutes=minutes)


@pytest.fixture
def gang() -> PodGroup:
    """train-1: four pods of which two are needed.

    Submitted half an hour ago, started after twelve minutes.
    """
    small_cluster()
    PodGroup.objects.filter(name="train-1").update(
        created_at=ago(30),
        enqueued_at=ago(30),
        started_at=ago(18),
    )
    Decision.objects.filter(podgroup_name="default/train-1").update(created_at=ago(18.1))
    return PodGroup.objects.select_related("job").get(name="train-1")


def said(code: str, first: float, last: float, count: int) -> None:
    Event.objects.create(
        kind="PodGroup",
        namespace="default",
        name="train-1",
        queue_name="vision",
        reason="Unschedulable",
        code=code,
        message_digest=str(count),
        first_at=ago(first),
        last_at=ago(last),
        count=count,
    )


def evicted(minutes: float, number: int) -> None:
    for index in range(number):
        Eviction.objects.create(
            session_number=7,
            pod_name=f"default/train-1-worker-{index}",
            podgroup_name="default/train-1",
            queue_name="vision",
            beneficiary="default/label",
            beneficiary_queue="language",
            action="reclaim",
            reason="reclaim",
            created_at=ago(minutes),
        )


def placed(minutes: float, number: int) -> None:
    pods = Pod.objects.filter(podgroup__name="train-1")[:number]
    Decision.objects.bulk_create(
        Decision(
            kind="Bind",
            pod=pod,
            pod_name=f"default/{pod.name}",
            podgroup_name="default/train-1",
            node_name="n1",
            action="allocate",
            created_at=ago(minutes),
        )
        for pod in pods
    )


def spans(gang: PodGroup) -> list[tuple[str, bool, str]]:
    return [
        (step.title, bool(span and span.waited), span.what if span else "")
        for span, step in timeline_of(gang).entries
    ]


def test_the_wait_before_the_start_says_what_was_said_most(gang: PodGroup):
    said("ExceedsCapability", 29, 19, 500)
    said("ClusterBusy", 29, 28, 3)

    assert spans(gang)[-1] == ("Started", True, "ExceedsCapability")
    assert [
        span.seconds for span, step in timeline_of(gang).entries if span and step.title == "Started"
    ] == [720.0]


def test_what_is_said_now_is_not_told_of_an_earlier_wait(gang: PodGroup):
    PodGroup.objects.filter(pk=gang.pk).update(phase="Pending", reason_code="ClusterBusy")
    gang.refresh_from_db()

    timeline = timeline_of(gang)

    assert {span.what for span, _ in timeline.entries if span} == {""}
    assert timeline.now is not None
    assert (timeline.now.waited, timeline.now.what) == (True, "ClusterBusy")


def test_a_gang_that_lost_what_it_needs_waited_until_it_had_new_places(gang: PodGroup):
    evicted(10, 3)
    placed(4, 3)

    assert spans(gang)[-2:] == [("3 pods evicted", False, ""), ("3 pods placed", True, "")]


def test_one_that_lost_elastic_pods_went_on(gang: PodGroup):
    evicted(10, 2)
    placed(4, 2)

    assert spans(gang)[-1] == ("2 pods placed", False, "")


def test_what_runs_has_run_since_its_last_step(gang: PodGroup):
    now = timeline_of(gang).now

    assert now is not None
    assert not now.waited


def test_what_befell_an_earlier_job_of_the_same_name_is_not_told_of_this_one(gang: PodGroup):
    said("WaitingForQuota", 90, 80, 7)
    evicted(70, 2)
    Command.objects.create(
        result="Done",
        action="TerminateJob",
        target_kind="Job",
        target_namespace="default",
        target_name="train-1",
        executed_at=ago(60),
    )
    Command.objects.update(created_at=ago(60))
    Event.objects.create(
        kind="Job",
        namespace="default",
        name="train-1",
        reason="Restarting",
        first_at=ago(75),
        last_at=ago(75),
    )

    assert next(step.title for _, step in timeline_of(gang).entries) == "Submitted"
    assert evictions_of(gang) == ([], [])
    assert list(events_of(gang).filter(last_at__lt=ago(30))) == []


def test_events_of_a_gang_whose_name_goes_on_where_this_one_ends_are_not_its_own(gang: PodGroup):
    for name in ("train-1-worker-0", "train-1-secret-0"):
        Event.objects.create(
            kind="Pod",
            namespace="default",
            name=name,
            reason="Evict",
            first_at=ago(1),
            last_at=ago(1),
        )

    assert [
        event.name for event in events_of(gang) if event.kind == "Pod" and event.reason == "Evict"
    ] == ["train-1-worker-0"]
