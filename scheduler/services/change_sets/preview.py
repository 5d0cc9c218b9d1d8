"""What a change set, jobs, or the loss of nodes would do: the engine run ahead on copies of the
cluster.

Nothing is locked and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from scheduler.admission.reading.workload import JobManifest
from scheduler.admission.rules.quotas import tree_notices
from scheduler.admission.violations import Notice
from scheduler.domain.change_sets import NODE, POLICY, POLICY_TEXT, QUEUE, ChangeItem
from scheduler.domain.lifecycle import derive
from scheduler.domain.nodes import NodeTable
from scheduler.domain.previews import Loss, Prospect, SetBack, Share
from scheduler.domain.queues import ROOT, QueueState, QueueTree
from scheduler.domain.resources import Resources, total
from scheduler.domain.snapshot import Queue, Snapshot
from scheduler.domain.tables import NO_NODE, OCCUPIES_NODE, Floats, Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.decisions import Outcome, QueueFigures
from scheduler.engine.policy import Flag, Policy
from scheduler.models import ClusterState
from scheduler.scenarios.policies import policy_of
from scheduler.selectors.change_sets.nodes_after import nodes_after
from scheduler.selectors.change_sets.objects import total_after
from scheduler.selectors.queues.facts import admission_scene
from scheduler.selectors.sessions.trials import cluster_now
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.change_sets.apply import of_kind
from scheduler.services.change_sets.preview_jobs import admitted_jobs, key_of, with_new_queues
from scheduler.services.change_sets.queue_changes import plan_queues
from scheduler.services.jobs.trial_jobs import put_in, strange_resource
from scheduler.services.sessions.policies import policy_in_force
from scheduler.simulation.forward import (
    Ahead,
    KeepGoing,
    Limits,
    Progress,
    run_forward,
    run_to,
)

MOST_MINUTES = 24 * 60
MOST_SESSIONS = 400


@dataclass(frozen=True, slots=True)
class Question:
    """What is tried out, all of it together."""

    items: tuple[ChangeItem, ...] = ()
    lost_nodes: Collection[str] = ()
    jobs: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """A snapshot and the policy that its next session follows.

    `jobs` were put in, and `strange` are those that could not be: they ask for something that the
    cluster has nothing of. `by` may see what the asker may see, and queues that are new. Gangs that
    were `set_back` have lost pods with their nodes.
    """

    snapshot: Snapshot
    policy: Policy
    jobs: tuple[JobManifest, ...] = ()
    strange: Mapping[str, str] = field(default_factory=dict)
    by: Actor = SYSTEM
    notices: tuple[Notice, ...] = ()
    set_back: tuple[SetBack, ...] = ()

    @property
    def keys(self) -> list[str]:
        """The podgroups of the jobs."""
        return [key_of(job) for job in self.jobs]


def scene_now(label_keys: frozenset[str] | None = None) -> Scene:
    """The cluster as the next session would see it."""
    state = ClusterState.objects.select_related("policy").get(pk=1)
    return Scene(cluster_now(label_keys), policy_in_force(state))


def scene_after(now: Scene, asked: Question, by: Actor) -> Scene:
    """The same cluster with the set applied, without the lost nodes, and with the jobs submitted.

    Raises what applying the queues and submitting the jobs would raise.
    """
    snapshot = now.snapshot.copy()
    tree, facts = admission_scene()
    states = facts.states
    all_nodes = total_after(asked.items, asked.lost_nodes)
    notices = tree_notices(tree, facts)
    queues = of_kind(asked.items, QUEUE)
    if queues:
        tree, states = _replace_queues(snapshot, queues, by, all_nodes)
        by = with_new_queues(by, tree)
    set_back = _replace_nodes(snapshot, asked)
    policy = now.policy
    for item in of_kind(asked.items, POLICY):
        policy = policy_of((item.wanted or {})[POLICY_TEXT])
    jobs = admitted_jobs(asked.jobs, by, tree, states)
    return Scene(
        snapshot,
        policy,
        jobs=jobs,
        strange=_put_in_all(snapshot, jobs),
        by=by,
        notices=(
            *_new_notices(notices, tree_notices(tree, replace(facts, total=all_nodes))),
            *_notices_of_policy(now.policy, policy),
        ),
        set_back=set_back,
    )


def _replace_queues(
    snapshot: Snapshot, queues: tuple[ChangeItem, ...], by: Actor, all_nodes: Resources | None
) -> tuple[QueueTree, dict[str, QueueState]]:
    planned = plan_queues(queues, by, all_nodes)
    standings = derive(planned.tree, planned.facts.live_podgroups, planned.facts.unknown)
    found = []
    states = {}
    for spec in planned.tree:
        standing = standings[spec.name]
        found.append(Queue(spec, standing.state, standing.held_by))
        states[spec.name] = standing.state
    snapshot.replace_queues(found)
    return planned.tree, states


def _replace_nodes(snapshot: Snapshot, asked: Question) -> tuple[SetBack, ...]:
    lost = _pods_on(snapshot, asked.lost_nodes)
    set_back = _set_back(snapshot, lost)
    _send_home(snapshot, lost)
    if asked.lost_nodes or of_kind(asked.items, NODE):
        nodes = nodes_after(asked.items, asked.lost_nodes)
        snapshot.replace_nodes(NodeTable.build(nodes, snapshot.resources))
    return set_back


def _put_in_all(snapshot: Snapshot, jobs: Sequence[JobManifest]) -> dict[str, str]:
    """Those that ask for a resource that the cluster does not know are left out, and told."""
    strange = {}
    for job in jobs:
        resource = strange_resource(job, snapshot)
        if resource:
            strange[key_of(job)] = resource
        else:
            put_in(job, snapshot)
    return strange


def _new_notices(
    before: Mapping[str, Sequence[Notice]], after: Mapping[str, Sequence[Notice]]
) -> tuple[Notice, ...]:
    """What the rules warn of then and do not now."""
    found: list[Notice] = []
    for name, notices in after.items():
        known = {notice.code for notice in before.get(name, ())}
        found += [notice for notice in notices if notice.code not in known]
    return tuple(found)


def _notices_of_policy(before: Policy, after: Policy) -> tuple[Notice, ...]:
    if follows_tree(after) or not follows_tree(before):
        return ()
    message = (
        "The policy does not follow the tree of queues: limits and shares of a queue do not hold "
        "for the queues below it. To keep them, write enableHierarchy: true beside capacity."
    )
    return (Notice("policy_without_tree", ROOT, message),)


def _pods_on(snapshot: Snapshot, names: Collection[str]) -> Rows:
    """Those that have ended there are done."""
    known = snapshot.nodes.rows
    nodes = [known[name] for name in names if name in known]
    pods = snapshot.pods
    return np.flatnonzero(np.isin(pods.node, nodes) & OCCUPIES_NODE[pods.status])


def _set_back(snapshot: Snapshot, pods: Rows) -> tuple[SetBack, ...]:
    """Each gang that has some of these pods."""
    groups = snapshot.groups
    names = {row: name for name, row in snapshot.queue_rows.items()}
    found = []
    rows, counts = np.unique(snapshot.pods.group[pods], return_counts=True)
    for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
        queue = names.get(int(groups.queue[row]), "")
        found.append(SetBack(groups.key[row], queue, count))
    return tuple(sorted(found, key=lambda gang: gang.podgroup))


def _send_home(snapshot: Snapshot, pods: Rows) -> None:
    """Pods of a lost node wait again."""
    snapshot.change_pods(
        pods,
        status=int(PodStatus.PENDING),
        node=NO_NODE,
        borrowed=False,
        reserved_node=NO_NODE,
        reserved_until=-1,
    )


def prospect_of(
    scene: Scene, minutes: int, run_seconds: Floats, keep_going: KeepGoing | None = None
) -> Prospect:
    """The first session exactly, and then ahead.

    Pods run for `run_seconds` of their podgroup's row. Where that is NaN they do not end.
    """
    limits = Limits(
        seconds=min(minutes, MOST_MINUTES) * 60.0, sessions=MOST_SESSIONS, until_all_started=False
    )
    ahead = run_forward(
        scene.snapshot, scene.policy, run_seconds, limits, keep_going=keep_going, reporting=True
    )
    return _prospect(ahead, scene)


def scene_at(
    now: Scene, moment: float, run_seconds: Floats, keep_going: KeepGoing | None = None
) -> Scene:
    """The cluster at a later moment, if nobody submits anything until then."""
    limits = Limits(
        seconds=max(0.0, moment - now.snapshot.taken_at),
        sessions=MOST_SESSIONS,
        until_all_started=False,
    )
    ahead = run_to(now.snapshot, now.policy, run_seconds, limits, keep_going)
    return replace(now, snapshot=ahead)


def _prospect(ahead: Ahead, scene: Scene) -> Prospect:
    starts = {name: at - ahead.began for name, at in ahead.starts.items()}
    losses = []
    for eviction in ahead.evictions:
        losses.append(
            Loss(
                eviction.pod,
                eviction.podgroup,
                eviction.queue,
                eviction.beneficiary,
                eviction.at - ahead.began,
                eviction.action,
            )
        )
    return Prospect(
        shares=_shares(ahead.first, scene),
        starts=starts,
        waiting=frozenset(ahead.waiting),
        losses=tuple(losses),
        first_binds=len(ahead.first.binds),
        first_evictions=len(ahead.first.evictions),
        seconds=ahead.until - ahead.began,
        halt=ahead.halt.value,
        reasons=_reasons(ahead, scene),
    )


def _reasons(ahead: Ahead, scene: Scene) -> dict[str, tuple[str, str]]:
    found = {}
    for job in scene.jobs:
        reason = ahead.first.reasons.get(key_of(job))
        if reason is not None:
            found[key_of(job)] = (reason.code.value, reason.message)
    return found


def _shares(outcome: Outcome, scene: Scene) -> dict[str, Share]:
    """By queue. A policy without the tree counts no pods below a queue for it; a reader does."""
    shares = {name: _share(figures) for name, figures in outcome.queues.items()}
    if follows_tree(scene.policy):
        return shares
    parents = {queue.name: queue.spec.parent for queue in scene.snapshot.queues}
    parts = {name: [share.allocated] for name, share in shares.items()}
    for name, share in shares.items():
        above = parents[name]
        while above:
            parts[above].append(share.allocated)
            above = parents[above]
    return {name: replace(share, allocated=total(parts[name])) for name, share in shares.items()}


def follows_tree(policy: Policy) -> bool:
    """Whether its plugins look at the tree of queues."""
    return any(policy.enables(config, Flag.HIERARCHY) for tier in policy.tiers for config in tier)


def _share(figures: QueueFigures) -> Share:
    return Share(figures.deserved, figures.allocated, figures.guarantee, figures.asked)


def part_of(
    told: Callable[[float, float], bool], minutes: int, begin: float, end: float
) -> KeepGoing:
    """Tells how far a run is, as a part from `begin` to `end`; False stops it."""

    def keep_going(progress: Progress) -> bool:
        by_time = progress.seconds / (minutes * 60.0)
        by_sessions = progress.sessions / MOST_SESSIONS
        part = min(1.0, max(by_time, by_sessions))
        return told(begin + part * (end - begin), end)

    return keep_going
