"""/jobs/: the table of jobs with its query box, the views of it that people keep, and one action for many jobs."""

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
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.forms.job_choice import choices, jobs_named, jobs_of_query, read_query, vocabulary
from dashboard.forms.query import DURATION_FIELDS, NUMBER_FIELDS, STATES, TEXT_FIELDS, Query
from dashboard.forms.typed import whole_number
from dashboard.http.access import access, page
from dashboard.present.bars import Span, bar_html, rectangles, scaled
from dashboard.present.jobs import COLUMNS, DEFAULT_COLUMNS, VERBS, Verb, may_command, present_job
from dashboard.present.terminal import copies, together
from dashboard.views.common import actor
from scheduler.admission.violations import Rejected, in_words
from scheduler.domain.access import Permission
from scheduler.models import BulkRun
from scheduler.selectors.accounts.preferences import bulk_counts, bulk_run, recent_runs, views_for
from scheduler.selectors.jobs.listing import (
    COUNTED_AT_MOST,
    JobRow,
    count_up_to,
    job_page,
    jobs_matching,
)
from scheduler.services.accounts.preferences import delete_view, save_view
from scheduler.services.jobs.bulk import MOST_JOBS, retry_bulk_run, start_bulk_run

Context = dict[str, Any]
_CONFIRMED_AT_MOST = 200  # rows listed before an action; the rest is counted


@require_safe
@page
def jobs(request: HttpRequest) -> HttpResponse:
    query = _query(request, request.GET)
    found = jobs_matching(query.conditions, access(request).readable)
    if query.problems:  # the rest of the filter would match more jobs than were meant
        found = found.none()
    oldest_first = request.GET.get("sort") == "oldest"
    rows = job_page(
        found,
        before=_mark(request, "before"),
        after=_mark(request, "after"),
        oldest_first=oldest_first,
    )
    columns = _columns(request)
    selectable = [_selectable(request, row) for row in rows.rows]
    context = {
        "q": request.GET.get("q", ""),
        "chips": _chips(request, query),
        "problems": [term for term in query.terms if term.problem],
        "rows": selectable,
        "may_any": any(row["may"] for row in selectable),
        "count": _count_words(count_up_to(found)),
        "matching": _count_words(
            count_up_to(found.exclude(job=None))
        ),  # a gang without a job takes no commands
        "columns": [(key, COLUMNS[key]) for key in columns],
        "choices": [
            (key, title, key in columns) for key, title in COLUMNS.items() if key != "name"
        ],
        "older_url": _url(request, before=rows.older) if rows.older else "",
        "newer_url": _url(request, after=rows.newer) if rows.newer else "",
        "oldest_first": oldest_first,
        "sort_url": _url(request, sort="" if oldest_first else "oldest"),
        "tabs": _tabs(request),
        "views": _views(request),
        "verbs": VERBS.values(),
        "help": _help(request),
        "runs": [_run_line(run) for run in recent_runs(request.user)],
        "may_submit": access(request).may_anywhere(Permission.SUBMIT),
        "keep": {name: request.GET[name] for name in ("cols", "sort") if request.GET.get(name)},
    }
    return render(request, "jobs/list.html", context)


def _mark(request: HttpRequest, name: str) -> int | None:
    return whole_number(request.GET.get(name, ""))


def _columns(request: HttpRequest) -> list[str]:
    chosen = request.GET.getlist("cols")
    names = (
        {name for item in chosen for name in item.split(",")}
        if any(chosen)
        else set(DEFAULT_COLUMNS)
    )
    return [key for key in COLUMNS if key in names or key == "name"]


def _count_words(count: int) -> str:
    if count > COUNTED_AT_MOST:
        return f"more than {COUNTED_AT_MOST:,} jobs".replace(",", " ")
    return "1 job" if count == 1 else f"{count} jobs"


def _url(request: HttpRequest, **changes: Any) -> str:
    """This page with other parameters. A change of anything but the page itself begins at the first page."""
    kept = {name: request.GET.get(name, "") for name in ("q", "cols", "sort")}
    if request.GET.getlist("cols"):
        kept["cols"] = ",".join(request.GET.getlist("cols"))
    given = {name: value for name, value in {**kept, **changes}.items() if value not in ("", None)}
    return reverse("jobs") + (f"?{urlencode(given)}" if given else "")


def _chips(request: HttpRequest, query: Query) -> list[Context]:
    return [
        {
            "text": term.text,
            "problem": term.problem,
            "without": _url(request, q=query.without(place)),
        }
        for place, term in enumerate(query.terms)
    ]


def _selectable(request: HttpRequest, row: JobRow) -> Context:
    return {
        **present_job(row),
        "may": row.is_job
        and may_command(access(request), request.user.get_username(), row.place, row.owner),
    }


