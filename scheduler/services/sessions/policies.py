"""The policy in force: the stored text, read once for as long as it stays the same.

Checked and replaced as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from scheduler import notify
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.engine.policy import Policy
from scheduler.engine.presets import BOUND
from scheduler.engine.report.omissions import has_queue_plugin, omissions
from scheduler.models import ClusterState, PolicyVersion
from scheduler.scenarios.policies import (
    PolicyError,
    PolicyReading,
    default_policy_text,
    min_run_seconds_of,
    policy_of,
    read_policy,
)
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.files.versions import Expected, Stale, is_expected
from scheduler.services.records import audit
from scheduler.services.sessions.requests import want_session

_LOOKED_BACK = 50
DEFAULT_VERSION = 0
"""The version of an installation whose policy was never written."""


def policy_in_force(state: ClusterState) -> Policy:
    return policy_of(None if state.policy is None else state.policy.text)


def gives_shares(state: ClusterState) -> bool:
    """Whether queues deserve anything under the policy in force."""
    return has_queue_plugin(policy_in_force(state))


def min_run_seconds(state: ClusterState) -> int:
    """How long pods run before reclaim may evict them, where no queue says anything else."""
    return min_run_seconds_of(policy_in_force(state))


def policy_text(state: ClusterState) -> str:
    if state.policy is None:
        return default_policy_text()
    return state.policy.text


def policy_version(number: int) -> PolicyVersion | None:
    """A policy that is or was in force.

    `DEFAULT_VERSION` is the built-in one, which no row holds.
    """
    if number == DEFAULT_VERSION:
        return PolicyVersion(pk=DEFAULT_VERSION, text=default_policy_text())
    return PolicyVersion.objects.filter(pk=number).first()


def check_policy(text: str) -> PolicyReading:
    """Raises `Rejected` with every problem and its place."""
    try:
        return read_policy(text)
    except PolicyError as error:
        problems = []
        for problem in error.problems:
            problems.append(Violation("invalid_policy", "", problem.place, problem.message))
        raise Rejected(problems) from None


def notices_on(reading: PolicyReading) -> tuple[Notice, ...]:
    """What a policy leaves out although jobs need it, then what in its text has no effect here."""
    left_out = []
    for omission in omissions(reading.policy):
        left_out.append(Notice(omission.code, "", omission.message, omission.place))
    unused = []
    for warning in reading.warnings:
        unused.append(Notice("policy_without_effect", "", warning.message, warning.place))
    return (*left_out, *unused)


def _notice_text(notice: Notice) -> str:
    if notice.field:
        return f"{notice.field}: {notice.message}"
    return notice.message


@dataclass(frozen=True, slots=True)
class SavedPolicy:
    state: ClusterState
    version: PolicyVersion
    notices: tuple[Notice, ...] = ()
    changed: bool = True


def replace_policy(
    text: str,
    *,
    by: Actor = SYSTEM,
    reason: str = "",
    expected_version: Expected = None,
    dry_run: bool = False,
    confirmed: bool = True,
) -> SavedPolicy:
    """Apply another policy, from the next session on; every earlier one is kept.

    Raises `Rejected`, also for a policy under which no job would start and for the preset `bound`
    unless that is `confirmed`, and `Stale`.
    """
    access.require_cluster(by, doing="replace the policy")
    reading = check_policy(text)
    notices = notices_on(reading)
    if not confirmed and not dry_run:
        _refuse_if_nothing_starts(reading.policy)
        _refuse_if_bound(reading.policy)
    with transaction.atomic():
        state = (
            ClusterState.objects.select_for_update(of=("self",)).select_related("policy").get(pk=1)
        )
        _check_version(state, expected_version)
        before = policy_text(state)
        changed = text != before
        if state.policy is None:
            version = PolicyVersion(text=text)
        else:
            version = state.policy
        if changed:
            version = PolicyVersion.objects.create(
                text=text,
                author=by.name[:150],
                reason=reason[:1024],
                warnings=[_notice_text(notice) for notice in notices],
            )
            ClusterState.objects.filter(pk=1).update(policy=version)
            state.policy = version
            audit.record(
                by,
                "ReplacePolicy",
                "Policy",
                "policy",
                before={"policy": before},
                after={"policy": text},
                reason=reason,
            )
            want_session()
            notify.cluster_changed()
        transaction.set_rollback(dry_run)
    return SavedPolicy(state, version, notices, changed)


def _refuse_if_nothing_starts(policy: Policy) -> None:
    stopping = [omission for omission in omissions(policy) if omission.stops]
    if stopping:
        fix = "add allocate to the actions, or confirm that no job is to start (confirm=true)"
        violations = []
        for item in stopping:
            violations.append(Violation("policy_starts_nothing", "", item.place, item.message, fix))
        raise Rejected(violations, by_state=True)


def _refuse_if_bound(policy: Policy) -> None:
    if policy == BOUND:
        message = (
            "The preset bound is a yardstick. It ignores guarantee, deserved, capability and "
            "weight of all queues."
        )
        fix = "choose another preset, or confirm that quotas are to be ignored (confirm=true)"
        raise Rejected(
            [Violation("policy_ignores_quotas", "", "tiers", message, fix)], by_state=True
        )


def policy_to_go_back_to(state: ClusterState) -> PolicyVersion | None:
    """The newest other policy before the one in force under which jobs would start.

    At last the built-in one, unless that is in force.
    """
    if state.policy is None:
        return None
    earlier = (
        PolicyVersion.objects.filter(pk__lt=state.policy.pk)
        .exclude(text=state.policy.text)
        .order_by("-pk")[:_LOOKED_BACK]
    )
    starting = (version for version in earlier if not _stops_everything(version.text))
    if state.policy.text != default_policy_text():
        built_in = policy_version(DEFAULT_VERSION)
    else:
        built_in = None
    return next(starting, None) or built_in


def _stops_everything(text: str) -> bool:
    return any(omission.stops for omission in omissions(policy_of(text)))


def _check_version(state: ClusterState, expected: Expected) -> None:
    current = state.policy_id or DEFAULT_VERSION
    if not is_expected(current, expected):
        if state.policy:
            author = state.policy.author
        else:
            author = ""
        raise Stale("The policy", state, current, author, place=("Policy", "", "policy"))
