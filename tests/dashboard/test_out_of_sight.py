"""What a reader may not see he does not learn from any corner of a page either: not a name, not a
figure, not a count.
"""

from __future__ import annotations

import json

import pytest

from dashboard.live.notices import notices_for, site_notices
from dashboard.live.topics import as_seen, encode
from scheduler.models import Grant, Queue
from scheduler.selectors.cluster.summary import ClusterFacts
from tests.dashboard.work import signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]

TYPED = {"name": "new", "weight": "1", "deserved:cpu": "100", "guarantee:cpu": "50"}
BROKEN = ClusterFacts(
    invalid=(("batch", "batch deserves more than root has"), ("vision", "vision is too large"))
)


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


class TestTheEditor:
    @pytest.mark.parametrize("parent", ["root", "batch", "no-such"])
    def test_a_check_tells_nothing_of_a_parent_that_is_not_ones_own(self, parent: str):
        answer = signed_in("ruth").post("/queues/-/check/", {**TYPED, "parent": parent})

        assert "batch 4" not in text(answer)
        assert (
            "permission_missing" in text(answer)
            if parent == "root"
            else "parent_not_found" in text(answer)
        )

    def test_a_check_of_a_queue_out_of_sight_is_like_one_of_none(self):
        ruth = signed_in("ruth")
        hidden = ruth.post("/queues/-/check/", {**TYPED, "editing": "batch", "parent": "root"})
        missing = ruth.post("/queues/-/check/", {**TYPED, "editing": "no-such", "parent": "root"})

        assert (hidden.status_code, missing.status_code) == (404, 404)
        assert text(hidden).replace("batch", "no-such").count("no-such") == text(missing).count(
            "no-such"
        )

    @pytest.mark.parametrize("editing", ["vision", ""])
    def test_a_viewer_may_not_try_changes(self, editing: str):
        assert (
            signed_in("vera")
            .post("/queues/-/check/", {**TYPED, "editing": editing, "parent": "vision"})
            .status_code
            == 403
        )

    def test_an_admin_below_hears_that_quotas_are_not_his_and_no_more(self):
        answer = text(
            signed_in("ruth").post(
                "/queues/-/check/", {**TYPED, "editing": "research", "parent": "root"}
            )
        )

        assert "on the queue root to change the deserved, guarantee" in answer
        assert "batch" not in answer

    @pytest.mark.parametrize(
        "page", ["/queues/-/new/?parent=research", "/queues/research/edit/", "/queues/vision/edit/"]
    )
    def test_only_ones_own_queues_are_offered_as_parents(self, page: str):
        answer = signed_in("ruth").get(page)

        assert set(answer.context["parents"]) <= {"root", "research", "vision", "language"}
        assert "batch" not in text(answer)

    def test_the_parent_goes_along_from_the_form_to_yaml(self):
        ruth = signed_in("ruth")

        assert "parent: research" in text(
            ruth.post("/queues/-/new/?parent=research", {"parent": "research", "show": "yaml"})
        )
        assert "parent: research" in text(ruth.get("/queues/-/new/?as=yaml&parent=research"))


class TestNotices:
    def test_who_sees_everything_is_told_which_and_how_many(self):
        (notice,) = notices_for(None, site_notices(BROKEN))

        assert (
            notice["text"]
            == "The queue tree is not valid (2 queues): batch deserves more than root has"
        )
        assert notice["url"] == "/queues/batch/"

    def test_others_are_told_of_their_own_queues_only(self):
        (mine,) = notices_for({"batch"}, site_notices(BROKEN))
        (not_mine,) = notices_for({"language"}, site_notices(BROKEN))

        assert mine["text"] == "The queue tree is not valid: batch deserves more than root has"
        assert not_mine == {
            "level": "error",
            "text": "The queue tree is not valid. An admin of the cluster has to fix it.",
        }

    def test_an_open_page_is_told_the_same(self):
        row = encode({"key": "cluster", "notices": site_notices(BROKEN)})

        seen = as_seen(frozenset({"language"}), "cluster", "cluster", row)

        assert as_seen(None, "cluster", "cluster", row) == row
        assert json.loads(seen or "")["notices"] == notices_for({"language"}, site_notices(BROKEN))

    def test_the_banner_of_a_page_names_no_queue_out_of_sight(self):
        condition = {
            "type": "HierarchyInvalid",
            "message": "batch deserves more than root has",
            "status": "True",
        }
        Queue.objects.filter(name="batch").update(conditions=[condition])

        assert "batch deserves more" in text(signed_in("admin").get("/account/"))
        assert "batch" not in text(signed_in("vera").get("/account/"))


class TestRoles:
    @pytest.fixture
    def hidden(self) -> Grant:
        """Sam has another role, on a queue that ruth does not see."""
        return Grant.objects.create(
            user_id=Grant.objects.get(user__username="sam").user_id,
            role="viewer",
            queue=Queue.objects.get(name="batch"),
        )

    @pytest.mark.parametrize("page", ["/users/", "/users/sam/"])
    def test_roles_on_queues_out_of_sight_are_not_listed(self, hidden: Grant, page: str):
        assert "batch" in text(signed_in("admin").get(page))
        assert "batch" not in text(signed_in("ruth").get(page))

    def test_one_that_can_not_be_seen_is_revoked_like_one_that_is_gone(self, hidden: Grant):
        ruth = signed_in("ruth")

        answers = [
            ruth.post(f"/users/-/grants/{number}/revoke/", follow=True)
            for number in (hidden.pk, 10**6)
        ]

        assert [
            ("revoked already" in text(answer), "batch" in text(answer)) for answer in answers
        ] == [(True, False)] * 2
        assert Grant.objects.filter(pk=hidden.pk).exists()
