"""Nodes: where there is room, and what a drain does."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest

from dashboard.views import nodes
from scheduler.models import AuditEntry, Node, Pod
from scheduler.selectors.cluster.nodes import node_rows
from tests.dashboard.work import signed_in, small_cluster, text
from tests.worlds import node

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def test_what_is_free_but_nowhere_together_is_told():
    page = text(signed_in("vera").get("/nodes/"))

    assert "CPU" in page
    assert "on one node" in page or "no node with" in page


def node_of(podgroup: str) -> str:
    """A node on which it runs."""
    return Node.objects.filter(pods__podgroup__name=podgroup).values_list("name", flat=True)[0]


def test_a_drain_says_whom_it_evicts_before_it_does():
    client = signed_in("admin")
    name = node_of("train-1")

    asked = client.get(f"/nodes/{name}/drain/")
    assert Node.objects.get(name=name).unschedulable is False
    client.post(f"/nodes/{name}/drain/", {"reason": "new fans"})

    assert "default/train-1" in text(asked)
    assert Node.objects.get(name=name).unschedulable is True
    assert AuditEntry.objects.filter(action="DrainNode", reason="new fans").exists()


def test_who_may_not_operate_the_cluster_cordons_nothing():
    assert signed_in("ruth").post("/nodes/n1/cordon/").status_code == 403
    assert not Node.objects.filter(unschedulable=True).exists()


def test_a_simulated_machine_is_lost_and_brought_back():
    client = signed_in("admin")
    name = node_of("train-1")

    asked = text(client.get(f"/nodes/{name}/lose/"))
    assert Node.objects.get(name=name).ready is True
    lost = text(client.post(f"/nodes/{name}/lose/", {"reason": "fire drill"}, follow=True))

    assert "default/train-1" in asked
    assert "Bring back…" in lost
    assert "Lose…" not in lost
    assert set(
        Pod.objects.filter(node__name=name, podgroup__name="train-1").values_list(
            "phase", flat=True
        )
    ) == {"Unknown"}
    assert AuditEntry.objects.filter(action="NodeLost", reason="fire drill").exists()
    back = text(client.post(f"/nodes/{name}/return/", follow=True))
    assert "Lose…" in back
    assert Node.objects.get(name=name).ready is True


def test_a_lost_machine_has_nothing_free():
    node("spare", cpu="8", memory="8Gi")
    client = signed_in("admin")
    client.post("/nodes/spare/lose/")

    assert "nothing free while it is not ready" in text(client.get("/nodes/spare/"))
    assert "CPU free" not in text(client.get("/nodes/spare/"))
    assert "spare: 0 of 8 CPU in use, nothing free while it is not ready" in text(
        client.get("/nodes/?view=map&resource=cpu")
    )
    assert client.get("/api/v1/nodes/spare/").json()["status"]["idle"]["cpu"] == "0"
    assert all(row.free("cpu") == 0 for row in node_rows(["spare"]))


def test_what_is_free_on_a_cordoned_machine_is_not_for_now():
    node("spare", cpu="8", memory="8Gi")
    client = signed_in("admin")
    client.post("/nodes/spare/cordon/")

    assert "CPU free once it is uncordoned" in text(client.get("/nodes/spare/"))


def test_who_does_not_administer_the_cluster_loses_no_machine():
    assert "Lose…" not in text(signed_in("ruth").get("/nodes/n1/"))
    assert signed_in("ruth").post("/nodes/n1/lose/").status_code == 403
    assert not Node.objects.filter(ready=False).exists()


def machines() -> None:
    """Three of different fullness, one of them without CPU."""
    Node.objects.all().delete()
    for name, cpu in (("big", "100"), ("small", "4"), ("none", "")):
        node(name, **({"cpu": cpu} if cpu else {}), memory="8Gi")
    Node.objects.filter(name="small").update(unschedulable=True)


def order(query: str) -> list[str]:
    return re.findall(r'<tr data-key="([^"]+)"', text(signed_in("admin").get(f"/nodes/?{query}")))


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("", ["big", "none", "small"]),
        ("-name", ["small", "none", "big"]),
        ("state", ["big", "none", "small"]),
        ("-state", ["small", "big", "none"]),
        ("-pods", ["small", "big", "none"]),
        ("cpu", ["big", "small", "none"]),
        ("-cpu", ["small", "big", "none"]),
        ("no/such-thing", ["big", "none", "small"]),
        ("\x01", ["big", "none", "small"]),
    ],
)
def test_the_table_is_sorted_as_its_address_says(sort: str, names: list[str]):
    machines()
    pods = list(Pod.objects.order_by("pk")[:3])
    for pod, name in zip(pods, ("big", "small", "small"), strict=True):
        Pod.objects.filter(pk=pod.pk).update(node=Node.objects.get(name=name), phase="Running")

    assert order(urlencode({"sort": sort})) == names


def test_each_head_sorts_and_sorts_back_and_keeps_the_filter():
    page = text(signed_in("admin").get("/nodes/?state=Ready&sort=cpu&after=n1"))

    for link in (
        "?state=Ready&amp;sort=name",
        "?state=Ready&amp;sort=state",
        "?state=Ready&amp;sort=-cpu",
        "?state=Ready&amp;sort=pods",
    ):
        assert f'href="{link}"' in page
    assert '<option value="cpu" selected>' in page  # the filter's form sends it again


def test_pages_of_a_sorted_table_neither_skip_nor_repeat_a_node(monkeypatch: pytest.MonkeyPatch):
    machines()
    monkeypatch.setattr(nodes, "PAGE", 1)
    seen = []
    after = ""
    for _ in range(3):
        found = order(urlencode({"sort": "-name", "after": after}))
        seen = [*seen, *found]
        after = found[-1]

    assert seen == ["small", "none", "big"]
    assert "Further" not in text(signed_in("admin").get("/nodes/?sort=-name&after=none"))
