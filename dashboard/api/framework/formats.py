"""JSON and YAML in and out: the same shape in both, read strictly."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from rest_framework import parsers, renderers
from rest_framework.request import Request
from rest_framework.utils import encoders

from dashboard.api.framework.errors import Refusal
from dashboard.api.framework.json_cache import JsonPage
from scheduler.admission.violations import Violation
from scheduler.documents import DocumentError, HalfCharacter, read_documents, read_json
from scheduler.yaml_texts import to_yaml

YAML_TYPE = "application/yaml"
_UTF8 = ("", "utf-8", "utf8", "us-ascii")


def body_text(stream: Any, parser_context: Mapping[str, Any] | None, media_type: str | None) -> str:
    """The body as text. Raises `Refusal` where it is too large or not UTF-8."""
    charset = _charset(media_type)
    if charset not in _UTF8:
        message = f"The encoding {charset[:40]} is not read; send UTF-8."
        raise Refusal(message, code=415, problem_type="unsupported-encoding")
    raw: bytes = stream.read(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
    if len(raw) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        message = "The request is larger than this server reads. Send it in parts."
        raise Refusal(message, code=413, problem_type="too-large")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"The body is not UTF-8: byte {error.start} cannot be read."
        raise Refusal(message, problem_type="not-utf-8") from None
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
    """Names the field where a single value is wrong."""
    violations = []
    if isinstance(error, HalfCharacter) and error.field:
        fix = "write the whole character"
        violations.append(Violation("invalid_text", "", error.field, message, fix))
    return Refusal(message, problem_type="unreadable", violations=violations)


def _read_yaml(text: str) -> Any:
    """One document as it is, several as a list."""
    found = [document for document in read_documents(text) if document is not None]
    if len(found) == 1:
        return found[0]
    return found or {}


def _read_json(text: str) -> Any:
    if not text.strip():
        return {}
    return read_json(text)


class _TextParser(parsers.BaseParser):
    """A body that is one text."""

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        text = body_text(stream, parser_context, media_type)
        try:
            return self.read_text(text)
        except DocumentError as error:
            raise _unreadable(f"The body cannot be read: {error}.", error) from None

    @abstractmethod
    def read_text(self, text: str) -> Any:
        """The value that is written in this text."""


class StrictJSONParser(_TextParser):
    """JSON as in the standard, nested at most 40 deep, each key once.

    Numbers with a decimal point keep all their digits.
    """

    media_type = "application/json"

    def read_text(self, text: str) -> Any:
        return _read_json(text)


class MergePatchParser(StrictJSONParser):
    media_type = "application/merge-patch+json"


class SafeYAMLParser(_TextParser):
    """YAML without anchors, aliases and tags. Several documents are read as a list."""

    media_type = YAML_TYPE

    def read_text(self, text: str) -> Any:
        return _read_yaml(text)


class OldYAMLParser(SafeYAMLParser):
    media_type = "application/x-yaml"


class FormParser(parsers.BaseParser):
    """Forms of the browsable pages: the object's text is in `_content`.

    `_content_type` says whether it is JSON or YAML.
    """

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
                return _read_json(text)
            return _read_yaml(text)
        except DocumentError as error:
            raise _unreadable(f"The text cannot be read: {error}.", error) from None


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
        if isinstance(data, JsonPage):
            return data.encode()
        rendered: bytes = super().render(data, accepted_media_type, renderer_context)
        return rendered


class YAMLRenderer(renderers.BaseRenderer):
    """The same shape as JSON. `Documents` are written as several YAML documents."""

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


class _ExportRenderer(renderers.BaseRenderer):
    """Only chosen, by `Accept` or `format`; the answer is a stream (dashboard/http/exports.py)."""

    charset = "utf-8"


class CSVRenderer(_ExportRenderer):
    media_type = "text/csv"
    format = "csv"


class EventStreamRenderer(_ExportRenderer):
    """Of dashboard/http/log_stream.py."""

    media_type = "text/event-stream"
    format = "events"


class LinesRenderer(_ExportRenderer):
    """One JSON object a line."""

    media_type = "application/x-ndjson"
    format = "ndjson"
