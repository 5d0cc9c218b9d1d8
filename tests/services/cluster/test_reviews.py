"""Admission by a mirror that is a moment behind its cluster, without an API server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from scheduler.admission.reviews import Request
from scheduler.clusters.kubernetes import values
from scheduler.clusters.kubernetes.read.workloads import read_queue
from scheduler.models import Mirror, PodGroup, Queue
from scheduler.selectors.cluster import mirror
from scheduler.services.cluster import reviews
from scheduler.services.cluster.reviews import defaults_now, review_now
from tests import mirrored
from tests.mirrored import MadeUpCluster, kubernetes_mode

pytestmark = pytest.mark.django_db


class ApiServer:
    """What the cluster has now, and how often it was asked for."""

    def __init__(self) -> None:
        self.queues: list[values.QueueObject] | None = []
        self.questions = 0
        self.calls_us = "system:console"

    def answer(self) -> list[values.QueueObject] | None:
        self.questions += 1
        return self.queues


@pytest.fixture
def api_server(monkeypatch: pytest.MonkeyPatch) -> ApiServer:
    server = ApiServer()
    monkeypatch.setattr(reviews, "live_queues", server.answer)
    monkeypatch.setattr(reviews, "own_account", lambda: server.calls_us)
    monkeypatch.setattr(mirror, "HEARD_WITHIN", timedelta(hours=1))  # on a slow machine too
    return server


@pytest.fixture
def cluster(api_server: ApiServer) -> Iterator[MadeUpCluster]:
    with kubernetes_mode():
        made_up = MadeUpCluster()
        made_up.lists(mirrored.queue("known"))
        yield made_up


def manifest(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "uid": f"uid-of-{name}"},
        "spec": spec,
    }


def job(queue: str) -> dict[str, Any]:
    task = {"name": "t", "replicas": 1, "template": {"spec": {"containers": []}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"queue": queue, "minAvailable": 1, "tasks": [task]},
    }


def podgroup(queue: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"queue": queue, "minMember": 1},
    }


def owned(manifest: dict[str, Any], owner: str) -> dict[str, Any]:
    manifest["metadata"]["annotations"] = {"fumarole.io/owner": owner}
    return manifest


def part_of_a_job(owner: str) -> dict[str, Any]:
    manifest = owned(job("known"), owner)
    manifest["metadata"]["ownerReferences"] = [
        {"kind": "Job", "name": "j", "uid": "1", "controller": True}
    ]
    return manifest


def create(kind: str, new: dict[str, Any]) -> list[str]:
    """The rules that it would break."""
    verdict = review_now(kind, Request("CREATE", new=new))
    return [violation.rule_id for violation in verdict.violations]


def delete(name: str, old: dict[str, Any]) -> list[str]:
    verdict = review_now("queues", Request("DELETE", name=name, old=old))
    return [violation.rule_id for violation in verdict.violations]


@pytest.mark.usefixtures("cluster")
def test_what_the_mirror_allows_is_not_asked_for(api_server: ApiServer):
    assert create("queues", manifest("child", parent="known")) == []
    assert create("jobs", job("known")) == []

    assert api_server.questions == 0


@pytest.mark.usefixtures("cluster")
def test_an_unknown_parent_or_queue_is_asked_for_once(api_server: ApiServer):
    api_server.queues = [mirrored.queue("new"), mirrored.queue("newer", "new")]

    assert create("queues", manifest("child", parent="newer")) == []
    assert create("jobs", job("newer")) == []
    assert create("jobs", job("ghost")) == ["queue_not_found"]

    assert api_server.questions == 3


@pytest.mark.usefixtures("cluster")
def test_if_the_cluster_cannot_be_asked_the_mirror_stands(api_server: ApiServer):
    api_server.queues = None

    assert create("queues", manifest("child", parent="newer")) == ["parent_not_found"]
    assert create("jobs", job("newer")) == ["queue_not_found"]


@pytest.mark.usefixtures("cluster")
def test_a_mirror_that_hears_nothing_is_not_trusted(api_server: ApiServer):
    api_server.queues = [mirrored.queue("known", state="Closed")]
    assert create("jobs", job("known")) == []

    Mirror.objects.update(heard_at=timezone.now() - timedelta(days=1))

    assert create("jobs", job("known")) == ["queue_not_open"]


def test_a_child_that_is_gone_by_now_does_not_keep_its_parent(
    cluster: MadeUpCluster, api_server: ApiServer
):
    parent = mirrored.queue("parent", state="Closed")
    cluster.has(parent, mirrored.queue("child", "parent"))
    api_server.queues = [parent]

    assert delete("parent", manifest("parent", state="Closed")) == []


@pytest.mark.usefixtures("cluster")
def test_a_queue_that_nobody_knows_may_be_deleted(api_server: ApiServer):
    assert delete("ghost", manifest("ghost")) == []
    assert delete("default", manifest("default", state="Closed")) == ["protected_queue"]


@pytest.mark.usefixtures("cluster")
def test_a_queue_is_deleted_by_the_state_that_is_stored_now(api_server: ApiServer):
    api_server.queues = None

    assert delete("known", manifest("known", state="Open")) == ["queue_not_closed"]
    assert delete("known", manifest("known", state="Closed")) == []


def closed_by_volcano(name: str) -> dict[str, Any]:
    """The extended definition has `spec.state`, and Volcano's controllers write the status."""
    return {**manifest(name, state="Open"), "status": {"state": "Closed"}}


