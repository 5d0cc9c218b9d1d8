"""The check before submitting, while 100,000 pods run: the first one of a process reads everything,
the next ones what changed.

python -m pytest tests/bench/test_forecast.py -s
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.models import Pod
from scheduler.selectors.sessions import trials
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.demo.setup import ensure_builtin_objects
from scheduler.services.jobs.forecast import Prospect, forecast_job
from tests.bench.clusters import Size, roomy
from tests.bench.database import fill
from tests.worlds import manifest

RUNNING = int(os.environ.get("PODS", "100000"))


def cpu_ms(act: Callable[[], Any]) -> float:
    began = time.process_time()
    act()
    return (time.process_time() - began) * 1000


@pytest.mark.django_db
def test_a_forecast_costs_what_changed():
    ensure_builtin_objects()
    fill(roomy(Size(nodes=RUNNING // 10, pending=500, running=RUNNING)))
    kept = trials.Trials()

    def forecast() -> None:
        verdict = forecast_job(
            manifest("new", "default", replicas=8), by=Actor("bench", Door.SYSTEM)
        )
        assert verdict.prospect is Prospect.STARTS

    def after_a_change() -> None:
        Pod.objects.filter(
            pk__in=list(Pod.objects.filter(phase="Running").values_list("pk", flat=True)[:100])
        ).update(borrowed=True)
        forecast()

    first = cpu_ms(forecast)
    again = statistics.median(cpu_ms(forecast) for _ in range(5))
    read = cpu_ms(kept.snapshot)
    copied = statistics.median(cpu_ms(kept.snapshot) for _ in range(5))
    print(
        f"\nforecast with {RUNNING} running pods, CPU: first {first:.0f} ms, again {again:.0f} ms"
    )
    print(f"of which the snapshot: first {read:.0f} ms, again {copied:.1f} ms")
    print(f"after 100 pods changed (with changing them): {cpu_ms(after_a_change):.0f} ms")
