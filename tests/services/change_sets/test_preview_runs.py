"""Previews in the background: worked out, refused, cancelled, bounded, and for whom."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard.celery import app
from scheduler import tasks
from scheduler.admission.violations import Rejected
from scheduler.domain.access import Forbidden, OutOfSight
from scheduler.domain.jobs.commands import NotPossible
from scheduler.models import ChangeSet, Pod, Preview
from scheduler.services.change_sets import preview_runs
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.change_sets.drafts import create_change_set, discard
from scheduler.services.change_sets.plans import Wish, plan_change_set
from scheduler.services.change_sets.preview_runs import (
    MOST_OPEN,
    cancel_preview,
    start_preview,
    work_out_previews,
)
from scheduler.services.queues.create_update import update_queue
from tests.dashboard.work import person, small_cluster
from tests.services.change_sets.builders import edit, exported

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def worked_out(**question: Any) -> Preview:
    asked = start_preview(**{"by": person("admin"), **question})
    work_out_previews()
    asked.refresh_from_db()
    return asked


def test_a_smaller_limit_is_seen_before_it_is_applied():
    before = exported()

    done = worked_out(documents=[edit("vision", capability={"cpu": "8"}, deserved={"cpu": "2"})])

    assert (done.state, done.progress, done.message) == ("Done", 1.0, "")
    assert done.taken_at is not None
    (vision,) = [row for row in done.result["queues"] if row["queue"] == "vision"]
    assert vision["deserved"]["before"]["cpu"] == "8"
    assert vision["deserved"]["after"]["cpu"] == "2"
    assert exported() == before


def test_a_lost_node_is_tried_out():
    done = worked_out(lost_nodes=["n1"])

    assert done.state == "Done"
    assert done.result["then"]["binds"] != done.result["now"]["binds"]
    set_back = {gang["podgroup"]: gang["pods"] for gang in done.result["setBack"]}
    there = Pod.objects.filter(node__name="n1", phase="Running").select_related("podgroup")
    gangs = [f"{pod.podgroup.namespace}/{pod.podgroup.name}" for pod in there]
    assert set_back == Counter(gangs)
    assert not set_back.keys() & {move["podgroup"] for move in done.result["moves"]}


def test_who_may_not_see_a_gang_is_not_told_that_it_loses_pods():
    by = person("ruth")
    everything = {gang["queue"] for gang in worked_out(lost_nodes=["n1", "n2"]).result["setBack"]}

    mine = {gang["queue"] for gang in worked_out(by=by, lost_nodes=["n1", "n2"]).result["setBack"]}

    assert mine < everything


def test_what_the_rules_refuse_is_told_instead():
    done = worked_out(documents=[edit("vision", deserved={"cpu": "99"})])

    assert done.state == "Refused"
    assert "deserved" in done.message
    assert done.result is None


def test_a_set_that_others_crossed_is_told():
    change_set = create_change_set("mine", [edit("batch", weight=5)])
    update_queue("batch", {"spec": {"weight": 7}}, merge=True)

    done = worked_out(change_set=change_set)

    assert done.state == "Refused"
    assert "spec.weight from 1 to 7" in done.message


def test_one_that_was_cancelled_is_not_worked_out():
    asked = start_preview(by=person("admin"), documents=[edit("batch", weight=5)])

    assert cancel_preview(asked)
    work_out_previews()

    asked.refresh_from_db()
    assert (asked.state, asked.result) == ("Cancelled", None)
    assert not cancel_preview(asked)


def test_one_that_is_cancelled_while_it_runs_stops(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preview_runs, "_TOLD_EVERY", 0.0)
    asked = start_preview(by=person("admin"), documents=[edit("batch", weight=5)])
    seen = preview_runs.scene_now

    def cancelled_meanwhile(labels: Any) -> Any:
        cancel_preview(asked)
        return seen(labels)

    monkeypatch.setattr(preview_runs, "scene_now", cancelled_meanwhile)
    work_out_previews()

    asked.refresh_from_db()
    assert (asked.state, asked.result) == ("Cancelled", None)


def test_one_that_takes_too_long_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preview_runs, "MOST_SECONDS", 0.0)

    done = worked_out(documents=[edit("batch", weight=5)])

    assert done.state == "Done"
    assert done.result["isCut"] is True
    assert done.result["then"]["halt"] == "stopped"


def test_a_reader_is_told_only_of_queues_that_they_see():
    done = worked_out(by=person("ruth"), documents=[edit("vision", weight=7)])

    assert done.state == "Done"
    queues = {row["queue"] for row in done.result["queues"]}
    assert queues <= {"research", "vision", "language"}
    assert not {row["queue"] for row in done.result["evictions"]} - {
        "research",
        "vision",
        "language",
    }


def test_who_may_ask_and_how_often():
    with pytest.raises(Forbidden):
        start_preview(by=person("vera"), documents=[edit("vision", weight=7)])
    with pytest.raises(OutOfSight):
        start_preview(by=person("ruth"), documents=[edit("batch", weight=7)])
    for _ in range(MOST_OPEN):
        start_preview(by=person("admin"), documents=[edit("batch", weight=5)])
    with pytest.raises(Rejected, match="still worked out"):
        start_preview(by=person("admin"), documents=[edit("batch", weight=5)])


@pytest.mark.parametrize(
    "question", [{}, {"lost_nodes": ["n9"]}, {"lost_nodes": ["n1"], "minutes": 0}]
)
def test_nonsense_is_refused(question: dict[str, Any]):
    with pytest.raises(Rejected):
        start_preview(by=person("admin"), **question)


def test_a_preview_for_its_own_time_names_the_moment_and_counts_other_plans():
    begin = timezone.now() + timedelta(hours=3)
    other = create_change_set("other", [edit("batch", weight=5)])
    plan_change_set(other.pk, Wish(f"{begin - timedelta(hours=1):%Y-%m-%dT%H:%M}"))
    mine = create_change_set("mine", [edit("research", weight=9), edit("batch", weight=7)])

    refused = worked_out(change_set=mine, begins_at=begin)

    assert refused.state == "Refused"
    assert "spec.weight from 1 to 5" in refused.message
    alone = create_change_set("alone", [edit("research", weight=9)])
    done = worked_out(change_set=alone, begins_at=begin)
    assert done.state == "Done", done.message
    assert done.result["asOf"] == begin.isoformat()


def test_a_preview_of_the_past_is_refused():
    change_set = create_change_set("mine", [edit("research", weight=9)])

    with pytest.raises(Rejected, match="within the next year"):
        start_preview(by=person("admin"), change_set=change_set, begins_at=timezone.now())


def test_it_says_how_far_it_is_while_it_runs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preview_runs, "_TOLD_EVERY", 0.0)
    compared = preview_runs.compared
    told: list[tuple[str, bool]] = []

    def look(*sides: Any) -> Any:
        row = Preview.objects.get()
        told.append((row.state, 0.0 < row.progress < 1.0))
        return compared(*sides)

    monkeypatch.setattr(preview_runs, "compared", look)
    worked_out(documents=[edit("batch", weight=5)])

    assert told == [("Running", True)]


BESIDE_SESSIONS = (tasks.work_out_previews, tasks.renew_start_times, tasks.keep_calendar)


@pytest.mark.parametrize("task", BESIDE_SESSIONS)
def test_the_worker_of_sessions_is_left_alone(task: Any):
    route = app.amqp.router.route

    assert route({}, task.name)["queue"].name == "default"
    assert route({}, tasks.run_session.name)["queue"].name == "scheduler"


def test_a_set_that_is_over_is_not_tried_out():
    by = person("admin")
    applied = create_change_set("Friday", [edit("batch", weight=5)], by=by)
    discarded = create_change_set("Saturday", [edit("batch", weight=6)], by=by)
    asked = start_preview(by=by, change_set=applied)
    apply_change_set(applied.pk, by=by)
    discard(discarded.pk, by=by)
    words = "“Friday” has already been applied: there is nothing to try out."

    with pytest.raises(NotPossible, match=words):
        start_preview(by=by, change_set=ChangeSet.objects.get(pk=applied.pk))
    with pytest.raises(NotPossible, match="“Saturday” has already been discarded"):
        start_preview(by=by, change_set=ChangeSet.objects.get(pk=discarded.pk))
    work_out_previews()

    asked.refresh_from_db()
    assert (asked.state, asked.message) == ("Refused", words)
