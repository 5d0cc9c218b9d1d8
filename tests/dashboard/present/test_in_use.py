"""What is in use is what pods hold on nodes, and what is promised is told apart from it: the same
everywhere it is told.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from django.test import Client

from dashboard.present.queues import present_queues
from dashboard.views.overview import cluster_bars
from scheduler.domain.resources import NOTHING, Resources
from scheduler.models import ClusterState, Pod, PodGroup
from scheduler.selectors.cluster.nodes import node_rows
from scheduler.selectors.queues.listing import queue_rows
from scheduler.services.sessions.policies import replace_policy
from scheduler.services.sessions.runner import SessionRunner
from tests.dashboard.api.conftest import Caller
from tests.dashboard.work import text
from tests.histories import History, build_cluster
from tests.worlds import job, let_age, node, pass_time, queue, run_session

pytestmark = pytest.mark.django_db

FLAT = """
actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


def total(amounts: Iterable[Resources]) -> Resources:
    """Without `pods`, which queues are not about, and without what there is nothing of."""
    whole = NOTHING
    for amount in amounts:
        whole = whole + amount
    return Resources({name: number for name, number in whole.items() if number and name != "pods"})


def read(quantities: Iterable[dict[str, str]]) -> Resources:
    return total(Resources.parse(given) for given in quantities)


def told_of(figure: str, caller: Caller) -> dict[str, Resources]:
    """One figure, `allocated` or `promised`, as each part of the software tells it for the whole
    cluster.
    """
    board = queue_rows()
    rows = {row.name: row for row in board.rows}
    nodes = [item["status"] for item in caller.get("nodes/?page_size=1000")["results"]]
    queues = {
        item["metadata"]["name"]: item for item in caller.get("queues/?page_size=1000")["results"]
    }
    parents = {item["spec"]["parent"] for item in queues.values()}
    leaves = [item for name, item in queues.items() if name not in parents]
    figures = [(row, getattr(row.figures, figure)) for row in rows.values() if row.figures]
    return {
        "nodes": total(
            getattr(row, "used" if figure == "allocated" else figure) for row in node_rows()
        ),
        "nodes by the API": read(status[figure] for status in nodes),
        "root": total(amounts for row, amounts in figures if row.name == "root"),
        "leaf queues": total(amounts for row, amounts in figures if row.is_leaf),
        "root by the API": read([queues["root"]["status"][figure]]),
        "queues by the API": read(item["status"][figure] for item in leaves),
        "cluster by the API": read([caller.get("cluster/")["status"][figure]]),
        "cluster": total([getattr(ClusterState.objects.get(pk=1), figure)]),
    }


def agreed(figure: str, caller: Caller) -> Resources:
    """What all say; fails where one says something else."""
    told = told_of(figure, caller)
    assert len(set(map(str, told.values()))) == 1, {
        place: amount.to_quantities() for place, amount in told.items()
    }
    return told["nodes"]


def held_on_nodes() -> Resources:
    """From the pods themselves."""
    phases = ("Binding", "Bound", "Running", "Releasing", "Unknown")
    return total(
        pod.pod_class.requests
        for pod in Pod.objects.filter(phase__in=phases, node__isnull=False).select_related(
            "pod_class"
        )
    )


@pytest.mark.parametrize("policy", ["", FLAT], ids=["tree", "flat"])
@pytest.mark.parametrize("seed", range(4))
def test_nodes_queues_root_overview_and_api_agree_whatever_happened(seed: int, policy: str):
    build_cluster(nodes=4)
    if policy:
        replace_policy(policy)
    caller = Caller("boss", superuser=True)
    history = History(seed)
    runner = SessionRunner("test")

    for _ in range(6):
        for _ in range(6):
            history.step()
        assert runner.run() is not None
        assert agreed("allocated", caller) == held_on_nodes()
        agreed("promised", caller)


def promising_world() -> SessionRunner:
    """b has borrowed all that a deserves.

    A's gang of four has two places at once and waits for two of b's pods to leave.
    """
    queue("a", deserved={"cpu": "8"})
    queue("b", deserved={"cpu": "0"})
    node("n1", cpu="4")
    node("n2", cpu="4")
    runner = SessionRunner("test")
    job("lent", "b", replicas=6, least=1, seconds=100_000)
    run_session(runner)
    pass_time(10)
    let_age()
    job("claim", "a", replicas=4, seconds=100_000)
    assert runner.run() is not None
    return runner


def test_promised_room_is_not_in_use():
    promising_world()
    caller = Caller("boss", superuser=True)

    used = agreed("allocated", caller)
    promised = agreed("promised", caller)

    assert used == held_on_nodes() == Resources.parse({"cpu": "6"})
    assert promised == Resources.parse({"cpu": "4"})


def test_a_bar_has_a_part_for_what_is_promised_and_says_so():
    promising_world()
    board = queue_rows()

    (cluster,) = [bar for bar in cluster_bars(board) if bar["name"] == "cpu"]
    claiming = present_queues(board)["a"]["resources"]["cpu"]

    assert (cluster["text"], cluster["note"]) == ("6 of 8 CPU", "4 promised, 2 leaving")
    assert "allocated 6 of 8 CPU, promised 4, " in cluster["label"]
    # Where others leave first, it covers their part.
    assert cluster["bar"].endswith(
        '<rect class="use" x="0" width="750"/><rect class="promise" x="500" width="500"/>'
    )
    assert (claiming["allocated"], claiming["promised"], claiming["pending"]) == ("0", "4", "0")
    assert claiming["note"] == "6 lent, 4 promised"


def test_the_checks_of_a_job_count_the_same_thing_the_same_way():
    runner = promising_world()
    job("late", "a", replicas=5, seconds=100_000)
    job("other", "b", replicas=2, seconds=100_000)
    assert runner.run() is not None

    for name in ("late", "other"):
        checks = PodGroup.objects.get(name=name).reason_checks
        used = {(check["used"], check["promised"]) for check in checks if check["level"] == "root"}
        assert used == {(6000, 4000)}, checks


def test_pages_tell_what_is_promised(admin_client: Client):
    promising_world()
    kept = next(row for row in node_rows() if row.promised)
    on_node = f"{kept.promised['cpu'] // 1000} promised"

    expected = {
        "/": "4 promised",
        "/queues/": "4 promised",
        "/queues/a/": "4 promised",
        "/nodes/": on_node,
        f"/nodes/{kept.name}/": on_node,
    }

    for path, words in expected.items():
        assert words in text(admin_client.get(path)), path
