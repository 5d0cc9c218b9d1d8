"""Whatever the OpenAPI document allows, asked as every role: no 5xx, nothing outside the document,
no write by one who may not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import models

from dashboard.api.urls import COLLECTIONS
from scheduler.domain.access import PARENTS_FIELDS
from scheduler.models import (
    ClusterState,
    Grant,
    Job,
    Namespace,
    Node,
    Pod,
    PodGroup,
    PolicyVersion,
    PriorityClass,
    Queue,
)
from tests.dashboard.api.conftest import Caller
from tests.dashboard.api.framework.test_permissions import World, one

ROLES = ("anonymous", "viewer", "submitter", "admin", "cluster-admin")
_QUIET_COLUMNS = {
    "last_login",
    "last_used_at",
    "session_wanted_at",
}  # written when somebody comes in or asks, whatever he may do
_CLUSTER = (
    Node,
    Namespace,
    PriorityClass,
    PolicyVersion,
    ClusterState,
    Grant,
    Group,
    get_user_model(),
)
_WORK = {Job: "queue__name", PodGroup: "queue__name", Pod: "podgroup__queue__name"}
_EVERYTHING = (*_CLUSTER, *_WORK, Queue)


def _rows(model: type[models.Model], **where: Any) -> list[str]:
    columns = [
        field.attname
        for field in model._meta.concrete_fields
        if field.attname not in _QUIET_COLUMNS
    ]
    return sorted(map(repr, model._default_manager.filter(**where).values_list(*columns)))


def _all(kinds: tuple[type[models.Model], ...]) -> dict[str, Any]:
    return {kind.__name__: _rows(kind) for kind in kinds}


def _of_others() -> dict[str, Any]:
    """What lies in the other subtree."""
    queues = {"Queue": _rows(Queue, name__startswith="other")}
    return queues | {
        kind.__name__: _rows(kind, **{f"{column}__startswith": "other"})
        for kind, column in _WORK.items()
    }


def _of_a_submitter() -> dict[str, Any]:
    """No namespace: the first job in one makes it."""
    cluster = tuple(kind for kind in _CLUSTER if kind is not Namespace)
    return {**_of_others(), **_all((*cluster, Queue))}


def _of_a_queue_admin() -> dict[str, Any]:
    """He may grant roles on his own queues and command them.

    Quotas and place of the topmost are its parent's admin's, and nothing of the cluster is his.
    """
    cluster = tuple(kind for kind in _CLUSTER if kind not in (Namespace, Grant))
    return {
        **_of_others(),
        **_all(cluster),
        "Queue ": list(Queue.objects.filter(name="own").values_list(*PARENTS_FIELDS)),
        "Grant ": _rows(Grant, queue__name="other"),
    }


UNTOUCHED: dict[str, Callable[[], dict[str, Any]]] = {
    "anonymous": lambda: _all(_EVERYTHING),
    "viewer": lambda: _all(_EVERYTHING),
    "submitter": _of_a_submitter,
    "admin": _of_a_queue_admin,
    "cluster-admin": dict,
}


def random_requests(role: str, world: World, examples: int) -> None:
    """Half of the requests name objects that are there, so that they get past the door."""
    import schemathesis
    from django.core.wsgi import get_wsgi_application
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if role != "anonymous":
        headers["Authorization"] = f"Bearer {one(role).token}"
    get_user_model().objects.create_user("ann")
    schema = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())
    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    ]
    quiet = [
        HealthCheck.filter_too_much,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ]
    before = UNTOUCHED[role]()

    def ask_some(operation: Any) -> None:
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            suppress_health_check=quiet,
            phases=[Phase.generate],
            derandomize=True,
        )
        @given(
            case=operation.as_strategy(),
            known=st.booleans(),
            place=st.sampled_from(["own", "other"]),
        )
        def ask(case: Any, known: bool, place: str) -> None:
            if isinstance(case.query, dict):
                case.query.pop(
                    "fields", None
                )  # with it, parts that the shape requires are left out on purpose
                case.query.pop("watch", None)  # with it, the answer has no end
            if known and case.path_parameters:
                case.path_parameters = _known(operation.path, place, world) or case.path_parameters
            case.call_and_validate(headers=headers, checks=checks)

        ask()

    for result in schema.get_all_operations():
        ask_some(result.ok())
    after = UNTOUCHED[role]()
    assert {kind: rows for kind, rows in after.items() if rows != before[kind]} == {}


def _known(path: str, place: str, world: World) -> dict[str, str]:
    """Something of that kind that is there."""
    collection = path.removeprefix("/api/v1/").split("/")[0]
    name = {"users": "ann"}.get(collection) or world.objects.get((collection, place), "")
    return dict(zip(COLLECTIONS[collection].lookups, name.split("/"), strict=False)) if name else {}


@pytest.fixture
def world(admin: Caller) -> Iterator[World]:
    """Django closes its connection after a request, and the test's own transaction would go with
    it: not while the world is in use.
    """
    from django.core.signals import request_finished, request_started
    from django.db import close_old_connections

    made = World(admin)
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield made
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture(autouse=True)
def no_limit(settings: Any) -> None:
    settings.API_RATE_PER_MINUTE = settings.API_ANONYMOUS_RATE_PER_MINUTE = 0


@pytest.mark.parametrize("role", ROLES)
def test_random_requests_stay_inside_the_document(role: str, world: World):
    random_requests(role, world, examples=2)


@pytest.mark.long
@pytest.mark.parametrize("role", ROLES)
def test_thousands_of_random_requests_stay_inside_the_document(role: str, world: World):
    random_requests(role, world, examples=60)
