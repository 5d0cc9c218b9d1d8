"""Kubernetes objects as the mirror writes them: frozen values, with only what scheduling looks at.

Each has `meta`, which says who it is. Amounts are `Resources` in base units, moments are aware
datetimes in UTC. A text that the object does not give is "", a number or moment None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from scheduler.admission.reading.workload import JobManifest
from scheduler.domain.native_groups import stored_name
from scheduler.domain.nodes import Taint
from scheduler.domain.queues import QueueSpec, QueueState
from scheduler.domain.resources import NOTHING, Resources

MADE_GROUP_PREFIX: Final = "podgroup-"
"""Volcano's own controller names the podgroup of an owner like this, with the owner's uid."""


class PodPhase(StrEnum):
    """The phase of a pod as Kubernetes tells it."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


FINISHED_PHASES: Final = (PodPhase.SUCCEEDED, PodPhase.FAILED)


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller that made an object."""

    kind: str
    name: str
    uid: str
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """Who an object is. `deleted` is when its deletion was asked for, not when it was gone."""

    name: str
    uid: str
    namespace: str = ""
    resource_version: str = ""
    generation: int = 0
    created: datetime | None = None
    deleted: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    owner: Owner | None = None

    @property
    def key(self) -> str:
        """namespace/name, or the name alone where there is no namespace."""
        if not self.namespace:
            return self.name
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a status. `status` is True, False or Unknown, as text."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class NodeObject:
    """A node. `allocatable` is its capacity where the node names only that."""

    meta: ObjectMeta
    allocatable: Resources = NOTHING
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = False
    ready_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class NamespaceObject:
    """`queue` is the queue for podgroups of the namespace that name none."""

    meta: ObjectMeta
    queue: str = ""
    terminating: bool = False


@dataclass(frozen=True, slots=True)
class PriorityClassObject:
    """The system's own classes have values above 1,000,000,000."""

    meta: ObjectMeta
    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"
    description: str = ""


@dataclass(frozen=True, slots=True)
class PodObject:
    """A pod.

    `requests` is what it takes on a node, without the one of `pods`.

    `group` is the Volcano podgroup that it names, `native_group` the one of `scheduling.k8s.io`.
    `queue` is what the pod itself asks for. `min_member` comes from its annotation and counts where
    we make the group. `task`, `task_index` and `job_version` are set by Volcano's Job controller.

    `affinity` and `tolerations` are as they came, `spread` are the topology spread constraints that
    must hold. `gates` are scheduling gates: a pod that has one
    is not to be touched. `unsupported` names what it asks for and no session can honour yet.
    `claims` are the persistent volume claims it mounts.
    """

    meta: ObjectMeta
    scheduler_name: str = "default-scheduler"
    node: str = ""
    phase: PodPhase = PodPhase.PENDING
    requests: Resources = NOTHING
    priority: int = 0
    priority_class: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    group: str = ""
    native_group: str = ""
    queue: str = ""
    min_member: int | None = None
    task: str = ""
    task_index: int | None = None
    job_version: int | None = None
    preemptable: bool = True
    node_selector: Mapping[str, str] = field(default_factory=dict, hash=False)
    affinity: Mapping[str, Any] = field(default_factory=dict, hash=False)
    tolerations: tuple[Mapping[str, str], ...] = field(default=(), hash=False)
    spread: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    gates: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    started: datetime | None = None
    finished: datetime | None = None
    scheduled: Condition | None = None  # its condition PodScheduled
    preempted: str = ""  # a scheduler takes it away: what the cluster says of it
    mirrored: bool = False  # a static pod of a kubelet: nobody can bind or evict it

    @property
    def is_finished(self) -> bool:
        return self.phase in FINISHED_PHASES

    @property
    def takes_room(self) -> bool:
        """Whether its requests count on its node. One that is being deleted still does."""
        return bool(self.node) and not self.is_finished

    @property
    def group_name(self) -> str:
        """The podgroup that it belongs to; the one that we make for its owner, if it names none."""
        if self.group:
            return self.group
        if self.native_group:
            return stored_name(self.native_group)
        return self.made_group_name

    @property
    def made_group_name(self) -> str:
        """All pods of one controller share a group; a bare pod has one for itself."""
        owner = self.meta.owner
        if owner is None:
            return MADE_GROUP_PREFIX + self.meta.uid
        return MADE_GROUP_PREFIX + owner.uid


@dataclass(frozen=True, slots=True)
class PersistentVolumeObject:
    """`node_terms` say from where it can be reached, as they came; none means from everywhere."""

    meta: ObjectMeta
    node_terms: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)


