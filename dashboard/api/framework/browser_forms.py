"""Forms of the browsable pages: a browser can only POST, so their fields say what was meant."""

from __future__ import annotations

from django.http import HttpRequest

from dashboard.api.framework.browsable import FORM_PARAMETER
from dashboard.api.framework.formats import FormParser, MultiPartFormParser

_FORM_TYPES = (FormParser.media_type, MultiPartFormParser.media_type)
_OTHER_METHODS = ("PUT", "PATCH", "DELETE")


def unpack_form(request: HttpRequest) -> None:
    """Give the request the method and the query parameters that its form names."""
    if request.method != "POST" or request.content_type not in _FORM_TYPES:
        return
    request.body  # noqa: B018 - kept: once the form's fields are read, it cannot be read any more
    _take_method(request)
    _take_parameters(request)


def _take_method(request: HttpRequest) -> None:
    method = request.POST.get("_method", "").upper()
    if method not in _OTHER_METHODS:
        return
    request.method = method
    # Django looks for the CSRF token of these methods in a header.
    token = request.POST.get("csrfmiddlewaretoken", "")
    request.META.setdefault("HTTP_X_CSRFTOKEN", token)


def _take_parameters(request: HttpRequest) -> None:
    """Empty fields are left out."""
    given: dict[str, str] = {}
    for name, text in request.POST.items():
        if name.startswith(FORM_PARAMETER) and text:
            given[name.removeprefix(FORM_PARAMETER)] = str(text)
    if not given:
        return
    asked = request.GET.copy()
    asked.update(given)
    request.GET = asked  # type: ignore[assignment]
    request.META["QUERY_STRING"] = asked.urlencode()  # the page shows what was asked
