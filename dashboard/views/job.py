"""/jobs/NAMESPACE/NAME/: why a job waits, its gang, its tasks, its history, and commands to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.choices import checked_word
from dashboard.forms.typed import whole_number
from dashboard.http.access import access, may_submit_anywhere, page, visibility_of
from dashboard.http.visibility import OtherJob, Visibility
from dashboard.present.gang_grid import gang_grid, gang_sentence
from dashboard.present.jobs import VERBS, Verb, amounts_text, may_command, obstacle, present_job
from dashboard.present.limits import time_words
from dashboard.present.object_yaml import object_document
from dashboard.present.reasons import reason_card
from dashboard.present.terminal import copies
from dashboard.views.common import actor, render_page_or_part, show_result, watched_only
from scheduler.admission.rules.backlogs import longest_run
from scheduler.admission.violations import Rejected, in_words
from scheduler.domain.access import Permission
from scheduler.domain.evictions import why_evicted
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.resources import Resources
from scheduler.models import Eviction, Job, Node, Pod, PodGroup
from scheduler.models.workload import POD_PHASES
from scheduler.selectors.files.manifests import stored_job, stored_podgroup
from scheduler.selectors.jobs.budgets import budgets_of
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
from scheduler.selectors.jobs.run_limits import ends_at
from scheduler.selectors.jobs.timeline import timeline_of
from scheduler.selectors.queues.backlogs import limits_on_the_way
from scheduler.services.cluster.kubectl_lines import job_command_lines
from scheduler.services.cluster.mirrored import how_to_change, may_be_changed_here
from scheduler.services.jobs.reclaim import why_no_reclaim
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
    gang = visible_gang(request, namespace, name)
    if gang is None:
        return no_such_job(request, namespace, name)
    if tab == "members":
        tab = ""
    context = {
        **_header_context(request, gang),
        **_TAB_CONTEXT[tab](request, gang),
        "tab": tab,
        "tabs": _tab_links(gang),
    }
    return render(request, "jobs/job.html", context)


def visible_gang(request: HttpRequest, namespace: str, name: str) -> PodGroup | None:
    """None if it does not exist, or is in a queue that the reader may not see."""
    gang = gang_named(namespace, name)
    if gang is None or not access(request).may(Permission.VIEW, gang.queue.place):
        return None
    return gang


def no_such_job(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    words = (
        f"There is no job {namespace}/{name}. "
        "It may have been deleted, or be in a queue that you may not see."
    )
    return render(request, "404.html", {"missing": words}, status=404)


def _tab_links(gang: PodGroup) -> list[Context]:
    base = reverse("job", args=[gang.namespace, gang.name])
    links = []
    for key, title in TABS.items():
        if key:
            url = f"{base}{key}/"
        else:
            url = base
        links.append({"key": key, "title": title, "url": url})
    return links


def _header_context(request: HttpRequest, gang: PodGroup) -> Context:
    mine = access(request)
    row = present_job(job_rows([gang])[0])
    context: Context = {
        "gang": gang,
        "row": row,
        "may": False,
        "may_clone": False,
        "verbs": [],
        "how_to_change": how_to_change("Job", gang.name),
        "gang_sentence": gang_sentence(gang, row["placed"], row["is_waiting"]),
        "reason": None,
    }
    if row["is_waiting"] and row["placed"] < row["needed"]:
        context["reason"] = reason_card(gang, partial(mine.may, Permission.VIEW))
        context["no_reclaim"] = visibility_of(request).reclaim_words(why_no_reclaim(gang))
    if gang.job is None:
        path = f"{quote(gang.namespace)}/{quote(gang.name)}"
        context["json_url"] = f"/api/v1/podgroups/{path}/"
        return context
    context |= _run_limit_context(gang.job)
    username = request.user.get_username()
    if may_be_changed_here("Job"):
        context["may"] = may_command(mine, username, gang.queue.place, gang.owner)
    context["may_clone"] = may_submit_anywhere(request)
    for verb in VERBS.values():
        context["verbs"].append({"verb": verb, "obstacle": obstacle(row["phase"], verb)})
    return context


def _run_limit_context(job: Job) -> Context:
    """How long it may run, and until when it does at the latest."""
    path = limits_on_the_way([job.queue.name]).get(job.queue.name, ())
    limit = longest_run(path)
    if limit is None:
        return {}
    return {
        "run_limit": limit,
        "run_limit_words": time_words(limit.seconds),
        "run_ends_at": ends_at(job, limit),
    }


# The tabs


def _gang_context(request: HttpRequest, gang: PodGroup) -> Context:
    phase = checked_word(request.GET, "pods", POD_PHASES)
    start = _first_pod(request)
    pods = pods_of(gang, phase, start)
    end = start + PODS_A_PAGE
    base = reverse("job", args=[gang.namespace, gang.name])
    further = ""
    if len(pods) > PODS_A_PAGE:
        further = _pods_url(base, phase, end)
    back = ""
    if start:
        back = _pods_url(base, phase, start - PODS_A_PAGE)
    members = members_of(gang)
    return {
        "pods": [_pod_line(pod) for pod in pods[:PODS_A_PAGE]],
        "grid": gang_grid(members, gang.min_member),
        "tasks": _task_lines(gang),
        "budgets": budgets_of(gang),
        "counts": Counter(member.phase for member in members).most_common(),
        "phase": phase,
        "first": start + 1,
        "last": start + min(len(pods), PODS_A_PAGE),
        "whole": sum(phase in ("", member.phase) for member in members),
        "further": further,
        "back": back,
    }


def _first_pod(request: HttpRequest) -> int:
    return min(whole_number(request.GET.get("from", "")) or 0, _LAST_POD)


def _pods_url(base: str, phase: str, start: int) -> str:
    given: Context = {}
    if phase:
        given["pods"] = phase
    if start > 0:
        given["from"] = start
    if not given:
        return f"{base}#pods"
    return f"{base}?{urlencode(given)}#pods"


def _pod_message(pod: Pod) -> str:
    """What it said, how it ended, or why it waits."""
    if pod.message:
        return pod.message
    if pod.exit_code:
        return f"exit code {pod.exit_code}"
    for condition in pod_conditions(pod):
        return str(condition.get("message", ""))
    return ""


def _node_name(node: Node | None) -> str:
    if node is None:
        return ""
    return node.name


def _pod_line(pod: Pod) -> Context:
    return {
        "name": pod.name,
        "task": pod.task,
        "phase": pod.phase,
        "has_log": pod.node is not None,
        "node": _node_name(pod.node),
        "reserved": _node_name(pod.reserved_node),
        "request": amounts_text(pod.pod_class.requests),
        "since": pod.finished_at or pod.started_at or pod.bound_at or pod.created_at,
        "message": _pod_message(pod),
        "borrowed": pod.borrowed,
        "budgets": pod.budgets.replace(",", ", "),
    }


def _task_lines(gang: PodGroup) -> list[Context]:
    if gang.job is None:
        return []
    known = tasks_of(gang)
    lines: list[Context] = []
    for task in gang.job.tasks:
        lines.append(_task_line(task, *known.get(task["name"], ({}, None))))
    return lines


def _task_line(
    task: Mapping[str, Any],
    phases: Mapping[str, int],
    request: Resources | None,
) -> Context:
    """`phases` counts its pods; `request` is None where it has none."""
    pod_spec = (task.get("template") or {}).get("spec") or {}
    container = (pod_spec.get("containers") or [{}])[0]
    waits_for = ""
    if not phases:
        waits_for = ", ".join(_as_names((task.get("dependsOn") or {}).get("name")))
    asked = ""
    if request is not None:
        asked = amounts_text(request)
    return {
        "name": task["name"],
        "replicas": task["replicas"],
        "needed": task["minAvailable"],
        "request": asked,
        "phases": Counter(phases).most_common(),
        "image": container.get("image", ""),
        "command": " ".join(map(str, container.get("command") or [])),
        "waits_for": waits_for,
    }


def _as_names(given: Any) -> list[str]:
    """One name, or a list of them."""
    if isinstance(given, list):
        return [str(name) for name in given]
    if not given:
        return []
    return [str(given)]


def _timeline_context(request: HttpRequest, gang: PodGroup) -> Context:
    timeline = timeline_of(gang)
    mine = visibility_of(request)
    steps = []
    for span, step in timeline.entries:
        entry = {
            "span": span,
            "step": step,
            "whom": mine.visible_job(step.whom, step.queue),
            "detail": mine.step_detail(step),
        }
        steps.append(entry)
    return {"steps": steps, "now": timeline.now}


def _events_context(_: HttpRequest, gang: PodGroup) -> Context:
    return {"events": list(events_of(gang)[:MOST_RECORDS])}


def _evictions_context(request: HttpRequest, gang: PodGroup) -> Context:
    """Evictions of its own pods, and of others' pods for it."""
    mine = visibility_of(request)
    own, for_it = evictions_of(gang)
    suffered = []
    for row in own:
        other = mine.visible_job(row.beneficiary, row.beneficiary_queue)
        suffered.append(_eviction_line(row, mine, other))
    caused = []
    for row in for_it:
        other = mine.visible_job(row.podgroup_name, row.queue_name)
        caused.append(_eviction_line(row, mine, other))
    return {"suffered": _by_gang(suffered), "caused": _by_gang(caused)}


