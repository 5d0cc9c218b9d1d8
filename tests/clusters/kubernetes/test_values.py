"""What the values say of themselves."""

from __future__ import annotations

import pytest

from scheduler.clusters.kubernetes.values import ObjectMeta, Owner, PodObject, PodPhase


def meta(**fields: object) -> ObjectMeta:
    return ObjectMeta(**{"name": "web-0", "uid": "u1", "namespace": "team", **fields})


@pytest.mark.parametrize(
    ("node", "phase", "takes_room"),
    [
        ("", PodPhase.PENDING, False),
        ("n1", PodPhase.PENDING, True),
        ("n1", PodPhase.RUNNING, True),
        ("n1", PodPhase.UNKNOWN, True),
        ("n1", PodPhase.SUCCEEDED, False),
        ("n1", PodPhase.FAILED, False),
    ],
)
def test_a_pod_takes_room_from_its_binding_to_its_end(node, phase, takes_room):
    assert PodObject(meta(), node=node, phase=phase).takes_room is takes_room


def test_a_pod_that_names_a_group_belongs_to_it():
    pod = PodObject(meta(owner=Owner("Job", "web", "o1")), group="gang", native_group="other")

    assert pod.group_name == "gang"


def test_pods_of_one_controller_share_the_group_that_is_made_for_them():
    owner = Owner("ReplicaSet", "web", "o1")
    pods = [PodObject(meta(uid=uid, owner=owner)) for uid in ("u1", "u2")]

    assert {pod.group_name for pod in pods} == {"podgroup-o1"}


def test_a_bare_pod_has_a_group_for_itself():
    assert PodObject(meta()).group_name == "podgroup-u1"


def test_the_key_has_a_namespace_only_where_there_is_one():
    assert meta().key == "team/web-0"
    assert meta(namespace="").key == "web-0"
