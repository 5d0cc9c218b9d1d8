"""/jobs/NAMESPACE/NAME/ and its tabs: why it waits, its gang, its tasks, what happened to it; and the commands for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import yaml
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.choices import checked_word
from dashboard.forms.typed import whole_number
from dashboard.http.access import access, page, visibility_of
from dashboard.http.visibility import OtherJob, Visibility
from dashboard.present.gang_grid import gang_grid, gang_sentence
from dashboard.present.jobs import VERBS, Verb, amounts_text, may_command, obstacle, present_job
from dashboard.present.reasons import reason_card
from dashboard.present.terminal import copies
from dashboard.views.common import actor, wants_fragment
from scheduler.admission.violations import Rejected, in_words
from scheduler.domain.access import Permission
from scheduler.domain.evictions import why_evicted
from scheduler.domain.jobs import NotPossible
from scheduler.domain.resources import Resources
from scheduler.models import Eviction, Pod, PodGroup
from scheduler.models.workload import POD_PHASES
from scheduler.selectors.files.manifests import stored_job, stored_podgroup
from scheduler.selectors.jobs.listing import job_rows
from scheduler.selectors.jobs.page import (
    MOST_RECORDS,
    PODS_A_PAGE,
    events_of,
    evictions_of,
    gang_named,
    members_of,
    pods_of,
    tasks_of,
)
from scheduler.selectors.jobs.pod_conditions import pod_conditions
from scheduler.selectors.jobs.timeline import timeline_of
from scheduler.services.jobs.submit import command_job

Context = dict[str, Any]
_LAST_POD = 10_000_000
TABS = {
    "": "Gang",
    "timeline": "Timeline",
    "events": "Events",
    "evictions": "Evictions",
    "yaml": "YAML",
}


@require_safe
@page
def job(request: HttpRequest, namespace: str, name: str, tab: str = "") -> HttpResponse:
    gang = _seen(request, namespace, name)
    if gang is None:
        return no_such_job(request, namespace, name)
    tab = "" if tab == "members" else tab
    context = (
        _header(request, gang)
        | _TAB_CONTEXT[tab](request, gang)
        | {"tab": tab, "tabs": _tabs(gang)}
    )
    return render(request, "jobs/job.html", context)


def _seen(request: HttpRequest, namespace: str, name: str) -> PodGroup | None:
    """None when it is not there, or in a queue that the reader may not know of."""
    gang = gang_named(namespace, name)
    return (
        gang
        if gang is not None and access(request).may(Permission.VIEW, gang.queue.place)
        else None
    )


def no_such_job(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    words = f"There is no job {namespace}/{name}. It may have been deleted, or be in a queue that you may not see."
    return render(request, "404.html", {"missing": words}, status=404)


def _tabs(gang: PodGroup) -> list[Context]:
    base = reverse("job", args=[gang.namespace, gang.name])
    return [
        {"key": key, "title": title, "url": f"{base}{key}/" if key else base}
        for key, title in TABS.items()
    ]


def _header(request: HttpRequest, gang: PodGroup) -> Context:
    row = present_job(job_rows([gang])[0])
    may = gang.job is not None and may_command(
        access(request), request.user.get_username(), gang.queue.place, gang.owner
    )
    may_see = partial(access(request).may, Permission.VIEW)
    return {
        "gang": gang,
        "row": row,
        "may": may,
        "verbs": [
            {"verb": verb, "obstacle": obstacle(row["phase"], verb)} for verb in VERBS.values()
        ]
        if gang.job
        else [],
        "gang_sentence": gang_sentence(gang, row["placed"], row["is_waiting"]),
        "reason": reason_card(gang, may_see)
        if row["is_waiting"] and row["placed"] < row["needed"]
        else None,
        **(
            {}
            if gang.job
            else {"json_url": f"/api/v1/podgroups/{quote(gang.namespace)}/{quote(gang.name)}/"}
        ),
        "may_clone": gang.job is not None and access(request).may_anywhere(Permission.SUBMIT),
    }


# The tabs


def _gang(request: HttpRequest, gang: PodGroup) -> Context:
    phase, start = checked_word(request.GET, "pods", POD_PHASES), _start(request)
    pods = pods_of(gang, phase, start)
    base = reverse("job", args=[gang.namespace, gang.name])
    members = members_of(gang)
    return {
        "pods": [_pod(pod) for pod in pods[:PODS_A_PAGE]],
        "grid": gang_grid(members, gang.min_member),
        "tasks": _tasks(gang),
        "counts": Counter(member.phase for member in members).most_common(),
        "phase": phase,
        "first": start + 1,
        "last": start + min(len(pods), PODS_A_PAGE),
        "whole": sum(1 for member in members if phase in ("", member.phase)),
        "further": _pods_url(base, phase, start + PODS_A_PAGE) if len(pods) > PODS_A_PAGE else "",
        "back": _pods_url(base, phase, start - PODS_A_PAGE) if start else "",
    }


def _start(request: HttpRequest) -> int:
    return min(whole_number(request.GET.get("from", "")) or 0, _LAST_POD)


def _pods_url(base: str, phase: str, start: int) -> str:
    given = {name: value for name, value in (("pods", phase), ("from", max(0, start))) if value}
    return f"{base}?{urlencode(given)}#pods" if given else f"{base}#pods"


def _why_it_waits(pod: Pod) -> str:
    return next((condition.get("message", "") for condition in pod_conditions(pod)), "")


def _pod(pod: Pod) -> Context:
    return {
        "name": pod.name,
        "task": pod.task,
        "phase": pod.phase,
        "node": pod.node.name if pod.node else "",
        "reserved": pod.reserved_node.name if pod.reserved_node else "",
        "request": amounts_text(pod.pod_class.requests),
        "since": pod.finished_at or pod.started_at or pod.bound_at or pod.created_at,
        "message": pod.message
        or (f"exit code {pod.exit_code}" if pod.exit_code else _why_it_waits(pod)),
        "borrowed": pod.borrowed,
    }


def _tasks(gang: PodGroup) -> list[Context]:
    if gang.job is None:
        return []
    known = tasks_of(gang)
    return [_task(task, *known.get(task["name"], ({}, None))) for task in gang.job.tasks]


def _task(task: Mapping[str, Any], phases: Mapping[str, int], request: Resources | None) -> Context:
    containers = ((task.get("template") or {}).get("spec") or {}).get("containers") or [{}]
    return {
        "name": task["name"],
        "replicas": task["replicas"],
        "needed": task["minAvailable"],
        "request": amounts_text(request) if request is not None else "",
        "phases": Counter(phases).most_common(),
        "image": containers[0].get("image", ""),
        "command": " ".join(str(word) for word in containers[0].get("command") or []),
        "waits_for": ", ".join(_listed((task.get("dependsOn") or {}).get("name")))
        if not phases
        else "",
    }


def _listed(names: Any) -> list[str]:
    return (
        [str(name) for name in names] if isinstance(names, list) else [str(names)] if names else []
    )


def _timeline(request: HttpRequest, gang: PodGroup) -> Context:
    timeline = timeline_of(gang)
    steps = [
        {
            "span": span,
            "step": step,
            "whom": visibility_of(request).visible_job(step.whom, step.queue),
        }
        for span, step in timeline.entries
    ]
    return {"steps": steps, "now": timeline.now}


def _events(_: HttpRequest, gang: PodGroup) -> Context:
    return {"events": list(events_of(gang)[:MOST_RECORDS])}


def _evictions(request: HttpRequest, gang: PodGroup) -> Context:
    mine = visibility_of(request)
    suffered, caused = evictions_of(gang)
    return {
        "suffered": [
            _eviction(row, mine, mine.visible_job(row.beneficiary, row.beneficiary_queue))
            for row in suffered
        ],
        "caused": [
            _eviction(row, mine, mine.visible_job(row.podgroup_name, row.queue_name))
            for row in caused
        ],
    }


def _eviction(row: Eviction, mine: Visibility, other: OtherJob | None) -> Context:
    seen = mine.visible_eviction(row)
    return {
        "row": row,
        "seen": seen,
        "other": other,
        "why": why_evicted(row.action),
        "before": _allocated(seen.before),
        "after": _allocated(seen.after),
    }


def _allocated(figures: Mapping[str, Any]) -> str:
    """Empty where the reader may not see the queue that had it."""
    return (
        amounts_text(Resources(figures["allocated"]))
        if figures.get("allocated") is not None
        else ""
    )


def _yaml(_: HttpRequest, gang: PodGroup) -> Context:
    manifest = stored_job(gang.job) if gang.job else stored_podgroup(gang)
    return {
        "yaml": yaml.safe_dump(
            _with_status(manifest, gang), sort_keys=False, allow_unicode=True, width=120
        )
    }


def _with_status(manifest: Context, gang: PodGroup) -> Context:
    row = gang.job or gang
    status: Context = {"phase": row.phase, "conditions": gang.conditions}
    if gang.reason_code:
        status["reason"] = {"code": gang.reason_code, "message": gang.reason_message}
    metadata = {
        **manifest["metadata"],
        "uid": str(row.uid),
        "creationTimestamp": f"{row.created_at:%Y-%m-%dT%H:%M:%SZ}",
    }
    return {**manifest, "metadata": metadata, "status": status}


_TAB_CONTEXT: Mapping[str, Callable[[HttpRequest, PodGroup], Context]] = {
    "": _gang,
    "timeline": _timeline,
    "events": _events,
    "evictions": _evictions,
    "yaml": _yaml,
}


# Commands


@require_http_methods(["GET", "HEAD", "POST"])
@page
def command(request: HttpRequest, namespace: str, name: str, verb: str) -> HttpResponse:
    """Asks first; a POST does it."""
    gang = _seen(request, namespace, name)
    if gang is None or gang.job is None:
        return no_such_job(request, namespace, name)
    chosen = VERBS[verb]
    if request.method == "POST":
        return _carry_out(request, gang, chosen)
    row = present_job(job_rows([gang])[0])
    placed = sum(
        number for phase, number in row["cells"] if phase in ("Running", "Bound", "Binding")
    )
    context = {
        "gang": gang,
        "row": row,
        "verb": chosen,
        "obstacle": obstacle(row["phase"], chosen),
        "placed": placed,
    }
    context["copies"] = copies(
        request,
        ["job", verb, f"{namespace}/{name}"],
        f"jobs/{quote(namespace)}/{quote(name)}/{verb}/",
        {"reason": ""},
    )
    template = "jobs/command_dialog.html" if wants_fragment(request) else "jobs/command.html"
    return render(request, template, context)


def _carry_out(request: HttpRequest, gang: PodGroup, verb: Verb) -> HttpResponse:
    try:
        result = command_job(
            gang.namespace,
            gang.name,
            verb.action,
            by=actor(request),
            reason=request.POST.get("reason", ""),
        )
        (messages.success if result.changed else messages.info)(request, result.message)
    except NotPossible as refusal:
        messages.error(request, f"{gang} cannot be {verb.past}: {refusal}.")
    except Rejected as refusal:
        messages.error(request, f"{gang} cannot be {verb.past}: {in_words(refusal.violations)}")
    return redirect("job", gang.namespace, gang.name)
