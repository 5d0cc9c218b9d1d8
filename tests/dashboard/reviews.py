"""AdmissionReviews as a real API server sends them, every field of them."""

from __future__ import annotations

import base64
import json
from typing import Any

from django.test import Client

KINDS = {
    "queues": ("scheduling.volcano.sh", "v1beta1", "Queue"),
    "podgroups": ("scheduling.volcano.sh", "v1beta1", "PodGroup"),
    "jobs": ("batch.volcano.sh", "v1alpha1", "Job"),
    "pods": ("", "v1", "Pod"),
}
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def review(
    kind: str,
    operation: str,
    new: dict[str, Any] | None = None,
    old: dict[str, Any] | None = None,
    /,
    *,
    name: str = "",
    version: str = "admission.k8s.io/v1",
    api: tuple[str, str, str] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    group, api_version, singular = api or KINDS[kind]
    metadata = (new or old or {}).get("metadata", {})
    request = {
        "uid": UID,
        "kind": {"group": group, "version": api_version, "kind": singular},
        "resource": {"group": group, "version": api_version, "resource": kind},
        "requestKind": {"group": group, "version": api_version, "kind": singular},
        "requestResource": {"group": group, "version": api_version, "resource": kind},
        "name": name or metadata.get("name", ""),
        "operation": operation,
        "userInfo": {
            "username": "ann",
            "uid": "014fbff9a07c",
            "groups": ["system:authenticated"],
            "extra": {"some-key": ["a"]},
        },
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": f"{operation.title()}Options"},
    }
    if metadata.get("namespace"):
        request["namespace"] = metadata["namespace"]
    return {"apiVersion": version, "kind": "AdmissionReview", "request": {**request, **fields}}


def post(client: Client, path: str, body: Any, **headers: Any) -> Any:
    content = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return client.post(path, data=content, content_type="application/json", **headers)


def answer(
    client: Client,
    kind: str,
    body: dict[str, Any],
    task: str = "validate",
) -> dict[str, Any]:
    """The `response` part, after a check of everything around it."""
    response = post(client, f"/admission/{kind}/{task}", body)
    assert response.status_code == 200, response.content
    whole = response.json()
    assert (whole["apiVersion"], whole["kind"]) == (body["apiVersion"], "AdmissionReview")
    assert whole["response"]["uid"] == body["request"]["uid"]
    return dict(whole["response"])


def causes(response: dict[str, Any]) -> list[str]:
    return [cause["reason"] for cause in response["status"]["details"]["causes"]]


def patch_of(response: dict[str, Any]) -> dict[str, Any]:
    """What the patch writes, by its JSON pointers."""
    assert response["patchType"] == "JSONPatch"
    return {
        operation["path"]: operation["value"]
        for operation in json.loads(base64.b64decode(response["patch"]))
    }
