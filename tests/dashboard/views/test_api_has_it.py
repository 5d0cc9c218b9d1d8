"""Whatever a page of the console can write, the API can: every writing route is mapped to the
operation that does the same.
"""

from __future__ import annotations

import inspect
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from tests.dashboard.api.framework.test_permissions import ALL

# The name of a page's route -> (collection, action) of each deed that its forms do.
COUNTERPARTS: dict[str, list[tuple[str, str]]] = {
    "statement-send": [("usage/statement", "post")],
    "prices-set": [("prices", "put")],
    "prices-delete": [("prices", "delete")],
    "queue-new": [("queues", "create"), ("validate", "post")],
    "change-set-new": [("changes", "create")],
    "calendar": [("plans", "create")],
    "occurrence-command": [("occurrences", "apply"), ("occurrences", "skip")],
    "change-set-command": [
        *(("changes", verb) for verb in ("apply", "revert", "refresh", "add", "remove")),
        ("changes", "destroy"),
        ("changes", "partial_update"),
        ("plans", "create"),
        ("plans", "destroy"),
        ("previews", "create"),
        ("previews", "destroy"),
    ],
    "previews": [("previews", "create")],
    "preview-cancel": [("previews", "destroy")],
    "audit-revert": [("audit", "revert")],
    "window-new": [("windows", "create")],
    "window-abandon": [("windows", "abandon")],
    "window-command": [
        ("windows", verb) for verb in ("apply", "revert", "resume", "suspend", "collect")
    ],
    "queue-check": [("validate", "post")],
    "queue-edit": [("queues", "update"), ("queues", "partial_update")],
    "queue-folded": [("users", "change_preferences")],
    "queue-pinned": [("users", "change_preferences")],
    "queue-sample": [("sample", "post")],
    "queue-commands": [("commands", "create")],
    "queue-command": [("queues", verb) for verb in ("open", "close", "suspend", "resume")],
    "queue-delete": [("queues", "destroy")],
    "queue-close-first": [("queues", "destroy"), ("queues", "deletion")],
    "queue-keep": [("queues", "keep")],
    "job-new": [("jobs", "create"), ("forecast", "post"), ("previews", "create")],
    "job-views": [("views", "create"), ("views", "partial_update")],
    "job-view-forget": [("views", "destroy")],
    "job-view-pin": [("users", "change_preferences"), ("views", "count")],
    "job-bulk": [("bulkruns", "create")],
    "bulk-run": [("bulkruns", "retrieve"), ("bulkruns", "items"), ("bulkruns", "retry")],
    "job-command": [("jobs", verb) for verb in ("suspend", "resume", "restart", "cancel")],
    "node-command": [
        ("nodes", verb) for verb in ("cordon", "uncordon", "drain", "lose", "bring_back")
    ],
    "session-settings": [("cluster", "patch")],
    "scheduling-command": [("cluster/pause", "post"), ("cluster/resume", "post")],
    "policy": [("policy", "put"), ("policy/validate", "post")],
    "policy-back": [("policy", "put")],
    "password": [("users", "password")],
    "display": [("users", "change_preferences")],
    "token-new": [("tokens", "create")],
    "notices-read": [("notices", "partial_update"), ("inbox", "patch")],
    "notice-calendar": [("users", "change_preferences")],
    "notice-rule": [("noticerules", "create")],
    "notice-rule-forget": [("noticerules", "destroy")],
    "notice-channel": [("noticechannels", "create")],
    "notice-channel-command": [("noticechannels", verb) for verb in ("test", "rotate", "destroy")],
    "token-forget": [("tokens", "destroy")],
    "user-new": [("users", "create")],
    "user": [("users", "partial_update"), ("users", "destroy")],
    "group": [("groups", "create"), ("groups", "partial_update"), ("groups", "destroy")],
    "grant": [("grants", "create")],
    "revoke": [("grants", "destroy")],
    "mapping": [("groupmappings", "create")],
    "mapping-forget": [("groupmappings", "destroy")],
    "second-factor-reset": [("users", "reset_second_factor")],
}
# Programs come with a token, not with the session of a browser, so they need no sign-on and no
# second factor. The admission webhooks are an API themselves.
_NOT_THE_CONSOLE = (
    "login",
    "logout",
    "second-step",
    "second-factor",
    "openid_connect_login",
    "openid_connect_callback",
    "sign-on-link",
    "sign-on-unlink",
    "admission-validate",
    "admission-mutate",
)
_OTHER_SITES = ("admin/", "api/", "^api/")


def _routes(patterns: Any, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pattern in patterns:
        where = prefix + str(pattern.pattern)
        if where.startswith(_OTHER_SITES):
            continue
        if isinstance(pattern, URLResolver):
            found |= _routes(pattern.url_patterns, where)
        elif isinstance(pattern, URLPattern) and pattern.name:
            found[pattern.name] = pattern.callback
    return found


def _writes(view: Any) -> bool:
    """Nothing says that the view is for reading only: the decorators of the methods keep their list
    in a closure.
    """
    while view is not None:
        listed = (
            inspect.getclosurevars(view).nonlocals.get("request_method_list")
            if inspect.isfunction(view)
            else None
        )
        if listed is not None:
            return "POST" in listed
        view = getattr(view, "__wrapped__", None)
    return True


def writing_routes() -> set[str]:
    return {
        name for name, view in _routes(get_resolver().url_patterns).items() if _writes(view)
    } - {*_NOT_THE_CONSOLE}


def test_every_writing_page_has_its_operations_in_the_api():
    offered = {(name, action) for name, action, _, _ in ALL}

    assert writing_routes() == set(COUNTERPARTS)
    assert [deed for deeds in COUNTERPARTS.values() for deed in deeds if deed not in offered] == []


def test_writing_routes_are_told_from_reading_ones():
    """So that the test before can fail."""
    found = writing_routes()

    assert {"queue-new", "policy", "job-bulk", "display"} <= found
    assert not {"queues", "jobs", "overview", "session"} & found
