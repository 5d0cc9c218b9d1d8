"""/jobs/NAMESPACE/NAME/ and its tabs: why it waits, its gang, its tasks, what happened to it; and the commands for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import yaml
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.access import access, page
from dashboard.amounts import with_unit
from dashboard.job_rows import VERBS, Verb, amounts_text, may_command, obstacle, present_job
from dashboard.views.common import actor, wants_fragment
from scheduler.admission.violations import Rejected, in_words
from scheduler.domain.access import Permission
from scheduler.domain.jobs import NotPossible
from scheduler.domain.resources import Resources
from scheduler.models import Pod, PodGroup
from scheduler.selectors.job_page import (
    MOST_PODS,
    Step,
    evaluation_of,
    events_of,
    evictions_of,
    gang_named,
    pods_of,
    standing_of,
    timeline_of,
    waited_for,
)
from scheduler.selectors.jobs import job_rows
from scheduler.selectors.manifests import stored_job, stored_podgroup
from scheduler.services.jobs import command_job

Context = dict[str, Any]
TABS = {"": "Gang", "timeline": "Timeline", "events": "Events", "evictions": "Evictions", "yaml": "YAML"}


@require_safe
@page
def job(request: HttpRequest, namespace: str, name: str, tab: str = "") -> HttpResponse:
    gang = _seen(request, namespace, name)
    if gang is None:
        return no_such_job(request, namespace, name)
    tab = "" if tab == "members" else tab
    context = _header(request, gang) | _TAB_CONTEXT[tab](gang) | {"tab": tab, "tabs": _tabs(gang)}
    return render(request, "jobs/job.html", context)


def _seen(request: HttpRequest, namespace: str, name: str) -> PodGroup | None:
    """None when it is not there, or in a queue that the reader may not know of."""
    gang = gang_named(namespace, name)
    return gang if gang is not None and access(request).may(Permission.VIEW, gang.queue.name) else None


def no_such_job(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    words = f"There is no job {namespace}/{name}. It may have been deleted, or be in a queue that you may not see."
    return render(request, "404.html", {"missing": words}, status=404)


def _tabs(gang: PodGroup) -> list[Context]:
    base = reverse("job", args=[gang.namespace, gang.name])
    return [{"key": key, "title": title, "url": f"{base}{key}/" if key else base} for key, title in TABS.items()]


def _header(request: HttpRequest, gang: PodGroup) -> Context:
    row = present_job(job_rows([gang])[0])
    may = gang.job is not None and may_command(access(request), request.user.get_username(), gang.queue.name, gang.owner)
    return {
        "gang": gang,
        "row": row,
        "may": may,
        "verbs": [{"verb": verb, "obstacle": obstacle(row["phase"], verb)} for verb in VERBS.values()] if gang.job else [],
        "reason": _reason_card(gang) if row["is_waiting"] and row["placed"] < row["needed"] else None,
        "may_clone": gang.job is not None and access(request).may_anywhere(Permission.SUBMIT),
    }


# The reason card


def _reason_card(gang: PodGroup) -> Context:
    return {
        "code": gang.reason_code or "AwaitingEvaluation",
        "message": gang.reason_message or "Not evaluated yet: the next session will look at it.",
        "is_evaluated": gang.reason_code not in ("", "AwaitingEvaluation"),
        "evaluated": evaluation_of(gang),
        "level": gang.reason_figures.get("level") or gang.reason_figures.get("queue") or "",
        "checks": [_check(check) for check in sorted(gang.reason_checks, key=lambda check: bool(check["passed"]))],
        "standing": standing_of(gang),
    }


_CHECK_NAMES = {
    "capability": "limit",
    "deserved": "deserved share",
    "overcommit": "line of the queue",
    "cluster": "cluster",
    "node": "largest free node",
}


def _check(check: Mapping[str, Any]) -> Context:
    resource = check["resource"]

    def amount(name: str) -> str:
        return with_unit(resource, check[name])

    return {
        "passed": check["passed"],
        "what": _CHECK_NAMES.get(check["name"], check["name"]),
        "level": check["level"],
        "resource": resource,
        "need": amount("need"),
        "limit": amount("limit"),
        "used": amount("used"),
        "free": with_unit(resource, max(0, check["limit"] - check["used"])),
        "short": amount("short") if check.get("short") else "",
    }


# The tabs


def _gang(gang: PodGroup) -> Context:
    pods = pods_of(gang)
    return {
        "pods": [_pod(pod) for pod in pods],
        "cells": _cells(pods, gang.min_member),
        "tasks": _tasks(gang, pods),
        "cut": len(pods) == MOST_PODS,
        "counts": Counter(pod.phase for pod in pods).most_common(),
    }


def _pod(pod: Pod) -> Context:
    return {
        "name": pod.name,
        "task": pod.task,
        "phase": pod.phase,
        "node": pod.node.name if pod.node else "",
        "reserved": pod.reserved_node.name if pod.reserved_node else "",
        "request": amounts_text(pod.pod_class.requests),
        "since": pod.finished_at or pod.started_at or pod.bound_at or pod.created_at,
        "message": pod.message or (f"exit code {pod.exit_code}" if pod.exit_code else ""),
        "borrowed": pod.borrowed,
    }


_PLACED_FIRST = {"Succeeded": 0, "Running": 1, "Bound": 2, "Binding": 3, "Releasing": 4, "Unknown": 5, "Failed": 6, "Pending": 7}


def _cells(pods: list[Pod], needed: int) -> Context:
    """Those with a place first; the first `needed` of them are the gang, the rest is its elastic part."""
    ordered = sorted(pods, key=lambda pod: (_PLACED_FIRST.get(pod.phase, 9), pod.task, pod.index))
    return {"gang": ordered[:needed], "elastic": ordered[needed:], "missing": range(max(0, min(needed, MOST_PODS) - len(ordered)))}


def _tasks(gang: PodGroup, pods: list[Pod]) -> list[Context]:
    if gang.job is None:
        return []
    return [_task(task, [pod for pod in pods if pod.task == task["name"]]) for task in gang.job.tasks]


def _task(task: Mapping[str, Any], pods: list[Pod]) -> Context:
    phases = Counter(pod.phase for pod in pods)
    request = pods[0].pod_class.requests if pods else Resources()
    containers = ((task.get("template") or {}).get("spec") or {}).get("containers") or [{}]
    return {
        "name": task["name"],
        "replicas": task["replicas"],
        "needed": task["minAvailable"],
        "request": amounts_text(request) if pods else "",
        "phases": phases.most_common(),
        "image": containers[0].get("image", ""),
        "command": " ".join(str(word) for word in containers[0].get("command") or []),
        "waits_for": ", ".join(_listed((task.get("dependsOn") or {}).get("name"))) if not pods else "",
    }


def _listed(names: Any) -> list[str]:
    return [str(name) for name in names] if isinstance(names, list) else [str(names)] if names else []


def _timeline(gang: PodGroup) -> Context:
    steps = timeline_of(gang)
    spans = [None, *((later.at - earlier.at).total_seconds() for earlier, later in pairwise(steps))]
    shown = [{"step": step, "after": span, "waited": _was_waiting(gang, step)} for step, span in zip(steps, spans, strict=True)]
    is_over = bool(gang.finished_at or (gang.job and gang.job.finished_at))
    return {
        "steps": shown,
        "waited_for": waited_for(gang),
        "open_span": None if is_over else (timezone.now() - steps[-1].at).total_seconds(),
        "now_words": _now_words(gang),
    }


def _was_waiting(gang: PodGroup, step: Step) -> bool:
    """Whether the time up to this step was spent without a place."""
    return gang.started_at is None or step.at <= gang.started_at


def _now_words(gang: PodGroup) -> str:
    return f"waiting: {gang.reason_code or 'AwaitingEvaluation'}" if gang.phase in ("Pending", "Inqueue") else "running"


def _events(gang: PodGroup) -> Context:
    return {"events": list(events_of(gang))}


def _evictions(gang: PodGroup) -> Context:
    suffered, caused = evictions_of(gang)
    return {"suffered": [_eviction(eviction) for eviction in suffered], "caused": [_eviction(eviction) for eviction in caused]}


def _eviction(eviction: Any) -> Context:
    def allocated(figures: Mapping[str, Any]) -> str:
        return amounts_text(Resources(figures.get("allocated") or {}))

    return {"row": eviction, "before": allocated(eviction.before), "after": allocated(eviction.after)}


def _yaml(gang: PodGroup) -> Context:
    manifest = stored_job(gang.job) if gang.job else stored_podgroup(gang)
    return {"yaml": yaml.safe_dump(_with_status(manifest, gang), sort_keys=False, allow_unicode=True, width=120)}


def _with_status(manifest: Context, gang: PodGroup) -> Context:
    row = gang.job or gang
    status: Context = {"phase": row.phase, "conditions": gang.conditions}
    if gang.reason_code:
        status["reason"] = {"code": gang.reason_code, "message": gang.reason_message}
    metadata = {**manifest["metadata"], "uid": str(row.uid), "creationTimestamp": f"{row.created_at:%Y-%m-%dT%H:%M:%SZ}"}
    return {**manifest, "metadata": metadata, "status": status}


_TAB_CONTEXT: Mapping[str, Callable[[PodGroup], Context]] = {
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
    placed = sum(number for phase, number in row["cells"] if phase in ("Running", "Bound", "Binding"))
    context = {"gang": gang, "row": row, "verb": chosen, "obstacle": obstacle(row["phase"], chosen), "placed": placed}
    template = "jobs/command_dialog.html" if wants_fragment(request) else "jobs/command.html"
    return render(request, template, context)


def _carry_out(request: HttpRequest, gang: PodGroup, verb: Verb) -> HttpResponse:
    try:
        result = command_job(gang.namespace, gang.name, verb.action, by=actor(request), reason=request.POST.get("reason", ""))
        (messages.success if result.changed else messages.info)(request, result.message)
    except NotPossible as refusal:
        messages.error(request, f"{gang} can not be {verb.past}: {refusal}.")
    except Rejected as refusal:
        messages.error(request, f"{gang} can not be {verb.past}: {in_words(refusal.violations)}")
    return redirect("job", gang.namespace, gang.name)
