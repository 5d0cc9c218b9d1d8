"""Who we are to the API server: a kubeconfig, or the service account of the pod that we run in.

Credentials may end. Those of an exec plugin are asked for again shortly before that, a token in a
file is read again each minute, and everything is loaded again after an answer of 401.
"""

from __future__ import annotations

import base64
import binascii
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_REREAD_SECONDS: Final = 60.0
_EARLY_SECONDS: Final = 60.0
_HINT_FOR_PACKAGE: Final = "install it with: pip install -r requirements-kubernetes.txt"


class CredentialsError(Exception):
    """There is no way to the API server. The message names the file and the field."""


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
    `~/.kube/config`. Raises `CredentialsError`.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    if named:
        return from_kubeconfig(Path(named).expanduser(), context)
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
    ca = _read_text(directory / "ca.crt")
    namespace = directory / "namespace"
    if namespace.exists():
        own_namespace = _read_text(namespace).strip()
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
    token = _read_text(path).strip()
    if not token:
        raise CredentialsError(f"{path} is empty: a token was expected.")
    return Identity(token=token, expires=time.time() + _REREAD_SECONDS + _EARLY_SECONDS)


def from_kubeconfig(path: Path, context: str = "") -> Credentials:
    """One context of a kubeconfig; the current one if none is named. Raises `CredentialsError`."""
    config = _Section.of_file(path)
    name = context or config.text("current-context")
    if not name:
        raise config.problem("current-context", "is not set, and no context was asked for")
    chosen = config.entry("contexts", name, "context")
    cluster = config.entry("clusters", chosen.text("cluster", required=True), "cluster")
    return Credentials(
        _server_of(cluster),
        lambda: _load_user(path, name),
        chosen.text("namespace") or "default",
        name,
    )


def _load_user(path: Path, context: str) -> Identity:
    """Reads the file again: its tokens and certificates may have been renewed."""
    config = _Section.of_file(path)
    chosen = config.entry("contexts", context, "context")
    user_name = chosen.text("user")
    if not user_name:
        return Identity()
    user = config.entry("users", user_name, "user")
    if user.has("exec"):
        cluster = config.entry("clusters", chosen.text("cluster", required=True), "cluster")
        return _ask_plugin(user.section("exec"), cluster)
    if user.has("auth-provider"):
        return _ask_auth_provider(path, context, user)
    return _static_identity(user)


def _server_of(cluster: _Section) -> Server:
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


def _static_identity(user: _Section) -> Identity:
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


def _ask_plugin(plugin: _Section, cluster: _Section) -> Identity:
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
    status = _Section(plugin.file, f"the answer of {plugin.path}.command", answer or {})
    token = status.text("token")
    certificate = status.text("clientCertificateData")
    key = status.text("clientKeyData")
    if not token and not (certificate and key):
        raise plugin.problem("command", "gave neither a token nor a certificate with its key")
    return Identity(token, certificate, key, _moment_of(status, "expirationTimestamp"))


def _cluster_info(cluster: _Section) -> dict[str, Any]:
    """What a plugin with provideClusterInfo is told, with the authority as data."""
    info = dict(cluster.values)
    authority = info.pop("certificate-authority", None)
    if authority:
        encoded = base64.b64encode(cluster.pem("certificate-authority").encode())
        info["certificate-authority-data"] = encoded.decode()
    return info


def _ask_auth_provider(path: Path, context: str, user: _Section) -> Identity:
    """OIDC and the other old auth providers, which the official package renews."""
    package = _official_package(user)
    configuration = package.Configuration()
    try:
        package.load_kube_config(str(path), context, configuration, persist_config=False)
    except (package.ConfigException, OSError) as error:
        raise user.problem("auth-provider", f"failed: {error}") from error
    header = configuration.api_key.get("authorization", "")
    token = header.removeprefix("Bearer ").strip()
    if not token:
        raise user.problem("auth-provider", "gave no token")
    return Identity(token, expires=time.time() + _REREAD_SECONDS + _EARLY_SECONDS)


