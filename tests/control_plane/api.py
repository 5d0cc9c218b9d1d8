"""Requests of a test to the API server, with the rights of one user."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import urllib3

_PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_TIMEOUT_SECONDS = 60


class ApiError(Exception):
    """The API server refused. `code` is the HTTP status, `status` the object it answered with."""

    def __init__(self, code: int, status: dict[str, Any]) -> None:
        super().__init__(f"{code}: {status.get('message', status)}")
        self.code = code
        self.status = status


class Api:
    """Speaks JSON with one API server. Paths are as in `kubectl get --raw`."""

    def __init__(self, server: str, context: ssl.SSLContext | None = None) -> None:
        self._server = server
        self._pool = urllib3.PoolManager(ssl_context=context, maxsize=8, retries=False)

    @classmethod
    def with_certificate(cls, server: str, authority: Path, certificate: Path, key: Path) -> Api:
        context = ssl.create_default_context(cafile=str(authority))
        context.load_cert_chain(certificate, key)
        return cls(server, context)

    def get(self, path: str) -> Any:
        return self.request("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self.request("POST", path, body)

    def put(self, path: str, body: dict[str, Any]) -> Any:
        return self.request("PUT", path, body)

    def delete(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self.request("DELETE", path, body)

    def patch(self, path: str, body: Any, kind: str = "merge") -> Any:
        return self.request("PATCH", path, body, content_type=_PATCH_TYPES[kind])

    def apply(self, path: str, manifest: dict[str, Any]) -> Any:
        """Server-side apply: creates or changes, however large the object is."""
        return self.patch(f"{path}?fieldManager=tests&force=true", manifest, "apply")

    def watch(self, path: str) -> Iterator[dict[str, Any]]:
        """The events of a watch, until the server ends it; give it `timeoutSeconds`."""
        answer = self._pool.request(
            "GET", self._server + path, preload_content=False, timeout=_TIMEOUT_SECONDS
        )
        try:
            for line in _lines(answer.stream()):
                yield json.loads(line)
        finally:
            answer.close()

    def answers(self, path: str) -> bool:
        """Whether there is a server, and it says OK."""
        try:
            self.request("GET", path)
        except (ApiError, urllib3.exceptions.HTTPError):
            return False
        return True

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Any:
        """The object of the answer, or its text if it is no JSON. Raises ApiError."""
        answer = self._pool.request(
            method,
            self._server + path,
            body=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": content_type, "Accept": "application/json"},
            timeout=_TIMEOUT_SECONDS,
        )
        is_json = "json" in answer.headers.get("Content-Type", "")
        content = json.loads(answer.data) if is_json else answer.data.decode()
        if answer.status >= 400:
            raise ApiError(answer.status, content if is_json else {"message": content})
        return content


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
