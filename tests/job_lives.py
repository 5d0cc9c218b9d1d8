"""Random lives of jobs: everything that people, policies, machines and sessions do to them, and
what must hold whatever happened.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from django.utils import timezone

from scheduler.admission.violations import Rejected
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.jobs.dependencies import needed_tasks
from scheduler.domain.jobs.phases import FINISHED, JobPhase
from scheduler.domain.lifecycle import NotAllowed, QueueCommand
from scheduler.models import Job, Node, Pod, PodGroup, SimulatedPod
from scheduler.services.cluster.dispatch import dispatch
from scheduler.services.cluster.nodes import cordon_node, drain_node, uncordon_node
from scheduler.services.cluster.simulation import bring_back_node, lose_node
from scheduler.services.jobs.changes import delete_job, update_job
from scheduler.services.jobs.single_pods import delete_pod
from scheduler.services.jobs.submit import command_job, submit_job
from scheduler.services.queues.commands import command_queue
from scheduler.services.records.retention import tidy_up
from scheduler.services.sessions.runner import SessionRunner
from tests.histories import ON_NODES, broken_rules, half_gangs
from tests.worlds import manifest, node, pass_time, queue

REFUSED = (Rejected, NotAllowed, NotPossible)
EVENTS = ("PodFailed", "PodEvicted", "TaskCompleted", "TaskFailed", "JobUnknown", "*")
ACTIONS = ("AbortJob", "RestartJob", "RestartTask", "RestartPod", "TerminateJob", "CompleteJob")
TRANSIENT = (JobPhase.RESTARTING, JobPhase.ABORTING, JobPhase.COMPLETING, JobPhase.TERMINATING)
LEAVES = ("a1", "a2", "default")
ALIVE = ("Pending", *ON_NODES)


class JobLives:
    """`step` does one thing; what the rules refuse is as good as anything else."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.runner = SessionRunner(f"lives-{seed}")
        self.number = 0
        self.done: list[str] = []
        queue("a", weight=2, guarantee={"cpu": "2"})
        queue("a1", "a", guarantee={"cpu": "2"})
        queue("a2", "a")
        for name in ("n0", "n1", "n2"):
            node(name, cpu="6", memory="32Gi")

    def step(self) -> None:
        deeds: dict[Callable[[], object], int] = {
            self.submit: 3,
            self.let_time_pass: 8,
            self.session: 8,
            self.command: 3,
            self.scale: 3,
            self.take_a_pod: 1,
            self.touch_a_node: 2,
            self.touch_a_queue: 1,
            self.forget: 1,
        }
        deed = self.dice.choices(list(deeds), list(deeds.values()))[0]
        self.done.append(getattr(deed, "__name__", ""))
        with contextlib.suppress(REFUSED):
            deed()

    def submit(self) -> None:
        self.number += 1
        tasks = self.dice.randint(1, 3)
        asked = manifest(f"j{self.number}", self.dice.choice(LEAVES), policies=self._policies())
        asked["spec"]["tasks"] = [self._task(index) for index in range(tasks)]
        replicas = sum(task["replicas"] for task in asked["spec"]["tasks"])
        asked["spec"] |= {
            "minAvailable": self.dice.randint(0, replicas),
            "maxRetry": self.dice.randint(0, 2),
        }
        if self.dice.random() < 0.2:
            asked["spec"]["minSuccess"] = self.dice.randint(1, max(1, replicas))
        if self.dice.random() < 0.3:
            asked["spec"]["ttlSecondsAfterFinished"] = 0
        self.note(_short(asked["metadata"]["name"], asked["spec"]))
        submit_job(asked)

    def _task(self, index: int) -> dict[str, Any]:
        replicas = self.dice.choice([0, 1, 1, 2, 3, 4])
        fields = {
            "seconds": self.dice.choice([1, 5, 30]),
            "exit_code": self.dice.choice([0, 0, 0, 1, 2]),
        }
        (task,) = manifest("x", replicas=replicas, least=self.dice.randint(0, replicas), **fields)[
            "spec"
        ]["tasks"]
        task |= {
            "name": f"t{index}",
            "policies": self._policies() if self.dice.random() < 0.3 else [],
        }
        if index and self.dice.random() < 0.5:
            task["dependsOn"] = {"name": [f"t{self.dice.randrange(index)}"]}
        if self.dice.random() < 0.3:
            task["maxRetry"] = self.dice.choice([-1, 0, 1])
        return task

    def _policies(self) -> list[dict[str, Any]]:
        return [
            {
                "action": self.dice.choice(ACTIONS),
                **(
                    {"exitCode": 2}
                    if self.dice.random() < 0.2
                    else {"event": self.dice.choice(EVENTS)}
                ),
            }
            for _ in range(self.dice.choice([0, 1, 1, 2]))
        ]

    def let_time_pass(self) -> None:
        dispatch()
        pass_time(self.dice.choice([1, 3, 6, 20]))

    def session(self) -> None:
        assert self.runner.run() is not None
        assert half_gangs() == []
        if self.dice.random() < 0.8:
            dispatch()

    def command(self) -> None:
        job = self._one(Job.objects.order_by("id"))
        if job:
            action = self.dice.choice(
                ["AbortJob", "ResumeJob", "ResumeJob", "RestartJob", "TerminateJob", "CompleteJob"]
            )
            self.note(f"{job} {action}")
            command_job(job.namespace, job.name, action)

    def scale(self) -> None:
        job = self._one(Job.objects.exclude(phase__in=("Completed", "Terminated")).order_by("id"))
        if job is None:
            return
        tasks = [dict(task) for task in job.tasks]
        chosen = self.dice.choice(tasks)
        chosen["replicas"] = self.dice.randint(0, 5)
        chosen["minAvailable"] = min(chosen["minAvailable"], chosen["replicas"])
        least = min(job.min_available, sum(task["replicas"] for task in tasks))
        self.note(f"{job} {chosen['name']} to {chosen['replicas']}")
        update_job(
            job.namespace,
            job.name,
            {"spec": {"tasks": tasks, "minAvailable": least}},
            merge=True,
        )

    def take_a_pod(self) -> None:
        pod = self._one(Pod.objects.order_by("id"))
        if pod:
            self.note(str(pod))
            delete_pod(pod.namespace, pod.name)

    def touch_a_node(self) -> None:
        name = self.dice.choice(["n0", "n1", "n2"])
        again: list[Callable[[str], object]] = [uncordon_node, bring_back_node] * 2
        deed = self.dice.choice([*again, cordon_node, drain_node, lose_node])
        self.note(f"{deed.__name__} {name}")
        deed(name)

    def touch_a_queue(self) -> None:
        again = [QueueCommand.OPEN, QueueCommand.RESUME] * 2
        name = self.dice.choice(["a", "a1", "default"])
        deed = self.dice.choice([*QueueCommand, *again])
        self.note(f"{deed} {name}")
        command_queue(name, deed)

    def forget(self) -> None:
        job = self._one(Job.objects.order_by("id"))
        if job and self.dice.random() < 0.5:
            delete_job(job.namespace, job.name)
        else:
            tidy_up()

    def calm_down(self) -> None:
        """Everything is there again and nobody interferes: whatever can end does."""
        for row in Node.objects.all():
            bring_back_node(row.name)
            uncordon_node(row.name)
        for name in ("a", "a1", "a2", "default"):
            for command in (QueueCommand.OPEN, QueueCommand.RESUME):
                with contextlib.suppress(REFUSED):
                    command_queue(name, command)
        for _ in range(60):
            self.session()
            dispatch()
            pass_time(20)
            if (
                not Job.objects.exclude(phase__in=FINISHED).exists()
                and not Pod.objects.filter(phase__in=ON_NODES).exists()
            ):
                break

    def note(self, text: object) -> None:
        self.done[-1] += f" {text}"

    def _one(self, rows: Any) -> Any:
        found = list(rows[:50])
        return self.dice.choice(found) if found else None


