"""An Idempotency-Key: the deed and its answer are one transaction, whatever fails and however many
repeat it at once.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import OperationalError, connection

from scheduler.models import Command, Job, KeptAnswer, Queue
from scheduler.services.jobs import submit
from scheduler.services.records import idempotency
from tests.dashboard.api.conftest import Caller, queue
from tests.worlds import manifest

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

KEY = {"Idempotency-Key": "once"}


def lost(*_args: Any, **_more: Any) -> Any:
    raise OperationalError("the connection is closed")


@pytest.mark.parametrize("fails", ["before the deed", "after the deed", "with the answer"])
def test_a_request_that_lost_the_database_did_nothing_and_can_be_sent_again_at_once(
    admin: Caller,
    monkeypatch: pytest.MonkeyPatch,
    fails: str,
):
    places = {
        "before the deed": (submit, "_create_job"),
        "after the deed": (submit, "want_session"),
        "with the answer": (idempotency, "keep"),
    }
    with monkeypatch.context() as patched:
        patched.setattr(*places[fails], lost)
        admin.post("jobs/", manifest("train"), expect=503, **KEY)
    assert not Job.objects.exists()
    assert not KeptAnswer.objects.exists()

    made = admin.post("jobs/", manifest("train"), expect=201, **KEY)

    assert admin.post("jobs/", manifest("train"), expect=201, **KEY) == made
    assert admin.last["Idempotent-Replayed"] == "true"
    assert Job.objects.count() == 1


def test_a_process_that_dies_in_the_middle_leaves_no_claim(
    admin: Caller, monkeypatch: pytest.MonkeyPatch
):
    class Dies(BaseException):
        pass

    def die(*_args: Any, **_more: Any) -> None:
        raise Dies

    with monkeypatch.context() as patched:
        patched.setattr(idempotency, "keep", die)
        with pytest.raises(Dies):
            admin.post("jobs/", manifest("train"), **KEY)

    assert not Job.objects.exists()
    admin.post("jobs/", manifest("train"), expect=201, **KEY)


def test_an_order_that_was_refused_with_503_never_runs(
    admin: Caller, monkeypatch: pytest.MonkeyPatch
):
    admin.post("queues/", queue("a"), expect=201)
    for key in ({}, KEY):
        with monkeypatch.context() as patched:
            patched.setattr("scheduler.services.queues.commands.TreeEdit", lost)
            admin.post("queues/a/close/", expect=503, **key)

    assert not Command.objects.exists()
    assert Queue.objects.get(name="a").state == "Open"
    admin.post("queues/a/close/", **KEY)
    assert Queue.objects.get(name="a").state == "Closed"


def test_many_repeats_at_once_are_carried_out_once(admin: Caller):
    def ask(_number: int) -> tuple[int, str]:
        own = Caller.__new__(Caller)
        own.__dict__.update(admin.__dict__)
        try:
            own.post("jobs/", manifest("train"), expect=201, **KEY)
            return own.last.status_code, own.last.headers.get("Idempotent-Replayed", "")
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        found = Counter(threads.map(ask, range(12)))

    assert found == {(201, ""): 1, (201, "true"): 11}
    assert Job.objects.count() == 1


def test_a_list_that_broke_off_goes_on_where_it_ended(
    admin: Caller, monkeypatch: pytest.MonkeyPatch
):
    several = [manifest(f"job-{number}") for number in range(4)]
    several[1]["spec"]["queue"] = "nowhere"
    made = submit.submit_job

    class Dies(BaseException):
        pass

    def breaks_off(asked: Any, **more: Any) -> Any:
        if asked["metadata"]["name"] == "job-2":
            raise Dies
        return made(asked, **more)

    with monkeypatch.context() as patched:
        patched.setattr(submit, "submit_job", breaks_off)
        with pytest.raises(Dies):
            admin.post("jobs/", several, **KEY)
    assert sorted(Job.objects.values_list("name", flat=True)) == ["job-0"]

    first = admin.post("jobs/", several, **KEY)
    again = admin.post("jobs/", several, **KEY)

    assert [result["status"] for result in first["results"]] == [201, 400, 201, 201]
    assert again == first
    assert Job.objects.count() == 3
    assert admin.post("jobs/", several[:2], expect=409, **KEY)["type"].endswith("key-reused")
    assert admin.post("jobs/", several[0], expect=409, **KEY)["type"].endswith("key-reused")


def test_a_list_for_which_the_database_is_lost_midway_is_made_whole_by_a_repeat(
    admin: Caller, monkeypatch: pytest.MonkeyPatch
):
    several = [manifest(f"job-{number}") for number in range(3)]
    made = submit.submit_job

    with monkeypatch.context() as patched:
        patched.setattr(
            submit,
            "submit_job",
            lambda asked, **more: lost() if "job-1" in str(asked) else made(asked, **more),
        )
        results = admin.post("jobs/", several, **KEY)["results"]
    assert [result["status"] for result in results] == [201, 503, 201]

    results = admin.post("jobs/", several, **KEY)["results"]

    assert [result["status"] for result in results] == [201, 201, 201]
    assert Job.objects.count() == 3


def test_a_refusal_is_repeated_and_its_record_kept(admin: Caller):
    refused = admin.post("queues/root/close/", expect=409, **KEY)

    assert admin.post("queues/root/close/", expect=409, **KEY) == refused
    assert [row.result for row in Command.objects.all()] == ["Refused"]
