"""`manage.py quality`: what it prints, and the exit code of --rest."""

from __future__ import annotations

import io
import json
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone

from scheduler.models import SchedulingSession
from tests import worlds

pytestmark = pytest.mark.django_db


def quality(*arguments: str) -> str:
    out = io.StringIO()
    call_command("quality", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def busy_cluster():
    """One session that placed a job and is kept."""
    worlds.node("n1", cpu="4", memory="8Gi")
    worlds.job("train", replicas=2)
    worlds.run_session()


def test_placements_and_the_rest_of_kept_sessions_are_told(busy_cluster):
    answer = json.loads(quality("--rest", "5", "--output", "json"))

    assert answer["placements"] == 2
    assert answer["evictions"] == 0
    assert [rest["after"] for rest in answer["rests"].values()] == [1]


def test_people_get_the_same_in_words(busy_cluster):
    an_hour_ago = timezone.now() - timedelta(hours=1)
    SchedulingSession.objects.update(started_at=an_hour_ago)

    text = quality("--rest", "5", "--minutes", "30")

    assert "The last 30 minutes:" in text
    assert "evictions per placement  0.0000" in text
    assert "at rest after 1 session," in text


def test_without_rest_the_exit_code_is_1(busy_cluster):
    with pytest.raises(SystemExit) as error:
        quality("--rest", "1")

    assert error.value.code == 1


@pytest.mark.usefixtures("busy_cluster")
@pytest.mark.parametrize(("minutes", "told"), [(60, False), (75, True)])
def test_a_span_that_deleted_jobs_make_look_idle_says_so(minutes: int, told: bool):
    two_hours_ago = timezone.now() - timedelta(hours=2)
    SchedulingSession.objects.update(started_at=two_hours_ago)

    text = quality("--minutes", str(minutes))

    assert ("Look back for an hour at most." in text) is told
