"""One scheduling session as a pure function: a snapshot and a policy in, an outcome out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler.domain.snapshot import Snapshot
from scheduler.engine.actions import ACTIONS
from scheduler.engine.decisions import Outcome
from scheduler.engine.plugins import find_plugin
from scheduler.engine.policy import DEFAULT_POLICY, Policy
from scheduler.engine.report.figures import Figures
from scheduler.engine.report.outcome import outcome_of
from scheduler.engine.session import Session


def run_session(
    snapshot: Snapshot,
    policy: Policy = DEFAULT_POLICY,
    actions: Sequence[str] | None = None,
    ended: Callable[[str], None] | None = None,
    *,
    reporting: bool = True,
) -> Outcome:
    """The only entry point.

    Same snapshot and policy, same outcome, bit for bit; the snapshot is not changed.

    `actions` runs only these, of a policy that has them and others. `ended` is told of each action
    that is done: who wants to know how long they take has a clock, the engine has none. Without
    `reporting` nobody is told why they wait: a simulation asks for decisions alone.
    """
    session = open_session(snapshot, policy)
    at_open = Figures(session)
    for action in () if snapshot.paused else policy.actions if actions is None else actions:
        ACTIONS[action](session)
        if ended is not None:
            ended(action)
    session.close()
    return outcome_of(session, at_open, reporting=reporting)


def open_session(snapshot: Snapshot, policy: Policy = DEFAULT_POLICY) -> Session:
    """A session before its first action: for probes and tests."""
    plugins = [
        (number, config, find_plugin(config.name)(config.arguments))
        for number, tier in enumerate(policy.tiers)
        for config in tier
    ]
    return Session(snapshot, policy, plugins)
