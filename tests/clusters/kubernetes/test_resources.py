"""Where the API server has what is followed."""

from __future__ import annotations

from scheduler.clusters.kubernetes.resources import FOLLOWED, NODES, PODS, QUEUES


def test_the_path_of_all_objects_names_no_namespace():
    assert PODS.path() == "/api/v1/pods"
    assert QUEUES.path() == "/apis/scheduling.volcano.sh/v1beta1/queues"


def test_the_path_of_one_object_names_its_namespace():
    assert PODS.path("web-0", "team") == "/api/v1/namespaces/team/pods/web-0"
    assert PODS.path("web-0", "team", "binding").endswith("/pods/web-0/binding")


def test_what_has_no_namespace_never_gets_one():
    assert NODES.path("n1", "team") == "/api/v1/nodes/n1"


def test_no_resource_is_followed_twice():
    assert len({resource.name for resource in FOLLOWED}) == len(FOLLOWED) == 12
