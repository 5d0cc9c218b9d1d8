"""Usage agrees to the second with what pods held, whatever happens to the worker meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import Sum
from django.utils import timezone

from scheduler.models import (
    CountedPod,
    LoanSample,
    Pod,
    PodStretch,
    Queue,
    QueueSample,
    UsageBook,
    UsageRow,
)
from scheduler.services.records.retention import tidy_up
from scheduler.services.usage import booking
from scheduler.services.usage.booking import MARK, book_usage
from tests.services.usage.month import START, Month, summed
from tests.worlds import job, node, queue, run_session

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
FIGURES = ("held", "waited", "lost")
TOLD = booking.LATE + timedelta(seconds=booking.SHORT_MARK)
"""After an end: by then it is booked."""
NAMES = {"held": "used", "waited": "waited", "lost": "lost"}
QUEUE, NAMESPACE, OWNER, JOB, RESOURCE = range(5)
GROUPS = {
    "job": (("queue_name", "namespace", "owner", "job"), (QUEUE, NAMESPACE, OWNER, JOB)),
    "user": (("queue_name", "namespace", "owner"), (QUEUE, NAMESPACE, OWNER)),
    "queue": (("queue_name",), (QUEUE,)),
    "cluster": ((), ()),
}


def booked(grain: str, seconds: int, figure: str) -> dict[tuple[str, ...], int]:
    names, _ = GROUPS[grain]
    rows = UsageRow.objects.filter(grain=grain, seconds=seconds).order_by()
    found = rows.values_list(*names, "resource").annotate(total=Sum(figure))
    return {tuple(key): total for *key, total in found if total}


def assert_agrees(month: Month) -> None:
    for figure in FIGURES:
        for grain, (_, places) in GROUPS.items():
            expected = summed(getattr(month, figure), *places, RESOURCE)
            assert expected
            for seconds in (UsageRow.HOUR, UsageRow.DAY):
                assert booked(grain, seconds, NAMES[figure]) == expected, (figure, grain, seconds)


def play(month: Month, steps: int = 300, book=book_usage) -> datetime:
    """About thirty days. The worker looks now and then, sometimes twice, sometimes not for long."""
    now = START
    deeds = (month.come,) * 4 + (month.place,) * 4 + (month.end,) * 3
    deeds += (month.evict, month.refuse, month.delete)
    for _ in range(steps):
        now += timedelta(seconds=month.dice.expovariate(1 / 8640))
        month.dice.choice(deeds)(now)
        for _ in range(month.dice.choice((0, 0, 1, 2))):
            book(now)
    mark = int(now.timestamp()) // MARK * MARK + 10 * MARK
    end = datetime.fromtimestamp(mark, tz=UTC)
    month.settle(end)
    book_usage(end + booking.LATE)
    return end


@pytest.mark.parametrize("seed", [1, 2])
def test_a_month_agrees_with_the_pods_by_queue_user_namespace_and_job(seed):
    month = Month.begin(seed)

    play(month)

    assert_agrees(month)


def test_a_worker_that_is_killed_anywhere_loses_and_doubles_nothing(monkeypatch):
    month = Month.begin(3)
    monkeypatch.setattr(booking, "AT_ONCE", 3)
    write = booking.Sums.write

    class Killed(Exception):
        pass

    def dying_write(self):
        if month.dice.random() < 0.2:
            raise Killed
        write(self)
        if month.dice.random() < 0.2:
            raise Killed

    def book(now):
        monkeypatch.setattr(booking.Sums, "write", dying_write)
        try:
            book_usage(now)
        except Killed:
            pass
        finally:
            monkeypatch.setattr(booking.Sums, "write", write)

    play(month, 150, book)

    assert_agrees(month)


def test_a_clock_that_skips_ahead_and_comes_back_is_made_good():
    month = Month.begin(4)
    month.come(START)
    month.place(START + timedelta(minutes=5))
    book_usage(START + timedelta(days=3))

    month.end(START + timedelta(hours=4))
    book_usage(START + timedelta(hours=4))

    assert booked("queue", UsageRow.DAY, "used") == summed(month.held, QUEUE, RESOURCE)


def test_a_pod_counts_for_the_queue_that_it_was_in_at_the_time():
    queue("green")
    month = Month.begin(5)
    month.come(START)
    month.place(START)
    pod = Pod.objects.get()
    first = int(START.timestamp()) // MARK * MARK + MARK
    book_usage(datetime.fromtimestamp(first, tz=UTC) + booking.LATE)
    pod.podgroup.queue = Queue.objects.get(name="green")
    pod.podgroup.save()

    month.end(START + timedelta(days=1))
    ended = Pod.objects.get().finished_at
    book_usage(ended + TOLD)

    cpu = pod.pod_class.requests["cpu"]
    before = first - int(START.timestamp())
    used = {
        name: total
        for (name, kind), total in booked("queue", 3600, "used").items()
        if kind == "cpu"
    }
    whole = int(ended.timestamp()) - int(START.timestamp())
    assert used.pop("green") == (whole - before) * cpu
    assert list(used.values()) == [before * cpu]


def test_pods_that_are_pruned_were_told_before():
    """A job's pods are deleted with it, before anybody has booked them."""
    node("n1", cpu="4")
    made = job("short", replicas=2)
    run_session()
    begun = Pod.objects.first().bound_at - timedelta(hours=1)
    Pod.objects.update(created_at=begun, bound_at=begun)
    Pod.objects.update(phase="Succeeded", finished_at=begun + timedelta(seconds=90))

    made.delete()
    tidy_up()

    (used,) = booked("job", UsageRow.HOUR, "used").values() or (0,)
    assert used == 2 * 90 * 1000


