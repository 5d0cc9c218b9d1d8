"""The API as pages in the site's look: each answer readable, each write with a form, and every request as a curl line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from django.template import loader
from rest_framework import renderers, serializers
from rest_framework.request import Request

from dashboard.api.formats import to_yaml

FORM_PARAMETER = "_query."
"""How the fields of a form begin that are parameters of its request."""
_WITH_BODY = ("POST", "PUT", "PATCH")
_SUMMARIES = {
    "POST": "Send it",
    "PUT": "Replace it",
    "PATCH": "Change some of its fields; what is left out stays",
    "DELETE": "Delete it",
}
_STORED = ("warnings", "changed", "status")
_OF_EVERY_OBJECT = ("apiVersion", "kind")


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
        request, response, view = context["request"], context["response"], context["view"]
        page = {
            "request": request,
            "status": response.status_code,
            "status_text": response.status_text,
            "headers": sorted(
                (name, value) for name, value in response.items() if name != "Content-Type"
            ),
            "content": json.dumps(data, indent=2, ensure_ascii=False, default=str),
            "title": _title(view),
            "crumbs": _crumbs(request),
            "links": _links(data, request),
            "verbs": _verbs(view, request),
            "problem": data if response.status_code >= 400 and isinstance(data, dict) else None,
            "forms": [
                _form(method, view, data, response.status_code)
                for method in _SUMMARIES
                if _may_have(view, method)
            ],
            "curl": _curl(request),
            "parameters": sorted(getattr(view, "known_parameters", ()))
            if request.user.is_authenticated
            else [],
        }
        if response.status_code == 204:
            response.status_code = 200
        return loader.render_to_string("rest_framework/api.html", page, request=_plain(request))


def _plain(request: Request) -> Any:
    """Django's own request, with the account that the API found."""
    plain = request._request
    plain.user = request.user
    return plain


def _title(view: Any) -> str:
    name = type(view).__name__
    place = "/".join(
        view.kwargs.get(lookup, "")
        for lookup in getattr(view, "lookups", ())
        if lookup in view.kwargs
    )
    return f"{place} · {name}" if place else name


def _crumbs(request: Request) -> list[tuple[str, str]]:
    parts = [part for part in request.path.split("/") if part]
    return [
        (part, "/" + "/".join(parts[: index + 1]) + "/")
        for index, part in enumerate(parts)
        if index > 0
    ]


def _links(data: Any, request: Request) -> list[tuple[str, str]]:
    """Where to go on: pages, and each object of a list."""
    if not isinstance(data, dict):
        return []
    pages = [
        (name.capitalize(), data[name])
        for name in ("previous", "next")
        if isinstance(data.get(name), str)
    ]
    tables = [
        (name, url)
        for title in ("collections", "singletons", "sets")
        for name, url in (data.get(title) or {}).items()
    ]
    objects = [
        _place(item, request)
        for item in data.get("results") or []
        if isinstance(item, dict) and "metadata" in item
    ]
    return pages + tables + [found for found in objects if found]


def _place(item: dict[str, Any], request: Request) -> tuple[str, str] | None:
    metadata = item.get("metadata") or {}
    if not metadata.get("name"):
        return None
    base = "/".join(request.path.split("/")[:4])
    name = (
        f"{metadata['namespace']}/{metadata['name']}"
        if metadata.get("namespace")
        else metadata["name"]
    )
    return name, f"{base}/{name}/"


def _verbs(view: Any, request: Request) -> list[tuple[str, str]]:
    """The sub-paths of an object, to be read or, with a form, to be told."""
    if not view.kwargs or getattr(view, "action", "") not in (
        "retrieve",
        "update",
        "partial_update",
    ):
        return []
    return [(verb, f"{request.path.rstrip('/')}/{verb}/") for verb in getattr(view, "verbs", {})]


def _may_have(view: Any, method: str) -> bool:
    form = _declared(view, method) if method in view.allowed_methods else None
    return form is not None and (form.takes is not None or method not in _WITH_BODY)


def _declared(view: Any, method: str) -> Any:
    actions = getattr(view, "action_map", None) or {}
    return getattr(view, "forms", {}).get(actions.get(method.lower(), method.lower()))


def _form(method: str, view: Any, data: Any, status: int) -> dict[str, Any]:
    form = _declared(view, method)
    parameters = [
        (f"{FORM_PARAMETER}{found.name}", found.name, found.description)
        for found in form.parameters
    ]
    return {
        "method": method,
        "has_body": method in _WITH_BODY,
        "content": _content(method, view, data, status),
        "parameters": parameters,
        "dry_run": f"{FORM_PARAMETER}dry_run" if view.writes_are_dry_runnable else "",
        "summary": form.summary or _SUMMARIES[method],
    }


def _content(method: str, view: Any, data: Any, status: int) -> str:
    """What a form begins with: what was typed where it was refused, the object itself where it is changed, else what can be given."""
    typed = getattr(view.request, "raw_text", "")
    if status >= 400 and typed and view.request.method == method:
        return str(typed)
    form = _declared(view, method)
    if method in ("PUT", "PATCH") and isinstance(data, dict) and "spec" in data:
        kept = {key: value for key, value in data.items() if key not in _STORED}
        return to_yaml(kept if method == "PUT" else {"spec": kept["spec"]})
    if form.examples:
        return to_yaml(form.examples[0].value)
    return "" if form.takes is None else "\n".join(_skeleton(form.takes()))


def _skeleton(shape: Any, indent: str = "") -> Iterator[str]:
    """The fields that can be given, a line for each; those that may be left out stand behind a #."""
    for name, field in shape.fields.items():
        if name in _OF_EVERY_OBJECT:
            continue
        if isinstance(field, serializers.Serializer) and not isinstance(
            field, serializers.ListSerializer
        ):
            yield f"{indent}{name}:"
            yield from _skeleton(field, indent + "  ")
        else:
            yield f"{indent}{'' if field.required else '# '}{name}: {_blank(field)}"


def _blank(field: Any) -> str:
    if isinstance(field, serializers.ChoiceField):
        return next(iter(field.choices), "")
    if isinstance(field, serializers.BooleanField):
        return "true"
    if isinstance(field, (serializers.ListField, serializers.ListSerializer)):
        return "[]"
    return "{}" if isinstance(field, serializers.DictField) else ""


def _curl(request: Request) -> str:
    parts = ["curl", "-H", "Authorization: Bearer $FUMAROLE_TOKEN"]
    if request.method != "GET":
        parts += ["-X", request.method or "GET"]
        text = getattr(request, "raw_text", "")
        if text:
            parts += ["-H", "Content-Type: application/yaml", "--data-binary", text]
    parts.append(_without_format(request.build_absolute_uri()))
    return " ".join(part if part.startswith("$") else _quoted(part) for part in parts)


def _quoted(part: str) -> str:
    return f'"{part}"' if "$FUMAROLE_TOKEN" in part else shlex.quote(part)


def _without_format(url: str) -> str:
    return url.replace("?format=api&", "?").replace("&format=api", "").replace("?format=api", "")
