"""How large a gang would start now, and which waiting gangs could start on a node: found by asking
the engine about the cluster as it is, of which nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache, partial
from secrets import token_hex
from typing import Any, Final

from scheduler.admission.reading.pod import PodTemplate
from scheduler.admission.reading.queue import Metadata
from scheduler.admission.reading.workload import JobManifest, TaskManifest
from scheduler.admission.violations import in_words
from scheduler.domain.node_fit import RANK, Fit, NodeVerdict, WaitingGang
from scheduler.domain.queues import DEFAULT
from scheduler.domain.resources import Resources
from scheduler.domain.snapshot import Snapshot
from scheduler.engine import ask_about_node, count_places, count_started, run_session
from scheduler.engine.policy import Policy
from scheduler.models import ClusterState
from scheduler.selectors.queues.submission import submission_scene
from scheduler.selectors.sessions.trials import cluster_now
from scheduler.services.accounts.actors import Actor, submitter
from scheduler.services.jobs.pods import Priorities
from scheduler.services.jobs.submit import check_manifest
from scheduler.services.jobs.trial_jobs import MOST_PODS, pod_class_in, put_in, strange_resource
from scheduler.services.sessions.policies import policy_in_force

_NAME: Final = "largest-gang"
MOST_SHAPES: Final = 8


@dataclass(frozen=True, slots=True)
class LargestGang:
    """`pods` of `shape` would start together in the next session, and no more.

    `why` says what keeps one more. `is_capped` where no larger gang was tried.
    """

    shape: Resources
    pods: int
    why: str = ""
    is_capped: bool = False


# The largest gang


def largest_gangs(shapes: Sequence[Resources], queue: str, *, by: Actor) -> list[LargestGang]:
    """For each shape of pods, in this queue; without a queue, whatever queues may use.

    The caller has asked whether the reader may see the queue. The number of queries depends
    neither on shapes nor on how many gangs are tried.
    """
    wanted = list(shapes[:MOST_SHAPES])
    snapshot = cluster_now()
    policy = policy_in_force(ClusterState.objects.select_related("policy").get(pk=1))
    if snapshot.paused and not queue:
        return [LargestGang(shape, 0, "Scheduling is paused.") for shape in wanted]
    trials = _Trials(snapshot, policy, queue, by)
    known = [shape for shape in wanted if not strange_resource(_job_of(shape, 1), snapshot)]
    places = dict(zip(known, trials.places(known), strict=True))
    found = []
    for shape in wanted:
        if shape not in places:
            strange = strange_resource(_job_of(shape, 1), snapshot)
            found.append(LargestGang(shape, 0, f"The cluster has no {strange} at all."))
        elif queue:
            found.append(trials.largest(shape, places[shape]))
        else:
            found.append(_largest_of_cluster(shape, places[shape]))
    return found


def _largest_of_cluster(shape: Resources, places: int) -> LargestGang:
    if places == MOST_PODS:
        return LargestGang(shape, places, is_capped=True)
    why = "No node has room for one more pod when all that may start has its place."
    return LargestGang(shape, places, why)


def _job_of(shape: Resources, pods: int, queue: str = "", name: str = _NAME) -> JobManifest:
    """A gang that starts with one pod and takes up to `pods`."""
    task = TaskManifest("worker", pods, 1, -1, PodTemplate(requests=shape))
    metadata = Metadata(name, DEFAULT, "", "", {}, {})
    return JobManifest(metadata, queue, 1, (task,))


class _Trials:
    """Gangs of one queue, submitted one after the other to copies of the cluster."""

    def __init__(self, snapshot: Snapshot, policy: Policy, queue: str, by: Actor) -> None:
        self.snapshot = snapshot
        self.policy = policy
        self.queue = queue
        self.name = f"{_NAME}-{token_hex(4)}"  # nobody has one of this name
        self.priorities = Priorities.load()
        self.scene = submission_scene({queue}, DEFAULT, submitter(by))

    def places(self, shapes: Sequence[Resources]) -> list[int]:
        """What nodes have room for when all that may start has its place."""
        copy = self.snapshot.copy()
        classes = [pod_class_in(_job_of(shape, 1), copy, self.priorities) for shape in shapes]
        return count_places(copy, self.policy, classes, MOST_PODS)

    def largest(self, shape: Resources, places: int) -> LargestGang:
        starts = cache(partial(self._starts, shape))
        guess = max(1, places)
        if not starts(guess):
            guess = self._started(_job_of(shape, guess, self.queue, self.name))
        pods = largest_that(starts, guess, MOST_PODS)
        if pods == MOST_PODS:
            return LargestGang(shape, pods, is_capped=True)
        return LargestGang(shape, pods, self._why_not(shape, pods + 1))

    def _starts(self, shape: Resources, pods: int) -> bool:
        job, problem = self._admitted(shape, pods)
        return job is not None and not problem and self._started(job) >= pods

    def _started(self, job: JobManifest) -> int:
        """How many of its pods the next session would give a place."""
        copy = self.snapshot.copy()
        key = put_in(job, copy, self.priorities)
        return count_started(copy, self.policy, copy.groups.rows[key])

    def _why_not(self, shape: Resources, pods: int) -> str:
        """The sentence that a gang of this size would wait with, or be refused with."""
        job, problem = self._admitted(shape, pods)
        if job is None or problem:
            return problem
        copy = self.snapshot.copy()
        key = put_in(job, copy, self.priorities)
        reason = run_session(copy, self.policy).reasons.get(key)
        if reason is None:
            return ""
        return reason.message

    def _admitted(self, shape: Resources, pods: int) -> tuple[JobManifest | None, str]:
        job, violations, _ = check_manifest(self._manifest(shape, pods), self.scene)
        return job, in_words(violations)

    def _manifest(self, shape: Resources, pods: int) -> dict[str, Any]:
        container = {"name": "worker", "resources": {"requests": shape.to_quantities()}}
        task = {
            "name": "worker",
            "replicas": pods,
            "template": {"spec": {"containers": [container]}},
        }
        return {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": self.name, "namespace": DEFAULT},
            "spec": {"queue": self.queue, "minAvailable": pods, "tasks": [task]},
        }


def largest_that(starts: Callable[[int], bool], guess: int, most: int) -> int:
    """The largest number up to `most` for which it holds, 0 for none.

    Where it holds for one number it must hold for all below. The guess is tried first.
    """
    low = 0
    high = most + 1
    step = 1
    trial = min(max(1, guess), most)
    while high - low > 1:
        if starts(trial):
            low = trial
        else:
            high = trial
        if high <= most:
            trial = (low + high) // 2
        else:
            trial = min(low + step, most)
            step *= 2
    return low


# Which gangs could start on a node


@dataclass(frozen=True, slots=True)
class NodeWaiting:
    """A page of the gangs that wait, those that fit best first.

    `counts` has all that the reader may see by how they stand to the node. Of `hidden` others the
    reader is told no more than the number.
    """

    rows: tuple[tuple[WaitingGang, NodeVerdict], ...]
    counts: dict[Fit, int]
    hidden: int
    start: int
    whole: int

    @property
    def next(self) -> int:
        """Where the next page begins; 0 for the last."""
        end = self.start + len(self.rows)
        if end < self.whole:
            return end
        return 0


def waiting_at(
    node: str,
    visible: Collection[str] | None,
    *,
    fit: Fit | None = None,
    start: int = 0,
    size: int = 50,
) -> NodeWaiting | None:
    """Of the queues in `visible`, None for all. None where there is no such node."""
    snapshot = cluster_now()
    if node not in snapshot.nodes.rows:
        return None
    policy = policy_in_force(ClusterState.objects.select_related("policy").get(pk=1))
    question = ask_about_node(snapshot, policy, node)
    known = question.waiting_gangs()
    seen = [gang for gang in known if visible is None or gang.queue in visible]
    counts = dict.fromkeys(Fit, 0)
    for gang in seen:
        counts[gang.fit] += 1
    wanted = [gang for gang in seen if fit is None or gang.fit is fit]
    wanted.sort(key=lambda gang: (RANK[gang.fit], -gang.priority, gang.created, gang.key))
    rows = [(gang, question.verdict(gang)) for gang in wanted[start : start + size]]
    return NodeWaiting(tuple(rows), counts, len(known) - len(seen), start, len(wanted))
