"""The conditions of podgroups of Kubernetes itself: what is to be written, and what is not."""

from __future__ import annotations

from dataclasses import replace

from scheduler.clusters.kubernetes.resources import NATIVE_PODGROUPS
from scheduler.clusters.kubernetes.values import Condition, PodGroupObject
from scheduler.services.cluster.mirror.native_status import (
    condition_changes,
    scheduled_condition_type,
)
from tests.mirrored import BEGINNING, leaving, native_podgroup, pod

TYPE = "PodGroupInitiallyScheduled"
NOTHING_SAID = ("", "")
NO_ROOM = ("Unschedulable", "0/3 nodes have room.")


def with_condition(group: PodGroupObject, condition: Condition) -> PodGroupObject:
    return replace(group, conditions=(*group.conditions, condition))


def statuses(changes: list[Condition]) -> list[tuple[str, str, str]]:
    return [(each.type, each.status, each.reason) for each in changes]


def evicted(name: str):
    return leaving(pod(name, node="n1", preempted="Queue owner takes back what it deserves."))


def test_the_condition_has_the_name_of_its_version():
    newer = replace(NATIVE_PODGROUPS, version="v1beta1")

    assert scheduled_condition_type(NATIVE_PODGROUPS) == "PodGroupScheduled"
    assert scheduled_condition_type(newer) == "PodGroupInitiallyScheduled"


def test_a_podgroup_that_waits_says_why():
    changes = condition_changes(native_podgroup("train", least=2), TYPE, [pod("a")], NO_ROOM)

    assert changes == [Condition(TYPE, "False", *NO_ROOM)]


def test_one_of_which_nothing_is_known_says_nothing():
    assert condition_changes(native_podgroup("train"), TYPE, [pod("a")], NOTHING_SAID) == []


def test_one_whose_minimum_has_places_is_scheduled():
    pods = [pod("a", node="n1"), pod("b", node="n1"), pod("c")]

    changes = condition_changes(native_podgroup("train", least=2), TYPE, pods, NO_ROOM)

    assert statuses(changes) == [(TYPE, "True", "Scheduled")]


def test_once_scheduled_it_stays_so():
    group = with_condition(
        native_podgroup("train", least=2),
        Condition(TYPE, "True", "Scheduled", "2 pods have places"),
    )

    assert condition_changes(group, TYPE, [pod("a")], NO_ROOM) == []


def test_the_same_sentence_with_other_figures_is_no_news():
    said = Condition(TYPE, "False", "Unschedulable", "0/5 nodes have room.")
    group = with_condition(native_podgroup("train", least=2), said)

    assert condition_changes(group, TYPE, [pod("a")], NO_ROOM) == []


def test_another_sentence_keeps_the_moment_since_when_it_waits():
    said = Condition(TYPE, "False", "QueueClosed", "The queue is closed.", BEGINNING)
    group = with_condition(native_podgroup("train", least=2), said)

    changes = condition_changes(group, TYPE, [pod("a")], NO_ROOM)

    assert changes == [Condition(TYPE, "False", *NO_ROOM, BEGINNING)]


def test_a_gang_that_is_evicted_is_the_target_of_a_disruption():
    pods = [evicted("a"), pod("b", node="n1")]
    group = with_condition(native_podgroup("train", least=2), Condition(TYPE, "True", "Scheduled"))

    changes = condition_changes(group, TYPE, pods, NOTHING_SAID)

    words = "Queue owner takes back what it deserves."
    assert changes == [Condition("DisruptionTarget", "True", "PreemptionByScheduler", words)]


def test_one_that_only_loses_what_is_above_its_minimum_is_not():
    pods = [evicted("a"), pod("b", node="n1"), pod("c", node="n1")]
    group = with_condition(native_podgroup("train", least=2), Condition(TYPE, "True", "Scheduled"))

    assert condition_changes(group, TYPE, pods, NOTHING_SAID) == []


def test_one_that_runs_again_is_no_longer_the_target():
    told = Condition("DisruptionTarget", "True", "PreemptionByScheduler", "It had to go.")
    group = with_condition(native_podgroup("train"), Condition(TYPE, "True", "Scheduled"))

    changes = condition_changes(
        with_condition(group, told), TYPE, [pod("a", node="n1")], NOTHING_SAID
    )

    assert statuses(changes) == [("DisruptionTarget", "False", "Scheduled")]
