"""Victims that are chosen at once are those that a look at one node after the other chooses."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from scheduler.domain.workloads import PodStatus
from scheduler.engine import open_session
from scheduler.engine.eviction.alike_choice import AlikeExchange
from scheduler.engine.eviction.candidate_gangs import GangCandidates
from scheduler.engine.eviction.gang_victims import release_room
from scheduler.engine.eviction.greedy_choice import GreedyChoice
from scheduler.engine.eviction.protection import Protection
from scheduler.engine.eviction.victim_table import Offered, VictimTable
from scheduler.engine.eviction.whole_gangs import lay_out
from scheduler.engine.presets import FUMAROLE
from tests.engine.builders import job, queue
from tests.engine.scenes import aged, scene

NODES = [(f"n{number}", 32, 4) for number in range(4)]
SEEDS = range(40)


def full_cluster(random, *, largest):
    """Gangs on four nodes until they are full. The last one waits."""
    left = dict.fromkeys((name for name, _, _ in NODES), 4)
    gangs = []
    while sum(left.values()):
        gpu = random.randint(1, largest)
        places = []
        for name in random.sample(sorted(left), random.randint(1, 4)):
            if left[name] >= gpu:
                places.append(name)
                left[name] -= gpu
        if places:
            gangs.append((gpu, places))
        elif gpu > 1:
            largest = gpu - 1
    running = [
        aged(
            job(
                f"j{number}",
                "q1",
                tasks=len(places),
                min=random.randint(1, len(places)),
                gpu=gpu,
                on=places,
            ),
            random.choice((10, 100, 1000, 5000)),
        )
        for number, (gpu, places) in enumerate(gangs)
    ]
    wanted = job("new", "q2", tasks=random.randint(1, 4), gpu=1)
    return scene(*running, wanted, nodes=NODES, queues=[queue("q1"), queue("q2")])


def chosen_both_ways(seed, *, largest):
    """What is chosen at once, and what `GreedyChoice` chooses; places are those of `lay_out`."""
    random = Random(seed)
    session = open_session(full_cluster(random, largest=largest), FUMAROLE)
    candidates = GangCandidates(session, (int(PodStatus.RUNNING),), Protection(session, 0).of)
    table = VictimTable(candidates, candidates.groups.astype(np.intp))
    offered = Offered(table, table.is_left)
    gang = session.gang(list(session.snapshot.groups.key).index("default/new"))
    ((pod_class, count),) = session.tasks.missing_runs(gang)
    room = session.node_table.future()
    exchange = AlikeExchange(session, offered, pod_class, count, room)
    at_once = exchange.choose()
    one_by_one = GreedyChoice(session, offered, lambda _: True, room).find([(pod_class, count)])
    if at_once is not None:
        release_room(session, room, at_once)
        assert exchange.places_of(at_once) == lay_out(session, room, [(pod_class, count)])
    return at_once, one_by_one


@pytest.mark.parametrize("largest", [1, 2])
def test_the_choice_at_once_is_that_of_one_node_after_the_other(largest):
    found = [chosen_both_ways(seed, largest=largest) for seed in SEEDS]

    simple = [pair for pair in found if pair[0] is not None]
    assert simple
    for at_once, one_by_one in simple:
        assert [victim.row for victim in at_once] == [victim.row for victim in one_by_one]


def test_a_victim_that_is_larger_than_a_pod_is_left_to_the_long_way():
    found = [chosen_both_ways(seed, largest=4) for seed in SEEDS]

    assert any(at_once is None and one_by_one for at_once, one_by_one in found)
