"""Jobs whose pods have rules about other pods, from the manifest to the node."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.models import Pod, PodClass, PodGroup
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.demo.setup import ensure_builtin_objects
from scheduler.services.jobs.forecast import Prospect, forecast_job
from scheduler.services.jobs.submit import submit_job
from scheduler.services.queues.states import refresh_states
from scheduler.services.sessions.runner import SessionRunner
from tests.worlds import manifest, node, queue, run_session

pytestmark = [pytest.mark.django_db]

HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture(autouse=True)
def cluster() -> None:
    ensure_builtin_objects()
    node("n1", cpu="8")
    node("n2", cpu="8")
    queue("team")
    refresh_states()


def apart(name: str, app: str, *, others: str = "", replicas: int = 1) -> dict[str, Any]:
    """A job that keeps its pods apart from those of an app, by node."""
    asked = manifest(name, "team", replicas=replicas)
    term = {
        "labelSelector": {"matchLabels": {"app": others or app}},
        "topologyKey": HOST,
    }
    template = asked["spec"]["tasks"][0]["template"]
    template["metadata"]["labels"] = {"app": app}
    template["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}
    return asked


def labelled(name: str, app: str, replicas: int = 1) -> dict[str, Any]:
    asked = manifest(name, "team", replicas=replicas)
    asked["spec"]["tasks"][0]["template"]["metadata"]["labels"] = {"app": app}
    return asked


def nodes_of(job: str) -> list[str]:
    pods = Pod.objects.filter(podgroup__name=job, node__isnull=False)
    return sorted(pods.values_list("node__name", flat=True))


def reason_of(job: str) -> tuple[str, str]:
    group = PodGroup.objects.get(name=job)
    return group.reason_code, group.reason_message


def test_the_pods_of_a_job_keep_apart():
    submit_job(apart("db", "db", replicas=2))
    run_session()

    assert nodes_of("db") == ["n1", "n2"]


def test_a_rule_that_comes_later_sees_the_labels_of_pods_that_run():
    runner = SessionRunner("test")
    submit_job(labelled("web", "web"))
    run_session(runner)
    taken = set(nodes_of("web"))
    assert PodClass.objects.get().labels == {"app": "web"}
    submit_job(apart("db", "db", others="web"))
    run_session(runner)

    assert len(taken) == 1
    assert set(nodes_of("db")) == {"n1", "n2"} - taken


def test_a_job_that_the_rules_leave_no_node_for_says_so():
    submit_job(apart("db", "db", replicas=3))
    run_session()

    assert reason_of("db") == (
        "PodRulesNotMet",
        "Places for 2 of the 3 pods, then no node: 2 of 2 already run a pod of app=db.",
    )


def test_a_job_with_host_ports_is_not_placed_and_names_them():
    asked = manifest("port", "team")
    container = asked["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    submit_job(asked)
    run_session()

    assert nodes_of("port") == []
    assert reason_of("port") == (
        "NotSupported",
        "Its pods ask for what is not supported here: host ports (hostPort).",
    )


def test_a_spread_is_kept():
    asked = labelled("db", "db", replicas=4)
    asked["spec"]["tasks"][0]["template"]["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": HOST,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "db"}},
        }
    ]
    submit_job(asked)
    run_session()

    assert nodes_of("db") == ["n1", "n1", "n2", "n2"]


def test_a_forecast_knows_the_rules():
    submit_job(labelled("one", "web", replicas=8))
    submit_job(labelled("two", "web", replicas=8))
    run_session()

    asked = apart("db", "db", others="web")
    asked["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {}
    verdict = forecast_job(asked, by=Actor("anybody", Door.SYSTEM))

    assert nodes_of("one") + nodes_of("two") == ["n1"] * 8 + ["n2"] * 8
    assert (verdict.prospect, verdict.code) == (Prospect.WAITS, "PodRulesNotMet")
