"""What queues are told after a change, worked out for those concerned alone, against all queues."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.admission.facts import Facts
from scheduler.admission.rules.quotas import (
    hierarchy_problems,
    queues_concerned,
    queues_rearranged,
    tree_notices,
)
from scheduler.domain.queues import ROOT, QueueSpec, QueueTree
from scheduler.domain.resources import Resources

_NAMES = "abcdefgh"
_DEEPEST = 2
_amounts = st.dictionaries(st.sampled_from(["cpu", "gpu"]), st.integers(0, 3), max_size=2).map(
    Resources
)
_specs = st.builds(
    QueueSpec,
    name=st.sampled_from(_NAMES),
    # it may be missing (x), a ring, or the queue itself
    parent=st.sampled_from([*_NAMES, "x", ROOT, ROOT]),
    guarantee=_amounts,
    deserved=_amounts,
    capability=_amounts,
)
_trees = st.lists(_specs, max_size=10, unique_by=lambda spec: spec.name).map(
    lambda specs: QueueTree([QueueSpec(ROOT, parent=""), *specs])
)
_totals = st.one_of(st.none(), _amounts)


@given(_trees, st.lists(st.one_of(_specs, st.sampled_from(_NAMES)), max_size=4), _totals)
def test_nobody_else_is_told_anything_else(
    before: QueueTree, steps: list[QueueSpec | str], total: Resources | None
):
    after = before
    changed = set()
    for step in steps:
        if isinstance(step, QueueSpec):
            after = after.with_queue(step)
            changed.add(step.name)
        elif step in after:
            after = after.without(step)
            changed.add(step)
    facts = Facts(total=total)
    concerned = queues_concerned(changed, before, after)
    rearranged = queues_rearranged(changed, before, after)

    notices = tree_notices(before, facts)
    problems = hierarchy_problems(before, _DEEPEST)
    for name in concerned:
        notices.pop(name, None)
    for name in rearranged:
        problems.pop(name, None)
    notices |= tree_notices(after, facts, concerned)
    problems |= hierarchy_problems(after, _DEEPEST, rearranged)

    assert notices == tree_notices(after, facts)
    assert problems == hierarchy_problems(after, _DEEPEST)
