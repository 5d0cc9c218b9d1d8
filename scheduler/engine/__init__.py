"""One scheduling session as a pure function: a snapshot and a policy in, an outcome out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler.domain.exposure import Reaches
from scheduler.domain.no_reclaim import ReclaimAnswer
from scheduler.domain.snapshot import Snapshot
from scheduler.engine.actions import ACTIONS
from scheduler.engine.decisions import Outcome
from scheduler.engine.plugins import find_plugin
from scheduler.engine.policy import Policy
from scheduler.engine.presets import DEFAULT_POLICY
from scheduler.engine.report.exposure import reaches
from scheduler.engine.report.figures import Figures
from scheduler.engine.report.no_reclaim import why_no_reclaim
from scheduler.engine.report.node_fit import NodeQuestion
from scheduler.engine.report.outcome import decisions_of, outcome_of
from scheduler.engine.session import Session


def run_session(
    snapshot: Snapshot,
    policy: Policy = DEFAULT_POLICY,
    actions: Sequence[str] | None = None,
    ended: Callable[[str], None] | None = None,
    *,
    reporting: bool = True,
) -> Outcome:
    """The only entry point. The same snapshot and policy give the same outcome, bit for bit.

    The snapshot is not changed. `actions` runs only these of the policy's actions. `ended` is
    called after each action: the engine has no clock, but its caller may want to know how long
    actions take. Without `reporting` there are no reasons and no figures of queues: a simulation
    needs decisions alone.
    """
    # 1. Open: plugins compute what queues deserve, and promised places are held.
    session = open_session(snapshot, policy, reporting=reporting)
    figures_at_open = None
    if reporting:
        figures_at_open = Figures(session)

    # 2. Act: each action places, promises or evicts pods in statements, kept whole or undone.
    for action in _actions_to_run(snapshot, policy, actions):
        ACTIONS[action](session)
        if ended is not None:
            ended(action)

    # 3. Close: plugins are told that no action follows.
    session.close()

    # 4. Report: decisions, phases, reasons and figures become one value.
    if figures_at_open is None:
        return decisions_of(session)
    return outcome_of(session, figures_at_open)


def ask_about_reclaim(snapshot: Snapshot, policy: Policy, podgroup: str) -> ReclaimAnswer | None:
    """Why this podgroup, "namespace/name", does not reclaim, or that it may.

    All actions before reclaim are run. None if reclaim would not look at it.
    """
    row = snapshot.groups.rows.get(podgroup)
    if row is None or snapshot.paused:
        return None
    session = open_session(snapshot, policy)
    for action in policy.actions:
        if action == "reclaim":
            break
        ACTIONS[action](session)
    return why_no_reclaim(session, session.gang(row))


def ask_about_node(snapshot: Snapshot, policy: Policy, node: str) -> NodeQuestion:
    """Which waiting gangs fit on this node as things are. The node must be in the snapshot."""
    return NodeQuestion(open_session(snapshot, policy, reporting=False), node)


def count_places(
    snapshot: Snapshot, policy: Policy, pod_classes: Sequence[int], most: int
) -> list[int]:
    """For each of these classes how many of its pods nodes have room for when all that may start
    has its place. No queue's limit counts. At most `most`.
    """
    if snapshot.paused:
        return [0] * len(pod_classes)
    session = _with_places_taken(snapshot, policy)
    return [session.node_scores(pod_class).count_places(most) for pod_class in pod_classes]


def count_started(snapshot: Snapshot, policy: Policy, podgroup: int) -> int:
    """How many pods of the podgroup with this number the next session gives a node."""
    if snapshot.paused:
        return 0
    binds = _with_places_taken(snapshot, policy).binds
    return sum(len(bind.pods) for bind in binds if bind.gang.row == podgroup)


def _with_places_taken(snapshot: Snapshot, policy: Policy) -> Session:
    session = open_session(snapshot, policy, reporting=False)
    for action in placing_actions(policy):
        ACTIONS[action](session)
    return session


def placing_actions(policy: Policy) -> Sequence[str]:
    """The policy's actions up to the last that gives pods with requests a place.

    Those that follow make room for later sessions.
    """
    actions = tuple(policy.actions)
    if "allocate" not in actions:
        return actions
    return actions[: len(actions) - actions[::-1].index("allocate")]


def ask_about_exposure(snapshot: Snapshot, policy: Policy) -> Reaches:
    """How much reclaim could take now of each queue that has more than it deserves."""
    return reaches(open_session(snapshot, policy))


def open_session(
    snapshot: Snapshot, policy: Policy = DEFAULT_POLICY, *, reporting: bool = True
) -> Session:
    """A session before its first action: for probes and tests."""
    plugins = []
    for number, tier in enumerate(policy.tiers):
        for config in tier:
            plugin = find_plugin(config.name)(config.arguments)
            plugins.append((number, config, plugin))
    return Session(snapshot, policy, plugins, reporting=reporting)


def _actions_to_run(
    snapshot: Snapshot, policy: Policy, actions: Sequence[str] | None
) -> Sequence[str]:
    if snapshot.paused:
        return ()
    if actions is None:
        return policy.actions
    return actions
