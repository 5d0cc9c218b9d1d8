"""What a policy leaves out although jobs need it: said before it is applied, and of every job that
waits because of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.engine.policy import Flag, Policy

QUEUE_PLUGINS: Final = ("capacity", "proportion")


@dataclass(frozen=True, slots=True)
class Omission:
    """`stops` says that no job can start without it."""

    code: str
    place: str
    message: str
    stops: bool = False


NO_ALLOCATE: Final = Omission(
    "no_allocate",
    "actions",
    "There is no allocate action: no job that asks for resources will start.",
    stops=True,
)
_ONLY_BACKFILL: Final = Omission(
    "no_allocate",
    "actions",
    "There is no allocate action: only backfill starts jobs, in room that no queue deserves.",
)
_NO_GANG: Final = Omission(
    "no_gang",
    "tiers",
    "There is no gang plugin: jobs start with fewer pods than their minAvailable.",
)
_NO_QUEUES: Final = Omission(
    "no_queue_plugin",
    "tiers",
    "There is neither capacity nor proportion: weight, guarantee, deserved and capability "
    "of queues count for nothing.",
)
_NO_PREDICATES: Final = Omission(
    "no_predicates",
    "tiers",
    "There is no predicates plugin: pods are put on nodes that are cordoned or tainted, "
    "and node selectors count for nothing.",
)


def omissions(policy: Policy) -> tuple[Omission, ...]:
    """In order of weight.

    A plugin that is listed with the function in question switched off is as good as left out.
    """
    found = []
    if "allocate" not in policy.actions:
        found.append(_ONLY_BACKFILL if _backfill_starts_jobs(policy) else NO_ALLOCATE)
    if not _answers(policy, Flag.JOB_READY, "gang"):
        found.append(_NO_GANG)
    if not _answers(policy, Flag.ALLOCATABLE, *QUEUE_PLUGINS):
        found.append(_NO_QUEUES)
    if not _answers(policy, Flag.PREDICATE, "predicates"):
        found.append(_NO_PREDICATES)
    return tuple(found)


def _backfill_starts_jobs(policy: Policy) -> bool:
    """Under proportion it gives away what is idle beyond the shares."""
    return "backfill" in policy.actions and any(
        plugin.name == "proportion" for plugin in policy.plugins()
    )


def has_queue_plugin(policy: Policy) -> bool:
    return _answers(policy, Flag.ALLOCATABLE, *QUEUE_PLUGINS)


def _answers(policy: Policy, flag: Flag, *names: str) -> bool:
    """Whether one of these plugins does it, or one from outside, which is named by its path and may
    do whatever it is written for.
    """
    return any(
        (plugin.name in names or "." in plugin.name) and policy.enables(plugin, flag)
        for plugin in policy.plugins()
    )
