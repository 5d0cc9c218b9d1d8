"""Requests to the API server: urllib3 and JSON, objects as plain dictionaries.

Every failure is an `ApiError` of `errors`. Nothing is tried again here, with two exceptions: after
401 the credentials are loaded again, and a GET whose kept connection was closed is sent again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from scheduler.clusters.kubernetes.connections import Connections
from scheduler.clusters.kubernetes.credentials import Credentials, Identity
from scheduler.clusters.kubernetes.errors import NoAnswer, Unavailable, error_of_answer
from scheduler.clusters.kubernetes.resources import PODS, Resource

Object = dict[str, Any]

USER_AGENT: Final = "fumarole"
FIELD_MANAGER: Final = "fumarole"
PAGE_SIZE: Final = 500
_JSON: Final = "application/json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_APPLY_PATCH: Final = "application/apply-patch+yaml"  # JSON is YAML too


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a list, and the version of the cluster that all its pages show."""

    items: list[Object]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Timeouts:
    """In seconds: to get a connection, and to wait for an answer."""

    connect: float = 5.0
    read: float = 30.0


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    body: bytes | None = None
    content_type: str = _JSON
    accept: str = _JSON

    @property
    def asked(self) -> str:
        """In words, without the parameters."""
        return f"{self.method} {self.path.partition('?')[0]}"


