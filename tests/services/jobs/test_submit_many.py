"""Jobs of one list get what each would get if it came alone, in a fixed number of statements."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler.admission.reading.workload import read_job
from scheduler.admission.violations import Rejected
from scheduler.conf import conf
from scheduler.domain.access import Forbidden
from scheduler.models import AuditEntry, Grant, Job, Namespace, Pod, PodGroup, Queue, UnmadePods
from scheduler.selectors.queues import submission
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.jobs import pod_creation, submit
from scheduler.services.jobs.submit import Submitted, submit_job
from scheduler.services.jobs.submit_many import submit_jobs
from tests.worlds import manifest

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

SUBMITTED = "submitted"


@pytest.fixture
def user() -> Actor:
    """May submit to two of the queues, and may not even see the third."""
    root = Queue.objects.get(name="root")
    for name in ("a", "b", "hidden", "closed"):
        Queue.objects.create(name=name, parent=root)
    Queue.objects.filter(name="closed").update(wish="Closed", state="Closed")
    Queue.objects.filter(name="b").update(max_run_seconds=100)
    account = get_user_model().objects.create_user("ada")
    for name in ("a", "b", "closed"):
        queue = Queue.objects.get(name=name)
        Grant.objects.create(user=account, queue=queue, role="submitter")
    return Actor("ada", door=Door.API, user=account)


@pytest.fixture
def few_pods_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_creation, "AT_ONCE", 20)


def limit(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    monkeypatch.setattr(submission, "conf", lambda: replace(conf(), limits=limits))


def told(results: Sequence[Submitted | Exception]) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for result in results:
        if isinstance(result, Rejected):
            found.append(("Rejected", *(each.message for each in result.violations)))
        elif isinstance(result, Exception):
            found.append((type(result).__name__, str(result)))
        else:
            notices = tuple(notice.message for notice in result.notices)
            gang = result.job.podgroup.name
            found.append((SUBMITTED, str(result.job), gang, result.pods, result.run_limit, notices))
    return found


def rows() -> dict[str, list[Any]]:
    """Everything that is stored of the jobs, but what is by chance and by the clock."""
    jobs = Job.objects.order_by("id").values_list(
        "namespace", "name", "queue__name", "owner", "owner_user", "tasks", "min_available"
    )
    gangs = PodGroup.objects.order_by("id").values_list(
        "name", "job__name", "queue__name", "size", "min_member", "min_resources", "phase"
    )
    pods = Pod.objects.order_by("id").values_list(
        "name", "podgroup__name", "task", "index", "pod_class__digest", "phase", "run_seconds"
    )
    unmade = UnmadePods.objects.order_by("id").values_list("podgroup__name", "task", "end_index")
    entries = AuditEntry.objects.order_by("id").values_list(
        "actor", "action", "kind", "namespace", "name", "queue_name", "after"
    )
    namespaces = Namespace.objects.order_by("name").values_list("name")
    parts = {"jobs": jobs, "gangs": gangs, "pods": pods, "unmade": unmade, "entries": entries}
    return {name: list(values) for name, values in (*parts.items(), ("namespaces", namespaces))}


def alone(manifests: Sequence[Any], by: Actor) -> Iterator[Submitted | Exception]:
    for each in manifests:
        try:
            with transaction.atomic():
                yield submit_job(each, by=by)
        except Exception as error:
            yield error


def undone(submit: Any, manifests: Sequence[Any], by: Actor) -> tuple[Any, Any]:
    with transaction.atomic():
        found = told(list(submit(manifests, by=by))), rows()
        transaction.set_rollback(True)
    return found


def random_job(choose: random.Random) -> Any:
    """Few names, so that some are taken; now and then something is wrong with it."""
    asked = manifest(
        f"j{choose.randrange(25)}",
        choose.choice(["a", "a", "b", "b", "closed", "hidden", "nowhere"]),
        replicas=choose.choice([1, 2, 3, 30]),
        cpu=choose.choice(["1", "2"]),
        seconds=choose.choice([10, 500]),
    )
    if choose.random() < 0.1:
        asked["metadata"]["namespace"] = choose.choice(["new", "other"])
    if choose.random() < 0.1:
        asked["spec"]["minAvailable"] = 99
    if choose.random() < 0.1:
        asked["spec"]["tasks"][0]["name"] = "worker-0"
    if choose.random() < 0.05:
        return choose.choice([None, [], "job", {"spec": 7}])
    return asked


@pytest.mark.usefixtures("few_pods_at_once")
@pytest.mark.parametrize("seed", range(12))
def test_a_list_is_answered_and_stored_as_its_jobs_one_by_one(
    seed: int, user: Actor, monkeypatch: pytest.MonkeyPatch
):
    choose = random.Random(seed)
    if seed % 3 == 0:
        limit(monkeypatch, jobs_per_queue=8, pods_per_user=60)
    if seed % 3 == 1:
        Queue.objects.filter(name="a").update(max_waiting_jobs=4)
    manifests = [random_job(choose) for _ in range(30)]

    one_by_one = undone(alone, manifests, user)
    together = undone(submit_jobs, manifests, user)

    assert together == one_by_one


def test_statements_do_not_grow_with_the_list(user: Actor):
    list(submit_jobs([manifest("first", "a")], by=user))
    asked = []

    for number in (5, 15):
        jobs = [manifest(f"of-{number}-{each}", "a") for each in range(number)]
        with CaptureQueriesContext(connection) as log:
            results = list(submit_jobs(jobs, by=user))
        assert {outcome for outcome, *_ in told(results)} == {SUBMITTED}
        asked.append(len(log))

    assert asked[0] == asked[1]


def test_a_name_that_is_taken_harms_no_other_of_the_list(user: Actor):
    submit_job(manifest("taken", "a"), by=user)

    results = list(submit_jobs([manifest(name, "a") for name in ("x", "taken", "y")], by=user))

    assert [outcome for outcome, *_ in told(results)] == [SUBMITTED, "Rejected", SUBMITTED]
    assert set(Job.objects.values_list("name", flat=True)) == {"taken", "x", "y"}


def test_a_mistake_of_ours_in_one_job_harms_no_other_of_the_list(
    user: Actor, monkeypatch: pytest.MonkeyPatch
):
    def read(asked: Any, facts: Any) -> Any:
        if asked["metadata"]["name"] == "odd":
            raise RecursionError("too deep")
        return read_job(asked, facts)

    monkeypatch.setattr(submit, "read_job", read)

    results = list(submit_jobs([manifest(name, "a") for name in ("x", "odd", "y")], by=user))

    assert [outcome for outcome, *_ in told(results)] == [SUBMITTED, "RecursionError", SUBMITTED]
    assert set(Job.objects.values_list("name", flat=True)) == {"x", "y"}


def test_whoever_may_not_submit_submits_nothing(user: Actor):
    Grant.objects.update(role="viewer")

    results = list(submit_jobs([manifest("x", "a"), manifest("y", "a")], by=user))

    assert [isinstance(result, Forbidden) for result in results] == [True, True]
    assert not Job.objects.exists()


def test_a_job_of_as_many_pods_as_are_allowed_is_admitted_and_makes_none_at_once():
    made = submit_job(manifest("huge", replicas=100_000))

    assert made.pods == 100_000
    assert made.job.podgroup.size == 100_000
    assert not Pod.objects.exists()
    assert UnmadePods.objects.get().end_index == 100_000
