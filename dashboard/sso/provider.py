"""The provider of the settings. Verified are signature, issuer, audience, times and nonce."""

from __future__ import annotations

import secrets
import time
from typing import Any, Final

import jwt
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.http import HttpRequest
from django.urls import reverse

from dashboard.sso.problems import SignOnProblem
from scheduler.conf import conf
from scheduler.services.accounts.sign_on import LONGEST_GROUP, MOST_GROUPS, Visitor

PROVIDER_ID: Final = "sso"
LEEWAY_SECONDS: Final = 60
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "ES256", "ES384", "EdDSA")
"""Signed with a public key. Never one of those for which our secret would be the key."""


ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")


def callback_url(request: HttpRequest) -> str:
    """What has to be registered at the provider."""
    path = reverse("openid_connect_callback", kwargs={"provider_id": PROVIDER_ID})
    public_url = conf().notices.public_url
    if public_url:
        return public_url + path
    return request.build_absolute_uri(path)


class VerifyingAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth has no types
    """As allauth's, but the token's signature is always looked at, and clocks may differ a bit."""

    def get_callback_url(self, request: HttpRequest, _app: Any) -> str:
        return callback_url(request)

    @property
    def openid_config(self) -> dict[str, Any]:
        config = super().openid_config
        _require_endpoints(config)
        if config.get("issuer") != conf().sign_on.issuer:
            raise SignOnProblem(
                "The provider is another one",
                f"It calls itself “{config.get('issuer')}”, and SSO_ISSUER is "
                f"“{conf().sign_on.issuer}”.",
                "An admin has to make both the same, to the last character.",
            )
        return config  # type: ignore[no-any-return]

    def complete_login(self, request: HttpRequest, _app: Any, token: Any, **given: Any) -> Any:
        id_token = given["response"].get("id_token")
        if not id_token:
            raise SignOnProblem(
                "The provider sent no identity",
                "Its answer has no id_token.",
                "An admin has to allow the scope openid for this client.",
            )
        of_token = self.verified_claims(id_token)
        claims = dict(of_token)
        if self.openid_config.get("userinfo_endpoint"):
            claims |= self._user_info(token.token, of_token["sub"])
        claims["nonce"] = of_token.get("nonce")  # the signed one
        request.sign_on = {"id_token": id_token}  # type: ignore[attr-defined]
        return self.get_provider().sociallogin_from_response(request, {"userinfo": claims})

    def _user_info(self, access_token: str, subject: str) -> dict[str, Any]:
        found = self._fetch_user_info(access_token)
        if not isinstance(found, dict) or found.get("sub") != subject:
            raise SignOnProblem(
                "The provider named two people",
                "Its token and its user info have different subjects.",
                "Begin again at the sign-in page, and tell an admin if it happens again.",
            )
        return found

    def verified_claims(self, id_token: str) -> dict[str, Any]:
        try:
            return jwt.decode(
                id_token,
                self._signing_key(id_token),
                algorithms=list(ALGORITHMS),
                audience=conf().sign_on.client_id,
                issuer=conf().sign_on.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "sub"]},
            )
        except (jwt.ExpiredSignatureError, jwt.ImmatureSignatureError):
            raise clocks_differ(id_token) from None
        except jwt.InvalidIssuerError:
            raise SignOnProblem(
                "The token is of another provider",
                "The issuer in the token is not the one of SSO_ISSUER.",
                "An admin has to correct SSO_ISSUER.",
            ) from None
        except jwt.PyJWTError as problem:
            raise SignOnProblem(
                "The token cannot be trusted",
                f"It is not right: {problem}.",
                "Begin again. If it happens again, an admin has to look at the provider.",
            ) from None

    def _signing_key(self, id_token: str) -> Any:
        with get_adapter().get_requests_session() as session:
            answer = session.get(self.openid_config["jwks_uri"])
            answer.raise_for_status()
        keys = jwt.PyJWKSet.from_dict(answer.json())
        wanted = jwt.get_unverified_header(id_token).get("kid")
        for key in keys.keys:
            if wanted is None or key.key_id == wanted:
                return key
        raise jwt.InvalidKeyError("it is signed with a key that the provider does not publish")


def _require_endpoints(config: Any) -> None:
    missing = []
    for name in ENDPOINTS:
        if not isinstance(config, dict) or not isinstance(config.get(name), str):
            missing.append(name)
    if missing:
        raise SignOnProblem(
            "This is no provider of OpenID Connect",
            f"Its description lacks {', '.join(missing)}.",
            "An admin has to correct SSO_ISSUER.",
        )


def clocks_differ(id_token: str) -> SignOnProblem:
    claims = jwt.decode(id_token, options={"verify_signature": False})
    seconds = round(time.time() - float(claims.get("iat", 0)))
    side = "behind" if seconds > 0 else "ahead of"
    return SignOnProblem(
        "The clocks differ",
        f"The provider's clock is {abs(seconds)} seconds {side} the clock of this server, and "
        f"{LEEWAY_SECONDS} are allowed.",
        "An admin has to set both clocks by NTP.",
    )


class SignOnProvider(OpenIDConnectProvider):  # type: ignore[misc]  # allauth has no types
    oauth2_adapter_class = VerifyingAdapter
    pkce_enabled_default = True

    def redirect(self, request: HttpRequest, process: str, *given: Any, **more: Any) -> Any:
        """As allauth's, which knows no nonce: it is kept beside the state of this sign-on."""
        nonce = secrets.token_urlsafe(32)
        asked = {**self.get_auth_params(), "nonce": nonce}
        return super().redirect(request, process, *given, auth_params=asked, nonce=nonce, **more)


def require_nonce(claims: dict[str, Any], state: dict[str, Any]) -> None:
    """The token was made for this sign-on, and is none of another that somebody got hold of."""
    expected = state.get("nonce") or ""
    if not expected or not secrets.compare_digest(str(claims.get("nonce")), expected):
        raise SignOnProblem(
            "The token is of another sign-on",
            "Its nonce is not the one that was sent with this sign-on.",
            "Begin again at the sign-in page. If it happens again, an admin has to look at the "
            "provider.",
            400,
        )


def visitor_of(claims: dict[str, Any]) -> Visitor:
    wanted = conf().sign_on
    given = claim_at(claims, wanted.groups_claim)
    return Visitor(
        issuer=wanted.issuer,
        subject=str(claims["sub"])[:255],
        username=str(claim_at(claims, wanted.username_claim) or claims.get("email") or ""),
        email=str(claims.get("email") or ""),
        groups=groups_in(given),
        is_groups_claim_there=given is not None,
    )


def claim_at(claims: dict[str, Any], path: str) -> Any:
    """`realm_access.roles` is the field of a field; a claim with a dot in its name comes first."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for step in path.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(step)
    return found


def groups_in(given: Any) -> tuple[str, ...]:
    """A list of names, or one name. Whatever else a provider sends is no group."""
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, list):
        return ()
    names = [name for name in given if isinstance(name, str) and 0 < len(name) <= LONGEST_GROUP]
    return tuple(sorted(set(names)))[:MOST_GROUPS]
