"""/: is it healthy, how full, who is starved, what is stuck. Unknown is never shown as 0."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.http.access import access, page, visibility_of
from dashboard.http.health import outcomes_of_checks
from dashboard.present.amounts import short_name, shown
from dashboard.present.evictions import present_costs
from dashboard.present.queues import PresentedRow, page_resources, present_queues
from dashboard.present.quotas import CLUSTER, Limit, present_quota, quota_of
from dashboard.present.starvation import starved
from dashboard.views.saved_views import view_tiles
from scheduler.domain.access import Permission
from scheduler.domain.queues import ROOT
from scheduler.models import ClusterState
from scheduler.selectors.accounts.access import whom_to_ask
from scheduler.selectors.change_sets.calendar import conflicts_seen
from scheduler.selectors.cluster import overview as questions
from scheduler.selectors.cluster.evictions import eviction_costs
from scheduler.selectors.queues.listing import QueueBoard, queue_rows
from scheduler.selectors.queues.page import waiting_by_reason
from scheduler.services.sessions.policies import DEFAULT_VERSION, gives_shares
from scheduler.services.sessions.policy_effects import standstill

_STARVED_SHOWN = 8
_HOLDERS_SHOWN = 5


@require_safe
@page
def overview(request: HttpRequest) -> HttpResponse:
    if not access(request).may_anywhere(Permission.VIEW):
        return render(
            request,
            "cluster/overview.html",
            {"state": questions.cluster_state(), "whom": whom_to_ask(ROOT), "sees_nothing": True},
        )
    seen = access(request).visible
    readable = access(request).readable
    board = queue_rows()
    visible_board = board.visible_to(seen)
    sessions = questions.last_sessions()
    since = questions.a_day_ago()
    context = {
        "checks": outcomes_of_checks(),
        "state": questions.cluster_state(),
        **_placing(request),
        "nodes": questions.node_counts(),
        "bars": _bars_with_holders(board, seen),
        "starved": starved(visible_board)[:_STARVED_SHOWN],
        "waits": questions.longest_waits(readable),
        "waiting": questions.waiting_count(readable),
        "reasons": waiting_by_reason(seen),
        "sessions": sessions,
        "spark": spark(sessions),
        "evictions": _evictions(request),
        "costs": present_costs(eviction_costs(seen)),
        "evictions_24h": questions.evictions_since(since, seen),
        "failures": questions.recent_failures(readable),
        "failures_24h": questions.failures_since(since, readable),
        "held_up": conflicts_seen(access(request), request.user.get_username()),
        "warned": _warned_queues(board, seen),
        "states": state_counts(visible_board),
        "queue_count": len(visible_board.rows),
        "view_tiles": view_tiles(request),
    }
    return render(request, "cluster/overview.html", context)


def _bars_with_holders(board: QueueBoard, seen: Collection[str] | None) -> list[dict[str, Any]]:
    bars = cluster_bars(board)
    for bar in bars:
        bar["holders"] = holders(board, bar["name"], seen)
    return bars


def _evictions(request: HttpRequest) -> list[dict[str, Any]]:
    """With whom they were for, as far as the reader may know."""
    mine = visibility_of(request)
    rows = []
    for row in questions.recent_evictions(access(request).visible):
        whom = mine.visible_job(row["beneficiary"], row["beneficiary_queue"])
        rows.append({**row, "whom": whom})
    return rows


def _warned_queues(board: QueueBoard, seen: Collection[str] | None) -> list[PresentedRow]:
    warned = []
    for name, row in present_queues(board).items():
        if row["warnings"] and (seen is None or name in seen):
            warned.append(row)
    return warned


def _placing(request: HttpRequest) -> dict[str, Any]:
    """Whether the policy keeps everything from starting, and the way back for who may take it."""
    state = ClusterState.objects.select_related("policy").get(pk=1)
    return {
        "standstill": standstill(),
        "no_shares": not gives_shares(state),
        "policy_version": state.policy_id or DEFAULT_VERSION,
        "is_cluster_admin": access(request).is_cluster_admin,
    }


def cluster_bars(board: QueueBoard) -> list[dict[str, Any]]:
    """For each resource, what the cluster (root) has in use and what is asked for."""
    root = next((row for row in board.rows if row.name == "root"), None)
    figures = None
    if root:
        figures = root.figures
    bars = []
    for resource in page_resources(board):
        limit = Limit(board.total.get(resource), CLUSTER)
        quota = quota_of(figures, resource, limit)
        bars.append({"name": resource, "title": short_name(resource), **present_quota(quota)})
    return bars


def holders(
    board: QueueBoard,
    resource: str,
    visible: Collection[str] | None = None,
) -> dict[str, Any]:
    """Who has it: the leaf queues with the most of it, and the others in sum.

    Queues that the reader may not see are a sum of their own.
    """
    held: dict[str, int] = {}
    unseen = 0
    for row in board.rows:
        if not row.is_leaf or not row.figures:
            continue
        amount = row.figures.allocated.amount(resource)
        if visible is not None and row.name not in visible:
            unseen += amount
        elif amount:
            held[row.name] = amount
    most = sorted(held, key=lambda name: (-held[name], name))
    first = []
    for name in most[:_HOLDERS_SHOWN]:
        first.append({"name": name, "amount": shown(resource, held[name])})
    rest = most[_HOLDERS_SHOWN:]
    unseen_words = ""
    if unseen:
        unseen_words = shown(resource, unseen)
    return {
        "first": first,
        "others": len(rest),
        "rest": shown(resource, sum(held[name] for name in rest)),
        "unseen": unseen_words,
    }


def spark(sessions: list[Any]) -> list[dict[str, Any]]:
    """The durations of the last sessions as columns of a small chart, oldest first."""
    totals = [_milliseconds(session) for session in sessions]
    longest = max(totals, default=0) or 1
    columns = []
    for place, session in enumerate(reversed(sessions)):
        total = _milliseconds(session)
        title = f"session {session.number}: {total:.0f} ms"
        if session.state != "Done":
            title += f", {session.state}"
        height = 38 * total / longest
        column = {
            "x": place * 10,
            "y": round(40 - height, 1),
            "height": round(height, 1),
            "failed": session.state != "Done",
            "title": title,
        }
        columns.append(column)
    return columns


def _milliseconds(session: Any) -> float:
    """Of all parts; the actions are parts of a part, in a mapping of their own."""
    durations = session.durations.values()
    return sum(value for value in durations if isinstance(value, int | float))


def state_counts(board: QueueBoard) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in board.rows:
        counts[row.state] = counts.get(row.state, 0) + 1
    return counts
