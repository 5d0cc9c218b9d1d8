"""vcctl forecasts, and the expected start in vcctl job view and explain."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from scheduler.models import ExpectedStart, PodGroup, StartForecast
from tests.dashboard.cli.conftest import Type
from tests.worlds import job, node


def test_forecasts_by_queue_and_size(vcctl: Type):
    made_at = timezone.now() - timedelta(hours=1)
    for number in range(25):
        StartForecast.objects.create(
            podgroup_number=number,
            podgroup_name=f"default/old-{number}",
            queue_name="default",
            size="gpu-8",
            made_at=made_at,
            low=1.0,
            median=50.0,
            high=90.0,
            earliest=10.0,
            latest=100.0,
            actual=60.0,
            ended_at=timezone.now(),
        )

    seen = vcctl("vcctl forecasts --queue default --window 24h")

    assert "Stated: 80% of starts in the range" in seen.out
    assert "100% (25 of 25)" in seen.out
    assert vcctl("vcctl forecasts -o json").json["status"]["rows"][0]["held"] == 25


def test_view_and_explain_say_when_a_job_starts(vcctl: Type):
    node("n1", cpu="1")
    gang: PodGroup = job("big", replicas=4).podgroup
    assert "Starts:" not in vcctl("vcctl job view big").out
    now = timezone.now()
    ExpectedStart.objects.create(
        podgroup_number=gang.pk,
        made_at=now,
        earliest_at=now + timedelta(minutes=10),
        latest_at=now + timedelta(minutes=40),
    )

    for command in ("view", "explain"):
        words = vcctl(f"vcctl job {command} big").out
        line = next(line for line in words.splitlines() if line.startswith("Starts:"))
        assert "between" in line
        assert "in 80% of cases" in line
