"""What is carried on from tree to tree, or worked out of a part of it, against the same worked out
of the whole, broken trees included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scheduler.domain.lifecycle import (
    REQUESTABLE_STATES,
    NotAllowed,
    QueueCommand,
    derive,
    derived_state_of,
    judge,
)
from scheduler.domain.plans import Load, changes_between, plan
from scheduler.domain.queues import ROOT, QueueSpec, QueueTree
from scheduler.domain.resources import Resources, total

_NAMES = "abcdefgh"
_amounts = st.dictionaries(st.sampled_from(["cpu", "gpu"]), st.integers(0, 3), max_size=2).map(
    Resources
)


def _specs(names: str = _NAMES, parents: str = _NAMES + "xr") -> st.SearchStrategy[QueueSpec]:
    """The parent may be missing (x), a ring, or the queue itself."""
    return st.builds(
        QueueSpec,
        name=st.sampled_from(names),
        parent=st.sampled_from(parents).map(lambda name: ROOT if name == "r" else name),
        guarantee=_amounts,
        deserved=_amounts,
        state=st.sampled_from(REQUESTABLE_STATES),
    )


@st.composite
def _sound_trees(draw: st.DrawFn) -> QueueTree:
    """Each queue below root or below one that comes before it."""
    queues = [QueueSpec(ROOT, parent="")]
    for name in _NAMES:
        parent = draw(st.sampled_from([queue.name for queue in queues]))
        queues.append(
            QueueSpec(name, parent=parent, state=draw(st.sampled_from(REQUESTABLE_STATES)))
        )
    return QueueTree(queues)


_trees = st.one_of(
    _sound_trees(),
    st.lists(_specs(), max_size=8).map(
        lambda specs: QueueTree([QueueSpec(ROOT, parent=""), *specs])
    ),
)
_live = st.dictionaries(st.sampled_from(_NAMES), st.integers(1, 2), max_size=4)
_unknown = st.frozensets(st.sampled_from(_NAMES), max_size=2)


@given(_trees, st.lists(st.one_of(_specs(), st.sampled_from(_NAMES)), max_size=12), st.booleans())
def test_a_tree_that_was_changed_step_by_step_is_the_one_built_anew(
    tree: QueueTree,
    steps: list[QueueSpec | str],
    asked: bool,
):
    queues = {queue.name: queue for queue in tree}
    for step in steps:
        if asked:
            _ = [tree.children_together(name) for name in (*_NAMES, ROOT)]
        if isinstance(step, QueueSpec):
            tree = tree.with_queue(step)
            queues = {**queues, step.name: step}
        else:
            tree = tree.without(step)
            queues = {name: queue for name, queue in queues.items() if name != step}

    anew = QueueTree(queues.values())
    assert list(tree) == list(anew)
    for name in (*_NAMES, ROOT):
        assert tree.children(name) == anew.children(name)
        assert tree.children_together(name).deserved.resources() == total(
            child.deserved for child in anew.children(name)
        )
        assert tree.children_together(name).guarantee.resources() == total(
            child.guarantee for child in anew.children(name)
        )


@given(_trees, _live, _unknown)
def test_one_queue_stands_as_in_the_whole_tree(
    tree: QueueTree,
    live: Mapping[str, int],
    unknown: frozenset[str],
):
    standings = derive(tree, live, unknown)

    assert {
        queue.name: derived_state_of(tree, queue.name, live, unknown) for queue in tree
    } == standings


@given(_sound_trees(), st.sampled_from(_NAMES), st.sampled_from(QueueCommand), _live, _unknown)
def test_a_plan_leaves_out_nothing_that_would_change(
    tree: QueueTree,
    name: str,
    command: QueueCommand,
    live: Mapping[str, int],
    unknown: frozenset[str],
):
    before = derive(tree, live, unknown)
    loads = {queue: Load(running=count) for queue, count in live.items()}
    wish = judge(tree, before, name, command, live=live, unknown=unknown).requested
    try:
        planned = plan(tree, name, command, loads=loads, unknown=unknown)
    except NotAllowed:
        assert wish is None
        return

    assert planned.requested == wish
    wished = tree.with_queue(replace(tree[name], state=wish)) if wish else tree
    after = derive(wished, live, unknown - {name}) if wish else before
    assert planned.changes == changes_between(before, after, wished, loads)
