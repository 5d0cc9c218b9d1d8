"""Where the API shows what a page shows: every page links there ("View as JSON").

A test fails if a page is not in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from django.http import HttpRequest

START: Final = "/api/v1/"
_QUEUE = "queues/{name}/"
_JOB = "jobs/{namespace}/{name}/"
_NODE = "nodes/{name}/"

# The name of a page's route -> the address below /api/v1/, with the names in the page's address.
_ADDRESSES: Final[Mapping[str, str]] = {
    "overview": "cluster/",
    "queues": "queues/",
    "queue-new": "queues/",
    "queue-commands": "commands/",
    "queue-compare": "queuefigures/",
    "queue": _QUEUE,
    "queue-edit": _QUEUE,
    "queue-delete": _QUEUE,
    "queue-actions": _QUEUE,
    "queue-close-first": _QUEUE,
    "queue-command": "commands/?queue={name}",
    "jobs": "jobs/",
    "job-new": "jobs/",
    "job-bulk": "jobs/",
    "bulk-run": "bulkruns/{uid}/",
    "job": _JOB,
    "job-command": _JOB,
    "nodes": "nodes/",
    "node": _NODE,
    "node-command": _NODE,
    "node-yaml": _NODE,
    "node-waiting": "nodes/{name}/waiting/",
    "room": "cluster/largest-gangs/",
    "pod": "pods/{namespace}/{pod_name}/",
    "sessions": "sessions/",
    "session-settings": "cluster/",
    "scheduling-command": "cluster/",
    "session": "sessions/{number}/",
    "comparison": "comparisons/",
    "insights": "cluster/",
    "forecasts": "forecasts/",
    "loans": "loans/",
    "usage": "usage/",
    "cluster-timeline": "timeline/",
    "statement": "usage/statement/",
    "statement-send": "usage/statement/",
    "prices": "prices/",
    "prices-set": "prices/",
    "prices-delete": "prices/",
    "fairness": "fairness/",
    "change-sets": "changes/",
    "change-set-new": "changes/",
    "change-set": "changes/{number}/",
    "change-set-command": "changes/{number}/",
    "previews": "previews/",
    "preview": "previews/{number}/",
    "preview-cancel": "previews/{number}/",
    "window-new": "windows/",
    "window": "windows/{number}/",
    "window-abandon": "windows/{number}/",
    "window-command": "windows/{number}/",
    "calendar": "plans/",
    "occurrence-command": "occurrences/{number}/",
    "activity": "events/",
    "audit": "audit/",
    "audit-entry": "audit/{number}/",
    "audit-revert": "audit/{number}/",
    "policy": "policy/",
    "policy-version": "policyversions/{number}/",
    "account": "users/~/",
    "password": "users/~/",
    "display": "users/~/preferences/",
    "token-new": "tokens/",
    "notices": "notices/",
    "notice-settings": "noticerules/",
    "notice-rule": "noticerules/",
    "notice-channel": "noticechannels/",
    "notice-channel-command": "noticechannels/",
    "users": "users/",
    "user-new": "users/",
    "group": "groups/",
    "grants": "grants/",
    "sign-on": "groupmappings/",
    "mapping": "groupmappings/",
    "second-factor": "users/~/",
    "grant": "grants/",
    "user": "users/{name}/",
    "components": "",
    "login": "",
}
_TABS: Final[Mapping[tuple[str, str], str]] = {
    ("queue-tab", "jobs"): "jobs/?queue={name}",
    ("queue-tab", "children"): "queues/{name}/children/",
    ("queue-tab", "history"): "queues/{name}/history/",
    ("queue-tab", "activity"): "events/?queue={name}",
    ("queue-tab", "access"): "grants/?queue={name}",
    ("queue-tab", "yaml"): "queues/{name}/export/",
    ("job-tab", "members"): "pods/?namespace={namespace}&podgroup={name}",
    ("job-tab", "timeline"): "podgroups/{namespace}/{name}/timeline/",
    ("job-tab", "events"): "events/?namespace={namespace}&name={name}",
    ("job-tab", "evictions"): "evictions/?search={name}",
    ("job-tab", "yaml"): _JOB,
}


def json_address(request: HttpRequest) -> str:
    """The API's address for this page, or the API's first page."""
    match = getattr(request, "resolver_match", None)
    if match is None:
        return START
    if match.namespace == "api":
        return request.path
    route = match.url_name or ""
    words = {}
    for name, value in match.kwargs.items():
        words[name] = quote(str(value), safe="")
    address = _TABS.get((route, words.get("tab", ""))) or _ADDRESSES.get(route, "")
    return START + address.format(**words)
