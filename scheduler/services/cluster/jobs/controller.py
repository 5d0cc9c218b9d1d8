"""What a controller does for jobs, where Volcano's does not run: their podgroups and pods, their
phases, their policies, and Commands to them.

The watcher's own thread looks at the jobs to which something has happened, and works out what is to
be done. A few threads do it. Nothing is kept here that the cluster does not have.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.utils import timezone

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import ApiError, Conflict, Forbidden, NotFound
from scheduler.clusters.kubernetes.resources import COMMANDS, JOBS, PODGROUPS, PODS
from scheduler.clusters.kubernetes.values import CommandObject, JobObject, PodGroupObject
from scheduler.outages import Outage, in_a_line
from scheduler.services.cluster.jobs.carrying_out import Done, Hands
from scheduler.services.cluster.jobs.commands import commands_by_job, is_meant
from scheduler.services.cluster.jobs.plan import Plan, plan_for
from scheduler.services.cluster.jobs.situation import Situation
from scheduler.services.cluster.mirror.object_rows import version_number
from scheduler.services.cluster.mirror.store import Store

logger = logging.getLogger(__name__)

COUNTS_SECONDS: Final = 1.0
"""How often figures alone are written to the status of a job, at most."""
_JOB_THREADS: Final = 8
_REQUEST_THREADS: Final = 16
_ALONE_SECONDS: Final = 3.0
_ORPHAN_AGE: Final = timedelta(seconds=10)
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0


@dataclass(slots=True)
class _Care:
    """What is known of one job besides what the cluster tells.

    `job_version` and `pods_version` are what the mirror has to have heard, `not_before` and
    `look_at` moments of the monotonic clock.
    """

    job_version: int = 0
    pods_version: int = 0
    not_before: float = 0.0
    look_at: float | None = None
    failures: int = 0
    counted_at: float = 0.0
    under_way: Future[Done] | None = None


class JobController:
    """`is_alone` says whether Volcano's controllers still do not run."""

    def __init__(self, client: Client, is_alone: Callable[[], bool]) -> None:
        self._client = client
        self._is_alone = is_alone
        self._jobs = ThreadPoolExecutor(_JOB_THREADS, "job")
        self._requests = ThreadPoolExecutor(_REQUEST_THREADS, "job-request")
        self._hands = Hands(client, self._requests)
        self._care: dict[str, _Care] = {}
        self._changed: set[str] = set()
        self._orphans: set[str] = set()  # Commands that are being deleted
        self._lock = threading.Lock()
        self._alone_until = 0.0
        self._outage = Outage(logger, "Jobs are looked after again.")

    def close(self) -> None:
        self._jobs.shutdown(wait=False, cancel_futures=True)
        self._requests.shutdown(wait=False, cancel_futures=True)

    # News. Called by the watcher before it forgets what has changed.

    def hear(self, store: Store) -> None:
        self._changed |= store.pending[JOBS]
        for key in (*store.pending_groups, *store.pending_keys[PODGROUPS]):
            job = store.job_of_group(key)
            if job is not None:
                self._changed.add(job.meta.uid)
        if store.pending[COMMANDS]:
            for key in commands_by_job(store.objects(COMMANDS)):
                job = store.job_named(key)
                if job is not None:
                    self._changed.add(job.meta.uid)

    # Work. Called by the watcher after the mirror was written.

    def look(self, store: Store) -> None:
        self._reap()
        now = time.monotonic()
        for uid, care in self._care.items():
            if care.look_at is not None and care.look_at <= now:
                care.look_at = None
                self._changed.add(uid)
        orders = commands_by_job(store.objects(COMMANDS))
        self._drop_orphans(store, orders)
        waiting = set()
        for uid in self._changed:
            if not self._look_at(store, uid, orders, now):
                waiting.add(uid)
        self._changed = waiting

    def _drop_orphans(self, store: Store, orders: dict[str, list[CommandObject]]) -> None:
        """Commands to jobs that are not there any more."""
        for key, given in orders.items():
            job = store.job_named(key)
            for order in given:
                if order.meta.uid in self._orphans or (job and is_meant(order, job)):
                    continue
                if _is_young(order):  # its job may not be mirrored yet
                    continue
                self._orphans.add(order.meta.uid)
                self._jobs.submit(self._delete_command, order)

    def _delete_command(self, order: CommandObject) -> None:
        try:
            if self._may_act():
                meta = order.meta
                self._client.delete(COMMANDS, meta.name, meta.namespace, uid=meta.uid)
        except (NotFound, Conflict):
            pass  # somebody has deleted it already
        except ApiError as problem:
            self._orphans.discard(order.meta.uid)
            self._outage.noticed("Commands cannot be deleted: %s", in_a_line(problem))

    def _reap(self) -> None:
        """What the requests of earlier looks brought."""
        for uid, care in self._care.items():
            future = care.under_way
            if future is None or not future.done():
                continue
            care.under_way = None
            self._changed.add(uid)
            problem = future.exception()
            if problem is None:
                self._note_done(care, future.result())
            else:
                self._note_failed(uid, care, problem)

    def _note_done(self, care: _Care, done: Done) -> None:
        care.job_version = max(care.job_version, done.job_version)
        care.pods_version = max(care.pods_version, done.pods_version)
        if done.problem:
            self._pause(care)
            return
        care.failures = 0
        self._outage.over()

    def _note_failed(self, uid: str, care: _Care, problem: BaseException) -> None:
        if isinstance(problem, Conflict | NotFound):
            care.not_before = time.monotonic() + 0.2  # the mirror hears of it in a moment
            return
        self._pause(care)
        if isinstance(problem, Forbidden):
            care.not_before = time.monotonic() + _LONGEST_PAUSE
        if isinstance(problem, ApiError):
            self._outage.noticed("Jobs cannot be looked after: %s", in_a_line(problem))
        else:
            logger.error("The job %s cannot be looked after", uid, exc_info=problem)

    def _pause(self, care: _Care) -> None:
        care.failures += 1
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (care.failures - 1))
        care.not_before = time.monotonic() + pause

    def _look_at(
        self, store: Store, uid: str, orders: dict[str, list[CommandObject]], now: float
    ) -> bool:
        """False where it has to be looked at again as soon as possible."""
        job = store.job(uid)
        if job is None:
            self._care.pop(uid, None)
            return True
        care = self._care.setdefault(uid, _Care())
        if care.under_way is not None or now < care.not_before:
            return False
        if not self._has_heard(store, job, care):
            return False
        situation = situation_of(store, job, orders.get(job.meta.key, ()))
        plan = plan_for(situation)
        if plan.look_at is not None:
            care.look_at = now + (plan.look_at - situation.now).total_seconds()
        if plan.is_empty:
            return True
        if _is_only_figures(plan) and now - care.counted_at < COUNTS_SECONDS:
            return False
        care.counted_at = now
        care.under_way = self._jobs.submit(self._carry_out, situation, plan)
        return True

    def _has_heard(self, store: Store, job: JobObject, care: _Care) -> bool:
        """Whether the mirror knows what we did last. Else it would be done again."""
        if version_number(job.meta.resource_version) < care.job_version:
            return False
        return version_number(store.positions.get(PODS.name, "")) >= care.pods_version

    def _carry_out(self, situation: Situation, plan: Plan) -> Done:
        if not self._may_act():
            return Done(problem="Volcano's controllers run")
        return self._hands.carry_out(situation, plan)

    def _may_act(self) -> bool:
        """Asked anew every few seconds: never do both look after a job."""
        with self._lock:
            if time.monotonic() < self._alone_until:
                return True
            if not self._is_alone():
                return False
            self._alone_until = time.monotonic() + _ALONE_SECONDS
            return True


def _is_young(order: CommandObject) -> bool:
    created = order.meta.created
    return created is not None and timezone.now() - created < _ORPHAN_AGE


def _is_only_figures(plan: Plan) -> bool:
    return (
        bool(plan.status)
        and not plan.is_decision
        and Plan(status=plan.status, look_at=plan.look_at) == plan
    )


def situation_of(store: Store, job: JobObject, orders: Iterable[CommandObject] = ()) -> Situation:
    pods = []
    for pod in store.pods_of(job.group_key):
        if pod.meta.owner is not None and pod.meta.owner.uid == job.meta.uid:
            pods.append(pod)
    meant = tuple(order for order in orders if is_meant(order, job))
    return Situation(job, timezone.now(), tuple(pods), _podgroup(store, job), meant)


def _podgroup(store: Store, job: JobObject) -> PodGroupObject | None:
    group = store.podgroup(job.group_key)
    if group is None or group.meta.owner is None or group.meta.owner.uid != job.meta.uid:
        return None
    return group
