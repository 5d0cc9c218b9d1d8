"""Questions about all queues of a tree at once have the answers of each queue alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.domain.queues import ROOT, QueueSpec
from scheduler.domain.snapshot import Queue
from scheduler.engine.state.queue_tree import SessionQueueTree


@st.composite
def trees(draw):
    """Each queue hangs below root or one before it."""
    names = [ROOT]
    queues = [Queue(QueueSpec(ROOT, parent=""))]
    for number in range(draw(st.integers(0, 12))):
        parent = draw(st.sampled_from(names))
        names.append(f"q{number}")
        queues.append(Queue(QueueSpec(names[-1], parent=parent)))
    return SessionQueueTree(queues, hierarchical=draw(st.booleans()))


@given(trees())
def test_meetings_are_what_each_two_queues_have_in_common(tree):
    for row in range(len(tree)):
        each = [tree.common(row, other) for other in range(len(tree))]

        assert tree.meetings(row).tolist() == each


@given(trees(), st.randoms())
def test_a_queue_is_lowered_to_the_least_of_all_above_it(tree, random):
    amounts = np.array([[random.randint(-5, 5), random.randint(0, 9)] for _ in range(len(tree))])
    lowered = amounts.copy()

    tree.lower_to_parents(lowered)

    for row in range(len(tree)):
        assert lowered[row].tolist() == amounts[tree.path(row)].min(axis=0).tolist()


@pytest.mark.parametrize(("queue", "end", "way"), [(2, 0, [2, 1]), (2, 2, []), (1, -1, [1, 0])])
def test_the_way_up_ends_below_its_end(queue, end, way):
    queues = [
        Queue(QueueSpec(ROOT, parent="")),
        Queue(QueueSpec("a", parent=ROOT)),
        Queue(QueueSpec("b", parent="a")),
    ]

    assert SessionQueueTree(queues, hierarchical=True).way_up(queue, end) == way
