"""Podgroups and pods as values: what they ask for, where they may run, and their state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from scheduler.domain.pod_rules import NO_RULES, Labels, PodRules
from scheduler.domain.requirements import Requirement
from scheduler.domain.resources import NOTHING, Resources


class PodStatus(IntEnum):
    """How far a pod has come. GONE marks a free row of a table, never a pod."""

    GONE = 0
    PENDING = 1
    ALLOCATED = 2  # placed by the session that is running
    PIPELINED = 3  # waits, in the session that is running, for room being released
    BINDING = 4
    BOUND = 5
    RUNNING = 6
    RELEASING = 7
    SUCCEEDED = 8
    FAILED = 9
    UNKNOWN = 10

    @property
    def label(self) -> str:
        """As Volcano spells it: "Pending"."""
        return self.name.title()


class Phase(IntEnum):
    """The phase of a podgroup."""

    PENDING = 0
    INQUEUE = 1
    RUNNING = 2
    UNKNOWN = 3
    COMPLETED = 4

    @property
    def label(self) -> str:
        """As Volcano spells it: "Inqueue"."""
        return self.name.title()

    @classmethod
    def of(cls, label: str) -> Phase:
        """From Volcano's spelling; an empty text is Pending. Raises `KeyError`."""
        if label:
            return cls[label.upper()]
        return cls.PENDING


@dataclass(frozen=True, slots=True, order=True)
class Toleration:
    """`operator` is Exists, Equal, Gt or Lt.

    An empty key with Exists tolerates everything, an empty effect every effect.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, order=True)
class NodeTerm:
    """A term matches when all its expressions do; `fields` look at the node itself (metadata.name).

    An empty term matches nothing.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class PreferredTerm:
    weight: int
    term: NodeTerm


@dataclass(frozen=True, slots=True)
class Constraint:
    """Where a pod may run and would rather run.

    `required` is a list of alternatives; empty means anywhere. `rules` are about the pods that run
    beside it. `unsupported` names what it asks for and no session can honour: then it runs nowhere.
    """

    node_selector: tuple[tuple[str, str], ...] = ()
    required: tuple[NodeTerm, ...] = ()
    preferred: tuple[PreferredTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    rules: PodRules = NO_RULES
    unsupported: tuple[str, ...] = ()


ANYWHERE = Constraint()


@dataclass(frozen=True, slots=True)
class PodClass:
    """What all pods have in common that the engine may treat alike.

    `request` includes one of `pods`. `labels` and `namespace` are given only while the rules of
    some pod look at them, so that nobody else pays for it.
    """

    request: Resources
    priority: int = 0
    role: str = ""
    constraint: Constraint = ANYWHERE
    preemptable: bool = True
    preempts: bool = True  # False for the preemption policy Never
    critical: bool = False  # system-critical: never a victim
    labels: Labels = ()
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod, for scenario files and tests.

    Large clusters come as columns, see `snapshot.PodTable`.

    `node` is empty when it has none. `reserved_node` and `reserved_until` are the place that an
    earlier session kept for it.
    """

    name: str
    podgroup: str  # namespace/name
    namespace: str = "default"
    request: Resources = NOTHING
    node: str = ""
    status: PodStatus = PodStatus.PENDING
    priority: int = 0
    role: str = ""
    constraint: Constraint = ANYWHERE
    preemptable: bool = True
    preempts: bool = True
    critical: bool = False
    created: float = 0.0
    borrowed: bool = False
    reserved_node: str = ""
    reserved_until: int = -1
    started: float | None = None  # when it began to run, if that is known
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def pod_class(self) -> PodClass:
        """The class of the pod, without its labels: its request with one of `pods` added."""
        request = Resources({**self.request, "pods": 1})
        return PodClass(
            request,
            self.priority,
            self.role,
            self.constraint,
            self.preemptable,
            self.preempts,
            self.critical,
        )


@dataclass(frozen=True, slots=True)
class PodGroup:
    """One podgroup, for scenario files and tests.

    `priority` is already resolved from its priority class.

    `min_resources` None means not set. `starving_since` is the number of the session that first saw
    it starving, -1 for none. `sla_waiting_time` in seconds overrides the policy's. `on_hold` and
    `not_permitted` carry the words of whoever holds it back. `evictions` is how often sessions have
    evicted pods of it, `expected_seconds` how long its pods are said to run, if anybody says so.
    """

    name: str
    queue: str
    namespace: str = "default"
    min_member: int = 1
    role_minimums: Mapping[str, int] = field(default_factory=dict, hash=False)
    min_resources: Resources | None = None
    phase: Phase = Phase.PENDING
    priority: int = 0
    created: float = 0.0
    starving_since: int = -1
    sla_waiting_time: float | None = None
    on_hold: str = ""
    not_permitted: str = ""
    evictions: int = 0
    expected_seconds: float | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
