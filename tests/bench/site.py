"""The real site for benchmarks, with one view more.

The smallest that asks the database something.
"""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from dashboard.http.handler import http_application
from scheduler.garbage import set_aside


def empty(_request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return HttpResponse(b"{}", content_type="application/json")


settings.ROOT_URLCONF = __name__
settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
settings.API_RATE_PER_MINUTE = 0
settings.CELERY_BROKER_URL = "memory://"
application = http_application()
urlpatterns = [
    path("bench/empty/", empty),
    path("", include("dashboard.urls")),
]  # after the apps are loaded
set_aside()  # as the real one does
