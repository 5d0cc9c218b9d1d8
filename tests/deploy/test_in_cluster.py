"""The manifests for Fumarole inside the cluster, given to a real API server as
deploy/kubernetes/README.md says.
"""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.control_plane import objects
from tests.control_plane.plane import ControlPlane
from tests.deploy.in_cluster import Manifests, folder_with_secrets

_PROCESSES = {
    "fumarole-web": 2,
    "fumarole-webhooks": 2,
    "fumarole-scheduler": 1,
    "fumarole-worker": 1,
    "fumarole-beat": 1,
    "fumarole-watcher": 1,
}
_PODS = sum(_PROCESSES.values()) + 2  # PostgreSQL and Redis
pytestmark = pytest.mark.kubernetes
_IN_FUMAROLE = ("--namespace", "fumarole")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_with_secrets(tmp_path)


@pytest.fixture
def manifests(folder: Path) -> Manifests:
    return Manifests(folder)


def test_the_api_server_takes_every_object_and_knows_every_field(
    control_plane: ControlPlane, manifests: Manifests
) -> None:
    apply = ("apply", "-k", str(manifests.folder), "--validate=strict")
    control_plane.kubectl("create", "namespace", "fumarole")  # a dry run makes none

    tried = control_plane.kubectl(*apply, "--dry-run=server").splitlines()
    done = control_plane.kubectl(*apply).splitlines()
    again = control_plane.kubectl(*apply).splitlines()

    assert len(tried) == len(done) == len(manifests.objects)
    restarted = [line for line in again if "deployment" in line and "unchanged" not in line]
    assert restarted == []


def test_the_controllers_make_all_pods_in_a_namespace_that_refuses_unsafe_ones(
    control_plane: ControlPlane, folder: Path
) -> None:
    control_plane.kubectl("apply", "-k", str(folder))

    with control_plane.controllers():
        objects.wait_until(lambda: len(_pods(control_plane)) == _PODS, "all pods")

    namespace = control_plane.api.get("/api/v1/namespaces/fumarole")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def _pods(control_plane: ControlPlane) -> list[str]:
    return control_plane.kubectl("get", "pods", "--output=name", *_IN_FUMAROLE).split()


def test_every_process_runs_on_a_file_system_that_it_cannot_write(manifests: Manifests) -> None:
    for name in _PROCESSES:
        pod = manifests.pod_of(name)
        for container in (*pod["initContainers"], *pod["containers"]):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["resources"]["limits"]["memory"]
            assert container["image"].startswith("registry.example.com/fumarole:")
        assert pod["securityContext"]["runAsUser"] > 0


def test_there_is_a_manifest_for_each_process_and_none_else(manifests: Manifests) -> None:
    wanted = {
        name: deployment["spec"]["replicas"]
        for name, deployment in manifests.of_kind("Deployment").items()
    }

    assert wanted == _PROCESSES


def test_who_only_watches_gets_no_role_to_schedule(manifests: Manifests) -> None:
    assert set(manifests.of_kind("ClusterRole")) == {"fumarole-watch"}
    assert set(manifests.of_kind("ClusterRoleBinding")) == {"fumarole-watch"}


def test_secrets_are_made_once_and_only_their_owner_reads_them(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = folder_with_secrets(tmp_path_factory.mktemp("other")) / "secrets"
    made = {file.name: file.read_bytes() for file in (folder / "secrets").iterdir()}

    assert set(made) == {"fumarole.env", "trial.env", "webhooks.crt", "webhooks.key"}
    for file in (folder / "secrets").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert made[file.name] != (other / file.name).read_bytes()
