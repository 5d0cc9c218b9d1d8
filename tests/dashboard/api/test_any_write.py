"""Every write that has a route, found by walking them: a dry run writes nothing, and no junk in any
field gets past with more than a refusal.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db import transaction

from tests.dashboard.api.conftest import Caller, job
from tests.dashboard.api.framework.test_permissions import (
    ALL,
    WITHOUT_DRY_RUN,
    World,
    _object,
    body_for,
)

pytestmark = pytest.mark.django_db

WRITES = [route for route in ALL if route[2] != "GET"]
_NOTED_ON_THE_WAY_IN = {"ApiToken.last_used_at", "User.last_login"}


def stored() -> dict[str, list[str]]:
    """Every row of every table."""
    found = {}
    for model in apps.get_models():
        name = model.__name__
        columns = [
            field.attname
            for field in model._meta.concrete_fields
            if f"{name}.{field.attname}" not in _NOTED_ON_THE_WAY_IN
        ]
        found[model._meta.label] = sorted(map(repr, model._default_manager.values_list(*columns)))
    return found


def changed(before: dict[str, list[str]]) -> list[str]:
    after = stored()
    return [label for label in after if after[label] != before[label]]


def address(route: tuple[str, str, str, str], who: Caller, world: World) -> str:
    name, action, _, path = route
    others = name == "users" and action not in ("change_preferences", "password")
    place = "ann" if others else _object(name, "own", who, world)
    return path.replace("{object}", place)


@pytest.fixture
def world(admin: Caller) -> World:
    made = World(admin)
    admin.post("users/", {"username": "ann"}, expect=201)
    admin.user.set_password("an old password")
    admin.user.save()
    for route in (
        WRITES
    ):  # some are done to something of one's own, which is made when it is first asked for
        address(route, admin, made)
    return made


def test_a_read_only_installation_refuses_any_write(admin: Caller, world: World, settings: Any):
    places = [(route[2], address(route, admin, world)) for route in WRITES]
    settings.READ_ONLY = True
    before = stored()

    for method, place in places:
        said = admin.ask(method, place, {})
        assert admin.last.status_code == 503, (method, place, said)
        assert said["type"].endswith("read-only"), (method, place)

    assert changed(before) == []


def test_a_dry_run_of_any_write_writes_nothing(admin: Caller, world: World):
    before = stored()
    wrong = []
    for route in WRITES:
        name, action, method, _ = route
        dry = "" if name in WITHOUT_DRY_RUN else "?dry_run=true"
        answer = admin.ask(
            method,
            address(route, admin, world) + dry,
            body_for(name, action, "own"),
        )
        touched = changed(before)
        if touched or admin.last.status_code not in (200, 409):
            wrong.append(
                f"{method} {name} {action}: {admin.last.status_code} {touched} {str(answer)[:200]}"
            )

    assert wrong == []


def test_the_same_without_dry_run_does_write(admin: Caller, world: World):
    """So that the test before can fail."""
    before = stored()
    admin.post("queues/", body_for("queues", "create", "own"), expect=201)

    assert {"scheduler.Queue", "scheduler.AuditEntry"} <= set(changed(before))


JUNK: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**63,
    10**40,
    1.5,
    "",
    " ",
    "x" * 300,
    "\x00",
    "\u202e",
    "ünïcode",
    "../../etc/passwd",
    "a/b",
    "{{ 7*7 }}",
    "'; DROP TABLE scheduler_queue; --",
    "<script>",
    "1e999",
    "-1",
    "1Qi",
    "NaN",
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"a": {"b": [1]}},
    [1, "x"],
    {"cpu": -1},
    {"cpu": "nonsense"},
    {"cpu": {"a": 1}},
    {"name": 1},
    [{"name": "x"}],
    "2020-01-01",
    "99999-99-99T00:00:00Z",
)


def variants(body: Any) -> Iterator[tuple[str, Any]]:
    """The body with each of its values replaced, by turns, by each piece of junk, left out, or
    given a neighbour.
    """
    for path in paths(body):
        for junk in JUNK:
            yield f"{path} = {junk!r:.40}", replaced(body, path, junk)
        if isinstance(at(body, path), dict):
            yield f"{path} + unknown", replaced(body, path, {**at(body, path), "unknownField": 1})
    for junk in JUNK:
        yield f"all = {junk!r:.40}", junk


def paths(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if here:
        yield here
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        yield from paths(inner, (*here, key))


def at(body: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        body = body[key]
    return body


def replaced(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    whole = copy.deepcopy(body)
    at(whole, path[:-1])[path[-1]] = value
    return whole


# Fields that the bodies of the permission matrix leave out.
MORE: dict[tuple[str, str], Any] = {
    ("queues", "create"): {
        "metadata": {"name": "fresh", "labels": {"a": "b"}, "annotations": {"a": "b"}},
        "spec": {
            "parent": "own",
            "weight": 1,
            "capability": {"cpu": "4"},
            "deserved": {"cpu": "2"},
            "guarantee": {"resource": {"cpu": "1"}},
            "reclaimable": True,
            "priority": 1,
            "dequeueStrategy": "fifo",
            "state": "Open",
            "type": "x",
        },
        "status": {"state": "Open"},
    },
    ("jobs", "create"): {
        **job(
            "fresh",
            "own-leaf",
            minAvailable=1,
            maxRetry=1,
            minSuccess=1,
            ttlSecondsAfterFinished=1,
            priorityClassName="pc",
            policies=[{"event": "PodFailed", "action": "RestartJob"}],
        ),
    },
    ("podgroups", "create"): {
        "metadata": {"name": "fresh", "namespace": "default"},
        "spec": {
            "queue": "own-leaf",
            "minMember": 1,
            "minResources": {"cpu": "1"},
            "minTaskMember": {"a": 1},
            "priorityClassName": "pc",
        },
    },
    ("nodes", "create"): {
        "metadata": {"name": "n2"},
        "spec": {
            "unschedulable": True,
            "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
        },
        "status": {
            "allocatable": {"cpu": "1"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    },
    ("users", "create"): {
        "username": "fresh",
        "email": "a@b.c",
        "isActive": True,
        "isClusterAdmin": False,
        "password": "a long password",
        "groups": ["team"],
    },
    ("tokens", "create"): {
        "name": "fresh",
        "scopes": ["read"],
        "expiresAt": "2999-01-01T00:00:00Z",
    },
    ("commands", "create"): {
        "action": "SuspendQueue",
        "target": {"kind": "Queue", "name": "own", "uid": "x"},
        "reason": "why",
    },
    ("apply", "post"): [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "fresh"},
            "spec": {"parent": "own"},
        },
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}},
    ],
}


def junk_requests(admin: Caller, world: World, every: int) -> None:
    """One in `every` variant of every write, each undone afterwards.

    What is refused must not have written anything.
    """
    wrong = []
    number = 0
    counts_before = _counts()
    for route in WRITES:
        name, action, method, _ = route
        place = address(route, admin, world)
        body = MORE.get((name, action), body_for(name, action, "own") or {"reason": "why"})
        for what, variant in variants(body):
            number += 1
            if number % every:
                continue
            with transaction.atomic():
                _send(admin, method, place, variant)
                code = admin.last.status_code
                written = _counts() != counts_before
                transaction.set_rollback(True)
            if (
                code >= 500
                or code == 422
                or (code >= 400 and (written or not _is_problem(admin.last)))
            ):
                wrong.append(
                    f"{method} {place} {what}: {code} written={written} "
                    f"{admin.last.content[:300]!r}"
                )

    assert wrong == [], f"{len(wrong)} of {number // every}: " + "\n".join(wrong[:20])


def _send(admin: Caller, method: str, place: str, body: Any) -> None:
    """Errors of the server are answers here, not exceptions of the test."""
    admin.client.raise_request_exception = False
    admin.ask(method, place, text=json.dumps(body))


def _is_problem(answer: Any) -> bool:
    body = json.loads(answer.content)
    return bool(
        answer["Content-Type"] == "application/problem+json"
        and body["detail"]
        and body["status"] == answer.status_code
    )


def _counts() -> dict[str, int]:
    return {
        model._meta.label: model._default_manager.count()
        for model in apps.get_models()
        if model._meta.app_label == "scheduler"
    }


def test_junk_in_any_field_of_any_write_is_refused_and_leaves_nothing(admin: Caller, world: World):
    junk_requests(admin, world, every=61)


@pytest.mark.long
def test_all_junk_in_any_field_of_any_write_is_refused_and_leaves_nothing(
    admin: Caller, world: World
):
    junk_requests(admin, world, every=1)
