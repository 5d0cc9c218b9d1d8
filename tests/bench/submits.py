"""How long a job waits from its submission to its place, with a hundred of them a second: submitted, scheduled and carried out by
processes of their own, on PostgreSQL."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.bench.clusters import Size, roomy
from tests.bench.database import Row, a_database, fill

A_SECOND = 100
THREADS = 8


def submits(scale: float, _: int) -> list[Row]:
    """A minute of submissions through the service that every door calls; `waitedMs` is from the job's row to the pod's place."""
    seconds = max(5, round(60 * scale))
    with a_database():
        from django.db import connection

        fill(roomy(Size(nodes=1_000, pending=1, running=10_000)))
        connection.close()
        helpers = [_fork(_schedule), _fork(_carry_out)]
        try:
            late = _submit_for(seconds)
            time.sleep(3)
        finally:
            for child in helpers:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        return [_waits(seconds, late)]


def _fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    while True:
        work()


def _schedule() -> None:
    from scheduler.services.sessions import run_scheduling_session

    run_scheduling_session("tick")
    time.sleep(0.02)


def _carry_out() -> None:
    from scheduler.services.dispatch import dispatch
    from scheduler.services.observe import observe

    dispatch()
    observe()
    time.sleep(0.2)


def _submit_for(seconds: int) -> int:
    """Evenly, from several threads. How many came more than a second late: then the machine could not keep up."""
    from scheduler.services import scheduling

    scheduling._ask = lambda: None  # no broker here; the scheduler looks by itself
    begun, late = time.monotonic() + 0.5, []
    threads = [
        threading.Thread(target=_submit_each, args=(range(number, seconds * A_SECOND, THREADS), begun, late)) for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(1 for delay in late if delay > 1)


def _submit_each(numbers: range, begun: float, late: list[float]) -> None:
    from django.db import connection

    from scheduler.services.jobs import submit_job
    from tests.worlds import manifest

    for number in numbers:
        due = begun + number / A_SECOND
        time.sleep(max(0.0, due - time.monotonic()))
        late.append(time.monotonic() - due)
        submit_job(manifest(f"job-{number}", f"team-{number % 90:05}", seconds=10))
    connection.close()


def _waits(seconds: int, late: int) -> Row:
    from scheduler.models import Pod, SchedulingSession

    rows: Any = Pod.objects.exclude(podgroup__job=None).values_list("podgroup__job__created_at", "bound_at")
    waited = sorted((bound - created).total_seconds() * 1000 for created, bound in rows if bound)
    sessions = SchedulingSession.objects.count()
    return {
        "what": f"{A_SECOND} submits a second for {seconds} s",
        "jobs": len(rows),
        "waitedMsMedian": round(waited[len(waited) // 2]),
        "waitedMsP99": round(waited[int(len(waited) * 0.99)]),
        "aimMs": 2100,
        "notPlaced": len(rows) - len(waited),
        "submittedLate": late,
        "sessionsASecond": round(sessions / seconds, 1),
    }
