"""Whose turn it is."""

from __future__ import annotations

from scheduler.engine import open_session
from tests.engine.builders import TREE, job
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
