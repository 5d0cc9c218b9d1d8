"""Previews in the background: asked for, claimed by a worker, told how far they are, cancelled."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from celery import current_app
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduler import notify
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import Forbidden, OutOfSight, Permission
from scheduler.domain.change_sets import ChangeItem, Crossed, as_json, from_json
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import NotAllowed
from scheduler.domain.previews import PreviewState, Prospect
from scheduler.domain.previews import as_json as compared
from scheduler.domain.queues import ROOT
from scheduler.domain.snapshot import Snapshot
from scheduler.models import ChangeSet, Node, Preview
from scheduler.selectors.change_sets.listing import queues_of
from scheduler.selectors.change_sets.objects import crossings_of
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.change_sets.preview import (
    MOST_MINUTES,
    Scene,
    part_of,
    prospect_of,
    scene_after,
    scene_now,
)
from scheduler.services.change_sets.wishes import items_from

logger = logging.getLogger(__name__)

MOST_SECONDS = 60.0
"""A preview that takes longer is cut: it tells how far ahead it came."""
MOST_OPEN = 3
_TOLD_EVERY = 0.5
_ABANDONED = timedelta(seconds=30)
_REFUSALS = (Rejected, NotAllowed, NotPossible, Crossed, Forbidden, OutOfSight)


class _Cancelled(Exception):
    pass


def start_preview(
    *,
    by: Actor,
    change_set: ChangeSet | None = None,
    documents: Iterable[object] = (),
    lost_nodes: Collection[str] = (),
    minutes: int = 60,
) -> Preview:
    """Write the question down and ask for a worker.

    Raises `Rejected` for one that cannot be read, and while `MOST_OPEN` of the caller run.
    """
    if not access.access_for(by).may_anywhere(Permission.OPERATE):
        raise access.access_for(by).refusal(Permission.OPERATE, ROOT, "try changes out")
    items: tuple[ChangeItem, ...] = ()
    documents = list(documents)
    if change_set is not None:
        items = change_set.changes
    elif documents:
        items = items_from(documents)
    _refuse_nonsense(items, lost_nodes, minutes)
    for queue in queues_of(items):
        access.require(by, Permission.VIEW, queue)
    with transaction.atomic():
        _refuse_too_many(by)
        preview = Preview.objects.create(
            owner=by.user,
            change_set=change_set,
            items=as_json(items),
            lost_nodes=sorted(set(lost_nodes)),
            minutes=minutes,
            scopes=None if by.scopes is None else sorted(by.scopes),
        )
        transaction.on_commit(_ask_for_a_worker)
    return preview


def _refuse_nonsense(items: tuple[ChangeItem, ...], lost: Collection[str], minutes: int) -> None:
    if not items and not lost:
        message = "There is nothing to try out: name a change set, documents or nodes to lose."
        raise Rejected([Violation("nothing_given", "", "documents", message)])
    if not 1 <= minutes <= MOST_MINUTES:
        message = f"minutes is {minutes}; it must be from 1 to {MOST_MINUTES}."
        raise Rejected([Violation("invalid_value", "", "minutes", message)])
    known = set(Node.objects.filter(name__in=lost).values_list("name", flat=True))
    for name in sorted(set(lost) - known):
        message = f"There is no node {name[:253]}."
        raise Rejected([Violation("not_found", "", "lostNodes", message)])


def _refuse_too_many(by: Actor) -> None:
    waiting = (PreviewState.WAITING.value, PreviewState.RUNNING.value)
    if Preview.objects.filter(owner=by.user, state__in=waiting).count() < MOST_OPEN:
        return
    message = f"{MOST_OPEN} previews of yours are still worked out."
    fix = "wait for them, or cancel one"
    raise Rejected([Violation("too_many", "", "", message, fix)], by_state=True)


def cancel_preview(preview: Preview) -> bool:
    """False where it had ended already. A worker that is at it stops soon."""
    waiting = (PreviewState.WAITING.value, PreviewState.RUNNING.value)
    return bool(
        Preview.objects.filter(pk=preview.pk, state__in=waiting).update(
            state=PreviewState.CANCELLED.value, finished_at=timezone.now()
        )
    )


def _ask_for_a_worker() -> None:
    """If the broker is away the next tick of the cluster's watch finds it."""
    try:
        current_app.send_task("scheduler.tasks.work_out_previews", expires=30, retry=False)
    except OperationalError as problem:
        logger.warning("could not ask for a worker, the next tick will do: %s", problem)


def has_waiting_previews() -> bool:
    return _free().exists()


