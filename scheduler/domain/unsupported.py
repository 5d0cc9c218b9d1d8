"""What a pod may ask for and no session can honour, by name. Such a pod is not placed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from scheduler.domain.pod_rules import unsupported_rules

_Spec = Mapping[str, Any]


def unsupported_parts(spec: _Spec) -> tuple[str, ...]:
    """Of the spec of a pod. What has not the shape that it should have asks for nothing."""
    found = [name for name, asks in _UNSUPPORTED.items() if asks(spec)]
    affinity = spec.get("affinity")
    if isinstance(affinity, Mapping):
        found += unsupported_rules(affinity)
    return tuple(found)


def _entries(given: _Spec, key: str) -> Iterator[_Spec]:
    entries = given.get(key)
    if not isinstance(entries, list):
        return
    for entry in entries:
        if isinstance(entry, Mapping):
            yield entry


def _asks_for_host_ports(spec: _Spec) -> bool:
    for key in ("containers", "initContainers"):
        for container in _entries(spec, key):
            if any(port.get("hostPort") for port in _entries(container, "ports")):
                return True
    return False


def _asks_for_resource_claims(spec: _Spec) -> bool:
    return bool(spec.get("resourceClaims"))


def _asks_for_ephemeral_volumes(spec: _Spec) -> bool:
    return any(volume.get("ephemeral") for volume in _entries(spec, "volumes"))


_UNSUPPORTED: Final[Mapping[str, Callable[[_Spec], bool]]] = {
    "host ports (hostPort)": _asks_for_host_ports,
    "resource claims (resourceClaims)": _asks_for_resource_claims,
    "ephemeral volumes (volumes.ephemeral)": _asks_for_ephemeral_volumes,
}
