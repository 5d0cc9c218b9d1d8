"""The tables."""

from scheduler.models.access import (
    ApiToken,
    Grant,
    GroupMapping,
    Identity,
    KeptAnswer,
    SecondFactor,
)
from scheduler.models.audit import AuditEntry
from scheduler.models.calendar import ChangePlan, Occurrence
from scheduler.models.change import Change, ChangeHorizon
from scheduler.models.change_set import ChangeSet
from scheduler.models.comparison import Comparison
from scheduler.models.fairness import LossRow, StarvedRow, WaitRow
from scheduler.models.history import LoanSample, QueueSample, SavedScenario
from scheduler.models.lookups import Glob
from scheduler.models.mirror import DisruptionBudget, Mirror
from scheduler.models.node import Node
from scheduler.models.notice import (
    Happening,
    Notice,
    NoticeAttempt,
    NoticeChannel,
    NoticeDelivery,
    NoticeRule,
)
from scheduler.models.personal import BulkItem, BulkRun, Preference, SavedView
from scheduler.models.preview import Preview
from scheduler.models.prices import PriceList, SentStatements
from scheduler.models.queue import PlannedDeletion, Queue, QueueFigures
from scheduler.models.record import Command, Event
from scheduler.models.safe_window import SafeWindow
from scheduler.models.session import (
    ClusterState,
    Decision,
    Eviction,
    Lease,
    PolicyVersion,
    SchedulingSession,
)
from scheduler.models.simulation import SimulatedCluster, SimulatedPod
from scheduler.models.start_times import (
    ExpectedStart,
    LearntRunTime,
    LookAhead,
    StartForecast,
)
from scheduler.models.usage import CountedPod, PodStretch, UsageBook, UsageRow
from scheduler.models.workload import (
    Job,
    Namespace,
    Pod,
    PodClass,
    PodGroup,
    PriorityClass,
    UnmadePods,
)

__all__ = [
    "ApiToken",
    "AuditEntry",
    "BulkItem",
    "BulkRun",
    "Change",
    "ChangeHorizon",
    "ChangePlan",
    "ChangeSet",
    "ClusterState",
    "Command",
    "Comparison",
    "CountedPod",
    "Decision",
    "DisruptionBudget",
    "Event",
    "Eviction",
    "ExpectedStart",
    "Glob",
    "Grant",
    "GroupMapping",
    "Happening",
    "Identity",
    "Job",
    "KeptAnswer",
    "LearntRunTime",
    "Lease",
    "LoanSample",
    "LookAhead",
    "LossRow",
    "Mirror",
    "Namespace",
    "Node",
    "Notice",
    "NoticeAttempt",
    "NoticeChannel",
    "NoticeDelivery",
    "NoticeRule",
    "Occurrence",
    "PlannedDeletion",
    "Pod",
    "PodClass",
    "PodGroup",
    "PodStretch",
    "PolicyVersion",
    "Preference",
    "Preview",
    "PriceList",
    "PriorityClass",
    "Queue",
    "QueueFigures",
    "QueueSample",
    "SafeWindow",
    "SavedScenario",
    "SavedView",
    "SchedulingSession",
    "SecondFactor",
    "SentStatements",
    "SimulatedCluster",
    "SimulatedPod",
    "StartForecast",
    "StarvedRow",
    "UnmadePods",
    "UsageBook",
    "UsageRow",
    "WaitRow",
]
