"""The Helm chart makes the same objects as the manifests of `deploy/kubernetes`.

The API server takes them.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler import VERSION
from tests.control_plane.build import HELM
from tests.control_plane.plane import ControlPlane
from tests.deploy.in_cluster import Manifests, folder_with_secrets
from tests.needed import built
from tests.running import BASE

CHART = BASE / "deploy" / "helm" / "fumarole"
_OF_KUSTOMIZE = re.compile(r"-[a-z0-9]{10}$")  # it names settings and secrets after their contents
_COMPARED = ("Deployment", "Service", "ServiceAccount", "ClusterRole", "ClusterRoleBinding")


@pytest.fixture(scope="module")
def helm() -> Path:
    return built(HELM) / "helm"


def run(helm: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(helm), *words]
    return subprocess.run(command, text=True, capture_output=True, check=False)


def rendered(helm: Path, *options: str) -> list[dict[str, Any]]:
    done = run(helm, "template", "fumarole", str(CHART), "--namespace=fumarole", *options)
    assert done.returncode == 0, done.stderr
    return [found for found in yaml.safe_load_all(done.stdout) if found]


def by_name(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Without what each way adds of its own, and without the servers for trying out."""
    found = {}
    for each in objects:
        labels = each["metadata"].get("labels", {})
        is_ours = labels.get("app.kubernetes.io/name", "fumarole") == "fumarole"
        if each["kind"] in _COMPARED and is_ours:
            found[each["kind"], each["metadata"]["name"]] = plain(each)
    return found


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: plain(inner)
            for key, inner in value.items()
            if key not in ("imagePullPolicy", "checksum/settings") and inner not in ({}, None)
            if not (key == "annotations" and set(inner) == {"checksum/settings"})
        }
    if isinstance(value, list):
        items = [plain(inner) for inner in value]
        return sorted(items, key=repr)
    if isinstance(value, str):
        return _OF_KUSTOMIZE.sub("", value)
    return value


@pytest.mark.kubernetes
def test_the_chart_makes_the_objects_of_the_manifests(helm: Path, tmp_path: Path):
    manifests = Manifests(folder_with_secrets(tmp_path))

    of_chart = by_name(rendered(helm, "--set=webhooks.enabled=true"))

    assert of_chart == by_name(manifests.objects)
    settings = manifests.of_kind("ConfigMap")
    ((name, expected),) = [pair for pair in settings.items() if "settings" in pair[0]]
    (ours,) = [each for each in rendered(helm) if each["kind"] == "ConfigMap"]
    assert _OF_KUSTOMIZE.sub("", name) == ours["metadata"]["name"]
    assert ours["data"] == expected["data"]


def test_values_find_their_way(helm: Path):
    objects = rendered(
        helm,
        "--set=mode=schedule",
        "--set=image.repository=example.com/f,image.tag=1.2",
        "--set=replicas.web=5",
        "--set=allowedHosts={queues.example.com}",
        "--set=settings.LOG_LEVEL=DEBUG",
        "--set=existingSecret=ours",
    )

    found = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    web = found["Deployment", "fumarole-web"]
    (container,) = web["spec"]["template"]["spec"]["containers"]
    assert web["spec"]["replicas"] == 5
    assert container["image"] == "example.com/f:1.2"
    assert {"secretRef": {"name": "ours"}} in container["envFrom"]
    data = found["ConfigMap", "fumarole-settings"]["data"]
    assert data["ALLOWED_HOSTS"].startswith("queues.example.com,localhost,")
    assert data["LOG_LEVEL"] == "DEBUG"
    assert ("ClusterRole", "fumarole-schedule") in found
    assert ("Deployment", "fumarole-webhooks") not in found


def test_sign_on_is_set_by_values(helm: Path):
    values = "signOn.issuer=https://sso.example.com,signOn.clientId=us,signOn.name=Example"
    objects = rendered(helm, f"--set={values},publicUrl=https://queues.example.com")

    (settings,) = [each["data"] for each in objects if each["kind"] == "ConfigMap"]
    assert {name: value for name, value in settings.items() if name.startswith("SSO_")} == {
        "SSO_ISSUER": "https://sso.example.com",
        "SSO_CLIENT_ID": "us",
        "SSO_NAME": "Example",
    }
    assert settings["PUBLIC_URL"] == "https://queues.example.com"


def test_sign_on_without_a_client_is_refused(helm: Path):
    done = run(helm, "template", "fumarole", str(CHART), "--set=signOn.issuer=https://a.example")

    assert done.returncode != 0
    assert "signOn.clientId is needed" in done.stderr


def test_a_mode_that_there_is_not_is_refused(helm: Path):
    done = run(helm, "template", "fumarole", str(CHART), "--set=mode=both")

    assert done.returncode != 0
    assert 'mode is "both"; write watch or schedule' in done.stderr


def test_the_chart_is_found_right_by_helm_itself(helm: Path):
    done = run(helm, "lint", "--strict", str(CHART))

    assert done.returncode == 0, done.stdout


def test_the_api_server_knows_every_field_of_the_chart(helm: Path, control_plane: ControlPlane):
    control_plane.kubectl("create", "namespace", "fumarole")  # a dry run makes none
    apply = ("apply", "--dry-run=server", "--validate=strict", "--filename=-")

    for mode in ("watch", "schedule"):
        options = (f"--set=mode={mode},webhooks.enabled=true,replicas.watcher=2",)
        objects = rendered(helm, *options)
        taken = control_plane.kubectl(*apply, given=yaml.safe_dump_all(objects)).splitlines()
        assert len(taken) == len(objects)


def test_a_chart_is_installed_upgraded_and_taken_out(helm: Path, control_plane: ControlPlane):
    place = (f"--kubeconfig={control_plane.kubeconfig}", "--namespace=queues")

    installed = run(helm, "install", "fumarole", str(CHART), "--create-namespace", *place)
    upgraded = run(helm, "upgrade", "fumarole", str(CHART), "--set=mode=schedule", *place)
    roles = control_plane.kubectl("get", "clusterroles", "--output=name")
    made = control_plane.kubectl("get", "deployments", "--namespace=queues", "--output=name")
    removed = run(helm, "uninstall", "fumarole", *place)

    assert installed.returncode == 0, installed.stderr
    assert upgraded.returncode == 0, upgraded.stderr
    assert "fumarole-schedule" in roles
    assert len(made.split()) == 5
    assert removed.returncode == 0, removed.stderr
    left = control_plane.kubectl("get", "deployments", "--namespace=queues", "--output=name")
    assert left.split() == []


def test_the_chart_has_the_version_of_the_program():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert str(chart["appVersion"]) == VERSION
    assert str(chart["version"]) == VERSION.replace(".dev", "-dev.")


@pytest.mark.parametrize("copied", ["crds", "processes", "rbac.yaml"])
def test_the_chart_has_the_manifests_as_they_are(copied: str):
    source = BASE / "deploy/kubernetes" / {"processes": "fumarole"}.get(copied, copied)

    assert texts_of(CHART / copied) == texts_of(source), "run deploy/helm/copy-manifests"


def texts_of(place: Path) -> dict[str, str]:
    files = [place] if place.is_file() else sorted(place.glob("*.yaml"))
    return {file.name: file.read_text() for file in files}


def test_every_value_is_explained():
    lines = (CHART / "values.yaml").read_text().splitlines()

    for before, line in zip(["", *lines], lines, strict=False):
        if re.match(r"^[a-z]\w*:", line):
            assert before.startswith("# "), f"{line} has no comment above it"
