"""One turn of a plan: begun and ended exactly once.

Its row is locked, checked, changed and committed together with the change itself. So a worker that
dies leaves either nothing or all of it, and of two workers the second finds it done. In a real
cluster, where nothing can be committed together, the row says first what is being done. Whoever
takes over compares, and sends only what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from scheduler.admission.violations import Rejected
from scheduler.domain.access import Forbidden, OutOfSight, Permission
from scheduler.domain.calendar import OccurrenceState, PlanState
from scheduler.domain.change_sets import ChangeItem, Crossed, SetState, edits_between
from scheduler.domain.foresight import settle_all
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import NotAllowed
from scheduler.domain.queues import ROOT
from scheduler.models import ChangePlan, ChangeSet, Occurrence
from scheduler.models.clock import database_now
from scheduler.selectors.change_sets.calendar import has_open_occurrences
from scheduler.selectors.change_sets.objects import manifests_now
from scheduler.services.accounts.actors import SYSTEM, Actor, Door
from scheduler.services.change_sets.apply import carry_out, counts_in_words, for_the_set
from scheduler.services.change_sets.calendar_news import News, tell
from scheduler.services.cluster.queue_writes import ClusterAway, are_queues_in_cluster
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.queues.transaction import tree_transaction

REFUSALS: Final = (Rejected, NotAllowed, NotPossible, Crossed, Forbidden, OutOfSight)
_ABANDONED: Final = timedelta(seconds=60)
State = OccurrenceState
Items = tuple[ChangeItem, ...]


class _RefusedInPart(Rejected):
    """By a real cluster, which has the `written` items by now."""

    def __init__(self, refusal: Rejected, written: Items) -> None:
        super().__init__(refusal.violations, by_state=refusal.by_state)
        self.written = written


# Begin


def begin(number: int) -> None:
    """If it is still to be begun, and its time still runs."""
    with _locked(number) as row:
        now = database_now()
        if not _is_to_begin(row, now):
            return
        if _is_over(row, now):
            _miss(row, now)
            return
        if are_queues_in_cluster():
            if not _claim_begin(row, now):
                return
        else:
            _begin_here(row, now)
            return
    send_begin(number)


def _is_to_begin(row: Occurrence, now: datetime) -> bool:
    if row.state == State.BEGINNING:
        return _is_abandoned(row, now) or _is_shown(row.applied)
    return row.state == State.PLANNED and row.plan.is_active and row.begins_at <= now


def _is_over(row: Occurrence, now: datetime) -> bool:
    """Before anything of it was done."""
    return row.state == State.PLANNED and row.ends_at is not None and row.ends_at <= now


def _is_abandoned(row: Occurrence, now: datetime) -> bool:
    """A claim of the future was made before the clock was put back."""
    if row.claimed_at is None:
        return True
    return not row.claimed_at - _ABANDONED <= now <= row.claimed_at + _ABANDONED


def _miss(row: Occurrence, now: datetime) -> None:
    row.state = State.MISSED
    row.message = "Nobody was there to apply it between its begin and its end."
    row.save()
    message = f"{row.plan.change_set.name} was missed: nothing ran from its begin to its end."
    tell(row.plan, News.MISSED, message, SYSTEM, now)
    finish_plan(row.plan, now)


def _begin_here(row: Occurrence, now: datetime) -> None:
    try:
        items = settled_now(row.plan.change_set.changes)
        with transaction.atomic():
            carry_out(items, _planner(row.plan))
    except REFUSALS as refusal:
        note_conflict(row, State.BEGIN_CONFLICT, refusal, now)
    else:
        note_begun(row, items, _planner(row.plan), now)


def settled_now(items: Items) -> Items:
    """The items on the objects as they are. Raises `Crossed` where one of their fields changed."""
    found = settle_all(items, manifests_now([item.key for item in items]))
    if found.crossings:
        raise Crossed(found.crossings)
    return found.items


def _planner(plan: ChangePlan) -> Actor:
    """Begun with the rights that they have by now. Raises `Forbidden` for a deleted account."""
    if plan.planner is None and plan.planned_by != SYSTEM.name:
        message = f"The account of {plan.planned_by}, who planned it, is gone."
        raise Forbidden(Permission.ADMINISTER, ROOT, message=message)
    scopes = None
    if plan.scopes is not None:
        scopes = frozenset(plan.scopes)
    by = Actor(plan.planned_by, Door.SYSTEM, plan.planner, scopes=scopes, reason="planned")
    return for_the_set(by, plan.change_set)


def note_begun(row: Occurrence, items: Items, by: Actor, now: datetime) -> None:
    """Keeps what was applied, as it is stored, to be taken back at the end."""
    row.state = State.HOLDING
    row.keep(_as_stored(items))
    row.began_at = now
    row.message = ""
    if row.ends_at is None:
        row.state = State.ENDED
    row.save()
    message = f"{row.plan.change_set.name} began: {counts_in_words(items)}."
    if row.ends_at is not None:
        message += f" It ends at {row.ends_at:%Y-%m-%d %H:%M} UTC."
    tell(row.plan, News.BEGAN, message, by, now)
    finish_plan(row.plan, now)


def _as_stored(items: Items) -> Items:
    stored = manifests_now([item.key for item in items])
    return tuple(replace(item, wanted=stored.get(item.key)) for item in items)


# End


def end(number: int, *, by: Actor = SYSTEM, at_once: bool = False) -> None:
    """If it holds, and its end has come. It restores what was, so nobody's rights are asked."""
    with _locked(number) as row:
        now = database_now()
        if not _is_to_end(row, now, at_once):
            return
        if not are_queues_in_cluster():
            end_here(row, by, now)
            return
        _claim(row, State.ENDING, now)
    send_end(number, by)


