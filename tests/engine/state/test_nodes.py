"""Nodes against a class of pods: placing many at one go is the same as one at a time."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from scheduler.engine import open_session
from scheduler.engine.policy import PluginConfig
from scheduler.engine.state.leading_nodes import LeadingNodes
from scheduler.engine.state.nodes import NodeScores
from scheduler.engine.state.tasks import ordinal
from tests.engine.builders import GPU, binds, cluster, job, node, policy, queue, run

SPREAD = policy("allocate", ["nodeorder"])
PACK = policy("allocate", [PluginConfig("nodeorder", {}, {"leastrequested.weight": 0}), "binpack"])
UNSCORED = policy("allocate", ["predicates"])


def one_at_a_time(scores, wanted):
    chosen = []
    for _ in range(wanted):
        node_ = scores.best_node()
        if node_ < 0:
            break
        scores.node_table.use([node_], scores.request, 1)
        chosen.append(node_)
    return chosen


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("policy_", [SPREAD, PACK, UNSCORED], ids=["spread", "pack", "by name"])
def test_many_at_one_go_take_the_places_of_one_at_a_time(policy_, seed):
    random = Random(seed)
    nodes = [
        node(f"n{number}", cpu=random.randint(1, 9), memory=f"{random.randint(1, 20)}Gi")
        for number in range(6)
    ]
    running = [
        job(f"r{number}", cpu=1, memory="1Gi", on=f"n{random.randrange(6)}")
        for number in range(random.randrange(8))
    ]
    asks = job("new", tasks=20, cpu=random.choice((1, 2)), memory=f"{random.randint(1, 3)}Gi")
    session = open_session(
        cluster(nodes=nodes, queues=[queue("default")], jobs=[*running, asks]), policy_
    )
    pod_class = int(session.pod_classes[-1])
    wanted = random.randint(1, 20)

    at_once = session.node_scores(pod_class).nodes_for(wanted)

    assert at_once == one_at_a_time(session.node_scores(pod_class), wanted)


def test_a_board_sees_what_changed_since_it_was_last_asked():
    session = open_session(
        cluster(
            nodes=[node("n1", cpu=2), node("n2", cpu=2)],
            queues=[queue("default")],
            jobs=[job("new", cpu=2)],
        ),
        UNSCORED,
    )
    scores = session.node_scores(0)
    assert scores.best_node() == 0

    session.node_table.use([0], session.request[0], 1)
    assert scores.best_node() == 1

    session.node_table.use([0], session.request[0], -1)
    assert scores.best_node() == 0


def test_room_that_is_promised_is_not_free_although_it_is_idle():
    session = open_session(
        cluster(nodes=[node("n1", cpu=2)], queues=[queue("default")], jobs=[job("new", cpu=2)]),
        UNSCORED,
    )

    session.node_table.promise([0], session.request[0], 1)

    assert (session.node_scores(0).best_node(), session.node_scores(0).total_copies()) == (-1, 0)


def test_devices_count_for_the_balance_of_pods_that_ask_for_them():
    """Half of n2's cores, memory and devices, or half of n1's cores and memory and an eighth of its
    devices.
    """
    only_balance = policy("allocate", [PluginConfig("nodeorder", {}, {"leastrequested.weight": 0})])
    nodes = [
        node("n1", cpu=8, memory="64Gi", **{GPU: 8}),
        node("n2", cpu=8, memory="64Gi", **{GPU: 2}),
    ]
    plain = job("plain", cpu=4, memory="32Gi")
    device = job("device", cpu=4, memory="32Gi", gpu=1)
    placed = [
        run(cluster(nodes=nodes, queues=[queue("default")], jobs=[work]), only_balance)
        for work in (plain, device)
    ]

    assert [binds(outcome) for outcome in placed] == [{"plain-0": "n1"}, {"device-0": "n2"}]


def looked_through(scores, count):
    """The best nodes with room, found the slow way."""
    order = sorted(
        (node_ for node_ in range(len(scores)) if scores[node_] > -np.inf),
        key=lambda node_: (-scores[node_], node_),
    )
    return sorted(order[:count])


@pytest.mark.parametrize("seed", range(40))
def test_the_front_holds_the_best_nodes_however_their_scores_move(seed, monkeypatch):
    monkeypatch.setattr(LeadingNodes, "LEAST", 8)
    monkeypatch.setattr(LeadingNodes, "SPARE", 2)
    random = Random(seed)
    values = [-np.inf, *range(random.choice((2, 5, 100)))]  # few values make many equals
    scores = np.array(
        [random.choice(values) for _ in range(random.choice((1, 7, 60)))], dtype=float
    )
    leading = LeadingNodes()

    for _ in range(60):
        changed = np.array(
            sorted(random.sample(range(len(scores)), random.randint(0, min(6, len(scores))))),
            dtype=np.intp,
        )
        scores[changed] = [random.choice(values) for _ in changed]
        leading.follow(scores, changed)
        count = random.randint(2, 12)

        assert leading.best(scores, count).tolist() == looked_through(scores, count)


@pytest.mark.parametrize("seed", range(20))
def test_a_board_counts_copies_as_one_that_looks_for_the_first_time(seed):
    random = Random(seed)
    nodes = [node(f"n{number}", cpu=random.randint(1, 9)) for number in range(6)]
    leaving = job("leaving", tasks=2, cpu=1, on="n0")
    session = open_session(
        cluster(nodes=nodes, queues=[queue("default")], jobs=[leaving, job("new", cpu=2)]), SPREAD
    )
    pod_class = int(session.pod_classes[-1])
    node_table = session.node_table
    scores = session.node_scores(pod_class)

    for _ in range(12):
        change = random.choice((node_table.use, node_table.release, node_table.promise))
        change(
            [random.randrange(6) for _ in range(random.randint(1, 4))],
            session.request[pod_class],
            random.choice((1, -1)),
        )
        fresh = NodeScores(node_table, pod_class, scores.request, scores.suitable, scores.scorer)

        assert scores.total_copies() == fresh.total_copies()


@pytest.mark.parametrize("seed", range(20))
def test_scores_that_are_remembered_are_those_of_a_first_look(seed):
    random = Random(seed)
    nodes = [node(f"n{number}", cpu=random.choice((4, 8)), memory="16Gi") for number in range(6)]
    work = [job("one", cpu=1, memory="2Gi"), job("two", cpu=2, memory="1Gi")]
    session = open_session(cluster(nodes=nodes, queues=[queue("default")], jobs=work), PACK)
    node_table = session.node_table
    classes = session.pod_classes.tolist()

    for _ in range(20):
        node_table.use([random.randrange(6)], session.request[random.choice(classes)], 1)
        for pod_class in classes:
            scores = session.node_scores(pod_class)
            fresh = NodeScores(
                node_table,
                pod_class,
                scores.request,
                scores.suitable,
                scores.scorer,
            )

            assert scores.by_node.tolist() == fresh.by_node.tolist()


def test_scores_that_depend_on_more_than_use_are_not_remembered():
    nodes = [node("n0", cpu=8), node("n1", cpu=8)]
    snapshot = cluster(nodes=nodes, queues=[queue("default")], jobs=[job("new", cpu=1)])
    session = open_session(snapshot, SPREAD)
    scorer = ByNumber()
    pod_class = int(session.pod_classes[0])
    request = session.request[pod_class]
    suitable = np.ones(2, dtype=np.bool_)
    scores = NodeScores(session.node_table, pod_class, request, suitable, scorer)
    assert scores.by_node.tolist() == [0.0, 1.0]

    for number in (0, 1):
        session.node_table.use([number], request, 1)
        assert scores.by_node.tolist() == [0.0, 1.0]


class ByNumber:
    """The later node is the better one, though both have and use the same."""

    follows_from_use = False

    def __call__(self, pod_class, used, nodes):
        return nodes.astype(np.float64)

    def fixed(self, pod_class, count):
        return np.zeros(count)


@pytest.mark.parametrize(
    ("key", "number"),
    [
        ("ns/train-worker-12", 12),
        ("train-worker-3", 3),
        ("ns/train-7", -1),
        ("my-ns/train-7", -1),
        ("a-b/7", -1),
        ("ns/train-worker-x", -1),
        ("ns/train-worker-", -1),
        ("ns/-1-2", 2),
    ],
)
def test_the_number_of_a_pod_stands_behind_a_name_of_two_parts(key, number):
    assert ordinal(key) == number


def test_copies_by_resource_follow_every_change_of_the_nodes():
    random = Random(5)
    nodes = [node(f"n{number}", cpu=random.randint(1, 9), memory="20Gi") for number in range(6)]
    session = open_session(cluster(nodes, [queue("q1")], [job("new", "q1", cpu=2)]), PACK)
    pod_class = int(session.pod_classes[0])
    scores = session.node_scores(pod_class)
    request = session.request[pod_class]
    table = session.node_table
    changes = [table.use, table.release, table.promise]

    for _ in range(30):
        random.choice(changes)([random.randrange(6)], request, random.choice((1, -1)))
        room = table.future()
        by_hand = []
        for dim, amount in enumerate(request.tolist()):
            by_hand.append(sum(max(0, free // max(1, amount)) for free in room[dim].tolist()))

        assert scores.copies_by_resource().tolist() == by_hand
        assert (table.future_everywhere() == room).all()
