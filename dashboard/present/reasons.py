"""Why a job waits: the reason, what would help, its place in the queue, and every check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils import timezone

from dashboard.present.amounts import with_unit
from dashboard.templatetags.times import in_words
from scheduler.domain.durations import seconds_between
from scheduler.domain.reasons import reason_entry
from scheduler.models import PodGroup
from scheduler.selectors.accounts.access import owner_of
from scheduler.selectors.jobs.page import (
    FEWEST_STARTS,
    PlaceInLine,
    evaluation_of,
    place_in_line,
    waiting_since,
)

Context = dict[str, Any]
MaySee = Callable[[str], bool]  # whether the reader may see the queue of this name

_NOT_EVALUATED = "AwaitingEvaluation"
_LEAVING = "leaving"  # with this code: how many pods of a gang that was told to go are still there
_STILL_LEAVING = "When its old pods have stopped, it waits for a place again."


def reason_card(gang: PodGroup, may_see: MaySee) -> Context:
    code = gang.reason_code or _NOT_EVALUATED
    level = _level(gang.reason_figures)
    failed_first = sorted(gang.reason_checks, key=lambda check: bool(check["passed"]))
    return {
        "code": code,
        "message": gang.reason_message or "Not evaluated yet: the next session will look at it.",
        "help": help_words(code, gang.reason_figures),
        "stays": not reason_entry(code).can_pass,
        "is_evaluated": code != _NOT_EVALUATED or _LEAVING in gang.reason_figures,
        "evaluated": evaluation_of(gang),
        "level": level,
        "may_see_level": bool(level) and may_see(level),
        **_owner(gang.queue.name, level, may_see),
        "checks": [_check(check) for check in failed_first],
        **_place(gang, place_in_line(gang), may_see),
    }


def _owner(queue: str, level: str, may_see: MaySee) -> Context:
    """Whom to ask: the owner of the queue that holds the job back.

    If the reader may not see that queue, it is the owner of the job's own queue.
    """
    owned = queue
    if level and may_see(level):
        owned = level
    return {"owned": owned, "owner": owner_of(owned)}


def _level(figures: Mapping[str, Any]) -> str:
    return str(figures.get("suspendedBy") or figures.get("level") or figures.get("queue") or "")


def help_words(code: str, figures: Mapping[str, Any]) -> str:
    """What would make it start. Figures that the reason does not have are left out."""
    words = reason_entry(code).help
    if code == _NOT_EVALUATED and _LEAVING in figures:
        words = _STILL_LEAVING
    resource = str(figures.get("resource", ""))
    known = {
        "limit": "less",
        "short": "what it needs and",
        "level": _level(figures) or "its queue",
    }
    for name in ("limit", "short"):
        if resource and name in figures:
            known[name] = with_unit(resource, int(figures[name]))
    return words.format_map(known)


# Where it stands


def _place(gang: PodGroup, standing: PlaceInLine, may_see: MaySee) -> Context:
    parent = gang.queue.parent
    name = gang.queue.name
    if parent is not None and parent.parent_id is not None and may_see(parent.name):
        name = f"{parent.name}/{gang.queue.name}"
    since = waiting_since(gang)
    waited = seconds_between(since, timezone.now())
    return {
        "since": since,
        "place": f"{ordinal(standing.position)} of {standing.waiting} in {name}",
        "ahead": standing.ahead,
        "further_ahead": standing.position - 1 - len(standing.ahead),
        "usual": usual_words(standing),
        "is_late": standing.usual is not None and waited > standing.usual[2] + 1,
    }


def ordinal(number: int) -> str:
    """ "1st", "2nd", "3rd", "11th"."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{endings.get(number % 10, 'th')}"


def usual_words(standing: PlaceInLine) -> str:
    """ "usual wait 8 to 25 min (median 14 min of the last 50 starts)"."""
    if standing.usual is None:
        return f"no estimate: fewer than {FEWEST_STARTS} jobs of this size have started here"
    low, median, high = (in_words(seconds) for seconds in standing.usual)
    span = _span_words(low, high)
    return f"usual wait {span} (median {median} of the last {standing.starts} starts)"


def _span_words(low: str, high: str) -> str:
    """The unit is written once where both have it: "8 to 25 min"."""
    if low == high:
        return high
    amount, _, unit = low.partition(" ")
    if high.endswith(f" {unit}"):
        return f"{amount} to {high}"
    return f"{low} to {high}"


# The checks

CHECK_NAMES = {
    "deserved": "deserved share",
    "overcommit": "line of the queue",
    "cluster": "cluster",
    "node": "largest free node",
}


def use_words(resource: str, used: int, promised: int, admitted: int) -> str:
    """ "5 GPU in use, 2 GPU promised": what is held and what is kept are told apart."""
    words = [f"{with_unit(resource, used)} in use"]
    if promised:
        words.append(f"{with_unit(resource, promised)} promised")
    if admitted:
        words.append(f"{with_unit(resource, admitted)} reserved for jobs admitted before")
    return ", ".join(words)


def _check(check: Mapping[str, Any]) -> Context:
    resource = check["resource"]

    def amount(name: str) -> str:
        return with_unit(resource, check[name])

    def amount_if_any(name: str) -> str:
        if check.get(name):
            return amount(name)
        return ""

    return {
        "passed": check["passed"],
        "what": CHECK_NAMES.get(check["name"], check["name"]),
        "level": check["level"],
        "resource": resource,
        "need": amount("need"),
        "limit": amount("limit"),
        "used": amount("used"),
        "promised": amount_if_any("promised"),
        "admitted": amount_if_any("admitted"),
        "leaving": amount_if_any("leaving"),
        "free": with_unit(resource, max(0, check.get("free", check["limit"] - check["used"]))),
        "short": amount_if_any("short"),
    }
