"""Random histories of a small cluster: whatever people, machines and sessions do to it, drawn from
a seed.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from datetime import timedelta

from django.utils import timezone

from scheduler.admission.violations import Rejected
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import NotAllowed, QueueCommand
from scheduler.domain.resources import Resources
from scheduler.models import Job, Node, Pod, PodGroup, Queue, SimulatedCluster
from scheduler.services.cluster.dispatch import dispatch
from scheduler.services.cluster.nodes import cordon_node, drain_node, uncordon_node
from scheduler.services.cluster.observe import observe
from scheduler.services.cluster.simulation import bring_back_node, lose_node
from scheduler.services.jobs.submit import command_job, submit_job
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import update_queue
from tests.worlds import manifest, node, queue

EXPECTED = (
    Rejected,
    NotAllowed,
    NotPossible,
    Job.DoesNotExist,
    Node.DoesNotExist,
    Queue.DoesNotExist,
)
LEAVES = ("a1", "a2", "b", "default")


def build_cluster(nodes: int = 6) -> None:
    queue("a", weight=3, guarantee={"cpu": "4"}, capability={"cpu": "40"})
    queue("a1", "a", weight=2)
    queue("a2", "a", guarantee={"cpu": "4"}, deserved={"cpu": "8"})
    queue("b", weight=2, capability={"cpu": "24"})
    for number in range(nodes):
        node(f"n{number}", cpu="8", memory="32Gi")


class History:
    """`step` does one thing; what the rules refuse is as good as anything else."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.seed = seed
        self.number = 0

    def step(self) -> None:
        with contextlib.suppress(EXPECTED):
            self.dice.choices(list(self._deeds()), list(self._deeds().values()))[0]()

    def _deeds(self) -> dict[Callable[[], None], int]:
        return {
            self.submit: 8,
            self.let_time_pass: 5,
            self.command_a_job: 2,
            self.command_a_queue: 2,
            self.edit_a_queue: 1,
            self.touch_a_node: 2,
            self.forget_a_job: 1,
        }

    def submit(self) -> None:
        self.number += 1
        replicas = self.dice.randint(1, 6)
        asked = manifest(
            f"h{self.seed}-{self.number}",
            self.dice.choice(LEAVES),
            replicas=replicas,
            least=self.dice.randint(1, replicas),
            cpu=self.dice.choice(["500m", "1", "2", "4"]),
            seconds=self.dice.choice([2, 10, 60]),
            exit_code=self.dice.choice([0, 0, 0, 1]),
            policies=self.dice.choice(
                [
                    [],
                    [{"event": "PodFailed", "action": "RestartJob"}],
                    [{"event": "PodEvicted", "action": "AbortJob"}],
                ]
            ),
        )
        if self.dice.random() < 0.1:  # a resource that nobody had before
            requests = asked["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"][
                "requests"
            ]
            requests[f"example.com/thing-{self.dice.randint(0, 2)}"] = "1"
        submit_job(asked)

    def let_time_pass(self) -> None:
        SimulatedCluster.objects.filter(pk=1).update(
            advanced_at=timezone.now() - timedelta(seconds=self.dice.choice([1, 3, 20]))
        )
        dispatch()
        observe()

    def command_a_job(self) -> None:
        job = self._one(Job.objects.order_by("id").values_list("namespace", "name"))
        if job:
            command_job(*job, self.dice.choice(["Suspend", "Resume", "Restart", "Cancel"]))

    def command_a_queue(self) -> None:
        again = [QueueCommand.OPEN, QueueCommand.RESUME] * 2  # or soon nothing would go on
        command_queue(self.dice.choice(["a", "a1", "b"]), self.dice.choice([*QueueCommand, *again]))

    def command_a_queue_and_note_it(self) -> None:
        """With a reason that no other order has: one that was carried out twice would show."""
        self.number += 1
        with contextlib.suppress(EXPECTED):
            command_queue(
                "b",
                self.dice.choice([QueueCommand.SUSPEND, QueueCommand.RESUME]),
                reason=f"order {self.seed}-{self.number}",
            )

    def edit_a_queue(self) -> None:
        update_queue(
            self.dice.choice(["a1", "b"]),
            {"spec": {"weight": self.dice.randint(1, 9)}},
            merge=True,
        )

    def touch_a_node(self) -> None:
        name = self._one(Node.objects.order_by("id").values_list("name", flat=True))
        again: list[Callable[[str], object]] = [uncordon_node, bring_back_node] * 2
        deeds = [*again, cordon_node, drain_node, lose_node, self._grow]
        if name:
            self.dice.choice(deeds)(name)

    def _grow(self, name: str) -> None:
        Node.objects.filter(name=name).update(
            allocatable=Resources.parse(
                {"cpu": str(self.dice.randint(4, 16)), "memory": "32Gi", "pods": "110"}
            )
        )
        if self.dice.random() < 0.3:
            node(
                f"x{self.seed}-{self.number}-{self.dice.randint(0, 10**6)}", cpu="8", memory="32Gi"
            )

    def forget_a_job(self) -> None:
        done = self._one(
            Job.objects.filter(phase__in=("Completed", "Failed", "Terminated"))
            .order_by("id")
            .values_list("pk", flat=True)
        )
        if done:
            Job.objects.filter(pk=done).delete()

    def _one(self, rows):  # type: ignore[no-untyped-def]
        found = list(rows[:50])
        return self.dice.choice(found) if found else None


