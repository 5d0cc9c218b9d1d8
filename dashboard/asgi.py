"""HTTP and websocket entry point."""

from __future__ import annotations

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import OriginValidator
from channels.sessions import CookieMiddleware
from django.conf import settings

from dashboard.http.handler import http_application
from scheduler.garbage import set_aside

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
os.environ["DATABASE_POOLED"] = "1"  # read by the settings, so it comes before them

pages_and_api = http_application()  # loads the apps, so it comes before anything that knows models

import dashboard.urls  # noqa: E402, F401  every page and its view now, not with the first request
from dashboard.live.routing import websocket_urlpatterns  # noqa: E402
from dashboard.live.tokens import tokens_or  # noqa: E402

# The same hosts that may ask for pages, and the same foreign origins that may post to them.
allowed_origins = [*settings.ALLOWED_HOSTS, *settings.CSRF_TRUSTED_ORIGINS]

application = ProtocolTypeRouter(
    {
        "http": pages_and_api,
        "websocket": tokens_or(
            OriginValidator(CookieMiddleware(URLRouter(websocket_urlpatterns)), allowed_origins),
            URLRouter(websocket_urlpatterns),
        ),
    }
)

set_aside()
