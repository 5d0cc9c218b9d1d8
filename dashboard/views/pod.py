"""/jobs/NAMESPACE/NAME/pods/POD/: one pod, what its containers have written, and its YAML."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.forms.typed import whole_number
from dashboard.http.access import access, page
from dashboard.present.jobs import may_command
from dashboard.present.object_yaml import object_document
from dashboard.views.common import actor
from dashboard.views.job import no_such_job, visible_gang
from scheduler.conf import is_kubernetes, schedules_cluster
from scheduler.domain.access import Permission
from scheduler.domain.log_lines import moved_on
from scheduler.models import Pod, PodGroup
from scheduler.selectors.files.manifests import stored_pod
from scheduler.services.cluster.pod_logs import (
    MOST_LINES,
    USUAL_LINES,
    Container,
    LogQuestion,
    PodLog,
    read_containers,
    read_log,
)

Context = dict[str, Any]
_NUMBERS_OF_LINES = (50, USUAL_LINES, 1000, MOST_LINES)
_MAY_WRITE = ("Pending", "Binding", "Bound", "Running", "Releasing", "Unknown")


@require_safe
@page
def pod(request: HttpRequest, namespace: str, name: str, pod_name: str) -> HttpResponse:
    gang = visible_gang(request, namespace, name)
    if gang is None:
        return no_such_job(request, namespace, name)
    found = _pod_of(gang, pod_name)
    if found is None:
        return _no_such_pod(request, namespace, name, pod_name)
    document = object_document(
        "Pod",
        found.name,
        found.namespace,
        stored=stored_pod(found),
        with_values=access(request).may(Permission.OPERATE, gang.queue.place),
    )
    context = {
        "gang": gang,
        "pod": found,
        "documents": [document],
        **_log_context(request, gang, found),
    }
    return render(request, "jobs/pod.html", context)


@require_safe
@page
def pod_log(request: HttpRequest, namespace: str, name: str, pod_name: str) -> HttpResponse:
    """The log alone, as a file. It is as long as can be read at once."""
    gang = visible_gang(request, namespace, name)
    if gang is None:
        return no_such_job(request, namespace, name)
    found = _pod_of(gang, pod_name)
    if found is None:
        return _no_such_pod(request, namespace, name, pod_name)
    question = LogQuestion(
        container=request.GET.get("container", ""),
        lines=MOST_LINES,
        previous=_is_ticked(request, "previous"),
    )
    log = read_log(actor(request), found, question)
    text = log.written(with_times=_is_ticked(request, "times"))
    if log.problem:
        text = f"{log.problem}\n"
    status = 409 if log.problem else 200
    headers = {"Content-Disposition": f'attachment; filename="{quote(found.name)}.log"'}
    return HttpResponse(
        text, content_type="text/plain; charset=utf-8", status=status, headers=headers
    )


def _pod_of(gang: PodGroup, name: str) -> Pod | None:
    pods = gang.pods.filter(name=name)
    return pods.select_related("podgroup__queue", "pod_class", "node").first()


def _no_such_pod(request: HttpRequest, namespace: str, name: str, pod_name: str) -> HttpResponse:
    words = f"{namespace}/{name} has no pod {pod_name[:253]}. It may have been deleted."
    return render(request, "404.html", {"missing": words}, status=404)


def _log_context(request: HttpRequest, gang: PodGroup, found: Pod) -> Context:
    """How its containers are, and the last lines of one, for those who may read them."""
    containers = read_containers(found)
    context: Context = {
        "has_logs": schedules_cluster() or not is_kubernetes(),
        "containers": containers,
        "container": _chosen_container(request, containers),
    }
    reader = request.user.get_username()
    may_read = may_command(access(request), reader, gang.queue.place, gang.owner)
    if not context["has_logs"] or not may_read:
        return context
    question = LogQuestion(
        container=context["container"],
        lines=_chosen_lines(request),
        previous=_is_ticked(request, "previous"),
    )
    log = read_log(actor(request), found, question)
    return {**context, **_shown_log(request, found, question, log)}


def _shown_log(request: HttpRequest, found: Pod, question: LogQuestion, log: PodLog) -> Context:
    with_times = _is_ticked(request, "times")
    asked = {"container": question.container}
    if question.previous:
        asked["previous"] = "true"
    if with_times:
        asked["times"] = "true"
    address = reverse("pod-log", args=[found.namespace, found.podgroup.name, found.name])
    place = f"{quote(found.namespace)}/{quote(found.name)}"
    return {
        "log": log,
        "log_text": log.written(with_times),
        "times": with_times,
        "previous": question.previous,
        "lines": question.lines,
        "numbers_of_lines": _NUMBERS_OF_LINES,
        "download": f"{address}?{urlencode(asked)}",
        "follow": f"/api/v1/pods/{place}/log/follow/",
        "position": moved_on(None, log.lines) or "",
        "may_follow": found.phase in _MAY_WRITE and not question.previous,
    }


def _chosen_container(request: HttpRequest, containers: tuple[Container, ...]) -> str:
    names = [each.name for each in containers]
    chosen = request.GET.get("container", "")
    if chosen in names:
        return chosen
    return names[-1] if names else ""


def _chosen_lines(request: HttpRequest) -> int:
    number = whole_number(request.GET.get("lines", "")) or USUAL_LINES
    return max(1, min(number, MOST_LINES))


def _is_ticked(request: HttpRequest, name: str) -> bool:
    return request.GET.get(name) == "true"