def _free() -> QuerySet[Preview]:
    now = timezone.now()
    # a claim of the future was made before the clock was put back
    abandoned = Q(claimed_at__lt=now - _ABANDONED) | Q(claimed_at__gt=now + _ABANDONED)
    waiting = (PreviewState.WAITING.value, PreviewState.RUNNING.value)
    return Preview.objects.filter(Q(claimed_at=None) | abandoned, state__in=waiting)


def work_out_previews() -> None:
    """Those that wait, one after the other, and those that a worker left behind."""
    while (preview := _claim()) is not None:
        _work_out(preview)


def _claim() -> Preview | None:
    """One at a time: the workers have more to do."""
    heard = timezone.now() - _ABANDONED
    if Preview.objects.filter(state=PreviewState.RUNNING.value, claimed_at__gte=heard).exists():
        return None
    for preview in _free().order_by("pk").select_related("owner")[:10]:
        claim = {"claimed_at": timezone.now(), "state": PreviewState.RUNNING.value}
        if _free().filter(pk=preview.pk).update(**claim):
            return preview
    return None


def _work_out(preview: Preview) -> None:
    """Whatever comes of it, the row says so."""
    try:
        result = _result_of(preview)
    except _Cancelled:
        return
    except _REFUSALS as refusal:
        _finish(preview, PreviewState.REFUSED, str(refusal))
        return
    except Exception as problem:
        logger.error("the preview %s failed", preview.pk, exc_info=problem)
        message = "It could not be worked out: an unexpected error was written to the log."
        _finish(preview, PreviewState.FAILED, message)
        return
    _finish(preview, PreviewState.DONE, "", result=result, progress=1.0)


def _finish(preview: Preview, state: PreviewState, message: str, **more: object) -> None:
    Preview.objects.filter(pk=preview.pk, state=PreviewState.RUNNING.value).update(
        state=state.value, message=message, finished_at=timezone.now(), **more
    )
    notify.cluster_changed()


def _result_of(preview: Preview) -> dict[str, object]:
    by = Actor(
        preview.owner.get_username(),
        Door.SYSTEM,
        preview.owner,
        scopes=None if preview.scopes is None else frozenset(preview.scopes),
    )
    items = from_json(preview.items)
    crossings = crossings_of(items)
    if crossings:
        raise Crossed(crossings)
    now = scene_now()
    taken_at = datetime.fromtimestamp(now.snapshot.taken_at, UTC)
    Preview.objects.filter(pk=preview.pk).update(taken_at=taken_at)
    told = _Teller(preview.pk)
    minutes = preview.minutes
    then = scene_after(now, items, by, preview.lost_nodes)
    before = prospect_of(now, minutes, part_of(told, minutes, 0.0, 0.5))
    after = prospect_of(then, minutes, part_of(told, minutes, 0.5, 1.0))
    seen = access.access_for(by).visible
    result = compared(_as_seen(before, now, seen), _as_seen(after, then, seen))
    return {**result, "paused": now.snapshot.paused, "isCut": told.is_late}


class _Teller:
    """Writes down how far it is, and hears whether it is cancelled or has taken too long."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._began = time.monotonic()
        self._told = self._began
        self.is_late = False

    def __call__(self, part: float) -> bool:
        now = time.monotonic()
        if now - self._told >= _TOLD_EVERY:
            self._told = now
            mine = Preview.objects.filter(pk=self._number, state=PreviewState.RUNNING.value)
            if not mine.update(progress=part, claimed_at=timezone.now()):
                raise _Cancelled
        # each of the two runs has half of the time
        allowed = MOST_SECONDS / 2
        if part > 0.5:
            allowed = MOST_SECONDS
        self.is_late = self.is_late or now - self._began > allowed
        return now - self._began <= allowed


def _as_seen(prospect: Prospect, scene: Scene, seen: Collection[str] | None) -> Prospect:
    """Without queues and gangs that the owner may not see."""
    if seen is None:
        return prospect
    gangs = _gangs_in(scene.snapshot, seen)
    shares = {name: share for name, share in prospect.shares.items() if name in seen}
    losses = []
    for loss in prospect.losses:
        if loss.queue in seen:
            beneficiary = loss.beneficiary
            if beneficiary not in gangs:
                beneficiary = ""
            losses.append(replace(loss, beneficiary=beneficiary))
    return replace(
        prospect,
        shares=shares,
        starts={name: at for name, at in prospect.starts.items() if name in gangs},
        waiting=prospect.waiting & gangs,
        losses=tuple(losses),
    )


def _gangs_in(snapshot: Snapshot, queues: Collection[str]) -> frozenset[str]:
    rows = {row for name, row in snapshot.queue_rows.items() if name in queues}
    found = []
    for key, row in zip(snapshot.groups.key, snapshot.groups.queue.tolist(), strict=True):
        if row in rows:
            found.append(str(key))
    return frozenset(found)
