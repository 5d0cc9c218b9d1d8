"""What a change set, or the loss of nodes, would do: the engine run ahead on copies of the cluster.

Nothing is locked and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from scheduler.domain.change_sets import NODE, POLICY, POLICY_TEXT, QUEUE, ChangeItem
from scheduler.domain.lifecycle import derive
from scheduler.domain.nodes import NodeTable
from scheduler.domain.previews import Loss, Prospect, Share
from scheduler.domain.snapshot import Queue, Snapshot
from scheduler.domain.tables import NO_NODE
from scheduler.domain.workloads import PodStatus
from scheduler.engine.decisions import QueueFigures
from scheduler.engine.policy import Policy
from scheduler.models import ClusterState
from scheduler.selectors.change_sets.nodes_after import nodes_after
from scheduler.selectors.change_sets.objects import total_after
from scheduler.selectors.sessions.trials import cluster_now
from scheduler.services.accounts.actors import Actor
from scheduler.services.change_sets.apply import of_kind
from scheduler.services.change_sets.queue_changes import plan_queues
from scheduler.services.sessions.policies import policy_in_force, policy_of
from scheduler.simulation.forward import Ahead, KeepGoing, Limits, Progress, run_forward

MOST_MINUTES = 24 * 60
MOST_SESSIONS = 400


@dataclass(frozen=True, slots=True)
class Scene:
    """A snapshot and the policy that its next session follows."""

    snapshot: Snapshot
    policy: Policy


def scene_now() -> Scene:
    """The cluster as the next session would see it."""
    state = ClusterState.objects.select_related("policy").get(pk=1)
    return Scene(cluster_now(), policy_in_force(state))


def scene_after(
    now: Scene, items: tuple[ChangeItem, ...], by: Actor, lost_nodes: Collection[str] = ()
) -> Scene:
    """The same cluster with the set applied, and without these nodes.

    Raises what applying the queues would raise.
    """
    snapshot = now.snapshot.copy()
    queues = of_kind(items, QUEUE)
    if queues:
        _replace_queues(snapshot, queues, items, by)
    if lost_nodes:
        _send_home(snapshot, lost_nodes)
    if lost_nodes or of_kind(items, NODE):
        nodes = nodes_after(items, lost_nodes)
        snapshot.replace_nodes(NodeTable.build(nodes, snapshot.resources))
    policy = now.policy
    for item in of_kind(items, POLICY):
        policy = policy_of((item.wanted or {})[POLICY_TEXT])
    return Scene(snapshot, policy)


def _replace_queues(
    snapshot: Snapshot,
    queues: tuple[ChangeItem, ...],
    items: tuple[ChangeItem, ...],
    by: Actor,
) -> None:
    planned = plan_queues(queues, by, total_after(items))
    standings = derive(planned.tree, planned.facts.live_podgroups, planned.facts.unknown)
    found = []
    for spec in planned.tree:
        standing = standings[spec.name]
        found.append(Queue(spec, standing.state, standing.held_by))
    snapshot.replace_queues(found)


def _send_home(snapshot: Snapshot, lost_nodes: Collection[str]) -> None:
    """Pods of a lost node wait again."""
    known = snapshot.nodes.rows
    rows = [known[name] for name in lost_nodes if name in known]
    on_them = np.flatnonzero(
        np.isin(snapshot.pods.node, rows) & (snapshot.pods.status != PodStatus.GONE)
    )
    snapshot.change_pods(
        on_them,
        status=int(PodStatus.PENDING),
        node=NO_NODE,
        borrowed=False,
        reserved_node=NO_NODE,
        reserved_until=-1,
    )


def prospect_of(scene: Scene, minutes: int, keep_going: KeepGoing | None = None) -> Prospect:
    """The first session exactly, and then ahead.

    Pods run for as long as their jobs declare. Those that declare nothing do not end.
    """
    limits = Limits(
        seconds=min(minutes, MOST_MINUTES) * 60.0, sessions=MOST_SESSIONS, until_all_started=False
    )
    lengths = scene.snapshot.groups.expected_seconds
    ahead = run_forward(
        scene.snapshot, scene.policy, lengths, limits, keep_going=keep_going, reporting=True
    )
    return _prospect(ahead)


def _prospect(ahead: Ahead) -> Prospect:
    starts = {name: at - ahead.began for name, at in ahead.starts.items()}
    losses = []
    for eviction in ahead.evictions:
        at = eviction.at - ahead.began
        losses.append(
            Loss(eviction.pod, eviction.podgroup, eviction.queue, eviction.beneficiary, at)
        )
    return Prospect(
        shares={name: _share(figures) for name, figures in ahead.first.queues.items()},
        starts=starts,
        waiting=frozenset(ahead.waiting),
        losses=tuple(losses),
        first_binds=len(ahead.first.binds),
        first_evictions=len(ahead.first.evictions),
        seconds=ahead.until - ahead.began,
        halt=ahead.halt.value,
    )


def _share(figures: QueueFigures) -> Share:
    return Share(figures.deserved, figures.allocated, figures.guarantee, figures.asked)


def part_of(told: Callable[[float], bool], minutes: int, begin: float, end: float) -> KeepGoing:
    """Tells how far a run is, as a part from `begin` to `end`; False stops it."""

    def keep_going(progress: Progress) -> bool:
        by_time = progress.seconds / (minutes * 60.0)
        by_sessions = progress.sessions / MOST_SESSIONS
        part = min(1.0, max(by_time, by_sessions))
        return told(begin + part * (end - begin))

    return keep_going
