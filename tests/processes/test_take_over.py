"""docs/how-to/take-over.md, step by step: from Volcano's scheduler to Fumarole, and back.

A real API server, Volcano's controllers, KWOK's nodes and a whole Fumarole with the rights of its
own account. Who has bound a pod is read from the audit log of the API server. Beside them runs the
real scheduler of Volcano in the long form, which builds it if it is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command

from tests.control_plane import objects, schedulers
from tests.control_plane.fumarole import Fumarole
from tests.control_plane.objects import wait_until
from tests.control_plane.placed import overcommitted
from tests.control_plane.plane import ACCOUNT, ControlPlane

pytestmark = pytest.mark.processes
NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
SCHEDULER_POD = "/api/v1/namespaces/kube-system/pods/volcano-scheduler"
MINE = "team-a"
THEIRS = "team-b"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"
TOO_MANY_CORES = "30"


class Site:
    """A cluster with two teams, and Fumarole beside it in one mode after the other."""

    def __init__(self, plane: ControlPlane, database: str, folder: Path) -> None:
        self.plane = plane
        self._database = database
        self._folder = folder
        self._log_begins = len(self._lines_of_log())
        self.manage("install")
        token = plane.kubectl("create", "token", "fumarole", "--namespace", "fumarole").strip()
        self._account = plane.token_user("account", token)

    def manage(self, *arguments: str) -> str:
        """`manage.py kubernetes`, as an admin of the cluster."""
        output = StringIO()
        kubeconfig = str(self.plane.kubeconfig)
        call_command("kubernetes", *arguments, "--kubeconfig", kubeconfig, stdout=output)
        return output.getvalue()

    @contextmanager
    def fumarole(self, mode: str, names: str = "") -> Iterator[Fumarole]:
        running = Fumarole(
            self._folder,
            kubeconfig=self._account,
            database=self._database,
            KUBERNETES_MODE=mode,
            KUBERNETES_SCHEDULER_NAMES=names,
            KUBERNETES_QUEUE_CONTROLLER="volcano",  # they run beside the cluster, and not in it
        )
        with running:
            yield running

    def take_over(self, *named: str) -> None:
        self.manage("take-over", *named)

    # Work

    def submit(self, name: str, namespace: str, *, queue: str = "default", cpu: str = "1") -> None:
        job = objects.volcano_job(name, queue=queue, replicas=2)
        (task,) = job["spec"]["tasks"]
        (container,) = task["template"]["spec"]["containers"]
        container["resources"]["requests"]["cpu"] = cpu
        self.plane.api.post(JOBS.format(namespace), job)

    def job(self, name: str, namespace: str) -> dict[str, Any]:
        return self.plane.api.get(f"{JOBS.format(namespace)}/{name}")

    def wait_until_completed(self, name: str, namespace: str) -> None:
        def is_completed() -> bool:
            status = self.job(name, namespace).get("status", {})
            return bool(status.get("state", {}).get("phase") == "Completed")

        wait_until(is_completed, f"{name} of {namespace} to be completed")

    def scheduler_of(self, name: str, namespace: str) -> str:
        return str(self.job(name, namespace)["spec"]["schedulerName"])

    def wait_until_new_jobs_are_for(
        self, scheduler: str, namespace: str, queue: str = "default"
    ) -> None:
        """The API server hears of its own policies a moment later."""
        trial = objects.volcano_job("trial", queue=queue)
        path = f"{JOBS.format(namespace)}?dryRun=All"
        wait_until(
            lambda: self.plane.api.post(path, trial)["spec"]["schedulerName"] == scheduler,
            f"new jobs of {namespace} to be for {scheduler}",
        )

    # What became of it

    def bound_by_us(self) -> set[str]:
        """The jobs whose pods our account has bound, as the API server has noted it."""
        found = set()
        for line in self._lines_of_log()[self._log_begins :]:
            event = json.loads(line)
            asked = event.get("objectRef") or {}
            is_bind = asked.get("subresource") == "binding" and event["verb"] == "create"
            if is_bind and event["user"]["username"] == ACCOUNT:
                assert event["responseStatus"]["code"] == 201, event
                job = asked["name"].rpartition("-worker-")[0]
                found.add(f"{asked['namespace']}/{job}")
        return found

    def _lines_of_log(self) -> list[str]:
        if not self.plane.audit_log.exists():
            return []
        return self.plane.audit_log.read_text().splitlines()

    def wait_for_sessions_beside(self, scheduler: str) -> None:
        """Until the cluster was read and heard again: sessions would have run meanwhile."""

        def is_heard() -> bool:
            with psycopg.connect(self._database) as connection:
                row = connection.execute(
                    "SELECT other_schedulers, heard_at - synced_at > interval '5 seconds' "
                    "FROM scheduler_mirror"
                ).fetchone()
            return row is not None and scheduler in row[0] and bool(row[1])

        wait_until(is_heard, f"{scheduler} to be noticed")

    def check_nodes(self) -> None:
        pods = self.plane.api.get(PODS)["items"]
        assert overcommitted(self.plane.api.get(NODES)["items"], pods) == []


@pytest.fixture
def site(control_plane: ControlPlane, postgres_database: str, tmp_path: Path) -> Iterator[Site]:
    for name in (MINE, THEIRS):
        control_plane.kubectl("create", "namespace", name)
    for number in range(3):
        name = f"n{number}"
        control_plane.api.post(NODES, objects.node(name, cpu="16", is_kwok=True))
        control_plane.api.patch(f"{NODES}/{name}", {"spec": {"taints": []}})
    for queue in ("root", "default", "research"):
        control_plane.api.apply(f"{objects.QUEUES}/{queue}", objects.queue(queue))
    with control_plane.kwok(), control_plane.volcano_controllers():
        yield Site(control_plane, postgres_database, tmp_path)


def test_a_namespace_is_taken_over_then_all_and_given_back(site: Site) -> None:
    """Nobody places the pods of Volcano here, so it shows that Fumarole leaves them alone."""
    site.submit("before", MINE)
    site.manage("install", "--mode", "schedule")

    with site.fumarole("schedule"):
        site.take_over("--namespace", MINE)
        site.wait_until_new_jobs_are_for("fumarole", MINE)
        site.submit("ours", MINE)
        site.submit("theirs", THEIRS)
        site.wait_until_completed("ours", MINE)
    assert site.bound_by_us() == {f"{MINE}/ours"}

    show_volcanos_scheduler(site.plane)
    with site.fumarole("schedule", "fumarole,volcano"):
        site.wait_for_sessions_beside("volcano")
    assert site.bound_by_us() == {f"{MINE}/ours"}

    site.plane.api.delete(f"{SCHEDULER_POD}?gracePeriodSeconds=0")
    with site.fumarole("schedule", "fumarole,volcano"):
        site.wait_until_completed("before", MINE)
        site.wait_until_completed("theirs", THEIRS)

    site.manage("give-back")
    site.wait_until_new_jobs_are_for("volcano", MINE)
    assert site.bound_by_us() == {f"{MINE}/ours", f"{MINE}/before", f"{THEIRS}/theirs"}
    site.check_nodes()


@pytest.mark.long
def test_each_step_beside_the_real_scheduler_of_volcano(site: Site) -> None:
    volcano = schedulers.build()
    with volcano.volcano(site.plane):
        _watch(site)
        _take_over_a_namespace(site)
        _take_over_a_queue(site)
    _take_over_all(site)
    _give_all_back(site, volcano)
    site.check_nodes()


def _watch(site: Site) -> None:
    with site.fumarole("watch"):
        site.submit("first", MINE)
        site.wait_until_completed("first", MINE)
    assert site.bound_by_us() == set()


def _take_over_a_namespace(site: Site) -> None:
    site.submit("large", MINE, cpu=TOO_MANY_CORES)  # Volcano's, and it waits for the rest of this
    site.manage("install", "--mode", "schedule")
    with site.fumarole("schedule"):
        site.take_over("--namespace", MINE)
        site.wait_until_new_jobs_are_for("fumarole", MINE)
        for number in range(3):
            site.submit(f"mine-{number}", MINE)
            site.submit(f"theirs-{number}", THEIRS)
        for number in range(3):
            site.wait_until_completed(f"mine-{number}", MINE)
            site.wait_until_completed(f"theirs-{number}", THEIRS)
    assert site.bound_by_us() == {f"{MINE}/mine-{number}" for number in range(3)}


def _take_over_a_queue(site: Site) -> None:
    before = site.bound_by_us()
    site.take_over("--queue", "research")
    site.wait_until_new_jobs_are_for("fumarole", THEIRS, "research")
    with site.fumarole("schedule"):
        site.submit("research", THEIRS, queue="research")
        site.submit("other", THEIRS)
        site.wait_until_completed("research", THEIRS)
        site.wait_until_completed("other", THEIRS)
    assert site.bound_by_us() == before | {f"{THEIRS}/research"}


def _take_over_all(site: Site) -> None:
    """Volcano's scheduler is stopped. What still waited for it is ours now."""
    before = site.bound_by_us()
    with site.fumarole("schedule", "fumarole,volcano"):
        site.submit("last", THEIRS)
        site.wait_until_completed("last", THEIRS)
        site.plane.api.post(NODES, objects.node("large", cpu="64", is_kwok=True))
        site.plane.api.patch(f"{NODES}/large", {"spec": {"taints": []}})
        site.wait_until_completed("large", MINE)
    assert site.bound_by_us() == before | {f"{THEIRS}/last", f"{MINE}/large"}


def _give_all_back(site: Site, volcano: schedulers.Schedulers) -> None:
    """What waits for Fumarole goes to Volcano, too, if that serves both names."""
    before = site.bound_by_us()
    site.submit("left", MINE)
    assert site.scheduler_of("left", MINE) == "fumarole"
    site.manage("give-back")
    site.wait_until_new_jobs_are_for("volcano", MINE)
    both = ("--scheduler-name=volcano", "--scheduler-name=fumarole")
    with site.fumarole("watch"), volcano.volcano(site.plane, *both):
        site.submit("back", MINE)
        site.wait_until_completed("left", MINE)
        site.wait_until_completed("back", MINE)
    assert site.bound_by_us() == before


def show_volcanos_scheduler(plane: ControlPlane) -> None:
    """Its pod runs, as far as the cluster tells."""
    pod = objects.pod("volcano-scheduler", labels={"app": "volcano-scheduler"})
    plane.api.post(SCHEDULER_POD.rpartition("/")[0], pod)
    plane.api.patch(f"{SCHEDULER_POD}/status", {"status": {"phase": "Running"}})
