"""The webhook configurations for Kubernetes name addresses that exist and operations that are
reviewed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from django.urls import resolve

from dashboard.api import webhooks
from scheduler.admission.reading.queue import JOB_VERSIONS, POD_VERSIONS, SCHEDULING_VERSIONS
from scheduler.admission.reviews import _REVIEWS

FILE = Path(__file__).parents[2] / "deploy" / "kubernetes" / "admission-webhooks.yaml"
CONFIGURATIONS = {document["kind"]: document for document in yaml.safe_load_all(FILE.read_text())}
WEBHOOKS = [
    pytest.param(kind, hook, id=hook["name"])
    for kind, document in CONFIGURATIONS.items()
    for hook in document["webhooks"]
]
VERSIONS = {
    "queues": SCHEDULING_VERSIONS,
    "podgroups": SCHEDULING_VERSIONS,
    "jobs": JOB_VERSIONS,
    "pods": POD_VERSIONS,
}


def test_there_are_both_configurations():
    assert set(CONFIGURATIONS) == {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}


@pytest.mark.parametrize(("kind", "hook"), WEBHOOKS)
def test_the_address_is_served_by_the_right_view(kind: str, hook: dict[str, Any]):
    found = resolve(urlsplit(hook["clientConfig"]["url"]).path)

    assert found.func is (webhooks.validate if kind.startswith("Validating") else webhooks.mutate)
    assert {found.kwargs["kind"]} == {
        resource for rule in hook["rules"] for resource in rule["resources"]
    }


@pytest.mark.parametrize(("kind", "hook"), WEBHOOKS)
def test_the_operations_and_versions_are_those_that_are_reviewed(kind: str, hook: dict[str, Any]):
    for rule in hook["rules"]:
        (resource,) = rule["resources"]
        reviewed = set(_REVIEWS[resource]) if kind.startswith("Validating") else {"CREATE"}
        assert set(rule["operations"]) == reviewed
    named = {
        f"{group}/{version}".lstrip("/")
        for rule in hook["rules"]
        for group in rule["apiGroups"]
        for version in rule["apiVersions"]
    }
    assert named == set(VERSIONS[hook["rules"][0]["resources"][0]])


@pytest.mark.parametrize(("kind", "hook"), WEBHOOKS)
def test_a_webhook_has_no_side_effects_and_speaks_both_versions(kind: str, hook: dict[str, Any]):
    assert hook["sideEffects"] == "None"
    assert hook["admissionReviewVersions"] == ["v1", "v1beta1"]
