"""Rules between pods in the mirror: labels are kept while rules look at them, of others too."""

from __future__ import annotations

import pytest

from scheduler.models import Node, Pod, PodGroup
from scheduler.selectors.sessions.snapshots import ResidentSnapshot
from tests.mirrored import MadeUpCluster, claim, moved, node, pod, podgroup, volume

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

HOST = "kubernetes.io/hostname"


def apart(app: str) -> dict[str, object]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def labelled(name: str, app: str, **given):
    return pod(name, about={"labels": {"app": app, "hash": name}}, **given)


def foreign(name: str, app: str, on: str, **given):
    return labelled(name, app, node=on, scheduler="default-scheduler", **given)


def labels_of(name: str) -> dict[str, str]:
    return Pod.objects.get(name=name).pod_class.labels


def foreign_pods(name: str) -> list[dict[str, object]]:
    return Node.objects.get(name=name).foreign_pods


def test_without_rules_no_label_is_kept():
    cluster = MadeUpCluster()

    cluster.has(podgroup("g"), node("n1"), labelled("p", "web", group="g"))
    cluster.has(foreign("f", "db", "n1"))

    assert labels_of("p") == {}
    assert foreign_pods("n1") == []


def test_a_rule_that_comes_brings_the_labels_of_all_pods_and_takes_them_away_when_it_goes():
    cluster = MadeUpCluster()
    cluster.has(podgroup("g"), node("n1"), labelled("p", "web", group="g", node="n1"))
    cluster.has(foreign("f", "db", "n1"), foreign("g", "db", "n1"))

    ruled = labelled("ruled", "new", group="g", affinity=apart("db"))
    cluster.has(ruled)

    assert labels_of("p") == {"app": "web"}
    assert foreign_pods("n1") == [
        {"namespace": "default", "labels": {"app": "db"}, "count": 2},
    ]

    cluster.loses(ruled)

    assert labels_of("p") == {}
    assert foreign_pods("n1") == []


def test_a_foreign_pod_that_moves_or_ends_is_counted_where_it_is():
    cluster = MadeUpCluster()
    cluster.has(podgroup("g"), node("n1"), labelled("ruled", "x", group="g", affinity=apart("db")))
    first = foreign("f", "db", "n1")
    cluster.has(first)
    assert len(foreign_pods("n1")) == 1

    cluster.has(moved(first, phase="Succeeded"))

    assert foreign_pods("n1") == []


def test_the_anti_affinity_of_others_is_kept_and_read_by_sessions():
    cluster = MadeUpCluster()
    cluster.has(podgroup("g"), node("n1"), labelled("p", "web", group="g"))
    cluster.has(foreign("guard", "guard", "n1", affinity=apart("web")))

    resident = ResidentSnapshot()
    resident.refresh()

    (entry,) = resident.snapshot.nodes.foreign[0]
    assert entry.anti_affinity[0].selector.matches("default", {"app": "web"})
    (pod_class,) = resident.snapshot.classes.values
    assert (pod_class.namespace, pod_class.labels) == ("default", (("app", "web"),))


def test_a_session_sees_rules_that_come_later():
    cluster = MadeUpCluster()
    cluster.has(podgroup("g"), node("n1"), labelled("p", "web", group="g", node="n1"))
    resident = ResidentSnapshot()
    resident.refresh()
    assert resident.snapshot.label_keys is None

    cluster.has(labelled("ruled", "db", group="g", affinity=apart("web")))
    resident.refresh()

    assert resident.snapshot.label_keys == {"app"}
    assert {value.labels for value in resident.snapshot.classes.values} == {
        (("app", "web"),),
        (("app", "db"),),
    }


# Volumes


def required_of(name: str) -> list[dict[str, object]]:
    affinity = Pod.objects.get(name=name).pod_class.affinity["nodeAffinity"]
    return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def in_zone(*zones: str) -> dict[str, object]:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}


def test_a_pod_goes_where_all_its_volumes_can_be_reached():
    cluster = MadeUpCluster()
    own = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
            }
        }
    }
    cluster.has(podgroup("g"), volume("v1", "a", "b"), claim("data", "v1"))
    cluster.has(
        pod("plain", group="g", claims=("data",)),
        pod("own", group="g", claims=("data",), affinity=own),
    )

    assert required_of("plain") == [in_zone("a", "b")]
    assert required_of("own") == [
        {
            "matchExpressions": [
                {"key": "gpu", "operator": "Exists"},
                {"key": "zone", "operator": "In", "values": ["a", "b"]},
            ]
        }
    ]


def test_a_claim_that_is_not_bound_is_named_until_it_is():
    cluster = MadeUpCluster()
    waiting = claim("data")
    cluster.has(podgroup("g"), waiting, pod("p", group="g", claims=("data", "none")))

    assert Pod.objects.get().pod_class.unsupported == [
        "the volume claim data, which is not bound (WaitForFirstConsumer)",
        "the volume claim none, which is not there",
    ]

    cluster.has(moved(waiting, volume="v1", phase="Bound"), claim("none", "v2"))
    cluster.has(volume("v1", "a"), volume("v2"))

    assert Pod.objects.get().pod_class.unsupported == []
    assert required_of("p") == [in_zone("a")]
    assert PodGroup.objects.count() == 1
