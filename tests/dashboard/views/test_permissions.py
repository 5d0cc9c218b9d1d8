"""Who gets which page, and what a refusal says."""

from __future__ import annotations

import shlex

import pytest
from django.test import Client

from tests.dashboard.work import PASSWORD, PEOPLE, signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


EVERYBODYS = [
    "/jobs/",
    "/jobs/default/train-1/",
    "/jobs/default/train-2/timeline/",
    "/jobs/default/train-1/events/",
    "/jobs/default/train-1/yaml/",
    "/jobs/default/train-1/evictions/",
    "/jobs/-/new/",
    "/nodes/",
    "/nodes/?view=map",
    "/nodes/n1/",
    "/sessions/",
    "/activity/",
    "/policy/",
    "/account/",
]


ADMINS = ["/audit/", "/users/", "/users/-/grants/", "/users/sam/"]


CLUSTER_ADMINS = ["/users/-/new/", "/nodes/n1/drain/", "/sessions/-/pause/"]


def statuses(who: str, paths: list[str]) -> dict[str, int]:
    client = signed_in(who)
    return {path: client.get(path).status_code for path in paths}


@pytest.mark.parametrize("who", PEOPLE)
def test_everybody_who_sees_a_queue_gets_the_pages(who: str):
    assert statuses(who, EVERYBODYS) == dict.fromkeys(EVERYBODYS, 200)


@pytest.mark.parametrize(
    ("who", "expected"), [("admin", 200), ("ruth", 200), ("sam", 403), ("vera", 403)]
)
def test_pages_of_admins(who: str, expected: int):
    assert statuses(who, ADMINS) == dict.fromkeys(ADMINS, expected)


@pytest.mark.parametrize(
    ("who", "expected"), [("admin", 200), ("ruth", 403), ("sam", 403), ("vera", 403)]
)
def test_pages_of_cluster_admins(who: str, expected: int):
    assert statuses(who, CLUSTER_ADMINS) == dict.fromkeys(CLUSTER_ADMINS, expected)


def test_a_refusal_says_what_is_missing_and_whom_to_ask():
    answer = signed_in("sam").get("/audit/")

    assert (
        "You need the permission “admin” on some queue to read the audit log, and have it on none. "
        "Ask an admin of a queue."
    ) in text(answer)
    assert "You can get it from <strong>admin</strong>." in text(answer)


def test_whom_to_ask_begins_with_the_nearest():
    answer = signed_in("vera").post("/jobs/default/train-1/suspend/")

    assert "You can get it from <strong>ruth, admin</strong>." in text(answer)


def test_pages_for_nobody_lead_to_the_sign_in():
    for path in [*EVERYBODYS, *ADMINS, *CLUSTER_ADMINS]:
        assert Client().get(path)["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize(
    ("who", "begins"), [("admin", "/"), ("ruth", "/"), ("sam", "/jobs/?q=user:me"), ("vera", "/")]
)
@pytest.mark.parametrize("asked", ["/accounts/login/", "/accounts/login/?next=/"])
def test_a_submitter_begins_with_his_own_jobs(who: str, begins: str, asked: str):
    answer = Client(REMOTE_ADDR="127.0.0.1").post(asked, {"username": who, "password": PASSWORD})

    assert answer["Location"] == begins


def test_who_asked_for_a_page_gets_it_after_signing_in():
    answer = Client(REMOTE_ADDR="127.0.0.1").post(
        "/accounts/login/?next=/nodes/", {"username": "sam", "password": PASSWORD}
    )

    assert answer["Location"] == "/nodes/"


@pytest.mark.parametrize(
    ("path", "cli", "call"),
    [
        (
            "/jobs/default/train-1/suspend/",
            "vcctl job suspend default/train-1",
            "/api/v1/jobs/default/train-1/suspend/",
        ),
        ("/nodes/n1/drain/", "vcctl node drain n1", "/api/v1/nodes/n1/drain/"),
        ("/nodes/n1/lose/", "vcctl node lose n1", "/api/v1/nodes/n1/lose/"),
        ("/sessions/-/pause/", "vcctl pause", "/api/v1/cluster/pause/"),
    ],
)
def test_what_a_button_does_is_told_for_a_terminal_and_works_there(path: str, cli: str, call: str):
    client = signed_in("admin")
    copies = client.get(path).context["copies"]
    body = shlex.split(copies["curl"])[shlex.split(copies["curl"]).index("-d") + 1]

    answer = client.post(call, body, content_type="application/json")

    assert copies["cli"] == cli
    assert copies["curl"].endswith(f"http://testserver{call}")
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("/users/-/grants/?queue=language", "grants/"),
        ("/users/-/new/", "users/"),
        ("/account/", "tokens/"),
    ],
)
def test_what_has_no_command_is_told_as_a_call(path: str, call: str):
    client = signed_in("admin")
    copies = client.get(path).context["copies"]
    words = shlex.split(copies["curl"])
    same = shlex.split(copies["cli"])
    body = words[words.index("-d") + 1]

    answer = client.post(
        f"/api/v1/{call}",
        body.replace("NAME", "sam" if call == "grants/" else "newt"),
        content_type="application/json",
    )

    assert same == ["vcctl", "api", "post", call, "-d", body]
    assert answer.status_code == 201, answer.content


def test_a_queue_admin_makes_queues_below_his_own_and_learns_of_no_others():
    ruth = signed_in("ruth")

    tree = text(ruth.get("/queues/"))
    form = ruth.get("/queues/-/new/")

    assert "New queue" in tree
    assert (form.status_code, form.context["form"].parent, form.context["parents"]) == (
        200,
        "research",
        ["research", "language", "vision"],
    )


def test_a_path_leads_only_where_the_reader_may_go():
    sam, ruth = (text(signed_in(who).get("/queues/vision/")) for who in ("sam", "ruth"))

    assert 'href="/queues/research/"' not in sam
    assert 'href="/queues/research/"' in ruth


def test_a_viewer_is_not_offered_to_choose_jobs():
    vera, sam = (text(signed_in(who).get("/jobs/")) for who in ("vera", "sam"))

    assert "data-pick-all" not in vera
    assert "none is yours" in vera
    assert "data-pick-all" in sam
