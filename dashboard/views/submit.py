"""/jobs/-/new/: submit a job by form or YAML, checked before sending, or clone an old one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard.forms.job import (
    JobForm,
    form_from_manifest,
    form_from_post,
    next_name,
    queue_choices,
)
from dashboard.http.access import access, page, visibility_of
from dashboard.present.amounts import with_unit
from dashboard.present.jobs import amounts_text
from dashboard.present.reasons import CHECK_NAMES, use_words, usual_words
from dashboard.present.terminal import copies_of_manifest
from dashboard.views.common import actor
from scheduler.admission.violations import Rejected, Violation
from scheduler.documents import POLICY_LIMIT, DocumentError, read_documents
from scheduler.domain.access import Forbidden, Permission
from scheduler.models import Job, PriorityClass
from scheduler.selectors.files.manifests import stored_job
from scheduler.selectors.jobs.page import gang_named, place_at_the_end
from scheduler.selectors.queues.listing import queue_rows
from scheduler.services.jobs.forecast import Forecast, Prospect, forecast_job
from scheduler.services.jobs.submit import submit_job

Context = dict[str, Any]


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new(request: HttpRequest) -> HttpResponse:
    choices = queue_choices(queue_rows(), access(request))
    if request.method == "POST":
        return _posted(request, choices)
    manifest = _begun(request, choices)
    form = form_from_manifest(manifest)
    as_yaml = form is None or request.GET.get("as") == "yaml"
    return _render(request, choices, form or JobForm(), _text(manifest), as_yaml)


def _begun(request: HttpRequest, choices: list[Any]) -> dict[str, Any]:
    """What the page begins with: a clone, or an empty job in the queue that was asked for."""
    old = _cloned(request)
    if old is not None:
        return old
    asked = request.GET.get("queue", "")
    if any(choice.name == asked for choice in choices):
        queue = asked
    elif choices:
        queue = choices[0].name
    else:
        queue = ""
    return JobForm(queue=queue, namespace="default").manifest()


def _cloned(request: HttpRequest) -> dict[str, Any] | None:
    namespace, _, name = request.GET.get("clone", "").partition("/")
    gang = None
    if name:
        gang = gang_named(namespace, name)
    if (
        gang is None
        or gang.job is None
        or not access(request).may(Permission.VIEW, gang.queue.place)
    ):
        return None
    manifest = stored_job(gang.job)
    stem = name.rpartition("-")[0] or name
    taken = Job.objects.filter(namespace=namespace, name__startswith=stem).values_list(
        "name", flat=True
    )[:5000]
    manifest["metadata"]["name"] = next_name(name, taken)
    return manifest


def _text(manifest: object) -> str:
    return yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, width=120)


def _posted(request: HttpRequest, choices: list[Any]) -> HttpResponse:
    as_yaml, form, text = (
        request.POST.get("as") == "yaml",
        form_from_post(request.POST),
        request.POST.get("yaml", ""),
    )
    manifest, problem = _manifest(as_yaml, form, text)
    wanted = request.POST.get("do", "check")
    if wanted == "turn" and not problem:
        return _turned(request, choices, manifest, as_yaml)
    if problem:
        return _render(request, choices, form, text, as_yaml, problem=problem)
    try:
        if wanted == "submit":
            return _submit(request, manifest)
        verdict = forecast_job(manifest, by=actor(request))
    except Rejected as refusal:
        verdict = Forecast(
            Prospect.REFUSED, "It cannot be submitted as it is.", violations=refusal.violations
        )
    except Forbidden as refusal:
        verdict = Forecast(
            Prospect.REFUSED, "It cannot be submitted as it is.", violations=(_forbidden(refusal),)
        )
    return _render(
        request, choices, form, text, as_yaml, verdict=verdict, line=_line_words(verdict, manifest)
    )


def _manifest(as_yaml: bool, form: JobForm, text: str) -> tuple[Any, str]:
    if not as_yaml:
        return form.manifest(), ""
    try:
        documents: list[Any] = [
            document for document in read_documents(text, POLICY_LIMIT) if document is not None
        ]
    except DocumentError as error:
        return None, f"The YAML cannot be read: {error}"
    if len(documents) > 1 or _is_list(documents):
        if len(documents) > 1:
            number = len(documents)
        else:
            number = len(documents[0]["items"])
        return (
            None,
            f"There are {number} objects in this text. "
            "Submit one job at a time here; “vcctl apply -f” takes a file with many.",
        )
    if documents and isinstance(documents[0], dict):
        return documents[0], ""
    return None, "The YAML must be one job: a mapping with kind, metadata and spec."


def _is_list(documents: list[Any]) -> bool:
    """A kind List, as kubectl writes it."""
    return any(
        isinstance(document, dict) and isinstance(document.get("items"), list)
        for document in documents
    )


def _forbidden(refusal: Forbidden) -> Violation:
    return Violation("permission_missing", refusal.queue, "spec.queue", str(refusal), "")


def _turned(
    request: HttpRequest, choices: list[Any], manifest: Any, was_yaml: bool
) -> HttpResponse:
    """From the form to YAML, or back where the form can show it."""
    form = form_from_manifest(manifest)
    if was_yaml and form is None:
        problem = (
            "The form shows jobs with one task of one container and no policies. "
            "This one has more: it stays YAML."
        )
        return _render(request, choices, JobForm(), _text(manifest), True, problem=problem)
    return _render(request, choices, form or JobForm(), _text(manifest), not was_yaml)


def _submit(request: HttpRequest, manifest: Any) -> HttpResponse:
    submitted = submit_job(manifest, by=actor(request))
    messages.success(request, f"{submitted.job} is submitted to {submitted.job.queue.name}.")
    return redirect("job", submitted.job.namespace, submitted.job.name)


def _render(
    request: HttpRequest,
    choices: list[Any],
    form: JobForm,
    text: str,
    as_yaml: bool,
    *,
    verdict: Forecast | None = None,
    line: str = "",
    problem: str = "",
) -> HttpResponse:
    context: Context = {
        "choices": choices,
        "form": form,
        "yaml": text,
        "as_yaml": as_yaml,
        "problem": problem,
        "verdict": verdict,
        "victims": visibility_of(request).visible_pods(verdict.victims) if verdict else None,
        "failing": [_check(check) for check in verdict.checks if not check.passed]
        if verdict
        else [],
        "line": line,
        "passing": sum(1 for check in verdict.checks if check.passed) if verdict else 0,
        "verdict_title": _TITLES[verdict.prospect] if verdict else "",
        "request_words": amounts_text(verdict.request) if verdict else "",
        "alternatives": [choice for choice in choices if choice.name != form.queue][:5]
        if _is_about_the_queue(verdict)
        else [],
        "copies": copies_of_manifest(
            request,
            text if as_yaml else _text(form.manifest()),
            ["job", "run", "-f", "-"],
            "apply/",
        ),
        "priority_classes": list(PriorityClass.objects.values_list("name", "value")),
    }
    return render(request, "jobs/new.html", context, status=400 if problem else 200)


_TITLES = {
    Prospect.STARTS: "Starts now",
    Prospect.MAKES_ROOM: "Starts when others have made room",
    Prospect.WAITS: "Waits",
    Prospect.NEVER: "Can never run",
    Prospect.REFUSED: "Cannot be submitted",
}


def _check(check: Any) -> Context:
    figures = {"need": check.need, "free": max(0, check.free), "limit": check.limit}
    return {
        "where": _where(check),
        "use": use_words(check.resource, check.used, check.promised, check.admitted),
        **{name: with_unit(check.resource, amount) for name, amount in figures.items()},
    }


def _where(check: Any) -> str:
    """ "capability of vision", "largest free node n1", "the whole cluster"."""
    if check.name == "cluster":
        return "the whole cluster"
    between = " of "
    if check.name == "node":
        between = " "
    return f"{CHECK_NAMES.get(check.name, check.name)}{between}{check.level}"


def _line_words(verdict: Forecast, manifest: Mapping[str, Any]) -> str:
    """For a job that would wait: how many wait there already, and how long others waited."""
    if verdict.prospect not in (Prospect.WAITS, Prospect.MAKES_ROOM):
        return ""
    queue = str(manifest["spec"].get("queue") or "default")
    standing = place_at_the_end(queue, verdict.request)
    if standing is None:
        return ""
    who = f"{standing.waiting} wait"
    if standing.waiting == 0:
        who = "Nobody waits"
    elif standing.waiting == 1:
        who = "1 waits"
    return f"{who} in {queue} now; {usual_words(standing)}."


def _is_about_the_queue(verdict: Forecast | None) -> bool:
    if verdict is None:
        return False
    return verdict.code.startswith("Queue") or any(
        item.rule_id.startswith("queue") for item in verdict.violations
    )