@pytest.mark.usefixtures("cluster")
def test_the_status_counts_where_volcano_opens_and_closes_queues(api_server: ApiServer):
    api_server.queues = None
    assert delete("known", closed_by_volcano("known")) == ["queue_not_closed"]

    Mirror.objects.update(queue_controller=Mirror.VOLCANO)

    assert delete("known", closed_by_volcano("known")) == []


@pytest.mark.usefixtures("cluster")
def test_the_status_counts_of_queues_that_are_read_live(api_server: ApiServer):
    Mirror.objects.update(queue_controller=Mirror.VOLCANO)
    api_server.queues = [read_queue(closed_by_volcano("new"))]

    assert create("jobs", job("new")) == ["queue_not_open"]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("annotation", "text", "rule"),
    [("state", "Odd", "invalid_state"), ("min-run-seconds", "soon", "invalid_value")],
)
def test_an_annotation_with_a_wrong_value_is_refused(annotation: str, text: str, rule: str):
    wrong = manifest("wrong")
    wrong["metadata"]["annotations"] = {f"fumarole.io/{annotation}": text}

    assert create("queues", wrong) == [rule]


def test_two_at_the_same_time_may_pass_and_the_queue_tells(cluster: MadeUpCluster):
    cluster.has(mirrored.queue("parent", deserved={"cpu": "10"}))
    both = ("first", "second")

    for name in both:
        assert create("queues", manifest(name, parent="parent", deserved={"cpu": "6"})) == []
    cluster.has(*(mirrored.queue(name, "parent", deserved={"cpu": "6"}) for name in both))

    (condition,) = Queue.objects.get(name="parent").conditions
    assert condition["type"] == "HierarchyInvalid"


@pytest.mark.usefixtures("cluster")
def test_only_pods_of_the_schedulers_in_the_settings_are_judged():
    pod = {
        "metadata": {
            "name": "p",
            "namespace": "default",
            "annotations": {"scheduling.volcano.sh/queue-name": "ghost"},
        },
        "spec": {"schedulerName": "volcano", "containers": []},
    }
    assert create("pods", pod) == ["queue_not_found"]

    with kubernetes_mode(scheduler_names=("fumarole",)):
        assert create("pods", pod) == []


@pytest.mark.usefixtures("cluster")
def test_the_state_in_the_annotation_is_not_overwritten_by_the_default():
    waiting = manifest("waits")
    waiting["metadata"]["annotations"] = {"fumarole.io/state": "Suspended"}

    _, defaults = defaults_now("queues", Request("CREATE", new=waiting))

    assert ("spec", "state") not in [path for path, _ in defaults]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("spec", "status", "filled_in"),
    [
        ({}, {}, "Open"),
        ({}, {"state": "Closed"}, "Closed"),
        ({}, {"state": "Closing"}, None),
        ({"state": "Suspended"}, {"state": "Closed"}, None),
    ],
)
def test_a_state_in_the_status_of_a_new_queue_is_asked_for(
    spec: dict[str, Any], status: dict[str, Any], filled_in: str | None
):
    asked = {**manifest("new", **spec), "status": status}

    _, defaults = defaults_now("queues", Request("CREATE", new=asked))

    assert dict(defaults).get(("spec", "state")) == filled_in