def _is_to_end(row: Occurrence, now: datetime, at_once: bool) -> bool:
    if row.state == State.ENDING:
        return _is_abandoned(row, now) or _is_shown(backwards(row))
    has_come = row.ends_at is not None and row.ends_at <= now
    return row.state == State.HOLDING and (has_come or at_once)


def end_here(row: Occurrence, by: Actor, now: datetime) -> None:
    """For whoever holds the row and the tree."""
    try:
        items = settled_now(backwards(row))
        with transaction.atomic():
            carry_out(items, restorer(row.plan, by))
    except REFUSALS as refusal:
        note_conflict(row, State.END_CONFLICT, refusal, now)
    else:
        note_ended(row, by, now)


def backwards(row: Occurrence) -> Items:
    return tuple(item.reversed for item in row.applied)


def restorer(plan: ChangePlan, by: Actor) -> Actor:
    """Taking back what was only lent needs no rights. The name is that of who did it."""
    reason = by.reason or "its time is over"
    whole = Actor(by.name, by.door, address=by.address, request_id=by.request_id, reason=reason)
    return for_the_set(whole, plan.change_set)


def note_ended(row: Occurrence, by: Actor, now: datetime, kept: str = "") -> None:
    row.state = State.ENDED
    row.ended_at = now
    row.message = kept
    row.save()
    message = f"{row.plan.change_set.name} ended: what it changed is as it was before."
    if kept:
        message = f"{row.plan.change_set.name} ended. {kept}"
    tell(row.plan, News.ENDED, message, restorer(row.plan, by), now)
    finish_plan(row.plan, now)


def note_conflict(row: Occurrence, state: State, refusal: Exception, now: datetime) -> None:
    """Nothing was applied. It waits for a person."""
    row.state = state
    row.message = _words_of(refusal)
    row.claimed_at = None
    row.save()
    verb = "begin"
    if state is State.END_CONFLICT:
        verb = "end"
    message = f"{row.plan.change_set.name} could not {verb}: {row.message}"
    brief = f"{row.plan.change_set.name} could not {verb}. Its page says why."
    by = for_the_set(SYSTEM, row.plan.change_set)
    tell(row.plan, News.CONFLICT, message, by, now, brief)


def _words_of(refusal: Exception) -> str:
    if isinstance(refusal, Crossed):
        return " ".join(crossing.message for crossing in refusal.crossings)
    return str(refusal)


# Plans that are over


def finish_plan(plan: ChangePlan, now: datetime) -> None:
    """Where nothing is to come any more. Its set is a draft again, or applied for good."""
    if has_open_occurrences(plan) or (plan.is_active and _has_more_turns(plan)):
        return
    if plan.is_active:
        plan.state = PlanState.ENDED
        plan.ended_at = now
    plan.outlook = []
    plan.save()
    change_set = ChangeSet.objects.select_for_update().get(pk=plan.change_set_id)
    if change_set.state != SetState.PLANNED.value:
        return
    change_set.state = SetState.DRAFT.value
    lasting = plan.occurrences.filter(state=State.ENDED.value, ends_at=None).first()
    if lasting is not None:
        change_set.state = SetState.APPLIED.value
        change_set.keep(lasting.applied)
        change_set.ended_at = now
        change_set.ended_by = plan.planned_by
    change_set.resource_version += 1
    change_set.save()
    # so that `take_up_again` knows whether somebody has touched it since
    ChangeSet.objects.filter(pk=change_set.pk).update(updated_at=now)


def take_up_again(number: int) -> None:
    """A plan that is over because its last turn was missed, by a clock that was ahead.

    Only while nobody has touched its set since: else it is theirs to plan it again.
    """
    plan = ChangePlan.objects.select_for_update().get(pk=number)
    change_set = ChangeSet.objects.select_for_update().get(pk=plan.change_set_id)
    if plan.state != PlanState.ENDED or not change_set.is_draft:
        return
    if change_set.updated_at != plan.ended_at:
        return
    plan.state = PlanState.ACTIVE
    plan.ended_at = None
    plan.save()
    change_set.state = SetState.PLANNED.value
    change_set.resource_version += 1
    change_set.save()


