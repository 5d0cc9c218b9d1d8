"""JSON and YAML in and out: one shape in both, read without trust, written the short way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from django.conf import settings
from rest_framework import parsers, renderers
from rest_framework.request import Request
from rest_framework.utils import encoders

from dashboard.api.errors import Refusal
from dashboard.api.json_cache import Page
from scheduler.admission.violations import Violation
from scheduler.documents import DocumentError, HalfCharacter, read_documents, read_json

YAML_TYPE = "application/yaml"
_UTF8 = ("", "utf-8", "utf8", "us-ascii")


def body_text(stream: Any, parser_context: Mapping[str, Any] | None, media_type: str | None) -> str:
    """The body as text. Refuses what is larger than the server reads and what is not UTF-8."""
    charset = _charset(media_type)
    if charset not in _UTF8:
        raise Refusal(
            f"The encoding {charset[:40]} is not read; send UTF-8.",
            code=415,
            kind="unsupported-encoding",
        )
    raw: bytes = stream.read(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
    if len(raw) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise Refusal(
            "The request is larger than this server reads. Send it in parts.",
            code=413,
            kind="too-large",
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refusal(
            f"The body is not UTF-8: byte {error.start} can not be read.", kind="not-utf-8"
        ) from None
    if parser_context and parser_context.get("request") is not None:
        parser_context["request"].raw_text = text
    return text


def _charset(media_type: str | None) -> str:
    for part in (media_type or "").split(";")[1:]:
        name, _, value = part.strip().partition("=")
        if name.lower() == "charset":
            return value.strip("\"' ").lower()
    return ""


def _unreadable(message: str, error: DocumentError) -> Refusal:
    """What is wrong with a single value names its field, as everything else does."""
    field = error.field if isinstance(error, HalfCharacter) else ""
    violations = (
        [Violation("invalid_text", "", field, message, "write the whole character")]
        if field
        else []
    )
    return Refusal(message, kind="unreadable", violations=violations)


class StrictJSONParser(parsers.BaseParser):
    """JSON as the standard has it, nested 40 deep at most, each key once; numbers with a point keep all their digits."""

    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        text = body_text(stream, parser_context, media_type)
        if not text.strip():
            return {}
        try:
            return read_json(text)
        except DocumentError as error:
            raise _unreadable(f"The body can not be read: {error}.", error) from None


class MergePatchParser(StrictJSONParser):
    media_type = "application/merge-patch+json"


class SafeYAMLParser(parsers.BaseParser):
    """YAML without anchors, aliases and tags. Several documents are a list, to whoever takes one."""

    media_type = YAML_TYPE

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        text = body_text(stream, parser_context, media_type)
        try:
            found = [document for document in read_documents(text) if document is not None]
        except DocumentError as error:
            raise _unreadable(f"The body can not be read: {error}.", error) from None
        return found[0] if len(found) == 1 else found or {}


class OldYAMLParser(SafeYAMLParser):
    media_type = "application/x-yaml"


class FormParser(parsers.BaseParser):
    """The browsable pages' forms: the text of the object in `_content`, JSON or YAML as `_content_type` says."""

    media_type = "application/x-www-form-urlencoded"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        request: Request = (parser_context or {})["request"]
        form = request._request.POST
        text = form.get("_content", "")
        request.raw_text = text  # type: ignore[attr-defined]
        try:
            if form.get("_content_type", YAML_TYPE) == "application/json":
                return read_json(text) if text.strip() else {}
            found = [document for document in read_documents(text) if document is not None]
        except DocumentError as error:
            raise _unreadable(f"The text can not be read: {error}.", error) from None
        return found[0] if len(found) == 1 else found or {}


class MultiPartFormParser(FormParser):
    media_type = "multipart/form-data"


class JSONRenderer(renderers.JSONRenderer):
    encoder_class = encoders.JSONEncoder
    ensure_ascii = False
    compact = True

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        if isinstance(data, Page):
            return data.encode()
        rendered: bytes = super().render(data, accepted_media_type, renderer_context)
        return rendered


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> Any:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(value: Any) -> str:
    return yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=120,
    )


class YAMLRenderer(renderers.BaseRenderer):
    """The same shape as JSON; a list of objects becomes several documents where that was asked for."""

    media_type = YAML_TYPE
    format = "yaml"
    charset = "utf-8"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        if data is None:
            return b""
        if isinstance(data, Documents):
            return "---\n".join(to_yaml(document) for document in data).encode()
        return to_yaml(data).encode()


class Documents(list):  # type: ignore[type-arg]
    """Objects that are written as separate YAML documents."""


class _Whole(renderers.BaseRenderer):
    """Chosen by `Accept` or `format`; the answer is a stream (dashboard/http/exports.py) and never comes by here."""

    charset = "utf-8"


class CSVRenderer(_Whole):
    media_type = "text/csv"
    format = "csv"


class LinesRenderer(_Whole):
    """One JSON object a line."""

    media_type = "application/x-ndjson"
    format = "ndjson"
