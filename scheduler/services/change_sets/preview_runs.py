"""Previews in the background: asked for, claimed by a worker, told how far they are, cancelled."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from celery import current_app
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduler import notify
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.access import Forbidden, OutOfSight, Permission
from scheduler.domain.calendar import HORIZON
from scheduler.domain.change_sets import QUEUE, ChangeItem, Crossed, SetState, as_json, from_json
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import NotAllowed
from scheduler.domain.previews import PreviewState, Prospect
from scheduler.domain.previews import as_json as compared
from scheduler.domain.queues import ROOT
from scheduler.domain.safe_windows import and_resumed
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.start_forecasts import MEDIAN
from scheduler.models import ChangeSet, Node, Preview
from scheduler.selectors.change_sets.listing import queues_of
from scheduler.selectors.change_sets.objects import crossings_of
from scheduler.selectors.change_sets.windows import resumption_of
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor, Door, submitter
from scheduler.services.change_sets.apply import of_kind
from scheduler.services.change_sets.outlook import planned_then
from scheduler.services.change_sets.preview import (
    MOST_MINUTES,
    Question,
    Scene,
    part_of,
    scene_after,
    scene_at,
    scene_now,
)
from scheduler.services.change_sets.preview_ahead import Runs, Told
from scheduler.services.change_sets.preview_jobs import (
    TRIED,
    admitted_jobs,
    job_manifests,
    labels_of,
)
from scheduler.services.change_sets.verdicts import require_right_to_apply
from scheduler.services.change_sets.wishes import items_read
from scheduler.services.files.items import read_items
from scheduler.services.jobs.run_times import known_run_times

logger = logging.getLogger(__name__)

MOST_SECONDS = 60.0
"""A preview that takes longer is cut: it tells how far ahead it came."""
MOST_OPEN = 3
_TOLD_EVERY = 0.5
_ABANDONED = timedelta(seconds=30)
_OVER = (SetState.APPLIED.value, SetState.DISCARDED.value)
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
    begins_at: datetime | None = None,
) -> Preview:
    """Write the question down and ask for a worker.

    Documents come over the change set. Jobs among them are tried out as if submitted now, which
    asks for the same rights. With `begins_at` it is about the cluster and the plans as they are
    expected to be then.

    Raises `Rejected` for one that cannot be read, and while `MOST_OPEN` of the caller run;
    `NotPossible` for a set that was applied or discarded.
    """
    items: tuple[ChangeItem, ...] = ()
    jobs: list[dict[str, Any]] = []
    if change_set is not None:
        _refuse_ended(change_set)
        items = change_set.changes
    documents = list(documents)
    if documents:
        read = read_items(documents)
        items = items_read([item for item in read if item.kind not in TRIED], items)
        jobs = job_manifests([item for item in read if item.kind in TRIED])
    asked = Question(items, tuple(lost_nodes), jobs)
    _refuse_nonsense(asked, minutes)
    _refuse_moment(begins_at, asked)
    _require_rights(asked, by)
    with transaction.atomic():
        _refuse_too_many(by)
        preview = Preview.objects.create(
            owner=by.user,
            change_set=change_set,
            items=as_json(items),
            jobs=jobs,
            lost_nodes=sorted(set(lost_nodes)),
            minutes=minutes,
            begins_at=begins_at,
            scopes=None if by.scopes is None else sorted(by.scopes),
        )
        transaction.on_commit(_ask_for_a_worker)
    return preview


def _refuse_ended(change_set: ChangeSet) -> None:
    """What an applied set changed is no change of others."""
    if change_set.state in _OVER:
        state = change_set.state.lower()
        raise NotPossible(
            f"“{change_set.name}” has already been {state}: there is nothing to try out."
        )


def _require_rights(asked: Question, by: Actor) -> None:
    """Jobs ask for what submitting asks for. Whoever tries out more must operate a queue.

    Jobs beside new queues are judged when the queues are there.
    """
    mine = access.access_for(by)
    if (asked.items or asked.lost_nodes) and not mine.may_anywhere(Permission.OPERATE):
        raise mine.refusal(Permission.OPERATE, ROOT, "try changes out")
    for queue in queues_of(asked.items):
        access.require(by, Permission.VIEW, queue)
    if not of_kind(asked.items, QUEUE):
        admitted_jobs(asked.jobs, by)


def _refuse_nonsense(asked: Question, minutes: int) -> None:
    lost = asked.lost_nodes
    if not asked.items and not lost and not asked.jobs:
        message = (
            "There is nothing to try out: name a change set, documents, jobs or nodes to lose."
        )
        raise Rejected([Violation("nothing_given", "", "documents", message)])
    if not 1 <= minutes <= MOST_MINUTES:
        message = f"minutes is {minutes}; it must be from 1 to {MOST_MINUTES}."
        raise Rejected([Violation("invalid_value", "", "minutes", message)])
    known = set(Node.objects.filter(name__in=lost).values_list("name", flat=True))
    for name in sorted(set(lost) - known):
        message = f"There is no node {name[:253]}."
        raise Rejected([Violation("not_found", "", "lostNodes", message)])


def _refuse_moment(begins_at: datetime | None, asked: Question) -> None:
    if begins_at is None:
        return
    now = timezone.now()
    message = ""
    if not now < begins_at <= now + HORIZON:
        message = "beginsAt must be a moment within the next year."
    elif asked.jobs:
        message = "Jobs are tried out as if submitted now, so beginsAt cannot be given with them."
    if message:
        raise Rejected([Violation("invalid_value", "", "beginsAt", message)])


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
    if preview.change_set is not None:
        _refuse_ended(preview.change_set)
    asked = Question(from_json(preview.items), preview.lost_nodes, preview.jobs)
    now = scene_now(labels_of(asked.jobs))
    taken_at = datetime.fromtimestamp(now.snapshot.taken_at, UTC)
    Preview.objects.filter(pk=preview.pk).update(taken_at=taken_at)
    resumed = None
    if preview.begins_at is None:
        resumed = resumption_of(preview.change_set)
    told = _Teller(preview.pk)
    if preview.begins_at is None:
        first, then = _scenes_now(asked, resumed, now, by)
    else:
        first, then = _scenes_at(preview, preview.begins_at, asked, now, by, told)
    runs = Runs(preview.minutes, told, known_run_times().with_owner(then.keys, submitter(by)))
    before = runs.prospect(first, _AHEAD, 0.4)
    after = runs.prospect(then, 0.4, 0.8)
    jobs = runs.jobs(then, after)
    seen = access.access_for(then.by).visible
    set_back = [gang for gang in then.set_back if seen is None or gang.queue in seen]
    result = compared(_as_seen(before, first, seen), _as_seen(after, then, seen), jobs, set_back)
    if resumed is not None:
        result = {**result, "resumed": resumed.name}
    return {
        **result,
        "notices": _notices_seen(then.notices, seen),
        "runTimes": runs.sources(then),
        "paused": now.snapshot.paused,
        "isCut": told.is_late,
        "asOf": datetime.fromtimestamp(first.snapshot.taken_at, UTC).isoformat(),
    }


_AHEAD = 0.2
"""The part of the work that leads to the moment that a preview is about."""


def _scenes_now(
    asked: Question, resumed: ChangeItem | None, now: Scene, by: Actor
) -> tuple[Scene, Scene]:
    """Without the change and with it. Raises what applying would raise."""
    crossings = crossings_of(asked.items)
    if crossings:
        raise Crossed(crossings)
    if resumed is None:
        return now, scene_after(now, asked, by)
    # in a safe window both sides are shown resumed: else nothing would start in either
    asked = replace(asked, items=and_resumed(asked.items, resumed))
    return scene_after(now, Question((resumed,)), by), scene_after(now, asked, by)


def _scenes_at(
    preview: Preview, begins_at: datetime, asked: Question, now: Scene, by: Actor, told: Told
) -> tuple[Scene, Scene]:
    """The same at a later moment, with what others have planned until then."""
    require_right_to_apply(asked.items, by)
    planned = planned_then(asked.items, begins_at, preview.change_set)
    moment = begins_at.timestamp()
    minutes = max(1, math.ceil((moment - now.snapshot.taken_at) / 60))
    seconds = known_run_times().seconds(now.snapshot)[MEDIAN]
    ahead = scene_at(now, moment, seconds, part_of(told, minutes, 0.0, _AHEAD))
    # what others have planned is theirs to do, so the system does all of it here
    without = scene_after(ahead, replace(asked, items=planned.without), SYSTEM)
    with_it = scene_after(ahead, replace(asked, items=planned.with_it), SYSTEM)
    return replace(without, by=by), replace(with_it, by=by)


def _notices_seen(notices: Iterable[Notice], seen: Collection[str] | None) -> list[dict[str, str]]:
    """What the rules would warn of then and do not now. What several queues are warned of in the
    same words, such as a sum of all of them, is said once.
    """
    found: dict[str, dict[str, str]] = {}
    for notice in notices:
        if seen is None or notice.queue in seen:
            told = {"queue": notice.queue, "code": notice.code, "message": notice.message}
            found.setdefault(notice.message, told)
    return list(found.values())


class _Teller:
    """Writes down how far it is, and hears whether it is cancelled or has taken too long."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._began = time.monotonic()
        self._told = self._began
        self.is_late = False

    def __call__(self, part: float, end: float) -> bool:
        """`end` is the part of the whole at which the run that asks must be over."""
        now = time.monotonic()
        if now - self._told >= _TOLD_EVERY:
            self._told = now
            mine = Preview.objects.filter(pk=self._number, state=PreviewState.RUNNING.value)
            if not mine.update(progress=part, claimed_at=timezone.now()):
                raise _Cancelled
        allowed = MOST_SECONDS * end
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
