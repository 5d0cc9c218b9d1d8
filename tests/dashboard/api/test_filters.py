"""A filter value that cannot be is refused with those there are: in every list of the API, on every
page, and by label selectors.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard.api import filters
from dashboard.api.filters import OneOf, Truth
from scheduler.models import PodGroup
from tests.dashboard.api.conftest import Caller, job, node, queue

pytestmark = [pytest.mark.django_db]

LISTS = {
    "queues": filters.QueueFilters,
    "jobs": filters.JobFilters,
    "podgroups": filters.PodGroupFilters,
    "pods": filters.PodFilters,
    "nodes": filters.NodeFilters,
    "commands": filters.CommandFilters,
    "sessions": filters.SessionFilters,
    "decisions": filters.DecisionFilters,
    "evictions": filters.EvictionFilters,
    "comparisons": filters.ComparisonFilters,
    "events": filters.EventFilters,
    "audit": filters.AuditFilters,
    "grants": filters.GrantFilters,
    "groupmappings": filters.GroupMappingFilters,
    "changes": filters.ChangeSetFilters,
    "windows": filters.WindowFilters,
    "plans": filters.PlanFilters,
    "occurrences": filters.OccurrenceFilters,
    "notices": filters.NoticeFilters,
}
FIXED = {
    "state",
    "phase",
    "reason",
    "ready",
    "unschedulable",
    "action",
    "result",
    "kind",
    "type",
    "door",
    "deeds",
    "consequences",
    "role",
    "verdict",
    "about",
    "unread",
}
OPEN = {("events", "reason")}  # whatever a cluster reports can be the reason of an event
WORDS = [
    (name, parameter)
    for name, known in LISTS.items()
    for parameter in known.base_filters
    if parameter in FIXED and (name, parameter) not in OPEN
]


def found(caller: Caller, path: str) -> set[str]:
    return {row["metadata"]["name"] for row in caller.get(path)["results"]}


@pytest.mark.parametrize(("name", "parameter"), WORDS)
def test_a_value_that_cannot_be_is_refused_with_those_there_are(
    admin: Caller,
    name: str,
    parameter: str,
):
    known = LISTS[name].base_filters[parameter]
    assert isinstance(known, (OneOf, Truth))

    for value in ("Foo", "Nope,Open", "-1"):
        refused = admin.get(f"{name}/?{parameter}={value}", expect=400)
        (violation,) = refused["violations"]
        assert violation["field"] == parameter
        assert violation["fix"].startswith("one of ")


@pytest.mark.parametrize(("name", "parameter"), WORDS)
def test_every_value_there_is_is_taken_in_any_case(admin: Caller, name: str, parameter: str):
    known = LISTS[name].base_filters[parameter]
    words = known.known if isinstance(known, OneOf) else ("true", "false")

    assert (
        admin.get(f"{name}/?{parameter}={','.join(words) if isinstance(known, OneOf) else 'TRUE'}")[
            "results"
        ]
        is not None
    )
    assert admin.get(f"{name}/?{parameter}={words[0].lower()}")["results"] is not None


def test_states_are_found_in_any_case(admin: Caller):
    admin.post("queues/default/suspend/")

    assert found(admin, "queues/?state=suspended") == {"default"}
    assert found(admin, "queues/?state=Open,SUSPENDED") == {"root", "default"}


def test_what_no_session_has_looked_at_is_found_by_that_reason(admin: Caller):
    admin.post("jobs/", job("waits"), expect=201)
    admin.post("jobs/", job("runs"), expect=201)
    PodGroup.objects.filter(name="runs").update(phase="Running")

    assert found(admin, "jobs/?reason=AwaitingEvaluation") == {"waits"}
    assert found(admin, "podgroups/?reason=awaitingevaluation") == {"waits"}


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("team=a", {"a1", "a2"}),
        ("team!=a", {"b1", "root", "default"}),
        ("team in (a,b),stage!=test", {"a1", "b1"}),
        ("team notin (a)", {"b1", "root", "default"}),
        ("!team", {"root", "default"}),
        ("stage", {"a2"}),
        ("123=x", {"b1"}),
        ("team==a,!stage", {"a1"}),
        ("kubernetes.io/name!=a1,team", {"a2", "b1"}),
    ],
)
def test_labels_are_selected_as_in_kubernetes(admin: Caller, selector: str, names: set[str]):
    labels: dict[str, dict[str, str]] = {
        "a1": {"team": "a", "kubernetes.io/name": "a1"},
        "a2": {"team": "a", "stage": "test"},
        "b1": {"team": "b", "123": "x"},
    }
    for name, worn in labels.items():
        made = queue(name)
        made["metadata"]["labels"] = worn
        admin.post("queues/", made, expect=201)

    assert found(admin, f"queues/?label={selector}") == names


@pytest.mark.parametrize("selector", ["a!b", "=x", "team=a=b", "team>3"])
def test_what_is_no_selector_is_refused(admin: Caller, selector: str):
    for name in ("queues", "jobs", "nodes"):
        refused = admin.get(f"{name}/?label={selector}", expect=400)
        assert refused["violations"][0]["field"] == "label"


class TestPages:
    @pytest.fixture
    def pages(self, admin: Caller) -> Client:
        admin.post("nodes/", node("n1", cpu="4"), expect=201)
        admin.post("jobs/", job("train"), expect=201)
        client = Client()
        client.force_login(admin.user)
        return client

    @pytest.mark.parametrize(
        ("address", "named"),
        [
            ("/activity/?kind=Foo", "PodGroup"),
            ("/activity/?type=Foo", "warning"),
            ("/audit/?action=Foo", "CloseQueue"),
            ("/audit/?kind=Foo", "PriorityClass"),
            ("/audit/?door=window", "webhook"),
            ("/audit/?deeds=Foo", "admin"),
            ("/sessions/?only=Foo", "decided"),
            ("/nodes/?state=Foo", "Cordoned"),
            ("/nodes/?kind=Foo", "There is no kind"),
            ("/queues/default/jobs/?reason=Foo", "WaitingForQuota"),
            ("/jobs/default/train/?pods=Foo", "Succeeded"),
        ],
    )
    def test_refuse_a_value_that_cannot_be(self, pages: Client, address: str, named: str):
        answer = pages.get(address)

        assert answer.status_code == 400
        assert "Foo" in answer.content.decode() or "window" in answer.content.decode()
        assert named in answer.content.decode()

    def test_list_no_job_for_a_filter_with_a_mistake(self, pages: Client):
        answer = pages.get("/jobs/?q=state:Foo")

        assert answer.context["rows"] == []
        assert "There is no state “Foo”" in answer.content.decode()
        assert [row["name"] for row in pages.get("/jobs/?q=state:waiting").context["rows"]] == [
            "train"
        ]

    @pytest.mark.parametrize(
        "address",
        [
            "/activity/?kind=queue",
            "/activity/?type=Normal",
            "/audit/?action=closequeue",
            "/sessions/?only=failed",
            "/nodes/?state=ready",
        ],
    )
    def test_take_what_can_be_in_any_case(self, pages: Client, address: str):
        assert pages.get(address).status_code == 200


def test_nothing_else_is_a_list_with_filters():
    """So that a new list is added above."""
    import dashboard.api.urls  # noqa: F401 - loads every endpoint
    from dashboard.api.framework.collection import EndpointSet

    def below(kind: type[Any]) -> set[type[Any]]:
        return {kind, *(one for child in kind.__subclasses__() for one in below(child))}

    used = {kind.filter_class for kind in below(EndpointSet)} - {None, filters.NameFilters}
    assert used == set(LISTS.values())
