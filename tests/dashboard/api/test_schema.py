"""The OpenAPI document: complete, served, true to the code; and random requests that stay inside it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.test import Client

from dashboard.api.urls import COLLECTIONS, SETS, SINGLETONS
from tests.dashboard.api.conftest import Caller
from tests.dashboard.api.test_permissions import ALL


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    out = io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=out)
    return yaml.safe_load(out.getvalue())


def test_the_document_is_made_without_a_warning_and_is_3_1(document: dict[str, Any]):
    assert document["openapi"].startswith("3.1")
    assert set(document["components"]["securitySchemes"]) == {"token", "browser"}


def test_every_route_is_described_and_nothing_else(document: dict[str, Any]):
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    routed = {("/api/v1/", "GET")}
    for name, _, method, path in ALL:
        place = "/".join(f"{{{lookup}}}" for lookup in getattr(COLLECTIONS.get(name), "lookups", ()))
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
                (media,) = response["content"]
                assert media == ("application/problem+json" if int(code) >= 400 else "application/json")
                schema = response["content"][media]["schema"]
                assert all(one.get("$ref") for one in schema.get("oneOf", [schema])), (path, method, code)


def test_operations_have_names_of_their_own(document: dict[str, Any]):
    ids = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]

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
        for form in view.forms.values():
            assert form.gives.__name__ in document["components"]["schemas"] or form.many, form


ROLES = ("cluster-admin", "admin", "viewer", "nothing")


def random_requests(role: str, examples: int) -> None:
    """Schemathesis asks whatever the document allows, and checks the answers against it: no 5xx, nothing undocumented."""
    import schemathesis
    from django.core.wsgi import get_wsgi_application
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

    who = Caller(role, superuser=role == "cluster-admin")
    if role in ("admin", "viewer"):
        from scheduler.services.access import grant_role
        from scheduler.services.actors import SYSTEM

        grant_role(user=role, role=role, queue="default", by=SYSTEM)
    schema = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())
    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    headers = {"Authorization": f"Bearer {who.token}", "Accept": "application/json", "Accept-Encoding": "identity"}
    quiet = [HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]

    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=examples, deadline=None, database=None, suppress_health_check=quiet, phases=[Phase.generate], derandomize=True
        )
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            if isinstance(case.query, dict):
                case.query.pop("fields", None)  # with it, parts that the shape requires are left out on purpose
                if case.method.upper() != "GET" and role == "cluster-admin":
                    case.query["dry_run"] = "true"  # nobody must switch off the account that asks
            case.call_and_validate(headers=headers, checks=checks)

        ask()


@pytest.fixture
def kept_connection(db: None) -> Iterator[None]:
    """Django closes its connection after a request; the test's own transaction would go with it."""
    from django.core.signals import request_finished, request_started
    from django.db import close_old_connections

    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.mark.usefixtures("kept_connection")
@pytest.mark.parametrize("role", ["cluster-admin", "viewer"])
def test_random_requests_stay_inside_the_document(role: str, settings: Any):
    settings.API_RATE_PER_MINUTE = 0

    random_requests(role, examples=3)


@pytest.mark.long
@pytest.mark.usefixtures("kept_connection")
@pytest.mark.parametrize("role", ROLES)
def test_thousands_of_random_requests_stay_inside_the_document(role: str, settings: Any):
    settings.API_RATE_PER_MINUTE = 0

    random_requests(role, examples=60)


def test_examples_of_the_document_are_json(document: dict[str, Any]):
    assert json.loads(json.dumps(document, default=str))
