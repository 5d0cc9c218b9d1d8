"""Objects as an API server gives them, with what a test needs."""

from __future__ import annotations

from typing import Any

MOMENT = "2026-11-17T12:00:00Z"


def raw_meta(name: str = "web-0", **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "uid": f"uid-of-{name}",
        "resourceVersion": "7",
        "creationTimestamp": MOMENT,
        **fields,
    }


def container(name: str = "main", requests: dict[str, str] | None = None, **fields: Any) -> Any:
    return {
        "name": name,
        "image": "example.com/image",
        "resources": {"requests": requests or {}},
        **fields,
    }


def raw_pod(
    name: str = "web-0",
    *,
    meta: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    return {
        "metadata": raw_meta(name, **{"namespace": "team", **(meta or {})}),
        "spec": {"schedulerName": "fumarole", "containers": [container()], **spec},
        "status": {"phase": "Pending", **(status or {})},
    }