def _by_gang(lines: list[Context]) -> list[Context]:
    """What a gang lost in one session in one line, with its pods; the newest first, as they come.

    `before` is before the first of these evictions, `after` is after the last.
    """
    together: list[Context] = []
    for line in lines:
        if together and _is_same_gang(together[-1]["row"], line["row"]):
            together[-1]["pods"].insert(0, line["seen"])
            together[-1]["before"] = line["before"]
        else:
            together.append({**line, "pods": [line["seen"]]})
    return together


def _is_same_gang(row: Eviction, other: Eviction) -> bool:
    return _eviction_key(row) == _eviction_key(other)


def _eviction_key(row: Eviction) -> tuple[Any, ...]:
    return (
        row.session_number,
        row.podgroup_name,
        row.beneficiary,
        row.action,
        row.rule,
        row.common_ancestor,
    )


def _eviction_line(row: Eviction, mine: Visibility, other: OtherJob | None) -> Context:
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
    allocated = figures.get("allocated")
    if allocated is None:
        return ""
    return amounts_text(Resources(allocated))


def _yaml_context(request: HttpRequest, gang: PodGroup) -> Context:
    """A job and its podgroup are two objects in a real cluster, and one here."""
    with_values = access(request).may(Permission.OPERATE, gang.queue.place)
    documents = []
    if gang.job:
        stored = _with_status(stored_job(gang.job), gang)
        documents.append(
            object_document(
                "Job", gang.name, gang.namespace, stored=stored, with_values=with_values
            )
        )
    if gang.job is None or gang.object_uid:
        stored = _with_status(stored_podgroup(gang), gang)
        documents.append(
            object_document(
                "PodGroup",
                gang.object_name or gang.name,
                gang.namespace,
                stored=stored,
                with_values=with_values,
            )
        )
    return {"documents": documents}


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
    "": _gang_context,
    "timeline": _timeline_context,
    "events": _events_context,
    "evictions": _evictions_context,
    "yaml": _yaml_context,
}


