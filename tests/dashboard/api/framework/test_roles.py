"""What roles, tokens and groups give, and what they do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.tokens import create_token
from tests.dashboard.api.conftest import Caller, job, queue


@pytest.mark.django_db
def test_a_refusal_names_the_permission_and_the_queue(caller: Callable[..., Caller], admin: Caller):
    admin.post("queues/", [queue("team"), queue("inner", "team")])

    problem = caller("ann", viewer="team").post("queues/inner/suspend/", expect=403)
    assert (problem["permission"], problem["queue"]) == (
        "operate",
        "root",
    )  # the gate: she has it nowhere
    caller("ann", admin="inner")
    ann = caller("ann")
    problem = ann.post("queues/team/suspend/", expect=403)
    assert (problem["permission"], problem["queue"]) == ("operate", "team")
    quota = ann.patch("queues/inner/", {"spec": {"weight": 2}}, expect=403)
    assert (quota["permission"], quota["queue"]) == ("admin", "team")
    assert "weight" in quota["detail"]
    assert ann.patch("queues/inner/", {"metadata": {"labels": {"a": "b"}}})["changed"] is True
    assert ann.post("queues/inner/suspend/")["changed"] is True


@pytest.mark.django_db
def test_an_admin_of_the_parent_moves_quotas_and_needs_both_parents_to_move_a_queue(
    caller: Callable[..., Caller], admin: Caller
):
    admin.post("queues/", [queue("a"), queue("b"), queue("x", "a"), queue("y", "a")])
    ann = caller("ann", admin="a")

    assert ann.patch("queues/x/", {"spec": {"weight": 3, "parent": "y"}})["spec"]["parent"] == "y"
    assert ann.patch("queues/a/", {"spec": {"weight": 3}}, expect=403)["queue"] == "root"
    assert ann.patch("queues/x/", {"spec": {"parent": "b"}}, expect=403)["queue"] == "b"


@pytest.mark.django_db
def test_lists_and_counts_show_only_what_may_be_seen(caller: Callable[..., Caller], admin: Caller):
    admin.post("queues/", [queue("a"), queue("a1", "a"), queue("b")])
    admin.post("jobs/", [job("mine", "a1"), job("theirs", "b")])
    ann = caller("ann", viewer="a")

    assert [row["metadata"]["name"] for row in ann.get("queues/")["results"]] == ["a", "a1"]
    assert [row["metadata"]["name"] for row in ann.get("jobs/")["results"]] == ["mine"]
    assert [row["metadata"]["name"] for row in ann.get("jobs/?queue=b")["results"]] == []
    assert {row["spec"]["queue"] for row in ann.get("events/")["results"]} <= {"a", "a1", ""}
    assert ann.get("queues/b/", expect=404)["detail"] == "There is no queue b."
    assert ann.get("queues/never-was/", expect=404)["detail"] == "There is no queue never-was."
    assert ann.get("queues/root/tree/", expect=404)
    assert ann.get("jobs/default/theirs/", expect=404)
    assert caller("ben").get("queues/")["results"] == []


@pytest.mark.django_db
def test_grants_come_from_groups_too_and_end_with_them(
    caller: Callable[..., Caller], admin: Caller
):
    admin.post("queues/", queue("a"), expect=201)
    ann = caller("ann")
    admin.post("groups/", {"name": "team", "members": ["ann"]}, expect=201)
    admin.post("grants/", {"group": "team", "role": "submitter", "queue": "a"}, expect=201)

    ann.post("jobs/", job("train", "a"), expect=201)
    assert ann.post("jobs/default/train/suspend/")["changed"] is True  # her own
    admin.patch("groups/team/", {"members": []})
    ann.post("jobs/", job("again", "a"), expect=403)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("scope", "may"),
    [
        ("read", "get"),
        ("submit", "get submit"),
        ("operate", "get submit operate"),
        ("admin", "get submit operate admin"),
    ],
)
def test_a_token_may_do_what_its_scopes_say_and_no_more(scope: str, may: str, admin: Caller):
    admin.post("queues/", queue("a"), expect=201)
    narrow = Caller("boss", (scope,))
    tries = {
        "get": lambda: narrow.ask("GET", "queues/"),
        "submit": lambda: narrow.ask("POST", "jobs/?dry_run=true", job("x", "a")),
        "operate": lambda: narrow.ask("POST", "queues/a/suspend/?dry_run=true"),
        "admin": lambda: narrow.ask("POST", "queues/?dry_run=true", queue("b")),
    }

    for name, attempt in tries.items():
        attempt()
        assert (narrow.last.status_code == 200) is (name in may.split()), (
            name,
            narrow.last.content,
        )
    if scope != "admin":
        wider = narrow.post("tokens/", {"name": "wider", "scopes": ["admin"]}, expect=403)
        assert wider["permission"]


@pytest.mark.django_db
def test_a_queue_admin_grants_below_and_not_beside(caller: Callable[..., Caller], admin: Caller):
    admin.post("queues/", [queue("a"), queue("b"), queue("a1", "a")])
    ann = caller("ann", admin="a")

    assert (
        ann.post("grants/", {"user": "ann", "role": "viewer", "queue": "a1"}, expect=201)["spec"][
            "queue"
        ]
        == "a1"
    )
    for hidden in ({"queue": "b"}, {"queue": "never-was"}, {}):
        problem = ann.post("grants/", {"user": "ann", "role": "admin", **hidden}, expect=400)
        assert (problem["violations"][0]["ruleId"], problem["violations"][0]["field"]) == (
            "queue_not_found",
            "spec.queue",
        )
    assert ann.post("grants/", {"user": "ann", "role": "emperor", "queue": "a"}, expect=400)[
        "violations"
    ]


@pytest.mark.django_db
def test_the_account_that_is_switched_off_is_out_at_once(
    caller: Callable[..., Caller], admin: Caller
):
    ann = caller("ann", viewer="root")
    ann.get("queues/")

    admin.patch("users/ann/", {"isActive": False})

    assert "switched off" in ann.get("queues/", expect=401)["detail"]


@pytest.mark.django_db
def test_tokens_of_others_are_out_of_reach(caller: Callable[..., Caller], admin: Caller):
    ann = caller("ann")
    ben = caller("ben")
    made = create_token(ben.user, "bens", ("read",), by=SYSTEM)

    ann.delete(f"tokens/{made.token.pk}/", expect=404)
    ann.post("tokens/", {"name": "x", "scopes": ["read"], "user": "ben"}, expect=400)
    admin.delete(f"tokens/{made.token.pk}/")
