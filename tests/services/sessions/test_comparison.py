"""What another scheduler did, beside what shadow sessions would have done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from scheduler.domain.comparison import Verdict
from scheduler.models import ClusterState, Comparison, Mirror, SchedulingSession
from scheduler.selectors.sessions.comparison import comparisons_for, summary_of
from scheduler.services.sessions.runner import SessionRunner
from tests.mirrored import (
    MadeUpCluster,
    job,
    kubernetes_mode,
    leaving,
    moved,
    node,
    pod,
    podgroup,
    podgroup_of,
    priority_class,
)

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture(autouse=True)
def _watching() -> Iterator[None]:
    with kubernetes_mode():
        yield


class Watched:
    """A made-up cluster, and sessions that watch it. Time passes only when it is told to."""

    def __init__(self) -> None:
        self.cluster = MadeUpCluster()
        self.runner = SessionRunner("test")

    def lists(self, *objects) -> None:
        self.cluster.lists(*objects)
        self.look()

    def has(self, *objects) -> None:
        self.cluster.has(*objects)
        self.look()

    def look(self) -> None:
        assert self.runner.run() is not None

    def restart(self) -> None:
        self.runner = SessionRunner("test")

    def pass_time(self, seconds: float) -> None:
        """As if everything so far had happened so much earlier."""
        earlier = timedelta(seconds=seconds)
        for row in Comparison.objects.all():
            for name in ("since", "ours_at", "theirs_at", "half_since", "ended_at"):
                if moment := getattr(row, name):
                    setattr(row, name, moment - earlier)
            row.save()
        for row in self._open():
            for name in ("since", "ours_at", "theirs_at", "half_since"):
                if moment := getattr(row, name):
                    setattr(row, name, moment - earlier)

    def _open(self) -> list[Comparison]:
        comparison = self.runner._comparison
        return [*comparison._starts.values(), *comparison._evictions.values()]


def gang(name: str, pods: int = 2, cpu: str = "2", **given):
    """A podgroup that needs all of its pods, and the pods."""
    return (
        podgroup(name, least=pods, phase="Inqueue", **given),
        *(pod(f"{name}-{number}", group=name, cpu=cpu) for number in range(pods)),
    )


def placed(pods, on: str = "n1"):
    return [moved(each, node=on, phase="Running") for each in pods]


def verdicts() -> dict[str, str]:
    return {row.podgroup_name: row.verdict for row in comparisons_for(None)}


def test_a_gang_that_both_start_at_once_is_agreed_on():
    watched = Watched()
    group, *pods = gang("train")
    watched.lists(node("n1", cpu="8"), group, *pods)
    assert verdicts() == {"default/train": Verdict.UNDECIDED}

    watched.has(*placed(pods))

    row = Comparison.objects.get()
    assert verdicts() == {"default/train": Verdict.TOGETHER}
    assert row.ours_session == 1
    assert row.ended_at == row.theirs_at > row.ours_at


def test_a_gang_that_the_other_lets_wait_while_there_is_room_differs():
    watched = Watched()
    group, *pods = gang("train")
    watched.lists(node("n1", cpu="8"), group, *pods)

    watched.pass_time(60)
    assert verdicts() == {"default/train": Verdict.ONLY_OURS}

    watched.has(*placed(pods))
    assert verdicts() == {"default/train": Verdict.OURS_EARLIER}


def test_a_gang_that_only_the_other_would_start_says_why_it_would_wait_here():
    watched = Watched()
    group, *pods = gang("train", cpu="6")
    watched.lists(node("n1", cpu="8"), node("n2", cpu="1"), group, *pods)
    assert verdicts() == {"default/train": Verdict.BOTH_WAIT}

    watched.has(*placed(pods))

    row = Comparison.objects.get()
    assert verdicts() == {"default/train": Verdict.ONLY_THEIRS}
    assert row.reason_code
    assert row.message


def test_a_gang_that_both_let_wait_counts_for_neither_side():
    watched = Watched()
    watched.lists(node("n1", cpu="1"), *gang("big"))
    watched.pass_time(60)

    summary = summary_of(comparisons_for(None))

    assert verdicts() == {"default/big": Verdict.BOTH_WAIT}
    assert summary.starts.decided == 0
    assert summary.starts.rate is None


def test_a_gang_that_is_started_in_part_for_long_is_told():
    watched = Watched()
    group, first, second = gang("train")
    watched.lists(node("n1", cpu="8"), group, first, second)
    watched.has(*placed([first]))
    assert verdicts() == {"default/train": Verdict.UNDECIDED}

    watched.pass_time(30)
    assert verdicts() == {"default/train": Verdict.HALF_STARTED}

    watched.has(*placed([second]))
    assert verdicts() == {"default/train": Verdict.HALF_STARTED}
    assert Comparison.objects.get().half_seconds > 29


def test_a_gang_that_is_bound_pod_by_pod_is_not_called_half_started():
    watched = Watched()
    group, first, second = gang("train")
    watched.lists(node("n1", cpu="8"), group, first, second)
    watched.has(*placed([first]))

    watched.has(*placed([second]))

    assert verdicts() == {"default/train": Verdict.TOGETHER}


def test_what_the_other_has_begun_is_not_ours_to_start():
    """The rest of a half-started gang fits. That does not mean that ours would have started it."""
    watched = Watched()
    watched.lists(node("n1", cpu="8"))
    group, first, second = gang("train")

    watched.has(group, *placed([first]), second)

    assert Comparison.objects.get().ours_at is None


def test_a_gang_that_starts_between_two_looks_is_not_compared():
    watched = Watched()
    watched.lists(node("n1", cpu="8"))
    group, *pods = gang("train")

    watched.has(group, *placed(pods))

    assert verdicts() == {"default/train": Verdict.NOT_SEEN}
    assert summary_of(comparisons_for(None)).starts.decided == 0


def test_what_ran_before_the_first_look_is_no_news():
    watched = Watched()
    group, *pods = gang("train")

    watched.lists(node("n1", cpu="8"), group, *placed(pods))

    assert not Comparison.objects.exists()


def test_what_happens_while_nobody_looks_is_not_compared():
    watched = Watched()
    group, *pods = gang("train")
    watched.lists(node("n1", cpu="8"), group, *pods)
    watched.runner._comparison._looked_at -= timedelta(minutes=5)

    watched.has(*placed(pods))

    assert verdicts() == {"default/train": Verdict.NOT_SEEN}


def test_nothing_is_noted_while_the_cluster_is_not_heard():
    watched = Watched()
    watched.lists(node("n1", cpu="8"))
    watched.cluster.has(*gang("train"))
    Mirror.objects.update(heard_at=timezone.now() - timedelta(minutes=1))

    watched.look()

    assert not Comparison.objects.exists()


def test_nothing_is_noted_while_scheduling_is_paused():
    watched = Watched()
    watched.lists(node("n1", cpu="8"))
    ClusterState.objects.update(paused=True)

    watched.has(*gang("train"))

    assert not Comparison.objects.exists()


def test_another_worker_goes_on_with_what_is_open():
    watched = Watched()
    group, *pods = gang("train")
    watched.lists(node("n1", cpu="8"), group, *pods)
    watched.restart()

    watched.has(*placed(pods))

    assert verdicts() == {"default/train": Verdict.TOGETHER}


def test_another_worker_after_a_long_while_compares_nothing_of_it():
    watched = Watched()
    group, *pods = gang("train")
    watched.lists(node("n1", cpu="8"), group, *pods)
    watched.restart()
    earlier = timezone.now() - timedelta(minutes=5)
    SchedulingSession.objects.update(started_at=earlier)

    watched.has(*placed(pods))

    assert verdicts() == {"default/train": Verdict.NOT_SEEN}


def test_a_gang_that_is_deleted_while_it_waits_is_closed():
    watched = Watched()
    group, *pods = gang("big", cpu="64")
    watched.lists(node("n1", cpu="8"), group, *pods)

    watched.cluster.loses(group, *pods)
    watched.look()

    row = Comparison.objects.get()
    assert row.ended_at is not None
    assert verdicts() == {"default/big": Verdict.BOTH_WAIT}


def test_a_gang_that_starts_and_completes_between_two_looks_was_started():
    watched = Watched()
    train = job("train")
    group = podgroup_of(train, phase="Inqueue")
    waiting = pod("train-0", group=train.group_name, cpu="2")
    watched.lists(node("n1", cpu="8"), train, group, waiting)

    watched.cluster.loses(group, waiting)
    watched.has(moved(train, phase="Completed"))

    assert verdicts() == {"default/train": Verdict.TOGETHER}


def test_a_gang_that_waits_again_is_another_question():
    watched = Watched()
    group, *pods = gang("train")
    watched.lists(node("n1", cpu="8"), group, *pods)
    running = placed(pods)
    watched.has(*running)
    again = [pod(f"train-{number}-again", group="train", cpu="2") for number in range(2)]
    watched.cluster.loses(*running)

    watched.has(*again)

    assert Comparison.objects.filter(theirs_at=None).count() == 1
    assert Comparison.objects.exclude(theirs_at=None).count() == 1


# Evictions


def evicted(pod):
    """As Volcano and Kubernetes' own scheduler mark a pod that they preempt."""
    return leaving(replace(pod, preempted="volcano: preempting to accommodate a higher priority"))


