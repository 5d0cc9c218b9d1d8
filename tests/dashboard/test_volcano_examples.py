"""Volcano's examples through our doors: pasted into the page, applied, and refused with words where
something is not supported.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from scheduler.admission.violations import Rejected
from scheduler.models import Queue
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.files.apply import apply_documents
from scheduler.services.jobs.forecast import Prospect, forecast_job
from scheduler.yaml_texts import to_yaml
from tests.dashboard.reviews import answer, review
from tests.dashboard.volcano_examples import ACCEPTED, HIERARCHY, REFUSED, hierarchy_queue
from tests.dashboard.work import signed_in, small_cluster, text
from tests.worlds import node

pytestmark = [pytest.mark.django_db]

ROOT_USER = Actor("system", Door.SYSTEM)
PAGE = "/jobs/-/new/"


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()
    node("big", cpu="64", memory="256Gi", gpu="8")


def pasted(manifest: Any, wanted: str = "check", after: str = "") -> Any:
    return signed_in("admin").post(
        PAGE, {"as": "yaml", "yaml": to_yaml(manifest) + after, "do": wanted}
    )


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_example_job_is_accepted_without_a_remark(name: str):
    forecast = forecast_job(ACCEPTED[name], by=ROOT_USER)

    assert forecast.prospect is not Prospect.REFUSED, forecast.violations
    assert [notice.message for notice in forecast.notices] == []


@pytest.mark.parametrize("after", ["", "---\n", "\n \n---\n", "...\n"])
def test_an_example_job_can_be_pasted_and_checked_with_whatever_ends_its_file(after: str):
    shown = pasted(ACCEPTED["integrations/mpi"], after=after)

    assert shown.status_code == 200
    assert "Starts now" in text(shown)


@pytest.mark.parametrize("name", REFUSED)
def test_an_example_that_is_not_supported_or_not_valid_says_so(name: str):
    manifest, words = REFUSED[name]

    shown = pasted(manifest)

    assert shown.status_code == 200
    assert words in text(shown)


def test_a_text_of_several_jobs_names_what_takes_them():
    jobs = [ACCEPTED["job"], ACCEPTED["integrations/mpi"]]
    client = signed_in("admin")

    for several in ("---\n".join(map(to_yaml, jobs)), to_yaml({"kind": "List", "items": jobs})):
        shown = client.post(PAGE, {"as": "yaml", "yaml": several, "do": "submit"})
        assert shown.status_code == 400
        assert "There are 2 objects in this text" in text(shown)


# Queues whose tree stands in annotations


@pytest.mark.parametrize("name", HIERARCHY)
def test_a_tree_in_annotations_is_refused_with_how_to_say_it(name: str):
    with pytest.raises(Rejected) as refusal:
        apply_documents([hierarchy_queue(name)], by=ROOT_USER)

    (violation,) = refusal.value.violations
    assert violation.rule_id == "hierarchy_annotations_not_read"
    _, team, _ = HIERARCHY[name][0].split("/")
    _, weight, own = HIERARCHY[name][1].split("/")
    assert violation.fix == (
        f"create the queue {team} with parent root and weight {weight}, write spec.parent: "
        f"{team}, spec.weight: {own} here, "
        "and leave the annotations out"
    )
    assert not Queue.objects.filter(name=name).exists()


def test_the_same_tree_said_with_parents_is_made():
    documents = [hierarchy_queue(name) for name in HIERARCHY]
    for document in documents:
        path, weights = HIERARCHY[document["metadata"]["name"]]
        document["spec"] = {"parent": path.split("/")[1], "weight": int(weights.split("/")[2])}
    teams = [
        {"kind": "Queue", "metadata": {"name": name}, "spec": {"weight": weight}}
        for name, weight in (("eng", 2), ("sci", 8))
    ]

    apply_documents([*teams, *documents], by=ROOT_USER)

    assert Queue.objects.get(name="root-sci-dev").parent.name == "sci"
    apply_documents(
        [*teams, *documents], by=ROOT_USER
    )  # the annotations stay as notes, and change nothing


def test_a_review_for_another_scheduler_lets_the_annotations_pass(client: Client):
    reviewed = answer(
        client, "queues", review("queues", "CREATE", hierarchy_queue("root-eng-prod"))
    )

    assert reviewed["allowed"]
