"""The API as pages in the site's look: answers to read, a form for each write, and curl lines."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from django.template import loader
from rest_framework import renderers, serializers
from rest_framework.request import Request

from scheduler.yaml_texts import to_yaml

FORM_PARAMETER = "_query."
"""How the names of form fields begin that are query parameters of the request."""
_WITH_BODY = ("POST", "PUT", "PATCH")
_SUMMARIES = {
    "POST": "Send it",
    "PUT": "Replace it",
    "PATCH": "Change some of its fields; what is left out stays",
    "DELETE": "Delete it",
}
_STORED = ("warnings", "changed", "status")
_OF_EVERY_OBJECT = ("apiVersion", "kind")
_OBJECT_ACTIONS = ("retrieve", "update", "partial_update")

Link = tuple[str, str]
"""A text and its address."""


class BrowsableRenderer(renderers.BaseRenderer):
    media_type = "text/html"
    format = "api"
    charset = "utf-8"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> str:
        context = renderer_context or {}
        request = context["request"]
        response = context["response"]
        view = context["view"]
        code = response.status_code
        forms = []
        for method in _form_methods(view):
            forms.append(_write_form(method, view, data, code))
        page = {
            "request": request,
            "status": code,
            "status_text": response.status_text,
            "headers": _shown_headers(response),
            "content": json.dumps(data, indent=2, ensure_ascii=False, default=str),
            "title": _page_title(view),
            "crumbs": _breadcrumbs(request),
            "links": _links_in(data, request),
            "verbs": _verb_links(view, request),
            "problem": data if code >= 400 and isinstance(data, dict) else None,
            "forms": forms,
            "curl": _curl_line(request),
            "parameters": _shown_parameters(view, request),
        }
        if code == 204:
            response.status_code = 200
        page_request = _plain_request(request)
        return loader.render_to_string("rest_framework/api.html", page, request=page_request)


def _plain_request(request: Request) -> Any:
    """Django's own request, with the account that the API found."""
    plain = request._request
    plain.user = request.user
    return plain


def _shown_headers(response: Any) -> list[tuple[str, str]]:
    headers: list[tuple[str, str]] = []
    for name, value in response.items():
        if name != "Content-Type":
            headers.append((name, value))
    return sorted(headers)


def _shown_parameters(view: Any, request: Request) -> list[str]:
    if not request.user.is_authenticated:
        return []
    return sorted(getattr(view, "known_parameters", ()))


def _page_title(view: Any) -> str:
    name = type(view).__name__
    lookups = getattr(view, "lookups", ())
    place = "/".join(view.kwargs[lookup] for lookup in lookups if lookup in view.kwargs)
    if not place:
        return name
    return f"{place} · {name}"


def _breadcrumbs(request: Request) -> list[Link]:
    """The parts of the address below /api/."""
    parts = []
    for part in request.path.split("/"):
        if part:
            parts.append(part)
    crumbs = []
    for end in range(2, len(parts) + 1):
        crumbs.append((parts[end - 1], f"/{'/'.join(parts[:end])}/"))
    return crumbs


def _links_in(data: Any, request: Request) -> list[Link]:
    """Where to go on: pages, and each object of a list."""
    if not isinstance(data, dict):
        return []
    links = []
    for name in ("previous", "next"):
        if isinstance(data.get(name), str):
            links.append((name.capitalize(), data[name]))
    for title in ("collections", "singletons", "sets"):
        links.extend((data.get(title) or {}).items())
    for item in data.get("results") or []:
        link = _object_link(item, request)
        if link is not None:
            links.append(link)
    return links


def _object_link(item: Any, request: Request) -> Link | None:
    if not isinstance(item, dict):
        return None
    metadata = item.get("metadata") or {}
    name = metadata.get("name")
    if not name:
        return None
    if metadata.get("namespace"):
        name = f"{metadata['namespace']}/{name}"
    collection = "/".join(request.path.split("/")[:4])
    return name, f"{collection}/{name}/"


