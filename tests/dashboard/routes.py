"""Every page of the console, by the name of its route, over the small cluster of `work.py`; what
answers with no page is named apart.

A route that is missing here fails `test_every_route_is_walked`, so that walks over all pages stay
walks over all pages.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver

# Those after "?" are the page in another state.
PAGES: dict[str, tuple[str, ...]] = {
    "overview": ("/",),
    "queues": (
        "/queues/",
        "/queues/?view=table",
        "/queues/?view=map",
        "/queues/?resource=cpu",
        "/queues/?scale=absolute",
        "/queues/?q=no-such-queue",
        "/queues/?q=is:wating",
    ),
    "queue-new": ("/queues/-/new/", "/queues/-/new/?as=yaml", "/queues/-/new/?parent=research"),
    "queue-commands": ("/queues/-/commands/?command=close&queue=vision&queue=batch",),
    "queue": ("/queues/vision/", "/queues/research/", "/queues/default/", "/queues/nothing/"),
    "queue-edit": ("/queues/vision/edit/", "/queues/vision/edit/?as=yaml"),
    "queue-delete": ("/queues/vision/delete/", "/queues/research/delete/?cascade=on"),
    "queue-close-first": ("/queues/vision/farewell/",),
    "queue-actions": ("/queues/vision/actions/",),
    "queue-tab": tuple(
        f"/queues/vision/{tab}/"
        for tab in ("jobs", "children", "history", "activity", "access", "yaml")
    ),
    "queue-command": tuple(
        f"/queues/vision/{verb}/" for verb in ("open", "close", "suspend", "resume")
    ),
    "components": ("/components/",),
    "login": ("/accounts/login/",),
    "queue-compare": (
        "/queues/-/compare/",
        "/queues/-/compare/?q=vision&q=research",
        "/queues/-/compare/?q=nothing",
    ),
    "jobs": (
        "/jobs/",
        "/jobs/?q=state:waiting+colour:red",
        "/jobs/?q=name:nothing",
        *(f"/jobs/?group={by}" for by in ("user", "queue", "reason", "shape", "state")),
    ),
    "job-new": ("/jobs/-/new/", "/jobs/-/new/?as=yaml", "/jobs/-/new/?queue=vision"),
    "job-bulk": (
        "/jobs/-/bulk/?action=cancel&all=1",
        "/jobs/-/bulk/?action=suspend&job=default/train-1",
    ),
    "job": ("/jobs/default/train-1/", "/jobs/default/train-2/"),
    "job-command": tuple(
        f"/jobs/default/train-1/{verb}/" for verb in ("suspend", "resume", "restart", "cancel")
    ),
    "job-tab": tuple(
        f"/jobs/default/train-1/{tab}/"
        for tab in ("members", "timeline", "events", "evictions", "yaml")
    ),
    "pod": (
        "/jobs/default/train-1/pods/train-1-worker-0/",
        "/jobs/default/train-1/pods/train-1-worker-0/?times=true&lines=50",
    ),
    "nodes": ("/nodes/", "/nodes/?view=map"),
    "node": ("/nodes/n1/",),
    "node-yaml": ("/nodes/n1/yaml/",),
    "node-waiting": ("/nodes/n1/waiting/", "/nodes/n1/waiting/?fit=full"),
    "room": ("/nodes/-/room/", "/nodes/-/room/?queue=vision&shape=cpu=2"),
    "node-command": tuple(
        f"/nodes/n1/{verb}/" for verb in ("cordon", "uncordon", "drain", "lose", "return")
    ),
    "sessions": ("/sessions/",),
    "session": ("/sessions/1/",),
    "scheduling-command": ("/sessions/-/pause/", "/sessions/-/resume/"),
    "comparison": ("/comparison/", "/comparison/?kind=all"),
    "insights": ("/insights/",),
    "forecasts": ("/insights/forecasts/", "/insights/forecasts/?window=24h"),
    "cluster-timeline": (
        "/insights/timeline/",
        "/insights/timeline/?span=1y&queue=vision&lane=evictions,nodes",
        "/insights/timeline/?at=2026-01-31T12:00:00Z",
    ),
    "loans": (
        "/insights/loans/",
        "/insights/loans/?resource=cpu&window=24h",
        "/insights/loans/?queue=vision",
    ),
    "usage": (
        "/insights/usage/",
        "/insights/usage/?by=user&window=24h&resource=cpu",
        "/insights/usage/?by=job&from=2026-10-01&to=2026-10-31&step=week",
    ),
    "statement": (
        "/insights/usage/statement/",
        "/insights/usage/statement/?queue=vision&month=2026-10",
    ),
    "prices": ("/insights/usage/prices/",),
    "fairness": ("/insights/fairness/", "/insights/fairness/?window=24h&resource=cpu"),
    "change-sets": ("/changes/", "/changes/?state=draft", "/changes/?state=red"),
    "change-set-new": ("/changes/-/new/",),
    "previews": ("/previews/", "/previews/?lose=n1"),
    "window-new": (
        "/changes/windows/-/new/?queue=research",
        "/changes/windows/-/new/?queue=root",
        "/changes/windows/-/new/?queue=nothing",
    ),
    "calendar": ("/changes/calendar/", "/changes/calendar/?month=2026-11"),
    "activity": ("/activity/",),
    "audit": ("/audit/",),
    "policy": ("/policy/",),
    "account": ("/account/",),
    "second-factor": ("/account/second-factor/",),
    "notices": ("/account/notices/", "/account/notices/?show=unread"),
    "notice-settings": ("/account/notices/settings/",),
    "users": ("/users/",),
    "user-new": ("/users/-/new/",),
    "grants": ("/users/-/grants/", "/users/-/grants/?queue=vision"),
    "sign-on": ("/users/-/sign-on/",),
    "user": ("/users/sam/",),
    "api-docs": ("/api/docs/",),
}
NO_PAGES = {
    # only take what a form sends
    "queue-folded",
    "queue-pinned",
    "queue-sample",
    "queue-check",
    "queue-keep",
    "job-views",
    "job-view-forget",
    "job-view-pin",
    "session-settings",
    "password",
    "display",
    "policy-back",
    "change-set-command",
    "preview-cancel",
    "window-command",
    "statement-send",
    "prices-set",
    "prices-delete",
    "audit-revert",
    "occurrence-command",
    "token-new",
    "notices-read",
    "notice-calendar",
    "notice-rule",
    "notice-rule-forget",
    "notice-channel",
    "notice-channel-command",
    "token-forget",
    "group",
    "grant",
    "revoke",
    "mapping",
    "mapping-forget",
    "second-factor-reset",
    "sign-on-link",
    "sign-on-unlink",
    "logout",
    # steps of a sign-in
    "openid_connect_login",
    "openid_connect_callback",
    "second-step",
    # data
    "pod-log",
    "queue-names",
    "queue-rows",
    "queue-history",
    "queue-history-csv",
    "loan-history",
    "loan-history-csv",
    "session-durations",
    "session-scenario",
    "admission-validate",
    "admission-mutate",
    "api-schema",
    "metrics",
    "healthz",
    "readyz",
    # answer "there is no such thing"
    "api-elsewhere",
    # need something that the small cluster has not: walked by tests of their own
    "bulk-run",
    "audit-entry",
    "policy-version",
    "change-set",
    "preview",
    "window",
    "window-abandon",
}


def paths() -> list[str]:
    return [path for given in PAGES.values() for path in given]


def route_names() -> set[str]:
    """All names of routes but those of the API and of Django's own admin site."""
    return set(_names(get_resolver().url_patterns))


def _names(patterns: list[URLPattern | URLResolver]) -> Iterator[str]:
    for pattern in patterns:
        if str(pattern.pattern).startswith(("api/v1/", "admin/")):
            continue
        if isinstance(pattern, URLPattern):
            yield str(pattern.name)
        else:
            yield from _names(pattern.url_patterns)
