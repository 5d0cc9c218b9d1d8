"""What Fumarole puts into a cluster: definitions, rights and webhooks, read from `deploy/`."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from scheduler.clusters.kubernetes.resources import Resource

Manifest = dict[str, Any]

FOLDER: Final = Path(__file__).resolve().parents[3] / "deploy" / "kubernetes"
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
POLICIES: Final = Resource(
    _ADMISSION, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", namespaced=False
)
_RESOURCES: Final = (
    DEFINITIONS,
    POLICIES,
    Resource(
        _ADMISSION,
        "v1",
        "mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
        namespaced=False,
    ),
    Resource("", "v1", "namespaces", "Namespace", namespaced=False),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True),
    Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
    Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    Resource(
        _ADMISSION,
        "v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        namespaced=False,
    ),
    Resource(
        _ADMISSION,
        "v1",
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        namespaced=False,
    ),
)
_BY_KIND: Final = {resource.kind: resource for resource in _RESOURCES}
_PLACEHOLDER: Final = "https://fumarole.example"
_HTTPS_PORT: Final = 443
_FOR_SCHEDULING: Final = "fumarole-schedule"
_USUAL_SCHEDULERS: Final = "['volcano', 'fumarole']"


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Where the API server reaches us, and the authority (PEM) that has signed our certificate.

    The address of a Service of the cluster is https://name.namespace.svc.

    With `required` no queue can be changed while we are away; without it everything passes. Of pods
    only those of `scheduler_names` are asked about.
    """

    address: str
    authority: bytes
    required: bool = True
    scheduler_names: tuple[str, ...] = ("volcano", "fumarole")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be installed. Without `webhooks` the API server asks nobody."""

    schedules: bool = False
    webhooks: Webhooks | None = None


def resource_of(manifest: Manifest) -> Resource:
    return _BY_KIND[manifest["kind"]]


def name_of(manifest: Manifest) -> str:
    """In words, such as "ClusterRole fumarole-watch"."""
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def definitions() -> Iterator[Manifest]:
    """Of Queue, PodGroup, Job and Command."""
    for file in sorted((FOLDER / "crds").glob("*.yaml")):
        yield from _read(file)


def rights(wanted: Wanted) -> Iterator[Manifest]:
    """The account and its roles, in the order in which they are made."""
    for manifest in _read(FOLDER / "rbac.yaml"):
        if wanted.schedules or manifest["metadata"]["name"] != _FOR_SCHEDULING:
            yield manifest


def webhook_configurations(webhooks: Webhooks) -> Iterator[Manifest]:
    authority = b64encode(webhooks.authority).decode()
    for manifest in _read(FOLDER / "admission-webhooks.yaml"):
        for hook in manifest["webhooks"]:
            path = hook["clientConfig"]["url"].removeprefix(_PLACEHOLDER)
            hook["clientConfig"] = {**_reached_at(webhooks.address, path), "caBundle": authority}
            if not webhooks.required:
                hook["failurePolicy"] = "Ignore"
            for condition in hook.get("matchConditions", ()):
                names = json.dumps(webhooks.scheduler_names)  # a list of CEL too
                expression = condition["expression"].replace(_USUAL_SCHEDULERS, names)
                condition["expression"] = expression
        yield manifest


def take_over_manifests() -> Iterator[Manifest]:
    """Policies and their bindings, with examples in the place of names."""
    yield from _read(FOLDER / "take-over.yaml")


def _reached_at(address: str, path: str) -> dict[str, Any]:
    """A Service of the cluster is named as such: the API server may not ask the cluster's DNS."""
    parts = urlsplit(address)
    labels = (parts.hostname or "").split(".")
    if labels[2:] != ["svc"]:
        return {"url": address.rstrip("/") + path}
    name, namespace, _ = labels
    service = {
        "name": name,
        "namespace": namespace,
        "port": parts.port or _HTTPS_PORT,
        "path": parts.path.rstrip("/") + path,
    }
    return {"service": service}


def everything_but_definitions() -> list[Manifest]:
    """All that may be there, for whoever takes it out again."""
    nobody = Webhooks(_PLACEHOLDER, b"")
    return [
        *rights(Wanted(schedules=True)),
        *webhook_configurations(nobody),
        *take_over_manifests(),
    ]


def _read(file: Path) -> Iterator[Manifest]:
    # The definitions are long, and the loader in Python would take seconds.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for document in yaml.load_all(file.read_text(), Loader=loader):
        if document:
            yield document