# Commands


@require_http_methods(["GET", "HEAD", "POST"])
@page
def command(request: HttpRequest, namespace: str, name: str, verb: str) -> HttpResponse:
    """Asks first; a POST does it."""
    gang = visible_gang(request, namespace, name)
    if gang is None or gang.job is None:
        return no_such_job(request, namespace, name)
    chosen = VERBS[verb]
    if request.method == "POST":
        return _carry_out(request, gang, chosen)
    kubectl = job_command_lines(gang.job, chosen.action.value)
    if not may_be_changed_here("Job"):
        sentence = how_to_change("Job", name)
        back = reverse("job", args=[namespace, name])
        return watched_only(request, f"{chosen.title} {name}", sentence, back, kubectl)
    row = present_job(job_rows([gang])[0])
    placed_phases = ("Running", "Bound", "Binding")
    placed = sum(number for phase, number in row["cells"] if phase in placed_phases)
    context = {
        "gang": gang,
        "row": row,
        "verb": chosen,
        "obstacle": obstacle(row["phase"], chosen),
        "placed": placed,
    }
    lines = copies(
        request,
        ["job", verb, f"{namespace}/{name}"],
        f"jobs/{quote(namespace)}/{quote(name)}/{verb}/",
        {"reason": ""},
    )
    context["copies"] = {**lines, "kubectl": kubectl}
    return render_page_or_part(request, "jobs/command.html", "jobs/command_dialog.html", context)


def _carry_out(request: HttpRequest, gang: PodGroup, verb: Verb) -> HttpResponse:
    try:
        result = command_job(
            gang.namespace,
            gang.name,
            verb.action,
            by=actor(request),
            reason=request.POST.get("reason", ""),
        )
        show_result(request, result.message, changed=result.changed)
    except NotPossible as refusal:
        messages.error(request, f"{gang} cannot be {verb.past}: {refusal}.")
    except Rejected as refusal:
        messages.error(request, f"{gang} cannot be {verb.past}: {in_words(refusal.violations)}")
    return redirect("job", gang.namespace, gang.name)