class Client:
    """One for each process: its threads share the pool of connections."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        timeouts: Timeouts = Timeouts(),  # noqa: B008  (frozen)
        user_agent: str = USER_AGENT,
    ) -> None:
        self.credentials = credentials
        self.timeouts = timeouts
        self._user_agent = user_agent
        self._connections = Connections(credentials.server)

    def with_timeouts(self, timeouts: Timeouts) -> Client:
        """The same connections, for somebody who waits longer or less long."""
        other = Client(self.credentials, timeouts=timeouts, user_agent=self._user_agent)
        other._connections = self._connections
        return other

    def close(self) -> None:
        self._connections.close()

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        return self.get_path(_path(resource, name, namespace))

    def get_path(self, path: str) -> Object:
        """Any JSON of the server, such as what it serves or its version."""
        return self._send(_Request("GET", path))

    def get_log(self, name: str, namespace: str, asked: Mapping[str, Any]) -> str:
        """What containers of a pod have written. `asked` as the API names it: `tailLines`."""
        path = _path(PODS, name, namespace, "log", asked)
        request = _Request("GET", path, accept="*/*")
        answer = self._answer(request, self._timeout())
        if answer.status >= 300:
            raise error_of_answer(request.asked, answer.status, answer.data, answer.headers)
        return answer.data.decode(errors="replace")

    def pages(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = PAGE_SIZE,
    ) -> Iterator[Page]:
        """All objects, a page at a time; 0 as `page_size` gives one page.

        Raises `Expired` if it takes so long that the server forgets the rest.
        """
        asked: dict[str, str | int] = {}
        if page_size:
            asked["limit"] = page_size
        if label_selector:
            asked["labelSelector"] = label_selector
        if field_selector:
            asked["fieldSelector"] = field_selector
        while True:
            answer = self.get_path(_path(resource, "", namespace, "", asked))
            metadata = answer.get("metadata") or {}
            yield Page(answer.get("items") or [], metadata.get("resourceVersion", ""))
            if not metadata.get("continue"):
                return
            asked["continue"] = metadata["continue"]

    def list(self, resource: Resource, namespace: str = "", **selectors: Any) -> list[Object]:
        """All objects at once; takes the arguments of `pages`."""
        found: list[Object] = []
        for page in self.pages(resource, namespace, **selectors):
            found += page.items
        return found

    def create(self, resource: Resource, body: Mapping[str, Any], namespace: str = "") -> Object:
        path = _path(resource, "", namespace)
        return self._send(_Request("POST", path, _encoded(body)))

    def create_subresource(
        self,
        resource: Resource,
        name: str,
        subresource: str,
        body: Mapping[str, Any],
        namespace: str = "",
    ) -> Object:
        """A binding or an eviction."""
        path = _path(resource, name, namespace, subresource)
        return self._send(_Request("POST", path, _encoded(body)))

    def patch(
        self,
        resource: Resource,
        name: str,
        changes: Mapping[str, Any],
        namespace: str = "",
        subresource: str = "",
        *,
        merges_lists: bool = False,
    ) -> Object:
        """Changes the fields that are named; None takes a field out (a JSON merge patch).

        With `metadata.resourceVersion` in it, an object that has changed since is a `Conflict`. A
        list is replaced, unless `merges_lists` is set: then its items are matched by their key,
        conditions by their type. Only Kubernetes' own kinds know such keys.
        """
        path = _path(resource, name, namespace, subresource)
        kind = _MERGE_PATCH
        if merges_lists:
            kind = _STRATEGIC_PATCH
        return self._send(_Request("PATCH", path, _encoded(changes), kind))

    def apply(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any],
        namespace: str = "",
        subresource: str = "",
        *,
        field_manager: str = FIELD_MANAGER,
        force: bool = False,
    ) -> Object:
        """Server-side apply: these fields are ours from now on.

        A field that another manager owns is a `Conflict`, unless it is taken by `force`.
        """
        asked = {"fieldManager": field_manager, "force": str(force).lower()}
        path = _path(resource, name, namespace, subresource, asked)
        return self._send(_Request("PATCH", path, _encoded(body), _APPLY_PATCH))

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        propagation: str = "",
    ) -> Object:
        """An object with another `uid` or `resource_version` than given is a `Conflict`."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if resource_version:
            options.setdefault("preconditions", {})["resourceVersion"] = resource_version
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if propagation:
            options["propagationPolicy"] = propagation
        path = _path(resource, name, namespace)
        return self._send(_Request("DELETE", path, _encoded(options)))

    def open_watch(
        self, resource: Resource, since: str, *, server_timeout: int, silence: float
    ) -> urllib3.BaseHTTPResponse:
        """A stream of events as lines of JSON, from after the version `since`.

        The caller reads and closes it. Reading raises urllib3's errors.
        """
        asked: dict[str, str | int] = {
            "watch": "1",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": server_timeout,
        }
        request = _Request("GET", _path(resource, "", "", "", asked))
        answer = self._answer(request, self._timeout(), preload=False)
        if answer.status != 200:
            body = answer.read()
            answer.release_conn()
            raise error_of_answer(request.asked, answer.status, body, answer.headers)
        _allow_silence(answer, silence)
        return answer

    def _timeout(self) -> urllib3.Timeout:
        return urllib3.Timeout(connect=self.timeouts.connect, read=self.timeouts.read)

    def _send(self, request: _Request) -> Object:
        answer = self._answer(request, self._timeout())
        if answer.status >= 300:
            raise error_of_answer(request.asked, answer.status, answer.data, answer.headers)
        try:
            return json.loads(answer.data)  # type: ignore[no-any-return]
        except ValueError as error:
            raise NoAnswer(request.asked, answer.status, f"answered no JSON: {error}") from error

    def _answer(
        self, request: _Request, timeout: urllib3.Timeout, *, preload: bool = True
    ) -> urllib3.BaseHTTPResponse:
        """With credentials that are loaded again if the server no longer takes them."""
        identity = self.credentials.identity()
        answer = self._transmit(request, identity, timeout, preload)
        if answer.status != 401:
            return answer
        answer.drain_conn()
        renewed = self.credentials.renew(identity)
        return self._transmit(request, renewed, timeout, preload)

    def _transmit(
        self, request: _Request, identity: Identity, timeout: urllib3.Timeout, preload: bool
    ) -> urllib3.BaseHTTPResponse:
        try:
            return self._transmit_once(request, identity, timeout, preload)
        except ProtocolError as error:
            if request.method != "GET":
                raise NoAnswer(request.asked, 0, f"lost the connection: {error}") from error
        # The server may close a kept connection at the moment we take it up.
        try:
            return self._transmit_once(request, identity, timeout, preload)
        except ProtocolError as error:
            raise NoAnswer(request.asked, 0, f"lost the connection: {error}") from error

    def _transmit_once(
        self, request: _Request, identity: Identity, timeout: urllib3.Timeout, preload: bool
    ) -> urllib3.BaseHTTPResponse:
        try:
            return self._connections.pool_for(identity).urlopen(
                request.method,
                request.path,
                body=request.body,
                headers=self._headers(request, identity),
                retries=False,
                redirect=False,
                timeout=timeout,
                preload_content=preload,
            )
        except ReadTimeoutError as error:
            message = f"no answer within {timeout.read_timeout} s"
            raise NoAnswer(request.asked, 0, message) from error
        except (NewConnectionError, ConnectTimeoutError, ProxyError, SSLError) as error:
            message = f"cannot connect to {self.credentials.server.url}: {_cause(error)}"
            raise Unavailable(request.asked, 0, message) from error

    def _headers(self, request: _Request, identity: Identity) -> dict[str, str]:
        headers = {"User-Agent": self._user_agent, "Accept": request.accept}
        if identity.token:
            headers["Authorization"] = f"Bearer {identity.token}"
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return headers


def _path(
    resource: Resource,
    name: str,
    namespace: str,
    subresource: str = "",
    asked: Mapping[str, Any] | None = None,
) -> str:
    path = resource.path(quote(name, safe=""), quote(namespace, safe=""), subresource)
    if asked:
        return f"{path}?{urlencode(asked)}"
    return path


def _encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _allow_silence(answer: urllib3.BaseHTTPResponse, seconds: float) -> None:
    """The answer has begun: from here on, silence is usual for a while."""
    connection: Any = answer.connection
    if connection is not None and connection.sock is not None:
        connection.sock.settimeout(seconds)


def _cause(error: HTTPError) -> str:
    """The last part of urllib3's message, without the address of the connection object."""
    return str(error).rpartition("object at ")[2].partition(": ")[2] or str(error)
