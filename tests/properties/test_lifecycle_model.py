"""Random trees, commands, submissions and completions on the pure model: after every step the
invariants of the life of a queue hold.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from scheduler.admission.facts import Facts
from scheduler.admission.rules.queue_deletion import check_delete
from scheduler.admission.rules.queues import check_queue
from scheduler.admission.rules.workloads import check_queue_takes_work
from scheduler.domain.lifecycle import TAKES_WORK, DerivedState, NotAllowed, QueueCommand, derive
from scheduler.domain.plans import Load, plan
from scheduler.domain.queues import ROOT, QueueSpec, QueueState, QueueTree

NAMES = st.sampled_from([f"q{number}" for number in range(8)])
UNDO = {QueueCommand.CLOSE: QueueCommand.OPEN, QueueCommand.SUSPEND: QueueCommand.RESUME}


class LifeOfQueues(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.tree = QueueTree([QueueSpec(ROOT, parent=""), QueueSpec("default")])
        self.live: dict[str, int] = {}
        self.unknown: frozenset[str] = frozenset()

    def standings(self) -> dict[str, DerivedState]:
        return derive(self.tree, self.live, self.unknown)

    def facts(self) -> Facts:
        states = {name: standing.state for name, standing in self.standings().items()}
        return Facts(states=states, live_podgroups=self.live, unknown=self.unknown)

    def loads(self) -> dict[str, Load]:
        return {name: Load(waiting=count) for name, count in self.live.items()}

    @rule(
        name=NAMES,
        parent=NAMES,
        wish=st.sampled_from(
            [QueueState.OPEN, QueueState.OPEN, QueueState.CLOSED, QueueState.SUSPENDED]
        ),
    )
    def create(self, name: str, parent: str, wish: QueueState) -> None:
        queue = QueueSpec(name, parent=parent if parent in self.tree else ROOT, state=wish)
        if check_queue(queue, self.tree, self.facts()).allowed:
            self.tree = self.tree.with_queue(queue)

    @rule(name=NAMES, parent=NAMES)
    def import_unknown(self, name: str, parent: str) -> None:
        there = set(self.tree.queues)
        self.create(name, parent, QueueState.OPEN)
        self.unknown |= set(self.tree.queues) - there

    @rule(name=NAMES, parent=NAMES)
    def move(self, name: str, parent: str) -> None:
        if name not in self.tree:
            return
        moved = replace(self.tree[name], parent=parent)
        if check_queue(moved, self.tree, self.facts(), old=self.tree[name]).allowed:
            self.tree = self.tree.with_queue(moved)

    @rule(name=NAMES, command=st.sampled_from(list(QueueCommand)))
    def command(self, name: str, command: QueueCommand) -> None:
        before = self.standings()
        try:
            effect = plan(self.tree, name, command, loads=self.loads(), unknown=self.unknown)
        except NotAllowed:
            return
        assert effect.message
        if not effect.requested:
            assert effect.changes == ()
            return
        wished = self.tree.with_queue(replace(self.tree[name], state=effect.requested))
        known_now = self.unknown - {name}
        assert {change.name: change.after for change in effect.changes} == _differences(
            before, derive(wished, self.live, known_now)
        )
        if name not in self.unknown:
            self._undo_gives_back_what_was(wished, name, command, before)
        self.tree = wished
        self.unknown = known_now

    def _undo_gives_back_what_was(
        self,
        wished: QueueTree,
        name: str,
        command: QueueCommand,
        before: dict[str, DerivedState],
    ) -> None:
        if command not in UNDO or self.tree[name].state is not QueueState.OPEN:
            return
        try:
            undone = plan(wished, name, UNDO[command], loads=self.loads(), unknown=self.unknown)
        except NotAllowed:  # inherited as well: the ancestor comes first
            return
        assert undone.requested is QueueState.OPEN
        assert (
            derive(
                wished.with_queue(replace(wished[name], state=undone.requested)),
                self.live,
                self.unknown,
            )
            == before
        )

    @rule(name=NAMES)
    def submit(self, name: str) -> None:
        if not list(check_queue_takes_work(name, self.tree, self.facts())):
            assert self.standings()[name].state in TAKES_WORK
            self.live[name] = self.live.get(name, 0) + 1

    @precondition(lambda self: any(self.live.values()))
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        name = data.draw(
            st.sampled_from(sorted(name for name, count in self.live.items() if count))
        )
        self.live[name] -= 1

    @rule(name=NAMES, cascade=st.booleans())
    def delete(self, name: str, cascade: bool) -> None:
        if not check_delete(name, self.tree, self.facts(), cascade=cascade).allowed:
            return
        doomed = (
            [name, *(queue.name for queue in self.tree.descendants(name))] if cascade else [name]
        )
        for queue in doomed:
            assert not self.live.get(queue)
            self.tree = self.tree.without(queue)
            self.unknown = self.unknown - {queue}

    @invariant()
    def what_is_below_a_closed_queue_is_closed(self) -> None:
        standings = self.standings()
        for name, standing in standings.items():
            if standing.state is QueueState.CLOSED:
                assert not self.live.get(name)
                assert all(
                    standings[queue.name].state is QueueState.CLOSED
                    for queue in self.tree.descendants(name)
                )

    @invariant()
    def a_state_is_inherited_from_a_queue_that_wishes_it(self) -> None:
        for name, standing in self.standings().items():
            above = self.tree.ancestors(name)
            for source, wish in (
                (standing.closed_by, QueueState.CLOSED),
                (standing.suspended_by, QueueState.SUSPENDED),
            ):
                assert not source or (source in above and self.tree[source].state is wish)

    @invariant()
    def only_leaves_have_work(self) -> None:
        assert all(
            self.tree.is_leaf(name) and name != ROOT for name, count in self.live.items() if count
        )

    @invariant()
    def the_tree_is_a_tree(self) -> None:
        assert self.tree.cycles() == []
        assert all(
            self.tree.ancestors(queue.name)[-1:] == [ROOT]
            for queue in self.tree
            if queue.name != ROOT
        )
        assert all(self.tree.depth(queue.name) <= 5 for queue in self.tree)


def _differences(
    before: dict[str, DerivedState], after: dict[str, DerivedState]
) -> dict[str, DerivedState]:
    return {name: standing for name, standing in after.items() if before[name] != standing}


TestLifeOfQueues = LifeOfQueues.TestCase
TestLifeOfQueues.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
