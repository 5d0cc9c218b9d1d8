"""Podgroups of Kubernetes itself in the tables, beside those of Volcano."""

from __future__ import annotations

import pytest

from scheduler.clusters.kubernetes.gates import QUEUE_GATE
from scheduler.models import Pod, PodGroup
from tests.mirrored import (
    MadeUpCluster,
    job,
    kubernetes_mode,
    namespace,
    native_podgroup,
    node,
    pod,
    podgroup,
    podgroup_of,
    queue,
)

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def names() -> dict[str, str]:
    """What the cluster calls each podgroup, by what pages call it."""
    return dict(PodGroup.objects.values_list("name", "object_name"))


def groups_of_pods() -> dict[str, str]:
    return dict(Pod.objects.values_list("name", "podgroup__name"))


def test_pods_that_name_a_native_podgroup_are_its_gang():
    cluster = MadeUpCluster()

    cluster.has(
        native_podgroup("train", least=2),
        pod("a", native_group="train"),
        pod("b", native_group="train"),
    )

    row = PodGroup.objects.get()
    assert (row.name, row.min_member, row.size, row.is_native) == ("train", 2, 2, True)
    assert groups_of_pods() == {"a": "train", "b": "train"}


def test_pods_that_come_before_their_native_podgroup_only_take_room():
    cluster = MadeUpCluster()
    first = pod("a", native_group="train")
    cluster.has(node("n1"), first)
    assert not Pod.objects.exists()

    group = native_podgroup("train")
    cluster.has(group)

    assert groups_of_pods() == {"a": "train"}
    cluster.loses(group)
    assert not Pod.objects.exists()
    assert not PodGroup.objects.exists()


def test_a_native_podgroup_of_another_scheduler_has_no_row():
    cluster = MadeUpCluster()

    cluster.has(
        native_podgroup("train"), pod("a", native_group="train", scheduler="default-scheduler")
    )

    assert not PodGroup.objects.exists()


def test_one_of_volcano_and_a_native_one_may_have_the_same_name():
    cluster = MadeUpCluster()
    of_volcano = podgroup("train")
    native = native_podgroup("train")

    cluster.has(of_volcano, native, pod("a", group="train"), pod("b", native_group="train"))

    assert groups_of_pods() == {"a": "train", "b": "train_native"}
    cluster.loses(of_volcano)
    assert names() == {"train": "podgroups.scheduling.k8s.io/train"}
    assert groups_of_pods() == {"b": "train"}


def test_a_job_of_volcano_keeps_its_name_beside_a_native_podgroup():
    cluster = MadeUpCluster()
    work = job("train")
    cluster.has(native_podgroup("train"), pod("b", native_group="train"))
    assert groups_of_pods() == {"b": "train"}

    group = podgroup_of(work)
    cluster.has(work, group)

    assert groups_of_pods() == {"b": "train_native"}
    cluster.loses(work, group)
    assert groups_of_pods() == {"b": "train"}


def test_the_names_are_the_same_after_a_start_anew():
    cluster = MadeUpCluster()
    everything = [
        podgroup("train"),
        native_podgroup("train"),
        pod("a", group="train"),
        pod("b", native_group="train"),
    ]
    cluster.has(*everything)
    before = {row.pk: row.name for row in PodGroup.objects.all()}

    cluster.begin_anew()
    cluster.lists(*everything)

    assert {row.pk: row.name for row in PodGroup.objects.all()} == before


@pytest.mark.parametrize(
    ("of_group", "of_pod", "of_namespace", "expected"),
    [
        ("one", "two", "three", "one"),
        ("", "two", "three", "two"),
        ("", "", "three", "three"),
        ("", "", "", "default"),
    ],
)
def test_its_queue_is_its_own_or_that_of_its_pods_or_of_the_namespace(
    of_group, of_pod, of_namespace, expected
):
    cluster = MadeUpCluster()

    cluster.has(
        *(queue(name) for name in ("one", "two", "three")),
        namespace("default", of_namespace),
        native_podgroup("train", queue=of_group),
        pod("a", native_group="train", queue=of_pod),
    )

    assert PodGroup.objects.get().queue.name == expected


def test_a_queue_that_comes_later_takes_the_native_podgroup_in():
    cluster = MadeUpCluster()
    cluster.has(native_podgroup("train", queue="late"), pod("a", native_group="train"))
    assert not PodGroup.objects.exists()

    cluster.has(queue("late"))

    assert groups_of_pods() == {"a": "train"}


@pytest.mark.parametrize(("of_group", "expected"), [(None, 5), (9, 9)])
def test_its_priority_is_its_own_else_that_of_its_pods(of_group, expected):
    cluster = MadeUpCluster()

    cluster.has(
        native_podgroup("train", priority=of_group), pod("a", native_group="train", priority=5)
    )

    assert PodGroup.objects.get().priority == expected


def test_its_pods_say_what_their_podgroup_asks_for_in_vain():
    cluster = MadeUpCluster()

    cluster.has(
        native_podgroup("train", unsupported=("the topology rack of its PodGroup",)),
        pod("a", native_group="train"),
    )

    asked = Pod.objects.get().pod_class.unsupported
    assert asked == ["the topology rack of its PodGroup"]


def test_the_longest_name_that_a_podgroup_can_have_is_kept():
    cluster = MadeUpCluster()
    name = "a" * 253

    cluster.has(
        podgroup(name), native_podgroup(name), pod("a", group=name), pod("b", native_group=name)
    )

    assert Pod.objects.get(name="b").podgroup.object_name.endswith(f"/{name}")


# Gates


@pytest.mark.parametrize(
    ("gates", "mode", "expected"),
    [
        ((QUEUE_GATE,), "schedule", 1),
        ((QUEUE_GATE,), "watch", 0),
        ((QUEUE_GATE, "kueue.x-k8s.io/admission"), "schedule", 0),
        (("kueue.x-k8s.io/admission",), "schedule", 0),
    ],
)
def test_a_pod_behind_a_gate_has_a_row_only_if_the_gate_is_ours_to_open(gates, mode, expected):
    with kubernetes_mode(mode=mode):
        cluster = MadeUpCluster()

        cluster.has(pod("gated", gates=gates))

        assert Pod.objects.count() == expected