def test_an_eviction_that_ours_would_not_do_is_told_with_what_the_cluster_says():
    watched = Watched()
    group, *pods = gang("train")
    running = placed(pods)
    watched.lists(node("n1", cpu="8"), group, *running)

    watched.has(*(evicted(each) for each in running))

    row = Comparison.objects.get(about=Comparison.EVICTION)
    assert verdicts() == {"default/train": Verdict.EVICTED_BY_THEIRS}
    assert row.message.startswith("volcano: preempting")

    watched.cluster.loses(*running)
    watched.look()
    row.refresh_from_db()
    assert row.ended_at is not None


def test_a_pod_that_somebody_deletes_is_no_eviction():
    watched = Watched()
    group, *pods = gang("train")
    running = placed(pods)
    watched.lists(node("n1", cpu="8"), group, *running)

    watched.has(*(leaving(each) for each in running))

    assert not Comparison.objects.filter(about=Comparison.EVICTION).exists()


def test_an_eviction_that_only_ours_would_do_is_told_with_for_whom():
    watched = Watched()
    group, *pods = gang("low", cpu="4")
    urgent = podgroup("urgent", least=1, phase="Inqueue", priority_class="high")
    wanted = pod("urgent-0", group="urgent", cpu="4", priority=1000)
    watched.lists(
        node("n1", cpu="8"), priority_class("high", 1000), group, *placed(pods), urgent, wanted
    )

    rows = Comparison.objects.filter(about=Comparison.EVICTION)
    assert [row.podgroup_name for row in rows] == ["default/low"]
    assert rows[0].beneficiary == "default/urgent"

    watched.pass_time(120)
    assert verdicts()["default/low"] == Verdict.EVICTED_BY_OURS

    assert summary_of(comparisons_for(None)).evictions.decided == 1


def test_an_eviction_that_both_do_is_agreed_on():
    watched = Watched()
    group, *pods = gang("low", cpu="4")
    running = placed(pods)
    urgent = podgroup("urgent", least=1, phase="Inqueue", priority_class="high")
    wanted = pod("urgent-0", group="urgent", cpu="4", priority=1000)
    watched.lists(
        node("n1", cpu="8"), priority_class("high", 1000), group, *running, urgent, wanted
    )

    watched.has(*(evicted(each) for each in running))

    assert verdicts()["default/low"] == Verdict.EVICTED_BY_BOTH
