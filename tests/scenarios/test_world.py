"""Between two sessions of a simulation the cluster does what was decided, and what must be
remembered is carried over.
"""

from scheduler.domain.nodes import Node
from scheduler.domain.queues import QueueSpec
from scheduler.domain.resources import Resources
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.workloads import Phase, Pod, PodGroup, PodStatus
from scheduler.engine.decisions import Bind, Evict, Outcome, PhaseChange, Reservation, Said
from scheduler.scenarios.clusters import cluster_of
from scheduler.scenarios.world import advance

CPU = Resources({"cpu": 1000})


def before() -> Snapshot:
    return Snapshot.build(
        nodes=[Node("n1", Resources({"cpu": 4000, "pods": 10}))],
        queues=[QueueSpec("q")],
        podgroups=[
            PodGroup("g", "q", "ns", phase=Phase.PENDING),
            PodGroup("h", "q", "ns", phase=Phase.RUNNING),
        ],
        pods=[
            Pod("new", "ns/g", "ns", CPU),
            Pod("waits", "ns/g", "ns", CPU),
            Pod("waited", "ns/g", "ns", CPU, reserved_node="n1", reserved_until=9),
            Pod("old", "ns/h", "ns", CPU, "n1", PodStatus.RUNNING),
            Pod("leaving", "ns/h", "ns", CPU, "n1", PodStatus.RELEASING),
        ],
        session=7,
        taken_at=100.0,
    )


OUTCOME = Outcome(
    binds=(Bind("ns/new", "n1", "ns/g", "q", row=0, borrowed=True),),
    evictions=(Evict("ns/old", "n1", "ns/h", "q", row=3, action="reclaim", reason="reclaim"),),
    reservations=(Reservation("ns/waits", "n1", "ns/g", row=1, expires=12),),
    phase_changes=(PhaseChange("ns/g", 0, Phase.PENDING, Phase.INQUEUE),),
    starving={1: 7},
    said=(Said("ns/h", 1, 42, None),),
)


def test_bound_pods_run_and_evicted_and_terminating_pods_are_gone():
    pods = {pod.name: pod for pod in cluster_of(advance(before(), OUTCOME)).pods}

    assert set(pods) == {"new", "waits", "waited"}
    assert (pods["new"].status, pods["new"].node, pods["new"].borrowed) == (
        PodStatus.RUNNING,
        "n1",
        True,
    )


def test_reservations_are_those_of_the_outcome_and_no_others():
    pods = {pod.name: pod for pod in cluster_of(advance(before(), OUTCOME)).pods}

    assert (pods["waits"].reserved_node, pods["waits"].reserved_until) == ("n1", 12)
    assert (pods["waited"].reserved_node, pods["waited"].reserved_until) == ("", -1)


def test_phases_starving_and_what_was_said_are_remembered():
    following = cluster_of(advance(before(), OUTCOME))

    groups = {group.name: group for group in following.podgroups}
    assert groups["g"].phase is Phase.INQUEUE
    assert groups["h"].starving_since == 7
    assert following.said == {"ns/h": 42}
    assert (following.session, following.taken_at) == (8, 101.0)


def test_the_sums_are_in_step_and_the_old_snapshot_is_as_it_was():
    snapshot = before()
    _ = snapshot.aggregates
    untouched = cluster_of(snapshot)

    following = advance(snapshot, OUTCOME)

    again = cluster_of(following).snapshot()
    assert following.aggregates.node_used.tolist() == again.aggregates.node_used.tolist()
    assert (
        following.aggregates.group_allocated.tolist() == again.aggregates.group_allocated.tolist()
    )
    assert cluster_of(snapshot) == untouched
