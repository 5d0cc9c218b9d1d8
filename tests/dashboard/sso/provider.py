"""An OpenID Connect provider whose people, groups, clock and faults a test decides.

It speaks HTTP on a port of its own, checks the client's secret and PKCE, and signs its tokens. Dex
shows in `test_dex.py` that a real one agrees.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings
from django.test import override_settings

from scheduler.conf import SignOnConf, conf

CLIENT = "fumarole"
SECRET = "of-the-client"


@cache
def signing_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Provider:
    """What it says of the one who signs on, and what is wrong with it."""

    port: int = 0
    subject: str = "1"
    claims: dict[str, Any] = field(
        default_factory=lambda: {"preferred_username": "ann", "groups": ["authors"]}
    )
    secret: str = SECRET
    issuer_said: str = ""
    clock_ahead: float = 0.0
    nonce_said: str | None = None
    has_sign_out: bool = True
    refuses: str = ""
    status: int = 200
    redirect_uri: str = ""
    key: rsa.RSAPrivateKey = field(default_factory=signing_key)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def description(self) -> dict[str, Any]:
        found = {
            "issuer": self.issuer_said or self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "scopes_supported": ["openid", "profile", "email", "groups"],
            "response_types_supported": ["code"],
        }
        if self.has_sign_out:
            found["end_session_endpoint"] = f"{self.issuer}/sign-out"
        return found

    def keys(self) -> dict[str, Any]:
        public = jwt.algorithms.RSAAlgorithm.to_jwk(signing_key().public_key(), as_dict=True)
        return {"keys": [{**public, "kid": "1", "use": "sig", "alg": "RS256"}]}

    def id_token(self, asked: dict[str, str]) -> str:
        """With the nonce that was asked with, as the standard says."""
        now = time.time() + self.clock_ahead
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": self.subject,
            "iat": int(now),
            "exp": int(now) + 300,
            "nonce": asked.get("nonce") if self.nonce_said is None else self.nonce_said,
        }
        return jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": "1"})


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        given = {key: values[0] for key, values in parse_qs(address.query).items()}
        pages = {
            "/.well-known/openid-configuration": self.provider.description,
            "/keys": self.provider.keys,
            "/userinfo": lambda: {"sub": self.provider.subject, **self.provider.claims},
        }
        if address.path == "/authorize":
            self._authorize(given)
        elif self.provider.status != 200:
            self._say({}, self.provider.status)
        elif address.path in pages:
            self._say(pages[address.path]())
        else:
            self._say({}, 404)

    def _authorize(self, given: dict[str, str]) -> None:
        provider = self.provider
        wrong = provider.redirect_uri and given["redirect_uri"] != provider.redirect_uri
        if given["client_id"] != CLIENT or wrong:
            self._say({"error": "unknown client or redirect_uri"}, 400)
            return
        answer = {"state": given.get("state", "")}
        if provider.refuses:
            answer["error"] = provider.refuses
        else:
            answer["code"] = secrets.token_hex(8)
            provider.codes[answer["code"]] = given
        self.send_response(302)
        self.send_header("Location", f"{given['redirect_uri']}?{urlencode(answer)}")
        self.end_headers()

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        sent = parse_qs(self.rfile.read(length).decode())
        given = {key: values[0] for key, values in sent.items()}
        asked = self.provider.codes.pop(given.get("code", ""), None)
        if given.get("client_secret") != self.provider.secret:
            self._say({"error": "invalid_client"}, 401)
        elif asked is None or not _is_verified(asked, given):
            self._say({"error": "invalid_grant"}, 400)
        else:
            answer = {"access_token": "a", "token_type": "Bearer"}
            self._say({**answer, "id_token": self.provider.id_token(asked)})

    def _say(self, body: dict[str, Any], status: int = 200) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string(time.time() + self.provider.clock_ahead)


def _is_verified(asked: dict[str, str], given: dict[str, str]) -> bool:
    """PKCE: whoever redeems the code is the one who asked for it."""
    digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked.get("code_challenge")


@contextmanager
def running_provider() -> Iterator[Provider]:
    provider = Provider()
    handler = type("Handler", (_Handler,), {"provider": provider})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    provider.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def sign_on_at(issuer: str, **more: Any) -> Iterator[None]:
    """As if SSO_ISSUER were set, and what belongs to it."""
    given = {"client_id": CLIENT, "client_secret": SECRET, "name": "the provider", **more}
    wanted = {**settings.SCHEDULER, "sign_on": SignOnConf(issuer=issuer, **given)}
    try:
        with override_settings(SCHEDULER=wanted):
            conf.cache_clear()
            yield
    finally:
        conf.cache_clear()
