"""/jobs/-/bulk/: one command for many jobs: what it would do, starting it, and its progress."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods

from dashboard.forms.job_choice import choices, jobs_named, jobs_of_query, read_query
from dashboard.http.access import access, page
from dashboard.present.bars import Span, bar_html, rectangles, scaled
from dashboard.present.jobs import VERBS, Verb, present_job, verb_of
from dashboard.present.terminal import copies, together
from dashboard.views.common import actor, watched_only
from scheduler.admission.violations import Rejected, in_words
from scheduler.domain.plans import counted
from scheduler.models import BulkRun
from scheduler.selectors.accounts.preferences import bulk_counts, bulk_run
from scheduler.selectors.jobs.listing import JobRow
from scheduler.services.cluster.mirrored import how_to_change, may_be_changed_here
from scheduler.services.jobs.bulk import MOST_JOBS, retry_bulk_run, start_bulk_run

Context = dict[str, Any]
_MOST_LISTED = 200
"""Jobs that are listed before an action; the others are counted."""
_ASKS_FIRST = ("cancel", "restart")
"""The commands before which a terminal asks, unless told not to."""
_RESULT_ORDER = {"Refused": 0, "": 1, "NoOp": 2, "Done": 3}
"""The refused first: somebody has to look at them."""


@require_http_methods(["GET", "HEAD", "POST"])
@page
def bulk(request: HttpRequest) -> HttpResponse:
    """Shows what would happen to which jobs; a POST starts it, unless it says that it `ask`s."""
    if request.method == "POST":
        given = request.POST
    else:
        given = request.GET
    verb = VERBS.get(given.get("action", ""))
    if verb is None:
        messages.error(request, f"Choose what to do with the jobs: {', '.join(VERBS)}.")
        return redirect("jobs")
    if not may_be_changed_here("Job"):
        title = f"{verb.title} jobs"
        return watched_only(request, title, how_to_change("Job"), reverse("jobs"))
    problems = _filter_problems(request, given)
    if problems:
        message = f"Nothing was done, because the filter has a mistake. {' '.join(problems)}"
        messages.error(request, message)
        return HttpResponseRedirect(f"{reverse('jobs')}?{urlencode({'q': given.get('q', '')})}")
    rows = _chosen_rows(request, given)
    if not rows:
        messages.error(request, "No job was chosen. Tick some, or all that match.")
        return redirect("jobs")
    found = _with_obstacles(request, rows, verb)
    possible = [job for job in found if not job["obstacle"]]
    if request.method == "POST" and "ask" not in given:
        agreed_keys = _agreed_keys(request)
        agreed = [job for job in possible if job["key"] in agreed_keys]
        if agreed:
            return _start_run(request, verb, agreed, later=len(possible) - len(agreed))
    return _render_question(request, given, verb, found, possible)


def _filter_problems(request: HttpRequest, given: Any) -> tuple[str, ...]:
    """With a mistake in it, the filter would match more jobs than were meant."""
    if not _is_for_all(given):
        return ()
    return read_query(given.get("q", ""), request.user.get_username()).problems


def _is_for_all(given: Any) -> bool:
    """For all jobs that match the filter, not only for those that are ticked."""
    return bool(given.get("all") == "1")


def _chosen_rows(request: HttpRequest, given: Any) -> tuple[JobRow, ...]:
    if _is_for_all(given):
        query = read_query(given.get("q", ""), request.user.get_username())
        return jobs_of_query(query, access(request))
    keys = [key.partition("/")[::2] for key in _named_keys(given)]
    return jobs_named(keys, access(request))


def _named_keys(given: Any) -> list[str]:
    """`job` is one key, as often as there are jobs; `jobs` are any number, with spaces between."""
    return [*given.getlist("job"), *given.get("jobs", "").split()]


def _with_obstacles(request: HttpRequest, rows: tuple[JobRow, ...], verb: Verb) -> list[Context]:
    chosen = choices(rows, verb, access(request), request.user.get_username())
    presented: list[Context] = []
    for choice in chosen:
        presented.append({**present_job(choice.row), "obstacle": choice.obstacle})
    return presented


def _render_question(
    request: HttpRequest,
    given: Any,
    verb: Verb,
    found: list[Context],
    possible: list[Context],
) -> HttpResponse:
    users = set()
    for job in possible:
        if job["owner"]:
            users.add(job["owner"])
    context = {
        "verb": verb,
        "jobs": found[:_MOST_LISTED],
        "agreed": " ".join(job["key"] for job in possible),
        "unlisted": max(0, len(found) - _MOST_LISTED),
        "chosen": len(found),
        "possible": len(possible),
        "users": sorted(users),
        "queues": sorted({job["queue"] for job in possible}),
        "running": sum(job["phase"] == "Running" for job in possible),
        "all": _is_for_all(given),
        "q": given.get("q", ""),
        "most": MOST_JOBS,
        "too_many": len(possible) > MOST_JOBS,
        "copies": _terminal_copies(request, verb, [job["key"] for job in possible], given),
    }
    return render(request, "jobs/bulk.html", context)


def _terminal_copies(
    request: HttpRequest,
    verb: Verb,
    keys: list[str],
    given: Any,
) -> dict[str, str]:
    """One command for each job; over HTTP one request, by the same filter or by names."""
    if verb.key in _ASKS_FIRST:
        options = ["--yes"]
    else:
        options = []
    commands = together(copies(request, ["job", verb.key, key, *options], "") for key in keys)
    body: Context = {"action": verb.key}
    if _is_for_all(given):
        body["query"] = given.get("q", "")
    else:
        body["jobs"] = keys
    body["reason"] = ""
    curl = copies(request, [], "bulkruns/", body)["curl"]
    return {"cli": commands["cli"], "curl": curl}


def _agreed_keys(request: HttpRequest) -> set[str]:
    """The jobs that the question was about. Jobs that match since then are left alone."""
    if _is_for_all(request.POST):
        return set(request.POST.get("agreed", "").split())
    return set(_named_keys(request.POST))


def _start_run(request: HttpRequest, verb: Verb, agreed: list[Context], later: int) -> HttpResponse:
    """`later` is how many jobs match since the question was asked."""
    try:
        run = start_bulk_run(
            verb.action,
            [(job["namespace"], job["name"]) for job in agreed],
            by=actor(request),
            reason=request.POST.get("reason", ""),
            query=request.POST.get("q", ""),
        )
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
        return redirect("jobs")
    if later:
        have = counted(later, "job has", "jobs have")
        are = "are"
        if later == 1:
            are = "is"
        message = f"{have} come to match since you were asked, and {are} left alone."
        messages.info(request, message)
    return redirect("bulk-run", uid=run.uid)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def progress(request: HttpRequest, uid: uuid.UUID) -> HttpResponse:
    """How far a run is; a POST starts a new one for the jobs that were refused."""
    run = bulk_run(uid, request.user)
    if run is None:
        context = {"missing": "There is no such action, or it is somebody else's."}
        return render(request, "404.html", context, status=404)
    if request.method == "POST":
        return _retry_run(request, run)
    return render(request, "jobs/progress.html", _progress_context(run))


def _retry_run(request: HttpRequest, run: BulkRun) -> HttpResponse:
    try:
        run = retry_bulk_run(run, by=actor(request))
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
    return redirect("bulk-run", uid=run.uid)


def _progress_context(run: BulkRun) -> Context:
    counts = bulk_counts(run)
    whole = sum(counts.values())
    waiting = counts.get("", 0)
    return {
        "run": run,
        "verb": verb_of(run.action),
        "whole": whole,
        "done": whole - waiting,
        "left": waiting,
        "bar": _progress_bar(whole - waiting, whole),
        "succeeded": counts.get("Done", 0),
        "unchanged": counts.get("NoOp", 0),
        "refused": counts.get("Refused", 0),
        "items": _sorted_items(run),
    }


def _progress_bar(done: int, whole: int) -> SafeString:
    are = "jobs are"
    if whole == 1:
        are = "job is"
    drawn = rectangles([Span("use", 0, scaled(done, whole))])
    return bar_html(drawn, label=f"{done} of {whole} {are} done", style="progress")


def _sorted_items(run: BulkRun) -> list[Mapping[str, Any]]:
    items = run.items.values("namespace", "name", "result", "message")[:MOST_JOBS]
    return sorted(items, key=lambda item: _RESULT_ORDER.get(item["result"], 1))


def run_line(run: BulkRun) -> Context:
    """A run in a sentence, for the table of jobs."""
    counts = bulk_counts(run)
    whole = sum(counts.values())
    refused = counts.get("Refused", 0)
    start = f"{verb_of(run.action).title} {counted(whole, 'job')}"
    if run.state != BulkRun.DONE:
        words = f"{start}: {whole - counts.get('', 0)} done so far."
        return {"words": words, "link": "See how far it is", "uid": run.uid}
    words = f"{start}: done."
    if refused:
        words = f"{start}: done, {refused} refused."
    return {
        "words": words,
        "link": "See what came of each",
        "uid": run.uid,
        "is_bad": bool(refused),
    }
