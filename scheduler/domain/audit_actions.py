"""The actions of the audit log by name, and whose business each is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class AuditArea(StrEnum):
    """Whose business it is: the cluster's, somebody's jobs, or one's own settings."""

    ADMIN = "admin"
    WORK = "work"
    OWN = "own"


ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Queues": (
        "OpenQueue",
        "CloseQueue",
        "SuspendQueue",
        "ResumeQueue",
        "CreateQueue",
        "UpdateQueue",
        "DeleteQueue",
        "PlanDeletion",
        "KeepQueue",
    ),
    "Scheduling": (
        "PauseScheduling",
        "ResumeScheduling",
        "ReplacePolicy",
        "UpdateCluster",
        "KeepSessions",
        "RestoreBackup",
    ),
    "Usage": (
        "SetPrices",
        "DeletePrices",
        "SendStatement",
    ),
    "Change sets": (
        "EditChangeSet",
        "ApplyChangeSet",
        "DiscardChangeSet",
        "ImportChangeSet",
        "BeginWindow",
        "EndWindow",
        "ReopenWindow",
    ),
    "Calendar": (
        "PlanChangeSet",
        "CancelPlan",
        "BeginPlannedChange",
        "EndPlannedChange",
        "HoldUpPlannedChange",
        "MissPlannedChange",
        "ForeseeConflict",
        "ResolveConflict",
        "SkipPlannedChange",
    ),
    "Nodes": (
        "CordonNode",
        "UncordonNode",
        "DrainNode",
        "CreateNode",
        "UpdateNode",
        "DeleteNode",
        "NodeLost",
        "NodeReady",
    ),
    "People and roles": (
        "CreateGrant",
        "DeleteGrant",
        "CreateGroupMapping",
        "DeleteGroupMapping",
        "ApplyGroups",
        "EndSignOn",
        "LinkIdentity",
        "UnlinkIdentity",
        "CreateUser",
        "UpdateUser",
        "DeleteUser",
        "CreateGroup",
        "UpdateGroup",
        "DeleteGroup",
        "CreateToken",
        "RevokeToken",
    ),
    "Namespaces and priorities": (
        "CreateNamespace",
        "UpdateNamespace",
        "DeleteNamespace",
        "CreatePriorityClass",
        "UpdatePriorityClass",
        "DeletePriorityClass",
    ),
    "Jobs": (
        "SubmitJob",
        "UpdateJob",
        "DeleteJob",
        "AbortJob",
        "ResumeJob",
        "RestartJob",
        "RestartTask",
        "RestartPod",
        "TerminateJob",
        "CompleteJob",
        "SyncJob",
        "CreatePodGroup",
        "UpdatePodGroup",
        "DeletePodGroup",
        "CreatePod",
        "DeletePod",
    ),
    "Own settings": (
        "ChangePreferences",
        "ChangePassword",
        "AddSecondFactor",
        "RemoveSecondFactor",
        "NewRecoveryCodes",
        "SaveView",
        "DeleteView",
        "SaveNoticeRule",
        "DeleteNoticeRule",
        "AddChannel",
        "DeleteChannel",
        "RotateSecret",
        "TestChannel",
    ),
}
"""Every action, by subject, in the order in which a list offers them."""

KINDS: Final = (
    "Queue",
    "ChangeSet",
    "SafeWindow",
    "Cluster",
    "Policy",
    "PriceList",
    "Node",
    "Grant",
    "GroupMapping",
    "User",
    "Group",
    "Token",
    "Namespace",
    "PriorityClass",
    "Job",
    "PodGroup",
    "Pod",
    "View",
    "NoticeRule",
    "NoticeChannel",
)
"""What a deed can be done to."""

WORK_KINDS: Final = ("Job", "PodGroup", "Pod")


def audit_area(action: str, kind: str) -> AuditArea:
    if kind in WORK_KINDS:
        return AuditArea.WORK
    if action in ACTIONS["Own settings"]:
        return AuditArea.OWN
    return AuditArea.ADMIN


def known_actions() -> tuple[str, ...]:
    found: list[str] = []
    for actions in ACTIONS.values():
        for action in actions:
            found.append(action)
    return tuple(found)
