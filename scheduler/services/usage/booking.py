"""Booking: what pods waited for and held becomes rows of usage, exactly once.

A pod that is over has a stretch, which a trigger wrote in the transaction that ended it. All pods
are counted up to the same mark, so that what was used and what was deserved can be compared: a pod
that went on then is remembered with what was counted, and a stretch that ends later stays for a
later mark. Each step books the difference between what is known now and what was booked before,
and remembers it, in one transaction: killed anywhere, or run twice, the sums stay what they must
be.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from scheduler.domain.resources import Resources
from scheduler.domain.usage import (
    HOUR,
    LOST,
    Account,
    Counted,
    Life,
    counted_amounts,
    moment_at,
    seconds_held,
    still_to_book,
    whole_seconds,
)
from scheduler.models import CountedPod, Eviction, Pod, PodStretch, UsageBook
from scheduler.models.bulk import as_parameter, execute, json_column, values_table
from scheduler.services.usage.shares import add_shares
from scheduler.services.usage.sums import Sums
from scheduler.services.usage.waits import add_waits

MARK: Final = 600
"""Pods are counted up to each whole ten minutes."""
SHORT_MARK: Final = 60
"""While no more go on than are counted in one transaction, up to each whole minute."""
LATE: Final = timedelta(seconds=75)
"""So long after a mark, what the queues had is there in whole minutes."""
AT_ONCE: Final = 2000
"""Pods booked in one transaction."""
_ENDED: Final = ("Succeeded", "Failed")
_EVICTING: Final = ("preempt", "reclaim", "shed")


@dataclass(frozen=True, slots=True)
class _Known:
    """A pod as it is known now. `until` is up to when it counts."""

    uid: UUID
    account: Account
    requests: Resources
    life: Life
    until: int
    was_evicted: bool = False


def book_usage(now: datetime, until: float | None = None) -> None:
    """All up to the mark, if a new one has come; else what is heard of late. `until` is a monotonic
    clock's. What is not done by then is for the next time.
    """
    book, _ = UsageBook.objects.get_or_create(pk=1)
    mark = max(_mark_at(now), book.complete_until or 0)
    while _book_stretches(mark):
        if until is not None and time.monotonic() > until:
            return
    if book.complete_until == mark:
        return
    for step in (_book_open_pods, _book_later_stretches):
        after = 0
        while (last := step(after, mark)) is not None:
            after = last
    _complete(mark)


def _mark_at(now: datetime) -> int:
    mark = MARK
    if _going_on().count() <= AT_ONCE:
        mark = SHORT_MARK
    return int((now - LATE).timestamp()) // mark * mark


def _going_on() -> QuerySet[Pod]:
    return Pod.objects.exclude(phase__in=_ENDED)


def _hold_book() -> UsageBook:
    """One books at a time; held until the transaction ends."""
    return UsageBook.objects.select_for_update().get(pk=1)


@transaction.atomic
def _complete(mark: int) -> None:
    """What queues deserved, borrowed and lent is booked with the mark that it goes up to."""
    book = _hold_book()
    if (book.complete_until or 0) >= mark:
        return
    if book.complete_until is not None:
        sums = Sums()
        add_shares(sums, book.complete_until, mark)
        sums.write()
        add_waits(book.complete_until, mark)
    book.complete_until = mark
    book.save(update_fields=["complete_until"])


# Pods that are over


@transaction.atomic
def _book_stretches(mark: int) -> bool:
    """Those that ended by then, in whole seconds. Whether there may be more."""
    _hold_book()
    rows = PodStretch.objects.filter(booked=False, ended_at__lt=moment_at(mark + 1))
    stretches = list(rows.order_by("pk")[:AT_ONCE])
    if not stretches:
        return False
    evicted = _evictions_of(stretches)
    pods = [_known_stretch(stretch, evicted) for stretch in stretches]
    _book(pods, over=True)
    PodStretch.objects.filter(pk__in=[stretch.pk for stretch in stretches]).update(booked=True)
    return len(stretches) == AT_ONCE


@transaction.atomic
def _book_later_stretches(after: int, mark: int) -> int | None:
    """What went on at the mark and has ended since, as all that goes on. The last number; None at
    the end.
    """
    _hold_book()
    rows = PodStretch.objects.filter(booked=False, pk__gt=after, created_at__lt=moment_at(mark))
    stretches = list(rows.order_by("pk")[:AT_ONCE])
    if not stretches:
        return None
    going_on = []
    for stretch in stretches:
        pod = _known_stretch(stretch, {})
        if pod.until > mark:
            going_on.append(replace(pod, life=replace(pod.life, ended=None), until=mark))
    _book(going_on, over=False)
    return stretches[-1].pk


def _known_stretch(stretch: PodStretch, evictions: Mapping[str, Collection[datetime]]) -> _Known:
    began = stretch.began_at
    life = Life(
        whole_seconds(stretch.created_at),
        None if began is None else whole_seconds(began),
        whole_seconds(stretch.ended_at),
    )
    was_evicted = False
    if began is not None:
        times = evictions.get(stretch.pod_name, ())
        was_evicted = any(began <= at <= stretch.ended_at for at in times)
    account = Account(stretch.queue_name, stretch.namespace, stretch.owner, stretch.job)
    until = whole_seconds(stretch.ended_at)
    return _Known(stretch.pod_uid, account, stretch.requests, life, until, was_evicted)


def _evictions_of(stretches: Iterable[PodStretch]) -> dict[str, list[datetime]]:
    """By pod: when sessions evicted it."""
    groups = {f"{stretch.namespace}/{stretch.job}" for stretch in stretches}
    rows = Eviction.objects.filter(podgroup_name__in=groups, action__in=_EVICTING)
    found: dict[str, list[datetime]] = {}
    for name, at in rows.values_list("pod_name", "created_at"):
        found.setdefault(name, []).append(at)
    return found


# Pods that go on


@transaction.atomic
def _book_open_pods(after: int, mark: int) -> int | None:
    """Some of them, in the order of their numbers. The last number; None at the end."""
    _hold_book()
    rows = (
        _going_on()
        .filter(pk__gt=after)
        .order_by("pk")
        .values_list(
            "pk",
            "uid",
            "podgroup__queue__name",
            "podgroup__namespace",
            "podgroup__owner",
            "podgroup__name",
            "pod_class__requests",
            "phase",
            "created_at",
            "bound_at",
            "started_at",
        )[:AT_ONCE]
    )
    found = list(rows)
    if not found:
        return None
    _book([pod for pod in _open_pods(found, mark) if pod.life.created < mark], over=False)
    return int(found[-1][0])


def _open_pods(rows: Iterable[Sequence[Any]], mark: int) -> Iterator[_Known]:
    for _, uid, queue, namespace, owner, job, requests, phase, created, bound, started in rows:
        began = None
        if phase != "Pending":
            began = whole_seconds(bound or started or created)
        life = Life(whole_seconds(created), began)
        yield _Known(uid, Account(queue, namespace, owner, job), requests, life, mark)


# Both


def _book(pods: Sequence[_Known], *, over: bool) -> None:
    before = CountedPod.objects.in_bulk([pod.uid for pod in pods])
    sums = Sums()
    remembered = []
    for pod in pods:
        counted = _moved_on(before.get(pod.uid), pod)
        _add_pod(sums, pod, counted)
        if not over:
            remembered.append(_memory(pod, counted))
    sums.write()
    if over:
        CountedPod.objects.filter(pk__in=list(before)).delete()
    else:
        _remember(remembered)


def _moved_on(row: CountedPod | None, pod: _Known) -> Counted | None:
    """What was booked before. To another queue, say: that stays there, and the pod counts here
    from where it ends.
    """
    if row is None:
        return None
    counted = Counted(Life(row.created, row.began), row.since, row.until)
    account = Account(row.queue_name, row.namespace, row.owner, row.job)
    if account == pod.account and row.requests == pod.requests:
        return counted
    return replace(counted, since=row.until)


def _add_pod(sums: Sums, pod: _Known, counted: Counted | None) -> None:
    amounts = counted_amounts(pod.requests)
    for (figure, hour), seconds in still_to_book(pod.life, pod.until, counted).items():
        sums.add_pod(pod.account, hour, figure, seconds, amounts)
    if pod.was_evicted:
        hour = pod.until // HOUR * HOUR
        sums.add_pod(pod.account, hour, LOST, seconds_held(pod.life), amounts)


def _memory(pod: _Known, counted: Counted | None) -> dict[str, Any]:
    since = pod.life.created
    if counted is not None:
        since = counted.since
    return {
        "pod_uid": pod.uid.hex,
        "queue_name": pod.account.queue,
        "namespace": pod.account.namespace,
        "job": pod.account.job,
        "owner": pod.account.owner,
        "requests": json.dumps(dict(pod.requests)),
        "created": pod.life.created,
        "began": pod.life.began,
        "since": since,
        "until": pod.until,
    }


def _remember(rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        return
    types = {
        "pod_uid": "uuid",
        "queue_name": "text",
        "namespace": "text",
        "job": "text",
        "owner": "text",
        "requests": "text",
        "created": "bigint",
        "began": "bigint",
        "since": "bigint",
        "until": "bigint",
    }
    read = ", ".join(
        json_column("d.requests") if name == "requests" else f"d.{name}" for name in types
    )
    changed = ", ".join(f"{name} = excluded.{name}" for name in types if name != "pod_uid")
    execute(
        f"INSERT INTO scheduler_countedpod ({', '.join(types)}) SELECT {read} "
        f"FROM {values_table('d', types)} WHERE true "
        f"ON CONFLICT (pod_uid) DO UPDATE SET {changed}",
        [as_parameter(rows)],
    )
