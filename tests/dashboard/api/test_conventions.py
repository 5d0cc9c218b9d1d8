"""Small things that a program relies on: what a 412 tells, which parameter a refusal names, repeats
that cross, objects applied as read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from scheduler.models import Job, KeptAnswer
from scheduler.services.records import idempotency
from tests.dashboard.api.conftest import Caller, job, node, queue

pytestmark = pytest.mark.django_db


def test_a_412_tells_what_was_changed_and_by_whom(admin: Caller):
    admin.post("queues/", queue("a"), expect=201)
    admin.patch("queues/a/", {"spec": {"weight": 5}})
    admin.post("jobs/", job("train", "a"), expect=201)
    admin.patch("jobs/default/train/", {"metadata": {"labels": {"a": "b"}}})
    stale = {"If-Match": '"1"'}

    of_queue = admin.patch("queues/a/", {"spec": {"weight": 6}}, expect=412, **stale)["changed"]
    of_job = admin.patch("jobs/default/train/", {"metadata": {"labels": {}}}, expect=412, **stale)[
        "changed"
    ]
    policy = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'
    admin.put("policy/", {"spec": {"policy": policy}})
    of_policy = admin.put(
        "policy/",
        {"spec": {"policy": policy + "  - name: capacity\n"}},
        expect=412,
        **{"If-Match": '"0"'},
    )["changed"]

    assert (of_queue["by"], of_queue["what"][0]["message"]) == (
        "boss",
        "Changed weight from 1 to 5.",
    )
    assert (of_job["by"], of_job["what"][0]["action"]) == ("boss", "UpdateJob")
    assert (of_policy["by"], of_policy["what"][0]["action"]) == ("boss", "ReplacePolicy")


GOOD_TAGS = ("*", '"2"', 'W/"2"', '"9", W/"2"', '"2" , "9"', '"a,b","2"')
BAD_TAGS = ('"1", "9"', '"2', "2", 'x"2"', ", ,", f'"{"9" * 40}"')


def test_any_of_the_versions_that_if_match_names_will_do(admin: Caller):
    admin.post("queues/", queue("a"), expect=201)
    admin.patch("queues/a/", {"spec": {"weight": 5}})

    for tags in GOOD_TAGS:
        admin.patch("queues/a/?dry_run=true", {"spec": {"weight": 6}}, **{"If-Match": tags})
    for tags in BAD_TAGS:
        admin.patch(
            "queues/a/?dry_run=true",
            {"spec": {"weight": 6}},
            expect=412,
            **{"If-Match": tags},
        )


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "queues/a/suspend/"),
        ("POST", "queues/a/close/?dry_run=true"),
        ("DELETE", "queues/a/?close_first=true"),
        ("POST", "jobs/default/train/suspend/"),
    ],
)
def test_commands_and_deletions_look_at_the_version_too(admin: Caller, method: str, path: str):
    admin.post("queues/", queue("a"), expect=201)
    admin.post("jobs/", job("train", "default"), expect=201)

    admin.ask(method, path, expect=412, **{"If-Match": '"7", "8"'})
    assert admin.get("queues/a/")["status"]["state"] == "Open"
    assert admin.get("jobs/default/train/")["status"]["state"]["phase"] == "Pending"

    admin.ask(method, path, expect=200, **{"If-Match": '"7", W/"1"'})


@pytest.mark.parametrize(
    ("path", "parameter"),
    [
        ("jobs/?newer_than=x", "newer_than"),
        ("jobs/?older_than=999999999d", "older_than"),
        ("jobs/?min_request=cpu", "min_request"),
        ("queues/?max_allocated=cpu:x", "max_allocated"),
        ("decisions/?session=x", "session"),
    ],
)
def test_a_refused_filter_is_named(admin: Caller, path: str, parameter: str):
    assert admin.get(path, expect=400)["violations"][0]["field"] == parameter


def test_what_was_read_is_applied_without_change_or_warning(admin: Caller):
    admin.post(
        "nodes/",
        {
            **node("n1", cpu="4"),
            "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
        },
        expect=201,
    )
    admin.post("queues/", queue("a", guarantee={"cpu": "1"}), expect=201)
    admin.post("jobs/", job("train", "a"), expect=201)
    admin.post(
        "podgroups/",
        {"metadata": {"name": "outside"}, "spec": {"queue": "a", "minMember": 2}},
        expect=201,
    )
    admin.post("priorityclasses/", {"metadata": {"name": "high"}, "value": 10}, expect=201)

    for kind in ("queues", "jobs", "podgroups", "nodes", "namespaces", "priorityclasses"):
        found = admin.get(f"{kind}/")["results"]
        done = admin.post("apply/", found)
        assert (
            kind,
            done["changed"],
            [item["warnings"] for item in done["results"] if item["warnings"]],
        ) == (kind, False, [])
    changed = {
        "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"queue": "a", "minMember": 9},
    }
    assert "belongs to the job" in admin.post("apply/", changed, expect=409)["detail"]


def test_a_uid_tells_nothing_about_a_job_out_of_sight(admin: Caller, caller: Callable[..., Caller]):
    admin.post("queues/", [queue("a"), queue("b")])
    admin.post("jobs/", job("secret", "b"), expect=201)
    ann = caller("ann", admin="a")

    def detail(name: str, uid: str) -> Any:
        target = {"kind": "Job", "namespace": "default", "name": name, "uid": uid}
        return ann.post("commands/", {"action": "AbortJob", "target": target}, expect=400)[
            "detail"
        ].replace(name, "…")

    assert (
        detail("secret", "wrong")
        == detail("nothing", "wrong")
        == detail("secret", str(Job.objects.get().uid))
    )


def test_the_secret_of_a_token_is_kept_for_no_repeated_request(admin: Caller):
    def make() -> Any:
        return admin.ask(
            "POST",
            "tokens/",
            {"name": "ci", "scopes": ["read"]},
            expect=201,
            **{"Idempotency-Key": "once"},
        )

    first = make()
    again = make()

    assert first["token"].startswith("fum_")
    assert again == {**first, "token": ""}
    assert first["token"] not in str(list(KeptAnswer.objects.values()))


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_repeat_waits_a_while_for_the_first_and_is_then_told(
    admin: Caller, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(idempotency, "PATIENCE", timedelta(milliseconds=200))
    claimed = threading.Event()
    over = threading.Event()

    def first() -> None:
        with transaction.atomic():
            idempotency.claim(admin.user, "once", "digest")
            claimed.set()
            over.wait(30)
            transaction.set_rollback(True)
        connection.close()

    thread = threading.Thread(target=first)
    thread.start()
    claimed.wait(30)
    busy = admin.post("jobs/", job("train", "default"), expect=409, **{"Idempotency-Key": "once"})
    over.set()
    thread.join()

    assert busy["type"].endswith("key-busy")
    admin.post("jobs/", job("train", "default"), expect=201, **{"Idempotency-Key": "once"})
