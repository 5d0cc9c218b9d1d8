"""What Celery runs: three lines each, everything else is in services."""

from __future__ import annotations

import logging

from celery import Task, shared_task
from django.conf import settings
from kombu.exceptions import OperationalError

from scheduler.logs import known_as
from scheduler.outages import Outage, in_a_line

logger = logging.getLogger(__name__)
_broker_away = Outage(logger, "What follows from a task is begun at once again.")


def _begin(task: Task[..., None]) -> None:
    """Soon, by another worker.

    A broker that is away is no reason to fail: the next tick finds what is to be done.
    """
    try:
        task.apply_async(expires=5, retry=False)
    except OperationalError as problem:
        _broker_away.noticed(
            "What follows from a task waits for the next tick: %s", in_a_line(problem)
        )
    else:
        _broker_away.over()


@shared_task(name="scheduler.tasks.run_session")
def run_session(trigger: str = "tick") -> None:
    """A session, if it is time; what it decided is carried out by another worker."""
    from scheduler.services.sessions.runner import run_scheduling_session

    result = run_scheduling_session(trigger)
    if result and (result.written.bound or result.written.evicted):
        with known_as(session=result.number):
            _begin(carry_out)


@shared_task(name="scheduler.tasks.carry_out")
def carry_out() -> None:
    from scheduler.services.cluster.dispatch import dispatch

    dispatch()


@shared_task(name="scheduler.tasks.watch_cluster")
def watch_cluster() -> None:
    """What happened on the cluster, and whatever somebody who died left undone: decisions,
    deletions, commands for many jobs.
    """
    from scheduler.services.cluster.tick import watch

    watch(
        also={
            "beginning commands for many jobs": _begin_bulk_runs,
            "making and stopping pods of large jobs": _begin_pod_steps,
            "working out previews": _begin_previews,
        }
    )


def _begin_bulk_runs() -> None:
    from scheduler.services.jobs import bulk

    if bulk.has_waiting_runs():
        _begin(carry_out_bulk_runs)


@shared_task(name="scheduler.tasks.carry_out_bulk_runs")
def carry_out_bulk_runs() -> None:
    """Commands for many jobs that somebody gave on a page."""
    from scheduler.services.jobs import bulk

    bulk.carry_out_bulk_runs()


def _begin_previews() -> None:
    from scheduler.services.change_sets import preview_runs

    if preview_runs.has_waiting_previews():
        _begin(work_out_previews)


@shared_task(name="scheduler.tasks.work_out_previews")
def work_out_previews() -> None:
    """What changes would do, on copies of the cluster."""
    from scheduler.services.change_sets import preview_runs

    preview_runs.work_out_previews()


def _begin_pod_steps() -> None:
    from scheduler.services.jobs import pod_steps

    if pod_steps.has_pod_steps():
        _begin(take_pod_steps)


@shared_task(name="scheduler.tasks.take_pod_steps")
def take_pod_steps() -> None:
    """Pods of large jobs, made and stopped a few at a time."""
    from scheduler.services.jobs import pod_steps

    pod_steps.take_pod_steps()


@shared_task(name="scheduler.tasks.generate_work")
def generate_work() -> None:
    """The demo's stream of jobs. A real cluster has jobs of its own. It is silent while nothing
    may be changed.
    """
    from scheduler.conf import is_kubernetes
    from scheduler.services.demo.workload import continue_stream

    if not is_kubernetes() and not settings.READ_ONLY:
        continue_stream()


@shared_task(name="scheduler.tasks.renew_start_times")
def renew_start_times() -> None:
    """When waiting gangs are expected to start, at a small share of one core."""
    from scheduler.services.jobs import start_times

    start_times.renew_start_times()


@shared_task(name="scheduler.tasks.send_notices")
def send_notices() -> None:
    """What happened since, to those who asked to be told: into inboxes, then elsewhere."""
    from scheduler.services.notices import delivery, fan_out

    if fan_out.has_happenings():
        fan_out.write_notices()
    if delivery.has_due_deliveries():
        delivery.deliver_notices()


@shared_task(name="scheduler.tasks.look_for_long_waits")
def look_for_long_waits() -> None:
    from scheduler.services.notices import waits

    waits.look_for_long_waits()


@shared_task(name="scheduler.tasks.keep_calendar")
def keep_calendar() -> None:
    """Planned changes begin and end, each exactly once. While nothing may be changed they wait."""
    from scheduler.services.change_sets import calendar

    if not settings.READ_ONLY:
        calendar.keep_calendar()


@shared_task(name="scheduler.tasks.tidy")
def tidy() -> None:
    """Roll history up, prune what is past its retention, a little at a time, and end the roles of
    those who have not signed on for long.
    """
    from scheduler.services.accounts.sign_on import end_old_sign_ons
    from scheduler.services.records.retention import tidy_up

    tidy_up()
    end_old_sign_ons()
