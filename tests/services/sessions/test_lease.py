"""One scheduler at a time: the lease, who takes it over, and whose writes are refused."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from scheduler.conf import conf
from scheduler.models import (
    ClusterState,
    Decision,
    Lease,
    SchedulingSession,
)
from scheduler.services.sessions import lease
from scheduler.services.sessions.runner import SessionRunner
from tests.worlds import job, node, phases

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def state() -> ClusterState:
    return ClusterState.objects.get(pk=1)


def test_only_one_worker_holds_the_lease():
    first = SessionRunner("first")
    second = SessionRunner("second")

    assert first.run()
    assert second.run() is None
    assert first.run()


def test_another_worker_takes_over_when_the_lease_has_run_out_and_closes_what_was_left():
    first = SessionRunner("first")
    second = SessionRunner("second")
    first.run()
    SchedulingSession.objects.update(
        state="Running", finished_at=None
    )  # as if killed in the middle
    Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    result = second.run()

    assert result
    assert list(SchedulingSession.objects.order_by("number").values_list("state", flat=True)) == [
        "TakenOver",
        "Done",
    ]
    tokens = list(
        SchedulingSession.objects.order_by("number").values_list("fencing_token", flat=True)
    )
    assert tokens[0] < tokens[1]


def test_a_worker_of_this_machine_that_is_no_more_is_not_waited_for():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    host = socket.gethostname()
    assert lease.acquire(f"{host}:{gone.pid}:abc", 200)

    assert SessionRunner("next").run()


@pytest.mark.parametrize(
    "holder", ["{host}:{pid}:abc", "elsewhere:999999999:abc", "{host}:x:abc", "nobody"]
)
def test_a_worker_that_lives_or_that_nothing_is_known_of_is_waited_for(holder: str):
    assert lease.acquire(holder.format(host=socket.gethostname(), pid=os.getpid()), 200)

    assert SessionRunner("next").run() is None


def test_a_worker_that_slept_past_its_lease_can_not_write(meanwhile: Any):
    node("n1", cpu="8")
    made = job("train")

    def sleep_while_another_takes_over() -> None:
        Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert lease.acquire("other", 30)

    meanwhile(sleep_while_another_takes_over)

    assert SessionRunner("slow").run() is None
    assert phases(made) == ["Pending"]
    assert not Decision.objects.exists()


def test_a_worker_that_slept_past_its_lease_goes_on_if_nobody_took_it(meanwhile: Any):
    node("n1", cpu="8")
    made = job("train")
    meanwhile(lambda: Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1)))
    runner = SessionRunner("slow")

    assert runner.run()
    Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    second = runner.run()

    assert phases(made) == ["Binding"]
    assert second
    assert not second.refreshed.reloaded
    assert Lease.objects.get().token == 1
    assert set(SchedulingSession.objects.values_list("state", flat=True)) == {"Done"}


@pytest.mark.django_db(transaction=True)
def test_a_session_that_takes_longer_than_its_lease_keeps_it(
    meanwhile: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        "scheduler.services.sessions.runner.conf", lambda: replace(conf(), lease_seconds=0.8)
    )
    monkeypatch.setattr(
        "scheduler.services.sessions.claim.conf", lambda: replace(conf(), lease_seconds=0.8)
    )
    node("n1", cpu="8")
    made = job("train")
    others: list[object] = []

    def think_for_two_leases() -> None:
        first = Lease.objects.get().expires_at
        deadline = time.monotonic() + 10
        while (
            Lease.objects.get().expires_at < first + timedelta(seconds=1.6)
            and time.monotonic() < deadline
        ):
            others.append(lease.acquire("other", 0.8))
            time.sleep(0.05)

    meanwhile(think_for_two_leases)

    assert SessionRunner("slow").run()
    assert phases(made) == ["Binding"]
    assert set(others) == {None}


@pytest.mark.django_db(transaction=True)
def test_a_session_whose_lease_was_taken_does_not_go_on_thinking(monkeypatch: pytest.MonkeyPatch):
    held = lease.acquire("slow", 0.2)
    assert held

    with lease.Keeper(held, 0.2) as keeper:
        keeper.check()
        Lease.objects.update(holder="other", token=7)
        with pytest.raises(lease.LeaseLost):
            until(keeper.check)

    assert Lease.objects.get().holder == "other"


def until(check: Callable[[], None]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        check()
        time.sleep(0.02)


def test_what_another_worker_said_meanwhile_is_not_taken_for_what_this_one_said():
    first = SessionRunner("first")
    second = SessionRunner("second")
    first.run()
    first.run()
    for runner in (second, first):
        Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        result = runner.run()

        assert result
        assert result.refreshed.reloaded


def test_a_lease_from_before_the_clock_was_put_back_is_not_waited_for():
    assert lease.acquire("elsewhere:1:abc", 30)
    Lease.objects.update(expires_at=timezone.now() + timedelta(hours=5))

    assert SessionRunner("next").run()


def test_a_worker_of_the_same_name_goes_on_after_a_crash():
    SessionRunner("same").run()
    SchedulingSession.objects.update(state="Running", finished_at=None)

    assert SessionRunner("same").run()
    assert SchedulingSession.objects.filter(state="TakenOver").count() == 1


def test_a_session_that_fails_says_so_and_the_next_one_reads_everything_anew(
    meanwhile: Any, monkeypatch: pytest.MonkeyPatch
):
    node("n1", cpu="8")
    made = job("train")
    runner = SessionRunner("test")
    runner.run()
    meanwhile(lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        runner.run()
    monkeypatch.undo()
    result = runner.run()

    assert result
    assert result.refreshed.reloaded
    failed = SchedulingSession.objects.get(state="Failed")
    assert "ZeroDivisionError" in failed.message
    assert phases(made) == ["Binding"]
