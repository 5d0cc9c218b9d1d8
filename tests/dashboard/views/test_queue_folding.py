"""Which branches of the tree are folded, for each reader."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from scheduler.selectors.accounts.preferences import preference_of
from tests.dashboard.sample import add_queue
from tests.dashboard.work import text


def visible(answer: Any) -> list[str]:
    return re.findall(r'<tr role="row" data-key="([^"]+)"', text(answer).partition("<template")[0])


class TestFolding:
    def test_what_is_folded_is_kept_for_the_reader_and_hides_all_below(self, admin: Client):
        assert (
            admin.post("/queues/-/folded/", {"queue": ["root", "research", "gone"]}).status_code
            == 204
        )

        user = get_user_model().objects.get(username="admin")
        assert preference_of(user).folded == ["research", "root"]
        page = text(admin.get("/queues/"))
        assert visible(admin.get("/queues/")) == ["root"]
        assert "<tr hidden" not in page
        assert 'data-count="8"' in page

    def test_a_search_and_a_flat_table_show_all(self, admin: Client):
        admin.post("/queues/-/folded/", {"queue": ["research"]})

        assert "<tr hidden" not in text(admin.get("/queues/?view=table"))
        assert visible(admin.get("/queues/?q=vision")) == ["root", "research", "vision"]

    def test_a_large_tree_opens_as_far_as_it_fits(self, admin: Client):
        for team in range(30):
            add_queue(f"team-{team:02}")
            add_queue(f"team-{team:02}-a", f"team-{team:02}")
        names = [
            "root",
            "default",
            "production",
            "research",
            *(f"team-{team:02}" for team in range(30)),
        ]

        assert visible(admin.get("/queues/")) == names
        assert len(visible(admin.get("/queues/?levels=0"))) == 68
        assert visible(admin.get("/queues/?levels=1")) == ["root"]

    def test_the_levels_are_kept_for_the_reader_with_what_is_folded_and_unfolded_by_hand(
        self, admin: Client
    ):
        admin.post("/queues/-/folded/", {"levels": "2", "unfolded": ["research"], "queue": []})

        assert visible(admin.get("/queues/")) == [
            "root",
            "default",
            "production",
            "research",
            "language",
            "vision",
        ]
        admin.post("/queues/-/folded/", {"levels": "0", "queue": ["production"]})
        assert visible(admin.get("/queues/")) == [
            "root",
            "default",
            "production",
            "research",
            "language",
            "vision",
        ]

    @pytest.mark.parametrize("levels", ["-1", "x", "9" * 30, "99999999"])
    def test_levels_that_are_none_are_no_error(self, admin: Client, levels: str):
        assert admin.post("/queues/-/folded/", {"levels": levels}).status_code == 204
        assert admin.get(f"/queues/?levels={levels}").status_code == 200

    def test_it_changes_nothing_else_that_was_set(self, admin: Client):
        user = get_user_model().objects.get(username="admin")
        preference_of(user).save()
        type(preference_of(user)).objects.filter(user=user).update(theme="dark")

        admin.post("/queues/-/folded/", {"queue": ["research"]})

        assert preference_of(user).theme == "dark"
