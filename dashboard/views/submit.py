"""/jobs/-/new/: submit a job by form or YAML, checked before sending, or clone an old one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
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
from dashboard.views.common import actor, status_for, watched_only
from scheduler.admission.violations import Rejected, Violation
from scheduler.documents import POLICY_LIMIT, DocumentError, read_documents
from scheduler.domain.access import Forbidden, Permission
from scheduler.models import Job, PriorityClass
from scheduler.selectors.files.manifests import stored_job
from scheduler.selectors.jobs.page import gang_named, place_at_the_end
from scheduler.selectors.queues.listing import queue_rows
from scheduler.services.change_sets.preview import MOST_MINUTES
from scheduler.services.change_sets.preview_runs import start_preview
from scheduler.services.cluster.mirrored import how_to_change, may_be_changed_here
from scheduler.services.cluster.queue_writes import SENT_TO_CLUSTER
from scheduler.services.jobs.forecast import Forecast, Prospect, forecast_job
from scheduler.services.jobs.submit import submit_job
from scheduler.yaml_texts import to_yaml

Context = dict[str, Any]


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new(request: HttpRequest) -> HttpResponse:
    choices = queue_choices(queue_rows(), access(request))
    if request.method == "POST":
        return _posted(request, choices)
    if not may_be_changed_here("Job"):
        return watched_only(request, "Submit a job", how_to_change("Job"), reverse("jobs"))
    manifest = _begun(request, choices)
    form = form_from_manifest(manifest)
    as_yaml = form is None or request.GET.get("as") == "yaml"
    return _render(request, choices, form or JobForm(), _text(manifest), as_yaml)


def _begun(request: HttpRequest, choices: list[Any]) -> dict[str, Any]:
    """What the page begins with: a clone, or an empty job in the queue that was asked for."""
    old = _cloned(request)
    if old is not None:
        return old
    names = [choice.name for choice in choices]
    queue = request.GET.get("queue", "")
    if queue not in names:
        queue = next(iter(names), "")
    return JobForm(queue=queue, namespace="default").manifest()


def _cloned(request: HttpRequest) -> dict[str, Any] | None:
    namespace, _, name = request.GET.get("clone", "").partition("/")
    gang = None
    if name:
        gang = gang_named(namespace, name)
    if gang is None or gang.job is None:
        return None
    if not access(request).may(Permission.VIEW, gang.queue.place):
        return None
    manifest = stored_job(gang.job)
    stem = name.rpartition("-")[0] or name
    alike = Job.objects.filter(namespace=namespace, name__startswith=stem)
    taken = alike.values_list("name", flat=True)[:5000]
    manifest["metadata"]["name"] = next_name(name, taken)
    return manifest


def _text(manifest: object) -> str:
    return to_yaml(manifest)


def _posted(request: HttpRequest, choices: list[Any]) -> HttpResponse:
    as_yaml = request.POST.get("as") == "yaml"
    form = form_from_post(request.POST)
    text = request.POST.get("yaml", "")
    manifest, problem = _manifest(as_yaml, form, text)
    wanted = request.POST.get("do", "check")
    if wanted == "turn" and not problem:
        return _turned(request, choices, manifest, as_yaml)
    if problem:
        return _render(request, choices, form, text, as_yaml, problem=problem)
    try:
        if wanted == "submit":
            return _submit(request, manifest)
        if wanted == "preview":
            return _preview(request, manifest)
        verdict = forecast_job(manifest, by=actor(request))
    except Rejected as refusal:
        verdict = _refused(refusal.violations)
    except Forbidden as refusal:
        verdict = _refused([_forbidden(refusal)])
    line = _line_words(verdict, manifest)
    return _render(request, choices, form, text, as_yaml, verdict=verdict, line=line)


def _refused(violations: Iterable[Violation]) -> Forecast:
    message = "It cannot be submitted as it is."
    return Forecast(Prospect.REFUSED, message, violations=tuple(violations))


def _manifest(as_yaml: bool, form: JobForm, text: str) -> tuple[Any, str]:
    """The job that was given, and the problem where there is none."""
    if not as_yaml:
        return form.manifest(), ""
    try:
        read = read_documents(text, POLICY_LIMIT)
        documents: list[Any] = [document for document in read if document is not None]
    except DocumentError as error:
        return None, f"The YAML cannot be read: {error}"
    number = _number_of_objects(documents)
    if number is not None:
        problem = (
            f"There are {number} objects in this text. "
            "Submit one job at a time here; “vcctl apply -f” takes a file with many."
        )
        return None, problem
    if documents and isinstance(documents[0], dict):
        return documents[0], ""
    return None, "The YAML must be one job: a mapping with kind, metadata and spec."


def _number_of_objects(documents: list[Any]) -> int | None:
    """How many there are in several documents or in one kind List; None for a single object."""
    if len(documents) > 1:
        return len(documents)
    for document in documents:
        if isinstance(document, dict) and isinstance(document.get("items"), list):
            return len(document["items"])
    return None


def _forbidden(refusal: Forbidden) -> Violation:
    return Violation("permission_missing", refusal.queue, "spec.queue", str(refusal), "")


def _turned(
    request: HttpRequest,
    choices: list[Any],
    manifest: Any,
    was_yaml: bool,
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
    words = f"{submitted.job} is submitted to {submitted.job.queue.name}."
    if submitted.job.pk is None:  # a real cluster has it, and has not told of it yet
        messages.success(request, f"{words} {SENT_TO_CLUSTER}")
        return redirect("jobs")
    messages.success(request, words)
    return redirect("job", submitted.job.namespace, submitted.job.name)


def _preview(request: HttpRequest, manifest: Any) -> HttpResponse:
    """When it would start and who would wait for it, worked out in the background."""
    document = {**manifest, "kind": manifest.get("kind") or "Job"}
    made = start_preview(by=actor(request), documents=[document], minutes=MOST_MINUTES)
    return redirect("preview", made.pk)


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
    manifest_text = text
    if not as_yaml:
        manifest_text = _text(form.manifest())
    context: Context = {
        "choices": choices,
        "form": form,
        "yaml": text,
        "as_yaml": as_yaml,
        "problem": problem,
        "line": line,
        "copies": copies_of_manifest(request, manifest_text, ["job", "run", "-f", "-"], "apply/"),
        "priority_classes": list(PriorityClass.objects.values_list("name", "value")),
        "verdict": verdict,
        "alternatives": [],
    }
    if verdict is not None:
        context |= _verdict_context(request, verdict)
        if _is_about_the_queue(verdict):
            others = [choice for choice in choices if choice.name != form.queue]
            context["alternatives"] = others[:5]
    return render(request, "jobs/new.html", context, status=status_for(problem))


def _verdict_context(request: HttpRequest, verdict: Forecast) -> Context:
    failing = [check for check in verdict.checks if not check.passed]
    return {
        "verdict_title": _TITLES[verdict.prospect],
        "request_words": amounts_text(verdict.request),
        "victims": visibility_of(request).visible_pods(verdict.victims),
        "failing": [_check(check) for check in failing],
        "passing": len(verdict.checks) - len(failing),
    }


_TITLES = {
    Prospect.STARTS: "Starts now",
    Prospect.MAKES_ROOM: "Starts when others have made room",
    Prospect.WAITS: "Waits",
    Prospect.NEVER: "Can never run",
    Prospect.REFUSED: "Cannot be submitted",
}


def _check(check: Any) -> Context:
    resource = check.resource
    return {
        "where": _where(check),
        "use": use_words(resource, check.used, check.promised, check.admitted),
        "need": with_unit(resource, check.need),
        "free": with_unit(resource, max(0, check.free)),
        "limit": with_unit(resource, check.limit),
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


def _is_about_the_queue(verdict: Forecast) -> bool:
    if verdict.code.startswith("Queue"):
        return True
    return any(item.rule_id.startswith("queue") for item in verdict.violations)
