"""Jobs in previews: when they would start, what for they wait, and who makes room for them."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.admission.violations import Rejected
from scheduler.domain.access import Forbidden
from scheduler.models import (
    ClusterState,
    Job,
    LearntRunTime,
    Pod,
    PodGroup,
    PolicyVersion,
    Preview,
    Queue,
)
from scheduler.services.change_sets.preview_runs import start_preview
from scheduler.services.jobs.submit import submit_job
from scheduler.services.sessions.presets import preset_text
from tests.dashboard.work import person, signed_in, small_cluster
from tests.dashboard.work import text as text_of
from tests.services.change_sets.builders import edit, machine
from tests.services.change_sets.test_preview_runs import worked_out
from tests.services.jobs.test_reclaim import WHOLE_GANGS
from tests.worlds import manifest, pass_time, queue, run_session

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def job(name: str, in_queue: str, **shape: Any) -> dict[str, Any]:
    return manifest(name, in_queue, **shape)


def told_of(done: Preview, key: str) -> dict[str, Any]:
    assert done.state == "Done", done.message
    (found,) = [row for row in done.result["jobs"] if row["podgroup"] == key]
    return found


def tables() -> tuple[int, int, int]:
    return Job.objects.count(), PodGroup.objects.count(), Pod.objects.count()


def test_a_job_that_fits_starts_in_the_first_session_and_nothing_is_written():
    before = tables()

    done = worked_out(documents=[job("tried", "batch", replicas=1)])

    found = told_of(done, "default/tried")
    assert (found["start"], found["queue"], found["pods"]) == (0.0, "batch", 1)
    assert tables() == before


def test_the_first_session_decides_what_it_decides_after_submitting():
    document = job("tried", "batch", replicas=3, least=3)

    done = worked_out(documents=[document])
    submit_job(document)
    run_session()

    placed = Pod.objects.filter(podgroup__name="tried").exclude(node=None).count()
    assert (told_of(done, "default/tried")["start"] == 0.0) == (placed == 3)


def test_a_job_that_must_wait_says_for_what():
    done = worked_out(documents=[job("tried", "vision", replicas=40, least=40)])

    found = told_of(done, "default/tried")
    assert (found["start"], found["reason"]) == (None, "ExceedsCapability")
    assert found["message"]


def test_a_job_that_evicts_others_names_them():
    ClusterState.objects.update(policy=PolicyVersion.objects.create(text=WHOLE_GANGS))
    queue("other", deserved={"cpu": "1"})
    Queue.objects.update(min_run_seconds=0)
    for number in range(12):
        submit_job(manifest(f"filler-{number}", "other", seconds=100_000))
    run_session()
    pass_time(10)

    done = worked_out(documents=[job("tried", "batch", replicas=2)])

    found = told_of(done, "default/tried")
    evicted = [row for row in done.result["evictions"] if row["beneficiary"] == "default/tried"]
    assert found["evictions"] == len(evicted) > 0
    assert {row["queue"] for row in evicted} == {"other"}


def test_a_gang_that_breaks_goes_as_a_whole_and_says_for_whom_each_pod_goes():
    text = preset_text("volcano")
    ClusterState.objects.update(policy=PolicyVersion.objects.create(text=text))
    queue("other", deserved={"cpu": "1"})
    Queue.objects.update(min_run_seconds=0)
    for number in range(6):
        submit_job(manifest(f"gang-{number}", "other", replicas=4, least=4, seconds=100_000))
    run_session()
    pass_time(10)

    done = worked_out(documents=[job("tried", "batch", replicas=2, least=2)])

    evicted = done.result["evictions"]
    assert {row["action"] for row in evicted if not row["beneficiary"]} == {"shed"}
    assert {row["action"] for row in evicted if row["beneficiary"]} == {"reclaim"}
    broken = {row["podgroup"] for row in evicted if row["beneficiary"]}
    assert {row["podgroup"] for row in evicted if row["action"] == "shed"} <= broken
    page = text_of(signed_in("admin").get(f"/previews/{done.pk}/"))
    assert "nobody: its gang has too few pods left" in page
    assert "another queue" not in page


def test_a_file_may_mix_queues_nodes_and_jobs():
    documents = [
        edit("fresh", parent="root", weight=4),
        machine("extra", "16"),
        job("tried", "fresh", replicas=10, least=10),
    ]

    done = worked_out(documents=documents)

    assert told_of(done, "default/tried")["start"] == 0.0


def test_a_podgroup_is_tried_out_by_its_minimum():
    group = {
        "kind": "PodGroup",
        "metadata": {"name": "tried"},
        "spec": {"queue": "batch", "minMember": 2, "minResources": {"cpu": "3"}},
    }

    found = told_of(worked_out(documents=[group]), "default/tried")

    assert (found["pods"], found["start"]) == (2, 0.0)
    del group["spec"]["minResources"]
    with pytest.raises(Rejected, match="minResources"):
        start_preview(by=person("admin"), documents=[group])


def test_rights_are_those_of_submitting():
    done = worked_out(by=person("sam"), documents=[job("tried", "vision", replicas=1)])
    assert {row["queue"] for row in done.result["queues"]} <= {"vision"}

    for name, in_queue in (("vera", "vision"), ("sam", "batch")):
        with pytest.raises((Forbidden, Rejected)):
            start_preview(by=person(name), documents=[job("tried", in_queue)])
    with pytest.raises(Forbidden):
        start_preview(by=person("sam"), documents=[job("tried", "vision")], lost_nodes=["n1"])


@pytest.mark.parametrize(
    "documents",
    [
        [{"kind": "Job", "metadata": {"name": "tried"}, "spec": {"queue": "batch"}}],
        [{"kind": "Job", "metadata": {"name": "tried"}, "spec": 7}],
        [job("tried", "nowhere")],
        [job("train-1", "vision")],
        [job("tried", "batch"), job("tried", "vision")],
        [job("tried", "batch"), job("tried", "batch")],
        [{"kind": "PodGroup", "metadata": {"name": "x"}, "spec": {"minMember": -1}}],
    ],
)
def test_what_cannot_be_submitted_cannot_be_tried_out(documents: list[Any]):
    with pytest.raises(Rejected):
        start_preview(by=person("admin"), documents=documents)
    assert not Preview.objects.exists()


def test_pods_end_when_it_was_learnt_how_long_such_jobs_run():
    document = job("tried", "vision", replicas=8, least=8)
    document["spec"]["tasks"][0]["template"]["metadata"] = {}
    submit_job(manifest("full", "batch", replicas=4), by=person("admin"))
    PodGroup.objects.update(expected_seconds=None)
    run_session()
    unknown = worked_out(documents=[document])
    assert (
        unknown.result["runTimes"]["unknown"]
        == unknown.result["runTimes"]["learnt"] + (unknown.result["runTimes"]["unknown"])
    )

    LearntRunTime.objects.create(
        user="*", queue="*", size="*", count=10, quantiles=[60.0 + 6 * n for n in range(21)]
    )
    learnt = worked_out(documents=[document])

    assert told_of(unknown, "default/tried")["start"] is None
    found = told_of(learnt, "default/tried")
    assert found["start"] is not None
    assert found["earliest"] <= found["start"] <= found["latest"]
    assert learnt.result["runTimes"]["unknown"] == 0


def test_rules_that_the_loss_of_a_node_would_break_are_named():
    done = worked_out(lost_nodes=["n1"])

    notices = done.result["notices"]
    assert "research" in {notice["queue"] for notice in notices}
    messages = [notice["message"] for notice in notices]
    assert len(messages) == len(set(messages)), "what concerns all queues is said once"