class _OfficialPackage:
    """What we take of the package `kubernetes`. It is imported only where it is needed."""

    def __init__(self) -> None:
        from kubernetes.client import Configuration
        from kubernetes.config import load_kube_config
        from kubernetes.config.config_exception import ConfigException
        from kubernetes.config.exec_provider import ExecProvider
        from kubernetes.config.kube_config import ConfigNode

        self.Configuration: Any = Configuration
        self.load_kube_config: Any = load_kube_config
        self.ConfigException: Any = ConfigException
        self.ExecProvider: Any = ExecProvider
        self.ConfigNode: Any = ConfigNode


def _official_package(section: _Section) -> _OfficialPackage:
    try:
        return _OfficialPackage()
    except ImportError as error:
        problem = f"{section.file}: {section.path} needs the package kubernetes; "
        raise CredentialsError(problem + _HINT_FOR_PACKAGE) from error


def _moment_of(section: _Section, key: str) -> float | None:
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


@dataclass(frozen=True, slots=True)
class _Section:
    """A part of a kubeconfig that can name itself: `file`, and `path` within it."""

    file: Path
    path: str
    values: Mapping[str, Any]

    @classmethod
    def of_file(cls, path: Path) -> _Section:
        text = _read_text(path)
        try:
            values = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise CredentialsError(f"{path} is no YAML: {_first_line(error)}") from error
        if not isinstance(values, dict):
            raise CredentialsError(f"{path} is no kubeconfig: it must be a mapping.")
        return cls(path, "", values)

    def problem(self, key: str, problem: str) -> CredentialsError:
        return CredentialsError(f"{self.file}: {self._path_to(key)} {problem}.")

    def _path_to(self, key: str) -> str:
        if not self.path:
            return key
        return f"{self.path}.{key}"

    def has(self, key: str) -> bool:
        return self.values.get(key) not in (None, "", {})

    def text(self, key: str, *, required: bool = False) -> str:
        value = self.values.get(key)
        if value is None or value == "":
            if required:
                raise self.problem(key, "is missing")
            return ""
        if not isinstance(value, str):
            raise self.problem(key, f"must be text, not {type(value).__name__}")
        return value

    def truth(self, key: str) -> bool:
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.problem(key, "must be true or false")
        return value

    def section(self, key: str) -> _Section:
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise self.problem(key, "must be a mapping")
        return _Section(self.file, self._path_to(key), value)

    def entry(self, plural: str, name: str, singular: str) -> _Section:
        """The entry of this name in one of the lists: clusters, users, contexts."""
        entries = self.values.get(plural)
        if not isinstance(entries, list):
            raise self.problem(plural, "is missing or is no list")
        for index, item in enumerate(entries):
            if isinstance(item, dict) and item.get("name") == name:
                return _Section(self.file, f"{plural}[{index}]", item).section(singular)
        raise self.problem(plural, f"has no entry called {name}")

    def beside(self, name: str) -> Path:
        """A path of the kubeconfig: a relative one begins at its directory."""
        return self.file.parent / Path(name).expanduser()

    def pem(self, key: str) -> str:
        """From `<key>-data` in base64, else from the file that `<key>` names."""
        data = self.text(f"{key}-data")
        if data:
            return self._decoded(f"{key}-data", data)
        file = self.text(key)
        if not file:
            return ""
        path = self.beside(file)
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise self.problem(key, f"names {path}, which cannot be read: {error}") from error

    def _decoded(self, key: str, data: str) -> str:
        try:
            return base64.b64decode(data, validate=False).decode("ascii")
        except (binascii.Error, ValueError) as error:
            raise self.problem(key, "is no PEM in base64") from error


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CredentialsError(f"{path} does not exist.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialsError(f"{path} cannot be read: {error}") from error


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())