def test_a_pod_that_is_read_anew_counts_once():
    node("n1", cpu="4")
    job("short")
    run_session()
    pod = Pod.objects.get()
    ended = pod.bound_at + timedelta(seconds=30)
    Pod.objects.filter(pk=pod.pk).update(phase="Succeeded", finished_at=ended)
    pod.refresh_from_db()
    book_usage(ended + TOLD)

    pod.delete()
    pod.save(force_insert=True)

    assert PodStretch.objects.count() == 1


def test_a_pod_that_was_over_when_it_was_first_heard_of_counts():
    node("n1", cpu="4")
    job("short")
    run_session()
    pod = Pod.objects.get()
    Pod.objects.all().delete()
    PodStretch.objects.all().delete()

    pod.phase = "Succeeded"
    pod.finished_at = pod.bound_at + timedelta(seconds=30)
    pod.save(force_insert=True)
    book_usage(pod.finished_at + TOLD)

    assert booked("cluster", UsageRow.HOUR, "used") == {("cpu",): 30_000}


@pytest.mark.parametrize("at_once", [1, 2000])  # marks of ten minutes, and of one
@pytest.mark.parametrize("after", [0.4, 20])
def test_all_figures_end_at_the_same_mark(
    monkeypatch: pytest.MonkeyPatch, at_once: int, after: float
):
    """A pod that ended after the mark counts up to it, as one that goes on."""
    monkeypatch.setattr(booking, "AT_ONCE", at_once)
    month = Month.begin(7)
    for _ in range(4):
        month.come(START)
        month.place(START)
    mark = datetime.fromtimestamp(int(START.timestamp()) // MARK * MARK + 6 * MARK, tz=UTC)
    ended = Pod.objects.first()
    assert ended is not None
    Pod.objects.filter(pk=ended.pk).update(
        phase="Succeeded", finished_at=mark + timedelta(seconds=after)
    )
    cpu = sum(pod.pod_class.requests["cpu"] for pod in Pod.objects.select_related("pod_class"))
    seconds = int(mark.timestamp()) - int(START.timestamp())

    book_usage(mark + booking.LATE)
    at_mark = booked("cluster", UsageRow.HOUR, "used")
    book_usage(mark + timedelta(seconds=MARK) + booking.LATE)

    whole = booked("cluster", UsageRow.HOUR, "used")
    rest = int(after) * ended.pod_class.requests["cpu"]
    others = cpu - ended.pod_class.requests["cpu"]
    assert at_mark[("cpu",)] == cpu * seconds
    assert whole[("cpu",)] == cpu * seconds + rest + others * MARK
    assert CountedPod.objects.count() == 3


def test_nothing_is_remembered_of_pods_that_are_over():
    month = Month.begin(6)
    end = play(month, 60)

    Pod.objects.all().delete()  # the database's clock says when they ended
    book_usage(max(end, timezone.now()) + TOLD)

    assert not CountedPod.objects.exists()
    assert not PodStretch.objects.filter(booked=False).exists()


def test_shares_of_queues_are_booked_with_the_mark_they_go_up_to():
    """team-a deserves 6 CPUs and has 2, batch has the other 4 of them."""
    queue("team-a")
    queue("batch")
    start = datetime(2026, 10, 1, 9, 50, tzinfo=UTC)
    has = {"deserved": {"cpu": 6000}, "allocated": {"cpu": 2000}, "pending": {"cpu": 1000}}
    for name, data in (("root", {"deserved": {"cpu": 8000}}), ("team-a", has)):
        QueueSample.objects.create(queue_name=name, seconds=60, at=start, data=data)
    LoanSample.objects.create(
        queue_name="batch", seconds=60, at=start, data={"borrowed": {"cpu": 4000}}
    )
    UsageBook.objects.create(pk=1, complete_until=int(start.timestamp()))

    book_usage(start + timedelta(minutes=20) + booking.LATE)
    book_usage(start + timedelta(minutes=20, seconds=40) + booking.LATE)

    rows = UsageRow.objects.filter(seconds=3600, resource="cpu").order_by("queue_name", "at")
    found = [(row.queue_name, row.at.hour, row.deserved, row.borrowed, row.owed) for row in rows]
    assert found == [
        ("", 9, 600 * 8000, 0, 0),
        ("", 10, 600 * 8000, 0, 0),
        ("batch", 9, 0, 600 * 4000, 0),
        ("batch", 10, 0, 600 * 4000, 0),
        ("team-a", 9, 600 * 6000, 0, 600 * 1000),
        ("team-a", 10, 600 * 6000, 0, 600 * 1000),
    ]
