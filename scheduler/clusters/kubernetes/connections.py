"""The connections to an API server: one pool a process, rebuilt when the certificate changes."""

from __future__ import annotations

import ssl
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

import urllib3
from urllib3.util.ssl_ import create_urllib3_context

from scheduler.clusters.kubernetes.credentials import CredentialsError, Identity, Server

CONNECTIONS_KEPT: Final = 48
"""Idle ones: 32 threads that bind, a watch for each resource, and some for requests."""


class Connections:
    """Pools are cheap to make and hold their connections, so there is one for each certificate."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._certificate: tuple[str, str] | None = None
        self._pool: urllib3.HTTPConnectionPool | None = None

    def pool_for(self, identity: Identity) -> urllib3.HTTPConnectionPool:
        """Raises `CredentialsError` if the certificate cannot be used."""
        certificate = (identity.certificate, identity.key)
        pool = self._pool
        if pool is not None and self._certificate == certificate:
            return pool
        with self._lock:
            if self._pool is None or self._certificate != certificate:
                self._pool = _open_pool(self._server, identity)
                self._certificate = certificate
            return self._pool

    def close(self) -> None:
        """Closes the idle ones. Those in use end with their requests."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
            self._pool = None


def _open_pool(server: Server, identity: Identity) -> urllib3.HTTPConnectionPool:
    options: dict[str, Any] = {"maxsize": CONNECTIONS_KEPT, "block": False}
    if server.url.startswith("https://"):
        options["ssl_context"] = _tls_context(server, identity)
        if server.tls_name:
            options["server_hostname"] = server.tls_name
        if not server.verified:
            options["cert_reqs"] = "CERT_NONE"
            options["assert_hostname"] = False
    manager: urllib3.PoolManager
    if server.proxy:
        manager = urllib3.ProxyManager(server.proxy, **options)
    else:
        manager = urllib3.PoolManager(**options)
    return manager.connection_from_url(server.url)


def _tls_context(server: Server, identity: Identity) -> ssl.SSLContext:
    context: ssl.SSLContext = create_urllib3_context()
    # Authorities of clusters often lack extensions that only this flag asks for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not server.verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif server.ca:
        _trust(context, server.ca)
    else:
        context.load_default_certs()
    if identity.certificate:
        _show_certificate(context, identity)
    return context


def _trust(context: ssl.SSLContext, authority: str) -> None:
    try:
        context.load_verify_locations(cadata=authority)
    except (ssl.SSLError, ValueError) as error:
        problem = f"the certificate authority of the cluster cannot be used: {error}"
        raise CredentialsError(problem) from error


def _show_certificate(context: ssl.SSLContext, identity: Identity) -> None:
    """Python takes a certificate only from files: they are there for a moment, for us alone."""
    with tempfile.TemporaryDirectory(prefix="kubernetes-") as directory:
        certificate = Path(directory, "certificate.pem")
        key = Path(directory, "key.pem")
        certificate.write_text(identity.certificate, encoding="utf-8")
        key.touch(mode=0o600)
        key.write_text(identity.key, encoding="utf-8")
        try:
            context.load_cert_chain(certificate, key)
        except (ssl.SSLError, OSError) as error:
            problem = f"the client certificate cannot be used: {error}"
            raise CredentialsError(problem) from error