def _verb_links(view: Any, request: Request) -> list[Link]:
    """What follows the address of an object: pages to read, and commands with a form."""
    if not view.kwargs or getattr(view, "action", "") not in _OBJECT_ACTIONS:
        return []
    address = request.path.rstrip("/")
    links: list[Link] = []
    for verb in getattr(view, "verbs", {}):
        links.append((verb, f"{address}/{verb}/"))
    return links


def _form_methods(view: Any) -> Iterator[str]:
    for method in _SUMMARIES:
        if method not in view.allowed_methods:
            continue
        operation = _operation_of(view, method)
        if operation is None:
            continue
        if operation.takes is not None or method not in _WITH_BODY:
            yield method


def _operation_of(view: Any, method: str) -> Any:
    actions = getattr(view, "action_map", None) or {}
    action = actions.get(method.lower(), method.lower())
    return getattr(view, "operations", {}).get(action)


def _write_form(method: str, view: Any, data: Any, status: int) -> dict[str, Any]:
    operation = _operation_of(view, method)
    parameters = []
    for found in operation.parameters:
        parameters.append((f"{FORM_PARAMETER}{found.name}", found.name, found.description))
    return {
        "method": method,
        "has_body": method in _WITH_BODY,
        "content": _form_content(method, view, data, status),
        "parameters": parameters,
        "dry_run": f"{FORM_PARAMETER}dry_run" if view.writes_are_dry_runnable else "",
        "summary": operation.summary or _SUMMARIES[method],
    }


def _form_content(method: str, view: Any, data: Any, status: int) -> str:
    """What a form starts with.

    After a refusal, what was typed; for a change, the object; else an example or empty fields.
    """
    typed = getattr(view.request, "raw_text", "")
    if status >= 400 and typed and view.request.method == method:
        return str(typed)
    operation = _operation_of(view, method)
    if method in ("PUT", "PATCH") and isinstance(data, dict) and "spec" in data:
        if method == "PATCH":
            return to_yaml({"spec": data["spec"]})
        return to_yaml({key: value for key, value in data.items() if key not in _STORED})
    if operation.examples:
        return to_yaml(operation.examples[0].value)
    if operation.takes is None:
        return ""
    return "\n".join(_empty_fields(operation.takes()))


def _empty_fields(shape: Any, indent: str = "") -> Iterator[str]:
    """A line for each field that can be given; a # is before those that may be left out."""
    for name, field in shape.fields.items():
        if name in _OF_EVERY_OBJECT:
            continue
        if isinstance(field, serializers.Serializer):
            yield f"{indent}{name}:"
            yield from _empty_fields(field, indent + "  ")
        else:
            mark = "# "
            if field.required:
                mark = ""
            yield f"{indent}{mark}{name}: {_empty_value(field)}"


def _empty_value(field: Any) -> str:
    if isinstance(field, serializers.ChoiceField):
        return next(iter(field.choices), "")
    if isinstance(field, serializers.BooleanField):
        return "true"
    if isinstance(field, (serializers.ListField, serializers.ListSerializer)):
        return "[]"
    if isinstance(field, serializers.DictField):
        return "{}"
    return ""


def _curl_line(request: Request) -> str:
    parts = ["curl", "-H", "Authorization: Bearer $FUMAROLE_TOKEN"]
    if request.method != "GET":
        parts += ["-X", request.method or "GET"]
        text = getattr(request, "raw_text", "")
        if text:
            parts += ["-H", "Content-Type: application/yaml", "--data-binary", text]
    parts.append(_without_format(request.build_absolute_uri()))
    return " ".join(map(_quoted, parts))


def _quoted(part: str) -> str:
    """For a shell, which is to fill in the token."""
    if part.startswith("$"):
        return part
    if "$FUMAROLE_TOKEN" in part:
        return f'"{part}"'
    return shlex.quote(part)


def _without_format(url: str) -> str:
    return url.replace("?format=api&", "?").replace("&format=api", "").replace("?format=api", "")
