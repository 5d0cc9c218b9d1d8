"""What allauth asks us: which provider there is, who may come in, how secrets are kept."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.http import HttpRequest
from django.utils.encoding import force_bytes

from dashboard.sso import problems
from scheduler.conf import conf


class SignOnAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Accounts are found and made by our own services, so allauth signs nobody in by itself."""

    def list_apps(self, _request: HttpRequest, **_filter: Any) -> list[Any]:
        from allauth.socialaccount.models import SocialApp

        from dashboard.sso.provider import PROVIDER_ID

        wanted = conf().sign_on
        app = SocialApp(
            provider="openid_connect",
            provider_id=PROVIDER_ID,
            name=wanted.name,
            client_id=wanted.client_id,
            secret=wanted.client_secret,
            settings={"server_url": wanted.issuer.rstrip("/"), "scope": list(wanted.scopes)},
        )
        return [app]

    def get_provider(self, request: HttpRequest, *_which: Any, **_filter: Any) -> Any:
        from dashboard.sso.provider import SignOnProvider

        return SignOnProvider(request, app=self.list_apps(request)[0])

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        from dashboard.sso.views import let_in

        raise ImmediateHttpResponse(
            let_in(request, sociallogin.account.extra_data["userinfo"], sociallogin.state)
        )

    def on_authentication_error(
        self,
        request: HttpRequest,
        *_provider: Any,
        exception: Exception | None = None,
        extra_context: dict[str, Any] | None = None,
        **_more: Any,
    ) -> None:
        if exception is None:
            problem = problems.of_request(request, extra_context or {})
        else:
            problem = problems.of_exception(exception)
        raise ImmediateHttpResponse(problems.problem_page(request, problem))


class CodesAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    """Secrets of second factors are kept encrypted: a copy of the database does not give codes."""

    def get_totp_label(self, user: Any) -> str:
        return str(user.get_username())

    def encrypt(self, text: str) -> str:
        return _keys().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _keys().decrypt(encrypted_text.encode()).decode()


def _keys() -> MultiFernet:
    """From the site's key, and its older ones."""
    keys = []
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        digest = hashlib.sha256(b"fumarole second factors " + force_bytes(secret)).digest()
        keys.append(Fernet(base64.urlsafe_b64encode(digest)))
    return MultiFernet(keys)
