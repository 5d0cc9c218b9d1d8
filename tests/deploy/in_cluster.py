"""The manifests of `deploy/kubernetes` as a cluster would run them: rendered by kubectl, and each
process as a command.
"""

from __future__ import annotations

import shutil
import subprocess
from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.control_plane import programs

BASE = Path(__file__).resolve().parent.parent.parent
FOLDER = BASE / "deploy" / "kubernetes"
DOCKERFILE = BASE / "deploy" / "Dockerfile"


def folder_with_secrets(place: Path) -> Path:
    """A copy of the folder in which the secrets were made, as the README says."""
    copy = place / "kubernetes"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("secrets"))
    subprocess.run([copy / "make-secrets"], check=True, stdout=subprocess.DEVNULL)
    return copy


def image_at(place: Path) -> Path:
    """A folder with just what the Dockerfile copies into the image."""
    image = place / "image"
    image.mkdir()
    for line in DOCKERFILE.read_text().splitlines():
        if line.startswith("COPY ") and "--from=" not in line:
            _copy_into_image(line.split()[1], image)
    return image


def _copy_into_image(name: str, image: Path) -> None:
    source = BASE / name
    if source.is_file():
        shutil.copyfile(source, image / name)
        return
    leave_out = shutil.ignore_patterns("__pycache__", "secrets")
    shutil.copytree(source, image / name, ignore=leave_out)


@dataclass(frozen=True, slots=True)
class Container:
    command: list[str]
    environment: dict[str, str]


class Manifests:
    """What `kubectl apply -k` sends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = [programs.find().path_of("kubectl"), "kustomize", str(folder)]
        done = subprocess.run(command, text=True, capture_output=True, check=True)
        self.objects: list[dict[str, Any]] = list(yaml.safe_load_all(done.stdout))

    def of_kind(self, kind: str) -> dict[str, dict[str, Any]]:
        return {each["metadata"]["name"]: each for each in self.objects if each["kind"] == kind}

    def pod_of(self, deployment: str) -> dict[str, Any]:
        found: dict[str, Any] = self.of_kind("Deployment")[deployment]["spec"]["template"]["spec"]
        return found

    def has_token(self, deployment: str) -> bool:
        return self.pod_of(deployment).get("automountServiceAccountToken", True) is True

    def process(self, deployment: str) -> Container:
        (container,) = self.pod_of(deployment)["containers"]
        return self._as_process(container)

    def first_process(self, deployment: str) -> Container:
        """Of the container that runs before it."""
        (container,) = self.pod_of(deployment)["initContainers"]
        return self._as_process(container)

    def _as_process(self, container: dict[str, Any]) -> Container:
        environment: dict[str, str] = {}
        for source in container["envFrom"]:
            environment.update(self._values_of(source))
        for variable in container.get("env", ()):
            environment[variable["name"]] = variable["value"]
        return Container(container["command"], environment)

    def _values_of(self, source: dict[str, Any]) -> dict[str, str]:
        if "configMapRef" in source:
            settings = self.of_kind("ConfigMap")[source["configMapRef"]["name"]]
            return dict(settings["data"])
        secret = self.of_kind("Secret")[source["secretRef"]["name"]]
        return {name: b64decode(value).decode() for name, value in secret["data"].items()}
