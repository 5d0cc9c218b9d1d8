"""Out: here, and after a sign-on at the provider too, where it has an address for that."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.views import LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard.http.sign_in import SIGN_ON
from scheduler.conf import conf


class SignOut(LogoutView):
    def post(self, request: HttpRequest, *arguments: Any, **keywords: Any) -> HttpResponse:
        sign_on = request.session.get(SIGN_ON)
        answer = super().post(request, *arguments, **keywords)
        if sign_on and conf().sign_on.is_on and settings.HAS_SIGN_ON_PACKAGES:
            return _out_at_provider(request, sign_on["id_token"])
        return answer


def _out_at_provider(request: HttpRequest, id_token: str) -> HttpResponse:
    from dashboard.sso.views import sign_out_address  # the extra is installed, as was asked before

    back = conf().notices.public_url or request.build_absolute_uri("/").rstrip("/")
    address = sign_out_address(request, id_token, back + reverse("login"))
    context = {"address": address, "provider": conf().sign_on.name}
    return render(request, "sso/signed_out.html", context)
