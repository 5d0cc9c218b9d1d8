"""Who gets a place in the future: gangs within their queue's due, and one that has waited long."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest
from typing import Final

from scheduler.domain.tables import Rows
from scheduler.engine.eviction.claims import is_within_due, missing_amounts, missing_runs
from scheduler.engine.eviction.whole_gangs import lay_out
from scheduler.engine.future_places import Runs
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

LONG_WAIT: Final = 600.0
"""After so many seconds a gang beyond its queue's due may get a place in the future."""
LOOKED_AT: Final = 8
"""So many of those gangs are tried, the oldest first."""
DUE_WAIT: Final = 60.0
"""After so many seconds a gang within its queue's due counts as one that finds no room."""


def reserve_future_place(session: Session, gang: Gang) -> None:
    """A gang that is within its queue's due, and found no room now, gets a place in the future."""
    if not session.future_places.are_open_to(gang.queue) or not is_within_due(session, gang):
        return
    if gang.failed == "room" or _lacks_reserved_room(session, gang):
        session.future_places.add(gang, missing_runs(session, gang))


def reserve_for_longest_waiting(session: Session, gangs: Iterable[Gang], waiting: Rows) -> None:
    """One large gang beyond its queue's due gets a place in the future, too, after a long wait.

    Else it would never start where small ones come all the time. While gangs within their due find
    no room, it gets none: they would take it, and until then it would be kept from others in vain.
    """
    if not session.future_places.are_given:
        return
    # What one gang does not get, others that ask for the same do not get either.
    passed_over: set[tuple[object, ...]] = set()
    incomplete = (gang for gang in gangs if gang.missing)
    for gang in nsmallest(LOOKED_AT, incomplete, key=lambda gang: (gang.created, gang.key)):
        runs = missing_runs(session, gang)
        asked = (gang.queue, *runs)
        if asked in passed_over:
            continue
        if not _needs_a_borrowed_place(session, gang, runs):
            passed_over.add(asked)
            continue
        # Asked last: an outcome that did not need the time is reused while nothing changes.
        if gang.created > session.snapshot.taken_at - LONG_WAIT:
            return
        if _is_due_waited_for(session, waiting):
            return
        if session.future_places.add_borrowed(gang, runs) is not None:
            return


def _needs_a_borrowed_place(session: Session, gang: Gang, runs: Runs) -> bool:
    """It is within the limits of its queue, beyond its due, and there is no room for it now."""
    if not _is_within_limits(session, gang) or is_within_due(session, gang):
        return False
    return lay_out(session, session.node_table.free(), runs) is None


def _is_due_waited_for(session: Session, waiting: Rows) -> bool:
    """Whether one of these podgroups is short of its minimum, though it would be within its queue's
    due, and has been for a while.
    """
    groups = session.snapshot.groups
    quotas = session.quotas
    if quotas is None:
        return False
    rows = waiting[session.placed_counts[waiting] < groups.min_member[waiting]]
    rows = rows[groups.created[rows] <= session.snapshot.taken_at - DUE_WAIT]
    wanted = groups.min_resources[rows]
    queues = groups.queue[rows]
    asked = (wanted > 0) & session.queue_usage.dims
    after = session.queue_usage.allocated[queues] + wanted
    is_within = ((after <= quotas.deserved[queues]) | ~asked).all(axis=1)
    return bool((is_within & asked.any(axis=1)).any())


def _lacks_reserved_room(session: Session, gang: Gang) -> bool:
    """There is no quota in its way but what others are guaranteed."""
    if session.quotas is None or session.quotas.reserved is None:
        return False
    return _is_within_limits(session, gang)


def _is_within_limits(session: Session, gang: Gang) -> bool:
    """Whether no queue above but root, the cluster, has more than it may with the gang in it."""
    quotas = session.quotas
    if quotas is None:
        return True
    path = [
        row for row in session.queue_tree.path_list(gang.queue) if row != session.queue_tree.root
    ]
    used = session.queue_usage.allocated[path] + missing_amounts(session, gang)
    return bool((used <= quotas.real_capability[path])[:, session.queue_usage.dims].all())
