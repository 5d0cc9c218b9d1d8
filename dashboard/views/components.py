"""/components/: every part of the design language on one page, for who builds the next one."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.http.access import page
from dashboard.present.quotas import CLUSTER, Limit, Quota, present_quota

GPU = "nvidia.com/gpu"


def _quota(
    allocated: int | None,
    deserved: int | None,
    limit: Limit,
    pending: int = 0,
    guarantee: int | None = None,
    lent: int = 0,
) -> Quota:
    def units(number: int | None) -> int | None:
        if number is None:
            return None
        return number * 1000

    return Quota(
        GPU,
        units(allocated),
        units(deserved),
        units(guarantee),
        pending * 1000,
        Limit(units(limit.amount), limit.source),
        lent * 1000,
    )


EXAMPLES = {
    "Within what it deserves, with a guarantee": _quota(10, 16, Limit(32, ""), guarantee=8),
    "Borrowing, and asking for more": _quota(22, 16, Limit(32, ""), pending=6),
    "Lending: a sibling uses the rest": _quota(6, 16, Limit(32, ""), lent=10),
    "Capability inherited from above": _quota(10, 16, Limit(64, "team-a")),
    "Over its capability": _quota(36, 16, Limit(32, "")),
    "Nothing deserved, limited by the cluster": _quota(4, None, Limit(64, CLUSTER)),
    "No capability known": _quota(9, 6, Limit(None, "")),
    "Not evaluated yet": _quota(None, None, Limit(32, "")),
}


@require_safe
@page
def components(request: HttpRequest) -> HttpResponse:
    bars = []
    for title, quota in EXAMPLES.items():
        bars.append({"title": title, "quota": present_quota(quota)})
    return render(
        request,
        "components.html",
        {"bars": bars, "states": ["Open", "Closing", "Closed", "Suspended", "Unknown"]},
    )
