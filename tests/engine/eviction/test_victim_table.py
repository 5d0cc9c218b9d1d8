"""The table of victims: after evictions it offers the same as one that looks for the first time."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from scheduler.domain.workloads import PodStatus
from scheduler.engine import open_session
from scheduler.engine.eviction.candidate_gangs import GangCandidates
from scheduler.engine.eviction.gang_victims import release_room
from scheduler.engine.eviction.protection import Protection
from scheduler.engine.eviction.victim_table import Offered, VictimTable
from scheduler.engine.presets import FUMAROLE
from tests.engine.builders import Workload, job, queue
from tests.engine.scenes import aged, scene

NODES = [(f"n{number}", 32, 8) for number in range(4)]
QUEUES = [queue("q1"), queue("q2")]


def random_gang(random, number):
    """Some of its pods have just started, some gangs have minimums by role."""
    tasks = random.randint(1, 6)
    places = [random.choice(NODES)[0] for _ in range(tasks)]
    work = job(
        f"j{number}",
        random.choice(("q1", "q2")),
        tasks=tasks,
        min=random.randint(1, tasks),
        gpu=random.randint(1, 2),
        on=places,
    )
    work = aged(work, random.choice((10, 5000)))
    if random.random() < 0.3:
        return with_roles(work)
    return work


def with_roles(work):
    pods = [replace(pod, role="ab"[place % 2]) for place, pod in enumerate(work.pods)]
    return Workload(replace(work.group, role_minimums={"a": 1}), tuple(pods))


def table_of(session, seconds):
    protection = Protection(session, seconds)
    candidates = GangCandidates(session, (int(PodStatus.RUNNING),), protection.of)
    return VictimTable(candidates, candidates.groups.astype(np.intp))


def all_of(table):
    return Offered(table, table.is_left)


def described(table):
    found = []
    for victim in all_of(table):
        pods = victim.pods.tolist()
        found.append((victim.gang.key, pods, victim.amounts.tolist(), victim.cost, victim.is_spare))
    return found


def evict(session, victim):
    with session.statement() as statement:
        for pod in victim.pods.tolist():
            statement.evict(victim.gang, pod, "reclaim", None)
        statement.commit()


@pytest.mark.parametrize("seed", range(30))
def test_a_table_that_is_renewed_offers_the_same_as_a_new_one(seed):
    random = Random(seed)
    snapshot = scene(
        *(random_gang(random, number) for number in range(6)), nodes=NODES, queues=QUEUES
    )
    session = open_session(snapshot, FUMAROLE)
    tables = {seconds: table_of(session, seconds) for seconds in (0, 300)}

    for _ in range(5):
        victims = list(all_of(random.choice(list(tables.values()))))
        if not victims:
            break
        gone = random.choice(victims)
        evict(session, gone)
        for seconds, table in tables.items():
            table.renew(gone.pods)

            assert described(table) == described(table_of(session, seconds))
            assert (table.frees == (table.amounts != 0)).all()
            assert (table.amounts <= table.most[:, None]).all()


@pytest.mark.parametrize("seed", range(10))
def test_what_all_would_free_is_the_sum_of_what_each_frees(seed):
    random = Random(seed)
    snapshot = scene(
        *(random_gang(random, number) for number in range(6)), nodes=NODES, queues=QUEUES
    )
    session = open_session(snapshot, FUMAROLE)
    offered = all_of(table_of(session, 0))
    room = np.zeros_like(session.node_table.used)
    by_queue = {}

    for victim in offered:
        release_room(session, room, [victim])
        by_queue[victim.gang.queue] = by_queue.get(victim.gang.queue, 0) + victim.amounts

    assert offered.freed_by_node().tolist() == room.tolist()
    found = {name: sums.tolist() for name, sums in offered.by_queue().items()}
    assert found == {name: sums.tolist() for name, sums in by_queue.items()}


def test_a_pod_that_must_stay_keeps_its_gang():
    work = aged(job("a", "q1", tasks=2, min=1, gpu=1, on="n1"), 5000)
    pods = (replace(work.pods[0], preemptable=False), work.pods[1])
    session = open_session(scene(Workload(work.group, pods), nodes=NODES, queues=QUEUES), FUMAROLE)

    assert described(table_of(session, 0)) == []


def test_a_plugin_that_keeps_one_class_keeps_gangs_that_have_pods_of_it():
    small = aged(job("a", "q1", tasks=2, min=1, gpu=1, on="n1"), 5000)
    large = job("b", "q1", gpu=2, on="n1").pods[0]
    mixed = Workload(small.group, (*small.pods, replace(large, podgroup=small.group.key)))
    session = open_session(scene(mixed, nodes=NODES, queues=QUEUES), FUMAROLE)
    table = table_of(session, 0)
    kept = int(session.pod_classes[-1])

    agreed = table.agreed(lambda _, pod_classes: pod_classes != kept)

    offered = [(victim.is_spare, len(victim.pods)) for victim in Offered(table, agreed)]
    assert offered == [(True, 1)]


def test_the_rows_of_a_podgroup_are_all_of_its_victims_and_no_others():
    random = Random(3)
    snapshot = scene(
        *(random_gang(random, number) for number in range(6)), nodes=NODES, queues=QUEUES
    )
    table = table_of(open_session(snapshot, FUMAROLE), 0)

    for group in range(len(snapshot.groups) + 1):
        rows = np.zeros(len(table), dtype=np.bool_)
        rows[table.rows_of_group(group)] = True

        assert rows.tolist() == (table.group == group).tolist()
