"""Is the provider reached, and set up for us? Step by step, with what to do about each.

Nobody has to sign on for it. The client's secret is tried with a code that cannot be right, and
the address of the way back by asking for a sign-on that nobody goes on with.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlencode, urljoin, urlsplit

import jwt
import requests

from dashboard.sso.provider import ALGORITHMS, ENDPOINTS, LEEWAY_SECONDS
from scheduler.conf import SignOnConf, conf
from scheduler.models import Identity

RIGHT: Final = "right"
WRONG: Final = "wrong"
UNKNOWN: Final = "unknown"
_SECONDS: Final = 5
_MOST_PAGES: Final = 5


@dataclass(frozen=True, slots=True)
class Step:
    title: str
    verdict: str
    words: str
    fix: str = ""


@dataclass(slots=True)
class _Connection:
    """What the steps find out for those after them."""

    settings: SignOnConf
    callback: str
    description: dict[str, Any]
    date: str = ""


def check_connection(callback: str) -> list[Step]:
    """All steps, up to the first after which none makes sense."""
    settings = conf().sign_on
    if not settings.is_on:
        return [Step("Settings", WRONG, "SSO_ISSUER is not set.", "Set it to the provider.")]
    found = _Connection(settings, callback, {})
    steps = [
        Step("Settings", RIGHT, f"The issuer is {settings.issuer}, we are {settings.client_id}.")
    ]
    for title, check in _STEPS.items():
        try:
            step = check(found)
        except requests.RequestException as problem:
            words = f"It could not be asked: {problem.__class__.__name__}. {str(problem)[:300]}"
            fix = "Look at its address, the network, DNS and the certificate."
            step = Step(title, WRONG, words, fix)
        steps.append(step)
        if step.verdict == WRONG and not found.description:
            break
    return steps


def _description(found: _Connection) -> Step:
    address = found.settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
    answer = requests.get(address, timeout=_SECONDS)
    found.date = answer.headers.get("Date", "")
    title = "Description of the provider"
    if answer.status_code != 200:
        words = f"{address} answered with status {answer.status_code}."
        return Step(title, WRONG, words, "Correct SSO_ISSUER: it is this address without its end.")
    description = answer.json()
    missing = [name for name in ENDPOINTS if not dict(description).get(name)]
    if missing:
        words = f"{address} lacks {', '.join(missing)}."
        return Step(title, WRONG, words, "Correct SSO_ISSUER: this is no OpenID Connect.")
    found.description = description
    return Step(title, RIGHT, f"{address} was read.")


def _issuer(found: _Connection) -> Step:
    said = found.description.get("issuer")
    if said == found.settings.issuer:
        return Step("Issuer", RIGHT, "The provider calls itself as SSO_ISSUER does.")
    words = f"The provider calls itself “{said}”."
    return Step("Issuer", WRONG, words, f"Set SSO_ISSUER to “{said}”, to the last character.")


def _clock(found: _Connection) -> Step:
    try:
        ahead = parsedate_to_datetime(found.date).timestamp() - time.time()
    except (TypeError, ValueError):
        return Step("Clock", UNKNOWN, "The provider does not tell its time.")
    if abs(ahead) <= LEEWAY_SECONDS:
        return Step("Clock", RIGHT, f"The clocks differ by {abs(ahead):.0f} seconds at most.")
    words = f"The clocks differ by {abs(ahead):.0f} seconds, and {LEEWAY_SECONDS} are allowed."
    return Step("Clock", WRONG, words, "Set both clocks by NTP.")


def _keys(found: _Connection) -> Step:
    answer = requests.get(found.description["jwks_uri"], timeout=_SECONDS)
    answer.raise_for_status()
    try:
        keys = jwt.PyJWKSet.from_dict(answer.json()).keys
    except (jwt.PyJWTError, AttributeError) as problem:
        return Step("Keys", WRONG, f"There is none that can be used: {problem}.", _KEYS_FIX)
    usable = [key for key in keys if key.algorithm_name in ALGORITHMS]
    if not usable:
        return Step("Keys", WRONG, "None signs in a way that is taken here.", _KEYS_FIX)
    names = ", ".join(sorted({key.algorithm_name for key in usable}))
    return Step("Keys", RIGHT, f"Tokens are signed by one of {len(usable)}: {names}.")


_KEYS_FIX: Final = f"Let the provider sign with one of {', '.join(ALGORITHMS)}."


def _redirect(found: _Connection) -> Step:
    asked = {
        "client_id": found.settings.client_id,
        "redirect_uri": found.callback,
        "response_type": "code",
        "scope": " ".join(found.settings.scopes),
        "state": "test-of-the-connection",
    }
    address = f"{found.description['authorization_endpoint']}?{urlencode(asked)}"
    answer = _last_answer_of(address)
    if answer.status_code < 400 and "error=" not in answer.headers.get("Location", ""):
        words = f"The provider did not refuse {found.callback} as the way back."
        return Step("Way back", RIGHT, words)
    words = f"The provider refuses the client's id, its scopes, or {found.callback}."
    fix = "Register this address as redirect URI of the client, and compare SSO_CLIENT_ID."
    return Step("Way back", WRONG, words, fix)


def _last_answer_of(address: str) -> requests.Response:
    """Follows the provider from page to page, and nobody away from it."""
    place = urlsplit(address).netloc
    with requests.Session() as browser:
        answer = browser.get(address, timeout=_SECONDS, allow_redirects=False)
        for _ in range(_MOST_PAGES):
            address = urljoin(address, answer.headers.get("Location", ""))
            if not answer.is_redirect or urlsplit(address).netloc != place:
                break
            answer = browser.get(address, timeout=_SECONDS, allow_redirects=False)
    return answer


def _secret(found: _Connection) -> Step:
    body = {
        "grant_type": "authorization_code",
        "code": "test-of-the-connection",
        "redirect_uri": found.callback,
    }
    methods = found.description.get("token_endpoint_auth_methods_supported", [])
    ours = (found.settings.client_id, found.settings.client_secret)
    sent: dict[str, Any] = {"data": {**body, "client_id": ours[0], "client_secret": ours[1]}}
    if "client_secret_post" not in methods and "client_secret_basic" in methods:
        sent = {"data": body, "auth": ours}
    answer = requests.post(found.description["token_endpoint"], timeout=_SECONDS, **sent)
    if answer.status_code == 401 or "invalid_client" in answer.text:
        words = "The provider refuses SSO_CLIENT_ID or SSO_CLIENT_SECRET."
        return Step("Secret", WRONG, words, "Copy both from the provider again.")
    if answer.status_code >= 500:
        words = f"The provider answered with status {answer.status_code}."
        return Step("Secret", UNKNOWN, words, "Look at its log.")
    return Step("Secret", RIGHT, "The provider knows the client and its secret.")


def _claims(found: _Connection) -> Step:
    settings = found.settings
    offered = found.description.get("scopes_supported")
    if isinstance(offered, list):
        missing = [scope for scope in settings.scopes if scope not in offered]
        if missing:
            words = f"The provider does not offer the scopes {', '.join(missing)}."
            fix = "Take them out of SSO_SCOPES, or let the provider offer them."
            return Step("Claims", UNKNOWN, words, fix)
    last = Identity.objects.filter(issuer=settings.issuer).order_by("-signed_on_at").first()
    if last is None:
        words = f"Nobody has signed on yet, so it is not known whether “{settings.groups_claim}” "
        return Step("Claims", UNKNOWN, f"{words}comes along.", "Sign on once in another browser.")
    if not last.groups:
        words = f"The last who signed on, {last.user}, brought no groups."
        fix = f"Let the provider send “{settings.groups_claim}”, or correct SSO_GROUPS_CLAIM."
        return Step("Claims", UNKNOWN, words, fix)
    named = ", ".join(last.groups[:20])
    return Step("Claims", RIGHT, f"The last who signed on, {last.user}, brought: {named}.")


def _sign_out(found: _Connection) -> Step:
    if found.description.get("end_session_endpoint"):
        return Step("Signing out", RIGHT, "Who signs out here is signed out at the provider too.")
    words = "The provider has no address for it: who signs out here is still signed in there."
    return Step("Signing out", UNKNOWN, words)


_STEPS: Final[dict[str, Callable[[_Connection], Step]]] = {
    "Description of the provider": _description,
    "Issuer": _issuer,
    "Clock": _clock,
    "Keys": _keys,
    "Way back": _redirect,
    "Secret": _secret,
    "Claims": _claims,
    "Signing out": _sign_out,
}
