"""Saved views as tiles of the overview: each reader's own, with what the view finds for them."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.models import Preference, SavedView
from tests.dashboard.work import signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def kept(who: str, name: str, query: str, shared: str = "1") -> SavedView:
    signed_in(who).post("/jobs/-/views/", {"name": name, "q": query, "shared": shared})
    return SavedView.objects.get(name=name)


def pinned(who: str, view: SavedView) -> Any:
    client = signed_in(who)
    client.post(f"/jobs/-/views/{view.pk}/pin/", {"pinned": "1"})
    return client


def test_a_pinned_view_shows_its_count_and_the_longest_wait():
    client = pinned("admin", kept("admin", "Stuck", "state:waiting"))

    page = client.get("/")

    assert "Stuck" in text(page)
    (tile,) = page.context["view_tiles"]
    assert (tile["count"], tile["url"]) == ("1 job", "/jobs/?q=state%3Awaiting")
    assert tile["oldest"]
    assert signed_in("ruth").get("/").context["view_tiles"] == []


def test_a_shared_view_counts_what_its_reader_may_see():
    view = kept("admin", "All", "state:live")

    (admin,) = pinned("admin", view).get("/").context["view_tiles"]
    ruth = signed_in("ruth").get(f"/api/v1/views/{view.pk}/count/")

    assert admin["count"] == "4 jobs"
    if ruth.status_code == 200:
        assert ruth.json()["jobs"] == 3


def test_a_view_of_somebody_else_cannot_be_pinned():
    view = kept("admin", "Mine", "", shared="")

    signed_in("ruth").post(f"/jobs/-/views/{view.pk}/pin/", {"pinned": "1"})

    assert not Preference.objects.filter(user__username="ruth").exists()


def test_a_view_is_taken_off_again_and_a_deleted_one_leaves_no_tile():
    view = kept("admin", "Stuck", "state:waiting")
    client = pinned("admin", view)

    client.post(f"/jobs/-/views/{view.pk}/pin/", {"pinned": "0"})
    assert client.get("/").context["view_tiles"] == []
    pinned("admin", view)
    view.delete()
    assert client.get("/").context["view_tiles"] == []


def test_tiles_over_the_api():
    view = kept("admin", "Stuck", "state:waiting")
    client = signed_in("admin")
    where = "/api/v1/users/admin/preferences/"

    changed = client.patch(
        where, {"spec": {"pinnedViews": [str(view.pk)]}}, content_type="application/json"
    )
    refused = client.patch(where, {"spec": {"pinnedViews": "all"}}, content_type="application/json")
    count = client.get(f"/api/v1/views/{view.pk}/count/").json()

    assert changed.json()["spec"]["pinnedViews"] == [str(view.pk)]
    assert refused.json()["violations"][0]["field"] == "spec.pinnedViews"
    assert (count["jobs"], count["isMore"]) == (1, False)
    assert count["oldestWaitSince"]
