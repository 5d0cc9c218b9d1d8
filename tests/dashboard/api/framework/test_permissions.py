"""Who may: every endpoint and verb, for every role, on his own subtree and on another.

Generated from the routes: a new one must be listed.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard.api.urls import COLLECTIONS, SETS, SINGLETONS
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.grants import grant_role
from tests.dashboard.api.conftest import Caller, job, node, queue
from tests.dashboard.api.framework.expected_permissions import EXPECTED

ROLES = ("nothing", "viewer", "submitter", "admin", "cluster-admin")
PLACES = ("own", "other")


WITHOUT_DRY_RUN = ("validate", "policy/validate", "forecast")  # they never write


def routes() -> Iterator[tuple[str, str, str, str]]:
    """(collection, action, method, path behind /api/v1/) of everything that can be called."""
    of_object = {"retrieve": "GET", "update": "PUT", "partial_update": "PATCH", "destroy": "DELETE"}
    for name, view in COLLECTIONS.items():
        place = f"{name}/{{object}}/"
        for action in view.rules:
            verb = next(
                (verb for verb, methods in view.verbs.items() if action in methods.values()), None
            )
            if action in ("list", "create"):
                yield name, action, {"list": "GET", "create": "POST"}[action], f"{name}/"
            elif verb:
                yield (
                    name,
                    action,
                    next(how for how, what in view.verbs[verb].items() if what == action).upper(),
                    f"{place}{verb}/",
                )
            else:
                yield name, action, of_object[action], place
    for name, single in {**SINGLETONS, **SETS}.items():
        for method in single.rules:
            yield name, method, method.upper(), f"{name}/"


ALL = list(routes())


def test_every_route_says_who_may_and_every_rule_has_a_route():
    routed = {(name, action) for name, action, _, _ in ALL}
    listed = {(name, action) for name, actions in EXPECTED.items() for action in actions}

    assert routed == listed
    for name, view in {**COLLECTIONS, **SINGLETONS, **SETS}.items():
        assert set(view.rules) == set(view.operations), name
        verbs = {
            action for methods in getattr(view, "verbs", {}).values() for action in methods.values()
        }
        assert verbs <= set(view.rules), name


class World:
    """Two subtrees, own and other, each with something of every kind in it.

    What to ask for is known by collection and place.
    """

    def __init__(self, admin: Caller) -> None:
        self.objects: dict[tuple[str, str], str] = {}
        admin.post("nodes/", node("n1", cpu="64", memory="64Gi"), expect=201)
        for place in PLACES:
            admin.post("queues/", [queue(place), queue(f"{place}-leaf", place)])
            admin.post("jobs/", job(f"{place}-job", f"{place}-leaf"), expect=201)
            admin.post(
                "podgroups/",
                {"metadata": {"name": f"{place}-pg"}, "spec": {"queue": f"{place}-leaf"}},
                expect=201,
            )
            pod = {
                "metadata": {
                    "name": f"{place}-pod",
                    "annotations": {"scheduling.k8s.io/group-name": f"{place}-pg"},
                },
                "spec": {},
            }
            admin.post("pods/", pod, expect=201)
            grant = admin.post(
                "grants/",
                {"user": "boss", "role": "viewer", "queue": place},
                expect=201,
            )
            mapping = admin.post(
                "groupmappings/",
                {"providerGroup": "g", "role": "viewer", "queue": place},
                expect=201,
            )
            self.objects[("groupmappings", place)] = mapping["metadata"]["name"]
            admin.post(f"queues/{place}/suspend/")
            admin.post(f"queues/{place}/resume/")
            self._remember(admin, place, grant["metadata"]["name"])
        admin.post("priorityclasses/", {"metadata": {"name": "pc"}, "value": 1}, expect=201)
        admin.post("groups/", {"name": "team"}, expect=201)
        _rows_of_sessions()
        for kind, name in (
            ("nodes", "n1"),
            ("namespaces", "default"),
            ("priorityclasses", "pc"),
            ("sessions", "1"),
            ("groups", "team"),
            ("policyversions", "0"),
        ):
            self.objects |= {(kind, place): name for place in PLACES}

    def _remember(self, admin: Caller, place: str, grant: str) -> None:
        found = {
            "queues": place,
            "jobs": f"default/{place}-job",
            "podgroups": f"default/{place}-pg",
            "pods": f"default/{place}-pod",
            "grants": grant,
            "commands": admin.get(f"commands/?queue={place}")["results"][0]["metadata"]["name"],
            "events": admin.get(f"events/?queue={place}")["results"][0]["metadata"]["name"],
            "audit": admin.get(f"audit/?queue={place}")["results"][0]["metadata"]["name"],
            "changes": _change_set(admin, f"{place}-leaf"),
            "windows": _window(admin, f"{place}-leaf"),
            **_planned(admin, f"{place}-leaf"),
        }
        self.objects |= {(kind, place): name for kind, name in found.items()}


def _edit(name: str, weight: int) -> dict[str, Any]:
    return {"kind": "Queue", "metadata": {"name": name}, "spec": {"weight": weight}}


def _change_set(admin: Caller, leaf: str) -> str:
    made = admin.post("changes/", {"name": leaf, "documents": [_edit(leaf, 2)]}, expect=201)
    return str(made["metadata"]["name"])


def _window(admin: Caller, leaf: str) -> str:
    made = admin.post("windows/", {"queue": leaf}, expect=201)
    return str(made["metadata"]["name"])


def _draft(leaf: str) -> int:
    from scheduler.models import ChangeSet

    return ChangeSet.objects.filter(name=leaf, state="Draft").earliest("pk").pk


def _planned(admin: Caller, leaf: str) -> dict[str, str]:
    """A plan, and a turn of it that could not begin."""
    from scheduler.models import Occurrence

    number = int(_change_set(admin, leaf))
    plan = admin.post("plans/", {"changeSet": number, "begin": _TOMORROW}, expect=201)
    name = plan["metadata"]["name"]
    Occurrence.objects.filter(plan_id=name).update(state="BeginConflict")
    return {"plans": name, "occurrences": str(Occurrence.objects.get(plan_id=name).pk)}


_TOMORROW = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M}"


def _scenario() -> bytes:
    from scheduler.domain.snapshot import Snapshot
    from scheduler.engine.presets import DEFAULT_POLICY
    from scheduler.scenarios.writing import scenario_document

    return json.dumps(
        scenario_document(Snapshot.build(queues=()), DEFAULT_POLICY, "session 1")
    ).encode()


def _rows_of_sessions() -> None:
    from django.utils import timezone

    from scheduler.models import (
        Comparison,
        Decision,
        Eviction,
        SavedScenario,
        SchedulingSession,
    )

    SavedScenario.objects.create(
        session_number=1,
        created_at=timezone.now(),
        content=gzip.compress(_scenario()),
    )
    session = SchedulingSession.objects.create(
        number=1,
        state="Done",
        started_at=timezone.now(),
        finished_at=timezone.now(),
    )
    for place in PLACES:
        shared = {"session": session, "queue_name": f"{place}-leaf", "created_at": timezone.now()}
        Decision.objects.create(kind="Bind", pod_name="x", action="allocate", **shared)
        Eviction.objects.create(
            session_number=1,
            pod_name="x",
            podgroup_name="x",
            action="reclaim",
            **shared,
        )
        Comparison.objects.create(
            about=Comparison.START,
            podgroup_number=1,
            podgroup_name="default/x",
            queue_name=f"{place}-leaf",
            since=timezone.now(),
        )


def body_for(name: str, action: str, place: str) -> Any:
    leaf = f"{place}-leaf"
    made = {
        ("queues", "create"): queue("fresh", place),
        ("queues", "update"): queue(place, weight=9),
        ("queues", "partial_update"): {"spec": {"weight": 9}},
        ("jobs", "create"): job("fresh", leaf),
        ("jobs", "update"): job(f"{place}-job", leaf, maxRetry=3),
        ("jobs", "partial_update"): {"metadata": {"labels": {"a": "b"}}},
        ("podgroups", "create"): {"metadata": {"name": "fresh"}, "spec": {"queue": leaf}},
        ("podgroups", "update"): {
            "metadata": {"name": f"{place}-pg"},
            "spec": {"queue": leaf, "minMember": 2},
        },
        ("podgroups", "partial_update"): {"spec": {"minMember": 2}},
        ("pods", "create"): {
            "metadata": {
                "name": "fresh",
                "annotations": {"scheduling.volcano.sh/queue-name": leaf},
            },
            "spec": {},
        },
        ("nodes", "create"): node("n2", cpu="1"),
        ("nodes", "update"): node("n1", cpu="1"),
        ("nodes", "partial_update"): {"spec": {"unschedulable": True}},
        ("namespaces", "create"): {"metadata": {"name": "ns"}},
        ("namespaces", "update"): {"metadata": {"name": "default", "labels": {"a": "b"}}},
        ("namespaces", "partial_update"): {"metadata": {"labels": {"a": "b"}}},
        ("priorityclasses", "create"): {"metadata": {"name": "fresh"}, "value": 1},
        ("priorityclasses", "update"): {"metadata": {"name": "pc"}, "value": 2},
        ("priorityclasses", "partial_update"): {"spec": {"value": 2}},
        ("commands", "create"): {
            "action": "SuspendQueue",
            "target": {"kind": "Queue", "name": place},
        },
        ("users", "create"): {"username": "fresh"},
        ("users", "partial_update"): {"email": "a@b.c"},
        ("groups", "create"): {"name": "fresh"},
        ("groups", "partial_update"): {"members": []},
        ("grants", "create"): {"user": "boss", "role": "submitter", "queue": place},
        ("groupmappings", "create"): {
            "providerGroup": "fresh",
            "role": "submitter",
            "queue": place,
        },
        ("tokens", "create"): {"name": "fresh", "scopes": ["read"]},
        ("users", "change_preferences"): {
            "spec": {"timeZone": "Europe/Berlin", "theme": "dark", "folded": [place]}
        },
        ("users", "password"): {"old": "an old password", "new": "another long password"},
        ("views", "create"): {"name": "fresh", "query": "q=state%3Awaiting", "shared": True},
        ("views", "partial_update"): {"shared": True},
        ("notices", "partial_update"): {"read": True},
        ("inbox", "patch"): {"read": True},
        ("noticerules", "create"): {"kind": "JobStarted"},
        ("noticechannels", "create"): {
            "kind": "Webhook",
            "name": "fresh",
            "target": "https://example.com/hook",
        },
        ("bulkruns", "create"): {
            "action": "suspend",
            "jobs": [f"default/{place}-job"],
            "reason": "why",
        },
        ("forecast", "post"): job("fresh", leaf),
        ("previews", "create"): {"documents": [_edit(leaf, 3)]},
        ("windows", "create"): {"queue": leaf},
        ("plans", "create"): {"changeSet": _draft(leaf), "begin": _TOMORROW},
        ("changes", "create"): {"name": "fresh", "documents": [_edit(leaf, 3)]},
        ("changes", "partial_update"): {"name": "another"},
        ("changes", "add"): [_edit(leaf, 4)],
        ("changes", "remove"): {"kind": "Queue", "name": leaf},
        ("policy", "put"): {
            "spec": {"policy": 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'}
        },
        ("policy/validate", "post"): {"spec": {"policy": "actions: allocate"}},
        ("cluster", "patch"): {"spec": {"periodSeconds": 2}},
        ("usage/statement", "post"): {"queue": place, "month": "2026-10"},
        ("prices", "put"): {"validFrom": "2030-01-01", "currency": "EUR", "prices": {"cpu": "1"}},
        ("validate", "post"): {"kind": "Queue", **queue("fresh", place)},
        ("apply", "post"): {
            "kind": "PodGroup",
            "metadata": {"name": "fresh"},
            "spec": {"queue": leaf},
        },
    }
    return made.get((name, action))


def one(role: str) -> Caller:
    who = Caller(role, superuser=role == "cluster-admin")
    who.user.set_password("an old password")
    who.user.save()
    if role in ("viewer", "submitter", "admin"):
        grant_role(user=role, role=role, queue="own", by=SYSTEM)
    return who


@pytest.mark.django_db
@pytest.mark.parametrize("role", ROLES)
def test_every_verb_of_every_endpoint_for(role: str, admin: Caller):
    """Nobody gets through who may not, whoever may does.

    A dry run asks the same questions, so that one world serves all.
    """
    world = World(admin)
    who = one(role)
    wrong = [
        complaint
        for route in ALL
        for place in PLACES
        if (complaint := _complaint(route, place, role, who, world))
    ]

    assert not wrong, "\n".join(wrong)


def _complaint(
    route: tuple[str, str, str, str],
    place: str,
    role: str,
    who: Caller,
    world: World,
) -> str:
    name, action, method, path = route
    least = EXPECTED[name][action][PLACES.index(place)]
    asked_for = _object(name, place, who, world)
    if action == "reset_second_factor":
        asked_for = "boss"  # one's own goes another way
    found = path.replace("{object}", asked_for)
    dry = "?dry_run=true" if method != "GET" and name not in WITHOUT_DRY_RUN else ""
    who.ask(method, found + dry, body_for(name, action, place))
    code = who.last.status_code
    good = _allowed(role, least, code) if _may(role, least) else _refused(code, least, role)
    return (
        ""
        if good
        else (
            f"{role} {method} {found} ({place}, from {least}): {code} "
            f"{who.last.content.decode()[:200]}"
        )
    )


def _object(name: str, place: str, who: Caller, world: World) -> str:
    if name == "users":
        return who.user.get_username()
    if name == "tokens":
        return str(who.user.api_tokens.first().pk)
    if name == "views":
        return str(_view_of(who))
    if name.startswith("notice"):
        return str(_notice_object(name, place, who))
    if name == "previews":
        return str(who.user.previews.get_or_create(state="Done")[0].pk)
    if name == "bulkruns":
        return str(_run_of(who))
    if name in ("decisions", "evictions", "comparisons"):
        from scheduler.models import Comparison, Decision, Eviction

        models = {"decisions": Decision, "evictions": Eviction, "comparisons": Comparison}
        model: Any = models[name]
        return str(model.objects.get(queue_name=f"{place}-leaf").pk)
    return world.objects.get((name, place), "")


def _notice_object(name: str, place: str, who: Caller) -> int:
    """Things of their own that have to do with notices."""
    from scheduler.models import Notice, NoticeChannel, NoticeDelivery, NoticeRule, Queue

    now = timezone.now()
    channel = NoticeChannel.objects.get_or_create(
        user=who.user, name="hook", defaults={"kind": "Webhook", "target": "https://example.com/"}
    )[0]
    if name == "noticechannels":
        return int(channel.pk)
    if name == "noticerules":
        return int(NoticeRule.objects.get_or_create(user=who.user, kind="JobFailed")[0].pk)
    if name == "noticedeliveries":
        made = NoticeDelivery.objects.get_or_create(channel=channel, defaults={"due_at": now})
        return int(made[0].pk)
    return int(
        Notice.objects.get_or_create(
            user=who.user,
            key=place,
            defaults={"at": now, "path": "/", "queue": Queue.objects.get(name=f"{place}-leaf")},
        )[0].pk
    )


def _view_of(who: Caller) -> int:
    return int(who.user.saved_views.get_or_create(page="jobs", name="mine")[0].pk)


def _run_of(who: Caller) -> Any:
    """A run of his own in which a job was refused."""
    run, is_new = who.user.bulk_runs.get_or_create(action="AbortJob", state="Done")
    if is_new:
        run.items.create(namespace="default", name="own-job", result="Refused", message="no")
    return run.uid


def _may(role: str, least: str) -> bool:
    if role == "cluster-admin":
        return True
    return least not in ("never", "hidden") and ROLES.index(role) >= ROLES.index(least)


def _allowed(role: str, least: str, code: int) -> bool:
    """Let through: done, or refused for another reason than who he is (a job that runs cannot be
    deleted).
    """
    return code in (200, 201, 409)


def _refused(code: int, least: str, role: str) -> bool:
    """Where the object may not be seen it is not there: 404, or 400 for one that the body names.

    Else 403.
    """
    return code in ((403, 404, 400) if least == "hidden" or role == "nothing" else (403,))