def _short(name: str, spec: dict[str, Any]) -> str:
    """A job in a line, for whoever has to find out what went wrong."""
    tasks = [
        {key: value for key, value in task.items() if key != "template"}
        | dict(task["template"]["metadata"]["annotations"])
        for task in spec["tasks"]
    ]
    return f"{name} { ({**spec, 'tasks': tasks}) }"


# What must hold


def broken_promises() -> list[str]:
    """Between any two deeds."""
    found = [*broken_rules(), *_lost_machines()]
    for job in Job.objects.select_related("podgroup"):
        pods = list(job.podgroup.pods.all())
        found += [f"{job} ({job.phase}): {problem}" for problem in _broken_by(job, pods)]
    return found


def _broken_by(job: Job, pods: list[Pod]) -> Iterator[str]:
    phases = Counter(pod.phase for pod in pods)
    alive = sum(phases[phase] for phase in ALIVE)
    if job.retry_count > job.max_retry:
        yield f"{job.retry_count} of {job.max_retry} retries"
    for task in job.tasks:
        retries = job.task_retries.get(task["name"], 0)
        if task["maxRetry"] not in (-1, 3) and retries > task["maxRetry"]:
            yield f"task {task['name']} has {retries} of {task['maxRetry']} retries"
    if job.phase in TRANSIENT and not alive:
        yield "nobody is left to wait for"
    if job.phase in (*TRANSIENT, *FINISHED) and (
        phases["Pending"] or phases["Binding"] or phases["Bound"] or phases["Running"]
    ):
        yield f"has pods that were not stopped: {dict(phases)}"
    yield from _broken_gang(job, alive)
    if job.phase in (JobPhase.PENDING, JobPhase.RUNNING):
        yield from _broken_tasks(job, pods)
    if (job.finished_at is not None) != (job.phase in FINISHED):
        yield f"finished at {job.finished_at}"