@dataclass(frozen=True, slots=True)
class ClaimObject:
    """A persistent volume claim. `volume` is the name of the one it has, "" for none."""

    meta: ObjectMeta
    volume: str = ""
    phase: str = ""

    @property
    def is_bound(self) -> bool:
        return bool(self.volume) and self.phase == "Bound"


@dataclass(frozen=True, slots=True)
class PodGroupObject:
    """A podgroup of Volcano, or one of Kubernetes itself (`is_native`).

    `queue` is "" where a native one names none. `min_resources` and `priority` None mean not set.
    `unsupported` names what it asks for and no session can honour.
    """

    meta: ObjectMeta
    queue: str = ""
    min_member: int = 1
    min_task_member: Mapping[str, int] = field(default_factory=dict, hash=False)
    min_resources: Resources | None = None
    priority_class: str = ""
    network_topology: Mapping[str, object] = field(default_factory=dict, hash=False)
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    is_native: bool = False
    priority: int | None = None
    unsupported: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """As pods name it: namespace and name, the name of a native one with its prefix."""
        if self.is_native:
            return f"{self.meta.namespace}/{stored_name(self.meta.name)}"
        return self.meta.key


@dataclass(frozen=True, slots=True)
class QueueObject:
    """A queue as it is stored, rules or no rules.

    `spec.state` is the requested state. It comes from `spec.state` of the extended CRD, else from
    the annotation `fumarole.io/state`, else from the state in the status. `named_state` is what one
    of the first two gave, `is_state_annotated` whether it was the annotation. `state` is the state
    in the status. `flaws` are the fields that cannot be read as they stand, each in a sentence; the
    value then has the default.
    """

    meta: ObjectMeta
    spec: QueueSpec
    named_state: str | None = None
    is_state_annotated: bool = False
    state: str = ""
    status: Mapping[str, object] = field(default_factory=dict, hash=False)
    flaws: tuple[str, ...] = ()

    @property
    def is_closed_in_status(self) -> bool:
        return self.state in (QueueState.CLOSING.value, QueueState.CLOSED.value)

    @property
    def _was_opened_since(self) -> bool:
        """An annotation that says Closed is ours, of a time before the other controller came."""
        is_closed = self.is_state_annotated and self.spec.state is QueueState.CLOSED
        return is_closed and self.state == QueueState.OPEN.value

    def requested_state(self, *, follows_status: bool) -> QueueState:
        """Open, Closed or Suspended.

        It follows the status where another controller opens and closes queues. One that is closed
        there is closed, whatever the queue itself asks for.
        """
        if follows_status and self.is_closed_in_status:
            return QueueState.CLOSED
        if follows_status and self._was_opened_since:
            return QueueState.OPEN
        if self.spec.state in (QueueState.CLOSED, QueueState.SUSPENDED):
            return self.spec.state
        return QueueState.OPEN


@dataclass(frozen=True, slots=True)
class JobObject:
    """A Volcano Job. `job` is what admission reads of it, `flaws` what it cannot read.

    `status` is as it came.
    """

    meta: ObjectMeta
    job: JobManifest
    phase: str = ""
    phase_since: datetime | None = None
    message: str = ""
    retry_count: int = 0
    version: int = 0
    status: Mapping[str, Any] = field(default_factory=dict, hash=False)
    flaws: tuple[str, ...] = ()

    @property
    def group_name(self) -> str:
        """Volcano's controller gives this name to the podgroup that it makes for the job."""
        return f"{self.meta.name}-{self.meta.uid}"

    @property
    def group_key(self) -> str:
        return f"{self.meta.namespace}/{self.group_name}"


@dataclass(frozen=True, slots=True)
class CommandObject:
    """An order of the bus. It is executed once per `meta.uid`, in order of `meta.created`.

    `target_uid` is what the target's must be, "" for any.
    """

    meta: ObjectMeta
    action: str
    target_kind: str
    target_name: str
    target_namespace: str = ""
    target_uid: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DisruptionBudgetObject:
    """A PodDisruptionBudget.

    `selector` is as it came: an empty one selects all pods of the namespace, None selects none.
    The controller of the cluster counts `healthy_pods`, and how many there have to be.
    """

    meta: ObjectMeta
    selector: Mapping[str, object] | None = field(default=None, hash=False)
    disruptions_allowed: int = 0
    healthy_pods: int = 0
    needed_pods: int = 0
    min_available: str = ""
    max_unavailable: str = ""


ClusterObject = (
    NodeObject
    | NamespaceObject
    | PriorityClassObject
    | PodObject
    | PodGroupObject
    | QueueObject
    | JobObject
    | CommandObject
    | DisruptionBudgetObject
    | PersistentVolumeObject
    | ClaimObject
)
