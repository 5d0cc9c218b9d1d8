"""Taking over a namespace or a queue: whose new work is, by the policies of a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import from_kubeconfig
from scheduler.clusters.kubernetes.resources import JOBS, PODS, QUEUES
from scheduler.clusters.kubernetes.take_over import (
    CannotTakeOver,
    give_back,
    read_taken_over,
    take_over,
)
from scheduler.domain.taken_over import NOTHING, TakenOver
from tests.control_plane import objects
from tests.control_plane.plane import ControlPlane

GROUP = "scheduling.k8s.io/group-name"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"


@pytest.fixture
def admin(control_plane: ControlPlane) -> Client:
    """Of a cluster with two namespaces and two queues beside the usual ones."""
    for name in ("team-a", "team-b"):
        control_plane.kubectl("create", "namespace", name)
    client = Client(from_kubeconfig(control_plane.kubeconfig))
    for name in ("research", "production"):
        client.create(QUEUES, objects.queue(name))
    for name in ("team-a", "team-b"):  # those of the last test may still hold
        wait_until_policies_hold(client, name, "volcano")
    return client


def test_new_work_of_a_namespace_is_ours_and_what_others_create_is_not(admin: Client) -> None:
    take_over(admin, TakenOver(namespaces=("team-a",)))
    wait_until_policies_hold(admin, "team-a")

    assert scheduler_of_pod(admin, "team-a") == "fumarole"
    assert scheduler_of_job(admin, "team-a") == {"fumarole"}
    assert scheduler_of_pod(admin, "team-b") == "volcano"
    assert scheduler_of_job(admin, "team-b") == {"volcano"}


def test_new_work_of_a_queue_is_ours_in_every_namespace(admin: Client) -> None:
    take_over(admin, TakenOver(queues=("research",)))
    wait_until_policies_hold(admin, "team-b", queue="research")

    assert scheduler_of_job(admin, "team-b", queue="research") == {"fumarole"}
    assert scheduler_of_pod(admin, "team-b", queue="research") == "fumarole"
    assert scheduler_of_pod(admin, "team-b", queue="production") == "volcano"
    assert scheduler_of_pod(admin, "team-b") == "volcano"
    assert scheduler_of_job(admin, "team-b", queue="production") == {"volcano"}


def test_a_pod_of_a_gang_and_a_pod_of_a_third_scheduler_stay_whose_they_are(
    admin: Client,
) -> None:
    """The gang may have begun with Volcano: half of it would wait for ever."""
    take_over(admin, TakenOver(namespaces=("team-a",)))
    wait_until_policies_hold(admin, "team-a")

    assert scheduler_of_pod(admin, "team-a", annotations={GROUP: "gang"}) == "volcano"
    assert scheduler_of_pod(admin, "team-a", scheduler="default-scheduler") == "default-scheduler"


def test_what_was_given_back_is_left_to_volcano_and_the_rest_is_ours(admin: Client) -> None:
    take_over(admin, TakenOver(namespaces=("team-a",)))
    both = take_over(admin, TakenOver(namespaces=("team-b",), queues=("research",)))
    assert read_taken_over(admin) == both == TakenOver(("team-a", "team-b"), ("research",))
    wait_until_policies_hold(admin, "team-b")

    left = give_back(admin, TakenOver(namespaces=("team-a",)))
    wait_until_policies_hold(admin, "team-a", "volcano")

    assert left == TakenOver(("team-b",), ("research",))
    assert scheduler_of_pod(admin, "team-b") == "fumarole"
    assert scheduler_of_pod(admin, "team-a") == "volcano"


def test_everything_is_given_back_if_nothing_is_named(admin: Client) -> None:
    take_over(admin, TakenOver(("team-a",), ("research",)))
    wait_until_policies_hold(admin, "team-a")

    assert give_back(admin, NOTHING) == NOTHING
    wait_until_policies_hold(admin, "team-a", "volcano")

    assert read_taken_over(admin) == NOTHING
    assert give_back(admin, NOTHING) == NOTHING  # again


def test_a_name_that_was_not_taken_over_cannot_be_given_back(admin: Client) -> None:
    """It would be a name that is written wrong: the right one would stay ours unnoticed."""
    taken = take_over(admin, TakenOver(namespaces=("team-a",)))

    with pytest.raises(CannotTakeOver, match="Not taken over: the namespace team-x"):
        give_back(admin, TakenOver(namespaces=("team-a", "team-x")))

    assert read_taken_over(admin) == taken


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (TakenOver(namespaces=("nowhere",)), "There is no namespace nowhere in this cluster"),
        (TakenOver(queues=("nobody",)), "There is no queue nobody in this cluster"),
    ],
)
def test_a_name_that_is_not_there_is_refused(admin: Client, wanted: TakenOver, words: str) -> None:
    with pytest.raises(CannotTakeOver, match=words):
        take_over(admin, wanted)

    assert read_taken_over(admin) == NOTHING


def test_a_server_without_such_policies_is_told_what_to_do_instead(client: Client) -> None:
    """The fake server is like one that is older than Kubernetes 1.36."""
    with pytest.raises(CannotTakeOver, match="schedulerName: fumarole"):
        take_over(client, TakenOver(namespaces=("default",)))

    assert read_taken_over(client) == NOTHING


def scheduler_of_pod(client: Client, namespace: str, *, queue: str = "", **given: Any) -> str:
    """Of a pod that is only tried."""
    annotations = {**given.pop("annotations", {})}
    if queue:
        annotations[QUEUE_NAME] = queue
    wanted = {"scheduler": "volcano", **given}
    pod = objects.pod("trial", annotations=annotations, **wanted)
    made = client.create(PODS, pod, namespace)
    client.delete(PODS, "trial", namespace, grace_seconds=0)
    return str(made["spec"]["schedulerName"])


def scheduler_of_job(client: Client, namespace: str, queue: str = "default") -> set[str]:
    """As the job and the templates of its pods say."""
    job = objects.volcano_job("trial", queue=queue)
    made = client.create(JOBS, job, namespace)
    client.delete(JOBS, "trial", namespace)
    spec = made["spec"]
    return {
        spec["schedulerName"],
        *(task["template"]["spec"]["schedulerName"] for task in spec["tasks"]),
    }


def wait_until_policies_hold(
    client: Client, namespace: str, scheduler: str = "fumarole", *, queue: str = "default"
) -> None:
    """The API server hears of its own policies a moment later, of one after the other."""
    objects.wait_until(
        lambda: scheduler_of_pod(client, namespace, queue=queue) == scheduler,
        f"pods for {scheduler}",
    )
    objects.wait_until(
        lambda: scheduler_of_job(client, namespace, queue) == {scheduler}, f"jobs for {scheduler}"
    )
