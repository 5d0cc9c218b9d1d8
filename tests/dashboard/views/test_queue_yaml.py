"""The queue editor as YAML."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from django.test import Client

from dashboard.forms.queue_input import form_of_reading
from scheduler.models import Queue
from scheduler.selectors.queues.facts import queue_tree
from tests.dashboard.sample import GPU
from tests.dashboard.views.editing import EDIT, stored, typed
from tests.dashboard.work import text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("tree")]


class TestFormAndYaml:
    def test_what_is_typed_goes_along_to_yaml_and_back(self, admin: Client):
        there = admin.post(EDIT, typed(admin, weight="9", show="yaml"))
        manifest = yaml.safe_load(there.context["yaml"])
        back = admin.post(EDIT, {"as": "yaml", "yaml": there.context["yaml"], "show": "form"})

        assert there.context["as_yaml"] is True
        assert manifest["spec"]["weight"] == 9
        assert back.context["as_yaml"] is False
        assert (back.context["form"].weight, back.context["form"].amounts[GPU]["deserved"]) == (
            "9",
            "20",
        )
        assert stored().resource_version == 1

    def test_a_look_at_the_yaml_is_nothing_to_save(self, admin: Client):
        assert "data-unsaved" not in text(admin.post(EDIT, typed(admin, show="yaml")))
        assert "data-unsaved" in text(admin.post(EDIT, typed(admin, weight="9", show="yaml")))

    def test_text_that_can_not_be_read_stays_text(self, admin: Client):
        answer = admin.post(EDIT, {"as": "yaml", "yaml": "a: [1", "show": "form"})

        assert answer.context["as_yaml"] is True
        assert answer.context["yaml"] == "a: [1"
        assert "This is not YAML" in text(answer)

    @pytest.mark.parametrize(
        ("where", "given"),
        [
            (
                "metadata.labels.team",
                {"metadata": {"name": "vision", "labels": {"team": "eyes"}}, "spec": {"weight": 2}},
            ),
            (
                "spec.state",
                {"metadata": {"name": "vision"}, "spec": {"weight": 2, "state": "Suspended"}},
            ),
        ],
    )
    def test_what_the_form_has_no_place_for_keeps_it_yaml(self, where: str, given: dict[str, Any]):
        form, obstacles = form_of_reading(given, queue_tree()["vision"])

        assert form is None
        assert [obstacle.field for obstacle in obstacles] == [where]

    def test_a_new_queue_turns_too(self, admin: Client):
        there = admin.post(
            "/queues/-/new/?parent=research",
            {"name": "fresh", "parent": "research", "weight": "4", "show": "yaml"},
        )
        back = admin.post(
            "/queues/-/new/", {"as": "yaml", "yaml": there.context["yaml"], "show": "form"}
        )

        assert (
            back.context["form"].name,
            back.context["form"].parent,
            back.context["form"].weight,
        ) == ("fresh", "research", "4")
        assert not Queue.objects.filter(name="fresh").exists()

    @pytest.mark.parametrize(
        "text_",
        ["", "5", "[]", "spec: 4", "metadata: 3\nspec: {weight: x}", "spec: {parent: {a: b}}"],
    )
    def test_odd_text_is_answered(self, admin: Client, text_: str):
        for show in ("form", "yaml"):
            assert admin.post(EDIT, {"as": "yaml", "yaml": text_, "show": show}).status_code == 200
