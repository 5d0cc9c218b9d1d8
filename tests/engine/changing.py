"""A resident snapshot that changes at random between sessions, as the scheduler's own does: what
sessions keep with it must not change what they decide.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from scheduler.domain.nodes import NodeTable
from scheduler.domain.tables import NO_NODE
from scheduler.domain.workloads import Constraint, Phase, PodGroup, PodStatus
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome
from scheduler.engine.policy import Policy
from tests.engine.builders import cluster, job, node, queue

_RUNS = int(PodStatus.RUNNING)
_WAITS = int(PodStatus.PENDING)


class ChangingCluster:
    """Eight nodes, two of them with another label, and queues in a tree of two levels."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._new = 0
        self._nodes = [self._node(number) for number in range(8)]
        self.snapshot = cluster(self._nodes, self._queues(), self._jobs())
        self.snapshot.aggregates  # noqa: B018 - in step from here on, as a resident one

    def _node(self, number: int):
        return node(
            f"n{number}",
            cpu=self.random.choice((4, 8, 16)),
            memory="32Gi",
            labels={"zone": "a" if number % 4 else "b"},
            taints=[("reserved", "", "PreferNoSchedule")] if number == 3 else (),
        )

    def _queues(self):
        below = [
            queue(f"team-{number}", self.random.randint(1, 3), f"group-{number % 2}")
            for number in range(5)
        ]
        given = {"deserved": self.random.choice((None, 8))}
        return [queue("root"), queue("group-0", 2, **given), queue("group-1"), *below]

    def _jobs(self):
        one_zone = {"constraint": Constraint(node_selector=(("zone", "a"),))}
        works = []
        for number in range(12):
            count = self.random.randint(1, 4)
            works.append(
                job(
                    f"job-{number}",
                    f"team-{number % 5}",
                    tasks=count,
                    cpu=self.random.randint(1, 3),
                    memory=self.random.choice(("1Gi", "4Gi")),
                    on=self.random.choice((None, [f"n{number % 8}"] * count)),
                    min_resources=self.random.choice((None, 2)),
                    pod=self.random.choice(({}, one_zone)),
                    phase=None,
                )
            )
        return works

    def session(self, policy: Policy) -> Outcome:
        """Its outcome; that of a snapshot which knows nothing of earlier sessions is the same."""
        naive = run_session(self.snapshot.copy(), policy)
        outcome = run_session(self.snapshot, policy)
        assert decided(outcome) == decided(naive)
        return outcome

    def change(self, outcome: Outcome | None = None) -> None:
        """A few things happen; what was decided is done, if it is given."""
        if outcome is not None:
            self._carry_out(outcome)
        changes = (
            self._end_pods,
            self._end_a_gang,
            self._add_a_gang,
            self._change_groups,
            self._replace_a_node,
            self._replace_a_queue,
        )
        weights = (5, 3, 5, 3, 1, 1)
        for change in self.random.choices(changes, weights, k=self.random.randint(0, 3)):
            change()

    def _carry_out(self, outcome: Outcome) -> None:
        names = self.snapshot.nodes.rows
        for bind in outcome.binds:
            self._set_pods([bind.row], status=_RUNS, node=names[bind.node])
        for eviction in outcome.evictions:
            status = self.random.choice((_WAITS, int(PodStatus.RELEASING)))
            if status == _WAITS:
                self._set_pods([eviction.row], status=status, node=NO_NODE)
            else:
                self._set_pods([eviction.row], status=status)
        for change in outcome.phase_changes:
            self.snapshot.change_groups(np.array([change.row]), phase=int(change.new))
        for said in outcome.said:
            self.snapshot.groups.said[said.row] = said.fingerprint
        self.snapshot.session += 1
        self.snapshot.taken_at += 1.0

    def _set_pods(self, rows, **columns) -> None:
        self.snapshot.change_pods(np.array(rows, dtype=np.intp), **columns)

    def _some_pods(self, status: int, most: int = 3):
        rows = np.flatnonzero(self.snapshot.pods.status == status).tolist()
        return self.random.sample(rows, min(len(rows), self.random.randint(1, most)))

    def _end_pods(self) -> None:
        status = self.random.choice((PodStatus.SUCCEEDED, PodStatus.FAILED, PodStatus.RELEASING))
        rows = self._some_pods(_RUNS)
        if rows:
            self._set_pods(rows, status=int(status))

    def _end_a_gang(self) -> None:
        alive = np.flatnonzero(self.snapshot.groups.alive).tolist()
        if not alive:
            return
        row = self.random.choice(alive)
        pods = self.snapshot.pods
        self.snapshot.remove_pods(np.flatnonzero((pods.group == row) & (pods.status != 0)))
        self.snapshot.remove_groups(np.array([row]))

    def _add_a_gang(self) -> None:
        self._new += 1
        count = self.random.randint(1, 4)
        group = PodGroup(
            f"new-{self._new}",
            f"team-{self.random.randrange(5)}",
            min_member=self.random.randint(1, count),
            created=float(self._new),
            phase=Phase.PENDING,
        )
        (row,) = self.snapshot.add_groups([group])
        self.snapshot.add_pods(
            key=[f"default/new-{self._new}-{number}" for number in range(count)],
            group=[row] * count,
            pod_class=[self._some_class()] * count,
            status=[_WAITS] * count,
            node=[NO_NODE] * count,
        )

    def _some_class(self) -> int:
        """Now and then one that no session has seen."""
        classes = self.snapshot.classes
        value = self.random.choice(classes.values)
        if self.random.random() < 0.3:
            value = replace(value, priority=self.random.randint(1, 5))
        return classes.number(value)

    def _change_groups(self) -> None:
        alive = np.flatnonzero(self.snapshot.groups.alive).tolist()
        rows = np.array(self.random.sample(alive, min(len(alive), 2)), dtype=np.intp)
        self.snapshot.change_groups(
            rows,
            min_member=self.random.randint(1, 3),
            phase=int(self.random.choice((Phase.PENDING, Phase.INQUEUE, Phase.RUNNING))),
            queue=self.random.choice((-1, *self.snapshot.groups.queue[rows].tolist())),
        )

    def _replace_a_node(self) -> None:
        """Another size, no longer ready, or cordoned; now and then it is gone."""
        place = self.random.randrange(len(self._nodes))
        if self.random.random() < 0.2 and len(self._nodes) > 4:
            del self._nodes[place]
        else:
            self._nodes[place] = replace(
                self._node(int(self._nodes[place].name[1:])),
                ready=self.random.random() < 0.7,
                unschedulable=self.random.random() < 0.3,
            )
        self.snapshot.replace_nodes(NodeTable.build(self._nodes, self.snapshot.resources))

    def _replace_a_queue(self) -> None:
        queues = list(self.snapshot.queues)
        place = self.random.randrange(len(queues))
        spec = replace(queues[place].spec, weight=self.random.randint(1, 5))
        queues[place] = replace(queues[place], spec=spec)
        self.snapshot.replace_queues(queues)


def decided(outcome: Outcome):
    """Everything that an outcome says, as values that can be compared."""
    figures = {name: outcome.queues[name] for name in outcome.queues}
    at_open = {name: outcome.queues_at_open[name] for name in outcome.queues_at_open}
    return (
        outcome.binds,
        outcome.evictions,
        outcome.reservations,
        dict(outcome.phases),
        outcome.phase_changes,
        outcome.reasons,
        outcome.said,
        outcome.conditions,
        outcome.pod_conditions,
        outcome.events,
        outcome.warnings,
        figures,
        at_open,
    )
