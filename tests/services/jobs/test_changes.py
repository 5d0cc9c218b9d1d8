"""Jobs that grow, shrink and go while pods of theirs are still on their nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.admission.violations import Rejected
from scheduler.models import Decision, Job, Pod, PodGroup, SimulatedPod
from scheduler.services.cluster.dispatch import dispatch
from scheduler.services.jobs.changes import delete_job, update_job
from scheduler.services.jobs.podgroups import delete_podgroup, submit_podgroup
from scheduler.services.jobs.single_pods import submit_pod
from scheduler.services.jobs.submit import command_job
from scheduler.services.records import retention
from scheduler.services.sessions.runner import SessionRunner
from tests.worlds import job, node, pass_time, phases, run_session

pytestmark = [pytest.mark.django_db]


def with_replicas(number: int) -> dict[str, Any]:
    return {
        "spec": {
            "minAvailable": 1,
            "tasks": [{**Job.objects.get().tasks[0], "replicas": number, "minAvailable": 1}],
        }
    }


def running(**shape: Any) -> Job:
    node("n1", cpu="8")
    made = job("train", **shape)
    run_session()
    pass_time(3)
    return made


def test_a_job_that_grows_again_while_the_pods_it_lost_are_leaving_has_all_its_pods_in_the_end():
    made = running(replicas=3, least=1)
    update_job("default", "train", with_replicas(1), merge=True)
    dispatch()

    update_job("default", "train", with_replicas(3), merge=True)
    pass_time(5)
    run_session()
    pass_time(3)

    assert phases(made) == ["Running"] * 3


def test_a_pod_that_nobody_wants_any_more_goes_also_when_it_ends_by_itself():
    made = running(replicas=2, least=1, seconds=20)
    update_job("default", "train", with_replicas(1), merge=True)

    pass_time(40)  # nobody has told the cluster yet

    made.refresh_from_db()
    assert phases(made) == ["Succeeded"]
    assert made.phase == "Completed"


def test_a_gang_that_was_deleted_goes_also_when_its_last_pod_ends_by_itself():
    node("n1", cpu="8")
    submit_podgroup({"metadata": {"name": "outside"}, "spec": {"minMember": 1, "queue": "default"}})
    marks = {"scheduling.k8s.io/group-name": "outside", "fumarole.io/run-seconds": "20"}
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    submit_pod(
        {"metadata": {"name": "one", "annotations": marks}, "spec": {"containers": containers}}
    )
    run_session()
    pass_time(3)
    delete_podgroup("default", "outside")

    pass_time(40)

    assert not PodGroup.objects.exists()


def test_a_gang_that_is_being_deleted_takes_no_more_pods():
    node("n1", cpu="8")
    submit_podgroup({"metadata": {"name": "outside"}, "spec": {"minMember": 1, "queue": "default"}})
    pod = {
        "metadata": {"name": "one", "annotations": {"scheduling.k8s.io/group-name": "outside"}},
        "spec": {},
    }
    submit_pod(pod)
    run_session()
    delete_podgroup("default", "outside")

    with pytest.raises(Rejected, match="is being deleted"):
        submit_pod({**pod, "metadata": {**pod["metadata"], "name": "two"}})


def failed_with_pods_leaving() -> Job:
    """One of its two pods failed, there is no retry, and the other has just been told to leave."""
    made = running(
        replicas=2,
        maxRetry=0,
        policies=[{"event": "PodFailed", "action": "RestartJob"}],
        seconds=600,
    )
    first = Pod.objects.order_by("index").first()
    assert first is not None
    SimulatedPod.objects.filter(pk=first.pk).update(next_at=0, exit_code=1)
    pass_time(1)
    made.refresh_from_db()
    assert (made.phase, phases(made)) == ("Failed", ["Failed", "Releasing"])
    return made


def test_a_job_that_has_failed_is_not_deleted_before_its_pods_have_left_their_nodes():
    failed_with_pods_leaving()
    with pytest.raises(Rejected, match="has 1 pod on nodes still"):
        delete_job("default", "train")

    dispatch()
    pass_time(5)
    delete_job("default", "train")

    assert not Job.objects.exists()
    assert not SimulatedPod.objects.exists()


def test_nor_does_it_go_by_itself_before_they_have():
    made = failed_with_pods_leaving()
    Job.objects.filter(pk=made.pk).update(ttl_seconds_after_finished=0)

    retention.tidy_up()
    assert Job.objects.exists()

    dispatch()
    pass_time(5)
    retention.tidy_up()
    assert not Job.objects.exists()
    assert not SimulatedPod.objects.exists()


def test_what_nobody_carried_out_yet_is_not_forgotten_however_old_it_is(
    monkeypatch: pytest.MonkeyPatch,
):
    old = running(replicas=2)
    command_job("default", "train", "Suspend")
    new = job("next")
    SessionRunner("test").run()
    for table in ("decisions", "sessions"):
        monkeypatch.setitem(
            retention.KEPT,
            table,
            (*retention.KEPT[table][:2], timedelta(hours=-1)),
        )

    retention.tidy_up()

    assert sorted(Decision.objects.values_list("kind", "done_at")) == [
        ("Bind", None),
        ("Evict", None),
        ("Evict", None),
    ]
    dispatch()
    pass_time(5)
    old.refresh_from_db()
    assert (old.phase, phases(new)) == ("Aborted", ["Running"])


@pytest.mark.postgres
@pytest.mark.parametrize(
    "act",
    [
        lambda: update_job("default", "train", with_replicas(1), merge=True),
        lambda: delete_job("default", "train"),
    ],
)
def test_whoever_changes_a_job_takes_the_locks_in_the_order_that_all_others_do(act: Any):
    job("train", replicas=3, least=1)
    if act.__code__.co_names[0] == "delete_job":
        command_job("default", "train", "Cancel")

    with CaptureQueriesContext(connection) as log:
        act()

    statements = [query["sql"] for query in log.captured_queries]
    alone = next(
        place for place, sql in enumerate(statements) if "pg_advisory_xact_lock(7320002" in sql
    )
    assert alone < next(
        place
        for place, sql in enumerate(statements)
        if "scheduler_job" in sql and "FOR UPDATE" in sql
    )