def broken_rules() -> list[str]:
    """What must never be, whatever happened.

    Full nodes and queues, half gangs, pods in two places.
    """
    return [*_overfull_nodes(), *_overfull_queues(), *_pods_without_place()]


ON_NODES = ("Binding", "Bound", "Running", "Releasing", "Unknown")


def _overfull_nodes() -> list[str]:
    used: dict[int, dict[str, int]] = {}
    for pod in Pod.objects.filter(phase__in=ON_NODES, node__isnull=False).select_related(
        "pod_class"
    ):
        sums = used.setdefault(pod.node_id, {})
        for name, amount in (*pod.pod_class.requests.items(), ("pods", 1)):
            sums[name] = sums.get(name, 0) + amount
    nodes = Node.objects.in_bulk(list(used))
    return [
        f"{nodes[pk].name} has {amount} of {nodes[pk].allocatable.amount(name)} {name}"
        for pk, sums in used.items()
        for name, amount in sums.items()
        if amount > nodes[pk].allocatable.amount(name)
    ]


def _overfull_queues() -> list[str]:
    """A queue's limit is for all that is in it and below it."""
    queues = Queue.objects.in_bulk()
    used: dict[int, dict[str, int]] = {}
    for pod in Pod.objects.filter(phase__in=("Binding", "Bound", "Running")).select_related(
        "pod_class", "podgroup"
    ):
        queue_id = pod.podgroup.queue_id
        while queue_id in queues:
            sums = used.setdefault(queue_id, {})
            for name, amount in pod.pod_class.requests.items():
                sums[name] = sums.get(name, 0) + amount
            queue_id = queues[queue_id].parent_id
    return [
        f"{queues[pk].name} has {sums[name]} of {limit} {name}"
        for pk, sums in used.items()
        for name, limit in queues[pk].capability.items()
        if sums.get(name, 0) > limit
    ]


def _pods_without_place() -> list[str]:
    return [
        f"{pod} is {pod.phase} on no node"
        for pod in Pod.objects.filter(phase__in=("Binding", "Bound", "Running"), node=None)
    ]


def half_gangs() -> list[str]:
    """Gangs that have started with fewer than they need.

    Right after a session, before anything else could have taken a pod.
    """
    found = []
    for group in PodGroup.objects.exclude(phase="Completed").prefetch_related("pods"):
        phases = [pod.phase for pod in group.pods.all()]
        binding = phases.count("Binding")
        ready = sum(phase in ("Binding", "Bound", "Running", "Succeeded") for phase in phases)
        if binding and ready < group.min_member:
            found.append(f"{group}: {ready} of {group.min_member}")
    return found
