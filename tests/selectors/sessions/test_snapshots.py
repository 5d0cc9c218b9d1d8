"""The snapshot that is kept between sessions is always what reading everything anew would give."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scheduler.engine import run_session as think
from scheduler.models import Change, Event, Job, Pod, PodClass, PodGroup, Queue
from scheduler.models.bulk import execute, fetch
from scheduler.scenarios.digests import plain_outcome
from scheduler.selectors.sessions.snapshot_sums import SumsDiffer
from scheduler.selectors.sessions.snapshots import (
    ResidentSnapshot,
    one_state_of_the_database,
)
from scheduler.services.jobs import pod_creation, pod_steps
from scheduler.services.sessions.runner import SessionRunner
from tests.histories import History, broken_rules, build_cluster
from tests.worlds import job, node, pass_time, queue, run_session


def decided(resident: ResidentSnapshot) -> dict[str, Any]:
    """The whole outcome of a session on these tables, as if nothing had been said before."""
    snapshot = resident.snapshot
    said = snapshot.groups.said.copy()
    snapshot.groups.said[:] = 0
    snapshot.session = 1000
    snapshot.taken_at = 2e9
    try:
        return plain_outcome(think(snapshot), snapshot)
    finally:
        snapshot.groups.said[:] = said


def assert_as_good_as_new(resident: ResidentSnapshot) -> None:
    fresh = ResidentSnapshot()
    with one_state_of_the_database():
        resident.refresh(check_sums=True)
        fresh.reload()

    assert not resident.snapshot.aggregates.node_used.min(initial=0) < 0
    assert decided(resident) == decided(fresh)
    assert stale_rows(_pods(resident), _pods(fresh)) == {}
    assert stale_rows(_groups(resident), _groups(fresh)) == {}


def stale_rows(mine: dict[int, Any], theirs: dict[int, Any]) -> dict[int, Any]:
    return {
        pk: (mine.get(pk), theirs.get(pk))
        for pk in mine.keys() | theirs.keys()
        if mine.get(pk) != theirs.get(pk)
    }


def _pods(tables: ResidentSnapshot) -> dict[int, Any]:
    pods = tables.snapshot.pods
    nodes = tables.snapshot.nodes.names
    return {
        pk: (
            pods.key[row],
            int(pods.status[row]),
            nodes[pods.node[row]] if pods.node[row] >= 0 else int(pods.node[row]),
            str(pods.started[row]),  # as text NaN equals itself
        )
        for pk, row in tables.pod_rows.items()
    }


def _groups(tables: ResidentSnapshot) -> dict[int, Any]:
    groups = tables.snapshot.groups
    return {
        pk: (groups.key[row], int(groups.evictions[row]), str(groups.expected_seconds[row]))
        for pk, row in tables.group_rows.items()
    }


@pytest.mark.both_databases
@pytest.mark.django_db
def test_it_knows_run_times_starts_and_evictions_however_they_change():
    node("n1", cpu="8")
    made = job("train", replicas=2, seconds=90)
    resident = ResidentSnapshot()
    resident.refresh()
    started = timezone.now()

    Pod.objects.filter(podgroup=made.podgroup, index=0).update(started_at=started)
    PodGroup.objects.filter(job=made).update(evictions=3)

    resident.refresh()
    groups = resident.snapshot.groups
    pods = resident.snapshot.pods
    known = [moment for moment in pods.started.tolist() if moment == moment]
    assert known == [pytest.approx(started.timestamp(), abs=0.001)]
    assert (groups.evictions.tolist(), groups.expected_seconds.tolist()) == ([3], [90.0])
    assert_as_good_as_new(resident)


@pytest.mark.both_databases
@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(3))
def test_after_any_history_it_decides_bit_for_bit_what_a_full_reload_decides(seed: int):
    build_cluster()
    history = History(seed)
    runner = SessionRunner("test")
    observer = ResidentSnapshot()
    observer.refresh()

    for step in range(40):
        history.step()
        if step % 3 == 0:
            run_session(runner)
        if step % 5 == 0:
            assert_as_good_as_new(observer)

    assert_as_good_as_new(observer)
    assert_as_good_as_new(runner.resident)


class HistoryInSteps(History):
    """As if every job were large: pods are made and stopped a few at a time."""

    def _deeds(self) -> dict[Callable[[], None], int]:
        return {**super()._deeds(), self.take_a_step: 15, self.command_a_job: 8}

    def take_a_step(self) -> None:
        for step in pod_steps._next_steps():
            step()


@pytest.mark.both_databases
@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(10, 13))
def test_that_holds_while_pods_are_made_and_stopped_in_steps(
    seed: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pod_creation, "AT_ONCE", 2)
    build_cluster()
    history = HistoryInSteps(seed)
    runner = SessionRunner("test")
    observer = ResidentSnapshot()
    observer.refresh()
    stopped_in_steps = 0

    for step in range(60):
        history.step()
        stopped_in_steps += PodGroup.objects.filter(stopping=True).count()
        if step % 3 == 0:
            run_session(runner)
            assert not binding_pods_of_stopping_gangs()
        if step % 5 == 0:
            assert_as_good_as_new(observer)
    while steps := pod_steps._next_steps():
        for step in steps:
            step()

    assert stopped_in_steps
    assert_as_good_as_new(observer)
    assert_as_good_as_new(runner.resident)
    assert broken_rules() == []


def binding_pods_of_stopping_gangs() -> list[Pod]:
    return list(Pod.objects.filter(podgroup__stopping=True, phase="Binding"))


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_with_four_writers_at_once_nothing_is_ever_stale():
    build_cluster()
    writers = [Writer(seed) for seed in range(4)]
    runner = SessionRunner("test")
    observer = ResidentSnapshot()
    observer.refresh()
    for writer in writers:
        writer.start()
    checks = 0
    while any(writer.is_alive() for writer in writers):
        run_session(runner)
        assert_as_good_as_new(observer)
        checks += 1
    for writer in writers:
        writer.join()

    assert [writer.surprise for writer in writers] == [None] * 4
    assert checks > 3
    assert_as_good_as_new(observer)
    assert_as_good_as_new(runner.resident)


class Writer(threading.Thread):
    def __init__(self, seed: int, steps: int = 40) -> None:
        super().__init__(daemon=True)
        self.history = History(seed)
        self.steps = steps
        self.surprise: BaseException | None = None

    def run(self) -> None:
        try:
            for _ in range(self.steps):
                self.history.step()
        except BaseException as surprise:  # told by the test, which would otherwise not see it
            self.surprise = surprise
        finally:
            connection.close()


class NaiveReader:
    """The control: remembers the largest number it saw, as everybody does first."""

    def __init__(self) -> None:
        self.seen = self._newest()
        self.phases = dict(fetch("SELECT id, phase FROM scheduler_pod"))

    def _newest(self) -> int:
        return int(fetch("SELECT coalesce(max(id), 0) FROM scheduler_change")[0][0])

    def refresh(self) -> None:
        changed = [
            row
            for (row,) in fetch(
                "SELECT row_id FROM scheduler_change WHERE kind = 'pod' AND id > %s", [self.seen]
            )
        ]
        self.phases.update(
            fetch("SELECT id, phase FROM scheduler_pod WHERE id = ANY(%s)", [changed])
        )
        self.seen = self._newest()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_commits_late_is_not_missed_and_the_naive_scheme_misses_it():
    made = job("train", replicas=2)
    late, early = made.podgroup.pods.order_by("id").values_list("pk", flat=True)
    resident = ResidentSnapshot()
    naive = NaiveReader()
    resident.refresh()
    written = threading.Event()
    may_commit = threading.Event()

    def hold_open() -> None:
        with transaction.atomic():
            Pod.objects.filter(pk=late).update(phase="Failed")
            written.set()
            may_commit.wait(20)
        connection.close()

    holder = threading.Thread(target=hold_open)
    holder.start()
    assert written.wait(20)
    Pod.objects.filter(pk=early).update(phase="Failed")
    resident.refresh()
    naive.refresh()
    may_commit.set()
    holder.join()
    resident.refresh()
    naive.refresh()

    assert naive.phases[late] == "Pending"  # stale for ever
    assert naive.phases[early] == "Failed"
    assert_as_good_as_new(resident)
    assert {
        pk for pk, row in resident.pod_rows.items() if resident.snapshot.pods.status[row] == 7
    } <= {late, early}


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_a_session_without_any_change_reads_no_pod_row():
    node("n1", cpu="8")
    job("train", replicas=3)
    job("waits", replicas=30)
    runner = SessionRunner("test")
    for _ in range(3):
        run_session(runner)
        pass_time(1)
    runner.run()

    with CaptureQueriesContext(connection) as log:
        result = runner.run()

    assert result
    assert result.refreshed.changed == 0
    touched = [query["sql"] for query in log.captured_queries if "scheduler_pod" in query["sql"]]
    assert touched == []


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_a_change_of_one_pod_reads_that_pod_and_no_other():
    node("n1", cpu="8")
    made = job("train", replicas=8)
    runner = SessionRunner("test")
    for _ in range(3):
        run_session(runner)
    Pod.objects.filter(pk=made.podgroup.pods.first().pk).update(phase="Running")

    result = runner.run()

    assert result
    assert result.refreshed.rows == {"pod": 1}


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_what_nobody_looks_at_is_no_change():
    made = job("train")
    resident = ResidentSnapshot()
    resident.refresh()
    resident.refresh()

    Pod.objects.filter(podgroup=made.podgroup).update(message="hello")
    Queue.objects.filter(name="default").update(updated_by="somebody")

    assert resident.refresh().changed == 0


@pytest.mark.both_databases
@pytest.mark.django_db
def test_the_net_catches_a_planted_difference_and_the_session_reads_everything_anew(
    monkeypatch: pytest.MonkeyPatch,
):
    node("n1", cpu="8")
    made = job("train", replicas=4)
    runner = SessionRunner("test")
    run_session(runner)
    runner.run()
    seen = Change.objects.count()
    Pod.objects.filter(pk=made.podgroup.pods.first().pk).update(phase="Failed", node=None)
    assert Change.objects.count() == seen + 1
    Change.objects.all().delete()  # the log lost it

    with pytest.raises(SumsDiffer, match="default"):
        runner.resident.refresh(check_sums=True)
    monkeypatch.setattr("scheduler.services.sessions.runner.conf", _checking_always)
    result = runner.run()

    assert result
    assert result.refreshed.reloaded
    assert Event.objects.get(reason="ResidentSnapshotDiffered").type == "Warning"
    assert_as_good_as_new(runner.resident)


def _checking_always() -> Any:
    from dataclasses import replace

    from scheduler.conf import conf

    return replace(conf(), check_sums_every=1)


@pytest.mark.both_databases
@pytest.mark.django_db
def test_a_reader_that_stopped_before_the_horizon_reads_everything_anew():
    job("train")
    resident = ResidentSnapshot()
    resident.refresh()
    execute("UPDATE scheduler_changehorizon SET position = %s", [2**40])

    assert resident.refresh().reloaded


@pytest.mark.both_databases
@pytest.mark.django_db
def test_rows_of_what_is_gone_are_thrown_out_in_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("scheduler.selectors.sessions.snapshots._WORTH_COMPACTING", 4)
    queue("a")
    node("n1", cpu="8")
    resident = ResidentSnapshot()
    resident.refresh()
    for number in range(12):
        job(f"job-{number}", replicas=2)
        resident.refresh()
        if number > 1:
            Job.objects.filter(name=f"job-{number - 2}").delete()
            assert_as_good_as_new(resident)

    assert len(resident.snapshot.pods) < 20
    assert len(resident.snapshot.groups) < 12


@pytest.mark.django_db
def test_classes_that_no_pod_has_any_more_do_not_pile_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("scheduler.selectors.sessions.snapshots._WORTH_COMPACTING", 4)
    resident = ResidentSnapshot()
    resident.refresh()
    for number in range(12):
        job(f"job-{number}", cpu=f"{number + 1}m")
        resident.refresh()
        Job.objects.all().delete()
        PodClass.objects.all().delete()
        resident.refresh()

    assert len(resident.classes) < 10
    assert_as_good_as_new(resident)


def restore_into_another_cluster() -> None:
    """As a dump leaves it: the entries and the horizon have the numbers of the cluster that it was
    taken from.
    """
    execute(
        "UPDATE scheduler_changehorizon SET log = '7000000000000000001/16500', position = %s",
        [2**50],
    )
    execute('UPDATE scheduler_change SET "transaction" = %s', [2**50])


@pytest.mark.both_databases
@pytest.mark.django_db
def test_a_database_that_was_restored_elsewhere_is_read_once():
    node("n1", cpu="1")
    job("train", replicas=2)
    restore_into_another_cluster()
    runner = SessionRunner("test")

    found = [runner.run() for _ in range(4)]

    assert [session.refreshed.reloaded for session in found if session] == [
        True,
        False,
        False,
        False,
    ]
    assert found[-1].refreshed.changed == 0
    job("late")
    assert runner.run().refreshed.changed > 0
    assert_as_good_as_new(runner.resident)


@pytest.mark.postgres
@pytest.mark.django_db
def test_a_worker_that_meets_another_cluster_behind_the_same_address_reads_everything():
    job("train", replicas=2)
    runner = SessionRunner("test")
    runner.run()
    execute("UPDATE scheduler_changehorizon SET log = '7000000000000000001/16500'")
    runner.resident.position = runner.resident.position._replace(log="7000000000000000001/16500")

    found = [runner.run() for _ in range(4)]

    assert found[0].refreshed.reloaded
    assert not found[-1].refreshed.reloaded
    assert found[-1].refreshed.changed == 0
