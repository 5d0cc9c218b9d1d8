"""A preview as pages show it."""

from __future__ import annotations

from typing import Any

from scheduler.domain.previews import STANDSTILL
from scheduler.domain.resources import Resources

_MOST_ROWS = 200


def shown_preview(result: dict[str, Any]) -> dict[str, Any]:
    """Rows for the tables, and how many are left out."""
    shares = _share_rows(result["queues"])
    moves = [_move_row(move) for move in result["moves"]]
    evictions = [_eviction_row(row) for row in result["evictions"]]
    set_back = [_set_back_row(gang) for gang in result.get("setBack", ())]
    below = [_below_row(queue) for queue in result["queues"] if queue["belowGuarantee"]]
    return {
        "now": result["now"],
        "then": result["then"],
        "ahead": _ahead(result["now"], result["then"]),
        "shares": shares[:_MOST_ROWS],
        "more_shares": max(0, len(shares) - _MOST_ROWS),
        "set_back": set_back[:_MOST_ROWS],
        "more_set_back": max(0, len(set_back) - _MOST_ROWS),
        "moves": moves[:_MOST_ROWS],
        "more_moves": max(0, len(moves) - _MOST_ROWS),
        "evictions": evictions[:_MOST_ROWS],
        "more_evictions": max(0, len(evictions) - _MOST_ROWS),
        "below": below,
        "jobs": [_job_row(job) for job in result.get("jobs", ())],
        "notices": result.get("notices", ()),
        "run_times": result.get("runTimes"),
        "as_of": result.get("asOf"),
        "is_cut": result["isCut"],
        "paused": result["paused"],
        "resumed": result.get("resumed", ""),
    }


def named_queues(told: dict[str, Any]) -> set[str]:
    """The queues that are shown."""
    rows = (
        *told["shares"],
        *told["below"],
        *told["set_back"],
        *told["evictions"],
        *told["jobs"],
    )
    return {row["queue"] for row in rows}


def named_gangs(told: dict[str, Any]) -> set[str]:
    """The gangs that are shown, as `namespace/name`."""
    rows = (*told["set_back"], *told["moves"], *told["evictions"])
    found = {row["podgroup"] for row in rows}
    return found | {row["beneficiary"] for row in told["evictions"]}


def _below_row(queue: dict[str, Any]) -> dict[str, Any]:
    """One that is below its guarantee anyway is no worse off."""
    missing = queue["belowGuarantee"]
    return {
        "queue": queue["queue"],
        "resources": ", ".join(missing),
        "is_new": bool(set(missing) - set(queue.get("wasBelowGuarantee", ()))),
    }


def _ahead(now: dict[str, Any], then: dict[str, Any]) -> str:
    """A run that came to a standstill is known however far the other one goes."""
    known = [side["seconds"] for side in (now, then) if side["halt"] != STANDSTILL]
    if not known:
        return "ahead until nothing more would happen"
    return f"{_span(min(known))} ahead"


def _share_rows(queues: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each resource of a queue that changes."""
    rows = []
    for queue in queues:
        texts = {}
        amounts = {}
        for figure in ("deserved", "allocated"):
            for side in ("before", "after"):
                given = queue[figure][side]
                texts[figure, side] = given
                amounts[figure, side] = Resources.parse(given)
        for resource in sorted({name for given in texts.values() for name in given}):
            row = _share_row(queue["queue"], resource, texts, amounts)
            if row is not None:
                rows.append(row)
    return rows


def _share_row(queue: str, resource: str, texts: Any, amounts: Any) -> dict[str, Any] | None:
    figures = {key: given.amount(resource) for key, given in amounts.items()}
    changed = [
        figure
        for figure in ("deserved", "allocated")
        if figures[figure, "before"] != figures[figure, "after"]
    ]
    if not changed:
        return None
    most = max(figures.values()) or 1
    row: dict[str, Any] = {"queue": queue, "resource": resource}
    for (figure, side), amount in figures.items():
        row[f"{figure}_{side}"] = {
            "text": texts[figure, side].get(resource, "0"),
            "part": round(amount / most, 4),
        }
    return row


def _move_row(move: dict[str, Any]) -> dict[str, Any]:
    before = move["before"]
    after = move["after"]
    if before is None:
        words = "starts, and would not without it"
    elif after is None:
        words = "does not start any more"
    elif after < before:
        words = f"{_span(before - after)} earlier"
    else:
        words = f"{_span(after - before)} later"
    return {
        "podgroup": move["podgroup"],
        "before": _when(before),
        "after": _when(after),
        "words": words,
    }


def _set_back_row(gang: dict[str, Any]) -> dict[str, Any]:
    words = _when(gang["start"])
    if gang["goesOn"]:
        words = "goes on with the others"
    return {**gang, "words": words}


def _eviction_row(loss: dict[str, Any]) -> dict[str, Any]:
    namespace, _, name = loss["podgroup"].partition("/")
    return {
        **loss,
        "namespace": namespace,
        "name": name,
        "pod_name": loss["pod"].rpartition("/")[2],
        "when": _when(loss["at"]),
    }


def _job_row(job: dict[str, Any]) -> dict[str, Any]:
    namespace, _, name = job["podgroup"].partition("/")
    return {**job, "namespace": namespace, "name": name, "words": _start_words(job)}


def _start_words(job: dict[str, Any]) -> str:
    if job["start"] is None:
        return "does not start in this time"
    if job["start"] < 1:
        return "starts in the first session"
    if job["latest"] - job["earliest"] < 1:
        return f"starts in {_span(job['start'])}"
    return f"starts in {_span(job['earliest'])} to {_span(job['latest'])}"


def _when(seconds: float | None) -> str:
    if seconds is None:
        return "not in this time"
    if seconds < 1:
        return "in the first session"
    return f"in {_span(seconds)}"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
