"""/jobs/: the table of jobs with its query box."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.forms.job_choice import read_query, vocabulary
from dashboard.forms.query import DURATION_FIELDS, NUMBER_FIELDS, STATES, TEXT_FIELDS, Query
from dashboard.forms.typed import whole_number
from dashboard.http.access import access, may_submit_anywhere, page
from dashboard.present.job_groups import TITLES, present_facets, present_groups
from dashboard.present.jobs import COLUMNS, DEFAULT_COLUMNS, VERBS, may_command, present_job
from dashboard.views.bulk_jobs import run_line
from dashboard.views.saved_views import view_links
from scheduler.domain.job_groups import JobField
from scheduler.domain.plans import counted
from scheduler.models import PodGroup
from scheduler.selectors.accounts.preferences import recent_runs
from scheduler.selectors.jobs.groups import facets_of, facets_of_all, job_groups
from scheduler.selectors.jobs.listing import (
    COUNTED_AT_MOST,
    PAGE,
    JobPage,
    JobRow,
    count_up_to,
    job_page,
    jobs_matching,
    last_of_each_page,
)
from scheduler.services.cluster.mirrored import how_to_change, may_be_changed_here

Context = dict[str, Any]
GROUPS_SHOWN = 500
_TABS = (
    ("All", ""),
    ("Mine", "user:me"),
    ("Waiting", "state:waiting"),
    ("Running", "state:running"),
    ("Failed", "state:failed"),
)


@require_safe
@page
def jobs(request: HttpRequest) -> HttpResponse:
    query = read_query(request.GET.get("q", ""), request.user.get_username())
    found = jobs_matching(query.conditions, access(request).readable)
    if query.problems:  # the rest of the filter would match more jobs than were meant
        found = found.none()
    if request.headers.get("X-Rows"):
        return _part_of_a_long_list(request, found)
    count = count_up_to(found)
    context = {
        "q": request.GET.get("q", ""),
        "chips": _query_chips(request, query),
        "problems": [term for term in query.terms if term.problem],
        "count": _count_words(count),
        "tabs": _filter_tabs(request),
        "views": view_links(request),
        "help": _query_help(request),
        "runs": [run_line(run) for run in recent_runs(request.user)],
        "may_submit": may_submit_anywhere(request),
        "how_to_change": how_to_change("Job"),
        "keep": _kept_parameters(request),
        "facets": _facets(request, query, found, count),
        **_group_choice(request),
    }
    if context["group"]:
        context |= _group_context(request, query, found)
        return render(request, "jobs/groups.html", context)
    context |= _list_context(request, found)
    return render(request, "jobs/list.html", context)


def _part_of_a_long_list(request: HttpRequest, found: QuerySet[PodGroup]) -> HttpResponse:
    """For a page that is scrolled: where its slices end, or the rows of one slice and no more."""
    if request.headers["X-Rows"] == "ends":
        ends = last_of_each_page(found, oldest_first=_is_oldest_first(request))
        return JsonResponse({"rows": ends.rows, "ends": ends.keys})
    rows = _rows_of_page(request, found)
    context = {"rows": _selectable_rows(request, rows), **_column_context(request)}
    return render(request, "jobs/_rows.html", context)


def _is_oldest_first(request: HttpRequest) -> bool:
    return request.GET.get("sort") == "oldest"


def _rows_of_page(request: HttpRequest, found: QuerySet[PodGroup]) -> JobPage:
    return job_page(
        found,
        before=whole_number(request.GET.get("before", "")),
        after=whole_number(request.GET.get("after", "")),
        oldest_first=_is_oldest_first(request),
    )


def _selectable_rows(request: HttpRequest, rows: JobPage) -> list[Context]:
    return [_selectable_row(request, row) for row in rows.rows]


def _list_context(request: HttpRequest, found: QuerySet[PodGroup]) -> Context:
    oldest_first = _is_oldest_first(request)
    rows = _rows_of_page(request, found)
    selectable = _selectable_rows(request, rows)
    other_sort = "oldest"
    if oldest_first:
        other_sort = ""
    return {
        "rows": selectable,
        "may_any": any(row["may"] for row in selectable),
        # A gang without a job takes no commands.
        "matching": _count_words(count_up_to(found.exclude(job=None))),
        **_column_context(request),
        **_page_links(request, rows),
        "is_long": bool(rows.older and not rows.newer),
        "page_rows": PAGE,
        "oldest_first": oldest_first,
        "sort_url": _page_url(request, sort=other_sort),
        "verbs": VERBS.values(),
    }


def _kept_parameters(request: HttpRequest) -> Context:
    keep = {}
    for name in ("cols", "sort", "group"):
        if request.GET.get(name):
            keep[name] = request.GET[name]
    return keep


def _facets(
    request: HttpRequest, query: Query, found: QuerySet[PodGroup], count: int
) -> list[Context] | None:
    """None where an open page fetches itself: to count many jobs each second would cost too much.

    The page keeps those that it has.
    """
    if request.headers.get("X-Refresh") and count > COUNTED_AT_MOST:
        return None
    if query.terms:
        facets = facets_of(found)
    else:
        facets = facets_of_all(access(request).readable)
    return present_facets(
        facets,
        query,
        lambda text: _page_url(request, q=text),
        lambda by: _page_url(request, group=by),
    )


def _group_choice(request: HttpRequest) -> Context:
    """How the jobs are grouped, "" for a plain list, and what there is to choose from."""
    chosen = request.GET.get("group", "")
    if chosen not in tuple(JobField):
        chosen = ""
    choices = [{"title": "No groups", "url": _page_url(request, group=""), "here": not chosen}]
    for by in JobField:
        url = _page_url(request, group=by.value)
        choices.append({"title": TITLES[by], "url": url, "here": by == chosen})
    return {"group": chosen, "group_choices": choices}


def _group_context(request: HttpRequest, query: Query, found: QuerySet[PodGroup]) -> Context:
    by = JobField(request.GET["group"])
    groups = job_groups(found, by)
    shown = present_groups(
        groups[:GROUPS_SHOWN], by, query, lambda text: _page_url(request, q=text, group="")
    )
    return {
        "group_title": TITLES[by],
        "groups": shown,
        "groups_left": len(groups) - len(shown),
        "groups_words": counted(len(groups), "group"),
    }


def _page_links(request: HttpRequest, rows: JobPage) -> Context:
    links = {"older_url": "", "newer_url": ""}
    if rows.older:
        links["older_url"] = _page_url(request, before=rows.older)
    if rows.newer:
        links["newer_url"] = _page_url(request, after=rows.newer)
    return links


def _column_context(request: HttpRequest) -> Context:
    shown = _shown_columns(request)
    offered = []
    for key, title in COLUMNS.items():
        if key != "name":
            offered.append((key, title, key in shown))
    return {"columns": [(key, COLUMNS[key]) for key in shown], "choices": offered}


def _shown_columns(request: HttpRequest) -> list[str]:
    chosen = ",".join(request.GET.getlist("cols"))
    names = set(DEFAULT_COLUMNS)
    if chosen.strip(","):
        names = set(chosen.split(","))
    return [key for key in COLUMNS if key in names or key == "name"]


def _count_words(count: int) -> str:
    if count > COUNTED_AT_MOST:
        return f"more than {COUNTED_AT_MOST:,} jobs".replace(",", " ")
    return counted(count, "job")


def _page_url(request: HttpRequest, **changes: Any) -> str:
    """This page with other parameters. A change of anything but the page starts at page one."""
    given = {
        "q": request.GET.get("q", ""),
        "cols": ",".join(request.GET.getlist("cols")),
        "sort": request.GET.get("sort", ""),
        "group": request.GET.get("group", ""),
        **changes,
    }
    words = urlencode({name: value for name, value in given.items() if value not in ("", None)})
    if not words:
        return reverse("jobs")
    return f"{reverse('jobs')}?{words}"


def _query_chips(request: HttpRequest, query: Query) -> list[Context]:
    """Each word of the query, with a link to the page without it."""
    chips = []
    for place, term in enumerate(query.terms):
        without = _page_url(request, q=query.without(place))
        chips.append({"text": term.text, "problem": term.problem, "without": without})
    return chips


def _selectable_row(request: HttpRequest, row: JobRow) -> Context:
    username = request.user.get_username()
    may = False
    if row.is_job and may_be_changed_here("Job"):
        may = may_command(access(request), username, row.place, row.owner)
    return {**present_job(row), "may": may}


def _filter_tabs(request: HttpRequest) -> list[Context]:
    here = request.GET.get("q", "").strip()
    tabs = []
    for title, query in _TABS:
        tabs.append({"title": title, "url": _page_url(request, q=query), "here": here == query})
    return tabs


def _query_help(request: HttpRequest) -> list[tuple[str, str]]:
    lines = list(TEXT_FIELDS.items())
    for name in vocabulary(request.user.get_username()).resources:
        lines.append((name, f"{name}>=8, what the gang needs to start"))
    lines += [*NUMBER_FIELDS.items(), *DURATION_FIELDS.items()]
    lines.append(("states", ", ".join(STATES)))
    return lines