_TABS = (
    ("All", ""),
    ("Mine", "user:me"),
    ("Waiting", "state:waiting"),
    ("Running", "state:running"),
    ("Failed", "state:failed"),
)


def _tabs(request: HttpRequest) -> list[Context]:
    here = request.GET.get("q", "").strip()
    return [
        {"title": title, "url": _url(request, q=query), "here": here == query}
        for title, query in _TABS
    ]


def _views(request: HttpRequest) -> list[Context]:
    here = _query_string(
        request.GET.get("q", ""), ",".join(request.GET.getlist("cols")), request.GET.get("sort", "")
    )
    return [
        {
            "id": view.pk,
            "name": view.name,
            "url": f"{reverse('jobs')}?{view.query}",
            "own": view.owner_id == request.user.pk,
            "owner": view.owner.get_username(),
            "shared": view.shared,
            "here": view.query == here,
        }
        for view in views_for(request.user, "jobs")
    ]


def _help(request: HttpRequest) -> list[tuple[str, str]]:
    resources = [
        (name, f"{name}>=8, what the gang needs to start")
        for name in vocabulary(request.user.get_username()).resources
    ]
    return [
        *TEXT_FIELDS.items(),
        *resources,
        *NUMBER_FIELDS.items(),
        *DURATION_FIELDS.items(),
        ("states", ", ".join(STATES)),
    ]


def _run_line(run: BulkRun) -> Context:
    counts, verb = bulk_counts(run), _verb_of(run)
    whole, refused = sum(counts.values()), counts.get("Refused", 0)
    jobs = "1 job" if whole == 1 else f"{whole} jobs"
    if run.state != BulkRun.DONE:
        return {
            "words": f"{verb.title} {jobs}: {whole - counts.get('', 0)} done so far.",
            "link": "See how far it is",
            "uid": run.uid,
        }
    words = f"{verb.title} {jobs}: done" + (f", {refused} refused." if refused else ".")
    return {
        "words": words,
        "link": "See what came of each",
        "uid": run.uid,
        "is_bad": bool(refused),
    }


def _verb_of(run: BulkRun) -> Verb:
    return next(verb for verb in VERBS.values() if verb.action == run.action)


# Views that people keep


def _query_string(query: str, columns: str, sort: str) -> str:
    return urlencode(
        {name: value for name, value in (("q", query), ("cols", columns), ("sort", sort)) if value}
    )


@require_POST
@page
def keep_view(request: HttpRequest) -> HttpResponse:
    query = _query_string(
        request.POST.get("q", ""), request.POST.get("cols", ""), request.POST.get("sort", "")
    )
    try:
        shared = request.POST.get("shared") == "1"
        view = save_view(
            request.user,
            "jobs",
            request.POST.get("name", ""),
            query,
            shared=shared,
            by=actor(request),
        )
        messages.success(
            request,
            f"The view “{view.name}” is kept{', and everybody can use it' if view.shared else ''}.",
        )
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
    return HttpResponseRedirect(f"{reverse('jobs')}?{query}")


@require_POST
@page
def forget_view(request: HttpRequest, view: int) -> HttpResponse:
    if delete_view(request.user, view, by=actor(request)):
        messages.success(request, "The view is deleted.")
    else:
        messages.error(request, "There is no such view of yours.")
    return redirect("jobs")


# One action for many


@require_http_methods(["GET", "HEAD", "POST"])
@page
def bulk(request: HttpRequest) -> HttpResponse:
    """Without a POST: what would happen to whom. With one: begin."""
    given = request.POST if request.method == "POST" else request.GET
    verb = VERBS.get(given.get("action", ""))
    if verb is None:
        messages.error(request, f"Choose what to do with the jobs: {', '.join(VERBS)}.")
        return redirect("jobs")
    problems = _query(request, given).problems if given.get("all") == "1" else ()
    if problems:  # the rest of the filter would match more jobs than were meant
        messages.error(
            request, f"Nothing was done, because the filter has a mistake. {' '.join(problems)}"
        )
        return HttpResponseRedirect(f"{reverse('jobs')}?{urlencode({'q': given.get('q', '')})}")
    rows = _chosen(request, given)
    if not rows:
        messages.error(request, "No job was chosen. Tick some, or all that match.")
        return redirect("jobs")
    chosen = choices(rows, verb, access(request), request.user.get_username())
    sorted_out = [{**present_job(choice.row), "obstacle": choice.obstacle} for choice in chosen]
    possible = [job for job in sorted_out if not job["obstacle"]]
    if request.method == "POST":
        agreed = [job for job in possible if job["key"] in _agreed(request)]
        if agreed:
            return _begin(request, verb, agreed, later=len(possible) - len(agreed))
    context = {
        "verb": verb,
        "jobs": sorted_out[:_CONFIRMED_AT_MOST],
        "agreed": " ".join(job["key"] for job in possible),
        "unlisted": max(0, len(sorted_out) - _CONFIRMED_AT_MOST),
        "chosen": len(sorted_out),
        "possible": len(possible),
        "users": sorted({job["owner"] for job in possible if job["owner"]}),
        "queues": sorted({job["queue"] for job in possible}),
        "running": sum(1 for job in possible if job["phase"] == "Running"),
        "all": given.get("all") == "1",
        "q": given.get("q", ""),
        "most": MOST_JOBS,
        "too_many": len(possible) > MOST_JOBS,
        "copies": _in_a_terminal(request, verb, [job["key"] for job in possible], given),
    }
    return render(request, "jobs/bulk.html", context)


