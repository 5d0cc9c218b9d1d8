"""The OpenAPI document: complete, served, true to the code; test_random_requests.py asks what it
allows.
"""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.test import Client

from dashboard.api.urls import COLLECTIONS, SETS, SINGLETONS
from tests.dashboard.api.framework.test_permissions import ALL


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    out = io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=out)
    return yaml.safe_load(out.getvalue())


def test_the_document_is_made_without_a_warning_and_is_3_1(document: dict[str, Any]):
    assert document["openapi"].startswith("3.1")
    assert set(document["components"]["securitySchemes"]) == {"token", "browser"}


def test_every_route_is_described_and_nothing_else(document: dict[str, Any]):
    described = {
        (path, method.upper()) for path, methods in document["paths"].items() for method in methods
    }
    routed = {("/api/v1/", "GET")}
    for name, _, method, path in ALL:
        place = "/".join(
            f"{{{lookup}}}" for lookup in getattr(COLLECTIONS.get(name), "lookups", ())
        )
        routed.add((f"/api/v1/{path}".replace("{object}", place), method))

    assert described == routed


def test_every_operation_lists_its_errors_and_shapes(document: dict[str, Any]):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            codes = set(operation["responses"])
            assert {"400", "401", "403", "429", "503"} <= codes, (path, method)
            assert ("404" in codes) == ("{" in path), (path, method)
            assert method == "get" or {"409", "413", "415"} <= codes, (path, method)
            for code, response in operation["responses"].items():
                (media, *streams) = response["content"]
                assert streams in ([], ["text/event-stream"])
                assert media == (
                    "application/problem+json" if int(code) >= 400 else "application/json"
                )
                schema = response["content"][media]["schema"]
                assert all(one.get("$ref") for one in schema.get("oneOf", [schema])), (
                    path,
                    method,
                    code,
                )


def test_operations_have_names_of_their_own(document: dict[str, Any]):
    ids = [
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    ]

    assert len(ids) == len(set(ids))


@pytest.mark.django_db
def test_schema_and_docs_are_served_by_ourselves():
    client = Client()
    assert client.get("/api/schema/").status_code == 200
    page = client.get("/api/docs/")
    text = page.content.decode()

    assert page.status_code == 200
    assert "https://" not in text.replace("https://www.w3.org", "")
    assert "<script>" not in text  # all scripts are files of this server
    assert "script-src 'self';" in page["Content-Security-Policy"]
    assert client.get("/api/docs/?script=").status_code == 200


def test_all_shapes_are_named_for_what_they_are(document: dict[str, Any]):
    for view in {**COLLECTIONS, **SINGLETONS, **SETS}.values():
        for form in view.operations.values():
            assert form.gives.__name__ in document["components"]["schemas"] or form.many, form


def test_examples_of_the_document_are_json(document: dict[str, Any]):
    assert json.loads(json.dumps(document, default=str))


# Where anything may stand: what Kubernetes defines and we only pass on, figures that differ with
# the reason, records of any object, and the file of a session, whose format is that of
# scheduler/scenarios.
ANYTHING = {
    "Task.template",
    "Task.dependsOn",
    "PodSpec.affinity",
    "PodGroupSpec.networkTopology",
    "PodGroupStatus.conditions",
    "QueueStatus.conditions",
    "PendingReason.figures",
    "Explanation.figures",
    "ReclaimExplanation.figures",
    "CommandStatus.effect",
    "AuditSpec.before",
    "AuditSpec.after",
    "ConfigurationExport.items",
    "ConfigurationManifest.spec",
    "Scenario.conf",
    "Scenario.nodes",
    "Scenario.queues",
    "Scenario.podgroups",
    "Scenario.pods",
}


def _untyped(schema: dict[str, Any]) -> bool:
    """Nothing is said of it, or nothing of what is in it."""
    if not set(schema) & {"type", "$ref", "oneOf", "anyOf", "allOf", "enum"}:
        return True
    inner = schema.get("items") if "items" in schema else schema.get("additionalProperties")
    return isinstance(inner, dict) and _untyped(inner)


def test_nothing_is_left_open_whose_shape_is_known(document: dict[str, Any]):
    open_ones = {
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, inner in schema.get("properties", {}).items()
        if _untyped(inner)
    }

    assert open_ones == ANYTHING
