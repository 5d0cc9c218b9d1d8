"""PodGroups of Kubernetes itself, in the versions of 1.36 and 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.clusters.kubernetes.read.native_groups import read_native_podgroup


def raw_group(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "train", "namespace": "team", "uid": "u1", **metadata},
        "spec": spec or {"schedulingPolicy": {"gang": {"minCount": 4}}},
    }


def test_a_gang_starts_with_its_minimum():
    group = read_native_podgroup(raw_group())

    assert (group.min_member, group.is_native) == (4, True)
    assert group.key == "team/podgroups.scheduling.k8s.io/train"


def test_pods_of_the_basic_policy_need_not_be_together():
    group = read_native_podgroup(raw_group({"schedulingPolicy": {"basic": {}}}))

    assert group.min_member == 1


@pytest.mark.parametrize(
    "metadata",
    [
        {"annotations": {"scheduling.volcano.sh/queue-name": "research"}},
        {"labels": {"scheduling.volcano.sh/queue-name": "research"}},
        {"labels": {"volcano.sh/queue-name": "research"}},
        {"labels": {"kai.scheduler/queue": "research"}},
    ],
)
def test_its_queue_is_named_as_pods_name_it(metadata):
    assert read_native_podgroup(raw_group(**metadata)).queue == "research"


def test_one_that_names_no_queue_has_none_yet():
    assert read_native_podgroup(raw_group()).queue == ""


def test_its_priority_is_the_one_that_the_server_resolved():
    policy = {"gang": {"minCount": 1}}
    given = {"schedulingPolicy": policy, "priority": 7, "priorityClassName": "high"}

    group = read_native_podgroup(raw_group(given))

    assert (group.priority, group.priority_class) == (7, "high")
    assert read_native_podgroup(raw_group()).priority is None


def test_what_cannot_be_honoured_is_named():
    policy = {"gang": {"minCount": 1}}
    rack = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
    parent = {"parentCompositePodGroupName": "both"}

    group = read_native_podgroup(raw_group({"schedulingPolicy": policy, **rack, **parent}))

    assert group.unsupported == ("the topology rack of its PodGroup", "the CompositePodGroup both")
