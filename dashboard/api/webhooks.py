"""/admission/…: Kubernetes admission webhooks.

An AdmissionReview comes in, the same rules as everywhere answer it, and nothing is written.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, JsonResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from dashboard.http.proxies import is_from_this_machine
from scheduler.admission.defaults import json_patch
from scheduler.admission.reading.queue import JOB_VERSIONS, POD_VERSIONS, SCHEDULING_VERSIONS
from scheduler.admission.reading.reader import shown
from scheduler.admission.reviews import Request
from scheduler.admission.rules.backlogs import FORBIDDEN_BY_STATE
from scheduler.admission.rules.queues import STATE_RULES
from scheduler.admission.violations import Verdict, Violation
from scheduler.documents import refuse_half_characters
from scheduler.services.cluster.reviews import defaults_now, review_now

REVIEW_VERSIONS = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")

# What each address reviews: the kind, and the API versions it may come in.
_KINDS = {
    "queues": ("Queue", SCHEDULING_VERSIONS),
    "podgroups": ("PodGroup", SCHEDULING_VERSIONS),
    "jobs": ("Job", JOB_VERSIONS),
    "pods": ("Pod", POD_VERSIONS),
}
_BY_STATE = STATE_RULES | FORBIDDEN_BY_STATE
_LONGEST_UID = 1024
# The API server deletes one object at a time.
_CONSOLE_ONLY = ", or the whole subtree at once (cascade=true)"


class MalformedReview(Exception):
    """What came is not an AdmissionReview that can be answered."""


@dataclass(frozen=True, slots=True)
class Review:
    version: str
    uid: str
    kind: str  # as far as it could be read, for the answer
    is_known_kind: bool
    subresource: str
    request: Request


@csrf_exempt
@require_POST
def validate(request: HttpRequest, kind: str) -> JsonResponse:
    """May this object be created, changed or deleted?"""
    return _answer_review(request, kind, _validation)


@csrf_exempt
@require_POST
def mutate(request: HttpRequest, kind: str) -> JsonResponse:
    """What is filled in when this object is created, as a JSON patch."""
    return _answer_review(request, kind, _mutation)


def _answer_review(
    request: HttpRequest,
    kind: str,
    answer: Callable[[Review, str], dict[str, Any]],
) -> JsonResponse:
    refusal = _refuse_caller(request)
    if refusal:
        return refusal
    try:
        review = read_review(_read_body(request), kind)
        if review.is_known_kind:
            response = answer(review, kind)
        else:
            response = _refused(_wrong_kind(review, kind))
    except MalformedReview as problem:
        return _problem_response(400, "Malformed AdmissionReview", str(problem))
    except RequestDataTooBig:
        message = f"The review is larger than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes."
        return _problem_response(413, "Too large", message)
    except RecursionError:
        message = "The review is nested too deeply to be read."
        return _problem_response(400, "Malformed AdmissionReview", message)
    body = {
        "apiVersion": review.version,
        "kind": "AdmissionReview",
        "response": {"uid": review.uid, **response},
    }
    return JsonResponse(body)


def _refuse_caller(request: HttpRequest) -> JsonResponse | None:
    """With a token set, whoever has it may ask; without one, only this machine.

    ADMISSION_PUBLIC serves everybody who reaches it, for a network that only the cluster is in.
    """
    if settings.ADMISSION_TOKEN:
        return _refuse_token(request)
    if settings.ADMISSION_PUBLIC or is_from_this_machine(request):
        return None
    message = "Admission is served to this machine only; set ADMISSION_TOKEN to serve others."
    return _problem_response(403, "Not from here", message)


def _refuse_token(request: HttpRequest) -> JsonResponse | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    is_right = constant_time_compare(token.strip(), settings.ADMISSION_TOKEN)
    if scheme.lower() == "bearer" and is_right:
        return None
    message = "Send the admission token as “Authorization: Bearer …”."
    response = _problem_response(401, "Token needed", message)
    response["WWW-Authenticate"] = "Bearer"
    return response


def _problem_response(status: int, title: str, detail: str) -> JsonResponse:
    body = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "violations": [],
        "warnings": [],
    }
    return JsonResponse(body, status=status, content_type="application/problem+json")


def _read_body(request: HttpRequest) -> object:
    try:
        text = request.body.decode("utf-8")
        value: object = json.loads(text, parse_constant=_no_number)
        refuse_half_characters(text, value)
    except ValueError as error:
        raise MalformedReview(f"The body is not JSON: {error}.") from error
    return value


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def read_review(body: object, kind: str) -> Review:
    """The parts of the review that matter. `MalformedReview` says what is missing or wrong."""
    whole = _object(body, "The body")
    if whole.get("kind") != "AdmissionReview":
        raise MalformedReview(f"kind is {shown(whole.get('kind'))}; it must be AdmissionReview.")
    version = whole.get("apiVersion")
    if version not in REVIEW_VERSIONS:
        raise MalformedReview(
            f"apiVersion is {shown(version)}; it must be {' or '.join(REVIEW_VERSIONS)}."
        )
    request = _object(whole.get("request"), "request")
    operation = _text(request, "operation")
    return Review(
        version=str(version),
        uid=_text(request, "uid"),
        kind=_kind_in_words(request),
        is_known_kind=_is_known_kind(request, kind),
        subresource=_text(request, "subResource", required=False),
        request=Request(
            operation=operation,
            name=_text(request, "name", required=False),
            new=_embedded(request, "object", needed=operation in ("CREATE", "UPDATE")),
            old=_embedded(request, "oldObject", needed=False),
            namespace=_text(request, "namespace", required=False),
            user=_user(request),
            groups=_groups(request),
        ),
    )


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise MalformedReview(f"{what} is missing or not an object.")
    return value


def _text(request: Mapping[str, Any], key: str, *, required: bool = True) -> str:
    value = request.get(key)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value) or len(value) > _LONGEST_UID:
        raise MalformedReview(f"request.{key} is missing or not a text.")
    return value


def _user(request: Mapping[str, Any]) -> str:
    """Who asks; "" where nobody is named."""
    given = request.get("userInfo")
    name = None
    if isinstance(given, Mapping):
        name = given.get("username")
    if isinstance(name, str) and name.isprintable():
        return name
    return ""


def _groups(request: Mapping[str, Any]) -> frozenset[str]:
    given = request.get("userInfo")
    groups = None
    if isinstance(given, Mapping):
        groups = given.get("groups")
    if not isinstance(groups, list):
        return frozenset()
    return frozenset(name for name in groups if isinstance(name, str))


def _embedded(request: Mapping[str, Any], key: str, *, needed: bool) -> object:
    value = request.get(key)
    if needed or value is not None:
        return _object(value, f"request.{key}")
    return None


def _kind_in_words(request: Mapping[str, Any]) -> str:
    given = request.get("kind") or request.get("resource")
    if not isinstance(given, Mapping):
        raise MalformedReview("request.kind is missing or not an object.")
    name = given.get("kind") or given.get("resource")
    parts = (given.get("group"), given.get("version"), name)
    return shown("/".join(str(part) for part in parts if part))


def _is_known_kind(request: Mapping[str, Any], kind: str) -> bool:
    """The kind and, where it is given, the resource are those of this address."""
    singular, versions = _KINDS[kind]
    for key, name in (("kind", singular), ("resource", kind)):
        part = request.get(key)
        if not isinstance(part, Mapping):
            continue
        if part.get(key) != name or _group_version(part) not in versions:
            return False
    return True


def _group_version(part: Mapping[str, Any]) -> str:
    group = part.get("group") or ""
    version = part.get("version") or ""
    if not group:
        return str(version)
    return f"{group}/{version}"


def _wrong_kind(review: Review, kind: str) -> Verdict:
    singular, versions = _KINDS[kind]
    message = (
        f"{review.kind} is not reviewed here; "
        f"this address reviews {singular} of {' and '.join(versions)}."
    )
    return Verdict((Violation("invalid_kind", "", "kind", message),))


def _validation(review: Review, kind: str) -> dict[str, Any]:
    if review.subresource == "status":  # it is observed, not asked for: nothing can be refused
        return {"allowed": True}
    if review.subresource:
        message = f"The sub-resource {shown(review.subresource)} is not reviewed here."
        return _refused(Verdict((Violation("invalid_operation", "", "subResource", message),)))
    verdict = review_now(kind, review.request)
    if verdict.allowed:
        return _allowed(verdict)
    return _refused(verdict)


def _mutation(review: Review, kind: str) -> dict[str, Any]:
    if review.subresource:
        return {"allowed": True}
    verdict, defaults = defaults_now(kind, review.request)
    if not verdict.allowed:
        return _refused(verdict)
    if not defaults or not isinstance(review.request.new, Mapping):
        return _allowed(verdict)
    patch = json.dumps(json_patch(review.request.new, defaults)).encode()
    return {
        **_allowed(verdict),
        "patchType": "JSONPatch",
        "patch": base64.b64encode(patch).decode(),
    }


def _allowed(verdict: Verdict) -> dict[str, Any]:
    answer: dict[str, Any] = {"allowed": True}
    warnings = [notice.message for notice in verdict.notices]
    if warnings:
        answer["warnings"] = warnings
    return answer


def _refused(verdict: Verdict) -> dict[str, Any]:
    causes = [_cause_json(violation) for violation in verdict.violations]
    status = {
        "status": "Failure",
        "code": 400,
        "reason": "BadRequest",
        "message": " ".join(_with_fix(violation) for violation in verdict.violations),
        "details": {"causes": causes},
    }
    if all(violation.rule_id in _BY_STATE for violation in verdict.violations):
        status |= {"code": 409, "reason": "Conflict"}
    return {**_allowed(verdict), "allowed": False, "status": status}


def _cause_json(violation: Violation) -> dict[str, str]:
    return {
        "reason": violation.rule_id,
        "field": violation.field,
        "message": _with_fix(violation),
    }


def _with_fix(violation: Violation) -> str:
    """kubectl shows the message alone, so it says what to do about it too."""
    fix = violation.fix.replace(_CONSOLE_ONLY, "")
    if not fix:
        return violation.message
    return f"{violation.message} {fix[0].upper()}{fix[1:]}."
