"""Which jobs a filter finds, pages by key, and a number of queries that does not depend on how many
there are.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from scheduler.domain.filters import Comparison, Condition
from scheduler.models import Job, PodGroup, Queue
from scheduler.selectors.jobs import listing as selector
from scheduler.selectors.jobs.listing import count_up_to, job_page, jobs_matching
from scheduler.services.jobs.submit import command_job
from tests.dashboard.work import small_cluster

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def names(*conditions: Condition, visible: Any = None) -> list[str]:
    readable = (
        None
        if visible is None
        else set(Queue.objects.filter(name__in=visible).values_list("pk", flat=True))
    )
    return sorted(jobs_matching(conditions, readable).values_list("name", flat=True))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition("state", values=("running",)), ["label", "nightly", "train-1"]),
        (Condition("state", values=("waiting",)), ["train-2"]),
        (Condition("state", values=("waiting",), negated=True), ["label", "nightly", "train-1"]),
        (Condition("queue", values=("vision",)), ["train-1", "train-2"]),
        (Condition("queue", values=("research/*",)), ["label", "train-1", "train-2"]),
        (Condition("queue", values=("root/research/*",)), ["label", "train-1", "train-2"]),
        (Condition("queue", values=("v*",)), ["train-1", "train-2"]),
        (Condition("queue", values=("nowhere/*",)), []),
        (Condition("user", values=("sam",)), ["train-1", "train-2"]),
        (Condition("user", values=("s*",)), ["train-1", "train-2"]),
        (Condition("name", values=("train-*",)), ["train-1", "train-2"]),
        (Condition("name", values=("*-1",)), ["train-1"]),
        (Condition("text", values=("igh",)), ["nightly"]),
        (Condition("text", values=("default/tr",)), ["train-1", "train-2"]),
        (Condition("resource:cpu", Comparison.AT_LEAST, number=40_000), ["train-2"]),
        (
            Condition("resource:nvidia.com/gpu", Comparison.AT_MOST, number=0),
            ["label", "nightly", "train-1", "train-2"],
        ),
        (Condition("resource:nvidia.com/gpu", Comparison.MORE, number=0), []),
        (Condition("members", Comparison.EQUAL, number=2), ["label", "nightly", "train-1"]),
        (
            Condition("age", Comparison.LESS, number=3600),
            ["label", "nightly", "train-1", "train-2"],
        ),
        (Condition("age", Comparison.MORE, number=3600), []),
    ],
    ids=lambda value: (
        f"{value.field}{value.comparison}{','.join(value.values) or value.number}"
        if isinstance(value, Condition)
        else ""
    ),
)
def test_a_condition_finds(condition: Condition, expected: list[str]):
    assert names(condition) == expected


def test_a_reason_finds_who_waits_for_it():
    code = PodGroup.objects.get(name="train-2").reason_code
    assert code

    assert names(Condition("reason", values=(code,))) == ["train-2"]


def test_a_wait_counts_only_while_waiting():
    PodGroup.objects.update(created_at=timezone.now() - timedelta(hours=2))

    assert names(Condition("wait", Comparison.MORE, number=3600)) == ["train-2"]


def test_what_was_suspended_and_what_has_ended_are_found_apart():
    command_job("default", "train-2", "Suspend")
    command_job("default", "train-1", "Cancel")
    PodGroup.objects.filter(name="train-1").update(phase="Completed")

    assert names(Condition("state", values=("aborted",))) == ["train-2"]
    assert names(Condition("state", values=("stopping", "terminated"))) == ["train-1"]


def test_only_queues_in_sight_are_searched():
    assert names(visible={"vision"}) == ["train-1", "train-2"]
    assert names(Condition("queue", values=("batch",)), visible={"vision"}) == []


def test_pages_are_turned_there_and_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(selector, "PAGE", 2)
    everything = jobs_matching((), None)

    first = job_page(everything)
    second = job_page(everything, before=first.older)
    back = job_page(everything, after=second.newer)

    assert [[row.name for row in page.rows] for page in (first, second, back)] == [
        ["nightly", "label"],
        ["train-2", "train-1"],
        ["nightly", "label"],
    ]
    assert (first.newer, second.older, back.newer) == (None, None, None)
    assert [row.name for row in job_page(everything, oldest_first=True).rows] == [
        "train-1",
        "train-2",
    ]


def test_more_jobs_need_no_more_queries(django_assert_num_queries: Any):
    live = [Condition("state", values=("live",))]
    with django_assert_num_queries(5):
        job_page(jobs_matching(live, None))
    queue = Queue.objects.get(name="batch")
    PodGroup.objects.bulk_create(
        PodGroup(namespace="many", name=f"g-{number}", queue=queue) for number in range(300)
    )

    with django_assert_num_queries(5):
        assert len(job_page(jobs_matching(live, None)).rows) == selector.PAGE
    assert count_up_to(jobs_matching(live, None), most=100) == 101


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("state", ["running", "waiting", "failed", "completed", "live"])
def test_a_state_finds_the_same_whether_its_jobs_are_few_or_many(
    state: str,
    few: int,
    monkeypatch: pytest.MonkeyPatch,
):
    Job.objects.filter(name="label").update(phase="Failed")
    PodGroup.objects.filter(name="label").update(phase="Completed")
    monkeypatch.setattr(selector, "_FEW", few)
    names = {
        "running": {"train-1", "nightly"},
        "waiting": {"train-2"},
        "failed": {"label"},
        "completed": set(),
        "live": {"train-1", "train-2", "nightly"},
    }

    for negated in (False, True):
        found = jobs_matching([Condition("state", values=(state,), negated=negated)], None)
        assert {group.name for group in found} == (
            {"train-1", "train-2", "label", "nightly"} - names[state] if negated else names[state]
        )


def test_a_row_tells_its_gang():
    row = next(row for row in job_page(jobs_matching((), None)).rows if row.name == "train-1")

    assert (row.phase, row.min_member, sum(row.members.values()), row.request.to_quantities()) == (
        "Running",
        2,
        4,
        {"cpu": "4"},
    )
