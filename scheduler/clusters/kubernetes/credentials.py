"""Who we are to the API server: a kubeconfig, or the service account of the pod that we run in.

Credentials may end. Those of an exec plugin are asked for again shortly before that, a token in a
file is read again each minute, and everything is loaded again after an answer of 401.
"""

from __future__ import annotations

import base64
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from scheduler.clusters.kubernetes.kubeconfig import (
    CredentialsError,
    Kubeconfig,
    Section,
    read_text,
)

__all__ = [
    "Credentials",
    "CredentialsError",
    "Identity",
    "Server",
    "from_kubeconfig",
    "in_cluster",
    "load_credentials",
    "token_in_file",
]

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_REREAD_SECONDS: Final = 60.0
_EARLY_SECONDS: Final = 60.0
_NO_AUTH_PROVIDER: Final = (
    "is not supported, because Kubernetes has given it up; "
    "use exec with a credential plugin, such as kubelogin for OIDC"
)
_HINT_FOR_PACKAGE: Final = "install it with: pip install -r requirements-kubernetes.txt"


@dataclass(frozen=True, slots=True)
class Server:
    """Where the API server is, and how it is known to be the right one.

    `ca` is its certificate authority in PEM; None means that of the system.
    """

    url: str
    ca: str | None = None
    verified: bool = True
    tls_name: str = ""
    proxy: str = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks. `certificate` and `key` are PEM. `expires` is a moment of `time.time()`."""

    token: str = field(default="", repr=False)
    certificate: str = ""
    key: str = field(default="", repr=False)
    expires: float | None = None

    def ends_soon(self, now: float) -> bool:
        """Whether another one should be asked for before the next request."""
        return self.expires is not None and now > self.expires - _EARLY_SECONDS


@dataclass(eq=False)
class Credentials:
    """A server and an identity for it, kept until it ends.

    `load` asks for a new identity; it may read files or start a program.
    """

    server: Server
    load: Callable[[], Identity]
    namespace: str = "default"
    name: str = ""  # of the context, or "in-cluster"
    clock: Callable[[], float] = time.time
    _identity: Identity | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def identity(self) -> Identity:
        """The current one. Raises `CredentialsError`."""
        with self._lock:
            if self._identity is None or self._identity.ends_soon(self.clock()):
                self._identity = self.load()
            return self._identity

    def renew(self, refused: Identity) -> Identity:
        """After 401: another one, unless somebody has replaced the refused one already."""
        with self._lock:
            if self._identity is None or self._identity is refused:
                self._identity = self.load()
            return self._identity


def load_credentials(kubeconfig: str = "", context: str = "") -> Credentials:
    """From this kubeconfig, else from $KUBECONFIG, else from the pod that we run in, else from
    `~/.kube/config`. Several files have a colon between them. Raises `CredentialsError`.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG", "")
    paths = [Path(path).expanduser() for path in named.split(os.pathsep) if path]
    if paths:
        return from_kubeconfig(paths, context)
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster()
    return from_kubeconfig(Path("~/.kube/config").expanduser(), context)


