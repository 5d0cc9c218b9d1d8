"""The whole site on one screen."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from dashboard.api import docs, webhooks
from dashboard.http import health, metrics, sign_in, sign_out
from dashboard.views import (
    components,
    overview,
    queue,
    queue_commands,
    queue_compare,
    queue_deletion,
    queue_edit,
    queues,
)

handler400 = "dashboard.api.docs.bad_request"

urlpatterns = [
    # first: programs ask often, and each address is compared with those before it
    path("api/v1/", include("dashboard.api.urls")),
    path("", overview.overview, name="overview"),
    path("queues/", queues.queues, name="queues"),
    path("queues/-/new/", queue_edit.new, name="queue-new"),
    path("queues/-/names.json", queues.names, name="queue-names"),
    path("queues/-/rows.json", queues.live_rows, name="queue-rows"),
    path("queues/-/folded/", queues.folded, name="queue-folded"),
    path("queues/-/pinned/", queues.pinned, name="queue-pinned"),
    path("queues/-/compare/", queue_compare.compare, name="queue-compare"),
    path("queues/-/sample/", queues.sample, name="queue-sample"),
    path("queues/-/check/", queue_edit.check, name="queue-check"),
    path("queues/-/commands/", queue_commands.bulk, name="queue-commands"),
    path("queues/<str:name>/", queue.queue, name="queue"),
    path("queues/<str:name>/edit/", queue_edit.edit, name="queue-edit"),
    path("queues/<str:name>/delete/", queue_deletion.delete, name="queue-delete"),
    path("queues/<str:name>/farewell/", queue_deletion.close_first, name="queue-close-first"),
    path("queues/<str:name>/keep/", queue_deletion.keep, name="queue-keep"),
    path("queues/<str:name>/actions/", queue_commands.actions, name="queue-actions"),
    path("queues/<str:name>/history.json", queue.history_data, name="queue-history"),
    path("queues/<str:name>/history.csv", queue.history_csv, name="queue-history-csv"),
    re_path(
        r"^queues/(?P<name>[^/]+)/(?P<tab>jobs|children|history|activity|access|yaml)/$",
        queue.queue,
        name="queue-tab",
    ),
    re_path(
        r"^queues/(?P<name>[^/]+)/(?P<verb>open|close|suspend|resume)/$",
        queue_commands.command,
        name="queue-command",
    ),
    path("", include("dashboard.views.urls")),
    path("components/", components.components, name="components"),
    re_path(
        r"^admission/(?P<kind>queues|jobs|podgroups|pods)/validate/?$",
        webhooks.validate,
        name="admission-validate",
    ),
    re_path(
        r"^admission/(?P<kind>queues|jobs|podgroups)/mutate/?$",
        webhooks.mutate,
        name="admission-mutate",
    ),
    path("api/schema/", docs.Schema.as_view(), name="api-schema"),
    path("api/docs/", docs.Docs.as_view(), name="api-docs"),
    re_path(r"^api/(?P<rest>.*)$", docs.elsewhere, name="api-elsewhere"),
    path("metrics", metrics.metrics, name="metrics"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("accounts/login/", sign_in.SignIn.as_view(), name="login"),
    path("accounts/logout/", sign_out.SignOut.as_view(), name="logout"),
    # /account/ counts wrong passwords and writes the audit log
    path("admin/password_change/", RedirectView.as_view(pattern_name="account")),
    # one page takes passwords, and asks for the code of those who need one
    path("admin/login/", sign_in.admin_sign_in),
    path("admin/", admin.site.urls),
]

if settings.HAS_SIGN_ON_PACKAGES:
    urlpatterns += [path("", include("dashboard.sso.urls"))]
