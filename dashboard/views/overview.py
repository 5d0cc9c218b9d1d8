"""/: is it healthy, how full, who is starved, what is stuck. Unknown is never shown as 0."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.http.access import access, page, visibility_of
from dashboard.http.health import CHECKS, outcome_of
from dashboard.present.amounts import short_name, shown
from dashboard.present.evictions import present_costs
from dashboard.present.queues import page_resources, present_queues
from dashboard.present.quotas import CLUSTER, Limit, present_quota, quota_of
from dashboard.present.starvation import starved
from scheduler.domain.access import Permission
from scheduler.domain.queues import ROOT
from scheduler.models import ClusterState
from scheduler.selectors.accounts.access import whom_to_ask
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
    seen, readable = access(request).visible, access(request).readable
    board = queue_rows()
    sessions = questions.last_sessions()
    since = questions.a_day_ago()
    context = {
        "checks": {name: outcome_of(check) for name, check in CHECKS.items()},
        "state": questions.cluster_state(),
        **_placing(request),
        "nodes": questions.node_counts(),
        "bars": [
            {**bar, "holders": holders(board, bar["name"], seen)} for bar in cluster_bars(board)
        ],
        "starved": starved(board.visible_to(seen))[:_STARVED_SHOWN],
        "waits": questions.longest_waits(readable),
        "waiting": questions.waiting_count(readable),
        "reasons": waiting_by_reason(seen),
        "sessions": sessions,
        "spark": spark(sessions),
        "evictions": [
            {
                **row,
                "whom": visibility_of(request).visible_job(
                    row["beneficiary"], row["beneficiary_queue"]
                ),
            }
            for row in questions.recent_evictions(seen)
        ],
        "costs": present_costs(eviction_costs(seen)),
        "evictions_24h": questions.evictions_since(since, seen),
        "failures": questions.recent_failures(readable),
        "failures_24h": questions.failures_since(since, readable),
        "warned": [
            row
            for name, row in present_queues(board).items()
            if row["warnings"] and (seen is None or name in seen)
        ],
        "states": state_counts(board.visible_to(seen)),
        "queue_count": len(board.visible_to(seen).rows),
    }
    return render(request, "cluster/overview.html", context)


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
    bars = []
    for resource in page_resources(board):
        quota = quota_of(
            root.figures if root else None, resource, Limit(board.total.get(resource), CLUSTER)
        )
        bars.append({"name": resource, "title": short_name(resource), **present_quota(quota)})
    return bars


def holders(
    board: QueueBoard, resource: str, visible: Collection[str] | None = None
) -> dict[str, Any]:
    """Who has it: the leaf queues with the most of it, and the others in sum.

    Queues that the reader may not see are a sum of their own.
    """
    held = [
        (row.figures.allocated.amount(resource), row.name)
        for row in board.rows
        if row.is_leaf and row.figures
    ]
    seen = [entry for entry in held if visible is None or entry[1] in visible]
    most = sorted((entry for entry in seen if entry[0]), key=lambda entry: (-entry[0], entry[1]))
    rest, unseen = (
        most[_HOLDERS_SHOWN:],
        sum(amount for amount, _ in held) - sum(amount for amount, _ in seen),
    )
    return {
        "first": [
            {"name": name, "amount": shown(resource, amount)}
            for amount, name in most[:_HOLDERS_SHOWN]
        ],
        "others": len(rest),
        "rest": shown(resource, sum(amount for amount, _ in rest)),
        "unseen": shown(resource, unseen) if unseen else "",
    }


def spark(sessions: list[Any]) -> list[dict[str, Any]]:
    """The durations of the last sessions as columns of a small chart, oldest first."""
    totals = [
        (
            session,
            sum(value for value in session.durations.values() if isinstance(value, int | float)),
        )
        for session in reversed(sessions)
    ]
    longest = max((total for _, total in totals), default=0) or 1
    return [
        {
            "x": place * 10,
            "y": round(40 - 38 * total / longest, 1),
            "height": round(38 * total / longest, 1),
            "failed": session.state != "Done",
            "title": f"session {session.number}: {total:.0f} ms"
            + ("" if session.state == "Done" else f", {session.state}"),
        }
        for place, (session, total) in enumerate(totals)
    ]


def state_counts(board: QueueBoard) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in board.rows:
        counts[row.state] = counts.get(row.state, 0) + 1
    return counts
