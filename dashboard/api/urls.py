"""The whole API on one screen: /api/v1/… . A trailing slash is canonical, and may be left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.urls import URLPattern, re_path

from dashboard.api import apply, bulk, cluster, history, jobs, me, queues, users
from dashboard.api.base import Endpoint, EndpointSet, NothingHere

app_name = "api"

COLLECTIONS: Final[Mapping[str, type[EndpointSet]]] = {
    "queues": queues.Queues,
    "jobs": jobs.Jobs,
    "podgroups": jobs.PodGroups,
    "pods": jobs.Pods,
    "nodes": cluster.Nodes,
    "namespaces": cluster.Namespaces,
    "priorityclasses": cluster.PriorityClasses,
    "commands": history.Commands,
    "sessions": history.Sessions,
    "decisions": history.Decisions,
    "evictions": history.Evictions,
    "events": history.Events,
    "audit": history.Audit,
    "users": me.Accounts,
    "groups": users.Groups,
    "grants": users.Grants,
    "tokens": users.Tokens,
    "views": me.Views,
    "bulkruns": bulk.BulkRuns,
    "policyversions": cluster.PolicyVersions,
}
SINGLETONS: Final[Mapping[str, type[Endpoint]]] = {
    "policy": cluster.Policy,
    "policy/validate": cluster.PolicyValidate,
    "cluster": cluster.Cluster,
    "cluster/pause": cluster.ClusterPause,
    "cluster/resume": cluster.ClusterResume,
}
SETS: Final[Mapping[str, type[Endpoint]]] = {
    "validate": apply.Validate,
    "apply": apply.Apply,
    "forecast": apply.Forecast,
    "sample": apply.Sample,
}

_OF_COLLECTION = {"get": "list", "post": "create"}
_OF_OBJECT = {"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"}


def _present(view: type[EndpointSet], methods: Mapping[str, str]) -> dict[str, Any]:
    return {method: action for method, action in methods.items() if action in view.rules}


def _collection(name: str, view: type[EndpointSet]) -> list[URLPattern]:
    place = "/".join(f"(?P<{lookup}>[^/]+)" for lookup in view.lookups)
    patterns = [
        re_path(
            rf"^{name}/?$",
            view.as_view(_present(view, _OF_COLLECTION), detail=False, basename=name),
            name=f"{name}-list",
        ),
        re_path(
            rf"^{name}/{place}/?$",
            view.as_view(_present(view, _OF_OBJECT), detail=True, basename=name),
            name=f"{name}-detail",
        ),
    ]
    for verb, methods in view.verbs.items():
        pattern = rf"^{name}/{place}/{verb}/?$"
        patterns.append(
            re_path(
                pattern,
                view.as_view(dict(methods), detail=True, basename=name),
                name=f"{name}-{verb}",
            )
        )
    return patterns


urlpatterns = [
    re_path(r"^$", apply.Start.as_view(), name="start"),
    *(pattern for name, view in COLLECTIONS.items() for pattern in _collection(name, view)),
    *(
        re_path(rf"^{name}/?$", view.as_view(), name=name.replace("/", "-"))
        for name, view in {**SINGLETONS, **SETS}.items()
    ),
    re_path(r"^.*$", NothingHere.as_view(), name="nothing"),
]