def in_cluster(
    directory: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Credentials:
    """The service account that the kubelet mounts. Raises `CredentialsError`.

    KUBERNETES_SERVICE_ACCOUNT names another folder, for a token that is mounted elsewhere.
    """
    if directory is None:
        directory = Path(environment.get("KUBERNETES_SERVICE_ACCOUNT") or SERVICE_ACCOUNT)
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise CredentialsError("KUBERNETES_SERVICE_HOST is not set: this is no pod of a cluster.")
    if ":" in host:
        host = f"[{host}]"
    ca = read_text(directory / "ca.crt")
    namespace = directory / "namespace"
    if namespace.exists():
        own_namespace = read_text(namespace).strip()
    else:
        own_namespace = "default"
    return Credentials(
        Server(f"https://{host}:{port}", ca),
        lambda: token_in_file(directory / "token"),
        own_namespace,
        "in-cluster",
    )


def token_in_file(path: Path) -> Identity:
    """A token that is renewed in place: it is read again each minute."""
    token = read_text(path).strip()
    if not token:
        raise CredentialsError(f"{path} is empty: a token was expected.")
    return Identity(token=token, expires=time.time() + _REREAD_SECONDS + _EARLY_SECONDS)


def from_kubeconfig(path: Path | Sequence[Path], context: str = "") -> Credentials:
    """One context of a kubeconfig, or of several files that count as one.

    The current context if none is named. Raises `CredentialsError`.
    """
    paths = path
    if isinstance(paths, Path):
        paths = [paths]
    config = Kubeconfig.read(paths)
    name = context or config.current_context()
    chosen = config.entry("contexts", name, "context")
    cluster = config.entry("clusters", chosen.text("cluster", required=True), "cluster")
    return Credentials(
        _server_of(cluster),
        lambda: _load_user(paths, name),
        chosen.text("namespace") or "default",
        name,
    )


def _load_user(paths: Sequence[Path], context: str) -> Identity:
    """Reads the files again: their tokens and certificates may have been renewed."""
    config = Kubeconfig.read(paths)
    chosen = config.entry("contexts", context, "context")
    user_name = chosen.text("user")
    if not user_name:
        return Identity()
    user = config.entry("users", user_name, "user")
    if user.has("exec"):
        cluster = config.entry("clusters", chosen.text("cluster", required=True), "cluster")
        return _ask_plugin(user.section("exec"), cluster)
    if user.has("auth-provider"):
        raise user.problem("auth-provider", _NO_AUTH_PROVIDER)
    return _static_identity(user)


def _server_of(cluster: Section) -> Server:
    url = cluster.text("server", required=True).rstrip("/")
    if not url.startswith(("https://", "http://")):
        raise cluster.problem("server", f"is {url}; it must begin with https:// or http://")
    return Server(
        url,
        cluster.pem("certificate-authority") or None,
        not cluster.truth("insecure-skip-tls-verify"),
        cluster.text("tls-server-name"),
        cluster.text("proxy-url"),
    )


def _static_identity(user: Section) -> Identity:
    if user.has("username") or user.has("password"):
        raise user.problem("username", "is not supported: Kubernetes no longer takes passwords")
    certificate = user.pem("client-certificate")
    key = user.pem("client-key")
    if certificate and not key:
        raise user.problem("client-key", "is missing beside client-certificate")
    if key and not certificate:
        raise user.problem("client-certificate", "is missing beside client-key")
    token_file = user.text("tokenFile")
    if token_file:
        return token_in_file(user.beside(token_file))
    return Identity(user.text("token"), certificate, key)


def _ask_plugin(plugin: Section, cluster: Section) -> Identity:
    """Runs the exec plugin of a kubeconfig."""
    plugin.text("command", required=True)
    plugin.text("apiVersion", required=True)
    package = _official_package(plugin)
    command = package.ConfigNode("exec", dict(plugin.values), plugin.file)
    info = package.ConfigNode("cluster", _cluster_info(cluster), cluster.file)
    try:
        provider = package.ExecProvider(command, str(plugin.file.parent), info)
        answer = provider.run()
    except (package.ConfigException, OSError) as error:
        raise plugin.problem("command", f"failed: {error}") from error
    status = Section(plugin.file, f"the answer of {plugin.path}.command", answer or {})
    token = status.text("token")
    certificate = status.text("clientCertificateData")
    key = status.text("clientKeyData")
    if not token and not (certificate and key):
        raise plugin.problem("command", "gave neither a token nor a certificate with its key")
    return Identity(token, certificate, key, _moment_of(status, "expirationTimestamp"))


def _cluster_info(cluster: Section) -> dict[str, Any]:
    """What a plugin with provideClusterInfo is told, with the authority as data."""
    info = dict(cluster.values)
    authority = info.pop("certificate-authority", None)
    if authority:
        encoded = base64.b64encode(cluster.pem("certificate-authority").encode())
        info["certificate-authority-data"] = encoded.decode()
    return info


class _OfficialPackage:
    """What we take of the package `kubernetes`. It is imported only where it is needed."""

    def __init__(self) -> None:
        from kubernetes.config.config_exception import ConfigException
        from kubernetes.config.exec_provider import ExecProvider
        from kubernetes.config.kube_config import ConfigNode

        self.ConfigException: Any = ConfigException
        self.ExecProvider: Any = ExecProvider
        self.ConfigNode: Any = ConfigNode


def _official_package(section: Section) -> _OfficialPackage:
    try:
        return _OfficialPackage()
    except ImportError as error:
        problem = f"{section.file}: {section.path} needs the package kubernetes; "
        raise CredentialsError(problem + _HINT_FOR_PACKAGE) from error


def _moment_of(section: Section, key: str) -> float | None:
    text = section.text(key)
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise section.problem(key, f"is {text}, which is no time") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()
