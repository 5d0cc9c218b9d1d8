"""The whole API on one screen: /api/v1/… . A trailing slash is canonical, and may be left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.urls import URLPattern, re_path

from dashboard.api import (
    apply,
    bulk,
    changes,
    cluster,
    comparison,
    fairness,
    forecast,
    forecasts,
    grants,
    group_mappings,
    history,
    job_groups,
    jobs,
    loans,
    me,
    namespaces,
    nodes,
    notices,
    plans,
    podgroups,
    pods,
    policy,
    previews,
    prices,
    priority_classes,
    queue_figures,
    room,
    sample,
    sessions,
    start,
    timeline,
    tokens,
    usage,
    users,
    windows,
)
from dashboard.api.framework.collection import EndpointSet
from dashboard.api.framework.endpoint import Endpoint, NothingHere
from dashboard.api.queues import endpoints as queues

app_name = "api"

COLLECTIONS: Final[Mapping[str, type[EndpointSet]]] = {
    "queues": queues.Queues,
    "jobs": jobs.Jobs,
    "podgroups": podgroups.PodGroups,
    "pods": pods.Pods,
    "nodes": nodes.Nodes,
    "namespaces": namespaces.Namespaces,
    "priorityclasses": priority_classes.PriorityClasses,
    "commands": history.Commands,
    "sessions": sessions.Sessions,
    "decisions": sessions.Decisions,
    "evictions": sessions.Evictions,
    "comparisons": comparison.Comparisons,
    "events": history.Events,
    "audit": history.Audit,
    "users": me.Accounts,
    "groups": users.Groups,
    "grants": grants.Grants,
    "groupmappings": group_mappings.GroupMappings,
    "tokens": tokens.Tokens,
    "views": me.Views,
    "bulkruns": bulk.BulkRuns,
    "policyversions": policy.PolicyVersions,
    "changes": changes.Changes,
    "previews": previews.Previews,
    "notices": notices.Notices,
    "noticerules": notices.NoticeRules,
    "noticechannels": notices.NoticeChannels,
    "noticedeliveries": notices.NoticeDeliveries,
    "windows": windows.Windows,
    "plans": plans.Plans,
    "occurrences": plans.Occurrences,
}
SINGLETONS: Final[Mapping[str, type[Endpoint]]] = {
    "policy": policy.Policy,
    "policy/validate": policy.PolicyValidate,
    "policy/presets": policy.PolicyPresets,
    "cluster": cluster.Cluster,
    "comparison": comparison.ComparisonTotals,
    "forecasts": forecasts.Forecasts,
    "jobs/facets": job_groups.JobFacets,
    "jobs/groups": job_groups.JobGroups,
    "loans": loans.Loans,
    "usage": usage.Usage,
    "timeline": timeline.Timeline,
    "usage/statement": prices.Statements,
    "prices": prices.PriceLists,
    "fairness": fairness.FairnessOverTime,
    "queuefigures": queue_figures.QueueFigures,
    "inbox": notices.Inbox,
    "loans/history": loans.LoanHistories,
    "cluster/fragmentation": room.ClusterFragmentation,
    "cluster/largest-gangs": room.ClusterLargestGangs,
    "cluster/pause": cluster.ClusterPause,
    "cluster/resume": cluster.ClusterResume,
    "configuration": apply.Configuration,
}
SETS: Final[Mapping[str, type[Endpoint]]] = {
    "validate": apply.Validate,
    "apply": apply.Apply,
    "forecast": forecast.Forecast,
    "sample": sample.Sample,
}

_OF_COLLECTION = {"get": "list", "post": "create"}
_OF_OBJECT = {"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"}


def _collection_patterns(name: str, view: type[EndpointSet]) -> list[URLPattern]:
    """The collection, one object of it, and what follows an object's address."""
    place = "/".join(f"(?P<{lookup}>[^/]+)" for lookup in view.lookups)
    collection = view.as_view(_offered(view, _OF_COLLECTION), detail=False, basename=name)
    single = view.as_view(_offered(view, _OF_OBJECT), detail=True, basename=name)
    patterns = [
        re_path(rf"^{name}/?$", collection, name=f"{name}-list"),
        re_path(rf"^{name}/{place}/?$", single, name=f"{name}-detail"),
    ]
    for verb, methods in view.verbs.items():
        verb_view = view.as_view(dict(methods), detail=True, basename=name)
        patterns.append(re_path(rf"^{name}/{place}/{verb}/?$", verb_view, name=f"{name}-{verb}"))
    return patterns


def _offered(view: type[EndpointSet], methods: Mapping[str, str]) -> dict[str, Any]:
    """The methods whose actions the collection has a rule for."""
    offered: dict[str, Any] = {}
    for method, action in methods.items():
        if action in view.rules:
            offered[method] = action
    return offered


urlpatterns = [re_path(r"^$", start.Start.as_view(), name="start")]
for _name, _view in COLLECTIONS.items():
    urlpatterns += _collection_patterns(_name, _view)
for _name, _single in {**SINGLETONS, **SETS}.items():
    urlpatterns.append(re_path(rf"^{_name}/?$", _single.as_view(), name=_name.replace("/", "-")))
urlpatterns.append(re_path(r"^.*$", NothingHere.as_view(), name="nothing"))
