"""Podgroups that no job of ours made: changed and taken away, whatever the database."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.admission.violations import Rejected
from scheduler.models import PodGroup
from scheduler.services.files.apply import apply_documents
from scheduler.services.jobs.podgroups import delete_podgroup, submit_podgroup, update_podgroup
from scheduler.services.jobs.single_pods import submit_pod

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def test_one_is_changed_and_deleted():
    submit_podgroup({"metadata": {"name": "outside"}, "spec": {"minMember": 1, "queue": "default"}})

    update_podgroup("default", "outside", {"spec": {"minMember": 3}}, merge=True)
    assert PodGroup.objects.get().min_member == 3

    delete_podgroup("default", "outside")
    assert not PodGroup.objects.exists()


@pytest.mark.parametrize(
    "manifest",
    [
        *(
            {"kind": kind, "metadata": {"name": "a\x00b"}, "spec": {}}
            for kind in ("Queue", "Namespace", "PriorityClass", "Node", "PodGroup")
        ),
        {
            "kind": "Job",
            "metadata": {"name": "a", "namespace": "\x00"},
            "spec": {"tasks": [{"template": {}}]},
        },
        {
            "kind": "Job",
            "metadata": {"name": "a"},
            "spec": {"queue": "\x00", "tasks": [{"template": {}}]},
        },
        {"kind": "Pod", "metadata": {"name": "a\ud800"}, "spec": {}},
    ],
    ids=lambda manifest: manifest["kind"],
)
def test_names_that_no_database_could_be_asked_for_are_refused(manifest: dict[str, Any]):
    with pytest.raises(Rejected):
        apply_documents([manifest])


def test_one_says_itself_how_long_it_may_wait():
    asked = {
        "metadata": {"name": "outside", "annotations": {"sla-waiting-time": "1h30m"}},
        "spec": {"minMember": 1},
    }
    submit_podgroup(asked)
    assert PodGroup.objects.get().sla_waiting_seconds == 5400

    update_podgroup(
        "default",
        "outside",
        {"metadata": {"annotations": {"sla-waiting-time": "500ms"}}},
        merge=True,
    )
    assert PodGroup.objects.get().sla_waiting_seconds == 1

    with pytest.raises(Rejected, match="sla-waiting-time is soon"):
        update_podgroup(
            "default",
            "outside",
            {"metadata": {"annotations": {"sla-waiting-time": "soon"}}},
            merge=True,
        )


@pytest.mark.parametrize("submit", [submit_podgroup, submit_pod])
def test_a_waiting_time_must_be_a_length_of_time(submit: Any):
    with pytest.raises(Rejected, match="sla-waiting-time is soon"):
        submit(
            {
                "metadata": {"name": "outside", "annotations": {"sla-waiting-time": "soon"}},
                "spec": {},
            }
        )


def pod_of(group: str, name: str, seconds: str | None) -> dict[str, Any]:
    annotations = {"scheduling.k8s.io/group-name": group}
    if seconds:
        annotations["fumarole.io/run-seconds"] = seconds
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]},
    }


def test_one_runs_as_long_as_the_longest_of_its_pods_declares():
    submit_podgroup({"metadata": {"name": "outside"}, "spec": {"minMember": 1, "queue": "default"}})

    submit_pod(pod_of("outside", "a", "60"))
    submit_pod(pod_of("outside", "b", "90"))
    submit_pod(pod_of("outside", "c", "30"))

    assert PodGroup.objects.get().expected_seconds == 90


def test_nobody_knows_how_long_one_runs_if_a_pod_of_it_does_not_say():
    submit_podgroup({"metadata": {"name": "outside"}, "spec": {"minMember": 1, "queue": "default"}})

    submit_pod(pod_of("outside", "a", "60"))
    submit_pod(pod_of("outside", "b", None))
    submit_pod(pod_of("outside", "c", "30"))

    assert PodGroup.objects.get().expected_seconds is None
