"""What is wrong in the form of a queue: one-click remedies, and the words of the form."""

from __future__ import annotations

from html import unescape

import pytest
from django.test import Client

from dashboard.forms.queue import QueueForm, judge
from dashboard.forms.queue_input import form_from_manifest
from dashboard.forms.queue_words import quota_words
from scheduler.admission.reading.queue import queue_manifest
from scheduler.models import Queue
from scheduler.selectors.queues.facts import admission_scene
from tests.dashboard.sample import GPU
from tests.dashboard.work import text


@pytest.mark.usefixtures("tree")
class TestRemedies:
    @pytest.mark.parametrize(
        ("name", "changes"),
        [
            ("vision", {"deserved": "26"}),
            ("vision", {"capability": "4"}),
            ("vision", {"capability": "-1"}),
            ("research", {"deserved": "12"}),
            ("language", {"guarantee": "30"}),
            ("batch", {"capability": "99"}),
        ],
        ids=[
            "too much for the parent",
            "deserved above the capability",
            "negative",
            "less than its children",
            "guarantee",
            "above the ancestor",
        ],
    )
    def test_taking_the_advice_until_there_is_none_makes_it_valid(
        self,
        name: str,
        changes: dict[str, str],
    ):
        scene, facts = admission_scene()
        form = form_from_manifest(queue_manifest(scene[name]))
        form.amounts[GPU] = {**form.amounts.get(GPU, {}), **changes}
        verdict = judge(form.manifest(), scene, facts, name)
        assert verdict.violations

        for _ in range(4):
            remedies = [remedy for violation in verdict.violations for remedy in violation.remedies]
            if remedies:
                form = form.mended(f"{remedies[0].field}={remedies[0].value}")
                verdict = judge(form.manifest(), scene, facts, name)

        assert verdict.violations == ()

    def test_the_button_works_without_a_script_and_saves_nothing(self, admin: Client):
        data = {
            "parent": "research",
            "weight": "1",
            "deserved:nvidia.com/gpu": "26",
            "mend": "spec.deserved.nvidia.com/gpu=20",
        }

        answer = admin.post("/queues/vision/edit/", data)

        page = text(answer)
        assert 'name="deserved:nvidia.com/gpu" value="20"' in page
        assert Queue.objects.get(name="vision").resource_version == 1

    def test_a_remedy_for_another_form_changes_nothing(self):
        form = QueueForm(name="vision", amounts={GPU: {"deserved": "26"}})

        assert form.mended("spec.deserved.cpu=1") == form.mended("nonsense") == form

    def test_fields_are_named_as_the_form_names_them(self):
        assert quota_words("spec.guarantee.resource.nvidia.com/gpu") == "guarantee GPU"
        assert quota_words("spec.capability.cpu") == "capability CPU"

    @pytest.mark.parametrize(
        ("typed", "words"),
        [
            ({"weight": ""}, "Weight is empty. Enter 1 to 65535."),
            ({"weight": "many"}, "Weight must be a whole number from 1 to 65535, not text (many)."),
            ({"priority": ""}, "Priority is empty. Enter 0 to 2147483647."),
            ({"deserved:cpu": "2c"}, "Deserved CPU: 2c is not a quantity; write 2 or 2000m."),
        ],
    )
    def test_what_is_wrong_is_said_in_the_words_of_the_form(
        self,
        admin: Client,
        typed: dict[str, str],
        words: str,
    ):
        data = {"name": "new", "parent": "research", "weight": "1", "priority": "0", **typed}

        assert words in unescape(text(admin.post("/queues/-/check/", data)))
        assert words in unescape(text(admin.post("/queues/-/new/", data)))
