"""Whose turn it is."""

from __future__ import annotations

import numpy as np

from scheduler.engine import open_session
from scheduler.engine.ordering import GangLines, QueueLine, oldest_first
from scheduler.engine.presets import FUMAROLE
from tests.engine.builders import TREE, cluster, job, node, queue
from tests.engine.examples import tree


def test_e12c_branches_are_compared_before_their_leaves():
    jobs = [
        job(f"r{name}", name, tasks=used, min=0, cpu=1, on="n1")
        for name, used in (("a1", 1), ("a2", 3), ("b1", 5))
    ]
    session = open_session(tree([*jobs]), TREE)
    from scheduler.engine.ordering import in_queue_order

    order = in_queue_order(session, [session.queue_tree.rows[name] for name in ("b1", "a2", "a1")])

    assert [session.queue_tree.names[row] for row in order] == ["a1", "a2", "b1"]


def line_of(*jobs):
    snapshot = cluster(nodes=[node("n1", cpu=64)], queues=[queue("root"), queue("q")], jobs=jobs)
    session = open_session(snapshot, FUMAROLE)
    return session, GangLines(session, np.arange(len(jobs)))


def popped(session, lines):
    row = session.queue_tree.rows["q"]
    names = []
    while (gang := lines.pop(row)) is not None:
        names.append(gang.key.removeprefix("default/"))
    return names


def test_gangs_come_by_priority_then_by_what_they_hold_then_by_age_then_by_name():
    session, lines = line_of(
        job("young", "q", cpu=1, created=9.0),
        job("b", "q", cpu=1, created=5.0),
        job("a", "q", cpu=1, created=5.0),
        job("urgent", "q", cpu=1, created=9.0, priority=10),
        job("grown", "q", tasks=2, min=2, cpu=1, created=1.0, on=["n1", ""]),
        job("c", "q", cpu=1, created=5.0),
    )

    assert popped(session, lines) == ["urgent", "a", "b", "c", "young", "grown"]


def test_a_gang_that_comes_again_has_the_place_that_it_has_now():
    session, lines = line_of(*(job(name, "q", cpu=1, created=1.0) for name in "abc"))
    row = session.queue_tree.rows["q"]
    first = lines.pop(row)
    lines.pop(row)

    lines.push(first)

    assert [gang.key for gang in lines.rest(row)] == ["default/a", "default/c"]
    assert popped(session, lines) == ["a", "c"]


def test_the_oldest_come_first_and_those_of_the_same_moment_by_name():
    ages = {"c": 2.0, "b": 1.0, "d": 3.0, "a": 2.0}
    session, _ = line_of(*(job(name, "q", cpu=1, created=age) for name, age in ages.items()))
    groups = session.snapshot.groups

    keys = [groups.key[row] for row in oldest_first(groups, np.arange(4))]

    assert keys == ["default/b", "default/a", "default/c", "default/d"]


def test_a_queue_that_was_alone_has_its_place_by_what_it_uses_when_others_come():
    snapshot = cluster(
        nodes=[node("n1", cpu=8)],
        queues=[queue("root"), *(queue(name, deserved={"cpu": 4}) for name in "ab")],
        jobs=[job("x", "a", cpu=4), job("y", "b", cpu=4)],
    )
    session = open_session(snapshot, FUMAROLE)
    first = session.queue_tree.rows["a"]
    second = session.queue_tree.rows["b"]
    line = QueueLine(session, [first])
    gang = session.gang(0)
    with session.statement() as statement:
        statement.allocate(gang, int(session.pod_classes[0]), [0], [0])
        statement.commit()

    line.enter(first)
    line.enter(second)

    assert line.best() == second