class TestWhoseJobItIs:
    def test_who_creates_a_job_is_noted_as_its_owner(self, cluster: MadeUpCluster):
        _, defaults = defaults_now("jobs", Request("CREATE", new=job("known"), user="alice"))

        assert (("metadata", "annotations", "fumarole.io/owner"), "alice") in defaults

    def test_an_owner_that_the_console_has_noted_stays(self, cluster: MadeUpCluster):
        given = job("known")
        given["metadata"]["annotations"] = {"fumarole.io/owner": "alice"}

        _, defaults = defaults_now("jobs", Request("CREATE", new=given, user="system:console"))

        assert "fumarole.io/owner" not in str(defaults)

    @pytest.mark.parametrize("kind", ["jobs", "podgroups"])
    def test_nobody_else_names_another_as_owner(self, cluster: MadeUpCluster, kind: str):
        given = owned(job("known"), "alice")

        _, defaults = defaults_now(kind, Request("CREATE", new=given, user="mallory"))

        assert (("metadata", "annotations", "fumarole.io/owner"), "mallory") in defaults

    @pytest.mark.parametrize(
        ("user", "groups"),
        [
            ("system:serviceaccount:volcano-system:volcano-controllers", ()),
            ("system:serviceaccount:kube-system:job-controller", ()),
            ("system:kube-controller-manager", ()),
            ("admin", ("system:masters",)),
            ("system:console", ()),
        ],
    )
    def test_a_podgroup_of_a_job_keeps_the_owner_of_the_job(
        self, cluster: MadeUpCluster, user: str, groups: tuple[str, ...]
    ):
        asked = Request("CREATE", new=part_of_a_job("alice"), user=user, groups=frozenset(groups))

        verdict, defaults = defaults_now("podgroups", asked)

        assert "fumarole.io/owner" not in str(defaults)
        assert verdict.notices == ()

    @pytest.mark.parametrize(
        "user",
        [
            "mallory",
            "system:serviceaccount:team-m:volcano-controllers",
            "system:serviceaccount:kube-systems:x",
        ],
    )
    @pytest.mark.parametrize("kind", ["jobs", "podgroups"])
    def test_owner_references_alone_let_nobody_name_another(
        self, cluster: MadeUpCluster, kind: str, user: str
    ):
        asked = Request("CREATE", new=part_of_a_job("alice"), user=user)

        verdict, defaults = defaults_now(kind, asked)

        assert (("metadata", "annotations", "fumarole.io/owner"), user) in defaults
        (notice,) = verdict.notices
        assert notice.message.startswith(f"The owner is noted as {user}, not alice.")

    def test_other_controllers_are_named_by_the_setting(self, cluster: MadeUpCluster):
        account = "system:serviceaccount:argo:workflows"
        asked = Request("CREATE", new=part_of_a_job("alice"), user=account)
        with kubernetes_mode(controller_accounts=("system:serviceaccount:argo:*",)):
            _, defaults = defaults_now("podgroups", asked)

        assert "fumarole.io/owner" not in str(defaults)

    def test_a_podgroup_of_its_own_is_its_creators(self, cluster: MadeUpCluster):
        bare = podgroup("known")

        _, defaults = defaults_now("podgroups", Request("CREATE", new=bare, user="alice"))

        assert (("metadata", "annotations", "fumarole.io/owner"), "alice") in defaults

    def test_with_owner_references_too_it_is_its_creators(self, cluster: MadeUpCluster):
        forged = part_of_a_job("")
        forged["metadata"]["annotations"] = {}

        _, defaults = defaults_now("podgroups", Request("CREATE", new=forged, user="mallory"))

        assert (("metadata", "annotations", "fumarole.io/owner"), "mallory") in defaults

    @pytest.mark.parametrize("user", ["system:console", "system:kube-controller-manager"])
    def test_a_podgroup_that_a_program_makes_is_nobodys(self, cluster: MadeUpCluster, user: str):
        bare = podgroup("known")

        _, defaults = defaults_now("podgroups", Request("CREATE", new=bare, user=user))

        assert "fumarole.io/owner" not in str(defaults)

    @pytest.mark.parametrize(
        ("user", "expected"),
        [("alice", []), ("mallory", ["owner_is_fixed"]), ("system:console", [])],
    )
    def test_work_without_an_owner_can_be_taken_but_not_given_away(
        self, cluster: MadeUpCluster, user: str, expected: list[str]
    ):
        after = owned(job("known"), "alice")

        verdict = review_now("jobs", Request("UPDATE", new=after, old=job("known"), user=user))

        assert [violation.rule_id for violation in verdict.violations] == expected

    @pytest.mark.parametrize(
        ("user", "owner", "expected"),
        [
            ("mallory", "mallory", ["owner_is_fixed"]),
            ("mallory", "", ["owner_is_fixed"]),
            ("mallory", "alice", []),
            ("system:console", "mallory", []),
        ],
    )
    def test_an_owner_does_not_change(
        self, cluster: MadeUpCluster, user: str, owner: str, expected: list[str]
    ):
        before = owned(job("known"), "alice")
        after = owned(job("known"), owner)

        verdict = review_now("jobs", Request("UPDATE", new=after, old=before, user=user))

        assert [violation.rule_id for violation in verdict.violations] == expected

    def test_while_the_console_does_not_know_its_account_the_annotation_counts(
        self, cluster: MadeUpCluster, api_server: ApiServer
    ):
        api_server.calls_us = ""
        given = owned(job("known"), "alice")

        _, defaults = defaults_now("jobs", Request("CREATE", new=given, user="system:console"))

        assert "fumarole.io/owner" not in str(defaults)

    def test_the_limit_of_each_user_counts_what_its_owner_has_waiting(self, cluster: MadeUpCluster):
        known = Queue.objects.get(name="known")
        Queue.objects.filter(pk=known.pk).update(max_waiting_jobs_per_user=1)
        PodGroup.objects.create(
            namespace="default", name="first", queue=known, owner="alice", min_member=1
        )
        theirs = job("known")
        theirs["metadata"]["annotations"] = {"fumarole.io/owner": "alice"}

        def broken(user: str, new: dict[str, Any]) -> list[str]:
            verdict = review_now("jobs", Request("CREATE", new=new, user=user))
            return [violation.rule_id for violation in verdict.violations]

        assert broken("alice", job("known")) == ["too_many_waiting_jobs_of_user"]
        assert broken("system:console", theirs) == ["too_many_waiting_jobs_of_user"]
        assert broken("alice", owned(job("known"), "bob")) == ["too_many_waiting_jobs_of_user"]
        assert broken("bob", job("known")) == []
