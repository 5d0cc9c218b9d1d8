"""The same thing elsewhere: what a button does, as a line for a terminal."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from django.http import HttpRequest

from scheduler.services.cluster.kubectl_lines import here_document


def copies(
    request: HttpRequest,
    cli: list[str],
    path: str,
    body: Mapping[str, Any] | None = None,
    method: str = "POST",
) -> dict[str, str]:
    """`cli` as words, `path` below the API's address; both are quoted for a shell here."""
    url = request.build_absolute_uri(f"/api/v1/{path}")
    curl = f'curl -X {method} -H "Authorization: Bearer $FUMAROLE_TOKEN"'
    if method == "POST":
        text = shlex.quote(json.dumps(body or {}))
        curl += f' -H "Content-Type: application/json" -d {text}'
    return {"cli": shlex.join(["vcctl", *cli]), "curl": f"{curl} {shlex.quote(url)}"}


def copies_of_call(request: HttpRequest, path: str, body: Mapping[str, Any]) -> dict[str, str]:
    """For what has no command of its own; NAME in the body is for the reader to fill in."""
    return copies(request, ["api", "post", path, "-d", json.dumps(body)], path, body)


def together(orders: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Several orders, one a line."""
    given = list(orders)
    lines = {}
    for form in ("cli", "curl", "kubectl"):
        lines[form] = "\n".join(filter(None, (order.get(form, "") for order in given)))
    return lines


def copies_of_manifest(
    request: HttpRequest,
    text: str,
    cli: list[str],
    path: str,
    method: str = "POST",
) -> dict[str, str]:
    """For what is sent as a document: it goes to the command's standard input."""
    document = here_document(text.rstrip())
    url = request.build_absolute_uri(f"/api/v1/{path}")
    headers = '-H "Authorization: Bearer $FUMAROLE_TOKEN" -H "Content-Type: application/yaml"'
    return {
        "cli": f"{shlex.join(['vcctl', *cli])}{document}",
        "curl": f"curl -X {method} {headers} --data-binary @- {shlex.quote(url)}{document}",
    }
