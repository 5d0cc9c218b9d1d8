"""Websocket URLs."""

from __future__ import annotations

from django.urls import path

from dashboard.live.socket import live_socket

# An ASGI application: URLRouter takes those.
websocket_urlpatterns = [path("ws/v1/", live_socket)]  # type: ignore[arg-type]
