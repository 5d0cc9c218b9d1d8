"""Addresses of single sign-on and second factors, where the extra is installed.

Those of the provider have the names that allauth looks for. None of allauth's own pages is here.
"""

from __future__ import annotations

from django.urls import path

from dashboard.sso import code_views, views
from dashboard.sso.provider import PROVIDER_ID

_PROVIDER = {"provider_id": PROVIDER_ID}

urlpatterns = [
    path("accounts/sign-on/", views.begin, _PROVIDER, name="openid_connect_login"),
    path("accounts/sign-on/back/", views.callback, _PROVIDER, name="openid_connect_callback"),
    path("accounts/code/", code_views.second_step, name="second-step"),
    path("account/second-factor/", code_views.second_factor, name="second-factor"),
    path("account/sign-on/link/", views.connect, name="sign-on-link"),
    path("account/sign-on/unlink/", views.disconnect, name="sign-on-unlink"),
]