def _broken_gang(job: Job, alive: int) -> Iterator[str]:
    phase = job.podgroup.phase
    if job.phase in FINISHED and not alive and phase != "Completed":
        yield f"its podgroup is {phase}"
    if (alive or job.phase not in FINISHED) and phase == "Completed":
        yield "its podgroup is Completed"


def _broken_tasks(job: Job, pods: list[Pod]) -> Iterator[str]:
    """Every task that has begun has all its pods and no others.

    One that waits for another has begun only after that.
    """
    by_task = {
        task["name"]: [pod for pod in pods if pod.task == task["name"]] for task in job.tasks
    }
    for task in job.tasks:
        mine = by_task[task["name"]]
        wanted = [pod.index for pod in mine if not pod.unwanted]
        if mine and sorted(wanted) != list(range(task["replicas"])):
            yield f"task {task['name']} has pods {sorted(wanted)} of {task['replicas']}"
        begun = {name for name, some in by_task.items() if some}
        needed = [name for name in needed_tasks(task) if _replicas(job, name)]
        if mine and not begun.issuperset(needed):
            yield f"task {task['name']} began before {needed}"
        if not mine and task["replicas"] and not needed_tasks(task):
            yield f"task {task['name']} has not begun"


def _replicas(job: Job, name: str) -> int:
    return next(int(task["replicas"]) for task in job.tasks if task["name"] == name)


def _lost_machines() -> list[str]:
    """The simulated cluster runs what the database knows of, and nothing else."""
    on_nodes = set(Pod.objects.filter(phase__in=ON_NODES).values_list("pk", flat=True))
    return [
        f"pod {pk} runs and nobody knows of it"
        for pk in SimulatedPod.objects.values_list("pk", flat=True)
        if pk not in on_nodes
    ]


def unfinished_business() -> list[str]:
    """After all has calmed down."""
    left = [
        job
        for job in Job.objects.exclude(phase__in=FINISHED)
        if any(task["replicas"] for task in job.tasks)
    ]
    found = [f"{job} is still {job.phase}: {job.podgroup.reason_message}" for job in left]
    found += [f"{pod} is still {pod.phase}" for pod in Pod.objects.filter(phase__in=ALIVE)]
    Job.objects.filter(ttl_seconds_after_finished=0).update(
        finished_at=timezone.now() - timedelta(seconds=5)
    )
    tidy_up()
    kept = Job.objects.filter(
        ttl_seconds_after_finished=0, phase__in=("Completed", "Failed", "Terminated")
    )
    found += [f"{job} outlived its time" for job in kept]
    return found + [f"{group} without its job" for group in PodGroup.objects.filter(job=None)]
