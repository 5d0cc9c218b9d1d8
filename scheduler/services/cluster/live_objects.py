"""Objects of a real cluster as its API server holds them at this moment.

They are read with the rights of the console, which are more than most readers have. So values of
environment variables, which are often secrets, are left out for whoever may only look.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduler.clusters.kubernetes.client import Timeouts
from scheduler.clusters.kubernetes.credentials import CredentialsError
from scheduler.clusters.kubernetes.discovery import served_version
from scheduler.clusters.kubernetes.errors import ApiError, Forbidden, NotFound
from scheduler.clusters.kubernetes.resources import NEWER_VERSIONS
from scheduler.services.cluster.api_server import api_server
from scheduler.services.cluster.kubectl_lines import place_of

HIDDEN: Final = "(hidden)"
_TIMEOUTS: Final = Timeouts(connect=3.0, read=5.0)  # somebody waits at a page
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class LiveObject:
    """`content` is None where it cannot be read; then `problem` says why, in a sentence."""

    content: Mapping[str, Any] | None = None
    problem: str = ""
    has_hidden_values: bool = False


def read_live_object(kind: str, name: str, namespace: str = "", *, with_values: bool) -> LiveObject:
    """Without `managedFields`. With `with_values` the values of environment variables too."""
    resource, name = place_of(kind, name)
    try:
        client = api_server(_TIMEOUTS)
        if resource in NEWER_VERSIONS:
            resource = served_version(client, resource)
        raw = client.get(resource, name, namespace)
    except NotFound:
        return LiveObject(problem=f"The cluster has no {kind} {name} any more.")
    except Forbidden as error:
        words = f"The account of this console may not read {resource.name}: {error.message}"
        return LiveObject(problem=words)
    except (ApiError, CredentialsError) as error:
        return LiveObject(problem=f"The API server cannot be asked: {error}")
    content = _without_managed_fields(raw)
    if with_values:
        return LiveObject(content)
    hidden = without_values(content)
    return LiveObject(hidden, has_hidden_values=hidden != content)


def _without_managed_fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(raw["metadata"])
    metadata.pop("managedFields", None)
    return {**raw, "metadata": metadata}


def without_values(content: Any) -> Any:
    """Values of `env` are replaced, and kubectl's copy of the whole object is left out."""
    if isinstance(content, list):
        return [without_values(item) for item in content]
    if not isinstance(content, Mapping):
        return content
    shown: dict[str, Any] = {}
    for key, value in content.items():
        if key == _LAST_APPLIED:
            shown[key] = HIDDEN
        elif key == "env" and isinstance(value, list):
            shown[key] = [_without_value(variable) for variable in value]
        else:
            shown[key] = without_values(value)
    return shown


def _without_value(variable: Any) -> Any:
    """One that names a secret or a config map says nothing of what is in it."""
    if isinstance(variable, Mapping) and variable.get("value"):
        return {**variable, "value": HIDDEN}
    return variable
