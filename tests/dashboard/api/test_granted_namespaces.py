"""Which namespaces may send work to which queue, through every door."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from django.test import Client

from scheduler.clusters.kubernetes.queue_definition import (
    VOLCANO_FIELDS,
    with_annotations_for_fields,
    with_fields_from_annotations,
)
from scheduler.models import Job, Namespace
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.grants import grant_role
from tests.dashboard.api.conftest import Caller
from tests.dashboard.reviews import answer, causes, review
from tests.worlds import manifest, queue

pytestmark = pytest.mark.django_db
WORDS = (
    "Work of the namespace sales may not go to train: "
    "only namespaces that were granted on team may, and sales was not."
)


def job_of(namespace: str, name: str = "job", queue_name: str = "train") -> dict[str, Any]:
    found = manifest(name, queue_name)
    found["metadata"]["namespace"] = namespace
    return found


def test_every_namespace_may_until_one_is_granted(admin: Caller):
    queue("team")
    queue("train", "team")
    admin.post("jobs/", job_of("sales"), expect=201)
    admin.patch("queues/team/", {"spec": {"namespaces": ["research"]}})

    refused = admin.post("jobs/", job_of("sales", "again"), expect=400)

    assert [violation["ruleId"] for violation in refused["violations"]] == ["namespace_not_granted"]
    assert refused["violations"][0]["field"] == "metadata.namespace"
    assert refused["detail"] == WORDS
    admin.post("jobs/", job_of("research"), expect=201)


def test_grants_of_queues_above_and_below_add_up(admin: Caller):
    queue("team", namespaces="research")
    queue("train", "team", namespaces="vision")
    queue("serve", "team")

    admin.post("jobs/", job_of("research"), expect=201)
    admin.post("jobs/", job_of("vision"), expect=201)
    admin.post("jobs/", job_of("vision", queue_name="serve"), expect=400)


def test_every_door_says_it(admin: Caller, client: Client):
    queue("team", namespaces="research")
    queue("train", "team")
    asked = job_of("sales")

    assert admin.post("jobs/?dry_run=true", asked, expect=400)["detail"] == WORDS
    applied = admin.apply(yaml.safe_dump(asked), expect=400)
    assert [violation["message"] for violation in applied["violations"]] == [WORDS]
    gang = {"metadata": {"name": "g", "namespace": "sales"}, "spec": {"queue": "train"}}
    assert admin.post("podgroups/", gang, expect=400)["detail"] == WORDS
    pod = {
        "metadata": {
            "name": "p",
            "namespace": "sales",
            "annotations": {"scheduling.volcano.sh/queue-name": "train"},
        },
        "spec": {"schedulerName": "volcano", "containers": []},
    }
    assert admin.post("pods/", pod, expect=400)["detail"] == WORDS
    for kind, body in (("jobs", asked), ("podgroups", gang), ("pods", pod)):
        reviewed = answer(client, kind, review(kind, "CREATE", body))
        assert causes(reviewed) == ["namespace_not_granted"]
        assert reviewed["status"]["message"].startswith(WORDS)
    client.force_login(admin.user)
    page = client.post(
        "/jobs/-/new/", {"as": "yaml", "yaml": yaml.safe_dump(asked), "do": "submit"}
    )
    assert WORDS in page.content.decode()
    assert not Job.objects.exists()


def test_work_that_names_no_queue_goes_to_that_of_its_namespace(admin: Caller, client: Client):
    queue("team", namespaces="research")
    mark = {"scheduling.volcano.sh/queue-name": "team"}
    Namespace.objects.create(name="research", annotations=mark)
    asked = job_of("research")
    del asked["spec"]["queue"]

    admin.post("jobs/", asked, expect=201)

    assert Job.objects.get().queue.name == "team"
    client.force_login(admin.user)
    access = client.get("/queues/team/access/").content.decode()
    assert "Only work of these namespaces may come to team" in access
    assert "Work that names no queue comes here" in " ".join(access.split())


def test_a_job_that_ended_is_asked_again_when_it_is_restarted(admin: Caller):
    queue("team")
    admin.post("jobs/", job_of("sales", queue_name="team"), expect=201)
    admin.post("jobs/sales/job/cancel/")
    admin.patch("queues/team/", {"spec": {"namespaces": "research"}})

    refused = admin.post("jobs/sales/job/restart/", expect=409)

    assert [violation["ruleId"] for violation in refused["violations"]] == ["namespace_not_granted"]


def test_an_admin_of_the_queue_grants_and_the_audit_log_has_it(admin: Caller):
    queue("team")
    owner = Caller("owner", ("admin",))
    grant_role(user="owner", role="admin", queue="team", by=SYSTEM)

    saved = owner.patch("queues/team/", {"spec": {"namespaces": ["vision", "research", "vision"]}})

    assert saved["spec"]["namespaces"] == ["research", "vision"]
    (entry,) = owner.get("audit/?action=UpdateQueue")["results"]
    assert "namespaces from nothing to research,vision" in str(entry)
    assert admin.get("queues/team/")["spec"]["namespaces"] == ["research", "vision"]
    owner.patch("queues/team/", {"spec": {"namespaces": []}})
    assert admin.get("queues/team/")["spec"]["namespaces"] == []


@pytest.mark.parametrize("wrong", [["A b"], [7], 7, {"a": "b"}, ["x" * 64], "ok,NOT"])
def test_what_is_no_namespace_is_refused_and_changes_nothing(admin: Caller, wrong: object):
    queue("team", namespaces="research")

    refused = admin.patch("queues/team/", {"spec": {"namespaces": wrong}}, expect=400)

    assert refused["violations"][0]["field"] == "spec.namespaces"
    assert admin.get("queues/team/")["spec"]["namespaces"] == ["research"]


def test_a_cluster_keeps_them_as_an_annotation():
    spec = {"weight": 1, "namespaces": ["research", "vision"]}
    sent = with_annotations_for_fields({"metadata": {"name": "team"}, "spec": spec}, VOLCANO_FIELDS)

    assert sent["metadata"]["annotations"] == {"fumarole.io/namespaces": "research,vision"}
    assert with_fields_from_annotations(sent)["spec"]["namespaces"] == "research,vision"
