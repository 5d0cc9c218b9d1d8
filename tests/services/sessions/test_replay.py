from __future__ import annotations

import gzip
import io
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from scheduler.conf import conf
from scheduler.models import Pod, SavedScenario, SchedulingSession
from scheduler.services.records import kept_sessions
from scheduler.services.records.retention import tidy_up
from scheduler.services.sessions import replay as session_replay
from scheduler.services.sessions.replay import NotKept, keep_next_sessions, replay, scenario_text
from scheduler.services.sessions.runner import SessionRunner
from tests.histories import History, build_cluster
from tests.worlds import job, node, run_session

pytestmark = [pytest.mark.django_db]


def decided_something() -> int:
    node("n1", cpu="4")
    job("train", replicas=3)
    job("big", replicas=30)
    return run_session().number


@pytest.mark.both_databases
@pytest.mark.parametrize("seed", [11, 12])
def test_every_kept_session_of_any_history_decides_the_same_again_bit_for_bit(seed: int):
    build_cluster()
    keep_next_sessions(20)
    history = History(seed)
    runner = SessionRunner("test")
    for step in range(40):
        history.step()
        if step % 2 == 0:
            run_session(runner)

    kept = list(SavedScenario.objects.values_list("session_number", flat=True))

    assert len(kept) == 20
    assert [number for number in kept if not replay(number).is_same] == []


def test_a_saved_session_is_a_scenario_file_that_simulate_runs_with_the_same_outcome(
    tmp_path: Path,
):
    number = decided_something()
    file = tmp_path / "session.json"
    out = io.StringIO()

    call_command("replay", number, save=str(file), stdout=io.StringIO())
    call_command("simulate", str(file), output="json", stdout=out)

    pods = Pod.objects.filter(phase="Bound").select_related("node")
    assert json.loads(out.getvalue())["binds"] == {
        str(pod): pod.node.name for pod in pods if pod.node
    }


def test_replay_says_that_the_outcome_is_the_same():
    out = io.StringIO()

    call_command("replay", decided_something(), stdout=out)

    assert "The outcome is the one it had, bit for bit." in out.getvalue()


def test_replay_says_when_it_is_not():
    number = decided_something()
    document = json.loads(scenario_text(number))
    document["nodes"][0]["allocatable"]["cpu"] = "40"
    SavedScenario.objects.update(content=gzip.compress(json.dumps(document).encode()))
    err = io.StringIO()

    with pytest.raises(SystemExit) as end:
        call_command("replay", number, stdout=io.StringIO(), stderr=err)

    assert end.value.code == 1
    assert "decided something else then" in err.getvalue()


def test_a_session_that_is_not_kept_is_refused_with_those_that_are():
    number = decided_something()
    err = io.StringIO()

    with pytest.raises(SystemExit) as end:
        call_command("replay", 4711, stderr=err)

    assert end.value.code == 2
    assert f"Session 4711 is not kept. The nearest that are: {number}." in err.getvalue()
    with pytest.raises(NotKept):
        replay(4711)


def test_a_session_that_decided_nothing_is_kept_only_when_asked_for():
    node("n1", cpu="4")
    runner = SessionRunner("test")
    runner.run()
    assert not SavedScenario.objects.exists()

    keep_next_sessions(2)
    for _ in range(4):
        runner.run()

    assert SavedScenario.objects.count() == 2
    with pytest.raises(ValueError, match="0 sessions cannot be kept"):
        keep_next_sessions(0)


def test_on_a_large_cluster_sessions_are_kept_only_when_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session_replay, "conf", lambda: replace(conf(), scenario_pods=2))
    decided_something()
    assert not SavedScenario.objects.exists()

    call_command("replay", keep_next=1, stdout=io.StringIO())
    result = run_session()

    assert [row.session_number for row in SavedScenario.objects.all()] == [result.number]


def test_kept_sessions_are_listed_newest_first():
    node("n1", cpu="40")
    runner = SessionRunner("test")
    numbers = []
    for number in range(4):
        job(f"job-{number}")
        numbers.append(run_session(runner).number)
    listed: Any = io.StringIO()

    call_command("replay", stdout=listed)

    assert [int(line.split()[0]) for line in listed.getvalue().splitlines()] == numbers[::-1]


def saved(number: int, ago: timedelta, *, stays: bool = False, size: int = 10) -> SavedScenario:
    at = timezone.now() - ago
    SchedulingSession.objects.create(number=number, started_at=at, state="Done")
    return SavedScenario.objects.create(
        session_number=number, created_at=at, content=b"x" * size, stays=stays
    )


def kept() -> set[int]:
    return set(SavedScenario.objects.values_list("session_number", flat=True))


@pytest.mark.both_databases
def test_a_session_is_kept_for_a_day_and_one_that_evicted_for_as_long_as_its_evictions():
    saved(901, timedelta(days=31), stays=True)
    saved(902, timedelta(days=29), stays=True)
    saved(903, timedelta(hours=25))
    saved(904, timedelta(hours=23))

    tidy_up()

    assert kept() == {902, 904}
    assert set(SchedulingSession.objects.values_list("number", flat=True)) == {902, 904}


@pytest.mark.both_databases
def test_kept_sessions_stay_within_their_bytes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept_sessions, "conf", lambda: replace(conf(), replay_megabytes=1))
    for number in range(1, 9):
        age = timedelta(seconds=70 * (9 - number))  # no two of them in one of the longest steps
        saved(900 + number, age, size=2**18, stays=number == 1)

    tidy_up()

    assert kept() == {901, 906, 907, 908}


def test_a_session_that_was_asked_for_is_not_thinned_out():
    number = decided_something()
    keep_next_sessions(1)
    asked = run_session().number

    assert dict(SavedScenario.objects.values_list("session_number", "stays")) == {
        number: False,
        asked: True,
    }
