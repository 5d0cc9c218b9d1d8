"""What is installed in a real cluster, and what its account may do then."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from scheduler.clusters.kubernetes import installer
from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import from_kubeconfig
from scheduler.clusters.kubernetes.errors import Forbidden
from scheduler.clusters.kubernetes.installer import Done, Step
from scheduler.clusters.kubernetes.manifests import Wanted, Webhooks
from scheduler.clusters.kubernetes.resources import FOLLOWED, NODES, PODGROUPS, PODS, QUEUES
from scheduler.clusters.kubernetes.take_over import take_over
from scheduler.domain.taken_over import TakenOver
from tests.control_plane import objects
from tests.control_plane.plane import ControlPlane

_QUEUE_DEFINITION = "CustomResourceDefinition queues.scheduling.volcano.sh"
_VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_ACCOUNT = ("fumarole", "-n", "fumarole")


@pytest.fixture
def admin(control_plane: ControlPlane) -> Client:
    return Client(from_kubeconfig(control_plane.kubeconfig))


def test_volcanos_definitions_are_kept_unless_they_are_to_be_replaced(admin: Client) -> None:
    kept = _by_name(installer.install(admin, Wanted()))
    replaced = _by_name(installer.install(admin, Wanted(), replace_definitions=True))
    again = _by_name(installer.install(admin, Wanted()))

    assert kept[_QUEUE_DEFINITION].done is Done.KEPT
    assert "spec.state" in kept[_QUEUE_DEFINITION].why
    assert replaced[_QUEUE_DEFINITION].done is Done.APPLIED
    assert again[_QUEUE_DEFINITION] == Step(_QUEUE_DEFINITION, Done.APPLIED)
    assert _by_name(installer.status(admin))[_QUEUE_DEFINITION].why == ""


def test_the_status_tells_what_is_there(admin: Client) -> None:
    list(installer.install(admin, Wanted()))

    found = _by_name(installer.status(admin))

    assert found["ClusterRole fumarole-watch"].done is Done.PRESENT
    assert found["ClusterRole fumarole-schedule"].done is Done.MISSING
    assert found["ValidatingWebhookConfiguration fumarole-validate"].done is Done.MISSING


def test_webhooks_get_the_address_and_the_authority(
    admin: Client, control_plane: ControlPlane
) -> None:
    authority = control_plane.authority.read_bytes()
    webhooks = Webhooks("https://console.example:8443/", authority, required=False)

    list(installer.install(admin, Wanted(webhooks=webhooks)))

    (hook, *_) = control_plane.api.get(f"{_VALIDATING}/fumarole-validate")["webhooks"]
    assert hook["clientConfig"]["url"] == "https://console.example:8443/admission/queues/validate"
    assert hook["failurePolicy"] == "Ignore"


def test_only_what_is_ours_alone_is_taken_out(admin: Client, control_plane: ControlPlane) -> None:
    webhooks = Webhooks("https://console.example", control_plane.authority.read_bytes())
    list(installer.install(admin, Wanted(schedules=True, webhooks=webhooks)))
    take_over(admin, TakenOver(namespaces=("default",)))

    steps = _by_name(installer.uninstall(admin))

    kept = {name for name, step in steps.items() if step.done is Done.KEPT}
    assert kept == {"Namespace fumarole", *(name for name in steps if "Definition" in name)}
    assert {step.done for name, step in steps.items() if name not in kept} == {Done.REMOVED}
    assert control_plane.api.answers(objects.QUEUES)
    assert not control_plane.api.answers(f"{_VALIDATING}/fumarole-validate")


def test_the_account_that_watches_sees_all_edits_queues_and_places_nothing(
    admin: Client, control_plane: ControlPlane
) -> None:
    list(installer.install(admin, Wanted()))
    account = _account(control_plane)
    objects.wait_until(lambda: _may_list(account), "the rights of the account")

    for resource in FOLLOWED:
        account.list(resource)
    account.create(QUEUES, objects.queue("research"))
    account.patch(QUEUES, "research", {"status": {"state": "Open"}}, subresource="status")
    account.delete(QUEUES, "research")

    admin.create(PODS, objects.pod("p1"), "default")
    binding = objects.binding("p1", "n1")
    with pytest.raises(Forbidden):
        account.create_subresource(PODS, "p1", "binding", binding, "default")
    with pytest.raises(Forbidden):
        account.delete(PODS, "p1", "default")
    with pytest.raises(Forbidden):
        account.create(PODGROUPS, objects.podgroup("gang"), "default")
    with pytest.raises(Forbidden):
        account.get_path("/api/v1/secrets")


def test_the_account_that_schedules_binds_and_evicts_but_leaves_nodes_alone(
    admin: Client, control_plane: ControlPlane
) -> None:
    list(installer.install(admin, Wanted(schedules=True)))
    account = _account(control_plane)
    objects.wait_until(lambda: _may_list(account), "the rights of the account")
    admin.create(NODES, objects.node("n1"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p1"}}

    admin.create(PODS, objects.pod("p1"), "default")
    account.create_subresource(PODS, "p1", "binding", objects.binding("p1", "n1"), "default")
    condition = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    account.patch(PODS, "p1", {"status": condition}, "default", "status")
    account.create_subresource(PODS, "p1", "eviction", eviction, "default")

    with pytest.raises(Forbidden):
        account.get_path("/api/v1/secrets")
    with pytest.raises(Forbidden):
        account.delete(NODES, "n1")
    with pytest.raises(Forbidden):
        account.patch(NODES, "n1", {"spec": {"unschedulable": True}})


def _account(control_plane: ControlPlane) -> Client:
    token = control_plane.kubectl("create", "token", *_ACCOUNT).strip()
    kubeconfig: Path = control_plane.token_user("account", token)
    return Client(from_kubeconfig(kubeconfig))


def _may_list(client: Client) -> bool:
    try:
        client.list(QUEUES)
    except Forbidden:
        return False
    return True


def _by_name(steps: Iterable[Step]) -> dict[str, Step]:
    return {step.what: step for step in steps}