def _has_more_turns(plan: ChangePlan) -> bool:
    newest = plan.occurrences.order_by("-number").values_list("number", flat=True).first()
    if newest is None:
        return True
    return plan.timetable.turn(newest + 1) is not None


# Rows


@contextmanager
def _locked(number: int) -> Iterator[Occurrence]:
    """In one transaction with the tree, in the order of locks."""
    with transaction.atomic():
        yield locked_occurrence(number)


def locked_occurrence(number: int) -> Occurrence:
    """Inside of a transaction. In a real cluster nothing but the row can be locked."""
    if not are_queues_in_cluster():
        lock_tree()
        alone_with_pods()
    row = Occurrence.objects.select_for_update().get(pk=number)
    row.plan = ChangePlan.objects.select_for_update().get(pk=row.plan_id)
    return row


# A real cluster


def _claim(row: Occurrence, state: State, now: datetime) -> None:
    row.state = state
    row.claimed_at = now
    row.save()


def _claim_begin(row: Occurrence, now: datetime) -> bool:
    """False where it is a conflict already."""
    if row.state == State.PLANNED:
        try:
            row.keep(settled_now(row.plan.change_set.changes))
        except REFUSALS as refusal:
            note_conflict(row, State.BEGIN_CONFLICT, refusal, now)
            return False
    _claim(row, State.BEGINNING, now)
    return True


def send_begin(number: int, by: Actor | None = None) -> None:
    """What is not there yet is sent. Where the API server is away it is tried again."""
    row = Occurrence.objects.select_related("plan__change_set", "plan__planner").get(pk=number)
    try:
        _send(row.applied, by or _planner(row.plan))
    except ClusterAway as problem:
        _let_go(row, str(problem))
        return
    except REFUSALS as refusal:
        rest = _undo(row, by or SYSTEM, refusal)
        _settle_sent(row, State.BEGIN_CONFLICT, Exception(f"{_words_of(refusal)}{rest}"))
        return
    with transaction.atomic():
        held = locked_occurrence(number)
        if held.state == State.BEGINNING and _is_shown(held.applied):
            note_begun(held, held.applied, by or _planner(held.plan), database_now())


def send_end(number: int, by: Actor = SYSTEM) -> None:
    row = Occurrence.objects.select_related("plan__change_set", "plan__planner").get(pk=number)
    try:
        _send(backwards(row), restorer(row.plan, by))
    except ClusterAway as problem:
        _let_go(row, str(problem))
        return
    except REFUSALS as refusal:
        _settle_sent(row, State.END_CONFLICT, refusal)
        return
    with transaction.atomic():
        held = locked_occurrence(number)
        if held.state == State.ENDING and _is_shown(backwards(held)):
            note_ended(held, by, database_now())


def _send(items: Items, by: Actor) -> None:
    """Tried first, then sent. Raises `_RefusedInPart` if the cluster refuses some of it."""
    left = settled_now(tuple(_not_yet(items)))
    if not left:
        return
    with tree_transaction(dry_run=True):
        carry_out(left, by)
    try:
        with tree_transaction():
            carry_out(left, by)
    except ClusterAway:
        raise
    except Rejected as refusal:
        refused = {violation.queue for violation in refusal.violations}
        written = tuple(item for item in left if item.name not in refused)
        raise _RefusedInPart(refusal, written) from None


def _is_shown(items: Items) -> bool:
    """Whether the tables have what was sent. What is kept for the end is read from them, so nothing
    has begun or ended before. The next tick looks again.
    """
    return not any(_not_yet(items))


def _not_yet(items: Items) -> Iterator[ChangeItem]:
    """Those that are not as wanted by now: somebody who died may have sent the others."""
    now = manifests_now([item.key for item in items])
    for item in items:
        theirs = now.get(item.key)
        if item.wanted is None or theirs is None:
            if item.wanted is not None or theirs is not None:
                yield item
            continue
        differing = {edit.field for edit in edits_between(theirs, item.wanted)}
        if differing & {edit.field for edit in item.edits}:
            yield item


def _undo(row: Occurrence, by: Actor, refusal: Exception) -> str:
    """Queues that were written before one was refused go back. What is left of them, in words."""
    written: Items = ()
    if isinstance(refusal, _RefusedInPart):
        written = refusal.written
    is_known = _is_shown(written)
    try:
        _send(backwards(row), restorer(row.plan, by))
    except REFUSALS as problem:
        return f" A part of it was written and could not be taken back: {problem}"
    if is_known:
        return ""
    names = ", ".join(item.name for item in written)
    return f" The cluster has not told yet whether a part of it was written. Look at {names}."


def _settle_sent(row: Occurrence, state: State, refusal: Exception) -> None:
    with transaction.atomic():
        held = locked_occurrence(row.pk)
        note_conflict(held, state, refusal, database_now())


def _let_go(row: Occurrence, message: str) -> None:
    """The next tick tries again."""
    Occurrence.objects.filter(pk=row.pk).update(claimed_at=None, message=message)