_ASKS_FIRST = ("cancel", "restart")  # the commands that a terminal asks about, unless told not to


def _in_a_terminal(request: HttpRequest, verb: Verb, keys: list[str], given: Any) -> dict[str, str]:
    """A line a job; over HTTP one request, by the same filter or by names."""
    lines = together(
        copies(request, ["job", verb.key, key, *(["--yes"] if verb.key in _ASKS_FIRST else [])], "")
        for key in keys
    )
    which: Context = {"query": given.get("q", "")} if given.get("all") == "1" else {"jobs": keys}
    return {
        "cli": lines["cli"],
        "curl": copies(request, [], "bulkruns/", {"action": verb.key, **which, "reason": ""})[
            "curl"
        ],
    }


def _query(request: HttpRequest, given: Any) -> Query:
    return read_query(given.get("q", ""), request.user.get_username())


def _chosen(request: HttpRequest, given: Any) -> tuple[JobRow, ...]:
    if given.get("all") == "1":
        return jobs_of_query(_query(request, given), access(request))
    return jobs_named([key.partition("/")[::2] for key in given.getlist("job")], access(request))


def _agreed(request: HttpRequest) -> set[str]:
    """The jobs that the question was about. What has come to match since nobody has agreed to: it is left alone."""
    return (
        set(request.POST.getlist("job"))
        if request.POST.get("all") != "1"
        else set(request.POST.get("agreed", "").split())
    )


def _begin(request: HttpRequest, verb: Verb, agreed: list[Context], later: int) -> HttpResponse:
    keys = [(job["namespace"], job["name"]) for job in agreed]
    try:
        run = start_bulk_run(
            verb.action,
            keys,
            by=actor(request),
            reason=request.POST.get("reason", ""),
            query=request.POST.get("q", ""),
        )
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
        return redirect("jobs")
    if later:
        came = "1 job has" if later == 1 else f"{later} jobs have"
        messages.info(
            request,
            f"{came} come to match since you were asked, and {'is' if later == 1 else 'are'} left alone.",
        )
    return redirect("bulk-run", uid=run.uid)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def progress(request: HttpRequest, uid: uuid.UUID) -> HttpResponse:
    run = bulk_run(uid, request.user)
    if run is None:
        return render(
            request,
            "404.html",
            {"missing": "There is no such action, or it is somebody else's."},
            status=404,
        )
    return (
        _again(request, run)
        if request.method == "POST"
        else render(request, "jobs/progress.html", _progress(run))
    )


def _again(request: HttpRequest, run: BulkRun) -> HttpResponse:
    try:
        run = retry_bulk_run(run, by=actor(request))
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
    return redirect("bulk-run", uid=run.uid)


def _progress(run: BulkRun) -> Context:
    counts = bulk_counts(run)
    whole = sum(counts.values())
    waiting = counts.get("", 0)
    return {
        "run": run,
        "verb": _verb_of(run),
        "whole": whole,
        "done": whole - waiting,
        "left": waiting,
        "bar": _progress_bar(whole - waiting, whole),
        "succeeded": counts.get("Done", 0),
        "unchanged": counts.get("NoOp", 0),
        "refused": counts.get("Refused", 0),
        "items": _items(run),
    }


def _progress_bar(done: int, whole: int) -> SafeString:
    verb = "job is" if whole == 1 else "jobs are"
    drawn = rectangles([Span("use", 0, scaled(done, whole))])
    return bar_html(drawn, label=f"{done} of {whole} {verb} done", style="progress")


def _items(run: BulkRun) -> list[Mapping[str, Any]]:
    """The refused first: they are what somebody has to look at."""
    order = {"Refused": 0, "": 1, "NoOp": 2, "Done": 3}
    return sorted(
        run.items.values("namespace", "name", "result", "message")[:MOST_JOBS],
        key=lambda item: order.get(item["result"], 1),
    )
