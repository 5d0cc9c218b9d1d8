"""Nodes against a class of pods: placing many at one go is the same as one at a time."""

from __future__ import annotations

from random import Random

import pytest

from scheduler.engine import open_session
from scheduler.engine.policy import PluginConfig
from tests.engine.builders import GPU, binds, cluster, job, node, policy, queue, run

SPREAD = policy("allocate", ["nodeorder"])
PACK = policy("allocate", [PluginConfig("nodeorder", {}, {"leastrequested.weight": 0}), "binpack"])
UNSCORED = policy("allocate", ["predicates"])


def one_at_a_time(board, wanted):
    chosen = []
    for _ in range(wanted):
        node_ = board.best()
        if node_ < 0:
            break
        board.floor.use([node_], board.request, 1)
        chosen.append(node_)
    return chosen


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("policy_", [SPREAD, PACK, UNSCORED], ids=["spread", "pack", "by name"])
def test_many_at_one_go_take_the_places_of_one_at_a_time(policy_, seed):
    random = Random(seed)
    nodes = [node(f"n{number}", cpu=random.randint(1, 9), memory=f"{random.randint(1, 20)}Gi") for number in range(6)]
    running = [job(f"r{number}", cpu=1, memory="1Gi", on=f"n{random.randrange(6)}") for number in range(random.randrange(8))]
    asks = job("new", tasks=20, cpu=random.choice((1, 2)), memory=f"{random.randint(1, 3)}Gi")
    session = open_session(cluster(nodes=nodes, queues=[queue("default")], jobs=[*running, asks]), policy_)
    kind = int(session.kinds[-1])
    wanted = random.randint(1, 20)

    at_once = session.board(kind).places(wanted)

    assert at_once == one_at_a_time(session.board(kind), wanted)


def test_a_board_sees_what_changed_since_it_was_last_asked():
    session = open_session(
        cluster(nodes=[node("n1", cpu=2), node("n2", cpu=2)], queues=[queue("default")], jobs=[job("new", cpu=2)]), UNSCORED
    )
    board = session.board(0)
    assert board.best() == 0

    session.floor.use([0], session.request[0], 1)
    assert board.best() == 1

    session.floor.use([0], session.request[0], -1)
    assert board.best() == 0


def test_room_that_is_promised_is_not_free_although_it_is_idle():
    session = open_session(cluster(nodes=[node("n1", cpu=2)], queues=[queue("default")], jobs=[job("new", cpu=2)]), UNSCORED)

    session.floor.promise([0], session.request[0], 1)

    assert (session.board(0).best(), session.board(0).total_copies()) == (-1, 0)


def test_devices_count_for_the_balance_of_pods_that_ask_for_them():
    """Half of n2's cores, memory and devices, or half of n1's cores and memory and an eighth of its devices."""
    only_balance = policy("allocate", [PluginConfig("nodeorder", {}, {"leastrequested.weight": 0})])
    nodes = [node("n1", cpu=8, memory="64Gi", **{GPU: 8}), node("n2", cpu=8, memory="64Gi", **{GPU: 2})]
    plain, device = job("plain", cpu=4, memory="32Gi"), job("device", cpu=4, memory="32Gi", gpu=1)
    placed = [run(cluster(nodes=nodes, queues=[queue("default")], jobs=[work]), only_balance) for work in (plain, device)]

    assert [binds(outcome) for outcome in placed] == [{"plain-0": "n1"}, {"device-0": "n2"}]
