"""One command for many jobs: written down first, then carried out in the background job by job,
each with its own result.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta

from celery import current_app
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduler import notify
from scheduler.admission.violations import Rejected, Violation, in_words
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.jobs.policies import JobAction
from scheduler.models import BulkItem, BulkRun, Command, Job
from scheduler.services.accounts.access import Forbidden, OutOfSight
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.cluster.mirrored import changed_in_cluster
from scheduler.services.jobs.submit import command_job

logger = logging.getLogger(__name__)

MOST_JOBS = 5000
SLICE = 50
# a run whose worker has not been heard of for so long is taken over
_ABANDONED = timedelta(seconds=30)


@changed_in_cluster("Job")
@transaction.atomic
def start_bulk_run(
    action: JobAction,
    keys: Iterable[tuple[str, str]],
    *,
    by: Actor,
    reason: str = "",
    query: str = "",
) -> BulkRun:
    """Write the run down and ask for a worker.

    `keys` are (namespace, name). Raises `Rejected` for none, and for more than `MOST_JOBS`.
    """
    chosen = list(dict.fromkeys(keys))
    if not chosen:
        message = "There is no job that this could be done to."
        raise Rejected(
            [Violation("nothing_chosen", "", "jobs", message, "choose others")], by_state=True
        )
    if len(chosen) > MOST_JOBS:
        message = f"{len(chosen)} jobs are too many for one run; {MOST_JOBS} are the most."
        raise Rejected([Violation("too_many", "", "jobs", message, f"choose at most {MOST_JOBS}")])
    run = BulkRun.objects.create(
        owner=by.user,
        action=action.value,
        reason=reason[:1024],
        query=query[:1024],
        door=by.door.value,
        scopes=None if by.scopes is None else list(by.scopes),
        address=by.address,
        request_id=by.request_id,
    )
    items = []
    for namespace, name in chosen:
        items.append(BulkItem(run=run, namespace=namespace, name=name))
    BulkItem.objects.bulk_create(items, batch_size=1000)
    transaction.on_commit(_ask_for_a_worker)
    return run


@changed_in_cluster("Job")
@transaction.atomic
def retry_bulk_run(run: BulkRun, *, by: Actor, reason: str = "") -> BulkRun:
    """A new run for those of an old one that were refused.

    For the same reason where none is given.
    """
    keys = list(run.items.filter(result=Command.REFUSED).values_list("namespace", "name"))
    return start_bulk_run(
        JobAction(run.action),
        keys,
        by=by,
        reason=reason or run.reason,
        query=run.query,
    )


def _ask_for_a_worker() -> None:
    """If the broker is away the next tick of the cluster's watch finds the run."""
    try:
        current_app.send_task("scheduler.tasks.carry_out_bulk_runs", expires=30, retry=False)
    except OperationalError as problem:
        logger.warning("could not ask for a worker, the next tick will do: %s", problem)


def carry_out_bulk_runs() -> None:
    """A slice of each run that waits or that a worker left behind.

    Where there is more, another worker is asked for: others wait too.
    """
    while (run := _claim_run()) is not None:
        if not _carry_out_a_slice(run):
            _ask_for_a_worker()
            return


def has_waiting_runs() -> bool:
    return _free_runs().exists()


def _free_runs() -> QuerySet[BulkRun]:
    now = timezone.now()
    # A claim of the future was made before the clock was put back: nobody knows how old it is.
    abandoned = Q(claimed_at__lt=now - _ABANDONED) | Q(claimed_at__gt=now + _ABANDONED)
    return BulkRun.objects.exclude(state=BulkRun.DONE).filter(Q(claimed_at=None) | abandoned)


def _claim_run() -> BulkRun | None:
    for run in _free_runs().order_by("pk").select_related("owner")[:10]:
        still_free = _free_runs().filter(pk=run.pk)
        if still_free.update(claimed_at=timezone.now(), state=BulkRun.RUNNING):
            return run
    return None


def _carry_out_a_slice(run: BulkRun) -> bool:
    """Whether the run is done."""
    by = Actor(
        run.owner.get_username(),
        Door(run.door),
        run.owner,
        run.address,
        run.request_id,
        scopes=run.scopes,
    )
    mine = BulkRun.objects.filter(pk=run.pk)
    for item in run.items.filter(result="").order_by("pk")[:SLICE]:
        # a sign of life: commands may each have to wait for a session
        mine.update(claimed_at=timezone.now())
        item.result, item.message = _command_job(item, run, by)
        item.save(update_fields=["result", "message"])
    if run.items.filter(result="").exists():
        mine.update(claimed_at=None)
        return False
    mine.update(state=BulkRun.DONE, finished_at=timezone.now())
    notify.cluster_changed()
    return True


def _command_job(item: BulkItem, run: BulkRun, by: Actor) -> tuple[str, str]:
    """The result for one job, and the words for it."""
    try:
        result = command_job(
            item.namespace,
            item.name,
            JobAction(run.action),
            by=by,
            reason=run.reason,
            waits=False,
        )
    except Job.DoesNotExist:
        return Command.REFUSED, "There is no such job any more."
    except Rejected as refusal:
        return Command.REFUSED, in_words(refusal.violations)[:1024]
    except (NotPossible, Forbidden, OutOfSight) as refusal:
        return Command.REFUSED, str(refusal)[:1024]
    done = Command.DONE if result.changed else Command.NO_OP
    return done, result.message[:1024]
