"""The pages of jobs, nodes, sessions, policy, records and accounts."""

from __future__ import annotations

from django.urls import path, re_path

from dashboard.views import (
    account,
    activity,
    bulk_jobs,
    changes,
    comparison,
    job,
    jobs,
    nodes,
    policy,
    saved_views,
    sessions,
    submit,
    users,
)

urlpatterns = [
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/-/new/", submit.new, name="job-new"),
    path("jobs/-/views/", saved_views.keep_view, name="job-views"),
    path("jobs/-/views/<int:view>/forget/", saved_views.forget_view, name="job-view-forget"),
    path("jobs/-/bulk/", bulk_jobs.bulk, name="job-bulk"),
    path("jobs/-/bulk/<uuid:uid>/", bulk_jobs.progress, name="bulk-run"),
    path("jobs/<str:namespace>/<str:name>/", job.job, name="job"),
    re_path(
        r"^jobs/(?P<namespace>[^/]+)/(?P<name>[^/]+)/(?P<verb>suspend|resume|restart|cancel)/$",
        job.command,
        name="job-command",
    ),
    re_path(
        r"^jobs/(?P<namespace>[^/]+)/(?P<name>[^/]+)/(?P<tab>members|timeline|events|evictions|yaml)/$",
        job.job,
        name="job-tab",
    ),
    path("jobs/<str:namespace>/<str:name>/pods/<str:pod_name>/", job.pod, name="pod"),
    path("nodes/", nodes.nodes, name="nodes"),
    path("nodes/<str:name>/", nodes.node, name="node"),
    path("nodes/<str:name>/yaml/", nodes.node_yaml, name="node-yaml"),
    re_path(
        r"^nodes/(?P<name>[^/]+)/(?P<verb>cordon|uncordon|drain|lose|return)/$",
        nodes.command,
        name="node-command",
    ),
    path("sessions/", sessions.sessions, name="sessions"),
    path("sessions/-/durations.json", sessions.duration_data, name="session-durations"),
    path("sessions/-/settings/", sessions.settings, name="session-settings"),
    re_path(r"^sessions/-/(?P<verb>pause|resume)/$", sessions.command, name="scheduling-command"),
    path("sessions/<int:number>/", sessions.session, name="session"),
    path("sessions/<int:number>/scenario.json", sessions.scenario, name="session-scenario"),
    path("comparison/", comparison.comparison, name="comparison"),
    path("changes/", changes.change_sets, name="change-sets"),
    path("changes/-/new/", changes.new, name="change-set-new"),
    path("changes/<int:number>/", changes.change_set, name="change-set"),
    re_path(
        r"^changes/(?P<number>[0-9]+)/"
        r"(?P<verb>apply|discard|revert|refresh|rename|add|remove|preview|cancel)/$",
        changes.command,
        name="change-set-command",
    ),
    path("activity/", activity.activity, name="activity"),
    path("audit/", activity.audit, name="audit"),
    path("audit/<int:number>/", activity.audit_entry, name="audit-entry"),
    path("policy/", policy.policy, name="policy"),
    path("policy/-/back/", policy.back, name="policy-back"),
    path("policy/<int:number>/", policy.version, name="policy-version"),
    path("account/", account.account, name="account"),
    path("account/password/", account.password, name="password"),
    path("account/display/", account.display, name="display"),
    path("account/tokens/", account.new_token, name="token-new"),
    path("account/tokens/<int:number>/revoke/", account.forget_token, name="token-forget"),
    path("users/", users.users, name="users"),
    path("users/-/new/", users.new_user, name="user-new"),
    path("users/-/group/", users.group, name="group"),
    path("users/-/grants/", users.grants, name="grants"),
    path("users/-/grant/", users.grant, name="grant"),
    path("users/-/grants/<int:number>/revoke/", users.revoke, name="revoke"),
    path("users/<str:name>/", users.user, name="user"),
]
