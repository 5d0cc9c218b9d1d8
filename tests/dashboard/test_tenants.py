"""Tenants do not learn of each other: whatever is asked for by its address is answered as if it had
never been, and lists, texts and counts leave it out.

`test_others_work.py` reads all that can be found by links.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from dashboard.api.urls import COLLECTIONS as API
from scheduler.admission.violations import Rejected
from scheduler.domain.access import Role
from scheduler.models import AuditEntry, Grant, NoticeRule, Queue, SavedView
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.grants import grant_role
from scheduler.services.change_sets.drafts import create_change_set
from tests.dashboard import other_tenant
from tests.dashboard.other_tenant import GANG, MALLORY, MISSING, SECRET, SPACE, VAULT, both
from tests.dashboard.work import person, signed_in, text

pytestmark = pytest.mark.django_db

Have = dict[str, Any]
JSON = "application/json"
METHODS = {"get", "post", "put", "patch", "delete"}
CHANGING = re.compile(
    r"<code>[0-9a-f]{32}</code>|"  # the id of the request
    r'name="csrfmiddlewaretoken" value="\w+"|nonce="[^"]+"|csrf\S+|'
    r'"requestId":"[^"]*"|[?&;]at=[^"&]*|data-as-of="[^"]*"|X-As-Of\S*'
)


@pytest.fixture
def have() -> Have:
    return other_tenant.two_tenants()


@pytest.fixture
def ruth(have: Have) -> Client:
    """An admin of research."""
    return signed_in("ruth")


def _routes_with_arguments(patterns: list[URLPattern | URLResolver]) -> set[str]:
    found = set()
    for pattern in patterns:
        if str(pattern.pattern).startswith(("api/v1/", "admin/")):
            continue
        if isinstance(pattern, URLResolver):
            found |= _routes_with_arguments(pattern.url_patterns)
        elif pattern.pattern.regex.groups:
            found.add(str(pattern.name))
    return found


def test_every_route_that_takes_an_argument_is_asked():
    known = other_tenant.PAGES.keys() | other_tenant.COLLECTIONS.keys()
    asked = _routes_with_arguments(get_resolver().url_patterns) | API.keys()

    assert asked == known | other_tenant.OF_THE_CLUSTER


def _told(client: Client, method: str, path: str, asked: str) -> tuple[int, str]:
    """Without what differs from request to request, and without what was asked for."""
    kind = JSON if path.startswith("/api/") else "application/x-www-form-urlencoded"
    body = "{}" if path.startswith("/api/") else ""
    answer = client.generic(method.upper(), path, body, content_type=kind)
    words = CHANGING.sub("", _main_part(text(answer)) + answer.headers.get("Location", ""))
    return answer.status_code, re.sub(rf"(?<!\w){re.escape(asked)}(?!\w)", "it", words)


def _main_part(page: str) -> str:
    """Of a page, what is not on every page: numbers occur there in many places."""
    return page.partition("<main")[2] or page


def _differences(client: Client, method: str, hidden: str, missing: str) -> list[str]:
    asked = _parts_that_differ(hidden, missing)
    told = _told(client, method, hidden, asked[0])
    if told == _told(client, method, missing, asked[1]) and SECRET not in told[1]:
        return []
    return [f"{method} {hidden}: {told[0]} {told[1][-300:]}"]


def _parts_that_differ(one: str, other: str) -> tuple[str, str]:
    for a, b in zip(one.split("/"), other.split("/"), strict=True):
        if a != b:
            return a.removesuffix("-worker-0"), b.removesuffix("-worker-0")
    raise AssertionError(one)


def test_a_page_of_another_tenant_is_like_one_that_never_was(ruth: Client, have: Have):
    told = []
    before = _everything_of_mallory()
    for place in other_tenant.PAGES.values():
        for method in ("get", "post"):
            told += _differences(ruth, method, *both(place, have))

    assert not told, "\n".join(told)
    assert _everything_of_mallory() == before


def test_an_object_of_another_tenant_is_like_one_that_never_was(ruth: Client, have: Have):
    told = []
    before = _everything_of_mallory()
    for name, place in other_tenant.COLLECTIONS.items():
        hidden, missing = both((f"/api/v1/{name}/{place[0]}/", place[1]), have)
        for method in sorted(METHODS):
            told += _differences(ruth, method, hidden, missing)
        for verb, methods in API[name].verbs.items():
            for method in methods:
                told += _differences(ruth, method, f"{hidden}{verb}/", f"{missing}{verb}/")

    assert not told, "\n".join(told)
    assert _everything_of_mallory() == before


def _everything_of_mallory() -> tuple[object, ...]:
    vault = Queue.objects.values_list("state", "description", "resource_version").get(name=VAULT)
    counts = (Grant.objects.count(), NoticeRule.objects.count(), SavedView.objects.count())
    return vault, counts, AuditEntry.objects.filter(queue_name=VAULT).count()


def test_lists_leave_them_out_and_do_not_count_them(ruth: Client, have: Have):
    for name in API:
        answer = ruth.get(f"/api/v1/{name}/?page_size=500")
        assert SECRET not in text(answer), name
        if answer.status_code == 200 and "count" in answer.json():
            assert answer.json()["count"] == len(answer.json()["results"]), name


def test_exports_leave_them_out(ruth: Client, have: Have):
    for path, kind in (
        ("/api/v1/audit/", "text/csv"),
        ("/api/v1/audit/", "application/x-ndjson"),
        ("/api/v1/loans/", "text/csv"),
        ("/api/v1/usage/?by=job", "text/csv"),
        ("/api/v1/fairness/", "text/csv"),
        ("/insights/loans/history.csv", "*/*"),
        ("/queues/-/names.json", "*/*"),
        ("/queues/-/rows.json", "*/*"),
    ):
        answer = ruth.get(path, headers={"accept": kind})
        assert answer.status_code == 200, path
        assert SECRET not in text(answer), path
    assert ruth.get("/api/v1/configuration/").status_code == 403
    assert ruth.get("/metrics", REMOTE_ADDR="192.0.2.1").status_code == 403
    assert ruth.get("/sessions/1/scenario.json").status_code in (403, 404)


class TestNamespaces:
    def test_those_of_another_tenant_are_not_listed(self, ruth: Client):
        names = [
            row["metadata"]["name"] for row in ruth.get("/api/v1/namespaces/").json()["results"]
        ]

        assert names == ["default"]

    def test_one_that_is_granted_to_both_is(self, ruth: Client):
        Queue.objects.filter(name="vision").update(namespaces=SPACE)

        assert ruth.get(f"/api/v1/namespaces/{SPACE}/").status_code == 200

    def test_one_that_is_granted_above_both_is(self, ruth: Client):
        Queue.objects.filter(name="root").update(namespaces=SPACE)

        assert ruth.get(f"/api/v1/namespaces/{SPACE}/").status_code == 200

    def test_who_sees_the_whole_cluster_sees_all(self, have: Have):
        answer = signed_in("admin").get("/api/v1/namespaces/")

        assert {SPACE, f"{SECRET}-home"} <= {
            row["metadata"]["name"] for row in answer.json()["results"]
        }


class TestSharedViews:
    def test_a_view_that_names_a_queue_of_others_is_not_shared_with_a_tenant(self, ruth: Client):
        admin = get_user_model().objects.get(username="admin")
        for name, query in (("of one", f"q=queue%3A{VAULT}"), ("of all", "q=is%3Awaiting")):
            SavedView.objects.create(owner=admin, page="jobs", name=name, query=query, shared=True)

        names = [row["spec"]["name"] for row in ruth.get("/api/v1/views/").json()["results"]]

        assert names == ["of all"]
        assert SECRET not in text(ruth.get("/jobs/"))
        assert "of all" in text(ruth.get("/jobs/"))


class TestGrants:
    @pytest.mark.parametrize("who", [{"user": MALLORY}, {"group": GANG}])
    def test_a_stranger_cannot_be_told_from_nobody(self, have: Have, who: dict[str, str]):
        told = []
        for name in (next(iter(who.values())), MISSING):
            asked = dict.fromkeys(who, name)
            with pytest.raises(Rejected) as refused:
                grant_role(**asked, role=Role.VIEWER, queue="vision", by=person("ruth"))
            told.append(str(refused.value).replace(name, "X"))

        assert told[0] == told[1]
        assert not Grant.objects.filter(queue__name="vision", user__username=MALLORY).exists()

    def test_an_admin_of_the_cluster_may_give_anybody_a_role(self, have: Have):
        grant_role(user=MALLORY, role=Role.VIEWER, queue="vision", by=person("admin"))

        assert Grant.objects.filter(queue__name="vision", user__username=MALLORY).exists()


def test_what_is_folded_does_not_tell_which_queues_there_are(ruth: Client):
    asked = {"folded": [VAULT, MISSING, "vision"]}
    answer = ruth.patch("/api/v1/users/~/preferences/", asked, content_type=JSON)

    assert answer.status_code == 200
    assert answer.json()["spec"]["folded"] == ["vision"]


def test_why_a_planned_change_cannot_begin_is_told_without_other_tenants(ruth: Client):
    """An admin of the cluster has planned a quota of research, which is too much for both."""
    asked = {"kind": "Queue", "metadata": {"name": "research"}, "spec": {"description": "x"}}
    drawn = create_change_set("More for research", [asked], by=SYSTEM)
    trouble = f"It cannot begin: research 8 and {VAULT} 4 are more than root has."
    plan = other_tenant.planned(drawn, trouble)

    for path in (
        f"/changes/{drawn.pk}/",
        "/changes/calendar/",
        f"/api/v1/plans/{plan.pk}/",
        f"/api/v1/occurrences/{plan.occurrences.get().pk}/",
    ):
        seen = text(ruth.get(path))
        assert SECRET not in seen, path
        assert "see the whole cluster" in seen, path
        assert trouble in text(signed_in("admin").get(path)), path


def test_how_much_waits_below_a_queue_out_of_sight_is_not_told(ruth: Client):
    Queue.objects.filter(name="root").update(max_waiting_jobs=50)

    seen = text(ruth.get("/queues/vision/"))

    assert "at most 50" in seen
    assert "2 now" not in seen
    assert "2 now" in text(signed_in("admin").get("/queues/vision/"))
