"""How the API server says no: an object `Status`, with a code that is also the HTTP status."""

from __future__ import annotations

from typing import Any

from tests.control_plane.fake.resources import Resource


class Refused(Exception):
    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def status(self) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details is not None:
            answer["details"] = self.details
        return answer


def not_found(resource: Resource, name: str) -> Refused:
    message = f'{resource.full_name} "{name}" not found'
    return Refused(404, "NotFound", message, _details(resource, name))


def already_exists(resource: Resource, name: str) -> Refused:
    message = f'{resource.full_name} "{name}" already exists'
    return Refused(409, "AlreadyExists", message, _details(resource, name))


def conflict(resource: Resource, name: str) -> Refused:
    message = (
        f'Operation cannot be fulfilled on {resource.full_name} "{name}": the object has been '
        "modified; please apply your changes to the latest version and try again"
    )
    return Refused(409, "Conflict", message, _details(resource, name))


def already_bound(pod: str, node: str) -> Refused:
    message = (
        f'Operation cannot be fulfilled on pods/binding "{pod}": '
        f'pod {pod} is already assigned to node "{node}"'
    )
    return Refused(409, "Conflict", message, {"name": pod, "kind": "pods/binding"})


def other_uid(pod: str, wanted: str, stored: str) -> Refused:
    message = (
        f'Operation cannot be fulfilled on pods "{pod}": Precondition failed: '
        f"UID in precondition: {wanted}, UID in object meta: {stored}"
    )
    return Refused(409, "Conflict", message, {"name": pod, "kind": "pods"})


def other_version(name: str, wanted: str) -> Refused:
    message = (
        f'Operation cannot be fulfilled on "{name}": Precondition failed: '
        f"ResourceVersion in precondition: {wanted}"
    )
    return Refused(409, "Conflict", message, {"name": name})


def not_allowed(pod: str) -> Refused:
    message = f'Pod "{pod}" is invalid: spec: Forbidden: pod updates may not change fields'
    return Refused(422, "Invalid", message, {"name": pod, "kind": "Pod"})


def expired(message: str) -> Refused:
    return Refused(410, "Expired", message)


def forbidden_by_budget(budget: str, needed: int, healthy: int) -> Refused:
    cause = {
        "reason": "DisruptionBudget",
        "message": f"The disruption budget {budget} needs {needed} healthy pods "
        f"and has {healthy} currently",
    }
    return Refused(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        {"causes": [cause]},
    )


def _details(resource: Resource, name: str) -> dict[str, Any]:
    details = {"name": name, "kind": resource.plural}
    if resource.group:
        details["group"] = resource.group
    return details
