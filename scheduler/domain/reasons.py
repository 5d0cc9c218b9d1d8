"""Why a podgroup has not started: every reason, and all that is true of it, in one table.

To add a reason, add its code, its row here at the place of its precedence, and the question that
finds it in `scheduler/engine/report/explain.py`. `docs/how-to/add-a-reason.md` has the steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class ReasonCode(StrEnum):
    """In the order in which lists and the API name them."""

    ON_HOLD = "OnHold"
    SCHEDULING_PAUSED = "SchedulingPaused"
    ANOTHER_SCHEDULER_DECIDES = "AnotherSchedulerDecides"
    QUEUE_NOT_FOUND = "QueueNotFound"
    QUEUE_NOT_LEAF = "QueueNotLeaf"
    QUEUE_CLOSED = "QueueClosed"
    QUEUE_SUSPENDED = "QueueSuspended"
    HIERARCHY_INVALID = "HierarchyInvalid"
    NOT_PERMITTED = "NotPermitted"
    NOT_ENOUGH_TASKS = "NotEnoughTasks"
    NOT_SUPPORTED = "NotSupported"
    EXCEEDS_CAPABILITY = "ExceedsCapability"
    EXCEEDS_CLUSTER = "ExceedsCluster"
    NO_NODE_FITS = "NoNodeFits"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    RESERVED_FOR_GUARANTEES = "ReservedForGuarantees"
    OVER_DESERVED_NOT_RECLAIMABLE = "OverDeservedNotReclaimable"
    POD_RULES_NOT_MET = "PodRulesNotMet"
    GANG_INCOMPLETE = "GangIncomplete"
    FRAGMENTED = "Fragmented"
    RECLAIM_IN_PROGRESS = "ReclaimInProgress"
    CLUSTER_BUSY = "ClusterBusy"
    BEHIND_OTHERS = "BehindOthers"
    LEFT_OUT_BY_POLICY = "LeftOutByPolicy"
    AWAITING_EVALUATION = "AwaitingEvaluation"


@dataclass(frozen=True, slots=True)
class ReasonEntry:
    """One row of the table: what holds for every podgroup with this reason."""

    code: ReasonCode
    help: str
    """What would make the job start; {level}, {limit} and {short} are figures of the reason."""
    is_about_room: bool = False
    """Room was looked for, in queues and on nodes. Only then are checks made and shown."""
    can_pass: bool = True
    """It can pass by itself. Otherwise somebody has to change the job, the queue or the cluster."""
    can_never_run: bool = False
    """As things are the job can never run, so its queue does not count as asking for its room."""
    lacks_room: bool = False
    """There is too little of one resource now. It counts for what the queue lacks of it."""
    nodes_were_asked: bool = False
    """Nodes had no room. Only then are they counted in the message of a pod."""
    more_nodes_help: bool = False
    """An autoscaler may take the pods for ones that need machines."""


REASONS: Final[tuple[ReasonEntry, ...]] = (
    ReasonEntry(
        ReasonCode.ON_HOLD,
        "It starts after somebody has taken it off hold.",
    ),
    ReasonEntry(
        ReasonCode.SCHEDULING_PAUSED,
        "Nothing starts until an operator of the cluster resumes scheduling.",
    ),
    ReasonEntry(
        ReasonCode.ANOTHER_SCHEDULER_DECIDES,
        "It starts when the scheduler of the cluster places its pods.",
    ),
    ReasonEntry(
        ReasonCode.QUEUE_NOT_FOUND,
        "Clone it into a queue that exists.",
        can_pass=False,
        can_never_run=True,
    ),
    ReasonEntry(
        ReasonCode.QUEUE_NOT_LEAF,
        "Clone it into one of the queues below.",
        can_pass=False,
        can_never_run=True,
    ),
    ReasonEntry(
        ReasonCode.QUEUE_CLOSED,
        "An admin of {level} has to open it, or clone the job into another queue.",
        can_pass=False,
        can_never_run=True,
    ),
    ReasonEntry(
        ReasonCode.QUEUE_SUSPENDED,
        "It starts after an admin of {level} has resumed it; "
        "until then it keeps its place in the line.",
    ),
    ReasonEntry(
        ReasonCode.HIERARCHY_INVALID,
        "An admin has to fix the tree of queues.",
        can_pass=False,
        can_never_run=True,
    ),
    ReasonEntry(
        ReasonCode.NOT_PERMITTED,
        "Ask an admin of its queue.",
        can_pass=False,
        can_never_run=True,
    ),
    ReasonEntry(
        ReasonCode.NOT_ENOUGH_TASKS,
        "It starts when it has as many pods as its gang needs.",
    ),
    ReasonEntry(
        ReasonCode.NOT_SUPPORTED,
        "Submit it without what is named, or leave it to another scheduler.",
        can_pass=False,
        can_never_run=True,
    ),
    ReasonEntry(
        ReasonCode.EXCEEDS_CAPABILITY,
        "Ask for {limit} in all at most, or ask an admin of {level} for a higher capability.",
        is_about_room=True,
        can_pass=False,
        can_never_run=True,
    ),
    ReasonEntry(
        ReasonCode.EXCEEDS_CLUSTER,
        "Ask for {limit} in all at most: the cluster has no more.",
        is_about_room=True,
        can_pass=False,
        can_never_run=True,
        more_nodes_help=True,
    ),
    ReasonEntry(
        ReasonCode.NO_NODE_FITS,
        "Ask for smaller pods, or for other nodes than it does.",
        is_about_room=True,
        can_pass=False,
        can_never_run=True,
        nodes_were_asked=True,
        more_nodes_help=True,
    ),
    ReasonEntry(
        ReasonCode.RECLAIM_IN_PROGRESS,
        "It starts as soon as the pods that make room have left.",
        is_about_room=True,
        more_nodes_help=True,
    ),
    ReasonEntry(
        ReasonCode.WAITING_FOR_QUOTA,
        "It starts when {short} more come free in {level}, as jobs there end.",
        is_about_room=True,
        lacks_room=True,
    ),
    ReasonEntry(
        ReasonCode.RESERVED_FOR_GUARANTEES,
        "It starts when {short} more come free in the cluster: what is free now is guaranteed to "
        "other queues.",
        is_about_room=True,
        lacks_room=True,
        more_nodes_help=True,
    ),
    ReasonEntry(
        ReasonCode.POD_RULES_NOT_MET,
        "It starts when other pods leave or come, or when nodes do, so that its affinity, "
        "anti-affinity and topology spread hold.",
        is_about_room=True,
        more_nodes_help=True,
    ),
    ReasonEntry(
        ReasonCode.OVER_DESERVED_NOT_RECLAIMABLE,
        "It starts when others leave room: its queue has more than its share already.",
        is_about_room=True,
        lacks_room=True,
        nodes_were_asked=True,
        more_nodes_help=True,
    ),
    ReasonEntry(
        ReasonCode.GANG_INCOMPLETE,
        "It starts when there is room for all of them at once, as other jobs end.",
        is_about_room=True,
        lacks_room=True,
        nodes_were_asked=True,
        more_nodes_help=True,
    ),
    ReasonEntry(
        ReasonCode.FRAGMENTED,
        "It starts when one node has enough together; smaller pods would fit now.",
        is_about_room=True,
        lacks_room=True,
        nodes_were_asked=True,
        more_nodes_help=True,
    ),
    ReasonEntry(
        ReasonCode.CLUSTER_BUSY,
        "It starts when {short} more come free in the cluster, as other jobs end.",
        is_about_room=True,
        lacks_room=True,
        nodes_were_asked=True,
        more_nodes_help=True,
    ),
    ReasonEntry(
        ReasonCode.BEHIND_OTHERS,
        "It starts after those before it in the line.",
        is_about_room=True,
    ),
    ReasonEntry(
        ReasonCode.LEFT_OUT_BY_POLICY,
        "A cluster admin has to add allocate to the policy, or go back to an earlier one.",
        is_about_room=True,
        can_pass=False,
    ),
    ReasonEntry(
        ReasonCode.AWAITING_EVALUATION,
        "The next session looks at it.",
        is_about_room=True,
    ),
)
"""In order of precedence: of all reasons that a podgroup has, it is told the first."""

_BY_CODE: Final = {entry.code: entry for entry in REASONS}


def reason_entry(code: ReasonCode | str) -> ReasonEntry:
    """The row of a code; that of AwaitingEvaluation for a code that nobody knows."""
    try:
        return _BY_CODE[ReasonCode(code)]
    except ValueError:
        return _BY_CODE[ReasonCode.AWAITING_EVALUATION]


def codes_of(entries: Iterable[ReasonEntry]) -> frozenset[ReasonCode]:
    return frozenset(entry.code for entry in entries)


CANNOT_PASS: Final = codes_of(entry for entry in REASONS if not entry.can_pass)
"""Waiting does not help."""
ASKS_TOO_MUCH: Final = codes_of(
    entry for entry in REASONS if entry.is_about_room and entry.can_never_run
)
"""The job asks for more than it can ever get."""
